#include "engine/codegen/cpu/background_worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;
using fusebox::codegen::cpu::BackgroundWorker;

class BackgroundWorkerTest : public QObject {
  Q_OBJECT

 private slots:
  /// As LLVM's locks: a child would wait for a holder that only its parent has.
  void aForkWaitsForTheWorkAtHand() {
    BackgroundWorker worker;
    std::mutex lock;
    for (int i = 0; i < 10; ++i) {
      std::atomic<bool> isHeld{false};
      worker.later([&] {
        std::lock_guard held(lock);
        isHeld = true;
        std::this_thread::sleep_for(20ms);
      });
      while (!isHeld) std::this_thread::yield();
      const pid_t child = ::fork();
      if (child == 0) ::_exit(lock.try_lock() ? 0 : 1);
      int status = -1;
      ::waitpid(child, &status, 0);
      QCOMPARE(status, 0);
      worker.drain();
    }
  }
};

QTEST_GUILESS_MAIN(BackgroundWorkerTest)
#include "background_worker_test.moc"
