#include "engine/capture/evaluation/taken_iterators.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/pickled_parts.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/lazy_iterators.h"
#include "engine/capture/evaluation/suspended_frame.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

using PartList = std::vector<PyRef>;
using LazyPtr = std::unique_ptr<LazyIterator>;

LazyPtr zipOf(Evaluation&, PartList parts) {
  const bool strict = !parts.empty() && parts.back().get() == Py_True;
  if (strict) parts.pop_back();
  return std::make_unique<ZipIterator>(std::move(parts), strict);
}

LazyPtr enumerateOf(Evaluation&, PartList parts) { return std::make_unique<EnumerateIterator>(std::move(parts[0]), std::move(parts[1])); }

LazyPtr mapOf(Evaluation&, PartList parts) {
  PyRef function = std::move(parts.front());
  parts.erase(parts.begin());
  return std::make_unique<MapIterator>(std::move(function), std::move(parts));
}

LazyPtr filterOf(Evaluation&, PartList parts) { return std::make_unique<FilterIterator>(std::move(parts[0]), std::move(parts[1])); }

LazyPtr chainOf(Evaluation&, PartList parts) {
  parts.resize(2);
  return std::make_unique<ChainIterator>(std::move(parts[0]), std::move(parts[1]));
}

/// enumerate has no way to be given a count; this is how it begins in all versions of CPython that there are here.
struct EnumerateObject {
  PyObject_HEAD
  Py_ssize_t index;
};

bool setCount(PyObject* iterator, PyObject* const* state, Py_ssize_t) {
  const Py_ssize_t count = PyLong_AsSsize_t(state[0]);
  if (PyErr_Occurred()) return false;
  reinterpret_cast<EnumerateObject*>(iterator)->index = count;
  return true;
}

bool setPickled(PyObject* iterator, PyObject* const* state, Py_ssize_t count) {
  PyRef parts = PyRef::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(parts.get(), i, Py_NewRef(state[i]));
  return static_cast<bool>(setPickledState(iterator, parts.get()));
}

/// The kinds besides generators: how the evaluator's is made of the parts, and how the program's is given a state where it has one of its own.
struct Takeable {
  PyTypeObject* type;
  LazyPtr (*make)(Evaluation&, PartList);
  bool (*restore)(PyObject* iterator, PyObject* const* state, Py_ssize_t count);
};

const Takeable* takeableKind(PyObject* iterator) {
  static const Takeable kinds[] = {{&PyZip_Type, zipOf, nullptr}, {&PyEnum_Type, enumerateOf, setCount}, {&PyMap_Type, mapOf, nullptr},
                               {&PyFilter_Type, filterOf, nullptr}, {itertoolsType("chain"), chainOf, setPickled}};
  for (const Takeable& kind : kinds)
    if (Py_IS_TYPE(iterator, kind.type)) return &kind;
  return nullptr;
}

/// The arguments of what pickling calls, and then its state or what that consists of.
PyRef pickledAsOne(PyObject* iterator) {
  PyRef pickled = pickledParts(iterator);
  if (!pickled || !PyTuple_Check(pickled.get()) || PyTuple_GET_SIZE(pickled.get()) < 2) return clearError(), PyRef();
  PyRef parts = PyRef::borrow(PyTuple_GET_ITEM(pickled.get(), 1));
  PyObject* state = PyTuple_GET_SIZE(pickled.get()) > 2 ? PyTuple_GET_ITEM(pickled.get(), 2) : Py_None;
  if (state == Py_None) return parts;
  PyRef rest = PyTuple_CheckExact(state) ? PyRef::borrow(state) : PyRef::steal(PyTuple_Pack(1, state));
  return PyRef::steal(PySequence_Concat(parts.get(), rest.get()));
}

PyObject* restoreIterator(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const bool done = ownsFrame(args[0]) ? restoreGenerator(args[0], args + 1, count - 1) : takeableKind(args[0])->restore(args[0], args + 1, count - 1);
  return done ? Py_NewRef(Py_None) : nullptr;
}

PyRef restoreFunction() {
  static PyMethodDef method = {"restore_iterator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(restoreIterator)), METH_FASTCALL, nullptr};
  static PyObject* const function = PyCFunction_New(&method, nullptr);
  return PyRef::borrow(function);
}

}  // namespace

PyRef partsOfIterator(PyObject* iterator) {
  if (ownsFrame(iterator)) return generatorParts(iterator);
  return takeableKind(iterator) ? pickledAsOne(iterator) : PyRef();
}

