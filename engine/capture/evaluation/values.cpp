// Values and where they come from: wrapping reads, exposing containers to C code, guards.
#include "engine/aot/aot_function.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/dispatch_asking.h"
#include "engine/capture/evaluation/distributed_tensors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/module_paths.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/unread_tuples.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/capture/rules/kept_predicates.h"
#include "engine/trace/sym_int.h"
#include "engine/capture/rules/autograd_function.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

/// The elements of a set in its order: the same constants, type and value, or the same objects.
bool sameSetContents(PyObject* value, PyObject* expected) {
  if (!PyAnySet_Check(value) || PySet_GET_SIZE(value) != PyTuple_GET_SIZE(expected)) return false;
  PyObject* element;
  Py_hash_t hash;
  for (Py_ssize_t at = 0, i = 0; _PySet_NextEntry(value, &at, &element, &hash); ++i)
    if (!sameConstant(element, PyTuple_GET_ITEM(expected, i))) return false;
  return true;
}

bool sameSetElements(PyObject* value, PyObject* expected) {
  if (!PyAnySet_Check(value) || PySet_GET_SIZE(value) != PyTuple_GET_SIZE(expected)) return false;
  PyObject* element;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(value, &at, &element, &hash);) {
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < PyTuple_GET_SIZE(expected); ++i) found = sameConstant(element, PyTuple_GET_ITEM(expected, i));
    if (!found) return false;
  }
  return true;
}

/// The addresses of a set's elements, in order of size, as bytes.
static PyRef addressesIn(PyObject* set) {
  c10::SmallVector<const void*, 64> addresses;
  PyObject* element;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &element, &hash);) addresses.push_back(element);
  std::ranges::sort(addresses, std::less<>());
  return PyRef::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(addresses.data()), static_cast<Py_ssize_t>(addresses.size() * sizeof(void*))));
}

/// Whether it holds the very objects.
static bool sameMembers(PyObject* value, PyObject* expected) {
  if (!PyAnySet_Check(value) || PySet_GET_SIZE(value) * static_cast<Py_ssize_t>(sizeof(void*)) != PyBytes_GET_SIZE(expected)) return false;
  const PyRef now = addressesIn(value);
  return now && std::memcmp(PyBytes_AS_STRING(now.get()), PyBytes_AS_STRING(expected), static_cast<size_t>(PyBytes_GET_SIZE(expected))) == 0;
}

bool sameDefaults(PyObject* value, PyObject* expected) { return PyFunction_GET_DEFAULTS(value) == expected; }

namespace {

/// A builtin method with the definition at the address `expected`, whatever it is bound to.
bool sameMethod(PyObject* value, PyObject* expected) {
  if (Py_IS_TYPE(value, &_PyMethodWrapper_Type)) return unboundMethod(value).get() == expected;
  return PyLong_CheckExact(expected) && PyCFunction_Check(value) && reinterpret_cast<PyCFunctionObject*>(value)->m_ml == PyLong_AsVoidPtr(expected);
}

/// A place that only a module, class or function holds: what is there is expected to stay the same object.
bool isFixedPlace(const Source* s) {
  if (isPinned(s)) return true;
  return s->kind == Source::Kind::DictItem && isPinned(s->base);
}

}  // namespace

bool Evaluation::isTensor(PyObject* o) const { return isTensorObject(o) && !isWrapperClass(Py_TYPE(o)); }
bool Evaluation::isStandIn(PyObject* o) const { return isTensorObject(o) && (trace::isTraceTensor(tensorOf(o)) || isDistributedStandIn(o)); }

void Evaluation::guard(GuardKind kind, const Source* source, PyObject* expected, int64_t number) {
  if (functions_->isLate()) functions_->noteGuard(kind, source);
  if (isPinned(source) &&
      (kind == GuardKind::TypeMatch || kind == GuardKind::IdMatch || kind == GuardKind::ConstantMatch || kind == GuardKind::CodeMatch))
    return;
  if (kind == GuardKind::IdMatch) refuseToKeepAlive(expected);
  guards_->addKind(kind, source, expected, place(), number);
}

