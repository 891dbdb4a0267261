#include "engine/inductor/lowering/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/read_by_jumps.h"
#include "engine/inductor/lowering/read_whole.h"
#include "engine/inductor/lowering/realise_policy.h"

namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::OutputMeta;
using graph::ValueRef;

void addUnique(std::vector<BufferId>& list, BufferId id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

SymExpr reachable(const graph::TensorMeta& meta) {
  SymExpr last = 1;
  for (size_t i = 0; i < meta.sizes.size(); i++) {
    if (meta.sizes[i] == SymExpr(0)) return 0;
    last += (meta.sizes[i] - 1) * meta.strides[i];
  }
  return last;
}

/// Whether the strides are those of a row-major tensor, or larger.
bool isRows(const IndexList& sizes, const std::vector<SymExpr>& strides) {
  SymExpr run = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == SymExpr(1)) continue;
    if (!graph::isNeverNegative(strides[i] - run) || (run == SymExpr(1) && !(strides[i] == SymExpr(1)))) return false;
    run = strides[i] * sizes[i];
  }
  return true;
}

bool isChannelsLast(const graph::TensorMeta& meta) {
  return meta.sizes.size() == 4 && !meta.isContiguous() && meta.strides == channelsLastStrides(meta.sizes);
}

/// A lowering that makes something else than was traced has misread its arguments: the operator is called instead.
void requireTraced(const Node& node, const std::vector<LazyTensor>& values) {
  for (size_t i = 0; i < node.outputs.size() && i < values.size(); i++) {
    const OutputMeta& traced = node.outputs[i];
    if (!values[i].storage || traced.kind != OutputMeta::Kind::Tensor) continue;
    if (values[i].sizes != traced.tensor.sizes || values[i].dtype() != traced.tensor.dtype)
      throw NotLowered(fmt::format("result {} is not of the sizes and the type that were traced", i));
  }
}

/// What would be stored beyond its buffer; empty if nothing. Indices that are sums of axes have exact bounds; what is loaded or divided is
/// not judged.
std::string storedOutside(const Kernel& kernel) {
  for (const Section& section : kernel.sections) {
    for (const Statement& st : section.body) {
      if (st.kind != Statement::Kind::Store || st.mask >= 0) continue;
      bool isSum = true;
      for (Symbol s : st.index.isConstant() ? std::vector<Symbol>{} : st.index.symbols())
        isSum = isSum && st.index.strideOf(s) && !section.indirect.contains(s);
      const auto buffer = std::find_if(kernel.buffers.begin(), kernel.buffers.end(), [&](const KernelBuffer& b) { return b.id == st.buffer; });
      if (!isSum || buffer == kernel.buffers.end() || !buffer->numel.isConstant()) continue;
      const auto [first, last] = st.index.bounds();
      const bool runs = !(buffer->numel == SymExpr(0));
      if (runs && (first < 0 || last >= buffer->numel.constant()))
        return fmt::format("{} would be stored beyond its {} elements", buffer->name, buffer->numel.constant());
    }
  }
  return {};
}

bool onlySymbolic(const Node& node) {
  return !graph::isOrdered(node) && std::all_of(node.outputs.begin(), node.outputs.end(),
                                                [](const OutputMeta& o) { return o.kind != OutputMeta::Kind::Tensor; });
}

}  // namespace

/// Why a node cannot be computed by generated loops at all: its device, several devices, or element types that the loop IR lacks.
std::optional<std::string> Lowering::unsupportedReason(const Node& node) const {
  std::optional<std::string> reason;
  std::optional<Device> device;
  auto check = [&](const OutputMeta& o) {
    if (o.kind != OutputMeta::Kind::Tensor || reason) return;
    const graph::TensorMeta& m = o.tensor;
    if (device && !(*device == m.device)) reason = "tensors on " + device->str() + " and " + m.device.str();
    else if (graph::isComplex(m.dtype)) reason = "complex numbers";
    else if (!graph::hasArithmetic(m.dtype)) reason = "an element type without arithmetic";
    else if (std::string refusal = options_.refusal(m.device); !refusal.empty()) reason = std::move(refusal);
    device = m.device;
  };
  for (const OutputMeta& o : node.outputs) check(o);
  graph::Graph::forEachValue(node.args, [&](ValueRef v) { check(graph_.meta(v)); });
  return reason;
}

void Lowering::requireCode(const Device& device, const Section& section) const {
  if (device.kind == graph::DeviceKind::Cpu) return;
  for (const Value& v : section.values)
    if (!options_.hasCode(device, v.op, v.type))
      throw NotLowered(fmt::format("no code on {} for {} of {}", device.str(), inductor::name(v.op), graph::name(v.type)));
}

