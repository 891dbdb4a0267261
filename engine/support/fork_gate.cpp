#include "engine/support/fork_gate.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

namespace fusebox {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnnounced = 30s;   // of one kernel's compilation, LLVM's longest work
constexpr auto kUnannounced = 2s;  // whoever is inside may wait for Python's lock, which the forking thread has

thread_local int depth = 0;

class Gate {
 public:
  static Gate& instance() {
    static auto* gate = new Gate;  // the background lives until the process ends
    return *gate;
  }

  void enter() {
    std::lock_guard lock(mutex_);
    ++inside_;
  }

  void leave() {
    std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

  void announce() {
    std::unique_lock lock(mutex_);
    ++announced_;
    waitUntilQuiet(lock, kAnnounced);
  }

  void done() {
    std::lock_guard lock(mutex_);
    if (announced_) --announced_;
    changed_.notify_all();
  }

  void rest() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return announced_ == 0; });
  }

 private:
  Gate() {
    pthread_atfork([] { instance().close(); }, [] { instance().mutex_.unlock(); }, [] { instance().openInChild(); });
  }

  void waitUntilQuiet(std::unique_lock<std::mutex>& lock, std::chrono::seconds bound) {
    changed_.wait_for(lock, bound, [this] { return inside_ == (depth ? 1 : 0); });
  }

  void close() {
    std::unique_lock lock(mutex_);
    waitUntilQuiet(lock, kUnannounced);
    lock.release();
  }

  void openInChild() {
    new (&changed_) std::condition_variable;  // the old one counts threads that are not here
    inside_ = depth ? 1 : 0;
    announced_ = 0;
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;     // threads
  int announced_ = 0;  // forks
};

}  // namespace

ForkGate::Inside::Inside() {
  if (depth++ == 0) Gate::instance().enter();
}

ForkGate::Inside::~Inside() {
  if (--depth == 0) Gate::instance().leave();
}

void ForkGate::announce() { Gate::instance().announce(); }

void ForkGate::done() { Gate::instance().done(); }

void ForkGate::rest() { Gate::instance().rest(); }

}  // namespace fusebox
