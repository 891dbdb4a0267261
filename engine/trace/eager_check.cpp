#include "engine/trace/eager_check.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/Exception.h>
#include <c10/util/hash.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using torch::jit::Stack;

constexpr int64_t kExactElements = 4096;      ///< arguments of up to so many elements are made as they are
constexpr int64_t kResultElements = 1 << 20;  ///< that an operator without generated code may make when it is asked
constexpr int64_t kSmallExtent = 3;           ///< of what stands for larger ones
constexpr int64_t kProbedBytes = 1 << 26;     ///< of memory that a call is tried on

struct Silent : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Runs an operator for real, as eager does below autograd. What it says to people is not theirs to hear, and what it says once is kept for
/// the program.
void runForReal(const c10::OperatorHandle& op, Stack& stack) {
  // A tensor that is taken as a number has no value yet.
  for (IValue& value : stack)
    if (value.isSymFloat()) value = 1.0;
  Silent silent;
  const c10::WarningUtils::WarnAlways notOnce;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silent);
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  op.callBoxed(&stack);
}

at::Tensor zeros(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  auto made = at::empty_strided(sizes, strides, at::TensorOptions(type).device(at::kCPU));
  std::memset(made.storage().mutable_data(), 0, made.storage().nbytes());
  return made;
}

bool isNumber(const at::Tensor& t) { return t.unsafeGetTensorImpl()->is_wrapped_number(); }

std::vector<int64_t> smallSizes(at::IntArrayRef sizes) {
  std::vector<int64_t> made;
  for (auto n : sizes) made.push_back(std::min(n, kSmallExtent));
  return made;
}

enum class Data { Zeros, Ones };

/// Zeros, or ones, of a tensor's type and, if that is small, geometry.
at::Tensor standIn(const at::Tensor& t, bool exact, Data data = Data::Zeros) {
  if (isNumber(t)) return t;
  if (exact) {
    auto made = zeros(t.sizes(), t.strides(), t.scalar_type());
    if (data == Data::Ones) at::empty({0}, made.options()).set_(made.storage()).fill_(1);  // one element may be several of `made`
    return made;
  }
  auto made = at::zeros(smallSizes(t.sizes()), at::TensorOptions(t.scalar_type()).device(at::kCPU));
  return t.dim() == 4 && t.suggest_memory_format() == at::MemoryFormat::ChannelsLast ? made.contiguous(at::MemoryFormat::ChannelsLast) : made;
}

/// What decides which kernel an argument leads to.
void appendKey(std::string& key, const IValue& value, const c10::TypePtr& type) {
  auto number = [&](int64_t n) { key.append(reinterpret_cast<const char*>(&n), sizeof n); };
  if (value.isTensor()) {
    auto& t = value.toTensor();
    if (!t.defined()) return number(-1);
    const int64_t layout = t.is_contiguous() ? 0 : t.suggest_memory_format() == at::MemoryFormat::ChannelsLast ? 1 : 2;
    return number(static_cast<int64_t>(t.scalar_type()) | t.dim() << 8 | layout << 16 | int64_t{t.numel() == 0} << 20 | int64_t{isNumber(t)} << 21);
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    for (auto& element : value.toListRef()) appendKey(key, element, type);
    return;
  }
  key.append(value.tagKind());
  if (value.isString()) key.append(value.toStringRef());
  if (value.isBool()) number(value.toBool());
  if (value.isInt() && type->kind() != c10::TypeKind::IntType) number(value.toInt());  // an element type, say, or a scalar
  if (value.isDouble()) number(std::bit_cast<int64_t>(value.toDouble()));
  if (value.isComplexDouble()) number(std::bit_cast<int64_t>(value.toComplexDouble().real())), number(std::bit_cast<int64_t>(value.toComplexDouble().imag()));
}

/// Their tensors fit each other also where all extents are cut alike.
constexpr std::string_view kProducts[] = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::mv", "aten::addmv", "aten::dot", "aten::vdot"};

std::atomic<bool (*)(const std::string&)> theGenerated{nullptr};

bool isGenerated(const OperatorFacts& facts) {
  return theGenerated.load(std::memory_order_relaxed) && (facts.pointwise || hasGeneratedCode(facts.name));
}

/// Operators that only others of PyTorch call do not look at sizes (_sobol_engine_scramble_ writes beyond those that are cut); lists of tensors do.
bool trustsItsArguments(std::string_view name) { return name.starts_with("aten::_") && !name.starts_with("aten::_foreach_"); }

