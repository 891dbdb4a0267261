#include "engine/capture/rules/state_queries.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/capture/rules/kept_predicates.h"

namespace fusebox::capture {

namespace {

/// What the answer of a query depends on.
enum class Answer : uint8_t {
  Arguments,  ///< types and constants that it is given
  Process,    ///< how torch was built, the machine
  State,      ///< what the GlobalState guard compares, and what the program did since
  Asked,      ///< a state of its own: asked again at every check
  OfGroup,    ///< a process group, of which it never changes
};

struct Query {
  const char* name;
  Answer answer;
};

constexpr Query kQueries[] = {
    {"_has_torch_function", Answer::Arguments}, {"_has_torch_function_unary", Answer::Arguments},
    {"_has_torch_function_variadic", Answer::Arguments}, {"_disabled_torch_function_impl", Answer::Arguments},
    {"_infer_size", Answer::Arguments}, {"_to_functionality_key", Answer::Arguments}, {"_parse_dispatch_key", Answer::Arguments},
    {"_should_allow_numbers_as_tensors", Answer::Arguments}, {"_group_tensors_by_device_and_dtype", Answer::Arguments},
    {"_get_schema", Answer::Arguments}, {"_get_operation_overload", Answer::Arguments}, {"is_valid_var_name", Answer::Arguments},
    // functorch's: of tensors, and of levels that the program entered itself, since none may be entered where capture begins
    {"is_batchedtensor", Answer::State}, {"is_legacy_batchedtensor", Answer::State}, {"is_gradtrackingtensor", Answer::State},
    {"is_functionaltensor", Answer::State}, {"is_functorch_wrapped_tensor", Answer::State}, {"is_dead_tensor_wrapper", Answer::State},
    {"get_unwrapped", Answer::State}, {"get_interpreter_stack", Answer::State}, {"get_dynamic_layer_stack_depth", Answer::State},
    {"get_inplace_requires_grad_allowed", Answer::State}, {"get_single_level_autograd_function_allowed", Answer::State},
    {"_are_functorch_transforms_active", Answer::State}, {"_is_vmap_fallback_enabled", Answer::Asked},

    {"_has_distributed", Answer::Process}, {"_get_cpu_capability", Answer::Process}, {"_is_flash_attention_available", Answer::Process},
    {"_is_autocast_available", Answer::Process}, {"_get_accelerator", Answer::Process}, {"_is_nvshmem_available", Answer::Process},
    {"is_available", Answer::Process},

    {"get_default_dtype", Answer::State}, {"is_grad_enabled", Answer::State}, {"_is_fwd_grad_enabled", Answer::State},
    {"is_inference_mode_enabled", Answer::State}, {"is_autocast_enabled", Answer::State}, {"get_autocast_dtype", Answer::State},
    {"_is_any_autocast_enabled", Answer::State}, {"is_autocast_cpu_enabled", Answer::State}, {"get_autocast_cpu_dtype", Answer::State},
    {"get_autocast_gpu_dtype", Answer::State}, {"is_autocast_cache_enabled", Answer::State}, {"_is_view_replay_enabled", Answer::State},
    {"_get_deterministic_algorithms", Answer::State}, {"_get_deterministic_algorithms_warn_only", Answer::State},
    {"_get_deterministic_fill_uninitialized_memory", Answer::State}, {"_get_cudnn_enabled", Answer::State},
    {"_get_cudnn_benchmark", Answer::State}, {"_get_cudnn_deterministic", Answer::State}, {"_get_mkldnn_enabled", Answer::State},
    {"_get_mkldnn_deterministic", Answer::State}, {"_get_nnpack_enabled", Answer::State}, {"_get_flash_sdp_enabled", Answer::State},
    {"_get_mem_efficient_sdp_enabled", Answer::State}, {"_get_math_sdp_enabled", Answer::State}, {"_get_cudnn_sdp_enabled", Answer::State},
    {"_get_cpu_allow_fp16_reduced_precision_reduction", Answer::State}, {"_is_torch_function_enabled", Answer::State},
    {"_is_torch_function_all_disabled", Answer::State}, {"_is_torch_function_mode_enabled", Answer::State},
    {"_get_torch_function_state", Answer::State}, {"_len_torch_dispatch_stack", Answer::State},

    {"get_num_threads", Answer::Asked}, {"get_num_interop_threads", Answer::Asked}, {"_is_multithreading_enabled", Answer::Asked},
    {"is_anomaly_enabled", Answer::Asked}, {"is_anomaly_check_nan_enabled", Answer::Asked}, {"_get_warnAlways", Answer::Asked},
    {"_get_float32_matmul_precision", Answer::Asked}, {"_get_fp32_precision_getter", Answer::Asked}, {"_get_cudnn_allow_tf32", Answer::Asked},
    {"_get_cublas_allow_tf32", Answer::Asked}, {"_get_onednn_allow_tf32", Answer::Asked},
    {"_get_cublas_allow_fp16_reduced_precision_reduction", Answer::Asked},
    {"_get_cublas_allow_bf16_reduced_precision_reduction", Answer::Asked}, {"_get_cublas_allow_fp16_accumulation", Answer::Asked},
    {"_get_math_sdp_allow_fp16_bf16_reduction", Answer::Asked}, {"_get_overrideable_sdp_enabled", Answer::State},
    {"_get_fa3_sdp_enabled", Answer::Asked}, {"_get_sdp_priority_order", Answer::Asked}, {"_get_linalg_preferred_backend", Answer::Asked},
    {"_get_blas_preferred_backend", Answer::Asked}, {"_get_rocm_fa_preferred_backend", Answer::Asked}, {"_get_miopen_immediate", Answer::Asked},
    {"_get_sm_carveout_experimental", Answer::Asked}, {"_get_privateuse1_backend_name", Answer::Asked}, {"_get_default_device", Answer::Asked},
    {"_get_qengine", Answer::Asked}, {"_is_xnnpack_enabled", Answer::Asked}, {"_get_backcompat_broadcast_warn", Answer::Asked},
    {"_get_backcompat_keepdim_warn", Answer::Asked}, {"_get_cpp_backtrace", Answer::Asked}, {"_get_dispatch_mode", Answer::Asked},
    {"_get_graph_executor_optimize", Answer::Asked}, {"_get_autograd_fallback_mode", Answer::Asked}, {"_get_thread_name", Answer::Asked},
    {"is_autocast_xla_enabled", Answer::Asked}, {"is_autocast_ipu_enabled", Answer::Asked}, {"get_autocast_xla_dtype", Answer::Asked},
    {"get_autocast_ipu_dtype", Answer::Asked}, {"_is_key_in_tls", Answer::Asked}, {"_is_opaque_type_registered", Answer::Asked},
    {"_get_dtensor_allow_implicit_replication", Answer::Asked}, {"_profiler_enabled", Answer::Asked},
    {"_resolve_process_group", Answer::Asked}, {"size", Answer::OfGroup}, {"rank", Answer::OfGroup},
    {"_cuda_isInBadFork", Answer::Asked}, {"_cuda_getDevice", Answer::Asked}, {"_cuda_getDeviceCount", Answer::Process},
    {"_cuda_get_cudnn_benchmark_limit", Answer::Asked}, {"_cuda_isCurrentStreamCapturing", Answer::Asked},
};

const Query* queryOf(PyObject* callable) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, const Query*>;
    for (const Query& q : kQueries) t->emplace(q.name, &q);
    return t;
  }();
  auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
  const auto it = table->find(function->m_ml->ml_name);
  return it == table->end() ? nullptr : it->second;
}

