#include "engine/inductor/ir/archive_fields.h"

#include <QTest>
#include <random>

#include "engine/graph/axis_symbol.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/archive_graph.h"

using namespace fusebox;
using namespace fusebox::inductor;
using graph::floorDiv, graph::mod;

namespace {

SymExpr randomExpr(std::mt19937& random, const std::vector<Symbol>& symbols, int depth) {
  switch (random() % (depth > 0 ? 7 : 2)) {
    case 0:
      return static_cast<int64_t>(random() % 20) - 5;
    case 1:
      return symbols[random() % symbols.size()];
    case 2:
      return randomExpr(random, symbols, depth - 1) + randomExpr(random, symbols, depth - 1);
    case 3:
      return randomExpr(random, symbols, depth - 1) * randomExpr(random, symbols, depth - 1);
    case 4:
      return floorDiv(randomExpr(random, symbols, depth - 1), static_cast<int64_t>(1 + random() % 9));
    case 5:
      return mod(randomExpr(random, symbols, depth - 1), static_cast<int64_t>(1 + random() % 9));
    default:
      return graph::max(randomExpr(random, symbols, depth - 1), randomExpr(random, symbols, depth - 1));
  }
}

/// out[i, j] = (in[i, j // 2] + n) if j < n else 0, summed along k.
Kernel someKernel() {
  Kernel kernel;
  kernel.name = "fused_some";
  const Symbol n = Symbol::make("n", 2, 1000);
  kernel.sizeSymbols = {n};
  kernel.outer = {{graph::axisSymbol("i", SymExpr(n)), SymExpr(n)}, {graph::axisSymbol("j", 64), 64}};
  const SymExpr i = kernel.outer[0].symbol, j = kernel.outer[1].symbol;
  kernel.buffers = {{0, "in", DType::Float32, BufferRole::Input, SymExpr(n) * 32, 4},
                    {1, "out", DType::Float32, BufferRole::Output, SymExpr(n) * 64, 64, 0}};
  Section section;
  section.axes = {{graph::axisSymbol("k", SymExpr(n)), SymExpr(n)}};
  const Symbol loaded = Symbol::make("v", 0, 31);
  section.values.push_back({Op::Index, DType::Int64, {-1, -1, -1}, 0, -1, j});
  section.values.push_back({Op::Load, DType::Float32, {-1, -1, -1}, 0, 0, i * 32 + floorDiv(j, 2) + SymExpr(loaded)});
  section.values.push_back({Op::Constant, DType::Float32, {-1, -1, -1}, 0x7ff8000000000001});
  section.indirect[loaded] = 0;
  Statement store;
  store.buffer = 1;
  store.index = i * 64 + j;
  store.value = 1;
  section.body = {store};
  kernel.sections = {section};
  return kernel;
}

template <class T>
T passedOn(const T& value, const std::vector<Symbol>& outer = {}) {
  ArchiveWriter writer(outer);
  writer(value);
  const std::string bytes = writer.take();
  ArchiveReader reader(bytes, outer);
  T read;
  reader(read);
  if (!reader.atEnd()) throw ArchiveError("more than was written");
  return read;
}

graph::Graph someGraph() {
  graph::Graph g;
  g.name = "g";
  graph::OutputMeta meta;
  meta.tensor.sizes = {4, 8}, meta.tensor.strides = {8, 1}, meta.tensor.dtype = DType::Float32;
  graph::Provenance origin;
  origin.stack = std::make_shared<std::vector<graph::SourceLine>>(1, graph::SourceLine{"model.py", 12, "forward"});
  origin.modulePath = "layers.0";
  const auto x = g.addPlaceholder("x", meta);
  const auto c = g.addConstant("c", 0, meta);
  const auto sum =
      g.addCall("aten::add.Tensor", {graph::ValueRef{x, 0}, graph::ValueRef{c, 0}, int64_t{1}}, {meta}, origin);
  g.node(sum).noGrad = true;
  const auto many = g.addCall("aten::op",
                              {graph::ArgumentList{2.5, true, std::string("text"), graph::Argument()},
                               std::complex<double>(1, -2), DType::Float16},
                              {meta}, origin);
  g.setOutputs({graph::ValueRef{sum, 0}, graph::ValueRef{many, 0}});
  return g;
}

}  // namespace

