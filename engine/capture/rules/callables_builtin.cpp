// Rules for the functions of the builtins module and a few relatives.
#include <algorithm>

#include "engine/capture/rules/call_rules.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

PyRef none() { return PyRef::borrow(Py_None); }
PyRef boolean(int value) { return value < 0 ? PyRef() : PyRef::borrow(value ? Py_True : Py_False); }

bool wants(const CallArguments& a, size_t least, size_t most, const char* name) {
  if (a.positional >= least && a.positional <= most) return true;
  PyErr_Format(PyExc_TypeError, "%s() got a wrong number of arguments", name);
  return false;
}

PyRef ruleLen(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 1, "len")) return {};
  const Py_ssize_t n = e.length(a.args[0]);
  return n < 0 ? PyRef() : PyRef::steal(PyLong_FromSsize_t(n));
}

PyRef ruleGetattr(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 2, 3, "getattr")) return {};
  PyRef value = e.getAttr(a.args[0], a.args[1]);
  if (value || a.positional < 3 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return PyRef::borrow(a.args[2]);
}

PyRef ruleHasattr(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 2, 2, "hasattr")) return {};
  if (e.getAttr(a.args[0], a.args[1])) return boolean(1);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  PyErr_Clear();
  return boolean(0);
}

PyRef ruleSetattr(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 3, 3, "setattr") && e.setAttr(a.args[0], a.args[1], a.args[2]) ? none() : PyRef();
}

PyRef ruleDelattr(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 2, 2, "delattr") && e.setAttr(a.args[0], a.args[1], nullptr) ? none() : PyRef();
}

/// Class tests run for real: the type of the object is guarded, and what __instancecheck__ reads belongs to classes.
PyRef ruleIsinstance(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 2, 2, "isinstance")) return {};
  PyRef classes = e.expose(a.args[1]);
  if (lazyOf(a.args[0])) {
    PyTypeObject* generator = &PyGen_Type;
    PyRef fake = PyRef::borrow(reinterpret_cast<PyObject*>(generator));
    const int answer = PyObject_IsSubclass(fake.get(), classes.get());
    return boolean(answer);
  }
  const int answer = PyObject_IsInstance(a.args[0], classes.get());
  e.throwIfBreak();
  return boolean(answer);
}

PyRef ruleIter(Evaluation& e, PyObject* callable, const CallArguments& a);

PyRef ruleNext(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 2, "next")) return {};
  PyRef item = e.next(a.args[0]);
  if (item || PyErr_Occurred()) return item;
  if (a.positional == 2) return PyRef::borrow(a.args[1]);
  PyErr_SetNone(PyExc_StopIteration);
  return {};
}

/// any and all, stopping early; a generator is closed, as happens when its last reference goes.
template <bool kAll>
PyRef ruleAnyAll(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 1, kAll ? "all" : "any")) return {};
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    const int truth = e.truth(item.get());
    if (truth < 0) return {};
    if ((truth != 0) != kAll) {
      if (LazyIterator* lazy = lazyOf(iterator.get()))
        if (!lazy->close(e)) return {};
      return boolean(!kAll);
    }
  }
  return PyErr_Occurred() ? PyRef() : boolean(kAll);
}

PyRef ruleSum(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 2, "sum")) return {};
  PyObject* startKeyword = a.keyword("start");
  PyRef total = a.positional == 2 ? PyRef::borrow(a.args[1]) : startKeyword ? PyRef::borrow(startKeyword) : PyRef::steal(PyLong_FromLong(0));
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    total = e.binary(0, total.get(), item.get());
    if (!total) return {};
  }
  return PyErr_Occurred() ? PyRef() : total;
}

