#include "engine/capture/evaluation/lazy_iterators.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

PyRef typeRef(PyTypeObject& type) { return PyRef::borrow(reinterpret_cast<PyObject*>(&type)); }

PyRef tupleOf(const PyRef& first, const std::vector<PyRef>& rest = {}) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(rest.size()) + (first ? 1 : 0)));
  Py_ssize_t at = 0;
  if (first) PyTuple_SET_ITEM(tuple.get(), at++, PyRef(first).release());
  for (const PyRef& r : rest) PyTuple_SET_ITEM(tuple.get(), at++, PyRef(r).release());
  return tuple;
}

PyRef itertoolsMember(const char* name) { return PyRef::borrow(torchObject((std::string("itertools.") + name).c_str())); }

/// An iterator of a class of itertools that has nothing left.
PyRef nothing() { return PyRef::steal(PyTuple_New(0)); }

}  // namespace

PyTypeObject* itertoolsType(const char* name) { return reinterpret_cast<PyTypeObject*>(itertoolsMember(name).get()); }

PyRef ZipIterator::next(Evaluation& e) {
  if (iterators_.empty()) return {};
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(iterators_.size())));
  for (size_t i = 0; i < iterators_.size(); ++i) {
    PyRef item = e.next(iterators_[i].get());
    if (!item) {
      if (strict_ && !PyErr_Occurred()) requireSameLength(e, i);
      return {};
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return tuple;
}

/// Argument `ended` has ended: an error unless all of them do.
void ZipIterator::requireSameLength(Evaluation& e, size_t ended) {
  auto mismatch = [](size_t i, const char* how) {
    const char* before = i == 1 ? " " : "s 1-";
    PyErr_Format(PyExc_ValueError, "zip() argument %zu is %s than argument%s%zu", i + 1, how, before, i);
  };
  if (ended > 0) return mismatch(ended, "shorter");
  for (size_t i = 1; i < iterators_.size(); ++i) {
    PyRef more = e.next(iterators_[i].get());
    if (more) return mismatch(i, "longer");
    if (PyErr_Occurred()) return;
  }
}

Remaking ZipIterator::remake(Evaluation&) const {
  PyRef keywords = PyRef::steal(PyDict_New());
  if (strict_) PyDict_SetItemString(keywords.get(), "strict", Py_True);
  return {typeRef(PyZip_Type), tupleOf({}, iterators_), keywords, {}};
}

PyRef EnumerateIterator::next(Evaluation& e) {
  PyRef item = e.next(iterator_.get());
  if (!item) return {};
  PyRef pair = PyRef::steal(PyTuple_Pack(2, count_.get(), item.get()));
  PyRef one = PyRef::steal(PyLong_FromLong(1));
  count_ = e.binary(kAdd, count_.get(), one.get());
  return pair;
}

std::vector<std::shared_ptr<Recipe>> EnumerateIterator::stateAfter(Evaluation&, RecipeMaker& recipes) const { return {recipes.make(count_.get())}; }

Remaking EnumerateIterator::remake(Evaluation&) const { return {typeRef(PyEnum_Type), tupleOf(iterator_, {count_}), {}, {}}; }

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

Remaking MapIterator::remake(Evaluation&) const { return {typeRef(PyMap_Type), tupleOf(function_, iterators_), {}, {}}; }

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

Remaking FilterIterator::remake(Evaluation&) const { return {typeRef(PyFilter_Type), tupleOf(function_, {iterator_}), {}, {}}; }

PyRef ChainIterator::next(Evaluation& e) {
  while (iterables_) {
    if (!current_) {
      PyRef iterable = e.next(iterables_.get());
      if (iterable) current_ = e.iter(iterable.get());
      if (!current_) {
        iterables_ = PyRef();
        return {};
      }
    }
    const PyRef current = current_;
    PyRef item = e.next(current.get());
    if (item || PyErr_Occurred()) return item;
    current_ = PyRef();
  }
  return {};
}

PyTypeObject* ChainIterator::type() const { return itertoolsType("chain"); }

std::vector<std::shared_ptr<Recipe>> ChainIterator::stateAfter(Evaluation& e, RecipeMaker& recipes) const {
  if (current_) return {recipes.make(iterables_.get()), recipes.make(current_.get())};
  if (iterables_) return {recipes.make(iterables_.get())};
  PyRef ended = PyRef::steal(PyObject_GetIter(nothing().get()));
  e.adoptIterator(ended.get());
  e.keepAlive(ended);
  return {recipes.make(ended.get())};
}

Remaking ChainIterator::remake(Evaluation& e) const {
  if (!iterables_) return {itertoolsMember("chain"), nothing(), {}, {}};
  if (!current_) return {itertoolsMember("chain.from_iterable"), tupleOf(iterables_), {}, {}};
  PyRef rest = makeLazy(e, std::make_unique<ChainIterator>(iterables_));
  return {itertoolsMember("chain"), tupleOf(current_, {rest}), {}, {}};
}

PyRef CallableIterator::next(Evaluation& e) {
  if (!callable_) return {};
  const PyRef callable = callable_, sentinel = sentinel_;  // the call may exhaust this iterator
  PyRef value = e.call(callable.get(), nullptr, 0, nullptr);
  if (!value && !PyErr_ExceptionMatches(PyExc_StopIteration)) return {};
  if (value && !sentinel_) return {};
  clearError();
  const int truth = value ? e.equalElements(sentinel.get(), value.get()) : 1;
  if (truth == 0) return value;
  if (truth > 0) callable_ = sentinel_ = PyRef();
  return {};
}

Remaking CallableIterator::remake(Evaluation&) const {
  PyRef make = PyRef::borrow(torchObject("builtins.iter"));
  if (!callable_) return {};
  return {make, tupleOf(callable_, {sentinel_}), {}, {}};
}

PyRef SliceIterator::next(Evaluation& e) {
  if (!iterator_) return {};
  PyRef item;
  while (at_ < wanted_) {
    if (!e.next(iterator_.get())) return end();
    ++at_;
  }
  if (stop_ >= 0 && at_ >= stop_) return end();
  item = e.next(iterator_.get());
  if (!item) return end();
  ++at_;
  wanted_ = step_ > PY_SSIZE_T_MAX - wanted_ ? PY_SSIZE_T_MAX : wanted_ + step_;
  if (stop_ >= 0 && wanted_ > stop_) wanted_ = stop_;
  return item;
}

PyRef SliceIterator::end() {
  iterator_ = PyRef();
  return {};
}

PyTypeObject* SliceIterator::type() const { return itertoolsType("islice"); }

Remaking SliceIterator::remake(Evaluation&) const {
  auto number = [](Py_ssize_t n) { return PyRef::steal(PyLong_FromSsize_t(n)); };
  if (!iterator_) return {itertoolsMember("islice"), tupleOf(nothing(), {number(0)}), {}, {}};
  PyRef stop = stop_ < 0 ? PyRef::borrow(Py_None) : number(stop_ > at_ ? stop_ - at_ : 0);
  return {itertoolsMember("islice"), tupleOf(iterator_, {number(wanted_ > at_ ? wanted_ - at_ : 0), stop, number(step_)}), {}, {}};
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
  PyRef items = makeLazy(e, std::make_unique<StepIterator>(itertoolsType("_grouper"), [self, group](Evaluation& in) { return self->nextOfGroup(in, group); }));
  return PyRef::steal(PyTuple_Pack(2, self->key_.get(), items.get()));
}

PyRef GroupBy::nextOfGroup(Evaluation& e, int64_t group) {
  if (group != group_) return {};
  if (!value_ && advance(e) <= 0) return {};
  const int inside = same(e, wanted_.get(), key_.get());
  return inside > 0 ? std::move(value_) : PyRef();
}

}  // namespace fusebox::capture
