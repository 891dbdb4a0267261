#pragma once

#include <atomic>
#include <functional>

namespace fusebox::codegen::cpu {

/// A thread of low priority that works through a queue; it begins with the first work. A fork leaves it behind: a child has one of its own, and what
/// waited in the parent is the parent's. Thread-safe.
class BackgroundWorker {
 public:
  BackgroundWorker() = default;
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;
  ~BackgroundWorker();

  /// Not done any more after stop().
  void later(std::function<void()> work);
  /// Waits until all of this process is done.
  void drain();
  /// What waits is given up.
  void stop();

 private:
  struct Queue;
  /// That of this process, or null.
  Queue* queueHere() const;
  Queue* makeQueue();

  std::atomic<Queue*> queue_{nullptr};
};

}  // namespace fusebox::codegen::cpu
