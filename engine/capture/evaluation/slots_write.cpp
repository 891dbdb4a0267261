// Writes to containers: to what this segment made directly, to everything else through the journal.
#include <algorithm>

#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/rules/autograd_function.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

void refuseLoss(Evaluation& e, PyObject* element) {
  constexpr Py_ssize_t kOwn = 8;  // the container, and what refers to it while capturing
  e.willUnbind(*e.frame(), element);
  if (!PyType_Check(element) && !PyModule_Check(element) && Py_REFCNT(element) <= kOwn && isWeaklyReferred(element))
    e.breakHere("finalizer", std::string("a container lets go of a ") + Py_TYPE(element)->tp_name + ", to which there are weak references");
}

namespace {

PyObject* methodOf(PyTypeObject* type, const char* name) { return _PyType_Lookup(type, internedName(name)); }

/// A key that C code hashes and compares without calling Python.
void requirePlainKey(Evaluation& e, PyObject* key) {
  e.refuseAddress(key);
  if (isConstantValue(key) || isIdentityValue(key)) return;
  if (e.isTensor(key)) e.breakHere("unsupported container", "a tensor is written to a container from outside as a key");
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) requirePlainKey(e, PyTuple_GET_ITEM(key, i));
    return;
  }
  for (const char* name : {"__hash__", "__eq__"}) {
    PyObject* method = isPythonClass(Py_TYPE(key)) ? e.typeLookup(Py_TYPE(key), internedName(name)) : nullptr;
    if (method && PyFunction_Check(method))
      e.breakHere("unsupported container", std::string("a key whose class ") + Py_TYPE(key)->tp_name + " defines " + name +
                                               " is written to a container from outside");
  }
}

/// Elements of sets are hashed: symbolic numbers among the arguments behind the first become constants. False: there are none.
bool plainElements(Evaluation& e, const CallArguments& a, std::vector<PyRef>* elements) {
  bool changed = false;
  for (size_t i = 1; i < a.total(); ++i) {
    elements->push_back(plainKey(e.settledKey(a.args[i]).get(), "an element of a set"));
    changed = changed || elements->back().get() != a.args[i];
  }
  return changed;
}

/// An element that C code is about to hash: a tensor, or an object whose class says in Python how, which is what it tells.
bool readHashed(Evaluation& e, PyObject* element) {
  const auto saysHow = [&](PyObject* o) {
    if (!isPythonClass(Py_TYPE(o)) || isIdentityValue(o)) return false;
    PyObject *hash = e.typeLookup(Py_TYPE(o), internedName("__hash__")), *equal = e.typeLookup(Py_TYPE(o), internedName("__eq__"));
    return (hash && PyFunction_Check(hash)) || (equal && PyFunction_Check(equal));
  };
  const bool isAsked = saysHow(element);
  if (e.isTensor(element) || isAsked) e.readKey(element);
  for (Py_ssize_t i = 0; PyTuple_CheckExact(element) && i < PyTuple_GET_SIZE(element); ++i)
    if (saysHow(PyTuple_GET_ITEM(element, i))) e.readKey(PyTuple_GET_ITEM(element, i));
  return isAsked;
}

/// The same of every element, where a method or an assignment takes some of them out.
void refuseLosses(Evaluation& e, PyObject* container) {
  const PyRef elements = ownElements(container);
  for (Py_ssize_t i = 0; elements && i < PyList_GET_SIZE(elements.get()); ++i) refuseLoss(e, PyList_GET_ITEM(elements.get(), i));
}

bool onlyAdds(PyObject* method) {
  static constexpr std::string_view kNames[] = {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "rotate", "reverse", "sort"};
  const PyRef name = PyRef::steal(PyObject_GetAttrString(method, "__name__"));
  return name && PyUnicode_Check(name.get()) && std::find(std::begin(kNames), std::end(kNames), utf8Of(name.get())) != std::end(kNames);
}

bool rawKey(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyODict_Check(dict)) return (value ? PyODict_SetItem(dict, key, value) : PyODict_DelItem(dict, key)) == 0;
  return (value ? PyDict_SetItem(dict, key, value) : PyDict_DelItem(dict, key)) == 0;
}

}  // namespace

void readElements(Evaluation& e, PyObject* given) {
  readHashed(e, given);
  const PyRef asked = PyRef::steal(PySet_New(nullptr));
  for (Py_ssize_t i = 0; (PyTuple_CheckExact(given) || PyList_CheckExact(given)) && i < PySequence_Fast_GET_SIZE(given); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(given, i);
    if (!readHashed(e, element)) continue;
    e.refuseEqualHash(asked.get(), element);
    if (PySet_Add(asked.get(), element) < 0) clearError();  // what it raises, C code will raise
  }
}

