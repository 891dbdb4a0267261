#include "engine/capture/effects/recipes.h"

#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

RecipePtr RecipeMaker::fromSource(const Source* source) {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = Recipe::Kind::FromSource;
  recipe->source = source;
  return recipe;
}

RecipePtr RecipeMaker::constant(PyObject* object) {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = Recipe::Kind::Constant;
  recipe->object = PyRef::borrow(object);
  return recipe;
}

/// A recipe that is remembered for its object before its children are made: structures may be cyclic.
RecipePtr RecipeMaker::node(Recipe::Kind kind, PyObject* key) {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = kind;
  recipe->id = nextId_++;
  made_[key] = recipe;
  keep_.push_back(PyRef::borrow(key));
  return recipe;
}

RecipePtr RecipeMaker::tensor(PyObject* object) {
  Origin* origin = e_.origin(object);
  if (origin && origin->source) return fromSource(origin->source);
  const at::Tensor& value = tensorOf(object);
  if (!trace::isTraceTensor(value))
    throw CaptureBreak{{"unknown tensor", "a tensor that was not read from a place that can be guarded leaves the compiled region", "",
                        e_.place(), {}}, origin ? origin->birth : -1};
  RecipePtr recipe = node(Recipe::Kind::GraphOutput, object);
  recipe->index = static_cast<int64_t>(outputs_.size());
  outputs_.push_back(value);
  if (Py_TYPE(object) != tensorType()) {
    recipe->kind = Recipe::Kind::Parameterised;
  }
  PyRef attributes = PyRef::steal(PyObject_GetAttrString(object, "__dict__"));
  PyErr_Clear();
  if (attributes && PyDict_Check(attributes.get()) && PyDict_GET_SIZE(attributes.get()) > 0) {
    recipe->kind = Recipe::Kind::Parameterised;
    dictionary(*recipe, attributes.get());
  }
  if (recipe->kind == Recipe::Kind::Parameterised) recipe->object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  return recipe;
}

void RecipeMaker::sequence(Recipe& recipe, PyObject* object) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) recipe.children.push_back(make(PySequence_Fast_GET_ITEM(object, i)));
}

void RecipeMaker::dictionary(Recipe& recipe, PyObject* object) {
  PyRef items = itemsInOrder(object);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    recipe.children.push_back(make(PyTuple_GET_ITEM(pair, 0)));
    recipe.children.push_back(make(PyTuple_GET_ITEM(pair, 1)));
  }
}

void RecipeMaker::function(Recipe& recipe, PyObject* object) {
  auto* f = reinterpret_cast<PyFunctionObject*>(object);
  for (PyObject* part : {f->func_code, f->func_globals, f->func_name}) recipe.children.push_back(constant(part));
  for (PyObject* part : {f->func_defaults, f->func_kwdefaults, f->func_closure, f->func_annotations, f->func_dict})
    recipe.children.push_back(make(part));
}

namespace {

/// The int, str, float, … that an instance of a subclass holds; null for anything else.
PyRef plainScalar(PyObject* o) {
  if (PyLong_Check(o)) return PyRef::steal(PyLong_Type.tp_as_number->nb_int(o));
  if (PyUnicode_Check(o)) return PyRef::steal(PyUnicode_FromObject(o));
  if (PyFloat_Check(o)) return PyRef::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(o)));
  if (PyBytes_Check(o)) return PyRef::steal(PyBytes_FromStringAndSize(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o)));
  if (PyComplex_Check(o)) return PyRef::steal(PyComplex_FromCComplex(PyComplex_AsCComplex(o)));
  return {};
}

/// The place of a C member: found in its own class, since a subclass may have something else under the name.
PyRef member(PyTypeObject* owner, const char* name) { return PyRef::borrow(_PyType_Lookup(owner, internedName(name))); }
PyRef exceptionMember(const char* name) { return member(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), name); }

/// C types whose instances are their __dict__ and slots and nothing else.
bool recreatable(PyTypeObject* base) { return std::string_view(base->tp_name) == "types.SimpleNamespace"; }

}  // namespace

