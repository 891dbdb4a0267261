// Comparison, identity and hash: of objects, containers and the keys of dicts, with what each depends on.
#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/instruction.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

constexpr const char* kComparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};

/// Whether identity is all that `==` of the type looks at.
bool comparesIdentity(PyTypeObject* type) { return type->tp_richcompare == PyBaseObject_Type.tp_richcompare || !type->tp_richcompare; }
bool hashesIdentity(PyTypeObject* type) { return type->tp_hash == PyBaseObject_Type.tp_hash; }


/// The comparison is the builtin container's own.
bool comparesAs(PyObject* o, PyTypeObject* builtin) {
  return PyType_IsSubtype(Py_TYPE(o), builtin) && Py_TYPE(o)->tp_richcompare == builtin->tp_richcompare;
}

/// Whether the comparison in C of `o`'s class knows what the other one derives from.
bool takesInC(PyObject* o, PyObject* other) {
  return takesOperand(o, other) || (PyUnicode_Check(o) && PyUnicode_Check(other)) || (PyBytes_Check(o) && PyBytes_Check(other));
}

/// C code that may look at any operand, before the other one's own method is asked: decimal.Decimal's.
bool isOpaqueComparison(PyObject* o) {
  return !isConstantValue(o) && !isPythonClass(Py_TYPE(o)) && isValueObject(o) && !PyRange_Check(o) && !PySlice_Check(o) && !PyAnySet_Check(o);
}

/// Constants of which there is one object for a value, whoever made it.
bool isSingleton(PyObject* o) {
  if (o == Py_None || PyBool_Check(o) || o == Py_Ellipsis || o == Py_NotImplemented) return true;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(o, &overflow);
    return !overflow && value >= -5 && value <= 256;
  }
  if (PyUnicode_CheckExact(o)) return PyUnicode_GET_LENGTH(o) == 0 || (PyUnicode_GET_LENGTH(o) == 1 && PyUnicode_READ_CHAR(o, 0) < 256);
  if (PyBytes_CheckExact(o)) return PyBytes_GET_SIZE(o) <= 1;
  if (PyTuple_CheckExact(o)) return PyTuple_GET_SIZE(o) == 0;
  return !PyFloat_CheckExact(o) && !PyComplex_CheckExact(o) && !PyTuple_Check(o) && !isDeviceObject(o);
}

/// Whether the code of a function writes anything: what is called once more than the program calls it must not.
bool writes(PyObject* function) {
  const auto decoded = decodeCode(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function)));
  return std::any_of(decoded->instructions.begin(), decoded->instructions.end(), [](const Instruction& i) {
    return i.op == Op::STORE_ATTR || i.op == Op::DELETE_ATTR || i.op == Op::STORE_SUBSCR || i.op == Op::DELETE_SUBSCR || i.op == Op::STORE_GLOBAL ||
           i.op == Op::STORE_DEREF;
  });
}

/// Predicate of a Custom guard: the keys of a dict are these very objects.
bool sameKeyObjects(PyObject* dict, PyObject* keys) {
  PyObject* key;
  Py_ssize_t i = 0;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, nullptr); ++i)
    if (i >= PyTuple_GET_SIZE(keys) || PyTuple_GET_ITEM(keys, i) != key) return false;
  return i == PyTuple_GET_SIZE(keys);
}

}  // namespace

PyRef callWeakReference(Evaluation& e, PyObject* reference);

PyRef Evaluation::tryBinary(PyObject* method, PyObject* self, PyObject* other, bool* declined) {
  PyObject* args[] = {self, other};
  PyRef result = call(method, args, 2, nullptr);
  *declined = result.get() == Py_NotImplemented;
  return *declined ? PyRef() : result;
}

PyObject* Evaluation::pythonMethod(PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type)) return nullptr;
  const bool tensor = isTensorObject(object);
  if (tensor && guardTorchsMethods(type)) return nullptr;
  PyObject* method = typeLookup(type, internedName(name));
  if (method == Py_None) return method;  // refuses: it cannot be called
  if (!method || !PyFunction_Check(method)) return nullptr;
  if (tensor && isLibraryNamespace(PyFunction_GET_GLOBALS(method), Library::Torch)) return nullptr;
  pin(method, Why::Class);
  return method;
}

