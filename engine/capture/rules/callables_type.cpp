// Rules for calling builtin types, and for C slots called by name (super().__setattr__ and the like).
#include "engine/capture/cpython/errors.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/plain_text.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {


PyRef ruleType(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional != 1) e.breakHere("unsupported call", "a class is made inside the compiled region");
  if (e.isNumber(a.args[0])) return e.pin(reinterpret_cast<PyObject*>(&PyFloat_Type), Why::Process);
  if (LazyIterator* lazy = lazyOf(a.args[0])) return e.pin(reinterpret_cast<PyObject*>(lazy->type()), Why::Class);
  return e.pin(reinterpret_cast<PyObject*>(pythonTypeOf(a.args[0])), Why::Class);
}

PyRef ruleSuper(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.positional == 0) return e.makeSuper(*e.frame(), nullptr, nullptr);
  return e.makeSuper(*e.frame(), a.args[0], a.positional > 1 ? a.args[1] : nullptr);
}

/// collections.namedtuple(…) of constants: each place of the program that calls it has one class for each set of arguments, where eager makes one in
/// every call. Like eager's it is that of the module whose code asks.
PyRef ruleNamedTuple(Evaluation& e, PyObject* callable, const CallArguments& a) {
  static PyObject* const classes = PyDict_New();
  const Place place = e.place();
  PyRef module = PyRef::borrow(PyDict_GetItemString(e.frame()->globals, "__name__"));
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional))), kwargs = PyRef::steal(PyDict_New());
  if (module) PyDict_SetItemString(kwargs.get(), "module", module.get());
  for (size_t i = 0; i < a.total(); ++i) {
    PyRef given = PyList_CheckExact(a.args[i]) ? e.collect(a.args[i], true) : e.settled(a.args[i]);
    if (!given) return {};
    if (!isConstantValue(given.get())) e.breakHere("unsupported call", "collections.namedtuple is called with what is not constant");
    if (i < a.positional) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), given.release());
    else PyDict_SetItem(kwargs.get(), a.keywordName(i - a.positional), given.get());
  }
  const PyRef items = PyRef::steal(PyDict_Items(kwargs.get())), named = PyRef::steal(PySequence_Tuple(items.get()));
  const PyRef key = PyRef::steal(Py_BuildValue("(sisOO)", place.file.c_str(), e.frame()->pc, place.function.c_str(), args.get(), named.get()));
  PyRef made = key ? PyRef::borrow(PyDict_GetItemWithError(classes, key.get())) : PyRef();
  if (!made && !PyErr_Occurred()) {
    made = PyRef::steal(PyObject_Call(callable, args.get(), kwargs.get()));
    if (made) PyDict_SetItem(classes, key.get(), made.get());
  }
  return made ? e.pin(made.get(), Why::Process) : PyRef();
}

PyRef ruleTuple(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() > 1 || a.keywords() > 0) return e.refuseArguments(callable, a), PyRef();
  if (a.positional == 0) return PyRef::steal(PyTuple_New(0));
  if (PyTuple_CheckExact(a.args[0])) return PyRef::borrow(a.args[0]);
  return e.collect(a.args[0], true, true);
}

PyRef ruleList(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() > 1 || a.keywords() > 0) return e.refuseArguments(callable, a), PyRef();
  if (a.positional > 0) return e.collect(a.args[0], false, true);
  PyRef list = PyRef::steal(PyList_New(0));
  e.adopt(list.get());
  return list;
}

PyRef ruleSet(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() > 1 || a.keywords() > 0) return e.refuseArguments(callable, a), PyRef();
  PyRef items = a.positional > 0 ? e.collect(a.args[0], true) : PyRef::steal(PyTuple_New(0));
  if (!items) return {};
  readElements(e, items.get());
  PyObject* args[] = {a.positional > 0 && isMergedAsWhole(a.args[0]) ? a.args[0] : items.get()};
  PyRef set = PyRef::steal(PyObject_Vectorcall(callable, args, 1, nullptr));
  if (set && set.get() != args[0]) e.adopt(set.get());
  return set;
}

