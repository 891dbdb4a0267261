#include "engine/trace/recorder.h"

#include <ATen/EmptyTensor.h>
#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <bit>
#include <limits>

#include "engine/graph/operator_facts.h"
#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/python_number.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

uint64_t nextTrace() {
  static std::atomic<uint64_t> counter{1};
  return counter++;
}

graph::Argument numberArgument(const at::Tensor& t) {
  DispatchState state;
  state.exclude(traceKeys());
  auto s = t.item();
  if (s.isBoolean()) return s.toBool();
  if (s.isIntegral(false)) return s.toLong();
  if (s.isComplex()) {
    auto c = s.toComplexDouble();
    return std::complex<double>(c.real(), c.imag());
  }
  return s.toDouble();
}

graph::OutputMeta none() {
  graph::OutputMeta m;
  m.kind = graph::OutputMeta::Kind::None;
  return m;
}

graph::OutputMeta scalar(graph::SymExpr value) {
  graph::OutputMeta m;
  m.kind = graph::OutputMeta::Kind::SymInt;
  m.scalar = std::move(value);
  return m;
}

}  // namespace

Recorder::Recorder(std::function<graph::Provenance()> provenance, std::shared_ptr<graph::ShapeEnv> shapes)
    : provenance_(std::move(provenance)), shapes_(std::move(shapes)), trace_(nextTrace()) {}

at::Tensor Recorder::wrap(const at::Tensor& meta, c10::Device device, graph::ValueRef value, Geometry geometry) {
  return at::detail::make_tensor<TraceTensorImpl>(meta, device, trace_, value, std::move(geometry), shapes_);
}

at::Tensor Recorder::overwritten(const at::Tensor& now, const at::Tensor& before) {
  auto* written = asTrace(now);
  const auto id = graph_.addCall(graph::kOverwritten, {written->value(), asTrace(before)->value()}, {graph_.meta(written->value())}, origin());
  return wrap(written->meta(), now.device(), {id, 0}, written->symbolic());
}

at::Tensor Recorder::again(graph::ValueRef value) {
  const graph::TensorMeta& is = graph_.meta(value).tensor;
  const auto hints = [&](const std::vector<graph::SymExpr>& list) {
    std::vector<int64_t> numbers;
    for (const graph::SymExpr& e : list) numbers.push_back(shapes_->hint(e));
    return numbers;
  };
  const auto type = static_cast<at::ScalarType>(is.dtype);
  const at::Tensor meta(at::detail::empty_strided_meta(hints(is.sizes), hints(is.strides), at::TensorOptions(type).device(at::kMeta)));
  if (const int64_t offset = shapes_->hint(is.storageOffset); offset != 0) meta.unsafeGetTensorImpl()->set_storage_offset(offset);
  SymbolicGeometry geometry{is.sizes, is.strides, is.storageOffset};
  return wrap(meta, fromDevice(is.device), value, geometry.symbolic() ? std::make_shared<const SymbolicGeometry>(std::move(geometry)) : nullptr);
}

bool Recorder::hasHistory(graph::ValueRef value) {
  for (size_t i = hasHistory_.size(); i < graph_.nodes().size(); ++i) {
    const graph::Node& node = graph_.nodes()[i];
    bool any = node.kind == graph::NodeKind::Placeholder && node.outputs[0].tensor.requiresGrad;
    graph::Graph::forEachValue(node.args, [&](graph::ValueRef v) { any |= hasHistory_[static_cast<size_t>(v.node)]; });
    hasHistory_.push_back(any && graph::handsHistoryOn(node));
  }
  return hasHistory_[static_cast<size_t>(value.node)];
}

graph::Provenance Recorder::origin() const {
  if (backward_ && backwardOrigin_ >= 0) {
    auto made = graph_.node(backwardOrigin_).origin;
    made.from = {backwardOrigin_};
    return made;
  }
  return provenance_ ? provenance_() : graph::Provenance{};
}

void Recorder::setBackwardOrigin(uint64_t sequenceNumber) {
  auto it = forwardNode_.find(sequenceNumber);
  backwardOrigin_ = it == forwardNode_.end() ? -1 : it->second;
}

