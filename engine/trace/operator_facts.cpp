#include "engine/trace/operator_facts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/trace/convert.h"
#include "engine/trace/functional_form.h"

namespace fusebox::trace {

// `import torch` puts Python functions in front of the C++ kernels on the Meta key (394 of 451 functional ATen operators). The C++ kernels
// stay in the operator's private list; explicit instantiation may name private members, and that is the only way to them.
template <auto Member>
struct DefinitionAccess {
  friend auto& definitionOf(const c10::OperatorHandle& op) { return *(op.*Member); }
};
auto& definitionOf(const c10::OperatorHandle&);
template struct DefinitionAccess<&c10::OperatorHandle::operatorDef_>;

template <auto Member>
struct KernelsAccess {
  friend auto& kernelsOf(c10::impl::OperatorEntry& entry) { return entry.*Member; }
};
auto& kernelsOf(c10::impl::OperatorEntry&);
template struct KernelsAccess<&c10::impl::OperatorEntry::kernels_>;

bool hasOwnAutograd(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  const auto& all = kernelsOf(definitionOf(op).op);
  const auto isOwn = [](const c10::impl::AnnotatedKernel& kernel) {
    return kernel.kernel.isValid() && !kernel.kernel.isFallthrough() && kernel.debug.find("torch/_library/custom_ops.py") == std::string::npos;
  };
  constexpr DispatchKey kKeys[] = {DispatchKey::Autograd, DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA};
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](DispatchKey key) {
    const auto found = all.find(key);
    return found != all.end() && std::any_of(found->second.begin(), found->second.end(), isOwn);
  });
}

