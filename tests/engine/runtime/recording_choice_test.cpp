// The choice between CUDA graph recordings as a state machine: calls in, decisions out; no CUDA.
#include <QtTest>

#include "engine/runtime/gpu/recording_choice.h"

using namespace fusebox::runtime::gpu;
using Action = GraphDecision::Action;

namespace {

/// Plays a compiled graph: does what the choice says, and keeps the books that the run time keeps.
struct Player {
  RecordingChoice choice;
  std::vector<RecordingState> recordings;
  std::vector<GraphInput> inputs;
  std::vector<uint64_t> managed;

  explicit Player(std::vector<uint64_t> addresses, int limit = RecordingChoice::kDefaultRecordLimit) : choice(limit) { at(addresses); }
  void at(const std::vector<uint64_t>& addresses) {
    inputs.clear();
    for (uint64_t a : addresses) inputs.push_back({a, 1024});
  }
  GraphDecision call() {
    GraphDecision made = choice.decide(inputs, recordings, [&](uint64_t address) {
      return std::find(managed.begin(), managed.end(), address) != managed.end();
    });
    if (made.action == Action::Record) {
      RecordingState state;
      for (size_t i = 0; i < inputs.size(); ++i) state.addresses.push_back(choice.copied()[i] ? 0 : inputs[i].address);
      if (made.recording < 0) recordings.push_back(state);
      else recordings[static_cast<size_t>(made.recording)] = state;
    }
    return made;
  }
  Action action() { return call().action; }
};

}  // namespace

class RecordingChoiceTest : public QObject {
  Q_OBJECT
 private slots:
  void warmsUpRecordsReplays() {
    Player p({16, 32});
    QCOMPARE(p.action(), Action::Plain);
    const GraphDecision first = p.call();
    QCOMPARE(first.action, Action::Record);
    QVERIFY(!first.reason.empty());
    for (int i = 0; i < 5; ++i) {
      const GraphDecision again = p.call();
      QCOMPARE(again.action, Action::Replay);
      QCOMPARE(again.recording, 0);
      QVERIFY(!again.moveResults);
    }
  }
  void inputsThatMovedDuringTheWarmUpAreCopied() {
    Player p({16, 32});
    p.call();
    p.at({16, 48});
    QCOMPARE(p.action(), Action::Record);
    QCOMPARE(p.choice.copied(), (std::vector<bool>{false, true}));
    p.at({16, 1234});
    QCOMPARE(p.action(), Action::Replay);
  }
  void staticInputThatMovesEarlyIsCopiedFromThenOn() {
    Player p({16, 32});
    p.call();
    p.call();
    p.call();
    p.at({16, 64});
    const GraphDecision again = p.call();
    QCOMPARE(again.action, Action::Record);
    QCOMPARE(again.recording, 0);  // instead of the first
    QVERIFY2(again.reason.find("1 input (1)") != std::string::npos, again.reason.c_str());
    p.at({16, 96});
    QCOMPARE(p.action(), Action::Replay);
    QCOMPARE(p.recordings.size(), size_t{1});
  }
  void parameterThatWasReplacedOnceStaysStatic() {
    Player p({16});
    for (int i = 0; i < 2 + RecordingChoice::kStableReplays; ++i) p.call();
    p.at({64});
    QCOMPARE(p.action(), Action::Record);
    QCOMPARE(p.choice.copied(), std::vector<bool>{false});
    QCOMPARE(p.action(), Action::Replay);
  }
  void resultsOfOtherRecordingsGetRecordingsOfTheirOwn() {
    Player p({16});
    p.managed = {16, 32};
    p.call();
    p.call();
    p.at({32});
    QCOMPARE(p.action(), Action::Record);
    QCOMPARE(p.recordings.size(), size_t{2});
    QCOMPARE(p.call().recording, 1);
    p.at({16});
    QCOMPARE(p.call().recording, 0);
  }
  void smallResultsInUseAreMoved() {
    Player p({16});
    p.call();
    p.call();
    p.recordings[0].liveBytes = 4;
    const GraphDecision replay = p.call();
    QCOMPARE(replay.action, Action::Replay);
    QVERIFY(replay.moveResults);
  }
  void largeResultsInUseTakeTurns() {
    Player p({16});
    p.call();
    p.call();
    p.recordings[0].liveBytes = RecordingChoice::kMovableBytes + 1;
    const GraphDecision second = p.call();
    QCOMPARE(second.action, Action::Record);
    QCOMPARE(second.recording, -1);
    QCOMPARE(p.recordings.size(), size_t{2});
    p.recordings[0].liveBytes = 0;
    p.recordings[1].liveBytes = RecordingChoice::kMovableBytes + 1;
    QCOMPARE(p.call().recording, 0);
  }
  void noMoreRecordingsThanThereMayBe() {
    Player p({16});
    p.call();
    p.call();
    for (size_t i = 0; i < 2 * RecordingChoice::kMostRecordings; ++i) {
      for (RecordingState& r : p.recordings) r.liveBytes = RecordingChoice::kMovableBytes + 1;
      p.call();
    }
    QCOMPARE(p.recordings.size(), RecordingChoice::kMostRecordings);
    QVERIFY(p.call().moveResults);  // then they are moved after all
  }
  void theOldestGoesWhereCombinationsAreMany() {
    Player p({1});
    for (uint64_t a = 1; a < 100; ++a) p.managed.push_back(a);
    p.call();
    for (uint64_t a = 1; a <= RecordingChoice::kMostRecordings; ++a) {
      p.at({a});
      QCOMPARE(p.action(), Action::Record);
    }
    p.at({1});
    QCOMPARE(p.call().recording, 0);  // used again, so number 1 is the oldest
    p.at({50});
    QCOMPARE(p.call().recording, 1);
    QCOMPARE(p.recordings.size(), RecordingChoice::kMostRecordings);
  }
  void limitEndsRecordingAndSaysSoOnce() {
    Player p({1}, 2);
    p.managed = {1, 2, 3};
    p.call();
    p.call();
    p.at({2});
    QCOMPARE(p.action(), Action::Record);
    p.at({3});
    const GraphDecision refused = p.call();
    QCOMPARE(refused.action, Action::Plain);
    QVERIFY(refused.reason.find("rerecord_limit") != std::string::npos);
    QVERIFY(p.call().reason.empty());
    p.at({2});
    QCOMPARE(p.call().recording, 1);  // what was recorded still serves
  }
};

QTEST_APPLESS_MAIN(RecordingChoiceTest)
#include "recording_choice_test.moc"
