#include <QTest>
#include <cmath>
#include <ctime>
#include <map>

#include "tests/engine/scheduler/lowered_maker.h"
#include "tests/engine/scheduler/program_walk.h"

using namespace fusebox;
using namespace fusebox::inductor;
using namespace fusebox::inductor::testing;

namespace {

Schedule scheduled(const LoweredGraph& graph, ScheduleOptions options = {}) {
  auto result = schedule(graph, options);
  if (!result) qFatal("%s", result.error().text().c_str());
  return std::move(*result);
}

int launches(const Schedule& s) {
  int count = 0;
  for (const Step& step : s.program.steps) count += std::holds_alternative<LaunchStep>(step);
  return count;
}

/// Largest relative difference of results that are float32 or integers.
double difference(const LoweredGraph& graph, const std::vector<Memory>& a, const std::vector<Memory>& b) {
  double worst = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    const DType type = graph.buffers[static_cast<size_t>(graph.results[r].as<graph::ValueRef>()->node)].meta.dtype;
    const auto size = static_cast<size_t>(graph::elementSize(type));
    if (a[r].size() != b[r].size()) return 1e9;
    for (size_t i = 0; i < a[r].size() / size; ++i) {
      const auto x = codegen::testing::loadNumber(a[r].data() + i * size, type);
      const auto y = codegen::testing::loadNumber(b[r].data() + i * size, type);
      if (!graph::isFloatingPoint(type)) {
        if (x.integer != y.integer) return 1e9;
      } else if (!(std::isnan(x.real) && std::isnan(y.real)) && x.real != y.real) {
        worst = std::max(worst, static_cast<double>(std::abs(x.real - y.real) / (1 + std::abs(x.real))));
        if (std::isnan(worst)) return 1e9;
      }
    }
  }
  return worst;
}

void verifyEqual(const LoweredGraph& graph, const Schedule& s, double tolerance = 1e-5) {
  std::mt19937 random(7);
  const auto inputs = randomInputs(graph, random);
  const double worst = difference(graph, runLowered(graph, inputs), runProgram(s.program, inputs));
  if (worst > tolerance) {
    std::string text = s.program.str();
    for (const Kernel& kernel : s.program.kernels) text += kernel.str();
    qWarning("%s", text.c_str());
  }
  QVERIFY2(worst <= tolerance, qPrintable(QString("differs by %1").arg(worst)));
}

std::string decisionsText(const Schedule& s) {
  std::string text;
  for (const FusionDecision& d : s.decisions)
    text += std::to_string(d.a) + "," + std::to_string(d.b) + (d.fused ? " fused " : " refused ") + d.kind + ": " + d.reason + "\n";
  return text;
}

struct Formulas : LoweredMaker {
  BufferId unary(Op op, BufferId x) {
    return pointwise(std::string(name(op)), sizesOf(x),
                     [=, this](BodyBuilder& b, const IndexList& i) { return b.emit(op, DType::Float32, {load(b, x, i)}); });
  }
  BufferId binary(Op op, BufferId x, BufferId y) {
    return pointwise(std::string(name(op)), sizesOf(x), [=, this](BodyBuilder& b, const IndexList& i) {
      return b.emit(op, DType::Float32, {load(b, x, i), load(b, y, broadcast(i, y))});
    });
  }
  /// y of lower rank stands for a row value if its size is that of dimension 0, else for a column value.
  IndexList broadcast(const IndexList& i, BufferId y) const {
    const auto sizes = sizesOf(y);
    if (sizes.size() == i.size()) return i;
    if (sizes.empty()) return {};
    return {rowBroadcast ? i.front() : i.back()};
  }
  BufferId rows(ReduceKind kind, BufferId x, int component = 0) {
    return reduce(std::string(name(kind)), sizesOf(x), {false, true}, kind,
                  [=, this](BodyBuilder& b, const IndexList& i) { return load(b, x, i); }, component);
  }
  BufferId columns(ReduceKind kind, BufferId x) {
    return reduce(std::string(name(kind)) + "_columns", sizesOf(x), {true, false}, kind,
                  [=, this](BodyBuilder& b, const IndexList& i) { return load(b, x, i); });
  }
  bool rowBroadcast = true;
};

}  // namespace

