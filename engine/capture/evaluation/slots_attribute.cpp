// getattr and setattr with provenance: instances, classes, modules, super, tensors, descriptors.
#include <cstring>
#include <optional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/exchanged_data.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/taken_iterators.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/rules/autograd_function.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

bool isDataDescriptor(PyObject* d) { return Py_TYPE(d)->tp_descr_set != nullptr; }

/// Whether reading a native attribute raises: a slot that is empty, a state in which there is none.
bool cannotBeRead(PyObject* object, PyObject* name) {
  std::optional<ClassesNotAsked> off;
  if (isTensorObject(object)) off.emplace();
  if (PyRef value = PyRef::steal(PyObject_GenericGetAttr(object, name))) return false;
  clearError();
  return true;
}

/// A look-up asks it before what the object itself has.
bool goesBeforeInstance(PyObject* d) { return isDataDescriptor(d) && Py_TYPE(d)->tp_descr_get; }
bool hasInstanceDict(PyTypeObject* type) { return type->tp_dictoffset != 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT); }
/// The descriptor's look-up is the builtin type's own, also for a subclass of it.
bool bindsAs(PyTypeObject* kind, PyTypeObject* builtin) {
  return PyType_IsSubtype(kind, builtin) && kind->tp_descr_get == builtin->tp_descr_get;
}
/// C descriptors whose look-up runs no Python: methods of C functions, and what pybind11 makes of its own.
bool bindsInC(PyTypeObject* kind) {
  return kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyClassMethodDescr_Type || kind == &PyInstanceMethod_Type ||
         kind == &PyMethod_Type;
}

/// Callables of C types that say that they are bound as functions are (Cython's, and what fusebox.compile gives).
bool bindsAsFunction(PyTypeObject* kind) { return (kind->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) && kind->tp_descr_get && !isChangeable(kind); }

/// torch.ops and its namespaces, which make their attributes when first asked.
bool isTorchNamespace(PyObject* module) {
  static PyObject *const ops = torchObject("torch._ops._Ops"), *const names = torchObject("torch._ops._OpNamespace");
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(module));
  return type == ops || type == names;
}

PyRef part(PyObject* object, const char* name) {
  PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  if (!value) clearError();
  return value;
}

}  // namespace

PyObject* internedName(const char* text) {
  static auto* cache = new std::unordered_map<std::string, PyObject*>;
  auto [it, added] = cache->try_emplace(text, nullptr);
  if (added) it->second = PyUnicode_InternFromString(text);
  return it->second;
}

