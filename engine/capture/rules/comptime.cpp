// torch._dynamo.comptime: functions of the program that are called while it is captured, with what is known there.
#include "engine/capture/rules/comptime.h"

#include <nlohmann/json.hpp>

#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/debug_facts.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {
namespace {

/// For Py_BuildValue's "N".
PyObject* newText(const std::string& text) { return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"); }

/// name -> (the evaluator's value, in short, whether it is symbolic).
PyRef localsFor(Frame& frame) {
  PyRef all = PyRef::steal(PyDict_New());
  for (size_t i = 0; all && i < frame.locals.size(); ++i) {
    PyObject* value = frame.locals[i].get();
    if (value && PyCell_Check(value)) value = PyCell_GET(value);
    if (!value) continue;
    PyRef entry = PyRef::steal(Py_BuildValue("(ONO)", value, newText(shortValue(value)), isSymbolicNumber(value) ? Py_True : Py_False));
    if (!entry || PyDict_SetItem(all.get(), PyTuple_GET_ITEM(frame.code()->co_localsplusnames, static_cast<Py_ssize_t>(i)), entry.get()) != 0) return {};
  }
  return all;
}

/// (the evaluator's value, in short) for what lies on the value stack, below the call that goes on.
PyRef stackFor(Frame& frame) {
  const Instruction& call = frame.instruction();
  const size_t ofCall = call.op == Op::CALL ? static_cast<size_t>(call.arg) + 2 : 0;
  PyRef all = PyRef::steal(PyList_New(0));
  for (size_t i = 0; all && i + ofCall < frame.stack.size(); ++i) {
    PyObject* value = frame.stack[i].get();
    PyRef entry = PyRef::steal(Py_BuildValue("(ON)", value ? value : Py_None, newText(value ? shortValue(value) : "NULL")));
    if (!entry || PyList_Append(all.get(), entry.get()) != 0) return {};
  }
  return all;
}

/// What fusebox._comptime.Frame takes.
PyRef describe(Frame& frame) {
  return PyRef::steal(Py_BuildValue("(ONNii)", frame.code(), localsFor(frame).release(), stackFor(frame).release(), frame.line(),
                                    frame.instruction().offset * 2));
}

bool asksForLocals(PyObject* function) {
  static PyObject* const kGetLocal = internedName("get_local");
  if (!PyFunction_Check(function)) return true;
  PyObject* names = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_names;
  return PySequence_Contains(names, kGetLocal) == 1;
}

}  // namespace

void raiseNow(Evaluation& e) {
  PyRef error = ProgramInterrupted::take().exception, places = PyRef::steal(PyList_New(0));
  for (Frame* frame = e.frame(); frame; frame = frame->caller) {
    PyRef place = PyRef::steal(Py_BuildValue("(Oi)", frame->code(), frame->line()));
    if (place) PyList_Append(places.get(), place.get());
  }
  PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._comptime"));
  PyRef told = module ? PyRef::steal(PyObject_CallMethod(module.get(), "failure", "OO", error.get(), places.get())) : PyRef();
  if (!told) throw ProgramInterrupted::take();
  if (told.get() == Py_None) e.breakHere("comptime", "a function that is called while capturing raises");
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told.get())), told.get());
  throw ProgramInterrupted::take();
}

PyRef ruleComptime(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional == 0) return PyRef::borrow(Py_None);
  if (e.watch.repeats) return PyRef::borrow(Py_None);  // the same stretch is evaluated again
  PyObject* function = a.args[0];
  PyRef frames = PyRef::steal(PyList_New(0));
  for (Frame* frame = e.frame(); frame; frame = frame->caller) {
    if (frame->isRoot && asksForLocals(function))
      for (size_t i = 0; i < frame->locals.size(); ++i)
        if (frame->unread[i] && frame->locals[i] && !PyCell_Check(frame->locals[i].get())) e.readLocal(*frame, static_cast<int>(i));
    PyRef one = describe(*frame);
    if (!one || PyList_Append(frames.get(), one.get()) != 0) return {};
  }
  PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._comptime"));
  PyRef make = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "ComptimeContext")) : PyRef();
  PyRef graphBreak = make ? PyRef::steal(PyObject_GetAttrString(module.get(), "GraphBreakAsked")) : PyRef();
  if (!graphBreak) return {};
  const std::string graph = e.trace().graph().str(), guards = guardsOf(e.guardSet()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  PyRef context = PyRef::steal(PyObject_CallFunction(make.get(), "ONN", frames.get(), newText(graph), newText(guards)));
  PyRef done = context ? PyRef::steal(PyObject_CallOneArg(function, context.get())) : PyRef();
  if (!done) {
    if (!PyErr_ExceptionMatches(graphBreak.get())) raiseNow(e);
    PyRef text = PyRef::steal(PyObject_Str(ProgramInterrupted::take().exception.get()));
    e.breakHere("comptime", text && PyUnicode_Check(text.get()) ? utf8Of(text.get()) : "ComptimeContext.graph_break() is called");
  }
  return PyRef::borrow(Py_None);
}

PyRef ruleForceStatic(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional > 0 && isSymbolicNumber(a.args[0])) (void)e.plainNumber(a.args[0], "comptime.force_static()");
  return PyRef::borrow(Py_None);
}

PyRef ruleAssertStatic(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional == 0 || !isSymbolicNumber(a.args[0])) return PyRef::borrow(Py_None);
  PyErr_SetString(PyExc_AssertionError, "expected static but got dynamic (`fusebox shapes` on a recording tells why it is symbolic)");
  raiseNow(e);
}

}  // namespace fusebox::capture
