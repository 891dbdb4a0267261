#pragma once

#include <memory>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// A generator or coroutine made by interpreted code: its frame, suspended between two instructions.
class SuspendedFrame final : public LazyIterator {
 public:
  /// Null frame: it has ended.
  SuspendedFrame(std::unique_ptr<Frame> frame, bool started, bool isCoroutine) : frame_(std::move(frame)), isCoroutine_(isCoroutine), started_(started) {}
  PyRef next(Evaluation& e) override;
  int send(Evaluation& e, PyObject* value, PyRef* result) override;
  bool close(Evaluation& e) override;
  bool letGo(Evaluation& e) override;
  int throwInto(Evaluation& e, PyObject* exception, PyRef* result) override;
  bool runsWhenClosed() const override;
  PyTypeObject* type() const override { return isCoroutine_ ? &PyCoro_Type : &PyGen_Type; }
  /// Whether a coroutine waits for something.
  bool isAwaiting() const { return delegate() != nullptr; }
  Remaking remake(Evaluation& e) const override;
  std::vector<std::shared_ptr<Recipe>> stateAfter(Evaluation& e, RecipeMaker& recipes) const override;

 private:
  /// The offset of the next instruction and which slots are bound, as restoreGenerator() takes them.
  std::pair<PyRef, PyRef> position() const;
  int resume(Evaluation& e, PyRef* result);
  /// Raises the exception at the yield itself.
  int raiseHere(Evaluation& e, PyObject* exception, PyRef* result);
  /// The exception that is set leaves a generator that does not go on.
  int fail();
  bool refuseReentry() const;
  /// A coroutine that has ended may not be advanced again.
  bool refuseReuse() const;
  const char* noun() const { return isCoroutine_ ? "coroutine" : "generator"; }
  /// What `yield from` waits for; borrowed, or null.
  PyObject* delegate() const;
  /// throw() of a delegate: 1 yielded, 0: it ended (the result is the value of `yield from`), -1: raised, -2: it has no such method.
  int throwIntoDelegate(Evaluation& e, PyObject* delegate, PyObject* exception, PyRef* result);
  bool closeDelegate(Evaluation& e, PyObject* delegate);
  /// The delegate has ended: on behind the `yield from`, whose value is `value`.
  int leaveDelegate(Evaluation& e, PyRef value, PyRef* result);

  std::unique_ptr<Frame> frame_;
  PyRef handled_;  ///< the exception that its own except clause was handling when it was suspended
  bool isCoroutine_ = false, started_ = false, running_ = false;
  int64_t advancedAt_ = -1;  ///< root instruction that did so last
  bool closing_ = false;  ///< the exception thrown into it dies when close() returns
};

}  // namespace fusebox::capture