void Evaluation::attributeError(PyObject* object, PyObject* name) {
  static PyObject* const handle = torchObject("torch.utils.hooks.RemovableHandle");
  if (putsOffHooks && reinterpret_cast<PyObject*>(Py_TYPE(object)) == handle && isFresh(object))
    breakHere("tensor internals", "a hook is asked about before it is set, which it is when the graph has run");
  if (PyType_Check(object))
    PyErr_Format(PyExc_AttributeError, "type object '%.50s' has no attribute '%U'", reinterpret_cast<PyTypeObject*>(object)->tp_name, name);
  else
    PyErr_Format(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", Py_TYPE(object)->tp_name, name);
}

void Evaluation::attributeNotFound(PyObject* object, PyObject* name) {
  attributeError(object, name);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject_SetAttr(value, internedName("name"), name);
  PyObject_SetAttr(value, internedName("obj"), object);
  PyErr_Restore(type, value, traceback);
}

bool Evaluation::isWrittenInClass(PyTypeObject* type, PyObject* name) const {
  for (Py_ssize_t i = 0; journal_.hasWrittenSlots() && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* holder = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (journal_.slotWritten(reinterpret_cast<PyObject*>(holder), name)) return true;
    if (holder->tp_dict && PyDict_GetItemWithError(holder->tp_dict, name)) break;
  }
  return false;
}

PyObject* Evaluation::typeLookup(PyTypeObject* type, PyObject* name) {
  if (!isWrittenInClass(type, name)) guardTypeAttribute(type, name);
  PyObject* found = _PyType_Lookup(type, name);
  if (found && functions_->isLate()) functions_->noteClassRead(found, type, name);
  return found;
}

PyRef Evaluation::instanceDict(PyObject* object) {
  if (PyModule_Check(object)) return pin(PyModule_GetDict(object), Why::Owner);
  const bool isLocal = isThreadLocal(Py_TYPE(object));
  if (!isLocal && !hasInstanceDict(Py_TYPE(object))) return {};
  PyRef dict = isLocal ? PyRef::borrow(instanceDictOf(object)) : PyRef::steal(PyObject_GenericGetDict(object, nullptr));
  if (!dict) {
    clearError();
    return {};
  }
  if (!origins_.find(dict.get())) {
    const Source* source = sourceOf(object);
    Origin& o = origins_.add(dict.get(), source ? sources().instanceDict(source) : nullptr);
    o.owner = PyRef::borrow(object);
    o.birth = rootCount_;
  }
  return dict;
}

void Evaluation::guardKey(PyObject* key) {
  if (!isConstantValue(key)) readKey(key);
}

PyRef Evaluation::keyInDict(PyObject* dict, PyObject* key) {
  if (isNumber(key)) refuseNumber("a key");
  if (PyRef whole = settledKey(key); whole.get() != key) return keyInDict(dict, whole.get());
  if (PyRef plain = plainKey(key); plain.get() != key) return plain;
  if (isTensor(key)) readKey(key);
  if (!isTensor(key) || !sourceOf(dict)) return PyRef::borrow(key);
  Origin* known = origins_.find(key);
  if (!known || !known->source || !known->twin)
    breakHere("unsupported container", "a dict from outside is asked for a tensor that the compiled region makes");
  PyRef real = isStandIn(key) ? known->twin : PyRef::borrow(key);
  if (!hasTorchsMethods(Py_TYPE(real.get())))
    breakHere("unsupported container", std::string("a dict from outside is asked for a tensor of class ") + Py_TYPE(real.get())->tp_name);
  guard(GuardKind::IdMatch, known->source, real.get());
  return real;
}

PyRef Evaluation::readDict(PyObject* dict, PyObject* asked) {
  PyRef keep = keyInDict(dict, asked);
  PyObject* const given = keep.get();
  bool python = false;
  if (!isConstantValue(given) && !isTensor(given)) {
    python = readKey(given) == KeyKind::Python;
    PyRef stored = python ? storedKey(dict, given) : PyRef();
    if (PyErr_Occurred()) return {};
    if (stored) keep = std::move(stored);
  }
  PyObject* key = keep.get();
  PyObject* raw = PyDict_GetItemWithError(dict, key);
  if (!raw && PyErr_Occurred()) return {};
  Origin* o = origins_.find(dict);
  const Source* source = sourceOf(dict);
  if (!source) {
    const bool isAsNumber = !isAddress(key) && (PyLong_CheckExact(key) || PyTuple_CheckExact(key) || PyFrozenSet_CheckExact(key));
    if (isAsNumber) refuseAddress(key), refuseAddressesIn(dict);
    return raw ? translate(raw, nullptr) : PyRef();
  }
  refuseAddress(key);
  if (o && o->written && journal_.wrote(dict, key)) return raw ? translate(raw, nullptr) : PyRef();
  if (raw) return read(raw, sources().dictItem(source, key));
  if (python) {
    // That no key equals it is known of these keys alone.
    PyRef own = ownElements(dict), keys = own ? PyRef::steal(PyList_AsTuple(own.get())) : PyRef();
    for (Py_ssize_t i = 0; keys && i < PyTuple_GET_SIZE(keys.get()); ++i) pin(PyTuple_GET_ITEM(keys.get(), i), Why::Container);
    guard(GuardKind::DictKeysMatch, source, keys.get());
  } else {
    guard(GuardKind::DictLacks, source, key);
  }
  return {};
}

/// A property whose getter is bound C++ (pybind11's): it reads a member, as a getset descriptor does.
static bool isNativeProperty(PyObject* d) {
  if (Py_TYPE(d) != &PyProperty_Type) return false;
  PyRef getter = part(d, "fget");
  if (!getter || !PyCFunction_Check(getter.get())) return false;
  PyObject* self = PyCFunction_GET_SELF(getter.get());
  return self && !PyModule_Check(self) && std::strncmp(Py_TYPE(self)->tp_name, "pybind11_", 9) == 0;
}

namespace {

bool isReserved(PyObject* name) {
  return PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_';
}

/// A number of the program, or what stands for one that changes or that the region makes.
bool standsForNumber(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || isSymbolicNumber(o); }

}  // namespace

/// Numbers are read from their place, since a class's counters change from call to call; all else is known with the class.
PyRef Evaluation::heldByClass(PyTypeObject* type, PyTypeObject* holder, PyObject* name, PyObject* value) {
  auto* object = reinterpret_cast<PyObject*>(holder);
  if (journal_.slotWritten(object, name)) return translate(value, nullptr);
  if (!isChangeable(holder) || isReserved(name) || functions_->isLate() || !(standsForNumber(value) || isNumber(value))) return pin(value, Why::Class);
  guards_->addNumberOf(type, name);
  return wrap(value, sources().derived(Source::Kind::ClassAttr, sources().pinned(object, Why::Class), name));
}

PyRef Evaluation::heldByClass(PyTypeObject* type, PyObject* name, PyObject* value) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* holder = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    const PyRef dict = typeDict(holder);
    PyObject* found = PyDict_GetItemWithError(dict.get(), name);
    if (found == value) return heldByClass(type, holder, name, value);
    if (found) break;
    clearError();
  }
  return pin(value, Why::Class);
}