const LazyTensor& Lowering::tensor(ValueRef v) const {
  const auto& outputs = values_[static_cast<size_t>(v.node)];
  if (static_cast<size_t>(v.output) >= outputs.size() || !outputs[static_cast<size_t>(v.output)].storage) {
    throw NotLowered("operand " + graph_.node(v.node).name + " is not a tensor");
  }
  return outputs[static_cast<size_t>(v.output)];
}

BufferId Lowering::newBuffer(LoweredBuffer::Kind kind, const graph::TensorMeta& meta, std::string name, int32_t index) {
  LoweredBuffer b;
  b.id = static_cast<BufferId>(out_.buffers.size());
  b.name = name.empty() ? fmt::format("buf{}", b.id) : std::move(name);
  b.meta = meta;
  b.meta.requiresGrad = false;
  b.kind = kind;
  b.index = index;
  out_.buffers.push_back(std::move(b));
  return out_.buffers.back().id;
}

Operation& Lowering::newOperation(Operation::Kind kind) {
  Operation op;
  op.id = static_cast<int32_t>(out_.operations.size());
  op.name = fmt::format("op{}", op.id);
  op.kind = kind;
  out_.operations.push_back(std::move(op));
  return out_.operations.back();
}

LazyTensor Lowering::bufferTensor(BufferId id, const graph::TensorMeta& meta, graph::NodeId node) {
  auto storage = std::make_shared<Storage>();
  storage->meta = meta;
  storage->buffer = id;
  storage->reads = {id};
  if (baseOf(id) != id) storage->reads.push_back(baseOf(id));
  if (node >= 0) storage->origins = {node};
  return {storage, meta.sizes, nullptr, {}};
}

bool Lowering::isFromOutside(const LazyTensor& tensor) const {
  if (!tensor.storage->isReal()) return false;
  const auto kind = out_.buffers[static_cast<size_t>(baseOf(tensor.storage->buffer))].kind;
  return kind == LoweredBuffer::Kind::Input || kind == LoweredBuffer::Kind::Constant;
}

LazyTensor Lowering::restrided(const LazyTensor& base, const graph::TensorMeta& meta, const SymExpr& offset) {
  realise(base);
  LazyTensor out = bufferTensor(base.storage->buffer, meta, -1);
  out.storage->offset = offset;
  return out;
}

bool Lowering::isOneNumber() const {
  return current_ && (isReadByJumps_[static_cast<size_t>(current_->id)] || users_[static_cast<size_t>(current_->id)].size() > 1 || (options_.hasOtherHalf && !current_->isBackward));
}

bool Lowering::isDear(const Storage& s) {
  if (s.isReal() || !s.heavy) return false;
  BodyBuilder trial;
  trial.store(0, 0, s.compute(trial, freshIndex(s.meta.sizes, "t")));
  const Section section = trial.finish({}, false);
  return std::any_of(section.values.begin(), section.values.end(), [](const Value& v) { return inductor::isDear(v.op); });
}

std::pair<graph::TensorMeta, bool> Lowering::laid(graph::TensorMeta meta, const std::vector<LazyTensor>& reading) const {
  const bool isInRows = !isDense(meta) || liesBetterInRows(meta);
  meta.storageOffset = 0;
  if (isInRows) meta.strides = graph::contiguousStrides(meta.sizes);
  for (const LazyTensor& t : reading) {
    if (!t.storage->relaid) continue;
    auto strides = stridesInOrderOf(t, meta.sizes);
    if (!strides) continue;
    meta.strides = std::move(*strides);
    return {std::move(meta), true};
  }
  return {std::move(meta), false};
}

