// Recompile chains, guard trees side by side, what breaks cost, and advice whose diffs apply and leave Python that
// compiles.
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "engine/record/recorder.h"
#include "engine/support/clock.h"
#include "profiler/query/advice.h"
#include "profiler/query/breaks.h"
#include "profiler/query/call_site.h"
#include "profiler/query/function_names.h"
#include "profiler/query/python_line.h"
#include "profiler/query/recompiles.h"
#include "profiler/session/reader.h"

using namespace fusebox;
using namespace fusebox::query;
using record::Id;
using record::Recorder;

namespace {

constexpr const char* kScript = R"(import torch
from torch.utils.data import DataLoader


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x, n):
        return x * self.scale * n


net = torch.compile(Net())
x = torch.randn(4, 16)
y = net(x, 3)


@torch.compile
def g(x):
    if x.sum() > 0:
        x = x + 1
    print("x", x)
    import json
    v = x.max().item()
    assert v.isfinite()
    return x * v


for x in DataLoader([torch.zeros(3)], batch_size=2):
    g(x + 1)


def h(x):
    if x.sum().item() > 0:
        x = x + 1
    while x.sum().item() > 0:
        x = x - 1
    assert x.sum().item() > 0
    return x


def go(y):
    for i in range(1, 6): g(i, y)
    g(x); g(y); g(y)
    return loss(g(x), 3)


for y in [x]: go(y)
v = f"{x.sum().item()}"
)";
enum Line {
  kForward = 10,
  kScale = 8,
  kCallNet = 16,
  kDecorator = 19,
  kIf = 21,
  kPrint = 23,
  kImport = 24,
  kItem = 25,
  kAssert = 26,
  kCallG = 31,
  kItemIf = 35,
  kItemWhile = 37,
  kItemAssert = 39,
  kGo = 43,
  kCallInFor = 44,
  kCallThrice = 45,
  kCallInCall = 46,
  kCallGo = 49,
  kItemGiven = 50
};

}  // namespace

class ExplainTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString script_;
  std::unique_ptr<session::Reader> reader_;
  Id frame_ = 0, resumed_ = 0, first_ = 0, second_ = 0, broken_ = 0, after_ = 0;
  int64_t gapFrom_ = 0, gapTo_ = 0;
  int patched_ = 0;

  void write(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(bytes);
  }

  void recordRecompile(Recorder* r, const std::string& file) {
    frame_ = r->frame({.name = "forward", .qualname = "Net.forward", .place = {file, kForward, "forward"}});
    first_ = r->beginCompile({.frame = frame_, .backend = "inductor"});
    const Id guards =
        r->guards(first_, {{.kind = "TENSOR_MATCH",
                            .source = "L['x']",
                            .expected = "Float[4, 16] strides [16, 1] cpu",
                            .place = {file, 11}},
                           {.kind = "CONSTANT_MATCH",
                            .source = "L['self'].scale",
                            .expected = "1.0",
                            .place = {file, 11},
                            .stack = {{file, kCallNet, "<module>"}, {file, 11, "forward"}}},
                           {.kind = "TYPE_MATCH", .source = "L['self']", .expected = "type Net", .place = {file, 11}}});
    r->endCompile(first_);
    const Id failure = r->guardFailure({.frame = frame_,
                                        .compile = first_,
                                        .guard = guards,
                                        .text = "TENSOR_MATCH L['x']",
                                        .expected = "Float[4, 16] strides [16, 1] cpu",
                                        .found = "Float[8, 16] strides [16, 1] cpu",
                                        .place = {file, 11},
                                        .stack = {{file, kCallNet, "<module>"}, {file, kForward, "forward"}}});
    second_ = r->beginCompile({.frame = frame_, .attempt = 1, .backend = "inductor", .cause = failure});
    r->guards(
        second_,
        {{.kind = "TENSOR_MATCH",
          .source = "L['x']",
          .expected = "Float[8, 16] strides [16, 1] cpu",
          .place = {file, 11}},
         {.kind = "TYPE_MATCH", .source = "L['self']", .expected = "type Net", .place = {file, 11}},
         {.kind = "DICT_LACKS", .source = "L['self'].__dict__", .expected = "no key 'hook'", .place = {file, 11}}});
    r->endCompile(second_);
    r->frameStatus(frame_, "compiled");
    for (int i = 0; i < 5; ++i) r->guardCheck(second_, nowNs(), 100);
  }

  void recordBreak(Recorder* r, const std::string& file) {
    const Id frame = r->frame({.name = "g", .qualname = "g", .place = {file, kDecorator, "g"}});
    broken_ = r->beginCompile({.frame = frame, .backend = "inductor"});
    r->graphBreak({.frame = frame,
                   .compile = broken_,
                   .kind = "data-dependent value",
                   .reason = "a tensor's data decides",
                   .hint = "keep it in a tensor",
                   .place = {file, kIf, "g"},
                   .opcode = "POP_JUMP_IF_FALSE",
                   .offset = 20,
                   .stack = {{file, kCallG, "<module>"}, {file, kIf, "g"}},
                   .bytecode = {{.offset = 18, .line = kIf, .op = "LOAD_FAST", .argument = "x"},
                                {.offset = 20, .line = kIf, .to = 40, .op = "POP_JUMP_IF_FALSE"},
                                {.offset = 22, .line = kIf + 1, .op = "LOAD_FAST", .argument = "x"}}});
    r->endCompile(broken_);
    gapFrom_ = nowNs();
    r->call(broken_, gapFrom_ - 1000, 1000);
    resumed_ =
        r->frame({.parent = frame, .name = "g", .qualname = "g", .place = {file, kIf + 1, "g"}, .resumeOffset = 22});
    after_ = r->beginCompile({.frame = resumed_, .kind = "resume", .backend = "inductor"});
    QTest::qSleep(2);
    r->endCompile(after_);
    gapTo_ = nowNs() + 5000;
    r->call(after_, gapTo_, 1000);
    // A call of the function from its start is no passage.
    r->call(broken_, gapTo_ + 10'000'000, 1000);
    r->call(broken_, gapTo_ + 20'000'000, 1000);
    r->call(after_, gapTo_ + 20'004'000, 1000);
  }

  GuardProblem problem(const char* engine, const char* kind, const char* source, const char* expected,
                       const char* found) const {
    GuardProblem p;
    p.engine = engine;
    p.kind = kind;
    p.source = source;
    p.text = std::string(kind) + " " + source;
    p.expected = expected;
    p.found = found;
    p.codeFile = p.file = script_.toStdString();
    p.codeLine = kForward;
    p.line = kForward + 1;
    p.call = {{script_.toStdString(), "<module>", kCallNet}, {script_.toStdString(), "forward", kForward}};
    return p;
  }
  BreakProblem breakAt(const char* engine, const char* kind, const char* reason, int line) const {
    return {engine, kind, reason, "", "CALL", script_.toStdString(), line};
  }

  /// Applies the diff with patch(1) to a copy of the script; cleanupTestCase() lets Python parse all of them.
  QString applied(const std::string& diff) {
    const QString name = QStringLiteral("patched-%1.py").arg(patched_++), copy = folder_.filePath(name);
    if (!QFile::copy(script_, copy)) return {};
    write(folder_.filePath("change.diff"), QByteArray::fromStdString(diff));
    QProcess patch;
    patch.setWorkingDirectory(folder_.path());
    patch.start("patch", {"--fuzz=0", "--silent", name, "change.diff"});
    if (!patch.waitForFinished() || patch.exitCode() != 0) {
      qWarning().noquote() << patch.readAllStandardOutput() << QString::fromStdString(diff);
      return {};
    }
    QFile file(copy);
    const QByteArray text = file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    const auto ours = applyDiff(kScript, diff);
    if (!ours || QByteArray::fromStdString(*ours) != text) {
      qWarning("applyDiff and patch differ");
      return {};
    }
    return QString::fromUtf8(text);
  }

 private slots:
  void whatIsLeftOfALoopHasWords() {
    QCOMPARE(query::sourceWords("L['x'].size()[0]"), std::string("L['x'].size()[0]"));
    QCOMPARE(query::sourceWords("SEQUENCE_LENGTH upcoming(S[0])"), std::string("SEQUENCE_LENGTH what is left of the loop"));
    QCOMPARE(query::sourceWords("upcoming(S[12])[0].n1"), std::string("what is left of the loop[0].n1"));
  }
  void initTestCase() {
    script_ = folder_.filePath("script.py");
    write(script_, kScript);
    const std::string path = folder_.filePath("s.fusebox").toStdString(), file = script_.toStdString();
    auto started = Recorder::start({.path = path, .facts = {{"engine", "fusebox"}}});
    QVERIFY(started.has_value());
    recordRecompile(*started, file);
    recordBreak(*started, file);
    Recorder::stop();
    auto reader = session::Reader::open(path);
    QVERIFY2(reader.has_value(), reader ? "" : reader.error().text().c_str());
    reader_ = std::move(*reader);
  }

  void chainsHaveCostHitsAndCause() {
    auto chains = recompileChains(*reader_);
    QVERIFY(chains.has_value());
    QCOMPARE(chains->size(), size_t{1});
    const RecompileChain& c = chains->front();
    QCOMPARE(c.frame, int64_t{frame_});
    QCOMPARE(c.entries.size(), size_t{2});
    QCOMPARE(c.entries[0].hits, int64_t{0});
    QCOMPARE(c.entries[1].hits, int64_t{5});
    QCOMPARE(c.entries[1].guards, int64_t{3});
    QCOMPARE(c.recompileNs, c.entries[1].compileNs);
    QCOMPARE(c.misses.size(), size_t{1});
    const GuardMiss& m = c.misses[0];
    QCOMPARE(m.difference, std::string("size 0: 4, now 8"));
    QCOMPARE(m.recompile, int64_t{second_});
    QCOMPARE(m.call.size(), size_t{2});
    QCOMPARE(m.call[0].line, int{kCallNet});
    QCOMPARE(recompileChains(*reader_, true)->size(), size_t{3});
    const auto json = toJson(*reader_, *chains);
    QVERIFY(!json["code_objects"][0]["causes"][0]["advice"].empty());
  }

  void guardTreesSideBySide() {
    auto rows = compareGuards(*reader_, first_, second_);
    QVERIFY(rows.has_value());
    std::map<std::string, GuardTreeRow> byLabel;
    for (const auto& r : *rows) byLabel[(r.isSource ? "" : "guard ") + r.label] = r;
    using State = GuardTreeRow::State;
    QCOMPARE(byLabel["guard TENSOR_MATCH"].state, State::Changed);
    QCOMPARE(byLabel["guard TENSOR_MATCH"].found, std::string("Float[8, 16] strides [16, 1] cpu"));
    QCOMPARE(byLabel["guard TYPE_MATCH"].state, State::Same);
    QCOMPARE(byLabel["guard CONSTANT_MATCH"].state, State::OnlyA);
    QCOMPARE(byLabel["guard DICT_LACKS"].state, State::OnlyB);
    QCOMPARE(byLabel[".scale"].depth, 1);
    QCOMPARE(byLabel["L['self']"].differences, 2);
    for (const auto& r : *compareGuards(*reader_, first_, 0)) QCOMPARE(r.state, State::Same);
  }

  /// Of a state only "as captured" is told; each entry has a guard that it failed, and one of them is the cause that the new entry names.
  void statesThatDifferAreDifferences() {
    const std::string path = folder_.filePath("states.fusebox").toStdString();
    QVERIFY(Recorder::start({.path = path, .facts = {{"engine", "fusebox"}}}));
    Recorder* r = Recorder::active();
    const Id frame = r->frame({.name = "f", .qualname = "f", .place = {"/f.py", 1, "f"}});
    const auto entry = [&](int attempt, Id cause) {
      const Id compile = r->beginCompile({.frame = frame, .attempt = attempt, .backend = "inductor", .cause = cause});
      const Id guards = r->guards(compile, {{.kind = "GLOBAL_STATE", .expected = "state as captured"}});
      r->endCompile(compile);
      return std::pair{compile, guards};
    };
    const auto fails = [&](const std::pair<Id, Id>& entry, const char* found) {
      return r->guardFailure({.frame = frame, .compile = entry.first, .guard = entry.second, .text = "GLOBAL_STATE", .expected = "grad_mode: False", .found = found});
    };
    const auto first = entry(0, 0);
    const auto second = entry(1, fails(first, "deterministic algorithms: True, was False"));
    const Id ofSecond = fails(second, "grad_mode: True, was False"), ofFirst = fails(first, "grad_mode: True, was False");
    QVERIFY(ofSecond > 0);
    const auto third = entry(2, ofFirst);
    Recorder::stop();
    auto reader = session::Reader::open(path);
    QVERIFY(reader);
    for (const auto& [a, found] : {std::pair{first.first, "grad_mode: True, was False"}, {second.first, "grad_mode: True, was False"}}) {
      const auto rows = compareGuards(**reader, a, third.first);
      QVERIFY(rows.has_value());
      QCOMPARE(rows->size(), size_t{1});
      QCOMPARE(rows->front().state, GuardTreeRow::State::Changed);
      QCOMPARE(rows->front().a, std::string("grad_mode: False"));
      QCOMPARE(rows->front().b, std::string(found));
    }
  }

  void breaksAreTimedBetweenTheGraphs() {
    auto breaks = breakSummaries(*reader_);
    QVERIFY(breaks.has_value());
    QCOMPARE(breaks->size(), size_t{1});
    const BreakSummary& b = breaks->front();
    int64_t compiling = 0;
    QVERIFY(reader_->each("SELECT dur_ns FROM compiles WHERE compile_id = ?", {int64_t{after_}},
                          [&](const session::Statement& s) { compiling = s.integerAt(0); }));
    QVERIFY(compiling >= 2'000'000);
    QCOMPARE(b.crossings, int64_t{3});
    QCOMPARE(b.measured, int64_t{2});
    QCOMPARE(b.compileNs, compiling);
    QCOMPARE(b.lostNs, gapTo_ - gapFrom_ - compiling + 3000);
    QCOMPARE(b.after.size(), size_t{1});
    QCOMPARE(b.after[0].frame, int64_t{resumed_});
    QVERIFY(bytecodeText(b).find(">>    20 POP_JUMP_IF_FALSE          to 40") != std::string::npos);
    QVERIFY(bytecodeAfterText(b).find("compiled from 22 on") != std::string::npos);
  }

  void adviceChangesTheScript_data() {
    QTest::addColumn<int>("subject");
    QTest::addColumn<QString>("expected");
    QTest::newRow("mark dynamic") << 0 << "torch._dynamo.mark_dynamic(x, 0)\ny = net(x, 3)\n";
    QTest::newRow("dynamic=True") << 1 << "net = torch.compile(Net(), dynamic=True)\n";
    QTest::newRow("drop last") << 2 << "DataLoader([torch.zeros(3)], batch_size=2, drop_last=True):\n";
    QTest::newRow("dtype") << 3 << "y = net(x.to(torch.float32), 3)\n";
    QTest::newRow("strides") << 4 << "y = net(x.contiguous(), 3)\n";
    QTest::newRow("limit") << 5 << "DataLoader\ntorch._dynamo.config.recompile_limit = 32\n";
    QTest::newRow("where") << 6 << "    x = torch.where(x.sum() > 0, x + 1, x)\n    print(\"x\", x)\n";
    QTest::newRow("print") << 7
                           << "    if not torch.compiler.is_compiling():\n        print(\"x\", x)\n    import json\n";
    QTest::newRow("item") << 8 << "    v = x.max()\n";
    QTest::newRow("assert") << 9 << "    torch._assert_async(v.isfinite())\n";
    QTest::newRow("import") << 10 << "DataLoader\nimport json\n";
    QTest::newRow("expression as argument") << 11 << "    g((x + 1).contiguous())\n";
    QTest::newRow("decorator") << 12 << "@torch.compile(dynamic=True)\ndef g(x):\n";
  }
  /// What a module does with what it computed would not reach the parameters before it.
  void noTensorIsDetached() {
    Sources sources(*reader_);
    for (const char* found : {"Float[4, 16] strides [16, 1] cpu requires_grad (not a leaf)", "Float[4, 16] strides [16, 1] cpu requires_grad"}) {
      const auto advice = adviseGuard(problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4, 16] strides [16, 1] cpu", found), sources);
      QCOMPARE(advice.size(), size_t{1});
      QCOMPARE(advice[0].title, std::string("Expect an entry with a gradient and one without"));
      QVERIFY(advice[0].diff.empty());
    }
  }

  /// A tensor where the code needs a number breaks the graph, and an assignment of a number to a buffer is an error.
  void noNumberBecomesATensorByADiff() {
    Sources sources(*reader_);
    for (const char* source : {"L['n']", "L['self'].scale", "G['n']"}) {
      auto number = problem("fusebox", "CONSTANT_MATCH", source, "3", "4");
      for (const bool takesAny : {false, true}) {
        number.takesAny = takesAny;
        const auto advice = adviseGuard(number, sources);
        QCOMPARE(advice.size(), size_t{1});
        QVERIFY2(advice[0].diff.empty(), source);
        QCOMPARE(advice[0].title == "Expect one entry more", takesAny);
      }
    }
    auto needed = problem("fusebox", "CONSTANT_MATCH", "L['n']", "3", "4");
    needed.use = {{"Replace the loop", "by an operator", {}}};
    QCOMPARE(adviseGuard(needed, sources).at(0).title, std::string("Replace the loop"));
  }

  void aModulesModeIsAnEntryWhateverItIsCalled() {
    Sources sources(*reader_);
    for (const char* source : {"L['self'].training", "L['s']._modules['d'].training"})
      QCOMPARE(adviseGuard(problem("fusebox", "CONSTANT_MATCH", source, "True", "False"), sources).at(0).title, std::string("Train and evaluate with an entry each"));
  }

  void branchesOfTheProgramAreNoRanges() {
    Sources sources(*reader_);
    const auto titleOf = [&](const char* kind, const char* source, const char* expected, const char* found) {
      return adviseGuard(problem("fusebox", kind, source, expected, found), sources).at(0).title;
    };
    const std::string decide = "Decide before the call, or put both sides into the graph";
    QCOMPARE(titleOf("SHAPE_ENV", "", "(L['p'] > 0.5) <= 0, asked by a comparison of floats in a.py:3", "(L['p'] > 0.5) = 1"), decide);
    QCOMPARE(titleOf("SHAPE_ENV", "", "((L['s'].step + 1) % 2) == 0, asked by a condition of the program in a.py:22", "L['s'].step = 2"), decide);
    QCOMPARE(titleOf("SHAPE_ENV", "", "L['x'].size()[0] <= 64, asked by a comparison of the program in a.py:5", "L['x'].size()[0] = 65"), decide);
    QCOMPARE(titleOf("SHAPE_ENV", "", "L['x'].size()[0] <= 64, asked by the widths of an index", "L['x'].size()[0] = 65"), std::string("Say the range beforehand"));
    QCOMPARE(titleOf("SYMBOL_RANGE", "L['x']", "L['x'].size()[0] (s0) >= 2", "L['x'].size()[0] = 1"), std::string("Expect an entry of its own for size 1"));
    QCOMPARE(titleOf("SYMBOL_RANGE", "L['x']", "L['x'].size()[0] (s0) <= 64", "L['x'].size()[0] = 65"), std::string("Say the range beforehand"));
  }

  void aCallIsChangedOnlyWhereItIsTheOne() {
    Sources sources(*reader_);
    auto strides = problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4, 3] strides [3, 1] cpu", "Float[4, 3] strides [1, 4] cpu");
    strides.codeLine = kDecorator;
    const auto diffAt = [&](int line) {
      strides.call = {{script_.toStdString(), "<module>", kCallGo}, {script_.toStdString(), "go", line}, {script_.toStdString(), "g", kDecorator}};
      return adviseGuard(strides, sources).at(0).diff;
    };
    QVERIFY(applied(diffAt(kCallInFor)).contains("range(1, 6): g(i.contiguous(), y)\n"));
    QVERIFY(applied(diffAt(kCallInCall)).contains("return loss(g(x.contiguous()), 3)\n"));
    QCOMPARE(diffAt(kCallThrice), std::string());  // which of the three?
    strides.isResumed = true;
    QCOMPARE(diffAt(kCallInFor), std::string());  // its x is no argument
  }

  void compiledCodeMarksNothing() {
    Sources sources(*reader_);
    auto size = problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4, 16] strides [16, 1] cpu", "Float[8, 16] strides [16, 1] cpu");
    const std::string file = script_.toStdString();
    size.codeLine = kDecorator;
    size.call = {{file, "<module>", kCallGo}, {file, "go", kCallInCall}, {file, "g", kDecorator}};
    findEntrance(*reader_, sources, size);
    QVERIFY(!size.isInside);
    QCOMPARE(size.entrance.line, int{kCallInCall});
    QVERIFY(adviseGuard(size, sources).at(0).diff.find("mark_dynamic(x, 0)") != std::string::npos);

    const std::string path = folder_.filePath("inside.fusebox").toStdString();
    auto started = Recorder::start({.path = path, .facts = {{"engine", "fusebox"}}});
    QVERIFY(started.has_value());
    for (const auto& [name, line] : {std::pair{"go", int{kGo}}, {"g", int{kDecorator}}})
      (*started)->endCompile((*started)->beginCompile({.frame = (*started)->frame({.name = name, .qualname = name, .place = {file, line, name}})}));
    Recorder::stop();
    auto both = session::Reader::open(path);
    QVERIFY(both);
    Sources inside(**both);
    findEntrance(**both, inside, size);
    QVERIFY(size.isInside);
    QCOMPARE(size.entrance.line, int{kCallGo});
    const auto advice = adviseGuard(size, inside);
    QVERIFY(advice.at(0).text.starts_with("dynamic=True"));
    const Advice& mark = advice.at(1);
    QCOMPARE(mark.title, std::string("Mark what the program hands in"));
    QVERIFY(mark.diff.empty());
    QVERIFY2(mark.text.find(file + ":" + std::to_string(kCallGo)) != std::string::npos, mark.text.c_str());
  }

  /// A function's name is no word about what the break is.
  void namesOfFunctionsAreNoReasons() {
    Sources sources(*reader_);
    for (const char* name : {"torch._C.prepare_for_backward", "my.import_all", "a.generator", "numpy.linalg.svd", "x.exception_of"}) {
      const std::string reason = std::string(name) + " is a C function that no rule describes";
      QCOMPARE(adviseBreak(breakAt("fusebox", "unsupported call", reason.c_str(), kCallNet), sources).at(0).title, std::string("Call it before or after"));
    }
    QCOMPARE(adviseBreak(breakAt("fusebox", "unsupported operator", "a random operator takes its own generator", kCallNet), sources).at(0).title,
             std::string("Call it before or after"));
    QCOMPARE(adviseBreak(breakAt("fusebox", "backward", "backward() is called: gradients are accumulated outside of the graph", kCallNet), sources).at(0).title,
             std::string("Call backward() outside of the compiled function"));
  }

  void breaksInsideOfLibrariesAreNoLinesToChange() {
    Sources sources(*reader_);
    const std::string torch = "/v/lib/python3.11/site-packages/torch/", parallel = torch + "nn/parallel/distributed.py", script = script_.toStdString();
    BreakProblem problem{"fusebox", "unsupported call", "torch._C._distributed_c10d.prepare_for_backward is a C function that no rule describes", "", "CALL", parallel, 1648,
                         {{script, "<module>", kCallNet}, {parallel, "DistributedDataParallel.forward", 1701}, {parallel, "DistributedDataParallel._post_forward", 1648}}};
    const Advice wrapped = adviseBreak(problem, sources).at(0);
    QCOMPARE(wrapped.title, std::string("Compile the module, then wrap it"));
    QVERIFY2(wrapped.text.find("DistributedDataParallel(torch.compile(module))") != std::string::npos, wrapped.text.c_str());
    problem.file = torch + "nn/modules/module.py";
    problem.stack = {{script, "<module>", kCallNet}, {problem.file, "Module.zero_grad", 7}};
    QCOMPARE(adviseBreak(problem, sources).at(0).title, std::string("Leave it, or compile what lies around it"));
  }

  void aLibrarysBreakIsNotTheProgramsToRemove() {
    Sources sources(*reader_);
    const auto advice = adviseBreak({"stock", "Call to `torch._dynamo.graph_break()`", "User-inserted graph break.", "", "CALL", "/v/lib/python3.11/site-packages/torch/optim/optimizer.py", 80}, sources);
    QCOMPARE(advice.at(0).title, std::string("Leave it, or call what needs it outside"));
    QVERIFY(advice.at(0).diff.empty());
  }

  void everySizeThatChangedIsMarked() {
    Sources sources(*reader_);
    auto sizes = problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4, 16] strides [16, 1] cpu", "Float[8, 16] strides [16, 1] cpu");
    sizes.sizes = {{"L['x']", 0}, {"L['n']", 0}};  // the second is passed as `3`, which cannot be marked
    const auto advice = adviseGuard(sizes, sources);
    QVERIFY(advice.at(0).diff.find("dynamic=True") != std::string::npos);
    QVERIFY(advice.at(1).diff.empty());
    QVERIFY2(advice.at(1).text.ends_with("dimension 0 of L['n']."), advice.at(1).text.c_str());
    sizes.sizes = {{"L['x']", 0}, {"L['x']", 1}};  // what the guard itself says
    QVERIFY(adviseGuard(sizes, sources).at(0).diff.find("mark_dynamic(x, 0)") != std::string::npos);
  }

  void adviceChangesTheScript() {
    QFETCH(int, subject);
    QFETCH(QString, expected);
    Sources sources(*reader_);
    const auto size = problem("stock", "TENSOR_MATCH", "L['x']", "Float[4, 16] strides [16, 1] cpu",
                              "Float[8, 16] strides [16, 1] cpu");
    auto limit = problem("fusebox", "CONSTANT_MATCH", "L['n']", "3", "4");
    limit.outcome = "limit";
    auto ofG =
        problem("stock", "TENSOR_MATCH", "L['x']", "Float[4, 3] strides [3, 1] cpu", "Float[4, 3] strides [1, 4] cpu");
    ofG.codeLine = kDecorator;
    ofG.call = {{script_.toStdString(), "<module>", kCallG}, {script_.toStdString(), "g", kDecorator}};
    auto sizeOfG = size;
    sizeOfG.codeLine = kDecorator;
    std::vector<Advice> advice;
    switch (subject) {
      case 0:
      case 1:
      case 2:
        advice = adviseGuard(size, sources);
        break;
      case 3:
        advice = adviseGuard(
            problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4] strides [1] cpu", "Double[4] strides [1] cpu"),
            sources);
        break;
      case 4:
        advice = adviseGuard(problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[4, 4] strides [4, 1] cpu",
                                     "Float[4, 4] strides [1, 4] cpu"),
                             sources);
        break;
      case 5:
        advice = adviseGuard(limit, sources);
        break;
      case 6:
        advice = adviseBreak(breakAt("fusebox", "data-dependent value", "bool of a tensor", kIf), sources);
        break;
      case 7:
        advice =
            adviseBreak(breakAt("fusebox", "side effect", "output that depends on a computed value", kPrint), sources);
        break;
      case 8:
        advice = adviseBreak(breakAt("fusebox", "data-dependent value", "aten::_local_scalar_dense", kItem), sources);
        break;
      case 9:
        advice = adviseBreak(breakAt("fusebox", "data-dependent value", "bool of a tensor", kAssert), sources);
        break;
      case 10:
        advice =
            adviseBreak(breakAt("fusebox", "import", "module json is imported for the first time", kImport), sources);
        break;
      case 11:
        advice = adviseGuard(ofG, sources);
        break;
      case 12:
        advice = adviseGuard(sizeOfG, sources);
        break;
    }
    QVERIFY(!advice.empty());
    bool found = false;
    for (const Advice& a : advice) {
      QVERIFY(!a.title.empty() && !a.text.empty());
      if (a.diff.empty()) continue;
      const QString text = applied(a.diff);
      QVERIFY2(!text.isEmpty(), a.title.c_str());
      found = found || text.contains(expected);
    }
    QVERIFY2(found, qPrintable(expected));
  }

  void aConditionIsNotAdvisedToDropItem() {
    Sources sources(*reader_);
    for (const int line : {kItemIf, kItemWhile, kItemAssert}) {
      const auto advice = adviseBreak(breakAt("fusebox", "data-dependent value", "Tensor.item()", line), sources);
      QVERIFY(!advice.empty());
      for (const Advice& a : advice) {
        QVERIFY2(a.title != "Keep the value in a tensor", a.title.c_str());
        QVERIFY2(a.diff.find("+    if x.sum() > 0") == std::string::npos, a.diff.c_str());
      }
    }
    const auto whole = adviseBreak(breakAt("fusebox", "data-dependent value", "bool of a tensor", kItemIf), sources);
    QVERIFY(applied(whole[0].diff).contains("    x = torch.where(x.sum() > 0, x + 1, x)\n    while"));
  }

  /// A call may take no tensor where it takes a number.
  void onlyANamedNumberStaysATensor() {
    Sources sources(*reader_);
    const auto diffOf = [&](int line) { return adviseBreak(breakAt("fusebox", "data-dependent value", "Tensor.item()", line), sources).at(0).diff; };
    QVERIFY(applied(diffOf(kItem)).contains("    v = x.max()\n"));
    QCOMPARE(diffOf(kItemGiven), std::string());
  }

  void sizesOfBothEnginesCanBeDynamic() {
    Sources sources(*reader_);
    for (const char* engine : {"fusebox", "stock"}) {
      const auto advice = adviseGuard(problem(engine, "TENSOR_MATCH", "L['x']", "Float[4] strides [1] cpu", "Float[8] strides [1] cpu"), sources);
      QVERIFY(advice.at(0).diff.find("mark_dynamic(x, 0)") != std::string::npos);
      QVERIFY(advice.at(1).diff.find("dynamic=True") != std::string::npos);
    }
    // What has one element is compiled apart: marking it dynamic would change nothing (and stock refuses it).
    const auto one = adviseGuard(problem("stock", "TENSOR_MATCH", "L['x']", "Float[4, 8] strides [8, 1] cpu", "Float[4, 1] strides [1, 1] cpu"), sources);
    QCOMPARE(one.size(), size_t{1});
    QCOMPARE(one[0].title, std::string("Expect an entry of its own for size 1"));
    QVERIFY2(one[0].text.find("Dimension 1 of L['x'] was 8, now 1.") == 0 && one[0].diff.empty(), one[0].text.c_str());
    // Where the guard names a symbol, no number differs.
    const auto other = adviseGuard(problem("fusebox", "TENSOR_MATCH", "L['x']", "Float[s0, 4] strides [4, 1] cpu", "Float[8, 4] strides [4, 1] cuda:0"), sources);
    QVERIFY(other.at(0).text.find("was on cpu, now on cuda:0") != std::string::npos);
  }

  void stockWordsAreUnderstood() {
    GuardProblem p;
    p.engine = "stock";
    p.text = "tensor 'x' size mismatch at index 1. expected 8, actual 4";
    p.expected = "8";
    p.found = "4";
    Sources sources(*reader_);
    const auto advice = adviseGuard(p, sources);
    QVERIFY(advice[0].text.find("dimension 1 of") != std::string::npos);
    const auto titleOfText = [&](const char* kind, const char* text) {
      GuardProblem relation;
      relation.engine = "stock";
      relation.kind = kind;
      relation.text = text;
      return adviseGuard(relation, sources).at(0).title;
    };
    QCOMPARE(titleOfText("LAMBDA_GUARD", "2 <= x.size()[0] <= 2147483647"), std::string("Expect an entry of its own for size 0 or 1"));
    QCOMPARE(titleOfText("LAMBDA_GUARD", "2 <= x.size()[0] <= 32"), std::string("Say the range beforehand"));
    QCOMPARE(titleOfText("", "2 <= x.size()[0] <= 32"), std::string("Say the range beforehand"));
    QCOMPARE(titleOfText("LAMBDA_GUARD", "(step % 3) != 0"), std::string("Decide before the call, or put both sides into the graph"));
    QCOMPARE(titleOfText("LAMBDA_GUARD", "top_saved_tensors_hooks ids == None"), std::string("Keep it as it was"));
    const auto logging = adviseBreak({"stock", "Failed to trace builtin operator", "print", "", "CALL", script_.toStdString(), kPrint}, sources);
    QVERIFY(std::any_of(logging.begin(), logging.end(), [](const Advice& a) { return a.text.find("torch._dynamo.config.reorderable_logging_functions.add(print)") != std::string::npos; }));
    Sources none(*reader_);
    const auto titleOf = [&](const char* expected) { return adviseGuard(problem("fusebox", "SHAPE_ENV", "", expected, "L['n'] = 9"), none).at(0).title; };
    QCOMPARE(titleOf("L['n'] == 3, asked by the number of elements of a range in a.py:50"), std::string("Move what needs the number out of the compiled function"));
    for (const char* range : {"L['x'].size()[0] <= 64", "L['n'] == L['x'].size()[0]"}) QCOMPARE(titleOf(range), std::string("Say the range beforehand"));
    for (const char* relation : {"L['n'] == 3, asked by the number of elements of a range in a.py:50", "L['n'] == 3", "self.sizes[0] < 4"})
      QCOMPARE(tensorDifference(relation, "L['n'] = 9"), std::string());  // says nothing of a tensor
    QCOMPARE(tensorDifference("Tensor, DispatchKeySet(CPU), torch.float32, device=None, requires_grad=False, size=[8, "
                              "16], stride=[16, 1]",
                              "Tensor, DispatchKeySet(CPU), torch.float16, device=None, requires_grad=False, size=[8, "
                              "16], stride=[16, 1]"),
             std::string("dtype float32, now float16"));
  }

  void everyProblemGetsAdvice() {
    Sources sources(*reader_);
    for (const char* kind : {"", "UNKNOWN", "GLOBAL_STATE", "ID_MATCH", "DICT_KEYS_MATCH", "SEQUENCE_LENGTH",
                             "TYPE_VERSION", "CUSTOM", "TENSOR_MATCH"}) {
      const auto advice = adviseGuard(problem("fusebox", kind, "", "", ""), sources);
      QVERIFY2(!advice.empty(), kind);
    }
    QVERIFY(!adviseBreak(BreakProblem{}, sources).empty());
  }

  void diffsOfEdges() {
    QCOMPARE(unifiedDiff("a.py", "one\ntwo\n", {{LineEdit::Kind::Remove, 2, {}}}, 0),
             std::string("--- a.py\n+++ a.py\n@@ -2,1 +1,0 @@\n-two\n"));
    QCOMPARE(unifiedDiff("a.py", "one\ntwo\n", {{LineEdit::Kind::InsertBefore, 1, "zero"}}, 0),
             std::string("--- a.py\n+++ a.py\n@@ -0,0 +1,1 @@\n+zero\n"));
    QCOMPARE(unifiedDiff("a.py", "one\n", {{LineEdit::Kind::Replace, 7, "x"}}), std::string());
    QCOMPARE(unifiedDiff("a.py", "one\r\ntwo\r\n", {{LineEdit::Kind::Replace, 2, "2"}}, 1),
             std::string("--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n"));
    QCOMPARE(unifiedDiff("a.py", "one\ntwo", {{LineEdit::Kind::Replace, 1, "1"}}, 1),
             std::string("--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n\\ No newline at end of file\n"));
    QCOMPARE(unifiedDiff("a.py", "", {{LineEdit::Kind::Replace, 1, "x"}}), std::string());
  }

  void diffsAreApplied() {
    const std::string six = "one\ntwo\nthree\nfour\nfive\nsix";
    for (const int context : {0, 1, 3}) {
      const std::string diff = unifiedDiff("a.py", six, {{LineEdit::Kind::InsertBefore, 1, "zero"}, {LineEdit::Kind::Remove, 2, {}}, {LineEdit::Kind::Replace, 5, "5\nand a half"}}, context);
      QCOMPARE(pathOfDiff(diff), std::string("a.py"));
      QCOMPARE(applyDiff(six, diff).value_or("refused"), std::string("zero\none\nthree\nfour\n5\nand a half\nsix"));
      QVERIFY(!applyDiff("one\n2\nthree\nfour\nfive\nsix", diff));
      QVERIFY(!applyDiff("one\n", diff));
    }
    QCOMPARE(applyDiff("one\r\ntwo", unifiedDiff("a.py", "one\r\ntwo", {{LineEdit::Kind::Replace, 2, "2"}}, 1)).value_or("refused"), std::string("one\r\n2\r\n"));
    QCOMPARE(pathOfDiff("# lines as the trace quotes them\n--- a.py\n"), std::string());
  }

  void callsAreRead() {
    const auto call = callOf("y = self.net(a, f(b, [1, 2]), k=\"x, (\", *rest)  # f(", "net");
    QVERIFY(call.has_value());
    QCOMPARE(call->callee, std::string("self.net"));
    QCOMPARE(call->arguments.size(), size_t{4});
    QCOMPARE(call->arguments[2].keyword, std::string("k"));
    QVERIFY(!callOf("y = net(a,", "net"));
    const std::string text = "@deco\ndef f(self, a: int = 3,\n      b=(1, 2), *args):\n    pass\n";
    const Definition f = definitionAt(splitLines(text), 1);
    QCOMPARE(f.name, std::string("f"));
    QCOMPARE(f.line, 2);
    QCOMPARE(f.parameters, (std::vector<std::string>{"self", "a", "b", "*args"}));
    QVERIFY(!f.isMethod);
    const auto lines = splitLines("class A:\n  def f(s, x):\n    y = x\n    def g(): return y\n    return g()\n  @staticmethod\n  def h(x): return x\ndef f(x):\n  return x\n");
    QVERIFY(definitionAt(lines, 2).isMethod);
    QVERIFY(!definitionAt(lines, 6).isMethod);
    QCOMPARE(definitionAt(lines, 3).line, 0);
    QCOMPARE(definitionAt(lines, 6).name, std::string("h"));
    QCOMPARE(definitionAround(lines, 5, "A.f"), 2);
    QCOMPARE(definitionAround(lines, 4, "A.f.<locals>.g"), 4);
    QCOMPARE(definitionAround(lines, 9, "f"), 8);
    QCOMPARE(definitionAround(lines, 9, "<module>"), 0);
  }

  void cleanupTestCase() {
    QStringList arguments{"-c", "import ast, sys\nfor name in sys.argv[1:]:\n    ast.parse(open(name).read(), name)"};
    for (int i = 0; i < patched_; ++i) arguments << folder_.filePath(QStringLiteral("patched-%1.py").arg(i));
    QProcess python;
    python.start("python3", arguments);
    QVERIFY(python.waitForFinished(60000));
    QVERIFY2(patched_ > 10 && python.exitCode() == 0, python.readAllStandardError().constData());
  }
};

QTEST_GUILESS_MAIN(ExplainTest)
#include "explain_test.moc"
