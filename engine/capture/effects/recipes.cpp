#include "engine/capture/effects/recipes.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/random_draws.h"

#include <structmember.h>

#include <algorithm>

#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/pickled_parts.h"
#include "engine/capture/cpython/set_layout.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/distributed_tensors.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
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
  if (e_.isNumber(object)) e_.refuseNumber("kept by the program");
  const at::Tensor& value = tensorOf(object);
  if (RecipePtr made = withoutData(object)) return made;
  if (isDistributedStandIn(object)) {
    const DistributedParts parts = partsOfDistributed(e_, object);
    keep_.insert(keep_.end(), {parts.local, parts.spec});
    return call(object, parts.whole.get(), {parts.local.get(), parts.spec.get()});
  }
  if (!trace::isTraceTensor(value))
    throw CaptureBreak{{"unknown tensor", "a tensor that was not read from a place that can be guarded leaves the compiled region", "",
                        e_.place(), {}}, origin ? origin->birth : -1};
  if (Py_TYPE(object) != tensorType() && isPlainTensorClass(Py_TYPE(object))) return parameter(object);
  RecipePtr recipe = node(Recipe::Kind::GraphOutput, object);
  recipe->index = static_cast<int64_t>(outputs_.size());
  outputs_.push_back(value);
  if (Py_TYPE(object) != tensorType()) {
    recipe->kind = Recipe::Kind::Parameterised;
  }
  PyRef attributes = PyRef::steal(PyObject_GetAttrString(object, "__dict__"));
  clearError();
  if (attributes && PyDict_Check(attributes.get()) && PyDict_GET_SIZE(attributes.get()) > 0) {
    recipe->kind = Recipe::Kind::Parameterised;
    dictionary(*recipe, attributes.get());
  }
  if (recipe->kind == Recipe::Kind::Parameterised) {
    recipe->object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    pythonSlots(*recipe, object);
  }
  return recipe;
}

/// A tensor of the meta device, of which there is nothing but what it looks like. Null: it is none, or shares its storage.
RecipePtr RecipeMaker::withoutData(PyObject* object) {
  static PyObject* const maker = torchObject("torch.empty_strided");
  const at::Tensor& value = tensorOf(object);
  const bool isPlain = value.is_meta() && !trace::isTraceTensor(value) && Py_TYPE(object) == tensorType() && value.layout() == at::kStrided;
  if (!isPlain || value.requires_grad() || value.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || value.storage_offset() != 0) return nullptr;
  if (value.storage().use_count() > 1 || at::detail::computeStorageNbytes(value.sizes(), value.strides(), value.element_size()) != value.storage().nbytes()) return nullptr;
  const auto rowOf = [](c10::IntArrayRef numbers) {
    PyRef made = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    for (size_t i = 0; i < numbers.size(); ++i) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
    return made;
  };
  PyRef keywords = PyRef::steal(PyDict_New()), dtype = PyRef::steal(PyObject_GetAttrString(object, "dtype")), device = PyRef::steal(PyUnicode_FromString("meta"));
  PyDict_SetItemString(keywords.get(), "dtype", dtype.get());
  PyDict_SetItemString(keywords.get(), "device", device.get());
  const auto args = std::make_shared<Recipe>();
  args->kind = Recipe::Kind::Tuple;
  args->children = {constant(rowOf(value.sizes()).get()), constant(rowOf(value.strides()).get())};
  RecipePtr recipe = node(Recipe::Kind::Call, object);
  recipe->children = {constant(maker), args, constant(keywords.get())};
  return recipe;
}

/// A parameter that the program has made: of the tensor that it shares its memory with, a leaf.
RecipePtr RecipeMaker::parameter(PyObject* object) {
  static PyObject* const maker = torchObject("torch.Tensor._make_subclass");
  const at::Tensor& value = tensorOf(object);
  const bool wantsGradient = value.requires_grad();
  if (wantsGradient) value.set_requires_grad(false);  // the graph gives its data
  RecipePtr recipe = node(Recipe::Kind::Parameterised, object);
  const auto data = std::make_shared<Recipe>(), args = std::make_shared<Recipe>(), made = std::make_shared<Recipe>();
  data->kind = Recipe::Kind::GraphOutput;
  data->index = static_cast<int64_t>(outputs_.size());
  outputs_.push_back(value);
  args->kind = Recipe::Kind::Tuple;
  args->children = {constant(reinterpret_cast<PyObject*>(Py_TYPE(object))), data, constant(wantsGradient ? Py_True : Py_False)};
  made->kind = Recipe::Kind::Call;
  made->children = {constant(maker), args, constant(Py_None)};
  recipe->base = made;
  recipe->object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  PyRef attributes = PyRef::steal(PyObject_GetAttrString(object, "__dict__"));
  clearError();
  if (attributes && PyDict_Check(attributes.get()) && PyDict_GET_SIZE(attributes.get()) > 0) dictionary(*recipe, attributes.get());
  pythonSlots(*recipe, object);
  return recipe;
}

