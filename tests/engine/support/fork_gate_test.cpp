#include "engine/support/fork_gate.h"

#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;
using fusebox::ForkGate;

namespace {

/// The status of a child that runs `work`, which says whether all is well.
template <typename Work>
int inChild(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// A thread that nearly always holds `lock`, from inside the gate.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() {
    stopping_ = true;
    thread_.join();
  }

  std::mutex lock;

 private:
  void work() {
    while (!stopping_) {
      ForkGate::rest();
      const ForkGate::Inside inside, again;
      std::lock_guard held(lock);
      std::this_thread::sleep_for(2ms);
    }
  }

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

class ForkGateTest : public QObject {
  Q_OBJECT

 private slots:
  void aChildFindsNoLockHeld() {
    Worker first, second;
    for (int i = 0; i < 30; ++i) {
      ForkGate::announce();
      const int status = inChild([&] { return first.lock.try_lock() && second.lock.try_lock(); });
      ForkGate::done();
      QCOMPARE(status, 0);
    }
  }

  void aForkThatWasNotAnnouncedWaitsToo() {
    Worker worker;
    for (int i = 0; i < 30; ++i) QCOMPARE(inChild([&] { return worker.lock.try_lock(); }), 0);
  }

  void aThreadForksFromInside() {
    const ForkGate::Inside inside;
    ForkGate::announce();
    const auto start = std::chrono::steady_clock::now();
    const int status = inChild([] {
      const ForkGate::Inside again;
      return inChild([] { return true; }) == 0;  // a child's child finds nobody inside but its parent's thread
    });
    ForkGate::done();
    QCOMPARE(status, 0);
    QVERIFY(std::chrono::steady_clock::now() - start < 1s);
  }

  /// Somebody that a debugger stopped, or that waits for a lock of the thread that forks.
  void aForkDoesNotWaitForEver() {
    std::atomic<bool> isInside{false}, stopping{false};
    std::thread stopped([&] {
      const ForkGate::Inside inside;
      isInside = true;
      while (!stopping) std::this_thread::sleep_for(1ms);
    });
    while (!isInside) std::this_thread::yield();
    QCOMPARE(inChild([] {
               ForkGate::rest();  // no fork is announced in a child
               return true;
             }), 0);
    stopping = true;
    stopped.join();
  }
};

QTEST_GUILESS_MAIN(ForkGateTest)
#include "fork_gate_test.moc"
