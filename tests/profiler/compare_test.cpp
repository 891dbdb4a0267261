// Comparison of two sessions: made ones, whose differences are known row by row, and recorded or imported ones.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <random>

#include "profiler/compare/align.h"
#include "profiler/compare/report.h"
#include "profiler/importers/open.h"
#include "profiler/query/python_line.h"
#include "profiler/session/schema.h"
#include "profiler/session/writer.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::compare;
using session::Cell;
namespace rows = session::rows;

namespace {

constexpr std::monostate kNull;
constexpr int64_t kStart = 1'000'000'000;

std::string text(const char* s) { return s; }

/// A program of one function with one graph of `ops`, each op a kernel of its own or all of `fused` in one.
struct Program {
  std::string fact = "True";                  ///< config.fuse
  std::string script = "def f(x):\n  return x\n";
  std::string arguments = {};
  std::vector<std::string> ops = {"aten::mul", "aten::add", "aten::relu"};
  bool fused = true;
  std::string refusal = {};                      ///< why the first two were not fused
  std::vector<std::string> breakReasons = {"Tensor.item() is called"};  ///< of as many breaks on breakLine
  struct {
    std::string name = "f", file = {};
    int64_t line = 1;
  } function = {};                               ///< without a file: in the script
  std::string error = {};                        ///< of its compilation, which fails with it
  int breakLine = 0, recompiles = 0;
  std::string failed = "TENSOR_MATCH L['x']";   ///< the guard that made it compile again
  int64_t failedLine = 2;                        ///< where that was assumed
  std::string shape = "[8, 64]";
  std::vector<std::string> shapes = {};          ///< of the ops, where they are not all `shape`
  int64_t launchNs = 10'000, spreadNs = 100;
  int launches = 50;
  std::string folder = "/home/u";
  std::string name = "m.py";
  bool hasScript = true;                         ///< the text of m.py is recorded
  std::string host = {};                         ///< text of Fusebox's own host.py
  std::string outside = {};                      ///< kind of an operator that runs beside the graph, if any does
  std::string engine = "fusebox";
  bool hasBackward = false;                      ///< as PyTorch's logs tell of it: a compile of the same frame
  int64_t symbolUpper = 0, constant = 0;         ///< of symbolSource: symbolic up to there, or fixed; 0: not
  std::string symbolSource = "L['x'].size()[0]";
  std::map<std::string, std::string> settings = {};  ///< facts config.NAME
  std::string relation = {};                     ///< of numbers, that is guarded
};

void writeKernel(session::Writer& w, int64_t id, const std::vector<int64_t>& nodes, const std::string& name, const Program& p) {
  const int64_t bytes = 4096 * static_cast<int64_t>(nodes.size() + 1);
  w.post(rows::Kernel{.id = id, .compile_id = int64_t{1}, .graph_id = int64_t{1}, .group_id = id, .name = name, .kind = text("generated"),
      .device = text("cpu"), .read_bytes = int64_t{4096}, .write_bytes = bytes - 4096, .flops = int64_t{0}, .file = p.folder + "/" + p.name,
      .line = int64_t{2}, .time_ns = kStart});
  w.post(rows::FusionGroup{.id = id, .compile_id = int64_t{1}, .graph_id = int64_t{1}, .position = id, .name = name, .kind = text("pointwise"),
      .kernel_id = id, .read_bytes = int64_t{4096}, .write_bytes = bytes - 4096, .bytes_saved = int64_t{0}, .file = p.folder + "/" + p.name,
      .line = int64_t{2}});
  for (const int64_t node : nodes) w.post(rows::FusionMember{.group_id = id, .node_id = node, .position = int64_t{0}, .role = text("result")});
}

void writeProgram(const std::string& path, const Program& p) {
  auto made = session::Writer::create(path);
  QVERIFY(made);
  session::Writer& w = **made;
  const std::string file = p.folder + "/" + p.name;
  const std::pair<const char*, std::string> facts[] = {{"engine", p.engine}, {"torch", "2.11.0"}, {"device", "cpu"}, {"script", p.name + (p.arguments.empty() ? "" : " " + p.arguments)}, {"config.fuse", p.fact}};
  w.post(rows::Info{.key = text("schema_version"), .value = int64_t{session::kSchemaVersion}});
  w.post(rows::Info{.key = text("start_ns"), .value = kStart});
  for (const auto& [key, value] : facts) w.post(rows::Info{.key = text(key), .value = value});
  for (const auto& [key, value] : p.settings) w.post(rows::Info{.key = "config." + key, .value = value});
  if (p.hasScript) w.post(rows::SourceFile{.id = int64_t{1}, .path = file, .text = p.script, .bytes = static_cast<int64_t>(p.script.size()),
      .truncated = int64_t{0}, .time_ns = kStart});
  w.post(rows::SourceFile{.id = int64_t{2}, .path = text("/usr/lib/python3.11/site-packages/torch/nn/functional.py"), .text = text("pass\n"),
      .bytes = int64_t{5}, .truncated = int64_t{0}, .time_ns = kStart});
  if (!p.host.empty()) w.post(rows::SourceFile{.id = int64_t{3}, .path = text("/opt/build/python/fusebox/host.py"), .text = p.host,
      .bytes = static_cast<int64_t>(p.host.size()), .truncated = int64_t{0}, .time_ns = kStart});
  w.post(rows::Frame{.id = int64_t{1}, .name = p.function.name, .qualname = p.function.name,
      .file = p.function.file.empty() ? file : p.function.file, .line = p.function.line, .status = text(p.error.empty() ? "compiled" : "failed"),
      .first_seen_ns = kStart});
  for (int64_t c = 1; c <= 1 + p.recompiles; ++c) {
    w.post(rows::Compile{.id = c, .frame_id = int64_t{1}, .attempt = c - 1, .kind = text("frame"), .backend = text("inductor"),
        .mode = text("default"), .dynamic = int64_t{0}, .start_ns = kStart, .end_ns = kStart + 1'000'000,
        .status = text(p.error.empty() ? "ok" : "failed"), .error = p.error.empty() ? Cell{kNull} : Cell{p.error},
        .failure_id = c > 1 ? Cell{c - 1} : Cell{kNull}, .thread = int64_t{1}, .file = file, .line = int64_t{1}});
    if (c > 1) w.post(rows::GuardFailure{.id = c - 1, .frame_id = int64_t{1}, .compile_id = c - 1, .guard_id = int64_t{1},
        .guard = p.failed, .expected = p.shape, .found = text("[9, 64]"), .outcome = text("recompile"), .file = file,
        .line = p.failedLine, .time_ns = kStart + c});
  }
  if (p.hasBackward) w.post(rows::Compile{.id = int64_t{90}, .frame_id = int64_t{1}, .parent_id = int64_t{1}, .attempt = int64_t{0}, .kind = text("backward"),
      .dynamic = int64_t{0}, .start_ns = kStart, .end_ns = kStart + 1, .status = text("ok"), .thread = int64_t{1}, .file = file, .line = int64_t{1}});
  w.post(rows::Guard{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{0}, .kind = text("TENSOR_MATCH"), .source = text("L['x']"),
      .expected = p.shape, .file = file, .line = int64_t{2}});
  if (!p.relation.empty())
    w.post(rows::Guard{.id = int64_t{2}, .compile_id = int64_t{1}, .position = int64_t{1}, .kind = text("SHAPE_ENV"), .expected = p.relation,
        .code = "SHAPE_ENV: " + p.relation, .file = file, .line = int64_t{2}});
  if (p.symbolUpper > 0)
    w.post(rows::Symbol{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{1}, .name = text("s0"), .kind = text("size"),
        .source = p.symbolSource, .hint = int64_t{8}, .lower = int64_t{2}, .upper = p.symbolUpper, .policy = text("automatic"),
        .file = file, .line = int64_t{2}, .time_ns = kStart});
  if (p.constant > 0)
    w.post(rows::Specialisation{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{2}, .kind = text("number"),
        .expression = text("s0"), .symbols = text("[\"s0\"]"), .source = text("L['x'].size()[0]"), .value = p.constant, .operator_ = text("hash"),
        .file = file, .line = int64_t{2}, .time_ns = kStart});
  if (p.breakLine > 0) {
    int64_t id = 0;
    for (const std::string& reason : p.breakReasons)
      w.post(rows::GraphBreak{.id = ++id, .frame_id = int64_t{1}, .compile_id = int64_t{1}, .kind = text("item"), .reason = reason, .file = file,
          .line = int64_t{p.breakLine}, .time_ns = kStart});
  }
  const auto count = static_cast<int64_t>(p.ops.size());
  w.post(rows::Graph{.id = int64_t{1}, .compile_id = int64_t{1}, .stage = text("post_fusion"), .direction = text("inference"), .name = text("f"),
      .node_count = count, .edge_count = int64_t{0}, .input_count = int64_t{1}, .output_count = int64_t{1}, .time_ns = kStart});
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) {
    all.push_back(i + 1);
    w.post(rows::Node{.id = i + 1, .graph_id = int64_t{1}, .position = i, .name = text("n"), .kind = text("call"),
        .op = p.ops[static_cast<size_t>(i)], .dtype = text("float32"), .shape = p.shapes.empty() ? p.shape : p.shapes[static_cast<size_t>(i)], .device = text("cpu"), .bytes = int64_t{2048},
        .is_backward = int64_t{0}, .file = file, .line = int64_t{2}, .function = text("f")});
  }
  int64_t kernels = 1;
  if (p.fused) {
    writeKernel(w, 1, all, "fused_0", p);
  } else {
    for (int64_t i = 0; i < count; ++i) writeKernel(w, i + 1, {i + 1}, "single_" + std::to_string(i), p);
    kernels = count;
  }
  constexpr int64_t kOutside = 90;
  if (!p.outside.empty())
    w.post(rows::Kernel{.id = kOutside, .compile_id = int64_t{1}, .name = text("aten::nonzero"), .kind = p.outside,
        .op = text("aten::nonzero"), .device = text("cpu"), .read_bytes = int64_t{4096}, .write_bytes = int64_t{0}, .flops = int64_t{0},
        .file = file, .line = int64_t{2}, .time_ns = kStart});
  if (!p.refusal.empty()) w.post(rows::FusionDecision{.id = int64_t{1}, .compile_id = int64_t{1}, .graph_id = int64_t{1}, .position = int64_t{0},
      .a = text("a"), .b = text("b"), .a_node = int64_t{1}, .b_node = int64_t{2}, .kind = text("vertical"), .fused = int64_t{0},
      .reason = p.refusal, .score_bytes = int64_t{0}});
  session::LaunchRing* ring = w.openRing(1);
  int64_t now = kStart + 2'000'000;
  for (int i = 0; i < p.launches; ++i) {
    const int64_t start = now;
    for (int64_t k = 1; k <= kernels; ++k) {
      const int64_t took = p.launchNs + (i % 5 - 2) * p.spreadNs;
      ring->push({now, took, 4096, static_cast<int32_t>(k), static_cast<int32_t>(k)});
      now += took + 500;
    }
    if (!p.outside.empty()) ring->push({now, p.launchNs, 4096, static_cast<int32_t>(kOutside), 0});
    ring->push({start, now - start, 0, 1, session::kCallTag});
    now += 5'000;
  }
  session::Writer::closeRing(ring);
  w.finish();
}