PyRef Evaluation::bindDescriptor(PyObject* d, PyObject* object, PyTypeObject* type, PyObject* name) {
  PyTypeObject* kind = Py_TYPE(d);
  auto* typeObject = reinterpret_cast<PyObject*>(type);
  if (PyFunction_Check(d)) {
    pin(d, Why::Class);
    if (!object) return PyRef::borrow(d);
    PyRef method = PyRef::steal(PyMethod_New(d, object));
    adopt(method.get());
    return method;
  }
  const bool isNative = kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type || (object && isNativeProperty(d));
  if (!isNative && bindsAs(kind, &PyProperty_Type)) {
    if (!object) return pin(d, Why::Class);
    PyRef getter = part(d, "fget");
    if (!getter || getter.get() == Py_None) return PyRef::steal(kind->tp_descr_get(d, object, typeObject));  // says so
    pin(getter.get(), Why::Owner);
    PyObject* args[] = {object};
    return call(getter.get(), args, 1, nullptr);
  }
  if (bindsAs(kind, &PyStaticMethod_Type)) return pin(part(d, "__func__").get(), Why::Owner);
  if (bindsAs(kind, &PyClassMethod_Type)) {
    PyRef function = part(d, "__func__");
    pin(function.get(), Why::Owner);
    if (!PyFunction_Check(function.get())) {
      if (!bindsInC(Py_TYPE(function.get())) && !PyCFunction_Check(function.get()) && !PyType_Check(function.get()))
        return bindDescriptor(function.get(), typeObject, type, name);
      return checked(kind->tp_descr_get(d, object, typeObject));
    }
    PyRef method = PyRef::steal(PyMethod_New(function.get(), typeObject));
    adopt(method.get());
    return method;
  }
  if (isNative) {
    if (!object) return pin(d, Why::Class);
    if (kind == &PyGetSetDescr_Type && answersTorchFunctions(object) && !nameIs(name, "__dict__") && !nameIs(name, "__class__") && !nameIs(name, "__weakref__"))
      return subclassAttribute(*this, object, d);
    if (nameIs(name, "__annotations__") && (PyModule_Check(object) || PyType_Check(object))) {
      PyRef own = PyModule_Check(object) ? PyRef::borrow(PyModule_GetDict(object)) : typeDict(reinterpret_cast<PyTypeObject*>(object));
      if (!PyDict_GetItemWithError(own.get(), name)) breakHere("unsupported side effect", "__annotations__ that are not there are made by reading them");
    }
    if (nameIs(name, "__dict__") && PyType_Check(object)) return classDict(reinterpret_cast<PyTypeObject*>(object));
    if (nameIs(name, "__dict__")) {
      PyRef dict = instanceDict(object);
      if (dict) return dict;
    }
    const Source* source = sourceOf(object);
    if (PyCell_Check(object) && nameIs(name, "cell_contents") && (PyCell_GET(object) || source)) {
      if (PyRef contents = loadCell(object)) return contents;
      return PyRef::steal(kind->tp_descr_get(d, object, typeObject));  // says that there are none
    }
    if (PyExceptionInstance_Check(object) && nameIs(name, "__traceback__"))
      if (const int64_t raised = raisedAt(object); raised >= 0)
        throw CaptureBreak{{"traceback", "the traceback of a caught exception is read", "", place(), stackPlaces()}, raised};
    PyRef raw = PyRef::steal(kind->tp_descr_get(d, object, typeObject));
    if (functionModes_->wasAsked()) return functionModes_->answer(std::move(raw));
    throwIfBreak();
    if (!raw) {
      PyObject *raised, *value, *traceback;
      PyErr_Fetch(&raised, &value, &traceback);
      if (source) guardCustom(source, cannotBeRead, name, "an attribute that cannot be read");
      PyErr_Restore(raised, value, traceback);
      return {};
    }
    if (nameIs(name, "__class__")) return pin(raw.get(), Why::Class);
    if (PyDictViewSet_Check(object) || PyDictValues_Check(object))
      breakHere("unsupported call", std::string(utf8Of(name)) + " of a view of a dict");
    if (!source) return translate(raw.get(), nullptr);
    if (journal_.slotWritten(object, name)) return translate(raw.get(), nullptr);
    // What C types, modules and code objects say of themselves stays; functions and classes of Python may be given other names.
    if (source->kind == Source::Kind::Pinned && isIdentityValue(object) && !(PyType_Check(object) && isChangeable(reinterpret_cast<PyTypeObject*>(object))))
      return pin(raw.get(), Why::Owner);
    if (source->kind == Source::Kind::Pinned && PyFunction_Check(object)) return functionPart(object, raw.get(), source, name);
    if (source->kind == Source::Kind::Pinned && PyType_Check(object) && !isConstantValue(raw.get())) {
      guardTypeAttribute(reinterpret_cast<PyTypeObject*>(object), name);  // its bases, or an entry of its dict
      return pin(raw.get(), Why::Class);
    }
    return wrap(raw.get(), sources().slotAttr(source, name));
  }
  if (!kind->tp_descr_get) return heldByClass(type, name, d);
  static PyObject* const tupleGetter = torchObject("collections._tuplegetter");
  if (object && reinterpret_cast<PyObject*>(kind) == tupleGetter) {
    // A field of a namedtuple is an item of the tuple.
    PyRef parts = PyRef::steal(PyObject_CallMethod(d, "__reduce__", nullptr));
    PyRef args = parts ? PyRef::steal(PySequence_GetItem(parts.get(), 1)) : PyRef();
    PyRef index = args ? PyRef::steal(PySequence_GetItem(args.get(), 0)) : PyRef();
    return index ? tupleItem(object, index.get()) : PyRef();
  }
  const bool asFunction = !bindsInC(kind) && bindsAsFunction(kind);
  if (asFunction) pin(d, Why::Class);
  if (bindsInC(kind) || asFunction || PyCFunction_Check(d) || (isIdentityValue(d) && !isChangeable(kind))) {
    PyRef bound = checked(kind->tp_descr_get(d, object, typeObject));
    if (bound && !object) pin(bound.get(), Why::Class);
    if (bound && object) adopt(bound.get());
    return bound;
  }
  static PyObject* const kGet = internedName("__get__");
  PyObject* get = typeLookup(kind, kGet);
  if (get && PyFunction_Check(get)) {
    pin(d, Why::Class);
    pin(get, Why::Class);
    static PyTypeObject* const cachedProperty = reinterpret_cast<PyTypeObject*>(torchObject("functools.cached_property"));
    PyRef own = kind == cachedProperty && object ? part(d, "attrname") : PyRef();
    if (own && PyUnicode_CheckExact(own.get())) {
      PyRef function = part(d, "func");
      pin(function.get(), Why::Owner);
      PyRef dict = instanceDict(object);
      // The class may have it under another name than its own, under which the value is kept.
      if (dict && PyUnicode_Compare(own.get(), name) != 0)
        if (PyRef kept = readDict(dict.get(), own.get()); kept || PyErr_Occurred()) return kept;
      PyObject* args[] = {object};
      PyRef value = call(function.get(), args, 1, nullptr);
      if (!value || !dict) return value;
      return storeKey(dict.get(), own.get(), value.get()) ? value : PyRef();
    }
    PyObject* args[] = {d, object ? object : Py_None, typeObject};
    return call(get, args, 3, nullptr);
  }
  breakHere("descriptor", std::string("a ") + kind->tp_name + " in a class may run Python where it is looked up");
}

