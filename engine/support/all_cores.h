#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fusebox {

/// Calls `work(i)` for 0 <= i < count, on as many threads as there are cores (at most `threads`, if given); the caller's is one of them.
/// What the first that fails throws is thrown again once all threads are done; others may then not have been begun.
template <typename Work>
void forEachOnAllCores(size_t count, const Work& work, size_t threads = std::max(1u, std::thread::hardware_concurrency())) {
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  auto run = [&] {
    try {
      for (size_t i; (i = next++) < count;) work(i);
    } catch (...) {
      next = count;
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (size_t t = 1; t < std::min(threads, count); ++t) pool.emplace_back(run);
  run();
  for (std::thread& thread : pool) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace fusebox
