#include "engine/capture/evaluation/lazy_iterators.h"

#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

/// Turns a StopIteration that escapes a generator's body into RuntimeError (PEP 479).
static void convertStopIteration() {
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return;
  PyErr_Clear();
  PyErr_SetString(PyExc_RuntimeError, "generator raised StopIteration");
}

int SuspendedFrame::resume(Evaluation& e, PyRef* result) {
  if (running_) {
    PyErr_SetString(PyExc_ValueError, "generator already executing");
    return -1;
  }
  running_ = true;
  PyRef handled = PyRef::steal(PyErr_GetHandledException());
  int status;
  try {
    status = e.runUntilYield(*frame_, result);
  } catch (...) {
    running_ = false;
    throw;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_SetHandledException(handled ? handled.get() : Py_None);
  PyErr_Restore(type, value, traceback);
  running_ = false;
  if (status <= 0) frame_.reset();
  if (status < 0) convertStopIteration();
  return status;
}

PyRef SuspendedFrame::next(Evaluation& e) {
  PyRef result;
  const int status = send(e, Py_None, &result);
  return status == 1 ? result : PyRef();
}

int SuspendedFrame::send(Evaluation& e, PyObject* value, PyRef* result) {
  if (!frame_) {
    *result = PyRef::borrow(Py_None);
    return 0;
  }
  if (!started_ && value != Py_None) {
    PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started generator");
    return -1;
  }
  started_ = true;
  frame_->push(PyRef::borrow(value));
  return resume(e, result);
}

int SuspendedFrame::throwInto(Evaluation& e, PyObject* exception, PyRef* result) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  if (!frame_ || !started_) {
    frame_.reset();
    return -1;
  }
  --frame_->pc;  // the exception is raised at the yield itself
  if (!enterHandler(e, *frame_)) {
    frame_.reset();
    return -1;
  }
  return resume(e, result);
}

bool SuspendedFrame::close(Evaluation& e) {
  if (!frame_ || !started_) {
    frame_.reset();
    return true;
  }
  PyRef exit = PyRef::steal(PyObject_CallNoArgs(PyExc_GeneratorExit)), result;
  const int status = throwInto(e, exit.get(), &result);
  if (status > 0) {
    PyErr_SetString(PyExc_RuntimeError, "generator ignored GeneratorExit");
    return false;
  }
  if (status < 0) {
    if (!PyErr_ExceptionMatches(PyExc_GeneratorExit) && !PyErr_ExceptionMatches(PyExc_StopIteration)) return false;
    PyErr_Clear();
  }
  return true;
}

PyRef ZipIterator::next(Evaluation& e) {
  if (iterators_.empty()) return {};
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(iterators_.size())));
  for (size_t i = 0; i < iterators_.size(); ++i) {
    PyRef item = e.next(iterators_[i].get());
    if (!item) {
      if (strict_ && !PyErr_Occurred())
        e.breakHere("unsupported call", "zip(strict=True) over iterators of different length or kind");
      return {};
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return tuple;
}

PyRef EnumerateIterator::next(Evaluation& e) {
  PyRef item = e.next(iterator_.get());
  if (!item) return {};
  PyRef pair = PyRef::steal(PyTuple_Pack(2, count_.get(), item.get()));
  PyRef one = PyRef::steal(PyLong_FromLong(1));
  count_ = PyRef::steal(PyNumber_Add(count_.get(), one.get()));
  return pair;
}

PyRef MapIterator::next(Evaluation& e) {
  std::vector<PyRef> items;
  std::vector<PyObject*> args;
  for (PyRef& iterator : iterators_) {
    PyRef item = e.next(iterator.get());
    if (!item) return {};
    args.push_back(item.get());
    items.push_back(std::move(item));
  }
  return e.call(function_.get(), args.data(), args.size(), nullptr);
}

PyRef FilterIterator::next(Evaluation& e) {
  while (PyRef item = e.next(iterator_.get())) {
    PyRef kept = item;
    if (function_.get() != Py_None) {
      PyObject* args[] = {item.get()};
      kept = e.call(function_.get(), args, 1, nullptr);
      if (!kept) return {};
    }
    const int truth = e.truth(kept.get());
    if (truth < 0) return {};
    if (truth) return item;
  }
  return {};
}

PyRef ChainIterator::next(Evaluation& e) {
  for (;;) {
    if (!current_) {
      PyRef iterable = e.next(iterables_.get());
      if (!iterable) return {};
      current_ = e.iter(iterable.get());
      if (!current_) return {};
    }
    PyRef item = e.next(current_.get());
    if (item || PyErr_Occurred()) return item;
    current_ = PyRef();
  }
}

PyRef CallableIterator::next(Evaluation& e) {
  if (!callable_) return {};
  PyRef value = e.call(callable_.get(), nullptr, 0, nullptr);
  if (!value) {
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) PyErr_Clear();
    return {};
  }
  PyRef equal = e.compare(Py_EQ, value.get(), sentinel_.get());
  const int truth = equal ? e.truth(equal.get()) : -1;
  if (truth < 0) return {};
  if (!truth) return value;
  callable_ = PyRef();
  return {};
}

PyRef SliceIterator::next(Evaluation& e) {
  if (stop_ >= 0 && wanted_ >= stop_) return {};
  while (at_ < wanted_) {
    if (!e.next(iterator_.get())) return {};
    ++at_;
  }
  PyRef item = e.next(iterator_.get());
  ++at_;
  wanted_ += step_;
  return item;
}

int GroupBy::advance(Evaluation& e) {
  PyRef value = e.next(iterator_.get());
  if (!value) return PyErr_Occurred() ? -1 : 0;
  PyRef key = value;
  if (keyOf_) {
    PyObject* args[] = {value.get()};
    key = e.call(keyOf_.get(), args, 1, nullptr);
    if (!key) return -1;
  }
  value_ = std::move(value);
  key_ = std::move(key);
  return 1;
}

int GroupBy::same(Evaluation& e, PyObject* a, PyObject* b) {
  if (a == b) return 1;
  PyRef equal = e.compare(Py_EQ, a, b);
  return equal ? e.truth(equal.get()) : -1;
}

PyRef GroupBy::nextGroup(const std::shared_ptr<GroupBy>& self, Evaluation& e) {
  for (;;) {
    if (self->key_) {
      if (!self->wanted_) break;
      const int inside = self->same(e, self->wanted_.get(), self->key_.get());
      if (inside < 0) return {};
      if (!inside) break;
    }
    if (self->advance(e) <= 0) return {};
  }
  self->wanted_ = self->key_;
  const int64_t group = ++self->group_;
  PyRef items = makeLazy(e, std::make_unique<StepIterator>("group", [self, group](Evaluation& in) { return self->nextOfGroup(in, group); }));
  return PyRef::steal(PyTuple_Pack(2, self->key_.get(), items.get()));
}

PyRef GroupBy::nextOfGroup(Evaluation& e, int64_t group) {
  if (group != group_) return {};
  if (!value_ && advance(e) <= 0) return {};
  const int inside = same(e, wanted_.get(), key_.get());
  return inside > 0 ? std::move(value_) : PyRef();
}

}  // namespace fusebox::capture
