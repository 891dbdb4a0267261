#include <QtTest>

#include "engine/graph/graph.h"

using namespace fusebox::graph;

namespace {

OutputMeta tensor(std::vector<SymExpr> sizes, DType type = DType::Float32) {
  OutputMeta m;
  m.tensor.strides = contiguousStrides(sizes);
  m.tensor.sizes = std::move(sizes);
  m.tensor.dtype = type;
  return m;
}

}  // namespace

class GraphTest : public QObject {
  Q_OBJECT
 private slots:
  void namesAreUnique() {
    Graph g;
    NodeId x = g.addPlaceholder("x", tensor({2, 3}));
    NodeId a = g.addCall("aten::relu", {ValueRef{x}}, {tensor({2, 3})});
    NodeId b = g.addCall("aten::relu", {ValueRef{a}}, {tensor({2, 3})});
    NodeId c = g.addPlaceholder("relu_1", tensor({1}));
    QCOMPARE(g.node(a).name, std::string("relu"));
    QCOMPARE(g.node(b).name, std::string("relu_1"));
    QCOMPARE(g.node(c).name, std::string("relu_1_1"));
  }
  void verifyAcceptsAndRefuses() {
    Graph g;
    g.name = "g";
    NodeId x = g.addPlaceholder("x", tensor({2, 3}));
    QVERIFY(!g.verify());  // no output yet
    NodeId a = g.addCall("aten::add.Tensor", {ValueRef{x}, ValueRef{x}, int64_t{1}}, {tensor({2, 3})});
    g.setOutputs({ValueRef{a}});
    QVERIFY(g.verify());
    Graph later = g;
    later.node(a).args[1] = ValueRef{2};
    auto bad = later.verify();
    QVERIFY(!bad);
    QVERIFY(bad.error().message.find("add") != std::string::npos);
    Graph output = g;
    output.node(a).args[1] = ValueRef{x, 1};
    QVERIFY(!output.verify());
    Graph strides = g;
    strides.node(a).outputs[0].tensor.strides.pop_back();
    QVERIFY(!strides.verify());
  }
  void deadNodesGo() {
    Graph g;
    NodeId x = g.addPlaceholder("x", tensor({2, 3}));
    g.addCall("aten::sin", {ValueRef{x}}, {tensor({2, 3})});
    NodeId r = g.addCall("aten::bernoulli.p", {ValueRef{x}, 0.5, {}}, {tensor({2, 3})});
    NodeId keep = g.addCall("aten::cat", {ArgumentList{ValueRef{x}, ValueRef{x}}, int64_t{0}}, {tensor({4, 3})});
    g.setOutputs({ValueRef{keep}});
    Graph d = withoutDeadNodes(g, [&](const Node& n) { return n.id == r; });
    QCOMPARE(d.nodes().size(), size_t{4});
    QVERIFY(d.verify());
    QVERIFY(d.str().find("sin") == std::string::npos);
    QVERIFY(d.str().find("bernoulli") != std::string::npos);
  }
  void textIsReadable() {
    Graph g;
    g.name = "f";
    NodeId x = g.addPlaceholder("x", tensor({2, 3}));
    NodeId s = g.addCall("aten::sum.dim_IntList", {ValueRef{x}, ArgumentList{int64_t{1}}, false, {}}, {tensor({2})});
    g.setOutputs({ValueRef{s}, {}});
    QCOMPARE(g.str(), std::string("graph f:\n"
                                  "  %x : float32[2, 3] = input 0\n"
                                  "  %sum : float32[2] = aten::sum.dim_IntList(%x, [1], False, None)\n"
                                  "  return (%sum, None)\n"));
    QCOMPARE(Argument(0.1).str(), std::string("0.1"));
    QCOMPARE(Argument(2.0).str(), std::string("2.0"));
  }
  void typesMatchTorchNumbers() {
    QCOMPARE(elementSize(DType::BFloat16), 2);
    QCOMPARE(elementSize(DType::Bool), 1);
    QCOMPARE(elementSize(DType::Undefined), 0);
    QVERIFY(isFloatingPoint(DType::Float16) && !isIntegral(DType::Bool) && isComplex(DType::Complex64));
    QCOMPARE(std::string(name(DType::Int64)), std::string("int64"));
  }
  void usersAndContiguity() {
    Graph g;
    NodeId x = g.addPlaceholder("x", tensor({2, 3}));
    NodeId a = g.addCall("aten::mul.Tensor", {ValueRef{x}, ValueRef{x}}, {tensor({2, 3})});
    g.setOutputs({ValueRef{a}, ValueRef{x}});
    auto users = g.users();
    QCOMPARE(users[static_cast<size_t>(x)].size(), size_t{2});
    TensorMeta m = tensor({2, 1, 3}).tensor;
    m.strides[1] = 77;
    QVERIFY(m.isContiguous());
    m.strides[0] = 4;
    QVERIFY(!m.isContiguous());
  }
};

QTEST_APPLESS_MAIN(GraphTest)
#include "graph_test.moc"
