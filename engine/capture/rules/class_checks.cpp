#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/rules/class_checks.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/state_queries.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

PyTypeObject* asType(PyObject* o) { return reinterpret_cast<PyTypeObject*>(o); }

/// int | str
bool isUnion(PyObject* o) {
  static PyObject* const type = torchObject("types.UnionType");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}

/// The function of class abc.ABCMeta under that name.
bool isAbcMethod(PyObject* method, const char* name) {
  static auto* const dict = PyRef::borrow(asType(torchObject("abc.ABCMeta"))->tp_dict).release();
  return method && method == PyDict_GetItemString(dict, name);
}

/// A special method of a class's own metaclass, guarded; borrowed, null when that is type's or there is none.
PyObject* metaMethod(Evaluation& e, PyObject* cls, const char* name) {
  PyObject* method = e.typeLookup(Py_TYPE(cls), internedName(name));
  return method && Py_IS_TYPE(method, &PyMethodDescr_Type) && PyDescr_TYPE(method) == &PyType_Type ? nullptr : method;
}

/// What the object says its class is, where that is not the type it has: proxies and mocks. Null: it says nothing else.
PyRef claimedClass(Evaluation& e, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type) || e.isTensor(object) || PyType_Check(object)) return {};
  static PyObject* const kClass = internedName("__class__");
  static PyObject* const kGetAttribute = internedName("__getattribute__");
  static PyObject* const own = Py_NewRef(_PyType_Lookup(&PyBaseObject_Type, kClass));
  PyObject* getAttribute = e.typeLookup(type, kGetAttribute);
  if (e.typeLookup(type, kClass) == own && !(getAttribute && PyFunction_Check(getAttribute))) return {};
  PyRef claimed = e.getAttr(object, kClass);
  if (!claimed) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) clearError();
    return {};
  }
  return PyType_Check(claimed.get()) && claimed.get() != reinterpret_cast<PyObject*>(type) ? claimed : PyRef();
}

/// type.__instancecheck__
int plainInstance(Evaluation& e, PyObject* object, PyTypeObject* cls) {
  if (isSymbolicNumber(object) || isSymbolicText(object)) return PyType_IsSubtype(pythonTypeOf(object), cls);
  if (PyObject_TypeCheck(object, cls)) return 1;
  PyRef claimed = claimedClass(e, object);
  if (PyErr_Occurred()) return -1;
  return claimed && PyType_IsSubtype(asType(claimed.get()), cls);
}

/// A __subclasshook__ that the program wrote; those of the standard library look at nothing but special methods of the class.
PyObject* ownHook(PyTypeObject* cls) {
  static PyObject* const kHook = internedName("__subclasshook__");
  PyObject* found = _PyType_Lookup(cls, kHook);
  if (!found || !Py_IS_TYPE(found, &PyClassMethod_Type)) return nullptr;
  PyRef function = PyRef::steal(PyObject_GetAttrString(found, "__func__"));
  return function && PyFunction_Check(function.get()) && isLibraryNamespace(PyFunction_GET_GLOBALS(function.get()), Library::Standard)
             ? nullptr
             : found;
}

/// The classes below an abstract one, which are asked too.
bool hookBelow(PyObject* cls, int depth = 0) {
  PyRef below = PyRef::steal(PyObject_CallMethod(cls, "__subclasses__", nullptr));
  if (!below || depth > 20) return clearError(), depth > 20;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(below.get()); ++i) {
    PyObject* sub = PyList_GET_ITEM(below.get(), i);
    if (PyType_Check(sub) && (ownHook(asType(sub)) || hookBelow(sub, depth + 1))) return true;
  }
  return false;
}

/// What an abstract class remembers of a class that it was asked about: 1 it is a subclass, 0 it is none; -1: nothing that still counts.
int remembered(PyObject* cls, PyObject* type) {
  static PyObject* const dump = torchObject("_abc._get_dump");
  static PyObject* const token = torchObject("_abc.get_cache_token");
  const PyRef known = PyRef::steal(PyObject_CallOneArg(dump, cls)), now = PyRef::steal(PyObject_CallNoArgs(token));
  const PyRef reference = PyRef::steal(PyWeakref_NewRef(type, nullptr));
  if (!known || !now || !reference || !PyTuple_Check(known.get()) || PyTuple_GET_SIZE(known.get()) != 4) return clearError(), -1;
  const auto isIn = [&](Py_ssize_t set) { return PySequence_Contains(PyTuple_GET_ITEM(known.get(), set), reference.get()) == 1; };
  enum { kSubclasses = 1, kOthers, kAskedAt };
  const bool isKnown = isIn(kSubclasses) || (PyObject_RichCompareBool(PyTuple_GET_ITEM(known.get(), kAskedAt), now.get(), Py_EQ) == 1 && isIn(kOthers));
  const int answer = !isKnown ? -1 : isIn(kSubclasses);
  clearError();
  return answer;
}