/// A nested tensor that the region made, of its values.
static RecipePtr nested(Evaluation& e, PyObject* object, const std::function<RecipePtr(std::initializer_list<PyObject*>)>& whole) {
  static constexpr std::string_view kParts[] = {"_values", "_offsets", "_lengths", "_ragged_idx", "_metadata_cache", "_size"};
  PyRef dict = e.instanceDict(object);
  PyObject *key, *value, *parts[std::size(kParts)] = {};
  for (Py_ssize_t at = 0; dict && PyDict_Next(dict.get(), &at, &key, &value);) {
    const auto known = std::find(std::begin(kParts), std::end(kParts), std::string_view(utf8Of(key)));
    if (known == std::end(kParts)) e.breakHere("nested tensor", "a nested tensor that outlives the compiled region has attribute " + std::string(utf8Of(key)));
    parts[known - std::begin(kParts)] = value;
  }
  if (std::find(std::begin(parts), std::end(parts), nullptr) != std::end(parts)) e.breakHere("nested tensor", "a nested tensor that outlives the compiled region lacks a part");
  return whole({parts[0], parts[1], parts[2], parts[3], parts[4]});
}

/// A tensor without data of its own, of a class of the program: made as the program made it, with the attributes that it has.
RecipePtr RecipeMaker::wrapper(PyObject* object) {
  static PyObject* const maker = torchObject("torch.Tensor._make_wrapper_subclass");
  static PyObject* const noClasses = torchObject("torch._C.DisableTorchFunctionSubclass");
  if (isNestedTensor(object)) return nested(e_, object, [&](std::initializer_list<PyObject*> parts) { return call(object, torchObject("fusebox._nested.whole"), parts); });
  const at::Tensor& tensor = tensorOf(object);
  if (tensor.requires_grad() || tensor.layout() != c10::kStrided || tensor.is_neg() || tensor.is_conj() || tensor.is_inference())
    refuse(object, std::string("a tensor of class ") + Py_TYPE(object)->tp_name + " that is made and outlives the compiled region is not plain");
  RecipePtr recipe = node(Recipe::Kind::Parameterised, object);
  recipe->object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  PyRef off = PyRef::steal(PyObject_CallNoArgs(noClasses));
  const auto read = [&](const char* name, bool isMethod) {
    PyRef raw = PyRef::steal(isMethod ? PyObject_CallMethod(object, name, nullptr) : PyObject_GetAttrString(object, name));
    if (!raw) clearError(), refuse(object, std::string("a tensor of class ") + Py_TYPE(object)->tp_name + " does not say its " + name);
    return keep_.emplace_back(e_.fromTorchCall(std::move(raw)));
  };
  PyRef sizes, strides, offset, dtype, device;
  {
    PyRef entered = PyRef::steal(PyObject_CallMethod(off.get(), "__enter__", nullptr));
    sizes = read("size", true), strides = read("stride", true), offset = read("storage_offset", true), dtype = read("dtype", false), device = read("device", false);
    PyRef left = PyRef::steal(PyObject_CallMethod(off.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  }
  auto made = std::make_shared<Recipe>();
  made->kind = Recipe::Kind::Call;
  PyRef args = PyRef::steal(PyTuple_Pack(2, reinterpret_cast<PyObject*>(Py_TYPE(object)), sizes.get())), keywords = PyRef::steal(PyDict_New());
  PyDict_SetItemString(keywords.get(), "strides", strides.get());
  PyDict_SetItemString(keywords.get(), "storage_offset", offset.get());
  PyDict_SetItemString(keywords.get(), "dtype", dtype.get());
  PyDict_SetItemString(keywords.get(), "device", device.get());
  keep_.insert(keep_.end(), {args, keywords});
  PyObject* base = nullptr;  // a wrapper that exists before this one, whose storage it has
  for (const auto& [other, origin] : e_.origins_.all())
    if (other != object && isWrapperClass(Py_TYPE(other)) && tensorOf(other).is_alias_of(tensor) && (origin.source || made_.contains(other)) && !base) base = other;
  if (base) {
    static PyObject* const aliased = [] {
      PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._wrappers"));
      return PyObject_GetAttrString(module.get(), "aliased");
    }();
    PyRef list = PyRef::steal(PyTuple_Pack(3, base, reinterpret_cast<PyObject*>(Py_TYPE(object)), sizes.get()));
    keep_.push_back(list);
    made->children = {constant(aliased), make(list.get()), make(keywords.get())};
  } else {
    made->children = {constant(maker), make(args.get()), make(keywords.get())};
  }
  recipe->base = std::move(made);
  if (PyRef dict = e_.instanceDict(object)) dictionary(*recipe, dict.get());
  pythonSlots(*recipe, object);
  return recipe;
}

/// What a tensor of the graph's results is read for, and what Python makes of that.
RecipePtr RecipeMaker::deferred(PyObject* object) {
  static const std::pair<int, PyObject*> operators[] = {
      {0, torchObject("_operator.add")},
      {2, torchObject("_operator.floordiv")},
      {5, torchObject("_operator.mul")},
      {6, torchObject("_operator.mod")},
      {8, torchObject("_operator.pow")},
      {10, torchObject("_operator.sub")},
      {11, torchObject("_operator.truediv")},
      {DeferredNumber::kToFloat, reinterpret_cast<PyObject*>(&PyFloat_Type)},
      {DeferredNumber::kNegate, torchObject("_operator.neg")},
      {DeferredNumber::kAbsolute, torchObject("_operator.abs")},
      {DeferredNumber::kNot, torchObject("_operator.not_")},
      {DeferredNumber::kLarger, torchObject("builtins.max")},
      {DeferredNumber::kSmaller, torchObject("builtins.min")},
      {DeferredNumber::kCompare + Py_LT, torchObject("_operator.lt")},
      {DeferredNumber::kCompare + Py_LE, torchObject("_operator.le")},
      {DeferredNumber::kCompare + Py_EQ, torchObject("_operator.eq")},
      {DeferredNumber::kCompare + Py_NE, torchObject("_operator.ne")},
      {DeferredNumber::kCompare + Py_GT, torchObject("_operator.gt")},
      {DeferredNumber::kCompare + Py_GE, torchObject("_operator.ge")}};
  static PyObject* const item = torchObject("torch.Tensor.item");
  static PyObject* const toList = torchObject("torch.Tensor.tolist");
  static PyObject* const getItem = torchObject("_operator.getitem");
  const DeferredNumber& number = deferredNumber(object);
  if (isArrayScalar(object)) return call(object, torchObject("fusebox._arrays.scalar"), {number.tensor.get()});
  if (number.op == DeferredNumber::kRead && number.element < 0) return call(object, item, {number.tensor.get()});
  if (number.op == DeferredNumber::kRead) {
    if (!made_.contains(number.list.get())) call(number.list.get(), toList, {number.tensor.get()});
    PyRef index = PyRef::steal(PyLong_FromSsize_t(number.element));
    keep_.push_back(index);
    return call(object, getItem, {number.list.get(), index.get()});
  }
  const auto* found =
      std::find_if(std::begin(operators), std::end(operators), [&](const auto& row) { return row.first == number.op; });
  PyObject* function = number.op == DeferredNumber::kFunction ? number.function : found->second;
  if (!number.right) return call(object, function, {number.left.get()});
  return call(object, function, {number.left.get(), number.right.get()});
}

RecipePtr RecipeMaker::array(PyObject* object) {
  using Kind = Arrays::Value::Kind;
  static PyObject* const toArray = torchObject("torch.Tensor.numpy");
  const Arrays::Value& value = *e_.arrays().find(object);
  if (value.kind == Kind::OfTensor) return call(object, toArray, {value.tensor.get()});
  if (value.kind == Kind::View) {
    RecipePtr recipe = node(Recipe::Kind::Call, object);
    PyRef none = PyRef::steal(PyDict_New());
    keep_.push_back(none);
    recipe->children = {constant(value.function.get()), make(value.args.get()), make(none.get())};
    return recipe;
  }
  if (value.isShared)
    throw CaptureBreak{{"numpy", "an array that the region makes outlives it, and so may a tensor that shares its memory", "", e_.place(), {}}, value.birth};
  PyRef type = PyRef::steal(PyObject_GetAttrString(object, "dtype")), name = PyRef::steal(PyObject_GetAttrString(type.get(), "str"));
  PyRef strides = PyRef::steal(PyObject_GetAttrString(object, "strides"));
  PyRef whole = PyRef::steal(PyObject_CallOneArg(torchObject("fusebox._arrays.whole"), object));
  keep_.insert(keep_.end(), {name, strides, whole});
  return call(object, torchObject("fusebox._arrays.made"), {value.tensor.get(), name.get(), strides.get(), whole.get()});
}

RecipePtr RecipeMaker::number(PyObject* object) {
  if (isDeferred(object)) return deferred(object);
  RecipePtr recipe = node(Recipe::Kind::Expression, object);
  recipe->number = std::make_shared<NumberRecipe>(numberExpr(object), e_.trace().shapes().symbols());
  return recipe;
}

RecipePtr RecipeMaker::text(PyObject* object) {
  if (Origin* origin = e_.origin(object)) return fromSource(origin->source);
  const TextParts parts = partsOfText(object);
  if (parts.plain) return constant(parts.plain);
  if (parts.callable) return callWith(object, parts.callable, parts.arguments);
  static PyObject* const join = torchObject("builtins.str.join");
  return call(object, join, {PyRef::steal(PyUnicode_FromString("")).get(), parts.arguments});
}

/// A torch.Size with symbolic ints.
RecipePtr RecipeMaker::size(PyObject* object) {
  PyRef list = PyRef::steal(PySequence_List(object)), items = PyRef::steal(PyList_AsTuple(list.get()));
  keep_.push_back(items);
  return call(object, reinterpret_cast<PyObject*>(sizeType()), {items.get()});
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

/// Parts that PyFunction_New makes by itself are left out.
RecipePtr RecipeMaker::function(PyObject* object) {
  RecipePtr recipe = node(Recipe::Kind::Function, object);
  auto* f = reinterpret_cast<PyFunctionObject*>(object);
  // types.FunctionType is given a dict of the program's.
  PyObject *key, *value;
  for (Py_ssize_t at = 0; e_.origin(f->func_globals) && PyDict_Next(f->func_globals, &at, &key, &value);)
    if (value == object && e_.isFresh(f->func_globals)) refuse(object, "a function whose globals the compiled region made holds itself in them");
  recipe->children = {constant(f->func_code), e_.origin(f->func_globals) ? make(f->func_globals) : constant(f->func_globals), make(f->func_closure)};
  PyRef plain = PyRef::steal(PyFunction_New(f->func_code, f->func_globals));
  for (const char* name : kFunctionParts) {
    PyRef own = PyRef::steal(PyObject_GetAttrString(object, name)), usual = PyRef::steal(PyObject_GetAttrString(plain.get(), name));
    clearError();
    const bool noAnnotations = PyDict_Check(own.get()) && PyDict_GET_SIZE(own.get()) == 0;
    keep_.push_back(own);
    recipe->children.push_back(make(own == usual || noAnnotations ? nullptr : own.get()));
  }
  recipe->children.push_back(make(nullptr));
  if (f->func_dict && PyDict_GET_SIZE(f->func_dict) > 0) {
    auto attributes = std::make_shared<Recipe>();
    attributes->kind = Recipe::Kind::Dict;
    dictionary(*attributes, f->func_dict);
    recipe->children.back() = std::move(attributes);
  }
  return recipe;
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

bool isReadOnly(PyObject* member) { return reinterpret_cast<PyMemberDescrObject*>(member)->d_member->flags & READONLY; }

/// A type of C by its name; lives as long as the process.
PyTypeObject* builtinType(const char* name) { return reinterpret_cast<PyTypeObject*>(torchObject(name)); }

}  // namespace

/// A call that makes the object, which is the same for everybody.
RecipePtr RecipeMaker::call(PyObject* object, PyObject* callable, std::initializer_list<PyObject*> arguments) {
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  Py_ssize_t i = 0;
  for (PyObject* argument : arguments) PyTuple_SET_ITEM(args.get(), i++, Py_NewRef(argument));
  keep_.push_back(args);
  return callWith(object, callable, args.get());
}

RecipePtr RecipeMaker::callWith(PyObject* object, PyObject* callable, PyObject* arguments) {
  RecipePtr recipe = node(Recipe::Kind::Call, object);
  PyRef none = PyRef::steal(PyDict_New());
  keep_.push_back(none);
  recipe->children = {constant(callable), make(arguments), make(none.get())};
  return recipe;
}

void RecipeMaker::refuse(PyObject* object, std::string reason) {
  throw CaptureBreak{{"unsupported value", std::move(reason), "", e_.place(), {}}, e_.origin(object) ? e_.origin(object)->birth : -1};
}

/// Slots that Python classes declare; builtin bases keep their members in `base`.
void RecipeMaker::pythonSlots(Recipe& recipe, PyObject* object) {
  for (PyTypeObject* t = Py_TYPE(object); t; t = t->tp_base)
    if (isPythonClass(t)) members(recipe, object, t);
}

/// What the C members of one class hold.
void RecipeMaker::members(Recipe& recipe, PyObject* object, PyTypeObject* type) {
  PyRef dict = typeDict(type);
  PyObject *key, *descriptor;
  for (Py_ssize_t at = 0; dict && PyDict_Next(dict.get(), &at, &key, &descriptor);) {
    if (Py_TYPE(descriptor) != &PyMemberDescr_Type || isReadOnly(descriptor)) continue;
    PyRef value = PyRef::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
    clearError();
    if (!value || (value.get() == Py_None && !isPythonClass(type))) continue;  // C shows None for what is not set
    keep_.push_back(value);
    recipe.slots.emplace_back(PyRef::borrow(descriptor), make(value.get()));
  }
}

void RecipeMaker::exception(Recipe& recipe, PyObject* object) {
  if (const int64_t raised = e_.raisedAt(object); raised >= 0)
    throw CaptureBreak{{"traceback", std::string("a raised ") + Py_TYPE(object)->tp_name + " outlives the compiled region with its traceback",
                        "", e_.place(), {}}, raised};
  auto* e = reinterpret_cast<PyBaseExceptionObject*>(object);
  if (PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup)) && PyTuple_GET_SIZE(e->args) != 2)
    refuse(object, std::string("a ") + Py_TYPE(object)->tp_name + " cannot be made again of its arguments");
  recipe.base = make(e->args);
  if (e->cause) recipe.slots.emplace_back(exceptionMember("__cause__"), make(e->cause));
  if (e->context) recipe.slots.emplace_back(exceptionMember("__context__"), make(e->context));
  if (e->traceback) recipe.slots.emplace_back(exceptionMember("__traceback__"), make(e->traceback));
  // Setting the cause sets this as well.
  if (e->cause || e->suppress_context)
    recipe.slots.emplace_back(exceptionMember("__suppress_context__"), constant(e->suppress_context ? Py_True : Py_False));
  auto* root = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  for (PyTypeObject* t = builtinBase(Py_TYPE(object)); t && t != root; t = t->tp_base) members(recipe, object, t);
}

/// What the builtin part of an instance holds: `base`, and members of C.
void RecipeMaker::builtinPart(Recipe& recipe, PyObject* object) {
  PyTypeObject* base = builtinBase(Py_TYPE(object));
  auto contents = std::make_shared<Recipe>();
  if (PyDict_Check(object)) {
    contents->kind = Recipe::Kind::Dict;
    dictionary(*contents, object);
    if (base == builtinType("collections.defaultdict")) members(recipe, object, base);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    contents->kind = PyList_Check(object) ? Recipe::Kind::List : Recipe::Kind::Tuple;
    sequence(*contents, object);
  } else if (PyAnySet_Check(object)) {
    contents->kind = PySet_Check(object) ? Recipe::Kind::Set : Recipe::Kind::FrozenSet;
    setContents(*contents, object);
  } else if (PyExceptionInstance_Check(object)) {
    return exception(recipe, object);
  } else if (PyRef plain = plainScalar(object)) {
    contents = constant(plain.get());
  } else if (base == &PyBaseObject_Type || base == builtinType("types.SimpleNamespace")) {
    return;
  } else {
    refuse(object, std::string("a ") + Py_TYPE(object)->tp_name + " made by the compiled region cannot be made again");
  }
  recipe.base = std::move(contents);
}

/// A generator of random numbers that the region made, of these arguments.
RecipePtr RecipeMaker::generator(PyObject* object, PyObject* args) {
  PyRef dict = e_.instanceDict(object);
  if (dict && PyDict_GET_SIZE(dict.get()) != 1) refuse(object, "a generator of random numbers with attributes of its own cannot be made again");
  RecipePtr recipe = node(Recipe::Kind::Call, object);
  recipe->children = {constant(reinterpret_cast<PyObject*>(Py_TYPE(object))), make(args), make(nullptr)};
  return recipe;
}

RecipePtr RecipeMaker::instance(PyObject* object) {
  RecipePtr recipe = node(Recipe::Kind::Instance, object);
  recipe->object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (PyRef dict = e_.instanceDict(object)) dictionary(*recipe, dict.get());
  pythonSlots(*recipe, object);
  builtinPart(*recipe, object);
  return recipe;
}

/// An iterator of the evaluator: CPython's own over the same objects, as far advanced.
RecipePtr RecipeMaker::lazy(LazyIterator& iterator, PyObject* object) {
  Remaking again = iterator.remake(e_);
  if (!again.args)
    throw CaptureBreak{{"generator across a graph break", std::string("a suspended ") + iterator.type()->tp_name + " is alive where capture stops",
                        "Consume it before the break, or use a list.", e_.place(), {}},
                       iterator.birth};
  lazies_.insert(&iterator);
  RecipePtr recipe = node(Recipe::Kind::Call, object);
  PyRef keywords = again.kwargs ? again.kwargs : PyRef::steal(PyDict_New());
  keep_.insert(keep_.end(), {again.args, keywords, again.state});
  RecipePtr made = again.taken < 0 ? recipe : std::make_shared<Recipe>();
  if (again.callable) {
    made->kind = Recipe::Kind::Call;
    made->children = {constant(again.callable.get()), make(again.args.get()), make(keywords.get())};
    if (again.state) made->children.push_back(make(again.state.get()));
  } else {
    made = make(PyTuple_GET_ITEM(again.args.get(), 0));
  }
  if (again.taken < 0) return recipe;
  recipe->kind = Recipe::Kind::Iterator;
  recipe->index = again.taken;
  recipe->children = {std::move(made)};
  return recipe;
}

/// Iterators of C: what pickling says they are made of.
RecipePtr RecipeMaker::reduced(PyObject* object) {
  // object.__reduce__ would make pybind11's base class, which throws through the interpreter.
  if (std::string_view(Py_TYPE(Py_TYPE(object))->tp_name) == "pybind11_type")
    refuse(object, std::string("a ") + Py_TYPE(object)->tp_name + ", which is bound C++, cannot be made again");
  // Whether the deque has changed since is not among what they say.
  if (std::string_view(Py_TYPE(object)->tp_name).starts_with("_collections._deque_")) refuse(object, "an iterator over a deque cannot be made again");
  PyRef parts = pickledParts(object);
  const Py_ssize_t n = parts && PyTuple_Check(parts.get()) ? PyTuple_GET_SIZE(parts.get()) : 0;
  PyObject* state = n > 2 && PyTuple_GET_ITEM(parts.get(), 2) != Py_None ? PyTuple_GET_ITEM(parts.get(), 2) : nullptr;
  bool more = false;  // list and dict items of the pickle protocol
  for (Py_ssize_t i = 3; i < n; ++i) more |= PyTuple_GET_ITEM(parts.get(), i) != Py_None;
  // An object of C that pickling knows nothing about: object.__new__ does not make it.
  const bool isUnknown = n > 0 && PyTuple_GET_ITEM(parts.get(), 0) == torchObject("copyreg._reconstructor");
  if (n < 2 || more || isUnknown || (state && !PyObject_HasAttrString(object, "__setstate__"))) {
    clearError();
    refuse(object, std::string("a ") + Py_TYPE(object)->tp_name + " cannot be made again");
  }
  keep_.push_back(parts);
  RecipePtr recipe = node(Recipe::Kind::Call, object);
  recipe->children.push_back(constant(PyTuple_GET_ITEM(parts.get(), 0)));
  recipe->children.push_back(make(PyTuple_GET_ITEM(parts.get(), 1)));
  PyRef none = PyRef::steal(PyDict_New());
  keep_.push_back(none);
  recipe->children.push_back(make(none.get()));
  if (state) recipe->children.push_back(make(state));
  return recipe;
}

RecipePtr RecipeMaker::elements(PyObject* object) {
  RecipePtr recipe = node(PyTuple_CheckExact(object) ? Recipe::Kind::Tuple : Recipe::Kind::List, object);
  sequence(*recipe, object);
  return recipe;
}

/// Filling a dict or set again asks keys of Python classes for their hash, and compares those of one hash, before the effects that follow.
static void refuseKeysThatLook(Evaluation& e, PyObject* container) {
  static PyObject* const kEq = internedName("__eq__");
  if (e.journal().size() == 0) return;
  PyRef keys = ownElements(container);
  for (Py_ssize_t i = 0; keys && i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyObject* equal = isPythonClass(Py_TYPE(key)) ? e.typeLookup(Py_TYPE(key), kEq) : nullptr;
    if (equal && PyFunction_Check(equal))
      throw CaptureBreak{{"unsupported value", std::string("a ") + Py_TYPE(container)->tp_name + " whose keys compare themselves in Python is made again after writes", "",
                          e.place(), {}}, e.origin(container) ? e.origin(container)->birth : -1};
  }
}

RecipePtr RecipeMaker::plainDict(PyObject* object) {
  // The __dict__ of an object that is made again comes with it.
  Origin* origin = e_.origin(object);
  if (PyObject* owner = origin ? origin->owner.get() : nullptr) {
    static PyObject* const getattr = torchObject("builtins.getattr");
    return call(object, getattr, {owner, internedName("__dict__")});
  }
  refuseKeysThatLook(e_, object);
  RecipePtr recipe = node(Recipe::Kind::Dict, object);
  dictionary(*recipe, object);
  return recipe;
}

/// A set is made again with its order, and with that of all that will be made from it, as far as these do not hang on addresses.
void RecipeMaker::setContents(Recipe& recipe, PyObject* set) {
  PyRef items = ownElements(set);
  bool constants = true, numbers = true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    constants = constants && isConstantValue(item);
    numbers = numbers && (PyLong_Check(item) || PyFloat_Check(item));
  }
  if (constants) {
    PyRef again = PyRef::steal(recipe.kind == Recipe::Kind::FrozenSet ? PyFrozenSet_New(items.get()) : PySet_New(items.get()));
    const bool filled = again && haveSameLayout(again.get(), set);
    if (!filled || !numbers) e_.ownToProcess("the order of a set");
    if (!filled) {
      PyRef kept = setOfSameLayout(set);
      if (!kept) throw std::bad_alloc();
      recipe.object = std::move(kept);
      return;
    }
  }
  keep_.push_back(items);
  sequence(recipe, items.get());
}

