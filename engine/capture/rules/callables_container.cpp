// Rules for the methods of list, dict, OrderedDict, set, deque.
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

PyRef none() { return PyRef::borrow(Py_None); }

/// Reads that look at the whole container: called on an exposed copy.
PyRef ruleReadWhole(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callReal(callable, a); }

PyRef ruleListExtend(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef items = e.collect(a.args[1], false);
  if (!items) return {};
  e.willWrite(a.args[0]);
  const Py_ssize_t n = PyList_GET_SIZE(a.args[0]);
  return PyList_SetSlice(a.args[0], n, n, items.get()) == 0 ? none() : PyRef();
}

/// What a mutating method hands back may be an element that was there before: give it its stand-in.
PyRef ruleTake(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.expose(a.args[0]);
  e.willWrite(a.args[0]);
  PyRef taken = e.callRaw(callable, a);
  return taken ? e.translate(taken.get(), nullptr) : PyRef();
}

/// list.index, list.count, list.remove: equality of elements.
PyRef ruleListIndex(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef list = e.expose(a.args[0]);
  for (Py_ssize_t i = 0; a.positional == 2 && i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(list.get(), i);
    PyRef equal = element == a.args[1] ? PyRef::borrow(Py_True) : e.compare(Py_EQ, element, a.args[1]);
    const int truth = equal ? e.truth(equal.get()) : -1;
    if (truth < 0) return {};
    if (truth) return PyRef::steal(PyLong_FromSsize_t(i));
  }
  if (a.positional != 2) return e.callReal(callable, a);
  PyErr_Format(PyExc_ValueError, "%R is not in list", a.args[1]);
  return {};
}

PyRef ruleDictGet(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  return PyRef::borrow(a.positional > 2 ? a.args[2] : Py_None);
}

PyRef ruleDictPop(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (PyErr_Occurred()) return {};
  if (!value) {
    PyObject* fallback = a.positional > 2 ? a.args[2] : a.keyword("default");
    if (fallback) return PyRef::borrow(fallback);
    PyRef tuple = PyRef::steal(PyTuple_Pack(1, a.args[1]));
    PyErr_SetObject(PyExc_KeyError, tuple.get());
    return {};
  }
  e.willWrite(a.args[0]);
  PyRef removed = e.callRaw(callable, a);
  return removed ? value : PyRef();
}

PyRef ruleDictSetdefault(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  PyObject* fallback = a.positional > 2 ? a.args[2] : Py_None;
  return e.setItem(a.args[0], a.args[1], fallback) ? PyRef::borrow(fallback) : PyRef();
}

PyRef ruleDictUpdate(Evaluation& e, PyObject*, const CallArguments& a) {
  if (e.sourceOf(a.args[0])) e.expose(a.args[0]);
  e.willWrite(a.args[0]);
  PyRef incoming = PyRef::steal(PyDict_New());
  if (a.positional > 1 && !e.updateDict(incoming.get(), a.args[1])) return {};
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(incoming.get(), a.keywordName(i), a.args[a.positional + i]);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(incoming.get(), &at, &key, &value);)
    if (!e.setItem(a.args[0], key, value)) return {};
  return none();
}

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

PyRef ruleDictFromkeys(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef keys = e.collect(a.args[0], false), dict = PyRef::steal(PyDict_New());
  if (!keys) return {};
  e.adopt(dict.get());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i)
    if (PyDict_SetItem(dict.get(), PyList_GET_ITEM(keys.get(), i), a.positional > 1 ? a.args[1] : Py_None) < 0) return {};
  return dict;
}

PyRef ruleSetUpdate(Evaluation& e, PyObject*, const CallArguments& a) {
  e.willWrite(a.args[0]);
  for (size_t i = 1; i < a.positional; ++i)
    if (!e.updateSet(a.args[0], a.args[i])) return {};
  return none();
}

PyRef ruleContains(Evaluation& e, PyObject*, const CallArguments& a) {
  const int found = e.contains(a.args[0], a.args[1]);
  return found < 0 ? PyRef() : PyRef::borrow(found ? Py_True : Py_False);
}

PyRef ruleItem(Evaluation& e, PyObject*, const CallArguments& a) { return e.tupleItem(a.args[0], a.args[1]); }

/// Mutation by the elements of any iterable.
PyRef ruleMutateFrom(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef items = e.collect(a.args[1], false);
  if (!items) return {};
  e.willWrite(a.args[0]);
  PyObject* args[] = {a.args[0], items.get()};
  return e.callRaw(callable, {args, 2, nullptr});
}

/// collections.Counter's loop.
PyRef ruleCountElements(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef iterator = e.iter(a.args[1]);
  if (!iterator) return {};
  PyRef one = PyRef::steal(PyLong_FromLong(1));
  while (PyRef item = e.next(iterator.get())) {
    PyRef before = e.readDict(a.args[0], item.get());
    if (PyErr_Occurred()) return {};
    PyRef after = before ? e.binary(0, before.get(), one.get()) : one;
    if (!after || !e.setItem(a.args[0], item.get(), after.get())) return {};
  }
  return PyErr_Occurred() ? PyRef() : none();
}