class SchedulerTest : public QObject {
  Q_OBJECT
 private slots:
  void chainBecomesOneKernel() {
    Formulas f;
    BufferId x = f.input({16, 32});
    f.result(f.unary(Op::Exp, f.unary(Op::Neg, f.binary(Op::Add, x, x))));
    Schedule s = scheduled(f.graph);
    QCOMPARE(launches(s), 1);
    QCOMPARE(s.program.kernels[0].buffers.size(), size_t{2});
    QCOMPARE(s.program.poolBytes, int64_t{0});
    QCOMPARE(s.program.kernels[0].outer.size(), size_t{1});
    QCOMPARE(s.program.kernels[0].name, std::string("fused_add_neg_exp_0"));
    verifyEqual(f.graph, s);
  }

  /// Fusing p with p + 1 would put the first call, which needs p, behind the second, which does not.
  void effectsKeepTheirOrder() {
    using Order = Operation::Order;
    for (const auto& [first, second] : {std::pair{Order::Draws, Order::Draws}, {Order::Effect, Order::Draws}, {Order::Draws, Order::Effect},
                                        {Order::Effect, Order::Free}, {Order::Free, Order::Effect}, {Order::Free, Order::Free}}) {
      Formulas f;
      const BufferId x = f.input({64, 64}), p = f.unary(Op::Exp, x);
      f.result(f.external("rv::first", p, {}, first));
      f.result(f.external("rv::second", x, {}, second));
      f.result(f.unary(Op::Neg, p));
      const Schedule s = scheduled(f.graph);
      std::vector<std::string> calls;
      for (const Step& step : s.program.steps)
        if (const auto* call = std::get_if<ExternStep>(&step)) calls.push_back(call->op);
      const bool bound = first != Order::Free || second != Order::Free;
      if (bound) QCOMPARE(calls, (std::vector<std::string>{"rv::first", "rv::second"}));
      else QCOMPARE(launches(s), 1);
    }
  }

  /// Fused with its reader, a loop moves to behind the effect; one that may raise takes its reader to where it is.
  void whatMayRaiseStaysOnItsSideOfEffects() {
    for (const bool checks : {false, true}) {
      Formulas f;
      const BufferId x = f.input({64, 64});
      const BufferId p = f.pointwise("loop", {64, 64}, [&](BodyBuilder& b, const std::vector<SymExpr>& i) {
        const ValueId v = b.emit(Op::Exp, DType::Float32, {f.load(b, x, i)});
        return checks ? b.emit(Op::Check, DType::Float32, {v, b.emit(Op::Lt, DType::Bool, {v, b.constant(9, DType::Float32)})}) : v;
      });
      f.result(f.external("rv::note", x, {}, Operation::Order::Effect));
      f.result(f.unary(Op::Neg, p));
      const Schedule s = scheduled(f.graph);
      std::vector<std::string> order;
      for (const Step& step : s.program.steps) {
        if (std::holds_alternative<ExternStep>(step)) order.emplace_back("effect");
        if (std::holds_alternative<LaunchStep>(step)) order.emplace_back("loop");
      }
      QCOMPARE(order, checks ? (std::vector<std::string>{"loop", "effect"}) : (std::vector<std::string>{"effect", "loop"}));
    }
  }

  /// New values of two inputs that each need both old ones: one is written in place at most, and every kernel runs.
  void newValuesThatNeedEachOthersOldOnes() {
    Formulas f;
    const BufferId x = f.input({}), y = f.input({});
    for (const Op op : {Op::Add, Op::Mul})
      f.result(f.pointwise("update", {}, [&](BodyBuilder& b, const std::vector<SymExpr>& i) {
        return b.emit(op, DType::Float32, {f.load(b, x, i), f.load(b, y, i)});
      }));
    for (int32_t input : {0, 1}) f.graph.inputWrites.push_back({input, static_cast<size_t>(input), {}});
    const Schedule s = scheduled(f.graph);
    size_t operations = 0;
    for (const FusionGroup& group : s.groups) operations += group.operations.size();
    QCOMPARE(operations, size_t{2});
  }

