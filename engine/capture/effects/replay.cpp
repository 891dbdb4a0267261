#include "engine/capture/effects/replay.h"

#include <ATen/core/grad_mode.h>

#include <functional>
#include <unordered_set>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/pickled_parts.h"
#include "engine/capture/cpython/set_layout.h"
#include "engine/capture/effects/journal.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

using Kind = Recipe::Kind;

bool holdsContentsFromCreation(PyTypeObject* base) {
  return base == &PyTuple_Type || base == &PyFrozenSet_Type || base == &PyUnicode_Type || base == &PyLong_Type ||
         base == &PyFloat_Type || base == &PyBytes_Type || base == &PyComplex_Type;
}

PyRef emptyTuple() { return PyRef::steal(PyTuple_New(0)); }

bool discardKey(PyObject* dict, PyObject* key) {
  const int there = PyDict_Contains(dict, key);
  if (there != 1) return there == 0;
  return (PyODict_Check(dict) ? PyODict_DelItem(dict, key) : PyDict_DelItem(dict, key)) == 0;
}

/// Writes into the instance's own dict, past every descriptor. Deleting what is not there does nothing.
bool setAttribute(PyObject* target, PyObject* name, PyObject* value) {
  PyObject* dict = instanceDictOf(target);
  if (!dict) return clearError(), PyObject_GenericSetAttr(target, name, value) == 0;
  return value ? PyDict_SetItem(dict, name, value) == 0 : discardKey(dict, name);
}

bool setItem(PyObject* target, PyObject* key, PyObject* value) {
  if (PyODict_Check(target)) return PyODict_SetItem(target, key, value) == 0;
  if (PyDict_Check(target)) return PyDict_SetItem(target, key, value) == 0;
  return PyList_Type.tp_as_mapping->mp_ass_subscript(target, key, value) == 0;
}

bool delItem(PyObject* target, PyObject* key) {
  return PyDict_Check(target) ? discardKey(target, key) : PyList_Type.tp_as_mapping->mp_ass_subscript(target, key, nullptr) == 0;
}

/// method(target, *arguments).
bool callOn(PyObject* method, PyObject* target, PyObject* arguments) {
  std::vector<PyObject*> all = {target};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) all.push_back(PyTuple_GET_ITEM(arguments, i));
  return static_cast<bool>(PyRef::steal(PyObject_Vectorcall(method, all.data(), all.size(), nullptr)));
}

bool callMethod(PyTypeObject* type, const char* name, PyObject* self, PyObject* argument) {
  PyRef method = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name));
  if (!method) return false;
  PyRef result = PyRef::steal(argument ? PyObject_CallFunctionObjArgs(method.get(), self, argument, nullptr)
                                       : PyObject_CallFunctionObjArgs(method.get(), self, nullptr));
  return static_cast<bool>(result);
}

/// OrderedDict.update would call the __setitem__ of a class of the program.
bool fillOrdered(PyObject* target, PyObject* contents) {
  PyRef items = PyRef::steal(PyMapping_Items(contents));
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    if (PyODict_SetItem(target, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0) return false;
  }
  return static_cast<bool>(items);
}

/// Gives a mutable builtin container (or an instance of a subclass) new contents, through the builtin's own methods.
bool setContents(PyObject* target, PyObject* contents) {
  if (PyList_Check(target)) return PyList_SetSlice(target, 0, PyList_GET_SIZE(target), contents) == 0;
  if (PyODict_Check(target)) return callMethod(&PyODict_Type, "clear", target, nullptr) && fillOrdered(target, contents);
  if (PyDict_Check(target)) {
    PyDict_Clear(target);
    return PyDict_Update(target, contents) == 0;
  }
  if (PyAnySet_Check(target)) return PySet_Clear(target) == 0 && callMethod(&PySet_Type, "update", target, contents);
  if (PyByteArray_Check(target)) {
    PyRef all = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr));
    return PyObject_SetItem(target, all.get(), contents) == 0;
  }
  PyTypeObject* base = builtinBase(Py_TYPE(target));  // deque
  PyRef copy = PyRef::steal(PySequence_List(contents));
  return copy && callMethod(base, "clear", target, nullptr) && callMethod(base, "extend", target, copy.get());
}

