// iter, next, send and the iterators that only the evaluator can advance.
#include <algorithm>
#include <functional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/evaluation/iterator_ahead.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/lazy_iterators.h"
#include "engine/capture/evaluation/suspended_frame.h"
#include "engine/capture/evaluation/taken_iterators.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/value_kinds.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

struct LazyObject {
  PyObject_HEAD
  LazyIterator* iterator;
  std::shared_ptr<IteratorPool> pool;
};

bool misused = false;

/// The program has dropped the last reference: a generator that has code left to run is closed before the next instruction.
void lazyDealloc(PyObject* self) {
  auto* lazy = reinterpret_cast<LazyObject*>(self);
  std::unique_ptr<LazyIterator> iterator(lazy->iterator);
  std::shared_ptr<IteratorPool> pool = std::move(lazy->pool);
  lazy->pool.~shared_ptr();
  if (pool->open && iterator->runsWhenClosed()) {
    pool->abandoned.push_back(std::move(iterator));
  } else {
    pool->all.erase(iterator.get());
    iterator.reset();
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* lazyNext(PyObject*) {
  misused = true;
  PyErr_SetString(PyExc_SystemError, "an iterator that belongs to a capture was advanced outside of it");
  return nullptr;
}

PyObject* lazyMethodOutside(PyObject* self, PyObject*) { return lazyNext(self); }

PyMethodDef kLazyMethods[] = {{"send", lazyMethodOutside, METH_VARARGS, nullptr},
                              {"throw", lazyMethodOutside, METH_VARARGS, nullptr},
                              {"close", lazyMethodOutside, METH_VARARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyTypeObject* lazyType() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(lazyDealloc)},
                                {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(lazyNext)},
                                {Py_tp_methods, kLazyMethods},
                                {0, nullptr}};
  static PyType_Spec spec = {"fusebox.suspended_iterator", sizeof(LazyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

}  // namespace

PyRef makeLazy(Evaluation& e, std::unique_ptr<LazyIterator> iterator) {
  constexpr size_t kMost = 500;  // each may go through the one before
  if (e.iterators().all.size() >= kMost) e.breakHere("iterator", "more iterators are alive than are followed");
  auto* object = reinterpret_cast<LazyObject*>(lazyType()->tp_alloc(lazyType(), 0));
  iterator->birth = e.rootCount();
  e.iterators().all.insert(iterator.get());
  new (&object->pool) std::shared_ptr<IteratorPool>(e.iteratorPool());
  object->iterator = iterator.release();
  return PyRef::steal(reinterpret_cast<PyObject*>(object));
}

const void* lazyMethod(const char* name) {
  for (const PyMethodDef& method : kLazyMethods)
    if (method.ml_name && std::string_view(method.ml_name) == name) return &method;
  return nullptr;
}

LazyIterator* lazyOf(PyObject* object) {
  return Py_TYPE(object) == lazyType() ? reinterpret_cast<LazyObject*>(object)->iterator : nullptr;
}

bool lazyWasMisused() { return std::exchange(misused, false); }

int LazyIterator::send(Evaluation& e, PyObject*, PyRef* result) {
  *result = next(e);
  if (*result) return 1;
  if (PyErr_Occurred()) return -1;
  *result = PyRef::borrow(Py_None);
  return 0;
}

int LazyIterator::throwInto(Evaluation& e, PyObject* exception, PyRef*) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  return -1;
}

PyRef Evaluation::lazyGetAttr(PyObject* object, PyObject* name, PyRef* self) {
  PyTypeObject* shown = lazyOf(object)->type();
  static PyObject* const kClass = internedName("__class__");
  if (name == kClass) return pin(reinterpret_cast<PyObject*>(shown), Why::Class);
  if (!_PyType_Lookup(shown, name)) {
    PyErr_Format(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", shown->tp_name, name);
    return {};
  }
  PyObject* own = _PyType_Lookup(lazyType(), name);
  const bool works = own && (Py_IS_TYPE(own, &PyMethodDescr_Type) || PyUnicode_CompareWithASCIIString(name, "__next__") == 0 ||
                             PyUnicode_CompareWithASCIIString(name, "__iter__") == 0);
  if (!works) breakHere("iterator", std::string("attribute ") + utf8Of(name) + " of a " + shown->tp_name + " is read");
  // The method of the type that it stands for: it may be called when the iterator is CPython's again.
  if (PyObject* theirs = _PyType_Lookup(shown, name); self && (Py_IS_TYPE(theirs, &PyWrapperDescr_Type) || Py_IS_TYPE(theirs, &PyMethodDescr_Type))) {
    *self = PyRef::borrow(object);
    return pin(theirs, Why::Class);
  }
  PyRef bound = PyRef::steal(Py_TYPE(own)->tp_descr_get(own, object, reinterpret_cast<PyObject*>(lazyType())));
  adopt(bound.get());
  return bound;
}

bool Evaluation::handsOver(PyObject* callable, PyObject* const* args, size_t count) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  return PyFunction_Check(callable) && std::any_of(args, args + count, [](PyObject* o) { return lazyOf(o) != nullptr; });
}

void Evaluation::closeAbandoned() {
  for (std::unique_ptr<LazyIterator>& iterator : std::exchange(iterators_->abandoned, {})) {
    iterators_->all.erase(iterator.get());
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyRef error[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(traceback)};
    if (!iterator->letGo(*this)) {
      clearError();
      breakHere("generator", "a generator that is closed because nobody refers to it any more raises an exception");
    }
    iterator.reset();
    closeAbandoned();  // what only it referred to
    PyErr_Restore(error[0].release(), error[1].release(), error[2].release());
  }
}

void Evaluation::requireNoneSuspended(const RecipeMaker* recipes) {
  int64_t birth = -1;
  PyTypeObject* type = nullptr;
  for (LazyIterator* iterator : iterators_->all)
    if (!(recipes && recipes->hasMade(iterator)) && iterator->runsWhenClosed() && (birth < 0 || iterator->birth < birth)) {
      birth = iterator->birth;
      type = iterator->type();
    }
  if (type)
    throw CaptureBreak{{"generator across a graph break", std::string("a suspended ") + type->tp_name + " with code left to run is alive where capture stops",
                        "Consume or close it before.", place(), stackPlaces()}, birth};
}

void Evaluation::unwind(Frame& frame) {
  auto drop = [](std::vector<PyRef>& slots) {
    while (!slots.empty()) slots.pop_back();
  };
  drop(frame.stack);
  if (!iterators_->abandoned.empty()) closeAbandoned();
  // The traceback holds the frame.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  frame.locals.clear();
  PyErr_Restore(type, value, traceback);
  if (!iterators_->abandoned.empty())
    breakHere("generator", "an exception leaves a frame that holds a suspended generator, which lives as long as the exception");
}

namespace {

/// Whether something that is wanted is among what an object refers to, as the garbage collector sees it, down to `depth` objects.
bool refersTo(PyObject* object, int depth, const std::function<bool(PyObject*)>& wanted) {
  if (wanted(object)) return true;
  if (depth == 0 || !PyObject_IS_GC(object) || PyType_Check(object) || PyModule_Check(object) || !Py_TYPE(object)->tp_traverse) return false;
  struct Search {
    int depth;
    const std::function<bool(PyObject*)>& wanted;
  } search{depth - 1, wanted};
  return Py_TYPE(object)->tp_traverse(object, [](PyObject* part, void* data) {
    auto& s = *static_cast<Search*>(data);
    return refersTo(part, s.depth, s.wanted) ? 1 : 0;
  }, &search) != 0;
}

bool runsCodeWhenItDies(PyObject* o) {
  static PyObject* const kDel = internedName("__del__");
  return ownsFrame(o) || (isPythonClass(Py_TYPE(o)) && _PyType_Lookup(Py_TYPE(o), kDel));
}

constexpr int kHolding = 2;  // an instance, its __dict__

/// The same of what an exception keeps alive: the frames of its traceback, which is None where it was taken off.
bool exceptionHoldsGenerator(PyObject* exception) {
  bool found = false;
  PyRef at = PyRef::steal(PyException_GetTraceback(exception));
  for (; at && PyTraceBack_Check(at.get()) && !found; at = PyRef::borrow(reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(at.get())->tb_next)))
    found = refersTo(reinterpret_cast<PyObject*>(reinterpret_cast<PyTracebackObject*>(at.get())->tb_frame), 1, runsCodeWhenItDies);
  return found;
}

/// Whether the program has weak references to an object that `owners` references keep alive, or to what it alone keeps alive.
bool isMissed(PyObject* object, Py_ssize_t owners, int depth) {
  if (Py_REFCNT(object) > owners || PyType_Check(object) || PyModule_Check(object)) return false;
  if (isWeaklyReferred(object)) return true;
  if (depth == 0 || !PyObject_IS_GC(object) || !Py_TYPE(object)->tp_traverse) return false;
  int deeper = depth - 1;
  return Py_TYPE(object)->tp_traverse(object, [](PyObject* part, void* d) { return isMissed(part, 1, *static_cast<int*>(d)) ? 1 : 0; }, &deeper) != 0;
}

/// Whether a weak reference notices when the frame lets go of an object of its slots: then nothing else has it when a segment begins.
bool isMissedByWeakReferences(const Frame& root, PyObject* object) {
  constexpr int kDepth = 3;            // a list, an instance, its __dict__
  constexpr Py_ssize_t kReferences = 3;  // of a slot: CPython's frame, the state that the segment begins with, the evaluator's frame
  const auto count = [object](const std::vector<PyRef>& slots) {
    return std::count_if(slots.begin(), slots.end(), [object](const PyRef& slot) { return slot.get() == object; });
  };
  return isMissed(object, kReferences * (count(root.locals) + count(root.stack)), kDepth);
}

}  // namespace

void Evaluation::findHolders(const Frame& root) {
  if (handled_ && PyExceptionInstance_Check(handled_.get()) && exceptionHoldsGenerator(handled_.get())) holders_.push_back({handled_.get(), false});
  for (const auto* slots : {&root.locals, &root.stack})
    for (const PyRef& slot : *slots) {
      PyObject* o = slot.get();
      if (!o || o == handled_.get()) continue;
      const bool isException = PyExceptionInstance_Check(o), isMissed = !isException && isMissedByWeakReferences(root, o);
      if (isMissed || (isException ? exceptionHoldsGenerator(o) : refersTo(o, kHolding, runsCodeWhenItDies))) holders_.push_back({o, isMissed});
    }
}

/// A real generator is closed when the frame lets go of it, which only the instruction itself can do, where that runs code of the program.
void Evaluation::refuseDrops(const Frame& root) {
  const auto runs = [this](PyObject* o) {
    if (!ownsFrame(o)) return runsCodeWhenItDies(o);
    const LazyIterator* suspended = advancerOf(o);
    return !suspended || suspended->runsWhenClosed();
  };
  for (const auto& [holder, isMissed] : holders_) {
    auto holds = [object = holder](const PyRef& slot) { return slot.get() == object; };
    if (PyRef::steal(PyErr_GetHandledException()).get() == holder) continue;
    if (std::any_of(root.locals.begin(), root.locals.end(), holds) || std::any_of(root.stack.begin(), root.stack.end(), holds)) continue;
    if (isMissed || PyExceptionInstance_Check(holder) || refersTo(holder, kHolding, runs))
      breakHere("generator", std::string("a ") + Py_TYPE(holder)->tp_name + " that is, or holds, a suspended generator, an object with __del__ or one with weak references is let go of");
  }
}

/// A frame that ends lets go of its variables in their order: of those that real frame has, which nothing but its own instructions changes.
void Evaluation::refuseOtherOrder(const Frame& root) {
  if (holders_.empty()) return;
  requireNoneSuspended();
  for (size_t i = 0; i < root.locals.size() && i < state_.locals.size(); ++i) {
    if (root.locals[i] == state_.locals[i]) continue;
    for (PyObject* object : {root.locals[i].get(), state_.locals[i].get()})
      if (object && std::any_of(holders_.begin(), holders_.end(), [object](const Holder& h) { return h.object == object; }))
        breakHere("generator", std::string("a frame ends that has put a ") + Py_TYPE(object)->tp_name + " into another variable, which is or holds a suspended generator or an object whose end is noticed");
  }
}

void Evaluation::refuseMoving(PyObject* container) {
  constexpr int kDepth = 3;  // enumerate, zip, the iterator
  auto refuse = [&](PyObject* iterator) {
    if (refersTo(iterator, kDepth, [container](PyObject* o) { return o == container; }))
      breakHere("iterator from outside", std::string("a ") + Py_TYPE(container)->tp_name + " that an iterator goes through changes its keys");
  };
  for (const auto& a : ahead_) refuse(a->iterator.get());
  for (const PyRef& slot : root_->stack)
    if (slot && PyIter_Check(slot.get()) && !lazyOf(slot.get())) refuse(slot.get());
}

PyRef Evaluation::walkOver(PyObject* object, PyTypeObject* type) {
  using Kind = DictWalk::Kind;
  const getiterfunc make = type->tp_iter;
  if (make == PyList_Type.tp_iter) return makeLazy(*this, std::make_unique<SequenceWalk>(object, false));
  if (make == PyTuple_Type.tp_iter && !isConstantValue(object)) return makeLazy(*this, std::make_unique<SequenceWalk>(object, false));
  if (make == PyDict_Type.tp_iter || make == PyODict_Type.tp_iter) {
    guardKeys(object);
    return makeLazy(*this, std::make_unique<DictWalk>(object, Kind::Keys, false));
  }
  if (make == PySet_Type.tp_iter) {
    know(object);
    return makeLazy(*this, std::make_unique<SetWalk>(object));
  }
  if (isDequeFromOutside(object)) return makeLazy(*this, std::make_unique<DequeWalk>(object));
  Kind kind{};
  if (PyObject* dict = knownDictOf(*this, object, &kind)) {
    guardKeys(dict);
    return makeLazy(*this, std::make_unique<DictWalk>(dict, kind, false));
  }
  return {};
}

PyRef Evaluation::iterBuiltin(PyObject* object, PyTypeObject* owner) {
  if (PyRef walk = walkOver(object, owner)) return walk;
  requireKnown(object);
  PyRef iterator = PyRef::steal(owner->tp_iter ? owner->tp_iter(object) : PyObject_GetIter(object));
  if (iterator && iterator.get() != object) adoptIterator(iterator.get());
  return iterator;
}

void Evaluation::readOrder(PyObject* set) {
  PyObject* element;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &element, &hash);)
    if (!PyLong_Check(element) && !PyFloat_Check(element)) return ownToProcess("the order of a set of texts or objects");
}