void Evaluation::refuseToKeepAlive(PyObject* object) {
  static PyObject* const kDel = internedName("__del__");
  PyTypeObject* type = Py_TYPE(object);
  if (!PyType_SUPPORTS_WEAKREFS(type) && isPythonClass(type) && _PyType_Lookup(type, kDel))
    breakHere("finalizer", std::string("which ") + type->tp_name + " it is counts here, whose __del__ would not run while compiled code refers to it",
              "Let its class have weak references (a slot __weakref__).");
}

void Evaluation::guardTypeAttribute(PyTypeObject* type, PyObject* name) {
  if (!isChangeable(type)) return;
  guards_->addAttributeOf(type, name);
  if (!guardedTypes_.insert(type).second) return;
  auto* object = reinterpret_cast<PyObject*>(type);
  guard(GuardKind::TypeVersion, sources().pinned(object, Why::Class), object);
}

void Evaluation::guardFunction(PyObject* function) {
  const Source* source = sourceOf(function);
  if (!source || !isPinned(source) || !guardedFunctions_.insert(function).second) return;
  guards_->addKind(GuardKind::CodeMatch, source, PyFunction_GET_CODE(function), place());
  // Others are read one by one: to hold them would hold what they lead to.
  if (PyObject* defaults = PyFunction_GET_DEFAULTS(function); defaults && isConstantValue(defaults))
    guardCustom(source, sameDefaults, defaults, "the same defaults");
}

/// A tuple (or torch.Size) in which some int is a symbol, element by element; null for all others.
PyRef Evaluation::wrapIntegers(PyObject* object, const Source* source) {
  constexpr Py_ssize_t kMost = 16;
  if (!options_.symbolic || (!PyTuple_CheckExact(object) && !isSizeObject(object)) || PyTuple_GET_SIZE(object) > kMost || isPinned(source)) return {};
  if (auto known = integersAt_.find(source); known != integersAt_.end()) return known->second;
  bool any = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    PyObject* item = PyTuple_GET_ITEM(object, i);
    any = (PyLong_CheckExact(item) && symbolicInputs_->integer(item, sources().sequenceItem(source, i), place())) || any;
  }
  if (!any) return {};
  guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  guard(GuardKind::SequenceLength, source, nullptr, PyTuple_GET_SIZE(object));
  PyRef made = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(object)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    PyTuple_SET_ITEM(made.get(), i, wrap(PyTuple_GET_ITEM(object, i), sources().sequenceItem(source, i)).release());
  if (isSizeObject(object)) made = newSize(made.get());
  integersAt_.emplace(source, made);
  origins_.add(made.get(), source);  // the program gets its own object back
  return made;
}