/// `expected`: a class, and whether it is a subclass.
bool remembersStill(PyObject* cls, PyObject* expected) {
  return remembered(cls, PyTuple_GET_ITEM(expected, 0)) == (PyTuple_GET_ITEM(expected, 1) == Py_True);
}

/// A __subclasshook__ of the program's is asked once: its answer is remembered, whatever it would say later.
int answerOfHook(Evaluation& e, PyObject* type, PyObject* cls) {
  if (remembered(cls, type) < 0) {
    const auto done = [&] { return std::tuple(e.effectsSoFar().writes, e.journal().size(), e.journal().calls(), e.trace().graph().nodes().size()); };
    const auto before = done();
    if (ownHook(asType(cls))) {
      const PyRef hook = e.getAttr(cls, internedName("__subclasshook__"));
      PyObject* args[] = {type};
      if (!hook || !e.call(hook.get(), args, 1, nullptr)) return -1;
    }
    if (hookBelow(cls) || done() != before || e.journal().calls() > 0)
      e.breakHere("class check", "an abstract class or one below it decides with a __subclasshook__ of its own, which does more than to answer");
    trace::NoTrace off;
    if (PyObject_IsSubclass(type, cls) < 0) return -1;
  }
  const int answer = remembered(cls, type);
  if (answer < 0) e.breakHere("class check", "an abstract class does not remember what its __subclasshook__ says");
  const PyRef expected = PyRef::steal(PyTuple_Pack(2, type, answer ? Py_True : Py_False));
  e.guardCustom(e.sources().pinned(cls, Why::Process), remembersStill, expected.get(), "what an abstract class remembers of a class");
  return answer;
}

/// ABCMeta.__subclasscheck__: registered and structural subclasses too.
int abstractSubclass(Evaluation& e, PyTypeObject* type, PyObject* cls) {
  static PyObject* const kState = internedName("_abc_impl");
  static PyTypeObject* const own = Py_TYPE(_PyType_Lookup(asType(torchObject("collections.abc.Sized")), kState));
  PyObject* state = PyType_Check(cls) ? e.typeLookup(asType(cls), kState) : nullptr;
  if (!state || Py_TYPE(state) != own) e.breakHere("class check", "an abstract class has lost what it knows of its subclasses");
  static PyObject* const kHook = internedName("__subclasshook__");
  auto* typeObject = reinterpret_cast<PyObject*>(type);
  e.typeLookup(asType(cls), kHook);
  if (ownHook(asType(cls)) || (!PyType_IsSubtype(type, asType(cls)) && hookBelow(cls))) return answerOfHook(e, typeObject, cls);
  if (PyType_IsSubtype(type, asType(cls))) return 1;
  e.guardTypeAttribute(type, kHook);  // and with it the special methods that structural checks look for
  guardAnswer(e, torchObject("_abc.get_cache_token"), {}, "no class was registered with an abstract base class");
  trace::NoTrace off;
  return PyObject_IsSubclass(typeObject, cls);
}

int truthOf(Evaluation& e, PyObject* method, PyObject* cls, PyObject* subject) {
  e.pin(method, Why::Class);
  PyObject* args[] = {cls, subject};
  PyRef answer = e.call(method, args, 2, nullptr);
  return answer ? e.truth(answer.get()) : -1;
}

/// isinstance(tensor, torch.FloatTensor) and the like, which libtorch answers by type, layout and device.
int isOfTensorType(Evaluation& e, PyObject* tensor, PyObject* cls) {
  for (PyObject* name : {internedName("dtype"), internedName("layout")}) {
    const PyRef wanted = PyRef::steal(PyObject_GetAttr(cls, name)), found = wanted ? e.getAttr(tensor, name) : PyRef();
    if (!found) return -1;
    if (found.get() != wanted.get()) return 0;
  }
  const PyRef isCuda = PyRef::steal(PyObject_GetAttrString(cls, "is_cuda"));
  const at::Tensor& t = tensorOf(tensor);
  return isCuda.get() == Py_True ? t.is_cuda() : isCuda.get() == Py_False && t.is_cpu();
}

using Check = int (*)(Evaluation&, PyObject*, PyObject*);

/// The elements of a tuple or union of classes, until one says yes. -2: `classes` is neither.
int anyOf(Evaluation& e, PyObject* subject, PyObject* classes, Check check) {
  PyRef list;
  if (PyTuple_Check(classes)) list = e.expose(classes);
  else if (isUnion(classes)) list = PyRef::steal(PyObject_GetAttrString(classes, "__args__"));
  else return -2;
  for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(list.get()); ++i) {
    PyObject* one = PyTuple_GET_ITEM(list.get(), i);
    if (isUnion(classes)) e.pin(one, Why::Owner);
    if (const int answer = check(e, subject, one)) return answer;
  }
  return list ? 0 : -1;
}

}  // namespace

