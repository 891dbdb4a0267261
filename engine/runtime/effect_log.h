#pragma once

#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

/// A graph that fails half-way is run again operator by operator by the program itself, which then sees the error at its line. What
/// others saw happen must not happen twice: those calls give again what they gave.
namespace fusebox::runtime {

/// One call that others may have seen, and its results.
struct EffectNote {
  c10::OperatorHandle op;
  std::vector<c10::IValue> results;
};

/// While alive, collects the calls of this thread that noteEffect() is told of. What the innermost log still has at its end goes to the
/// one around it.
class EffectLog {
 public:
  EffectLog();
  ~EffectLog();
  EffectLog(const EffectLog&) = delete;
  std::vector<EffectNote> take() { return std::move(notes_); }

 private:
  friend void noteEffect(const c10::OperatorHandle& op, const torch::jit::Stack& results);
  std::vector<EffectNote> notes_;
  EffectLog* outer_;
};

/// `op` has run, `results` are all that is on the stack. Nothing happens where nobody collects.
void noteEffect(const c10::OperatorHandle& op, const torch::jit::Stack& results);

/// Hands notes of a graph that failed to the EffectReplay to come on this thread.
void keepForReplay(std::vector<EffectNote> notes);

/// While alive, calls on this thread of the operators that were kept for it, in their order, give what they gave then instead of running.
/// They come here through the tracing key, which is switched on if anything was kept.
class EffectReplay {
 public:
  EffectReplay();
  ~EffectReplay();
  EffectReplay(const EffectReplay&) = delete;

 private:
  std::vector<EffectNote> outer_;
  bool active_ = false, switchedKey_ = false;
};

/// Puts kept results in place of the arguments on top of `stack`; false, with nothing changed, if the call has to run.
bool answerFromReplay(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace fusebox::runtime