  /// Small kernels join a batch one after another, which moves it behind others that join later.
  void smallKernelsRunBesideEachOther() {
    Formulas f;
    std::vector<BufferId> made;
    for (int64_t n : {40, 24, 40, 56, 24, 0}) {
      const BufferId x = n ? f.input({n}) : f.input({});
      made.push_back(f.unary(Op::Neg, x));
      f.result(made.back());
    }
    f.result(f.unary(Op::Exp, made[1]));  // after the second, so not beside it
    const Schedule s = scheduled(f.graph);
    std::map<int32_t, int> sizes;
    for (const Step& step : s.program.steps)
      if (const auto* launch = std::get_if<LaunchStep>(&step)) ++sizes[launch->batch];
    size_t operations = 0;
    for (const FusionGroup& group : s.groups) operations += group.operations.size();
    QCOMPARE(operations, size_t{7});
    QVERIFY(sizes[0] >= 6);
  }

  /// What reads another's result waits for it, in whatever order it reads.
  void whatReadsAResultRunsNotBesideIt() {
    Formulas f;
    const BufferId first = f.unary(Op::Neg, f.input({40}));
    f.result(first);
    f.result(f.pointwise("flip", {40}, [&](BodyBuilder& b, const std::vector<SymExpr>& i) { return f.load(b, first, {SymExpr(39) - i[0]}); }));
    const Schedule s = scheduled(f.graph);
    std::vector<int32_t> batches;
    for (const Step& step : s.program.steps)
      if (const auto* launch = std::get_if<LaunchStep>(&step)) batches.push_back(launch->batch);
    QCOMPARE(batches.size(), size_t{2});
    QVERIFY(batches[0] < 0 || batches[0] != batches[1]);
  }

  /// Equal kernels share code, but a launch goes to the device of its kernel.
  void equalKernelsOfTwoDevicesStayTwo() {
    Formulas f;
    for (const int8_t index : {int8_t{0}, int8_t{1}, int8_t{0}}) {
      const graph::Device device{graph::DeviceKind::Cuda, index};
      const BufferId x = f.input({16, 32 + (f.graph.results.size() == 2)}), y = f.unary(Op::Exp, x);
      for (BufferId id : {x, y}) f.graph.buffers[static_cast<size_t>(id)].meta.device = device;
      f.graph.operations.back().kernel.device = device;
      f.result(y);
    }
    const Schedule s = scheduled(f.graph);
    QCOMPARE(launches(s), 3);
    for (const Step& step : s.program.steps) {
      const auto* launch = std::get_if<LaunchStep>(&step);
      if (!launch) continue;
      for (BufferId id : launch->buffers)
        QCOMPARE(s.program.kernels[static_cast<size_t>(launch->kernel)].device.str(), s.program.buffers[static_cast<size_t>(id)].meta.device.str());
    }
  }

  /// What is written over an input has another code than what is not: a launch of a GPU is of one.
  void aBatchOfAGpuIsOfOneKernel() {
    Formulas f;
    for (int64_t n : {64, 128, 256, 512}) {
      const BufferId x = f.input({n}), y = f.unary(Op::Neg, x);
      for (BufferId id : {x, y}) f.graph.buffers[static_cast<size_t>(id)].meta.device = {graph::DeviceKind::Cuda, 0};
      f.graph.operations.back().kernel.device = {graph::DeviceKind::Cuda, 0};
      f.result(y);
    }
    for (int32_t input : {1, 3}) f.graph.inputWrites.push_back({input, static_cast<size_t>(input), {}});
    const Schedule s = scheduled(f.graph);
    std::map<int32_t, std::vector<int32_t>> kernels;
    for (const Step& step : s.program.steps)
      if (const auto* launch = std::get_if<LaunchStep>(&step)) kernels[launch->batch].push_back(launch->kernel);
    QCOMPARE(kernels, (std::map<int32_t, std::vector<int32_t>>{{0, {0, 0}}, {1, {1, 1}}}));
  }

