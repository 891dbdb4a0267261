#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/value_kinds.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

Flow pushed(Operations& ops, Frame& f, PyRef value) {
  if (value) ops.adopt(value.get());
  return pushed(f, std::move(value));
}

Flow buildTuple(Operations& ops, Frame& f, const Instruction& i) {
  PyRef tuple = PyRef::steal(PyTuple_New(i.arg));
  for (int k = i.arg - 1; k >= 0; --k) PyTuple_SET_ITEM(tuple.get(), k, f.pop().release());
  return pushed(ops, f, std::move(tuple));
}

Flow buildList(Operations& ops, Frame& f, const Instruction& i) {
  PyRef list = PyRef::steal(PyList_New(i.arg));
  for (int k = i.arg - 1; k >= 0; --k) PyList_SET_ITEM(list.get(), k, f.pop().release());
  return pushed(ops, f, std::move(list));
}

Flow buildSet(Operations& ops, Frame& f, const Instruction& i) {
  PyRef set = PyRef::steal(PySet_New(nullptr));
  for (int k = i.arg; k > 0; --k)
    if (!ops.addToSet(set.get(), f.peek(k).get())) return Flow::Error;
  f.stack.resize(f.stack.size() - static_cast<size_t>(i.arg));
  return pushed(ops, f, std::move(set));
}

Flow buildMap(Operations& ops, Frame& f, const Instruction& i) {
  PyRef dict = PyRef::steal(PyDict_New());
  for (int k = i.arg; k > 0; --k)
    if (!ops.storeKey(dict.get(), f.peek(2 * k).get(), f.peek(2 * k - 1).get())) return Flow::Error;
  f.stack.resize(f.stack.size() - static_cast<size_t>(2 * i.arg));
  return pushed(ops, f, std::move(dict));
}

Flow buildConstKeyMap(Operations& ops, Frame& f, const Instruction& i) {
  PyRef keys = f.pop(), dict = PyRef::steal(PyDict_New());
  for (int k = 0; k < i.arg; ++k)
    if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(keys.get(), k), f.peek(i.arg - k).get()) < 0) return Flow::Error;
  f.stack.resize(f.stack.size() - static_cast<size_t>(i.arg));
  return pushed(ops, f, std::move(dict));
}

Flow buildString(Operations& ops, Frame& f, const Instruction& i) {
  PyRef parts = PyRef::steal(PyTuple_New(i.arg));
  for (int k = i.arg - 1; k >= 0; --k) PyTuple_SET_ITEM(parts.get(), k, f.pop().release());
  return pushed(ops, f, joinedTexts(parts.get()));
}

Flow buildSlice(Operations& ops, Frame& f, const Instruction& i) {
  PyRef step = i.arg == 3 ? f.pop() : PyRef(), stop = f.pop(), start = f.pop();
  return pushed(ops, f, PyRef::steal(PySlice_New(start.get(), stop.get(), step.get())));
}

Flow formatValue(Operations& ops, Frame& f, const Instruction& i) {
  static constexpr char kConversions[] = {0, 's', 'r', 'a'};
  PyRef spec = (i.arg & 4) ? f.pop() : PyRef(), value = f.pop();
  if (const char conversion = kConversions[i.arg & 3]) {
    value = ops.convert(conversion, value.get());
    if (!value) return Flow::Error;
  }
  if (!PyUnicode_CheckExact(value.get()) || spec) value = ops.format(value.get(), spec.get());
  return pushed(ops, f, std::move(value));
}

Flow listAppend(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  return ops.append(f.peek(i.arg).get(), value.get()) ? Flow::Next : Flow::Error;
}

Flow setAdd(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop();
  return ops.addToSet(f.peek(i.arg).get(), value.get()) ? Flow::Next : Flow::Error;
}

Flow mapAdd(Operations& ops, Frame& f, const Instruction& i) {
  PyRef value = f.pop(), key = f.pop();
  return ops.storeKey(f.peek(i.arg).get(), key.get(), value.get()) ? Flow::Next : Flow::Error;
}