template <bool kMax>
PyRef ruleMinMax(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject *key = a.keyword("key"), *fallback = a.keyword("default");
  PyRef items;
  if (a.positional == 1) {
    items = e.collect(a.args[0], false);
  } else {
    items = PyRef::steal(PyList_New(0));
    for (size_t i = 0; i < a.positional; ++i) PyList_Append(items.get(), a.args[i]);
  }
  if (!items) return {};
  PyRef best, bestKey;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyRef item = PyRef::borrow(PyList_GET_ITEM(items.get(), i)), itemKey = item;
    if (key && key != Py_None) {
      PyObject* args[] = {item.get()};
      itemKey = e.call(key, args, 1, nullptr);
      if (!itemKey) return {};
    }
    if (best) {
      PyRef better = e.compare(kMax ? Py_GT : Py_LT, itemKey.get(), bestKey.get());
      const int truth = better ? e.truth(better.get()) : -1;
      if (truth < 0) return {};
      if (!truth) continue;
    }
    best = std::move(item);
    bestKey = std::move(itemKey);
  }
  if (best) return best;
  if (fallback) return PyRef::borrow(fallback);
  PyErr_SetString(PyExc_ValueError, kMax ? "max() arg is an empty sequence" : "min() arg is an empty sequence");
  return {};
}

/// A stable sort of list `items` by keys that are constants.
bool sortItems(Evaluation& e, PyObject* items, PyObject* key, bool reverse) {
  const auto n = static_cast<size_t>(PyList_GET_SIZE(items));
  std::vector<std::pair<PyRef, PyRef>> rows;
  for (size_t i = 0; i < n; ++i) {
    PyRef item = PyRef::borrow(PyList_GET_ITEM(items, static_cast<Py_ssize_t>(i))), itemKey = item;
    if (key && key != Py_None) {
      PyObject* args[] = {item.get()};
      itemKey = e.call(key, args, 1, nullptr);
      if (!itemKey) return false;
    }
    if (!isConstantValue(itemKey.get()) && n > 1) {
      // (str, Tensor) pairs and the like: the constant head decides if no two are equal.
      PyObject* k = itemKey.get();
      if (PyTuple_Check(k) && PyTuple_GET_SIZE(k) > 0 && isConstantValue(PyTuple_GET_ITEM(k, 0))) {
        itemKey = PyRef::borrow(PyTuple_GET_ITEM(k, 0));
        for (auto& row : rows)
          if (PyObject_RichCompareBool(row.first.get(), itemKey.get(), Py_EQ) != 0)
            e.breakHere("unsupported call", "sorting by keys that are not constants");
      } else {
        e.breakHere("unsupported call", "sorting by keys that are not constants");
      }
    }
    rows.emplace_back(std::move(itemKey), std::move(item));
  }
  bool failed = false;
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& x, const auto& y) {
    if (failed) return false;
    const int less = reverse ? PyObject_RichCompareBool(y.first.get(), x.first.get(), Py_LT)
                             : PyObject_RichCompareBool(x.first.get(), y.first.get(), Py_LT);
    failed = less < 0;
    return less == 1;
  });
  if (failed) return false;
  for (size_t i = 0; i < n; ++i) PyList_SetItem(items, static_cast<Py_ssize_t>(i), rows[i].second.release());
  return true;
}

int reverseFlag(Evaluation& e, const CallArguments& a) {
  PyObject* reverse = a.keyword("reverse");
  return reverse ? e.truth(reverse) : 0;
}

PyRef ruleSorted(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 1, "sorted")) return {};
  PyRef items = e.collect(a.args[0], false);
  const int reverse = reverseFlag(e, a);
  if (!items || reverse < 0 || !sortItems(e, items.get(), a.keyword("key"), reverse != 0)) return {};
  return items;
}

PyRef ruleListSort(Evaluation& e, PyObject*, const CallArguments& a) {
  e.expose(a.args[0]);
  PyRef items = PyRef::steal(PySequence_List(a.args[0])), all = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr));
  const int reverse = reverseFlag(e, a);
  if (reverse < 0 || !sortItems(e, items.get(), a.keyword("key"), reverse != 0)) return {};
  return e.storeElement(a.args[0], all.get(), items.get()) ? none() : PyRef();
}