bool Evaluation::mayBePython(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return isChangeable(type) && (!isTensorObject(o) || !guardTorchsMethods(type));
}

PyRef Evaluation::compare(int op, PyObject* givenA, PyObject* givenB) {
  const PyRef wholeA = settled(givenA), wholeB = settled(givenB);
  PyObject *a = wholeA.get(), *b = wholeB.get();
  if ((answersTorchFunctions(a) || answersTorchFunctions(b)) && !pythonMethod(a, kComparisons[op]) && !pythonMethod(b, kComparisons[kSwapped[op]])) {
    const bool subclassFirst = Py_TYPE(a) != Py_TYPE(b) && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a));
    if (subclassFirst || !isTensorObject(a)) return methodOfSubclass(*this, kComparisons[kSwapped[op]], {b, a});
    return methodOfSubclass(*this, kComparisons[op], {a, b});
  }
  refuseAddress(a);
  refuseAddress(b);
  if (Arrays::any(a, b)) return arrays_->compare(op, a, b);
  if (arrays_->meetsNumber(a, b)) {
    const PyRef left = arrays_->asNumpys(a), right = left ? arrays_->asNumpys(b) : PyRef();
    return right ? arrays_->compare(op, left.get(), right.get()) : PyRef();
  }
  if (isNumber(a) || isNumber(b)) refuseNumber("compared");
  if (isRaggedSize(a) || isRaggedSize(b)) return compareRagged(*this, op, a, b);
  if (isSymbolicNumber(a) || isSymbolicNumber(b)) {
    TorchCalls::Scope scope(torchCalls_.get());
    if (std::optional<PyRef> answer = symbolicCompare(op, a, b)) {
      scope.doneAlone(kComparisons[op], {a, b}, answer->get());
      return *std::move(answer);
    }
  }
  if (isConstantValue(a) && isConstantValue(b)) {
    refuseAddressesIn(a);
    refuseAddressesIn(b);
    return PyRef::steal(PyObject_RichCompare(a, b, op));
  }
  if (mayBePython(a) || mayBePython(b)) {
    bool declined = false, tried = false;
    const bool subclassFirst = Py_TYPE(a) != Py_TYPE(b) && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a));
    PyObject* swapped = pythonMethod(b, kComparisons[kSwapped[op]]);
    if (swapped && !subclassFirst && isOpaqueComparison(a))
      breakHere("callback from C", std::string("C code of a ") + Py_TYPE(a)->tp_name + " is compared with an object that compares itself in Python");
    if (swapped && subclassFirst) {
      tried = true;
      PyRef result = tryBinary(swapped, b, a, &declined);
      if (!declined) return result;
      swapped = nullptr;
    }
    if (PyObject* method = pythonMethod(a, kComparisons[op])) {
      tried = true;
      PyRef result = tryBinary(method, a, b, &declined);
      if (!declined) return result;
    } else if (op == Py_NE) {
      // object.__ne__ asks __eq__.
      if (PyObject* equal = pythonMethod(a, kComparisons[Py_EQ])) {
        PyObject* unequal = typeLookup(Py_TYPE(a), internedName(kComparisons[Py_NE]));
        if (!unequal || Py_TYPE(unequal) != &PyWrapperDescr_Type || PyDescr_TYPE(unequal) != &PyBaseObject_Type)
          breakHere("callback from C", std::string("the C class of a ") + Py_TYPE(a)->tp_name + " says by itself what is unequal");
        tried = true;
        PyRef result = tryBinary(equal, a, b, &declined);
        if (!declined) {
          const int answer = result ? truth(result.get()) : -1;
          return answer < 0 ? PyRef() : PyRef::borrow(answer ? Py_False : Py_True);
        }
      }
    }
    if (swapped && (tried || !takesInC(a, b))) {
      tried = true;
      PyRef result = tryBinary(swapped, b, a, &declined);
      if (!declined) return result;
    }
    if (tried && (op == Py_EQ || op == Py_NE)) {
      // A container that is compared by C takes a subclass for what it is, whatever that has declined.
      const auto takes = [&](PyTypeObject* type) {
        return PyType_IsSubtype(Py_TYPE(a), type) && PyType_IsSubtype(Py_TYPE(b), type) && (comparesAs(a, type) || comparesAs(b, type));
      };
      if (takes(&PyDict_Type)) return boolean(compareDicts(op, a, b));
      if (takes(&PyList_Type) || takes(&PyTuple_Type)) return compareSequences(op, a, b);
      const auto isAskedInC = [&](PyObject* o, PyObject* other) { return !pythonMethod(o, kComparisons[Py_EQ]) && takesInC(o, other); };
      if (isAskedInC(a, b) || isAskedInC(b, a))
        breakHere("callback from C", std::string("C code compares what ") + Py_TYPE(a)->tp_name + " or " + Py_TYPE(b)->tp_name + " has declined in Python");
      return boolean(same(a, b) == (op == Py_EQ));
    }
  }
  if (op == Py_EQ || op == Py_NE) {
    // Identity decides between objects without a comparison of their own.
    if (comparesIdentity(Py_TYPE(a)) && (comparesIdentity(Py_TYPE(b)) || isConstantValue(b))) return boolean(same(a, b) == (op == Py_EQ));
    if (comparesIdentity(Py_TYPE(b)) && isConstantValue(a)) return boolean(op == Py_NE);
    if (PyWeakref_CheckRef(a) && PyWeakref_CheckRef(b)) {
      if (PyWeakref_GET_OBJECT(a) == Py_None || PyWeakref_GET_OBJECT(b) == Py_None) return boolean(same(a, b) == (op == Py_EQ));
      PyRef left = callWeakReference(*this, a), right = callWeakReference(*this, b);
      return compare(op, left.get(), right.get());
    }
    if (PyMethod_Check(a) && PyMethod_Check(b))
      return boolean((same(PyMethod_GET_FUNCTION(a), PyMethod_GET_FUNCTION(b)) && same(PyMethod_GET_SELF(a), PyMethod_GET_SELF(b))) == (op == Py_EQ));
    if (comparesAs(a, &PyDict_Type) && comparesAs(b, &PyDict_Type)) return boolean(compareDicts(op, a, b));
  }
  if ((comparesAs(a, &PyList_Type) && comparesAs(b, &PyList_Type)) || (comparesAs(a, &PyTuple_Type) && comparesAs(b, &PyTuple_Type)))
    return compareSequences(op, a, b);
  PyRef left = expose(a), right = expose(b);
  refuseCallbacks(left.get(), Asks::Numbers);
  refuseCallbacks(right.get(), Asks::Numbers);
  TorchCalls::Scope scope(torchCalls_.get());
  PyRef result = checked(PyObject_RichCompare(left.get(), right.get(), op));
  scope.done(kComparisons[op], {left.get(), right.get()}, result.get());
  return result;
}

