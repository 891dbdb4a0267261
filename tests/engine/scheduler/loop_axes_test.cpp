#include <QTest>

#include "engine/inductor/ir/loop_axes.h"
#include "engine/inductor/ir/loop_canonical.h"
#include "engine/inductor/ir/loop_transform.h"

using namespace fusebox::inductor;

namespace {

/// x[i, j] stored at `stored`, over `rows` times `columns` points.
Kernel copyOf(const SymExpr& rows, const SymExpr& columns, const std::function<SymExpr(SymExpr, SymExpr)>& loaded) {
  Kernel kernel;
  kernel.outer = {newAxis("i", rows), newAxis("j", columns)};
  const SymExpr i = kernel.outer[0].symbol, j = kernel.outer[1].symbol;
  Section section;
  Value load;
  load.op = Op::Load;
  load.type = DType::Float32;
  load.buffer = 0;
  load.index = loaded(i, j);
  section.values.push_back(load);
  Statement store;
  store.buffer = 1;
  store.index = i * columns + j;
  store.value = 0;
  section.body.push_back(store);
  kernel.sections.push_back(section);
  return kernel;
}

}  // namespace

/// Axes that are dropped, merged and divided: extents, bounds and indices stay those of the same points.
class LoopAxesTest : public QObject {
  Q_OBJECT
 private slots:
  void mergedAxesAreAsLongAsTheirProduct() {
    const Symbol m = Symbol::make("m", 2, 1 << 20), n = Symbol::make("n", 2, 1 << 20);
    Kernel symbolic = copyOf(m, n, [&](SymExpr i, SymExpr j) { return i * SymExpr(n) + j; });
    canonicaliseLoops(symbolic);
    QCOMPARE(symbolic.outer.size(), size_t{1});
    QVERIFY(symbolic.outer[0].extent == SymExpr(m) * SymExpr(n));
    QCOMPARE(symbolic.outer[0].symbol.upper(), (int64_t{1} << 40) - 1);

    Kernel large = copyOf(70000, 40000, [](SymExpr i, SymExpr j) { return i * SymExpr(40000) + j; });
    canonicaliseLoops(large);
    QCOMPARE(large.outer.size(), size_t{1});
    QCOMPARE(large.outer[0].symbol.upper(), int64_t{70000} * 40000 - 1);
  }

  /// A merged axis that is divided by more than the inner extent is not 0.
  void divisionOfMergedAxesStays() {
    const Symbol n = Symbol::make("n", 2, 1000);
    Kernel kernel = copyOf(4000, n, [&](SymExpr i, SymExpr j) { return fusebox::graph::floorDiv(i * SymExpr(n) + j, 5000); });
    canonicaliseLoops(kernel);
    QCOMPARE(kernel.outer.size(), size_t{1});
    const SymExpr index = kernel.sections[0].values[0].index;
    const auto at = index.evaluate([](Symbol) { return std::optional<int64_t>(12000); });
    QCOMPARE(at.value_or(-1), int64_t{2});
  }

  void axesInsideDivisionsMergeOnlyWhereAsked() {
    auto repeated = [](SymExpr i, SymExpr j) { return fusebox::graph::floorDiv(i * SymExpr(30) + j, 7); };
    for (MergeWhere where : {MergeWhere::Anywhere, MergeWhere::OutsideDivisions}) {
      Kernel kernel = copyOf(20, 30, repeated);
      mergeAxes(kernel, kOuter, where);
      QCOMPARE(kernel.outer.size(), where == MergeWhere::Anywhere ? size_t{1} : size_t{2});
    }
  }

  void splittingAndDropping() {
    Kernel kernel = copyOf(1, 48, [](SymExpr, SymExpr j) { return fusebox::graph::floorDiv(j, 16); });
    dropUnitAxes(kernel, kOuter);
    QCOMPARE(kernel.outer.size(), size_t{1});
    splitAxis(kernel, kOuter, 0, 16);
    QCOMPARE(kernel.outer.size(), size_t{2});
    QVERIFY(kernel.outer[0].extent == SymExpr(3) && kernel.outer[1].extent == SymExpr(16));
    QVERIFY(kernel.sections[0].values[0].index == SymExpr(kernel.outer[0].symbol));
    QVERIFY(kernel.sections[0].body[0].index == SymExpr(kernel.outer[0].symbol) * SymExpr(16) + SymExpr(kernel.outer[1].symbol));
  }
};

QTEST_APPLESS_MAIN(LoopAxesTest)
#include "loop_axes_test.moc"
