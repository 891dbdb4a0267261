// Rules for the methods of list, dict, OrderedDict, set, deque.
#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/plain_text.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {


/// Reads that look at the whole container: called on an exposed copy.
PyRef ruleReadWhole(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callReal(callable, a, Evaluation::Asks::Nothing); }

/// A copy with the very elements.
PyRef ruleCopy(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (PyODict_Check(a.args[0]) && !PyODict_CheckExact(a.args[0])) e.breakHere("unsupported call", "a subclass of OrderedDict is copied");
  PyRef elements = e.moved(a.args[0]);
  if (!elements) return {};
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
  args[0] = elements.get();
  return e.callRaw(callable, {args.data(), a.positional, a.kwNames});
}

/// keys(), values(), items(): a view of the dict itself.
PyRef ruleView(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef view = e.callRaw(callable, a);
  if (view) e.adopt(view.get());
  return view;
}

/// The rule with a constant in the place of a symbolic position, args[1].
PyRef withPlainPosition(Evaluation& e, CallRule rule, PyObject* callable, const CallArguments& a) {
  PyRef position = e.plainNumber(a.args[1], "a position in a list");
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
  args[1] = position.get();
  return rule(e, callable, {args.data(), a.positional, a.kwNames});
}

/// list.insert and deque.rotate: C code asks what is no int for its __index__.
PyRef ruleMutateAt(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional > 1 && isSymbolicNumber(a.args[1])) return withPlainPosition(e, ruleMutateAt, callable, a);
  if (a.positional > 1 && !PyLong_CheckExact(a.args[1])) e.breakHere("unsupported call", "a position that is not an int");
  return e.mutate(callable, a);
}

/// list.pop: the element is read, then deleted.
PyRef ruleListPop(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional > 1 && isSymbolicNumber(a.args[1])) return withPlainPosition(e, ruleListPop, callable, a);
  PyObject* list = a.args[0];
  if (a.positional > 1 && !PyLong_CheckExact(a.args[1])) e.breakHere("unsupported call", "a position that is not an int");
  const Py_ssize_t n = e.length(list);
  Py_ssize_t i = a.positional > 1 ? PyLong_AsSsize_t(a.args[1]) : -1;
  if (i < 0) i += n;
  if (PyErr_Occurred() || i < 0 || i >= n || e.isFresh(list)) {
    PyRef taken = e.callRaw(callable, a);  // or what it raises
    return taken ? e.translate(taken.get(), nullptr) : PyRef();
  }
  PyRef index = PyRef::steal(PyLong_FromSsize_t(i)), item = e.tupleItem(list, index.get());
  return item && e.storeElement(list, index.get(), nullptr) ? item : PyRef();
}

/// Where an equal element stands, compared as the evaluator compares; -1: nowhere, -2: error.
Py_ssize_t indexOf(Evaluation& e, PyObject* sequence, PyObject* value) {
  for (Py_ssize_t i = 0; i < e.builtinLength(sequence); ++i) {
    PyRef element = e.element(sequence, i);
    const int truth = element.get() == value ? 1 : e.equalElements(element.get(), value);
    if (truth < 0) return -2;
    if (truth) return i;
  }
  return -1;
}

PyRef ruleListIndex(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional != 2) return e.callReal(callable, a);
  const Py_ssize_t i = indexOf(e, a.args[0], a.args[1]);
  if (i == -1) PyErr_Format(PyExc_ValueError, "%R is not in list", a.args[1]);
  return i < 0 ? PyRef() : PyRef::steal(PyLong_FromSsize_t(i));
}

/// deque.index, with bounds or without.
PyRef ruleDequeIndex(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 2; i < a.total(); ++i)
    if (!PyLong_CheckExact(a.args[i])) return e.callReal(callable, a);
  const PyRef items = e.collect(a.args[0], false);
  if (!items) return {};
  const Py_ssize_t n = PyList_GET_SIZE(items.get());
  const auto bound = [&](size_t i, Py_ssize_t otherwise) {
    if (i >= a.positional) return otherwise;
    const Py_ssize_t given = PyNumber_AsSsize_t(a.args[i], nullptr);
    return std::clamp<Py_ssize_t>(given < 0 ? given + n : given, 0, n);
  };
  for (Py_ssize_t i = bound(2, 0), end = bound(3, n); i < end; ++i) {
    PyObject* element = PyList_GET_ITEM(items.get(), i);
    const int truth = element == a.args[1] ? 1 : e.equalElements(element, a.args[1]);
    if (truth < 0) return {};
    if (truth) return PyRef::steal(PyLong_FromSsize_t(i));
  }
  PyErr_Format(PyExc_ValueError, "%R is not in deque", a.args[1]);
  return {};
}