PyRef Evaluation::functionPart(PyObject* function, PyObject* value, const Source* source, PyObject* name) {
  if (nameIs(name, "__code__") || (nameIs(name, "__defaults__") && isConstantValue(value) && value != Py_None)) {
    guardFunction(function);
    return pin(value, Why::Function);
  }
  // Set once and for all, or dicts whose contents are guarded where they are read.
  if (nameIs(name, "__globals__") || nameIs(name, "__closure__") || nameIs(name, "__builtins__")) return pin(value, Why::Owner);
  if (isConstantValue(value)) return wrap(value, sources().slotAttr(source, name));
  const Source* place = sources().slotAttr(source, name);
  guards_->addKind(GuardKind::IdMatch, place, value, this->place());
  return pin(value, Why::Guarded);
}

PyRef Evaluation::genericGetAttr(PyObject* object, PyObject* name, bool* missing) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* attribute = typeLookup(type, name);
  if (attribute && goesBeforeInstance(attribute)) return bindDescriptor(attribute, object, type, name);
  if (PyRef dict = instanceDict(object)) {
    PyRef value = readDict(dict.get(), name);
    if (value || PyErr_Occurred()) return value;
  }
  if (attribute) return bindDescriptor(attribute, object, type, name);
  if (missing)
    *missing = true;
  else
    attributeNotFound(object, name);
  return {};
}

PyRef Evaluation::typeGetAttr(PyTypeObject* type, PyObject* name) {
  auto* object = reinterpret_cast<PyObject*>(type);
  pin(object, Why::Process);
  PyTypeObject* meta = Py_TYPE(object);
  static PyObject* const kGetAttribute = internedName("__getattribute__");
  if (PyObject* own = isChangeable(meta) ? typeLookup(meta, kGetAttribute) : nullptr; own && PyFunction_Check(own)) {
    pin(own, Why::Class);
    PyObject* args[] = {object, name};
    PyRef value = call(own, args, 2, nullptr);
    return value || !PyErr_ExceptionMatches(PyExc_AttributeError) ? value : classFallback(type, name);
  }
  return plainTypeGetAttr(type, name);
}

PyRef Evaluation::plainTypeGetAttr(PyTypeObject* type, PyObject* name) {
  auto* object = reinterpret_cast<PyObject*>(type);
  PyTypeObject* meta = Py_TYPE(object);
  if (isEnumClass(object)) {
    // A member is the class's attribute, or its table's where a property of that name stands before it.
    PyObject* own = typeLookup(type, name);
    if (own && PyObject_TypeCheck(own, type)) return pin(own, Why::Class);
    if (PyRef member = enumMember(type, name)) return member;
  }
  PyObject* metaAttribute = typeLookup(meta, name);
  if (metaAttribute && goesBeforeInstance(metaAttribute)) return bindDescriptor(metaAttribute, object, meta, name);
  if (PyObject* attribute = typeLookup(type, name)) return bindDescriptor(attribute, nullptr, type, name);
  if (metaAttribute) return bindDescriptor(metaAttribute, object, meta, name);
  return classFallback(type, name);
}

PyRef Evaluation::classFallback(PyTypeObject* type, PyObject* name) {
  auto* object = reinterpret_cast<PyObject*>(type);
  static PyObject* const kGetAttr = internedName("__getattr__");
  PyObject* fallback = typeLookup(Py_TYPE(object), kGetAttr);
  if (fallback && PyFunction_Check(fallback)) {
    clearError();
    pin(fallback, Why::Class);
    PyObject* args[] = {object, name};
    return call(fallback, args, 2, nullptr);
  }
  if (!PyErr_Occurred()) attributeNotFound(object, name);
  return {};
}

