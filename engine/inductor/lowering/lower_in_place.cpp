#include <fmt/format.h>

#include <algorithm>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/lowering.h"

/// Writes that happen in the memory of what they write to. Graphs are functional: a write makes a new value, of which most is the old one.
/// Where nobody reads the old value any more, the new one takes its memory, and only what differs is written.
///
/// A graph that raises is run again by the program, so that writes to inputs must not show by then. A write is harmless if nothing has read
/// what it overwrites: it is then done again, with the same values. It keeps its place among what may raise (Operation::Order::Effect). Any
/// other write is refused while something that comes later may raise.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValueRef;
using Kind = LoweredBuffer::Kind;

bool mayRaise(const Node& node) {
  if (node.kind != graph::NodeKind::Call) return false;
  const graph::OperatorFacts& facts = graph::factsOf(node);
  if (facts.total) return false;
  // On a GPU what data make fail is an assertion of the device, but for operators that look at data on the host.
  const bool onGpu = !node.outputs.empty() && node.outputs[0].kind == graph::OutputMeta::Kind::Tensor &&
                     node.outputs[0].tensor.device.kind == graph::DeviceKind::Cuda;
  return !onGpu || facts.foreign || facts.effectful || !facts.notCapturable.empty();
}

bool touches(const LazyTensor& value, BufferId id) {
  if (!value.storage) return false;
  const Storage& s = *value.storage;
  return (s.isReal() && s.buffer == id) || std::find(s.reads.begin(), s.reads.end(), id) != s.reads.end();
}

/// Where a section stores `c ? x : what is there already`, x where c.
void keepWhatIsThere(BodyBuilder& b, BufferId id, DType type, const SymExpr& at, ScatteredValue& made) {
  const auto isExact = [type](DType t) { return t == type || t == computeType(type); };
  const auto through = [&](ValueId v) {
    while (b.value(v).op == Op::Cast && isExact(b.value(v).type)) v = b.value(v).args[0];
    return v;
  };
  const Value choice = b.value(through(made.value));
  if (choice.op != Op::Where || !isExact(choice.type) || made.mask >= 0) return;
  const Value other = b.value(through(choice.args[2]));
  if (other.op != Op::Load || other.mask >= 0 || other.buffer != id || !(other.index == at)) return;
  made.mask = choice.args[0];
  made.value = choice.args[1];
}

/// The operator that puts what a view sees back; null: there is none.
const char* scatterOf(const std::string& view) {
  if (view == "aten::select.int") return "aten::select_scatter";
  if (view == "aten::slice.Tensor") return "aten::slice_scatter";
  if (view == "aten::diagonal") return "aten::diagonal_scatter";
  return nullptr;
}

/// Whether `scatter` writes `source` to where `view` looks.
bool putsBack(const Node& scatter, ValueRef source, const Node& view) {
  const auto is = [](const graph::Argument& arg, ValueRef v) { return arg.as<ValueRef>() && *arg.as<ValueRef>() == v; };
  const char* op = scatterOf(view.op);
  if (!op || scatter.op != op || scatter.args.size() != view.args.size() + 1 || !view.args[0].as<ValueRef>()) return false;
  if (!is(scatter.args[0], *view.args[0].as<ValueRef>()) || !is(scatter.args[1], source)) return false;
  for (size_t i = 1; i < view.args.size(); ++i)
    if (scatter.args[i + 1].str() != view.args[i].str()) return false;
  return true;
}

/// "aten::index_copy_" of "aten::index_copy".
std::string inPlaceName(const std::string& op) {
  const size_t dot = op.find('.', op.find("::") + 2);
  std::string name = op.substr(0, dot) + "_";
  return dot == std::string::npos ? name : name + op.substr(dot);
}

}  // namespace

bool Lowering::isWrittenInput(BufferId id) const {
  const LoweredBuffer& buffer = out_.buffers[static_cast<size_t>(id)];
  return buffer.kind == Kind::Input && std::any_of(options_.inputWrites.begin(), options_.inputWrites.end(), [&](const InputWrite& write) {
           return write.input == buffer.index && write.refusal.empty();
         });
}

/// Whether an operation so far reads the buffer.
bool Lowering::isRead(BufferId id) const {
  return std::any_of(out_.operations.begin(), out_.operations.end(),
                     [&](const Operation& op) { return std::find(op.reads.begin(), op.reads.end(), id) != op.reads.end(); });
}

