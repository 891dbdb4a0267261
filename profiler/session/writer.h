#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/support/result.h"
#include "profiler/session/cell.h"
#include "profiler/session/launch_ring.h"
#include "profiler/session/launch_store.h"
#include "profiler/session/row_sink.h"

namespace fusebox::session {

struct WriterOptions {
  int64_t maxQueueBytes = int64_t{256} << 20;  ///< rows waiting for the disk beyond this are dropped and counted
  int64_t maxLaunches = 20'000'000;            ///< launches kept one by one; later ones only in sums and pyramid
  int commitMs = 100;                          ///< how long something recorded may stay invisible to readers
};

/// Writes a session on a thread of its own: rows and jobs are queued from any thread, launches come through rings, and all of
/// it is committed in batches. The threads that record never wait for the disk and never see its errors: after a failed batch
/// (full disk, I/O error) the rows are kept and tried again, what does not fit is counted in `losses`, and the trouble is
/// said once on stderr. What a job or a listener throws is a loss too: this thread runs in the user's process.
class Writer {
 public:
  /// Creates the file. An existing session is replaced; any other existing file is refused (InvalidArgument).
  static Result<std::unique_ptr<Writer>> create(const std::string& path, WriterOptions options = {});
  /// Whether create() would take `path`: nothing there, an empty file, or a session. Changes nothing.
  static Result<void> mayReplace(const std::string& path);
  /// Calls finish().
  ~Writer();

  /// Rows that are made on the writer thread (formatting a graph, reading a source file). A job runs again if its batch
  /// could not be committed.
  using Job = std::function<void(RowSink&)>;
  /// A row of rows.h.
  template <class Row>
  void post(Row row) {
    postCells(Row::kKind, rows::takeCells(std::move(row)));
  }
  void post(Job job, int64_t approximateBytes) noexcept;
  void loss(const std::string& what, int64_t count, const std::string& detail = {}) noexcept;

  /// Takes part in every batch from the next one on.
  void setListener(std::shared_ptr<BatchListener> listener);

  /// A ring for the calling thread, recorded as `thread`; null when memory is short. The writer owns it.
  LaunchRing* openRing(int32_t thread) noexcept;
  /// By the thread that owned it, which will push no more.
  static void closeRing(LaunchRing* ring) noexcept { ring->closed.store(true, std::memory_order_release); }

  /// Blocks until all that was recorded before is committed; false if the disk refuses.
  bool flush();
  /// The same for a signal handler: nothing but looks, every millisecond, whether it is committed, `patience` at most.
  void awaitBatch(std::chrono::milliseconds patience) const noexcept;
  /// Writes the rest, marks the session finished and closes it, as one file without a log. Later posts are ignored.
  void finish();
  const std::string& path() const { return path_; }

 private:
  using Cells = std::vector<Cell>;
  struct Item {
    RowKind kind;
    Cells cells;
    Job job;
    int64_t bytes;
  };
  struct LossRow {
    int64_t count = 0, firstNs = 0, lastNs = 0;
    std::string detail;
    bool dirty = false;
  };
  Writer(std::string path, Database database, WriterOptions options);
  void postCells(RowKind kind, Cells cells) noexcept;
  void enqueue(Item item) noexcept;
  void loop();
  /// Runs a part of the writer's work; what it throws is counted as a loss of `what`. False if it threw.
  template <class Part>
  bool contain(const char* what, Part&& part) noexcept;
  void takeQueue() noexcept;
  bool writeBatch(bool last) noexcept;
  bool tryBatch(bool last);
  void putPending();
  /// Now and then, a sign of life; true if it was written.
  bool beat();
  void lossOf(const RecordCounts& lost, const std::string& why);
  void drainRings();
  void putLosses();
  void failed(const Error& error);
  void close() noexcept;
  void tryClose();

  const std::string path_;
  const WriterOptions options_;
  Database database_;
  RowSink sink_;
  LaunchStore launches_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Item> queue_;
  int64_t queueBytes_ = 0;
  bool stopping_ = false, finished_ = false;
  uint64_t flushWanted_ = 0, flushDone_ = 0;
  bool lastBatchOk_ = true;
  std::vector<std::unique_ptr<LaunchRing>> rings_;
  std::vector<LaunchRing*> freeRings_;
  std::map<std::string, LossRow> losses_;
  std::shared_ptr<BatchListener> newListener_;
  std::atomic<int64_t> lostForMemory_{0};
  std::atomic<uint64_t> begun_{0}, ended_{0};  ///< batches
  std::atomic<pid_t> threadId_{0};

  std::deque<Item> pending_;  ///< writer thread only: taken from the queue, not committed yet
  std::shared_ptr<BatchListener> listener_;
  bool reported_ = false;
  int64_t notKeptReported_ = 0;
  int64_t lastBeatNs_ = 0;
  std::thread thread_;
};

}  // namespace fusebox::session