void RecipeMaker::instance(Recipe& recipe, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  recipe.object = PyRef::borrow(reinterpret_cast<PyObject*>(type));
  if (PyRef dict = e_.instanceDict(object)) dictionary(recipe, dict.get());
  for (PyTypeObject* t = type; t; t = t->tp_base) {
    // Slots that a Python class declares; builtin bases keep their members in `base`.
    if (!isPythonClass(t)) continue;
    PyObject *key, *descriptor;
    for (Py_ssize_t at = 0; t->tp_dict && PyDict_Next(t->tp_dict, &at, &key, &descriptor);) {
      if (Py_TYPE(descriptor) != &PyMemberDescr_Type) continue;
      PyRef value = PyRef::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type)));
      if (!value) {
        PyErr_Clear();
        continue;
      }
      recipe.slots.emplace_back(PyRef::borrow(descriptor), make(value.get()));
    }
  }
  PyRef contents;
  if (PyDict_Check(object)) {
    auto base = std::make_shared<Recipe>();
    base->kind = Recipe::Kind::Dict;
    dictionary(*base, object);
    recipe.base = base;
    if (std::string_view(builtinBase(type)->tp_name) == "collections.defaultdict") {
      PyRef factory = PyRef::steal(PyObject_GetAttrString(object, "default_factory"));
      recipe.slots.emplace_back(member(builtinBase(type), "default_factory"), make(factory.get()));
      keep_.push_back(factory);
    }
    return;
  }
  if (PyTuple_Check(object) || PyList_Check(object)) {
    auto base = std::make_shared<Recipe>();
    base->kind = PyList_Check(object) ? Recipe::Kind::List : Recipe::Kind::Tuple;
    sequence(*base, object);
    recipe.base = base;
    return;
  }
  if (PyExceptionInstance_Check(object)) {
    PyRef args = PyRef::steal(PyObject_GetAttrString(object, "args")), cause = PyRef::steal(PyException_GetCause(object));
    keep_.push_back(args);
    recipe.base = make(args.get());
    if (cause) {
      keep_.push_back(cause);
      recipe.slots.emplace_back(exceptionMember("__cause__"), make(cause.get()));
    }
    if (reinterpret_cast<PyBaseExceptionObject*>(object)->suppress_context)
      recipe.slots.emplace_back(exceptionMember("__suppress_context__"), constant(Py_True));
    return;
  }
  if (PyAnySet_Check(object)) {
    auto base = std::make_shared<Recipe>();
    base->kind = PySet_Check(object) ? Recipe::Kind::Set : Recipe::Kind::FrozenSet;
    PyRef items = PyRef::steal(PySequence_List(object));
    keep_.push_back(items);
    sequence(*base, items.get());
    recipe.base = base;
    return;
  }
  if (PyRef plain = plainScalar(object)) {
    recipe.base = constant(plain.get());
    return;
  }
  if (builtinBase(type) != &PyBaseObject_Type && !recreatable(builtinBase(type)))
    throw CaptureBreak{{"unsupported value", std::string("a ") + type->tp_name + " made by the compiled region cannot be made again", "", e_.place(), {}},
                       e_.origin(object) ? e_.origin(object)->birth : -1};
}

/// An iterator over a dict: of the dict itself, so that it notices when the dict changes its size.
bool RecipeMaker::dictIterator(Recipe& recipe, PyObject* object) {
  const std::string_view kind = Py_TYPE(object)->tp_name;
  const char* view = kind == "dict_keyiterator" ? "keys" : kind == "dict_valueiterator" ? "values" : kind == "dict_itemiterator" ? "items" : nullptr;
  if (!view) return false;
  PyObject* dict = nullptr;
  Py_TYPE(object)->tp_traverse(object, [](PyObject* referred, void* found) {
    if (PyDict_Check(referred)) *static_cast<PyObject**>(found) = referred;
    return 0;
  }, &dict);
  const Py_ssize_t left = PyObject_LengthHint(object, -1);
  if (!dict || left < 0 || left > PyDict_GET_SIZE(dict)) return PyErr_Clear(), false;
  const Py_ssize_t taken = PyDict_GET_SIZE(dict) - left;
  // What C code went through may be a copy with stand-ins.
  PyObject* original = dict;
  for (const auto& [candidate, origin] : e_.origins_.all())
    if (origin.exposed.get() == dict && !origin.written) original = candidate;
  PyRef method = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyDict_Type), view));
  PyRef args = PyRef::steal(PyTuple_Pack(1, original)), none = PyRef::steal(PyDict_New());
  keep_.insert(keep_.end(), {args, none});
  auto call = std::make_shared<Recipe>();
  call->kind = Recipe::Kind::Call;
  call->children = {constant(method.get()), make(args.get()), make(none.get())};
  recipe.kind = Recipe::Kind::Iterator;
  recipe.index = taken;
  recipe.children = {std::move(call)};
  return true;
}

