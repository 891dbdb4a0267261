#include <QtTest>
#include <fmt/format.h>

#include <random>

#include "engine/graph/axis_symbol.h"
#include "engine/graph/sym_expr.h"
#include "engine/graph/symbol_values.h"

using namespace fusebox::graph;

namespace {

int64_t pyDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

/// An expression beside the same computation on a plain integer, so that simplification can be checked by value.
struct Pair {
  SymExpr e;
  std::function<int64_t(const std::vector<int64_t>&)> f;
};

class Maker {
 public:
  explicit Maker(unsigned seed) : rng_(seed) {
    for (int i = 0; i < 4; i++) {
      int64_t upper = pick(1, 12);
      symbols.push_back(Symbol::make(fmt::format("i{}", i), 0, upper));
    }
  }
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng_); }

  Pair make(int depth) {
    if (depth == 0) {
      if (pick(0, 3) == 0) {
        int64_t c = pick(-9, 9);
        return {SymExpr(c), [c](const auto&) { return c; }};
      }
      size_t i = static_cast<size_t>(pick(0, 3));
      return {SymExpr(symbols[i]), [i](const auto& v) { return v[i]; }};
    }
    Pair a = make(depth - 1);
    int64_t divisor = pick(1, 8);
    switch (pick(0, 7)) {
      case 0: return {floorDiv(a.e, divisor), [=](const auto& v) { return pyDiv(a.f(v), divisor); }};
      case 1: return {mod(a.e, divisor), [=](const auto& v) { return a.f(v) - divisor * pyDiv(a.f(v), divisor); }};
      case 2: return {a.e * divisor, [=](const auto& v) { return a.f(v) * divisor; }};
      default: break;
    }
    Pair b = make(depth - 1);
    switch (pick(0, 4)) {
      case 0: return {a.e + b.e, [=](const auto& v) { return a.f(v) + b.f(v); }};
      case 1: return {a.e - b.e, [=](const auto& v) { return a.f(v) - b.f(v); }};
      case 2: return {a.e * divisor + b.e, [=](const auto& v) { return a.f(v) * divisor + b.f(v); }};
      case 3: return {min(a.e, b.e), [=](const auto& v) { return std::min(a.f(v), b.f(v)); }};
      default: return {max(a.e, b.e), [=](const auto& v) { return std::max(a.f(v), b.f(v)); }};
    }
  }
  std::vector<Symbol> symbols;

 private:
  std::mt19937 rng_;
};

Symbol axis(const char* name, int64_t extent) { return Symbol::make(name, 0, extent - 1); }

}  // namespace