void forEachRecipe(const RecipePtr& recipe, std::unordered_set<const Recipe*>& seen, const std::function<void(Recipe&)>& fn) {
  if (!recipe || !seen.insert(recipe.get()).second) return;
  fn(*recipe);
  for (const RecipePtr& child : recipe->children) forEachRecipe(child, seen, fn);
  for (const auto& slot : recipe->slots) forEachRecipe(slot.second, seen, fn);
  forEachRecipe(recipe->base, seen, fn);
}

void forEachRecipe(const Segment& segment, const std::function<void(Recipe&)>& fn) {
  std::unordered_set<const Recipe*> seen;
  for (const Draw& draw : segment.draws)
    for (const RecipePtr& recipe : {draw.generator, draw.call}) forEachRecipe(recipe, seen, fn);
  for (const SideEffect& effect : segment.effects) {
    for (const RecipePtr& recipe : {effect.target, effect.key, effect.value}) forEachRecipe(recipe, seen, fn);
  }
  forEachRecipe(segment.result, seen, fn);
  forEachRecipe(segment.handled, seen, fn);
  for (const RecipePtr& r : segment.locals) forEachRecipe(r, seen, fn);
  for (const RecipePtr& r : segment.stack) forEachRecipe(r, seen, fn);
}

}  // namespace

void numberSources(Segment& segment, std::vector<const Source*>& sources) {
  std::unordered_map<const Source*, size_t> position;
  for (size_t i = 0; i < sources.size(); ++i) position.emplace(sources[i], i);
  forEachRecipe(segment, [&](Recipe& recipe) {
    if (recipe.kind != Kind::FromSource) return;
    auto [it, isNew] = position.emplace(recipe.source, sources.size());
    if (isNew) sources.push_back(recipe.source);
    recipe.index = static_cast<int64_t>(it->second);
  });
}

std::vector<bool> inputsUsedByRecipes(const Segment& segment, size_t count) {
  std::vector<bool> used(count);
  forEachRecipe(segment, [&](Recipe& recipe) {
    if (recipe.kind == Kind::FromSource && recipe.index < static_cast<int64_t>(count)) used[static_cast<size_t>(recipe.index)] = true;
  });
  return used;
}

std::vector<HeldRef*> heldByRecipes(Segment& segment) {
  std::vector<HeldRef*> held;
  forEachRecipe(segment, [&](Recipe& recipe) {
    held.push_back(&recipe.object);
    for (auto& slot : recipe.slots) held.push_back(&slot.first);
  });
  return held;
}

size_t sharedCountOf(const Segment& segment) {
  size_t count = 0;
  forEachRecipe(segment, [&](Recipe& recipe) {
    if (recipe.id >= 0) count = std::max(count, static_cast<size_t>(recipe.id) + 1);
  });
  return count;
}

Replay::Replay(const std::vector<at::Tensor>& outputs, const std::vector<PyRef>& sources, size_t sharedCount, std::span<const int64_t> symbols)
    : outputs_(outputs), sources_(sources), symbols_(symbols), made_(sharedCount), inProgress_(sharedCount) {}

PyRef Replay::build(const Recipe& recipe) {
  // The plain ones need no memory of what was made.
  if (recipe.kind == Kind::Constant) return recipe.object;
  if (recipe.kind == Kind::FromSource) return sources_[static_cast<size_t>(recipe.index)];
  if (recipe.kind == Kind::GraphOutput) return PyRef::steal(newTensorObject(outputs_[static_cast<size_t>(recipe.index)]));
  if (recipe.kind == Kind::Null) return {};
  if (recipe.kind == Kind::Handled) return PyRef::steal(PyErr_GetHandledException());
  if (recipe.id < 0) {
    PyRef object = make(recipe);
    return object && fill(recipe, object.get()) ? object : PyRef();
  }
  const auto id = static_cast<size_t>(recipe.id);
  if (made_[id]) return made_[id];
  ++depth_;
  inProgress_[id] = true;
  PyRef object = make(recipe);
  inProgress_[id] = false;
  made_[id] = object;
  const bool ok = object && fill(recipe, object.get());
  if (--depth_ == 0 && ok && !finishPending()) return {};
  return ok ? object : PyRef();
}

