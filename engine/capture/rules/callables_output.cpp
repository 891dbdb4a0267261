// Rules for what a program says: print, warnings, logging, profiler ranges. They are carried out after the graph, in their place among
// the effects, with what they were given at that moment; where that cannot be, they are a break.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/substitutes.h"
#include "engine/trace/transform_levels.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

bool noErrorFilter(PyObject* filters, PyObject*) {
  if (!PyList_CheckExact(filters)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(filters); ++i) {
    PyObject* filter = PyList_GET_ITEM(filters, i);
    PyObject* action = PyTuple_Check(filter) && PyTuple_GET_SIZE(filter) > 0 ? PyTuple_GET_ITEM(filter, 0) : nullptr;
    if (!action || !PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") == 0) return false;
  }
  return true;
}

namespace {


constexpr int kMaxNesting = 16;

/// Whether the program said that calls of it may come after the graph.
bool isReordered(PyObject* callable) {
  PyObject* all = reorderedInGraph();
  return all && PySet_Contains(all, callable) == 1;
}

/// A tensor of the graph as it is now, whatever is written to it later; null: its text would tell of more than its values. A graph of calls has such
/// a copy where the program asks for it.
PyRef tensorAsItIsNow(Evaluation& e, PyObject* value, bool asked) {
  const bool isPlain = e.isStandIn(value) && !e.isNumber(value) && Py_TYPE(value) == tensorType() && !trace::insideTransform() && !e.functions().isLate();
  if (!isPlain || (e.torchCalls() && !asked)) return {};
  const at::Tensor& t = tensorOf(value);
  if (t.requires_grad() || t.layout() != c10::kStrided || t.is_conj() || t.is_neg() || t.has_names()) return {};
  return e.torchCalls() ? e.torchCalls()->method("clone", {value}) : PyRef::steal(newTensorObject(t.clone()));
}

/// The value as it is now, if no later write can change what is said of it and saying it runs no Python: a constant, a class or function
/// from outside, or a copy of containers of such that this segment made. Null for anything else.
PyRef asItIsNow(Evaluation& e, PyObject* value, bool asked, int nesting = 0) {
  if (isConstantValue(value)) return e.refuseAddress(value), PyRef::borrow(value);
  if (isSymbolicNumber(value) || isSymbolicText(value) || isSymbolicSize(value)) return PyRef::borrow(value);  // made again when it is said
  if (e.isTensor(value)) return tensorAsItIsNow(e, value, asked);
  if (PyType_Check(value)) return Py_TYPE(value)->tp_repr == PyType_Type.tp_repr && Py_TYPE(value)->tp_str == PyType_Type.tp_str ? e.pin(value, Why::Process) : PyRef();
  if ((PyFunction_Check(value) || PyModule_Check(value)) && e.sourceOf(value)) return PyRef::borrow(value);
  const bool dict = PyDict_CheckExact(value);
  if (nesting == kMaxNesting || !(dict || PyList_CheckExact(value) || PyTuple_CheckExact(value)) || !e.isFresh(value)) return {};
  PyRef items = dict ? PyRef::steal(PyDict_Items(value)) : PyRef::steal(PySequence_List(value));
  PyRef copy = dict ? PyRef::steal(PyDict_New()) : items;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    PyRef now = asItIsNow(e, dict ? PyTuple_GET_ITEM(item, 1) : item, asked, nesting + 1);
    if (!now || (dict && !isConstantValue(PyTuple_GET_ITEM(item, 0)))) return {};
    if (dict)
      PyDict_SetItem(copy.get(), PyTuple_GET_ITEM(item, 0), now.get());
    else
      PyList_SetItem(copy.get(), i, now.release());
  }
  return PyTuple_CheckExact(value) ? PyRef::steal(PyList_AsTuple(copy.get())) : copy;
}

/// Puts a call off with its arguments as they are now; the first `asIs` of them, and the keyword `asIsName`, go along unseen.
PyRef putOff(Evaluation& e, PyObject* callable, const CallArguments& a, size_t asIs, const char* asIsName, bool observes) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    const bool unseen = i < asIs || (i >= a.positional && asIsName && PyUnicode_CompareWithASCIIString(a.keywordName(i - a.positional), asIsName) == 0);
    keep.push_back(unseen ? PyRef::borrow(a.args[i]) : asItIsNow(e, a.args[i], isReordered(callable)));
    if (!keep.back())
      e.breakHere("side effect", "output that depends on a computed value or on an object that can change", "Move printing and logging out of the compiled region.");
    args.push_back(keep.back().get());
  }
  e.deferCall(callable, {args.data(), a.positional, a.kwNames}, observes);
  return none();
}

/// Writers of Python code may look at what the program has written, and the program at what they have.
bool writesInC(PyObject* file) {
  if (file == Py_None) return true;
  PyRef write = PyRef::steal(PyObject_GetAttrString(file, "write"));
  clearError();
  return write && PyCFunction_Check(write.get());
}