  void withoutFusionEveryOperationIsAKernel() {
    Formulas f;
    BufferId x = f.input({16, 32});
    f.result(f.unary(Op::Exp, f.unary(Op::Neg, x)));
    ScheduleOptions options;
    options.fuse = false;
    Schedule s = scheduled(f.graph, options);
    QCOMPARE(launches(s), 2);
    QVERIFY(s.program.poolBytes > 0);
    verifyEqual(f.graph, s);
  }

  void deadOperationDisappears() {
    Formulas f;
    BufferId x = f.input({64});
    f.unary(Op::Exp, x);
    f.result(f.unary(Op::Neg, x));
    QCOMPARE(launches(scheduled(f.graph)), 1);
  }

  void softmaxIsOneKernel() {
    Formulas f;
    BufferId x = f.input({32, 48});
    BufferId e = f.unary(Op::Exp, f.binary(Op::Sub, x, f.rows(ReduceKind::Max, x)));
    f.result(f.binary(Op::Div, e, f.rows(ReduceKind::Sum, e)));
    Schedule s = scheduled(f.graph);
    QVERIFY2(launches(s) == 1, decisionsText(s).c_str());
    int scratch = 0;
    for (const KernelBuffer& b : s.program.kernels[0].buffers) scratch += b.role == BufferRole::Scratch;
    QCOMPARE(scratch, 1);  // exp is kept, not computed twice
    verifyEqual(f.graph, s);
  }

  void layerNormIsOneKernel() {
    Formulas f;
    BufferId x = f.input({32, 48}), w = f.input({48}), residual = f.input({32, 48});
    BufferId y = f.binary(Op::Add, x, residual);
    BufferId mean = f.rows(ReduceKind::Welford, y, 0), m2 = f.rows(ReduceKind::Welford, y, 1);
    BufferId centred = f.binary(Op::Sub, y, mean);
    BufferId scaled = f.binary(Op::Mul, centred, f.unary(Op::Rsqrt, m2));
    f.rowBroadcast = false;
    f.result(f.binary(Op::Mul, scaled, w));
    f.result(y);
    Schedule s = scheduled(f.graph);
    QVERIFY2(launches(s) == 1, decisionsText(s).c_str());
    verifyEqual(f.graph, s);
  }

  void columnReductionsShareOneKernel() {
    Formulas f;
    BufferId g = f.input({64, 40}), x = f.input({64, 40});
    f.result(f.columns(ReduceKind::Sum, g));
    f.result(f.columns(ReduceKind::Sum, f.binary(Op::Mul, g, x)));
    Schedule s = scheduled(f.graph);
    QVERIFY2(launches(s) == 1, decisionsText(s).c_str());
    verifyEqual(f.graph, s);
  }

  void siblingsThatReadTheSameFuse() {
    Formulas f;
    BufferId x = f.input({4096});
    f.result(f.unary(Op::Exp, x));
    f.result(f.unary(Op::Neg, x));
    QCOMPARE(launches(scheduled(f.graph)), 1);
  }

  void siblingsOfASmallTensorStayApart() {
    Formulas f;
    BufferId x = f.input({8192}), y = f.input({8192}), w = f.input({8});
    auto scaled = [&](BufferId v) {
      return f.pointwise("scale", {8192}, [=, &f](BodyBuilder& b, const IndexList& i) {
        return b.emit(Op::Mul, DType::Float32, {f.load(b, v, i), f.load(b, w, {graph::mod(i[0], 8)})});
      });
    };
    f.result(scaled(x));
    f.result(scaled(y));
    Schedule s = scheduled(f.graph);
    QCOMPARE(launches(s), 2);
    QCOMPARE(s.program.kernels.size(), size_t{1});  // equal kernels have one code
  }