LazyTensor Lowering::formula(const graph::TensorMeta& meta, ValueFn compute, const std::vector<LazyTensor>& reading,
                             int opCount, bool heavy) {
  for (const LazyTensor& t : reading) {
    const Storage& s = *t.storage;
    if (!s.isReal() && realise_policy::isRepeated(s, meta) && (s.opCount >= realise_policy::kRepeated || s.gathers || isDear(s))) keepInMemory(t);
  }
  auto storage = std::make_shared<Storage>();
  std::tie(storage->meta, storage->relaid) = laid(meta, reading);
  storage->opCount = opCount;
  storage->heavy = heavy;
  storage->copyOnly = opCount == 0;
  for (const LazyTensor& t : reading) {
    const Storage& s = *t.storage;
    for (BufferId id : s.reads) addUnique(storage->reads, id);
    if (s.isReal()) continue;
    storage->inAttention |= s.inAttention;
    storage->opCount += s.opCount;
    storage->heavy |= s.heavy;
    storage->gathers |= s.gathers;
    storage->inPairs |= s.inPairs;
  }
  const bool rounds = opCount > 0 && computeType(meta.dtype) != meta.dtype && (options_.emulatePrecisionCasts || (!storage->inAttention && isOneNumber()));
  storage->compute = !rounds ? std::move(compute) : [compute = std::move(compute), type = meta.dtype](BodyBuilder& b, const IndexList& i) {
    return b.round(compute(b, i), type);
  };
  if (current_) storage->origins = {current_->id};
  if (meta.device.kind != graph::DeviceKind::Cpu && !(graph::product(meta.sizes) == SymExpr(0))) {
    // The formula by itself: what it reads has been through here already.
    BodyBuilder trial;
    trial.readOnly();
    const ValueId v = storage->compute(trial, freshIndex(meta.sizes, "t"));
    trial.store(0, 0, v);
    requireCode(meta.device, trial.finish({}, false));
  }
  return {storage, meta.sizes, nullptr, {}};
}

void Lowering::finishLoops(Operation& op, std::vector<BufferId> writes) {
  Kernel& k = op.kernel;
  std::vector<BufferId> used;
  auto note = [&](BufferId id, BufferRole role) {
    for (KernelBuffer& b : k.buffers) {
      if (b.id == id) return;
    }
    const LoweredBuffer& buffer = out_.buffers[static_cast<size_t>(id)];
    KernelBuffer b;
    b.id = id;
    b.name = buffer.name;
    b.dtype = buffer.meta.dtype;
    b.role = role;
    b.numel = reachable(buffer.meta);
    b.alignment = buffer.kind == LoweredBuffer::Kind::Computed ? 64 : graph::elementSize(b.dtype);
    k.buffers.push_back(std::move(b));
  };
  for (const Section& s : k.sections) {
    for (const Value& v : s.values) {
      if (v.op != Op::Load) continue;
      note(v.buffer, BufferRole::Input);
      addUnique(op.reads, baseOf(v.buffer));
    }
  }
  for (BufferId id : writes) note(id, BufferRole::Output);
  if (std::string problem = storedOutside(k); !problem.empty()) {
    out_.operations.pop_back();  // it is the last one
    throw NotLowered(problem);
  }
  op.writes = std::move(writes);
  std::vector<Symbol> inner;
  for (const Axis& a : k.outer) inner.push_back(a.symbol);
  if (k.attention) inner.insert(inner.end(), {k.attention->width.symbol, k.attention->depth.symbol});
  for (const Section& s : k.sections) {
    for (const Axis& a : s.axes) inner.push_back(a.symbol);
    for (const auto& [symbol, v] : s.indirect) inner.push_back(symbol);
  }
  auto noteSizes = [&](const SymExpr& e) {
    if (e.isConstant()) return;
    for (Symbol s : e.symbols()) {
      bool known = std::find(inner.begin(), inner.end(), s) != inner.end() ||
                   std::find(k.sizeSymbols.begin(), k.sizeSymbols.end(), s) != k.sizeSymbols.end();
      if (!known) k.sizeSymbols.push_back(s);
    }
  };
  for (const Axis& a : k.outer) noteSizes(a.extent);
  for (const KernelBuffer& b : k.buffers) noteSizes(b.numel);
  for (const Section& s : k.sections) {
    for (const Axis& a : s.axes) noteSizes(a.extent);
    for (const Value& v : s.values) noteSizes(v.index);
    for (const Statement& st : s.body) noteSizes(st.index);
  }
  for (graph::NodeId n : op.origins) {
    std::string part = graph::shortName(graph_.node(n).op);
    if (k.name.size() < 60 && k.name.find(part) == std::string::npos) k.name += (k.name.empty() ? "" : "_") + part;
  }
  if (k.name.empty()) k.name = "copy";
  op.name = k.name + "_" + std::to_string(op.id);
}

Operation& Lowering::addLoops(const Device& device, std::vector<graph::NodeId> origins, std::vector<Axis> outer, std::vector<Section> sections,
                              std::vector<BufferId> writes) {
  for (const Section& section : sections) requireCode(device, section);
  if (current_ && std::find(origins.begin(), origins.end(), current_->id) == origins.end()) origins.push_back(current_->id);
  for (Section& section : sections)
    for (inductor::Value& value : section.values)
      if (current_ && value.origin < 0) value.origin = current_->id;
  Operation& op = newOperation(Operation::Kind::Loops);
  op.origins = std::move(origins);
  op.kernel.device = device;
  op.kernel.outer = std::move(outer);
  op.kernel.sections = std::move(sections);
  finishLoops(op, std::move(writes));
  return op;
}