/// Iterators of C: what pickling says they are made of.
void RecipeMaker::reduced(Recipe& recipe, PyObject* object) {
  PyRef parts = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  const Py_ssize_t n = parts && PyTuple_Check(parts.get()) ? PyTuple_GET_SIZE(parts.get()) : 0;
  PyObject* state = n > 2 && PyTuple_GET_ITEM(parts.get(), 2) != Py_None ? PyTuple_GET_ITEM(parts.get(), 2) : nullptr;
  bool more = false;  // list and dict items of the pickle protocol
  for (Py_ssize_t i = 3; i < n; ++i) more |= PyTuple_GET_ITEM(parts.get(), i) != Py_None;
  if (n < 2 || more || (state && !PyObject_HasAttrString(object, "__setstate__"))) {
    PyErr_Clear();
    throw CaptureBreak{{"unsupported value", std::string("a ") + Py_TYPE(object)->tp_name + " cannot be made again", "", e_.place(), {}},
                       e_.origin(object) ? e_.origin(object)->birth : -1};
  }
  keep_.push_back(parts);
  recipe.kind = Recipe::Kind::Call;
  recipe.children.push_back(constant(PyTuple_GET_ITEM(parts.get(), 0)));
  recipe.children.push_back(make(PyTuple_GET_ITEM(parts.get(), 1)));
  PyRef none = PyRef::steal(PyDict_New());
  recipe.children.push_back(make(none.get()));
  if (state) recipe.children.push_back(make(state));
}

