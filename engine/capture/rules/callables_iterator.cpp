// Rules for iterator makers: iter, zip, enumerate, map, filter, reversed, itertools, and the methods of generators.
#include <algorithm>
#include <memory>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/lazy_iterators.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
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

/// Whether the arguments are what a class of iterators takes; else its own error.
bool takes(Evaluation& e, PyObject* callable, const CallArguments& a, size_t least, size_t most, std::initializer_list<const char*> keywords = {}) {
  bool fits = a.positional >= least && a.positional <= most;
  for (size_t i = 0; fits && i < a.keywords(); ++i)
    fits = std::any_of(keywords.begin(), keywords.end(), [&](const char* k) { return PyUnicode_CompareWithASCIIString(a.keywordName(i), k) == 0; });
  return fits || e.refuseArguments(callable, a);
}

PyRef ruleZip(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 0, SIZE_MAX, {"strict"})) return {};
  PyObject* strict = a.keyword("strict");
  const int isStrict = strict ? e.truth(strict) : 0;
  std::vector<PyRef> list;
  if (isStrict < 0 || !iterators(e, a, 0, &list)) return {};
  return makeLazy(e, std::make_unique<ZipIterator>(std::move(list), isStrict != 0));
}

PyRef ruleEnumerate(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject *iterable = a.positional > 0 ? a.args[0] : a.keyword("iterable"), *start = a.positional > 1 ? a.args[1] : a.keyword("start");
  if (!iterable) e.breakHere("unsupported call", "enumerate() without arguments");
  PyRef iterator = e.iter(iterable);
  if (!iterator) return {};
  PyRef count = start ? PyRef::borrow(start) : PyRef::steal(PyLong_FromLong(0));
  return makeLazy(e, std::make_unique<EnumerateIterator>(std::move(iterator), std::move(count)));
}

PyRef ruleMap(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, SIZE_MAX)) return {};
  std::vector<PyRef> list;
  if (!iterators(e, a, 1, &list)) return {};
  return makeLazy(e, std::make_unique<MapIterator>(PyRef::borrow(a.args[0]), std::move(list)));
}

PyRef ruleFilter(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, 2)) return {};
  PyRef iterator = e.iter(a.args[1]);
  return iterator ? makeLazy(e, std::make_unique<FilterIterator>(PyRef::borrow(a.args[0]), std::move(iterator))) : PyRef();
}

PyRef ruleReversed(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 1)) return {};
  PyObject* object = a.args[0];
  PyTypeObject* type = Py_TYPE(object);
  if (answersTorchFunctions(object)) return methodOfSubclass(e, "__reversed__", {object});
  if (isChangeable(type) && !e.isTensor(object)) {
    PyObject* method = e.typeLookup(type, internedName("__reversed__"));
    if (method && !Py_IS_TYPE(method, &PyMethodDescr_Type)) {
      PyRef bound = e.getSpecial(object, internedName("__reversed__"));
      return bound ? e.call(bound.get(), nullptr, 0, nullptr) : PyRef();
    }
    if (!method && !PyTuple_Check(object)) {
      PyRef list = PyRef::steal(PyList_New(0));
      const Py_ssize_t n = e.length(object);
      if (n < 0) return {};
      for (Py_ssize_t i = n - 1; i >= 0; --i) {
        PyRef index = PyRef::steal(PyLong_FromSsize_t(i)), item = e.getItem(object, index.get());
        if (!item) return {};
        PyList_Append(list.get(), item.get());
      }
      return e.iter(list.get());
    }
  }
  if (PyList_Check(object) || PyTuple_Check(object)) {
    e.builtinLength(object);  // where it begins
    return makeLazy(e, std::make_unique<SequenceWalk>(object, true));
  }
  DictWalk::Kind kind = DictWalk::Kind::Keys;
  PyObject* dict = PyDict_Check(object) ? object : knownDictOf(e, object, &kind);
  if (dict) {
    e.guardKeys(dict);
    return makeLazy(e, std::make_unique<DictWalk>(dict, kind, true));
  }
  PyRef exposed = e.expose(object);
  PyRef made = PyRef::steal(PyObject_CallOneArg(callable, exposed.get()));
  e.throwIfBreak();
  if (made && !lazyOf(made.get())) e.adoptIterator(made.get());
  return made;
}

