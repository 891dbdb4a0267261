// The table of C callables: which rule describes which function.
#include "engine/capture/rules/call_rules.h"

#include <cstring>

#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

/// PyMethodDef of a C function or method, which a bound and an unbound one share; the function of a Python method; the object
/// itself for everything else.
const void* identityOf(PyObject* callable) {
  if (PyMethod_Check(callable)) return PyMethod_GET_FUNCTION(callable);
  if (PyCFunction_Check(callable)) return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  if (Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyClassMethodDescr_Type)
    return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
  return callable;
}

/// The rules by callable. Rows whose module is not imported yet are looked for again when more modules have been.
class RuleTable {
 public:
  RuleTable() {
    for (RuleRows rows : {builtinRules(), containerRules(), typeRules(), iteratorRules(), torchRules(), outputRules()})
      for (size_t i = 0; i < rows.count; ++i) missing_.push_back(&rows.first[i]);
    rules_.emplace(lazyMethod("send"), generatorSend);
    rules_.emplace(lazyMethod("throw"), generatorThrow);
    rules_.emplace(lazyMethod("close"), generatorClose);
  }

  CallRule find(PyObject* callable) {
    const Py_ssize_t modules = PyDict_Size(PyImport_GetModuleDict());
    if (modules != modules_ && !missing_.empty()) resolve();
    modules_ = modules;
    auto it = rules_.find(identityOf(callable));
    return it == rules_.end() ? nullptr : it->second;
  }

 private:
  void resolve() {
    std::erase_if(missing_, [this](const RuleRow* row) {
      PyObject* found = torchObject(row->name);
      if (found) rules_.emplace(identityOf(found), row->rule);
      return found != nullptr;
    });
  }

  std::unordered_map<const void*, CallRule> rules_;
  std::vector<const RuleRow*> missing_;
  Py_ssize_t modules_ = -1;
};

/// Builtin types whose methods read nothing but immutable values.
bool isImmutableOwner(PyTypeObject* type) {
  return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyBytes_Type ||
         type == &PyComplex_Type || type == &PyTuple_Type || type == &PyRange_Type || type == &PySlice_Type;
}

/// Modules of C functions that compute from their arguments alone.
bool isPureModule(const char* name) {
  static const std::unordered_set<std::string_view> modules = {"math", "_operator", "cmath", "_bisect", "_struct"};
  return modules.count(name) > 0;
}

const char* moduleOf(PyObject* function) {
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(function)->m_module;
  return module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
}

bool startsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

/// Functions of torch._C that read libtorch's state or the type of their arguments; the GlobalState guard covers the state.
bool isStateQuery(std::string_view name) {
  for (std::string_view prefix : {"_get_", "get_", "is_", "_is_", "_has_", "has_", "_are_", "_len_"})
    if (startsWith(name, prefix)) return true;
  static const std::unordered_set<std::string_view> others = {
      "_log_api_usage_once", "_to_functionality_key", "_dispatch_keys", "_parse_dispatch_key", "_disabled_torch_function_impl",
      "_should_allow_numbers_as_tensors", "_will_engine_execute_node", "_nested_tensor_layout", "_infer_size", "_add_docstr",
      "_jit_internal", "default_generator", "_group_tensors_by_device_and_dtype"};
  return others.count(name) > 0;
}

}  // namespace

CallRule ruleOf(PyObject* callable) {
  static auto* table = new RuleTable();
  if (CallRule rule = table->find(callable)) return rule;
  if (Py_TYPE(callable) == &PyWrapperDescr_Type) return slotRuleOf(callable);
  if (Py_TYPE(callable) == &PyMethodDescr_Type && isImmutableOwner(PyDescr_TYPE(callable))) return rulePure;
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    if (self && isImmutableOwner(Py_TYPE(self))) return rulePure;
    if (self && PyType_Check(self) && isImmutableOwner(reinterpret_cast<PyTypeObject*>(self))) return rulePure;
    if (isPureModule(moduleOf(callable))) return rulePure;
  }
  return nullptr;
}

bool isTorchBinding(PyObject* callable) {
  if (Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) {
    PyTypeObject* owner = PyDescr_TYPE(callable);
    return PyType_IsSubtype(tensorType(), owner) && owner != &PyBaseObject_Type;
  }
  const char* typeName = Py_TYPE(callable)->tp_name;
  if (std::strcmp(typeName, "OpOverload") == 0 || std::strcmp(typeName, "OpOverloadPacket") == 0) return true;
  if (!PyCFunction_Check(callable)) return false;
  auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
  PyObject* self = function->m_self;
  const std::string_view name = function->m_ml->ml_name;
  if (self && isTensorObject(self)) return true;
  if (self && PyType_Check(self)) {
    const std::string_view owner = reinterpret_cast<PyTypeObject*>(self)->tp_name;
    return startsWith(owner, "torch._C._VariableFunctions");
  }
  if (self && PyModule_Check(self)) {
    const char* text = PyModule_GetName(self);
    const std::string_view module = text ? text : (PyErr_Clear(), "");
    if (module == "torch._C._nn" || module == "torch._C._linalg" || module == "torch._C._fft" || module == "torch._C._special") return true;
    if (module == "torch._C") return isStateQuery(name);
  }
  // pybind functions of torch._C: a capsule as self.
  const std::string_view module = moduleOf(callable);
  if (startsWith(module, "torch._C")) return isStateQuery(name);
  return false;
}

bool isTrustedFunction(PyObject* function) {
  static const std::unordered_set<std::string_view> modules = {
      "torch._tensor", "torch.nn.functional", "torch.functional", "torch._jit_internal", "torch.overrides", "torch._VF",
      "torch.nn.init", "torch._lobpcg", "torch.nn.grad", "torch._linalg_utils"};
  PyObject* globals = PyFunction_GetGlobals(function);
  PyObject* name = PyDict_GetItem(globals, internedName("__name__"));
  return name && PyUnicode_Check(name) && modules.count(PyUnicode_AsUTF8(name)) > 0;
}

PyRef rulePure(Evaluation& e, PyObject* callable, const CallArguments& a) {
  // Objects whose Python code would be called back are left to a break.
  return e.callReal(callable, a);
}

PyRef ruleMutate(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return a.positional == 0 ? e.callRaw(callable, a) : e.mutate(callable, a);
}

}  // namespace fusebox::capture
