#include "engine/capture/evaluation/random_draws.h"

#include <algorithm>

#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/trace/recorder.h"

namespace fusebox::capture {

namespace {

constexpr const char* kKind = "random numbers";

PyRef tupleOf(PyObject* const* objects, size_t count) {
  PyRef made = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects[i]));
  return made;
}

}  // namespace

/// What is known before the graph runs: constants, and ints of the symbols that the call brings.
void RandomDraws::requirePlain(const CallArguments& a, size_t first) {
  for (size_t i = first; i < a.total(); ++i) {
    PyObject* o = a.args[i];
    const bool isOfCall = isSymbolicNumber(o) && !isDeferred(o) && e_.trace().shapes().dataSymbols().empty();
    if (!isOfCall && (isSymbolicNumber(o) || !isConstantValue(o)))
      e_.breakHere(kKind, std::string("random is given a ") + Py_TYPE(o)->tp_name + " that is not known before the graph runs");
  }
}

PyRef RandomDraws::call(PyObject* method, const CallArguments& a, Gives gives) {
  static PyObject* const plain = torchObject("random.Random");
  PyObject* generator = a.args[0];
  if (reinterpret_cast<PyObject*>(Py_TYPE(generator)) != plain)
    e_.breakHere(kKind, std::string("a generator of class ") + Py_TYPE(generator)->tp_name + " is asked");
  if (e_.functions().isLate() || e_.trace().recorder().isBackward()) e_.breakHere(kKind, "random is asked in a backward pass");
  // Such an operator may ask the generator too.
  if (e_.calledPython()) e_.breakHere(kKind, "random is asked after an operator that is written in Python");
  requirePlain(a, 1);
  if (const Source* source = e_.sourceOf(generator)) e_.guard(GuardKind::TypeMatch, source, plain);
  Call call{.generator = PyRef::borrow(generator), .method = PyRef::borrow(method), .args = tupleOf(a.args, a.positional), .keywords = PyRef::steal(PyDict_New()), .gives = gives};
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(call.keywords.get(), a.keywordName(i), a.args[a.positional + i]);
  for (const PyRef& made : {call.args, call.keywords}) e_.adopt(made.get());
  e_.pin(method, Why::Process);
  e_.ownToProcess("a generator of random numbers");
  PyRef result = none();
  if (gives != Gives::Nothing) {
    at::Tensor real;
    {
      const trace::NoTrace off;
      real = gives == Gives::Float ? at::scalar_tensor(0.5, at::kDouble) : at::scalar_tensor(2, at::kLong);
    }
    PyRef number = PyRef::steal(newTensorObject(real));
    call.number = e_.sourceOf(e_.pin(number.get(), Why::Capture).get());
    PyRef standIn = e_.inputDrawn(number.get(), call.number);
    const Place place = e_.place();
    result = newDeferred(gives == Gives::Float ? &PyFloat_Type : &PyLong_Type,
                         {.tensor = standIn, .readAt = place.file.substr(place.file.rfind('/') + 1) + ":" + std::to_string(place.line)});
  }
  calls_.push_back(std::move(call));
  return result;
}

PyRef RandomDraws::makeGenerator(PyObject* type, const CallArguments& a) {
  requirePlain(a, 0);
  if (a.keywords() > 0) e_.breakHere(kKind, "random.Random is given a keyword");
  PyRef args = tupleOf(a.args, a.positional), made = PyRef::steal(PyObject_CallNoArgs(type));
  if (!made) return {};
  e_.adopt(args.get());
  e_.adopt(made.get());
  made_.push_back({made, std::move(args)});
  return made;
}

PyObject* RandomDraws::argumentsOf(PyObject* generator) const {
  const auto at = std::find_if(made_.begin(), made_.end(), [&](const Made& m) { return m.generator.get() == generator; });
  return at == made_.end() ? nullptr : at->args.get();
}

std::vector<Draw> RandomDraws::finish(RecipeMaker& recipes) const {
  std::vector<Draw> draws;
  for (const Call& call : calls_) {
    Draw draw{.generator = recipes.make(call.generator.get()), .number = call.number, .isFloat = call.gives == Gives::Float};
    draw.call = std::make_shared<Recipe>();
    draw.call->kind = Recipe::Kind::Call;
    draw.call->children = {recipes.make(call.method.get()), recipes.make(call.args.get()), recipes.make(call.keywords.get())};
    draws.push_back(std::move(draw));
  }
  return draws;
}

}  // namespace fusebox::capture