PyRef ruleChain(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 0, SIZE_MAX)) return {};
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional)));
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  return makeLazy(e, std::make_unique<ChainIterator>(e.iter(tuple.get())));
}

PyRef ruleChainFromIterable(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterables = e.iter(a.args[0]);
  return iterables ? makeLazy(e, std::make_unique<ChainIterator>(std::move(iterables))) : PyRef();
}

PyRef ruleIslice(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.total(); ++i) {
    if (!isSymbolicNumber(a.args[i])) continue;
    PyRef plain = e.plainNumber(a.args[i], "a position of itertools.islice");
    std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
    args[i] = plain.get();
    return ruleIslice(e, callable, {args.data(), a.positional, a.kwNames});
  }
  auto known = [&](size_t i, Py_ssize_t least) {
    if (i >= a.positional || a.args[i] == Py_None) return true;
    return PyLong_CheckExact(a.args[i]) && PyLong_AsSsize_t(a.args[i]) >= least;
  };
  const bool onlyStop = a.positional == 2;
  if (a.positional < 2 || a.positional > 4 || !known(1, 0) || !known(2, 0) || !known(3, 1)) {
    clearError();
    e.breakHere("unsupported call", "itertools.islice with unusual arguments");
  }
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  auto number = [&](size_t i, Py_ssize_t otherwise) {
    return i < a.positional && a.args[i] != Py_None ? PyLong_AsSsize_t(a.args[i]) : otherwise;
  };
  const Py_ssize_t start = onlyStop ? 0 : number(1, 0), stop = number(onlyStop ? 1 : 2, -1), step = number(3, 1);
  return makeLazy(e, std::make_unique<SliceIterator>(std::move(iterator), start, stop, step));
}

PyRef lazily(Evaluation& e, const char* name, StepIterator::Step step, StepIterator::Again again = {}) {
  return makeLazy(e, std::make_unique<StepIterator>(itertoolsType(name), std::move(step), std::move(again)));
}

PyRef packed(std::initializer_list<PyObject*> items) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t i = 0;
  for (PyObject* item : items) PyTuple_SET_ITEM(tuple.get(), i++, Py_NewRef(item));
  return tuple;
}

/// For an iterator without a state of its own: what its class is called with.
StepIterator::Again always(PyRef args) {
  return [args](Evaluation&) { return StepIterator::Call{args, {}}; };
}

/// Some items, and then those of an iterator.
PyRef chained(Evaluation& e, PyObject* items, PyObject* iterator) {
  return makeLazy(e, std::make_unique<ChainIterator>(e.iter(packed({items, iterator}).get())));
}

/// product, permutations, combinations: all inputs are collected first, as CPython does.
PyRef ruleItertools(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    keep.push_back(isConstantValue(a.args[i]) ? PyRef::borrow(a.args[i]) : e.collect(a.args[i], false));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  PyRef made = PyRef::steal(PyObject_Vectorcall(callable, args.data(), a.positional, a.kwNames));
  if (made) e.adoptIterator(made.get());
  return made;
}

/// repeat, count: what they are given comes back as it is.
PyRef ruleItertoolsRaw(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef made = e.callRaw(callable, a);
  if (made && !e.origin(made.get())) e.adoptIterator(made.get());
  return made;
}

