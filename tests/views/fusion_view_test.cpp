// Fusions: decisions that can be changed and compiled again, and measured errors.
#include <QFile>
#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <set>

#include "profiler/query/recompiles.h"
#include "profiler/session/reader.h"
#include "profiler/session/writer.h"
#include "tests/views/shown_view.h"
#include "views/fusion/fusion_model.h"
#include "views/fusion/fusion_view.h"
#include "views/fusion/graph_compiler.h"
#include "views/graph/graph_view.h"
#include "views/memory/memory_model.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;

namespace {

/// A scheduled graph of three operations with two decisions, kept so that it can be compiled again, and with measured errors.
void writeFusionSession(const std::string& path, const char* refusal = "different iteration spaces") {
  namespace rows = session::rows;
  auto made = session::Writer::create(path);
  if (!made) qFatal("%s", made.error().text().c_str());
  session::Writer& w = **made;
  const session::Cell null;
  const auto text = [](const char* t) { return session::Cell{std::string(t)}; };
  w.post(rows::Frame{.id = int64_t{1}, .name = text("step"), .qualname = text("step"), .file = text("a.py"), .line = int64_t{3},
      .status = text("compiled"), .first_seen_ns = int64_t{1}});
  w.post(rows::Compile{.id = int64_t{1}, .frame_id = int64_t{1}, .attempt = int64_t{0}, .kind = text("frame"), .backend = text("inductor"),
      .dynamic = int64_t{0}, .start_ns = int64_t{1}, .end_ns = int64_t{2}, .status = text("ok"), .thread = int64_t{1}, .file = text("a.py"),
      .line = int64_t{3}});
  for (int64_t g = 1; g <= 2; ++g) {
    w.post(rows::Graph{.id = g, .compile_id = int64_t{1}, .stage = text(g == 1 ? "forward" : "post_fusion"), .direction = text("inference"),
        .name = text("step"), .parent_id = g == 2 ? session::Cell{int64_t{1}} : null, .node_count = int64_t{4}, .edge_count = int64_t{3},
        .input_count = int64_t{1}, .output_count = int64_t{1}, .time_ns = int64_t{1}});
    int64_t position = 0;
    for (const char* name : {"x", "exp", "neg", "sum"}) {
      const int64_t node = (g - 1) * 4 + ++position;
      w.post(rows::Node{.id = node, .graph_id = g, .position = position - 1, .name = text(name),
          .kind = text(position == 1 ? "placeholder" : "call"), .op = text(position == 1 ? "" : "aten::op"), .dtype = text("float32"),
          .shape = text("[64]"), .stride = text("[1]"), .device = text("cpu"), .bytes = int64_t{256}, .is_backward = int64_t{0},
          .file = text("a.py"), .line = 3 + position});
      if (position > 1) w.post(rows::Edge{.graph_id = g, .src = node - 1, .dst = node, .output = int64_t{0}, .arg = int64_t{0}});
      if (g == 1 && position > 1)
        w.post(rows::Numerics{.graph_id = g, .node_id = node, .output = int64_t{0}, .dtype = text("float32"), .elements = int64_t{64},
            .eager_abs = 1e-7, .eager_rel = 1e-8, .compiled_abs = position == 4 ? 0.5 : 2e-7, .compiled_rel = position == 4 ? 0.05 : 2e-8,
            .difference_abs = 1e-7, .difference_ulp = 2.0, .magnitude = 10.0, .mismatches = int64_t{0}, .is_divergent = int64_t{position == 4}});
    }
  }
  w.post(rows::SavedGraph{.graph_id = int64_t{1}, .format = int64_t{1}, .text = text("{}")});
  const auto decision = [&](int64_t id, const char* a, const char* b, int64_t fused, const char* why) {
    w.post(rows::FusionDecision{.id = id, .compile_id = int64_t{1}, .graph_id = int64_t{2}, .position = id - 1, .a = text(a), .b = text(b),
        .a_node = int64_t{6}, .b_node = int64_t{7}, .group_id = fused ? session::Cell{int64_t{1}} : null, .kind = text("vertical"),
        .fused = fused, .reason = text(why), .score_bytes = int64_t{512}});
  };
  decision(1, "exp_0", "neg_1", 1, "saves 512 bytes of memory traffic");
  decision(2, "exp_0", "sum_2", 0, refusal);
  w.post(rows::FusionGroup{.id = int64_t{1}, .compile_id = int64_t{1}, .graph_id = int64_t{2}, .position = int64_t{0},
      .name = text("fused_exp_neg"), .kind = text("pointwise"), .read_bytes = int64_t{256}, .write_bytes = int64_t{256},
      .bytes_saved = int64_t{512}});
  w.finish();
}

/// Stands for the fusebox program: writes down its words, and answers with `report`.
QString standIn(const QTemporaryDir& folder, const QByteArray& report) {
  QFile answer(folder.filePath("report.json"));
  if (!answer.open(QIODevice::WriteOnly)) qFatal("no report");
  answer.write(report);
  QFile program(folder.filePath("engine.sh"));
  if (!program.open(QIODevice::WriteOnly)) qFatal("no program");
  program.write("#!/bin/sh\necho \"$@\" > '" + folder.filePath("words").toUtf8() + "'\ncat '" + answer.fileName().toUtf8() + "'\n");
  program.close();
  program.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  return program.fileName();
}

}  // namespace