int isInstance(Evaluation& e, PyObject* object, PyObject* cls) {
  if (LazyIterator* lazy = lazyOf(object)) return isSubclass(e, reinterpret_cast<PyObject*>(lazy->type()), cls);
  if (reinterpret_cast<PyObject*>(pythonTypeOf(object)) == cls) return 1;
  if (PyType_CheckExact(cls)) return plainInstance(e, object, asType(cls));
  if (const int answer = anyOf(e, object, cls, isInstance); answer != -2) return answer;
  PyObject* method = metaMethod(e, cls, "__instancecheck__");
  if (!method && PyType_Check(cls)) return plainInstance(e, object, asType(cls));
  if (isAbcMethod(method, "__instancecheck__")) {
    PyRef claimed = claimedClass(e, object);
    if (PyErr_Occurred()) return -1;
    if (claimed) {
      const int answer = abstractSubclass(e, asType(claimed.get()), cls);
      if (answer) return answer;
    }
    return abstractSubclass(e, pythonTypeOf(object), cls);
  }
  if (method && PyFunction_Check(method)) return truthOf(e, method, cls, object);
  PyRef plain = e.plainNumber(object, "a class check in C");
  object = plain.get();
  if (e.isStandIn(object) && std::string_view(Py_TYPE(cls)->tp_name) == "torch.tensortype") return isOfTensorType(e, object, cls);
  // C code that decides, and what is no class: CPython's answer or error.
  const int answer = PyObject_IsInstance(object, cls);
  e.throwIfBreak();
  return answer;
}

int isSubclass(Evaluation& e, PyObject* type, PyObject* cls) {
  if (type == cls && PyType_CheckExact(cls)) return 1;
  if (PyType_CheckExact(cls) && PyType_Check(type)) return PyType_IsSubtype(asType(type), asType(cls));
  if (const int answer = anyOf(e, type, cls, isSubclass); answer != -2) return answer;
  PyObject* method = metaMethod(e, cls, "__subclasscheck__");
  if (!method && PyType_Check(cls) && PyType_Check(type)) return PyType_IsSubtype(asType(type), asType(cls));
  if (isAbcMethod(method, "__subclasscheck__") && PyType_Check(type)) return abstractSubclass(e, asType(type), cls);
  if (method && PyFunction_Check(method)) return truthOf(e, method, cls, type);
  const int answer = PyObject_IsSubclass(type, cls);
  e.throwIfBreak();
  return answer;
}

PyRef ruleIsinstance(Evaluation& e, PyObject*, const CallArguments& a) {
  static PyObject* const kFloat = PyFloat_FromDouble(1.0);
  if (a.total() == 2 && a.positional == 2) return boolean(isInstance(e, e.isNumber(a.args[0]) ? kFloat : a.args[0], a.args[1]));
  throw UnfitArguments{};
}

PyRef ruleIssubclass(Evaluation& e, PyObject*, const CallArguments& a) {
  if (a.total() == 2 && a.positional == 2) return boolean(isSubclass(e, a.args[0], a.args[1]));
  throw UnfitArguments{};
}

PyRef ruleAbcInstance(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional != 2 || !PyType_Check(a.args[0])) return e.callRaw(callable, a);
  PyRef claimed = claimedClass(e, a.args[1]);
  if (PyErr_Occurred()) return {};
  if (claimed)
    if (const int answer = abstractSubclass(e, asType(claimed.get()), a.args[0])) return boolean(answer);
  return boolean(abstractSubclass(e, pythonTypeOf(a.args[1]), a.args[0]));
}

PyRef ruleAbcSubclass(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return a.positional == 2 && PyType_Check(a.args[0]) && PyType_Check(a.args[1]) ? boolean(abstractSubclass(e, asType(a.args[1]), a.args[0])) : e.callRaw(callable, a);
}

namespace {

/// The class and the subject of type.__instancecheck__ and type.__subclasscheck__, called on the class or with it.
struct CheckArguments {
  PyObject *cls = nullptr, *subject = nullptr;
  CheckArguments(PyObject* callable, const CallArguments& a) {
    PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
    if (a.total() != a.positional || a.positional != (self ? 1u : 2u)) return;
    cls = self ? self : a.args[0];
    subject = a.args[a.positional - 1];
    if (!PyType_Check(cls)) cls = nullptr;
  }
};

}  // namespace

PyRef ruleTypeInstance(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const CheckArguments check(callable, a);
  return check.cls ? boolean(plainInstance(e, check.subject, asType(check.cls))) : e.callRaw(callable, a);
}

PyRef ruleTypeSubclass(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const CheckArguments check(callable, a);
  return check.cls && PyType_Check(check.subject) ? boolean(PyType_IsSubtype(asType(check.subject), asType(check.cls))) : e.callRaw(callable, a);
}

}  // namespace fusebox::capture