PyRef ruleCycle(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 1)) return {};
  struct State {
    PyRef iterator, saved;
    Py_ssize_t at = 0;
  };
  auto state = std::make_shared<State>(State{e.iter(a.args[0]), PyRef::steal(PyList_New(0))});
  if (!state->iterator) return {};
  auto step = [state](Evaluation& in) -> PyRef {
    if (const PyRef iterator = state->iterator) {
      PyRef item = in.next(iterator.get());
      if (item) PyList_Append(state->saved.get(), item.get());
      if (item || PyErr_Occurred()) return item;
      state->iterator = PyRef();
    }
    PyObject* saved = state->saved.get();
    if (PyList_GET_SIZE(saved) == 0) return {};
    PyRef item = PyRef::borrow(PyList_GET_ITEM(saved, state->at));
    state->at = (state->at + 1) % PyList_GET_SIZE(saved);
    return item;
  };
  auto again = [state](Evaluation& in) -> StepIterator::Call {
    const PyRef saved = PyRef::steal(PyList_AsTuple(state->saved.get()));
    if (!state->iterator) return {packed({saved.get()}), {}, state->at};
    return {packed({chained(in, saved.get(), state->iterator.get()).get()}), {}, PyTuple_GET_SIZE(saved.get())};
  };
  return lazily(e, "cycle", std::move(step), std::move(again));
}

PyRef rulePairwise(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 1)) return {};
  struct State {
    PyRef iterator, old;
  };
  auto state = std::make_shared<State>(State{e.iter(a.args[0]), {}});
  if (!state->iterator) return {};
  auto step = [state](Evaluation& in) -> PyRef {
    if (!state->iterator) return {};
    PyRef keep = state->iterator;  // what comes next may ask for what comes next itself
    if (!state->old) state->old = in.next(keep.get());
    keep = state->iterator;
    const PyRef first = state->old;
    PyRef item = first && keep ? in.next(keep.get()) : PyRef();
    if (!item) {
      state->iterator = state->old = PyRef();
      return {};
    }
    PyRef pair = packed({first.get(), item.get()});
    state->old = std::move(item);
    return pair;
  };
  auto again = [state](Evaluation& in) -> StepIterator::Call {
    if (!state->iterator) return {packed({packed({}).get()}), {}};
    if (!state->old) return {packed({state->iterator.get()}), {}};
    return {packed({chained(in, packed({state->old.get()}).get(), state->iterator.get()).get()}), {}};
  };
  return lazily(e, "pairwise", std::move(step), std::move(again));
}

PyRef ruleZipLongest(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 0, SIZE_MAX, {"fillvalue"})) return {};
  struct State {
    std::vector<PyRef> list;
    size_t left = 0;
  };
  auto state = std::make_shared<State>();
  if (!iterators(e, a, 0, &state->list)) return {};
  state->left = state->list.size();
  PyObject* given = a.keyword("fillvalue");
  PyRef fill = PyRef::borrow(given ? given : Py_None);
  auto step = [state, fill](Evaluation& in) -> PyRef {
    std::vector<PyRef>& list = state->list;
    if (state->left == 0) return {};
    PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); ++i) {
      PyRef item = list[i] ? in.next(list[i].get()) : fill;
      if (!item) {
        if (PyErr_Occurred() || --state->left == 0) return {};
        list[i] = PyRef();
        item = fill;
      }
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
    }
    return tuple;
  };
  auto again = [state, fill](Evaluation&) -> StepIterator::Call {
    if (state->left == 0) return {packed({}), {}};
    PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(state->list.size()))), keywords = PyRef::steal(PyDict_New());
    for (size_t i = 0; i < state->list.size(); ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), (state->list[i] ? state->list[i] : packed({})).release());
    PyDict_SetItemString(keywords.get(), "fillvalue", fill.get());
    return {args, keywords};
  };
  return lazily(e, "zip_longest", std::move(step), std::move(again));
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
PyRef ruleWhile(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, 2)) return {};
  PyRef predicate = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  auto changed = std::make_shared<bool>(false);
  auto step = [predicate, iterator, changed](Evaluation& in) -> PyRef {
    if (kTake && *changed) return {};
    while (PyRef item = in.next(iterator.get())) {
      if (!kTake && *changed) return item;
      const int truth = holds(in, predicate.get(), item.get());
      if (truth < 0) return {};
      if (kTake && truth) return item;
      *changed = kTake || !truth;
      if (kTake) return {};
      if (*changed) return item;
    }
    return {};
  };
  auto again = [predicate, iterator, changed](Evaluation&) -> StepIterator::Call {
    if (!*changed) return {packed({predicate.get(), iterator.get()}), {}};
    return {kTake ? packed({predicate.get(), packed({}).get()}) : PyRef(), {}};
  };
  return lazily(e, kTake ? "takewhile" : "dropwhile", std::move(step), std::move(again));
}