int Evaluation::equalElements(PyObject* a, PyObject* b) {
  refuseAddress(a);
  refuseAddress(b);
  if (isConstantValue(a) && isConstantValue(b)) return PyObject_RichCompareBool(a, b, Py_EQ);
  if (isSymbolicNumber(a) || isSymbolicNumber(b) ? a == b : same(a, b)) return 1;
  PyRef equal = compare(Py_EQ, a, b);
  return equal ? truth(equal.get()) : -1;
}

PyRef Evaluation::compareSequences(int op, PyObject* a, PyObject* b) {
  const Py_ssize_t n = builtinLength(a), m = builtinLength(b);
  const bool onlyEqual = op == Py_EQ || op == Py_NE;
  if (onlyEqual && n != m && PyList_Check(a)) return boolean(op == Py_NE);
  if (Py_EnterRecursiveCall(" in comparison")) return {};
  struct Leave { ~Leave() { Py_LeaveRecursiveCall(); } } leave;
  for (Py_ssize_t i = 0; i < std::min(builtinLength(a), builtinLength(b)); ++i) {
    PyRef x = element(a, i), y = element(b, i);
    const int equal = equalElements(x.get(), y.get());
    if (equal < 0) return {};
    if (equal) continue;
    if (onlyEqual) return boolean(op == Py_NE);
    return compare(op, x.get(), y.get());
  }
  const Py_ssize_t left = builtinLength(a), right = builtinLength(b);  // comparing elements may have changed them
  switch (op) {
    case Py_LT: return boolean(left < right);
    case Py_LE: return boolean(left <= right);
    case Py_EQ: return boolean(left == right);
    case Py_NE: return boolean(left != right);
    case Py_GT: return boolean(left > right);
    default: return boolean(left >= right);
  }
}

