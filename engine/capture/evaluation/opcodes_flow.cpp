#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

Flow jumpTo(Operations& ops, Frame& f, int target) {
  if (target <= f.pc) ops.willTurn(f, target);
  f.pc = target;
  return Flow::Jumped;
}

Flow jump(Operations& ops, Frame& f, const Instruction& i) { return jumpTo(ops, f, i.target); }

template <bool kJumpWhen>
Flow popJumpIf(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  const int truth = ops.condition(value.get(), f, i, kJumpWhen);
  if (truth < 0) return Flow::Error;
  return (truth != 0) == kJumpWhen ? jumpTo(ops, f, i.target) : Flow::Next;
}

template <bool kJumpWhenNone>
Flow popJumpIfNone(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  return (value.get() == Py_None) == kJumpWhenNone ? jumpTo(ops, f, i.target) : Flow::Next;
}

template <bool kJumpWhen>
Flow jumpIfOrPop(Operations& ops, Frame& f, const Instruction& i) {
  const int truth = ops.truth(f.peek(1).get());
  if (truth < 0) return Flow::Error;
  if ((truth != 0) == kJumpWhen) return jumpTo(ops, f, i.target);
  f.pop();
  return Flow::Next;
}

Flow getIter(Operations& ops, Frame& f, const Instruction&) {
  PyRef object = f.pop(), iterator = ops.iter(object.get());
  if (!iterator) return Flow::Error;
  f.push(std::move(iterator));
  return Flow::Next;
}

Flow getYieldFromIter(Operations& ops, Frame& f, const Instruction& i) {
  PyObject* top = f.peek(1).get();
  if (PyGen_CheckExact(top)) return Flow::Next;
  return getIter(ops, f, i);
}

Flow forIter(Operations& ops, Frame& f, const Instruction& i) {
  PyRef iterator = f.peek(1), item = ops.next(iterator.get());
  if (item) {
    f.push(std::move(item));
    return Flow::Next;
  }
  if (PyErr_Occurred()) return Flow::Error;
  f.pop();
#if PY_VERSION_HEX >= 0x030C0000
  return jumpTo(ops, f, i.target + 1);  // over END_FOR
#else
  return jumpTo(ops, f, i.target);
#endif
}

Flow send(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop(), receiver = f.peek(1), result;
  const int status = ops.send(receiver.get(), value.get(), &result);
  if (status < 0) return Flow::Error;
  if (status > 0) {
    f.push(std::move(result));
    return Flow::Next;
  }
#if PY_VERSION_HEX >= 0x030C0000
  f.push(std::move(result));  // END_SEND takes the receiver away
#else
  f.peek(1) = std::move(result);
#endif
  return jumpTo(ops, f, i.target);
}

Flow yieldValue(Operations&, Frame& f, const Instruction&) {
  f.result = f.pop();
  return Flow::Yield;
}

Flow returnGenerator(Operations&, Frame&, const Instruction&) { return Flow::Generator; }

Flow returnValue(Operations&, Frame& f, const Instruction&) {
  f.result = f.pop();
  return Flow::Return;
}

Flow returnConst(Operations&, Frame& f, const Instruction& i) {
  f.result = PyRef::borrow(PyTuple_GET_ITEM(f.decoded->consts.get(), i.arg));
  return Flow::Return;
}

constexpr HandlerRow kFlowRows[] = {
    {Op::JUMP, jump},
    {Op::POP_JUMP_IF_FALSE, popJumpIf<false>},
    {Op::POP_JUMP_IF_TRUE, popJumpIf<true>},
    {Op::POP_JUMP_IF_NONE, popJumpIfNone<true>},
    {Op::POP_JUMP_IF_NOT_NONE, popJumpIfNone<false>},
    {Op::JUMP_IF_FALSE_OR_POP, jumpIfOrPop<false>},
    {Op::JUMP_IF_TRUE_OR_POP, jumpIfOrPop<true>},
    {Op::GET_ITER, getIter},
    {Op::GET_YIELD_FROM_ITER, getYieldFromIter},
    {Op::FOR_ITER, forIter},
    {Op::SEND, send},
    {Op::YIELD_VALUE, yieldValue},
    {Op::RETURN_GENERATOR, returnGenerator},
    {Op::RETURN_VALUE, returnValue},
    {Op::RETURN_CONST, returnConst},
};

}  // namespace

HandlerRows flowHandlers() { return {kFlowRows, std::size(kFlowRows)}; }

}  // namespace fusebox::capture
