#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// iter() and reversed() of a list or tuple: the object and an index, as CPython has it. The object may change meanwhile.
class SequenceWalk final : public LazyIterator {
 public:
  SequenceWalk(PyObject* sequence, bool backwards);
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return type_; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef sequence_;  ///< null: ended
  PyTypeObject* type_;
  Py_ssize_t at_ = 0;
  bool backwards_;
};

/// iter() and reversed() of a dict or a view of one. CPython's own iterator over the keys goes along, so that a dict which changes
/// its size or order meanwhile raises what it raises.
class DictWalk final : public LazyIterator {
 public:
  enum class Kind { Keys, Values, Items };
  DictWalk(PyObject* dict, Kind kind, bool backwards);
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return type_; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef dict_, keys_, order_;  ///< the dict, the iterator, all keys when it was made
  PyTypeObject* type_;
  Kind kind_;
  bool backwards_, ended_ = false;
  int64_t taken_ = 0;
};

/// iter() of a set, on the set itself.
class SetWalk final : public LazyIterator {
 public:
  explicit SetWalk(PyObject* set);
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PySetIter_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef set_, elements_, order_;
  bool ended_ = false;
  int64_t taken_ = 0;
};

/// iter() of an object with __getitem__ only: until IndexError or StopIteration.
class ItemWalk final : public LazyIterator {
 public:
  explicit ItemWalk(PyObject* object) : object_(PyRef::borrow(object)) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PySeqIter_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef object_;  ///< null: ended
  Py_ssize_t at_ = 0;
};

/// iter() of a deque from outside, which may not change meanwhile.
class DequeWalk final : public LazyIterator {
 public:
  explicit DequeWalk(PyObject* deque) : deque_(PyRef::borrow(deque)) {}
  bool isOver(PyObject* deque) const { return deque_.get() == deque; }
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override;
  Remaking remake(Evaluation&) const override;

 private:
  PyRef deque_;
  Py_ssize_t at_ = 0;
};

/// The dict that a view of keys, values or items shows, and what it shows of it; null: not a view.
PyObject* dictOfView(PyObject* view, DictWalk::Kind* kind);
/// The same where what is read of the dict is guarded: the view is new, or its dict has a source. Null otherwise.
PyObject* knownDictOf(Evaluation& e, PyObject* view, DictWalk::Kind* kind);

}  // namespace fusebox::capture
