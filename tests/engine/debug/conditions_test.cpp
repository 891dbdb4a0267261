// Conditions of breakpoints, and what tensors in memory are said to hold.
#include <QtTest>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "engine/debug/tensor_facts.h"
#include "engine/support/condition.h"

using namespace fusebox;
using nlohmann::json;

namespace {

const std::map<std::string, json> kFacts{
    {"x", {{"dtype", "float32"}, {"shape", {64, 8, 3}}, {"device", "cpu"}, {"strides", {24, 3, 1}}}},
    {"scalar", {{"dtype", "int64"}, {"shape", json::array()}}},
    {"n", 7},
    {"ratio", 2.5},
    {"mode", "train"},
    {"flag", true},
    {"nothing", nullptr},
    {"names", {"add", "relu"}},
    {"model", {{"type", "Tiny"}, {"text", "an object"}}},
};

std::optional<json> fact(const std::string& name) {
  const auto found = kFacts.find(name);
  return found == kFacts.end() ? std::nullopt : std::optional(found->second);
}

/// The value as JSON, or "!" and why there is none.
std::string valueOf(const std::string& text) {
  auto made = Condition::parse(text);
  if (!made) return "!" + made.error().message;
  auto value = made->value(fact);
  return value ? value->dump() : "!" + value.error().message;
}

template <class T>
json factsOf(const std::vector<T>& values, const char* dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  auto made = debug::tensorFacts({values.data(), dtype, sizes, strides});
  return made ? *made : json(made.error().message);
}

}  // namespace

