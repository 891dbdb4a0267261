#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// A class of itertools by name; null when there is none.
PyTypeObject* itertoolsType(const char* name);

/// Gives references back in the order in which a tuple does.
inline void dropLastFirst(std::vector<PyRef>& list) {
  while (!list.empty()) list.pop_back();
}

/// zip, over iterators of any kind.
class ZipIterator final : public LazyIterator {
 public:
  ZipIterator(std::vector<PyRef> iterators, bool strict) : iterators_(std::move(iterators)), strict_(strict) {}
  ~ZipIterator() override { dropLastFirst(iterators_); }
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PyZip_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  void requireSameLength(Evaluation& e, size_t ended);
  std::vector<PyRef> iterators_;
  bool strict_;
};

class EnumerateIterator final : public LazyIterator {
 public:
  EnumerateIterator(PyRef iterator, PyRef count) : iterator_(std::move(iterator)), count_(std::move(count)) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PyEnum_Type; }
  Remaking remake(Evaluation&) const override;
  std::vector<std::shared_ptr<Recipe>> stateAfter(Evaluation&, RecipeMaker& recipes) const override;

 private:
  PyRef iterator_, count_;
};

class MapIterator final : public LazyIterator {
 public:
  MapIterator(PyRef function, std::vector<PyRef> iterators) : function_(std::move(function)), iterators_(std::move(iterators)) {}
  ~MapIterator() override { dropLastFirst(iterators_); }
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PyMap_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef function_;
  std::vector<PyRef> iterators_;
};

class FilterIterator final : public LazyIterator {
 public:
  FilterIterator(PyRef function, PyRef iterator) : function_(std::move(function)), iterator_(std::move(iterator)) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PyFilter_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef function_, iterator_;
};

/// itertools.chain, over an iterator of iterables.
class ChainIterator final : public LazyIterator {
 public:
  /// `current`: null, or the iterator that comes before the others.
  explicit ChainIterator(PyRef iterables, PyRef current = {}) : iterables_(std::move(iterables)), current_(std::move(current)) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override;
  Remaking remake(Evaluation&) const override;
  std::vector<std::shared_ptr<Recipe>> stateAfter(Evaluation& e, RecipeMaker& recipes) const override;

 private:
  PyRef iterables_, current_;
};

/// iter(callable, sentinel).
class CallableIterator final : public LazyIterator {
 public:
  CallableIterator(PyRef callable, PyRef sentinel) : callable_(std::move(callable)), sentinel_(std::move(sentinel)) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override { return &PyCallIter_Type; }
  Remaking remake(Evaluation&) const override;

 private:
  PyRef callable_, sentinel_;
};

/// itertools.islice with known bounds.
class SliceIterator final : public LazyIterator {
 public:
  SliceIterator(PyRef iterator, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step)
      : iterator_(std::move(iterator)), at_(0), wanted_(start), stop_(stop), step_(step) {}
  PyRef next(Evaluation& e) override;
  PyTypeObject* type() const override;
  Remaking remake(Evaluation&) const override;

 private:
  PyRef end();
  PyRef iterator_;  ///< null: ended
  Py_ssize_t at_, wanted_, stop_, step_;
};

/// An iterator of itertools in one step: what comes next, or null. The step owns its state.
class StepIterator final : public LazyIterator {
 public:
  using Step = std::function<PyRef(Evaluation& e)>;
  /// What a class is called with to have an iterator again as it is by now, and how many items are skipped then (-1: none); no arguments: break.
  struct Call {
    PyRef args, kwargs;
    int64_t taken = -1;
  };
  using Again = std::function<Call(Evaluation& e)>;
  StepIterator(PyTypeObject* type, Step step, Again again = {}) : type_(type), step_(std::move(step)), again_(std::move(again)) {}
  PyRef next(Evaluation& e) override { return step_(e); }
  PyTypeObject* type() const override { return type_; }
  Remaking remake(Evaluation& e) const override {
    if (!again_) return {};
    Call call = again_(e);
    return {PyRef::borrow(reinterpret_cast<PyObject*>(type_)), std::move(call.args), std::move(call.kwargs), {}, call.taken};
  }

 private:
  PyTypeObject* type_;
  Step step_;
  Again again_;
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