void Evaluation::openForWriting(PyObject* container) {
  for (LazyIterator* iterator : isDeque(container) ? iterators_->all : decltype(iterators_->all)())
    if (auto* walk = dynamic_cast<DequeWalk*>(iterator); walk && walk->isOver(container)) breakHere("iterator", "a deque changes while it is gone through");
  ++writes_;
  if (PyAnySet_Check(container)) know(container);  // the order of its elements as it is now
  if (isDeque(container)) {
    const PyRef longest = getAttr(container, internedName("maxlen"));
    if (longest && isSymbolicNumber(longest.get())) specialisedNumber(longest.get(), "it says what a write to a deque drops");
  }
  const Source* source = sourceOf(container);
  Origin* o = origins_.find(container);
  const Source* ownerSource = o->owner ? sourceOf(o->owner.get()) : nullptr;
  if (!journal_.open(container, source, o->owner.get(), ownerSource))
    breakHere("unsupported side effect", std::string("a write to an object of type ") + Py_TYPE(container)->tp_name +
                                             " that existed before the compiled region");
  o = origins_.find(container);
  o->written = true;
}

bool Evaluation::storeKey(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyRef whole = settledKey(key); whole.get() != key) return storeKey(dict, whole.get(), value);
  if (functions_->isLate()) functions_->noteWrite(dict, origins_.find(dict));
  const PyRef own = keyInDict(dict, key);
  if (isFresh(dict)) {
    if (isPythonClass(Py_TYPE(key))) readKey(key);  // what C code will call again
    return rawKey(dict, key, value);
  }
  if (isTensor(key)) key = own.get();
  else requirePlainKey(*this, key);
  if (!value || (PyODict_Check(dict) && !PyDict_Contains(dict, key))) refuseMoving(dict);
  if (PyObject* old = PyDict_GetItemWithError(dict, key)) refuseLoss(*this, old);
  else if (PyErr_Occurred()) return false;
  openForWriting(dict);
  return journal_.setKey(dict, key, value);
}

bool Evaluation::storeElement(PyObject* list, PyObject* key, PyObject* value) {
  if (functions_->isLate()) functions_->noteWrite(list, origins_.find(list));
  if (isFresh(list)) return PyList_Type.tp_as_mapping->mp_ass_subscript(list, key, value) == 0;
  guardOriginalLength(list);
  refuseLosses(*this, list);
  openForWriting(list);
  return journal_.setElement(list, key, value);
}

bool Evaluation::append(PyObject* list, PyObject* item) {
  if (isFresh(list)) return PyList_Append(list, item) == 0;
  PyObject* args[] = {list, item};
  return static_cast<bool>(mutate(methodOf(&PyList_Type, "append"), {args, 2, nullptr}));
}

bool Evaluation::addToSet(PyObject* set, PyObject* item) {
  if (PyRef whole = settledKey(item); whole.get() != item) return addToSet(set, whole.get());
  if (isTensor(item) || (isFresh(set) && isPythonClass(Py_TYPE(item))))
    if (readKey(item) == KeyKind::Python) refuseEqualHash(set, item);
  if (isFresh(set)) return PySet_Add(set, plainKey(item).get()) == 0;
  PyObject* args[] = {set, item};
  return static_cast<bool>(mutate(methodOf(&PySet_Type, "add"), {args, 2, nullptr}));
}

bool Evaluation::mergeIntoSet(PyObject* set, PyObject* whole) {
  if (isFresh(set)) return _PySet_Update(set, whole) == 0;
  const PyRef now = mergedWhole(whole);
  if (!now) return false;
  PyObject* args[] = {set, now.get()};
  return static_cast<bool>(mutate(methodOf(&PySet_Type, "update"), {args, 2, nullptr}));
}

PyRef Evaluation::tupleOf(PyObject* sequence) {
  const PyRef whole = settled(sequence);
  know(whole.get());
  return PyRef::steal(PySequence_Tuple(whole.get()));
}

void Evaluation::stored(PyObject* name, PyObject* value) {
  if (torchCalls_ && isStandIn(value)) torchCalls_->named(value, name);
}

void Evaluation::willUnbind(const Frame&, PyObject* value) {
  static PyObject* const kDel = internedName("__del__");
  if (isPythonClass(Py_TYPE(value)) && _PyType_Lookup(Py_TYPE(value), kDel))
    breakHere("finalizer", std::string("a variable or container lets go of a ") + Py_TYPE(value)->tp_name + ", whose __del__ may run");
}