PyRef ruleListRemove(Evaluation& e, PyObject*, const CallArguments& a) {
  const Py_ssize_t i = indexOf(e, a.args[0], a.args[1]);
  if (i == -1) PyErr_SetString(PyExc_ValueError, "list.remove(x): x not in list");
  if (i < 0) return {};
  PyRef index = PyRef::steal(PyLong_FromSsize_t(i));
  return e.storeElement(a.args[0], index.get(), nullptr) ? none() : PyRef();
}

PyRef ruleListCount(Evaluation& e, PyObject*, const CallArguments& a) {
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; i < e.builtinLength(a.args[0]); ++i) {
    PyRef element = e.element(a.args[0], i);
    const int truth = element.get() == a.args[1] ? 1 : e.equalElements(element.get(), a.args[1]);
    if (truth < 0) return {};
    count += truth;
  }
  return PyRef::steal(PyLong_FromSsize_t(count));
}

/// keys, items, values, get, copy of a read-only view: of what it shows.
template <const char* const& kMethod>
PyRef ruleProxyMethod(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef mapping = e.proxied(a.args[0]), method = e.getAttr(mapping.get(), internedName(kMethod));
  return method ? e.call(method.get(), {a.args + 1, a.positional - 1, a.kwNames}) : PyRef();
}
constexpr const char *kKeys = "keys", *kItems = "items", *kValues = "values", *kCopy = "copy";

PyRef ruleProxyGet(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.proxyItem(a.args[0], a.args[1]);
  if (value || !PyErr_ExceptionMatches(PyExc_KeyError)) return value;
  clearError();
  return PyRef::borrow(a.positional > 2 ? a.args[2] : Py_None);
}

PyRef ruleDictGet(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  return PyRef::borrow(a.positional > 2 ? a.args[2] : Py_None);
}

PyRef ruleDictPop(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (PyErr_Occurred()) return {};
  if (!value) {
    PyObject* fallback = a.positional > 2 ? a.args[2] : a.keyword("default");
    if (fallback) return PyRef::borrow(fallback);
    PyRef tuple = PyRef::steal(PyTuple_Pack(1, a.args[1]));
    PyErr_SetObject(PyExc_KeyError, tuple.get());
    return {};
  }
  return e.storeKey(a.args[0], a.args[1], nullptr) ? value : PyRef();
}

PyRef ruleDictClear(Evaluation& e, PyObject*, const CallArguments& a) { return e.clearDict(a.args[0]) ? none() : PyRef(); }

/// dict.popitem and OrderedDict.popitem(last=True): which key that is depends on all of them.
PyRef ruleDictPopitem(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject* flag = a.positional > 1 ? a.args[1] : a.keyword("last");
  const int last = flag ? e.truth(flag) : 1;
  e.know(a.args[0]);
  PyRef items = itemsInOrder(a.args[0]);
  const Py_ssize_t n = PyList_GET_SIZE(items.get());
  if (last < 0) return {};
  if (n == 0) {
    PyErr_SetString(PyExc_KeyError, PyODict_Check(a.args[0]) ? "dictionary is empty" : "popitem(): dictionary is empty");
    return {};
  }
  PyRef pair = PyRef::borrow(PyList_GET_ITEM(items.get(), last ? n - 1 : 0));
  return e.storeKey(a.args[0], PyTuple_GET_ITEM(pair.get(), 0), nullptr) ? pair : PyRef();
}

PyRef ruleMoveToEnd(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject* flag = a.positional > 2 ? a.args[2] : a.keyword("last");
  const int last = flag ? e.truth(flag) : 1;
  return last >= 0 && e.moveToEnd(a.args[0], a.args[1], last != 0) ? none() : PyRef();
}

/// What dict's own methods do for a key, whatever __setitem__ a subclass has; OrderedDict's ask that.
bool setOwnItem(Evaluation& e, PyObject* dict, PyObject* key, PyObject* value) {
  return PyODict_Check(dict) ? e.setItem(dict, key, value) : e.storeKey(dict, key, value);
}