PyRef ruleDict(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional > 1) return e.refuseArguments(callable, a), PyRef();
  PyRef dict = PyRef::steal(PyObject_CallNoArgs(callable)), incoming = PyRef::steal(PyDict_New());
  e.adopt(dict.get());
  if (a.positional > 0 && !e.updateDict(incoming.get(), a.args[0])) return {};
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(incoming.get(), a.keywordName(i), a.args[a.positional + i]);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(incoming.get(), &at, &key, &value);)
    if (PyObject_SetItem(dict.get(), key, value) < 0) return {};
  return dict;
}

PyRef ruleDefaultdict(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* factory = a.positional > 0 ? a.args[0] : Py_None;
  PyObject* args[] = {factory};
  PyRef dict = PyRef::steal(PyObject_Vectorcall(callable, args, 1, nullptr)), incoming = PyRef::steal(PyDict_New());
  if (!dict) return {};
  if (a.positional > 2) return e.refuseArguments(callable, a), PyRef();
  e.adopt(dict.get());
  if (a.positional > 1 && !e.updateDict(incoming.get(), a.args[1])) return {};
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(incoming.get(), a.keywordName(i), a.args[a.positional + i]);
  PyDict_Update(dict.get(), incoming.get());
  return dict;
}

PyRef ruleDeque(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    keep.push_back(i == 0 && a.positional > 0 ? e.collect(a.args[i], false) : PyRef::borrow(a.args[i]));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  PyRef deque = PyRef::steal(PyObject_Vectorcall(callable, args.data(), a.positional, a.kwNames));
  if (deque) e.adopt(deque.get());
  return deque;
}

PyRef ruleStr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 1) return e.callReal(callable, a);
  return e.convert('s', a.args[0]);
}

PyRef ruleBool(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() > 1 || a.keywords() > 0) return e.refuseArguments(callable, a), PyRef();
  if (a.positional > 0 && isArrayScalar(a.args[0]))
    if (PyRef truth = deferredTruth(e, a.args[0])) return truth;
  const int truth = a.positional > 0 ? e.truth(a.args[0]) : 0;
  return truth < 0 ? PyRef() : PyRef::borrow(truth ? Py_True : Py_False);
}

/// int, float, complex: an instance of a Python class converts itself.
template <char kKind>
PyRef ruleNumber(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional > 0) refuseSubclassOperands(e, a.args[0]);
  if (kKind != 'c' && a.positional == 1 && a.total() == 1 && e.isTensor(a.args[0]))
    if (PyRef number = deferredItem(e, a.args[0], kKind)) return number;
  if (kKind != 'c' && a.positional == 1 && a.total() == 1 && isArrayScalar(a.args[0])) {
    if (const PyRef known = pythonNumberOf(a.args[0]); known && isSymbolicNumber(known.get()))
      return kKind == 'i' ? symbolicRounded('t', known.get()) : symbolicToFloat(known.get());
    if (PyRef number = deferredItem(e, deferredNumber(a.args[0]).tensor.get(), kKind)) return number;
  }
  if (a.positional != 1 || a.total() != 1 || isConstantValue(a.args[0]) || e.isTensor(a.args[0])) return e.callReal(callable, a);
  if (isSymbolicNumber(a.args[0]) && kKind != 'c') return kKind == 'i' ? symbolicRounded('t', a.args[0]) : symbolicToFloat(a.args[0]);
  PyRef number = kKind == 'i'   ? e.numberOf(a.args[0], {"__int__", "__index__", "__trunc__"})
                 : kKind == 'f' ? e.numberOf(a.args[0], {"__float__", "__index__"})
                                : e.numberOf(a.args[0], {"__complex__", "__float__", "__index__"});
  if (!number) return {};
  const PyNumberMethods* own = PyUnicode_Check(number.get()) ? Py_TYPE(number.get())->tp_as_number : nullptr;
  if (own && !own->nb_int && !own->nb_float && !own->nb_index) number = plainText(e, number.get());
  PyObject* args[] = {number.get()};
  return e.callReal(callable, {args, 1, nullptr});
}

