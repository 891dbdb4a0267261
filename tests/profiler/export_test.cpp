// Exports that other programs read: Perfetto's protobuf (read back by our own importer, which was tested on hand-made
// packets), the HTML report, and sessions without what would show the program.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <set>
#include <sstream>

#include "profiler/export/html_report.h"
#include "profiler/export/operator_names.h"
#include "profiler/export/perfetto_trace.h"
#include "profiler/export/redacted_session.h"
#include "profiler/importers/open.h"
#include "profiler/query/saved_graphs.h"
#include "profiler/session/schema.h"
#include "tests/profiler/synthetic_session.h"

using namespace fusebox;
using namespace fusebox::session;

class ExportTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  test::SyntheticFacts facts_;
  std::unique_ptr<Reader> reader_;

  std::string path(const char* name) const { return dir_.filePath(QString::fromLatin1(name)).toStdString(); }
  static std::string one(const Reader& reader, const std::string& sql) {
    std::string out;
    (void)reader.each(sql, {}, [&](const Statement& row) { out += (out.empty() ? "" : ";") + std::string(row.textAt(0)); });
    return out;
  }

 private slots:
  void initTestCase() {
    qputenv("XDG_CACHE_HOME", dir_.filePath("cache").toUtf8());
    auto facts = test::writeSyntheticSession(path("s.fusebox"), {.launches = 2400, .kernels = 12});
    QVERIFY(facts);
    facts_ = *facts;
    auto reader = Reader::open(path("s.fusebox"));
    QVERIFY(reader);
    reader_ = std::move(*reader);
  }

  void perfettoKeepsEverySpan() {
    std::ofstream out(path("t.pftrace"), std::ios::binary);
    auto written = exporting::writePerfettoTrace(*reader_, out);
    QVERIFY(written);
    out.close();
    auto back = importing::openAny(path("t.pftrace"));
    QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
    const Reader& b = **back;
    QCOMPARE(std::stoll(one(b, "SELECT (SELECT count(*) FROM cpu_events) + (SELECT count(*) FROM launches)")),
             *written);
    QCOMPARE(one(b, "SELECT count(*) FROM losses"), std::string("0"));
    for (const char* sql :
         {"SELECT count(*) || ' ' || sum(dur_ns) || ' ' || sum(start_ns) || ' ' || count(DISTINCT thread) FROM "
          "launches",
          "SELECT count(*) || ' ' || sum(dur_ns) || ' ' || sum(start_ns) FROM cpu_events WHERE dur_ns IS NOT NULL",
          "SELECT name || ' ' || launches || ' ' || total_ns FROM kernels WHERE launches > 0 ORDER BY name"}) {
      QCOMPARE(one(b, sql), one(*reader_, sql));
    }
  }

  void reportHoldsTheSessionAndNothingActive() {
    std::ostringstream out;
    auto written = exporting::writeHtmlReport(*reader_, out);
    QVERIFY(written && *written > 10);
    const QString html = QString::fromStdString(out.str());
    QVERIFY(html.contains("print of a traced tensor"));
    QVERIFY(html.contains("Graph breaks") && html.contains("Kernels"));
    // As many opened as closed.
    for (const char* tag : {"table", "tr", "details", "pre"}) {
      QCOMPARE(html.count(QRegularExpression(QString("<%1[ >]").arg(tag))), html.count(QString("</%1>").arg(tag)));
    }
  }

  /// Names, paths, guards and sources may hold anything.
  void whatIsMarkupInANameIsTextInTheReport() {
    QVERIFY(exporting::copySession(*reader_, path("markup.fusebox")));
    const std::string evil = R"(<script src="http://x">'a"&</pre></table>)";
    {
      auto database = Database::openForWriting(path("markup.fusebox"));
      QVERIFY(database);
      for (const char* column : {"t_frame SET name", "t_frame SET qualname", "t_frame SET file", "t_kernel SET name", "t_kernel SET op", "t_kernel SET loop_ir", "t_kernel SET file",
                                 "t_graph_break SET reason", "t_graph_break SET hint", "t_graph_break SET kind", "t_guard_failure SET guard", "t_guard_failure SET found", "t_source_file SET text",
                                 "t_compile SET error", "t_node SET op", "t_node SET name", "t_kernel_code SET assembly"}) {
        auto update = database->prepare(std::string("UPDATE ") + column + " = ?");
        QVERIFY2(update, column);
        update->bind(1, evil);
        QVERIFY(update->run());
      }
      auto info = database->prepare("INSERT OR REPLACE INTO t_info(key, value) VALUES('script', ?), ('device', ?)");
      info->bind(1, evil);
      info->bind(2, evil);
      QVERIFY(info->run());
    }
    auto opened = Reader::open(path("markup.fusebox"));
    QVERIFY(opened);
    std::ostringstream out;
    QVERIFY(exporting::writeHtmlReport(**opened, out));
    const QString html = QString::fromStdString(out.str());
    QVERIFY(html.count("&lt;script src=&quot;http://x&quot;&gt;") > 5);
    QVERIFY(!html.contains("<script") && !html.contains("src=\""));
    for (const char* tag : {"table", "tr", "details", "pre"}) QCOMPARE(html.count(QRegularExpression(QString("<%1[ >]").arg(tag))), html.count(QString("</%1>").arg(tag)));
  }

  void redactionKnowsEveryTextColumn() {
    auto database = Database::openForReading(path("s.fusebox"));
    QVERIFY(database);
    std::set<std::string> known;
    for (const auto& c : exporting::columnRedactions())
      known.insert(std::string(c.table) + "." + std::string(c.column));
    auto columns = database->prepare(
        "SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' "
        "AND m.name LIKE 't\\_%' ESCAPE '\\' AND (p.type = 'TEXT' OR p.type = '')");
    QVERIFY(columns);
    while (columns->step().value_or(false)) QVERIFY2(known.contains(std::string(columns->textAt(0))), std::string(columns->textAt(0)).c_str());
  }

  void redactedSessionsKeepShapesAndLoseNames() {
    auto done = exporting::writeRedactedSession(*reader_, path("r.fusebox"));
    QVERIFY2(done.has_value(), done ? "" : done.error().text().c_str());
    auto opened = Reader::open(path("r.fusebox"));
    QVERIFY(opened);
    for (const char* sql : {"SELECT count(*) FROM nodes",
                            "SELECT group_concat(op || shape) FROM (SELECT op, shape FROM nodes ORDER BY node_id)",
                            "SELECT sum(dur_ns) FROM launches", "SELECT count(DISTINCT file) FROM nodes",
                            "SELECT group_concat(line) FROM (SELECT line FROM graph_breaks ORDER BY break_id)"}) {
      QCOMPARE(one(**opened, sql), one(*reader_, sql));
    }
    // Nothing of the program is left anywhere in the file.
    std::ifstream in(path("r.fusebox"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& secret : {facts_.script, std::string("class Block"), std::string("L['")}) {
      QVERIFY2(!secret.empty() && bytes.find(secret) == std::string::npos, secret.c_str());
    }
    QVERIFY(!exporting::writeRedactedSession(*reader_, path("r.fusebox")));  // an existing file is left alone
  }

  void operatorsOfTheProgramLoseTheirNames() {
    exporting::OperatorNames names;
    names.learn("aten::add.Tensor");
    names.learn("no lowering for acme::secret.fast, see torch.ops.corp.hidden.default");
    names.learn("acme::add");
    names.learn("void at::native::vectorized_elementwise_kernel<4, acme::detail::Functor<float>>(int)");
    const auto renamed = [&](const char* text) { return names.renamed(text, true); };
    QCOMPARE(renamed("aten::add.Tensor"), std::string("aten::add.Tensor"));
    QCOMPARE(renamed("no lowering for acme::secret.fast."), std::string("no lowering for custom::op_1."));
    QCOMPARE(renamed("torch.ops.corp.hidden.default"), std::string("custom::op_2"));
    QCOMPARE(renamed("fused_add_secret_mul_0"), std::string("fused_add_op_1_mul_0"));
    QCOMPARE(renamed("acme_kernel secrets"), std::string("custom_kernel secrets"));
    QCOMPARE(renamed("at::native::f<4, acme::detail::Functor<float>>"), std::string("at::native::f<4, custom::op_4<float>>"));
    QCOMPARE(names.renamed("fused_secret_0 acme::secret", false), std::string("fused_secret_0 custom::op_1"));

    QVERIFY(exporting::copySession(*reader_, path("o.fusebox")));
    {
      auto database = Database::openForWriting(path("o.fusebox"));
      QVERIFY(database &&
              database->execute("UPDATE t_node SET op = 'acmecorp::topsecretop' WHERE id = (SELECT min(id) FROM t_node);"
                                "INSERT INTO t_kernel(id, name, kind, op, reason) VALUES(9001, 'acmecorp::topsecretop', 'extern', 'acmecorp::topsecretop.default', "
                                "'no lowering for acmecorp::topsecretop'), (9002, 'fused_topsecretop_gelu_0', 'generated', NULL, NULL)"));
    }
    auto with = Reader::open(path("o.fusebox"));
    QVERIFY(with && exporting::writeRedactedSession(**with, path("p.fusebox")));
    std::ifstream in(path("p.fusebox"), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (const char* secret : {"acmecorp", "topsecretop"}) QVERIFY2(bytes.find(secret) == std::string::npos, secret);
    auto opened = Reader::open(path("p.fusebox"));
    QVERIFY(opened);
    QCOMPARE(one(**opened, "SELECT name || ' ' || op || ' ' || reason FROM t_kernel WHERE id = 9001"),
             std::string("custom::op_1 custom::op_1 no lowering for custom::op_1"));
    QCOMPARE(one(**opened, "SELECT name FROM t_kernel WHERE id = 9002"), std::string("fused_op_1_gelu_0"));
  }

  void whatWasTakenOutIsNotCalledDamaged() {
    QVERIFY(exporting::copySession(*reader_, path("replayable.fusebox")));
    {
      auto database = Database::openForWriting(path("replayable.fusebox"));
      QVERIFY(database && database->execute("INSERT OR REPLACE INTO t_saved_graph(graph_id, text) SELECT min(id), '{}' FROM t_graph"));
    }
    auto with = Reader::open(path("replayable.fusebox"));
    QVERIFY(with && query::savedGraph(**with) && exporting::writeRedactedSession(**with, path("not_replayable.fusebox")));
    auto opened = Reader::open(path("not_replayable.fusebox"));
    QVERIFY(opened);
    const auto graph = query::savedGraph(**opened);
    QVERIFY(!graph);
    QVERIFY2(graph.error().message.find("were taken out of this session") != std::string::npos, graph.error().message.c_str());
  }

  void recordingsOfCudaGraphsLoseTheirFunction() {
    QVERIFY(exporting::copySession(*reader_, path("g.fusebox")));
    {
      auto database = Database::openForWriting(path("g.fusebox"));
      QVERIFY(database && database->execute("INSERT INTO t_kernel(id, name, kind) VALUES(9001, 'MySecretNet.forward recording 0', 'cuda_graph');"
                                            "INSERT INTO t_cuda_graph(id, event, reason) VALUES(9001, 'stopped', 'secret text'), (9002, 'moved', 'inputs moved')"));
    }
    auto with = Reader::open(path("g.fusebox"));
    QVERIFY(with && exporting::writeRedactedSession(**with, path("h.fusebox")));
    auto opened = Reader::open(path("h.fusebox"));
    QVERIFY(opened);
    QCOMPARE(one(**opened, "SELECT name LIKE 'name-%' FROM t_kernel WHERE id = 9001"), std::string("1"));
    QCOMPARE(one(**opened, "SELECT coalesce(reason, '-') FROM t_cuda_graph ORDER BY id"), std::string("-;inputs moved"));
    QCOMPARE(one(**opened, "SELECT group_concat(name) FROM t_kernel WHERE id < 9001"), one(*reader_, "SELECT group_concat(name) FROM t_kernel"));
  }
};

QTEST_GUILESS_MAIN(ExportTest)
#include "export_test.moc"
