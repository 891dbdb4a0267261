// Rules for iterator makers: iter, zip, enumerate, map, filter, reversed, itertools, and the methods of generators.
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/evaluation/lazy_iterators.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

PyRef ruleIter(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional == 2) return makeLazy(e, std::make_unique<CallableIterator>(PyRef::borrow(a.args[0]), PyRef::borrow(a.args[1])));
  return e.iter(a.args[0]);
}

bool iterators(Evaluation& e, const CallArguments& a, size_t first, std::vector<PyRef>* out) {
  for (size_t i = first; i < a.positional; ++i) {
    out->push_back(e.iter(a.args[i]));
    if (!out->back()) return false;
  }
  return true;
}

/// Iterators that C code must not advance by itself: the evaluator's own, ones written in Python, ones from before this segment.
bool anyLazy(Evaluation& e, const std::vector<PyRef>& list) {
  for (const PyRef& r : list)
    if (lazyOf(r.get()) || !e.origin(r.get()) || e.origin(r.get())->source || isChangeable(Py_TYPE(r.get()))) return true;
  return false;
}

PyRef makeReal(Evaluation& e, PyObject* callable, const std::vector<PyRef>& args, PyObject* kwNames = nullptr, PyObject* kwValue = nullptr) {
  std::vector<PyObject*> raw;
  for (const PyRef& r : args) raw.push_back(r.get());
  if (kwValue) raw.push_back(kwValue);
  PyRef made = PyRef::steal(PyObject_Vectorcall(callable, raw.data(), args.size(), kwNames));
  if (made) e.adoptIterator(made.get());
  return made;
}

PyRef ruleZip(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> list;
  if (!iterators(e, a, 0, &list)) return {};
  PyObject* strict = a.keyword("strict");
  const int isStrict = strict ? e.truth(strict) : 0;
  if (isStrict < 0) return {};
  if (!anyLazy(e, list)) return makeReal(e, callable, list, a.kwNames, strict);
  return makeLazy(e, std::make_unique<ZipIterator>(std::move(list), isStrict != 0));
}

PyRef ruleEnumerate(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> list = {e.iter(a.args[0])};
  if (!list[0]) return {};
  PyObject* start = a.positional > 1 ? a.args[1] : a.keyword("start");
  PyRef count = start ? PyRef::borrow(start) : PyRef::steal(PyLong_FromLong(0));
  if (anyLazy(e, list)) return makeLazy(e, std::make_unique<EnumerateIterator>(std::move(list[0]), std::move(count)));
  list.push_back(std::move(count));
  return makeReal(e, callable, list);
}

PyRef ruleMap(Evaluation& e, PyObject*, const CallArguments& a) {
  std::vector<PyRef> list;
  if (!iterators(e, a, 1, &list)) return {};
  return makeLazy(e, std::make_unique<MapIterator>(PyRef::borrow(a.args[0]), std::move(list)));
}

PyRef ruleFilter(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterator = e.iter(a.args[1]);
  return iterator ? makeLazy(e, std::make_unique<FilterIterator>(PyRef::borrow(a.args[0]), std::move(iterator))) : PyRef();
}

PyRef ruleReversed(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyTypeObject* type = Py_TYPE(a.args[0]);
  if (isChangeable(type) && !PyDict_Check(a.args[0]) && !e.isTensor(a.args[0])) {
    PyRef method = e.getSpecial(a.args[0], internedName("__reversed__"));
    if (method) return e.call(method.get(), nullptr, 0, nullptr);
    PyRef list = PyRef::steal(PyList_New(0));
    const Py_ssize_t n = e.length(a.args[0]);
    if (n < 0) return {};
    for (Py_ssize_t i = n - 1; i >= 0; --i) {
      PyRef index = PyRef::steal(PyLong_FromSsize_t(i)), item = e.getItem(a.args[0], index.get());
      if (!item) return {};
      PyList_Append(list.get(), item.get());
    }
    return e.iter(list.get());
  }
  PyRef exposed = e.expose(a.args[0]);
  return makeReal(e, callable, {exposed});
}