std::vector<size_t> inOrderOfMemory(const graph::TensorMeta& meta) {
  std::vector<size_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return graph::hint(meta.strides[a]) > graph::hint(meta.strides[b]); });
  return order;
}

std::pair<std::vector<Axis>, IndexList> axesOver(const IndexList& sizes, const std::vector<size_t>& order) {
  std::pair<std::vector<Axis>, IndexList> made{{}, IndexList(sizes.size(), SymExpr(0))};
  for (size_t d : order) {
    if (sizes[d] == SymExpr(1)) continue;
    const Symbol symbol = graph::axisSymbol(fmt::format("i{}", made.first.size()), sizes[d]);
    made.second[d] = symbol;
    made.first.push_back({symbol, sizes[d]});
  }
  return made;
}

std::pair<std::vector<Axis>, IndexList> axesOver(const IndexList& sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return axesOver(sizes, order);
}

void Lowering::realise(const LazyTensor& t) {
  Storage& s = *t.storage;
  if (s.isReal()) return;
  if (s.inAttention) throw NotLowered("scores of attention are needed outside of its kernel");
  const std::vector<size_t> order = inOrderOfMemory(s.meta);
  // Where there is no element there is nothing to read either.
  bool empty = graph::product(s.meta.sizes) == SymExpr(0);
  // Both of a pair are computed at each point, each by the formula that is its own: a CPU puts vectors together of the two as it stores them. Threads of a GPU
  // read what they need of both anyway, unless a dimension of two is all that lies inside.
  const SymExpr& inner = order.empty() ? SymExpr(1) : s.meta.sizes[order.back()];
  const bool mayBePaired = s.inPairs && !empty && mod(inner, 2) == SymExpr(0) && s.meta.strides[order.back()] == SymExpr(1) &&
                           (s.meta.device.kind == graph::DeviceKind::Cpu || inner == SymExpr(2));
  const BufferId id = newBuffer(LoweredBuffer::Kind::Computed, s.meta, {});
  struct Body {
    std::vector<Axis> axes;
    std::vector<graph::NodeId> origins;
    Section section;
  };
  const auto bodyOf = [&](bool isPaired) {
    IndexList points = s.meta.sizes;
    if (isPaired) points[order.back()] = floorDiv(points[order.back()], 2);
    const auto [axes, index] = axesOver(points, order);
    BodyBuilder b;
    for (int64_t i = 0; i < (isPaired ? 2 : 1); i++) {
      IndexList place = index;
      if (isPaired) place[order.back()] = place[order.back()] * 2 + i;
      const ValueId v = [&] {
        const BodyBuilder::Formula within(b, s.node());
        return empty ? b.constantInt(0, s.meta.dtype) : b.cast(s.compute(b, place), s.meta.dtype);
      }();
      b.addOrigins(s.origins);
      SymExpr at = 0;
      for (size_t d = 0; d < place.size(); d++) at += place[d] * s.meta.strides[d];
      b.store(id, at, v);
    }
    std::vector<graph::NodeId> origins = b.origins;
    return Body{axes, std::move(origins), b.finish({}, false)};
  };
  Body body = bodyOf(false);
  // Where the choice goes both ways at once, both together are no more than it was.
  if (mayBePaired)
    if (Body both = bodyOf(true); 4 * both.section.values.size() <= 5 * body.section.values.size()) body = std::move(both);
  Operation& op = newOperation(Operation::Kind::Loops);
  op.origins = std::move(body.origins);
  op.kernel.device = s.meta.device;
  op.kernel.outer = std::move(body.axes);
  op.kernel.sections.push_back(std::move(body.section));
  finishLoops(op, {id});
  s.buffer = id;
  s.offset = 0;
  s.reads = {id};
  s.compute = nullptr;
  s.opCount = 0;
  s.heavy = false;
}

/// The type of which `v` is only a wider form; Undefined if it is none.
static DType narrowTypeOf(BodyBuilder& b, ValueId v, DType type) {
  const Value& value = b.value(v);
  if (value.op != Op::Cast) return DType::Undefined;
  const DType from = b.type(value.args[0]);
  return graph::elementSize(from) < graph::elementSize(type) ? from : DType::Undefined;
}

