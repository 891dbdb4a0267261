#include "engine/capture/evaluation/random_draws.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/trace/recorder.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

constexpr const char* kKind = "random numbers";

struct Generator {
  const char *type, *fresh;
  const char *getState, *setState;  ///< methods; null: `state` of its `bit_generator`
  bool isPython;                    ///< of the module random, or torch's: methods give numbers alone
};
constexpr Generator kGenerators[] = {{"random.Random", "random.Random", "getstate", "setstate", true},
                                     {"numpy.random.RandomState", "numpy.random.RandomState", "get_state", "set_state", false},
                                     {"numpy.random.Generator", "numpy.random.default_rng", nullptr, nullptr, false},
                                     {"torch._C.Generator", "torch._C.Generator", "get_state", "set_state", true}};

const Generator* kindOf(PyObject* generator) {
  for (const Generator& kind : kGenerators)
    if (PyObject* type = torchObject(kind.type); type && reinterpret_cast<PyObject*>(Py_TYPE(generator)) == type) return &kind;
  return nullptr;
}

const Generator* torchsOwn() { return std::end(kGenerators) - 1; }

PyRef tupleOf(PyObject* const* objects, size_t count) {
  PyRef made = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects[i]));
  return made;
}

}  // namespace

PyRef stateOfGenerator(PyObject* generator) {
  const Generator* kind = kindOf(generator);
  if (!kind) return PyErr_SetString(PyExc_TypeError, "not a generator of random numbers"), PyRef();
  if (kind->getState) return PyRef::steal(PyObject_CallMethodNoArgs(generator, internedName(kind->getState)));
  const PyRef bits = PyRef::steal(PyObject_GetAttrString(generator, "bit_generator"));
  return bits ? PyRef::steal(PyObject_GetAttrString(bits.get(), "state")) : PyRef();
}

void setStateOfGenerator(PyObject* generator, PyObject* state) {
  const Generator* kind = kindOf(generator);
  if (kind && kind->setState) PyRef::steal(PyObject_CallMethodOneArg(generator, internedName(kind->setState), state));
  const PyRef bits = kind && !kind->setState ? PyRef::steal(PyObject_GetAttrString(generator, "bit_generator")) : PyRef();
  if (bits) PyObject_SetAttrString(bits.get(), "state", state);
}

PyRef tensorOfNumpy(PyObject* value) {
  static PyObject* const fromNumpy = torchObject("torch.from_numpy");
  static PyObject* const asArray = torchObject("numpy.asarray");
  const PyRef array = PyRef::steal(PyObject_CallOneArg(asArray, value));
  PyRef tensor = array ? PyRef::steal(PyObject_CallOneArg(fromNumpy, array.get())) : PyRef();
  if (!tensor) clearError();
  return tensor;
}

/// What is known before the graph runs: constants, and ints of the symbols that the call brings.
void RandomDraws::requirePlain(const CallArguments& a, size_t first) {
  for (size_t i = first; i < a.total(); ++i) {
    PyObject* o = a.args[i];
    const bool isOfCall = isSymbolicInt(o) && !isDeferred(o) && e_.trace().shapes().dataSymbols().empty();
    if (!isOfCall && (isSymbolicNumber(o) || !isConstantValue(o)))
      e_.breakHere(kKind, std::string("random is given a ") + Py_TYPE(o)->tp_name + " that is not known before the graph runs");
  }
}

/// What the method gives with a generator that nobody has: its type and sizes are those of every call.
PyRef RandomDraws::sample(PyObject* method, const CallArguments& a, const char* kind) {
  const PyRef generator = PyRef::steal(PyObject_CallNoArgs(torchObject(kind)));
  if (!generator) return {};
  std::vector<PyRef> plain;
  std::vector<PyObject*> args = {generator.get()};
  for (size_t i = 1; i < a.total(); ++i) {
    plain.push_back(isSymbolicNumber(a.args[i]) ? PyRef::steal(PyLong_FromLongLong(e_.trace().shapes().hint(numberExpr(a.args[i]).a))) : PyRef::borrow(a.args[i]));
    args.push_back(plain.back().get());
  }
  return PyRef::steal(PyObject_Vectorcall(method, args.data(), a.positional, a.kwNames));
}

std::string_view methodName(PyObject* method) {
  PyObject* code = PyFunction_Check(method) ? PyFunction_GET_CODE(method) : nullptr;
  const char* name = code ? utf8Of(reinterpret_cast<PyCodeObject*>(code)->co_name) : nullptr;
  return name ? name : "";
}

/// Whether an argument of a method of numpy's says between what is drawn; all others may be sizes.
bool isRangeOfNumpys(PyObject* method, const CallArguments& a, size_t position) {
  const PyRef name = PyRef::steal(PyObject_GetAttrString(method, "__name__"));
  clearError();
  static constexpr std::string_view kMethods[] = {"randint", "integers", "uniform", "normal"};
  if (!name || !PyUnicode_Check(name.get()) || std::find(std::begin(kMethods), std::end(kMethods), utf8Of(name.get())) == std::end(kMethods)) return false;
  if (position < a.positional) return position <= 2;
  static constexpr std::string_view kKeywords[] = {"low", "high", "loc", "scale"};
  return std::find(std::begin(kKeywords), std::end(kKeywords), utf8Of(a.keywordName(position - a.positional))) != std::end(kKeywords);
}