PyRef Evaluation::iter(PyObject* object) {
  if (isSymbolicText(object)) return iter(settled(object).get());
  if (isNumber(object)) refuseNumber("gone through");
  if (LazyIterator* lazy = lazyOf(object)) {
    if (lazy->type()->tp_iter) return PyRef::borrow(object);
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not iterable", lazy->type()->tp_name);
    return {};
  }
  if (Py_TYPE(object)->tp_iter == PyObject_SelfIter && !isChangeable(Py_TYPE(object))) return PyRef::borrow(object);
  if (PyAnySet_Check(object)) readOrder(object);
  PyTypeObject* type = Py_TYPE(object);
  if (answersTorchFunctions(object)) return methodOfSubclass(*this, "__iter__", {object});
  if (isTensor(object) && torchCalls_ && tensorOf(object).dim() > 0) {
    // A call for each element, which a graph can show.
    PyRef items = PyRef::steal(PyTuple_New(tensorOf(object).sym_size(0).guard_int(__FILE__, __LINE__)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      PyRef item = getItem(object, PyRef::steal(PyLong_FromSsize_t(i)).get());
      if (!item) return {};
      PyTuple_SET_ITEM(items.get(), i, item.release());
    }
    adopt(items.get());
    return iter(items.get());
  }
  if (isTensor(object)) return checked(PyObject_GetIter(object));
  if (Arrays::is(object) && !isArrayScalar(object)) {
    if (arrays_->length(object) >= 0) return makeLazy(*this, std::make_unique<ItemWalk>(object));
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
    return {};
  }
  if (isChangeable(type)) {
    static PyObject* const kIter = internedName("__iter__");
    PyObject* method = typeLookup(type, kIter);
    if (method && (PyFunction_Check(method) || !Py_IS_TYPE(method, &PyWrapperDescr_Type))) {
      PyRef bound = getSpecial(object, kIter), made = bound ? call(bound.get(), nullptr, 0, nullptr) : PyRef();
      return expect(made, made && (lazyOf(made.get()) || Py_TYPE(made.get())->tp_iternext), "__iter__");
    }
    if (!method) {
      static PyObject* const kGetItem = internedName("__getitem__");
      if (typeLookup(type, kGetItem)) return makeLazy(*this, std::make_unique<ItemWalk>(object));
    }
  }
  if (Py_IS_TYPE(object, &PyDictProxy_Type)) return iter(proxied(object).get());
  return iterBuiltin(object, type);
}

void Evaluation::adoptIterator(PyObject* iterator) {
  Origin& o = origins_.add(iterator, nullptr);
  o.birth = rootCount_;
}

void Evaluation::willConsume(PyObject* object) {
  if (!PyIter_Check(object) || lazyOf(object)) return;
  Origin* o = origins_.find(object);
  if (!o || o->source)
    breakHere("iterator from outside", std::string("a ") + Py_TYPE(object)->tp_name + " that was made before this segment is advanced");
}

PyRef Evaluation::next(PyObject* iterator) {
  if (LazyIterator* lazy = lazyOf(iterator)) {
    PyRef keep = PyRef::borrow(iterator);
    if (lazy->type()->tp_iternext) return lazy->next(*this);
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", lazy->type()->tp_name);
    return {};
  }
  PyTypeObject* type = Py_TYPE(iterator);
  if (isChangeable(type)) {
    static PyObject* const kNext = internedName("__next__");
    PyObject* method = typeLookup(type, kNext);
    if (method && PyFunction_Check(method)) {
      PyObject* args[] = {iterator};
      pin(method, Why::Class);
      PyRef item = call(method, args, 1, nullptr);
      if (!item && PyErr_ExceptionMatches(PyExc_StopIteration)) clearError();
      return item;
    }
  }
  if (!PyIter_Check(iterator)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", type->tp_name);
    return {};
  }
  if (Origin* o = origins_.find(iterator); o && o->source) return nextOutside(iterator, o->source);
  // Its frame would run in CPython, unguarded, on what only the evaluator can advance.
  if (ownsFrame(iterator)) breakHere("generator", "a generator whose frame belongs to CPython is advanced");
  willConsume(iterator);
  PyRef item = PyRef::steal(PyIter_Next(iterator));
  throwIfBreak();
  return item ? translate(item.get(), nullptr) : PyRef();
}

Evaluation::Ahead& Evaluation::aheadOf(PyObject* iterator, const Source* source) {
  for (auto& a : ahead_)
    if (a->iterator.get() == iterator) return *a;
  auto made = std::make_unique<Ahead>();
  made->iterator = made->rest = PyRef::borrow(iterator);
  made->source = source;
  forEachIteratorPart(iterator, [&](PyObject* part, bool isIterator) {
    if (!isIterator) return;
    for (auto& other : ahead_)
      for (PyRef& p : other->parts)
        if (p.get() == part) breakHere("iterator from outside", "two iterators that were made before this segment share a third");
    made->parts.push_back(PyRef::borrow(part));
  });
  return *ahead_.emplace_back(std::move(made));
}

/// What lies ahead is read from the containers as they were when the segment began.
void Evaluation::requireUnwritten(const Ahead& a) {
  bool written = false;
  forEachIteratorPart(a.rest.get(), [&](PyObject* part, bool isIterator) {
    Origin* o = isIterator ? nullptr : origins_.find(part);
    written = written || (o && o->written);
  });
  // Copies of iterators over dicts and sets go through lists.
  forEachIteratorPart(a.iterator.get(), [&](PyObject* part, bool isIterator) {
    const std::string_view kind = isIterator ? Py_TYPE(part)->tp_name : "";
    if (!kind.starts_with("dict_") && !kind.starts_with("odict_") && !kind.starts_with("set_")) return;
    PyObject* through = nullptr;  // null: it is exhausted
    Py_TYPE(part)->tp_traverse(part, [](PyObject* held, void* found) -> int {
      const bool isIt = PyDict_Check(held) || PyAnySet_Check(held);
      if (isIt) *static_cast<PyObject**>(found) = held;
      return isIt;
    }, &through);
    for (const Journal::Entry& e : journal_.entries()) written = written || (through && e.container.get() == through);
  });
  if (written) breakHere("iterator from outside", "what an iterator goes through was written to");
}

LazyIterator* Evaluation::advancerOf(PyObject* iterator) {
  if (LazyIterator* lazy = lazyOf(iterator)) return lazy;
  if (LazyIterator* taken = takenIterators_->find(iterator)) return taken;
  const Origin* o = origins_.find(iterator);
  const bool isAhead = std::any_of(ahead_.begin(), ahead_.end(), [iterator](const auto& a) { return a->iterator.get() == iterator; });
  if (isAhead || !o || !o->source || (!ownsFrame(iterator) && upcoming(iterator))) return nullptr;
  return takenIterators_->take(iterator, o->source);
}

PyRef Evaluation::nextOutside(PyObject* iterator, const Source* source) {
  if (LazyIterator* taken = advancerOf(iterator)) return taken->next(*this);
  Ahead& a = aheadOf(iterator, source);
  if (a.exhausted) return {};
  requireUnwritten(a);
  PyRef next = upcoming(a.rest.get());
  if (!next)
    breakHere("iterator from outside", std::string("a ") + Py_TYPE(iterator)->tp_name + " that was made before this segment is advanced");
  keepAlive_.push_back(next);
  const Source* ahead = sources().derived(Source::Kind::Upcoming, a.source);
  guard(GuardKind::SequenceLength, ahead, nullptr, PyTuple_GET_SIZE(next.get()));
  journal_.advanced(iterator, origins_.find(iterator)->source);
  a.exhausted = PyTuple_GET_SIZE(next.get()) == 0;
  if (a.exhausted) return {};
  a.rest = PyRef::borrow(PyTuple_GET_ITEM(next.get(), 1));
  a.source = sources().sequenceItem(ahead, 1);
  PyObject* item = PyTuple_GET_ITEM(next.get(), 0);
  const Source* itemSource = sources().sequenceItem(ahead, 0);
  Frame* f = frame_;
  if (f && f->isRoot && f->instruction().op == Op::FOR_ITER && f->peek(1).get() == iterator && f->unreadItem == nullptr) {
    f->unreadItem = itemSource;  // the instructions that follow may not look at it
    return PyRef::borrow(item);
  }
  return wrap(item, itemSource);
}

namespace {

/// The position behind the instructions that assign one value to locals and do nothing else; -1: they do something else.
int behindTarget(const DecodedCode& code, int pc) {
  if (pc < 0 || static_cast<size_t>(pc) >= code.instructions.size()) return -1;
  const Instruction& i = code.instructions[static_cast<size_t>(pc)];
  if (i.op == Op::STORE_FAST) return pc + 1;
  if (i.op != Op::UNPACK_SEQUENCE) return -1;
  int next = pc + 1;
  for (int k = 0; k < i.arg && next >= 0; ++k) next = behindTarget(code, next);
  return next;
}

/// Whether UNPACK_SEQUENCE at `pc` (and inside) meets tuples and lists of the right lengths.
bool unpacks(const DecodedCode& code, int& pc, PyObject* value) {
  const Instruction& i = code.instructions[static_cast<size_t>(pc++)];
  if (i.op == Op::STORE_FAST) return true;
  if (!(PyTuple_CheckExact(value) || PyList_CheckExact(value)) || PySequence_Fast_GET_SIZE(value) != i.arg) return false;
  for (int k = 0; k < i.arg; ++k)
    if (!unpacks(code, pc, PySequence_Fast_GET_ITEM(value, k))) return false;
  return true;
}

}  // namespace

void Evaluation::assignParts(Frame& root, PyObject* value, const Source* source) {
  const Instruction& i = root.instruction();
  ++root.pc;
  if (i.op == Op::STORE_FAST) {
    const auto local = static_cast<size_t>(i.arg);
    root.locals[local] = PyRef::borrow(value);
    root.unread[local] = true;
    root.unreadSource[local] = source;
    return;
  }
  guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(value)));
  guard(GuardKind::SequenceLength, source, nullptr, i.arg);
  for (int k = 0; k < i.arg; ++k) assignParts(root, PySequence_Fast_GET_ITEM(value, k), sources().sequenceItem(source, k));
}