/// Constants, and what pybind11 makes of enumerations, which are one object a value.
bool sameAnswer(PyObject* a, PyObject* b) {
  if (a == b || sameConstant(a, b)) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || isConstantValue(a)) return false;
  if (PyList_CheckExact(a)) {
    bool same = PyList_GET_SIZE(a) == PyList_GET_SIZE(b);
    for (Py_ssize_t i = 0; same && i < PyList_GET_SIZE(a); ++i) same = sameConstant(PyList_GET_ITEM(a, i), PyList_GET_ITEM(b, i));
    return same;
  }
  PyRef x = PyRef::steal(PyNumber_Long(a)), y = PyRef::steal(PyNumber_Long(b));
  return x && y && sameConstant(x.get(), y.get());
}

bool isProcessGroup(PyObject* o) {
  PyObject* type = torchObject("torch._C._distributed_c10d.ProcessGroup");
  return type && PyType_Check(type) && PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(type));
}

bool isAnswer(PyObject* o) {
  if (isConstantValue(o) || isProcessGroup(o)) return true;
  if (PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      if (!isConstantValue(PyList_GET_ITEM(o, i))) return false;
    return true;
  }
  PyTypeObject* type = Py_TYPE(o);
  PyRef members = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__members__"));
  clearError();
  return members && PyDict_Check(members.get()) && type->tp_as_number && type->tp_as_number->nb_int;
}

/// Questions about one kind of device, of which GlobalState knows the CPU's and CUDA's answers.
bool isOfOtherDevice(const CallArguments& a) {
  if (a.positional != 1 || !PyUnicode_CheckExact(a.args[0])) return false;
  return PyUnicode_CompareWithASCIIString(a.args[0], "cpu") != 0 && PyUnicode_CompareWithASCIIString(a.args[0], "cuda") != 0;
}