/// How the program sees what is drawn.
PyRef RandomDraws::resultOf(Call& call, PyObject* sample) {
  using Gives = Draw::Gives;
  int overflow = 0;
  if (PyFloat_CheckExact(sample)) call.gives = Gives::Float;
  else if (PyLong_CheckExact(sample) && (PyLong_AsLongLongAndOverflow(sample, &overflow), !overflow)) call.gives = Gives::Int;
  else if (isArray(sample) || isNumpyScalar(Py_TYPE(sample))) call.gives = Gives::Array;
  else if (isTensorObject(sample)) call.gives = Gives::Tensor;
  else e_.breakHere(kKind, std::string("random gives a ") + Py_TYPE(sample)->tp_name);
  PyRef number;
  {
    const trace::NoTrace off;
    number = call.gives == Gives::Float ? PyRef::steal(newTensorObject(at::scalar_tensor(0.5, at::kDouble)))
             : call.gives == Gives::Int    ? PyRef::steal(newTensorObject(at::scalar_tensor(2, at::kLong)))
             : call.gives == Gives::Tensor ? PyRef::borrow(sample)
                                           : tensorOfNumpy(sample);
  }
  if (!number) e_.breakHere(kKind, std::string("random gives a ") + Py_TYPE(sample)->tp_name + " that has no tensor");
  call.number = e_.sourceOf(e_.pin(number.get(), Why::Capture).get());
  PyRef standIn = e_.inputDrawn(number.get(), call.number);
  if (call.gives == Gives::Tensor) return standIn;
  if (isArray(sample)) {
    PyRef array = e_.arrays().ofTensor(standIn.get());
    return array ? array : (e_.breakHere(kKind, "random gives an array"), PyRef());
  }
  const Place place = e_.place();
  DeferredNumber read{.tensor = standIn, .readAt = place.file.substr(place.file.rfind('/') + 1) + ":" + std::to_string(place.line)};
  if (call.gives == Gives::Array) {
    static PyObject* const recipes = PyImport_ImportModule("fusebox._arrays");  // they name a function of it
    if (!recipes) return {};
    PyRef scalar = newArrayScalar(std::move(read));
    return scalar ? scalar : (e_.breakHere(kKind, "random gives a number of numpy's"), PyRef());
  }
  e_.trace().dataSizes().readsNumbers = true;
  return newDeferred(call.gives == Gives::Float ? &PyFloat_Type : &PyLong_Type, std::move(read));
}

/// Calls that cannot be made before the graph.
void RandomDraws::requireTime() const {
  if (e_.functions().isLate() || e_.trace().recorder().isBackward()) e_.breakHere(kKind, "random is asked in a backward pass");
  // Such an operator may ask the generator too.
  if (e_.calledPython()) e_.breakHere(kKind, "random is asked after an operator that is written in Python");
}

PyRef RandomDraws::tensor(PyObject* function, const CallArguments& a) {
  PyObject* generator = a.keyword("generator");
  requireTime();
  if (e_.functionModes().isActive() || trace::currentTransform() || c10::InferenceMode::is_enabled())
    e_.breakHere(kKind, "a generator of torch's is asked inside a mode or a transform");
  std::vector<PyRef> plain;
  for (size_t i = 0; i < a.total(); ++i) {
    PyObject* o = a.args[i];
    plain.push_back(o == generator || !(PyTuple_Check(o) || PyList_Check(o)) || isConstantValue(o) ? PyRef::borrow(o) : e_.collect(o, true));
    if (!plain.back()) return {};
    o = plain.back().get();
    if (o != generator && (isSymbolicNumber(o) || isSizeObject(o) || !(isConstantValue(o) || isValueObject(o) || isIdentityValue(o))))
      e_.breakHere(kKind, std::string("a random operator takes its own generator, and a ") + Py_TYPE(o)->tp_name + " that is not known before the graph runs");
  }
  const auto numbers = [&](PyObject* asked) {
    PyRef keywords = PyRef::steal(PyDict_New());
    for (size_t i = 0; i < a.keywords(); ++i) {
      PyObject* value = plain[a.positional + i].get();
      PyDict_SetItem(keywords.get(), a.keywordName(i), value == generator ? asked : value);
    }
    return keywords;
  };
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional))), like;
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef(plain[i]).release());
  {
    const trace::NoTrace off;
    const PyRef device = PyRef::steal(PyObject_GetAttrString(generator, "device"));
    const PyRef fresh = device ? PyRef::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(generator)), device.get())) : PyRef();
    if (fresh) like = PyRef::steal(PyObject_Call(function, args.get(), numbers(fresh.get()).get()));
  }
  clearError();
  if (!like || !isTensorObject(like.get()) || tensorOf(like.get()).requires_grad() || tensorOf(like.get()).layout() != at::kStrided)
    e_.breakHere(kKind, "a random operator takes its own generator, and gives no plain tensor");
  Call call{.generator = PyRef::borrow(generator), .method = PyRef::borrow(function), .args = args, .keywords = numbers(generator)};
  for (const PyRef& made : {call.args, call.keywords}) e_.adopt(made.get());
  e_.pin(function, Why::Process);
  e_.ownToProcess("a generator of random numbers");
  PyRef result = resultOf(call, like.get());
  calls_.push_back(std::move(call));
  return result;
}