PyRef Evaluation::wrap(PyObject* object, const Source* source) {
  if (isUnread(object)) return wrap(valueOfUnread(object), sourceOfUnread(object));
  if (functions_->isLate() && functions_->noteRead(object, source)) {
    guard(GuardKind::ConstantMatch, source, object);
    return PyRef::borrow(object);
  }
  const auto mayChange = [this](PyObject* o) { return hasArrayScalar(Py_TYPE(o)) || (PyFloat_CheckExact(o) && !torchCalls_); };
  if (options_.runTimeNumbers && mayChange(object) && options_.runTimeNumbers->contains(source->str())) return wrapNumber(object, source);
  if (isSymbolicNumber(object) || isSymbolicText(object)) return PyRef::borrow(object);  // an element of a container
  const bool isOfFrame = source->kind == Source::Kind::Local || source->kind == Source::Kind::Stack;
  if (PyUnicode_CheckExact(object) && isOfFrame && options_.changedTexts && options_.changedTexts->contains(source->str())) {
    PyRef made = newSymbolicText(*this, object, source);
    origins_.add(made.get(), source);
    return made;
  }
  if (options_.symbolic && PyLong_CheckExact(object) && !isPinned(source))
    if (const std::optional<graph::SymExpr> e = symbolicInputs_->integer(object, source, place())) return symbolicInt(*e);
  if (PyRef sizes = wrapIntegers(object, source)) return sizes;
  if (isConstantValue(object)) {
    guard(GuardKind::ConstantMatch, source, object);
    return PyRef::borrow(object);
  }
  for (const auto& [later, what] : writtenLater_)
    if (later.get() == object) breakHere("side effect", std::string(what) + " is read");
  if (Origin* known = origins_.find(object)) {
    if (known->source && known->source != source && !isPinned(source)) {
      if (isPinned(known->source)) {
        guard(GuardKind::IdMatch, source, object);
      } else {
        Guard same;
        same.kind = GuardKind::SameObject;
        same.source = source;
        same.other = known->source;
        same.place = place();
        guards_->add(std::move(same));
      }
    }
    return insteadOf(object, *known);
  }
  if (isTensor(object)) return wrapTensor(object, source);
  if (PyWeakref_CheckProxy(object)) breakHere("weak reference", "a weak proxy is read, through which C code reaches another object");
  if (PyObject* self = boundSelf(object); self && !isFixedPlace(source)) {
    // A bound method is made anew by every attribute read: what it does and what it belongs to matter.
    guardMethodOf(object, source);
    origins_.add(object, source);
    wrap(self, sources().derived(Source::Kind::MethodSelf, source));
    return PyRef::borrow(object);
  }
  if (isOwnGenerator(object) && !isPinned(source)) {
    // Whichever it is, it is asked before the graph runs (random_draws.h).
    guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    guardCustom(source, isOwnGenerator, nullptr, "a generator that is no device's default one");
    origins_.add(object, source);
    return PyRef::borrow(object);
  }
  if (isIdentityValue(object)) {
    guard(GuardKind::IdMatch, source, object);
    origins_.add(object, sources().pinned(object));
    return PyRef::borrow(object);
  }
  if (PyFunction_Check(object)) {
    if (isFixedPlace(source)) {
      guard(GuardKind::IdMatch, source, object);
      origins_.add(object, sources().pinned(object));
    } else {
      guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
      guard(GuardKind::CodeMatch, source, PyFunction_GET_CODE(object), reinterpret_cast<int64_t>(PyFunction_GET_GLOBALS(object)));
      pin(PyFunction_GET_GLOBALS(object), Why::Function);
      origins_.add(object, source);
    }
    return PyRef::borrow(object);
  }
  if (!PyCell_Check(object)) guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (isWrapperClass(Py_TYPE(object))) return wrapWrapper(object, source);
  if (isValueObject(object)) guardValue(object, source);
  origins_.add(object, source);
  DictWalk::Kind kind{};
  if (PyObject* dict = dictOfView(object, &kind)) wrap(dict, sources().derived(Source::Kind::ViewDict, source));
  return PyRef::borrow(object);
}

void Evaluation::guardCustom(const Source* source, bool (*predicate)(PyObject*, PyObject*), PyObject* expected, const char* text) {
  Guard guard;
  guard.kind = GuardKind::Custom;
  guard.source = source;
  guard.expected = PyRef::borrow(expected);
  guard.predicate = predicate;
  guard.text = text;
  guard.place = place();
  guards_->add(std::move(guard));
}

void Evaluation::guardDerivativesOf(const Source* source) {
  guards_->addKind(GuardKind::NotSameObject, source, nullptr, place());
  static constexpr auto kHasNoHooks = [](PyObject* tensor, PyObject*) { return isTensorObject(tensor) && !aot::hasGradientHooks(tensorOf(tensor)); };
  guardCustom(source, kHasNoHooks, nullptr, "no hook on the gradient of an input");
}

void Evaluation::guardValue(PyObject* object, const Source* source) {
  if (!isPinned(source)) guardCustom(source, sameValue, object, "value");
}

void Evaluation::requireKnown(PyObject* object) {
  if (!isOpaque(object) && !PyExceptionInstance_Check(object)) return;
  const Source* source = sourceOf(object);
  if (!source || isPinned(source)) return;
  breakHere("object from outside", std::string("C code looks into a ") + Py_TYPE(object)->tp_name + " whose state cannot be guarded",
            "Turn it into a tensor or a Python number before the compiled region.");
}

void Evaluation::guardMethodOf(PyObject* method, const Source* source) {
  Guard guard;
  guard.kind = GuardKind::Custom;
  guard.source = source;
  guard.predicate = sameMethod;
  guard.text = "builtin method";
  if (PyCFunction_Check(method)) {
    // The method itself would keep its object alive.
    guard.expected = PyRef::steal(PyLong_FromVoidPtr(reinterpret_cast<PyCFunctionObject*>(method)->m_ml));
  } else {
    guard.expected = unboundMethod(method);
    if (!guard.expected) breakHere("unsupported call", "a slot method of unknown origin");
  }
  guard.place = place();
  guards_->add(std::move(guard));
}

