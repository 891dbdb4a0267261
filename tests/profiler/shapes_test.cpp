// What is symbolic in a session, what became of sizes that varied, what that cost, and what to do.
#include <QTemporaryDir>
#include <QtTest>

#include "engine/record/recorder.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/shapes.h"
#include "profiler/query/summary.h"
#include "profiler/session/reader.h"

using namespace fusebox;
using namespace fusebox::query;
using record::Id;
using record::Recorder;

namespace {

constexpr const char* kFile = "/demo/sizes.py";

record::SymbolRecord batch(int64_t hint, const char* before, const char* after) {
  return {.name = "s0", .source = "L['x'].size()[0]", .hint = double(hint), .lower = 2, .policy = "automatic", .reason = "it differed between calls",
          .before = before, .after = after, .place = {kFile, 5, "f"}};
}

}  // namespace

class ShapesTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<session::Reader> reader_;
  Id second_ = 0, third_ = 0;
  std::vector<ShapeFrame> frames_;

  /// An entry that `failure` made necessary, and a guard on the sizes of L['x'].
  static Id entry(Recorder* r, Id frame, Id failure, int attempt, const char* expected, Id* guard) {
    const Id compile = r->beginCompile({.frame = frame, .attempt = attempt, .cause = failure});
    *guard = r->guards(compile, {{.kind = "TENSOR_MATCH", .source = "L['x']", .expected = expected, .place = {kFile, 5}},
                                 {.kind = "SHAPE_ENV", .source = "", .expected = "L['x'].size()[0] <= 64", .place = {kFile, 6}}});
    QTest::qSleep(2);
    r->endCompile(compile);
    return compile;
  }
  static Id failure(Recorder* r, Id frame, Id compile, Id guard, const char* expected, const char* found, const char* outcome = "recompile") {
    return r->guardFailure({.frame = frame, .compile = compile, .guard = guard, .text = "a guard", .expected = expected, .found = found, .outcome = outcome,
                            .place = {kFile, 5}});
  }

  /// f: 4 rows, then 8 (symbolic), then 100 (a relation fails), then the line needs the number.
  void record(Recorder* r) {
    const Id frame = r->frame({.name = "f", .qualname = "f", .place = {kFile, 4, "f"}});
    Id guards = 0;
    const Id first = entry(r, frame, 0, 0, "Float[4, 16] strides [16, 1] cpu", &guards);
    const Id changed = failure(r, frame, first, guards, "Float[4, 16] strides [16, 1] cpu", "Float[8, 16] strides [16, 1] cpu");
    second_ = entry(r, frame, changed, 1, "Float[s0, 16] strides [16, 1] cpu", &guards);
    r->symbols(second_, {batch(8, "4", "8")});
    r->relations(second_, {{.op = "<=", .left = "s0", .right = "64", .symbols = {"s0"}, .reason = "the program", .guard = guards + 1, .place = {kFile, 6, "f"}}});
    const Id larger = failure(r, frame, second_, guards + 1, "L['x'].size()[0] <= 64", "100");
    third_ = entry(r, frame, larger, 2, "Float[100, 16] strides [16, 1] cpu", &guards);
    r->symbols(third_, {batch(100, "4", "8")});
    r->relations(third_, {{.op = "==", .left = "s0", .right = "100", .symbols = {"s0"}, .guard = guards, .place = {kFile, 9, "f"}}});
    r->specialisations(third_, {{.expression = "s0", .symbols = {"s0"}, .source = "L['x'].size()[0]", .value = 100, .op = "range()", .guard = guards,
                                 .place = {kFile, 9, "f"}}});
    const Id fixed = failure(r, frame, third_, guards, "Float[100, 16] strides [16, 1] cpu", "Float[101, 16] strides [16, 1] cpu");
    entry(r, frame, fixed, 3, "Float[101, 16] strides [16, 1] cpu", &guards);
    failure(r, frame, third_, guards, "Float[100, 16] strides [16, 1] cpu", "Float[102, 16] strides [16, 1] cpu", "limit");

    failure(r, frame, second_, 0, "L['x'].size()[0] <= 64", "102", "limit");

    // g: columns vary, and nothing says why they are constants.
    const Id other = r->frame({.name = "g", .qualname = "g", .place = {kFile, 20, "g"}});
    const Id plain = entry(r, other, 0, 0, "Float[4, 16] strides [16, 1] cpu", &guards);
    entry(r, other, failure(r, other, plain, guards, "Float[4, 16] strides [16, 1] cpu", "Float[4, 18] strides [18, 1] cpu"), 1,
          "Float[4, 18] strides [18, 1] cpu", &guards);

    // k: its second entry asks for its type only; n: each value has its own.
    const auto number = [&](const char* name, const char* source, const char* kind, const char* expected) {
      const Id numbers = r->frame({.name = name, .qualname = name, .place = {kFile, 40, name}});
      const Id one = r->beginCompile({.frame = numbers});
      const Id fixed = r->guards(one, {{.kind = "CONSTANT_MATCH", .source = source, .expected = "2", .place = {kFile, 41}}});
      r->endCompile(one);
      const Id missed = r->guardFailure({.frame = numbers, .compile = one, .guard = fixed, .text = "a guard", .expected = "2", .found = "3", .outcome = "recompile", .place = {kFile, 41}});
      const Id two = r->beginCompile({.frame = numbers, .attempt = 1, .cause = missed});
      r->guards(two, {{.kind = kind, .source = source, .expected = expected, .place = {kFile, 41}}});
      r->endCompile(two);
    };
    number("any", "L['k']", "TYPE_MATCH", "type float");
    number("each", "L['n']", "CONSTANT_MATCH", "3");
    const Id quiet = r->frame({.name = "quiet", .place = {kFile, 30, "quiet"}});
    r->endCompile(r->beginCompile({.frame = quiet}));
  }
  const ShapeFrame& frame(const std::string& name) const {
    for (const auto& f : frames_) {
      if (f.name == name) return f;
    }
    static const ShapeFrame kNone;
    return kNone;
  }

 private slots:
  void initTestCase() {
    const std::string path = folder_.filePath("s.fusebox").toStdString();
    auto started = Recorder::start({.path = path, .facts = {{"engine", "fusebox"}}});
    QVERIFY(started.has_value());
    record(*started);
    Recorder::stop();
    auto reader = session::Reader::open(path);
    QVERIFY(reader);
    reader_ = std::move(*reader);
    auto frames = shapeFrames(*reader_);
    QVERIFY2(frames, frames ? "" : frames.error().text().c_str());
    frames_ = std::move(*frames);
  }

  void onlyFramesWithSomethingSymbolicOrVaried() {
    QCOMPARE(frames_.size(), size_t{4});
    QCOMPARE(shapeFrames(*reader_, true)->size(), size_t{5});
    QCOMPARE(frame("f").recompiles, int64_t{3});
  }

  /// Functions add up to the sum that the session shows, though every entry of a frame that reached its limit has failed.
  void recompilesAddUp() {
    const auto summary = summarize(*reader_);
    QVERIFY(summary);
    int64_t ofFunctions = 0;
    for (const auto& f : summary->coverage.functions) ofFunctions += f.recompiles;
    QCOMPARE(summary->compiledAgain, int64_t{6});
    QCOMPARE(ofFunctions, summary->compiledAgain);
    QCOMPARE(summary->limitsReached, int64_t{1});
    QCOMPARE(summary->recompiles.size(), size_t{7});
  }

  void symbolsSayWhereFromAndWithin() {
    const ShapeSymbol& s = frame("f").entries.at(1).symbols.at(0);
    QCOMPARE(s.legend(), std::string("s0 = L['x'].size()[0], at least 2, 8 at capture"));
    ShapeSymbol bounded = s;
    bounded.upper = 64;
    QCOMPARE(bounded.range(), std::string("2 … 64"));
    bounded.lower.reset();
    QCOMPARE(bounded.range(), std::string("at most 64"));
    ShapeSymbol unbacked{.name = "u0", .kind = "unbacked"};
    QCOMPARE(unbacked.legend(), std::string("u0: any number, known when the graph runs"));
  }

  void costsAreThoseOfTheRecompilesThatFollowed() {
    const ShapeFrame& f = frame("f");
    const ShapeRelation& relation = f.entries.at(1).relations.at(0);
    QCOMPARE(relation.cost.recompiles, int64_t{1});
    QVERIFY(relation.cost.ns >= 2'000'000);
    QCOMPARE(adviseShape(*reader_, relation).size(), size_t{1});
    const ShapeSpecialisation& fixed = f.entries.at(2).specialisations.at(0);
    QCOMPARE(fixed.cost.recompiles, int64_t{1});
    QVERIFY(fixed.cost.limit);
    QCOMPARE(fixed.sentence(), std::string("s0 was specialised to 100 at /demo/sizes.py:9: range()"));
    QVERIFY(adviseShape(*reader_, fixed).at(0).title.find("loop") != std::string::npos);
    QVERIFY(f.entries.at(2).relations.at(0).isSpecialisation);
    QVERIFY(!relation.isSpecialisation);
    // One entry alone knows the same.
    auto alone = shapeEntry(*reader_, third_);
    QVERIFY(alone);
    QCOMPARE(alone->specialisations.at(0).cost.recompiles, int64_t{1});
    QVERIFY(alone->specialisations.at(0).cost.limit);
  }

  void whatVariedIsFollowedToItsEnd() {
    const VariedNumber& rows = frame("f").varied.at(0);
    QCOMPARE(rows.source, std::string("L['x'].size()[0]"));
    QCOMPARE(rows.values, (std::vector<std::string>{"4", "8", "100", "101", "102"}));
    QCOMPARE(int(rows.outcome), int(VariedNumber::Outcome::Specialised));
    QCOMPARE(rows.compile, int64_t{third_});
    QVERIFY(rows.cost.limit);
    const VariedNumber& columns = frame("g").varied.at(0);
    QCOMPARE(columns.source, std::string("L['x'].size()[1]"));
    QCOMPARE(columns.values, (std::vector<std::string>{"16", "18"}));
    QCOMPARE(int(columns.outcome), int(VariedNumber::Outcome::Static));
    QVERIFY(!columns.why.empty() && !columns.advice.empty());
    QCOMPARE(frame("g").varied.size(), size_t{1});  // the stride that follows is the same change
  }

  /// An entry that asks for a type only takes any number.
  void aNumberThatNoGuardFixesIsNoConstant() {
    const VariedNumber &any = frame("any").varied.at(0), &each = frame("each").varied.at(0);
    QCOMPARE(int(any.outcome), int(VariedNumber::Outcome::Symbolic));
    QCOMPARE(any.compile, frame("any").entries.at(1).compile);
    QVERIFY(any.advice.empty());
    QCOMPARE(int(each.outcome), int(VariedNumber::Outcome::Static));
    QVERIFY2(each.why.find("each value") == 0, each.why.c_str());
    const std::string text = toText(*reader_, frames_);
    QVERIFY2(text.find("L['k'] was 2, 3: any value from #1 on") != std::string::npos, text.c_str());
    auto chains = recompileChains(*reader_);
    QVERIFY(chains);
    for (const auto& chain : *chains) {
      if (chain.name != "any" && chain.name != "each") continue;
      QCOMPARE(adviseMiss(*reader_, chain, chain.misses.at(0)).at(0).title == "Expect one entry more", chain.name == "any");
    }
  }

  void recompilesSayWhatBecameSymbolicAndWhatWasFixed() {
    auto chains = recompileChains(*reader_);
    QVERIFY(chains);
    const auto chain = std::find_if(chains->begin(), chains->end(), [](const auto& c) { return c.name == "f"; });
    QVERIFY(chain->entries.at(0).shapes.empty());
    QCOMPARE(chain->entries.at(1).shapes, (std::vector<std::string>{"L['x'].size()[0] became symbolic (s0): it was 4, now 8"}));
    QCOMPARE(chain->entries.at(2).shapes, (std::vector<std::string>{"s0 was specialised to 100 at /demo/sizes.py:9: range()"}));
    QVERIFY(toText(*reader_, *chains).find("became symbolic (s0)") != std::string::npos);
  }

  void jsonHasEverySymbolRelationAndConstant() {
    const auto json = toJson(*reader_, frames_);
    QCOMPARE(json["symbols"].get<int>(), 2);
    QCOMPARE(json["relations"].get<int>(), 2);
    QCOMPARE(json["specialisations"].get<int>(), 1);
    QCOMPARE(json["specialised_cost"]["recompiles"].get<int>(), 1);
    const auto& f = *std::find_if(json["frames"].begin(), json["frames"].end(), [](const auto& each) { return each["name"] == "f"; });
    const auto& symbol = f["entries"][1]["symbols"][0];
    QCOMPARE(symbol["hint"].get<int>(), 8);
    QVERIFY(symbol["upper"].is_null());
    QCOMPARE(f["varied"][0]["outcome"].get<std::string>(), std::string("specialised"));
    QCOMPARE(f["entries"][2]["specialisations"][0]["value"].get<int>(), 100);
    const std::string text = toText(*reader_, frames_);
    for (const char* part : {"s0 <= 64", "the limit of entries was reached", "it was 4, now 8", "a constant in every entry"})
      QVERIFY2(text.find(part) != std::string::npos, part);
    QVERIFY(toText(*reader_, std::vector<ShapeFrame>{}).find("Nothing is symbolic") == 0);
  }

  void namesInATextAreFoundAsWords() {
    const auto& symbols = frame("f").entries.at(1).symbols;
    QCOMPARE(symbolsNamedIn(symbols, "[s0*4, 16]").size(), size_t{1});
    QCOMPARE(symbolsNamedIn(symbols, "[s01, as0, s0_x]").size(), size_t{0});
  }
};

QTEST_GUILESS_MAIN(ShapesTest)
#include "shapes_test.moc"