PyRef Evaluation::enumMember(PyTypeObject* type, PyObject* name) {
  // A member is found through a descriptor of the class, whose Python code looks it up in this table.
  PyRef table = part(reinterpret_cast<PyObject*>(type), "_member_map_");
  PyObject* member = table && PyDict_Check(table.get()) ? PyDict_GetItemWithError(table.get(), name) : nullptr;
  if (!member) return {};
  static PyObject* const kTable = internedName("_member_map_");
  guardTypeAttribute(type, kTable);
  guardTypeAttribute(type, name);
  pin(table.get(), Why::Class);
  return readDict(table.get(), name);
}

PyRef Evaluation::moduleGetAttr(PyObject* module, PyObject* name) {
  static PyObject* const kGetAttribute = internedName("__getattribute__");
  PyTypeObject* type = Py_TYPE(module);
  if (PyObject* own = isChangeable(type) ? typeLookup(type, kGetAttribute) : nullptr; own && PyFunction_Check(own)) {
    pin(own, Why::Class);
    PyObject* args[] = {module, name};
    PyRef value = call(own, args, 2, nullptr);
    return value || !PyErr_ExceptionMatches(PyExc_AttributeError) ? value : moduleFallback(module, name);
  }
  return plainModuleGetAttr(module, name);
}

PyRef Evaluation::plainModuleGetAttr(PyObject* module, PyObject* name) {
  PyTypeObject* type = Py_TYPE(module);
  PyObject* attribute = typeLookup(type, name);
  if (nameIs(name, "__dict__")) return pin(PyModule_GetDict(module), Why::Owner);
  if (type != &PyModule_Type && attribute && goesBeforeInstance(attribute)) return bindDescriptor(attribute, module, type, name);
  PyObject* dict = PyModule_GetDict(module);
  pin(dict, Why::Owner);
  PyRef value = readDict(dict, name);
  if (value || PyErr_Occurred()) return value;
  if (attribute) return bindDescriptor(attribute, module, type, name);
  return moduleFallback(module, name);
}

PyRef Evaluation::moduleFallback(PyObject* module, PyObject* name) {
  static PyObject* const kGetAttr = internedName("__getattr__");
  PyTypeObject* type = Py_TYPE(module);
  clearError();
  if (isTorchNamespace(module)) {
    // torch.ops: found once, then an attribute like any other.
    PyRef found = PyRef::steal(PyObject_GetAttr(module, name));
    throwIfBreak();
    return found ? readDict(PyModule_GetDict(module), name) : PyRef();
  }
  if (PyObject* fallback = isChangeable(type) ? typeLookup(type, kGetAttr) : nullptr) {
    pin(fallback, Why::Class);
    PyObject* args[] = {module, name};
    return call(fallback, args, 2, nullptr);
  }
  if (PyRef fallback = readDict(PyModule_GetDict(module), kGetAttr)) {
    PyObject* args[] = {name};
    return call(fallback.get(), args, 1, nullptr);
  }
  if (PyErr_Occurred()) return {};
  PyRef own = readDict(PyModule_GetDict(module), internedName("__name__"));
  clearError();
  if (own && PyUnicode_Check(own.get()))
    PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", own.get(), name);
  else
    PyErr_Format(PyExc_AttributeError, "module has no attribute '%U'", name);
  return {};
}

bool Evaluation::looksUpPlainly(PyTypeObject* type) {
  if (type->tp_getattro == PyObject_GenericGetAttr) return true;
  static PyObject* const kGetAttribute = internedName("__getattribute__");
  static PyObject* const plain = Py_NewRef(_PyType_Lookup(&PyBaseObject_Type, kGetAttribute));
  return isChangeable(type) && typeLookup(type, kGetAttribute) == plain;
}

PyRef Evaluation::superGetAttr(PyObject* super, PyObject* name) {
  const Source* source = sourceOf(super);
  const auto known = [&](const char* which) {
    PyRef value = part(super, which);
    return value && source ? wrap(value.get(), sources().attr(source, internedName(which))) : std::move(value);
  };
  PyRef start = known("__thisclass__"), self = known("__self__"), selfClass = known("__self_class__");
  if (nameIs(name, "__class__")) return pin(reinterpret_cast<PyObject*>(Py_TYPE(super)), Why::Class);
  if (!self || self.get() == Py_None) return genericGetAttr(super, name);  // bound to nothing
  auto* type = reinterpret_cast<PyTypeObject*>(selfClass.get());
  if (!isWrittenInClass(type, name)) guardTypeAttribute(type, name);
  PyObject* mro = type->tp_mro;
  Py_ssize_t i = 0;
  const Py_ssize_t n = PyTuple_GET_SIZE(mro);
  while (i < n && PyTuple_GET_ITEM(mro, i) != start.get()) ++i;
  for (++i; i < n; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyRef dict = typeDict(base), found = PyRef::borrow(PyDict_GetItemWithError(dict.get(), name));
    if (!found) {
      clearError();
      continue;
    }
    if (!Py_TYPE(found.get())->tp_descr_get) return heldByClass(type, base, name, found.get());
    // super() in a classmethod binds to the class itself.
    return bindDescriptor(found.get(), self.get() == selfClass.get() ? nullptr : self.get(), type, name);
  }
  return genericGetAttr(super, name);
}

