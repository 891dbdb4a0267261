#include <QtTest>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/codegen/cpu/math_ulp.h"
#include "tests/engine/codegen/interpret.h"
#include "tests/engine/codegen/kernel_builder.h"

using namespace fusebox::codegen::testing;
namespace graph = fusebox::graph;

namespace {

constexpr int kPoints = 20000;

struct Case {
  Op op;
  int arity;
  bool real, integral, boolean;  ///< operand types
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = [] {
    std::vector<Case> c;
    auto add = [&](Op first, Op last, int arity, bool real, bool integral, bool boolean) {
      for (int op = static_cast<int>(first); op <= static_cast<int>(last); ++op)
        c.push_back({static_cast<Op>(op), arity, real, integral, boolean});
    };
    add(Op::Neg, Op::Sign, 1, true, true, false);
    add(Op::Reciprocal, Op::Sigmoid, 1, true, false, false);
    add(Op::Floor, Op::RoundEven, 1, true, true, false);
    add(Op::LogicalNot, Op::LogicalNot, 1, true, true, true);
    add(Op::BitNot, Op::BitNot, 1, false, true, true);
    add(Op::IsNan, Op::SignBit, 1, true, true, false);
    add(Op::Add, Op::Mul, 2, true, true, false);
    add(Op::Div, Op::Div, 2, true, false, false);
    add(Op::TruncDiv, Op::Pow, 2, true, true, false);
    add(Op::Atan2, Op::NextAfter, 2, true, false, false);
    add(Op::Maximum, Op::Minimum, 2, true, true, true);
    add(Op::BitAnd, Op::BitXor, 2, false, true, true);
    add(Op::ShiftLeft, Op::ShiftRight, 2, false, true, false);
    add(Op::Eq, Op::Ge, 2, true, true, true);
    add(Op::Where, Op::Fma, 3, true, true, false);
    return c;
  }();
  return list;
}

constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16, DType::UInt8, DType::Int8,
                            DType::Int16,   DType::Int32,   DType::Int64,    DType::Bool};

bool yieldsBool(Op op) { return op == Op::LogicalNot || (op >= Op::IsNan && op <= Op::SignBit) || (op >= Op::Eq && op <= Op::Ge); }

/// Special values, every binade, numbers of everyday size, and random bit patterns.
Number sample(std::mt19937_64& random, DType type, int i) {
  static const long double kSpecial[] = {0.0L, -0.0L, 1, -1, 0.5L, -0.5L, 2, -2, INFINITY, -INFINITY, NAN, 1e-45L, -1e-45L, 1e-40L,
                                         3.4028235e38L, -3.4028235e38L, 88.5L, -88.5L, 104, -104, 1e-310L, 1.7e308L, 709.5L, -745, 3,
                                         100000, 48001, -123456.7L, 1e10L, 1e22L, 0.625L, 0.99999994L, -0.99999994L, 1.0000001L, 0.921875L};
  Number v;
  if (!graph::isFloatingPoint(type)) {
    v.integer = i % 3 == 0 ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 33) - 16;
    return rounded(v, type);
  }
  const size_t count = std::size(kSpecial);
  if (static_cast<size_t>(i) < count * count) v.real = kSpecial[static_cast<size_t>(i) % count];
  else if (i % 4 == 0) v.real = std::normal_distribution<double>(0, 4)(random);
  else if (i % 4 == 1) v.real = std::uniform_real_distribution<double>(-1, 1)(random);
  else if (i % 4 == 2) {
    uint64_t bits = random();
    return loadNumber(&bits, type);
  } else {
    v.real = std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random), static_cast<int>(random() % 40) - 24);
  }
  return rounded(v, type);
}

long double unitInLastPlace(long double v, DType type) {
  const int digits = type == DType::Float64 ? 53 : type == DType::Float32 ? 24 : type == DType::BFloat16 ? 8 : 11;
  const int minimum = type == DType::Float64 ? -1022 : type == DType::Float16 ? -14 : -126;
  const int exponent = v == 0 ? minimum : std::max(std::ilogb(v), minimum);
  return std::ldexp(1.0L, exponent - digits + 1);
}

}  // namespace

/// Every operation on every type, on every target, against a long double (int64) reference.
class OperationsTest : public QObject {
  Q_OBJECT
 private slots:
  void operation_data() {
    QTest::addColumn<int>("caseNumber");
    QTest::addColumn<int>("type");
    for (size_t c = 0; c < cases().size(); ++c)
      for (DType t : kTypes) {
        const Case& k = cases()[c];
        const bool fits = graph::isFloatingPoint(t) ? k.real : t == DType::Bool ? k.boolean : k.integral;
        if (fits)
          QTest::newRow((std::string(name(k.op)) + " " + std::string(graph::name(t))).c_str()) << static_cast<int>(c) << static_cast<int>(t);
      }
  }