bool Replay::give(const Recipe& child, std::function<bool(PyObject*)> place) {
  if (child.id >= 0 && inProgress_[static_cast<size_t>(child.id)]) {
    pending_.push_back({child.id, std::move(place)});
    return true;
  }
  PyRef object = build(child);
  if (!object && !isNull(child)) return false;
  return place(object.get());
}

bool Replay::finishPending() {
  std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (Pending& p : pending) {
    PyObject* object = made_[static_cast<size_t>(p.id)].get();
    if (!object || !p.place(object)) return false;
  }
  return true;
}

PyRef Replay::buildTuple(const std::vector<RecipePtr>& items) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; tuple && i < items.size(); ++i) {
    PyRef item = build(*items[i]);
    if (!item) return {};
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return tuple;
}

/// One maker for each kind of recipe; containers are made empty and filled once they are known, so that cycles find them.
struct Builders {
  static PyObject* child(Replay& r, const Recipe& recipe, size_t i, PyRef& hold) {
    hold = i < recipe.children.size() ? r.build(*recipe.children[i]) : PyRef();
    return hold.get();
  }

  static PyRef tuple(Replay& r, const Recipe& recipe) { return r.buildTuple(recipe.children); }
  static PyRef list(Replay&, const Recipe&) { return PyRef::steal(PyList_New(0)); }
  static PyRef set(Replay&, const Recipe& recipe) { return recipe.object ? setOfSameLayout(recipe.object.get()) : PyRef::steal(PySet_New(nullptr)); }
  static PyRef dict(Replay&, const Recipe&) { return PyRef::steal(PyDict_New()); }
  static PyRef cell(Replay&, const Recipe&) { return PyRef::steal(PyCell_New(nullptr)); }
  static PyRef frozenSet(Replay& r, const Recipe& recipe) {
    if (recipe.object) return setOfSameLayout(recipe.object.get());
    PyRef items = r.buildTuple(recipe.children);
    return items ? PyRef::steal(PyFrozenSet_New(items.get())) : PyRef();
  }
  static PyRef slice(Replay& r, const Recipe& recipe) {
    PyRef a, b, c;
    return PyRef::steal(PySlice_New(child(r, recipe, 0, a), child(r, recipe, 1, b), child(r, recipe, 2, c)));
  }
  static PyRef method(Replay& r, const Recipe& recipe) {
    PyRef f, self;
    child(r, recipe, 0, f);
    child(r, recipe, 1, self);
    return f && self ? PyRef::steal(PyMethod_New(f.get(), self.get())) : PyRef();
  }
  static PyRef iterator(Replay& r, const Recipe& recipe) {
    PyRef of;
    child(r, recipe, 0, of);
    PyRef it = of ? PyRef::steal(PyObject_GetIter(of.get())) : PyRef();
    for (int64_t i = 0; it && i < recipe.index; ++i) {
      PyRef skipped = PyRef::steal(PyIter_Next(it.get()));
      if (PyErr_Occurred()) return {};
    }
    return it;
  }
  static PyRef call(Replay& r, const Recipe& recipe) {
    PyRef callable, args, kwargs;
    child(r, recipe, 0, callable);
    child(r, recipe, 1, args);
    if (!callable || !args) return {};
    child(r, recipe, 2, kwargs);
    if (PyErr_Occurred()) return {};
    PyObject* keywords = kwargs && PyDict_Check(kwargs.get()) ? kwargs.get() : nullptr;
    PyRef made = PyRef::steal(PyObject_Call(callable.get(), args.get(), keywords));
    if (!made || recipe.children.size() < 4) return made;
    PyRef state;
    child(r, recipe, 3, state);
    PyRef done = state ? setPickledState(made.get(), state.get()) : PyRef();
    return done ? made : PyRef();
  }
  static PyRef partial(Replay& r, const Recipe& recipe) {
    PyRef function, args, kwargs;
    child(r, recipe, 0, function);
    child(r, recipe, 1, args);
    if (!function || !args) return {};
    child(r, recipe, 2, kwargs);
    PyRef type = recipe.object;
    if (!type) {
      PyRef module = PyRef::steal(PyImport_ImportModule("functools"));
      type = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "partial")) : PyRef();
    }
    PyRef head = PyRef::steal(PyTuple_Pack(1, function.get()));
    PyRef all = head ? PyRef::steal(PySequence_Concat(head.get(), args.get())) : PyRef();
    if (!type || !all) return {};
    PyObject* keywords = kwargs && PyDict_Check(kwargs.get()) ? kwargs.get() : nullptr;
    return PyRef::steal(PyObject_Call(type.get(), all.get(), keywords));
  }
  /// children: code, globals, closure, then kFunctionParts and the dict; Null where a new function has the right one already.
  static PyRef function(Replay& r, const Recipe& recipe) {
    std::vector<PyRef> part(recipe.children.size());
    for (size_t i = 0; i < part.size(); ++i)
      if (!child(r, recipe, i, part[i]) && PyErr_Occurred()) return {};
    PyRef f = PyRef::steal(PyFunction_New(part[0].get(), part[1].get()));
    if (!f || (part[2] && PyFunction_SetClosure(f.get(), part[2].get()) < 0)) return {};
    size_t next = 3;
    for (const char* name : kFunctionParts) {
      const PyRef& value = part[next++];
      if (value && PyObject_SetAttrString(f.get(), name, value.get()) < 0) return {};
    }
    PyObject* dict = part[next] ? instanceDictOf(f.get()) : nullptr;
    return !part[next] || (dict && PyDict_Update(dict, part[next].get()) == 0) ? f : PyRef();
  }
  static PyRef instance(Replay& r, const Recipe& recipe) {
    auto* type = reinterpret_cast<PyTypeObject*>(recipe.object.get());
    PyTypeObject* base = builtinBase(type);
    PyRef args = emptyTuple();
    if (recipe.base && (holdsContentsFromCreation(base) || PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))) {
      PyRef contents = r.build(*recipe.base);
      if (!contents) return {};
      args = holdsContentsFromCreation(base) ? PyRef::steal(PyTuple_Pack(1, contents.get())) : contents;
    }
    return PyRef::steal(base->tp_new(type, args.get(), nullptr));
  }
  static PyRef expression(Replay& r, const Recipe& recipe) { return recipe.number->make(r.symbols_); }
  static PyRef parameterised(Replay& r, const Recipe& recipe) {
    if (recipe.base) return r.build(*recipe.base);
    PyRef tensor = PyRef::steal(newTensorObject(r.outputs_[static_cast<size_t>(recipe.index)]));
    if (!tensor || reinterpret_cast<PyObject*>(Py_TYPE(tensor.get())) == recipe.object.get()) return tensor;
    const at::AutoGradMode history(true);  // it has its history already, whatever mode the frame runs in
    return PyRef::steal(PyObject_CallMethod(tensor.get(), "as_subclass", "O", recipe.object.get()));
  }
};

