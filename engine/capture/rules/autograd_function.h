#pragma once

#include <Python.h>

#include <exception>
#include <functional>
#include <memory>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Calls of torch.autograd.Function.apply in one evaluation. torch's own apply runs, so that contexts, results and history are what they
/// are in eager, but for a stand-in of the class whose forward, setup_context and backward come back here and are evaluated.
///
/// backward is evaluated when the gradient is recorded, while the program runs it later. So it may write nothing but its context and
/// what it makes, and read nothing that can have changed by then: such a function is called outside of the graph (a break at the call).
/// What hardly ever changes, a constant of a module or class, is looked at again when the gradient is asked for: another one raises, and
/// from then on is such a break.
class FunctionCalls {
  struct LateReads;

 public:
  explicit FunctionCalls(Evaluation& evaluation);
  ~FunctionCalls();
  FunctionCalls(const FunctionCalls&) = delete;
  FunctionCalls& operator=(const FunctionCalls&) = delete;

  PyRef apply(PyObject* cls, const CallArguments& a);
  /// Throws what the evaluation of a method threw while C code stood between; the Python error in its place is cleared.
  void rethrow();

  /// backward is being evaluated.
  bool isLate() const { return late_ != nullptr; }
  /// While isLate(): break where it reads, assumes or writes what it must not. True: the object is a constant, which is looked at again.
  bool noteRead(PyObject* object, const Source* source);
  void noteClassRead(PyObject* found, PyTypeObject* type, PyObject* name);
  void noteGuard(GuardKind kind, const Source* source);
  void noteWrite(PyObject* container, const Origin* origin);
  /// For AotModule::beforeBackward; null where nothing is to be looked at again.
  std::function<void()> lookAgain() const;

 private:
  struct Call;
  /// What gradients of gradients need to know of a call, where its backward is differentiated as it was traced: not below once_differentiable.
  class Noting;
  static PyObject* runForward(PyObject* self, PyObject* const* args, Py_ssize_t count);
  static PyObject* runSetup(PyObject* self, PyObject* const* args, Py_ssize_t count);
  static PyObject* runBackward(PyObject* self, PyObject* const* args, Py_ssize_t count);
  template <class Run>
  static PyObject* run(PyObject* self, Run&& evaluate);
  PyRef standInFor(PyObject* cls);
  PyRef callMethod(const Call& call, const char* name, PyObject* const* args, Py_ssize_t count);
  /// A break where C code would ask a function mode, or the class of a tensor, about an argument that forward returns.
  void refuseInputs(const Call& call, PyObject* results, PyObject* const* args, Py_ssize_t count);
  PyRef callBackward(const Call& call, PyObject* const* args, Py_ssize_t count);
  /// The code that reads is torch's or Python's own, whose state no program changes between forward and backward.
  bool isLibraryReading() const;
  [[noreturn]] void refuse(const std::string& what);
  /// Breaks where it has been found changed before.
  void noteLateRead(PyObject* holder, PyObject* key, PyObject* value, const std::string& text);

  Evaluation& evaluation_;
  std::shared_ptr<FunctionCalls*> self_;  ///< null once the evaluation is over: a context may outlive it
  std::exception_ptr thrown_;
  const Call* late_ = nullptr;
  PyObject* lateContext_ = nullptr;
  std::shared_ptr<LateReads> reads_;  ///< null: none
};

}  // namespace fusebox::capture