PyRef Evaluation::selfOf(PyObject* method) {
  PyObject* self = boundSelf(method);
  const Source* source = sourceOf(method);
  if (!source) return translate(self, nullptr);
  return isPinned(source) ? pin(self, Why::Owner) : wrap(self, sources().derived(Source::Kind::MethodSelf, source));
}

namespace {

/// What the program calls a tensor.
std::string nameOf(const Frame* frame, PyObject* tensor, const Source* source) {
  if (liesAhead(source))
    if (const auto place = placeInModules(frame, tensor)) return place->local + "." + place->path;
  return source->label();
}

}  // namespace

/// Whether attributes of a class of tensors are those of its instances, its own and torch's, read and written as torch does.
static bool hasPlainAttributes(Evaluation& e, PyTypeObject* type) {
  const auto isPythons = [&](const char* name) {
    PyObject* method = e.typeLookup(type, internedName(name));
    return method && PyFunction_Check(method);
  };
  return !isPythons("__getattribute__") && !isPythons("__getattr__") && !isPythons("__setattr__") && !isPythons("__delattr__");
}

PyRef Evaluation::wrapTensor(PyObject* object, const Source* source) {
  const at::Tensor& real = tensorOf(object);
  if (trace::isTraceTensor(real) || isDistributedStandIn(object)) return PyRef::borrow(object);
  if (isDistributed(object)) {
    PyRef standIn = distributedStandIn(*this, object, source);
    origins_.add(object, source).twin = standIn;
    origins_.add(standIn.get(), source).twin = PyRef::borrow(object);
    return standIn;
  }
  const bool isOfProgram = isFollowedClass(Py_TYPE(object)) && !real.key_set().has(c10::DispatchKey::Python) && hasPlainAttributes(*this, Py_TYPE(object));
  if (!isPlainTensorClass(Py_TYPE(object)) && !isOfProgram)
    breakHere("tensor subclass", std::string("a tensor of class ") + Py_TYPE(object)->tp_name + " is not followed",
              "Convert it to a plain torch.Tensor before the compiled region.");
  const bool isBelowSigns = isInsideDispatch() || c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Negative);
  if (isBelowSigns && (real.is_conj() || real.is_neg()))
    breakHere("tensor subclass", "a tensor with a pending conjugation or negation is read in __torch_dispatch__, where operators do not see that",
              "Call resolve_conj() and resolve_neg() on what a wrapper holds.");
  if (real.has_names()) breakHere("named tensor", "a tensor with named dimensions is not followed", "Drop the names with rename(None).");
  const SymbolicInputs::Geometry geometry = symbolicInputs_->geometry(object, source);
  PyRef standIn;
  try {
    const ClassesNotAsked off;  // a view that was written to is asked for its history
    standIn = PyRef::steal(newTensorObject(trace_->input(real, nameOf(frame_, object, source), {geometry.sizes, geometry.strides, geometry.offset}).standIn));
  } catch (const trace::BreakError& error) {
    breakHere(error);
  }
  if (Py_TYPE(object) != Py_TYPE(standIn.get())) {
    static PyObject* const kClass = internedName("__class__");
    if (PyObject_SetAttr(standIn.get(), kClass, reinterpret_cast<PyObject*>(Py_TYPE(object))) < 0) {
      clearError();
      breakHere("tensor subclass", std::string("a stand-in cannot take the class ") + Py_TYPE(object)->tp_name);
    }
  }
  guards_->tensorMatch(source, object, place());
  symbolicInputs_->guard(geometry, source, place());
  if (PyTypeObject* type = Py_TYPE(object); !guardTorchsMethods(type)) guardTypeAttribute(type, internedName("__torch_function__"));
  origins_.add(object, source).twin = standIn;
  origins_.add(standIn.get(), source).twin = PyRef::borrow(object);
  return standIn;
}