RecipePtr RecipeMaker::plainSet(PyObject* object) {
  // One that code holds is itself: a set into which an equal one is merged gets another order.
  if (PyFrozenSet_CheckExact(object) && isValueObject(object) && !e_.isFresh(object)) return constant(object);
  refuseKeysThatLook(e_, object);
  RecipePtr recipe = node(PySet_CheckExact(object) ? Recipe::Kind::Set : Recipe::Kind::FrozenSet, object);
  setContents(*recipe, object);
  return recipe;
}

RecipePtr RecipeMaker::slice(PyObject* object) {
  auto* s = reinterpret_cast<PySliceObject*>(object);
  RecipePtr recipe = node(Recipe::Kind::Slice, object);
  for (PyObject* part : {s->start, s->stop, s->step}) recipe->children.push_back(make(part));
  return recipe;
}

/// A builtin method of a fresh object is bound again; other functions of C are constants.
RecipePtr RecipeMaker::builtinFunction(PyObject* object) {
  PyObject* self = boundSelf(object);
  if (!self) return constant(object);
  const LazyIterator* iterator = lazyOf(self);
  PyRef name = iterator ? PyRef::steal(PyObject_GetAttrString(object, "__name__")) : PyRef();
  PyRef method = name ? PyRef::borrow(_PyType_Lookup(iterator->type(), name.get())) : unboundMethod(object), bind = method ? PyRef::steal(PyObject_GetAttrString(method.get(), "__get__")) : PyRef();
  if (!bind) refuse(object, "a builtin method cannot be bound again");
  keep_.push_back(bind);
  return call(object, bind.get(), {self});
}