/// Operators that are not for programs trust what they are given (packed weights, workspaces), as those of linear algebra do (pivots).
bool isForPrograms(const OperatorFacts& facts) {
  const auto& name = facts.name;
  constexpr std::string_view kInside[] = {"_backward", "fbgemm", "mkldnn", "cudnn", "quantize"};
  return name.starts_with("aten::") && !name.starts_with("aten::_") && !name.starts_with("aten::linalg_") && !facts.checksData &&
         std::none_of(std::begin(kInside), std::end(kInside), [&](std::string_view word) { return name.find(word) != name.npos; });
}

/// Operators that stay calls say themselves what they refuse, unless nobody reads their results.
bool canBeAsked(const OperatorFacts& facts) {
  return (isGenerated(facts) || isForPrograms(facts)) && facts.returnsTensor && !facts.random && !facts.foreign && !facts.effectful &&
         !facts.writes && !facts.view && !facts.dataDependent && !facts.dynamicShape && !facts.uninitialised;
}

/// Of what is made.
bool isSize(const c10::Argument& argument, const IValue& value) { return argument.name() == "size" && value.isIntList(); }

/// What the kernel raises for these arguments, of which small ones made of zeros take the places of tensors; null: nothing.
std::exception_ptr raisedBy(const c10::OperatorHandle& op, Stack stack, bool exact, Data data = Data::Zeros) {
  try {
    auto& schema = op.schema().arguments();
    const bool isCut = !exact || std::none_of(stack.begin(), stack.end(), [](const IValue& a) { return a.isTensor() || a.isTensorList(); });
    for (size_t i = 0; i < stack.size(); ++i) {
      mapTensors(stack[i], [&](const at::Tensor& t) { return standIn(t, exact, data); });
      if (stack[i].isDevice()) stack[i] = c10::Device(at::kCPU);
      if (isCut && isSize(schema[i], stack[i])) stack[i] = smallSizes(stack[i].toIntVector());
    }
    runForReal(op, stack);
  } catch (const std::exception&) {
    return std::current_exception();
  }
  return nullptr;
}

/// Whether an operator that raised does so because of the types.
bool isAboutTypes(const std::string& said) {
  constexpr const char* kWords[] = {" not implemented for '", "Found dtype ", "expected scalar type ", "xpected dtype ", "same dtype",
                                    "object of scalar type ", "Expected both inputs to be ", "should be the same", "floating point",
                                    "supports boolean masks", "can't be cast to the desired output type", "complex", "bool tensor"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* words) { return said.find(words) != said.npos; });
}

/// Whether an operator refuses types before it reads any data.
bool looksAtTypesFirst(const std::string& op) { return op == "aten::complex" || op == "aten::polar" || op == "aten::masked_scatter"; }

/// The arguments with another number in the place of each that is one; empty: there is none.
Stack withOtherNumbers(const c10::OperatorHandle& op, std::span<const IValue> args) {
  Stack made(args.begin(), args.end());
  bool any = false;
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i].isDouble() || made[i].isComplexDouble()) made[i] = 1.0, any = true;
    else if (made[i].isInt() && c10::NumberType::get()->isSubtypeOf(op.schema().arguments()[i].real_type())) made[i] = int64_t{1}, any = true;
  return any ? made : Stack();
}

std::string textOf(const std::exception_ptr& raised) {
  if (!raised) return {};
  try {
    std::rethrow_exception(raised);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// What the kernel raises for these types, or because of the numbers beside the tensors; null: nothing, or what other tensors may not hear. Nothing: it
/// cannot be asked with arguments of these sizes. Raises what it says of these very sizes whatever the data are.
std::optional<std::exception_ptr> refusalOf(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args) {
  int64_t elements = 0, tensors = 0;
  bool anyIntegers = false;
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      elements += t.numel(), tensors += !isNumber(t);
      anyIntegers |= at::isIntegralType(t.scalar_type(), false);
    });
  // Smaller tensors fit each other where they are broadcast or multiplied, or where there is one.
  const bool staysFitting = facts.elementwise || std::find(std::begin(kProducts), std::end(kProducts), facts.name) != std::end(kProducts);
  if (elements > kExactElements && tensors > 1 && !staysFitting) return std::nullopt;
  const bool exact = elements <= kExactElements;
  for (size_t i = 0; exact && tensors > 0 && i < args.size(); ++i)  // the size fits the tensors, so that it cannot be cut
    if (isSize(op.schema().arguments()[i], args[i]) && c10::multiply_integers(args[i].toIntVector()) > kResultElements) return std::nullopt;
  const bool mayTrustData = !exact || tensors == 0 || (anyIntegers && tensors > 1);  // places, lengths
  if (!isGenerated(facts) && !staysFitting && mayTrustData && !looksAtTypesFirst(facts.name)) return std::nullopt;
  const std::exception_ptr raised = raisedBy(op, Stack(args.begin(), args.end()), exact);
  if (!raised) return nullptr;
  try {
    std::rethrow_exception(raised);
  } catch (const c10::Error& error) {
    if (isAboutTypes(error.what_without_backtrace())) return raised;
  } catch (const std::exception&) {
    // a number that does not fit, say
  }
  Stack others = withOtherNumbers(op, args);
  if (!others.empty() && !raisedBy(op, std::move(others), exact)) return raised;
  // What zeros and ones share, other data that a library looks at may not: a matrix without an inverse, bins in no order.
  const bool mayLookAtData = facts.checksData || !isGenerated(facts);
  if (exact && !mayLookAtData && textOf(raised) == textOf(raisedBy(op, Stack(args.begin(), args.end()), exact, Data::Ones))) std::rethrow_exception(raised);
  return nullptr;
}