class ConditionsTest : public QObject {
  Q_OBJECT
 private slots:
  /// What CPython gives for the same text and the same values.
  void valuesAreThoseOfPython_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("value");
    const std::pair<const char*, const char*> rows[] = {
        {"x.shape[0] > 32 and x.dtype == torch.float32", "true"},
        {"x.shape[-1] == 3", "true"},
        {"x.ndim == 3 and x.numel == 1536", "true"},
        {"x.shape == [64, 8, 3]", "true"},
        {"scalar.numel", "1"},
        {"len(x)", "64"},
        {"n in (3, 5, 7)", "true"},
        {"n not in [7]", "false"},
        {"1 < n <= 7", "true"},
        {"1 < n < 7", "false"},
        {"not n == 7", "false"},
        {"n + 2 * 3", "13"},
        {"(n + 2) * 3", "27"},
        {"-n // 2", "-4"},
        {"-n % 3", "2"},
        {"n / 2", "3.5"},
        {"7 == 7.0", "true"},
        {"True + 1", "2"},
        {"'add' in names", "true"},
        {"'rain' in mode", "true"},
        {"mode == \"train\" or nothing_at_all", "true"},
        {"nothing == None", "true"},
        {"ratio > 2 and flag", "true"},
        {"0 or mode", "\"train\""},
        {"model.type == 'Tiny'", "true"},
        {"1e3 > 999 and .5 < 1", "true"},
        {"()", "[]"},
        {"(n,)", "[7]"},
        {"- - n", "7"},
        {"2 - 3 - 4", "-5"},
    };
    for (const auto& [text, value] : rows) QTest::newRow(text) << text << value;
  }
  void valuesAreThoseOfPython() {
    QFETCH(QString, text);
    QFETCH(QString, value);
    QCOMPARE(QString::fromStdString(valueOf(text.toStdString())), value);
  }
  void whatCannotBeJudgedSaysWhy_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("why");
    const std::pair<const char*, const char*> rows[] = {
        {"", "a value is missing"},     {"n >", "a value is missing"},       {"n = 7", "\"=\" is not understood"},
        {"n == 7 8", "not expected"},   {"'open", "does not end"},           {"exit(1)", "cannot be called"},
        {"m > 3", "\"m\""},             {"x.weight", "no attribute"},        {"x.shape[3]", "outside"},
        {"x > 3", "have no order"},     {"n / 0", "divides by zero"},        {"9223372036854775807 + 1", "too large"},
        {"[1", "missing"},              {"x == 3", "ask for one of its"},    {"n.real", "no attribute"},
        {"99999999999999999999999999999999 ** 2", "a value is missing"},     {"__import__('os').system('x')", "cannot be called"},
    };
    for (const auto& [text, why] : rows) QTest::newRow(text) << text << why;
  }
  void whatCannotBeJudgedSaysWhy() {
    QFETCH(QString, text);
    QFETCH(QString, why);
    const QString said = QString::fromStdString(valueOf(text.toStdString()));
    QVERIFY2(said.startsWith('!') && said.contains(why), qPrintable(said));
  }
  void nestingAndLengthAreBounded() {
    QVERIFY(!Condition::parse(std::string(1000, '(') + "1" + std::string(1000, ')')));
    QVERIFY(!Condition::parse(std::string(1500, '-') + "1"));
    std::string nots;
    for (int i = 0; i < 400; ++i) nots += "not ";
    QVERIFY(!Condition::parse(nots + "1"));
    QVERIFY(!Condition::parse(std::string(5000, ' ') + "1"));
    QVERIFY(Condition::parse(std::string(15, '(') + "1" + std::string(15, ')')));
    QVERIFY(!Condition::parse("x")->holds(fact));  // a tensor is neither true nor false
  }

  void statisticsAreThoseOfTheElements() {
    std::vector<double> values(1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i)) * 5 - 1;
    values[437] = -17.25;
    const json facts = factsOf(values, "Double", {10, 100}, {100, 1});
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 1000;
    double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    QCOMPARE(facts["elements"], json(1000));
    QVERIFY(std::abs(facts["mean"].get<double>() - mean) < 1e-12);
    QVERIFY(std::abs(facts["deviation"].get<double>() - std::sqrt(squares / 1000)) < 1e-12);
    QCOMPARE(facts["least"], json("-17.25"));
    QCOMPARE(facts["least_at"], (json{4, 37}));
    int64_t all = 0, lower = 0;
    const auto& bins = facts["histogram"]["counts"];
    const double width = (facts["histogram"]["to"].get<double>() + 17.25) / debug::kHistogramBins;
    for (const json& bin : bins) all += bin.get<int64_t>();
    QCOMPARE(all, int64_t{1000});
    for (int b = 0; b < 30; ++b) lower += bins[static_cast<size_t>(b)].get<int64_t>();
    QCOMPARE(lower, static_cast<int64_t>(std::count_if(values.begin(), values.end(), [&](double v) { return v < -17.25 + 30 * width; })));
    QCOMPARE(facts["first"].size(), size_t{64});
  }
  void nonNumbersAreFoundWhereTheyAre() {
    std::vector<float> values(60, 1.5F);
    values[0] = NAN;
    values[26] = NAN;
    values[59] = -INFINITY;
    values[3] = 0;
    const json facts = factsOf(values, "Float", {3, 4, 5}, {20, 5, 1});
    QCOMPARE(facts["nan"], json(2));
    QCOMPARE(facts["nan_at"], (json{{0, 0, 0}, {1, 1, 1}}));
    QCOMPARE(facts["negative_infinity"], json(1));
    QCOMPARE(facts["infinity_at"], (json{{2, 3, 4}}));
    QCOMPARE(facts["least"], json("0"));
    QCOMPARE(facts["most"], json("1.5"));
    QCOMPARE(facts["zeros"], json(1));
    QCOMPARE(facts["first"][0], json("nan"));
    const json none = factsOf(std::vector<float>{NAN, INFINITY}, "Float", {2}, {1});
    QVERIFY(!none.contains("least") && !none.contains("histogram"));
  }
  /// A view that runs backwards through memory, overlaps or leaves gaps is read in its own order.
  void stridesAreFollowed() {
    std::vector<int64_t> values(24);
    std::iota(values.begin(), values.end(), 0);
    const json turned = factsOf(values, "Long", {4, 6}, {1, 4});
    QCOMPARE(turned["first"][1], json("4"));
    QCOMPARE(turned["most_at"], (json{3, 5}));
    const json expanded = factsOf(values, "Long", {5, 2}, {0, 1});
    QCOMPARE(expanded["elements"], json(10));
    QCOMPARE(expanded["most"], json("1"));
    QCOMPARE(factsOf(values, "Long", {0, 3}, {3, 1})["elements"], json(0));
    QCOMPARE(factsOf(values, "Long", {}, {})["first"], (json{"0"}));
    QVERIFY(factsOf(values, "ComplexFloat", {2}, {1}).is_string());
    QVERIFY(factsOf(values, "Long", {2}, {}).is_string());
  }
  /// Every half and bfloat16 there is.
  void shortFloatsAreDecoded() {
    std::vector<uint16_t> bits(65536);
    std::iota(bits.begin(), bits.end(), 0);
    double sum = 0;
    int64_t finite = 0, nan = 0;
    for (const uint16_t b : bits) {
      const auto value = static_cast<double>(std::bit_cast<_Float16>(b));
      nan += std::isnan(value);
      if (std::isfinite(value)) sum += value * value, ++finite;
    }
    const json half = factsOf(bits, "Half", {65536}, {1});
    QCOMPARE(half["nan"], json(nan));
    QCOMPARE(half["most"], json("65504"));
    QCOMPARE(half["positive_infinity"], json(1));
    QVERIFY(std::abs(half["deviation"].get<double>() - std::sqrt(sum / static_cast<double>(finite))) < 1e-6);
    const json wide = factsOf(bits, "BFloat16", {65536}, {1});
    QCOMPARE(wide["most"], json("3.389531e+38"));
    QCOMPARE(wide["nan"], json(2 * 127));
    const json flags = factsOf(std::vector<uint8_t>{0, 1, 7, 0}, "Bool", {4}, {1});
    QCOMPARE(flags["first"], (json{"False", "True", "True", "False"}));
    QCOMPARE(flags["mean"], json(0.5));
  }
};

QTEST_GUILESS_MAIN(ConditionsTest)
#include "conditions_test.moc"