int Evaluation::compareDicts(int op, PyObject* a, PyObject* b) {
  if (builtinLength(a) != builtinLength(b)) return op == Py_NE;
  if (Py_EnterRecursiveCall(" in comparison")) return -1;
  struct Leave { ~Leave() { Py_LeaveRecursiveCall(); } } leave;
  know(a);
  PyRef keys = PyRef::steal(PyDict_Keys(a));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyRef value = readDict(a, key), other = PyErr_Occurred() ? PyRef() : readDict(b, key);
    if (PyErr_Occurred()) return -1;
    if (!other || !value) return op == Py_NE;
    const int equal = equalElements(value.get(), other.get());
    if (equal < 0) return -1;
    if (!equal) return op == Py_NE;
  }
  return op == Py_EQ;
}

namespace {

bool isNumericConstant(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o); }

/// Whether a constant is an object or a part of it.
bool isWithin(PyObject* constant, PyObject* whole) {
  if (constant == whole) return true;
  for (Py_ssize_t i = 0; PyTuple_Check(whole) && i < PyTuple_GET_SIZE(whole); ++i)
    if (isWithin(constant, PyTuple_GET_ITEM(whole, i))) return true;
  return false;
}

bool isInCode(PyObject* constant, const Frame* frame) {
  for (; frame; frame = frame->caller)
    if (isWithin(constant, frame->code()->co_consts)) return true;
  return false;
}

}  // namespace

/// What code and C functions make is the same object, or another one, whenever they run. What was read from outside is guarded to stay
/// the object that it is, unless it is compared with itself: a number that has one place, which neither code nor a class holds too.
void Evaluation::guardIdentity(PyObject* constant, bool withItself) {
  std::vector<Guard> wanted;
  for (const Guard& g : guards_->guards()) {
    if ((g.kind != GuardKind::ConstantMatch && g.kind != GuardKind::DictKeysMatch) || !g.source || !isWithin(constant, g.expected.get())) continue;
    Guard& identity = wanted.emplace_back();
    identity.source = g.source;
    identity.place = place();
    identity.expected = g.expected;
    identity.kind = g.kind == GuardKind::ConstantMatch ? GuardKind::IdMatch : GuardKind::Custom;
    if (identity.kind != GuardKind::Custom) continue;
    identity.predicate = sameKeyObjects;
    identity.text = "the keys are the same objects";
  }
  if (withItself && wanted.size() <= 1 && isNumericConstant(constant) && !pinnedNumbers_.count(constant) && !isInCode(constant, frame_)) return;
  for (Guard& g : wanted) guards_->add(std::move(g));
}