PyRef Evaluation::wrapWrapper(PyObject* object, const Source* source) {
  origins_.add(object, source);
  if (isNestedTensor(object)) return guardNested(*this, object, source), PyRef::borrow(object);
  refuseWrapper(*this, object);
  const SymbolicInputs::Geometry geometry = symbolicInputs_->geometry(object, source);
  PyRef standIn;
  if (!geometry.empty()) {
    const auto symbolic = [&](const std::vector<graph::SymExpr>& numbers) {
      std::vector<c10::SymInt> made;
      for (const graph::SymExpr& e : numbers) made.push_back(trace::toSymInt(e, trace_->shapes()));
      return made;
    };
    standIn = wrapperOfSizes(object, symbolic(geometry.sizes), symbolic(geometry.strides), trace::toSymInt(geometry.offset, trace_->shapes()));
    if (!standIn) breakHere("tensor subclass", std::string("a tensor of class ") + Py_TYPE(object)->tp_name + " cannot be one of symbolic sizes");
  }
  guards_->tensorMatch(source, object, place());
  if (!standIn) return PyRef::borrow(object);
  symbolicInputs_->guard(geometry, source, place());
  origins_.find(object)->twin = standIn;
  origins_.add(standIn.get(), source).twin = PyRef::borrow(object);
  return standIn;
}

PyRef Evaluation::insteadOf(PyObject* object, const Origin& known) const {
  const bool isReplaced = known.twin && (isTensor(object) ? !isStandIn(object) : isTensorObject(object) && !isNestedTensor(object) && !standsForWrapper(object));
  return isReplaced ? known.twin : PyRef::borrow(object);
}

PyRef Evaluation::inputOfGraph(PyObject* tensor, const Source* source) {
  PyRef standIn = PyRef::steal(newTensorObject(trace_->input(tensorOf(tensor), nameOf(frame_, tensor, source)).standIn));
  guards_->tensorMatch(source, tensor, place());
  origins_.add(tensor, source).twin = standIn;
  origins_.add(standIn.get(), source).twin = PyRef::borrow(tensor);
  return standIn;
}

PyRef Evaluation::inputDrawn(PyObject* tensor, const Source* source) {
  PyRef standIn = PyRef::steal(newTensorObject(trace_->input(tensorOf(tensor), "drawn").standIn));
  origins_.add(tensor, source);
  origins_.add(standIn.get(), source);
  return standIn;
}

bool torchsMethods(PyObject* type, PyObject*) { return hasTorchsMethods(reinterpret_cast<PyTypeObject*>(type)); }

bool Evaluation::guardTorchsMethods(PyTypeObject* type) {
  if (!hasTorchsMethods(type)) return false;
  guardCustom(sources().pinned(reinterpret_cast<PyObject*>(type), Why::Process), torchsMethods, nullptr, "methods of the tensor class are torch's own");
  return true;
}

PyRef Evaluation::pin(PyObject* object, Why why) {
  if (isConstantValue(object)) {
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyComplex_CheckExact(object)) pinnedNumbers_.insert(object);
    return PyRef::borrow(object);
  }
  if (Origin* known = origins_.find(object)) {
    return insteadOf(object, *known);
  }
  if (isTensor(object)) return wrapTensor(object, sources().pinned(object, why));
  const Source* source = origins_.add(object, sources().pinned(object, why)).source;
  // The one thing about it that can be exchanged without its holder noticing.
  if (isPythonClass(Py_TYPE(object)) && !PyType_Check(object))
    guards_->addKind(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)), place());
  if (isWrapperClass(Py_TYPE(object))) return wrapWrapper(object, source);
  return PyRef::borrow(object);
}

namespace {

/// Objects that C code gives and nobody can tell apart later: by identity, or because they never change.
std::optional<Why> isKnownByItself(PyObject* o) {
  if (isIdentityValue(o) || PyFunction_Check(o) || isDeviceMesh(o)) return Why::Process;
  if (isValueObject(o) || isPlacement(o)) return Why::Immutable;
  PyTypeObject* type = Py_TYPE(o);
  const std::string_view name = type->tp_name;
  if (!isChangeable(type) && (name.starts_with("torch.") || name.starts_with("re."))) return Why::Immutable;
  return std::nullopt;
}

}  // namespace

const Source* Evaluation::sourceOf(PyObject* object) {
  if (Origin* known = origins_.find(object)) return known->source;
  if (isConstantValue(object) || isTensor(object)) return nullptr;
  if (PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) || PyAnySet_Check(object) || PyIter_Check(object) ||
      PyMethod_Check(object) || PyCell_Check(object) || PySlice_Check(object) || PyExceptionInstance_Check(object) ||
      Py_IS_TYPE(object, &PyDictProxy_Type) || isSymbolicNumber(object) || isSymbolicText(object) || isRaggedSize(object))
    return nullptr;
  if (const std::optional<Why> why = isKnownByItself(object)) return origins_.add(object, sources().pinned(object, *why)).source;
  breakHere("unknown object", std::string("a ") + Py_TYPE(object)->tp_name + " came from C code, which does not say whether it may change");
}

