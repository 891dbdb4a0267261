// Sessions of several ranks as lanes of one timeline.
#include <QTemporaryDir>
#include <QTextBrowser>
#include <QtTest>

#include "profiler/session/rank_files.h"
#include "profiler/session/reader.h"
#include "profiler/session/sqlite.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/shown_view.h"
#include "views/timeline/rank_lanes_model.h"
#include "views/timeline/timeline_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using namespace fusebox::views;

class RanksViewTest : public QObject, test::ShownView {
  Q_OBJECT
  QTemporaryDir folder_;
  static constexpr int64_t kLaunches[] = {300, 200, 100};

  std::string path(const char* name) const { return folder_.filePath(QString::fromLatin1(name)).toStdString(); }
  std::string rankPath(int rank) const { return path("train-rank") + std::to_string(rank) + ".fusebox"; }

  static void change(const std::string& file, const std::string& sql) {
    auto database = session::Database::openForWriting(file);
    QVERIFY(database.has_value());
    QVERIFY(database->execute(sql).has_value());
  }

  static std::string put(const std::string& key, const std::string& value) {
    return "DELETE FROM t_info WHERE key = '" + key + "'; INSERT INTO t_info(key, value) VALUES ('" + key + "', '" + value + "');";
  }

  std::unique_ptr<session::Reader> read(int rank) const {
    auto reader = session::Reader::open(rankPath(rank));
    return reader ? std::move(*reader) : nullptr;
  }

 private slots:
  void initTestCase() {
    Theme::instance().apply(Theme::Mode::Light);
    for (int rank = 0; rank < 3; ++rank) {
      QVERIFY(test::writeSyntheticSession(rankPath(rank), {.launches = kLaunches[rank]}).has_value());
      change(rankPath(rank), put("rank", std::to_string(rank)));
    }
    // Rank 2 is of another machine, whose clock began 5 s later.
    auto reader = read(2);
    QVERIFY(reader);
    const int64_t began = reader->infoInteger("start_unix_ns");
    reader.reset();
    change(rankPath(2), put("hostname", "elsewhere") + put("start_unix_ns", std::to_string(began + 5'000'000'000)));
    QVERIFY(test::writeSyntheticSession(path("train-rank1-restart1.fusebox"), {.launches = 10}).has_value());
    QVERIFY(test::writeSyntheticSession(path("train-rankless.fusebox"), {.launches = 10}).has_value());
    QVERIFY(test::writeSyntheticSession(path("other-rank1.fusebox"), {.launches = 10}).has_value());
  }

  void otherRanksLieBesideASession() {
    const auto ranks = session::otherRanks(*read(1));
    QCOMPARE(ranks.size(), size_t{2});
    QCOMPARE(ranks[0].rank, std::string("0"));
    QCOMPARE(ranks[0].path, rankPath(0));
    QCOMPARE(ranks[1].rank, std::string("2"));
    auto single = session::Reader::open(path("other-rank1.fusebox"));
    QVERIFY(single.has_value() && session::otherRanks(**single).empty());
  }

  void everyRankHasItsLanesOnOneClock() {
    auto reader = read(0);
    auto outline = loadTimelineOutline(*reader);
    QVERIFY(outline.has_value());
    const auto alone = outline->lanes.size();
    addRankLanes(*reader, *outline);
    QCOMPARE(outline->lanes.size(), alone * 3);
    QCOMPARE(outline->lanes.front().group.substr(0, 6), std::string("rank 0"));
    QCOMPARE(outline->lanes.back().group.substr(0, 6), std::string("rank 2"));
    // Written on one machine, so that its times lie within seconds of the others' before they are moved by the five.
    const int64_t moved = outline->lanes.back().rank->shiftNs;
    QVERIFY2(moved > 4'000'000'000 && moved < 6'000'000'000, qPrintable(QString::number(moved)));
    QCOMPARE(outline->lanes[alone].rank->shiftNs, int64_t{0});
    auto bars = loadTimelineBars(*reader, outline->laneKeys(), outline->range.startNs, outline->range.endNs, 4000);
    QVERIFY(bars.has_value());
    int64_t drawn[3] = {};
    for (const LaneBars& lane : bars->lanes) {
      const TimelineLane& of = outline->lanes[lane.lane];
      if (of.kind != TimelineLane::Kind::Launches) continue;
      for (size_t b = 0; b < lane.bars.size(); ++b) {
        drawn[of.rankIndex()] += lane.bars[b].count;
        QVERIFY(lane.bars[b].startNs >= outline->range.startNs && lane.bars[b].endNs <= outline->range.endNs);
        QVERIFY2(lane.owners[b] == 0 || outline->names.contains(lane.owners[b]), "kernels of all ranks have names");
      }
    }
    for (int rank = 0; rank < 3; ++rank) QCOMPARE(drawn[rank], kLaunches[rank]);
  }

  void aBarOfAnotherRankSaysWhoseItIs() {
    auto timeline = show<TimelineView>(QString::fromStdString(rankPath(0)));
    QVERIFY(settles());
    const TimelineOutline& outline = timeline->canvas()->outline();
    QVERIFY(outline.lanes.back().rank);
    size_t lane = 0;
    while (lane < outline.lanes.size() && !(outline.lanes[lane].rankIndex() == 1 && outline.lanes[lane].kind == TimelineLane::Kind::Stages)) ++lane;
    QVERIFY(lane < outline.lanes.size());
    TimelineCanvas::Hit hit;
    hit.lane = static_cast<int>(lane);
    hit.span = 0;
    emit timeline->canvas()->selected(hit);
    auto* details = timeline->findChild<QTextBrowser*>("timeline.details");
    QTRY_VERIFY(details->toPlainText().contains("rank 1"));
    QVERIFY(details->toPlainText().contains("train-rank1.fusebox"));
  }

  void differencesAreNamed() {
    QVERIFY(differencesOfRanks(*read(0)).empty());
    change(rankPath(1), "INSERT INTO t_loss(what, count, first_ns, last_ns, detail) VALUES ('ranks differ', 1, 0, 0, 'rank 1 compiled another graph');");
    const auto texts = differencesOfRanks(*read(0));
    QVERIFY(std::find(texts.begin(), texts.end(), "rank 1 compiled another graph") != texts.end());
    auto timeline = show<TimelineView>(QString::fromStdString(rankPath(0)));
    QVERIFY(settles());
    QTRY_VERIFY(timeline->findChild<QTextBrowser*>("timeline.details")->toPlainText().contains("rank 1 compiled another graph"));
  }
};

QTEST_MAIN(RanksViewTest)
#include "ranks_view_test.moc"