/// Whether two elements may be one place in memory: some step is not beyond all that the smaller steps reach. That none are is a guard where sizes vary.
bool mayMeetItself(const graph::TensorMeta& meta, const std::string& who) {
  graph::ShapeEnv& env = TraceContext::current()->shapes();
  std::vector<size_t> dims;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    const int64_t size = env.hint(meta.sizes[d]);
    if (size == 0) return false;
    if (size > 1) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return env.hint(meta.strides[a]) < env.hint(meta.strides[b]); });
  graph::SymExpr reach = 0;
  for (size_t d : dims) {
    if (env.decide(graph::Compare::Le, meta.strides[d], reach, who)) return true;
    reach = reach + meta.strides[d] * (meta.sizes[d] - 1);
  }
  return false;
}

/// The arguments with zeros that lie and overlap as the tensors do; nothing where they are large.
std::optional<Stack> onZeros(std::span<const IValue> args) {
  bool fits = true;
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      if (!t.defined()) return;
      auto* traced = asTraceThroughWrapper(t);
      const bool isPlain = !t.key_set().has(c10::DispatchKey::Python) && t.layout() == at::kStrided && t.has_storage();
      const at::Tensor& shape = traced ? traced->meta() : t;
      const auto bytes = std::max<int64_t>(shape.numel() * static_cast<int64_t>(shape.element_size()), isPlain ? shape.storage().nbytes() : 0);
      fits = fits && isPlain && bytes <= kProbedBytes;
    });
  if (!fits) return std::nullopt;
  std::map<const c10::StorageImpl*, at::Tensor> memory;
  auto real = [&](const at::Tensor& t) -> at::Tensor {
    if (!t.defined() || isNumber(t)) return t;
    auto* traced = asTraceThroughWrapper(t);
    auto& shape = traced ? traced->meta() : t;
    auto& bytes = memory[t.storage().unsafeGetStorageImpl()];
    if (!bytes.defined()) bytes = at::zeros({static_cast<int64_t>(shape.storage().nbytes())}, at::TensorOptions(at::kByte).device(at::kCPU));
    return at::empty({0}, at::TensorOptions(shape.scalar_type()).device(at::kCPU)).set_(bytes.storage(), shape.storage_offset(), shape.sizes(), shape.strides());
  };
  Stack stack(args.begin(), args.end());
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  for (auto& a : stack) {
    a = withHints(a);
    mapTensors(a, real);
  }
  return stack;
}

/// Carries out a write on zeros, for what eager says to that.
void tryForReal(const c10::OperatorHandle& op, std::span<const IValue> args) {
  auto stack = onZeros(args);
  if (!stack) return;
  try {
    runForReal(op, *stack);
  } catch (const c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    TORCH_CHECK(said.find("single memory location") == said.npos, said);
  } catch (const std::exception&) {
    // the operator says it again where it is recorded
  }
}

