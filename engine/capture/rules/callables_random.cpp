// Rules for Python's module random and numpy.random: methods of generators that are called before the graph.
#include "engine/capture/evaluation/random_draws.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {

namespace {

PyRef ruleDraw(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.draws().call(callable, a); }
PyRef ruleGenerator(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.draws().makeGenerator(callable, a); }

/// A function of torch that makes a tensor: with a generator of its own, beforehand.
PyRef ruleDrawTensor(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* generator = a.keyword("generator");
  if (!generator || generator == Py_None) return e.callReal(callable, a);
  return isOwnGenerator(generator) ? e.draws().tensor(callable, a) : e.callReal(callable, a);
}

PyRef sizesOf(at::IntArrayRef sizes) {
  PyRef made = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  return made;
}

/// A method of a tensor that fills it with what a generator of its own gives: a tensor like it is filled beforehand, and copied.
PyRef ruleDrawInPlace(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* generator = a.keyword("generator");
  if (!generator || !isOwnGenerator(generator) || a.keywords() > 1 || !e.isStandIn(a.args[0]) || tensorOf(a.args[0]).unsafeGetTensorImpl()->has_symbolic_sizes_strides())
    return e.callReal(callable, a);
  const at::Tensor& tensor = tensorOf(a.args[0]);
  const PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__")), sizes = sizesOf(tensor.sizes()), strides = sizesOf(tensor.strides());
  const PyRef dtype = PyRef::steal(PyObject_GetAttrString(a.args[0], "dtype")), device = PyRef::steal(PyObject_GetAttrString(generator, "device"));
  PyRef arguments = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional) - 1));
  for (size_t i = 1; i < a.positional; ++i) PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) - 1, PyRef::borrow(a.args[i]).release());
  PyObject* given[] = {name.get(), sizes.get(), strides.get(), dtype.get(), device.get(), arguments.get(), generator};
  const PyRef keyword = PyRef::steal(Py_BuildValue("(s)", "generator"));
  const PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._draws")), filled = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "filled")) : PyRef();
  PyRef drawn = filled ? e.draws().tensor(filled.get(), {given, std::size(given) - 1, keyword.get()}) : PyRef();
  PyObject* copied[] = {a.args[0], drawn.get()};
  return drawn ? e.call(torchObject("torch.Tensor.copy_"), copied, 2, nullptr) : PyRef();
}

constexpr RuleRow kRandomRows[] = {
    {"torch.Tensor.uniform_", ruleDrawInPlace},
    {"torch.Tensor.normal_", ruleDrawInPlace},
    {"torch.Tensor.random_", ruleDrawInPlace},
    {"torch.Tensor.exponential_", ruleDrawInPlace},
    {"torch.Tensor.geometric_", ruleDrawInPlace},
    {"torch.Tensor.cauchy_", ruleDrawInPlace},
    {"torch.Tensor.log_normal_", ruleDrawInPlace},
    {"torch.Tensor.bernoulli_", ruleDrawInPlace},
    {"torch._C.Generator", ruleGenerator},
    {"torch._C.Generator.manual_seed", ruleDraw},
    {"torch._C.Generator.initial_seed", ruleDraw},
    {"torch.rand", ruleDrawTensor},
    {"torch.randn", ruleDrawTensor},
    {"torch.randint", ruleDrawTensor},
    {"torch.randperm", ruleDrawTensor},
    {"torch.normal", ruleDrawTensor},
    {"random.Random", ruleGenerator},
    {"random.Random.seed", ruleDraw},
    {"random.Random.random", ruleDraw},
    {"random.Random.uniform", ruleDraw},
    {"random.Random.triangular", ruleDraw},
    {"random.Random.gauss", ruleDraw},
    {"random.Random.normalvariate", ruleDraw},
    {"random.Random.lognormvariate", ruleDraw},
    {"random.Random.expovariate", ruleDraw},
    {"random.Random.vonmisesvariate", ruleDraw},
    {"random.Random.gammavariate", ruleDraw},
    {"random.Random.betavariate", ruleDraw},
    {"random.Random.paretovariate", ruleDraw},
    {"random.Random.weibullvariate", ruleDraw},
    {"random.Random.randint", ruleDraw},
    {"random.Random.randrange", ruleDraw},
    {"random.Random.getrandbits", ruleDraw},
    {"numpy.random.RandomState.seed", ruleDraw},
    {"numpy.random.RandomState.random", ruleDraw},
    {"numpy.random.RandomState.random_sample", ruleDraw},
    {"numpy.random.RandomState.rand", ruleDraw},
    {"numpy.random.RandomState.randn", ruleDraw},
    {"numpy.random.RandomState.uniform", ruleDraw},
    {"numpy.random.RandomState.normal", ruleDraw},
    {"numpy.random.RandomState.standard_normal", ruleDraw},
    {"numpy.random.RandomState.exponential", ruleDraw},
    {"numpy.random.RandomState.beta", ruleDraw},
    {"numpy.random.RandomState.gamma", ruleDraw},
    {"numpy.random.RandomState.lognormal", ruleDraw},
    {"numpy.random.RandomState.binomial", ruleDraw},
    {"numpy.random.RandomState.poisson", ruleDraw},
    {"numpy.random.RandomState.randint", ruleDraw},
    {"numpy.random.RandomState.permutation", ruleDraw},
    {"numpy.random.Generator.random", ruleDraw},
    {"numpy.random.Generator.uniform", ruleDraw},
    {"numpy.random.Generator.normal", ruleDraw},
    {"numpy.random.Generator.standard_normal", ruleDraw},
    {"numpy.random.Generator.exponential", ruleDraw},
    {"numpy.random.Generator.beta", ruleDraw},
    {"numpy.random.Generator.gamma", ruleDraw},
    {"numpy.random.Generator.lognormal", ruleDraw},
    {"numpy.random.Generator.binomial", ruleDraw},
    {"numpy.random.Generator.poisson", ruleDraw},
    {"numpy.random.Generator.integers", ruleDraw},
    {"numpy.random.Generator.permutation", ruleDraw},
};

}  // namespace

RuleRows randomRules() { return {kRandomRows, std::size(kRandomRows)}; }

}  // namespace fusebox::capture