  void kernelsAtOtherPlacesShareCode() {
    Formulas f;
    BufferId x = f.input({6 * 64});
    for (int64_t step = 0; step < 6; ++step)
      f.result(f.pointwise("step", {64}, [=, &f](BodyBuilder& b, const IndexList& i) {
        return b.emit(Op::Sin, DType::Float32, {f.load(b, x, {i[0] + step * 64})});
      }));
    ScheduleOptions apart;
    apart.fuse = false;
    Schedule s = *schedule(f.graph, apart);
    verifyEqual(f.graph, s);
    QVERIFY2(s.program.kernels.size() <= 2, "the step at 0, and the others");
  }

  void externCallBetweenKeepsThemApart() {
    Formulas f;
    BufferId x = f.input({1024});
    BufferId a = f.unary(Op::Exp, x);
    BufferId e = f.external("aten::neg", a);
    f.result(f.binary(Op::Add, a, e));
    Schedule s = scheduled(f.graph);
    QCOMPARE(launches(s), 2);
    verifyEqual(f.graph, s);
    bool explained = false;
    for (const FusionDecision& d : s.decisions) explained |= !d.fused && d.reason == "another operation lies between them";
    QVERIFY2(explained, decisionsText(s).c_str());
  }

  void reshapedAndTransposedConsumersFuse() {
    Formulas f;
    BufferId x = f.input({24, 16});
    BufferId y = f.unary(Op::Exp, x);
    f.result(f.pointwise("reshape", {8, 3, 16}, [=, &f](BodyBuilder& b, const IndexList& i) {
      return b.emit(Op::Neg, DType::Float32, {f.load(b, y, {i[0] * 3 + i[1], i[2]})});
    }));
    f.result(f.pointwise("transpose", {16, 24}, [=, &f](BodyBuilder& b, const IndexList& i) {
      return b.emit(Op::Neg, DType::Float32, {f.load(b, y, {i[1], i[0]})});
    }));
    Schedule s = scheduled(f.graph);
    QVERIFY2(launches(s) == 1, decisionsText(s).c_str());
    verifyEqual(f.graph, s);
  }

  void consumerOfOtherPointsIsRefused() {
    Formulas f;
    BufferId x = f.input({1000});
    BufferId y = f.unary(Op::Exp, x);
    f.result(f.pointwise("flip", {1000}, [=, &f](BodyBuilder& b, const IndexList& i) {
      return b.emit(Op::Neg, DType::Float32, {f.load(b, y, {SymExpr(999) - i[0]})});
    }));
    Schedule s = scheduled(f.graph);
    QCOMPARE(launches(s), 2);
    QVERIFY(!s.decisions.empty() && !s.decisions.back().fused && !s.decisions.back().reason.empty());
    verifyEqual(f.graph, s);
  }

  void rowMayBeReadAtOtherPointsOfTheRow() {
    Formulas f;
    BufferId x = f.input({40, 32});
    BufferId top = f.rows(ReduceKind::Max, x);
    BufferId y = f.binary(Op::Sub, x, top);
    f.result(f.pointwise("flip", {40, 32}, [=, &f](BodyBuilder& b, const IndexList& i) {
      return b.emit(Op::Exp, DType::Float32, {f.load(b, y, {i[0], SymExpr(31) - i[1]})});
    }));
    Schedule s = scheduled(f.graph);
    QVERIFY2(launches(s) == 1, decisionsText(s).c_str());
    verifyEqual(f.graph, s);
  }

  void roundingBetweenFusedOperations_data() {
    QTest::addColumn<bool>("emulate");
    QTest::newRow("float32 throughout") << false;
    QTest::newRow("as eager") << true;
  }
  void roundingBetweenFusedOperations() {
    QFETCH(bool, emulate);
    Formulas f;
    BufferId x = f.input({64}, DType::BFloat16);
    auto step = [&](BufferId from) {
      return f.pointwise("scale", {64}, [=, &f](BodyBuilder& b, const IndexList& i) {
        return b.emit(Op::Mul, DType::Float32, {f.load(b, from, i), b.constant(1.0009765625, DType::Float32)});
      }, DType::BFloat16);
    };
    f.result(step(step(x)));
    ScheduleOptions options;
    options.emulatePrecisionCasts = emulate;
    Schedule s = scheduled(f.graph, options);
    QCOMPARE(launches(s), 1);
    int roundings = 0;
    for (const Value& v : s.program.kernels[0].sections[0].values) roundings += v.op == Op::Cast && v.type == DType::BFloat16;
    QCOMPARE(roundings, emulate ? 2 : 1);
    verifyEqual(f.graph, s, emulate ? 0 : 0.01);
  }

