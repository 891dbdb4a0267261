#include <QtTest>

#include <algorithm>
#include <ctime>

#include "engine/inductor/ir/lowered_graph.h"
#include "tests/engine/lowering/graph_maker.h"

using namespace fusebox;
using namespace fusebox::graph;
using namespace fusebox::graph::testing;
using namespace fusebox::inductor;

namespace {

/// Kernels and extern calls as text, one after another.
std::string textOf(const LoweredGraph& g) {
  std::string out;
  for (const Operation& op : g.operations) {
    if (op.kind == Operation::Kind::Loops) {
      out += op.kernel.str();
      continue;
    }
    out += "extern " + op.call.op + "(";
    for (size_t i = 0; i < op.call.args.size(); i++) out += (i ? ", " : "") + op.call.args[i].str();
    out += ") -> ";
    for (BufferId id : op.call.results) out += std::to_string(id) + " ";
    out += op.call.outVariant + "\n";
  }
  return out;
}

LoweredGraph lowered(const Graph& graph) {
  auto r = lower(graph);
  if (!r) qFatal("%s", r.error().text().c_str());
  return std::move(*r);
}

/// The lowered sum over `dims` of where(columns == classes, chosen, otherwise), of 6 x 40 x 5.
struct OneHot {
  GraphMaker m;
  std::vector<SymExpr> sizes = {6, 40, 5};
  ValueRef classes = m.input(tensor({6, 1, 5}, DType::Int64));
  ValueRef rows = m.input(tensor({6, 1, 5})), all = m.input(tensor(sizes));
  ValueRef columns = m.call("aten::arange", {SymExpr(40), DType::Int64, {}, {}, false}, tensor({40}, DType::Int64));
  ValueRef column = m.call("aten::unsqueeze", {columns, int64_t{1}}, tensor({40, 1}, DType::Int64));