RecipePtr RecipeMaker::cell(PyObject* object) {
  RecipePtr recipe = node(Recipe::Kind::Cell, object);
  recipe->children.push_back(make(PyCell_GET(object)));
  return recipe;
}

RecipePtr RecipeMaker::method(PyObject* object) {
  RecipePtr recipe = node(Recipe::Kind::BoundMethod, object);
  recipe->children = {make(PyMethod_GET_FUNCTION(object)), make(PyMethod_GET_SELF(object))};
  return recipe;
}

RecipePtr RecipeMaker::partial(PyObject* object) {
  RecipePtr recipe = node(Recipe::Kind::Partial, object);
  for (const char* part : {"func", "args", "keywords"}) {
    PyRef value = PyRef::steal(PyObject_GetAttrString(object, part));
    keep_.push_back(value);
    recipe->children.push_back(make(value.get()));
  }
  return recipe;
}

RecipePtr RecipeMaker::super(PyObject* object) {
  PyRef type = PyRef::steal(PyObject_GetAttrString(object, "__thisclass__")), self = PyRef::steal(PyObject_GetAttrString(object, "__self__"));
  return call(object, reinterpret_cast<PyObject*>(&PySuper_Type), {type.get(), self.get()});
}

/// staticmethod, classmethod.
RecipePtr RecipeMaker::aroundFunction(PyObject* object) {
  PyRef function = PyRef::steal(PyObject_GetAttrString(object, "__func__"));
  keep_.push_back(function);
  return call(object, reinterpret_cast<PyObject*>(Py_TYPE(object)), {function.get()});
}

