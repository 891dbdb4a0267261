// Calls that are put off until after the graph, in their place among the effects.
#include "engine/capture/evaluation/deferred_calls.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_warnings.h"

namespace fusebox::capture {

namespace {

PyCodeObject* plainCaller() {
  static Once<PyObject*> plainCode;
  return reinterpret_cast<PyCodeObject*>(plainCode.get([] {
    PyRef globals = PyRef::steal(PyDict_New());
    return PyRun_String("(lambda f, a, k: f(*a, **k)).__code__", Py_eval_input, globals.get(), globals.get());
  }));
}

PyRef callerAt(const Frame& frame) {
  return capture::callerAt(frame.code()->co_name, frame.code()->co_qualname, frame.code()->co_filename, frame.line(), frame.globals);
}

/// Whether an exception at an instruction reaches a handler that is more than the end of a `with` block.
bool isCovered(const DecodedCode& code, int pc) {
  const auto& list = code.instructions;
  for (int steps = 0; steps < 64; ++steps) {
    const HandlerRange* range = code.handlerOf(pc);
    if (!range) return false;
    const auto target = static_cast<size_t>(range->target);
    if (list[target].op != Op::PUSH_EXC_INFO) {
      pc = range->target;  // what cleans up behind a handler raises the exception again
    } else if (list[target + 1].op == Op::WITH_EXCEPT_START) {
      pc = range->target + 1;
    } else {
      return true;
    }
  }
  return true;
}

}  // namespace

PyRef callerAt(PyObject* name, PyObject* qualname, PyObject* file, int line, PyObject* globals) {
  PyCodeObject* plain = plainCaller();
  PyRef replace = PyRef::steal(plain ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(plain), "replace") : nullptr), none = PyRef::steal(PyTuple_New(0));
  PyRef changes = PyRef::steal(Py_BuildValue("{s:O,s:O,s:O,s:i}", "co_name", name, "co_qualname", qualname, "co_filename", file, "co_firstlineno", line));
  PyRef code = replace && changes ? PyRef::steal(PyObject_Call(replace.get(), none.get(), changes.get())) : PyRef();
  PyRef made = code ? PyRef::steal(PyFunction_New(code.get(), globals)) : PyRef();
  clearError();
  return made;
}

bool isCaller(PyObject* function) {
  if (!PyFunction_Check(function)) return false;
  PyCodeObject* plain = plainCaller();
  clearError();
  return plain && reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_consts == plain->co_consts;
}

bool Evaluation::insideTry() const {
  for (const Frame* f = frame_; f; f = f->caller)
    if (isCovered(*f->decoded, f->pc)) return true;
  return false;
}

bool Evaluation::callNow(PyObject* callable, const CallArguments& a) {
  PyRef caller = callerAt(*frame_);
  if (!caller) breakHere("side effect", "a call has a caller that cannot be made again");
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.total()))), none = PyRef::steal(PyDict_New());
  for (size_t i = 0; i < a.total(); ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), Py_NewRef(a.args[i]));
  const trace::NoTrace off;
  const KeptWarnings::Pass heard;
  return static_cast<bool>(PyRef::steal(PyObject_CallFunctionObjArgs(caller.get(), callable, args.get(), none.get(), nullptr)));
}

bool Evaluation::leaveToLaterCalls(PyObject* object, const char* what) {
  for (const auto& [known, _] : writtenLater_)
    if (known.get() == object) return true;
  if (origins_.find(object)) return false;
  writtenLater_.emplace_back(PyRef::borrow(object), what);
  return true;
}

void Evaluation::deferCall(PyObject* callable, const CallArguments& a, bool observes) {
  PyRef target = PyRef::borrow(callable);
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional))), kwargs = PyRef::steal(PyDict_New());
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(kwargs.get(), a.keywordName(i), a.args[a.positional + i]);
  int offset = 0;
  // What the call finds on the stack (logging's place, warnings' registry) are callers like those that it has now.
  for (Frame* f = frame_; f; f = f->caller) {
    if (f->isRoot) {
      offset = f->instruction().offset;
      continue;
    }
    PyRef caller = callerAt(*f);
    if (!caller) breakHere("side effect", "a call that is put off has a caller that cannot be made again");
    pin(caller.get(), Why::Capture);
    args = PyRef::steal(PyTuple_Pack(3, target.get(), args.get(), kwargs.get()));
    kwargs = PyRef::steal(PyDict_New());
    target = std::move(caller);
  }
  journal_.putOff(target.get(), args.get(), kwargs.get(), offset, observes);
}

}  // namespace fusebox::capture