  void operation() {
    QFETCH(int, caseNumber);
    QFETCH(int, type);
    const Case& c = cases()[static_cast<size_t>(caseNumber)];
    const auto in = static_cast<DType>(type);
    const DType out = yieldsBool(c.op) ? DType::Bool : in;
    KernelBuilder b("one_op");
    std::vector<BufferId> inputs;
    for (int a = 0; a < c.arity; ++a) inputs.push_back(b.input(c.op == Op::Where && a == 0 ? DType::Bool : in, kPoints));
    const BufferId result = b.output(out, kPoints);
    const SymExpr i = b.outer(kPoints);
    b.section();
    std::vector<ValueId> loads(3, -1);
    for (int a = 0; a < c.arity; ++a) loads[static_cast<size_t>(a)] = b.load(inputs[static_cast<size_t>(a)], i);
    b.store(result, i, b.op(c.op, out, loads[0], loads[1], loads[2]));

    Buffers start(b.kernel, {});
    std::mt19937_64 random(17);
    const int specials = 35;
    for (int p = 0; p < kPoints; ++p)
      for (int a = 0; a < c.arity; ++a) {
        const DType t = b.kernel.buffers[static_cast<size_t>(a)].dtype;
        const int key = a == 0 ? p : p < specials * specials ? p / specials : p * 7 + 1 + specials * specials;
        storeNumber(start.at<char>(inputs[static_cast<size_t>(a)]) + p * graph::elementSize(t), t, sample(random, t, key));
      }
    Buffers expected = start;
    interpret(b.kernel, expected.pointers(), {});
    for (const std::string& target : testTargets())
      for (int tier : {0, 1}) {
        auto compiled = jitFor(target, false, tier)->compile(b.kernel);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        Buffers actual = start;
        launch(**compiled, actual, {});
        compare(c, in, out, inputs, result, actual, expected, target + " tier " + std::to_string(tier));
        if (QTest::currentTestFailed()) return;
      }
  }

 private:
  static void compare(const Case& c, DType in, DType out, const std::vector<BufferId>& inputs, BufferId result, Buffers& actual,
                      Buffers& expected, const std::string& where) {
    double allowed = fusebox::codegen::cpu::mathUlp(c.op, out);
    if (c.op == Op::Rsqrt) allowed = 1;                        // two roundings
    if (out == DType::Float64) allowed = std::max(allowed, 1.0);  // the reference rounds twice: to long double first
    long double worst = 0;
    for (int p = 0; p < kPoints; ++p) {
      const Number x = loadNumber(actual.at<char>(result) + p * graph::elementSize(out), out);
      const Number y = loadNumber(expected.at<char>(result) + p * graph::elementSize(out), out);
      long double error = x.integer == y.integer ? 0 : 1e30L;
      if (graph::isFloatingPoint(out)) {
        if (x.real == y.real || (std::isnan(x.real) && std::isnan(y.real))) error = 0;
        else if (!std::isfinite(x.real) || !std::isfinite(y.real)) error = 1e30L;
        else error = std::fabs(x.real - y.real) / unitInLastPlace(y.real, out);
      }
      if (excused(c.op, in, p, inputs, actual, x, y)) continue;
      worst = std::max(worst, error);
      if (error > static_cast<long double>(allowed)) {
        char text[300];
        std::string args;
        for (BufferId a : inputs) {
          const DType t = actual.kernel.buffers[static_cast<size_t>(a)].dtype;
          const Number v = loadNumber(actual.at<char>(a) + p * graph::elementSize(t), t);
          char number[80];
          std::snprintf(number, sizeof number, " %.21Lg/%lld", v.real, static_cast<long long>(v.integer));
          args += number;
        }
        std::snprintf(text, sizeof text, "%s:%s gives %.17Lg (%lld), expected %.17Lg (%lld), %.2Lf ulp of %.2f", where.c_str(), args.c_str(),
                      x.real, static_cast<long long>(x.integer), y.real, static_cast<long long>(y.integer), error, allowed);
        QFAIL(text);
      }
    }
    if (qEnvironmentVariableIsSet("FUSEBOX_SHOW_ULP") && allowed > 0)
      qInfo("%s %s: worst %.3Lf of %.2f ulp", std::string(name(c.op)).c_str(), where.c_str(), worst, allowed);
  }

  /// Results that the operation's definition leaves open.
  static bool excused(Op op, DType type, int p, const std::vector<BufferId>& inputs, Buffers& b, Number x, Number y) {
    auto arg = [&](size_t a) {
      const DType t = b.kernel.buffers[static_cast<size_t>(inputs[a])].dtype;
      return loadNumber(b.at<char>(inputs[a]) + p * graph::elementSize(t), t);
    };
    const bool real = graph::isFloatingPoint(type);
    // Integer division by zero.
    if (!real && op >= Op::TruncDiv && op <= Op::Remainder) return arg(1).integer == 0;
    if (!real) return false;
    // Near its zeros lgamma and digamma are bounded absolutely; sigmoid below the smallest normal number flushes.
    if (op == Op::Lgamma || op == Op::Digamma) return std::fabs(x.real - y.real) <= (type == DType::Float64 ? 2e-14L : 1e-6L) * std::max<long double>(1, std::fabs(arg(0).real) < 20 ? 10 : 1);
    if (op == Op::Sigmoid) return std::fabs(x.real - y.real) < (type == DType::Float64 ? 1e-305L : 1.2e-38L);
    // The long double quotient and fmod differ from the type's own rounding where quotients are huge.
    if (op == Op::FloorDiv) return std::fabs(y.real) >= std::ldexp(1.0L, type == DType::Float64 ? 50 : type == DType::Float32 ? 22 : type == DType::Float16 ? 10 : 7);
    return false;
  }
};

QTEST_APPLESS_MAIN(OperationsTest)
#include "operations_test.moc"
