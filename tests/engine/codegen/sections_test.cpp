#include <QtTest>
#include <cmath>

#include "tests/engine/codegen/kernel_builder.h"

using namespace fusebox::codegen::testing;

#define VERIFY_KERNEL(...)                      \
  do {                                          \
    const std::string problem = check(__VA_ARGS__); \
    QVERIFY2(problem.empty(), problem.c_str()); \
  } while (false)

/// Loop structures: pointwise kernels with every kind of index, row and column sections, dynamic sizes.
class SectionsTest : public QObject {
  Q_OBJECT
 private slots:
  void pointwise_data() {
    QTest::addColumn<int>("n");
    for (int n : {0, 1, 3, 31, 32, 33, 1000, 4097}) QTest::newRow(std::to_string(n).c_str()) << n;
  }
  void pointwise() {
    QFETCH(int, n);
    KernelBuilder b("add_mul");
    const auto x = b.input(DType::Float32, n), y = b.input(DType::Float32, n), z = b.output(DType::Float32, n);
    const SymExpr i = b.outer(n);
    b.section();
    const auto vx = b.load(x, i), vy = b.load(y, i);
    b.store(z, i, b.op(Op::Mul, DType::Float32, b.op(Op::Add, DType::Float32, vx, vy), vy));
    VERIFY_KERNEL(b.kernel, {}, 1);
  }

  void dynamicSize() {
    KernelBuilder b("dynamic");
    const SymExpr s0 = b.size(), s1 = b.size();
    const auto x = b.input(DType::Float32, s0 * s1), bias = b.input(DType::Float32, s1), z = b.output(DType::Float32, s0 * s1);
    const SymExpr i = b.outer(s0), j = b.outer(s1);
    b.section();
    b.store(z, i * s1 + j, b.op(Op::Add, DType::Float32, b.load(x, i * s1 + j), b.load(bias, j)));
    VERIFY_KERNEL(b.kernel, {7, 45}, 2);
    VERIFY_KERNEL(b.kernel, {33, 2}, 2);
  }

  /// What a loop does not change is computed before it, by code that may branch and with more behind it.
  void branchesBeforeLoops_data() {
    QTest::addColumn<int>("op");
    for (Op op : {Op::Lgamma, Op::Digamma, Op::Sin, Op::Tan}) QTest::newRow(std::string(name(op)).c_str()) << static_cast<int>(op);
  }
  void branchesBeforeLoops() {
    QFETCH(int, op);
    const Op function = static_cast<Op>(op);
    KernelBuilder b("rows");
    const int n = 5, m = 70;
    const auto x = b.input(DType::Float32, n), y = b.input(DType::Float32, n * m), z = b.output(DType::Float32, n * m);
    const SymExpr i = b.outer(n), j = b.outer(m), at = i * SymExpr(m) + j;
    b.section();
    const auto once = b.op(function, DType::Float32, b.load(x, i));
    const auto twice = b.op(function, DType::Float32, b.op(Op::Mul, DType::Float32, once, b.constant(DType::Float32, 0.5)));
    b.store(z, at, b.op(Op::Add, DType::Float32, b.op(Op::Sub, DType::Float32, once, twice), b.load(y, at)));
    VERIFY_KERNEL(b.kernel, {}, 6);
  }

  void transposed() {
    KernelBuilder b("transpose");
    const int n = 37, m = 53;
    const auto x = b.input(DType::Float32, n * m), z = b.output(DType::Float32, n * m);
    const SymExpr i = b.outer(n), j = b.outer(m);
    b.section();
    b.store(z, i * SymExpr(m) + j, b.load(x, j * SymExpr(n) + i));
    VERIFY_KERNEL(b.kernel, {}, 3);
  }

  void dividedIndex() {
    KernelBuilder b("view");
    const int n = 12, m = 40;
    const auto x = b.input(DType::Float32, n * m), z = b.output(DType::Float32, n * m);
    const SymExpr i = b.outer(n * m);
    b.section();
    // reads x^T through a flat index
    const SymExpr row = fusebox::graph::floorDiv(i, SymExpr(n)), column = fusebox::graph::mod(i, SymExpr(n));
    b.store(z, i, b.load(x, column * SymExpr(m) + row));
    VERIFY_KERNEL(b.kernel, {}, 4);
  }