/// range and bytes: numbers of elements.
PyRef ruleCounts(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  static PyObject* const kBytes = reinterpret_cast<PyObject*>(&PyBytes_Type);
  if (PyObject* method = callable == kBytes && a.total() == 1 && a.positional == 1 ? e.pythonMethod(a.args[0], "__bytes__") : nullptr) {
    PyRef made = e.call(method, a);
    return e.expect(made, made && PyBytes_Check(made.get()), "__bytes__");
  }
  for (size_t i = 0; i < a.total(); ++i) {
    const PyRef known = isArrayScalar(a.args[i]) ? pythonNumberOf(a.args[i]) : PyRef();
    PyObject* count = known ? known.get() : a.args[i];
    keep.push_back(isSymbolicNumber(count) ? e.plainNumber(count, "the number of elements of a range") : e.plainIndex(count));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  return e.callReal(callable, {args.data(), a.positional, a.kwNames});
}

/// torch.Size of ints, some of them symbolic.
PyRef ruleSize(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional != 1 || a.total() != 1 || isConstantValue(a.args[0])) return e.callReal(callable, a);
  PyRef items = e.collect(a.args[0], true);
  bool symbolic = false, ints = true;
  for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    symbolic = symbolic || isSymbolicInt(item);
    ints = ints && (isSymbolicInt(item) || PyLong_CheckExact(item));
  }
  if (!items) return {};
  if (symbolic && ints) return newSize(items.get());
  PyObject* args[] = {items.get()};
  return e.callReal(callable, {args, 1, nullptr});
}

PyRef ruleObject(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef object = PyRef::steal(PyObject_CallNoArgs(callable));
  e.origin(object.get()) ? void() : e.adoptIterator(object.get());
  return object;
}

/// Allocation of a fresh object that keeps its arguments as they are.
PyRef ruleMake(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef made = e.callRaw(callable, a);
  if (made && !e.origin(made.get()) && !isConstantValue(made.get())) e.adopt(made.get());
  return made;
}

PyRef ruleRaw(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.callRaw(callable, a); }

}  // namespace

PyRef callWeakReference(Evaluation& e, PyObject* reference);

namespace {

PyRef ruleWeakReference(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() > 1 && a.args[1] != Py_None) e.breakHere("finalizer", "a weak reference with a callback is made");
  PyRef made = ruleMake(e, callable, a);
  if (made && !e.isFresh(made.get()) && !callWeakReference(e, made.get())) return {};  // the one that was there already: of this very object
  return made;
}

PyRef ruleMappingProxy(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.know(a.args[0]);
  return e.callRaw(callable, a);
}

PyRef subclassesOf(PyObject* cls) {
  static PyObject* const ask = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyType_Type), "__subclasses__");
  return PyRef::steal(PyObject_CallOneArg(ask, cls));
}

/// Guard: a class has the subclasses that weak references in a tuple refer to, in this order.
bool hasSubclasses(PyObject* cls, PyObject* expected) {
  const PyRef now = PyType_Check(cls) ? subclassesOf(cls) : PyRef();
  clearError();
  bool same = now && PyList_GET_SIZE(now.get()) == PyTuple_GET_SIZE(expected);
  for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(expected); ++i) same = PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(expected, i)) == PyList_GET_ITEM(now.get(), i);
  return same;
}