RecipePtr RecipeMaker::property(PyObject* object) {
  PyRef parts[] = {PyRef::steal(PyObject_GetAttrString(object, "fget")), PyRef::steal(PyObject_GetAttrString(object, "fset")), PyRef::steal(PyObject_GetAttrString(object, "fdel")),
                   PyRef::steal(PyObject_GetAttrString(object, "__doc__"))};
  for (const PyRef& part : parts) keep_.push_back(part);
  return call(object, reinterpret_cast<PyObject*>(&PyProperty_Type), {parts[0].get(), parts[1].get(), parts[2].get(), parts[3].get()});
}

RecipePtr RecipeMaker::deque(PyObject* object) {
  PyRef items = ownElements(object), longest = PyRef::steal(PyObject_GetAttrString(object, "maxlen"));
  return call(object, reinterpret_cast<PyObject*>(Py_TYPE(object)), {items.get(), longest.get()});
}

RecipePtr RecipeMaker::weakReference(PyObject* object) {
  PyObject* target = PyWeakref_GET_OBJECT(object);
  if (target == Py_None) refuse(object, "a weak reference to an object that is gone");
  return call(object, reinterpret_cast<PyObject*>(&_PyWeakref_RefType), {target});
}

RecipePtr RecipeMaker::dictView(PyObject* object) {
  DictWalk::Kind kind{};
  PyObject* dict = dictOfView(object, &kind);
  static constexpr const char* kNames[] = {"keys", "values", "items"};
  auto* owner = reinterpret_cast<PyObject*>(PyODict_Check(dict) ? &PyODict_Type : &PyDict_Type);
  PyRef method = PyRef::steal(PyObject_GetAttrString(owner, kNames[static_cast<int>(kind)]));
  return call(object, method.get(), {dict});
}

