#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

Flow loadGlobal(Operations& ops, Frame& f, const Instruction& i) {
  if (i.arg & 1) f.push(PyRef());
  return pushed(f, ops.loadGlobal(f, f.name(i.arg >> 1)));
}

Flow storeGlobal(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  return ops.storeGlobal(f, f.name(i.arg), value.get()) ? Flow::Next : Flow::Error;
}

Flow deleteGlobal(Operations& ops, Frame& f, const Instruction& i) {
  return ops.storeGlobal(f, f.name(i.arg), nullptr) ? Flow::Next : Flow::Error;
}

Flow makeCell(Operations& ops, Frame& f, const Instruction& i) {
  const auto index = static_cast<size_t>(i.arg);
  if (!f.unread.empty() && f.unread[index]) ops.readLocal(f, i.arg);
  PyRef cell = PyRef::steal(PyCell_New(f.locals[index].get()));
  ops.adopt(cell.get());
  f.locals[index] = std::move(cell);
  return Flow::Next;
}

Flow copyFreeVars(Operations&, Frame& f, const Instruction& i) {
  PyObject* closure = reinterpret_cast<PyFunctionObject*>(f.function.get())->func_closure;
  for (int k = 0; k < i.arg; ++k) {
    PyRef& slot = f.locals[static_cast<size_t>(f.decoded->freeOffset + k)];
    if (!slot) slot = PyRef::borrow(PyTuple_GET_ITEM(closure, k));  // the root frame brings them along already
  }
  return Flow::Next;
}

PyRef cellAt(Operations& ops, Frame& f, int index) {
  if (!f.unread.empty() && f.unread[static_cast<size_t>(index)]) ops.readLocal(f, index);
  return f.locals[static_cast<size_t>(index)];
}

Flow emptyCell(const Frame& f, int index) {
  PyObject* name = PyTuple_GET_ITEM(f.code()->co_localsplusnames, index);
  if (index < f.decoded->freeOffset)
    PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", name);
  else
    nameNotFound("cannot access free variable '%U' where it is not associated with a value in enclosing scope", name);
  return Flow::Error;
}

Flow loadDeref(Operations& ops, Frame& f, const Instruction& i) {
  PyRef cell = cellAt(ops, f, i.arg);
  PyRef value = cell ? ops.loadCell(cell.get()) : PyRef();
  if (!value) return PyErr_Occurred() ? Flow::Error : emptyCell(f, i.arg);
  f.push(std::move(value));
  return Flow::Next;
}

Flow storeDeref(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  ops.stored(PyTuple_GET_ITEM(f.code()->co_localsplusnames, i.arg), value.get());
  ops.storeCell(cellAt(ops, f, i.arg).get(), value.get());
  return Flow::Next;
}

Flow deleteDeref(Operations& ops, Frame& f, const Instruction& i) {
  PyRef cell = cellAt(ops, f, i.arg);
  if (!ops.hasCellContents(cell.get())) return emptyCell(f, i.arg);
  ops.storeCell(cell.get(), nullptr);
  return Flow::Next;
}

Flow loadMethodOf(Operations& ops, Frame& f, PyObject* name) {
  PyRef object = f.pop(), self;
  PyRef method = ops.getMethod(object.get(), name, &self);
  if (!method) return tellAttribute(object.get(), name), Flow::Error;
  if (self) {
    f.push(std::move(method));
    f.push(std::move(self));
  } else {
    f.push(PyRef());
    f.push(std::move(method));
  }
  return Flow::Next;
}

Flow loadMethod(Operations& ops, Frame& f, const Instruction& i) { return loadMethodOf(ops, f, f.name(i.arg)); }

Flow loadAttr(Operations& ops, Frame& f, const Instruction& i) {
#if PY_VERSION_HEX >= 0x030C0000
  if (i.arg & 1) return loadMethodOf(ops, f, f.name(i.arg >> 1));
  PyObject* name = f.name(i.arg >> 1);
#else
  PyObject* name = f.name(i.arg);
#endif
  PyRef object = f.pop(), value = ops.getAttr(object.get(), name);
  if (!value) tellAttribute(object.get(), name);
  return pushed(f, std::move(value));
}

Flow storeAttr(Operations& ops, Frame& f, const Instruction& i) {
  PyRef object = f.pop(), value = f.pop();
  return ops.setAttr(object.get(), f.name(i.arg), value.get()) ? Flow::Next : Flow::Error;
}

Flow deleteAttr(Operations& ops, Frame& f, const Instruction& i) {
  PyRef object = f.pop();
  return ops.setAttr(object.get(), f.name(i.arg), nullptr) ? Flow::Next : Flow::Error;
}

/// 3.12: super().name without making the super object where it is the builtin one.
Flow loadSuperAttr(Operations& ops, Frame& f, const Instruction& i) {
  PyRef self = f.pop(), type = f.pop(), global = f.pop();
  PyObject* args[] = {type.get(), self.get()};
  PyRef super = ops.call(global.get(), args, (i.arg & 2) ? 2 : 0, nullptr);
  if (!super) return Flow::Error;
  f.push(std::move(super));
  if (i.arg & 1) return loadMethodOf(ops, f, f.name(i.arg >> 2));
  PyRef object = f.pop();
  return pushed(f, ops.getAttr(object.get(), f.name(i.arg >> 2)));
}

Flow importName(Operations& ops, Frame& f, const Instruction& i) {
  PyRef fromList = f.pop(), level = f.pop();
  return pushed(f, ops.importName(f, f.name(i.arg), fromList.get(), level.get()));
}

Flow importFrom(Operations& ops, Frame& f, const Instruction& i) {
  PyRef module = f.peek(1);
  return pushed(f, ops.importFrom(module.get(), f.name(i.arg)));
}

constexpr HandlerRow kNameRows[] = {
    {Op::LOAD_GLOBAL, loadGlobal},       {Op::STORE_GLOBAL, storeGlobal}, {Op::DELETE_GLOBAL, deleteGlobal},
    {Op::MAKE_CELL, makeCell},           {Op::COPY_FREE_VARS, copyFreeVars},
    {Op::LOAD_DEREF, loadDeref},         {Op::STORE_DEREF, storeDeref},   {Op::DELETE_DEREF, deleteDeref},
    {Op::LOAD_ATTR, loadAttr},           {Op::LOAD_METHOD, loadMethod},   {Op::STORE_ATTR, storeAttr},
    {Op::DELETE_ATTR, deleteAttr},       {Op::LOAD_SUPER_ATTR, loadSuperAttr},
    {Op::IMPORT_NAME, importName},       {Op::IMPORT_FROM, importFrom},
};

}  // namespace

HandlerRows nameHandlers() { return {kNameRows, std::size(kNameRows)}; }

}  // namespace fusebox::capture