PyRef ruleSubclasses(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* cls = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : a.args[0];
  const Source* source = e.sourceOf(cls);
  PyRef found = source ? subclassesOf(cls) : PyRef();
  if (!found) e.breakHere("unsupported call", "a class of the compiled region is asked for its subclasses");
  const Py_ssize_t n = PyList_GET_SIZE(found.get());
  PyRef expected = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(expected.get(), i, PyWeakref_NewRef(PyList_GET_ITEM(found.get(), i), nullptr));
    e.pin(PyList_GET_ITEM(found.get(), i), Why::Class);
  }
  e.guardCustom(source, hasSubclasses, expected.get(), "the same subclasses");
  e.adopt(found.get());
  return found;
}

constexpr RuleRow kTypeRows[] = {
    {"collections.namedtuple", ruleNamedTuple},
    {"builtins.type", ruleType},        {"builtins.super", ruleSuper},      {"builtins.tuple", ruleTuple},
    {"builtins.list", ruleList},        {"builtins.set", ruleSet},          {"builtins.frozenset", ruleSet},
    {"builtins.dict", ruleDict},        {"collections.OrderedDict", ruleDict}, {"collections.defaultdict", ruleDefaultdict},
    {"collections.deque", ruleDeque},   {"builtins.range", ruleCounts},       {"builtins.slice", ruleMake},
    {"builtins.str", ruleStr},          {"builtins.bool", ruleBool},        {"builtins.int", ruleNumber<'i'>},
    {"builtins.float", ruleNumber<'f'>}, {"builtins.complex", ruleNumber<'c'>},    {"builtins.bytes", ruleCounts},
    {"builtins.object", ruleObject},    {"functools.partial", ruleMake},    {"types.MappingProxyType", ruleMappingProxy},
    {"types.MethodType", ruleMake},     {"types.SimpleNamespace", ruleMake}, {"types.GenericAlias", rulePure},
    {"torch.Size", ruleSize},           {"torch.device", rulePure},         {"torch.finfo", rulePure},
    {"torch.iinfo", rulePure},          {"builtins.property", ruleMake},    {"builtins.staticmethod", ruleMake},
    {"builtins.classmethod", ruleMake}, {"types.CellType", ruleMake},       {"weakref.ref", ruleWeakReference},
    {"types.FunctionType", ruleMake},   {"torch._C._functorch.CInterpreter", rulePure},
    {"operator.itemgetter", ruleMake},  {"operator.attrgetter", ruleMake},  {"operator.methodcaller", ruleMake},
    {"builtins.type.__subclasses__", ruleSubclasses},  {"torch._C.DisableTorchFunctionSubclass", ruleMake},
    {"torch._C.DisableTorchFunctionSubclass.__enter__", ruleRaw}, {"torch._C.DisableTorchFunctionSubclass.__exit__", ruleRaw},
};

// --- slots by name: the C implementation of a builtin base, not the override of a subclass ---------------------------------

/// What object's own __setattr__ and __delattr__ do not write to, or refuse.
void refuseTarget(Evaluation& e, const CallArguments& a) {
  if (PyType_Check(a.args[0]) || PyModule_CheckExact(a.args[0]) || !PyUnicode_Check(a.args[1]))
    e.breakHere("unsupported side effect", std::string("an attribute of a ") + Py_TYPE(a.args[0])->tp_name + " is written by its slot");
}

PyRef slotSetattr(Evaluation& e, PyObject*, const CallArguments& a) {
  refuseTarget(e, a);
  return e.genericSetAttr(a.args[0], a.args[1], a.args[2]) ? none() : PyRef();
}
PyRef slotDelattr(Evaluation& e, PyObject*, const CallArguments& a) {
  refuseTarget(e, a);
  return e.genericSetAttr(a.args[0], a.args[1], nullptr) ? none() : PyRef();
}
PyRef slotGetattribute(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (PyDescr_TYPE(callable) == &PyBaseObject_Type && !PyType_Check(a.args[0]) && !PyModule_Check(a.args[0]))
    return e.genericGetAttr(a.args[0], a.args[1]);
  return e.getAttr(a.args[0], a.args[1]);
}