RecipePtr RecipeMaker::proxy(PyObject* object) {
  Origin* origin = e_.origin(object);
  if (origin && origin->owner) return call(object, torchObject("builtins.vars"), {origin->owner.get()});
  PyRef mapping = e_.proxied(object);
  keep_.push_back(mapping);
  return call(object, reinterpret_cast<PyObject*>(&PyDictProxy_Type), {mapping.get()});
}

/// How objects of builtin types are made, by the type itself; null for all others.
RecipeMaker::Maker RecipeMaker::makerOf(PyTypeObject* type) {
  static const auto* makers = new std::unordered_map<PyTypeObject*, Maker>{
      {&PyTuple_Type, &RecipeMaker::elements}, {&PyList_Type, &RecipeMaker::elements}, {&PyDict_Type, &RecipeMaker::plainDict},
      {&PySet_Type, &RecipeMaker::plainSet}, {&PyFrozenSet_Type, &RecipeMaker::plainSet}, {&PySlice_Type, &RecipeMaker::slice},
      {&PyRange_Type, &RecipeMaker::constant}, {&PyCFunction_Type, &RecipeMaker::builtinFunction},
      {&PyCMethod_Type, &RecipeMaker::builtinFunction}, {&_PyMethodWrapper_Type, &RecipeMaker::builtinFunction},
      {&PyCell_Type, &RecipeMaker::cell}, {&PyFunction_Type, &RecipeMaker::function}, {&PyMethod_Type, &RecipeMaker::method},
      {builtinType("functools.partial"), &RecipeMaker::partial}, {&PySuper_Type, &RecipeMaker::super},
      {&PyStaticMethod_Type, &RecipeMaker::aroundFunction}, {&PyClassMethod_Type, &RecipeMaker::aroundFunction}, {&PyProperty_Type, &RecipeMaker::property},
      {&PyDictKeys_Type, &RecipeMaker::dictView}, {&PyDictValues_Type, &RecipeMaker::dictView}, {&PyDictItems_Type, &RecipeMaker::dictView},
      {&PyDictProxy_Type, &RecipeMaker::proxy}, {&PyODictKeys_Type, &RecipeMaker::dictView}, {&PyODictValues_Type, &RecipeMaker::dictView},
      {&PyODictItems_Type, &RecipeMaker::dictView}, {&PyODict_Type, &RecipeMaker::instance},
      {builtinType("collections.defaultdict"), &RecipeMaker::instance}, {builtinType("types.SimpleNamespace"), &RecipeMaker::instance},
      {builtinType("collections.deque"), &RecipeMaker::deque}, {&_PyWeakref_RefType, &RecipeMaker::weakReference}};
  auto it = makers->find(type);
  return it == makers->end() ? nullptr : it->second;
}

