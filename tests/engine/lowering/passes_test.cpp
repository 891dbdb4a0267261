#include <QtTest>

#include "engine/inductor/ir/lowered_graph.h"
#include "tests/engine/lowering/graph_maker.h"

using namespace fusebox;
using namespace fusebox::graph;
using namespace fusebox::graph::testing;
using namespace fusebox::inductor;

namespace {

Graph optimised(const Graph& graph) {
  auto r = runGraphPasses(graph, nullptr);
  if (!r) qFatal("%s", r.error().text().c_str());
  return std::move(*r);
}

int count(const Graph& g, const char* op) {
  int n = 0;
  for (const Node& node : g.nodes()) n += node.op == op;
  return n;
}

}  // namespace

class PassesTest : public QObject {
  Q_OBJECT
 private slots:
  void equalNodesMergeUnlessTheCallerSeesThem() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    ValueRef a = m.call("aten::sin", {x}, tensor({4})), b = m.call("aten::sin", {x}, tensor({4}));
    ValueRef c = m.call("aten::add.Tensor", {a, b, int64_t{1}}, tensor({4}));
    QCOMPARE(count(optimised(m.returning({c})), "aten::sin"), 1);
    QCOMPARE(count(optimised(m.returning({a, b})), "aten::sin"), 2);
  }
  void aCopyOfAComputedResultIsTheResult() {
    const auto copies = [](bool ofInput, bool ofPart, int results, bool alsoMade, bool twice) {
      GraphMaker m;
      const ValueRef x = m.input(tensor({4}));
      const ValueRef made = ofInput ? x : m.call("aten::sin", {x}, tensor({4}));
      OutputMeta seenMeta = tensor({ofPart ? int64_t{2} : int64_t{4}});
      const ValueRef seen = ofPart ? m.call("aten::slice.Tensor", {made, int64_t{0}, int64_t{0}, int64_t{2}, int64_t{1}}, seenMeta)
                                   : m.call("aten::view", {made, ArgumentList{int64_t{4}}}, seenMeta);
      ArgumentList out;
      for (int i = 0; i < results; ++i) {
        ValueRef copy = m.call("aten::clone", {seen, {}}, seenMeta);
        if (twice) copy = m.call("aten::clone", {copy, {}}, seenMeta);
        out.push_back(copy);
      }
      if (alsoMade) out.push_back(made);
      return count(optimised(m.returning(std::move(out))), "aten::clone");
    };
    QCOMPARE(copies(false, false, 1, false, false), 0);
    QCOMPARE(copies(false, false, 1, false, true), 0);
    QCOMPARE(copies(false, false, 2, false, false), 1);  // each result has memory of its own
    QCOMPARE(copies(false, false, 1, true, false), 1);
    QCOMPARE(copies(false, true, 1, false, false), 1);  // it would keep what it is a part of
    QCOMPARE(copies(true, false, 1, false, false), 1);
    QCOMPARE(copies(true, false, 1, false, true), 1);
  }
  void randomNodesNeitherMergeNorDie() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    m.call("aten::bernoulli.p", {x, 0.5, {}}, tensor({4}));
    ValueRef b = m.call("aten::bernoulli.p", {x, 0.5, {}}, tensor({4}));
    ValueRef c = m.call("aten::neg", {b}, tensor({4}));
    QCOMPARE(count(optimised(m.returning({c})), "aten::bernoulli.p"), 2);
  }
  void callsWithAnEffectNeitherMergeNorDie() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    m.callMany("aten::_assert_async", {x}, {});
    m.call("rv::note", {x}, tensor({4}));
    ValueRef a = m.call("rv::note", {x}, tensor({4}));
    const Graph g = optimised(m.returning({a}));
    QCOMPARE(count(g, "rv::note"), 2);
    QCOMPARE(count(g, "aten::_assert_async"), 1);
    auto lowered = lower(g);
    QVERIFY(lowered);
    QCOMPARE(lowered->operations.size(), size_t{3});
    for (const Operation& operation : lowered->operations) QVERIFY(operation.order == Operation::Order::Effect);
  }
  /// On a GPU, where ATen adds it with a kernel of its own; not a depthwise kernel's.
  void theBiasOfAConvolutionIsAddedByWhatFollows() {
    const auto biasStays = [](DeviceKind kind, int64_t groups) {
      const auto on = [&](OutputMeta m) { return m.tensor.device = {kind, static_cast<int8_t>(kind == DeviceKind::Cuda ? 0 : -1)}, m; };
      GraphMaker m;
      const ValueRef x = m.input(on(tensor({2, 8, 9, 9}))), w = m.input(on(tensor({8, 8 / groups, 3, 3}))), b = m.input(on(tensor({8})));
      const ArgumentList ones{int64_t{1}, int64_t{1}}, zeros{int64_t{0}, int64_t{0}};
      const ValueRef y = m.call("aten::convolution", {x, w, b, ones, ones, ones, false, zeros, groups}, on(tensor({2, 8, 9, 9})));
      const Graph g = optimised(m.returning({y}));
      for (const Node& node : g.nodes())
        if (node.op == "aten::convolution") return node.args[2].as<ValueRef>() != nullptr;
      return false;
    };
    QVERIFY(!biasStays(DeviceKind::Cuda, 1));
    QVERIFY(biasStays(DeviceKind::Cuda, 8));
    QVERIFY(biasStays(DeviceKind::Cpu, 1));
  }
  /// Seen as another type, the numbers are others: the activation is not of the product's.
  void activationsStayBehindReinterpretingViews() {
    for (const char* view : {"aten::view", "aten::view.dtype"}) {
      GraphMaker m;
      const auto matrix = [](int64_t rows, int64_t columns) {
        OutputMeta o = tensor({rows, columns}, DType::BFloat16);
        o.tensor.device = {DeviceKind::Cuda, 0};
        return o;
      };
      OutputMeta bias = tensor({8}, DType::BFloat16);
      bias.tensor.device = {DeviceKind::Cuda, 0};
      ValueRef x = m.input(matrix(4, 6)), w = m.input(matrix(6, 8)), b = m.input(bias), v = m.input(matrix(8, 5));
      ValueRef h = m.call("aten::addmm", {b, x, w, int64_t{1}, int64_t{1}}, matrix(4, 8));
      ValueRef seen = m.call(view, {h, DType::Float16}, matrix(4, 8));
      seen = m.call("aten::gelu", {seen, std::string("tanh")}, matrix(4, 8));
      const Graph g = optimised(m.returning({m.call("aten::mm", {seen, v}, matrix(4, 5))}));
      QCOMPARE(count(g, "aten::gelu"), std::string_view(view) == "aten::view.dtype" ? 1 : 0);
    }
  }
  /// An activation between two products goes into the epilogue of the first one, on a GPU, and where no one else wants to see it.
  void activationsGoIntoEpilogues() {
    for (int which = 0; which < 8; ++which) {
      const bool onGpu = which & 1, alsoResult = which & 2, isGelu = which & 4;
      GraphMaker m;
      const auto matrix = [&](int64_t rows, int64_t columns) {
        OutputMeta o = tensor({rows, columns});
        if (onGpu) o.tensor.device = {DeviceKind::Cuda, 0};
        return o;
      };
      OutputMeta bias = tensor({8}), wide = tensor({2, 2, 8});
      if (onGpu) bias.tensor.device = wide.tensor.device = {DeviceKind::Cuda, 0};
      ValueRef x = m.input(matrix(4, 6)), w = m.input(matrix(6, 8)), b = m.input(bias), v = m.input(matrix(8, 5));
      ValueRef h = m.call("aten::addmm", {b, x, w, int64_t{1}, int64_t{1}}, matrix(4, 8));
      ValueRef seen = m.call("aten::view", {h, ArgumentList{int64_t{2}, int64_t{2}, int64_t{8}}}, wide);
      // relu keeps a NaN, the library's need not.
      ValueRef r = isGelu ? m.call("aten::gelu", {seen, std::string("tanh")}, wide) : m.call("aten::relu", {seen}, wide);
      ValueRef flat = m.call("aten::view", {r, ArgumentList{int64_t{4}, int64_t{8}}}, matrix(4, 8));
      ValueRef y = m.call("aten::mm", {flat, v}, matrix(4, 5));
      const Graph g = optimised(alsoResult ? m.returning({y, r}) : m.returning({y}));
      const int fused = onGpu && !alsoResult && isGelu;
      QCOMPARE(count(g, "aten::_addmm_activation"), fused);
      QCOMPARE(count(g, isGelu ? "aten::gelu" : "aten::relu"), 1 - fused);
    }
  }
  /// Rows of no whole number of 16 bytes, where the library's kernels for them cost more than zeros at the operands' ends: of 16 bits, on a
  /// GPU, of some size. A product and one with the transpose share the padded operand, and what backward is left lies as it was computed.
  void productsOfOddExtentsArePadded() {
    const auto matrix = [](int64_t rows, int64_t columns, DType type, bool onGpu) {
      OutputMeta o = tensor({rows, columns}, type);
      if (onGpu) o.tensor.device = {DeviceKind::Cuda, 0};
      return o;
    };
    struct Case {
      int64_t m, k, n;
      DType type;
      bool onGpu;
      int pads;
    };
    for (const Case& c : {Case{8192, 768, 50257, DType::BFloat16, true, 1}, Case{8192, 50257, 768, DType::Float16, true, 2},
                          Case{8192, 768, 50304, DType::BFloat16, true, 0}, Case{8192, 768, 50257, DType::Float32, true, 0},
                          Case{8192, 768, 50257, DType::BFloat16, false, 0}, Case{64, 64, 33, DType::BFloat16, true, 0},
                          Case{65536, 512, 1, DType::BFloat16, true, 0}}) {
      GraphMaker m;
      ValueRef x = m.input(matrix(c.m, c.k, c.type, c.onGpu)), w = m.input(matrix(c.k, c.n, c.type, c.onGpu));
      const Graph g = optimised(m.returning({m.call("aten::mm", {x, w}, matrix(c.m, c.n, c.type, c.onGpu))}));
      QCOMPARE(count(g, "aten::constant_pad_nd"), c.pads);
      QCOMPARE(count(g, "aten::slice.Tensor"), c.pads && c.n % 8 ? 1 : 0);
    }
    GraphMaker m;
    const auto gpu = [&](int64_t rows, int64_t columns) { return matrix(rows, columns, DType::BFloat16, true); };
    OutputMeta across = gpu(50257, 8192);
    across.tensor.strides = {1, 50257};
    ValueRef g = m.input(gpu(8192, 50257)), w = m.input(gpu(50257, 768)), x = m.input(gpu(8192, 768));
    ValueRef made = m.call("aten::neg", {g}, gpu(8192, 50257)), turned = m.call("aten::t", {made}, across);
    ValueRef dx = m.call("aten::mm", {made, w}, gpu(8192, 768)), dw = m.call("aten::mm", {turned, x}, gpu(50257, 768));
    QCOMPARE(count(optimised(m.returning({dx, dw})), "aten::constant_pad_nd"), 2);  // of what neg gives, and of w
  }
  void paddedProductsAreKeptAsTheyLie() {
    const auto gpu = [](int64_t rows, int64_t columns) {
      OutputMeta o = tensor({rows, columns}, DType::BFloat16);
      o.tensor.device = {DeviceKind::Cuda, 0};
      return o;
    };
    for (size_t firstSaved : {size_t{0}, size_t{1}, size_t{2}}) {
      GraphMaker m;
      ValueRef x = m.input(gpu(8192, 768)), w = m.input(gpu(768, 50257));
      ValueRef y = m.call("aten::mm", {x, w}, gpu(8192, 50257)), z = m.call("aten::exp", {y}, gpu(8192, 50257));
      LowerOptions options;
      options.refusal = [](const Device&) { return std::string(); };
      options.firstSaved = firstSaved;
      auto lowered = lower(optimised(m.returning({z, y})), options);
      QVERIFY(lowered);
      const auto rowOf = [&](size_t i) { return lowered->buffers[static_cast<size_t>(lowered->results[i].as<ValueRef>()->node)].meta.strides[0]; };
      QCOMPARE(rowOf(0), SymExpr(50257));
      QCOMPARE(rowOf(1), SymExpr(firstSaved < 2 ? 50304 : 50257));
    }
  }
  void copiesGoUnlessTheyAreResults() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    ValueRef k = m.call("aten::clone", {x, {}}, tensor({4}));
    ValueRef n = m.call("aten::neg", {k}, tensor({4}));
    QCOMPARE(count(optimised(m.returning({n})), "aten::clone"), 0);
    QCOMPARE(count(optimised(m.returning({n, k})), "aten::clone"), 1);
  }
  void multiplyingByOneGoesAddingZeroStays() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    ValueRef a = m.call("aten::mul.Tensor", {x, int64_t{1}}, tensor({4}));
    ValueRef b = m.call("aten::add.Tensor", {a, int64_t{0}, int64_t{1}}, tensor({4}));
    ValueRef c = m.call("aten::neg", {b}, tensor({4}));
    Graph g = optimised(m.returning({c}));
    QCOMPARE(count(g, "aten::mul.Tensor"), 0);
    QCOMPARE(count(g, "aten::add.Tensor"), 1);
  }
  /// Terms of 16-bit numbers are exact in float32: on a GPU such a product is one of 16-bit operands, and scales come after.
  void productsOfConvertedNumbersAreNarrow() {
    for (const bool onGpu : {true, false})
      for (const DType from : {DType::BFloat16, DType::Float16, DType::Float64})
        for (const double scale : {0.25, 1e30}) {
          const auto on = [&](OutputMeta m) {
            if (onGpu) m.tensor.device = {DeviceKind::Cuda, 0};
            return m;
          };
          GraphMaker m;
          const ValueRef x = m.input(on(tensor({2, 8, 16}, from))), y = m.input(on(tensor({2, 24, 16}, from)));
          const auto wide = [&](ValueRef v, OutputMeta meta) {
            return m.call("aten::_to_copy", {v, DType::Float32, {}, {}, {}, false, {}}, on(std::move(meta)));
          };
          const ValueRef a = m.call("aten::mul.Scalar", {wide(x, tensor({2, 8, 16})), scale}, on(tensor({2, 8, 16})));
          const ValueRef b = m.call("aten::transpose.int", {wide(y, tensor({2, 24, 16})), int64_t{1}, int64_t{2}},
                                    on(strided({2, 16, 24}, {384, 1, 16})));
          const ValueRef product = m.call("aten::bmm", {a, b}, on(tensor({2, 8, 24})));
          const Graph g = optimised(m.returning({product}));
          const bool isNarrow = onGpu && from != DType::Float64 && scale == 0.25;
          QCOMPARE(count(g, "aten::bmm.dtype"), int{isNarrow});
          QCOMPARE(count(g, "aten::bmm"), int{!isNarrow});
          if (!isNarrow) continue;
          QCOMPARE(count(g, "aten::_to_copy"), 0);
          const Node& scaled = g.node(g.nodes().back().args[0].as<ValueRef>()->node);
          QCOMPARE(scaled.op, std::string("aten::mul.Scalar"));
          QCOMPARE(*scaled.args[1].as<double>(), 0.25);
          const Node& made = g.node(scaled.args[0].as<ValueRef>()->node);
          for (size_t i = 0; i < 2; ++i) QCOMPARE(g.meta(*made.args[i].as<ValueRef>()).tensor.dtype, from);
        }
  }
  void complexNumbersAreWrittenByParts() {
    const auto complex = [](std::vector<SymExpr> sizes) { return tensor(std::move(sizes), DType::Complex64); };
    GraphMaker m;
    const ValueRef z = m.input(complex({4, 6})), w = m.input(complex({6}));
    const ValueRef made = m.call("aten::mul.Tensor", {z, w}, complex({4, 6})), turned = m.call("aten::t", {made}, strided({6, 4}, {1, 6}, DType::Complex64));
    const ValueRef size = m.call("aten::abs", {turned}, strided({6, 4}, {1, 6}));
    const Graph apart = optimised(m.returning({size}));  // nobody reads the numbers themselves
    QCOMPARE(count(apart, "aten::complex"), 0);
    QCOMPARE(count(apart, "aten::hypot"), 1);
    for (const Node& node : apart.nodes())
      if (node.kind == NodeKind::Call && node.op != "aten::view_as_real") QVERIFY2(!isComplex(node.outputs[0].tensor.dtype), node.op.c_str());
    GraphMaker n;
    const ValueRef x = n.input(complex({4, 6})), y = n.input(complex({4, 6}));
    const ValueRef product = n.call("aten::mul.Tensor", {x, y}, complex({4, 6})), spectrum = n.call("aten::_fft_c2c", {product, ArgumentList{int64_t{1}}, int64_t{0}, true}, complex({4, 6}));
    const Graph called = optimised(n.returning({spectrum}));
    QCOMPARE(count(called, "aten::complex"), 1);
    QCOMPARE(count(called, "aten::_fft_c2c"), 1);
  }
  void provenanceNamesTheOriginalNodes() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    m.call("aten::cos", {x}, tensor({4}));  // dead
    ValueRef n = m.call("aten::neg", {x}, tensor({4}));
    Graph g = optimised(m.returning({n}));
    QCOMPARE(g.nodes().size(), size_t{3});
    QCOMPARE(g.node(1).origin.from, (std::vector<NodeId>{n.node}));
  }
  void everyPassIsLogged() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    std::vector<PassLog> log;
    QVERIFY(runGraphPasses(m.returning({x}), &log));
    QVERIFY(log.size() >= 4);
    QCOMPARE(log.back().pass, std::string("dead_code"));
    QVERIFY(!log.back().changed);
  }
};

QTEST_APPLESS_MAIN(PassesTest)
#include "passes_test.moc"