  void maximumSizeIsRespected() {
    Formulas f;
    BufferId x = f.input({64});
    for (int i = 0; i < 20; ++i) x = f.unary(Op::Neg, x);
    f.result(x);
    ScheduleOptions options;
    options.maxFusionSize = 8;
    Schedule s = scheduled(f.graph, options);
    QVERIFY(launches(s) >= 3);
    for (const FusionGroup& group : s.groups) QVERIFY(group.operations.size() <= 8);
    verifyEqual(f.graph, s);
  }

  void forbiddenPairsStayApart() {
    Formulas f;
    BufferId x = f.input({64});
    for (int i = 0; i < 4; ++i) x = f.unary(i % 2 ? Op::Neg : Op::Exp, x);
    f.result(x);
    ScheduleOptions options;
    const auto& operations = f.graph.operations;
    options.rules = {{FusionRule::Kind::Forbid, operations[1].name, operations[2].name}};
    Schedule s = scheduled(f.graph, options);
    QCOMPARE(launches(s), 2);
    for (const FusionGroup& group : s.groups) QCOMPARE(group.operations.size(), size_t{2});
    QVERIFY2(decisionsText(s).find("forbidden by user") != std::string::npos, decisionsText(s).c_str());
    verifyEqual(f.graph, s);
    // One name alone: that operation is fused with nothing.
    options.rules = {{FusionRule::Kind::Forbid, operations[1].name, ""}};
    QCOMPARE(launches(scheduled(f.graph, options)), 3);
    options.rules = {{FusionRule::Kind::Forbid, "nothing", ""}};
    s = scheduled(f.graph, options);
    QCOMPARE(launches(s), 1);
    QCOMPARE(s.unknownNames, std::vector<std::string>{"nothing"});
  }

  void forcedPairsAreFusedWhateverTheySave() {
    Formulas f;
    BufferId x = f.input({16});  // too little to pay for a horizontal fusion
    f.result(f.unary(Op::Exp, x));
    f.result(f.unary(Op::Neg, x));
    QCOMPARE(launches(scheduled(f.graph)), 2);
    ScheduleOptions options;
    options.fuse = false;
    options.rules = {{FusionRule::Kind::Force, f.graph.operations[0].name, f.graph.operations[1].name}};
    Schedule s = scheduled(f.graph, options);
    QCOMPARE(launches(s), 1);
    QVERIFY(s.decisions.at(0).fused && s.decisions[0].byRule);
    verifyEqual(f.graph, s);
    options.rules.push_back({FusionRule::Kind::Forbid, f.graph.operations[0].name, f.graph.operations[1].name});
    QCOMPARE(launches(scheduled(f.graph, options)), 2);
  }

  void impossibleForcedPairsSayWhy() {
    Formulas f;
    BufferId x = f.input({64, 8});
    BufferId e = f.external("aten::neg", f.unary(Op::Exp, x));
    f.result(f.unary(Op::Neg, e));
    ScheduleOptions options;
    const auto& operations = f.graph.operations;
    options.rules = {{FusionRule::Kind::Force, operations[0].name, operations[1].name},
                     {FusionRule::Kind::Force, operations[0].name, operations[2].name}};
    Schedule s = scheduled(f.graph, options);
    const std::string text = decisionsText(s);
    QVERIFY2(text.find("0,1 refused vertical: forced by user, but impossible: an extern call") != std::string::npos, text.c_str());
    QVERIFY2(text.find("0,2 refused") != std::string::npos, text.c_str());
    verifyEqual(f.graph, s);
  }