PyRef rulePrint(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* file = a.keyword("file");
  PyRef out = PyRef::borrow(file);
  if (!file || file == Py_None) {
    static PyObject* const sys = PyImport_ImportModule("sys");
    out = e.getAttr(sys, internedName("stdout"));
    if (!out) return {};
    if (out.get() == Py_None) return none();  // a program without output prints nothing
  }
  if (e.insideTry()) e.breakHere("side effect", "printing inside try, which may raise");
  if (!writesInC(out.get())) e.breakHere("side effect", std::string("printing to a ") + Py_TYPE(out.get())->tp_name + ", which is written in Python");
  if (file && file != Py_None) return putOff(e, callable, a, 0, "file", false);
  // What sys.stdout is now: it may be another when the call is made.
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
  PyRef names = a.kwNames ? PyRef::borrow(a.kwNames) : PyRef::steal(PyTuple_New(0));
  if (file) {
    const Py_ssize_t at = PySequence_Index(names.get(), internedName("file"));
    args[a.positional + static_cast<size_t>(at)] = out.get();
  } else {
    PyRef last = PyRef::steal(PyTuple_Pack(1, internedName("file")));
    names = PyRef::steal(PySequence_Concat(names.get(), last.get()));
    args.push_back(out.get());
  }
  return putOff(e, callable, {args.data(), a.positional, names.get()}, 0, "file", false);
}

PyObject* const kShowWarning = internedName("_showwarnmsg_impl");

/// Warnings are shown by the function of the module warnings.
bool writesWarnings(Evaluation& e, PyObject* warnings) {
  PyObject* shows = PyDict_GetItem(warnings, kShowWarning);
  return shows && PyFunction_Check(shows) && PyFunction_GET_GLOBALS(shows) == warnings && e.wrap(shows, e.sources().dictItem(e.sourceOf(warnings), kShowWarning));
}

/// The list to which `shows` appends; null: it does something else.
PyObject* listOfWarnings(PyObject* shows) {
  static PyObject* const append = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "append");
  if (!shows || !PyCFunction_Check(shows)) return nullptr;
  const auto* method = reinterpret_cast<PyCFunctionObject*>(shows);
  const bool appends = method->m_ml == reinterpret_cast<PyMethodDescrObject*>(append)->d_method;
  return appends && PyList_CheckExact(method->m_self) ? method->m_self : nullptr;
}

bool appendsWarnings(PyObject* shows, PyObject*) { return listOfWarnings(shows) != nullptr; }

/// warnings.catch_warnings(record=True) around the call: they are put into a list, which is not to be read before that.
bool keepsWarnings(Evaluation& e, PyObject* warnings) {
  PyObject* shows = PyDict_GetItem(warnings, kShowWarning);
  PyObject* list = listOfWarnings(shows);
  if (!list || !e.leaveToLaterCalls(list, "the list in which warnings of the compiled region are recorded")) return false;
  e.guardCustom(e.sources().dictItem(e.sourceOf(warnings), kShowWarning), appendsWarnings, Py_None, "warnings are recorded in a list");
  return true;
}

/// Whether warnings.warn takes such a message and category; which it does not is raised.
bool canBeWarned(const CallArguments& a) {
  PyObject* message = a.positional > 0 ? a.args[0] : a.keyword("message");
  PyObject* category = a.positional > 1 ? a.args[1] : a.keyword("category");
  const bool isCategory = !category || category == Py_None || (PyExceptionClass_Check(category) && PyObject_IsSubclass(category, PyExc_Warning) == 1);
  return message && PyUnicode_CheckExact(message) && isCategory;
}

PyRef ruleWarn(Evaluation& e, PyObject* callable, const CallArguments& a) {
  static PyObject* const warnings = PyImport_ImportModule("warnings");
  if (e.insideTry() && !canBeWarned(a)) e.breakHere("side effect", "a warning that may be raised inside try");
  PyObject* dict = PyModule_GetDict(warnings);
  e.pin(dict, Why::Owner);
  if (Origin* o = e.origin(dict); o && o->written) e.breakHere("side effect", "a warning where the compiled region has changed the module warnings");
  PyRef filters = e.getAttr(warnings, internedName("filters")), shows = e.getAttr(warnings, internedName("showwarning"));
  PyRef usual = e.getAttr(warnings, internedName("_showwarning_orig"));
  if (!filters || !shows || !usual) return {};
  if (shows.get() != usual.get() || !(writesWarnings(e, dict) || keepsWarnings(e, dict)))
    e.breakHere("side effect", "a warning that the program shows by itself");
  if (!noErrorFilter(filters.get(), nullptr)) e.breakHere("side effect", "a warning that a filter may turn into an exception");
  if (const Source* source = e.sourceOf(filters.get())) e.guardCustom(source, noErrorFilter, Py_None, "no filter that raises");
  return putOff(e, callable, a, 0, nullptr, true);
}

/// What the warnings module calls where its filters have changed, and torch's settings where one of them has: no graph asks for it.
PyRef ruleAfterwards(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.deferCall(callable, a, false);
  return none();
}