bool Evaluation::leaveUnread(Frame& f, size_t index, PyObject* value, const Source* source) {
  const bool isNumber = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
  if (!isNumber && !isUntraceable(value)) return false;
  // What reads it is a break, which another tensor is not.
  if (!isNumber) guardCustom(source, [](PyObject* now, PyObject*) { return isUntraceable(now); }, nullptr, "a sparse or quantised tensor");
  f.unreadStack.push_back({index, value, source});
  return true;
}

bool Evaluation::pushUnread(Frame& f, int index) {
  const auto i = static_cast<size_t>(index);
  PyObject* value = f.locals[i].get();
  if (!value || !leaveUnread(f, f.stack.size(), value, unreadSource(f, i))) return false;
  f.push(PyRef::borrow(value));
  return true;
}

namespace {

/// How far from the top of the stack an instruction may look; all of it where that is not known here.
size_t reach(const Instruction& i) {
  switch (i.op) {
    case Op::LOAD_CONST: case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK: case Op::LOAD_GLOBAL: case Op::LOAD_DEREF: case Op::PUSH_NULL:
    case Op::PRECALL: case Op::KW_NAMES: case Op::NOP: case Op::CACHE: case Op::RESUME: case Op::JUMP:
      return 0;
    case Op::LOAD_ATTR: case Op::LOAD_METHOD: case Op::POP_TOP: case Op::STORE_FAST: case Op::GET_ITER: case Op::FOR_ITER:
    case Op::UNARY_NEGATIVE: case Op::UNARY_NOT: case Op::POP_JUMP_IF_FALSE: case Op::POP_JUMP_IF_TRUE:
      return 1;
    case Op::BINARY_OP: case Op::BINARY_SUBSCR: case Op::COMPARE_OP: case Op::IS_OP: case Op::CONTAINS_OP: case Op::STORE_ATTR:
      return 2;
    case Op::CALL: return static_cast<size_t>(i.arg) + 2;
    case Op::BUILD_TUPLE: case Op::BUILD_LIST: return static_cast<size_t>(i.arg);
    default: return SIZE_MAX;
  }
}

}  // namespace