bool Evaluation::same(PyObject* a, PyObject* b) {
  if (PyTuple_CheckExact(a) && PyTuple_CheckExact(b) && a != b) {
    const PyRef left = settled(a), right = settled(b);
    if (left.get() != a || right.get() != b) return same(left.get(), right.get());
  }
  if (isSymbolicText(a) || isSymbolicText(b)) return a == b || same(settled(a).get(), settled(b).get());
  if (isSymbolicNumber(a) || isSymbolicNumber(b)) return sameSymbolic(a, b);
  // A tuple of ints from outside has one with symbols in its place.
  if (a != b && PyTuple_Check(a) && PyTuple_Check(b) && (holdsSymbols(a) || holdsSymbols(b))) breakHere("identity", "tuples are compared by identity", "Compare values with ==.");
  if (isConstantValue(a) && isConstantValue(b)) {
    // Equal constants may be one object or two; which, no guard on their values says.
    if (Py_TYPE(a) != Py_TYPE(b) || isSingleton(a) || isSingleton(b) || PyObject_RichCompareBool(a, b, Py_EQ) != 1) return a == b;
    if (isAddress(a) || isAddress(b)) breakHere("identity", "equal constants are compared by identity", "Compare values with ==.");
    guardIdentity(a, a == b);
    if (a != b) guardIdentity(b, false);
    return a == b;
  }
  if (PyWeakref_CheckRef(a) && PyWeakref_CheckRef(b) && (isFresh(a) || isFresh(b))) {
    // Those without a callback are one for each object.
    if (!isFresh(a) || !isFresh(b)) breakHere("identity", "a weak reference that the compiled region made is compared by identity");
    return a == b || same(PyWeakref_GET_OBJECT(a), PyWeakref_GET_OBJECT(b));
  }
  if (a == b || isConstantValue(a) || isConstantValue(b)) return a == b;
  if (standIns_->holds(a)) standIns_->requireUnseen(standIns_->holds(b) ? b : nullptr);
  Origin *left = origins_.find(a), *right = origins_.find(b);
  const auto isFixed = [](const Origin* o) { return o->source->kind == Source::Kind::Pinned; };
  if (left && right && left->source && right->source && !(isFixed(left) && isFixed(right))) {
    Guard differs;
    differs.kind = GuardKind::NotSameObject;
    differs.source = left->source;
    differs.other = right->source;
    differs.place = place();
    guards_->add(std::move(differs));
  }
  return false;
}

// --- keys -----------------------------------------------------------------------------------------------------------------

Evaluation::KeyKind Evaluation::readKey(PyObject* key) {
  if (PyRef whole = settledKey(key); whole.get() != key) return readKey(whole.get());
  if (isAddress(key)) return KeyKind::Address;
  if (isConstantValue(key)) return refuseAddress(key), KeyKind::Plain;
  if (isSymbolicNumber(key)) return plainNumber(key, "a key"), KeyKind::Plain;
  if (isTensor(key)) {
    const Source* source = sourceOf(key);  // two that are keys are one where the program is given the same twice
    if (source && source->kind != Source::Kind::Pinned) guards_->addKind(GuardKind::NotSameObject, source, nullptr, place());
    return KeyKind::Address;
  }
  PyTypeObject* type = Py_TYPE(key);
  KeyKind kind = KeyKind::Plain;
  const auto with = [&](PyObject* part) { kind = std::max(kind, readKey(part)); };
  if (isChangeable(type) && !isIdentityValue(key)) {
    static PyObject *const kHash = internedName("__hash__"), *const kEq = internedName("__eq__");
    PyObject *hash = typeLookup(type, kHash), *equal = typeLookup(type, kEq);
    const bool python = (hash && PyFunction_Check(hash)) || (equal && PyFunction_Check(equal));
    if (python) {
      for (PyObject* method : {hash, equal})
        if (method && PyFunction_Check(method) && writes(method))
          breakHere("callback from C", std::string("__hash__ or __eq__ of a ") + type->tp_name + " has effects");
      if (hash && PyFunction_Check(hash)) {
        // Evaluated for its guards: C code then calls it again, for real, with the same outcome.
        pin(hash, Why::Class);
        const int64_t writes = writes_;
        PyObject* args[] = {key};
        PyRef value = call(hash, args, 1, nullptr);
        if (!value) clearError();  // the same error when C code asks
        if (writes_ != writes) breakHere("callback from C", std::string("__hash__ of a ") + type->tp_name + " has effects");
      } else if (const Source* source = sourceOf(key); source && source->kind != Source::Kind::Pinned) {
        guard(GuardKind::IdMatch, source, key);  // it is hashed by where it lies
      }
      return KeyKind::Python;
    }
  }
  if (PyTuple_Check(key) && type->tp_hash == PyTuple_Type.tp_hash) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) with(PyTuple_GET_ITEM(key, i));
    return kind;
  }
  if (PyFrozenSet_CheckExact(key)) {
    PyObject* part;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; _PySet_NextEntry(key, &at, &part, &hash);) with(part);
    return kind;
  }
  if (PyMethod_Check(key)) {
    with(PyMethod_GET_FUNCTION(key));
    with(PyMethod_GET_SELF(key));
    return kind;
  }
  if (PyWeakref_CheckRef(key) && PyWeakref_GET_OBJECT(key) != Py_None) {
    PyObject* target = PyWeakref_GET_OBJECT(key);  // by which it is hashed and compared
    if (isTensor(target)) breakHere("identity", "a weak reference to a tensor is a key");
    with(target);
    if (kind == KeyKind::Python) breakHere("callback from C", std::string("a key is a weak reference to a ") + Py_TYPE(target)->tp_name + ", whose class says how it is compared");
    if (!sourceOf(key)) return kind;
  }
  if (hashesIdentity(type) || isIdentityValue(key)) {
    const Source* source = sourceOf(key);
    if (!source) return KeyKind::Address;
    if (source->kind != Source::Kind::Pinned) guard(GuardKind::IdMatch, source, key);
  }
  return KeyKind::Plain;
}