/// Whether a logger does anything at a level. Asked once for real, so that its cache holds the answer that is guarded.
int isEnabled(Evaluation& e, PyObject* logger, PyObject* level) {
  static PyObject* const name = internedName("isEnabledFor");
  static PyObject* const usual = torchObject("logging.Logger.isEnabledFor");
  if (_PyType_Lookup(Py_TYPE(logger), name) == usual) PyRef::steal(PyObject_CallMethodOneArg(logger, name, level));
  clearError();
  PyRef answer = e.callMethodNamed(logger, "isEnabledFor", {level});
  return answer ? e.truth(answer.get()) : -1;
}

/// Handlers that only write, of logging itself: what others keep, the program may look at.
bool onlyWrites(PyObject* handler) {
  PyRef emit = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(handler)), "emit"));
  PyRef filters = PyRef::steal(PyObject_GetAttrString(handler, "filters")), stream = PyRef::steal(PyObject_GetAttrString(handler, "stream"));
  clearError();
  PyObject* globals = emit && PyFunction_Check(emit.get()) ? PyFunction_GET_GLOBALS(emit.get()) : nullptr;
  PyObject* module = globals ? PyDict_GetItemString(globals, "__name__") : nullptr;
  const bool own = module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "logging") == 0;
  return own && filters && PyList_Check(filters.get()) && PyList_GET_SIZE(filters.get()) == 0 && (!stream || writesInC(stream.get()));
}

/// Whether all handlers that a logger's records reach only write.
bool handlersOnlyWrite(PyObject* logger) {
  PyRef at = PyRef::borrow(logger);
  while (at && at.get() != Py_None) {
    PyRef handlers = PyRef::steal(PyObject_GetAttrString(at.get(), "handlers"));
    for (Py_ssize_t i = 0; handlers && PyList_Check(handlers.get()) && i < PyList_GET_SIZE(handlers.get()); ++i)
      if (!onlyWrites(PyList_GET_ITEM(handlers.get(), i))) return false;
    PyRef propagates = PyRef::steal(PyObject_GetAttrString(at.get(), "propagate"));
    at = propagates && PyObject_IsTrue(propagates.get()) == 1 ? PyRef::steal(PyObject_GetAttrString(at.get(), "parent")) : PyRef();
  }
  clearError();
  return true;
}

PyRef logAt(Evaluation& e, PyObject* callable, const CallArguments& a, PyObject* level) {
  if (a.positional == 0 || e.isFresh(a.args[0])) e.breakHere("side effect", "a logger that the compiled region made");
  const int enabled = isEnabled(e, a.args[0], level);
  if (enabled <= 0) return enabled < 0 ? PyRef() : none();
  if (PyObject* info = a.keyword("exc_info"); info && info != Py_None && info != Py_False)
    e.breakHere("side effect", "the exception that is being handled is logged");
  if (e.insideTry()) e.breakHere("side effect", "a log call inside try, whose handlers may raise");
  if (!handlersOnlyWrite(a.args[0])) e.breakHere("side effect", "a log call that reaches a handler of the program");
  return putOff(e, callable, a, 1, nullptr, true);
}

template <int kLevel>
PyRef ruleLog(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef level = PyRef::steal(PyLong_FromLong(kLevel));
  return logAt(e, callable, a, level.get());
}

/// Logger methods that libraries add, which remember what was said.
PyRef ruleLogOnce(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional == 0 || !handlersOnlyWrite(a.args[0])) e.breakHere("side effect", "a log call that reaches a handler of the program");
  return putOff(e, callable, a, 1, nullptr, true);
}

/// Profiler ranges of the program are opened and closed for real once the graph has run: a break may lie between the two.
PyRef ruleRecordEnter(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.deferCall(callable, a, false);
  return PyRef::borrow(a.args[0]);
}
PyRef ruleRecordExit(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.deferCall(callable, a, false);
  return none();
}

}  // namespace

PyRef ruleReordered(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (e.insideTry()) e.breakHere("side effect", "a call inside try that is put off");
  if (e.sourceOf(callable)) e.guardFunction(callable);
  return putOff(e, callable, a, 0, nullptr, true);
}

namespace {

constexpr RuleRow kOutputRows[] = {
    {"builtins.print", rulePrint},
    {"warnings.warn", ruleWarn},
    {"_warnings._filters_mutated", ruleAfterwards},
    {"fusebox._engine.configure", ruleAfterwards},
    {"logging.Logger.debug", ruleLog<10>},
    {"logging.Logger.info", ruleLog<20>},
    {"logging.Logger.warning", ruleLog<30>},
    {"logging.Logger.error", ruleLog<40>},
    {"logging.Logger.critical", ruleLog<50>},
    {"logging.Logger.warning_once", ruleLogOnce},
    {"logging.Logger.info_once", ruleLogOnce},
    {"logging.Logger.warning_advice", ruleLogOnce},
    {"torch.autograd.profiler.record_function.__enter__", ruleRecordEnter},
    {"torch.autograd.profiler.record_function.__exit__", ruleRecordExit},
};

}  // namespace

RuleRows outputRules() { return {kOutputRows, std::size(kOutputRows)}; }

}  // namespace fusebox::capture