namespace {

bool isPython(const c10::impl::AnnotatedKernel& kernel) {
  return kernel.debug.find(".py") != std::string::npos || kernel.debug.find("/dev/null") != std::string::npos;
}

const c10::KernelFunction* findKernel(const c10::OperatorHandle& op, c10::DispatchKey key, bool python) {
  auto& all = kernelsOf(definitionOf(op).op);
  auto it = all.find(key);
  if (it == all.end()) return nullptr;
  for (auto& candidate : it->second)
    if (isPython(candidate) == python && candidate.kernel.isValid() && !candidate.kernel.isFallthrough()) return &candidate.kernel;
  return nullptr;
}

bool mentionsTensor(const c10::TypePtr& type) { return type->str().find("Tensor") != std::string::npos; }

// Composite kernels that look at data, so that the Python meta is the only way.
const std::unordered_set<std::string_view> kCompositeReadsData{"aten::_grouped_mm"};

// Compositions that go by the data: one call, which is written as others later.
const std::unordered_set<std::string_view> kKeptWhole{"aten::cumprod_backward"};

// What no tag and no schema says, each list with what it says.
const std::unordered_set<std::string_view> kAssertsWithResult{"aten::_functional_assert_async.msg", "aten::_functional_assert_scalar"};
const std::unordered_set<std::string_view> kHiddenViews{"aten::_unsafe_view"};  // results of unsafe_split stay what they are
const std::unordered_set<std::string_view> kReinterpreting{"aten::view.dtype", "aten::view_as_real", "aten::view_as_complex", "aten::_conj",
                                                           "aten::_neg_view"};
/// Namespaces whose operators compute, or only mark places for profilers.
const std::unordered_set<std::string_view> kOwnNamespaces{"aten",      "prims",      "prim",   "profiler", "quantized",
                                                          "_quantized", "mkldnn", "onednn", "fusebox"};
/// Operators (by how their names begin) that wait for the device or look at data on the host although no tag of theirs says so.
constexpr std::string_view kSynchronising[] = {
    "aten::_unique",     "aten::unique_",      "aten::bincount",   "aten::histc",       "aten::repeat_interleave", "aten::masked_select", "aten::cumprod_backward",
    "aten::nonzero",     "aten::_local_scalar", "aten::item",      "aten::equal",       "aten::is_nonzero",        "aten::linalg_",
    "aten::_linalg_",    "aten::cholesky",     "aten::lu_",        "aten::triangular_", "aten::ormqr",             "aten::geqrf",
    "aten::_ctc_loss",   "aten::multinomial",  "aten::_sparse",    "aten::to_sparse",   "aten::_to_sparse",        "aten::record_stream",
    "aten::_assert",       "fusebox::recurrent", "fusebox::while_loop",
};

/// Operators (by how their names begin) that give a result whatever numbers they get; views and pointwise ones are not listed.
constexpr std::string_view kTotal[] = {
    "aten::mm",           "aten::addmm",        "aten::_addmm",        "aten::bmm",          "aten::baddbmm",      "aten::mv",
    "aten::addmv",        "aten::dot",          "aten::vdot",          "aten::convolution",  "aten::_convolution", "aten::_scaled_dot_product",
    "aten::native_layer_norm", "aten::native_group_norm", "aten::native_batch_norm", "aten::_native_batch_norm", "aten::cudnn_batch_norm",
    "aten::_batch_norm",  "aten::_fused_rms_norm", "aten::_softmax",   "aten::_log_softmax", "aten::_safe_softmax", "aten::sum",
    "aten::mean",         "aten::amax",         "aten::amin",          "aten::max",          "aten::min",          "aten::var",
    "aten::std",          "aten::prod",         "aten::any",           "aten::all",          "aten::argmax",       "aten::argmin",
    "aten::linalg_vector_norm", "aten::cum",    "aten::logsumexp",     "aten::sort",         "aten::topk",         "aten::cat",
    "aten::stack",        "aten::clone",        "aten::copy",          "aten::_to_copy",     "aten::contiguous",   "aten::slice_scatter",
    "aten::select_scatter", "aten::diagonal_scatter", "aten::as_strided_scatter", "aten::where", "aten::masked_fill", "aten::fill",
    "aten::constant_pad_nd", "aten::avg_pool",  "aten::_adaptive_avg", "aten::max_pool2d_with_indices", "aten::upsample", "aten::_upsample",
    "aten::triu",         "aten::tril",         "aten::roll",          "aten::flip",         "aten::repeat",       "aten::zero",
    "fusebox::exact_bmm", "fusebox::uniform",
    "aten::gelu",         "aten::silu",         "aten::native_dropout", "aten::rand",        "aten::reflection_pad", "aten::replication_pad",
    "aten::_foreach_",    "aten::lift_fresh",   "aten::im2col",        "aten::col2im",       "aten::glu",          "aten::scalar_tensor",
};
/// Pointwise operators that lack the tag.
const std::unordered_set<std::string_view> kPointwise{
    "aten::leaky_relu",    "aten::hardswish",           "aten::rsub.Tensor",        "aten::leaky_relu_backward", "aten::hardtanh_backward",
    "aten::elu_backward",  "aten::softplus_backward",   "aten::mish_backward",      "aten::hardswish_backward",  "aten::hardsigmoid_backward",
    "aten::hardshrink_backward", "aten::softshrink_backward",
};
/// Kernels over elements of broadcast operands that reduce afterwards, the gradients of these, and one that raises for some numbers.
const std::unordered_set<std::string_view> kElementwise{
    "aten::mse_loss", "aten::mse_loss_backward", "aten::smooth_l1_loss", "aten::smooth_l1_loss_backward", "aten::huber_loss_backward",
    "aten::floor_divide",
};
/// Named without an overload: `round` is, and rounds, with and without decimals.
const std::unordered_set<std::string_view> kJumping{
    "aten::floor", "aten::ceil",         "aten::round", "aten::trunc", "aten::frac",      "aten::fmod",
    "aten::sign",  "aten::floor_divide", "aten::sgn",   "aten::remainder", "aten::heaviside", "aten::nextafter",
};
const std::unordered_set<std::string_view> kMoving{
    "aten::_to_copy",     "aten::clone",  "aten::copy", "aten::cat",  "aten::stack",  "aten::index",
    "aten::index_select", "aten::gather", "aten::flip", "aten::roll", "aten::repeat", "aten::constant_pad_nd",
};
/// Operators, without their overloads, that take any number for a scalar: others raise for some, or choose by it.
const std::unordered_set<std::string_view> kTakingAnyNumber{
    "aten::add",         "aten::sub",         "aten::rsub",          "aten::mul",           "aten::div",             "aten::pow",
    "aten::remainder",   "aten::fmod",        "aten::floor_divide",  "aten::eq",            "aten::ne",              "aten::lt",
    "aten::le",          "aten::gt",          "aten::ge",            "aten::where",         "aten::clamp",           "aten::clamp_min",
    "aten::clamp_max",   "aten::maximum",     "aten::minimum",       "aten::fill",          "aten::full",            "aten::full_like",
    "aten::new_full",    "aten::scalar_tensor", "aten::addcmul",     "aten::addcdiv",       "aten::lerp",            "aten::threshold",
    "aten::leaky_relu",  "aten::elu",         "aten::hardtanh",      "aten::masked_fill",   "aten::index_fill",      "aten::scatter",
    "aten::constant_pad_nd", "aten::xlogy",   "aten::copysign",      "aten::float_power",   "aten::_foreach_add",    "aten::_foreach_sub",
    "aten::_foreach_mul", "aten::_foreach_div", "aten::_foreach_addcmul", "aten::_foreach_addcdiv", "aten::_foreach_lerp", "aten::_foreach_clamp_min",
    "aten::_foreach_clamp_max",
};
/// Pointwise operators that raise where they divide integers by zero, or raise them to negative powers.
constexpr std::string_view kPartialPointwise[] = {"aten::div", "aten::floor_divide", "aten::remainder", "aten::fmod", "aten::pow", "aten::__"};

/// Operators (by how their names begin) whose kernels on the CPU raise for data that do not fit, and give results of the same sizes for all
/// others. Those that check in an operator of their own (aten::_linalg_check_errors) or draw random numbers are carried out anyway.
constexpr std::string_view kCheckingData[] = {
    "aten::index.Tensor", "aten::index_select", "aten::index_add",  "aten::index_put",   "aten::index_copy",   "aten::index_fill",
    "aten::index_reduce", "aten::gather",       "aten::take",       "aten::put",         "aten::scatter",      "aten::embedding",
    "aten::_embedding_bag", "aten::nll_loss",   "aten::multi_margin_loss", "aten::multilabel_margin_loss", "aten::binary_cross_entropy",
    "aten::_ctc_loss",    "aten::histc",        "aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_eig", "aten::max_unpool",
    "aten::div",          "aten::floor_divide", "aten::remainder",  "aten::fmod",
};
bool isCheckingData(const std::string& name) {
  if (name.find("_backward") != std::string::npos || name.starts_with("aten::binary_cross_entropy_with_logits")) return false;
  return std::any_of(std::begin(kCheckingData), std::end(kCheckingData), [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Where CUDA's kernel of a probed operator puts its results.
enum class OnCuda : uint8_t {
  AsCpu,     ///< where the CPU's does
  RowMajor,  ///< row by row, where the CPU's keeps the memory format
  AsMeta,    ///< where its C++ meta kernel says; else its composite kernel, if CUDA has no other; else PyTorch's function in Python
  ThereToo,  ///< where its library pleases: it is run there once; without a device of CUDA AsMeta
};

// Operators whose strides depend on how a library cuts its work, or whose results on which arguments are there, and which no shape
// function gets right: the CPU's kernel (or CUDA's) is run once on zeros of the same geometry.
const std::unordered_map<std::string_view, OnCuda> kProbed{
    {"aten::_fft_r2c", OnCuda::ThereToo},
    {"aten::_fft_c2r", OnCuda::ThereToo},
    {"aten::_fft_c2c", OnCuda::ThereToo},
    {"aten::max_unpool2d", OnCuda::AsMeta},
    {"aten::max_unpool3d", OnCuda::AsMeta},
    {"aten::nonzero_static", OnCuda::AsMeta},
    {"aten::replication_pad1d", OnCuda::AsMeta},
    {"aten::replication_pad2d", OnCuda::AsMeta},
    {"aten::replication_pad3d", OnCuda::AsMeta},
    {"aten::reflection_pad1d", OnCuda::AsMeta},
    {"aten::reflection_pad3d", OnCuda::AsMeta},
    {"aten::_batch_norm_with_update_functional", OnCuda::AsMeta},
    {"aten::_embedding_bag", OnCuda::AsMeta},
    {"aten::_embedding_bag_forward_only", OnCuda::AsMeta},
    {"aten::nll_loss2d_forward", OnCuda::AsCpu},
    {"aten::pixel_shuffle", OnCuda::AsMeta},
    {"aten::pixel_unshuffle", OnCuda::AsMeta},
    {"aten::native_channel_shuffle", OnCuda::AsMeta},
    {"aten::channel_shuffle", OnCuda::RowMajor},
    {"aten::_native_multi_head_attention", OnCuda::AsMeta},
};

// "aten::add.Tensor" of "aten::add_.Tensor", if it takes the same arguments.
const c10::OperatorHandle* functionalForm(const c10::OperatorHandle& op) {
  auto& schema = op.schema();
  if (schema.name().back() != '_') return nullptr;
  auto name = schema.name().substr(0, schema.name().size() - 1);
  auto found = c10::Dispatcher::singleton().findSchema({name, schema.overload_name()});
  if (!found || found->schema().arguments().size() != schema.arguments().size()) return nullptr;
  return new c10::OperatorHandle(*found);  // kept as long as the facts, which is for the thread's life
}

// Writes its first argument, returns it, and leaves its geometry alone.
bool keepsGeometryInPlace(const c10::OperatorHandle& op) {
  auto& schema = op.schema();
  if (schema.arguments().empty() || schema.returns().size() != 1 || op.hasTag(at::Tag::inplace_view)) return false;
  auto *argument = schema.arguments()[0].alias_info(), *result = schema.returns()[0].alias_info();
  return argument && result && argument->isWrite() && *argument == *result && schema.name().back() == '_' &&
         schema.name() != "aten::resize_" && schema.name() != "aten::set_" && schema.name() != "aten::resize_as_";
}

/// The kernels that an operator's results may be computed by without data.
struct Candidates {
  const c10::KernelFunction* meta = nullptr;
  const c10::KernelFunction* composite = nullptr;
};

OperatorFacts::Shape chooseShape(const OperatorFacts& facts, ShapeRule rule, const Candidates& kernels, bool probed) {
  using Route = OperatorFacts::Route;
  if (rule) return {Route::OwnRule, rule};
  if (probed) return {Route::Probe};
  if (kernels.meta) return {Route::HiddenMeta, nullptr, kernels.meta};
  if (kernels.composite) return {Route::Composite, nullptr, kernels.composite};
  if (facts.compositeImplicit) return {Route::Composite, nullptr, facts.compositeImplicit};
  return {Route::PythonMeta};  // also without one: a kernel may be there that the list does not show, and the dispatcher says so if not
}

void chooseShapes(const c10::OperatorHandle& op, OperatorFacts& facts) {
  auto rule = findShapeRule(facts.name);
  Candidates kernels;
  kernels.meta = findKernel(op, c10::DispatchKey::Meta, false);
  const bool cudaKernel = findKernel(op, c10::DispatchKey::CUDA, false) != nullptr;
  facts.hasPythonMeta = findKernel(op, c10::DispatchKey::Meta, true) != nullptr;
  facts.compositeImplicit = kernels.meta ? nullptr : findKernel(op, c10::DispatchKey::CompositeImplicitAutograd, false);
  // A device may have a kernel of its own for what is a composition elsewhere (_fused_rms_norm): there the operator is called as one.
  if ((rule && cudaKernel) || kKeptWhole.count(facts.name)) facts.compositeImplicit = nullptr;
  // A collective's composite kernel starts it, on whatever it is given.
  if (!kCompositeReadsData.count(facts.name) && !facts.collective)
    for (auto key : {c10::DispatchKey::CompositeExplicitAutogradNonFunctional, c10::DispatchKey::CompositeExplicitAutograd})
      if (!kernels.composite) kernels.composite = findKernel(op, key, false);
  // A composite in-place kernel would write to memory that is not there.
  if (!rule && !kernels.meta && kernels.composite && keepsGeometryInPlace(op)) {
    rule = inPlaceRule();
    facts.functional = functionalForm(op);
  }
  const auto probed = kProbed.find(facts.name);
  facts.onCpu = facts.onCuda = chooseShape(facts, rule, kernels, probed != kProbed.end());
  if (facts.onCpu.route != OperatorFacts::Route::Probe || probed->second == OnCuda::AsCpu) return;
  if (probed->second == OnCuda::ThereToo && at::globalContext().hasCUDA()) facts.onCuda.onDevice = true;
  else if (probed->second == OnCuda::RowMajor) facts.onCuda.rowMajor = true;
  else if (kernels.meta || !cudaKernel) facts.onCuda = chooseShape(facts, nullptr, kernels, false);
  else if (facts.hasPythonMeta) facts.onCuda = {OperatorFacts::Route::PythonMeta};
}

template <size_t N>
bool beginsWithOneOf(const std::string& name, const std::string_view (&prefixes)[N]) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Whether no data make the operator raise.
bool isTotal(const std::string& name, const graph::OperatorFacts& facts) {
  if (facts.foreign || facts.effectful) return false;
  if (facts.pointwise) return !facts.random && !beginsWithOneOf(name, kPartialPointwise);
  return facts.view || (facts.factory && !facts.random) || beginsWithOneOf(name, kTotal);
}

bool isForeign(const std::string& name) { return !kOwnNamespaces.count(std::string_view(name).substr(0, name.find("::"))); }

/// Whether what runs is a function in Python.
bool hasPythonKernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  constexpr DispatchKey kKeys[] = {DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::CompositeExplicitAutograd,
                                   DispatchKey::CompositeImplicitAutograd, DispatchKey::CompositeExplicitAutogradNonFunctional};
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](DispatchKey key) { return findKernel(op, key, true); });
}

std::string whyNotCapturable(const c10::OperatorHandle& op, const std::string& name, const graph::OperatorFacts& facts) {
  if (op.hasTag(at::Tag::dynamic_output_shape)) return name + " has a result whose size depends on data";
  if (op.hasTag(at::Tag::data_dependent_output)) return name + " reads data on the host";
  if (op.hasTag(at::Tag::cudagraph_unsafe)) return name + " is tagged cudagraph_unsafe";
  for (std::string_view prefix : kSynchronising)
    if (name.starts_with(prefix)) return name + " may wait for the device";
  if (facts.effectful && !facts.foreign) return name + " has an effect on the host";
  if (facts.python) return name + " runs Python, which a replay would leave out";
  return {};
}

graph::OperatorFacts makeGeneralFacts(const c10::OperatorHandle& op) {
  graph::OperatorFacts facts;
  auto& schema = op.schema();
  const std::string name = operatorName(schema);
  auto& arguments = schema.arguments();
  facts.random = op.hasTag(at::Tag::nondeterministic_seeded);
  facts.foreign = isForeign(name);
  facts.writes = schema.is_mutable();
  // Without results and without writing to an argument, an operator is there for an effect.
  const bool only = schema.returns().empty() && !facts.writes && !name.starts_with("profiler::");
  facts.effectful = facts.foreign || only || kAssertsWithResult.count(name);
  const std::optional<c10::OperatorHandle> writing = facts.foreign ? writingForm(op) : std::nullopt;
  facts.python = facts.foreign && hasPythonKernel(writing.value_or(op));
  facts.repeatable = !facts.foreign && name != "aten::_print";
  auto* alias = arguments.empty() ? nullptr : arguments[0].alias_info();
  const bool sharesFirst = alias && !alias->isWrite() && !schema.returns().empty() && schema.returns()[0].alias_info();
  facts.view = sharesFirst || kHiddenViews.count(name);
  facts.reinterprets = kReinterpreting.count(name) > 0;
  facts.factory = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (mentionsTensor(arguments[i].type())) facts.factory = false;
    if (arguments[i].name() == "dropout_p" || arguments[i].name() == "dropout") facts.dropoutAt = static_cast<int>(i);
  }
  facts.uninitialised = name.starts_with("aten::empty") || name.starts_with("aten::new_empty") || name.starts_with("aten::_empty");
  facts.pointwise = op.hasTag(at::Tag::pointwise) || kPointwise.count(name);
  facts.elementwise = facts.pointwise || kElementwise.count(name);
  const bool hasMode = std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& a) { return a.name() == "rounding_mode"; });
  facts.jumps = hasMode || kJumping.count(schema.name());
  facts.moves = kMoving.count(schema.name()) > 0;
  facts.collective = name.starts_with("_c10d_functional") || name.starts_with("c10d");
  facts.total = isTotal(name, facts);
  facts.checksData = !facts.writes && isCheckingData(name);
  facts.notCapturable = whyNotCapturable(op, name, facts);
  return facts;
}