void Evaluation::adopt(PyObject* fresh) {
  if (!PyObject_IS_GC(fresh) || PyType_Check(fresh) || isTensor(fresh)) return;
  if (PyTuple_CheckExact(fresh) || origins_.find(fresh)) return;
  Origin& o = origins_.add(fresh, nullptr);
  o.birth = rootCount_;
}

PyRef Evaluation::translate(PyObject* element, const Source* source) {
  if (isUnread(element)) return read(element, nullptr);
  if (Origin* known = origins_.find(element)) {
    return insteadOf(element, *known);
  }
  return source ? read(element, source) : PyRef::borrow(element);
}

PyRef Evaluation::addressOf(PyObject* object) {
  const Origin* o = isStandIn(object) || standsForWrapper(object) ? origins_.find(object) : nullptr;
  if (o && o->source && o->twin) object = o->twin.get();  // the program's own tensor
  addresses_.emplace(object, rootCount_);
  return PyRef::steal(PyLong_FromVoidPtr(object));
}

bool Evaluation::settleObject(PyObject* object) {
  const Origin* o = origins_.find(object);
  if (!o || !o->source) return false;
  if (o->source->kind != Source::Kind::Pinned) guard(GuardKind::IdMatch, o->source, object);
  ownToProcess("the id of an object");
  return true;
}

bool Evaluation::settleAddress(PyObject* address) {
  auto* object = static_cast<PyObject*>(PyLong_AsVoidPtr(address));
  if (!settleObject(object)) return false;
  addresses_.erase(object);
  return true;
}

void Evaluation::refuseAddressesIn(PyObject* container) {
  if (addresses_.empty() || PyUnicode_Check(container) || PyBytes_Check(container)) return;
  if (!PyTuple_Check(container) && !PyList_Check(container) && !PyAnySet_Check(container) && !PyDict_Check(container)) return;
  PyRef elements = ownElements(container);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(elements.get()); ++i) refuseAddress(PyList_GET_ITEM(elements.get(), i));
}

/// One container inside another.
struct Evaluation::Deeper {
  explicit Deeper(Evaluation& evaluation) : e(evaluation) {
    if (++e.exposing_ <= kDeepest) return;
    --e.exposing_;
    e.breakHere("unsupported container", "containers inside each other, or inside themselves, go too deep");
  }
  ~Deeper() { --e.exposing_; }
  Deeper(const Deeper&) = delete;
  static constexpr int kDeepest = 100;
  Evaluation& e;
};

PyRef Evaluation::element(PyObject* sequence, Py_ssize_t i) {
  PyObject* raw = PySequence_Fast_GET_ITEM(sequence, i);
  Origin* o = origins_.find(sequence);
  if (!o || o->fresh()) return translate(raw, nullptr);
  if (o->written) return writtenElement(sequence, raw, i);
  builtinLength(sequence);
  return read(raw, sources().sequenceItem(o->source, i));
}

PyRef Evaluation::writtenElement(PyObject* sequence, PyObject* item, Py_ssize_t i) {
  const Origin* o = origins_.find(sequence);
  const std::optional<Py_ssize_t> place = o->contentsGuarded ? std::nullopt : journal_.firstPlace(sequence, i);
  if (!place) {
    readOriginal(sequence);
    return translate(item, nullptr);
  }
  const Source* source = o->source;
  guardOriginalLength(sequence);
  return *place < 0 ? translate(item, nullptr) : read(item, sources().sequenceItem(source, *place));
}

Py_ssize_t Evaluation::builtinLength(PyObject* container) {
  const bool sequence = PyTuple_Check(container) || PyList_Check(container);
  const Py_ssize_t n = sequence ? PySequence_Fast_GET_SIZE(container) : PyDict_Check(container) ? PyDict_GET_SIZE(container) : PySet_GET_SIZE(container);
  Origin* o = origins_.find(container);
  if (!o || o->fresh()) return n;
  if (o->lengthGuarded && (sequence || !o->written)) return n;
  o->lengthGuarded = true;
  if (o->written)
    guardOriginalLength(container);
  else if (sequence)
    guard(GuardKind::SequenceLength, o->source, nullptr, n);
  else if (PyDict_Check(container))
    guard(n ? GuardKind::DictLength : GuardKind::DictEmpty, o->source, nullptr, n);
  else
    know(container);
  return n;
}