/// Attributes of an iterator of C that do not tell how far it is.
static bool isSameInAllStates(PyObject* name) {
  static constexpr const char* kNames[] = {"__class__", "__iter__", "__next__", "__name__", "__qualname__", "close", "gi_code", "send", "throw"};
  return std::any_of(std::begin(kNames), std::end(kNames), [name](const char* known) { return nameIs(name, known); });
}

PyRef Evaluation::getAttr(PyObject* object, PyObject* name) {
  if (PyRef whole = settled(object); whole.get() != object) return getAttr(whole.get(), name);
  if (isNumber(object)) refuseNumber("asked for an attribute");
  if (Arrays::is(object))
    if (PyRef value = arrays_->getAttr(object, name); value || PyErr_Occurred()) return value;
  if (isSymbolicNumber(object)) return symbolicGetAttr(object, name);
  if (isTensor(object)) return tensorGetAttr(object, name);
  if (isNestedTensor(object))
    if (PyRef value = nestedAttribute(*this, object, name); value || PyErr_Occurred()) return value;
  if (lazyOf(object)) return lazyGetAttr(object, name, nullptr);
  if (takenIterators_->find(object) && !isSameInAllStates(name)) breakHere("iterator from outside", std::string(utf8Of(name)) + " of a " + Py_TYPE(object)->tp_name + " that has been advanced is read");
  if (PyTraceBack_Check(object) && isFresh(object))
    throw CaptureBreak{{"traceback", "the traceback of an exception is looked into", "", place(), stackPlaces()}, lastRaise_};
  // It knows its caller only while an instruction of it runs.
  if (PyFrame_Check(object)) breakHere("frame", std::string(utf8Of(name)) + " of a frame is read");
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_getattro == PyObject_GenericGetAttr && !PyModule_Check(object)) return genericGetAttr(object, name);
  if (PyType_Check(object)) return typeGetAttr(reinterpret_cast<PyTypeObject*>(object), name);
  if (PyModule_Check(object)) return moduleGetAttr(object, name);
  if (PyType_IsSubtype(type, &PySuper_Type)) return superGetAttr(object, name);
  if (PyMethod_Check(object)) {
    // A method's own attributes first, then the function's.
    if (nameIs(name, "__self__")) return PyRef::borrow(PyMethod_GET_SELF(object));
    if (nameIs(name, "__func__")) return PyRef::borrow(PyMethod_GET_FUNCTION(object));
    return getAttr(PyMethod_GET_FUNCTION(object), name);
  }
  static PyObject* const kGetAttribute = internedName("__getattribute__");
  static PyObject* const kGetAttr = internedName("__getattr__");
  PyObject* getAttribute = typeLookup(type, kGetAttribute);
  PyObject* fallback = typeLookup(type, kGetAttr);
  PyRef value;
  bool missing = false;
  if (getAttribute && PyFunction_Check(getAttribute)) {
    pin(getAttribute, Why::Class);
    PyObject* args[] = {object, name};
    value = call(getAttribute, args, 2, nullptr);
  } else if (isThreadLocal(type) && nameIs(name, "__dict__")) {  // of this thread; no class tells of it
    return instanceDict(object);
  } else if ((isChangeable(type) && fallback) || isThreadLocal(type)) {
    value = genericGetAttr(object, name, &missing);
  } else if (isIdentityValue(object)) {
    PyRef raw = PyRef::steal(PyObject_GetAttr(object, name));
    return raw ? pin(raw.get(), Why::Owner) : PyRef();
  } else {
    const Source* source = sourceOf(object);
    PyRef raw = checked(PyObject_GetAttr(object, name));
    if (!raw || !source) return raw;
    return wrap(raw.get(), sources().attr(source, name));
  }
  if (value) return value;
  if (!missing && !(fallback && PyErr_ExceptionMatches(PyExc_AttributeError))) return {};
  if (!fallback) {
    attributeNotFound(object, name);
    return {};
  }
  clearError();
  static PyObject* const moduleGetAttribute = [] {
    PyObject* module = torchObject("torch.nn.modules.module.Module");
    PyRef found = PyRef::steal(module ? PyObject_GetAttrString(module, "__getattr__") : nullptr);
    // What the program put there is not known.
    return found && PyFunction_Check(found.get()) && isLibraryNamespace(PyFunction_GET_GLOBALS(found.get()), Library::Torch) ? found.release() : nullptr;
  }();
  if (fallback == moduleGetAttribute) {
    // nn.Module.__getattr__, without its frame.
    PyRef dict = instanceDict(object);
    for (const char* table : {"_parameters", "_buffers", "_modules"}) {
      PyRef entries = readDict(dict.get(), internedName(table));
      if (!entries) continue;
      PyRef found = readDict(entries.get(), name);
      if (found || PyErr_Occurred()) return found;
    }
    attributeNotFound(object, name);
    return {};
  }
  if (isOperatorPacket(object) && !std::string_view(utf8Of(name)).starts_with("__")) {
    // torch.ops.x.y.z: found once, then an attribute like any other.
    PyRef found = PyRef::steal(PyObject_GetAttr(object, name));
    throwIfBreak();
    return found ? readDict(instanceDict(object).get(), name) : PyRef();
  }
  pin(fallback, Why::Class);
  PyObject* args[] = {object, name};
  return call(fallback, args, 2, nullptr);
}