  void randomRulesComputeTheSame_data() {
    QTest::addColumn<int>("seed");
    for (int seed = 0; seed < 60; ++seed) QTest::addRow("%d", seed) << seed;
  }
  void randomRulesComputeTheSame() {
    QFETCH(int, seed);
    std::mt19937 random(static_cast<unsigned>(seed) + 5000);
    Formulas f = randomGraph(random);
    const auto& operations = f.graph.operations;
    ScheduleOptions options;
    auto anyName = [&] { return operations[random() % operations.size()].name; };
    for (int i = 0; i < 12; ++i) {
      FusionRule rule{i % 3 ? FusionRule::Kind::Force : FusionRule::Kind::Forbid, anyName(), anyName()};
      if (rule.a != rule.b) options.rules.push_back(rule);
    }
    Schedule s = scheduled(f.graph, options);
    verifyEqual(f.graph, s, 2e-4);
    const FusionRules rules(f.graph, options.rules);
    for (const FusionGroup& group : s.groups)
      for (int32_t a : group.operations)
        for (int32_t b : group.operations) QVERIFY(a == b || !rules.forbids(std::span(&a, 1), std::span(&b, 1)));
  }

  /// On a GPU, where nothing of a load is used outside of its mask, it is made without it, or under what says something of its index.
  void masksGoWhereNobodySees() {
    for (bool isSeen : {false, true}) {
      LoweredMaker m;
      const BufferId one = m.input({1}), row = m.input({5}), matrix = m.input({5, 7});
      m.result(m.pointwise("pad", {6, 9}, [&](BodyBuilder& b, const IndexList& i) {
        const ValueId above = b.emit(Op::Lt, DType::Bool, {b.index(i[0]), b.constantInt(5, DType::Int64)});
        const ValueId left = b.emit(Op::Lt, DType::Bool, {b.index(i[1]), b.constantInt(7, DType::Int64)});
        b.pushMask(above);
        b.pushMask(left);
        const ValueId v = m.load(b, matrix, i), r = m.load(b, row, {i[0]}), factor = m.load(b, one, {SymExpr(0)});
        b.popMask();
        b.popMask();
        const ValueId product = b.emit(Op::Mul, DType::Float32, {b.emit(Op::Mul, DType::Float32, {v, r}), factor}), zero = b.constant(0, DType::Float32);
        const ValueId padded = b.where(left, b.where(above, product, zero), zero);
        return isSeen ? b.emit(Op::Add, DType::Float32, {padded, b.emit(Op::Add, DType::Float32, {r, factor})}) : padded;
      }));
      for (LoweredBuffer& buffer : m.graph.buffers) buffer.meta.device = {graph::DeviceKind::Cuda, 0};
      for (Operation& operation : m.graph.operations) operation.kernel.device = {graph::DeviceKind::Cuda, 0};
      const Schedule s = scheduled(m.graph);
      const Section& section = s.program.kernels[0].sections[0];
      int both = 0, single = 0;
      for (const Value& v : section.values)
        if (v.op == Op::Load && v.mask >= 0) (section.values[static_cast<size_t>(v.mask)].op == Op::BitAnd ? both : single) += 1;
      QCOMPARE(both, isSeen ? 3 : 1);
      QCOMPARE(single, isSeen ? 0 : 1);
      verifyEqual(m.graph, s, 0);
    }
  }

  void outVariantWritesIntoThePool() {
    Formulas f;
    BufferId x = f.input({1024});
    BufferId e = f.external("aten::neg", f.unary(Op::Exp, x), "aten::neg.out");
    f.result(f.unary(Op::Neg, e));
    Schedule s = scheduled(f.graph);
    QCOMPARE(s.program.buffers[static_cast<size_t>(e)].kind, ProgramBuffer::Kind::Planned);
    verifyEqual(f.graph, s);
  }

  void randomGraphsComputeTheSame_data() {
    QTest::addColumn<int>("seed");
    for (int seed = 0; seed < 150; ++seed) QTest::addRow("%d", seed) << seed;
  }
  void randomGraphsComputeTheSame() {
    QFETCH(int, seed);
    std::mt19937 random(static_cast<unsigned>(seed) + 1000);
    Formulas f = randomGraph(random);
    verifyEqual(f.graph, scheduled(f.graph), 2e-4);
  }