TakenIterators::~TakenIterators() = default;

LazyIterator* TakenIterators::find(PyObject* iterator) const {
  const auto at = std::find_if(taken_.begin(), taken_.end(), [iterator](const Taken& t) { return t.iterator.get() == iterator; });
  return at == taken_.end() ? nullptr : at->by.get();
}

std::unique_ptr<LazyIterator> TakenIterators::ofGenerator(PyObject* parts, const Source* source, bool isCoroutine) {
  if (PyTuple_GET_SIZE(parts) == 0) return std::make_unique<SuspendedFrame>(nullptr, true, isCoroutine);
  const auto part = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(parts, i); };
  const auto sourceOf = [&](Py_ssize_t i) { return e_.sources().sequenceItem(source, i); };
  PyRef function = e_.wrap(part(1), sourceOf(1));
  if (PyFunction_GET_CODE(function.get()) != part(0)) e_.breakHere("iterator from outside", "a generator whose function has been given other code since is advanced");
  e_.guard(GuardKind::IdMatch, sourceOf(0), part(0));
  e_.guard(GuardKind::ConstantMatch, sourceOf(2), part(2));
  e_.guard(GuardKind::ConstantMatch, sourceOf(3), part(3));
  std::unique_ptr<Frame> frame = Frame::make(function.get());
  frame->pc = frame->decoded->indexOfOffset[static_cast<size_t>(PyLong_AsLong(part(2)))];
  const char* bound = PyBytes_AS_STRING(part(3));
  const size_t locals = frame->locals.size();
  frame->unread.assign(locals, false);
  frame->unreadSource.assign(locals, nullptr);
  for (size_t i = 0; i < static_cast<size_t>(PyTuple_GET_SIZE(parts) - kGeneratorSlots); ++i) {
    const Py_ssize_t at = kGeneratorSlots + static_cast<Py_ssize_t>(i);
    if (i >= locals) {
      frame->push(bound[i] ? e_.wrap(part(at), sourceOf(at)) : PyRef());
    } else if (bound[i]) {
      frame->locals[i] = PyRef::borrow(part(at));
      frame->unread[i] = true;
      frame->unreadSource[i] = sourceOf(at);
    }
  }
  const bool started = frame->decoded->instructions[static_cast<size_t>(frame->pc) - 1].op != Op::RETURN_GENERATOR;
  return std::make_unique<SuspendedFrame>(std::move(frame), started, isCoroutine);
}

LazyIterator* TakenIterators::take(PyObject* iterator, const Source* source) {
  if (LazyIterator* known = find(iterator)) return known;
  const Takeable* kind = takeableKind(iterator);
  if (!kind && !ownsFrame(iterator)) return nullptr;
  PyRef parts = partsOfIterator(iterator);
  if (!parts) return nullptr;
  e_.keepAlive(parts);
  const Source* from = e_.sources().derived(Source::Kind::IteratorParts, source);
  e_.guard(GuardKind::SequenceLength, from, nullptr, PyTuple_GET_SIZE(parts.get()));
  LazyPtr by;
  if (!kind) {
    by = ofGenerator(parts.get(), from, PyCoro_CheckExact(iterator));
  } else {
    PartList list;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i) list.push_back(e_.wrap(PyTuple_GET_ITEM(parts.get(), i), e_.sources().sequenceItem(from, i)));
    by = kind->make(e_, std::move(list));
  }
  return taken_.emplace_back(Taken{PyRef::borrow(iterator), source, std::move(by)}).by.get();
}

void TakenIterators::giveBack(RecipeMaker& recipes, std::vector<SideEffect>& effects) const {
  const auto node = [](Recipe::Kind kind) {
    auto recipe = std::make_shared<Recipe>();
    recipe->kind = kind;
    return recipe;
  };
  for (const Taken& taken : taken_) {
    std::vector<RecipePtr> state = taken.by->stateAfter(e_, recipes);
    if (state.empty()) continue;
    SideEffect effect;
    effect.kind = SideEffect::Kind::Method;
    effect.target = node(Recipe::Kind::FromSource);
    effect.target->source = taken.source;
    effect.key = node(Recipe::Kind::Constant);
    effect.key->object = restoreFunction();
    effect.value = node(Recipe::Kind::Tuple);
    effect.value->children = std::move(state);
    effects.push_back(std::move(effect));
  }
}

}  // namespace fusebox::capture