/// Who still reads the buffer after the current node, where that cannot be brought forward. Formulas that do are made real: those that read it
/// themselves, and those made from formulas that have had the buffer since.
std::string Lowering::readLater(BufferId id, const std::vector<NodeId>& putBack) {
  const auto lastReader = [&](const std::vector<NodeId>& users) {
    const auto last = std::find_if(users.rbegin(), users.rend(), [&](NodeId n) { return std::find(putBack.begin(), putBack.end(), n) == putBack.end(); });
    return last == users.rend() ? -1 : *last;
  };
  const int64_t bytes = bytesOf(out_.buffers[static_cast<size_t>(id)].meta);
  std::vector<const LazyTensor*> pending;
  std::vector<char> reads(static_cast<size_t>(current_->id), 0);  // by node
  for (NodeId n = 0; n < current_->id; ++n) {
    bool fromReader = false;
    graph::Graph::forEachValue(graph_.node(n).args, [&](ValueRef arg) { fromReader |= reads[static_cast<size_t>(arg.node)] != 0; });
    const auto& users = users_[static_cast<size_t>(n)];
    const NodeId last = lastReader(users);
    const bool isUsedLater = last > current_->id;
    for (const LazyTensor& value : values_[static_cast<size_t>(n)]) {
      const bool isPending = value.storage && !value.storage->isReal();
      if (!touches(value, id) && !(isPending && fromReader)) continue;
      reads[static_cast<size_t>(n)] = 1;
      if (!isUsedLater) continue;
      if (!isPending || bytesOf(value.storage->meta) > bytes)
        return fmt::format("{} needs the old value of {} later", graph_.node(last).name, graph_.node(n).name);
      pending.push_back(&value);
    }
  }
  for (const LazyTensor* value : pending) realise(*value);
  return {};
}

std::vector<NodeId> Lowering::putBackBy(const LazyTensor& self) const {
  const auto* part = current_->args.empty() ? nullptr : current_->args[0].as<ValueRef>();
  if (!part || current_->outputs.size() != 1 || tensor(*part).storage != self.storage) return {};
  std::vector<NodeId> found;
  ValueRef made{current_->id, 0}, seen = *part;
  for (;;) {
    const Node& view = graph_.node(seen.node);
    const auto& users = users_[static_cast<size_t>(made.node)];
    if (view.kind != graph::NodeKind::Call || users.size() != 1 || !putsBack(graph_.node(users[0]), made, view)) break;
    found.push_back(users[0]);
    made = {users[0], 0};
    seen = *view.args[0].as<ValueRef>();
  }
  const LazyTensor& whole = tensor(seen);
  const bool isWhole = whole.storage == self.storage && stridedLayout(whole) && graph::product(whole.sizes) == graph::product(whole.storage->meta.sizes);
  return isWhole ? found : std::vector<NodeId>();
}

std::string Lowering::whyNotChange(const LazyTensor& self, const std::vector<LazyTensor>& operands, bool repeatable) {
  const BufferId id = self.storage->buffer;
  const LoweredBuffer& buffer = out_.buffers[static_cast<size_t>(id)];
  const auto layout = stridedLayout(self);
  const bool isWhole = graph::product(self.sizes) == graph::product(self.storage->meta.sizes);
  const std::vector<NodeId> putBack = isWhole ? std::vector<NodeId>() : putBackBy(self);
  if (!layout || !(isWhole || !putBack.empty()) || !hasOwnPlaces(self.sizes, layout->strides))
    return "what is written is not the whole tensor, element by element";
  if (!hasOwnPlaces(buffer.meta.sizes, buffer.meta.strides)) return "elements of the tensor share memory";
  for (const LazyTensor& operand : operands)
    if (operand.storage && operand.storage->isReal() && touches(operand, id)) return "the write reads the tensor at other places";
  const bool wasRead = isRead(id) || std::any_of(operands.begin(), operands.end(), [&](const LazyTensor& o) { return touches(o, id); });
  if (buffer.kind == Kind::Input && !(repeatable && !wasRead)) {
    if (lastRaising_ == -2) {
      lastRaising_ = -1;
      for (const Node& node : graph_.nodes())
        if (mayRaise(node)) lastRaising_ = node.id;
    }
    if (lastRaising_ >= current_->id) return graph_.node(lastRaising_).name + " may raise afterwards, and the write could not be undone";
  }
  std::string why = readLater(id, putBack);
  toPutBack_ = why.empty() ? putBack : std::vector<NodeId>();
  return why;
}

