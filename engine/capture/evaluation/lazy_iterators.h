#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// A generator made by interpreted code: its frame, suspended between two instructions.
class SuspendedFrame final : public LazyIterator {
 public:
  explicit SuspendedFrame(std::unique_ptr<Frame> frame) : frame_(std::move(frame)) {}
  PyRef next(Evaluation& e) override;
  int send(Evaluation& e, PyObject* value, PyRef* result) override;
  bool close(Evaluation& e) override;
  int throwInto(Evaluation& e, PyObject* exception, PyRef* result) override;
  const char* what() const override { return "generator"; }

 private:
  int resume(Evaluation& e, PyRef* result);
  std::unique_ptr<Frame> frame_;
  bool started_ = false, running_ = false;
};

/// zip, over iterators of any kind.
class ZipIterator final : public LazyIterator {
 public:
  ZipIterator(std::vector<PyRef> iterators, bool strict) : iterators_(std::move(iterators)), strict_(strict) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "zip"; }

 private:
  std::vector<PyRef> iterators_;
  bool strict_;
};

class EnumerateIterator final : public LazyIterator {
 public:
  EnumerateIterator(PyRef iterator, PyRef count) : iterator_(std::move(iterator)), count_(std::move(count)) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "enumerate"; }

 private:
  PyRef iterator_, count_;
};

class MapIterator final : public LazyIterator {
 public:
  MapIterator(PyRef function, std::vector<PyRef> iterators) : function_(std::move(function)), iterators_(std::move(iterators)) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "map"; }

 private:
  PyRef function_;
  std::vector<PyRef> iterators_;
};

class FilterIterator final : public LazyIterator {
 public:
  FilterIterator(PyRef function, PyRef iterator) : function_(std::move(function)), iterator_(std::move(iterator)) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "filter"; }

 private:
  PyRef function_, iterator_;
};

/// itertools.chain, over an iterator of iterables.
class ChainIterator final : public LazyIterator {
 public:
  explicit ChainIterator(PyRef iterables) : iterables_(std::move(iterables)) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "chain"; }

 private:
  PyRef iterables_, current_;
};

/// iter(callable, sentinel).
class CallableIterator final : public LazyIterator {
 public:
  CallableIterator(PyRef callable, PyRef sentinel) : callable_(std::move(callable)), sentinel_(std::move(sentinel)) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "callable_iterator"; }

 private:
  PyRef callable_, sentinel_;
};

/// itertools.islice with known bounds.
class SliceIterator final : public LazyIterator {
 public:
  SliceIterator(PyRef iterator, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step)
      : iterator_(std::move(iterator)), at_(0), wanted_(start), stop_(stop), step_(step) {}
  PyRef next(Evaluation& e) override;
  const char* what() const override { return "islice"; }

 private:
  PyRef iterator_;
  Py_ssize_t at_, wanted_, stop_, step_;
};

/// An iterator of itertools in one step: what comes next, or null. The step owns its state.
class StepIterator final : public LazyIterator {
 public:
  using Step = std::function<PyRef(Evaluation& e)>;
  StepIterator(const char* what, Step step) : what_(what), step_(std::move(step)) {}
  PyRef next(Evaluation& e) override { return step_(e); }
  const char* what() const override { return what_; }

 private:
  const char* what_;
  Step step_;
};

/// itertools.groupby: its groups and itself advance one iterator.
class GroupBy {
 public:
  GroupBy(PyRef iterator, PyRef key) : iterator_(std::move(iterator)), keyOf_(std::move(key)) {}
  /// (key, iterator over the group)
  static PyRef nextGroup(const std::shared_ptr<GroupBy>& self, Evaluation& e);
  PyRef nextOfGroup(Evaluation& e, int64_t group);

 private:
  /// 1: another item, 0: none, -1: error.
  int advance(Evaluation& e);
  int same(Evaluation& e, PyObject* a, PyObject* b);
  PyRef iterator_, keyOf_, wanted_, key_, value_;
  int64_t group_ = 0;
};

}  // namespace fusebox::capture