PyRef ruleFilterFalse(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, 2)) return {};
  PyRef predicate = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  StepIterator::Again again = always(packed({predicate.get(), iterator.get()}));
  auto step = [predicate, iterator](Evaluation& in) -> PyRef {
    while (PyRef item = in.next(iterator.get())) {
      const int truth = holds(in, predicate.get(), item.get());
      if (truth < 0) return {};
      if (!truth) return item;
    }
    return {};
  };
  return lazily(e, "filterfalse", std::move(step), std::move(again));
}

PyRef ruleStarmap(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, 2)) return {};
  PyRef function = PyRef::borrow(a.args[0]), iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  StepIterator::Again again = always(packed({function.get(), iterator.get()}));
  auto step = [function, iterator](Evaluation& in) -> PyRef {
    PyRef item = in.next(iterator.get());
    PyRef args = item ? in.collect(item.get(), true) : PyRef();
    return args ? in.callEx(function.get(), args.get(), nullptr) : PyRef();
  };
  return lazily(e, "starmap", std::move(step), std::move(again));
}

PyRef ruleAccumulate(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 2, {"func", "initial"})) return {};
  PyObject *function = a.positional > 1 ? a.args[1] : a.keyword("func"), *initial = a.keyword("initial");
  if (function == Py_None) function = nullptr;
  struct State {
    PyRef total;
    bool begun = false;
  };
  auto state = std::make_shared<State>(State{PyRef::borrow(initial == Py_None ? nullptr : initial)});
  PyRef iterator = e.iter(a.args[0]), call = PyRef::borrow(function);
  if (!iterator) return {};
  auto step = [call, iterator, state](Evaluation& in) -> PyRef {
    if (!std::exchange(state->begun, true) && state->total) return state->total;
    PyRef item = in.next(iterator.get());
    if (!item) return {};
    PyObject* args[] = {state->total.get(), item.get()};
    PyRef next = !state->total ? item : call ? in.call(call.get(), args, 2, nullptr) : in.binary(0, args[0], args[1]);
    if (next) state->total = next;
    return next;
  };
  auto again = [call, iterator, state](Evaluation&) -> StepIterator::Call {
    PyRef keywords = PyRef::steal(PyDict_New());
    if (state->total.get() == Py_None) return {};  // which as `initial` means something else
    if (state->total) PyDict_SetItemString(keywords.get(), "initial", state->total.get());
    return {packed({iterator.get(), call ? call.get() : Py_None}), keywords, state->begun && state->total ? 1 : -1};
  };
  return lazily(e, "accumulate", std::move(step), std::move(again));
}

PyRef ruleCompress(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 2, 2)) return {};
  PyRef data = e.iter(a.args[0]), selectors = data ? e.iter(a.args[1]) : PyRef();
  if (!selectors) return {};
  auto step = [data, selectors](Evaluation& in) -> PyRef {
    while (PyRef item = in.next(data.get())) {
      PyRef selector = in.next(selectors.get());
      const int truth = selector ? in.truth(selector.get()) : -1;
      if (truth < 0) return {};
      if (truth) return item;
    }
    return {};
  };
  return lazily(e, "compress", std::move(step), always(packed({data.get(), selectors.get()})));
}

/// What the iterators of one tee() have in common: an iterator, and what it gave.
struct Teed {
  PyRef iterator;
  std::vector<PyRef> items;
};

PyRef branchOf(Evaluation& e, const std::shared_ptr<Teed>& source) {
  return lazily(e, "_tee", [source, at = size_t{0}](Evaluation& in) mutable -> PyRef {
    if (at == source->items.size()) {
      PyRef item = in.next(source->iterator.get());
      if (!item) return {};
      if (at != source->items.size()) in.breakHere("unsupported call", "an iterator of itertools.tee is advanced while it advances");
      source->items.push_back(std::move(item));
    }
    return source->items[at++];
  });
}