bool factsByName(const std::string& op, graph::OperatorFacts& facts) {
  const auto dot = op.find('.', std::min(op.size(), op.find("::") + 2));
  auto handle = c10::Dispatcher::singleton().findSchema({op.substr(0, dot), dot == std::string::npos ? std::string() : op.substr(dot + 1)});
  if (handle) facts = makeGeneralFacts(*handle);
  return handle.has_value();
}

[[maybe_unused]] const bool kSourceIsSet = (graph::setOperatorFactsSource(&factsByName), true);

OperatorFacts makeFacts(const c10::OperatorHandle& op) {
  OperatorFacts facts;
  auto& schema = op.schema();
  facts.name = operatorName(schema);
  static_cast<graph::OperatorFacts&>(facts) = graph::factsOf(facts.name);
  auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "device") facts.devicePosition = static_cast<int>(i);
    facts.hasOut |= arguments[i].is_out();
    if (arguments[i].name() == "pin_memory") facts.pinPosition = static_cast<int>(i);
  }
  for (auto& r : schema.returns()) (mentionsTensor(r.type()) ? facts.returnsTensor : facts.returnsObject) = true;
  facts.warning = kernelWarningOf(schema.name());
  facts.dataDependent = op.hasTag(at::Tag::data_dependent_output);
  facts.dynamicShape = op.hasTag(at::Tag::dynamic_output_shape) || facts.name == "aten::_unique";  // which has no tag
  facts.takesAnyNumber = kTakingAnyNumber.count(schema.name()) > 0;
  chooseShapes(op, facts);
  return facts;
}

}  // namespace

namespace {

/// Hears of operators that end: others may get their names, and their places in memory.
class Ends final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    if (op.hasSchema()) graph::forgetFacts(operatorName(op.schema()));
    ++count;
  }
  static inline std::atomic<uint64_t> count{0};
};

struct Known {
  OperatorFacts facts;
  uint64_t ends = 0;  ///< how many operators had ended
};

}  // namespace

const OperatorFacts& factsOf(const c10::OperatorHandle& op) {
  static const auto* heard = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Ends>()));
  static_cast<void>(heard);
  thread_local std::unordered_map<const void*, Known> cache;
  auto [it, isNew] = cache.try_emplace(&definitionOf(op));
  Known& known = it->second;
  const bool mayBeAnother = known.facts.foreign && known.ends != Ends::count;
  if (isNew || mayBeAnother || known.facts.onCpu.route == OperatorFacts::Route::None) known = {makeFacts(op), Ends::count};
  return known.facts;
}

}  // namespace fusebox::trace