PyRef ruleDictSetdefault(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  PyObject* fallback = a.positional > 2 ? a.args[2] : Py_None;
  return setOwnItem(e, a.args[0], a.args[1], fallback) ? PyRef::borrow(fallback) : PyRef();
}

}  // namespace

PyRef ruleDictUpdate(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef incoming = PyRef::steal(PyDict_New());
  if (a.positional > 1 && runsProgram(a.args[1])) {
    if (!e.updateDictBy(a.args[0], a.args[1], PyODict_Check(a.args[0]))) return {};
  } else if (a.positional > 1 && !e.updateDict(incoming.get(), a.args[1])) {
    return {};
  }
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(incoming.get(), a.keywordName(i), a.args[a.positional + i]);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(incoming.get(), &at, &key, &value);)
    if (!setOwnItem(e, a.args[0], key, value)) return {};
  return none();
}

namespace {

PyRef ruleDictContains(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (PyErr_Occurred()) return {};
  return PyRef::borrow(value ? Py_True : Py_False);
}

PyRef ruleDictGetItem(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  PyRef tuple = PyRef::steal(PyTuple_Pack(1, a.args[1]));
  PyErr_SetObject(PyExc_KeyError, tuple.get());
  return {};
}

/// The fromkeys of a subclass: its class is called, and its own __setitem__ for each key.
PyRef fromKeysOf(Evaluation& e, PyObject* type, const CallArguments& a) {
  PyObject *keys = a.keyword("iterable"), *value = a.keyword("value");  // names that OrderedDict's takes
  if (!value) value = a.positional > 1 ? a.args[1] : Py_None;
  PyRef dict = e.call(type, nullptr, 0, nullptr), iterator = dict ? e.iter(keys ? keys : a.args[0]) : PyRef();
  if (!iterator) return {};
  while (PyRef key = e.next(iterator.get()))
    if (!e.setItem(dict.get(), key.get(), value)) return {};
  return PyErr_Occurred() ? PyRef() : dict;
}

PyRef ruleDictFromkeys(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* type = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (type && type != reinterpret_cast<PyObject*>(&PyDict_Type)) return fromKeysOf(e, type, a);
  PyRef keys = e.collect(a.args[0], false), dict = PyRef::steal(PyDict_New());
  if (!keys) return {};
  readElements(e, keys.get());
  e.adopt(dict.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i)
    if (PyDict_SetItem(dict.get(), plainKey(PyList_GET_ITEM(keys.get(), i)).get(), a.positional > 1 ? a.args[1] : Py_None) < 0) return {};
  return dict;
}

/// set.update and its relatives, one iterable after the other.
template <bool kUnion>
PyRef ruleSetUpdate(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.positional; ++i) {
    if (kUnion && runsProgram(a.args[i])) {
      if (!e.updateSet(a.args[0], a.args[i])) return {};
      continue;
    }
    PyRef items = e.collect(a.args[i], true);
    if (items && isMergedAsWhole(a.args[i])) e.adopt((items = mergedWhole(a.args[i])).get());
    PyObject* args[] = {a.args[0], items.get()};
    if (!items || !e.mutate(callable, {args, 2, nullptr})) return {};
  }
  return none();
}

/// set.remove raises where the element is missing; what set.pop gives depends on all that there are.
PyRef ruleSetRemove(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.expose(a.args[0]);
  return e.mutate(callable, a);
}

PyRef ruleSetPop(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (PyAnySet_Check(a.args[0])) e.readOrder(a.args[0]);
  if (e.isFresh(a.args[0])) return e.callRaw(callable, a);
  e.expose(a.args[0]);
  if (PySet_GET_SIZE(a.args[0]) > 1) e.breakHere("unsupported side effect", "pop() of a set from outside, whose order is not guarded");
  PyRef iterator = PyRef::steal(PyObject_GetIter(a.args[0])), item = PyRef::steal(PyIter_Next(iterator.get()));
  if (!item) return e.callRaw(callable, a);  // for what it raises
  static PyObject* const discard = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PySet_Type), "discard");
  PyObject* args[] = {a.args[0], item.get()};
  return e.mutate(discard, {args, 2, nullptr}) ? item : PyRef();
}