bool isOrHoldsSymbol(PyObject* o) {
  bool found = isSymbolicNumber(o);
  for (Py_ssize_t i = 0; !found && PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); ++i) found = isSymbolicNumber(PyTuple_GET_ITEM(o, i));
  return found;
}

PyRef ruleQuery(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const Query& query = *queryOf(callable);
  if (query.answer == Answer::OfGroup) {
    if (a.total() != 1 || !isProcessGroup(a.args[0])) e.breakHere("unsupported call", std::string("torch._C: ") + query.name + " is a C function that no rule describes");
    return e.callReal(callable, a);
  }
  // What the mode of set_default_device() would do with a function of torch in Python is to call it again.
  std::optional<WithoutCpuMode> noMode;
  if (std::string_view(query.name).starts_with("_has_torch_function")) noMode.emplace();
  // A nested tensor's class is asked for operators alone.
  if (std::string_view(query.name).starts_with("_has_torch_function") && std::any_of(a.args.begin(), a.args.begin() + a.total(), holdsNested)) {
    const auto asks = [](PyObject* o) { return asksItsClass(o); };
    const bool any = std::any_of(a.args.begin(), a.args.begin() + a.total(), [&](PyObject* o) {
      return asks(o) || ((PyTuple_Check(o) || PyList_Check(o)) && std::any_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o), asks));
    });
    return PyRef::borrow(any || e.functionModes().isActive() ? Py_True : Py_False);
  }
  // It asks for types alone, of which C code knows more than of the evaluator's ints.
  if (std::string_view(query.name).starts_with("_has_torch_function") && std::any_of(a.args.begin(), a.args.begin() + a.total(), [](PyObject* o) { return isOrHoldsSymbol(o) || holdsSubclass(o) || asksItsClass(o); }))
    return e.callRaw(callable, a);
  if (query.answer != Answer::Asked && !isOfOtherDevice(a)) return e.callReal(callable, a);
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.positional);
  std::vector<PyRef> plain;
  for (PyObject*& argument : args) argument = plain.emplace_back(e.plainNumber(argument, "a question about the process")).get();
  for (size_t i = 0; i < a.total(); ++i)
    if (i >= a.positional || !isConstantValue(args[i]))
      e.breakHere("state query", std::string("torch._C.") + query.name + " is asked with arguments that are not constants");
  return guardAnswer(e, callable, args, query.name);
}

}  // namespace

/// Functions of torch._C and its submodules: the module is their `self`, or they say which it is (pybind11's).
bool isOfTorchC(PyObject* callable) {
  auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
  PyObject* name = function->m_self && PyModule_Check(function->m_self) ? PyModule_GetNameObject(function->m_self) : Py_XNewRef(function->m_module);
  PyRef keep = PyRef::steal(name);
  const char* text = name && PyUnicode_Check(name) ? utf8Of(name) : nullptr;
  if (!text) clearError();
  return text && (std::strcmp(text, "torch._C") == 0 || std::strncmp(text, "torch._C.", 9) == 0);
}

bool answersAsBefore(PyObject* callable, PyObject* expected) {
  PyRef now = PyRef::steal(PyObject_CallObject(callable, PyTuple_GET_ITEM(expected, 0)));
  bool same = now && sameAnswer(now.get(), PyTuple_GET_ITEM(expected, 1));
  if (PyErr_Occurred()) {
    clearError();
    same = false;
  }
  return same;
}

PyRef guardAnswer(Evaluation& e, PyObject* callable, const std::vector<PyObject*>& args, const char* text) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  for (size_t i = 0; i < args.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(args[i]).release());
  PyRef answer = PyRef::steal(PyObject_CallObject(callable, tuple.get()));
  if (!answer) return {};
  if (!isAnswer(answer.get())) e.breakHere("state query", std::string(text) + " is read, which cannot be guarded");
  PyRef expected = PyRef::steal(PyTuple_Pack(2, tuple.get(), answer.get()));
  e.guardCustom(e.sources().pinned(callable, Why::Process), answersAsBefore, expected.get(), text);
  if (!isConstantValue(answer.get()) && !PyList_CheckExact(answer.get())) e.pin(answer.get(), Why::Immutable);
  return answer;
}

CallRule stateQueryOf(PyObject* callable) {
  return PyCFunction_Check(callable) && queryOf(callable) && isOfTorchC(callable) ? ruleQuery : nullptr;
}

}  // namespace fusebox::capture
