#include "engine/codegen/cpu/background_worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/support/fork_gate.h"

namespace fusebox::codegen::cpu {
namespace {

constexpr int kBackgroundNice = 5;  // a quarter of a core that another thread wants too: optimised code is worth having soon

}  // namespace

struct BackgroundWorker::Queue {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<std::function<void()>> waiting;
  std::thread thread;
  bool stopping = false, busy = false;

  static void doIt(std::function<void()> work) {
    const ForkGate::Inside inside;
    try {
      work();
    } catch (...) {
      // Out of memory, or what a recorder could not write down: an exception would end the program with this thread.
    }
    work = nullptr;  // while inside: what it holds may end with it
  }

  void work() {
    // The program, which has code already, goes first where there are fewer cores than threads that want one. On Linux this is the thread's own.
    setpriority(PRIO_PROCESS, 0, std::min(getpriority(PRIO_PROCESS, 0) + kBackgroundNice, 19));
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stopping || !waiting.empty(); });
      if (stopping) return;
      std::function<void()> next = std::move(waiting.front());
      waiting.pop_front();
      busy = true;
      lock.unlock();
      ForkGate::rest();
      doIt(std::move(next));
      lock.lock();
      busy = false;
      if (waiting.empty()) idle.notify_all();
    }
  }
};

BackgroundWorker::~BackgroundWorker() {
  stop();
  delete queueHere();
}

BackgroundWorker::Queue* BackgroundWorker::queueHere() const {
  Queue* queue = queue_.load();
  return queue && queue->process == ::getpid() ? queue : nullptr;
}

BackgroundWorker::Queue* BackgroundWorker::makeQueue() {
  if (Queue* queue = queueHere()) return queue;
  // That of a parent stays where it is: its lock may be held, and its condition variables count threads, that are not in this process.
  Queue* before = queue_.load();
  auto made = std::make_unique<Queue>();
  return queue_.compare_exchange_strong(before, made.get()) ? made.release() : before;
}

void BackgroundWorker::later(std::function<void()> work) {
  Queue* queue = makeQueue();
  {
    std::lock_guard lock(queue->mutex);
    if (queue->stopping) return;
    queue->waiting.push_back(std::move(work));
    if (!queue->thread.joinable()) queue->thread = std::thread([queue] { queue->work(); });
  }
  queue->wake.notify_one();
}

void BackgroundWorker::drain() {
  Queue* queue = queueHere();
  if (!queue) return;
  std::unique_lock lock(queue->mutex);
  queue->idle.wait(lock, [queue] { return queue->stopping || (queue->waiting.empty() && !queue->busy); });
}

void BackgroundWorker::stop() {
  Queue* queue = makeQueue();
  std::thread thread;
  {
    std::lock_guard lock(queue->mutex);
    queue->stopping = true;
    queue->waiting.clear();
    thread = std::move(queue->thread);
  }
  queue->wake.notify_all();
  queue->idle.notify_all();
  if (thread.joinable()) thread.join();
}

}  // namespace fusebox::codegen::cpu