at::Tensor Recorder::placeholder(const std::string& name, const at::Tensor& meta, c10::Device device, int32_t index, bool requiresGrad,
                                 Geometry geometry) {
  graph::OutputMeta output;
  output.tensor = toMeta(meta, device, geometry.get());
  output.tensor.requiresGrad = requiresGrad;
  auto id = graph_.addPlaceholder(name, std::move(output));
  graph_.node(id).index = index;
  graph_.node(id).isBackward = backward_;
  return wrap(meta, device, {id, 0}, std::move(geometry));
}

at::Tensor Recorder::constant(const at::Tensor& data) {
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  graph::OutputMeta output;
  output.tensor = toMeta(data, data.device());
  auto id = graph_.addConstant("constant", static_cast<int32_t>(constants_.size()), std::move(output));
  graph_.node(id).origin = origin();
  constants_.push_back(data);
  auto meta = at::Tensor(at::detail::empty_strided_meta(data.sizes(), data.strides(), data.options().device(at::kMeta)));
  return wrap(meta, data.device(), {id, 0});
}

void Recorder::holdsFloat(graph::Symbol bits, const at::Tensor& traced) { floats_.emplace_back(bits, asTraceThroughWrapper(traced)->value()); }

void Recorder::know(const at::Tensor& traced, at::Tensor data) {
  auto* t = asTrace(traced);
  if (t && t->trace() == trace_ && !t->symbolic() && data.sizes() == traced.sizes() && data.scalar_type() == traced.scalar_type()) known_[t->value()] = std::move(data);
}

at::Tensor Recorder::constantData(const at::Tensor& traced) const {
  auto* t = asTrace(traced);
  if (!t || t->trace() != trace_ || t->value().node < 0) return {};
  if (auto known = known_.find(t->value()); known != known_.end()) return known->second;
  auto& node = graph_.node(t->value().node);
  return node.kind == graph::NodeKind::Constant ? constants_[static_cast<size_t>(node.index)] : at::Tensor();
}

graph::ValueRef Recorder::computed(const graph::NumberExpr& n) {
  using Kind = graph::NumberExpr::Kind;
  graph::OutputMeta meta;
  meta.tensor.dtype = graph::DType::Float64;
  meta.tensor.device.kind = graph::DeviceKind::Cpu;
  const auto call = [&](std::string op, graph::ArgumentList args) {
    auto id = graph_.addCall(std::move(op), std::move(args), {meta}, origin());
    graph_.node(id).isBackward = backward_;
    graph_.node(id).noGrad = !backward_ && !c10::GradMode::is_enabled();
    return graph::ValueRef{id, 0};
  };
  const auto scalar = [&](graph::Argument value) {
    return call("aten::scalar_tensor", {std::move(value), graph::DType::Float64, graph::Argument(), toDevice(c10::Device(c10::kCPU)), graph::Argument()});
  };
  const auto whole = [&](const graph::SymExpr& e) {
    const graph::SymExpr known = shapes_ ? shapes_->simplify(e) : e;
    return scalar(known.isConstant() ? graph::Argument(known.constant()) : graph::Argument(known));
  };
  const auto of = [&](const char* op) { return call(op, {computed(*n.left)}); };
  const auto ofBoth = [&](const char* op, graph::ArgumentList more = {}) {
    graph::ArgumentList args{computed(*n.left), computed(*n.right)};
    args.insert(args.end(), more.begin(), more.end());
    return call(op, std::move(args));
  };
  switch (n.kind) {
    case Kind::Int:
    case Kind::ToFloat: return whole(n.a);
    case Kind::Ratio: {
      const graph::ValueRef top = whole(n.a);
      return n.b == graph::SymExpr(1) ? top : call("aten::div.Tensor", {top, whole(n.b)});
    }
    case Kind::Constant: return scalar(n.constant);
    case Kind::Bits: {
      const auto held = std::find_if(floats_.begin(), floats_.end(), [&](const auto& f) { return n.a == graph::SymExpr(f.first); });
      TORCH_INTERNAL_ASSERT(held != floats_.end(), "no input holds the float ", n.text());
      return held->second;
    }
    case Kind::Add: return ofBoth("aten::add.Tensor", {int64_t{1}});
    case Kind::Subtract: return ofBoth("aten::sub.Tensor", {int64_t{1}});
    case Kind::Multiply: return ofBoth("aten::mul.Tensor");
    case Kind::Divide: return ofBoth("aten::div.Tensor");
    case Kind::FloorDivide: return ofBoth("aten::div.Tensor_mode", {std::string("floor")});
    case Kind::Remainder: return ofBoth("aten::remainder.Tensor");
    case Kind::Power: return ofBoth("aten::pow.Tensor_Tensor");
    case Kind::Minimum: return ofBoth("aten::minimum");
    case Kind::Maximum: return ofBoth("aten::maximum");
    case Kind::Negate: return of("aten::neg");
    default: return of(graph::floatFunction(n.kind)->op);
  }
}