bool Lowering::mayChange(const LazyTensor& self, const std::vector<LazyTensor>& operands, bool repeatable) {
  if (!current_ || !self.storage) return false;
  if (!self.storage->isReal()) {
    const auto isPartOfIt = [&](const LazyTensor& operand) { return operand.storage == self.storage; };
    if (std::any_of(operands.begin(), operands.end(), isPartOfIt)) return false;  // what is read would change meanwhile
    const graph::TensorMeta& meta = self.storage->meta;
    const auto* first = current_->args.empty() ? nullptr : current_->args[0].as<ValueRef>();
    const bool isFresh = first && !self.reindex && users_[static_cast<size_t>(first->node)].back() <= current_->id && graph::hasArithmetic(meta.dtype);
    if (!isFresh || !options_.refusal(meta.device).empty()) return false;
    realise(self);  // in memory that nobody knows but views of the same value
    return readLater(self.storage->buffer, {}).empty();
  }
  const BufferId id = self.storage->buffer;
  const LoweredBuffer& buffer = out_.buffers[static_cast<size_t>(id)];
  // Memory that an operator has returned may be known elsewhere.
  const bool isOwn = buffer.kind == Kind::Computed && std::any_of(out_.operations.begin(), out_.operations.end(), [&](const Operation& op) {
                       return op.kind == Operation::Kind::Loops && std::find(op.writes.begin(), op.writes.end(), id) != op.writes.end();
                     });
  if (!isOwn && !isWrittenInput(id)) return false;
  std::string why = whyNotChange(self, operands, repeatable);
  if (why.empty()) return true;
  if (buffer.kind == Kind::Input) out_.writes.push_back({std::max(0, static_cast<int32_t>(out_.operations.size()) - 1), false, current_->name + ": " + why, bytesOf(buffer.meta)});
  return false;
}

/// Whether sums may go straight into `start`, of whose old value what is added must know nothing.
bool Lowering::mayAddTo(const LazyTensor& start, const std::vector<LazyTensor>& reading) {
  if (!start.storage->isReal()) return false;
  const BufferId id = start.storage->buffer;
  return std::none_of(reading.begin(), reading.end(), [&](const LazyTensor& t) { return touches(t, id); }) && mayChange(start, reading, false);
}

void Lowering::changesInPlace(Operation& op, BufferId id) {
  isPutBack_.insert(toPutBack_.begin(), toPutBack_.end());
  const LoweredBuffer& buffer = out_.buffers[static_cast<size_t>(id)];
  if (buffer.kind != Kind::Input) return;
  op.order = Operation::Order::Effect;
  const int64_t bytes = 2 * bytesOf(buffer.meta);
  out_.writes.push_back({op.id, true, fmt::format("{} is written in place, only where it changes", buffer.name), bytes});
}

std::optional<LazyTensor> Lowering::storeInto(const LazyTensor& self, const IndexList& sizes, std::vector<LazyTensor> operands, const Update& update) {
  if (graph::product(sizes) == SymExpr(0) || graph::product(self.sizes) == SymExpr(0)) return std::nullopt;
  if (!self.storage || !self.storage->isReal() || !isWrittenInput(self.storage->buffer)) return std::nullopt;
  const BufferId id = self.storage->buffer;
  for (LazyTensor& operand : operands) {  // what it reads elsewhere is read before
    if (!touches(operand, id) || !operand.storage->isReal()) continue;
    graph::TensorMeta meta = operand.storage->meta;
    meta.sizes = operand.sizes;
    meta.strides = graph::contiguousStrides(meta.sizes);
    operand = formula(meta, [operand](BodyBuilder& b, const IndexList& i) { return operand.load(b, i); }, {operand}, 0);
  }
  auto [axes, point] = axesOver(sizes);
  const auto layout = stridedLayout(self);
  if (!layout) return std::nullopt;
  // Once with what reads the tensor at the written point alone; once more with everything else made real before.
  for (bool apart : {false, true}) {
    BodyBuilder b;
    ScatteredValue made = update(b, point, operands);
    SymExpr at = layout->offset;
    for (size_t d = 0; d < made.at.size(); ++d) at += made.at[d] * layout->strides[d];
    made.value = b.cast(made.value, self.dtype());
    keepWhatIsThere(b, id, self.dtype(), at, made);
    b.store(id, at, b.cast(made.value, self.dtype()), made.mask);
    std::vector<NodeId> origins = b.origins;
    Section section = b.finish({}, false);
    bool reads = false, elsewhere = false;
    for (const Value& v : section.values) {
      if (v.op != Op::Load || v.buffer != id) continue;
      reads = true;
      elsewhere |= !(v.index == at);
    }
    if (elsewhere && apart) return std::nullopt;
    if (elsewhere) {
      for (const LazyTensor& operand : operands)
        if (touches(operand, id)) realise(operand);
      continue;
    }
    requireCode(self.storage->meta.device, section);
    std::vector<LazyTensor> readers;
    for (const LazyTensor& operand : operands)
      if (reads || !touches(operand, id)) readers.push_back(operand);
    if (!mayChange(self, readers, !reads)) return std::nullopt;
    if (out_.buffers[static_cast<size_t>(id)].kind == Kind::Input && self.storage->meta.device.kind == graph::DeviceKind::Cpu) realiseChecks();
    Operation& op = addLoops(self.storage->meta.device, std::move(origins), std::move(axes), {std::move(section)}, {id});
    changesInPlace(op, id);
    return self;
  }
  return std::nullopt;
}