void Lowering::keepInMemory(const LazyTensor& t) {
  Storage& s = *t.storage;
  if (s.isReal()) return;
  DType narrow = DType::Undefined;
  if (!s.inAttention && !(graph::product(s.meta.sizes) == SymExpr(0))) {
    BodyBuilder trial;
    const BodyBuilder::Formula within(trial, s.node());
    narrow = narrowTypeOf(trial, s.compute(trial, freshIndex(s.meta.sizes, "i")), s.meta.dtype);
  }
  if (narrow == DType::Undefined) return realise(t);
  LazyTensor inner{std::make_shared<Storage>(s), s.meta.sizes, nullptr, {}};
  const DType wide = s.meta.dtype;
  inner.storage->meta.dtype = narrow;
  inner.storage->compute = [compute = s.compute, narrow, wide](BodyBuilder& b, const IndexList& i) {
    const ValueId v = compute(b, i);
    return b.cast(narrowTypeOf(b, v, wide) == narrow ? b.value(v).args[0] : v, computeType(narrow));
  };
  realise(inner);
  s.compute = [inner, wide](BodyBuilder& b, const IndexList& i) { return b.cast(inner.load(b, i), computeType(wide)); };
  s.reads = inner.storage->reads;
  s.opCount = 1;
  s.heavy = s.gathers = s.copyOnly = false;
}

bool Lowering::worthRealising(const Storage& s, size_t users) const { return !s.inAttention && realise_policy::shouldRealise(s, users); }

bool Lowering::readsFarAround(const LazyTensor& v) const {
  const Storage& s = *v.storage;
  const bool isFixed = std::all_of(s.meta.sizes.begin(), s.meta.sizes.end(), [](const SymExpr& size) { return size.isConstant(); });
  if (v.reindex || isFixed || s.inAttention || graph::product(s.meta.sizes) == SymExpr(0)) return false;
  BodyBuilder trial;
  trial.store(0, 0, s.compute(trial, freshIndex(s.meta.sizes, "t")));
  return longestIndex(trial.finish({}, false)) > realise_policy::kLongestIndex;
}

bool Lowering::isOnlyNarrowed(const Node& node) const {
  const auto& users = users_[static_cast<size_t>(node.id)];
  if (users.size() != 1) return false;
  const Node& user = graph_.node(users.front());
  return user.kind == graph::NodeKind::Call && user.op == "aten::_to_copy" && graph::elementSize(user.outputs[0].tensor.dtype) < graph::elementSize(node.outputs[0].tensor.dtype);
}

bool Lowering::isAccumulating(const Node& node, const Storage& s) const {
  const auto& users = users_[static_cast<size_t>(node.id)];
  const auto isSum = [](const Node& n) { return n.op == "aten::add.Tensor"; };
  if (!isSum(node) || users.size() != 1 || !isSum(graph_.node(users.front())) || s.reads.size() < realise_policy::kTermsAtOnce) return false;
  const int64_t bytes = bytesOf(s.meta);
  return bytes >= realise_policy::kLargeTerm && std::count_if(s.reads.begin(), s.reads.end(), [&](BufferId read) {
           return bytesOf(out_.buffers[static_cast<size_t>(read)].meta) >= bytes;
         }) >= static_cast<ptrdiff_t>(realise_policy::kTermsAtOnce);
}

int64_t Lowering::elementsRead(const Node& node) const {
  if (node.outputs.size() != 1 || node.outputs[0].kind != OutputMeta::Kind::Tensor) return std::numeric_limits<int64_t>::max();
  const int64_t own = graph::hint(node.outputs[0].tensor.numel());
  int64_t read = 0;
  for (graph::NodeId id : users_[static_cast<size_t>(node.id)]) {
    const Node& user = graph_.node(id);
    const auto* first = user.args.empty() ? nullptr : user.args[0].as<ValueRef>();
    const bool isFirst = user.kind == NodeKind::Call && first && first->node == node.id && user.outputs.size() == 1;
    const int64_t made = user.outputs.size() == 1 && user.outputs[0].kind == OutputMeta::Kind::Tensor ? graph::hint(user.outputs[0].tensor.numel()) : 0;
    if (isFirst && graph::factsOf(user).view) read += elementsRead(user);
    else if (isFirst && readsAtPlaces(user)) read += made;
    else read += std::max(own, made);  // broadcast, perhaps
  }
  return read;
}

bool Lowering::isSmallerInMemory(const Node& node, const Storage& s) const {
  if (s.inAttention || users_[static_cast<size_t>(node.id)].size() < 2 || !isInMemory_[static_cast<size_t>(node.id)]) return false;
  const int64_t elements = graph::hint(s.meta.numel());
  int64_t read = 0;
  for (BufferId id : s.reads) {
    const graph::TensorMeta& meta = out_.buffers[static_cast<size_t>(id)].meta;
    read += std::min(bytesOf(meta), elements * graph::elementSize(meta.dtype));
  }
  return 2 * read > 3 * bytesOf(s.meta);
}

