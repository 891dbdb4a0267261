#include <QtTest>
#include <cmath>

#include "tests/engine/codegen/interpret.h"
#include "tests/engine/codegen/kernel_builder.h"

using namespace fusebox::codegen::testing;
namespace graph = fusebox::graph;

namespace {

struct Shape {
  int outer, a, b;      ///< outer points; two reduction axes
  bool columns;         ///< the outer axis is the fastest in memory
};
constexpr Shape kShapes[] = {{4, 1, 50, false}, {1, 1, 40000, false}, {3, 7, 33, false}, {70, 1, 5, false}, {50, 1, 37, true},
                             {5, 300, 40, true}, {2, 200, 129, false}, {1, 1, 1, false}, {0, 1, 9, false}, {6, 1, 0, false}};

struct Kind {
  ReduceKind kind;
  int results;
  bool real, integral, boolean;
};
constexpr Kind kKinds[] = {
    {ReduceKind::Sum, 1, true, true, false},     {ReduceKind::Prod, 1, true, true, false},  {ReduceKind::Max, 1, true, true, true},
    {ReduceKind::Min, 1, true, true, true},      {ReduceKind::Any, 1, true, true, true},    {ReduceKind::All, 1, true, true, true},
    {ReduceKind::ArgMax, 1, true, true, true},   {ReduceKind::ArgMin, 1, true, true, true}, {ReduceKind::Welford, 3, true, false, false},
    {ReduceKind::OnlineSoftmax, 2, true, false, false}};
constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::BFloat16, DType::UInt8, DType::Int32, DType::Int64, DType::Bool};

DType resultType(ReduceKind kind, DType in) {
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return DType::Bool;
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin ? DType::Int64 : in;
}

Kernel reductionKernel(const Kind& kind, DType type, const Shape& s) {
  KernelBuilder b("reduction");
  const int64_t n = int64_t{s.a} * s.b;
  const BufferId x = b.input(type, s.outer * n);
  std::vector<BufferId> out;
  const DType result = resultType(kind.kind, type);
  for (int r = 0; r < kind.results; ++r) out.push_back(b.output(result, s.outer));
  const SymExpr o = b.outer(s.outer);
  b.section(true);
  const SymExpr i = b.axis(s.a), j = b.axis(s.b);
  const SymExpr at = i * SymExpr(s.b) + j;
  const int reduction = b.reduce(kind.kind, b.load(x, s.columns ? at * SymExpr(s.outer) + o : o * SymExpr(n) + at));
  b.section();
  for (int r = 0; r < kind.results; ++r) b.store(out[static_cast<size_t>(r)], o, b.reduced(reduction, result, r));
  return b.kernel;
}

}  // namespace