std::optional<graph::DType> Recorder::typeOfNumbers(c10::ArrayRef<c10::IValue> args, std::span<const c10::IValue> results) {
  const auto asType = [](c10::ScalarType type) -> std::optional<graph::DType> {
    if (type == at::kFloat) return graph::DType::Float32;
    return type == at::kDouble ? std::optional(graph::DType::Float64) : std::nullopt;
  };
  bool floats = false, others = false;
  c10::ScalarType small = c10::ScalarType::Undefined;  // of floats without dimensions
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      if (!asTrace(t)) return;
      if (!at::isFloatingType(t.scalar_type())) others = true;
      else if (t.dim() > 0) floats = true;
      else small = small == c10::ScalarType::Undefined ? t.scalar_type() : c10::promoteTypes(small, t.scalar_type());
    });
  if (floats) return graph::DType::Float64;
  if (small != c10::ScalarType::Undefined) return asType(small);
  if (!others) return graph::DType::Float64;
  // Beside ints a float makes the default dtype, of operators that make floats.
  const c10::ScalarType usual = c10::typeMetaToScalarType(at::get_default_dtype());
  const bool isUsual = std::all_of(results.begin(), results.end(), [&](const c10::IValue& r) { return r.isTensor() && r.toTensor().defined() && r.toTensor().scalar_type() == usual; });
  return isUsual ? asType(usual) : std::nullopt;
}

bool Recorder::hasHalf(c10::ArrayRef<c10::IValue> args) {
  bool has = false;
  for (auto& a : args) forEachTensor(a, [&](const at::Tensor& t) { has |= asTrace(t) && t.scalar_type() == at::kHalf; });
  return has;
}

bool Recorder::fitsHalf(const graph::NumberExpr& number) const {
  if (number.kind != graph::NumberExpr::Kind::Bits || shapes_->isOfData(number.a)) return true;
  // The bits of a float grow with its magnitude; those of negative ones begin at the least int.
  const int64_t largest = std::bit_cast<int64_t>(double{std::numeric_limits<c10::Half>::max()});
  const auto holds = [&](const graph::SymExpr& a, const graph::SymExpr& b) { return shapes_->decide(graph::Compare::Le, a, b, "what float16 holds"); };
  return shapes_->hint(number.a) < 0 ? holds(number.a, INT64_MIN + largest) : holds(0, number.a) && holds(number.a, largest);
}

graph::Argument Recorder::symbolicArgument(const c10::SymNode& node) {
  if (node->is_bool()) return node->guard_bool(__FILE__, __LINE__);
  if (node->is_float()) {
    const auto known = numberOf(node);
    if (!known || !numbersAs_ || (besideHalf_ && !fitsHalf(*known))) return node->guard_float(__FILE__, __LINE__);
    const graph::ValueRef made = computed(*known);
    if (*numbersAs_ == graph::DType::Float64) return made;
    graph::OutputMeta meta = graph_.meta(made);
    meta.tensor.dtype = *numbersAs_;
    const graph::Argument none;
    const auto id = graph_.addCall("aten::_to_copy", {made, *numbersAs_, none, none, none, false, none}, {meta}, origin());
    graph_.node(id).isBackward = backward_;
    return graph::ValueRef{id, 0};
  }
  auto known = exprOf(node);
  if (!known) return node->guard_int(__FILE__, __LINE__);
  return known->isConstant() ? graph::Argument(known->constant()) : graph::Argument(*known);
}

graph::Argument Recorder::tensorArgument(const at::Tensor& t) {
  if (auto* traced = asTrace(t)) return traced->value();
  if (auto node = symbolicNumber(t)) return symbolicArgument(*node);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) return numberArgument(t);
  if (t.dim() == 0 && t.device().is_cpu()) {
    // Made by a C++ kernel during the trace (users' tensors were replaced above autograd); copied, because its owner may write to it.
    DispatchState state;
    state.exclude(traceKeys() | aboveTraceKeys());
    return asTrace(constant(t.clone()))->value();
  }
  raiseBreak(BreakKind::UnknownTensor, "a real tensor reached an operator inside the trace",
             "pass the tensor to the compiled function as an argument");
}