PyRef slotInit(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyTypeObject* owner = PyDescr_TYPE(callable);
  PyObject* self = a.args[0];
  if (owner == &PyBaseObject_Type) return a.total() > 1 ? e.callRaw(callable, a) : none();
  if (PyType_IsSubtype(owner, &PyDict_Type)) return ruleDictUpdate(e, callable, a);
  if (PyType_IsSubtype(owner, &PyList_Type) || PyType_IsSubtype(owner, &PySet_Type)) {
    if (a.keywords() > 0) e.breakHere("unsupported call", std::string(owner->tp_name) + ".__init__ with keywords");
    PyRef items = a.positional > 1 ? e.collect(a.args[1], true) : PyRef::steal(PyTuple_New(0));
    PyObject* args[] = {self, items.get()};
    return items ? e.mutate(callable, {args, 2, nullptr}) : PyRef();
  }
  if (PyExceptionClass_Check(reinterpret_cast<PyObject*>(owner)) || e.isFresh(self)) return e.callRaw(callable, a);
  e.breakHere("unsupported call", std::string(owner->tp_name) + ".__init__");
}

PyRef slotRead(Evaluation& e, PyObject* callable, const CallArguments& a);

PyRef slotGetItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!PyDict_Check(a.args[0])) return PyTuple_Check(a.args[0]) || PyList_Check(a.args[0]) ? e.tupleItem(a.args[0], a.args[1]) : slotRead(e, callable, a);
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (value || PyErr_Occurred()) return value;
  PyRef tuple = PyRef::steal(PyTuple_Pack(1, a.args[1]));
  PyErr_SetObject(PyExc_KeyError, tuple.get());
  return {};
}

/// __setitem__ and __delitem__ of a builtin container.
PyRef slotSetItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject *container = a.args[0], *value = a.positional > 2 ? a.args[2] : nullptr;
  if (a.positional < 2 || e.isFresh(container)) return e.callRaw(callable, a);
  bool done = false;
  if (PyDict_Check(container)) {
    done = value ? e.storeKey(container, a.args[1], value)
                 : e.deleteKey(container, a.args[1], [&] { _PyErr_SetKeyError(a.args[1]); });
  } else if (PyList_Check(container)) {
    PyRef items = value && PySlice_Check(a.args[1]) ? e.collect(value, false) : PyRef::borrow(value);
    done = (!value || items) && e.storeElement(container, a.args[1], items.get());
  } else {
    e.breakHere("unsupported side effect", std::string("an item of a ") + Py_TYPE(container)->tp_name + " that existed before is written");
  }
  return done ? none() : PyRef();
}

PyRef slotContains(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (PyTuple_Check(a.args[0]) || PyList_Check(a.args[0])) {
    PyRef list = e.expose(a.args[0]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      PyRef element = PyRef::borrow(PySequence_Fast_GET_ITEM(list.get(), i));
      if (const int answer = e.equalElements(element.get(), a.args[1])) return answer < 0 ? PyRef() : PyRef::borrow(Py_True);
    }
    return PyRef::borrow(Py_False);
  }
  if (!PyDict_Check(a.args[0])) return e.callReal(callable, a, Evaluation::Asks::Keys);
  PyRef value = e.readDict(a.args[0], a.args[1]);
  if (PyErr_Occurred()) return {};
  return PyRef::borrow(value ? Py_True : Py_False);
}

PyRef slotLen(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* o = a.args[0];
  if (!PyDict_Check(o) && !PyList_Check(o) && !PyTuple_Check(o) && !PyAnySet_Check(o)) return e.callReal(callable, a);
  return PyRef::steal(PyLong_FromSsize_t(e.builtinLength(o)));
}

PyRef slotIter(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (lazyOf(a.args[0])) return PyRef::borrow(a.args[0]);
  return e.iterBuiltin(a.args[0], PyDescr_TYPE(callable));
}

PyRef slotNext(Evaluation& e, PyObject*, const CallArguments& a) { return nextOrStop(e, a.args[0]); }