/// Every kind of reduction on rows, columns and whole tensors, with ties, NaN and empty extents.
class ReductionsTest : public QObject {
  Q_OBJECT
 private slots:
  void reduction_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("type");
    for (size_t k = 0; k < std::size(kKinds); ++k)
      for (DType t : kTypes) {
        const bool fits = graph::isFloatingPoint(t) ? kKinds[k].real : t == DType::Bool ? kKinds[k].boolean : kKinds[k].integral;
        if (fits) QTest::newRow((std::string(name(kKinds[k].kind)) + " " + std::string(graph::name(t))).c_str()) << static_cast<int>(k) << static_cast<int>(t);
      }
  }
  void reduction() {
    QFETCH(int, kind);
    QFETCH(int, type);
    const Kind& k = kKinds[kind];
    const auto t = static_cast<DType>(type);
    for (const Shape& s : kShapes)
      for (bool withNan : {false, true}) {
        if (withNan && !graph::isFloatingPoint(t)) continue;
        const bool empty = int64_t{s.a} * s.b == 0;
        if (empty && k.kind != ReduceKind::Sum && k.kind != ReduceKind::Prod && k.kind != ReduceKind::Any && k.kind != ReduceKind::All) continue;
        const Kernel kernel = reductionKernel(k, t, s);
        Buffers start(kernel, {});
        std::mt19937 random(5);
        start.fill(random, 6);
        const int64_t n = start.numel(0);
        auto put = [&](int64_t i, double v) { storeNumber(start.at<char>(0) + i * graph::elementSize(t), t, rounded({v, static_cast<int64_t>(v)}, t)); };
        if (k.kind == ReduceKind::Prod && graph::isFloatingPoint(t))
          for (int64_t i = 0; i < n; ++i) put(i, 1 + 0.002 * static_cast<double>(random() % 3) - 0.002);
        if (withNan && n > 0) {
          put(n / 2, NAN);
          if (n > 8) put(n / 3, NAN), put(n / 4, INFINITY), put(n - 1, -INFINITY);
        }
        Buffers expected = start;
        interpret(kernel, expected.pointers(), {});
        for (const std::string& target : testTargets())
          for (int tier : {0, 1}) {
            auto compiled = jitFor(target, false, tier)->compile(kernel);
            QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
            Buffers actual = start;
            launch(**compiled, actual, {});
            const std::string d = difference(actual, expected, 200);
            QVERIFY2(d.empty(), (target + " tier " + std::to_string(tier) + (withNan ? " NaN: " : ": ") + d + "\n" + kernel.str()).c_str());
          }
      }
  }

  /// Sums of many float32 numbers must be as good as a blocked summation's, not a running one's.
  void sumAccuracy() {
    KernelBuilder b("long_sum");
    const int64_t n = 1 << 22;
    const BufferId x = b.input(DType::Float32, n), z = b.output(DType::Float32, 1);
    b.section(true);
    const SymExpr i = b.axis(n);
    const int sum = b.reduce(ReduceKind::Sum, b.load(x, i));
    b.section();
    b.store(z, 0, b.reduced(sum, DType::Float32));
    Buffers data(b.kernel, {});
    std::mt19937 random(1);
    double exact = 0;
    for (int64_t k = 0; k < n; ++k) exact += data.at<float>(x)[k] = static_cast<float>(random() % 1000) / 999.0f;
    for (const std::string& target : testTargets()) {
      auto compiled = jitFor(target)->compile(b.kernel).value();
      launch(*compiled, data, {}, 7);
      QVERIFY2(std::fabs(data.at<float>(z)[0] - exact) < exact * 3e-6, std::to_string(data.at<float>(z)[0] - exact).c_str());
    }
  }

  /// Columns, rows of several axes, and divided reductions: none is a running sum of everything.
  void longReductions_data() {
    QTest::addColumn<int>("outer");
    QTest::addColumn<int>("slow");
    QTest::addColumn<int>("fast");
    QTest::addColumn<bool>("columns");
    QTest::newRow("columns") << 2304 << 1 << 16384 << true;
    QTest::newRow("few columns") << 48 << 1 << 400000 << true;
    QTest::newRow("rows") << 70 << 1 << 400000 << false;
    QTest::newRow("short inner axis") << 1100 << 20000 << 3 << true;
    QTest::newRow("two long axes") << 1100 << 300 << 100 << true;
  }
  void longReductions() {
    QFETCH(int, outer);
    QFETCH(int, slow);
    QFETCH(int, fast);
    QFETCH(bool, columns);
    const int64_t n = int64_t{slow} * fast;
    KernelBuilder b("long");
    // Neighbouring axes do not merge where the slow one is read backwards.
    const auto x = b.input(DType::Float32, outer * n), sum = b.output(DType::Float32, outer), mean = b.output(DType::Float32, outer);
    const auto squares = b.output(DType::Float32, outer), count = b.output(DType::Float32, outer);
    const SymExpr o = b.outer(outer);
    b.section(true);
    const SymExpr i = b.axis(slow), j = b.axis(fast);
    const SymExpr at = (SymExpr(slow - 1) - i) * SymExpr(fast) + j;
    const ValueId v = b.load(x, columns ? at * SymExpr(outer) + o : o * SymExpr(n) + at);
    const int total = b.reduce(ReduceKind::Sum, v), moments = b.reduce(ReduceKind::Welford, v);
    b.section();
    b.store(sum, o, b.reduced(total, DType::Float32));
    b.store(mean, o, b.reduced(moments, DType::Float32, 0));
    b.store(squares, o, b.reduced(moments, DType::Float32, 1));
    b.store(count, o, b.reduced(moments, DType::Float32, 2));
    Buffers data(b.kernel, {});
    for (int64_t k = 0; k < outer * n; ++k) data.at<float>(x)[k] = k % 2 ? 0.1f : 0.3f;
    // Constant sums lose digits in the same direction; the exact ones of every second column, row or element.
    for (const std::string& target : testTargets()) {
      auto compiled = jitFor(target)->compile(b.kernel).value();
      launch(*compiled, data, {}, 5);
      for (int p = 0; p < outer; p += 7) {
        double exact = 0, exactSquares = 0;
        auto element = [&](int64_t k) { return static_cast<double>(data.at<float>(x)[columns ? k * outer + p : p * n + k]); };
        for (int64_t k = 0; k < n; ++k) exact += element(k);
        const double middle = exact / static_cast<double>(n);
        for (int64_t k = 0; k < n; ++k) exactSquares += (element(k) - middle) * (element(k) - middle);
        auto far = [](double got, double wanted, double limit) { return std::fabs(got - wanted) > limit * std::fabs(wanted); };
        QVERIFY2(!far(data.at<float>(sum)[p], exact, 1e-6), qPrintable(QString("%1: sum %2 for %3").arg(target.c_str()).arg(data.at<float>(sum)[p]).arg(exact)));
        QVERIFY2(!far(data.at<float>(mean)[p], middle, 1e-6), qPrintable(QString("mean %1 for %2").arg(data.at<float>(mean)[p]).arg(middle)));
        QVERIFY2(std::fabs(data.at<float>(squares)[p] - exactSquares) < 1e-5 * exactSquares + 1e-9 * static_cast<double>(n),
                 qPrintable(QString("squares %1 for %2").arg(data.at<float>(squares)[p]).arg(exactSquares)));
        QCOMPARE(static_cast<int64_t>(data.at<float>(count)[p]), n);
      }
    }
  }
};

QTEST_APPLESS_MAIN(ReductionsTest)
#include "reductions_test.moc"