RecipePtr RecipeMaker::make(PyObject* object) {
  if (!object) {
    auto recipe = std::make_shared<Recipe>();
    recipe->kind = Recipe::Kind::Null;
    return recipe;
  }
  if (auto it = made_.find(object); it != made_.end()) return it->second;
  if (e_.isTensor(object)) return tensor(object);
  if (e_.isAddress(object))
    throw CaptureBreak{{"identity", "the id of an object is alive where capture stops", "", e_.place(), {}}, e_.addresses_.at(PyLong_AsVoidPtr(object))};
  if (isConstantValue(object)) return constant(object);
  Origin* origin = e_.origin(object);
  if (origin && origin->source) {
    if (origin->source->kind == Source::Kind::Pinned) return constant(object);
    return fromSource(origin->source);
  }
  using Kind = Recipe::Kind;
  if (lazyOf(object))
    throw CaptureBreak{{"generator across a graph break", std::string("a suspended ") + lazyOf(object)->what() + " is alive where capture stops",
                        "Consume it before the break, or use a list.", e_.place(), {}},
                       origin ? origin->birth : -1};
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    RecipePtr recipe = node(PyTuple_CheckExact(object) ? Kind::Tuple : Kind::List, object);
    sequence(*recipe, object);
    return recipe;
  }
  if (PyDict_CheckExact(object)) {
    RecipePtr recipe = node(Kind::Dict, object);
    dictionary(*recipe, object);
    return recipe;
  }
  if (PySet_CheckExact(object) || PyFrozenSet_CheckExact(object)) {
    RecipePtr recipe = node(PySet_CheckExact(object) ? Kind::Set : Kind::FrozenSet, object);
    PyRef items = PyRef::steal(PySequence_List(object));
    keep_.push_back(items);
    sequence(*recipe, items.get());
    return recipe;
  }
  if (PySlice_Check(object)) {
    auto* s = reinterpret_cast<PySliceObject*>(object);
    RecipePtr recipe = node(Kind::Slice, object);
    for (PyObject* part : {s->start, s->stop, s->step}) recipe->children.push_back(make(part));
    return recipe;
  }
  if (PyObject* self = boundSelf(object)) {
    // A builtin method of a fresh object is bound again.
    PyRef method = unboundMethod(object), bind = method ? PyRef::steal(PyObject_GetAttrString(method.get(), "__get__")) : PyRef();
    if (!bind)
      throw CaptureBreak{{"unsupported value", "a builtin method cannot be bound again", "", e_.place(), {}}, origin ? origin->birth : -1};
    RecipePtr recipe = node(Kind::Call, object);
    PyRef args = PyRef::steal(PyTuple_Pack(1, self)), none = PyRef::steal(PyDict_New());
    keep_.insert(keep_.end(), {bind, args, none});
    recipe->children = {constant(bind.get()), make(args.get()), make(none.get())};
    return recipe;
  }
  if (PyRange_Check(object) || isIdentityValue(object)) return constant(object);
  if (PyCell_Check(object)) {
    RecipePtr recipe = node(Kind::Cell, object);
    recipe->children.push_back(make(PyCell_GET(object)));
    return recipe;
  }
  if (PyFunction_Check(object)) {
    RecipePtr recipe = node(Kind::Function, object);
    function(*recipe, object);
    return recipe;
  }
  if (PyMethod_Check(object)) {
    RecipePtr recipe = node(Kind::BoundMethod, object);
    recipe->children = {make(PyMethod_GET_FUNCTION(object)), make(PyMethod_GET_SELF(object))};
    return recipe;
  }
  const std::string_view typeName = Py_TYPE(object)->tp_name;
  if (typeName == "functools.partial") {
    RecipePtr recipe = node(Kind::Partial, object);
    for (const char* part : {"func", "args", "keywords"}) {
      PyRef value = PyRef::steal(PyObject_GetAttrString(object, part));
      keep_.push_back(value);
      recipe->children.push_back(make(value.get()));
    }
    return recipe;
  }
  if (Py_TYPE(object) == &PySuper_Type) {
    RecipePtr recipe = node(Kind::Call, object);
    PyRef type = PyRef::steal(PyObject_GetAttrString(object, "__thisclass__")), self = PyRef::steal(PyObject_GetAttrString(object, "__self__"));
    PyRef args = PyRef::steal(PyTuple_Pack(2, type.get(), self.get())), none = PyRef::steal(PyDict_New());
    keep_.insert(keep_.end(), {args, none});
    recipe->children = {constant(reinterpret_cast<PyObject*>(&PySuper_Type)), make(args.get()), make(none.get())};
    return recipe;
  }
  if (PyIter_Check(object) && !isPythonClass(Py_TYPE(object))) {
    RecipePtr recipe = node(Kind::Call, object);
    if (!dictIterator(*recipe, object)) reduced(*recipe, object);
    return recipe;
  }
  if (PyDictItems_Check(object) || PyDictKeys_Check(object) || PyDictValues_Check(object)) {
    throw CaptureBreak{{"unsupported value", std::string("a ") + Py_TYPE(object)->tp_name + " view is alive where capture stops", "", e_.place(), {}},
                       origin ? origin->birth : -1};
  }
  if (typeName == "collections.OrderedDict" || typeName == "collections.defaultdict" || isPythonClass(Py_TYPE(object)) ||
      PyExceptionInstance_Check(object)) {
    RecipePtr recipe = node(Kind::Instance, object);
    instance(*recipe, object);
    return recipe;
  }
  if (typeName == "collections.deque") {
    RecipePtr recipe = node(Kind::Call, object);
    PyRef items = PyRef::steal(PySequence_List(object)), longest = PyRef::steal(PyObject_GetAttrString(object, "maxlen"));
    PyRef args = PyRef::steal(PyTuple_Pack(2, items.get(), longest.get())), none = PyRef::steal(PyDict_New());
    keep_.insert(keep_.end(), {items, args, none});
    recipe->children = {constant(reinterpret_cast<PyObject*>(Py_TYPE(object))), make(args.get()), make(none.get())};
    return recipe;
  }
  if (typeName == "weakref" || typeName == "weakref.ReferenceType" || typeName == "Generator") return constant(object);
  RecipePtr recipe = node(Kind::Call, object);
  reduced(*recipe, object);
  return recipe;
}

}  // namespace fusebox::capture