void Evaluation::guardKeys(PyObject* dict) {
  Origin* o = origins_.find(dict);
  if (!o || o->fresh() || o->keysGuarded) return;
  o->keysGuarded = true;
  const Source* source = o->source;
  PyRef first = o->written ? journal_.original(dict) : PyRef::borrow(dict), before = itemsInOrder(first.get());
  PyRef keys = PyRef::steal(PyTuple_New(PyList_GET_SIZE(before.get())));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(before.get()); ++k)
    PyTuple_SET_ITEM(keys.get(), k, PyRef::borrow(PyTuple_GET_ITEM(PyList_GET_ITEM(before.get(), k), 0)).release());
  guard(GuardKind::DictKeysMatch, source, keys.get());
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); ++k)
    if (PyObject* key = PyTuple_GET_ITEM(keys.get(), k); !isConstantValue(key)) wrap(key, sources().dictKey(source, k));
}

void Evaluation::know(PyObject* object) {
  Origin* o = origins_.find(object);
  if (!o || o->fresh() || o->contentsGuarded) return;
  if (o->written && !PyDict_Check(object)) {
    readOriginal(object);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    o->contentsGuarded = true;
    const Py_ssize_t n = builtinLength(object);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyRef item = settled(element(object, i).get());
      if (PyList_Check(object)) requireConstant(item);  // it may be written to, and what is read then is what lies in it
      else if (isNumber(item.get())) refuseNumber("in a container that is taken as a whole");
    }
  } else if (PyDict_Check(object)) {
    const bool written = o->written;
    o->contentsGuarded = !written;
    guardKeys(object);
    PyRef keys = itemsInOrder(object);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(keys.get()); ++k) {
      const PyRef item = readDict(object, PyTuple_GET_ITEM(PyList_GET_ITEM(keys.get(), k), 0));
      requireConstant(item ? settled(item.get()) : item);
    }
  } else if (PyAnySet_Check(object)) {
    o->contentsGuarded = true;
    guardSetContents(object, o->source);
  }
}

void Evaluation::guardSetContents(PyObject* contents, const Source* source, bool ordered) {
  PyRef elements = PyRef::steal(PySequence_Tuple(contents));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
    PyObject* element = PyTuple_GET_ITEM(elements.get(), i);
    if (isTensor(element)) breakHere("unsupported container", "a set that holds tensors and existed before");
    pin(element, Why::Container);
  }
  guardCustom(source, ordered ? sameSetContents : sameSetElements, elements.get(), "set contents");
}

int Evaluation::setHoldsTensor(PyObject* set, PyObject* tensor) {
  if (origins_.find(set)->written) breakHere("unsupported container", "a set from outside that was written to is asked for a tensor");
  const Origin* known = origins_.find(tensor);
  if (isStandIn(tensor) && (!known || !known->source)) return 0;  // it is made in this call
  const PyRef real = keyInDict(set, tensor);
  guardCustom(sourceOf(set), sameMembers, addressesIn(set).get(), "members of a set");
  return PySet_Contains(set, real.get());
}

PyRef Evaluation::expose(PyObject* object) {
  refuseAddress(object);
  if (PyAnySet_Check(object)) readOrder(object);
  if (PyRef whole = settled(object); whole.get() != object) return expose(whole.get());
  if (isConstantValue(object)) return PyRef::borrow(object);
  if (isSymbolicNumber(object)) return exposesSymbols_ ? toTorch(object) : plainNumber(object, "C code looks at the number");
  if (PySlice_Check(object)) return exposeSlice(object);
  if (isTensor(object)) {
    if (isNumber(object) && !exposesNumbers_) refuseNumber("given to C code");
    Origin* o = origins_.find(object);
    return o && o->twin && !isStandIn(object) ? o->twin : PyRef::borrow(object);
  }
  if (isTensorObject(object))
    if (Origin* o = origins_.find(object); o && o->twin) return insteadOf(object, *o);
  DictWalk::Kind kind{};
  if (PyTuple_Check(object) || PyList_Check(object)) return exposeSequence(object);
  if (PyDict_Check(object)) return exposeDict(object);
  if (PyAnySet_Check(object)) {
    know(object);
  } else if (PyObject* dict = knownDictOf(*this, object, &kind)) {
    static constexpr const char* kNames[] = {"keys", "values", "items"};
    if (kind == DictWalk::Kind::Keys) return guardKeys(dict), PyRef::borrow(object);
    PyRef exposed = exposeDict(dict);
    if (exposed.get() != dict) return copied(object, PyRef::steal(PyObject_CallMethod(exposed.get(), kNames[static_cast<int>(kind)], nullptr)));
  } else {
    requireKnown(object);
  }
  return PyRef::borrow(object);
}