void Evaluation::refuseEqualHash(PyObject* set, PyObject* key) {
  const Py_hash_t hash = PyObject_Hash(key);
  clearError();
  PyObject* element;
  Py_hash_t other;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &element, &other);)
    if (other == hash && element != key)
      breakHere("callback from C", std::string("C code asks a ") + Py_TYPE(key)->tp_name + " whether it equals another key of the same hash");
}

PyRef Evaluation::storedKey(PyObject* dict, PyObject* key) {
  if (readKey(key) != KeyKind::Python) {
    // Nothing that is asked for runs Python: C's own look-up.
    PyObject* found = PyDict_GetItemWithError(dict, key);
    return found ? PyRef::borrow(key) : PyRef();
  }
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1) return {};
  PyObject *stored, *value;
  Py_hash_t storedHash;
  std::vector<PyRef> candidates;
  for (Py_ssize_t at = 0; _PyDict_Next(dict, &at, &stored, &value, &storedHash);)
    if (storedHash == hash) candidates.push_back(PyRef::borrow(stored));
  for (PyRef& candidate : candidates) {
    if (candidate.get() == key) return candidate;
    if (!isConstantValue(candidate.get())) pin(candidate.get(), Why::Container);
    const int equal = equalElements(candidate.get(), key);
    if (equal < 0) return {};
    if (equal) return candidate;
  }
  return {};
}

PyRef Evaluation::hashOf(PyObject* given) {
  const PyRef key = settledKey(given);
  PyObject* object = key.get();
  if (isTensor(object)) return addressOf(object);
  if (PyFloat_Check(object) && PyFloat_AS_DOUBLE(object) != PyFloat_AS_DOUBLE(object)) breakHere("identity", "the hash of a NaN depends on its address");
  const KeyKind kind = readKey(object);
  if (kind == KeyKind::Address || (kind == KeyKind::Python && hashesIdentity(Py_TYPE(object)) && !sourceOf(object)))
    breakHere("identity", "the hash of an object that has none but its address is used as a number");
  const Py_hash_t hash = PyObject_Hash(object);
  if (!PyLong_CheckExact(object) && !PyFloat_CheckExact(object)) ownToProcess("a hash");
  return hash == -1 ? PyRef() : PyRef::steal(PyLong_FromSsize_t(hash));
}

}  // namespace fusebox::capture