/// What id() gave, as a value or within a constant; null: nothing of the kind.
static PyObject* addressIn(const Evaluation& e, PyObject* object) {
  if (e.isAddress(object)) return object;
  if (!PyTuple_CheckExact(object)) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (PyObject* found = isConstantValue(PyTuple_GET_ITEM(object, i)) ? addressIn(e, PyTuple_GET_ITEM(object, i)) : nullptr) return found;
  return nullptr;
}

RecipePtr RecipeMaker::make(PyObject* object) {
  static thread_local int depth = 0;
  constexpr int kDeepest = 1000;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  if (object && depth > kDeepest) refuse(object, "objects inside each other go too deep to be made again");
  if (!object) {
    auto recipe = std::make_shared<Recipe>();
    recipe->kind = Recipe::Kind::Null;
    return recipe;
  }
  if (auto it = made_.find(object); it != made_.end()) {
    if (it->second->kind == Recipe::Kind::Call && it->second->children.size() < 2)
      refuse(object, std::string("a ") + Py_TYPE(object)->tp_name + " that holds itself cannot be made again");
    return it->second;
  }
  e_.standIns().requireUnseen(object);
  if (e_.isTensor(object)) return tensor(object);
  for (PyObject* address = addressIn(e_, object); address; address = addressIn(e_, object))
    if (!e_.settleAddress(address)) throw CaptureBreak{{"identity", "the id of an object is alive where capture stops", "", e_.place(), {}}, e_.addresses_.at(PyLong_AsVoidPtr(address))};
  if (isConstantValue(object)) return constant(object);
  if (Origin* origin = isArrayScalar(object) ? e_.origin(object) : nullptr; origin && origin->source) return fromSource(origin->source);
  if (isSymbolicNumber(object)) return number(object);
  if (isSymbolicText(object)) return text(object);
  if (isRaggedSize(object)) {
    PyRef tensor = raggedBy(object);
    if (!tensor) refuse(object, "a multiple of the size of a ragged dimension cannot be made again");
    return call(object, torchObject("fusebox._nested.ragged_number"), {tensor.get()});
  }
  Origin* origin = e_.origin(object);
  if (origin && origin->source) return origin->source->kind == Source::Kind::Pinned ? constant(object) : fromSource(origin->source);
  if (isSizeObject(object)) return size(object);
  if (e_.arrays().find(object)) return array(object);
  if (object == e_.handledBefore()) {
    auto recipe = std::make_shared<Recipe>();
    recipe->kind = Recipe::Kind::Handled;
    return recipe;
  }
  if (LazyIterator* iterator = lazyOf(object)) return lazy(*iterator, object);
  if (isWrapperClass(Py_TYPE(object))) return wrapper(object);
  if (PyObject* args = e_.draws().argumentsOf(object)) return generator(object, args);
  if (Maker maker = makerOf(Py_TYPE(object))) return (this->*maker)(object);
  if (PyWeakref_Check(object) && e_.isFresh(object)) refuse(object, "a weak reference that the compiled region made");
  if (isIdentityValue(object)) return constant(object);
  if (isPythonClass(Py_TYPE(object)) || PyExceptionInstance_Check(object)) return instance(object);
  return reduced(object);
}

}  // namespace fusebox::capture