void Lowering::settle(const Node& node, std::vector<LazyTensor> values) {
  const size_t readers = users_[static_cast<size_t>(node.id)].size();
  for (LazyTensor& v : values) {
    if (!v.storage) continue;
    if (v.reindex) v.viewOrigins.push_back(node.id);
    if (v.storage->isReal() || isOnlyNarrowed(node)) continue;
    // What is read here and there is computed no more often than it would be for memory.
    const bool isReadOnce = readers < 2 || elementsRead(node) <= graph::hint(v.storage->meta.numel());
    const size_t users = isReadOnce ? std::min<size_t>(readers, 1) : readers;
    const bool isSmaller = !v.reindex && isSmallerInMemory(node, *v.storage);
    if (worthRealising(*v.storage, users) || isAccumulating(node, *v.storage) || isSmaller || readsFarAround(v)) keepInMemory(v);
  }
  if (!isReadWhole_[static_cast<size_t>(node.id)] && graph::checksData(node)) keep(values);
  values_[static_cast<size_t>(node.id)] = std::move(values);
}

void Lowering::keep(const std::vector<LazyTensor>& values) {
  for (const LazyTensor& value : values) {
    if (!value.storage) continue;
    realise(value);
    out_.buffers[static_cast<size_t>(value.storage->buffer)].isKept = true;
  }
}

Result<void> Lowering::lowerNode(const Node& node) {
  current_ = &node;
  toPutBack_.clear();
  if (onlySymbolic(node)) {
    // Expressions over the inputs' sizes are evaluated where they are used.
    return {};
  }
  if (isPutBack_.contains(node.id)) {
    settle(node, {tensor(*node.args[0].as<graph::ValueRef>())});
    return {};
  }
  std::string reason = "PyTorch's own kernel is called: none is generated for " + node.op;
  if (auto failed = options_.asCalls.find(node.id); failed != options_.asCalls.end()) {
    reason = failed->second;
  } else if (auto numbers = numbersOf(node)) {
    settle(node, {std::move(*numbers)});
    return {};
  } else if (auto unsupported = unsupportedReason(node)) {
    reason = *unsupported;
    if (auto view = viewWithoutCode(node)) {
      settle(node, {std::move(*view)});
      return {};
    }
  } else if (auto it = loweringTable().find(node.op); it != loweringTable().end()) {
    try {
      std::vector<LazyTensor> values = it->second(*this, node);
      requireTraced(node, values);
      settle(node, std::move(values));
      return {};
    } catch (const NotLowered& refusal) {
      reason = refusal.what();
    }
  }
  settle(node, externCall(node, reason));
  return {};
}

/// Complex numbers as pairs of their parts: another look at the same memory.
std::optional<LazyTensor> Lowering::partsOf(const LazyTensor& numbers, graph::TensorMeta meta) {
  const auto layout = stridedLayout(numbers);
  if (!layout) return {};
  meta.strides.clear();
  for (const SymExpr& stride : layout->strides) meta.strides.push_back(stride * SymExpr(2));
  meta.strides.push_back(SymExpr(1));
  meta.storageOffset = 0;
  return bufferTensor(viewBuffer(numbers.storage->buffer, meta, layout->offset * SymExpr(2)), meta, current_->id);
}

/// Memory in which both parts of each of `numbers` follow each other, written by one loop.
LazyTensor Lowering::pairsOf(graph::TensorMeta numbers, const LazyTensor& re, const LazyTensor& im) {
  if (!isDense(numbers)) numbers.strides = graph::contiguousStrides(numbers.sizes);
  graph::TensorMeta meta = numbers;
  meta.dtype = numbers.dtype == DType::Complex128 ? DType::Float64 : DType::Float32;
  for (SymExpr& stride : meta.strides) stride = stride * SymExpr(2);
  meta.sizes.emplace_back(2);
  meta.strides.emplace_back(1);
  const BufferId id = newBuffer(LoweredBuffer::Kind::Computed, meta, {});
  const auto [axes, index] = axesOver(numbers.sizes, inOrderOfMemory(numbers));
  BodyBuilder b;
  SymExpr at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * meta.strides[d];
  const bool isEmpty = numbers.numel() == SymExpr(0);
  for (const LazyTensor* part : {&re, &im}) {
    b.store(id, at, isEmpty ? b.constantInt(0, meta.dtype) : b.cast(broadcastTo(*part, numbers.sizes).load(b, index), meta.dtype));
    at += SymExpr(1);
  }
  std::vector<graph::NodeId> origins = b.origins;
  addLoops(numbers.device, std::move(origins), axes, {b.finish({}, false)}, {id});
  return bufferTensor(id, meta, current_->id);
}