Flow listExtend(Operations& ops, Frame& f, const Instruction& i) {
  PyRef iterable = f.pop();
  if (ops.extendList(f.peek(i.arg).get(), iterable.get(), true)) return Flow::Next;
  if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(iterable.get())->tp_iter && !PySequence_Check(iterable.get()))
    PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(iterable.get())->tp_name);
  return Flow::Error;
}

Flow setUpdate(Operations& ops, Frame& f, const Instruction& i) {
  PyRef iterable = f.pop();
  return ops.updateSet(f.peek(i.arg).get(), iterable.get()) ? Flow::Next : Flow::Error;
}

/// Whether it surely has no keys(): what is unpacked by ** must have it, while dict.update() takes pairs too. Runs no Python code.
bool lacksKeys(PyObject* object) {
  static PyObject* const kKeys = PyUnicode_InternFromString("keys");
  if (Py_TYPE(object)->tp_getattro != PyObject_GenericGetAttr || _PyType_Lookup(Py_TYPE(object), kKeys)) return false;
  const PyRef own = PyRef::steal(PyObject_GenericGetAttr(object, kKeys));
  clearError();
  return !own;
}

Flow dictUpdate(Operations& ops, Frame& f, const Instruction& i) {
  PyRef mapping = f.pop();
  if (!lacksKeys(mapping.get()) && ops.updateDict(f.peek(i.arg).get(), mapping.get())) return Flow::Next;
  if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(mapping.get())->tp_name);
  return Flow::Error;
}

/// **kwargs of a call: like an update, but a key that is there already is an error.
Flow dictMerge(Operations& ops, Frame& f, const Instruction& i) {
  PyRef mapping = f.pop();
  PyObject* target = f.peek(i.arg).get();
  PyRef incoming = PyRef::steal(PyDict_New());
  // Under the dict lie the positional arguments and, where a NULL is, the callable: CPython's versions order these two otherwise.
  PyObject* callable = f.peek(i.arg + 2).get();
  if (!callable) callable = f.peek(i.arg + 3).get();
  if (lacksKeys(mapping.get()) || !ops.updateDict(incoming.get(), mapping.get())) {
    if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_AttributeError)) refuseUnpacked(callable, "** must be a mapping", mapping.get());
    return Flow::Error;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(incoming.get(), &at, &key, &value);) {
    const int there = ops.contains(target, key);
    if (there < 0) return Flow::Error;
    if (there) {
      if (PyRef name = calledName(callable)) PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", name.get(), key);
      return Flow::Error;
    }
    if (!ops.storeKey(target, key, value)) return Flow::Error;
  }
  return Flow::Next;
}

Flow listToTuple(Operations& ops, Frame& f, const Instruction&) {
  PyRef list = f.pop();
  return pushed(ops, f, ops.tupleOf(list.get()));
}

Flow wrongCount(Py_ssize_t got, int before, bool tooMany) {
  if (tooMany)
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
  else
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %zd)", before, got);
  return Flow::Error;
}

/// iter() of what is unpacked, with the words of an unpacking where it has none.
PyRef iteratorToUnpack(Operations& ops, PyObject* object) {
  PyRef iterator = ops.iter(object);
  if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(object)->tp_iter && !PySequence_Check(object))
    PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(object)->tp_name);
  return iterator;
}

Flow unpackSequence(Operations& ops, Frame& f, const Instruction& i) {
  PyRef sequence = f.pop(), iterator = iteratorToUnpack(ops, sequence.get());
  if (!iterator) return Flow::Error;
  std::vector<PyRef> items;
  while (static_cast<int>(items.size()) < i.arg) {
    PyRef item = ops.next(iterator.get());
    if (!item) return PyErr_Occurred() ? Flow::Error : wrongCount(static_cast<Py_ssize_t>(items.size()), i.arg, false);
    items.push_back(std::move(item));
  }
  if (ops.next(iterator.get())) return wrongCount(0, i.arg, true);
  if (PyErr_Occurred()) return Flow::Error;
  for (auto it = items.rbegin(); it != items.rend(); ++it) f.push(std::move(*it));
  return Flow::Next;
}