PyRef Evaluation::copied(PyObject* object, PyRef copy) {
  PyObject* key = copy.get();
  copies_[key] = {copy, PyRef::borrow(object)};
  return copy;
}

PyRef Evaluation::exposeSequence(PyObject* object) {
  const Deeper deeper(*this);
  const Py_ssize_t n = builtinLength(object);
  std::vector<PyRef> items;
  bool changed = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    items.push_back(expose(element(object, i).get()));
    changed |= items.back().get() != PySequence_Fast_GET_ITEM(object, i);
  }
  if (!changed) return PyRef::borrow(object);
  PyRef tuple = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, items[static_cast<size_t>(i)].release());
  if (PyList_Check(object)) return copied(object, PyRef::steal(PySequence_List(tuple.get())));
  if (PyTuple_CheckExact(object)) return copied(object, tuple);
  PyRef args = PyRef::steal(PyTuple_Pack(1, tuple.get()));
  PyRef copy = PyRef::steal(PyTuple_Type.tp_new(Py_TYPE(object), args.get(), nullptr));
  if (!copy) {
    clearError();
    breakHere("unsupported container", std::string("a ") + Py_TYPE(object)->tp_name + " that holds tensors");
  }
  return copied(object, copy);
}

PyRef Evaluation::exposeDict(PyObject* object) {
  const Deeper deeper(*this);
  guardKeys(object);
  PyRef items = itemsInOrder(object), copy = PyRef::steal(PyDict_New());
  bool changed = false;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items.get()); ++k) {
    PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), k), 0), *raw = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), k), 1);
    PyRef item = readDict(object, key);
    if (!item) return clearError(), PyRef::borrow(object);
    item = expose(item.get());
    changed |= item.get() != raw;
    PyDict_SetItem(copy.get(), key, item.get());
  }
  if (!changed) return PyRef::borrow(object);
  // A copy of a dict subclass for C code: the plain contents in the same order, as an OrderedDict where that is asked for.
  if (!PyODict_Check(object)) return copied(object, copy);
  PyRef ordered = PyRef::steal(PyODict_New());
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &value);) PyODict_SetItem(ordered.get(), key, value);
  return copied(object, ordered);
}

PyRef Evaluation::original(PyRef value) {
  if (!value || copies_.empty()) return value;
  if (auto found = copies_.find(value.get()); found != copies_.end()) return found->second.second;
  if (Py_REFCNT(value.get()) > 1 || !PyObject_IS_GC(value.get()) || isTensor(value.get())) return value;
  if (PyTuple_CheckExact(value.get()) || PyList_CheckExact(value.get())) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value.get()); ++i) {
      PyObject** slot = PySequence_Fast_ITEMS(value.get()) + i;
      PyRef part = original(PyRef::steal(std::exchange(*slot, Py_NewRef(Py_None))));
      PyRef::steal(std::exchange(*slot, part.release()));
    }
    return value;
  }
  if (PyDict_CheckExact(value.get())) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(value.get(), &at, &key, &item);)
      if (auto found = copies_.find(item); found != copies_.end()) PyDict_SetItem(value.get(), key, found->second.second.get());
    return value;
  }
  struct Search {
    const Evaluation& e;
    bool found = false;
  } search{*this};
  if (Py_TYPE(value.get())->tp_traverse)
    Py_TYPE(value.get())->tp_traverse(value.get(), [](PyObject* part, void* data) {
      auto& s = *static_cast<Search*>(data);
      s.found = s.found || s.e.copies_.count(part) > 0;
      return 0;
    }, &search);
  if (search.found)
    breakHere("unsupported call", std::string("C code keeps a container that holds tensors in a ") + Py_TYPE(value.get())->tp_name);
  return value;
}

}  // namespace fusebox::capture