PyRef ruleRepr(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 1, 1, "repr") ? e.convert('r', a.args[0]) : PyRef();
}

PyRef ruleFormat(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 1, 2, "format") ? e.format(a.args[0], a.positional == 2 ? a.args[1] : nullptr) : PyRef();
}

PyRef ruleCallable(Evaluation& e, PyObject*, const CallArguments& a) { return boolean(PyCallable_Check(a.args[0])); }

PyRef ruleId(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 1, 1, "id") ? e.addressOf(a.args[0]) : PyRef();
}

PyRef ruleHash(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (isConstantValue(a.args[0]) || isIdentityValue(a.args[0]) || e.isTensor(a.args[0])) return e.callRaw(callable, a);
  PyRef method = e.getSpecial(a.args[0], internedName("__hash__"));
  if (method && !PyCFunction_Check(method.get()) && PyMethod_Check(method.get())) return e.call(method.get(), nullptr, 0, nullptr);
  return e.callRaw(callable, a);
}

PyRef ruleVars(Evaluation& e, PyObject*, const CallArguments& a) {
  if (!wants(a, 1, 1, "vars")) return {};
  return e.getAttr(a.args[0], internedName("__dict__"));
}

PyRef ruleGlobals(Evaluation& e, PyObject*, const CallArguments&) { return e.pin(e.frame()->globals); }

PyRef ruleAbs(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callReal(callable, a); }

PyRef ruleGetrecursionlimit(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callRaw(callable, a); }

PyRef ruleImport(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.breakHere("import", "__import__ is called");
}

/// A weak reference that is called: the referent, or None.
PyRef ruleWeakref(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef target = PyRef::steal(PyObject_CallNoArgs(callable));
  return target ? e.pin(target.get()) : PyRef();
}

PyRef ruleIter(Evaluation& e, PyObject* callable, const CallArguments& a);

PyRef ruleReduce(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef items = e.collect(a.args[1], false);
  if (!items) return {};
  Py_ssize_t i = 0;
  PyRef value = a.positional > 2 ? PyRef::borrow(a.args[2]) : PyRef();
  for (; i < PyList_GET_SIZE(items.get()); ++i) {
    PyRef item = PyRef::borrow(PyList_GET_ITEM(items.get(), i));
    if (!value) {
      value = std::move(item);
      continue;
    }
    PyObject* args[] = {value.get(), item.get()};
    value = e.call(a.args[0], args, 2, nullptr);
    if (!value) return {};
  }
  if (!value) PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
  return value;
}

/// operator.xyz(a, b): the operator itself.
template <int kOp>
PyRef ruleOperator(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 2, 2, "operator") ? e.binary(kOp, a.args[0], a.args[1]) : PyRef();
}
template <int kOp>
PyRef ruleCompare(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 2, 2, "operator") ? e.compare(kOp, a.args[0], a.args[1]) : PyRef();
}
PyRef ruleOperatorGetItem(Evaluation& e, PyObject*, const CallArguments& a) {
  return wants(a, 2, 2, "getitem") ? e.getItem(a.args[0], a.args[1]) : PyRef();
}
PyRef ruleOperatorNot(Evaluation& e, PyObject*, const CallArguments& a) {
  const int truth = e.truth(a.args[0]);
  return truth < 0 ? PyRef() : boolean(!truth);
}

/// Changes of an exception that this segment made.
PyRef ruleFreshException(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!e.isFresh(a.args[0])) e.breakHere("unsupported side effect", "an exception that existed before is changed");
  return e.callRaw(callable, a);
}

/// C functions that may call back what they are given: run on constants only.
PyRef ruleOnConstants(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.total(); ++i)
    if (!isConstantValue(a.args[i])) e.breakHere("unsupported call", "a C function that may call Python functions it is given");
  return e.callRaw(callable, a);
}