  void upsampled() {
    KernelBuilder b("upsample");
    const auto x = b.input(DType::Float32, 17 * 19), z = b.output(DType::Float32, 34 * 57);
    const SymExpr i = b.outer(34), j = b.outer(57);
    b.section();
    using fusebox::graph::floorDiv;
    b.store(z, i * SymExpr(57) + j, b.load(x, floorDiv(i, SymExpr(2)) * SymExpr(19) + floorDiv(j, SymExpr(3))));
    VERIFY_KERNEL(b.kernel, {}, 5);
  }

  void maskedPad() {
    KernelBuilder b("pad");
    const auto x = b.input(DType::Float32, 50), z = b.output(DType::Float32, 61);
    const SymExpr i = b.outer(61);
    b.section();
    const auto at = b.index(i + SymExpr(-4));
    const auto low = b.op(Op::Ge, DType::Bool, at, b.constant(DType::Int64, 0));
    const auto high = b.op(Op::Lt, DType::Bool, at, b.constant(DType::Int64, 50));
    b.store(z, i, b.load(x, i + SymExpr(-4), b.op(Op::BitAnd, DType::Bool, low, high), -7.5));
    VERIFY_KERNEL(b.kernel, {}, 6);
  }

  void gathered() {
    KernelBuilder b("embedding");
    const auto ids = b.input(DType::Int64, 23), table = b.input(DType::Float32, 100 * 40), z = b.output(DType::Float32, 23 * 40);
    const SymExpr i = b.outer(23), j = b.outer(40);
    b.section();
    const SymExpr id = b.indirect(b.load(ids, i), 0, 99);
    b.store(z, i * SymExpr(40) + j, b.load(table, id * SymExpr(40) + j));
    VERIFY_KERNEL(b.kernel, {}, 7);
    KernelBuilder c("take");
    const auto ids2 = c.input(DType::Int64, 77), src = c.input(DType::Float32, 100), out = c.output(DType::Float32, 77);
    const SymExpr k = c.outer(77);
    c.section();
    const SymExpr id2 = c.indirect(c.load(ids2, k), 0, 99);
    c.store(out, k, c.load(src, id2));
    VERIFY_KERNEL(c.kernel, {}, 8);
  }

  /// Above the LLVM IR of a kernel stands how its loops run.
  void plansCanBeRead() {
    KernelBuilder b("columns");
    const auto x = b.input(DType::Float32, 5000 * 256), z = b.output(DType::Float32, 256);
    const SymExpr o = b.outer(256);
    b.section(true);
    const SymExpr r = b.axis(5000);
    const int sum = b.reduce(ReduceKind::Sum, b.load(x, r * SymExpr(256) + o));
    b.section();
    b.store(z, o, b.reduced(sum, DType::Float32));
    for (const std::string& target : testTargets()) {
      auto jit = jitFor(target);
      const auto text = jit->text(*jit->compile(b.kernel).value());
      QVERIFY(text);
      for (const char* part : {"lanes\n; outer: i0 < 256 in vectors", "for r0 < 5000", "in runs of 32"})
        QVERIFY2(text->llvmIr.find(part) != std::string::npos, text->llvmIr.substr(0, 400).c_str());
    }
  }