PyRef RandomDraws::call(PyObject* method, const CallArguments& a) {
  PyObject* generator = a.args[0];
  const Generator* kind = kindOf(generator);
  if (!kind) e_.breakHere(kKind, std::string("a generator of class ") + Py_TYPE(generator)->tp_name + " is asked");
  // The graph's operators draw from it too.
  if (kind == torchsOwn() && !isOwnGenerator(generator)) e_.breakHere(kKind, "a method of a default generator is called");
  requireTime();
  requirePlain(a, 1);
  std::vector<PyRef> keep;
  std::vector<PyObject*> given(a.args.begin(), a.args.begin() + a.total());
  for (size_t i = 1; i < given.size() && !kind->isPython; ++i)
    if (!isRangeOfNumpys(method, a, i)) keep.push_back(e_.plainNumber(given[i], "given to numpy's random")), given[i] = keep.back().get();
  const CallArguments known{given.data(), a.positional, a.kwNames};
  // Of such numbers the methods that want ints warn, before they raise: once is enough.
  const std::string_view name = methodName(method);
  if (kind->isPython && (name == "randint" || name == "randrange") && std::any_of(given.begin() + 1, given.end(), [](PyObject* o) { return PyFloat_Check(o) != 0; }))
    e_.breakHere(kKind, "random is given a float for an int");
  PyRef like = sample(method, known, kind->fresh);
  if (!like) {
    clearError();
    e_.breakHere(kKind, "random raises");
  }
  if (const Source* source = e_.sourceOf(generator)) e_.guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(generator)));
  Call call{.generator = PyRef::borrow(generator), .method = PyRef::borrow(method), .args = tupleOf(known.args, known.positional), .keywords = PyRef::steal(PyDict_New())};
  for (size_t i = 0; i < known.keywords(); ++i) PyDict_SetItem(call.keywords.get(), known.keywordName(i), known.args[known.positional + i]);
  for (const PyRef& made : {call.args, call.keywords}) e_.adopt(made.get());
  e_.pin(method, Why::Process);
  e_.ownToProcess("a generator of random numbers");
  PyRef result = like.get() == Py_None ? none() : Py_IS_TYPE(like.get(), Py_TYPE(generator)) ? PyRef::borrow(generator) : resultOf(call, like.get());
  calls_.push_back(std::move(call));
  return result;
}

PyRef RandomDraws::makeGenerator(PyObject* type, const CallArguments& a) {
  const bool isTorchs = type == torchObject("torch._C.Generator");  // whose one argument is a device
  if (!isTorchs) requirePlain(a, 0);
  for (size_t i = 0; i < a.total(); ++i)
    if (!isConstantValue(a.args[i]) && !isValueObject(a.args[i])) e_.breakHere(kKind, std::string("a generator is made of a ") + Py_TYPE(a.args[i])->tp_name);
  if (a.keywords() > 0 && !isTorchs) e_.breakHere(kKind, "random.Random is given a keyword");
  PyRef args = tupleOf(a.args, a.total()), made = PyRef::steal(isTorchs ? PyObject_Vectorcall(type, a.args + 0, a.positional, a.kwNames) : PyObject_CallNoArgs(type));
  if (!made) return {};
  e_.adopt(args.get());
  e_.adoptIterator(made.get());  // torch's are not the garbage collector's
  made_.push_back({made, std::move(args)});
  return made;
}

PyObject* RandomDraws::argumentsOf(PyObject* generator) const {
  const auto at = std::find_if(made_.begin(), made_.end(), [&](const Made& m) { return m.generator.get() == generator; });
  return at == made_.end() ? nullptr : at->args.get();
}

std::string RandomDraws::nameOf(const Source* input) const {
  const auto at = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) { return call.number == input; });
  return at == calls_.end() ? input->str() : "random_value_" + std::to_string(at - calls_.begin());
}

std::vector<Draw> RandomDraws::finish(RecipeMaker& recipes) const {
  std::vector<Draw> draws;
  for (const Call& call : calls_) {
    Draw draw{.generator = recipes.make(call.generator.get()), .gives = call.gives, .number = call.number};
    draw.call = std::make_shared<Recipe>();
    draw.call->kind = Recipe::Kind::Call;
    draw.call->children = {recipes.make(call.method.get()), recipes.make(call.args.get()), recipes.make(call.keywords.get())};
    draws.push_back(std::move(draw));
  }
  return draws;
}

}  // namespace fusebox::capture
