// Rules for Python's module random and numpy.random: methods of generators that are called before the graph.
#include "engine/capture/evaluation/random_draws.h"
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

constexpr RuleRow kRandomRows[] = {
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