  ValueRef where(ValueRef condition, graph::Argument chosen, graph::Argument otherwise, DType type = DType::Float32) {
    const bool first = chosen.as<ValueRef>(), second = otherwise.as<ValueRef>();
    return m.call(first && second ? "aten::where.self" : first ? "aten::where.ScalarOther" : "aten::where.ScalarSelf",
                  {condition, chosen, otherwise}, tensor(sizes, type));
  }
  ValueRef isClass(const char* op = "aten::eq.Tensor") { return m.call(op, {column, classes}, tensor(sizes, DType::Bool)); }
  Kernel sum(ValueRef x, ArgumentList dims = {int64_t{1}}, OutputMeta made = tensor({6, 5})) {
    ValueRef y = m.call("aten::sum.dim_IntList", {x, dims, false, {}}, made);
    return lowered(m.returning({y})).operations.back().kernel;
  }
};

size_t loopsIn(const Kernel& kernel) {
  size_t axes = 0;
  for (const Section& section : kernel.sections) axes += section.isReduction ? section.axes.size() : 0;
  return axes;
}

/// Of the tensors of so many elements that the graph computes into memory.
std::vector<DType> typesOfIntermediates(const LoweredGraph& g, const SymExpr& elements) {
  std::vector<DType> types;
  for (const LoweredBuffer& buffer : g.buffers)
    if (buffer.kind == LoweredBuffer::Kind::Computed && buffer.meta.numel() == elements) types.push_back(buffer.meta.dtype);
  return types;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class LoweringTest : public QObject {
  Q_OBJECT
 private slots:
  /// any and all over no dimension are no reductions; over None they are over all. Of sums both are over all.
  void emptyDimensions() {
    for (const char* op : {"aten::any.dims", "aten::all.dims", "aten::sum.dim_IntList"}) {
      const bool logic = std::string_view(op) != "aten::sum.dim_IntList";
      const DType type = logic ? DType::Bool : DType::Float32;
      for (bool none : {true, false}) {
        GraphMaker m;
        const ValueRef x = m.input(tensor({64, 64}));
        const bool keepsAll = logic && !none;
        const graph::Argument dims = none ? graph::Argument() : graph::Argument(ArgumentList{});
        const ValueRef y = m.call(op, {x, dims, false}, tensor(keepsAll ? std::vector<SymExpr>{64, 64} : std::vector<SymExpr>{}, type));
        const LoweredGraph g = lowered(m.returning({y}));
        QCOMPARE(g.operations.size(), size_t{1});
        QCOMPARE(g.operations[0].kind, Operation::Kind::Loops);
        QCOMPARE(g.operations[0].kernel.outer.size(), keepsAll ? size_t{2} : size_t{0});
      }
    }
  }

  /// An operator that is traced with other sizes than its lowering makes is called, never stored beside its result.
  void whatWasNotTracedIsCalled() {
    for (const char* op : {"aten::any.dims", "aten::sum.dim_IntList", "aten::var.correction"}) {
      for (const std::vector<SymExpr>& sizes : {std::vector<SymExpr>{64}, {64, 1}, {3, 64}, {}}) {
        GraphMaker m;
        const ValueRef x = m.input(tensor({64, 32}));
        const bool logic = std::string_view(op) == "aten::any.dims";
        const ValueRef y = m.call(op, {x, ArgumentList{int64_t{1}}, false}, tensor(sizes, logic ? DType::Bool : DType::Float32));
        const LoweredGraph g = lowered(m.returning({y}));
        const bool right = sizes == std::vector<SymExpr>{64} || sizes == std::vector<SymExpr>{64, 1};
        QCOMPARE(g.operations.back().kind, right ? Operation::Kind::Loops : Operation::Kind::Extern);
      }
    }
  }

  void pointwiseChainIsOneKernel() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4, 8}));
    ValueRef y = m.call("aten::add.Tensor", {x, x, int64_t{1}}, tensor({4, 8}));
    ValueRef z = m.call("aten::relu", {y}, tensor({4, 8}));
    LoweredGraph g = lowered(m.returning({z}));
    QCOMPARE(g.operations.size(), size_t{1});
    std::string text = textOf(g);
    QVERIFY2(has(text, "add") && has(text, "maximum"), text.c_str());
    QCOMPARE(g.operations[0].origins, (std::vector<NodeId>{y.node, z.node}));
    QCOMPARE(g.operations[0].reads, (std::vector<BufferId>{0}));
  }
  void sixteenBitFloatsComputeInFloat32() {
    GraphMaker m;
    ValueRef x = m.input(tensor({16}, DType::BFloat16));
    ValueRef y = m.call("aten::mul.Tensor", {x, 2.5}, tensor({16}, DType::BFloat16));
    LoweredGraph g = lowered(m.returning({y}));
    const Section& s = g.operations[0].kernel.sections[0];
    bool inFloat = false;
    for (const Value& v : s.values) {
      if (v.op == Op::Mul) inFloat = v.type == DType::Float32;
    }
    QVERIFY(inFloat);
    QCOMPARE(s.values.back().type, DType::BFloat16);
  }
  void viewsBecomeIndices() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4, 6}));
    ValueRef t = m.call("aten::t", {x}, strided({6, 4}, {1, 6}));
    ValueRef c = m.call("aten::clone", {t, MemoryFormat{0}}, tensor({6, 4}));
    ValueRef v = m.call("aten::view", {c, ArgumentList{int64_t{24}}}, tensor({24}));
    ValueRef y = m.call("aten::neg", {v}, tensor({24}));
    LoweredGraph g = lowered(m.returning({y}));
    QCOMPARE(g.operations.size(), size_t{1});
    std::string text = textOf(g);
    QVERIFY2(has(text, "// 4") && has(text, "% 4"), text.c_str());
  }
  void matrixProductIsExternWithStridedOperands() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4, 8}));
    ValueRef w = m.input(tensor({16, 8}));
    ValueRef t = m.call("aten::t", {w}, strided({8, 16}, {1, 8}));
    ValueRef y = m.call("aten::mm", {x, t}, tensor({4, 16}));
    LoweredGraph g = lowered(m.returning({y}));
    QCOMPARE(g.operations.size(), size_t{1});
    QCOMPARE(g.operations[0].call.outVariant, std::string("aten::mm.out"));
    const LoweredBuffer& view = g.buffers[static_cast<size_t>(g.operations[0].call.args[1].as<ValueRef>()->node)];
    QCOMPARE(view.kind, LoweredBuffer::Kind::View);
    QCOMPARE(view.base, 1);
    QVERIFY(view.meta.strides[0] == SymExpr(1) && view.meta.strides[1] == SymExpr(8));
    QCOMPARE(g.operations[0].reads, (std::vector<BufferId>{0, 1}));
  }
  void batchedProductsGetMatricesThatLieByLines() {
    GraphMaker m;
    const auto swapped = [&](ValueRef of, ArgumentList order, std::vector<SymExpr> strides) {
      return m.call("aten::permute", {of, std::move(order)}, strided({6, 8, 8}, std::move(strides)));
    };
    ValueRef x = m.input(tensor({8, 8, 6})), y = m.input(tensor({8, 6, 8}));
    ValueRef apart = swapped(x, {int64_t{2}, int64_t{0}, int64_t{1}}, {1, 48, 6});
    ValueRef lines = swapped(y, {int64_t{1}, int64_t{2}, int64_t{0}}, {8, 1, 48});
    LoweredGraph g = lowered(m.returning({m.call("aten::bmm", {apart, lines}, tensor({6, 8, 8}))}));
    const ArgumentList& factors = g.operations.back().call.args;
    const LoweredBuffer& copied = g.buffers[static_cast<size_t>(factors[0].as<ValueRef>()->node)];
    const LoweredBuffer& view = g.buffers[static_cast<size_t>(factors[1].as<ValueRef>()->node)];
    QCOMPARE(copied.kind, LoweredBuffer::Kind::Computed);
    QVERIFY(copied.meta.isContiguous());
    QCOMPARE(view.kind, LoweredBuffer::Kind::View);
    QCOMPARE(view.base, 1);
  }
  void smallMatricesAreMultipliedInLoops() {
    struct Case { SymExpr batch, rows, terms, columns; DType type; bool isLoop; };
    const SymExpr many = Symbol::make("n", 2, 1000);
    for (const Case& c : {Case{64, 3, 3, 3, DType::Float32, true}, {many, 4, 4, 4, DType::BFloat16, true}, {64, 2, 20, 2, DType::Float64, true},
                          {64, 1, 500, 1, DType::Float32, true}, {64, 8, 8, 8, DType::Float32, false}, {64, 3, 3, 3, DType::Int64, false}}) {
      GraphMaker m;
      const ValueRef a = m.input(tensor({c.batch, c.rows, c.terms}, c.type)), b = m.input(tensor({c.batch, c.terms, c.columns}, c.type));
      const ValueRef scaled = m.call("aten::mul.Scalar", {a, 2.0}, tensor({c.batch, c.rows, c.terms}, c.type));
      const LoweredGraph g = lowered(m.returning({m.call("aten::bmm", {scaled, b}, tensor({c.batch, c.rows, c.columns}, c.type))}));
      QCOMPARE(g.operations.back().kind == Operation::Kind::Loops, c.isLoop);
      if (c.isLoop) QCOMPARE(g.operations.size(), size_t{1});
    }
    GraphMaker m;
    const ValueRef column = m.input(tensor({50, 2})), weights = m.input(tensor({2, 1})), wide = m.input(tensor({2, 1}, DType::Float64));
    const LoweredGraph g = lowered(m.returning({m.call("aten::mm", {column, weights}, tensor({50, 1})), m.call("aten::mm", {column, wide}, tensor({50, 1}))}));
    QCOMPARE(std::ranges::count(g.operations, Operation::Kind::Loops, &Operation::kind), 1);  // what eager refuses stays the operator's
  }
  void framesThatOverlapAreAddedInLoops() {
    for (int64_t size : {40, 300}) {
      GraphMaker m;
      const ValueRef frames = m.input(tensor({4, (620 - size) / 16 + 1, size}));
      const ValueRef sum = m.call("aten::unfold_backward", {frames, ArgumentList{int64_t{4}, int64_t{620}}, int64_t{1}, size, int64_t{16}}, tensor({4, 620}));
      const LoweredGraph g = lowered(m.returning({m.call("aten::mul.Scalar", {sum, 2.0}, tensor({4, 620}))}));
      QCOMPARE(std::ranges::count(g.operations, Operation::Kind::Extern, &Operation::kind), size > 40);
    }
  }
  void partsOfComplexNumbersAreReadWhereTheyLie() {
    GraphMaker m;
    ValueRef z = m.input(strided({4, 6}, {1, 4}, DType::Complex64));
    ValueRef parts = m.call("aten::view_as_real", {z}, strided({4, 6, 2}, {2, 8, 1}));
    ValueRef imaginary = m.call("aten::select.int", {parts, int64_t{2}, int64_t{1}}, strided({4, 6}, {2, 8}));
    LoweredGraph g = lowered(m.returning({m.call("aten::neg", {imaginary}, tensor({4, 6}))}));
    QCOMPARE(g.operations.size(), size_t{1});
    QCOMPARE(g.operations[0].kind, Operation::Kind::Loops);
    QCOMPARE(g.operations[0].reads, (std::vector<BufferId>{0}));
    const LoweredBuffer& view = g.buffers[static_cast<size_t>(g.operations[0].kernel.buffers[0].id)];
    QCOMPARE(view.kind, LoweredBuffer::Kind::View);
    QCOMPARE(view.base, 0);
    QCOMPARE(view.meta.dtype, DType::Float32);
    QVERIFY(view.meta.strides == (std::vector<SymExpr>{2, 8, 1}));
  }
  void complexNumbersAreStoredInPairs() {
    GraphMaker m;
    const ValueRef re = m.input(tensor({4, 6})), im = m.input(tensor({6}));
    const ValueRef z = m.call("aten::complex", {re, im}, tensor({4, 6}, DType::Complex64));
    const LoweredGraph g = lowered(m.returning({m.call("aten::_fft_c2c", {z, ArgumentList{int64_t{1}}, int64_t{0}, true}, tensor({4, 6}, DType::Complex64))}));
    QCOMPARE(g.operations.size(), size_t{2});
    QCOMPARE(g.operations[0].kind, Operation::Kind::Loops);
    const auto& stores = g.operations[0].kernel.sections[0].body;
    QCOMPARE(stores.size(), size_t{2});
    QVERIFY(stores[1].index - stores[0].index == SymExpr(1));
    QCOMPARE(g.operations[1].kind, Operation::Kind::Extern);
    const auto numbers = std::ranges::find(g.buffers, LoweredBuffer::Kind::View, &LoweredBuffer::kind);
    QVERIFY(numbers != g.buffers.end());
    QCOMPARE(std::as_const(g.operations[1].call.args[0]).as<ValueRef>()->node, numbers->id);
    QCOMPARE(numbers->meta.dtype, DType::Complex64);
    QVERIFY(numbers->meta.strides == (std::vector<SymExpr>{6, 1}));
  }
  void viewsOfOneBufferAreShared() {
    GraphMaker m;
    ValueRef x = m.input(tensor({8, 8})), w = m.input(tensor({8, 8})), other = m.input(tensor({8, 8}));
    const auto turned = [&](ValueRef of) { return m.call("aten::t", {of}, strided({8, 8}, {1, 8})); };
    ArgumentList results;
    for (ValueRef of : {w, other, w}) results.push_back(m.call("aten::mm", {x, turned(of)}, tensor({8, 8})));
    LoweredGraph g = lowered(m.returning(results));
    std::vector<BufferId> views;
    for (const Operation& operation : g.operations) views.push_back(operation.call.args[1].as<ValueRef>()->node);
    QCOMPARE(views.size(), size_t{3});
    QVERIFY(views[0] == views[2] && views[0] != views[1]);
  }
  void timeGrowsWithTheViewsNotWithTheirSquare() {
    const double few = timeOfProducts(400), many = timeOfProducts(20000);
    qInfo("50 times the products: %.1f ms, %.1f ms", few, many);
    QVERIFY2(many < 150 * few, qPrintable(QString("%1 ms, %2 ms").arg(few).arg(many)));
  }
  void unknownOperatorsSayWhy() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}));
    ValueRef y = m.call("aten::renorm", {x, 2.0, int64_t{0}, 1.0}, tensor({4}));
    LoweredGraph g = lowered(m.returning({y}));
    QCOMPARE(g.operations[0].call.reason, std::string("PyTorch's own kernel is called: none is generated for aten::renorm"));
  }
  void reductionsHaveTwoSections() {
    GraphMaker m;
    ValueRef x = m.input(tensor({32, 64}));
    ValueRef e = m.call("aten::exp", {x}, tensor({32, 64}));
    ValueRef s = m.call("aten::sum.dim_IntList", {e, ArgumentList{int64_t{1}}, true, {}}, tensor({32, 1}));
    LoweredGraph g = lowered(m.returning({s}));
    QCOMPARE(g.operations.size(), size_t{1});
    const Kernel& k = g.operations[0].kernel;
    QCOMPARE(k.outer.size(), size_t{1});
    QCOMPARE(k.sections.size(), size_t{2});
    QVERIFY(k.sections[0].isReduction && !k.sections[1].isReduction);
  }
  void shortReductionsAreArithmetic() {
    GraphMaker m;
    ValueRef x = m.input(tensor({32, 4}));
    ValueRef s = m.call("aten::sum.dim_IntList", {x, ArgumentList{int64_t{1}}, false, {}}, tensor({32}));
    LoweredGraph g = lowered(m.returning({s}));
    QCOMPARE(g.operations[0].kernel.sections.size(), size_t{1});
  }
  void varianceReturnsTwoResultsFromOneOperation() {
    GraphMaker m;
    ValueRef x = m.input(tensor({32, 64}));
    NodeId v = m.callMany("aten::var_mean.correction", {x, ArgumentList{int64_t{1}}, int64_t{0}, true},
                          {tensor({32, 1}), tensor({32, 1})});
    LoweredGraph g = lowered(m.returning({ValueRef{v, 0}, ValueRef{v, 1}}));
    QCOMPARE(g.operations.size(), size_t{1});
    QCOMPARE(g.operations[0].writes.size(), size_t{2});
  }
  void sharedExpensiveValuesAreComputedOnce() {
    GraphMaker m;
    ValueRef x = m.input(tensor({32, 64}));
    ValueRef e = m.call("aten::exp", {x}, tensor({32, 64}));
    ValueRef a = m.call("aten::add.Tensor", {e, 1.0, int64_t{1}}, tensor({32, 64}));
    ValueRef b = m.call("aten::sum", {e, {}}, tensor({}));
    LoweredGraph g = lowered(m.returning({a, b}));
    int exponentials = 0;
    for (const Operation& op : g.operations) {
      for (const Section& s : op.kernel.sections) {
        for (const Value& v : s.values) exponentials += v.op == Op::Exp;
      }
    }
    QCOMPARE(exponentials, 1);
  }
  /// What a product reads in memory is read there by others too, where computing it again reads more.
  void whatProductsReadIsReadByOthers() {
    for (const bool isDear : {true, false}) {
      GraphMaker m;
      const ValueRef x = m.input(tensor({64, 64})), y = m.input(tensor({64, 64})), w = m.input(tensor({64, 64}));
      const ValueRef h = m.call("aten::mul.Tensor", {x, isDear ? y : x}, tensor({64, 64}));
      const ValueRef turned = m.call("aten::t", {h}, strided({64, 64}, {1, 64}));
      const ValueRef sum = m.call("aten::sum.dim_IntList", {turned, ArgumentList{int64_t{0}}, false}, tensor({64}));
      const ValueRef product = m.call("aten::mm", {h, w}, tensor({64, 64}));
      const LoweredGraph g = lowered(m.returning({sum, product}));
      const auto summing = std::find_if(g.operations.begin(), g.operations.end(), [](const Operation& op) { return op.kind == Operation::Kind::Loops && loopsIn(op.kernel) > 0; });
      QVERIFY(summing != g.operations.end());
      QCOMPARE(std::find(summing->reads.begin(), summing->reads.end(), 0) == summing->reads.end(), isDear);
    }
  }
  /// Of an expensive value that is read here and there nothing is written to memory.
  void whatIsReadAtPlacesIsComputedThere() {
    for (const bool isWhole : {false, true}) {
      GraphMaker m;
      const ValueRef x = m.input(tensor({64, 256})), rows = m.input(tensor({4}, DType::Int64));
      const ValueRef e = m.call("aten::exp", {x}, tensor({64, 256}));
      const ValueRef first = m.call("aten::select.int", {e, int64_t{1}, int64_t{0}}, strided({64}, {256}));
      const ValueRef chosen = m.call("aten::index_select", {e, int64_t{0}, rows}, tensor({4, 256}));
      const ValueRef doubled = m.call("aten::mul.Scalar", {isWhole ? e : first, 2.0}, tensor(isWhole ? std::vector<SymExpr>{64, 256} : std::vector<SymExpr>{64}));
      const LoweredGraph g = lowered(m.returning({m.call("aten::mul.Scalar", {first, 3.0}, tensor({64})), chosen, doubled}));
      QCOMPARE(typesOfIntermediates(g, 64 * 256).size(), isWhole ? size_t{2} : size_t{0});
    }
  }
  void whatIsOnlyWidenedLiesNarrow() {
    GraphMaker m;
    ValueRef x = m.input(tensor({32, 64}));
    ValueRef e = m.call("aten::exp", {x}, tensor({32, 64}));
    ValueRef narrow = m.call("aten::_to_copy", {e, DType::BFloat16, {}, {}, {}, false, {}}, tensor({32, 64}, DType::BFloat16));
    ValueRef wide = m.call("aten::_to_copy", {narrow, DType::Float32, {}, {}, {}, false, {}}, tensor({32, 64}));
    ValueRef rows = m.call("aten::sum.dim_IntList", {wide, ArgumentList{int64_t{1}}, false, {}}, tensor({32}));
    ValueRef columns = m.call("aten::sum.dim_IntList", {wide, ArgumentList{int64_t{0}}, false, {}}, tensor({64}));
    LoweredGraph g = lowered(m.returning({rows, columns}));
    QCOMPARE(typesOfIntermediates(g, SymExpr(32 * 64)), std::vector<DType>{DType::BFloat16});
  }
  void whatIsOnlyNarrowedLiesNarrow() {
    GraphMaker m;
    ValueRef wide = m.input(tensor({32, 64}));
    for (int i = 0; i < 31; i++) wide = m.call("aten::add.Scalar", {wide, 0.5 + i, int64_t{1}}, tensor({32, 64}));
    ValueRef narrow = m.call("aten::_to_copy", {wide, DType::BFloat16, {}, {}, {}, false, {}}, tensor({32, 64}, DType::BFloat16));
    ValueRef turned = m.call("aten::neg", {narrow}, tensor({32, 64}, DType::BFloat16));
    LoweredGraph g = lowered(m.returning({turned}));
    for (DType type : typesOfIntermediates(g, SymExpr(32 * 64))) QCOMPARE(type, DType::BFloat16);
  }
  void deepSharingStaysSmall() {
    GraphMaker m;
    ValueRef x = m.input(tensor({8}));
    for (int i = 0; i < 200; i++) x = m.call("aten::mul.Tensor", {x, x}, tensor({8}));
    LoweredGraph g = lowered(m.returning({x}));
    for (const Operation& op : g.operations) QVERIFY(op.kernel.sections[0].values.size() < 70);
  }
  void joinsReadOnlyTheirPart() {
    GraphMaker m;
    ValueRef x = m.input(tensor({2, 4})), y = m.input(tensor({3, 4}));
    ValueRef c = m.call("aten::cat", {ArgumentList{x, y}, int64_t{0}}, tensor({5, 4}));
    LoweredGraph g = lowered(m.returning({c}));
    const Section& s = g.operations[0].kernel.sections[0];
    int masked = 0;
    for (const Value& v : s.values) masked += v.op == Op::Load && v.mask >= 0;
    QCOMPARE(masked, 2);
  }
  void manyComputedPiecesAreWrittenWhereTheyLie() {
    GraphMaker m;
    ArgumentList pieces, read;
    for (int i = 0; i < 9; ++i) {
      ValueRef x = m.input(tensor({4, 3}));
      read.emplace_back(x);
      pieces.emplace_back(m.call("aten::exp", {x}, tensor({4, 3})));
    }
    ValueRef all = m.call("aten::cat", {ArgumentList(pieces), int64_t{1}}, tensor({4, 27}));
    ValueRef copied = m.call("aten::cat", {ArgumentList(read), int64_t{1}}, tensor({4, 27}));
    LoweredGraph g = lowered(m.returning({all, copied}));
    const auto loops = std::ranges::count_if(g.operations, [](const Operation& op) { return op.kind == Operation::Kind::Loops; });
    QCOMPARE(loops, ptrdiff_t{9});
    QCOMPARE(g.operations.size(), size_t{10});  // what only copies is a library's call
    for (const Operation& op : g.operations)
      if (op.kind == Operation::Kind::Loops) QCOMPARE(op.writes, (std::vector<BufferId>{g.results[0].as<ValueRef>()->node}));
  }
  void dearPiecesAreNotComputedForNothing() {
    const auto operations = [](int64_t rows, const char* op) {
      GraphMaker m;
      ValueRef x = m.input(tensor({rows, 64}));
      ValueRef both = m.call("aten::cat", {ArgumentList{m.call(op, {x}, tensor({rows, 64})), m.call("aten::cos", {x}, tensor({rows, 64}))}, int64_t{1}}, tensor({rows, 128}));
      return lowered(m.returning({both})).operations.size();
    };
    QCOMPARE(operations(1 << 14, "aten::sin"), size_t{2});
    QCOMPARE(operations(1 << 14, "aten::neg"), size_t{1});
    QCOMPARE(operations(16, "aten::sin"), size_t{1});
  }
  void frequenciesOfManyPositionsLieInMemory() {
    const auto operations = [](const char* op) {
      GraphMaker m;
      ValueRef rates = m.call(op, {m.input(tensor({64}))}, tensor({64}));
      ValueRef y = m.call("aten::mul.Tensor", {m.input(tensor({1 << 15, 1})), rates}, tensor({1 << 15, 64}));
      return lowered(m.returning({y})).operations.size();
    };
    QCOMPARE(operations("aten::sin"), size_t{2});
    QCOMPARE(operations("aten::exp"), size_t{1});
  }
  void embeddingLoadsItsIndex() {
    GraphMaker m;
    ValueRef w = m.input(tensor({100, 16})), i = m.input(tensor({7}, DType::Int64));
    ValueRef e = m.call("aten::embedding", {w, i, int64_t{-1}, false, false}, tensor({7, 16}));
    LoweredGraph g = lowered(m.returning({e}));
    QCOMPARE(g.operations.size(), size_t{1});
    QCOMPARE(g.operations[0].kernel.sections[0].indirect.size(), size_t{1});
  }
  void oneHotSumsNeedNoLoop() {
    for (const char* op : {"aten::eq.Tensor", "aten::ne.Tensor"}) {
      OneHot h;
      const bool equal = std::string(op) == "aten::eq.Tensor";
      const Kernel k = h.sum(equal ? h.where(h.isClass(op), h.rows, 0.0) : h.where(h.isClass(op), 0.0, h.rows));
      QVERIFY2(k.sections.size() == 1 && loopsIn(k) == 0, k.str().c_str());
      QVERIFY(!has(k.str(), "index"));  // nor does anything say where along the axis it is
    }
  }
  void oneHotSumsThroughCastsMasksAndFactors() {
    OneHot h;
    ValueRef wanted = h.m.call("aten::gt.Scalar", {h.rows, 0.5}, tensor({6, 1, 5}, DType::Bool));
    ValueRef both = h.m.call("aten::logical_and", {h.isClass(), wanted}, tensor(h.sizes, DType::Bool));
    ValueRef half = h.m.call("aten::_to_copy", {h.where(both, h.rows, 0.0), DType::BFloat16, {}, {}, {}, false, {}}, tensor(h.sizes, DType::BFloat16));
    ValueRef scaled = h.m.call("aten::mul.Tensor", {h.m.call("aten::neg", {half}, tensor(h.sizes, DType::BFloat16)), h.rows}, tensor(h.sizes));
    QCOMPARE(loopsIn(h.sum(scaled)), size_t{0});
    OneHot counts;
    ValueRef hits = counts.m.call("aten::_to_copy", {counts.isClass(), DType::Int64, {}, {}, {}, false, {}}, tensor(counts.sizes, DType::Int64));
    QCOMPARE(loopsIn(counts.sum(hits, {int64_t{1}}, tensor({6, 5}, DType::Int64))), size_t{0});
  }
  void oneHotSumsOfManyAxesLoseOne() {
    OneHot h;
    const Kernel k = h.sum(h.where(h.isClass(), h.rows, 0.0), {int64_t{0}, int64_t{1}, int64_t{2}}, tensor({}));
    QVERIFY2(loopsIn(k) == 2, k.str().c_str());
  }
  void oneHotSumsPickTheirElement() {
    OneHot h;
    const Kernel k = h.sum(h.where(h.isClass(), h.all, 0.0));
    QVERIFY2(loopsIn(k) == 0 && k.sections[0].indirect.size() == 1, k.str().c_str());
  }
  void otherSumsKeepTheirLoop() {
    OneHot elsewhere, moving, factor;
    QCOMPARE(loopsIn(elsewhere.sum(elsewhere.where(elsewhere.isClass(), 0.0, elsewhere.all))), size_t{1});
    moving.classes = moving.m.input(tensor(moving.sizes, DType::Int64));  // another class at each point
    QCOMPARE(loopsIn(moving.sum(moving.where(moving.isClass(), moving.rows, 0.0))), size_t{1});
    // 0 times what differs from point to point is NaN where that is infinite.
    ValueRef product = factor.m.call("aten::mul.Tensor", {factor.where(factor.isClass(), factor.rows, 0.0), factor.all}, tensor(factor.sizes));
    QCOMPARE(loopsIn(factor.sum(product)), size_t{1});
  }
  void resultsKeepTheirTracedStrides() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4, 6}));
    ValueRef t = m.call("aten::t", {x}, strided({6, 4}, {1, 6}));
    ValueRef y = m.call("aten::relu", {t}, strided({6, 4}, {1, 6}));
    LoweredGraph g = lowered(m.returning({y, t}));
    const LoweredBuffer& r = g.buffers[static_cast<size_t>(g.results[0].as<ValueRef>()->node)];
    QVERIFY(r.meta.strides[0] == SymExpr(1) && r.meta.strides[1] == SymExpr(6));
    const LoweredBuffer& v = g.buffers[static_cast<size_t>(g.results[1].as<ValueRef>()->node)];
    QCOMPARE(v.kind, LoweredBuffer::Kind::View);
  }
  void comparisonsPromoteOperands() {
    GraphMaker m;
    ValueRef x = m.input(tensor({4}, DType::Int32));
    ValueRef y = m.call("aten::gt.Scalar", {x, 0.5}, tensor({4}, DType::Bool));
    LoweredGraph g = lowered(m.returning({y}));
    for (const Value& v : g.operations[0].kernel.sections[0].values) {
      if (v.op == Op::Constant) QCOMPARE(v.type, DType::Float32);
    }
  }

  /// On a device, kernels only for what it has code for; the rest are calls that say why.
  void devicesGetWhatTheyHaveCodeFor() {
    auto on = [](OutputMeta meta, int8_t index) {
      meta.tensor.device = {DeviceKind::Cuda, index};
      return meta;
    };
    GraphMaker m;
    ValueRef x = m.input(on(tensor({4, 8}), 0)), host = m.input(tensor({4, 8})), far = m.input(on(tensor({4, 8}), 1));
    ValueRef fine = m.call("aten::relu", {m.call("aten::sin", {x}, on(tensor({4, 8}), 0))}, on(tensor({4, 8}), 0));
    ValueRef gamma = m.call("aten::lgamma", {x}, on(tensor({4, 8}), 0));
    ValueRef mixed = m.call("aten::add.Tensor", {x, host, int64_t{1}}, on(tensor({4, 8}), 0));
    ValueRef elsewhere = m.call("aten::relu", {far}, on(tensor({4, 8}), 1));
    const Graph graph = m.returning({fine, gamma, mixed, elsewhere});
    LowerOptions options;
    options.refusal = [](const Device& d) { return d.index == 1 ? std::string("no code for that one") : std::string(); };
    options.hasCode = [](const Device&, Op op, DType) { return op != Op::Lgamma; };
    auto made = lower(graph, options);
    QVERIFY2(made, made ? "" : made.error().text().c_str());
    QCOMPARE(made->operations.size(), size_t{4});
    QVERIFY(made->operations[0].kind == Operation::Kind::Loops || made->operations[3].kind == Operation::Kind::Loops);
    std::string reasons;
    for (const Operation& op : made->operations) {
      if (op.kind == Operation::Kind::Loops) QCOMPARE(op.kernel.device.str(), std::string("cuda:0"));
      else reasons += op.call.op + ": " + op.call.reason + "\n";
    }
    QVERIFY2(has(reasons, "aten::lgamma: no code on cuda:0 for lgamma of float32"), reasons.c_str());
    QVERIFY2(has(reasons, "aten::add.Tensor: tensors on cuda:0 and cpu"), reasons.c_str());
    QVERIFY2(has(reasons, "aten::relu: no code for that one"), reasons.c_str());
    // Without options, devices other than the CPU have no code at all.
    for (const Operation& op : lowered(graph).operations) QCOMPARE(op.kind, Operation::Kind::Extern);
  }

 private:
  /// Milliseconds of a processor to lower this many products with a view of a weight of their own, the least of a few times.
  static double timeOfProducts(int count) {
    GraphMaker m;
    ValueRef x = m.input(tensor({8, 8}));
    std::vector<ValueRef> weights;
    for (int i = 0; i < count; ++i) weights.push_back(m.input(tensor({8, 8})));
    for (ValueRef w : weights) x = m.call("aten::mm", {x, m.call("aten::t", {w}, strided({8, 8}, {1, 8}))}, tensor({8, 8}));
    const Graph graph = m.returning({x});
    double best = 1e18;
    for (int round = 0; round < 3; ++round) {
      const std::clock_t start = std::clock();
      const LoweredGraph g = lowered(graph);
      best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
  }
};

QTEST_APPLESS_MAIN(LoweringTest)
#include "lowering_test.moc"
