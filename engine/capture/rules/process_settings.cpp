#include "engine/capture/rules/process_settings.h"

#include <string_view>
#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/global_state.h"
#include "engine/capture/rules/state_queries.h"

namespace fusebox::capture {

namespace {

/// One value that a function of torch._C sets, and who tells it. `asked`: how many arguments before it say which one it is.
struct SettingPart {
  const char *setter, *getter;
  int position = 0;
  const char* keyword = nullptr;
  bool otherwise = false;  ///< what is meant where it is not given, of a truth value
  int asked = 0;
};

constexpr SettingPart kParts[] = {
    {"_set_deterministic_algorithms", "_get_deterministic_algorithms", 0, "mode"},
    {"_set_deterministic_algorithms", "_get_deterministic_algorithms_warn_only", 1, "warn_only"},
    {"_set_deterministic_fill_uninitialized_memory", "_get_deterministic_fill_uninitialized_memory"},
    {"_set_cudnn_enabled", "_get_cudnn_enabled"},
    {"_set_cudnn_benchmark", "_get_cudnn_benchmark"},
    {"_set_cudnn_deterministic", "_get_cudnn_deterministic"},
    {"_set_cudnn_allow_tf32", "_get_cudnn_allow_tf32"},
    {"_cuda_set_cudnn_benchmark_limit", "_cuda_get_cudnn_benchmark_limit"},
    {"_set_mkldnn_enabled", "_get_mkldnn_enabled"},
    {"_set_mkldnn_deterministic", "_get_mkldnn_deterministic"},
    {"_set_onednn_allow_tf32", "_get_onednn_allow_tf32"},
    {"_set_nnpack_enabled", "_get_nnpack_enabled"},
    {"_set_cublas_allow_tf32", "_get_cublas_allow_tf32"},
    {"_set_cublas_allow_fp16_accumulation", "_get_cublas_allow_fp16_accumulation"},
    {"_set_cublas_allow_fp16_reduced_precision_reduction", "_get_cublas_allow_fp16_reduced_precision_reduction"},
    {"_set_cublas_allow_bf16_reduced_precision_reduction", "_get_cublas_allow_bf16_reduced_precision_reduction"},
    {"_set_cpu_allow_fp16_reduced_precision_reduction", "_get_cpu_allow_fp16_reduced_precision_reduction"},
    {"_set_math_sdp_allow_fp16_bf16_reduction", "_get_math_sdp_allow_fp16_bf16_reduction"},
    {"_set_float32_matmul_precision", "_get_float32_matmul_precision"},
    {"_set_fp32_precision_setter", "_get_fp32_precision_getter", 2, nullptr, false, 2},
    {"_set_linalg_preferred_backend", "_get_linalg_preferred_backend"},
    {"_set_blas_preferred_backend", "_get_blas_preferred_backend"},
    {"_set_default_dtype", "get_default_dtype"},
    {"_set_qengine", "_get_qengine"},
    {"_set_warnAlways", "_get_warnAlways"},
    {"_set_backcompat_broadcast_warn", "_get_backcompat_broadcast_warn"},
    {"_set_backcompat_keepdim_warn", "_get_backcompat_keepdim_warn"},
    {"_set_multithreading_enabled", "_is_multithreading_enabled"},
    {"_set_view_replay_enabled", "_is_view_replay_enabled"},
    {"set_anomaly_enabled", "is_anomaly_enabled", 0, "enabled"},
    {"set_anomaly_enabled", "is_anomaly_check_nan_enabled", 1, "check_nan", true},
    {"set_num_threads", "get_num_threads"},
    {"_cuda_setDevice", "_cuda_getDevice"},
};

const std::vector<const SettingPart*>* partsOf(PyObject* callable) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, std::vector<const SettingPart*>>;
    for (const SettingPart& part : kParts) (*t)[part.setter].push_back(&part);
    return t;
  }();
  const auto it = table->find(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name);
  return it == table->end() ? nullptr : &it->second;
}

/// Whether a setting is told to be what the call gives it, which is guarded, and so is another one: what breaks here need not break in the next call.
bool isSetAlready(Evaluation& e, const SettingPart& part, const CallArguments& a) {
  PyObject* getter = torchObject((std::string("torch._C.") + part.getter).c_str());
  if (!getter) return false;
  std::vector<PyObject*> which(a.args.begin(), a.args.begin() + std::min(static_cast<size_t>(part.asked), a.positional));
  PyRef now = guardAnswer(e, getter, which, part.getter);
  if (!now) return clearError(), false;
  const auto position = static_cast<size_t>(part.position);
  PyObject* given = position < a.positional ? a.args[position] : part.keyword ? a.keyword(part.keyword) : nullptr;
  if (!given) given = part.otherwise ? Py_True : Py_False;
  PyRef wanted = e.plainNumber(given, part.setter);
  if (!Py_IS_TYPE(wanted.get(), Py_TYPE(now.get()))) return false;
  const int same = PyObject_RichCompareBool(now.get(), wanted.get(), Py_EQ);
  return same < 0 ? (clearError(), false) : same > 0;
}

PyRef ruleSetting(Evaluation& e, PyObject* callable, const CallArguments& a) {
  bool same = true;
  for (const SettingPart* part : *partsOf(callable)) same = isSetAlready(e, *part, a) && same;
  if (same) {
    // Some settings say less than what they change.
    const GlobalState before = GlobalState::current();
    PyRef done = e.callRaw(callable, a);
    if (!done || GlobalState::current() == before) return done;
  }
  e.breakHere("process setting", std::string("torch._C.") + partsOf(callable)->front()->setter + " changes a setting of the process",
              "Set it outside of the compiled function.");
}

}  // namespace

CallRule processSettingOf(PyObject* callable) {
  return PyCFunction_Check(callable) && partsOf(callable) && isOfTorchC(callable) ? ruleSetting : nullptr;
}

}  // namespace fusebox::capture