PyRef Replay::make(const Recipe& recipe) {
  using Maker = PyRef (*)(Replay&, const Recipe&);
  static constexpr std::pair<Kind, Maker> kMakers[] = {
      {Kind::Tuple, Builders::tuple}, {Kind::List, Builders::list}, {Kind::Set, Builders::set},
      {Kind::FrozenSet, Builders::frozenSet}, {Kind::Slice, Builders::slice}, {Kind::Dict, Builders::dict}, {Kind::Instance, Builders::instance}, {Kind::Cell, Builders::cell},
      {Kind::Function, Builders::function}, {Kind::BoundMethod, Builders::method}, {Kind::Partial, Builders::partial},
      {Kind::Iterator, Builders::iterator}, {Kind::Call, Builders::call}, {Kind::Expression, Builders::expression},
      {Kind::Parameterised, Builders::parameterised}};
  for (const auto& [kind, maker] : kMakers)
    if (kind == recipe.kind) return maker(*this, recipe);
  PyErr_SetString(PyExc_SystemError, "fusebox: a recipe of unknown kind");
  return {};
}

bool Replay::fillAttributes(const Recipe& recipe, PyObject* object) {
  for (size_t i = 0; i + 1 < recipe.children.size(); i += 2) {
    PyRef key = build(*recipe.children[i]);
    auto place = [object, key](PyObject* o) {
      PyObject* dict = instanceDictOf(object);
      return dict ? PyDict_SetItem(dict, key.get(), o) == 0 : PyObject_GenericSetAttr(object, key.get(), o) == 0;
    };
    if (!key || !give(*recipe.children[i + 1], place)) return false;
  }
  for (const auto& [slot, value] : recipe.slots)
    if (!give(*value, [object, slot](PyObject* o) { return !o || Py_TYPE(slot.get())->tp_descr_set(slot.get(), object, o) == 0; })) return false;
  return true;
}