  /// What a join takes from elsewhere is not computed, and what lies across the lanes is turned in whole tiles, by points and by sections.
  void tilesAndSegments() {
    using fusebox::graph::floorDiv;
    const auto lies = [](const Kernel& kernel, const std::vector<const char*>& parts) {
      for (const std::string& target : testTargets()) {
        auto jit = jitFor(target);
        const auto text = jit->text(*jit->compile(kernel).value());
        if (!text) return false;
        for (const char* part : parts)
          if (text->llvmIr.find(part) == std::string::npos) return false;
      }
      return true;
    };
    KernelBuilder join("join");
    const int n = 3, m = 96, w = 80;
    const auto x = join.input(DType::Float32, n * w * 40), y = join.input(DType::Float32, n * w * 56), z = join.output(DType::Float32, n * m * w);
    const SymExpr i = join.outer(n), j = join.outer(m), k = join.outer(w);
    join.section();
    const auto first = join.op(Op::Lt, DType::Bool, join.index(j), join.constant(DType::Int64, 40));
    const auto second = join.op(Op::Ge, DType::Bool, join.index(j), join.constant(DType::Int64, 40));
    const auto a = join.load(x, (i * SymExpr(w) + k) * SymExpr(40) + j, first);
    const auto b = join.op(Op::Exp, DType::Float32, join.load(y, (i * SymExpr(w) + k) * SymExpr(56) + j - SymExpr(40), second));
    join.store(z, (i * SymExpr(m) + j) * SymExpr(w) + k, join.op(Op::Where, DType::Float32, first, a, b));
    VERIFY_KERNEL(join.kernel, {}, 31);
    QVERIFY(lies(join.kernel, {"cut at 40", "turned"}));

    KernelBuilder rows("channels_first");  // rows of a result whose operand lies by columns
    const int points = 75, channels = 44;
    const auto image = rows.input(DType::Float32, points * channels), weight = rows.input(DType::Float32, channels);
    const auto out = rows.output(DType::BFloat16, points * channels);
    const SymExpr p = rows.outer(points);
    rows.section(true);
    SymExpr c = rows.axis(channels);
    const int sum = rows.reduce(ReduceKind::Welford, rows.load(image, c * SymExpr(points) + p));
    rows.section();
    c = rows.axis(channels);
    const auto centred = rows.op(Op::Sub, DType::Float32, rows.load(image, c * SymExpr(points) + p), rows.reduced(sum, DType::Float32));
    rows.store(out, p * SymExpr(channels) + c, rows.op(Op::Cast, DType::BFloat16, rows.op(Op::Mul, DType::Float32, centred, rows.load(weight, c))));
    VERIFY_KERNEL(rows.kernel, {}, 32);
    QVERIFY(lies(rows.kernel, {"i0 < 75 in vectors", "turned"}));
  }

