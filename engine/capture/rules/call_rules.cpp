// The table of C callables: which rule describes which function.
#include "engine/capture/rules/call_rules.h"

#include <string_view>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/process_settings.h"
#include "engine/capture/rules/state_queries.h"

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

/// Whether a Python function that was found under a dotted name is that library's: its code lives in the package of the name.
bool isOriginal(PyObject* found, std::string_view dotted) {
  if (PyMethod_Check(found)) found = PyMethod_GET_FUNCTION(found);
  if (!PyFunction_Check(found)) return true;
  PyObject* globals = PyFunction_GET_GLOBALS(found);
  return isLibraryNamespace(globals, dotted.starts_with("torch.") ? Library::Torch : Library::Standard) ||
         packageOf(globals) == dotted.substr(0, dotted.find('.'));
}

/// The rules by callable. Rows whose module is not imported yet are looked for again when more modules have been.
class RuleTable {
 public:
  RuleTable() {
    for (RuleRows rows : {builtinRules(), containerRules(), typeRules(), iteratorRules(), torchRules(), outputRules(), randomRules()})
      for (size_t i = 0; i < rows.count; ++i) missing_.push_back(&rows.first[i]);
    for (const auto& [name, rule] : std::initializer_list<std::pair<const char*, CallRule>>{{"send", generatorSend}, {"throw", generatorThrow}, {"close", generatorClose}}) {
      rules_.emplace(lazyMethod(name), rule);
      for (PyTypeObject* type : {&PyGen_Type, &PyCoro_Type})
        rules_.emplace(identityOf(PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name)).get()), rule);
    }
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
      // A function that the program has put in its place is one like any other.
      if (found && isOriginal(found, row->name)) rules_.emplace(identityOf(found), row->rule);
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

CallRule ruleOfOwner(PyTypeObject* type) { return type == &PyUnicode_Type || type == &PyBytes_Type ? ruleText : rulePure; }

/// Modules of C functions that compute from their arguments alone.
bool isPureModule(const char* name) {
  static const std::unordered_set<std::string_view> modules = {"math", "_operator", "cmath", "_bisect", "_struct"};
  return modules.count(name) > 0;
}

const char* moduleOf(PyObject* function) {
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(function)->m_module;
  return module && PyUnicode_Check(module) ? utf8Of(module) : "";
}

/// A node of the history that the region makes, which libtorch gives the same name as in eager.
bool asksNameOfNode(PyObject* callable) {
  static PyObject* const hooks = PyUnicode_InternFromString("_register_hook_dict");
  PyTypeObject* owner = Py_IS_TYPE(callable, &PyMethodDescr_Type) ? PyDescr_TYPE(callable)
                        : PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) ? Py_TYPE(PyCFunction_GET_SELF(callable)) : nullptr;
  if (!owner || isChangeable(owner) || !PyDict_GetItem(typeDict(owner).get(), hooks)) return false;
  return std::string_view(Py_IS_TYPE(callable, &PyMethodDescr_Type) ? reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name
                                                                    : reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name) == "name";
}

bool startsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

}  // namespace

CallRule ruleOf(PyObject* callable) {
  static auto* table = new RuleTable();
  if (CallRule rule = table->find(callable)) return rule;
  if (CallRule rule = stateQueryOf(callable)) return rule;
  if (CallRule rule = processSettingOf(callable)) return rule;
  if (CallRule rule = numpyRuleOf(callable)) return rule;
  if (CallRule rule = libraryRuleOf(callable)) return rule;
  if (asksNameOfNode(callable)) return rulePure;
  if (Py_TYPE(callable) == &PyWrapperDescr_Type) return slotRuleOf(callable);
  if (Py_TYPE(callable) == &PyMethodDescr_Type && isImmutableOwner(PyDescr_TYPE(callable))) return ruleOfOwner(PyDescr_TYPE(callable));
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    if (self && isImmutableOwner(Py_TYPE(self))) return ruleOfOwner(Py_TYPE(self));
    if (self && PyType_Check(self) && isImmutableOwner(reinterpret_cast<PyTypeObject*>(self))) return rulePure;
    if (isPureModule(moduleOf(callable))) return std::string_view(moduleOf(callable)) == "math" ? ruleOnFloats : rulePure;
  }
  return nullptr;
}