void Evaluation::readOperands(Frame& f) {
  if (f.unreadStack.empty()) return;
  const size_t n = reach(f.instruction()), first = n >= f.stack.size() ? 0 : f.stack.size() - n;
  std::erase_if(f.unreadStack, [&](const Frame::UnreadEntry& entry) {
    if (entry.index >= f.stack.size() || f.stack[entry.index].get() != entry.value) return true;  // unwound
    if (entry.index < first) return false;
    f.stack[entry.index] = wrap(entry.value, entry.source);
    return true;
  });
}

bool Evaluation::assignUnread(Frame& root, PyObject* value, const Source* source) {
  if (behindTarget(*root.decoded, root.pc) < 0) return false;
  int pc = root.pc;
  if (!unpacks(*root.decoded, pc, value)) return false;
  // A list that this segment wrote to holds other things than it did.
  if (Origin* o = origins_.find(value); o && (o->written || o->fresh())) return false;
  assignParts(root, value, source);
  return true;
}

bool Evaluation::isAwaiting(PyObject* coroutine) {
  const auto* suspended = static_cast<const SuspendedFrame*>(advancerOf(coroutine));
  return suspended && suspended->isAwaiting();
}

int Evaluation::send(PyObject* receiver, PyObject* value, PyRef* result) {
  if (LazyIterator* lazy = advancerOf(receiver)) {
    PyRef keep = PyRef::borrow(receiver);
    return lazy->send(*this, value, result);
  }
  if (PyCoro_CheckExact(receiver)) breakHere("generator from outside", "a coroutine that was made before this segment is awaited");
  if (value != Py_None) breakHere("generator from outside", "a value is sent into a generator that was made before this segment");
  *result = next(receiver);
  if (*result) return 1;
  if (PyErr_Occurred()) return -1;
  *result = PyRef::borrow(Py_None);
  return 0;
}

}  // namespace fusebox::capture