constexpr RuleRow kRows[] = {
    {"builtins.len", ruleLen},           {"builtins.getattr", ruleGetattr},   {"builtins.hasattr", ruleHasattr},
    {"builtins.setattr", ruleSetattr},   {"builtins.delattr", ruleDelattr},   {"builtins.isinstance", ruleIsinstance},
    {"builtins.issubclass", rulePure},   {"builtins.next", ruleNext},         {"builtins.all", ruleAnyAll<true>},
    {"builtins.any", ruleAnyAll<false>}, {"builtins.sum", ruleSum},           {"builtins.max", ruleMinMax<true>},
    {"builtins.min", ruleMinMax<false>}, {"builtins.sorted", ruleSorted},     {"builtins.list.sort", ruleListSort},
    {"builtins.repr", ruleRepr},         {"builtins.format", ruleFormat},     {"builtins.callable", ruleCallable},
    {"builtins.id", ruleId},             {"builtins.hash", ruleHash},         {"builtins.vars", ruleVars},
    {"builtins.globals", ruleGlobals},   {"builtins.abs", ruleAbs},           {"builtins.divmod", rulePure},
    {"builtins.pow", rulePure},          {"builtins.round", rulePure},        {"builtins.ord", rulePure},
    {"builtins.chr", rulePure},          {"builtins.bin", rulePure},          {"builtins.hex", rulePure},
    {"builtins.oct", rulePure},          {"builtins.__import__", ruleImport}, {"sys.getrecursionlimit", ruleGetrecursionlimit},
    {"functools.reduce", ruleReduce},    {"operator.add", ruleOperator<0>},   {"operator.and_", ruleOperator<1>},
    {"operator.floordiv", ruleOperator<2>}, {"operator.matmul", ruleOperator<4>}, {"operator.mul", ruleOperator<5>},
    {"operator.mod", ruleOperator<6>},   {"operator.or_", ruleOperator<7>},   {"operator.pow", ruleOperator<8>},
    {"operator.sub", ruleOperator<10>},  {"operator.truediv", ruleOperator<11>}, {"operator.xor", ruleOperator<12>},
    {"operator.iadd", ruleOperator<13>}, {"operator.lt", ruleCompare<Py_LT>}, {"operator.le", ruleCompare<Py_LE>},
    {"operator.eq", ruleCompare<Py_EQ>}, {"operator.ne", ruleCompare<Py_NE>}, {"operator.gt", ruleCompare<Py_GT>},
    {"operator.ge", ruleCompare<Py_GE>}, {"operator.getitem", ruleOperatorGetItem}, {"operator.not_", ruleOperatorNot},
    {"_abc._abc_instancecheck", rulePure}, {"_abc._abc_subclasscheck", rulePure}, {"builtins.type.__instancecheck__", rulePure},
    {"builtins.type.__subclasscheck__", rulePure}, {"builtins.type.mro", rulePure}, {"builtins.object.__format__", rulePure},
    {"builtins.object.__dir__", rulePure}, {"sys.intern", rulePure}, {"re.Pattern.sub", ruleOnConstants},
    {"builtins.str.maketrans", rulePure}, {"builtins.BaseException.add_note", ruleFreshException},
    {"builtins.BaseException.with_traceback", ruleFreshException}, {"re.Match.group", rulePure}, {"re.Match.groups", rulePure},
    {"re.Match.start", rulePure}, {"re.Match.end", rulePure}, {"re.Match.span", rulePure}, {"re.Match.groupdict", rulePure},
    {"re.Match.__getitem__", rulePure},
    {"re.Pattern.match", ruleOnConstants}, {"re.Pattern.fullmatch", ruleOnConstants}, {"re.Pattern.search", ruleOnConstants},
    {"re.Pattern.split", ruleOnConstants}, {"re.Pattern.findall", ruleOnConstants}, {"posix.fspath", rulePure},
};

}  // namespace

RuleRows builtinRules() { return {kRows, std::size(kRows)}; }

}  // namespace fusebox::capture