/// Set algebra over any iterables.
PyRef ruleSetAlgebra(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callReal(callable, a); }

constexpr RuleRow kRows[] = {
    {"builtins.list.append", ruleMutate},       {"builtins.list.extend", ruleListExtend}, {"builtins.list.insert", ruleMutate},
    {"builtins.list.pop", ruleTake},            {"builtins.list.remove", ruleTake},       {"builtins.list.clear", ruleMutate},
    {"builtins.list.reverse", ruleMutate},      {"builtins.list.index", ruleListIndex},   {"builtins.tuple.index", ruleListIndex},
    {"builtins.list.count", ruleReadWhole},     {"builtins.list.copy", ruleReadWhole},    {"builtins.dict.get", ruleDictGet},
    {"builtins.dict.pop", ruleDictPop},         {"builtins.dict.setdefault", ruleDictSetdefault},
    {"builtins.dict.update", ruleDictUpdate},   {"builtins.dict.items", ruleReadWhole},   {"builtins.dict.keys", ruleReadWhole},
    {"builtins.dict.values", ruleReadWhole},    {"builtins.dict.copy", ruleReadWhole},    {"builtins.dict.clear", ruleTake},
    {"builtins.dict.popitem", ruleTake},        {"builtins.dict.fromkeys", ruleDictFromkeys},
    {"builtins.dict.__contains__", ruleDictContains}, {"builtins.dict.__getitem__", ruleDictGetItem},
    {"collections.OrderedDict.items", ruleReadWhole}, {"collections.OrderedDict.keys", ruleReadWhole},
    {"collections.OrderedDict.values", ruleReadWhole}, {"collections.OrderedDict.copy", ruleReadWhole},
    {"collections.OrderedDict.pop", ruleDictPop}, {"collections.OrderedDict.setdefault", ruleDictSetdefault},
    {"collections.OrderedDict.update", ruleDictUpdate}, {"collections.OrderedDict.clear", ruleTake},
    {"collections.OrderedDict.popitem", ruleTake}, {"collections.OrderedDict.move_to_end", ruleTake},
    {"builtins.set.add", ruleMutate},           {"builtins.set.discard", ruleMutate},     {"builtins.set.remove", ruleMutate},
    {"builtins.set.update", ruleSetUpdate},     {"builtins.set.pop", ruleTake},           {"builtins.set.clear", ruleMutate},
    {"builtins.set.copy", ruleReadWhole},       {"builtins.set.union", ruleSetAlgebra},   {"builtins.set.intersection", ruleSetAlgebra},
    {"builtins.set.difference", ruleSetAlgebra}, {"builtins.set.symmetric_difference", ruleSetAlgebra},
    {"builtins.set.issubset", ruleSetAlgebra},  {"builtins.set.issuperset", ruleSetAlgebra}, {"builtins.set.isdisjoint", ruleSetAlgebra},
    {"builtins.set.__contains__", ruleContains}, {"builtins.frozenset.__contains__", ruleContains}, {"builtins.list.__getitem__", ruleItem},
    {"builtins.frozenset.copy", ruleReadWhole}, {"builtins.frozenset.symmetric_difference", ruleSetAlgebra},
    {"builtins.frozenset.issuperset", ruleSetAlgebra}, {"builtins.frozenset.isdisjoint", ruleSetAlgebra},
    {"_collections._count_elements", ruleCountElements},
    {"builtins.frozenset.union", ruleSetAlgebra}, {"builtins.frozenset.intersection", ruleSetAlgebra},
    {"builtins.frozenset.difference", ruleSetAlgebra}, {"builtins.frozenset.issubset", ruleSetAlgebra},
    {"collections.deque.append", ruleMutate},   {"collections.deque.appendleft", ruleMutate}, {"collections.deque.pop", ruleMutate},
    {"collections.deque.popleft", ruleMutate},  {"collections.deque.extend", ruleMutateFrom}, {"collections.deque.extendleft", ruleMutateFrom},
    {"collections.deque.rotate", ruleMutate},   {"collections.deque.clear", ruleMutate},  {"collections.deque.insert", ruleMutate},
    {"collections.deque.reverse", ruleMutate},  {"collections.deque.copy", ruleReadWhole},
    {"types.MappingProxyType.values", rulePure}, {"types.MappingProxyType.items", rulePure}, {"types.MappingProxyType.keys", rulePure},
    {"types.MappingProxyType.get", rulePure},   {"types.MappingProxyType.copy", rulePure},
};

}  // namespace

RuleRows containerRules() { return {kRows, std::size(kRows)}; }

}  // namespace fusebox::capture