void Recorder::readWholeMemory(graph::ArgumentList& args) const {
  constexpr size_t kOffset = 3;
  const auto* view = args.size() > kOffset ? args[0].as<graph::ValueRef>() : nullptr;
  if (!view) return;
  graph::ValueRef whole = *view;
  for (;;) {
    const graph::Node& node = graph_.node(whole.node);
    const graph::OperatorFacts* facts = node.kind == graph::NodeKind::Call ? &graph::factsOf(node.op) : nullptr;
    const auto* base = facts && facts->view && !facts->reinterprets && !node.args.empty() ? node.args[0].as<graph::ValueRef>() : nullptr;
    if (!base) break;
    whole = *base;
  }
  if (whole == *view) return;
  const graph::SymExpr& offset = graph_.meta(*view).tensor.storageOffset;
  if (args[kOffset].isNone()) args[kOffset] = offset.isConstant() ? graph::Argument(offset.constant()) : graph::Argument(offset);
  args[0] = whole;
}

void Recorder::call(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args,
                    std::span<c10::IValue> results, c10::Device device, std::span<const Geometry> geometries) {
  auto& schema = op.schema();
  graph::ArgumentList list;
  list.reserve(args.size());
  numbersAs_ = facts.takesAnyNumber ? typeOfNumbers(args, results) : std::nullopt;
  besideHalf_ = numbersAs_ && shapes_ && !shapes_->empty() && hasHalf(args);
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].isSymFloat() && args[i].toSymFloat().is_symbolic() && numberOf(args[i].toSymFloat().toSymNodeImpl()))
      list.push_back(symbolicArgument(args[i].toSymFloat().toSymNodeImpl()));
    else list.push_back(toArgument(args[i], schema.arguments()[i], [this](const at::Tensor& t) { return tensorArgument(t); }));

  if (facts.name == "aten::as_strided") readWholeMemory(list);

  c10::SmallVector<std::pair<const c10::TensorImpl*, at::Tensor>, 8> argumentOf;
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      if (auto* traced = asTrace(t)) argumentOf.emplace_back(traced->meta().unsafeGetTensorImpl(), t);
    });

  auto id = static_cast<graph::NodeId>(graph_.nodes().size());
  std::vector<graph::OutputMeta> outputs;
  size_t position = 0;
  auto finish = [&](const at::Tensor& meta) -> at::Tensor {
    Geometry geometry = position < geometries.size() ? geometries[position] : nullptr;
    ++position;
    graph::OutputMeta output;
    output.tensor = toMeta(meta, device, geometry.get());
    outputs.push_back(std::move(output));
    for (auto& [impl, t] : argumentOf)
      if (impl == meta.unsafeGetTensorImpl()) {
        asTrace(t)->syncGeometry(geometry);
        return t;
      }
    TORCH_INTERNAL_ASSERT(meta.device().is_meta(), facts.name, " gave a result with data while tracing");
    return wrap(meta, device, {id, static_cast<int32_t>(outputs.size() - 1)}, std::move(geometry));
  };
  bool isList = false;
  for (auto& r : results) {
    if (r.isTensor() && !r.toTensor().defined())
      outputs.push_back(none());
    else if (r.isInt())
      outputs.push_back(scalar(r.toInt()));
    else if (r.isSymInt())
      outputs.push_back(scalar(exprOf(r.toSymInt()).value()));
    else if (r.isTensor() || r.isTensorList())
      isList |= r.isTensorList(), mapTensors(r, finish);
    else
      outputs.push_back(none());
  }
  auto made = graph_.addCall(facts.name, std::move(list), std::move(outputs), origin());
  TORCH_INTERNAL_ASSERT(made == id);
  auto& node = graph_.node(made);
  node.isBackward = backward_;
  node.noGrad = !backward_ && !c10::GradMode::is_enabled();
  node.outputIsList = isList && results.size() == 1;
  if (!backward_) forwardNode_.try_emplace(at::sequence_number::peek() - 1, made);
  ++calls_;
}

}  // namespace fusebox::trace
