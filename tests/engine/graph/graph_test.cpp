#include <QtTest>

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "engine/graph/base64.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/serialize.h"

using namespace fusebox::graph;

namespace {

OutputMeta tensor(std::vector<SymExpr> sizes, DType type = DType::Float32) {
  OutputMeta m;
  m.tensor.strides = contiguousStrides(sizes);
  m.tensor.sizes = std::move(sizes);
  m.tensor.dtype = type;
  return m;
}

/// A graph with every kind of argument, output and expression.
Graph manifold(Symbol s) {
  Graph g;
  g.name = "everything \"quoted\"";
  Provenance origin{std::make_shared<std::vector<SourceLine>>(std::vector<SourceLine>{{"a.py", 3, "f"}, {"b.py", 9, "g"}}), "layers.0", {}};
  NodeId x = g.addPlaceholder("x", tensor({s, 8}), origin);
  OutputMeta strided = tensor({SymExpr(s) * 2 + floorDiv(s, 3), mod(s, 5), max(s, SymExpr(7)) - min(s, SymExpr(9))}, DType::BFloat16);
  strided.tensor.storageOffset = SymExpr(s) + 1;
  strided.tensor.device = {DeviceKind::Cuda, 1};
  strided.tensor.requiresGrad = true;
  NodeId y = g.addPlaceholder("y", strided);
  NodeId c = g.addConstant("table", 0, tensor({2}, DType::Int64));
  OutputMeta none, size;
  none.kind = OutputMeta::Kind::None;
  size.kind = OutputMeta::Kind::SymInt;
  size.scalar = s;
  NodeId a = g.addCall("my::op.overload",
                       {ValueRef{x}, {}, true, int64_t{-3}, INT64_MAX, 0.1, -std::numeric_limits<double>::infinity(), std::complex<double>(1, -2),
                        std::string("gelu"), SymExpr(s) * 4, DType::Float16, Device{DeviceKind::Cuda, 0}, Layout{0}, MemoryFormat{2},
                        GeneratorRef{0}, ArgumentList{ValueRef{y}, ArgumentList{int64_t{1}, ValueRef{c}}}},
                       {tensor({2}), none, size}, {origin.stack, "layers.1", {x, y}});
  g.node(a).isBackward = g.node(a).noGrad = g.node(a).outputIsList = true;
  g.node(a).name = "op_17";  // not what its operator would give
  g.setOutputs({ValueRef{a, 2}, {}});
  return g;
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
  /// Beside a set of all names: what is written down of them is less.
  void namesAreThoseOfASet() {
    Graph g;
    std::set<std::string> taken;
    std::map<std::string, int> last;
    uint32_t random = 7;
    const char* const bases[] = {"a", "a_1", "a_2", "a_01", "a_1_1", "a_", "a_x", "_1", "1", "b", "b_3", "a_1_1_1", "a_99999999999"};
    for (int i = 0; i < 4000; ++i) {
      random = random * 1664525u + 1013904223u;
      const std::string base = bases[(random >> 16) % std::size(bases)];
      std::string expected = base;
      while (!taken.insert(expected).second) expected = base + "_" + std::to_string(++last[base]);
      QCOMPARE(g.node(g.addConstant(base, i, tensor({1}))).name, expected);
    }
  }
  /// Parameters are met one by one between the operators that read them.
  void placeholdersBetweenCallsCostNoWalk() {
    Graph g;
    QElapsedTimer timer;
    timer.start();
    for (int i = 0; i < 100000; ++i) {
      const NodeId x = g.addPlaceholder("p" + std::to_string(i), tensor({2}));
      QCOMPARE(g.node(x).index, i);
      g.addCall("aten::relu", {ValueRef{x}}, {tensor({2})});
    }
    QVERIFY2(timer.elapsed() < 3000, qPrintable(QString::number(timer.elapsed()) + " ms"));
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
  void savedGraphsComeBack() {
    const Symbol s = Symbol::make("s0", 2, 64);
    const Graph g = manifold(s);
    const ConstantData table{g.node(2).outputs[0].tensor, std::string("\1\0\0\0\0\0\0\0\377\0\0\0\0\0\0\0", 16)};
    const std::string text = writeSavedGraph(g, {table}, {{s, 8}});
    auto read = readSavedGraph(text);
    QVERIFY2(read, read ? "" : read.error().text().c_str());
    // The symbol is a new one of the same name, so that texts are equal.
    QCOMPARE(read->graph.str(), g.str());
    QCOMPARE(read->hints.size(), size_t{1});
    QCOMPARE(read->hints[0].second, int64_t{8});
    QCOMPARE(writeSavedGraph(read->graph, read->constants, read->hints), text);
    QVERIFY(writeSavedGraph(g, {table}, {{s, 65}}).find("hint") == std::string::npos);  // not a value that it may take
    QCOMPARE(read->constants.at(0).bytes, table.bytes);
    const Node& node = read->graph.node(3);
    QVERIFY(node.isBackward && node.noGrad && node.outputIsList);
    QCOMPARE(node.name, std::string("op_17"));
    QCOMPARE(node.origin.from, (std::vector<NodeId>{0, 1}));
    QCOMPARE(node.origin.stack->at(1).function, std::string("g"));
    QCOMPARE(node.origin.stack, read->graph.node(0).origin.stack);
    QCOMPARE(read->graph.node(0).outputs[0].tensor.sizes[0].symbols().at(0).upper(), int64_t{64});
  }
  void damagedSavedGraphsAreRefused() {
    const std::string text = writeSavedGraph(manifold(Symbol::make("s0", 2, 64)), {{tensor({2}, DType::Int64).tensor, std::string(16, '\0')}});
    QVERIFY(!readSavedGraph(std::string(text).replace(text.find("\"upper\":64"), 10, "\"hint\":65,\"upper\":64")));
    auto changed = [&](const std::string& from, const std::string& to) {
      const auto at = text.find(from);
      if (at == std::string::npos) qFatal("%s is not in the text", from.c_str());
      return readSavedGraph(std::string(text).replace(at, from.size(), to));
    };
    QCOMPARE(changed("\"version\":1", "\"version\":2").error().code, fusebox::ErrorCode::TooNew);
    for (auto [from, to] : {std::pair{"fusebox-graph", "other"}, {"[0,0]", "[9,0]"}, {"[0,0]", "[0,-1]"}, {"[0,0]", "[0,5]"},
                            {"\"kind\":\"call\"", "\"kind\":\"lambda\""}, {"AAAA", "AA=A"}, {"\"bfloat16\"", "\"float7\""},
                            {"\"div\",[[1,0]],3", "\"div\",[[1,0]],0"}, {"\"name\":\"op_17\"", "\"name\":\"x\""}, {"{", "["}}) {
      const auto read = changed(from, to);
      QVERIFY2(!read && read.error().code == fusebox::ErrorCode::Corrupt, from);
    }
    for (size_t cut = 0; cut < text.size(); cut += 7) QVERIFY(!readSavedGraph(text.substr(0, cut)));
    QVERIFY(!readSavedGraph(std::string(100000, '[')));
  }
  void savedGraphsReachNoFiles() {
    for (const auto& [op, isRead] : {std::pair{"aten::from_file", false}, {"aten::from_file.out", false}, {"symm_mem::one_shot_all_reduce", false},
                                     {"inductor::_reinterpret_tensor", false}, {"aten::from_file_like", true}, {"aten::relu", true}}) {
      Graph g;
      const NodeId x = g.addPlaceholder("x", tensor({4}));
      const NodeId call = g.addCall(op, {ValueRef{x, 0}}, {tensor({4})});
      g.setOutputs({ValueRef{call, 0}});
      const auto read = readSavedGraph(writeSavedGraph(g, {}, {}));
      QCOMPARE(read.has_value(), isRead);
      if (isRead) continue;
      QCOMPARE(read.error().code, fusebox::ErrorCode::Unsupported);
      QVERIFY2(read.error().message.find(op) != std::string::npos, read.error().message.c_str());
    }
  }
  void base64() {
    for (size_t length = 0; length < 9; ++length) {
      std::string bytes;
      for (size_t i = 0; i < length; ++i) bytes += static_cast<char>(250 + i * 3);
      QCOMPARE(fromBase64(toBase64(bytes)), std::optional(bytes));
    }
    QCOMPARE(toBase64("Man"), std::string("TWFu"));
    QCOMPARE(toBase64("Ma"), std::string("TWE="));
    QVERIFY(!fromBase64("TWF") && !fromBase64("T~Fu") && !fromBase64("====TWFu"));
  }
  void typesMatchTorchNumbers() {
    QCOMPARE(elementSize(DType::BFloat16), 2);
    QCOMPARE(elementSize(DType::Bool), 1);
    QCOMPARE(elementSize(DType::Undefined), 0);
    QVERIFY(isFloatingPoint(DType::Float16) && !isIntegral(DType::Bool) && isComplex(DType::Complex64));
    QCOMPARE(std::string(name(DType::Int64)), std::string("int64"));
  }
  void factsOfANameThatIsGivenAgain() {
    const OperatorFacts& first = factsOf("mine::f");
    QVERIFY(first.foreign && !first.view);
    for (int i = 0; i < 2000; ++i) QVERIFY(factsOf("mine::f" + std::to_string(i)).foreign && !factsOf("aten::f" + std::to_string(i)).foreign);
    forgetFacts("mine::f");
    OperatorFacts other;
    other.view = true;
    learnFacts("mine::f", other);
    QVERIFY(factsOf("mine::f").view && !factsOf("mine::f").foreign && first.foreign);
    std::thread([] { QVERIFY(factsOf("mine::f").view); }).join();
  }
  void namesThatTwoNodesShareAreRefused() {
    Graph g;
    for (int i = 0; i < 3; ++i) g.addPlaceholder("x", tensor({2}));
    g.setOutputs({ValueRef{0}});
    QVERIFY(g.verify());
    g.node(2).name = g.node(0).name;
    const auto read = g.verify();
    QVERIFY(!read && read.error().message.find("graph node x shares its name") != std::string::npos);
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
