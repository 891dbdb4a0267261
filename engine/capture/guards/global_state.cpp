#include "engine/capture/guards/global_state.h"

#include <map>
#include <mutex>
#include <vector>
#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/capture/evaluation/saved_tensor_hooks.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/trace/current_device.h"

namespace fusebox::capture {
namespace {

struct Flag {
  const char* name;
  bool (*read)();
};

at::Context& context() { return at::globalContext(); }

/// torch.set_flush_denormal(): a mode of this thread's vector unit.
bool flushesDenormals() {
#if defined(__x86_64__)
  constexpr unsigned kFlush = 0x8040;
  return (_mm_getcsr() & kFlush) != 0;
#else
  return false;
#endif
}

constexpr Flag kFlags[] = {
    {"grad_mode", [] { return c10::AutogradState::get_tls_state().get_grad_mode(); }},
    {"inference_mode", [] { return c10::AutogradState::get_tls_state().get_inference_mode(); }},
    {"forward_grad_mode", [] { return c10::AutogradState::get_tls_state().get_fw_grad_mode(); }},
    {"view_replay", [] { return c10::AutogradState::get_tls_state().get_view_replay_enabled(); }},
    {"autocast (cpu)", [] { return at::autocast::is_autocast_enabled(at::kCPU); }},
    {"autocast (cuda)", [] { return at::autocast::is_autocast_enabled(at::kCUDA); }},
    {"autocast cache", [] { return at::autocast::is_autocast_cache_enabled(); }},
    {"deterministic algorithms", [] { return context().deterministicAlgorithms(); }},
    {"deterministic warn only", [] { return context().deterministicAlgorithmsWarnOnly(); }},
    {"deterministic fill", [] { return context().deterministicFillUninitializedMemory(); }},
    {"cudnn enabled", [] { return context().userEnabledCuDNN(); }},
    {"cudnn benchmark", [] { return context().benchmarkCuDNN(); }},
    {"cudnn deterministic", [] { return context().deterministicCuDNN(); }},
    {"mkldnn enabled", [] { return context().userEnabledMkldnn(); }},
    {"mkldnn deterministic", [] { return context().deterministicMkldnn(); }},
    {"nnpack enabled", [] { return context().userEnabledNNPACK(); }},
    {"flash attention", [] { return context().userEnabledFlashSDP(); }},
    {"memory efficient attention", [] { return context().userEnabledMemEfficientSDP(); }},
    {"math attention", [] { return context().userEnabledMathSDP(); }},
    {"cudnn attention", [] { return context().userEnabledCuDNNSDP(); }},
    {"overrideable attention", [] { return context().userEnabledOverrideableSDP(); }},
    {"denormals flushed", flushesDenormals},
    {"reduced precision reduction", [] { return context().allowFP16ReductionCPU(); }},
};
static_assert(std::size(kFlags) <= 32);

const char* truth(bool b) { return b ? "True" : "False"; }

/// What decides how precise float32 operators are, by the interface that set_float32_matmul_precision() writes to as well. Kinds that say nothing
/// themselves follow their backend, and that the generic one: libtorch answers with what holds, so those two need not be asked. A program
/// that reads them has a guard of its own (rules/state_queries.cpp).
struct Float32Kind {
  const char* name;
  at::Float32Backend backend;
  at::Float32Op op;
};

constexpr Float32Kind kFloat32Kinds[] = {
    {"fp32_precision (cuda matmul)", at::Float32Backend::CUDA, at::Float32Op::MATMUL},
    {"fp32_precision (cudnn conv)", at::Float32Backend::CUDA, at::Float32Op::CONV},
    {"fp32_precision (cudnn rnn)", at::Float32Backend::CUDA, at::Float32Op::RNN},
    {"fp32_precision (mkldnn matmul)", at::Float32Backend::MKLDNN, at::Float32Op::MATMUL},
    {"fp32_precision (mkldnn conv)", at::Float32Backend::MKLDNN, at::Float32Op::CONV},
    {"fp32_precision (mkldnn rnn)", at::Float32Backend::MKLDNN, at::Float32Op::RNN},
};
static_assert(std::size(kFloat32Kinds) <= 16);

/// Why hooks on saved tensors are forbidden in this thread, as a number of its own in this process: 2 and above.
int16_t reasonNumber() {
  static auto* known = new std::map<std::string, int16_t>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return known->emplace(at::SavedTensorDefaultHooks::get_disabled_error_message().value_or(""), static_cast<int16_t>(2 + known->size())).first->second;
}

/// One thing that two states do not agree on.
struct Difference {
  std::string what, found, was;
};

}  // namespace

GlobalState GlobalState::current() {
  GlobalState s;
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  s.includedKeys = keys.included_.raw_repr();
  // Names of dimensions, which backward switches off and captured tensors do not have.
  s.excludedKeys = keys.excluded_.remove(c10::DispatchKey::Named).raw_repr();
  for (size_t i = 0; i < std::size(kFlags); ++i) s.flags |= static_cast<uint32_t>(kFlags[i].read()) << i;
  s.defaultDtype = static_cast<int8_t>(c10::get_default_dtype_as_scalartype());
  s.autocastCpuDtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCPU));
  s.autocastCudaDtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCUDA));
  for (size_t i = 0; i < std::size(kFloat32Kinds); ++i)
    s.float32Precisions |= static_cast<uint32_t>(context().float32Precision(kFloat32Kinds[i].backend, kFloat32Kinds[i].op)) << (2 * i);
  s.functionModes = static_cast<int32_t>(at::impl::PythonTorchFunctionTLS::stack_len());
  if (s.functionModes > 0) {
    // Operators that make tensors are given the device by torch's own code, which capture runs as it is.
    if (const auto device = defaultDeviceMode()) {
      s.defaultDevice = (static_cast<int32_t>(device->type()) + 1) << 8 | static_cast<uint8_t>(device->index());
      --s.functionModes;
    }
  }
  s.dispatchModes = static_cast<int32_t>(c10::impl::TorchDispatchModeTLS::stack_len());
  s.functionDisabled = static_cast<int32_t>(at::impl::PythonTorchFunctionTLS::get_disabled_state());
  s.savedTensorHooks = at::SavedTensorDefaultHooks::is_enabled() ? static_cast<int16_t>(savedTensorHooksSet()) : reasonNumber();
  s.cudaDevice = trace::currentCudaDevice();
  return s;
}