PyRef Evaluation::getMethod(PyObject* object, PyObject* name, PyRef* self) {
  if (isSymbolicText(object)) {
    if (PyObject* method = methodOfTexts(name)) return *self = PyRef::borrow(object), PyRef::borrow(method);
    return getMethod(settled(object).get(), name, self);
  }
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_Check(object) && !PyModule_Check(object) && !PyTraceBack_Check(object) && !isNumber(object)) {
    if (lazyOf(object)) return lazyGetAttr(object, name, self);
    PyObject* attribute = _PyType_Lookup(type, name);
    const bool method = attribute && (PyFunction_Check(attribute) || Py_TYPE(attribute) == &PyMethodDescr_Type);
    if (method && isTensor(object)) {
      guardTypeAttribute(type, name);
      if (PyFunction_Check(attribute)) pin(attribute, Why::Class);
      *self = PyRef::borrow(object);
      return PyRef::borrow(attribute);
    }
    if (method && looksUpPlainly(type)) {
      guardTypeAttribute(type, name);
      bool shadowed = false;
      if (PyRef dict = instanceDict(object)) {
        PyRef own = readDict(dict.get(), name);
        if (own) return own;
        shadowed = PyErr_Occurred() != nullptr;
      }
      if (shadowed) return {};
      pin(attribute, Why::Class);
      *self = PyRef::borrow(object);
      return PyRef::borrow(attribute);
    }
  }
  return getAttr(object, name);
}

PyRef Evaluation::placedMethod(PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type) || isTensorObject(object)) return {};
  PyObject* const slot = internedName(name);
  PyObject* placed = typeLookup(type, slot);
  if (!placed || placed == Py_None || PyFunction_Check(placed)) return {};
  const bool isOfC = Py_IS_TYPE(placed, &PyWrapperDescr_Type) || Py_IS_TYPE(placed, &PyMethodDescr_Type);
  if (isOfC && PyUnicode_Compare(reinterpret_cast<PyDescrObject*>(placed)->d_name, slot) == 0) return {};
  return getSpecial(object, slot);
}

PyRef Evaluation::getSpecial(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* attribute = typeLookup(type, name);
  if (!attribute) return {};
  return Py_TYPE(attribute)->tp_descr_get ? bindDescriptor(attribute, object, type, name) : pin(attribute, Why::Class);
}

namespace {

/// What a forward of autograd.Function that libtorch has called leaves on its context, which keeps it as it is until forward returns.
bool isNoteForAutograd(PyObject* attribute, PyObject* name) {
  static PyObject* const context = torchObject("torch._C._FunctionBase");
  if (Py_TYPE(attribute) != &PyGetSetDescr_Type || reinterpret_cast<PyObject*>(PyDescr_TYPE(attribute)) != context) return false;
  return nameIs(name, "to_save") || nameIs(name, "non_differentiable") || nameIs(name, "dirty_tensors");
}

}  // namespace

bool Evaluation::genericSetAttr(PyObject* object, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* attribute = typeLookup(type, name);
  if (attribute && isDataDescriptor(attribute)) {
    if (PyType_IsSubtype(Py_TYPE(attribute), &PyProperty_Type) && Py_TYPE(attribute)->tp_descr_set == PyProperty_Type.tp_descr_set) {
      PyRef setter = part(attribute, value ? "fset" : "fdel");
      if (!setter || setter.get() == Py_None) return Py_TYPE(attribute)->tp_descr_set(attribute, object, value) == 0;  // says so
      pin(setter.get(), Why::Owner);
      PyObject* args[] = {object, value};
      return static_cast<bool>(call(setter.get(), args, value ? 2 : 1, nullptr));
    }
    PyObject* set = typeLookup(Py_TYPE(attribute), internedName(value ? "__set__" : "__delete__"));
    if (set && PyFunction_Check(set)) {
      pin(attribute, Why::Class);
      pin(set, Why::Class);
      PyObject* args[] = {attribute, object, value};
      return static_cast<bool>(call(set, args, value ? 3 : 2, nullptr));
    }
    if (isChangeable(Py_TYPE(attribute)))
      breakHere("descriptor", std::string("a ") + Py_TYPE(attribute)->tp_name + " in a class may run Python where it is assigned");
    if (const Source* source = sourceOf(object)) {
      if (Py_TYPE(attribute) != &PyMemberDescr_Type && !isNoteForAutograd(attribute, name))
        breakHere("unsupported side effect", std::string("assignment to attribute ") + utf8Of(name) + " of a " + type->tp_name);
      if (!value && !bindDescriptor(attribute, object, type, name)) {
        clearError();
        breakHere("exception", std::string("attribute ") + utf8Of(name) + " of a " + type->tp_name + " is deleted, which is not set");
      }
      ++writes_;
      return journal_.setSlot(object, source, name, value);
    }
    const bool done = PyObject_GenericSetAttr(object, name, value) == 0;
    throwIfBreak();
    return done;
  }
  PyRef dict = instanceDict(object);
  if (!dict) return PyObject_GenericSetAttr(object, name, value) == 0;  // there is no place for it, which it says
  if (value) return storeKey(dict.get(), name, value);
  return deleteKey(dict.get(), name, [&] { attributeError(object, name); });
}