/// Raises what eager says where a result does not fit the type of what is written, which small zeros show whatever the sizes are. It is asked once for
/// every combination of types.
void refuseUnfitting(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args) {
  static std::mutex mutex;
  static std::unordered_set<std::string> fitting;
  std::string key = facts.name;
  for (auto& a : args) {
    key += '|' + a.tagKind();
    forEachTensor(a, [&](const at::Tensor& t) {
      if (t.defined()) key += fmt::format("{},{},{} ", static_cast<int>(t.scalar_type()), t.dim() == 0, isNumber(t));
    });
  }
  {
    std::lock_guard lock(mutex);
    if (fitting.contains(key)) return;
  }
  Stack stack(args.begin(), args.end());
  DispatchState state;
  state.exclude(traceKeys() | aboveTraceKeys());
  for (auto& a : stack) {
    a = withHints(a);
    mapTensors(a, [](const at::Tensor& t) {
      if (!t.defined() || isNumber(t)) return t;
      auto* traced = asTraceThroughWrapper(t);
      return at::zeros(smallSizes((traced ? traced->meta() : t).sizes()), at::TensorOptions(t.scalar_type()).device(at::kCPU));
    });
  }
  try {
    runForReal(op, stack);
    std::lock_guard lock(mutex);
    fitting.insert(std::move(key));
  } catch (const c10::Error& error) {
    if (std::string_view(error.what_without_backtrace()).find("can't be cast to the desired output type") != std::string_view::npos) throw;
  } catch (const std::exception&) {
    // small tensors need not fit each other
  }
}

/// Whether elements of what is written, or of what it is a part of, are one place in memory.
bool isPartOfOverlapping(const at::Tensor& t, const std::string& who) {
  auto* traced = asTraceThroughWrapper(t);
  if (!traced) return false;
  const graph::Graph& graph = TraceContext::current()->recorder().graph();
  const auto meets = [&](graph::ValueRef value) { return graph.node(value.node).op == "aten::expand" || mayMeetItself(graph.meta(value).tensor, who); };
  graph::ValueRef value = traced->value();
  if (meets(value)) return true;
  if (!at::functionalization::impl::isFunctionalTensor(t)) return false;
  for (const graph::Node* node = &graph.node(value.node); node->kind == graph::NodeKind::Call && graph::factsOf(*node).view; node = &graph.node(value.node)) {
    const auto* from = node->args[0].as<graph::ValueRef>();
    if (!from) return false;
    if (meets(value = *from)) return true;
  }
  return false;
}

/// Where the elements of `t` lie in its storage, in order; empty: too many to look at.
std::vector<int64_t> placesOf(const at::Tensor& t) {
  constexpr int64_t kMost = 65536;
  if (t.numel() > kMost) return {};
  std::vector<int64_t> made{t.storage_offset()};
  if (t.numel() == 0) return {};
  for (int64_t d = 0; d < t.dim(); ++d) {
    const size_t before = made.size();
    for (int64_t i = 1; i < t.size(d); ++i)
      for (size_t k = 0; k < before; ++k) made.push_back(made[k] + i * t.stride(d));
  }
  std::sort(made.begin(), made.end());
  return made;
}

/// Whether some element of one is an element of the other at another position: what eager reads there depends on what it has written.
bool meetElsewhere(const at::Tensor& written, const at::Tensor& read) {
  const auto *to = asTraceThroughWrapper(written), *from = asTraceThroughWrapper(read);
  if (!to || !from) return false;
  const at::Tensor &a = to->meta(), &b = from->meta();
  if (a.scalar_type() != b.scalar_type() || (a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset())) return false;
  const auto places = placesOf(a), others = placesOf(b);
  std::vector<int64_t> both;
  std::set_intersection(places.begin(), places.end(), others.begin(), others.end(), std::back_inserter(both));
  return !both.empty();
}

}  // namespace

void setGenerated(bool (*isGenerated)(const std::string& op)) { theGenerated = isGenerated; }

bool hasGeneratedCode(const std::string& op) {
  const auto isGenerated = theGenerated.load(std::memory_order_relaxed);
  return isGenerated && isGenerated(op);
}

void checkTypesAndNumbers(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args, c10::ArrayRef<IValue> results) {
  if (!canBeAsked(facts)) return;
  int64_t made = 0;
  for (auto& r : results) forEachTensor(r, [&](const at::Tensor& t) { made += t.defined() ? t.numel() : 0; });
  if (!isGenerated(facts) && made > kResultElements) return;
  constexpr size_t kRemembered = 10000;  // numbers may be others in every capture
  static std::mutex mutex;
  static std::unordered_map<std::string, std::exception_ptr> refusals;
  auto& schema = op.schema().arguments();
  std::string key = facts.name;
  for (size_t i = 0; i < args.size(); ++i) appendKey(key, args[i], schema[i].real_type());
  std::exception_ptr refusal;
  bool known = false;
  {
    std::lock_guard lock(mutex);
    if (auto found = refusals.find(key); found != refusals.end()) refusal = found->second, known = true;
  }
  if (!known) {
    const auto said = refusalOf(op, facts, args);
    if (!said) return;
    refusal = *said;
    std::lock_guard lock(mutex);
    if (refusals.size() >= kRemembered) refusals.clear();
    refusals.emplace(std::move(key), refusal);
  }
  if (refusal) std::rethrow_exception(refusal);
}

