#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

Flow pushBool(Frame& f, int value) {
  if (value < 0) return Flow::Error;
  f.push(PyRef::borrow(value ? Py_True : Py_False));
  return Flow::Next;
}

Flow binarySubscr(Operations& ops, Frame& f, const Instruction&) {
  PyRef key = f.pop(), object = f.pop();
  return pushed(f, ops.getItem(object.get(), key.get()));
}

Flow storeSubscr(Operations& ops, Frame& f, const Instruction&) {
  PyRef key = f.pop(), object = f.pop(), value = f.pop();
  return ops.setItem(object.get(), key.get(), value.get()) ? Flow::Next : Flow::Error;
}

Flow deleteSubscr(Operations& ops, Frame& f, const Instruction&) {
  PyRef key = f.pop(), object = f.pop();
  return ops.setItem(object.get(), key.get(), nullptr) ? Flow::Next : Flow::Error;
}

Flow binarySlice(Operations& ops, Frame& f, const Instruction&) {
  PyRef stop = f.pop(), start = f.pop(), object = f.pop();
  PyRef slice = PyRef::steal(PySlice_New(start.get(), stop.get(), nullptr));
  return pushed(f, ops.getItem(object.get(), slice.get()));
}

Flow storeSlice(Operations& ops, Frame& f, const Instruction&) {
  PyRef stop = f.pop(), start = f.pop(), object = f.pop(), value = f.pop();
  PyRef slice = PyRef::steal(PySlice_New(start.get(), stop.get(), nullptr));
  return ops.setItem(object.get(), slice.get(), value.get()) ? Flow::Next : Flow::Error;
}

Flow unary(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  if (i.op == Op::UNARY_NOT) return pushed(f, ops.opposite(value.get()));
  return pushed(f, ops.unary(i.op, value.get()));
}

Flow binaryOp(Operations& ops, Frame& f, const Instruction& i) {
  PyRef b = f.pop(), a = f.pop();
  return pushed(f, ops.binary(i.arg, a.get(), b.get()));
}

Flow compareOp(Operations& ops, Frame& f, const Instruction& i) {
  PyRef b = f.pop(), a = f.pop();
#if PY_VERSION_HEX >= 0x030C0000
  return pushed(f, ops.compare(i.arg >> 4, a.get(), b.get()));
#else
  return pushed(f, ops.compare(i.arg, a.get(), b.get()));
#endif
}

Flow isOp(Operations& ops, Frame& f, const Instruction& i) {
  PyRef b = f.pop(), a = f.pop();
  return pushBool(f, ops.same(a.get(), b.get()) != (i.arg != 0));
}

Flow containsOp(Operations& ops, Frame& f, const Instruction& i) {
  PyRef container = f.pop(), item = f.pop();
  const int found = ops.contains(container.get(), item.get());
  return pushBool(f, found < 0 ? -1 : (found != 0) != (i.arg != 0));
}

Flow getLen(Operations& ops, Frame& f, const Instruction&) {
  const Py_ssize_t n = ops.length(f.peek(1).get());
  return n < 0 ? Flow::Error : pushed(f, PyRef::steal(PyLong_FromSsize_t(n)));
}

constexpr HandlerRow kOperatorRows[] = {
    {Op::BINARY_SUBSCR, binarySubscr}, {Op::STORE_SUBSCR, storeSubscr}, {Op::DELETE_SUBSCR, deleteSubscr},
    {Op::BINARY_SLICE, binarySlice},   {Op::STORE_SLICE, storeSlice},   {Op::UNARY_POSITIVE, unary},
    {Op::UNARY_NEGATIVE, unary},       {Op::UNARY_NOT, unary},          {Op::UNARY_INVERT, unary},
    {Op::BINARY_OP, binaryOp},         {Op::COMPARE_OP, compareOp},     {Op::IS_OP, isOp},
    {Op::CONTAINS_OP, containsOp},     {Op::GET_LEN, getLen},
};

}  // namespace

HandlerRows operatorHandlers() { return {kOperatorRows, std::size(kOperatorRows)}; }

}  // namespace fusebox::capture
