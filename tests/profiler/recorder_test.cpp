// The recorder's promises to the engine: losses are counted, a full disk never reaches the script, forks record nothing.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sqlite3.h>

#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/record/recorder.h"
#include "profiler/session/batch_listener.h"
#include "profiler/session/reader.h"
#include "profiler/session/writer.h"

using namespace fusebox;
using namespace fusebox::session;
using record::Recorder;

namespace {

int64_t one(const std::string& path, const std::string& sql) {
  auto reader = Reader::open(path);
  if (!reader) qFatal("%s", reader.error().text().c_str());
  auto table = (*reader)->query(sql);
  if (!table) qFatal("%s", table.error().text().c_str());
  return table->rows.empty() ? -1 : std::get<int64_t>(table->rows[0][0]);
}

}  // namespace

class RecorderTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  std::string file(const char* name) { return dir_.filePath(name).toStdString(); }

 private slots:
  void cleanup() { Recorder::stop(); }

  void offIsNull() { QCOMPARE(Recorder::active(), nullptr); }

  void oneAtATime() {
    QVERIFY(Recorder::start({.path = file("a")}));
    auto second = Recorder::start({.path = file("b")});
    QVERIFY(!second);
    QCOMPARE(second.error().code, ErrorCode::InvalidArgument);
    Recorder::stop();
    QCOMPARE(Recorder::active(), nullptr);
    QVERIFY(Recorder::start({.path = file("b")}));
  }

  /// A process may die in the first call of what it compiled.
  void whatIsRecordedBeforeACrashIsCommitted() {
    for (const int number : {SIGSEGV, SIGABRT, SIGTERM}) {
      const std::string path = file(("crash" + std::to_string(number)).c_str());
      const pid_t child = fork();
      if (child == 0) {
        signal(number, SIG_DFL);  // not QtTest's
        auto started = Recorder::start({.path = path});
        if (!started) _exit(1);
        const record::Id compile = (*started)->beginCompile({});
        (*started)->kernelCode([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return std::optional(record::KernelCodeRecord{.kernel = 1, .llvmIr = "code", .assembly = {}});
        });
        (*started)->endCompile(compile);
        if (number == SIGABRT) std::abort();
        if (number == SIGSEGV) *static_cast<volatile int*>(nullptr) = 1;
        raise(number);
      }
      int status = 0;
      QCOMPARE(waitpid(child, &status, 0), child);
      QVERIFY(WIFSIGNALED(status));
      QCOMPARE(WTERMSIG(status), number);
      const int64_t kept = number == SIGTERM ? 0 : 1;  // that one asks for an end, and says nothing of a fault
      QCOMPARE(one(path, "SELECT count(*) FROM t_compile WHERE status = 'ok'"), kept);
      QCOMPARE(one(path, "SELECT count(*) FROM t_kernel_code"), kept);
    }
  }

  void aCrashIsHeardByWhoeverHandledIt() {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGFPE, [](int) { _exit(7); });
      auto started = Recorder::start({.path = file("handled")});
      raise(SIGFPE);
      _exit(started ? 1 : 2);
    }
    int status = 0;
    QCOMPARE(waitpid(child, &status, 0), child);
    QVERIFY(WIFEXITED(status));
    QCOMPARE(WEXITSTATUS(status), 7);
    struct sigaction was {}, during {}, now {};
    QCOMPARE(sigaction(SIGFPE, nullptr, &was), 0);
    QVERIFY(Recorder::start({.path = file("handled")}));
    QCOMPARE(sigaction(SIGFPE, nullptr, &during), 0);
    Recorder::stop();
    QCOMPARE(sigaction(SIGFPE, nullptr, &now), 0);
    QVERIFY(during.sa_sigaction != was.sa_sigaction && now.sa_sigaction == was.sa_sigaction);
  }

  void aSessionInNoFolderNamesTheFolder() {
    const std::string folder = file("nowhere"), path = folder + "/a.fusebox";
    const auto started = Recorder::start({.path = path});
    QVERIFY(!started);
    QCOMPARE(started.error().text(), "the session file cannot be created: the directory " + folder + " does not exist (" + path + ")");
  }

  void whatAJobThrowsIsALoss() {
    auto writer = Writer::create(file("throws"));
    QVERIFY(writer);
    (*writer)->post([](RowSink&) { throw std::bad_alloc(); }, 1);
    (*writer)->post([](RowSink&) { throw 7; }, 1);
    (*writer)->post(rows::Info{.key = std::string("after"), .value = std::string("here")});
    QVERIFY((*writer)->flush());
    (*writer)->finish();
    QCOMPARE(one(file("throws"), "SELECT count FROM losses WHERE what = 'rows'"), int64_t{2});
    QCOMPARE(one(file("throws"), "SELECT count(*) FROM session_info WHERE key = 'after'"), int64_t{1});
  }

  void whatAListenerThrowsIsALoss() {
    struct Thrower : BatchListener {
      void launched(int32_t, int64_t, const LaunchRecord&) override {}
      void operatorRan(int32_t, const LaunchRecord&) override {}
      void write(RowSink&, bool) override { throw std::runtime_error("a listener"); }
      void committed() override {}
      int64_t rolledBack() override { return 0; }
    };
    auto writer = Writer::create(file("listener"));
    QVERIFY(writer);
    (*writer)->setListener(std::make_shared<Thrower>());
    (*writer)->post(rows::Info{.key = std::string("after"), .value = std::string("here")});
    QVERIFY((*writer)->flush());
    (*writer)->finish();
    QVERIFY(one(file("listener"), "SELECT count FROM losses WHERE what = 'gpu_events'") > 0);
    QCOMPARE(one(file("listener"), "SELECT count(*) FROM session_info WHERE key = 'after'"), int64_t{1});
  }

  void symbolsAndWhatBecameOfThemAreRows() {
    auto recorder = Recorder::start({.path = file("symbols")});
    QVERIFY(recorder);
    const record::Id compile = (*recorder)->beginCompile({});
    record::SymbolRecord size{.name = "s0", .source = "L['x'].size()[0]", .hint = 8, .lower = 2, .policy = "automatic",
                              .before = "4", .after = "8", .place = {"/a.py", 3, "f"}};
    record::SymbolRecord unbacked{.name = "u0", .kind = "unbacked"};
    (*recorder)->symbols(compile, {size, unbacked});
    (*recorder)->relations(compile, {{.op = "<", .left = "s0*2", .right = "64", .symbols = {"s0"}, .guard = 5, .place = {"/a.py", 4, "f"}}});
    (*recorder)->specialisations(compile, {{.expression = "s0", .symbols = {"s0"}, .value = 0.5, .op = "range()"}});
    (*recorder)->specialisations(compile, {{.kind = "plan", .value = 16}});
    Recorder::stop();
    const auto count = [&](const std::string& sql) { return one(file("symbols"), "SELECT count(*) FROM " + sql); };
    QCOMPARE(count("symbols WHERE name = 's0' AND hint = 8 AND typeof(hint) = 'integer' AND lower = 2 AND upper IS NULL AND before = '4' "
                   "AND after = '8' AND policy = 'automatic' AND source LIKE 'L[%' AND kind = 'size' AND line = 3"), int64_t{1});
    QCOMPARE(count("symbols WHERE name = 'u0' AND hint IS NULL AND source IS NULL AND position = 2"), int64_t{1});
    QCOMPARE(count("relations WHERE relation = 's0*2 < 64' AND symbols = '[\"s0\"]' AND guard_id = 5 AND kind = 'guard' AND line = 4"), int64_t{1});
    QCOMPARE(count("specialisations WHERE value = 0.5 AND operator = 'range()' AND position = 1"), int64_t{1});
    QCOMPARE(count("specialisations WHERE value = 16 AND kind = 'plan' AND position = 2 AND symbols IS NULL"), int64_t{1});
    QCOMPARE(count("source_files WHERE file = '/a.py'"), int64_t{1});
  }

  // Somebody reads while the recording ends: the last reader to go leaves one file that can be copied.
  void theLastReaderLeavesOneFile() {
    auto writer = Writer::create(file("watched"));
    QVERIFY(writer);
    QVERIFY((*writer)->flush());
    {
      auto reader = Reader::open(file("watched"));
      QVERIFY(reader);
      auto busy = (*reader)->prepare("SELECT key FROM session_info");
      QVERIFY(busy);
      QVERIFY(busy->step());  // a read transaction, open while the writer ends
      (*writer)->finish();
      QVERIFY(std::filesystem::exists(file("watched-wal")));
      *busy = Statement();
      QVERIFY((*reader)->refresh());
    }
    QVERIFY(!std::filesystem::exists(file("watched-wal")));
    std::filesystem::copy_file(file("watched"), file("copy"));
    auto copy = Reader::open(file("copy"));
    QVERIFY(copy);
    QCOMPARE((*copy)->state(), Reader::State::Finished);
  }

  // Whoever opens a session while it is made is not in its way, and sees what comes later or is told to try again.
  void oneThatIsOnlyJustBeingMadeIsSeenToGrow() {
    for (int i = 0; i < 40; ++i) {
      const std::string path = file(("young" + std::to_string(i)).c_str());
      std::atomic<bool> isMade = false;
      Result<std::unique_ptr<Writer>> writer = fail(ErrorCode::Io, "not made", path);
      std::thread making([&] {
        writer = Writer::create(path);
        isMade = true;
      });
      while (!isMade && !std::filesystem::exists(path)) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
      Result<std::unique_ptr<Reader>> reader = Reader::open(path);
      while (!reader && !isMade) reader = Reader::open(path);
      making.join();
      QVERIFY2(writer, writer ? "" : writer.error().text().c_str());
      if (!reader) reader = Reader::open(path);
      QVERIFY2(reader, reader ? "" : reader.error().text().c_str());
      (*reader)->refresh();
      QCOMPARE((*reader)->state(), Reader::State::Recording);
    }
  }

  void sessionsOfOtherMachinesAreNotCalledDead() {
    auto writer = Writer::create(file("far"));
    QVERIFY(writer);
    (*writer)->post(rows::Info{.key = std::string("hostname"), .value = std::string("another-machine")});
    (*writer)->post(rows::Info{.key = std::string("boot_id"), .value = std::string("another-boot")});
    QVERIFY((*writer)->flush());
    std::filesystem::copy_file(file("far"), file("still_far"));
    std::filesystem::copy_file(file("far-wal"), file("still_far-wal"));
    (*writer)->finish();
    // Folded into one file: a log that lies beside the file of another machine is not looked into.
    sqlite3* db = nullptr;
    QCOMPARE(sqlite3_open(file("still_far").c_str(), &db), SQLITE_OK);
    QCOMPARE(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    QCOMPARE((*Reader::open(file("still_far")))->state(), Reader::State::Recording);  // it has just said that it lives
    QCOMPARE(sqlite3_open(file("still_far").c_str(), &db), SQLITE_OK);
    QCOMPARE(sqlite3_exec(db, "UPDATE t_info SET value = 1 WHERE key = 'heartbeat_unix_ns'", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    auto silent = Reader::open(file("still_far"));
    QVERIFY(silent);
    QCOMPARE((*silent)->state(), Reader::State::Elsewhere);
    QVERIFY((*silent)->notice().find("another-machine") != std::string::npos);
  }

  /// The file of a session that is being recorded lacks what is in its log yet.
  void aCopyWithoutItsLogIsSaidToLackIt() {
    auto writer = Writer::create(file("whole"));
    QVERIFY(writer && (*writer)->flush());
    std::filesystem::copy_file(file("whole"), file("half"));
    QVERIFY((*Reader::open(file("half")))->notice().empty());  // as new as one that is only being made
    for (const char* name : {"half-wal", "half-shm"}) std::filesystem::remove(file(name));
    for (const char* name : {"whole", "half"}) std::filesystem::last_write_time(file(name), std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
    QVERIFY((*Reader::open(file("whole")))->notice().empty());
    QVERIFY((*Reader::open(file("half")))->notice().find("half-wal is not there") != std::string::npos);
    (*writer)->finish();
  }

  void otherFilesAreNotOverwritten() {
    std::ofstream(file("train.py")) << "import torch\n";
    auto started = Recorder::start({.path = file("train.py")});
    QVERIFY(!started);
    QCOMPARE(std::filesystem::file_size(file("train.py")), uintmax_t{13});
    auto nowhere = Recorder::start({.path = file("no/such/dir/x.fusebox")});
    QVERIFY(!nowhere);
    QCOMPARE(nowhere.error().code, ErrorCode::Io);
    QVERIFY(!Recorder::start({.path = dir_.path().toStdString()}));
  }

  void sessionsAreReplaced() {
    for (int i = 0; i < 2; ++i) {
      auto recorder = Recorder::start({.path = file("again")});
      QVERIFY(recorder);
      (*recorder)->frame({.name = "f"});
      Recorder::stop();
      QCOMPARE(one(file("again"), "SELECT count(*) FROM frames"), int64_t{1});
    }
  }

  void recordingAfterStopIsHarmless() {
    auto recorder = Recorder::start({.path = file("late")});
    QVERIFY(recorder);
    Recorder* r = *recorder;
    r->launch(1, 1, 0, 10, 0);
    Recorder::stop();
    r->launch(1, 1, 20, 10, 0);
    r->frame({.name = "late"});
    r->loss("late");
    { record::StageTimer timer(r, 1, record::Phase::Aot, "late"); }
    QCOMPARE(one(file("late"), "SELECT count(*) FROM launches"), int64_t{1});
  }

  // Every record is either in the file or counted as lost.
  void droppedLaunchesAreCounted() {
    auto recorder = Recorder::start({.path = file("many")});
    QVERIFY(recorder);
    constexpr int64_t kCount = 3'000'000;
    for (int64_t i = 0; i < kCount; ++i) (*recorder)->launch(1, 1, i, 1, 0);
    Recorder::stop();
    const int64_t kept = one(file("many"), "SELECT count(*) FROM launches");
    const int64_t lost = one(file("many"), "SELECT count FROM losses WHERE what = 'launches'");
    QCOMPARE(kept + std::max<int64_t>(0, lost), kCount);
  }

  void threadsComeAndGo() {
    auto recorder = Recorder::start({.path = file("threads")});
    QVERIFY(recorder);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 100; ++i) (*recorder)->launch(1, 1, i * 1000, 10, 8);
        });
      }
      for (auto& thread : threads) thread.join();
    }
    Recorder::stop();
    QCOMPARE(one(file("threads"), "SELECT count(*) FROM launches"), int64_t{20 * 4 * 100});
    QCOMPARE(one(file("threads"), "SELECT count(DISTINCT thread) FROM launches"), int64_t{80});
    QCOMPARE(one(file("threads"), "SELECT launches FROM kernels WHERE kernel_id = 1"), int64_t{-1});  // no such kernel row
    QCOMPARE(one(file("threads"), "SELECT sum(launches) FROM t_launch_stats"), int64_t{8000});
  }

  void nestedStagesAreATree() {
    auto recorder = Recorder::start({.path = file("stages")});
    QVERIFY(recorder);
    {
      record::StageTimer outer(*recorder, 1, record::Phase::Inductor, "outer");
      record::StageTimer inner(*recorder, 1, record::Phase::Codegen, "inner");
    }
    { record::StageTimer next(*recorder, 1, record::Phase::Aot, "next"); }
    { record::StageTimer off(nullptr, 1, record::Phase::Aot, "off"); }
    Recorder::stop();
    QCOMPARE(one(file("stages"), "SELECT p.name = 'outer' AND c.depth = 1 FROM stages c JOIN stages p ON "
                                 "p.stage_id = c.parent_stage_id WHERE c.name = 'inner'"),
             int64_t{1});
    QCOMPARE(one(file("stages"), "SELECT depth FROM stages WHERE name = 'next'"), int64_t{0});
    QCOMPARE(one(file("stages"), "SELECT count(*) FROM stages"), int64_t{3});
  }

  void forkedChildRecordsNothing() {
    auto recorder = Recorder::start({.path = file("fork")});
    QVERIFY(recorder);
    (*recorder)->frame({.name = "parent"});
    const pid_t child = fork();
    if (child == 0) _exit(Recorder::active() == nullptr ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    QCOMPARE(WEXITSTATUS(status), 0);
    (*recorder)->frame({.name = "parent"});
    Recorder::stop();
    QCOMPARE(one(file("fork"), "SELECT count(*) FROM frames"), int64_t{2});
  }

  void killedProcessLeavesAReadableSession() {
    const std::string path = file("killed");
    const pid_t child = fork();
    if (child == 0) {
      auto recorder = Recorder::start({.path = path});
      if (!recorder) _exit(1);
      for (int i = 0; i < 1000; ++i) (*recorder)->launch(1, 1, i * 1000, 10, 0);
      (*recorder)->flush();
      (*recorder)->launch(1, 1, 5'000'000, 10, 0);
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    QVERIFY(WIFSIGNALED(status));
    QVERIFY(one(path, "SELECT count(*) FROM launches") >= 1000);
    QCOMPARE(Reader::open(path).value()->state(), Reader::State::Abandoned);
  }

  // A file size limit stands for a full disk: the same EFBIG/ENOSPC path of SQLite, without needing a file system.
  void fullDiskIsCountedNotThrown() {
    const std::string path = file("full");
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{1 << 20, 1 << 20};
      auto recorder = Recorder::start({.path = path});
      if (!recorder) _exit(1);
      setrlimit(RLIMIT_FSIZE, &limit);
      freopen("/dev/null", "w", stderr);
      for (int i = 0; i < 200'000; ++i) (*recorder)->launch(1, 1, i * 1000, 10, 0);
      for (int i = 0; i < 2000; ++i) (*recorder)->frame({.name = std::string(2000, 'x')});
      (*recorder)->flush();
      Recorder::stop();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    QVERIFY(WIFEXITED(status));
    QCOMPARE(WEXITSTATUS(status), 0);
    auto reader = Reader::open(path);
    QVERIFY2(reader, reader ? "" : reader.error().text().c_str());
    QVERIFY((*reader)->query("SELECT count(*) FROM launches"));
  }

  // After trouble, rows that were kept are written, and the launches that were not are counted.
  void writerRecoversWhenThereIsRoomAgain() {
    const std::string path = file("recover");
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      freopen("/dev/null", "w", stderr);
      auto writer = Writer::create(path);
      if (!writer) _exit(1);
      rlimit limit{};
      getrlimit(RLIMIT_FSIZE, &limit);
      const rlimit small{65536, limit.rlim_max};
      setrlimit(RLIMIT_FSIZE, &small);
      LaunchRing* ring = (*writer)->openRing(1);
      for (int i = 0; i < 50'000; ++i) ring->push({i * 1000, 10, 0, 1, 1});
      for (int i = 0; i < 7; ++i) ring->push({i * 1000, 10, 0, 1, i < 2 ? kCallTag : kGuardCheckTag});
      for (int i = 1; i <= 100; ++i) {
        (*writer)->post(rows::Frame{.id = int64_t{i}, .name = std::string(5000, 'x'), .first_seen_ns = int64_t{0}});
      }
      if ((*writer)->flush()) _exit(2);
      setrlimit(RLIMIT_FSIZE, &limit);
      (*writer)->finish();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    QCOMPARE(WEXITSTATUS(status), 0);
    QCOMPARE(one(path, "SELECT count(*) FROM frames"), int64_t{100});
    QCOMPARE(one(path, "SELECT count FROM losses WHERE what = 'launches'"), int64_t{50'000});
    QCOMPARE(one(path, "SELECT count FROM losses WHERE what = 'calls of compiled functions'"), int64_t{2});
    QCOMPARE(one(path, "SELECT count FROM losses WHERE what = 'guard checks'"), int64_t{5});
  }

  // A loss that is noticed while a batch is being committed belongs to the next one.
  void lossesDuringACommitAreWritten() {
    struct LosesAtCommit : BatchListener {
      Writer* writer = nullptr;
      int left = 1;
      void launched(int32_t, int64_t, const LaunchRecord&) override {}
      void operatorRan(int32_t, const LaunchRecord&) override {}
      void write(RowSink&, bool) override {}
      void committed() override {
        if (left-- > 0) writer->loss("late", 3);
      }
      int64_t rolledBack() override { return 0; }
    };
    auto writer = Writer::create(file("late_loss"));
    QVERIFY(writer);
    auto listener = std::make_shared<LosesAtCommit>();
    listener->writer = writer->get();
    (*writer)->setListener(listener);
    QVERIFY((*writer)->flush() && (*writer)->flush());
    QCOMPARE(one(file("late_loss"), "SELECT count FROM losses WHERE what = 'late'"), int64_t{3});
    (*writer)->finish();
  }

  void launchIsCheap() {
    auto recorder = Recorder::start({.path = file("cheap")});
    QVERIFY(recorder);
    (*recorder)->launch(1, 1, 0, 1, 0);
    // The least of a few times, beside what reading the clock costs on this machine.
    const auto nanoseconds = [](const auto& call) {
      constexpr int kCount = 5'000;
      double best = 1e18;
      for (int round = 0; round < 20; ++round) {
        const int64_t start = nowNs();
        for (int i = 0; i < kCount; ++i) call(i);
        best = std::min(best, static_cast<double>(nowNs() - start) / kCount);
      }
      return best;
    };
    const double record = nanoseconds([](int i) {
      if (auto* r = Recorder::active()) r->launch(1, 1, i, 1, 0);
    });
    const double clock = nanoseconds([](int) { (void)nowNs(); });
    qInfo("one launch record: %.1f ns, reading the clock: %.1f ns", record, clock);
    QVERIFY(record < 10 * clock);
  }
};

QTEST_GUILESS_MAIN(RecorderTest)
#include "recorder_test.moc"