PyRef ruleChain(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional)));
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  PyRef iterables = e.iter(tuple.get());
  return makeLazy(e, std::make_unique<ChainIterator>(std::move(iterables)));
}

PyRef ruleChainFromIterable(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterables = e.iter(a.args[0]);
  return iterables ? makeLazy(e, std::make_unique<ChainIterator>(std::move(iterables))) : PyRef();
}

PyRef ruleIslice(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  auto number = [&](size_t i, Py_ssize_t otherwise) {
    return i < a.positional && a.args[i] != Py_None ? PyNumber_AsSsize_t(a.args[i], PyExc_ValueError) : otherwise;
  };
  const bool onlyStop = a.positional == 2;
  const Py_ssize_t start = onlyStop ? 0 : number(1, 0), stop = number(onlyStop ? 1 : 2, -1), step = number(3, 1);
  if (PyErr_Occurred()) return {};
  return makeLazy(e, std::make_unique<SliceIterator>(std::move(iterator), start, stop, step));
}

/// product, permutations, combinations, accumulate …: all inputs are collected first.
PyRef ruleItertools(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    const bool iterable = PyIter_Check(a.args[i]) || lazyOf(a.args[i]);
    keep.push_back(iterable ? e.collect(a.args[i], false) : e.expose(a.args[i]));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  PyRef made = PyRef::steal(PyObject_Vectorcall(callable, args.data(), a.positional, a.kwNames));
  if (made) e.adoptIterator(made.get());
  return made;
}

PyRef lazily(Evaluation& e, const char* what, StepIterator::Step step) {
  return makeLazy(e, std::make_unique<StepIterator>(what, std::move(step)));
}

/// The truth of predicate(item), or of the item itself where the predicate is None; -1: error.
int holds(Evaluation& e, PyObject* predicate, PyObject* item) {
  if (predicate == Py_None) return e.truth(item);
  PyObject* args[] = {item};
  PyRef answer = e.call(predicate, args, 1, nullptr);
  return answer ? e.truth(answer.get()) : -1;
}

/// takewhile and dropwhile.
template <bool kTake>
PyRef ruleWhile(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef predicate = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  return lazily(e, kTake ? "takewhile" : "dropwhile", [predicate, iterator, changed = false](Evaluation& in) mutable -> PyRef {
    if (kTake && changed) return {};
    while (PyRef item = in.next(iterator.get())) {
      if (!kTake && changed) return item;
      const int truth = holds(in, predicate.get(), item.get());
      if (truth < 0) return {};
      if (kTake && truth) return item;
      changed = kTake || !truth;
      if (kTake) return {};
      if (changed) return item;
    }
    return {};
  });
}

PyRef ruleFilterFalse(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef predicate = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  return lazily(e, "filterfalse", [predicate, iterator](Evaluation& in) -> PyRef {
    while (PyRef item = in.next(iterator.get())) {
      const int truth = holds(in, predicate.get(), item.get());
      if (truth < 0) return {};
      if (!truth) return item;
    }
    return {};
  });
}

PyRef ruleStarmap(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef function = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  return lazily(e, "starmap", [function, iterator](Evaluation& in) -> PyRef {
    PyRef item = in.next(iterator.get());
    PyRef args = item ? in.collect(item.get(), true) : PyRef();
    return args ? in.callEx(function.get(), args.get(), nullptr) : PyRef();
  });
}

PyRef ruleAccumulate(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject *function = a.positional > 1 ? a.args[1] : a.keyword("func"), *initial = a.keyword("initial");
  if (function == Py_None) function = nullptr;
  PyRef iterator = e.iter(a.args[0]), call = PyRef::borrow(function), total = PyRef::borrow(initial == Py_None ? nullptr : initial);
  if (!iterator) return {};
  return lazily(e, "accumulate", [call, iterator, total, first = true](Evaluation& in) mutable -> PyRef {
    if (std::exchange(first, false) && total) return total;
    PyRef item = in.next(iterator.get());
    if (!item) return {};
    PyObject* args[] = {total.get(), item.get()};
    total = !total ? item : call ? in.call(call.get(), args, 2, nullptr) : in.binary(0, args[0], args[1]);
    return total;
  });
}