std::optional<std::vector<LazyTensor>> Lowering::callInPlace(const Node& node, const std::string& reason) {
  const graph::OperatorFacts& facts = graph::factsOf(node);
  const auto* first = node.args.empty() ? nullptr : node.args[0].as<ValueRef>();
  if (!first || facts.view || facts.writes || facts.foreign || graph::isOrdered(node) || node.outputs.size() != 1 || node.outputIsList) return {};
  if (!node.op.starts_with("aten::") || node.op == "aten::clone" || node.op == "aten::copy") return {};
  const graph::OutputMeta& from = graph_.meta(*first);
  const graph::OutputMeta& to = node.outputs[0];
  if (from.kind != graph::OutputMeta::Kind::Tensor || to.kind != from.kind) return {};
  if (!(from.tensor.dtype == to.tensor.dtype) || from.tensor.sizes != to.tensor.sizes || !(from.tensor.device == to.tensor.device)) return {};
  const std::string name = inPlaceName(node.op);
  if (!graph::factsOf(name).writes) return {};
  std::vector<LazyTensor> operands;
  size_t selves = 0;
  graph::Graph::forEachValue(node.args, [&](ValueRef v) {
    const auto& outputs = values_[static_cast<size_t>(v.node)];
    selves += v == *first;
    if (!(v == *first) && static_cast<size_t>(v.output) < outputs.size()) operands.push_back(outputs[static_cast<size_t>(v.output)]);
  });
  // Adding to what is there is not the same a second time.
  const bool repeatable = name.starts_with("aten::index_copy_") || name.starts_with("aten::index_fill_") || name.starts_with("aten::masked_scatter_") ||
                          (name == "aten::index_put_" && !(node.args.size() > 3 && !NodeArgs(node).isNone(3) && NodeArgs(node).boolean(3)));
  const LazyTensor self = tensor(*first);
  if (selves != 1 || !mayChange(self, operands, repeatable)) return {};
  const auto layout = stridedLayout(self);
  const BufferId id = self.storage->buffer;
  if (isWrittenInput(id)) realiseChecks();
  graph::TensorMeta seen = from.tensor;
  seen.sizes = self.sizes;
  seen.strides = layout->strides;
  std::vector<BufferId> used;
  ExternStep call;
  call.op = name;
  call.changes = viewBuffer(id, seen, layout->offset);
  call.args.emplace_back(ValueRef{call.changes, 0});
  for (size_t i = 1; i < node.args.size(); ++i) call.args.push_back(externArgument(node.args[i], ExternLayout::AsTraced, used));
  call.results = {-1};
  call.reason = reason + "; in place";
  Operation& op = newOperation(Operation::Kind::Extern);
  op.name = graph::shortName(node.op) + "_" + std::to_string(op.id);
  op.call = std::move(call);
  op.writes = {id};
  op.origins = {node.id};
  if (!repeatable) op.reads = {id};
  for (BufferId read : used) {
    const LoweredBuffer& b = out_.buffers[static_cast<size_t>(read)];
    const BufferId base = b.kind == Kind::View ? b.base : read;
    if (std::find(op.reads.begin(), op.reads.end(), base) == op.reads.end()) op.reads.push_back(base);
  }
  changesInPlace(op, id);
  return std::vector<LazyTensor>{self};
}

}  // namespace fusebox::inductor