class SymExprTest : public QObject {
  Q_OBJECT
 private slots:
  void randomExpressionsKeepTheirValue() {
    for (unsigned seed = 0; seed < 3000; seed++) {
      Maker maker(seed);
      Pair p = maker.make(static_cast<int>(maker.pick(1, 5)));
      auto [low, high] = p.e.bounds();
      for (int k = 0; k < 20; k++) {
        std::vector<int64_t> v;
        for (Symbol s : maker.symbols) v.push_back(maker.pick(0, s.upper()));
        auto value = [&](Symbol s) -> std::optional<int64_t> {
          for (size_t i = 0; i < v.size(); i++) {
            if (maker.symbols[i] == s) return v[i];
          }
          return std::nullopt;
        };
        int64_t expected = p.f(v);
        auto got = p.e.evaluate(value);
        if (!got || *got != expected) QFAIL(qPrintable(QString("seed %1: %2").arg(seed).arg(p.e.str().c_str())));
        QVERIFY(low <= expected && expected <= high);
        SymExpr whole = p.e.substitute([&](Symbol s) -> std::optional<SymExpr> { return SymExpr(*value(s)); });
        QVERIFY(whole.isConstant());
        QCOMPARE(whole.constant(), expected);
      }
    }
  }
  void substitutionIsSimultaneous() {
    Symbol a = axis("a", 8), b = axis("b", 8);
    SymExpr e = SymExpr(a) * 3 + SymExpr(b);
    SymExpr swapped = e.substitute([&](Symbol s) -> std::optional<SymExpr> { return SymExpr(s == a ? b : a); });
    QVERIFY(swapped == SymExpr(b) * 3 + SymExpr(a));
  }
  void viewChainsCancel() {
    Symbol i = axis("i", 5), j = axis("j", 4), k = axis("k", 3);
    SymExpr flat = (SymExpr(i) * 4 + SymExpr(j)) * 3 + SymExpr(k);
    QVERIFY(floorDiv(flat, 12) == SymExpr(i));
    QVERIFY(mod(floorDiv(flat, 3), 4) == SymExpr(j));
    QVERIFY(mod(flat, 3) == SymExpr(k));
    QVERIFY(floorDiv(mod(flat, 12), 3) == SymExpr(j));
    QVERIFY(floorDiv(floorDiv(flat, 3), 4) == SymExpr(i));
  }
  void splittingAndJoiningCancel() {
    Symbol n = axis("n", 60);
    SymExpr x(n);
    SymExpr joined = floorDiv(x, 12) * 12 + mod(floorDiv(x, 3), 4) * 3 + mod(x, 3);
    QVERIFY2(joined == x, joined.str().c_str());
    SymExpr scaled = floorDiv(x, 12) * 24 + mod(x, 12) * 2 + 7;
    QVERIFY2(scaled == x * 2 + 7, scaled.str().c_str());
  }
  void regroupingDividesOutCommonFactors() {
    Symbol i = axis("i", 6), j = axis("j", 8);
    SymExpr flat = SymExpr(i) * 8 + SymExpr(j);
    QVERIFY(floorDiv(flat, 16) == floorDiv(SymExpr(i), 2));
    QVERIFY(mod(flat, 16) == mod(SymExpr(i), 2) * 8 + SymExpr(j));
    QCOMPARE(floorDiv(flat, 16).str(), std::string("(i // 2)"));
  }
  void symbolicSizes() {
    Symbol s = Symbol::make("s0", 2, 1 << 20), i = axis("i", 4);
    SymExpr n(s);
    QVERIFY(floorDiv(n * SymExpr(i), n) == SymExpr(i));
    QVERIFY(mod(n * SymExpr(i), n) == SymExpr(0));
    QVERIFY(floorDiv(n * 6, n * 2) == SymExpr(3));
    QCOMPARE(product(std::vector<SymExpr>{n, 3, n}).str(), std::string("3*s0*s0"));
  }
  void strides() {
    Symbol i = axis("i", 5), j = axis("j", 7);
    SymExpr e = SymExpr(i) * 7 + floorDiv(SymExpr(j), 2) + 3;
    QCOMPARE(e.strideOf(i), std::optional<int64_t>(7));
    QVERIFY(!e.strideOf(j));
    QVERIFY(e.contains(j));
    QCOMPARE(e.symbols().size(), size_t{2});
    auto row = contiguousStrides(std::vector<SymExpr>{2, 3, 4});
    QVERIFY(row[0] == SymExpr(12) && row[1] == SymExpr(4) && row[2] == SymExpr(1));
  }
  /// An axis below n leaves nothing of itself in a division by n, and its products with n go away in chains of views.
  void axesEndAtExpressions() {
    const SymExpr n = Symbol::make("n", 2, int64_t{1} << 40), m = Symbol::make("m", 2, int64_t{1} << 40);
    const SymExpr i = axisSymbol("i", n), j = axisSymbol("j", m), free = Symbol::make("k", 0, int64_t{1} << 40);
    QVERIFY(floorDiv(i, n) == SymExpr(0) && mod(i, n) == i);
    QVERIFY(floorDiv(j * n + i, n) == j && mod(j * n + i, n) == i);
    QVERIFY(!(floorDiv(i, m) == SymExpr(0)) && !(mod(free, n) == free));
    QVERIFY(floorDiv(j * n * 8 + i * 8 + 7, n * 8) == j);
    QVERIFY(!(floorDiv(j * n * 8 + i * 8 + 8, n * 8) == j));  // i may be n - 1
    const SymExpr k = axisSymbol("k", n * m);
    QVERIFY(mod(k, n) * 8 + floorDiv(k, n) * n * 8 == k * 8);
    QVERIFY(mod(k, n + 1) * m + floorDiv(k, n + 1) * (n + 1) * m == k * m);
    QVERIFY(!(mod(k, n) * 8 + floorDiv(k, n) * n * 4 == k * 8));
    const SymExpr last = axisSymbol("t", n - 1);
    QVERIFY(floorDiv(j * (n - 1) + last, n - 1) == j && mod(j * (n - 1) + last, n - 1) == last);
    QVERIFY(floorDiv(j * (n + m) * 2 + last, n * 2 + m * 2) == j && !(floorDiv(j * (n - 1) + i, n - 1) == j));
    const SymExpr half = axisSymbol("h", floorDiv(n, 2));
    QVERIFY(isNeverNegative(n - 2 - half * 2) && !isNeverNegative(n - 3 - half * 2) && min(n, half * 2 + 2) == half * 2 + 2);
    const SymExpr perhapsNone = floorDiv(n, 8), inIt = axisSymbol("e", perhapsNone);
    QVERIFY(floorDiv(inIt, perhapsNone) == SymExpr(0) && mod(j * perhapsNone + inIt, perhapsNone) == inIt);
    QVERIFY(!(floorDiv(perhapsNone, perhapsNone) == SymExpr(1)) && !(mod(perhapsNone, perhapsNone) == SymExpr(0)));  // nothing where it is 0
    const SymExpr side = floorDiv(n, 2), plane = axisSymbol("p", side * side);
    QVERIFY(floorDiv(side * side - 1, side) == side - 1 && isNeverNegative(n - 2 - floorDiv(plane, side) * 2) && isNeverNegative(n - 2 - mod(plane, side) * 2));
    QVERIFY(!isNeverNegative(n - 3 - floorDiv(plane, side) * 2) && !isNeverNegative(n - 3 - mod(plane, side) * 2));
    QVERIFY(isNeverNegative(floorDiv(n, 2) * 2 - n + 1) && !isNeverNegative(floorDiv(n, 2) * 2 - n));
    QVERIFY(isNeverNegative(n - 1 - i) && !isNeverNegative(n - 2 - i) && !isNeverNegative(n - i * 2));
    QVERIFY(isNeverNegative(n * m - 1 - (j * n + i)) && !isNeverNegative(n * m - 1 - (i * n + j)));
    QVERIFY(symbolicStride(j * n + i, j.symbols()[0]) == std::optional(n));
    QVERIFY(!symbolicStride(j * j, j.symbols()[0]) && !symbolicStride(mod(j * 2, n), j.symbols()[0]));
  }
  /// Random points of two axes: what is simplified with their extents keeps its value.
  void extentsDoNotChangeValues() {
    std::mt19937 rng(7);
    const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
    const Symbol sn = Symbol::make("n", 2, 50), sm = Symbol::make("m", 2, 50);
    const SymExpr n = sn, m = sm;
    const Symbol si = axisSymbol("i", n), sj = axisSymbol("j", m), sk = axisSymbol("k", n * m);
    const std::vector<SymExpr> terms = {SymExpr(si), SymExpr(sj), SymExpr(sk), n, m, SymExpr(1)};
    for (int round = 0; round < 3000; ++round) {
      const auto sum = [&] {
        std::vector<std::pair<int64_t, std::vector<size_t>>> parts;
        for (int64_t t = pick(1, 3); t > 0; --t) parts.push_back({pick(-4, 8), {static_cast<size_t>(pick(0, 5)), static_cast<size_t>(pick(3, 5))}});
        return parts;
      };
      const auto a = sum(), b = sum();
      const auto make = [&](const auto& parts) {
        SymExpr e = 0;
        for (const auto& [k, factors] : parts) e += terms[factors[0]] * terms[factors[1]] * k;
        return e;
      };
      const int64_t vn = pick(2, 9), vm = pick(2, 9), vi = pick(0, vn - 1), vj = pick(0, vm - 1), vk = pick(0, vn * vm - 1);
      const std::vector<int64_t> values = {vi, vj, vk, vn, vm, 1};
      const auto count = [&](const auto& parts) {
        int64_t v = 0;
        for (const auto& [k, factors] : parts) v += k * values[factors[0]] * values[factors[1]];
        return v;
      };
      const std::vector<Symbol> symbols = {si, sj, sk, sn, sm};
      const SymbolValues known(symbols, std::vector<int64_t>{vi, vj, vk, vn, vm});
      const int64_t va = count(a), vb = count(b);
      if (vb == 0) continue;
      QCOMPARE(known.evaluate(floorDiv(make(a), make(b))).value(), pyDiv(va, vb));
      QCOMPARE(known.evaluate(mod(make(a), make(b))).value(), va - vb * pyDiv(va, vb));
      if (isNeverNegative(make(a))) QVERIFY(va >= 0);
    }
  }
  void hints() {
    const Symbol a = Symbol::make("a", 2, 1000), b = Symbol::make("b", 2, 100);
    QCOMPARE(hint(SymExpr(a) * 3 + 1), 3 * kUsualSize + 1);
    QCOMPARE(hint(SymExpr(b)), int64_t{100});
    QVERIFY(!knownHint(SymExpr(a) + SymExpr(b)));
    setHint(a, 7);
    setHint(b, 5);
    QCOMPARE(hint(floorDiv(SymExpr(a) * SymExpr(b), 4)), int64_t{8});
    QCOMPARE(knownHint(SymExpr(a) - SymExpr(b)), std::optional<int64_t>(2));
    const std::vector<Symbol> symbols = {a};
    const SymbolValues values(symbols, std::vector<int64_t>{9});
    QCOMPARE(values(SymExpr(a) * 2), int64_t{18});
    QVERIFY_THROWS_EXCEPTION(std::out_of_range, values(SymExpr(b)));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, SymbolValues(symbols, std::vector<int64_t>{}));
  }
  void oneValuedSymbolsAreConstants() {
    QVERIFY(SymExpr(axis("u", 1)).isConstant());
  }
};

QTEST_APPLESS_MAIN(SymExprTest)
#include "sym_expr_test.moc"
