// Rules for Python's module random: which methods of its generators are called before the graph, and what they give.
#include "engine/capture/evaluation/random_draws.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {

namespace {

template <RandomDraws::Gives kGives>
PyRef ruleDraw(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return e.draws().call(callable, a, kGives);
}

PyRef ruleGenerator(Evaluation& e, PyObject* callable, const CallArguments& a) { return e.draws().makeGenerator(callable, a); }

constexpr CallRule ruleFloat = ruleDraw<RandomDraws::Gives::Float>, ruleInt = ruleDraw<RandomDraws::Gives::Int>;

constexpr RuleRow kRandomRows[] = {
    {"random.Random", ruleGenerator},
    {"random.Random.seed", ruleDraw<RandomDraws::Gives::Nothing>},
    {"random.Random.random", ruleFloat},
    {"random.Random.uniform", ruleFloat},
    {"random.Random.triangular", ruleFloat},
    {"random.Random.gauss", ruleFloat},
    {"random.Random.normalvariate", ruleFloat},
    {"random.Random.lognormvariate", ruleFloat},
    {"random.Random.expovariate", ruleFloat},
    {"random.Random.vonmisesvariate", ruleFloat},
    {"random.Random.gammavariate", ruleFloat},
    {"random.Random.betavariate", ruleFloat},
    {"random.Random.paretovariate", ruleFloat},
    {"random.Random.weibullvariate", ruleFloat},
    {"random.Random.randint", ruleInt},
    {"random.Random.randrange", ruleInt},
    {"random.Random.getrandbits", ruleInt},
};

}  // namespace

RuleRows randomRules() { return {kRandomRows, std::size(kRandomRows)}; }

}  // namespace fusebox::capture
