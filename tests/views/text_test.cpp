#include <QtTest>
#include <array>

#include "engine/support/text.h"
#include "views/common/fuzzy_match.h"
#include "views/common/table.h"
#include "views/common/units.h"
#include "views/graph/graph_model.h"

using namespace fusebox::views;

class TextTest : public QObject {
  Q_OBJECT
 private slots:
  void durationsHaveThreeDigits_data() {
    QTest::addColumn<double>("ns");
    QTest::addColumn<QString>("text");
    QTest::newRow("zero") << 0.0 << "0 ns";
    QTest::newRow("ns") << 12.0 << "12 ns";
    QTest::newRow("us") << 1234.0 << "1.23 µs";
    QTest::newRow("ms") << 56'780'000.0 << "56.8 ms";
    QTest::newRow("round up") << 999'960.0 << "1.00 ms";
    QTest::newRow("s") << 123'456'000'000.0 << "123 s";
  }
  void durationsHaveThreeDigits() {
    QFETCH(double, ns);
    QFETCH(QString, text);
    QCOMPARE(QString::fromStdString(formatDuration(ns)), text);
  }
  void countsAreGrouped() {
    QCOMPARE(QString::fromStdString(formatCount(1234567)), QStringLiteral("1\u2009234\u2009567"));
    QCOMPARE(QString::fromStdString(formatCount(-1000)), QStringLiteral("-1\u2009000"));
    QCOMPARE(QString::fromStdString(formatCount(999)), QStringLiteral("999"));
  }
  void otherUnits() {
    QCOMPARE(formatBytes(3.2 * 1024 * 1024), std::string("3.20 MiB"));
    QCOMPARE(formatBandwidth(2000, 1000), std::string("2.00 GB/s"));
    QCOMPARE(formatBandwidth(0, 1000), std::string());
    QCOMPARE(formatBandwidth(2100, 1e6), std::string("2.10 MB/s"));
    QCOMPARE(formatFlops(590'000, 16e6), std::string("36.9 MFLOP/s"));
    QCOMPARE(formatFlops(0, 16e6), std::string());
    QCOMPARE(formatShare(1, 8), std::string("12.5 %"));
    QCOMPARE(formatShare(0, 8), std::string("0.0 %"));
    QCOMPARE(formatShare(14.8, 31.9e3), std::string("<0.1 %"));
    QCOMPARE(rulerStep(3), 5.0);
    QCOMPARE(rulerStep(0.017), 0.02);
    QCOMPARE(rulerStep(700), 1000.0);
  }
  void fuzzyRanksSubstringsFirst() {
    QVERIFY(!fuzzyScore("xyz", "Open session"));
    QVERIFY(*fuzzyScore("open", "File: Open session") > *fuzzyScore("open", "Go: Output of pen"));
    QVERIFY(fuzzyScore("fos", "File: Open session"));
    QVERIFY(*fuzzyScore("run", "Run: Run script") > *fuzzyScore("run", "View: Return unless"));
  }
  void filterWordsMustAllOccur() {
    QVERIFY(filterMatches("", "anything"));
    QVERIFY(filterMatches("conv f32", "aten.Convolution f32[1]"));
    QVERIFY(!filterMatches("conv f16", "aten.Convolution f32[1]"));
    QVERIFY(!filterMatches("conv -f32", "aten.convolution f32[1]"));
    QVERIFY(filterMatches("-", "a-b") && !filterMatches("-", "ab"));
    const std::array<std::string_view, 3> cells{"aten::MM", "", "train.py:12"};
    QVERIFY(filterMatches("mm PY", cells, 4000) && filterMatches("train -relu", cells, 4000));
    QVERIFY(!filterMatches("mmtrain", cells, 4000) && !filterMatches("mm -Train", cells, 4000) && !filterMatches("12", cells, 5));
    QVERIFY(filterMatches("ÜBER", "ÜBER") && filterMatches("  ", cells, 4000));
  }
  void textsAreSaidInTheReadersLanguage() {
    using fusebox::say, fusebox::sayCount, fusebox::Text;
    const Text braces = FUSEBOX_TEXT("Test", "a set: {1, 2}"), two = FUSEBOX_TEXT("Test", "{} of {}"),
               last = FUSEBOX_TEXT("Test", "last {}");
    const Text one = FUSEBOX_TEXT("Test", "{} kernel of {}"), many = FUSEBOX_TEXT("Test", "{} kernels of {}");
    QCOMPARE(say(braces), std::string("a set: {1, 2}"));
    QCOMPARE(say(two, 1, "x"), std::string("1 of x"));
    QCOMPARE(sayCount(one, many, 1, "f"), std::string("1 kernel of f"));
    QCOMPARE(sayCount(one, many, 0, "f"), std::string("0 kernels of f"));
    fusebox::setTranslator([](const Text& text) -> std::string {
      const std::string source = text.text;
      if (source == "{} of {}") return "{1}: {0}";                  // another order
      if (source == "last {}") return "{} {} {}";                   // more than there is
      if (source == "{} kernel of {}") return "ein Kernel von {1";  // no format at all
      return "<" + source + ">";
    });
    QCOMPARE(say(braces), std::string("<a set: {1, 2}>"));
    QCOMPARE(say(two, 1, "x"), std::string("x: 1"));
    QCOMPARE(say(last, 7), std::string("last 7"));
    QCOMPARE(sayCount(one, many, 1, "f"), std::string("1 kernel of f"));
    QCOMPARE(sayCount(one, many, 2, "f"), std::string("<2 kernels of f>"));
    fusebox::setTranslator(nullptr);
    QCOMPARE(say(two, "{}", 2.5), std::string("{} of 2.5"));
  }
  void shortOps() {
    QCOMPARE(shortOp("aten::add.Tensor"), std::string("add"));
    QCOMPARE(shortOp("aten.convolution.default"), std::string("convolution"));
    QCOMPARE(shortOp("relu"), std::string("relu"));
    QCOMPARE(shortOp("operator.getitem"), std::string("getitem"));
    QCOMPARE(shortOp("_operator.add"), std::string("add"));
    QCOMPARE(shortOp("torch.nn.functional.gelu"), std::string("gelu"));
    QCOMPARE(shortOp("torch._C._nn.linear"), std::string("linear"));
    QCOMPARE(shortOp("torch.ops.aten.mm.default"), std::string("mm"));
    QCOMPARE(shortOp("torch.tanh"), std::string("tanh"));
    QVERIFY(opFamily("call", "aten::mm") == OpFamily::Matrix);
    QVERIFY(opFamily("call", "aten.native_layer_norm.default") == OpFamily::Normalisation);
    QVERIFY(opFamily("placeholder", "") == OpFamily::Input);
    // Names are known as wholes: a part of a word says nothing.
    QVERIFY(opFamily("call", "prims.convert_element_type.default") == OpFamily::Pointwise);
    QVERIFY(opFamily("call", "aten::upsample_bilinear2d") == OpFamily::Memory);
    QVERIFY(opFamily("call", "aten.index_select.default") == OpFamily::Memory);
    QVERIFY(opFamily("call", "aten.slice_scatter.default") == OpFamily::Memory);
    QVERIFY(opFamily("call", "aten.convolution_backward.default") == OpFamily::Convolution);
    QVERIFY(opFamily("call", "aten::_softmax_backward_data") == OpFamily::Normalisation);
    QVERIFY(opFamily("call", "aten.add_.Tensor") == OpFamily::Pointwise);
    QVERIFY(opFamily("call", "mylib::conv_like") == OpFamily::Other);
  }
  void places() {
    QCOMPARE(shortPlace("/a/b/model.py", 12), std::string("model.py:12"));
    QCOMPARE(shortPlace("", 12), std::string());
    QCOMPARE(shortPlace("/a/b/model.py", 0), std::string("model.py"));
  }
};

QTEST_APPLESS_MAIN(TextTest)
#include "text_test.moc"
