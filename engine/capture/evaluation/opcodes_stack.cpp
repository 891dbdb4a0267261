#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

Flow nop(Operations&, Frame&, const Instruction&) { return Flow::Next; }

Flow pushNull(Operations&, Frame& f, const Instruction&) {
  f.push(PyRef());
  return Flow::Next;
}

Flow popTop(Operations&, Frame& f, const Instruction&) {
  f.pop();
  return Flow::Next;
}

Flow endFor(Operations&, Frame& f, const Instruction&) {
  f.pop();
  f.pop();
  return Flow::Next;
}

Flow endSend(Operations&, Frame& f, const Instruction&) {
  PyRef value = f.pop();
  f.peek(1) = std::move(value);
  return Flow::Next;
}

Flow copy(Operations&, Frame& f, const Instruction& i) {
  f.push(f.peek(i.arg));
  return Flow::Next;
}

Flow swap(Operations&, Frame& f, const Instruction& i) {
  std::swap(f.peek(1), f.peek(i.arg));
  return Flow::Next;
}

Flow loadConst(Operations&, Frame& f, const Instruction& i) {
  f.push(PyRef::borrow(PyTuple_GET_ITEM(f.decoded->consts.get(), i.arg)));
  return Flow::Next;
}

PyObject* localName(const Frame& f, int index) { return PyTuple_GET_ITEM(f.code()->co_localsplusnames, index); }

Flow unbound(const Frame& f, int index) {
  PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value",
               localName(f, index));
  return Flow::Error;
}

Flow loadFast(Operations& ops, Frame& f, const Instruction& i) {
  const auto index = static_cast<size_t>(i.arg);
  if (!f.unread.empty() && f.unread[index]) {
    if (f.isRoot && ops.pushUnread(f, i.arg)) return Flow::Next;
    ops.readLocal(f, i.arg);
  }
  if (!f.locals[index]) return unbound(f, i.arg);
  f.push(f.locals[index]);
  return Flow::Next;
}

void markRead(Frame& f, int index) {
  if (!f.unread.empty()) f.unread[static_cast<size_t>(index)] = false;
}

Flow storeFast(Operations& ops, Frame& f, const Instruction& i) {
  PyRef& local = f.locals[static_cast<size_t>(i.arg)];
  if (f.isRoot && local) ops.willUnbind(f, local.get());
  markRead(f, i.arg);
  local = f.pop();
  // Behind a comprehension that CPython 3.12 has put in line, its name may be unbound again.
  if (local) ops.stored(PyTuple_GET_ITEM(f.code()->co_localsplusnames, i.arg), local.get());
  return Flow::Next;
}

Flow deleteFast(Operations& ops, Frame& f, const Instruction& i) {
  PyRef& local = f.locals[static_cast<size_t>(i.arg)];
  if (!local) return unbound(f, i.arg);
  if (f.isRoot) ops.willUnbind(f, local.get());
  markRead(f, i.arg);
  local = PyRef();
  return Flow::Next;
}

/// 3.12, inlined comprehensions: saves the outer variable of the same name (maybe unbound) and unbinds it.
Flow loadFastAndClear(Operations& ops, Frame& f, const Instruction& i) {
  const auto index = static_cast<size_t>(i.arg);
  if (!f.unread.empty() && f.unread[index]) ops.readLocal(f, i.arg);
  f.push(std::move(f.locals[index]));
  f.locals[index] = PyRef();
  return Flow::Next;
}

constexpr HandlerRow kStackRows[] = {
    {Op::NOP, nop},
    {Op::CACHE, nop},
    {Op::RESUME, nop},
    {Op::PRECALL, nop},
    {Op::PUSH_NULL, pushNull},
    {Op::POP_TOP, popTop},
    {Op::END_FOR, endFor},
    {Op::END_SEND, endSend},
    {Op::COPY, copy},
    {Op::SWAP, swap},
    {Op::LOAD_CONST, loadConst},
    {Op::LOAD_FAST, loadFast},
    {Op::LOAD_FAST_CHECK, loadFast},
    {Op::LOAD_FAST_AND_CLEAR, loadFastAndClear},
    {Op::STORE_FAST, storeFast},
    {Op::DELETE_FAST, deleteFast},
    {Op::LOAD_CLOSURE, loadFast},
};

}  // namespace

HandlerRows stackHandlers() { return {kStackRows, std::size(kStackRows)}; }

}  // namespace fusebox::capture