PyRef slotCall(Evaluation& e, PyObject*, const CallArguments& a) {
  if (PyType_Check(a.args[0]))
    return e.construct(reinterpret_cast<PyTypeObject*>(a.args[0]), {a.args + 1, a.positional - 1, a.kwNames});
  return e.call(a.args[0], a.args + 1, a.positional - 1, a.kwNames);
}

/// Descriptors that are bound by hand.
PyRef slotGet(Evaluation& e, PyObject*, const CallArguments& a) {
  PyObject* object = a.positional > 1 && a.args[1] != Py_None ? a.args[1] : nullptr;
  PyTypeObject* type = a.positional > 2 && PyType_Check(a.args[2]) ? reinterpret_cast<PyTypeObject*>(a.args[2]) : object ? Py_TYPE(object) : nullptr;
  if (!type) e.breakHere("unsupported call", "a descriptor is bound to nothing");
  if (object && !PyType_Check(object) && (Py_IS_TYPE(a.args[0], &PyGetSetDescr_Type) || Py_IS_TYPE(a.args[0], &PyMemberDescr_Type))) {
    PyObject* name = PyDescr_NAME(a.args[0]);  // as the attribute that it is
    if (e.typeLookup(Py_TYPE(object), name) == a.args[0]) return e.isTensor(object) ? e.tensorGetAttr(object, name) : e.genericGetAttr(object, name);
  }
  return e.bindDescriptor(a.args[0], object, type, internedName("__get__"));
}


/// Comparison of a builtin base. object's knows identity alone and leaves the rest to the other operand.
template <int kOp>
PyRef slotCompare(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 2) return e.callReal(callable, a);
  PyTypeObject* owner = PyDescr_TYPE(callable);
  PyObject *left = a.args[0], *right = a.args[1];
  if (owner == &PyBaseObject_Type) {
    if (kOp == Py_EQ) return e.same(left, right) ? boolean(true) : PyRef::borrow(Py_NotImplemented);
    if (kOp != Py_NE) return PyRef::borrow(Py_NotImplemented);
    PyRef equal = e.callMethodNamed(left, "__eq__", {right});
    if (!equal || equal.get() == Py_NotImplemented) return equal;
    const int truth = e.truth(equal.get());
    return truth < 0 ? PyRef() : boolean(!truth);
  }
  const bool isSequence = owner == &PyList_Type || owner == &PyTuple_Type || owner == &PyDict_Type;
  if (!PyType_IsSubtype(Py_TYPE(right), owner) && (isSequence || builtinBase(Py_TYPE(right)) == &PyBaseObject_Type))
    return PyRef::borrow(Py_NotImplemented);
  if (owner == &PyList_Type || owner == &PyTuple_Type) return e.compareSequences(kOp, left, right);
  if (owner == &PyDict_Type && (kOp == Py_EQ || kOp == Py_NE)) {
    const int answer = e.compareDicts(kOp, left, right);
    return answer < 0 ? PyRef() : boolean(answer != 0);
  }
  return e.callReal(callable, a, Evaluation::Asks::Keys);
}

/// The hash of a builtin base.
PyRef slotHash(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (PyDescr_TYPE(callable) != &PyBaseObject_Type) return e.callReal(callable, a, Evaluation::Asks::Nothing);
  const Source* source = e.sourceOf(a.args[0]);
  if (!source) e.breakHere("identity", "the hash of an object that has none but its address is used as a number");
  if (source->kind != Source::Kind::Pinned) e.guard(GuardKind::IdMatch, source, a.args[0]);
  return e.callRaw(callable, a);
}

