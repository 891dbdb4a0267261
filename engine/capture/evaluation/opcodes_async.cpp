// await, async for; what async with enters is beside with (opcodes_exception.cpp).
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/iterator_pool.h"

namespace fusebox::capture {

namespace {

/// A type by which CPython knows an object: that of the iterator which one of the evaluator's stands for.
PyTypeObject* shownType(PyObject* object) {
  const LazyIterator* lazy = lazyOf(object);
  return lazy ? lazy->type() : Py_TYPE(object);
}

/// What `await` sends into; null with an error.
PyRef awaitedIterator(Operations& ops, PyObject* object, const char* refusal) {
  static PyObject* const kAwait = internedName("__await__");
  if (shownType(object) == &PyCoro_Type) return PyRef::borrow(object);
  PyRef method = ops.getSpecial(object, kAwait);
  if (!method) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, refusal, shownType(object)->tp_name);
    return {};
  }
  PyRef iterator = ops.call(method.get(), nullptr, 0, nullptr);
  if (!iterator) return {};
  PyTypeObject* type = shownType(iterator.get());
  if (type == &PyCoro_Type) {
    PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
  } else if (!type->tp_iternext) {
    PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'", type->tp_name);
  } else {
    return iterator;
  }
  return {};
}

Flow getAwaitable(Operations& ops, Frame& f, const Instruction& i) {
  static const char* const refusals[] = {"object %.100s can't be used in 'await' expression",
                                         "'async with' received an object from __aenter__ that does not implement __await__: %.100s",
                                         "'async with' received an object from __aexit__ that does not implement __await__: %.100s"};
  PyRef object = f.pop(), iterator = awaitedIterator(ops, object.get(), refusals[i.arg]);
  if (!iterator) return Flow::Error;
  if (shownType(iterator.get()) == &PyCoro_Type && ops.isAwaiting(iterator.get())) {
    PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    return Flow::Error;
  }
  f.push(std::move(iterator));
  return Flow::Next;
}

/// A special method that must be there.
PyRef required(Operations& ops, PyObject* object, PyObject* name, const char* refusal) {
  PyRef method = ops.getSpecial(object, name);
  if (!method && !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, refusal, shownType(object)->tp_name);
  return method;
}

PyObject* anext() {
  static PyObject* const name = internedName("__anext__");
  return name;
}

Flow getAsyncIterator(Operations& ops, Frame& f, const Instruction&) {
  static PyObject* const kAiter = internedName("__aiter__");
  PyRef object = f.pop();
  PyRef method = required(ops, object.get(), kAiter, "'async for' requires an object with __aiter__ method, got %.100s");
  PyRef iterator = method ? ops.call(method.get(), nullptr, 0, nullptr) : PyRef();
  if (!iterator || !required(ops, iterator.get(), anext(), "'async for' received an object from __aiter__ that does not implement __anext__: %.100s"))
    return Flow::Error;
  f.push(std::move(iterator));
  return Flow::Next;
}

Flow getAsyncNext(Operations& ops, Frame& f, const Instruction&) {
  PyRef iterator = f.peek(1);
  PyRef method = required(ops, iterator.get(), anext(), "'async for' requires an iterator with __anext__ method, got %.100s");
  PyRef object = method ? ops.call(method.get(), nullptr, 0, nullptr) : PyRef();
  if (!object) return Flow::Error;
  PyRef awaited = awaitedIterator(ops, object.get(), "object %.100s can't be used in 'await' expression");
  if (!awaited) {
    PyRef cause = takeException();
    PyRef text = PyRef::steal(PyUnicode_FromFormat("'async for' received an invalid object from __anext__: %.100s", shownType(object.get())->tp_name));
    PyRef error = text ? PyRef::steal(PyObject_CallOneArg(PyExc_TypeError, text.get())) : PyRef();
    if (!error) return Flow::Error;
    PyException_SetContext(error.get(), PyRef(cause).release());
    PyException_SetCause(error.get(), cause.release());
    PyErr_SetObject(PyExc_TypeError, error.get());
    return Flow::Error;
  }
  f.push(std::move(awaited));
  return Flow::Next;
}

/// Above the iterator lies what awaiting its next element has raised: StopAsyncIteration ends the loop.
Flow endAsyncFor(Operations&, Frame& f, const Instruction&) {
  PyRef exception = f.pop();
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopAsyncIteration)) return raiseAgain(f, std::move(exception));
  f.pop();
  return Flow::Next;
}

constexpr HandlerRow kAsyncRows[] = {
    {Op::GET_AWAITABLE, getAwaitable},
    {Op::GET_AITER, getAsyncIterator},
    {Op::GET_ANEXT, getAsyncNext},
    {Op::END_ASYNC_FOR, endAsyncFor},
};

}  // namespace

HandlerRows asyncHandlers() { return {kAsyncRows, std::size(kAsyncRows)}; }

}  // namespace fusebox::capture