/// Complex numbers of their parts, which are given apart or as pairs in memory (view_as_complex); nullopt where PyTorch's operator makes them.
std::optional<LazyTensor> Lowering::numbersOf(const Node& node) {
  if (node.op != "aten::complex" && node.op != "aten::view_as_complex") return {};
  graph::TensorMeta numbers = node.outputs[0].tensor;
  if (!options_.refusal(numbers.device).empty() || (numbers.dtype != DType::Complex64 && numbers.dtype != DType::Complex128)) return {};
  bool isOfScores = false;
  graph::Graph::forEachValue(node.args, [&](ValueRef v) { isOfScores |= tensor(v).storage->inAttention; });
  if (isOfScores) return {};
  numbers.storageOffset = 0;
  const NodeArgs args(node);
  LazyTensor pairs = tensor(args, 0);
  try {
    if (node.op == "aten::complex") pairs = pairsOf(numbers, pairs, tensor(args, 1));
    else realise(pairs);
  } catch (const NotLowered&) {
    return {};
  }
  const auto layout = stridedLayout(pairs);
  if (!layout || !(layout->strides.back() == SymExpr(1)) || !(mod(layout->offset, 2) == SymExpr(0))) return {};
  for (size_t i = 0; i < numbers.sizes.size(); i++) {
    if (!(mod(layout->strides[i], 2) == SymExpr(0)) && !(numbers.sizes[i] == SymExpr(1))) return {};
    numbers.strides[i] = floorDiv(layout->strides[i], 2);
  }
  return bufferTensor(viewBuffer(pairs.storage->buffer, numbers, floorDiv(layout->offset, 2)), numbers, current_->id);
}

/// A view needs no code where it is another look at the same memory: strides and an offset. Of types that are only handed on.
std::optional<LazyTensor> Lowering::viewWithoutCode(const Node& node) {
  const graph::OperatorFacts& facts = graph::factsOf(node);
  const auto* of = node.args.empty() ? nullptr : node.args[0].as<ValueRef>();
  if (!of || node.outputs.size() != 1 || node.outputIsList) return {};
  const auto& outputs = values_[static_cast<size_t>(of->node)];
  const auto at = static_cast<size_t>(of->output);
  if (at >= outputs.size() || !outputs[at].storage || !outputs[at].storage->isReal()) return {};
  if (node.op == "aten::view_as_real") return partsOf(outputs[at], node.outputs[0].tensor);
  const auto lowering = loweringTable().find(node.op);
  if (!facts.view || facts.reinterprets || lowering == loweringTable().end()) return {};
  try {
    std::vector<LazyTensor> made = lowering->second(*this, node);
    const bool same = made.size() == 1 && made[0].storage->isReal() && made[0].storage->buffer == outputs[at].storage->buffer;
    if (same && stridedLayout(made[0])) return std::move(made[0]);
  } catch (const NotLowered&) {
    // Then it is an operator's copy.
  }
  return {};
}

graph::TensorMeta Lowering::resultLayout(size_t position, const LazyTensor& value, graph::TensorMeta traced) const {
  if (const InputWrite* write = writeOf(position); write && write->refusal.empty())
    for (const LoweredBuffer& buffer : out_.buffers)
      if (buffer.kind == LoweredBuffer::Kind::Input && buffer.index == write->input && buffer.meta.sizes == traced.sizes &&
          hasOwnPlaces(buffer.meta.sizes, buffer.meta.strides))
        traced.strides = buffer.meta.strides;
  if (position < options_.firstSaved) return traced;
  if (!traced.isContiguous()) {
    if (isDense(traced) && !value.reindex && !isFromOutside(value) && value.storage->meta.isContiguous()) traced.strides = value.storage->meta.strides;  // see layout_choice.cpp
    return traced;
  }
  if (value.storage->relaid && !value.reindex) traced.strides = value.storage->meta.strides;
  // Rows of a buffer of the graph with little between them: no copy is made to keep them.
  const auto layout = stridedLayout(value);
  if (!layout || isFromOutside(value) || !(layout->offset == SymExpr(0)) || !isRows(value.sizes, layout->strides)) return traced;
  for (size_t i = 0; i < std::min(out_.results.size(), options_.firstSaved); i++)  // nor is it shared with what others may write to
    if (const auto* seen = out_.results[i].as<ValueRef>(); seen && baseOf(seen->node) == baseOf(value.storage->buffer)) return traced;
  const int64_t part = graph::hint(traced.numel()), whole = graph::hint(reachable(out_.buffers[static_cast<size_t>(value.storage->buffer)].meta));
  if (part > 0 && whole - part < part / 8) traced.strides = layout->strides;
  return traced;
}