PyRef ruleCompress(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef data = e.iter(a.args[0]), selectors = data ? e.iter(a.args[1]) : PyRef();
  if (!selectors) return {};
  return lazily(e, "compress", [data, selectors](Evaluation& in) -> PyRef {
    while (PyRef item = in.next(data.get())) {
      PyRef selector = in.next(selectors.get());
      const int truth = selector ? in.truth(selector.get()) : -1;
      if (truth < 0) return {};
      if (truth) return item;
    }
    return {};
  });
}

PyRef ruleGroupby(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject* key = a.positional > 1 ? a.args[1] : a.keyword("key");
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  auto groups = std::make_shared<GroupBy>(std::move(iterator), PyRef::borrow(key == Py_None ? nullptr : key));
  return lazily(e, "groupby", [groups](Evaluation& in) { return GroupBy::nextGroup(groups, in); });
}

PyRef stopIterationOr(int status, PyRef result) {
  if (status > 0) return result;
  if (status == 0) {
    if (result && result.get() != Py_None) {
      PyRef stop = PyRef::steal(PyObject_CallOneArg(PyExc_StopIteration, result.get()));
      PyErr_SetObject(PyExc_StopIteration, stop.get());
    } else {
      PyErr_SetNone(PyExc_StopIteration);
    }
  }
  return {};
}

}  // namespace

PyRef generatorSend(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef result;
  const int status = lazyOf(a.args[0])->send(e, a.positional > 1 ? a.args[1] : Py_None, &result);
  return stopIterationOr(status, std::move(result));
}

PyRef generatorNext(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return generatorSend(e, callable, {a.args, 1, nullptr});
}

PyRef generatorClose(Evaluation& e, PyObject*, const CallArguments& a) {
  return lazyOf(a.args[0])->close(e) ? PyRef::borrow(Py_None) : PyRef();
}

PyRef generatorThrow(Evaluation& e, PyObject*, const CallArguments& a) {
  // throw(value), throw(type), throw(type, value, traceback)
  PyRef exception;
  for (size_t i = a.positional; i-- > 1 && !exception;)
    if (PyExceptionInstance_Check(a.args[i])) exception = PyRef::borrow(a.args[i]);
  if (!exception) exception = e.call(a.args[1], nullptr, 0, nullptr);
  if (!exception) return {};
  PyRef result;
  const int status = lazyOf(a.args[0])->throwInto(e, exception.get(), &result);
  return stopIterationOr(status, std::move(result));
}

namespace {

constexpr RuleRow kRows[] = {
    {"builtins.iter", ruleIter},
    {"builtins.zip", ruleZip},
    {"builtins.enumerate", ruleEnumerate},
    {"builtins.map", ruleMap},
    {"builtins.filter", ruleFilter},
    {"builtins.reversed", ruleReversed},
    {"itertools.chain", ruleChain},
    {"itertools.chain.from_iterable", ruleChainFromIterable},
    {"itertools.islice", ruleIslice},
    {"itertools.takewhile", ruleWhile<true>},
    {"itertools.dropwhile", ruleWhile<false>},
    {"itertools.filterfalse", ruleFilterFalse},
    {"itertools.starmap", ruleStarmap},
    {"itertools.accumulate", ruleAccumulate},
    {"itertools.compress", ruleCompress},
    {"itertools.groupby", ruleGroupby},
    {"itertools.repeat", ruleItertools},
    {"itertools.product", ruleItertools},
    {"itertools.count", ruleItertools},
    {"itertools.cycle", ruleItertools},
    {"itertools.permutations", ruleItertools},
    {"itertools.combinations", ruleItertools},
    {"itertools.zip_longest", ruleItertools},
    {"itertools.pairwise", ruleItertools},
};

}  // namespace

RuleRows iteratorRules() { return {kRows, std::size(kRows)}; }

}  // namespace fusebox::capture