bool GlobalState::operator==(const GlobalState& o) const {
  static_assert(std::has_unique_object_representations_v<GlobalState>);
  return std::memcmp(this, &o, sizeof(GlobalState)) == 0;
}

namespace {

std::vector<Difference> differences(const GlobalState& expected, const GlobalState& found) {
  std::vector<Difference> list;
  const auto append = [&](const std::string& what, const std::string& is, const std::string& was) {
    list.push_back({what, is, was});
  };
  for (size_t i = 0; i < std::size(kFlags); ++i)
    if ((expected.flags ^ found.flags) >> i & 1) append(kFlags[i].name, truth(found.flags >> i & 1), truth(expected.flags >> i & 1));
  auto dtype = [&](const char* what, int8_t was, int8_t is) {
    if (was != is) append(what, c10::toString(static_cast<c10::ScalarType>(is)), c10::toString(static_cast<c10::ScalarType>(was)));
  };
  dtype("default dtype", expected.defaultDtype, found.defaultDtype);
  dtype("autocast dtype (cpu)", expected.autocastCpuDtype, found.autocastCpuDtype);
  dtype("autocast dtype (cuda)", expected.autocastCudaDtype, found.autocastCudaDtype);
  auto number = [&](const char* what, int32_t was, int32_t is) {
    if (was != is) append(what, std::to_string(is), std::to_string(was));
  };
  for (size_t i = 0; i < std::size(kFloat32Kinds); ++i) {
    const auto side = [i](const GlobalState& s) { return at::precision2str(static_cast<at::Float32Precision>(s.float32Precisions >> (2 * i) & 3)); };
    if (side(expected) != side(found)) append(kFloat32Kinds[i].name, side(found), side(expected));
  }
  const auto deviceName = [](const GlobalState& s) {
    if (s.defaultDevice == 0) return std::string("none");
    return c10::Device(static_cast<c10::DeviceType>((s.defaultDevice >> 8) - 1), static_cast<c10::DeviceIndex>(s.defaultDevice & 0xFF)).str();
  };
  if (expected.defaultDevice != found.defaultDevice) append("default device", deviceName(found), deviceName(expected));
  number("torch function modes", expected.functionModes, found.functionModes);
  number("torch dispatch modes", expected.dispatchModes, found.dispatchModes);
  number("torch function disabled", expected.functionDisabled, found.functionDisabled);
  number("saved tensor hooks", expected.savedTensorHooks, found.savedTensorHooks);
  number("current CUDA device", expected.cudaDevice, found.cudaDevice);
  if (list.empty() && !(expected == found)) {
    const auto text = [](const GlobalState& s) {
      return c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, s.includedKeys)) + " without " +
             c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, s.excludedKeys));
    };
    append("dispatch keys", text(found), text(expected));
  }
  return list;
}

}  // namespace

std::string GlobalState::difference(const GlobalState& found) const {
  std::string text;
  for (const Difference& d : differences(*this, found)) text += (text.empty() ? "" : ", ") + d.what + ": " + d.found + ", was " + d.was;
  return text;
}

std::string GlobalState::ownSide(const GlobalState& found) const {
  std::string text;
  for (const Difference& d : differences(*this, found)) text += (text.empty() ? "" : ", ") + d.what + ": " + d.was;
  return text;
}

const char* GlobalState::refusal() const {
  if (dispatchModes) return "a torch dispatch mode is active";
  if (functionDisabled == static_cast<int32_t>(at::impl::ALL_DISABLED)) return nullptr;
  const c10::DispatchKeySet included(c10::DispatchKeySet::RAW, includedKeys);
  if (included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode)) return "inside a functorch transform";
  if (included.has(c10::DispatchKey::Functionalize)) return "functionalisation is active";
  if (included.has(c10::DispatchKey::Fake)) return "tracing is active";
  if (torch::autograd::ForwardADLevel::try_get_by_idx(0)) return "forward-mode differentiation is active";
  return nullptr;
}

}  // namespace fusebox::capture