const Entry* find(const Comparison& c, Subject subject, Kind kind, const std::string& name = {}) {
  for (const Entry& e : c.entries) {
    if (e.subject == subject && e.kind == kind && (name.empty() || e.name == name)) return &e;
  }
  return nullptr;
}

}  // namespace

class CompareTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  int made_ = 0;

  Comparison compare(const Program& a, const Program& b) {
    const std::string paths[] = {dir_.filePath(QStringLiteral("%1a.fusebox").arg(++made_)).toStdString(), dir_.filePath(QStringLiteral("%1b.fusebox").arg(made_)).toStdString()};
    writeProgram(paths[0], a);
    writeProgram(paths[1], b);
    auto x = session::Reader::open(paths[0]), y = session::Reader::open(paths[1]);
    auto result = x && y ? compareSessions(**x, **y) : Result<Comparison>(fail(ErrorCode::Internal, "not opened"));
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
  }

 private slots:
  /// What starts the program is no part of it: another version of Fusebox is no edit, and a renamed script is still the only one.
  void filesOfFuseboxAreNoProgram() {
    const Comparison hosts = compare({.host = "start()\n"}, {.host = "begin()\nstart()\n"});
    QVERIFY(!find(hosts, Subject::Program, Kind::Changed));
    QCOMPARE(hosts.differences().size(), size_t{0});
    const Comparison renamed = compare({.host = "start()\n"}, {.script = "def f(x):\n  return x + 1\n", .name = "other.py", .host = "begin()\n"});
    const Entry* edit = find(renamed, Subject::Program, Kind::Changed);
    QVERIFY(edit);
    QCOMPARE(edit->name, std::string("other.py"));
    QCOMPARE(edit->a.text, std::string("2: return x"));
  }

  void symbolicSizesAreSetSideBySide() {
    const std::string source = "L['x'].size()[0]";
    const Comparison same = compare({.symbolUpper = 64}, {.symbolUpper = 64});
    QVERIFY(find(same, Subject::Symbol, Kind::Same, source));
    const Comparison fixed = compare({.symbolUpper = 64}, {.symbolUpper = 64, .constant = 5});
    const Entry* e = find(fixed, Subject::Symbol, Kind::Changed, source);
    QVERIFY(e);
    QCOMPARE(e->a.text, std::string("symbolic, 2 … 64"));
    QCOMPARE(e->b.text, std::string("specialised to 5"));
    QVERIFY(find(compare({.symbolUpper = 64}, {.symbolUpper = 32}), Subject::Symbol, Kind::Changed, source));
    QVERIFY(find(compare({}, {.symbolUpper = 32}), Subject::Symbol, Kind::Added, source));
    // Another engine names the argument otherwise.
    const Comparison named = compare({.symbolUpper = 64}, {.engine = "stock", .symbolUpper = 64, .symbolSource = "L['args'][0].size()[0]"});
    QVERIFY(find(named, Subject::Symbol, Kind::Same, source) && !find(named, Subject::Symbol, Kind::Added));
    QVERIFY(find(compare({.symbolUpper = 64}, {.engine = "stock", .symbolUpper = 64, .symbolSource = "L['args'][0].size()[1]"}), Subject::Symbol, Kind::Added));
    QVERIFY(!find(compare({}, {}), Subject::Symbol, Kind::Same));
  }

  /// Against a table that knows the length of the longest common subsequence; every pair must be equal, every position there once.
  void sequencesAlignWithFewestEdits() {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
      const auto draw = [&](size_t most) {
        std::vector<int32_t> out(random() % (most + 1));
        for (auto& v : out) v = static_cast<int32_t>(random() % 4);
        return out;
      };
      const auto a = draw(30), b = draw(30);
      std::vector<std::vector<size_t>> longest(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
      for (size_t i = a.size(); i-- > 0;)
        for (size_t j = b.size(); j-- > 0;) longest[i][j] = a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
      size_t pairs = 0;
      int32_t nextA = 0, nextB = 0;
      for (const Match& m : alignSequences(a, b)) {
        if (m.a >= 0) QCOMPARE(m.a, nextA++);
        if (m.b >= 0) QCOMPARE(m.b, nextB++);
        if (m.a < 0 || m.b < 0) continue;
        QCOMPARE(a[static_cast<size_t>(m.a)], b[static_cast<size_t>(m.b)]);
        ++pairs;
      }
      QCOMPARE(nextA, static_cast<int32_t>(a.size()));
      QCOMPARE(nextB, static_cast<int32_t>(b.size()));
      QCOMPARE(pairs, longest[0][0]);
    }
  }

  void farSequencesAreCutAndSaySo() {
    std::vector<int32_t> a(6000, 1), b(6000, 2);
    a.front() = b.front() = 0;
    bool cut = false;
    const auto matches = alignSequences(a, b, &cut);
    QVERIFY(cut);
    QCOMPARE(matches.size(), size_t{1 + 2 * 5999});
  }

  void noiseIsCalledNoise() {
    const auto spread = [](double median, double mad, int64_t count) { return Spread{count, median * static_cast<double>(count), median, mad, median - 3 * mad, median + 3 * mad}; };
    QCOMPARE(judge(spread(1000, 10, 50), spread(2000, 10, 50)), Verdict::Slower);
    QCOMPARE(judge(spread(2000, 10, 50), spread(1000, 10, 50)), Verdict::Faster);
    QCOMPARE(judge(spread(100000, 10, 50), spread(103000, 10, 50)), Verdict::Noise);      // below the floor
    QCOMPARE(judge(spread(100000, 60000, 9), spread(130000, 60000, 9)), Verdict::Noise);  // within the deviation
    QCOMPARE(judge(spread(100, 1, 50), spread(200, 1, 50)), Verdict::Noise);              // a clock's tick
    QCOMPARE(judge(spread(10000, 10, 3), spread(30000, 10, 3)), Verdict::Slower);
    QCOMPARE(judge(spread(10000, 10, 2), spread(30000, 10, 2)), Verdict::Noise);          // two lie apart by chance
    QCOMPARE(judge(spread(10000, 1500, 3), spread(22000, 1500, 3)), Verdict::Noise);      // nearer than they are wide
    QCOMPARE(judge(spread(10000, 0, 1), spread(30000, 0, 1)), Verdict::Unknown);          // one sample says nothing
    QCOMPARE(judge(spread(10000, 10, 50), spread(30000, 0, 1)), Verdict::Unknown);
    QCOMPARE(judge(Spread{}, spread(1000, 10, 50)), Verdict::Unknown);
  }

  void equalSessionsDoNotDiffer() {
    const Comparison c = compare({}, {.folder = "/srv/job"});  // another folder is not another program
    for (const int32_t d : c.differences()) qWarning("%s", c.entries[static_cast<size_t>(d)].name.c_str());
    QCOMPARE(c.differences().size(), size_t{0});
    QVERIFY(!c.cause.found);
    QCOMPARE(QString::fromStdString(c.cause.headline), QStringLiteral("Nothing differs beyond noise."));
  }

  void anOptionExplainsKernelsBytesAndTime() {
    const Comparison c = compare({}, {.fact = "False", .fused = false, .refusal = "fusion is switched off"});
    QVERIFY(c.cause.found);
    const Entry& root = c.entries[static_cast<size_t>(c.cause.chain.at(0).entry)];
    QCOMPARE(root.subject, Subject::Option);
    QCOMPARE(root.name, std::string("config.fuse"));
    QCOMPARE(c.cause.explained, c.cause.effects);
    std::string chain;
    for (const auto& step : c.cause.chain) chain += step.text + "\n";
    for (const char* words : {"config.fuse: True → False", "kernels and calls of f: 1 → 3 (+2)", "refused to fuse it with", "fusion is switched off", "bytes moved by a call", "call of f"}) {
      QVERIFY2(chain.find(words) != std::string::npos, (chain + "\n lacks " + words).c_str());
    }
    const Entry* bytes = find(c, Subject::Memory, Kind::Changed, "bytes moved by a call");
    QVERIFY(bytes && bytes->a.value == 16384 && bytes->b.value == 24576);
    const Entry* call = find(c, Subject::Time, Kind::Changed, "call");
    QVERIFY(call && call->verdict == Verdict::Slower && call->b.time.count == 50);
  }

  void aChangedLineExplainsItsBreak() {
    const Comparison c = compare({.script = "def f(x):\n  return x\n"}, {.script = "def f(x):\n  y = x.sum().item()\n  return x\n", .breakLine = 2});
    const Entry& root = c.entries[static_cast<size_t>(c.cause.chain.at(0).entry)];
    QCOMPARE(root.subject, Subject::Program);
    QCOMPARE(root.b.place.line, int64_t{2});
    const Entry* broke = find(c, Subject::Break, Kind::Added);
    QVERIFY(broke && broke->b.id == 1 && broke->b.place.line == 2);
  }

  /// Files of libraries do not hide that both sessions are of one script, which has another name.
  void theChangeAtTheEffectIsTold() {
    // The words about the code changed as well, and a line that has nothing to do with the break, in front of it.
    const Comparison c = compare({.script = "\"\"\"Before.\"\"\"\ndef f(x):\n  # a note\n  x = x + 1\n  y = x * 2\n  if x.sum() > 0: pass\n  return x\n", .function = {.line = 2}, .breakLine = 6},
                                 {.script = "\"\"\"After,\nlonger.\"\"\"\ndef f(x):\n  x = x + 2  # more\n  y = x * 2\n  return x\n", .function = {.line = 3}});
    QVERIFY2(c.cause.headline.find("m.py: 6: if x.sum() > 0: pass → –") != std::string::npos, c.cause.headline.c_str());
  }

  void whatChangesNoCodeIsNoEdit() {
    const Comparison c = compare({.script = "\"\"\"Before.\"\"\"\ndef f(x):\n  'of f'\n  return x\n"}, {.script = "\"\"\"After,\nin two # lines.\"\"\"\ndef f(x):\n\n  # a note\n  return x  # more\n"});
    for (const auto& e : c.entries) QVERIFY2(e.subject != Subject::Program, e.b.text.c_str());
    using Lines = std::vector<std::string_view>;
    QCOMPARE(query::codeLines({"x = '# no comment'  # one", "y = \"\"\"a", "# text\"\"\" ", "f(", "  'text',  # argument", ")"}),
             (Lines{"x = '# no comment'", "y = \"\"\"a", "# text\"\"\"", "f(", "  'text',", ")"}));
    QCOMPARE(query::codeLines({"def f():", "  r'''doc", "  # of f'''", "  'and' \\", "  'more'", "  return 'it''s'", "  # end"}), (Lines{"def f():", "", "", "", "", "  return 'it''s'", ""}));
  }

  void aBreakInARewrittenLineIsTheSame() {
    const Comparison c = compare({.script = "def f(x):\n  while x.item() > 1: pass\n  return x\n", .breakLine = 2},
                                 {.script = "# newton\ndef f(x):\n  while x.item() > 2: pass\n  return x\n", .function = {.line = 2}, .breakLine = 3});
    for (const auto& e : c.entries) QVERIFY2(e.subject != Subject::Break || (e.a.present && e.b.present), e.a.text.c_str());
  }

  void aRenamedScriptIsTheSameProgram() {
    const Comparison c = compare({.script = "def f(x):\n  return x\n"}, {.script = "def f(x):\n  return x\n", .name = "renamed.py"});
    const Entry* f = find(c, Subject::CodeObject, Kind::Same, "f");
    QVERIFY(f && f->a.present && f->b.present);
    QVERIFY2(c.cause.headline.find("different programs") == std::string::npos, c.cause.headline.c_str());
  }

  void aBreakThatOnlyMovedIsTheSame() {
    const Comparison c = compare({.script = "def f(x):\n  return x.item()\n", .breakLine = 2}, {.script = "# a comment\n\ndef f(x):\n  return x.item()\n", .breakLine = 4});
    QVERIFY(find(c, Subject::Break, Kind::Same));
    QVERIFY(!find(c, Subject::Break, Kind::Added) && !find(c, Subject::Break, Kind::Removed));
  }

  /// What a compiler words for its developers differs between attempts: kind and place are what a break is.
  void aBreakIsToldByItsPlaceAndKind() {
    Program a{.breakLine = 2}, b{.breakLine = 2};
    a.breakReasons = {"x is read; Developer debug context: ConstantVariable()"};
    b.breakReasons = {"x is read; Developer debug context: ConstantVariable()", "x is read; Developer debug context: SymNodeVariable()"};
    const Comparison c = compare(a, b);
    QVERIFY(find(c, Subject::Break, Kind::Same));
    QVERIFY(!find(c, Subject::Break, Kind::Added) && !find(c, Subject::Break, Kind::Changed));
    QVERIFY2(c.cause.headline.find("raph break") == std::string::npos, c.cause.headline.c_str());
  }

  /// Engines put functions of PyTorch's around a module, each its own: what they compute says that they are the same.
  void wrappersAreToldByWhatTheyCompute() {
    Program a, b;
    a.function = {"Sequential.forward", "/usr/lib/python3.11/site-packages/torch/nn/modules/container.py", 248};
    b.function = {"inner", "/usr/lib/python3.11/site-packages/torch/_dynamo/external_utils.py", 67};
    for (const bool swapped : {false, true}) {
      const Comparison c = swapped ? compare(b, a) : compare(a, b);
      const Entry* f = find(c, Subject::CodeObject, Kind::Same, "Sequential.forward");
      QVERIFY(f && f->a.present && f->b.present);
      QVERIFY2(c.cause.headline.find("different programs") == std::string::npos, c.cause.headline.c_str());
    }
    // One engine keeps a gelu and the other takes it apart; the products of matrices around it are the same.
    a.ops = {"aten::addmm", "aten::gelu", "aten::addmm"};
    b.ops = {"aten::addmm", "aten::mul.Tensor", "aten::mul.Tensor", "aten::erf", "aten::add.Tensor", "aten::mul.Tensor", "aten::addmm"};
    QVERIFY(find(compare(a, b), Subject::CodeObject, Kind::Same, "Sequential.forward"));
    b.ops = {"aten::sigmoid", "aten::tanh"};  // equal shapes of other work
    a.ops = {"aten::relu", "aten::abs"};
    QVERIFY(find(compare(a, b), Subject::CodeObject, Kind::Removed));
    b.ops = {"aten::conv2d", "aten::max_pool2d", "aten::tanh"};  // other work: other functions
    QVERIFY(find(compare(a, b), Subject::CodeObject, Kind::Removed));
  }

  /// A backward pass is no entry of its own, whoever tells of it.
  void aBackwardPassIsNoEntry() {
    const Comparison c = compare({}, {.engine = "stock", .hasBackward = true});
    QVERIFY(!find(c, Subject::Count, Kind::Changed, "entries compiled"));
    QVERIFY(find(compare({}, {.recompiles = 1}), Subject::Count, Kind::Changed, "entries compiled"));
  }

  void whatFailsInOneSessionIsTheCause() {
    Program failed;
    failed.error = "BackendCompilerFailed: backend='x' raised:\nRuntimeError: no";
    const Comparison c = compare({}, failed);
    const Entry* failure = find(c, Subject::Failure, Kind::Added);
    QVERIFY(failure && failure->b.id == 1);
    QVERIFY2(c.cause.headline.find("not compiled in B") != std::string::npos, c.cause.headline.c_str());
  }

  /// What runs between the parts of a graph on one side only is a difference of it, not another kind of session.
  void whatRunsOutsideOfGraphsIsCompared() {
    const Comparison c = compare({}, {.outside = "extern"});
    QVERIFY(find(c, Subject::Kernel, Kind::Added, "aten::nonzero"));
    for (const std::string& limit : c.limits) QVERIFY2(limit.find("belong to graphs") == std::string::npos, limit.c_str());
  }

  /// Stock's sessions have the operators outside compiled functions, ours do not: that is no difference of the programs.
  void operatorsOutsideAreComparedWhereBothHaveThem() {
    const Comparison ours = compare({}, {.outside = "eager", .engine = "stock"});
    QVERIFY(!find(ours, Subject::Kernel, Kind::Added, "aten::nonzero"));
    QVERIFY(!find(ours, Subject::Count, Kind::Changed, "kernels and calls") && !find(ours, Subject::Count, Kind::Changed, "launches"));
    QVERIFY(std::any_of(ours.limits.begin(), ours.limits.end(), [](const std::string& limit) { return limit.find("recorded in one session only") != std::string::npos; }));
    const Comparison stock = compare({.engine = "stock"}, {.outside = "eager", .engine = "stock"});
    QVERIFY(find(stock, Subject::Kernel, Kind::Added, "aten::nonzero") && find(stock, Subject::Count, Kind::Changed, "kernels and calls"));
  }

  /// Who asked for a relation has another line, or file, in the other session; the relation is the same.
  void aRelationIsGuardedWhoeverAsksForIt() {
    const auto asked = [](const char* place) { return std::string("(L['n'] % 3) != 0, asked by a comparison of the program in ") + place; };
    QVERIFY(!find(compare({.relation = asked("m.py:17")}, {.relation = asked("other.py:19")}), Subject::Guard, Kind::Changed));
    const Comparison other = compare({.relation = asked("m.py:17")}, {.relation = "(L['n'] % 5) != 0, asked by a comparison of the program in m.py:17"});
    const Entry* gone = find(other, Subject::Guard, Kind::Removed);
    QVERIFY(gone && find(other, Subject::Guard, Kind::Added));
    QCOMPARE(gone->name, std::string("SHAPE_ENV (L['n'] % 3) != 0"));
    QCOMPARE(gone->a.text, std::string("asked by a comparison of the program in m.py:17"));
  }

  /// Calls of one function are told apart by its entries.
  void callsAreOfEntries() {
    const Comparison c = compare({.recompiles = 1}, {.recompiles = 1});
    const Entry* call = find(c, Subject::Time, Kind::Same, "call");
    QVERIFY(call);
    QCOMPARE(call->note, std::string("entry 0"));
    QVERIFY2(toText(c).find("  f, entry 0  ") != std::string::npos, toText(c).c_str());
    QVERIFY2(toText(compare({}, {})).find("\n  f   ") != std::string::npos, "the only one");
  }

  /// Engines check guards in orders of their own: a call that did not fit is one recompile of both, whichever guard each of them names.
  void recompilesOfTwoEnginesAreOne() {
    const Comparison c = compare({.recompiles = 1, .failed = "tensor 'y' size mismatch at index 0", .failedLine = 1, .engine = "stock"}, {.recompiles = 1});
    QVERIFY(!find(c, Subject::Recompile, Kind::Added) && !find(c, Subject::Recompile, Kind::Removed));
    QVERIFY2(c.cause.headline.find("recompile") == std::string::npos, c.cause.headline.c_str());
    QVERIFY(find(compare({.recompiles = 2, .engine = "stock"}, {.recompiles = 1, .failed = "TENSOR_MATCH L['y']", .failedLine = 1}), Subject::Recompile, Kind::Changed) ||
            find(compare({.recompiles = 2, .engine = "stock"}, {.recompiles = 1, .failed = "TENSOR_MATCH L['y']", .failedLine = 1}), Subject::Recompile, Kind::Removed));
  }

  /// Not every engine says of a constant that it could have been symbolic; one that is symbolic on one side only is a difference.
  void constantsOfOneEngineAreNoDifference() {
    QVERIFY(!find(compare({.engine = "stock"}, {.constant = 8}), Subject::Symbol, Kind::Added));
    QVERIFY(find(compare({}, {.constant = 8}), Subject::Symbol, Kind::Added));
    QVERIFY(find(compare({.engine = "stock"}, {.symbolUpper = 64}), Subject::Symbol, Kind::Added));
  }

  void recompilesWithoutAnythingBeforeThemPointAtTheInputs() {
    const Comparison c = compare({}, {.recompiles = 2});
    const Entry& root = c.entries[static_cast<size_t>(c.cause.chain.at(0).entry)];
    QCOMPARE(root.subject, Subject::Recompile);
    QVERIFY2(c.cause.headline.find("the inputs did") != std::string::npos, c.cause.headline.c_str());
    QCOMPARE(root.b.value, 2.0);
  }

  void aScriptThatIsNotRecordedMayDiffer() {
    const Comparison c = compare({}, {.recompiles = 2, .hasScript = false});
    QVERIFY2(c.cause.headline.find("the inputs did") == std::string::npos, c.cause.headline.c_str());
    QVERIFY2(c.cause.headline.find("not recorded on both sides") != std::string::npos, c.cause.headline.c_str());
  }

  /// A setting explains what it can touch, and nothing before it: neither how many processes compile nor what becomes of graphs moves guards.
  void settingsExplainWhatTheyReach() {
    using Settings = std::map<std::string, std::string>;
    const Settings before{{"automatic_dynamic_shapes", "True"}, {"inductor.compile_threads", "32"}, {"inductor.epilogue_fusion", "True"}};
    Settings after = before;
    after["inductor.compile_threads"] = "8";
    after["inductor.epilogue_fusion"] = "False";
    const Comparison beside = compare({.settings = before}, {.recompiles = 2, .settings = after});
    QCOMPARE(beside.entries[static_cast<size_t>(beside.cause.chain.at(0).entry)].subject, Subject::Recompile);
    // Each engine has settings of its own.
    const Comparison engines = compare({}, {.engine = "stock", .settings = before});
    QVERIFY(!find(engines, Subject::Option, Kind::Added));
    after["automatic_dynamic_shapes"] = "False";
    const Comparison c = compare({.settings = before}, {.recompiles = 2, .settings = after});
    const Entry& root = c.entries[static_cast<size_t>(c.cause.chain.at(0).entry)];
    QCOMPARE(root.subject, Subject::Option);
    QCOMPARE(root.name, std::string("config.automatic_dynamic_shapes"));
  }

  void nodesAreAligned() {
    const Comparison c = compare({.ops = {"aten::mul", "aten::add", "aten::relu"}}, {.ops = {"aten.mul.default", "aten::gelu", "aten::add", "aten::relu"}});
    const Entry* added = find(c, Subject::Node, Kind::Added);
    QVERIFY(added && added->name == "aten::gelu" && added->b.id == 2);
    int nodes = 0;
    for (const Entry& e : c.entries) nodes += e.subject == Subject::Node ? 1 : 0;
    QCOMPARE(nodes, 1);
    const Comparison shapes = compare({}, {.shape = "[16, 64]"});
    QVERIFY(find(shapes, Subject::Node, Kind::Changed, "aten::mul"));
    QVERIFY(find(shapes, Subject::Guard, Kind::Changed));
  }

  /// Engines number sizes as they like; which dimensions have the same is what counts.
  void symbolsOfOtherNamesAreNoOtherShapes() {
    const auto change = [&](std::vector<std::string> a, std::vector<std::string> b) {
      const Comparison c = compare({.shapes = std::move(a)}, {.shapes = std::move(b), .engine = "stock"});
      const Entry* graph = find(c, Subject::Graph, Kind::Changed);
      return graph ? graph->change : std::string();
    };
    QCOMPARE(change({"[s0, 16]", "[2*s0 + 1, s1]", "[s1]"}, {"[s77, 16]", "[2*s77 + 1, s27]", "[s27]"}), std::string());
    QCOMPARE(change({"[s0 + (s0 // 2), 4]", "[2*(s0 + 1)]", "[8]"}, {"[s77 + ((s77//2)), 4]", "[2*((s77 + 1))]", "[8]"}), std::string());
    QCOMPARE(change({"[2*(s0 + 1)]", "[8]", "[(s0)*(s0)]"}, {"[2*s0 + 1]", "[8]", "[((s0)*(s0))]"}), std::string("2 nodes of other shapes"));
    QCOMPARE(change({"[s0, 16]", "[s1, 16]", "[s0]"}, {"[s1, 16]", "[s0, 16]", "[s1]"}), std::string());
    QCOMPARE(change({"[s0, 16]", "[s0, 16]", "[s0]"}, {"[s5, 16]", "[s6, 16]", "[s5]"}), std::string("1 node of another shape"));
    QCOMPARE(change({"[s0, 16]", "[s0]", "[s0]"}, {"[s5, 8]", "[s6]", "[6]"}), std::string("2 nodes of other shapes"));
  }

  /// Two graphs that read the same, of other shapes: the row itself says what differs.
  void aGraphsRowSaysWhatDiffers() {
    const Comparison shapes = compare({}, {.shape = "[16, 64]"});
    const Entry* graph = find(shapes, Subject::Graph, Kind::Changed);
    QVERIFY(graph);
    QCOMPARE(graph->a.text, graph->b.text);
    QCOMPARE(graph->change, std::string("3 nodes of other shapes"));
    QCOMPARE(graph->note, std::string("aten::mul float32[8, 64] → float32[16, 64]"));
    const Comparison more = compare({.ops = {"aten::mul", "aten::add", "aten::relu"}}, {.ops = {"aten::mul", "aten::gelu", "aten::add", "aten::tanh"}});
    graph = find(more, Subject::Graph, Kind::Changed);
    QVERIFY(graph);
    QCOMPARE(graph->change, std::string("1 node only in A, 2 nodes only in B"));
    QVERIFY(graph->note.empty());
    graph = find(compare({}, {}), Subject::Graph, Kind::Same);
    QVERIFY(graph && graph->change.empty() && graph->note.empty());
  }

  /// Two runs of one program, of whatever noise, seldom differ beyond it: who asks for an exit code by it compares dozens of kernels.
  void runsOfOneProgramSeldomDiffer() {
    std::mt19937 random(7);
    for (const double sigma : {0.15, 0.3, 0.6}) {
      std::lognormal_distribution<double> time(std::log(5000), sigma);
      const auto run = [&](size_t launches) {
        std::vector<double> samples(launches);
        for (double& sample : samples) sample = time(random);
        return spreadOf(samples);
      };
      for (const size_t launches : std::initializer_list<size_t>{2, 3, 4, 5, 8, 20}) {
        int differ = 0;
        for (int i = 0; i < 4000; ++i) differ += judge(run(launches), run(launches)) != Verdict::Noise;
        QVERIFY2(differ < 4000 * 0.02, qPrintable(QStringLiteral("%1 of 4000 with %2 launches").arg(differ).arg(launches)));
      }
    }
  }

  /// One launch tells no time that could be compared; where it is only one side's, it says which.
  void oneLaunchIsNoVerdict() {
    const Comparison once = compare({.launches = 1}, {.launchNs = 47'000, .launches = 1});
    for (const Entry& e : once.entries) QVERIFY2(e.verdict == Verdict::Unknown, e.name.c_str());
    const Entry* kernel = find(once, Subject::Kernel, Kind::Same, "fused_0");
    QVERIFY(kernel);
    QCOMPARE(kernel->change, std::string("1 launch each"));
    const Entry* call = find(once, Subject::Time, Kind::Same, "call");
    QVERIFY(call);
    QCOMPARE(call->change, std::string("once each"));
    QCOMPARE(once.differences().size(), size_t{0});
    const Comparison oneSide = compare({}, {.launchNs = 47'000, .launches = 1});
    kernel = find(oneSide, Subject::Kernel, Kind::Same, "fused_0");
    QVERIFY(kernel);
    QCOMPARE(kernel->change, std::string("1 launch in B"));
    QVERIFY(find(compare({.launches = 3}, {.launchNs = 47'000, .launches = 3}), Subject::Kernel, Kind::Changed, "fused_0"));
  }

  /// A turn is what repeats: of another number of turns it is the same loop where it calls the same, else it is not set against it.
  void turnsOfOtherLoopsAreNotCompared() {
    const auto step = [](const Comparison& c) { return *std::find_if(c.entries.begin(), c.entries.end(), [](const Entry& e) { return e.subject == Subject::Time && e.name == "step"; }); };
    const Entry same = step(compare({.launches = 50}, {.launchNs = 47'000, .launches = 12}));
    QCOMPARE(same.verdict, Verdict::Slower);
    const Entry other = step(compare({.launches = 50}, {.function = {.name = "g"}, .launchNs = 47'000, .launches = 12}));
    QCOMPARE(other.verdict, Verdict::Unknown);
    QCOMPARE(other.change, std::string("turns of different loops"));
  }

  void slowerKernelsOfOneProgramPointAtTheMachine() {
    const Comparison c = compare({}, {.script = "def f(x):\n  return x\n# note\n", .launchNs = 20'000});
    QVERIFY(c.cause.found);
    QVERIFY2(c.cause.headline.find("load and clocks") != std::string::npos, c.cause.headline.c_str());
    const Entry* kernel = find(c, Subject::Kernel, Kind::Changed, "fused_0");
    QVERIFY(kernel && !kernel->structural && kernel->verdict == Verdict::Slower);
  }

  void recordedSessionsAreTheirOwnEqual() {
    const std::string path = dir_.filePath("s.fusebox").toStdString();
    QVERIFY(test::writeSyntheticSession(path, {.launches = 2400}));
    auto a = session::Reader::open(path), b = session::Reader::open(path);
    QVERIFY(a && b);
    auto c = compareSessions(**a, **b);
    QVERIFY(c);
    QCOMPARE(c->differences().size(), size_t{0});
    QVERIFY(c->entries.size() > 20);
  }

  /// A kernel that a GPU timed has that time here too, not the length of the call that launched it.
  void kernelsHaveTheDevicesTimes() {
    for (const char* name : {"ours", "graph"}) {
      auto a = session::Reader::open(std::string(CUPTI_DATA) + "/" + name + ".fusebox"), b = session::Reader::open(std::string(CUPTI_DATA) + "/" + name + ".fusebox");
      QVERIFY(a && b);
      auto c = compareSessions(**a, **b);
      QVERIFY(c);
      QCOMPARE(c->differences().size(), size_t{0});
      std::map<int64_t, double> compared;
      for (const Entry& e : c->entries) {
        if (e.subject != Subject::Kernel || e.a.id == 0 || e.a.time.count == 0) continue;
        compared[e.a.id] += e.a.time.totalNs;
        QCOMPARE(e.a.text.find("on GPU") != std::string::npos, e.a.time.onDevice);
      }
      int timed = 0;
      QVERIFY((*a)->each("SELECT kernel_id, total_ns, min_ns, max_ns, timed_launches FROM kernels WHERE timed_launches > 0", {}, [&](const session::Statement& s) {
        const auto found = compared.find(s.integerAt(0));
        if (found == compared.end()) return;
        ++timed;
        QVERIFY2(std::abs(found->second - s.realAt(1)) < 1, std::to_string(s.integerAt(0)).c_str());
      }));
      QVERIFY(timed > 5);
    }
  }

  /// Every imported format with every other: nothing fails, and the reports hold what the comparison does.
  void importedSessionsCompare() {
    qputenv("XDG_CACHE_HOME", dir_.filePath("cache").toLocal8Bit());
    std::vector<std::unique_ptr<session::Reader>> readers;
    for (const char* name : {"train_step.log.gz", "recompile.log.gz", "cpu_compiled.json.gz", "cudagraphs.json.gz", "trace.pftrace.gz", "compile_debug"}) {
      auto reader = importing::openAny(std::string(IMPORTER_DATA) + "/" + name);
      QVERIFY2(reader.has_value(), name);
      readers.push_back(std::move(*reader));
    }
    for (const auto& a : readers) {
      for (const auto& b : readers) {
        auto c = compareSessions(*a, *b);
        QVERIFY(c);
        if (&a == &b) QCOMPARE(c->differences().size(), size_t{0});
        const auto json = toJson(*c);
        QCOMPARE(json.at("entries").size(), c->entries.size());
        QCOMPARE(json.at("differences").get<size_t>(), c->differences().size());
        QVERIFY(toText(*c).find(c->cause.headline) != std::string::npos);
        std::ostringstream page;
        writeHtml(*c, page);
        QVERIFY(page.str().ends_with("</html>\n"));
        for (size_t i = 0; i < c->entries.size(); ++i) {
          const Entry& e = c->entries[i];
          QVERIFY(e.parent < static_cast<int32_t>(i));
          const bool says = e.a.text != e.b.text || !e.change.empty() || !e.note.empty();
          QVERIFY2(e.kind != Kind::Changed || says, ("nothing says what differs: " + e.name + ": " + e.a.text).c_str());
        }
      }
    }
  }
};

QTEST_GUILESS_MAIN(CompareTest)
#include "compare_test.moc"