class ArchiveTest : public QObject {
  Q_OBJECT
 private slots:
  void numbersComeBack() {
    for (int64_t n : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{64}, int64_t{-65}, INT64_MAX, INT64_MIN})
      QCOMPARE(passedOn(n), n);
    QCOMPARE(passedOn(std::string("a\0b", 3)), std::string("a\0b", 3));
    QCOMPARE(passedOn(std::vector<std::optional<int64_t>>{1, std::nullopt, 3}),
             (std::vector<std::optional<int64_t>>{1, std::nullopt, 3}));
  }

  /// Sizes have the same values for all values of their symbols, in whatever order the symbols get their new numbers.
  void expressionsMeanTheSame() {
    std::mt19937 random(3);
    std::vector<Symbol> outer, own;
    for (int i = 0; i < 4; ++i) outer.push_back(Symbol::make("s", 2, 100));
    for (int i = 0; i < 4; ++i) own.push_back(Symbol::make("i" + std::to_string(i), 0, 50));
    std::vector<Symbol> all = outer;
    all.insert(all.end(), own.begin(), own.end());
    for (int round = 0; round < 400; ++round) {
      std::vector<SymExpr> written;
      for (int i = 0; i < 6; ++i) written.push_back(randomExpr(random, all, 3));
      const auto read = passedOn(written, outer);
      std::map<std::string, int64_t> values;
      for (int i = 0; i < 4; ++i) values["i" + std::to_string(i)] = static_cast<int64_t>(random() % 50);
      std::map<uint32_t, int64_t> outerValues;
      for (Symbol s : outer) outerValues[s.id] = static_cast<int64_t>(2 + random() % 90);
      const auto value = [&](Symbol s) -> std::optional<int64_t> {
        return outerValues.contains(s.id) ? outerValues[s.id] : values.at(s.name());
      };
      for (size_t i = 0; i < written.size(); ++i) QCOMPARE(read[i].evaluate(value), written[i].evaluate(value));
    }
  }

  void symbolsAreThoseOfTheReader() {
    const Symbol theirs = Symbol::make("s0", 2, 9), ours = Symbol::make("s0", 2, 9);
    ArchiveWriter writer(std::span(&theirs, 1));
    writer(SymExpr(theirs) * 2);
    QCOMPARE(writer.ownSymbols(), size_t{0});
    const std::string bytes = writer.take();
    ArchiveReader reader(bytes, std::span(&ours, 1));
    SymExpr read;
    reader(read);
    QVERIFY(read == SymExpr(ours) * 2);
  }

  void kernelsAreStructurallyEqual() {
    const Kernel kernel = someKernel(), read = passedOn(kernel);
    QCOMPARE(canonicalText(read), canonicalText(kernel));
    QCOMPARE(read.str(), kernel.str());
    QVERIFY(read.sizeSymbols[0] != kernel.sizeSymbols[0]);
    // What is known of an axis beyond its bounds came along: j // 64 is 0, i // n as well.
    QVERIFY(floorDiv(SymExpr(read.outer[0].symbol), SymExpr(read.sizeSymbols[0])) == SymExpr(0));
  }

  void attentionComesBack() {
    Kernel kernel = someKernel();
    kernel.attention = std::make_shared<Attention>(
        Attention{{graph::axisSymbol("w", 64), 64}, {graph::axisSymbol("d", 32), 32}, 1, true});
    QCOMPARE(canonicalText(passedOn(kernel)), canonicalText(kernel));
    QVERIFY(passedOn(kernel).attention->safe);
  }

  void graphsKeepTheReadersLines() {
    const graph::Graph traced = someGraph();
    ArchiveWriter writer;
    writeDerivedGraph(writer, traced, traced);
    const std::string bytes = writer.take();
    graph::Graph other = someGraph();
    for (size_t i = 0; i < other.nodes().size(); ++i)
      if (other.node(static_cast<int>(i)).origin.stack) {
        other.node(static_cast<int>(i)).origin.stack =
            std::make_shared<std::vector<graph::SourceLine>>(1, graph::SourceLine{"other.py", 7, "f"});
        other.node(static_cast<int>(i)).origin.modulePath = "blocks.3";
      }
    ArchiveReader reader(bytes);
    const graph::Graph read = readDerivedGraph(reader, other);
    QCOMPARE(read.str(), traced.str());
    QCOMPARE(read.node(2).origin.stack->at(0).file, std::string("other.py"));
    QCOMPARE(read.node(2).origin.modulePath, std::string("blocks.3"));
    QVERIFY(read.node(2).noGrad);
  }

  /// The bytes of a graph are its key: they must tell graphs apart.
  void graphsAreToldApart() {
    const auto bytesOf = [](const graph::Graph& g) {
      ArchiveWriter writer;
      writeGraph(writer, g);
      return writer.take();
    };
    const graph::Graph graph = someGraph();
    QVERIFY(bytesOf(graph) == bytesOf(someGraph()));
    graph::Graph changed = someGraph();
    changed.node(2).args[2] = int64_t{2};
    QVERIFY(bytesOf(changed) != bytesOf(graph));
    changed = someGraph();
    changed.node(0).outputs[0].tensor.strides = {1, 4};
    QVERIFY(bytesOf(changed) != bytesOf(graph));
    changed = someGraph();
    changed.node(2).args[2] = true;
    QVERIFY(bytesOf(changed) != bytesOf(graph));
    changed = someGraph();
    changed.node(2).origin.modulePath = "elsewhere";
    QVERIFY(bytesOf(changed) == bytesOf(graph));
  }

  /// Damage ends in an ArchiveError or in another kernel, never in a crash.
  void damageIsNoticed() {
    ArchiveWriter writer;
    writer(someKernel());
    const std::string bytes = writer.take();
    std::mt19937 random(11);
    int errors = 0;
    for (int round = 0; round < 20'000; ++round) {
      std::string changed = bytes;
      for (unsigned k = random() % 3; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
      if (random() % 4 == 0) changed.resize(random() % changed.size());
      try {
        ArchiveReader reader(changed);
        Kernel read;
        reader(read);
      } catch (const ArchiveError&) {
        ++errors;
      }
    }
    QVERIFY(errors > 1000);
  }
};

QTEST_GUILESS_MAIN(ArchiveTest)
#include "archive_test.moc"
