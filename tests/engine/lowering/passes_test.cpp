#include <QtTest>

#include "engine/inductor/lowered_graph.h"
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
  void randomNodesNeitherMergeNorDie() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    m.call("aten::bernoulli.p", {x, 0.5, {}}, tensor({4}));
    ValueRef b = m.call("aten::bernoulli.p", {x, 0.5, {}}, tensor({4}));
    ValueRef c = m.call("aten::neg", {b}, tensor({4}));
    QCOMPARE(count(optimised(m.returning({c})), "aten::bernoulli.p"), 2);
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