Flow unpackEx(Operations& ops, Frame& f, const Instruction& i) {
  const int before = i.arg & 0xFF, after = i.arg >> 8;
  PyRef sequence = f.pop(), iterator = iteratorToUnpack(ops, sequence.get());
  if (!iterator) return Flow::Error;
  const auto tooFew = [&](Py_ssize_t got) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)", before + after, got);
    return Flow::Error;
  };
  std::vector<PyRef> first;
  while (static_cast<int>(first.size()) < before) {
    PyRef item = ops.next(iterator.get());
    if (!item) return PyErr_Occurred() ? Flow::Error : tooFew(static_cast<Py_ssize_t>(first.size()));
    first.push_back(std::move(item));
  }
  PyRef rest = ops.collect(iterator.get(), false, true);
  if (!rest) return Flow::Error;
  const Py_ssize_t n = PyList_GET_SIZE(rest.get());
  if (n < after) return tooFew(before + n);
  for (Py_ssize_t k = n - 1; k >= n - after; --k) f.push(PyRef::borrow(PyList_GET_ITEM(rest.get(), k)));
  PyRef middle = PyRef::steal(PyList_GetSlice(rest.get(), 0, n - after));
  ops.adopt(middle.get());
  f.push(std::move(middle));
  for (auto it = first.rbegin(); it != first.rend(); ++it) f.push(std::move(*it));
  return Flow::Next;
}

constexpr HandlerRow kContainerRows[] = {
    {Op::BUILD_TUPLE, buildTuple},   {Op::BUILD_LIST, buildList},     {Op::BUILD_SET, buildSet},
    {Op::BUILD_MAP, buildMap},       {Op::BUILD_CONST_KEY_MAP, buildConstKeyMap},
    {Op::BUILD_STRING, buildString}, {Op::BUILD_SLICE, buildSlice},   {Op::FORMAT_VALUE, formatValue},
    {Op::LIST_APPEND, listAppend},   {Op::SET_ADD, setAdd},           {Op::MAP_ADD, mapAdd},
    {Op::LIST_EXTEND, listExtend},   {Op::SET_UPDATE, setUpdate},     {Op::DICT_UPDATE, dictUpdate},
    {Op::DICT_MERGE, dictMerge},     {Op::LIST_TO_TUPLE, listToTuple},
    {Op::UNPACK_SEQUENCE, unpackSequence}, {Op::UNPACK_EX, unpackEx},
};

}  // namespace

HandlerRows containerHandlers() { return {kContainerRows, std::size(kContainerRows)}; }

bool checkSuperClass(PyObject* content) {
  if (content && PyType_Check(content)) return true;
  if (content) PyErr_Format(PyExc_RuntimeError, "super(): __class__ is not a type (%s)", Py_TYPE(content)->tp_name);
  else PyErr_SetString(PyExc_RuntimeError, "super(): empty __class__ cell");
  return false;
}

bool checkExceptionClasses(PyObject* type) {
  bool fits = PyExceptionClass_Check(type) || PyTuple_Check(type);
  for (Py_ssize_t i = 0; PyTuple_Check(type) && i < PyTuple_GET_SIZE(type); ++i) fits = fits && PyExceptionClass_Check(PyTuple_GET_ITEM(type, i));
  if (!fits) PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
  return fits;
}

bool Operations::extendList(PyObject* list, PyObject* iterable, bool asksLength) {
  PyRef iterator = iter(iterable);
  if (!iterator || (asksLength && !guessLength(iterable))) return false;
  while (PyRef item = next(iterator.get()))
    if (!append(list, item.get())) return false;
  return !PyErr_Occurred();
}

bool Operations::updateSet(PyObject* set, PyObject* iterable) {
  PyRef iterator = iter(iterable);
  if (!iterator) return false;
  if (isMergedAsWhole(iterable)) return mergeIntoSet(set, iterable);
  while (PyRef item = next(iterator.get()))
    if (!addToSet(set, item.get())) return false;
  return !PyErr_Occurred();
}

PyRef Operations::collect(PyObject* iterable, bool makeTuple, bool asksLength) {
  PyRef list = PyRef::steal(PyList_New(0));
  if (!extendList(list.get(), iterable, asksLength)) return {};
  PyRef result = makeTuple ? PyRef::steal(PyList_AsTuple(list.get())) : std::move(list);
  adopt(result.get());
  return result;
}

}  // namespace fusebox::capture