/// set.add and discard: hash and equality of the element.
PyRef ruleSetElement(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional == 2 && !isConstantValue(a.args[1]) && !e.isTensor(a.args[1]) && e.readKey(a.args[1]) == Evaluation::KeyKind::Python)
    e.refuseCallbacks(a.args[0], Evaluation::Asks::Keys);  // its own hash was evaluated; elements that it may equal are not
  return ruleMutate(e, callable, a);
}

PyRef ruleContains(Evaluation& e, PyObject*, const CallArguments& a) {
  const int found = e.contains(a.args[0], a.args[1]);
  return found < 0 ? PyRef() : PyRef::borrow(found ? Py_True : Py_False);
}

PyRef ruleItem(Evaluation& e, PyObject*, const CallArguments& a) { return e.tupleItem(a.args[0], a.args[1]); }

/// deque.extend and extendleft by the elements of any iterable, which may look at the deque meanwhile.
template <bool kLeft>
PyRef ruleDequeExtend(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!runsProgram(a.args[1])) {
    PyRef items = e.collect(a.args[1], false);
    PyObject* args[] = {a.args[0], items.get()};
    return items ? e.mutate(callable, {args, 2, nullptr}) : PyRef();
  }
  PyRef iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    PyObject* args[] = {a.args[0], item.get()};
    PyObject* method = _PyType_Lookup(PyDescr_TYPE(callable), internedName(kLeft ? "appendleft" : "append"));
    if (!e.mutate(method, {args, 2, nullptr})) return {};
  }
  return PyErr_Occurred() ? PyRef() : none();
}

PyRef ruleListExtend(Evaluation& e, PyObject*, const CallArguments& a) { return e.extendByAny(a.args[0], a.args[1]) ? none() : PyRef(); }

/// deque.pop, popleft and insert: what is taken is read, then gone.
PyRef ruleDequeTake(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* deque = a.args[0];
  if (e.isFresh(deque)) {
    const PyRef taken = e.callRaw(callable, a);
    return taken ? e.translate(taken.get(), nullptr) : PyRef();
  }
  if (!e.isDequeFromOutside(deque)) e.breakHere("object from outside", "what an instance of a subclass of deque from outside holds decides");
  const std::string_view name = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  const Py_ssize_t n = PyObject_Size(deque);
  PyRef item = name.starts_with("pop") && n > 0 ? e.dequeElement(deque, name == "pop" ? n - 1 : 0) : none();
  return item && e.mutate(callable, a) ? std::move(item) : PyRef();
}

/// collections.Counter's loop.
PyRef ruleCountElements(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  PyRef zero = PyRef::steal(PyLong_FromLong(0)), one = PyRef::steal(PyLong_FromLong(1));
  while (PyRef item = e.next(iterator.get())) {
    PyObject* get = e.pythonMethod(a.args[0], "get");
    PyObject* args[] = {a.args[0], item.get(), zero.get()};
    PyRef before = get ? e.call(get, args, 3, nullptr) : e.readDict(a.args[0], item.get());
    if (PyErr_Occurred()) return {};
    PyRef after = before ? e.binary(0, before.get(), one.get()) : one;
    if (!after || !e.setItem(a.args[0], item.get(), after.get())) return {};
  }
  return PyErr_Occurred() ? PyRef() : none();
}

/// Set algebra over any iterables; of a text the characters are asked, whatever its class makes of the whole as a key.
PyRef ruleSetAlgebra(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
  std::vector<PyRef> texts;
  for (PyObject*& argument : args)
    if (PyUnicode_Check(argument) && Py_TYPE(argument)->tp_iter == PyUnicode_Type.tp_iter) argument = texts.emplace_back(plainText(e, argument)).get();
  return e.callReal(callable, {args.data(), a.positional, a.kwNames}, Evaluation::Asks::Keys);
}

