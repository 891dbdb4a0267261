// Source notes, graphs and relations, against what the synthetic session is known to hold.
#include <QTemporaryDir>
#include <QTest>

#include "profiler/query/graphs.h"
#include "profiler/query/source.h"
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
    auto related = query::relatedNodes(*reader_, graph->nodes[2].id);
    QVERIFY(related);
    QCOMPARE(related->size(), size_t{5});  // one in each later stage
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