class FusionViewTest : public QObject, private test::ShownView {
  Q_OBJECT
  QTemporaryDir folder_;

 private slots:
  /// Of a function with a break and a recompile there are eight graphs: two parts, two entries, two directions. No two have one name.
  void everyGraphHasANameOfItsOwn() {
    namespace rows = session::rows;
    QTemporaryDir folder;
    const std::string path = folder.filePath("entries.fusebox").toStdString();
    const auto text = [](const char* t) { return session::Cell{std::string(t)}; };
    {
      auto made = session::Writer::create(path);
      QVERIFY(made);
      session::Writer& w = **made;
      for (int64_t frame = 1; frame <= 2; ++frame) {
        w.post(rows::Frame{.id = frame, .parent_id = frame == 2 ? session::Cell{int64_t{1}} : session::Cell{}, .name = text("step"), .qualname = text("M.step"), .file = text("a.py"),
            .line = frame * 10, .resume_offset = frame == 2 ? session::Cell{int64_t{40}} : session::Cell{}, .status = text("compiled"), .first_seen_ns = frame});
      }
      w.post(rows::Frame{.id = int64_t{3}, .parent_id = int64_t{1}, .name = text("step"), .qualname = text("M.step"), .file = text("a.py"), .line = int64_t{20}, .resume_offset = int64_t{52},
          .status = text("compiled"), .first_seen_ns = int64_t{9}});
      int64_t id = 0;
      for (int64_t frame = 1; frame <= 2; ++frame) {
        for (int entry = 0; entry < 2; ++entry) {
          const int64_t forward = ++id;
          for (const bool backward : {false, true}) {
            const int64_t compile = backward ? ++id : forward;
            w.post(rows::Compile{.id = compile, .frame_id = frame, .parent_id = backward ? session::Cell{forward} : session::Cell{}, .kind = text(backward ? "backward" : "frame"),
                .start_ns = compile, .end_ns = compile + 1, .status = text("ok"), .thread = int64_t{1}, .file = text("a.py"), .line = frame * 10});
            w.post(rows::Graph{.id = compile, .compile_id = compile, .stage = text("post_fusion"), .direction = text(backward ? "backward" : "forward"), .name = text("step"),
                .node_count = int64_t{1}, .edge_count = int64_t{0}, .time_ns = int64_t{1}});
            w.post(rows::Buffer{.id = compile, .compile_id = compile, .graph_id = compile, .name = text("buf0"), .kind = text("owned"), .bytes = int64_t{64}, .first_use = int64_t{0}, .last_use = int64_t{0}});
          }
        }
      }
    }
    auto reader = session::Reader::open(path);
    QVERIFY(reader);
    const auto choices = loadFusionChoices(**reader);
    QVERIFY(choices);
    std::set<std::string> labels, names;
    for (const auto& choice : *choices) labels.insert(choice.label);
    QCOMPARE(labels.size(), size_t{8});
    QVERIFY(labels.contains("step  a.py:10, entry 0") && labels.contains("step (backward)  a.py:20, from line 20, entry 1"));
    // Two breaks on one line have two parts behind them.
    const auto chains = query::recompileChains(**reader, true);
    QVERIFY(chains && chains->size() == 3);
    for (const auto& chain : *chains) names.insert(query::chainName(chain));
    QVERIFY(names.contains("M.step") && names.contains("M.step, from line 20, part 1") && names.contains("M.step, from line 20, part 2"));
    names.clear();
    const auto memory = query::memoryOf(**reader);
    QVERIFY(memory);
    for (const auto& graph : memory->graphs) names.insert(memoryGraphName(graph));
    QCOMPARE(names.size(), size_t{8});
    QVERIFY(names.contains("M.step, entry 0") && names.contains("M.step, from line 20 (backward), entry 1"));
  }