PyRef Evaluation::mutate(PyObject* method, const CallArguments& a) {
  PyObject* container = a.args[0];
  std::vector<PyRef> elements;
  if (PyAnySet_Check(container) && plainElements(*this, a, &elements)) {
    std::vector<PyObject*> args{container};
    for (const PyRef& element : elements) args.push_back(element.get());
    return mutate(method, {args.data(), a.positional, a.kwNames});
  }
  for (size_t i = 1; PyAnySet_Check(container) && i < a.total(); ++i) readElements(*this, a.args[i]);
  if (isFresh(container)) return callRaw(method, a);
  for (size_t i = 1; PyAnySet_Check(container) && i < a.total(); ++i) requirePlainKey(*this, a.args[i]);
  if (PyAnySet_Check(container)) refuseMoving(container);
  if (!onlyAdds(method)) refuseLosses(*this, container);
  openForWriting(container);
  PyRef result = callRaw(method, a);
  if (!result) return {};
  PyRef arguments = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.total()) - 1));
  for (size_t i = 1; i < a.total(); ++i) PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) - 1, Py_NewRef(a.args[i]));
  journal_.called(container, method, arguments.get());
  return result;
}

bool Evaluation::clearDict(PyObject* dict) {
  if (!isFresh(dict)) {
    refuseMoving(dict);
    openForWriting(dict);
    return journal_.clearDict(dict);
  }
  PyTypeObject* type = PyODict_Check(dict) ? &PyODict_Type : &PyDict_Type;
  return static_cast<bool>(PyRef::steal(PyObject_CallOneArg(methodOf(type, "clear"), dict)));
}

bool Evaluation::moveToEnd(PyObject* dict, PyObject* key, bool last) {
  const int there = hasKey(dict, key);
  if (there < 0) return false;
  if (there && !isFresh(dict)) {
    refuseMoving(dict);
    openForWriting(dict);
    return journal_.moveToEnd(dict, key, last);
  }
  PyObject* method = methodOf(&PyODict_Type, "move_to_end");
  return static_cast<bool>(PyRef::steal(PyObject_CallFunctionObjArgs(method, dict, key, last ? Py_True : Py_False, nullptr)));
}

int Evaluation::hasKey(PyObject* dict, PyObject* asked) {
  const PyRef own = keyInDict(dict, asked);
  PyObject* const key = own.get();
  const bool there = PyDict_GetItemWithError(dict, key) != nullptr;
  if (!there && PyErr_Occurred()) return -1;
  const Source* source = sourceOf(dict);
  if (!source || journal_.wrote(dict, key)) return there;
  if (!isTensor(key)) {
    requirePlainKey(*this, key);
    guardKey(key);
  }
  guard(there ? GuardKind::DictContains : GuardKind::DictLacks, source, key);
  return there;
}

void Evaluation::readOriginal(PyObject* container) {
  Origin* o = origins_.find(container);
  if (!o || !o->source || !o->written || o->contentsGuarded) return;
  o->contentsGuarded = true;
  const Source* source = o->source;
  PyRef first = journal_.original(container);
  if (PyAnySet_Check(container)) return guardSetContents(first.get(), source, false);
  if (!PyList_Check(container) && !isDeque(container)) return;
  const PyRef elements = ownElements(first.get());
  const Py_ssize_t n = PyList_GET_SIZE(elements.get());
  guard(GuardKind::SequenceLength, source, nullptr, n);
  for (Py_ssize_t i = 0; i < n; ++i) requireConstant(wrap(PyList_GET_ITEM(elements.get(), i), sources().sequenceItem(source, i)));
}

void Evaluation::guardOriginalLength(PyObject* container) {
  Origin* o = origins_.find(container);
  if (!o || !o->source) return;
  const Source* source = o->source;
  PyRef first = o->written ? journal_.original(container) : PyRef::borrow(container);
  if (PyList_Check(container) || PyTuple_Check(container) || isDeque(container)) return guard(GuardKind::SequenceLength, source, nullptr, PySequence_Size(first.get()));
  if (!PyDict_Check(container)) return readOriginal(container);
  const Py_ssize_t n = PyDict_GET_SIZE(first.get());
  guard(n ? GuardKind::DictLength : GuardKind::DictEmpty, source, nullptr, n);
  // How many there are now depends on which of the written keys were there.
  journal_.forEachWritten(container, [&](PyObject* key, bool there) {
    guard(there ? GuardKind::DictContains : GuardKind::DictLacks, source, key);
  });
}

}  // namespace fusebox::capture
