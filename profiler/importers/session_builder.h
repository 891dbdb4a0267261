#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/importers/import_context.h"
#include "profiler/session/launch_store.h"
#include "profiler/session/row_sink.h"

namespace fusebox::importing {

using session::Cell;
using session::RowKind;
namespace rows = session::rows;

inline Cell text(std::string_view value) { return value.empty() ? Cell{} : Cell{std::string(value)}; }
inline Cell idOrNull(int64_t id) { return id > 0 ? Cell{id} : Cell{}; }

/// Work of a device, or a call of a compiled region, as a foreign trace tells it.
struct DeviceSpan {
  std::string_view kind;  ///< of gpu_events: kernel, memcpy, memset, sync, annotation, graph
  std::string_view name;
  std::optional<int64_t> device, stream, correlation, bytes;
  int64_t startNs = 0, durNs = 0;
  std::optional<int64_t> registers, sharedBytes;  ///< of a kernel; shared: all of it, or what is given when it is built
  std::optional<int64_t> dynamicSharedBytes, localBytes;            ///< shared memory that is given at the launch; of a thread
  std::string grid = {}, block = {};                                ///< "32", "2 x 6 x 1"; empty where not told
  std::optional<double> occupancy;                                  ///< warps of those that a multiprocessor can hold, 0 .. 1
  std::string_view occupancyLimit = {};                             ///< what allows no more warps
  std::optional<int64_t> operatorId = {};  ///< the number by which a profiler names the operator that it works for; see TraceLinks
};

/// An operator's number in the column of its event, which may be read later: below zero. TraceLinks::finish() puts the event there.
constexpr int64_t unresolved(int64_t operatorId) { return -1 - operatorId; }

/// Fills a new session file with what an importer reads: ids, threads, kernels by name, launches with their sums and
/// pyramid, losses and source lines. Not a recording: one thread, and no promise about the file before finish() unless
/// ImportProgress::usable asks for one; then it is written with a log and committed every second, as a recording is.
/// Memory does not grow with the number of events. Errors of the disk stick and are returned by good() and finish().
class SessionBuilder {
 public:
  static Result<std::unique_ptr<SessionBuilder>> create(const std::string& path, ImportProgress* progress = nullptr);
  ~SessionBuilder();

  template <class Row>
  void put(Row row) {
    sink_.put(std::move(row));
  }
  int64_t newId(RowKind kind) { return ++ids_[static_cast<size_t>(kind)]; }
  void info(const std::string& key, Cell value) { info_[key] = std::move(value); }
  bool hasInfo(const std::string& key) const { return info_.contains(key); }
  /// Counts something that the session does not hold, or that was damaged. `detail` of the first is kept.
  void loss(const std::string& what, int64_t count, std::string_view detail);

  /// Foreign time to session time. The first time decides: times too large for views (Unix time in ns) are moved.
  int64_t time(int64_t foreignNs);
  /// Unix time of foreign time 0; call it once it is known.
  void setUnixBase(int64_t unixNs) { unixBase_ = unixNs; }

  /// The session's number for a thread or another row of the timeline, made on first use. `key` is unique in the
  /// foreign file.
  int64_t thread(const std::string& key, std::string_view name, int64_t osTid = 0);
  bool hasThread(const std::string& key) const { return threads_.contains(key); }
  void nameThread(int64_t thread, std::string_view name);

  /// The kernel of that name (and compile), made on first use. kind: generated or extern.
  int64_t kernel(std::string_view name, std::string_view kind, std::string_view op, std::string_view device,
                 int64_t compile = 0);
  /// Adds a span on a device row: a gpu_events row and, for kernels and copies, a launch of `kernel`.
  void deviceSpan(int64_t thread, int64_t kernel, const DeviceSpan& span);
  /// A call of a compiled region.
  void call(int64_t thread, int64_t compile, int64_t startNs, int64_t durNs);
  /// A span on a thread; returns its raw id.
  int64_t cpuSpan(std::string_view kind, std::string_view name, int64_t startNs, int64_t durNs, int64_t thread,
                  int64_t depth, std::string_view detail, std::string_view file = {}, int64_t line = 0,
                  int64_t compile = 0);

  /// A line of the user's program that the foreign file quotes. The text of a file is put together from those.
  void sourceLine(const std::string& file, int64_t line, std::string_view code);
  /// A whole text (generated code).
  void sourceText(const std::string& file, std::string_view text);

  session::Database& database() { return database_; }
  /// Writes launches that wait, so that SQL over the file sees all that was added.
  void settle();
  /// Commits now and then, so that memory stays bounded and who looks at the file sees it grow; the first error.
  Result<void> good();
  /// Writes everything that is still open and closes the file.
  Result<void> finish();
  /// Whether somebody was told that the file can be opened.
  bool isShown() const { return shown_; }
  /// After an import that was cancelled: finish() with what is there, and a loss that says how much of the file was read.
  Result<void> finishPartial();

 private:
  SessionBuilder(session::Database database, ImportProgress* progress);
  struct Pending {
    session::LaunchRecord record;
    int64_t gpuEvent;  ///< 0: a call
  };
  struct Lane {
    std::vector<Pending> launches;
    std::vector<session::LaunchRecord> calls;
  };
  void flushLane(int64_t thread, Lane& lane);
  /// The row of a launch shape, made on first use; 0 where the file tells none.
  int64_t shapeOf(const DeviceSpan& span);
  void flushLanes();
  void putSources();
  void putFacts();
  Result<void> commit(bool show);

  session::Database database_;
  session::RowSink sink_;
  session::LaunchStore launches_;
  session::LaunchRing ring_{0};
  std::array<int64_t, static_cast<size_t>(RowKind::Count)> ids_{};
  std::map<std::string, Cell> info_;
  std::map<std::string, std::pair<int64_t, std::string>> losses_;
  std::unordered_map<std::string, int64_t> threads_, kernels_, shapes_;
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> shapeSums_;  ///< by kernel and shape: events, time
  std::map<int64_t, std::pair<std::string, int64_t>> threadNames_;
  std::map<int64_t, Lane> lanes_;
  std::map<std::string, std::map<int64_t, std::string>> sources_;
  size_t sourceBytes_ = 0, pending_ = 0;
  int64_t rowsSinceCommit_ = 0;
  std::optional<int64_t> origin_;
  int64_t firstNs_ = 0, lastNs_ = 0, unixBase_ = 0;
  session::Statement gpuLaunch_;
  ImportProgress* progress_;
  std::chrono::steady_clock::time_point nextShow_;  ///< when who looks at the file is to see more of it
  bool shown_ = false, finished_ = false;
};

}  // namespace fusebox::importing