  void softmaxRows_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    for (auto [r, c] : {std::pair{5, 100}, {3, 7}, {1, 1000}, {70, 64}, {2, 70000}})
      QTest::newRow((std::to_string(r) + "x" + std::to_string(c)).c_str()) << r << c;
  }
  void softmaxRows() {
    QFETCH(int, rows);
    QFETCH(int, columns);
    KernelBuilder b("softmax");
    const auto x = b.input(DType::Float32, rows * columns), z = b.output(DType::Float32, rows * columns);
    const auto kept = b.buffer(BufferRole::Scratch, DType::Float32, columns);
    const SymExpr i = b.outer(rows), width(columns);
    b.section(true);
    SymExpr j = b.axis(columns);
    const int largest = b.reduce(ReduceKind::Max, b.load(x, i * width + j));
    b.section(true);
    j = b.axis(columns);
    const auto shifted = b.op(Op::Sub, DType::Float32, b.load(x, i * width + j), b.reduced(largest, DType::Float32));
    const auto e = b.op(Op::Exp, DType::Float32, shifted);
    b.store(kept, j, e);
    const int sum = b.reduce(ReduceKind::Sum, e);
    b.section();
    j = b.axis(columns);
    b.store(z, i * width + j, b.op(Op::Div, DType::Float32, b.load(kept, j), b.reduced(sum, DType::Float32)));
    VERIFY_KERNEL(b.kernel, {}, 10);
  }

  void layerNorm() {
    KernelBuilder b("layer_norm");
    const int rows = 9;
    const SymExpr width = b.size();
    const auto x = b.input(DType::BFloat16, SymExpr(rows) * width), w = b.input(DType::Float32, width);
    const auto z = b.output(DType::Float32, SymExpr(rows) * width), mean = b.output(DType::Float32, rows);
    const SymExpr i = b.outer(rows);
    b.section(true);
    SymExpr j = b.axis(width);
    const int stats = b.reduce(ReduceKind::Welford, b.op(Op::Cast, DType::Float32, b.load(x, i * width + j)));
    b.section();
    b.store(mean, i, b.reduced(stats, DType::Float32));
    b.section();
    j = b.axis(width);
    const auto centred = b.op(Op::Sub, DType::Float32, b.op(Op::Cast, DType::Float32, b.load(x, i * width + j)), b.reduced(stats, DType::Float32));
    const auto n = b.reduced(stats, DType::Float32, 2);
    const auto variance = b.op(Op::Div, DType::Float32, b.reduced(stats, DType::Float32, 1), n);
    const auto scale = b.op(Op::Rsqrt, DType::Float32, b.op(Op::Add, DType::Float32, variance, b.constant(DType::Float32, 1e-5)));
    const auto normal = b.op(Op::Mul, DType::Float32, centred, scale);
    b.store(z, i * width + j, b.op(Op::Mul, DType::Float32, normal, b.load(w, j)));
    for (int64_t n2 : {5, 64, 300}) VERIFY_KERNEL(b.kernel, {n2}, 11);
  }

  void columnSum_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    for (auto [r, c] : {std::pair{100, 70}, {5, 1000}, {9000, 10}, {3, 33}, {4000, 129}})
      QTest::newRow((std::to_string(r) + "x" + std::to_string(c)).c_str()) << r << c;
  }
  void columnSum() {
    QFETCH(int, rows);
    QFETCH(int, columns);
    KernelBuilder b("column_sum");
    const auto x = b.input(DType::Float32, rows * columns), z = b.output(DType::Float32, columns);
    const SymExpr j = b.outer(columns);
    b.section(true);
    const SymExpr i = b.axis(rows);
    const int sum = b.reduce(ReduceKind::Sum, b.load(x, i * SymExpr(columns) + j));
    b.section();
    b.store(z, j, b.reduced(sum, DType::Float32));
    VERIFY_KERNEL(b.kernel, {}, 12, 40);
  }

  void columnSoftmax() {
    KernelBuilder b("column_softmax");
    const int rows = 37, columns = 70;
    const auto x = b.input(DType::Float32, rows * columns), z = b.output(DType::Float32, rows * columns);
    const auto kept = b.buffer(BufferRole::Scratch, DType::Float32, rows);
    const SymExpr j = b.outer(columns), width(columns);
    b.section(true);
    SymExpr i = b.axis(rows);
    const int sum = b.reduce(ReduceKind::OnlineSoftmax, b.load(x, i * width + j));
    b.section();
    i = b.axis(rows);
    b.store(kept, i, b.op(Op::Sub, DType::Float32, b.load(x, i * width + j), b.reduced(sum, DType::Float32)));
    b.section();
    i = b.axis(rows);
    b.store(z, i * width + j, b.op(Op::Div, DType::Float32, b.op(Op::Exp, DType::Float32, b.load(kept, i)), b.reduced(sum, DType::Float32, 1)));
    VERIFY_KERNEL(b.kernel, {}, 13);
  }

  void inPlace() {
    KernelBuilder b("add_");
    const auto x = b.buffer(BufferRole::InOut, DType::Float32, 100), z = b.output(DType::Float32, 100);
    const SymExpr i = b.outer(100);
    b.section();
    const auto old = b.load(x, i);
    b.store(x, i, b.op(Op::Add, DType::Float32, old, b.constant(DType::Float32, 1)));
    b.store(z, i, b.op(Op::Mul, DType::Float32, old, old));
    VERIFY_KERNEL(b.kernel, {}, 14);
  }

  void narrowGathers() {
    for (DType t : {DType::BFloat16, DType::Int8, DType::Bool}) {
      KernelBuilder b("narrow_transpose");
      const int n = 37, m = 53;
      const auto x = b.input(t, n * m), z = b.output(t, n * m);
      const SymExpr i = b.outer(n), j = b.outer(m);
      b.section();
      b.store(z, i * SymExpr(m) + j, b.load(x, j * SymExpr(n) + i));
      VERIFY_KERNEL(b.kernel, {}, 15);
    }
  }

  void flipped() {
    KernelBuilder b("flip");
    const auto x = b.input(DType::Float32, 75), z = b.output(DType::Float32, 75);
    const SymExpr i = b.outer(75);
    b.section();
    b.store(z, i, b.load(x, SymExpr(74) + SymExpr(-1) * i));
    VERIFY_KERNEL(b.kernel, {}, 16);
  }

  /// Philox4x32-10's published answer for key and counter zero; uniform and normal numbers by their moments.
  void randomNumbers() {
    const int n = 20000;
    KernelBuilder b("random");
    const auto whole = b.output(DType::Int64, n), uniform = b.output(DType::Float32, n), normal = b.output(DType::Float32, n);
    const auto wide = b.output(DType::Float64, n);
    const SymExpr i = b.outer(n);
    b.section();
    const auto seed = b.constant(DType::Int64, 0), counter = b.index(i);
    b.store(whole, i, b.op(Op::RandInt64, DType::Int64, seed, counter));
    b.store(uniform, i, b.op(Op::RandUniform, DType::Float32, seed, counter));
    b.store(normal, i, b.op(Op::RandNormal, DType::Float32, seed, counter));
    b.store(wide, i, b.op(Op::RandNormal, DType::Float64, seed, counter));
    for (const std::string& target : testTargets()) {
      Buffers data(b.kernel, {});
      launch(*jitFor(target)->compile(b.kernel).value(), data, {});
      QCOMPARE(static_cast<uint64_t>(data.at<int64_t>(whole)[0]), uint64_t{0xe169c58d6627e8d5});
      QCOMPARE(data.at<float>(uniform)[0], static_cast<float>(0x6627e8) * 0x1p-24f);
      double mean = 0, sum = 0, squares = 0, wideSquares = 0;
      for (int k = 0; k < n; ++k) {
        const float u = data.at<float>(uniform)[k], g = data.at<float>(normal)[k];
        QVERIFY(u >= 0 && u < 1);
        mean += u, sum += g, squares += g * g, wideSquares += data.at<double>(wide)[k] * data.at<double>(wide)[k];
      }
      QVERIFY(std::fabs(mean / n - 0.5) < 0.01);
      QVERIFY(std::fabs(sum / n) < 0.03 && std::fabs(squares / n - 1) < 0.05 && std::fabs(wideSquares / n - 1) < 0.05);
    }
  }

  void refusals() {
    KernelBuilder b("complex");
    const auto x = b.input(DType::Complex64, 4), z = b.output(DType::Complex64, 4);
    const SymExpr i = b.outer(4);
    b.section();
    b.store(z, i, b.load(x, i));
    const auto refused = jitFor("baseline")->compile(b.kernel);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, fusebox::ErrorCode::Unsupported);
    KernelBuilder c("integer_exp");
    const auto y = c.input(DType::Int32, 4), w = c.output(DType::Int32, 4);
    const SymExpr j = c.outer(4);
    c.section();
    c.store(w, j, c.op(Op::Hypot, DType::Int32, c.load(y, j), c.load(y, j)));
    QVERIFY(!jitFor("baseline")->compile(c.kernel));
  }

  void sharedCode() {
    auto make = [](const char* name) {
      KernelBuilder b(name);
      const auto x = b.input(DType::Float32, 64), z = b.output(DType::Float32, 64);
      const SymExpr i = b.outer(64);
      b.section();
      b.store(z, i, b.op(Op::Neg, DType::Float32, b.load(x, i)));
      return b.kernel;
    };
    auto jit = jitFor("baseline");
    const Kernel first = make("one"), second = make("two");
    QCOMPARE(first.structuralHash(), second.structuralHash());
    QCOMPARE(jit->compile(first).value().get(), jit->compile(second).value().get());
  }

  void backgroundTier() {
    KernelBuilder b("tiered");
    const auto x = b.input(DType::Float32, 500), z = b.output(DType::Float32, 500);
    const SymExpr i = b.outer(500);
    b.section();
    b.store(z, i, b.op(Op::Abs, DType::Float32, b.load(x, i)));
    auto jit = jitFor(testTargets().back(), true);
    auto compiled = jit->compile(b.kernel).value();
    jit->drain();
    QCOMPARE(compiled->tier.load(), 1);
    Buffers start(b.kernel, {});
    std::mt19937 random(3);
    start.fill(random);
    Buffers expected = start;
    launch(*compiled, start, {});
    for (int k = 0; k < 500; ++k) QCOMPARE(start.at<float>(z)[k], std::fabs(expected.at<float>(x)[k]));
    QVERIFY(jit->disassemble(*compiled).value().find("tiered") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(SectionsTest)
#include "sections_test.moc"