bool Replay::fill(const Recipe& recipe, PyObject* object) {
  switch (recipe.kind) {
    case Kind::List:
      for (size_t i = 0; i < recipe.children.size(); ++i) {
        if (PyList_Append(object, Py_None) < 0) return false;
        auto place = [object, i](PyObject* o) { return PyList_SetItem(object, static_cast<Py_ssize_t>(i), Py_NewRef(o)) == 0; };
        if (!give(*recipe.children[i], place)) return false;
      }
      return true;
    case Kind::Set:  // whose children are none where it was copied
      for (const RecipePtr& child : recipe.children)
        if (!give(*child, [object](PyObject* o) { return PySet_Add(object, o) == 0; })) return false;
      return true;
    case Kind::Cell:
      return recipe.children.empty() || give(*recipe.children[0], [object](PyObject* o) { return PyCell_Set(object, o) == 0; });
    case Kind::Dict:
      for (size_t i = 0; i + 1 < recipe.children.size(); i += 2) {
        PyRef key = build(*recipe.children[i]);
        // The place in the order is taken even when the value comes later.
        if (!key || PyDict_SetItem(object, key.get(), Py_None) < 0) return false;
        if (!give(*recipe.children[i + 1], [object, key](PyObject* o) { return PyDict_SetItem(object, key.get(), o) == 0; })) return false;
      }
      return true;
    case Kind::Parameterised: return fillAttributes(recipe, object);
    case Kind::Instance: {
      PyTypeObject* base = builtinBase(Py_TYPE(object));
      if (recipe.base && !holdsContentsFromCreation(base) && !PyExceptionInstance_Check(object)) {
        PyRef contents = build(*recipe.base);
        if (!contents || !setContents(object, contents.get())) return false;
      }
      return fillAttributes(recipe, object);
    }
    default: return true;
  }
}

bool Replay::apply(const SideEffect& effect) {
  using Effect = SideEffect::Kind;
  PyRef target = effect.target ? build(*effect.target) : PyRef();
  if (effect.target && !target) return false;
  PyRef value = effect.value ? build(*effect.value) : PyRef();
  if (effect.value && !value && !isNull(*effect.value)) return false;
  PyRef key = effect.key ? build(*effect.key) : PyRef();
  if (effect.key && !key) return false;
  PyObject *t = target.get(), *v = value.get(), *k = key.get();
  switch (effect.kind) {
    case Effect::SetAttr: return setAttribute(t, k, v);
    case Effect::DelAttr: return setAttribute(t, k, nullptr);
    case Effect::SetSlot: return setSlotOf(t, k, v);
    case Effect::DelSlot: return setSlotOf(t, k, nullptr) || (clearError(), true);
    case Effect::SetItem: return setItem(t, k, v);
    case Effect::DelItem: return delItem(t, k);
    case Effect::SetCell: return PyCell_Set(t, v) == 0;
    case Effect::Method: return callOn(k, t, v);
    case Effect::AdvanceIterator:
      for (int64_t i = 0; i < effect.number; ++i) {
        PyRef skipped = PyRef::steal(PyIter_Next(t));
        if (PyErr_Occurred()) return false;
      }
      return true;
    case Effect::Call:
    case Effect::AskCache: return true;  // building the value was the call
  }
  return true;
}

}  // namespace fusebox::capture