  void timeGrowsWithTheProgramNotWithItsSquare() {
    const double few = timeOfLayers(25), many = timeOfLayers(250);
    qInfo("10 times the layers: %.1f ms, %.1f ms", few, many);
    QVERIFY2(many < 50 * few, qPrintable(QString("%1 ms, %2 ms").arg(few).arg(many)));  // the square would be 100 times
  }

 private:
  /// Milliseconds of a processor to schedule this many layers of nine operations, the least of a few times.
  static double timeOfLayers(int layers) {
    Formulas f;
    BufferId x = f.input({64, 256}), w = f.input({256});
    for (int layer = 0; layer < layers; ++layer) {
      BufferId y = x;
      for (int i = 0; i < 4; ++i) y = f.unary(i % 2 ? Op::Exp : Op::Neg, y);
      f.rowBroadcast = true;
      BufferId norm = f.binary(Op::Sub, y, f.rows(ReduceKind::Max, y));
      f.rowBroadcast = false;
      norm = f.binary(Op::Mul, norm, w);
      x = f.binary(Op::Add, f.external("aten::neg", norm), x);
      f.unary(Op::Exp, x);
    }
    f.result(x);
    double best = 1e18;
    for (int round = 0; round < 3; ++round) {
      const std::clock_t start = std::clock();  // other programs of the machine do not count
      const Schedule s = scheduled(f.graph);
      best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
  }

  static Formulas randomGraph(std::mt19937& random) {
    Formulas f;
    auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const int64_t rows = 3 + static_cast<int64_t>(pick(12)), columns = 2 + static_cast<int64_t>(pick(40));
    std::vector<BufferId> full{f.input({rows, columns}), f.input({rows, columns})}, row{f.input({rows})}, column{f.input({columns})};
    constexpr Op kUnary[] = {Op::Neg, Op::Abs, Op::Tanh, Op::Sigmoid};
    constexpr Op kBinary[] = {Op::Add, Op::Sub, Op::Mul, Op::Maximum};
    constexpr ReduceKind kReduce[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min};
    const size_t count = 4 + pick(18);
    for (size_t n = 0; n < count; ++n) {
      BufferId x = full[pick(full.size())];
      switch (pick(10)) {
        case 0: full.push_back(f.unary(kUnary[pick(4)], x)); break;
        case 1: full.push_back(f.binary(kBinary[pick(4)], x, full[pick(full.size())])); break;
        case 2: f.rowBroadcast = true; full.push_back(f.binary(kBinary[pick(4)], x, row[pick(row.size())])); break;
        case 3: f.rowBroadcast = false; full.push_back(f.binary(kBinary[pick(4)], x, column[pick(column.size())])); break;
        case 4: row.push_back(f.rows(kReduce[pick(3)], x)); break;
        case 5: column.push_back(f.columns(kReduce[pick(3)], x)); break;
        case 6: row.push_back(f.unary(kUnary[pick(4)], row[pick(row.size())])); break;
        case 7: full.push_back(f.external("aten::neg", x, pick(2) ? "aten::neg.out" : "")); break;
        case 8:
          full.push_back(f.pointwise("flip", {rows, columns}, [=, &f](BodyBuilder& b, const IndexList& i) {
            return b.emit(Op::Neg, DType::Float32, {f.load(b, x, {i[0], SymExpr(columns - 1) - i[1]})});
          }));
          break;
        default:
          full.push_back(f.pointwise("stripe", {rows, columns}, [=, &f](BodyBuilder& b, const IndexList& i) {
            ValueId flat = b.cast(b.index(i[0] * columns + i[1]), DType::Float32);
            return b.emit(Op::Fma, DType::Float32, {flat, b.constant(1.0 / 512, DType::Float32), f.load(b, x, i)});
          }));
      }
    }
    f.result(full.back());
    f.result(row.back());
    f.result(column.back());
    if (pick(2)) f.result(full[pick(full.size())]);
    return f;
  }
};

QTEST_APPLESS_MAIN(SchedulerTest)
#include "scheduler_test.moc"