PyRef ruleTee(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 2)) return {};
  if (a.positional > 1 && !PyLong_CheckExact(a.args[1])) e.breakHere("unsupported call", "itertools.tee with a number that is not known");
  const Py_ssize_t count = a.positional > 1 ? PyLong_AsSsize_t(a.args[1]) : 2;
  if (count < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "n must be >= 0");
    return {};
  }
  if (count == 0) return PyRef::steal(PyTuple_New(0));
  auto source = std::make_shared<Teed>();
  source->iterator = e.iter(a.args[0]);
  if (!source->iterator) return {};
  PyTypeObject* type = lazyOf(source->iterator.get()) ? lazyOf(source->iterator.get())->type() : Py_TYPE(source->iterator.get());
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__copy__")) e.breakHere("unsupported call", "itertools.tee of an iterator that can be copied");
  PyRef branches = PyRef::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(branches.get(), i, branchOf(e, source).release());
  return branches;
}

PyRef ruleGroupby(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!takes(e, callable, a, 1, 2, {"key"})) return {};
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

PyRef nextOrStop(Evaluation& e, PyObject* iterator) {
  if (LazyIterator* lazy = e.advancerOf(iterator); lazy && lazy->type()->tp_iternext) {
    PyRef result;
    const int status = lazy->send(e, Py_None, &result);
    return stopIterationOr(status, std::move(result));
  }
  PyRef item = e.next(iterator);
  if (!item && !PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
  return item;
}

/// What a method of a generator is called on.
static LazyIterator* advancing(Evaluation& e, const CallArguments& a) {
  if (LazyIterator* iterator = e.advancerOf(a.args[0])) return iterator;
  e.breakHere("generator", "a generator whose frame belongs to CPython is advanced");
}

PyRef generatorSend(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef result;
  const int status = advancing(e, a)->send(e, a.positional > 1 ? a.args[1] : Py_None, &result);
  return stopIterationOr(status, std::move(result));
}

PyRef generatorClose(Evaluation& e, PyObject*, const CallArguments& a) {
  return advancing(e, a)->close(e) ? PyRef::borrow(Py_None) : PyRef();
}

PyRef generatorThrow(Evaluation& e, PyObject*, const CallArguments& a) {
  // throw(value), throw(type), throw(type, value, traceback)
  PyObject* value = a.positional > 2 && a.args[2] != Py_None ? a.args[2] : nullptr;
  PyRef exception;
  if (a.positional < 2 || !(PyExceptionInstance_Check(a.args[1]) || PyExceptionClass_Check(a.args[1])))
    e.breakHere("unsupported call", "something that is no exception is thrown into a generator");
  if (PyExceptionInstance_Check(a.args[1])) {
    exception = PyRef::borrow(a.args[1]);
  } else if (value && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(a.args[1]))) {
    exception = PyRef::borrow(value);
  } else {
    PyRef args = !value ? PyRef::steal(PyTuple_New(0)) : PyTuple_Check(value) ? PyRef::borrow(value) : PyRef::steal(PyTuple_Pack(1, value));
    exception = e.callEx(a.args[1], args.get(), nullptr);
  }
  if (!exception) return {};
  if (!PyExceptionInstance_Check(exception.get())) e.breakHere("unsupported call", "a class that makes no exception is thrown into a generator");
  PyRef result;
  const int status = advancing(e, a)->throwInto(e, exception.get(), &result);
  return stopIterationOr(status, std::move(result));
}

namespace {

constexpr RuleRow kIteratorRows[] = {
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
    {"itertools.repeat", ruleItertoolsRaw},
    {"itertools.product", ruleItertools},
    {"itertools.count", ruleItertoolsRaw},
    {"itertools.cycle", ruleCycle},
    {"itertools.permutations", ruleItertools},
    {"itertools.combinations", ruleItertools},
    {"itertools.zip_longest", ruleZipLongest},
    {"itertools.pairwise", rulePairwise},
    {"itertools.tee", ruleTee},
};

}  // namespace

RuleRows iteratorRules() { return {kIteratorRows, std::size(kIteratorRows)}; }

}  // namespace fusebox::capture