void raiseAsEager(const c10::OperatorHandle& op, std::span<const IValue> args) {
  bool onCpu = true;
  for (auto& a : args) {
    onCpu = onCpu && !(a.isDevice() && !a.toDevice().is_cpu());
    forEachTensor(a, [&](const at::Tensor& t) { onCpu = onCpu && (!t.defined() || t.device().is_cpu()); });
  }
  if (!onCpu) return;
  if (auto stack = onZeros(args)) runForReal(op, *stack);
}

void refuseWritesThatMeet(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args) {
  const bool hidden = facts.name == "aten::batch_norm" || facts.name == "aten::native_batch_norm";  // their schemas do not say what they write
  if (!facts.writes && !hidden) return;
  auto& schema = op.schema().arguments();
  std::vector<std::tuple<const void*, int64_t, int64_t>> places;  // storage, first and last byte
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* alias = schema[i].alias_info();
    if (!(alias && alias->isWrite()) && !(hidden && schema[i].name().starts_with("running_"))) continue;
    forEachTensor(args[i], [&](const at::Tensor& given) {
      auto* traced = asTraceThroughWrapper(given);
      const at::Tensor& t = traced ? traced->meta() : given;  // a wrapper of functionalisation does not know its offset
      if (!t.defined() || !given.has_storage() || t.numel() == 0) return;
      int64_t reach = 0;
      for (int64_t d = 0; d < t.dim(); ++d) reach += (t.size(d) - 1) * t.stride(d);
      const auto width = static_cast<int64_t>(t.itemsize());
      places.emplace_back(given.storage().unsafeGetStorageImpl(), t.storage_offset() * width, (t.storage_offset() + reach + 1) * width - 1);
    });
  }
  if (places.size() < 2) return;
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (std::get<0>(places[i]) == std::get<0>(places[i - 1]) && std::get<1>(places[i]) <= std::get<2>(places[i - 1]))
      raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes two results to one place in memory", "give it a tensor for each");
}

void checkWrites(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const IValue> args) {
  if (!facts.writes || facts.foreign || facts.random) return;
  auto& schema = op.schema().arguments();
  std::vector<at::Tensor> written, all;
  for (size_t i = 0; i < args.size(); ++i)
    forEachTensor(args[i], [&](const at::Tensor& t) {
      all.push_back(t);
      if (auto* alias = schema[i].alias_info(); alias && alias->isWrite()) written.push_back(t);
    });
  auto storage = [](const at::Tensor& t) { return t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr; };
  bool overlaps = false, expanded = false, meets = false;
  for (auto& w : written) {
    overlaps |= expanded |= isPartOfOverlapping(w, facts.name);
    for (auto& t : all) {
      const bool shares = !t.is_same(w) && storage(t) && storage(t) == storage(w);
      overlaps |= shares;
      meets = meets || (shares && meetElsewhere(w, t));
    }
  }
  // Compositions of operators give their result in whatever type, and functionalisation writes it.
  const auto isComplex = [](const at::Tensor& t) { return t.defined() && at::isComplexType(t.scalar_type()); };
  const bool anyComplex = std::any_of(all.begin(), all.end(), isComplex);
  const auto mayNotFit = [&](const at::Tensor& t) { return t.defined() && (at::isIntegralType(t.scalar_type(), true) || (anyComplex && !isComplex(t))); };
  if (!facts.hasOut && !trustsItsArguments(facts.name) && std::any_of(written.begin(), written.end(), mayNotFit)) refuseUnfitting(op, facts, args);
  if (!overlaps) return;
  tryForReal(op, args);
  // Functionalisation takes a write to an expanded tensor, or to a part of one, for a sum of differences over what was written, and others
  // for writes of whole values, where eager goes over shared elements several times.
  if (expanded && !op.hasTag(at::Tag::inplace_view))
    raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes to a tensor of which several elements are one place in memory", "clone the tensor first");
  if (meets) raiseBreak(BreakKind::UnsupportedOp, facts.name + " reads memory that it writes, at other positions", "clone what is read first");
}

}  // namespace fusebox::trace