constexpr RuleRow kContainerRows[] = {
    {"builtins.list.append", ruleMutate},       {"builtins.list.extend", ruleListExtend}, {"builtins.list.insert", ruleMutateAt},
    {"builtins.list.pop", ruleListPop},         {"builtins.list.remove", ruleListRemove}, {"builtins.list.clear", ruleMutate},
    {"builtins.list.reverse", ruleMutate},      {"builtins.list.index", ruleListIndex},   {"builtins.tuple.index", ruleListIndex},
    {"builtins.list.count", ruleListCount},     {"builtins.tuple.count", ruleListCount}, {"builtins.list.copy", ruleCopy},    {"builtins.dict.get", ruleDictGet},
    {"builtins.dict.pop", ruleDictPop},         {"builtins.dict.setdefault", ruleDictSetdefault},
    {"builtins.dict.update", ruleDictUpdate},   {"builtins.dict.items", ruleView},        {"builtins.dict.keys", ruleView},
    {"builtins.dict.values", ruleView},         {"builtins.dict.copy", ruleCopy},         {"builtins.dict.clear", ruleDictClear},
    {"builtins.dict.popitem", ruleDictPopitem},        {"builtins.dict.fromkeys", ruleDictFromkeys},
    {"builtins.dict.__contains__", ruleDictContains}, {"builtins.dict.__getitem__", ruleDictGetItem},
    {"collections.OrderedDict.items", ruleView}, {"collections.OrderedDict.keys", ruleView},
    {"collections.OrderedDict.values", ruleView}, {"collections.OrderedDict.copy", ruleCopy},
    {"collections.OrderedDict.pop", ruleDictPop}, {"collections.OrderedDict.setdefault", ruleDictSetdefault},
    {"collections.OrderedDict.update", ruleDictUpdate}, {"collections.OrderedDict.clear", ruleDictClear},
    {"collections.OrderedDict.popitem", ruleDictPopitem}, {"collections.OrderedDict.fromkeys", ruleDictFromkeys},
    {"collections.OrderedDict.move_to_end", ruleMoveToEnd},
    {"builtins.set.add", ruleSetElement},           {"builtins.set.discard", ruleSetElement},     {"builtins.set.remove", ruleSetRemove},
    {"builtins.set.update", ruleSetUpdate<true>},     {"builtins.set.pop", ruleSetPop},         {"builtins.set.clear", ruleMutate},
    {"builtins.set.intersection_update", ruleSetUpdate<false>}, {"builtins.set.difference_update", ruleSetUpdate<false>},
    {"builtins.set.symmetric_difference_update", ruleSetUpdate<false>},
    {"builtins.set.copy", ruleCopy},            {"builtins.set.union", ruleSetAlgebra},   {"builtins.set.intersection", ruleSetAlgebra},
    {"builtins.set.difference", ruleSetAlgebra}, {"builtins.set.symmetric_difference", ruleSetAlgebra},
    {"builtins.set.issubset", ruleSetAlgebra},  {"builtins.set.issuperset", ruleSetAlgebra}, {"builtins.set.isdisjoint", ruleSetAlgebra},
    {"builtins.set.__contains__", ruleContains}, {"builtins.frozenset.__contains__", ruleContains}, {"builtins.list.__getitem__", ruleItem},
    {"builtins.frozenset.copy", ruleCopy}, {"builtins.frozenset.symmetric_difference", ruleSetAlgebra},
    {"builtins.frozenset.issuperset", ruleSetAlgebra}, {"builtins.frozenset.isdisjoint", ruleSetAlgebra},
    {"_collections._count_elements", ruleCountElements},
    {"builtins.frozenset.union", ruleSetAlgebra}, {"builtins.frozenset.intersection", ruleSetAlgebra},
    {"builtins.frozenset.difference", ruleSetAlgebra}, {"builtins.frozenset.issubset", ruleSetAlgebra},
    {"collections.deque.append", ruleMutate},   {"collections.deque.appendleft", ruleMutate}, {"collections.deque.pop", ruleDequeTake},
    {"collections.deque.popleft", ruleDequeTake},  {"collections.deque.extend", ruleDequeExtend<false>}, {"collections.deque.extendleft", ruleDequeExtend<true>},
    {"collections.deque.rotate", ruleMutateAt}, {"collections.deque.clear", ruleMutate},  {"collections.deque.insert", ruleDequeTake},
    {"collections.deque.index", ruleDequeIndex}, {"collections.deque.reverse", ruleMutate},  {"collections.deque.copy", ruleReadWhole},
    {"types.MappingProxyType.values", ruleProxyMethod<kValues>}, {"types.MappingProxyType.items", ruleProxyMethod<kItems>},
    {"types.MappingProxyType.keys", ruleProxyMethod<kKeys>}, {"types.MappingProxyType.copy", ruleProxyMethod<kCopy>},
    {"types.MappingProxyType.get", ruleProxyGet},
};

}  // namespace

RuleRows containerRules() { return {kContainerRows, std::size(kContainerRows)}; }

}  // namespace fusebox::capture
