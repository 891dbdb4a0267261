#pragma once

#include "engine/capture/evaluation/operations.h"

namespace fusebox::capture {

/// What an instruction did to the flow of control.
enum class Flow : uint8_t {
  Next,       ///< go on with the next instruction
  Jumped,     ///< the handler set Frame::pc
  Return,     ///< Frame::result is the value
  Yield,      ///< Frame::result is the value; resume with a value pushed, at the next instruction
  Generator,  ///< RETURN_GENERATOR: the frame becomes a generator
  Error,      ///< the error indicator is set
  Unsupported ///< no handler
};

/// Pushes what an instruction made; null: it raised.
inline Flow pushed(Frame& frame, PyRef value) {
  if (!value) return Flow::Error;
  frame.push(std::move(value));
  return Flow::Next;
}

using Handler = Flow (*)(Operations& ops, Frame& frame, const Instruction& instruction);
/// The handler of a kind, or null.
Handler handlerOf(Op op);

/// Takes the error indicator as one normalised exception with its traceback attached.
PyRef takeException();

/// Enters the frame's handler of the current error: stack unwound, exception pushed, pc at the handler, error indicator clear.
/// False: there is none, the error indicator stays.
bool enterHandler(Operations& ops, Frame& frame);

/// Raises an exception that was raised before and keeps its traceback.
Flow raiseAgain(Frame& frame, PyRef exception);

/// Executes the instruction at frame.pc, handlers included; on Next the pc is moved on.
Flow step(Operations& ops, Frame& frame);

/// Handlers by family, collected in the table by interpreter.cpp.
struct HandlerRow {
  Op op;
  Handler handler;
};
struct HandlerRows {
  const HandlerRow* first;
  size_t count;
};
HandlerRows stackHandlers();
HandlerRows nameHandlers();
HandlerRows operatorHandlers();
HandlerRows containerHandlers();
HandlerRows flowHandlers();
HandlerRows callHandlers();
HandlerRows exceptionHandlers();
HandlerRows matchHandlers();
HandlerRows asyncHandlers();

}  // namespace fusebox::capture
