// Source notes, graphs and relations, against what the synthetic session is known to hold.
#include <QTemporaryDir>
#include <QTest>

#include "profiler/query/graph_part.h"
#include "profiler/query/graphs.h"
#include "profiler/query/memory.h"
#include "profiler/query/slowness.h"
#include "profiler/query/source.h"
#include "profiler/query/steps.h"
#include "profiler/session/schema.h"
#include "profiler/session/writer.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;

class QueriesTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  test::SyntheticFacts facts_;
  std::unique_ptr<Reader> reader_;

 private slots:
  void initTestCase() {
    const std::string path = dir_.filePath("q.fusebox").toStdString();
    auto facts = test::writeSyntheticSession(path, {.launches = 2400, .kernels = 12});
    QVERIFY(facts);
    facts_ = *facts;
    auto reader = Reader::open(path);
    QVERIFY(reader);
    reader_ = std::move(*reader);
  }

  void partsOfGraphsAreKnownByName() {
    const auto second = query::graphPart("forward (part 2 of 3)");
    QCOMPARE(second.part, 2);
    QCOMPARE(second.of, 3);
    for (const char* whole : {"forward", "", "f (part of it)", "f (part 4 of 3)", "f (part 0 of 2)", "f (part 1 of 2) again", "f (part 1 of 99999999999)", "f (part 1 of 1)"})
      QVERIFY2(query::graphPart(whole).isWhole(), whole);
  }

  void sourceHasTextAndNotes() {
    auto files = query::sourceFiles(*reader_);
    QVERIFY(files);
    QCOMPARE(files->size(), size_t{1});
    QCOMPARE(files->front().path, facts_.script);
    QCOMPARE(files->front().breaks, int64_t{1});
    auto text = query::sourceText(*reader_, facts_.script);
    QVERIFY(text && text->find("class Block") != std::string::npos);
    QCOMPARE(query::sourceText(*reader_, "/no/such.py").error().code, ErrorCode::NotFound);
    auto notes = query::lineNotes(*reader_, facts_.script);
    QVERIFY(notes);
    QCOMPARE((*notes)[19].breaks, int64_t{1});
    QCOMPARE((*notes)[11].recompiles, int64_t{1});
    QCOMPARE((*notes)[11].guards, int64_t{1});
    QCOMPARE((*notes)[11].nodes, int64_t{24});  // two compiles of twelve products
    QCOMPARE((*notes)[13].nodes, int64_t{48});
    QCOMPARE((*notes)[13].kernels, int64_t{24});
    QCOMPARE((*notes)[11].launches, int64_t{1200});
    // All kernel time is on the three lines, up to rounding when it is shared.
    const int64_t sum = (*notes)[11].timeNs + (*notes)[12].timeNs + (*notes)[13].timeNs;
    QVERIFY(sum <= facts_.totalNs && sum > facts_.totalNs - 1000);
    QVERIFY((*notes)[13].timeNs > (*notes)[12].timeNs);
  }

  void repeatsAreFound() {
    using V = std::vector<int64_t>;
    QCOMPARE(query::findRepeat({}).period, size_t{0});
    QCOMPARE(query::findRepeat({1, 2, 3, 4, 5}).period, size_t{0});
    V loop = {9, 8, 7};  // what comes before
    for (int i = 0; i < 20; ++i) loop.insert(loop.end(), {1, 2, 2, 3});
    auto repeat = query::findRepeat(loop);
    QCOMPARE(repeat.period, size_t{4});
    QVERIFY(repeat.first <= 3 && repeat.first + repeat.count == loop.size());
    loop.insert(loop.end(), {5, 6});  // and after
    repeat = query::findRepeat(loop);
    QCOMPARE(repeat.period, size_t{4});
    QCOMPARE(repeat.first + repeat.count, loop.size() - 2);
  }

  /// What starts the program is in the list of its files where something happened there alone.
  void filesOfFuseboxAreNoSource() {
    const std::string path = dir_.filePath("files.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    int64_t id = 0;
    for (const char* file : {"/home/me/fusebox/train.py", "/opt/python/fusebox/host.py", "/opt/python/fusebox/_compile.py", "<frozen runpy>"})
      (*made)->post(rows::SourceFile{.id = ++id, .path = std::string(file), .text = std::string("pass\n")});
    (*made)->post(rows::GraphBreak{.id = int64_t{1}, .frame_id = int64_t{1}, .kind = std::string("call"), .reason = std::string("why"), .file = std::string("/opt/python/fusebox/_compile.py"), .line = int64_t{1}});
    (*made)->finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto files = query::sourceFiles(**reader);
    QVERIFY(files);
    QCOMPARE(files->size(), size_t{2});
    QCOMPARE(files->front().path, std::string("/opt/python/fusebox/_compile.py"));
    QCOMPARE(files->back().path, std::string("/home/me/fusebox/train.py"));
  }

  /// Python runs a function at its limit, and which of those that it calls are compiled is another matter in each call: its own calls are the steps.
  void callsThatPythonRunsAreSteps() {
    const std::string path = dir_.filePath("limit.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    Writer& w = **made;
    constexpr int64_t us = 1000, start = 1'000'000'000;
    const auto text = [](const char* s) { return std::string(s); };
    for (int64_t i = 1; i <= 2; ++i) {
      w.post(rows::Frame{.id = i, .name = text(i == 1 ? "step" : "layer"), .file = text("/m.py"), .line = 10 * i, .status = text(i == 1 ? "limit" : "compiled"), .first_seen_ns = start});
      w.post(rows::Compile{.id = i, .frame_id = int64_t{2}, .kind = text("frame"), .status = text("ok"), .thread = int64_t{1}, .file = text("/m.py"), .line = int64_t{20}});
    }
    LaunchRing* ring = w.openRing(1);
    constexpr int64_t kCalls = 20;
    for (int64_t i = 0; i < kCalls; ++i) {
      const int64_t t = start + i * 1000 * us;
      for (int64_t inner = 0; inner < i * i % 7; ++inner) ring->push({t + (10 + 20 * inner) * us, 10 * us, 0, static_cast<int32_t>(1 + inner % 2), kCallTag});
      w.post(rows::CpuEvent{.id = 2 * i + 1, .kind = text("python_call"), .name = text("layer"), .start_ns = t + 300 * us, .dur_ns = 10 * us, .thread = int64_t{1}, .file = text("/m.py"), .line = int64_t{20}});
      w.post(rows::CpuEvent{.id = 2 * i + 2, .kind = text("python_call"), .name = text("step"), .start_ns = t, .dur_ns = 400 * us, .thread = int64_t{1}, .file = text("/m.py"), .line = int64_t{10}});
    }
    Writer::closeRing(ring);
    w.finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto steps = query::findSteps(**reader);
    QVERIFY(steps);
    QCOMPARE(steps->steps.size(), static_cast<size_t>(kCalls - 1));
    QCOMPARE(steps->frames, std::vector<int64_t>{1});
    for (const query::Step& step : steps->steps) QCOMPARE(step.ns(), 1000 * us);
    const auto why = query::whySlow(**reader);
    QVERIFY(why);
    const auto outside = std::find_if(why->rows.begin(), why->rows.end(), [](const query::TimeRow& r) { return r.kind == query::TimeKind::Outside; });
    QVERIFY(outside != why->rows.end() && outside->parts.size() == 2);
    QCOMPARE(outside->count, int64_t{2});
    QCOMPARE(outside->parts[0].name, std::string("step"));
    QVERIFY(outside->parts[0].ns < 390e3 && outside->parts[0].ns > 300e3);
    QCOMPARE(outside->parts[1].name, std::string("layer"));
    QCOMPARE(outside->parts[1].ns, 10e3);
  }

  /// A program whose every nanosecond is known: 10 steps of 1000 µs, in each a forward call with two kernels and, after a pause, a backward
  /// call with one, a copy, and one recompilation in one of them.
  void stepTimeIsSplitExactly() {
    const std::string path = dir_.filePath("steps.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    Writer& w = **made;
    constexpr std::monostate null;
    constexpr int64_t us = 1000, start = 1'000'000'000;
    const auto text = [](const char* s) { return std::string(s); };
    w.post(rows::Info{.key = text("schema_version"), .value = int64_t{kSchemaVersion}});
    w.post(rows::Frame{.id = int64_t{1}, .name = text("f"), .qualname = text("f"), .file = text("/m.py"), .line = int64_t{1},
        .status = text("limit"), .first_seen_ns = start});
    const auto compile = [&](int64_t id, Cell parent, const char* kind, int64_t from, int64_t to, Cell failure) {
      w.post(rows::Compile{.id = id, .frame_id = parent.index() ? Cell{null} : Cell{int64_t{1}}, .parent_id = parent, .attempt = int64_t{0},
          .kind = text(kind), .dynamic = int64_t{0}, .start_ns = from, .end_ns = to, .status = text("ok"), .failure_id = failure,
          .thread = int64_t{1}, .file = text("/m.py"), .line = int64_t{1}});
    };
    compile(1, null, "frame", start - 900 * us, start - 800 * us, null);
    compile(2, int64_t{1}, "backward", start - 800 * us, start - 700 * us, null);
    compile(3, null, "frame", start + 5 * 1000 * us + 650 * us, start + 5 * 1000 * us + 750 * us, int64_t{1});  // in a pause of step 5
    compile(4, int64_t{3}, "backward", start + 5 * 1000 * us + 750 * us, start + 5 * 1000 * us + 780 * us, null);
    w.post(rows::GuardFailure{.id = int64_t{1}, .frame_id = int64_t{1}, .compile_id = int64_t{1}, .guard_id = int64_t{1}, .guard = text("L['x']"),
        .expected = text("8"), .found = text("9"), .outcome = text("recompile"), .file = text("/m.py"), .line = int64_t{1}, .time_ns = start});
    for (int64_t k = 1; k <= 4; ++k) {
      w.post(rows::Kernel{.id = k, .compile_id = int64_t{1}, .name = "kernel" + std::to_string(k), .kind = text(k == 4 ? "extern" : "generated"),
          .op = k == 4 ? Cell{text("aten::copy_")} : Cell{null}, .device = text("cpu"), .read_bytes = int64_t{0}, .write_bytes = int64_t{0},
          .flops = int64_t{0}, .file = text("/m.py"), .line = int64_t{2}, .time_ns = start});
    }
    LaunchRing* ring = w.openRing(1);
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t t = start + i * 1000 * us;
      ring->push({t + 20 * us, 100 * us, 0, 1, 1});
      ring->push({t + 130 * us, 50 * us, 0, 2, 2});
      ring->push({t, 200 * us, 0, 1, kCallTag});
      ring->push({t, 5 * us, 0, 1, kGuardCheckTag});
      ring->push({t + 310 * us, 190 * us, 0, 3, 3});
      ring->push({t + 500 * us, 40 * us, 0, 4, 4});
      ring->push({t + 300 * us, 300 * us, 0, 2, kCallTag});
    }
    Writer::closeRing(ring);
    w.finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto steps = query::findSteps(**reader);
    QVERIFY(steps);
    QCOMPARE(steps->steps.size(), size_t{9});
    for (size_t i = 0; i < steps->steps.size(); ++i) {
      // From the longest pause on: before the forward call, with what was compiled for it.
      QCOMPARE(steps->steps[i].startNs, i == 0 ? start - 900 * us : start + static_cast<int64_t>(i) * 1000 * us);
      QCOMPARE(steps->steps[i].endNs, start + static_cast<int64_t>(i + 1) * 1000 * us);
    }
    auto why = query::whySlow(**reader);
    QVERIFY(why);
    QVERIFY(!why->wholeRun);
    QCOMPARE(why->stepNs, 1e6);
    const std::map<query::TimeKind, double> expected = {{query::TimeKind::Kernels, 340e3}, {query::TimeKind::Copies, 40e3}, {query::TimeKind::Guards, 5e3},
                                                        {query::TimeKind::LaunchGaps, (50 + 70 - 5) * 1e3}, {query::TimeKind::Outside, 500e3}};
    double sum = 0;
    QCOMPARE(why->rows.size(), expected.size());
    for (const auto& row : why->rows) {
      QVERIFY2(expected.contains(row.kind) && std::abs(row.ns - expected.at(row.kind)) < 1, query::timeKindName(row.kind));
      sum += row.ns;
      if (row.kind == query::TimeKind::Kernels) {
        QCOMPARE(row.count, int64_t{3});
        QCOMPARE(row.parts[0].id, int64_t{3});
        QCOMPARE(row.parts[0].ns, 190e3);
      }
    }
    // A step in which something was compiled is no typical one; what compiling took stands apart, backward with its forward.
    QCOMPARE(why->steps, int64_t{9});
    QCOMPARE(why->compiling, int64_t{2});
    QCOMPARE(why->looked, int64_t{7});
    QCOMPARE(why->limits.size(), size_t{1});
    QVERIFY2(why->limits[0].starts_with("1 function reached the recompile limit, and runs in Python where no entry fits: f;"), why->limits[0].c_str());
    QCOMPARE(why->apart.size(), size_t{2});
    QCOMPARE(why->apart[0].kind, query::TimeKind::Compile);
    QCOMPARE(why->apart[0].ns, 200e3);
    QCOMPARE(why->apart[0].count, int64_t{1});
    QCOMPARE(why->apart[1].kind, query::TimeKind::Recompiles);
    QCOMPARE(why->apart[1].ns, 130e3);
    QCOMPARE(why->apart[1].parts[0].name, std::string("f: L['x']: expected 8, found 9"));
    QCOMPARE(why->apart[1].parts[1].name, std::string("f (backward): L['x']: expected 8, found 9"));
    QCOMPARE(why->apart[1].parts[0].subject, query::TimeSubject::Failure);
    QVERIFY(std::abs(sum - why->stepNs) < 1);
    auto whole = query::whySlow(**reader, true);
    QVERIFY(whole && whole->wholeRun);
    sum = 0;
    for (const auto& row : whole->rows) sum += row.ns;
    QVERIFY(std::abs(sum - whole->stepNs) < 1);
  }

  /// The step that is split is a typical one: few long steps at the start and rare ones later are not mixed into it.
  /// Of four steps one that was disturbed is no part of what a step takes.
  void aDisturbedStepIsNotSplit() {
    const std::string path = dir_.filePath("disturbed.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    Writer& w = **made;
    const auto text = [](const char* s) { return std::string(s); };
    w.post(rows::Info{.key = text("schema_version"), .value = int64_t{kSchemaVersion}});
    int64_t now = 1'000'000'000, id = 0;
    for (const int64_t length : {1000, 1100, 3500, 1050}) {
      w.post(rows::CpuEvent{.id = ++id, .kind = text("user_annotation"), .name = text("ProfilerStep#") + std::to_string(id), .start_ns = now, .dur_ns = length * 1000, .thread = int64_t{1}});
      now += length * 1000;
    }
    w.finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto why = query::whySlow(**reader);
    QVERIFY2(why, why ? "" : why.error().text().c_str());
    QCOMPARE(why->steps, int64_t{4});
    QCOMPARE(why->looked, int64_t{3});
    QCOMPARE(why->stepNs, 1050e3);
  }

  void theTypicalStepIsSplit() {
    const std::string path = dir_.filePath("typical.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    Writer& w = **made;
    constexpr int64_t us = 1000, start = 1'000'000'000;
    const auto text = [](const char* s) { return std::string(s); };
    w.post(rows::Info{.key = text("schema_version"), .value = int64_t{kSchemaVersion}});
    w.post(rows::Frame{.id = int64_t{1}, .name = text("f"), .qualname = text("f"), .file = text("/m.py"), .line = int64_t{1},
        .status = text("compiled"), .first_seen_ns = start});
    w.post(rows::Compile{.id = int64_t{1}, .frame_id = int64_t{1}, .attempt = int64_t{0}, .kind = text("frame"), .dynamic = int64_t{0},
        .start_ns = start + 100 * us, .end_ns = start + 30'000 * us, .status = text("ok"), .thread = int64_t{1}, .file = text("/m.py"),
        .line = int64_t{1}});
    w.post(rows::Kernel{.id = int64_t{1}, .compile_id = int64_t{1}, .name = text("k"), .kind = text("generated"), .device = text("cpu"),
        .read_bytes = int64_t{0}, .write_bytes = int64_t{0}, .flops = int64_t{0}, .file = text("/m.py"), .line = int64_t{2}, .time_ns = start});
    LaunchRing* ring = w.openRing(1);
    int64_t now = start;
    for (int64_t i = 0; i < 2000; ++i) {
      const int64_t warm = i < 5 ? 40'000 * us : i % 500 == 0 ? 5'000 * us : 0;  // a slow start, and pauses later
      ring->push({now + 10 * us, 60 * us + warm, 0, 1, 1});
      ring->push({now, 80 * us + warm, 0, 1, kCallTag});
      now += 100 * us + warm;
    }
    Writer::closeRing(ring);
    w.finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto why = query::whySlow(**reader);
    QVERIFY(why);
    QCOMPARE(why->medianNs, 100e3);
    QCOMPARE(why->stepNs, 100e3);
    QCOMPARE(why->compiling, int64_t{1});
    for (const auto& row : why->rows) {
      if (row.kind == query::TimeKind::Kernels) QCOMPARE(row.ns, 60e3);
      QVERIFY(row.kind != query::TimeKind::Compile);
    }
    QCOMPARE(why->apart.size(), size_t{1});
    QVERIFY2(query::toText(*why).find("apart from them: 1 step in which something was compiled") != std::string::npos, query::toText(*why).c_str());
  }

  void nothingToSplitIsSaid() {
    const std::string path = dir_.filePath("empty.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    (*made)->post(rows::Info{.key = std::string("schema_version"), .value = int64_t{kSchemaVersion}});
    (*made)->finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    QCOMPARE(query::whySlow(**reader).error().code, ErrorCode::NotFound);
    QVERIFY(query::memoryOf(**reader)->graphs.empty());
    QCOMPARE(query::lifetimesOf(**reader, 1).error().code, ErrorCode::NotFound);
  }

  /// Three planned buffers, one of which takes another's place, and a result that lives on.
  void lifetimesAndPeak() {
    const std::string path = dir_.filePath("memory.fusebox").toStdString();
    auto made = Writer::create(path);
    QVERIFY(made);
    Writer& w = **made;
    constexpr std::monostate null;
    const auto text = [](const char* s) { return std::string(s); };
    w.post(rows::Info{.key = text("schema_version"), .value = int64_t{kSchemaVersion}});
    w.post(rows::Info{.key = text("memory.peak_rss_bytes"), .value = int64_t{123456}});
    w.post(rows::Frame{.id = int64_t{1}, .name = text("f"), .qualname = text("f"), .file = text("/m.py"), .line = int64_t{1},
        .status = text("compiled"), .first_seen_ns = int64_t{1}});
    for (int64_t c : {1, 2}) {
      w.post(rows::Compile{.id = c, .frame_id = c == 1 ? Cell{int64_t{1}} : Cell{null}, .parent_id = c == 1 ? Cell{null} : Cell{int64_t{1}},
          .attempt = int64_t{0}, .kind = text(c == 1 ? "frame" : "backward"), .dynamic = int64_t{0}, .start_ns = c, .end_ns = c + 1,
          .status = text("ok"), .thread = int64_t{1}, .file = text("/m.py"), .line = int64_t{1}});
    }
    const auto graph = [&](int64_t id, int64_t compile, const char* stage, const char* direction) {
      w.post(rows::Graph{.id = id, .compile_id = compile, .stage = text(stage), .direction = text(direction), .name = text("f"),
          .node_count = int64_t{3}, .edge_count = int64_t{0}, .input_count = int64_t{1}, .output_count = int64_t{1}, .time_ns = int64_t{1}});
    };
    graph(1, 1, "forward", "forward");
    graph(2, 1, "post_fusion", "forward");
    graph(3, 2, "post_fusion", "backward");
    const auto placeholder = [&](int64_t id, int64_t in, const char* name, int64_t bytes) {
      w.post(rows::Node{.id = id, .graph_id = in, .position = id, .name = text(name), .kind = text("placeholder"), .op = text(""),
          .dtype = text("float32"), .shape = text("[8]"), .device = text("cpu"), .bytes = bytes, .is_backward = int64_t{0}});
    };
    placeholder(1, 1, "weight", 64);
    placeholder(2, 3, "saved_weight", 64);
    placeholder(3, 3, "saved_relu", 256);
    placeholder(4, 3, "tangent_0", 32);
    for (int64_t g = 0; g < 4; ++g) w.post(rows::FusionGroup{.id = g + 1, .compile_id = int64_t{1}, .graph_id = int64_t{2}, .position = g,
        .name = "step" + std::to_string(g), .kind = text("pointwise"), .read_bytes = int64_t{0}, .write_bytes = int64_t{0},
        .bytes_saved = int64_t{0}});
    const auto buffer = [&](int64_t id, int64_t in, const char* name, const char* kind, int64_t bytes, int64_t first, int64_t last, Cell offset, Cell reuses) {
      w.post(rows::Buffer{.id = id, .compile_id = int64_t{1}, .graph_id = in, .name = text(name), .kind = text(kind), .dtype = text("float32"),
          .shape = text("[8]"), .device = text("cpu"), .bytes = bytes, .first_use = first, .last_use = last, .pool_offset = offset,
          .reuses_id = reuses});
    };
    buffer(1, 2, "x", "input", 1000, 0, 3, null, null);
    buffer(2, 2, "a", "planned", 100, 0, 1, int64_t{0}, null);
    buffer(3, 2, "b", "planned", 50, 1, 2, int64_t{128}, null);
    buffer(4, 2, "c", "planned", 80, 2, 3, int64_t{0}, int64_t{2});
    buffer(5, 2, "out", "owned", 40, 1, 1, null, null);
    buffer(6, 3, "g", "planned", 8, 0, 0, int64_t{0}, null);
    buffer(7, 2, "d", "planned", 60, 3, 3, int64_t{0}, int64_t{4});  // written over c, which it reads: nothing more is alive
    buffer(10, 2, "mm", "allocated", 4, 2, 2, null, null);  // of a library call, freed at once
    for (int64_t id : {8, 9})  // fused away: no step makes or reads it, so it never is memory
      buffer(id, 2, "gone", id == 8 ? "owned" : "planned", 7000, -1, -1, null, null);
    w.finish();
    auto reader = Reader::open(path);
    QVERIFY(reader);
    auto memory = query::memoryOf(**reader);
    QVERIFY(memory);
    QCOMPARE(memory->measured.peakRssBytes, int64_t{123456});
    QCOMPARE(memory->graphs.size(), size_t{2});
    const auto& forward = memory->graphs[0];
    QCOMPARE(forward.peakBytes, int64_t{190});  // a, b and the result at step 1
    QCOMPARE(forward.peakStep, int64_t{1});
    QCOMPARE(forward.poolBytes, int64_t{178});
    QCOMPARE(forward.plannedBytes, int64_t{290});
    QCOMPARE(forward.allocatedBytes, int64_t{4});
    QCOMPARE(forward.resultBytes, int64_t{40});
    QCOMPARE(memory->graphs[1].savedBytes, int64_t{256});
    for (const auto& [name, line] : std::map<std::string, std::string>{{"Net.forward", "Net.forward, from line 15 (backward), entry 0 "}, {std::string(50, 'n'), "n…, from line 15 (backward), entry 0 "}}) {
      memory->graphs[1].name = name;
      memory->graphs[1].resumesAt = 15;
      memory->graphs[1].entry = 0;
      QVERIFY2(query::toText(*memory).find(line) != std::string::npos, query::toText(*memory).c_str());
    }
    auto lives = query::lifetimesOf(**reader, 2);
    QVERIFY(lives);
    QCOMPARE(lives->alive, (std::vector<int64_t>{100, 190, 174, 120}));
    QCOMPARE(lives->stepNames[3], std::string("step3"));
    QCOMPARE(lives->saved.size(), size_t{2});
    QVERIFY(lives->saved[0].name == "relu" && !lives->saved[0].kept && lives->saved[1].kept);
    QVERIFY(query::toText(*lives).find("190 B at its peak, at step 1 of 4 (step1)") != std::string::npos);
  }

  void graphCarriesGroups() {
    auto id = query::findGraph(*reader_, "post_fusion");
    QVERIFY(id);
    auto graph = query::loadGraph(*reader_, *id);
    QVERIFY(graph);
    QCOMPARE(graph->nodes.size(), size_t{2 + 48 + 1});
    QCOMPARE(graph->groups.size(), size_t{24});
    QCOMPARE(graph->nodes[2].op, "aten::mm");
    QVERIFY(graph->nodes[2].group != 0 && graph->nodes[2].group != graph->nodes[3].group);
    QCOMPARE(graph->nodes[3].group, graph->nodes[5].group);
    QCOMPARE(graph->nodes[3].line, int64_t{12});
    QVERIFY(!graph->edges.empty());
  }

  void capturedGraphShowsItsFusionsThroughOrigins() {
    auto captured = query::findGraph(*reader_, "captured");
    QVERIFY(captured);
    auto graph = query::loadGraph(*reader_, *captured);
    QVERIFY(graph);
    QCOMPARE(graph->groups.size(), size_t{24});
    QCOMPARE(graph->nodes[3].group, graph->nodes[5].group);
  }

  void unknownStageNamesThoseThatExist() {
    auto missing = query::findGraph(*reader_, "nonsense");
    QVERIFY(!missing);
    QCOMPARE(missing.error().code, ErrorCode::NotFound);
    QVERIFY(missing.error().message.find("post_fusion") != std::string::npos);
    QCOMPARE(query::loadGraph(*reader_, 9999).error().code, ErrorCode::NotFound);
  }
};

QTEST_GUILESS_MAIN(QueriesTest)
#include "queries_test.moc"