bool isTorchBinding(PyObject* callable) {
  if (Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) {
    PyTypeObject* owner = PyDescr_TYPE(callable);
    return PyType_IsSubtype(tensorType(), owner) && owner != &PyBaseObject_Type;
  }
  if (isTorchOperator(callable)) return true;
  if (!PyCFunction_Check(callable)) return false;
  auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
  PyObject* self = function->m_self;
  if (self && isTensorObject(self)) return true;
  if (self && PyType_Check(self)) {
    const std::string_view owner = reinterpret_cast<PyTypeObject*>(self)->tp_name;
    return startsWith(owner, "torch._C._VariableFunctions");
  }
  if (self && PyModule_Check(self)) {
    const char* text = PyModule_GetName(self);
    const std::string_view module = text ? text : (clearError(), "");
    if (module == "torch._C._nn" || module == "torch._C._linalg" || module == "torch._C._fft" || module == "torch._C._special" || module == "torch._C._nested") return true;
  }
  return false;
}

namespace {

/// Whether a function may warn, by itself or in a function that it names, of its module or of one that it names too: a warning is said when
/// the program runs.
bool mayWarn(PyObject* function, int depth = 0) {
  static PyObject* const kWarnings = internedName("warnings");
  static std::unordered_map<PyObject*, bool> known;  // by code, which the functions of torch's modules keep alive
  PyObject *code = PyFunction_GET_CODE(function), *globals = PyFunction_GET_GLOBALS(function);
  if (auto found = known.find(code); found != known.end()) return found->second;
  PyObject* names = reinterpret_cast<PyCodeObject*>(code)->co_names;
  bool warns = false;
  for (Py_ssize_t i = 0; !warns && i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject* value = name == kWarnings ? nullptr : PyDict_GetItem(globals, name);
    warns = name == kWarnings || (value && PyFunction_Check(value) && PyFunction_GET_GLOBALS(value) == globals && depth < 2 && mayWarn(value, depth + 1));
    PyObject* other = !warns && value && PyModule_Check(value) && depth < 2 ? PyModule_GetDict(value) : nullptr;
    for (Py_ssize_t k = 0; other && !warns && k < PyTuple_GET_SIZE(names); ++k)
      if (PyObject* named = PyDict_GetItem(other, PyTuple_GET_ITEM(names, k)); named && PyFunction_Check(named)) warns = mayWarn(named, depth + 1);
  }
  if (depth == 0) {
    Py_INCREF(code);
    known.emplace(code, warns);
  }
  return warns;
}

}  // namespace

bool Evaluation::isTrusted(PyObject* function) {
  static const std::unordered_set<std::string_view> modules = {
      "torch._tensor", "torch.nn.functional", "torch.functional", "torch._jit_internal", "torch.overrides", "torch._VF",
      "torch.nn.init", "torch._lobpcg", "torch.nn.grad", "torch._linalg_utils"};
  PyObject* globals = PyFunction_GetGlobals(function);
  PyObject* name = PyDict_GetItem(globals, internedName("__name__"));
  if (!name || !PyUnicode_Check(name) || modules.count(utf8Of(name)) == 0) return false;
  // The evaluator keeps the stack of modes itself.
  static const std::unordered_set<PyObject*> ofModes = {torchObject("torch.overrides._push_mode"), torchObject("torch.overrides._pop_mode")};
  const std::string_view qualified = utf8Of(reinterpret_cast<PyFunctionObject*>(function)->func_qualname);
  if (ofModes.count(function) > 0 || qualified.find("TorchFunctionMode.") != std::string_view::npos) return false;
  // What it calls there, and on tensors, is torch's own, and stays so. A function of the program among it would run unseen.
  if (!isUntouched(globals) || !hasTorchsMethods(tensorType()) || mayWarn(function)) return false;
  guardFunction(function);
  guardCustom(sources().pinned(globals, Why::Owner), sameNamespace, PyRef::steal(namespaceState(globals)).get(), "the module's functions");
  return true;
}

PyRef rulePure(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callReal(callable, a); }

PyRef ruleMutate(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return a.positional == 0 ? e.callRaw(callable, a) : e.mutate(callable, a);
}

}  // namespace fusebox::capture