bool Evaluation::deleteKey(PyObject* dict, PyObject* key, const std::function<void()>& missing) {
  const int there = hasKey(dict, key);
  if (there == 0) missing();
  return there == 1 && storeKey(dict, key, nullptr);
}

namespace {

/// What a class may be given: values that C code does not look at (switches, counts, containers, objects), and functions, which a look-up binds in
/// ways that are followed.
bool mayStandInClass(PyObject* o) {
  if (isTensorObject(o)) return false;
  static PyTypeObject* const binding[] = {&PyFunction_Type, &PyStaticMethod_Type, &PyClassMethod_Type, &PyProperty_Type};
  return !Py_TYPE(o)->tp_descr_get || std::find(std::begin(binding), std::end(binding), Py_TYPE(o)) != std::end(binding);
}

}  // namespace

bool Evaluation::setClassAttr(PyObject* object, PyObject* name, PyObject* value) {
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  PyObject* ofMetaclass = typeLookup(Py_TYPE(object), name);
  const bool plain = Py_TYPE(object)->tp_setattro == PyType_Type.tp_setattro && isChangeable(type) && !isReserved(name) &&
                     !(ofMetaclass && isDataDescriptor(ofMetaclass));
  PyObject* held = PyDict_GetItemWithError(type->tp_dict, name);
  if (!plain || !value || !(mayStandInClass(value) || isNumber(value)) || (held && !mayStandInClass(held) && !journal_.slotWritten(object, name)))
    breakHere("unsupported side effect", std::string("assignment to attribute ") + utf8Of(name) + " of a class");
  if (held) refuseLoss(*this, held);
  ++writes_;
  return journal_.setSlot(object, sourceOf(object), name, value);
}

bool Evaluation::setAttr(PyObject* object, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(object);
  if (value && (isSymbolicNumber(value) || isSymbolicText(value)) && isEnumClass(reinterpret_cast<PyObject*>(type))) {
    // A member that is made outlives the call.
    PyRef plain = expose(value);
    return plain && setAttr(object, name, plain.get());
  }
  if (isTensor(object)) {
    Origin* o = origins_.find(object);
    if (answersTorchFunctions(object)) {
      PyObject* place = typeLookup(type, name);
      if (place && isDataDescriptor(place)) breakHere("tensor subclass", std::string("assignment to ") + utf8Of(name) + " of a tensor of class " + type->tp_name);
    }
    if (o && o->source && o->twin && !typeLookup(type, name) && !nameIs(name, "__dict__")) {
      PyRef dict = instanceDict(isStandIn(object) ? o->twin.get() : object);
      if (!dict) return false;
      return value ? storeKey(dict.get(), name, value) : deleteKey(dict.get(), name, [&] { attributeError(object, name); });
    }
    if (o && o->source && nameIs(name, "data")) return exchangedData_->exchange(object, value), true;
    if (o && o->source && o->twin && value && nameIs(name, "grad") && isPlainTensorClass(type) && tensorOf(o->twin.get()).is_leaf()) return setGrad(object, value);
    if (o && o->source && !nameIs(name, "requires_grad"))
      breakHere("unsupported side effect", std::string("assignment to ") + utf8Of(name) + " of a tensor that existed before");
    if (o && o->source && value && tensorOf(object).requires_grad() && !tensorOf(object).is_leaf())
      breakHere("exception", "requires_grad of a tensor with a history is assigned");  // also when it stays as it is
    if (o && o->source) return changeRequiresGrad(object, value), true;
    if (torchCalls_ && nameIs(name, "requires_grad") && value && tensorOf(object).is_leaf())
      return static_cast<bool>(callMethodNamed(object, "requires_grad_", {value}));
    PyObject* place = typeLookup(type, name);
    if (torchCalls_ && place && Py_IS_TYPE(place, &PyGetSetDescr_Type))
      breakHere("backend", std::string("assignment to ") + utf8Of(name) + " of a tensor is no call that a backend in Python can be given");
    const bool done = functionModes_->settle(PyObject_SetAttr(object, name, value) == 0);
    throwIfBreak();
    noteLeaf(object);
    return done;
  }
  if (PyModule_Check(object) && Py_TYPE(object) == &PyModule_Type) {
    PyObject* dict = PyModule_GetDict(object);
    pin(dict, Why::Owner);
    if (value) return storeKey(dict, name, value);
    return deleteKey(dict, name, [&] {
      PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", PyRef::steal(PyModule_GetNameObject(object)).get(), name);
    });
  }
  if (PyType_Check(object)) return setClassAttr(object, name, value);
  static PyObject* const kSetAttr = internedName("__setattr__");
  static PyObject* const kDelAttr = internedName("__delattr__");
  PyObject* method = typeLookup(type, value ? kSetAttr : kDelAttr);
  if (method && PyFunction_Check(method)) {
    pin(method, Why::Class);
    PyObject* args[] = {object, name, value};
    return static_cast<bool>(call(method, args, value ? 3 : 2, nullptr));
  }
  if (PyRef placed = placedMethod(object, value ? "__setattr__" : "__delattr__")) {
    PyObject* args[] = {name, value};
    return static_cast<bool>(call(placed.get(), args, value ? 2 : 1, nullptr));
  }
  return genericSetAttr(object, name, value);
}

}  // namespace fusebox::capture