bool Lowering::isSeen(graph::ValueRef value) const {
  const auto& results = graph_.nodes().back().args;
  for (size_t i = 0; i < std::min(results.size(), options_.firstSaved); i++)
    if (const auto* v = results[i].as<ValueRef>(); v && *v == value) return true;
  return false;
}

const InputWrite* Lowering::writeOf(size_t position) const {
  for (const InputWrite& write : options_.inputWrites)
    if (write.result == position) return &write;
  return nullptr;
}

/// What lies in a written input's memory is handed out as a copy, but for the input itself.
LazyTensor Lowering::resultOf(size_t position, const LazyTensor& value) {
  if (!value.storage->isReal() || !isWrittenInput(value.storage->buffer)) return value;
  const InputWrite* write = writeOf(position);
  if (write && write->input == out_.buffers[static_cast<size_t>(value.storage->buffer)].index) return value;
  graph::TensorMeta meta = value.storage->meta;
  meta.sizes = value.sizes;
  meta.strides = graph::contiguousStrides(meta.sizes);
  return formula(meta, [value](BodyBuilder& b, const IndexList& i) { return value.load(b, i); }, {value}, 0);
}

Result<void> Lowering::emitResults(const Node& output) {
  for (size_t i = 0; i < output.args.size(); i++) {
    const graph::Argument& a = output.args[i];
    const auto* v = a.as<ValueRef>();
    if (!v) {
      out_.results.push_back(a);
      continue;
    }
    const OutputMeta& m = graph_.meta(*v);
    if (m.kind == OutputMeta::Kind::SymInt) out_.results.emplace_back(m.scalar);
    else if (m.kind == OutputMeta::Kind::None) out_.results.emplace_back();
    else out_.results.emplace_back(ValueRef{resultBuffer(i, *v, resultLayout(i, tensor(*v), m.tensor)), 0});
  }
  return {};
}

Result<LoweredGraph> Lowering::run() {
  out_.name = graph_.name;
  out_.inputWrites = options_.inputWrites;
  for (const Node& node : graph_.nodes()) out_.nodeNames.push_back(node.name);
  users_ = graph_.users();
  isReadWhole_ = readWhole(graph_);
  isReadByJumps_ = readByJumps(graph_, users_);
  isInMemory_ = neededInMemory(graph_);
  values_.resize(graph_.nodes().size());
  try {
    for (const Node& node : graph_.nodes()) {
      switch (node.kind) {
        case NodeKind::Placeholder:
        case NodeKind::Constant: {
          if (node.kind == NodeKind::Placeholder) out_.inputCount++;
          if (node.outputs[0].kind != OutputMeta::Kind::Tensor) break;
          graph::TensorMeta meta = node.outputs[0].tensor;
          meta.storageOffset = 0;
          auto kind = node.kind == NodeKind::Placeholder ? LoweredBuffer::Kind::Input : LoweredBuffer::Kind::Constant;
          BufferId id = newBuffer(kind, meta, node.name, node.index);
          LazyTensor& value = values_[static_cast<size_t>(node.id)].emplace_back(bufferTensor(id, meta, -1));
          value.storage->relaid = isChannelsLast(meta);
          break;
        }
        case NodeKind::Call:
          if (auto r = lowerNode(node); !r) return tl::unexpected(r.error());
          break;
        case NodeKind::Output:
          current_ = nullptr;
          if (auto r = emitResults(node); !r) return tl::unexpected(r.error());
          break;
      }
    }
  } catch (const NotLowered& e) {
    return fail(ErrorCode::Unsupported, std::string("lowering failed: ") + e.what(), current_ ? current_->name : graph_.name);
  }
  return std::move(out_);
}

Result<LoweredGraph> lower(const graph::Graph& graph, const LowerOptions& options) {
  if (auto ok = graph.verify(); !ok) return tl::unexpected(ok.error());
  return Lowering(graph, options).run();
}

const LowerTable& loweringTable() {
  static const LowerTable table = [] {
    LowerTable t;
    addPointwiseLowerings(t);
    addActivationLowerings(t);
    addViewLowerings(t);
    addJoinLowerings(t);
    addReductionLowerings(t);
    addFactoryLowerings(t);
    addRandomLowerings(t);
    addIndexingLowerings(t);
    addScatterLowerings(t);
    addScanLowerings(t);
    addPoolingLowerings(t);
    addPoolingBackwardLowerings(t);
    addResamplingLowerings(t);
    addConvolutionLowerings(t);
    addAttentionLowerings(t);
    addProductLowerings(t);
    return t;
  }();
  return table;
}

}  // namespace fusebox::inductor