  void initTestCase() {
    Theme::instance().apply(Theme::Mode::Light);
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
  }

  void fusionsCanBeForbiddenAndCompared() {
    const QString path = folder_.filePath("fusion.fusebox");
    writeFusionSession(path.toStdString());
    program_ = standIn(folder_, R"({"graph": "step", "session": "/tmp/what-if.fusebox",
      "against_eager": {"original": {"max_relative": 1e-7, "agrees": true}, "what-if": {"max_relative": 0.5, "agrees": false}},
      "runs": [{"label": "original", "times_ms": {"median": 1.0, "min": 0.9}, "launches": 2, "extern_calls": 0, "bytes": 1000},
               {"label": "what-if", "times_ms": {"median": 1.5, "min": 1.4}, "launches": 3, "extern_calls": 0, "bytes": 3000,
                "decisions": [{"a": "exp_0", "b": "neg_1", "reason": "forbidden by user"}]}],
      "change": {"time_percent": 50.0, "time_percent_from": 41.0, "time_percent_to": 55.5, "bytes": 2000, "launches": 1}})");
    auto view = show<FusionView>(path);
    auto* decisions = view->findChild<QTableView*>("fusion.decisions");
    QTRY_COMPARE(decisions->model()->rowCount(), 2);
    QVERIFY(view->findChild<QLabel*>("fusion.facts")->text().contains("saved by fusing"));
    const auto action = [&](const char* name) {
      for (QAction* a : view->viewActions())
        if (a->objectName().endsWith(QLatin1String(name))) return a;
      qFatal("no action %s", name);
    };
    // The fused one is chosen; both decisions are about the same node.
    int fused = 0;
    while (decisions->model()->index(fused, kDecisionOutcome).data().toString() != "fused") ++fused;
    decisions->setFocus();
    decisions->setCurrentIndex(decisions->model()->index(fused, 0));
    QVERIFY(action("forbid")->isEnabled());
    action("forbid")->trigger();
    const auto rule = [&](int row) { return decisions->model()->index(row, kDecisionRule).data().toString(); };
    QCOMPARE(rule(fused), "forbid");
    QCOMPARE(rule(1 - fused), "");
    QCOMPARE(decisions->currentIndex().row(), fused);
    QCOMPARE(action("compile")->text(), "Compile and compare");
    action("compile")->trigger();
    auto* result = view->findChild<QTableView*>("fusion.result");
    QTRY_COMPARE(result->model()->rowCount(), 3);
    QFile words(folder_.filePath("words"));
    QVERIFY(words.open(QIODevice::ReadOnly));
    const QString said = QString::fromUtf8(words.readAll());
    QVERIFY2(said.startsWith("replay " + path + " --graph 2 --json") && said.contains("--forbid exp_0,neg_1"), qPrintable(said));
    QVERIFY2(said.contains("/cache/fusebox/replayed/fusion-replay-"), qPrintable(said));  // not beside the person's file
    const QString verdict = view->findChild<QLabel*>("fusion.verdict")->text();
    QVERIFY2(verdict.contains("50.0 % slower (41.0 to 55.5 %)") && verdict.contains("forbidden by user"), qPrintable(verdict));
    // The window clears this view before it opens what it was asked to.
    QString opened;
    connect(bus_.get(), &SelectionBus::fileRequested, view.get(), [&](const QString& session) {
      view->setSession(nullptr);
      opened = session;
    });
    view->findChild<QPushButton*>("fusion.open")->click();
    QCOMPARE(opened, "/tmp/what-if.fusebox");
  }

  void whatIfStartsFromTheRulesInForce() {
    const std::vector<FusionWish> recorded{{false, "a", "b"}, {true, "c", "d"}};
    QCOMPARE(replayWords(recorded, recorded), std::vector<std::string>{});
    QCOMPARE(replayWords({{false, "b", "a"}, {false, "x", "y"}}, recorded), (std::vector<std::string>{"--allow", "c,d", "--forbid", "x,y"}));
    const std::string path = folder_.filePath("rules.fusebox").toStdString();
    writeFusionSession(path, "forbidden by user");
    auto reader = session::Reader::open(path);
    QVERIFY(reader);
    auto content = loadFusion(**reader, 2);
    QVERIFY(content);
    QCOMPARE(content->recorded, (std::vector<FusionWish>{{false, "exp_0", "sum_2"}}));
    auto view = show<FusionView>(QString::fromStdString(path));
    auto* decisions = view->findChild<QTableView*>("fusion.decisions");
    QTRY_COMPARE(decisions->model()->rowCount(), 2);
    QStringList rules;
    for (int r = 0; r < 2; ++r) rules << decisions->model()->index(r, kDecisionRule).data().toString();
    rules.sort();
    QCOMPARE(rules, (QStringList{"", "forbid"}));
    for (QAction* a : view->viewActions())
      if (a->objectName().endsWith(QLatin1String("compile"))) QCOMPARE(a->text(), QStringLiteral("Compile this graph"));
  }

  void aProgramFromOutsideIsLoadedOnlyWithConsent() {
    program_ = standIn(folder_, "{}");
    const QString words = folder_.filePath("words");
    QFile::remove(words);
    auto view = show<FusionView>(QString::fromUtf8(IMPORTER_DATA "/exported.pt2"));
    QAction* compile = nullptr;
    for (QAction* a : view->viewActions()) compile = a->objectName().endsWith(QLatin1String("compile")) ? a : compile;
    QTRY_VERIFY(compile->isEnabled());
    const auto box = [&] { return view->findChild<QMessageBox*>("fusion.consent"); };
    compile->trigger();
    QTRY_VERIFY(box() && box()->isVisible());
    QVERIFY2(box()->text().contains("exported.pt2"), qPrintable(box()->text()));
    box()->reject();
    QTRY_VERIFY(!box());
    QVERIFY(!QFile::exists(words));
    compile->trigger();
    QTRY_VERIFY(box() && box()->isVisible());
    box()->findChild<QPushButton*>("fusion.consent.load")->click();
    QTRY_VERIFY(QFile::exists(words));
    QTRY_VERIFY(compile->isEnabled() && !box());
    QFile::remove(words);
    compile->trigger();  // asked once a file
    QVERIFY(!compile->isEnabled());  // from this moment, not only when the process says that it runs
    QTRY_VERIFY(QFile::exists(words));
    QVERIFY(!box());
  }

  void aSessionFromElsewhereIsCompiledOnlyWithConsent() {
    program_ = standIn(folder_, "{}");
    const QString words = folder_.filePath("words"), foreign = folder_.filePath("foreign.fusebox");
    QFile::remove(words);
    QFile::remove(foreign);
    writeFusionSession(foreign.toStdString());
    {
      auto database = session::Database::openForWriting(foreign.toStdString());
      QVERIFY(database && database->execute("UPDATE t_info SET value = 'another-machine' WHERE key = 'hostname'").has_value());
    }
    auto view = show<FusionView>(foreign);
    QAction* compile = nullptr;
    for (QAction* a : view->viewActions()) compile = a->objectName().endsWith(QLatin1String("compile")) ? a : compile;
    QTRY_VERIFY(compile->isEnabled());
    compile->trigger();
    QTRY_VERIFY(view->findChild<QMessageBox*>("fusion.consent"));
    auto* box = view->findChild<QMessageBox*>("fusion.consent");
    QVERIFY2(box->text().contains("recorded elsewhere"), qPrintable(box->text()));
    QVERIFY(!QFile::exists(words));
    box->findChild<QPushButton*>("fusion.consent.load")->click();
    QTRY_VERIFY(QFile::exists(words));
  }

  void aSweepOfSizesIsATableAndAPlot() {
    auto report = readReplayReport(R"({"session": "/tmp/s", "sweep": [
      {"sizes": {"s0": 8}, "label": "s0=8", "times_ms": {"median": 1.0, "min": 0.9, "max": 1.2}, "against_eager": {"max_relative": 0, "agrees": true}},
      {"sizes": {"s0": 1}, "left_out": "s0=1: this graph holds for s0 from 2 to 64"},
      {"sizes": {"s0": 16}, "label": "s0=16", "times_ms": {"median": 3.0, "min": 2.0, "max": 4.0}, "against_eager": {"max_relative": 0.5, "agrees": false}}]})");
    QVERIFY(report);
    QCOMPARE(report->rows.size(), size_t{2});
    QCOMPARE(report->outcomes, (std::vector<std::string>{"left out: s0=1: this graph holds for s0 from 2 to 64"}));
    QCOMPARE(report->sizes.size(), size_t{2});
    QCOMPARE(report->sizes[1].size, 16.0);
    QCOMPARE(report->sizes[1].name, std::string("s0"));
    QVERIFY(report->sizes[1].isWrong && !report->sizes[0].isWrong);
    QVERIFY(report->verdict.find("s0=8") != std::string::npos && report->verdict.find("3.00 ms") != std::string::npos);
    SizePlot plot;
    plot.resize(400, 240);
    plot.setPoints(report->sizes);
    QVERIFY(plot.grab().toImage() != SizePlot().grab().toImage().scaled(400, 240));
    plot.setPoints({{"s0", "s0=0", 0, 1, 1, 1}});  // no logarithm
    plot.grab();
    QVERIFY(!readReplayReport(R"({"sweep": 3})"));
    QCOMPARE(sizeWords("  s0=1:512:x2   s1=4 "), (std::vector<std::string>{"--size=s0=1:512:x2", "--size=s1=4"}));
  }

  void aSecondPressTakesAWishBack() {
    const QString path = folder_.filePath("fusion.fusebox");
    writeFusionSession(path.toStdString());
    auto view = show<FusionView>(path);
    auto* decisions = view->findChild<QTableView*>("fusion.decisions");
    QTRY_COMPARE(decisions->model()->rowCount(), 2);
    decisions->setFocus();
    decisions->setCurrentIndex(decisions->model()->index(0, 0));
    for (const char* wanted : {"forbid", ""}) {
      for (QAction* a : view->viewActions())
        if (a->objectName().endsWith(QLatin1String("forbid"))) a->trigger();
      QCOMPARE(decisions->currentIndex().siblingAtColumn(kDecisionRule).data().toString(), QString::fromLatin1(wanted));
    }
  }

  void measuredErrorsAreListedAtOnce() {
    const QString path = folder_.filePath("fusion.fusebox");
    writeFusionSession(path.toStdString());
    program_ = standIn(folder_, R"({"session": "/tmp/n.fusebox", "divergent": 1, "first_divergence": {"name": "exp", "op": "aten::exp"},
      "rows": [{"name": "exp", "op": "aten::exp", "dtype": "float32", "compiled_rel": 0.5, "eager_rel": null, "local_abs": 1.0, "magnitude": 2.0,
                "difference_ulp": 7, "mismatches": 2, "is_divergent": true, "note": "", "output": 0}, "damaged"]})");
    auto view = show<FusionView>(path);
    QTRY_COMPARE(view->findChild<QTableView*>("fusion.decisions")->model()->rowCount(), 2);
    for (QAction* a : view->viewActions())
      if (a->objectName().endsWith("numerics")) a->trigger();
    auto* errors = view->findChild<QTableView*>("fusion.numerics");
    QTRY_COMPARE(errors->model()->rowCount(), 2);
    const auto cell = [&](int column) { return errors->model()->index(0, column).data().toString(); };
    QCOMPARE(cell(kNumericsCompiled), "5.00e-01");
    QCOMPARE(cell(kNumericsLocal), "5.00e-01");
    QCOMPARE(cell(kNumericsNote), "divergent; 2 elements differ in kind");
    QVERIFY(errors->isVisible());
  }

  void aFusionIsFoundBeforeAnythingIsLoaded() {
    const QString path = folder_.filePath("fusion.fusebox");
    writeFusionSession(path.toStdString());
    auto view = show<FusionView>(path);
    view->showLocation(Location::of(ObjectKind::Group, 1));
    auto* groups = view->findChild<QTableView*>("fusion.groups");
    QTRY_COMPARE(groups->model()->rowCount(), 1);
    QTRY_COMPARE(groups->currentIndex().row(), 0);
    // What the program adds meanwhile is shown too.
    auto database = session::Database::openForWriting(path.toStdString());
    QVERIFY(database && database->execute("INSERT INTO t_fusion_group(id, compile_id, graph_id, position, name, kind) VALUES(2, 1, 2, 1, 'later', 'reduction')"));
    view->refresh();
    QTRY_COMPARE(groups->model()->rowCount(), 2);
    QCOMPARE(groups->currentIndex().siblingAtColumn(kGroupName).data().toString(), QStringLiteral("fused_exp_neg"));
  }

  void measuredErrorsAreListedAndPainted() {
    const QString path = folder_.filePath("fusion.fusebox");
    writeFusionSession(path.toStdString());
    {
      program_ = folder_.filePath("nothing");
      auto view = show<FusionView>(path);
      auto* errors = view->findChild<QTableView*>("fusion.numerics");
      QTRY_COMPARE(errors->model()->rowCount(), 3);
      int divergent = 0;
      for (int row = 0; row < 3; ++row) divergent += errors->model()->index(row, kNumericsNote).data().toString().startsWith("divergent");
      QCOMPARE(divergent, 1);
      view->findChild<QTableView*>("fusion.decisions");
      for (QAction* a : view->viewActions())
        if (a->objectName().endsWith("numerics")) a->trigger();
      QTRY_VERIFY(view->findChild<QLabel*>("fusion.verdict")->text().contains("cannot be started"));
    }
    auto graph = show<GraphView>(path);
    QTRY_VERIFY(!graph->canvas()->painter().empty());
    graph->showLocation(Location::of(ObjectKind::Graph, 1));
    QTRY_COMPARE(graph->canvas()->painter().picture().data.row.id, int64_t{1});
    QCOMPARE(static_cast<int>(graph->canvas()->painter().colouring), static_cast<int>(GraphColouring::Error));
    QVERIFY(graph->canvas()->painter().picture().data.nodes.back().isDivergent);
  }
};

QTEST_MAIN(FusionViewTest)
#include "fusion_view_test.moc"