/// The text of a builtin base.
PyRef slotText(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyTypeObject* owner = PyDescr_TYPE(callable);
  if (owner == &PyBaseObject_Type) {
    if (PyUnicode_CompareWithASCIIString(PyDescr_NAME(callable), "__str__") == 0) return e.convert('r', a.args[0]);
    e.breakHere("unsupported call", std::string("the text of a ") + Py_TYPE(a.args[0])->tp_name + " depends on its address");
  }
  if (owner == &PyList_Type || owner == &PyTuple_Type || owner == &PyDict_Type) return e.textOfContainer(a.args[0]);
  return e.callReal(callable, a, Evaluation::Asks::Nothing);
}

/// Operators of builtin bases: what the object holds, without what its class overrides.
PyRef slotRead(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.total(); ++i) e.refuseCallbacks(a.args[i], Evaluation::Asks::Numbers);
  return e.callReal(callable, a, Evaluation::Asks::Nothing);
}

struct SlotRow {
  const char* name;
  CallRule rule;
};
constexpr SlotRow kSlots[] = {
    {"__setattr__", slotSetattr}, {"__delattr__", slotDelattr}, {"__getattribute__", slotGetattribute}, {"__init__", slotInit},
    {"__getitem__", slotGetItem}, {"__setitem__", slotSetItem}, {"__delitem__", slotSetItem},           {"__contains__", slotContains},
    {"__get__", slotGet},         {"__len__", slotLen},         {"__iter__", slotIter},       {"__next__", slotNext}, {"__call__", slotCall},                 {"__eq__", slotCompare<Py_EQ>},
    {"__ne__", slotCompare<Py_NE>},         {"__lt__", slotCompare<Py_LT>},         {"__le__", slotCompare<Py_LE>},                   {"__gt__", slotCompare<Py_GT>},
    {"__ge__", slotCompare<Py_GE>},         {"__hash__", slotHash},       {"__repr__", slotText},                 {"__str__", slotText},
    {"__add__", slotRead},        {"__or__", slotRead},         {"__mul__", slotRead},                  {"__bool__", slotRead},
    {"__and__", slotRead},        {"__xor__", slotRead},        {"__sub__", slotRead},                  {"__ror__", slotRead},
    {"__int__", slotRead},        {"__float__", slotRead},      {"__index__", slotRead},                {"__rmul__", slotRead},
};

}  // namespace

RuleRows typeRules() { return {kTypeRows, std::size(kTypeRows)}; }

CallRule slotRuleOf(PyObject* descriptor) {
  // Tensors' own slots are ordinary bindings.
  if (PyType_IsSubtype(PyDescr_TYPE(descriptor), &PyBaseObject_Type) && isPlainTensorBase(PyDescr_TYPE(descriptor))) return nullptr;
  PyObject* name = PyDescr_NAME(descriptor);
  for (const SlotRow& row : kSlots)
    if (PyUnicode_CompareWithASCIIString(name, row.name) == 0) return row.rule;
  return nullptr;
}

PyRef Evaluation::makeSuper(Frame& f, PyObject* type, PyObject* object) {
  PyRef cellType, self = PyRef::borrow(object);
  if (!type && f.code()->co_argcount > 0) {
    PyObject* names = f.code()->co_localsplusnames;
    for (int i = f.decoded->freeOffset; i < f.code()->co_nlocalsplus; ++i)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "__class__") == 0) {
        if (!f.unread.empty() && f.unread[static_cast<size_t>(i)]) readLocal(f, i);
        if (f.locals[static_cast<size_t>(i)]) cellType = loadCell(f.locals[static_cast<size_t>(i)].get());
        if (!checkSuperClass(cellType.get())) return {};
      }
    if (!f.unread.empty() && f.unread[0]) readLocal(f, 0);
    self = f.locals.empty() ? PyRef() : f.locals[0];
    if (self && PyCell_Check(self.get())) self = loadCell(self.get());
    type = cellType.get();
  }
  if (!type || !self) {
    PyErr_SetString(PyExc_RuntimeError, "super(): no arguments");
    return {};
  }
  PyRef made = PyRef::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), type, self.get(), nullptr));
  if (made) adopt(made.get());
  return made;
}

}  // namespace fusebox::capture
