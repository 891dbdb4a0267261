#include "profiler/importers/nsight_sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "profiler/cupti/gpu_device.h"
#include "profiler/cupti/occupancy.h"
#include "profiler/importers/inflated_file.h"
#include "profiler/importers/trace_links.h"
#include "profiler/importers/trace_names.h"

namespace fusebox::importing {
namespace {

using session::Database;
using session::Statement;

constexpr const char* kNsightFormat = "Nsight Systems export";
constexpr int64_t kShiftNs =
    int64_t{3'600} * 1'000'000'000;                // events before the start of the collection have negative times
constexpr int64_t kSpreadPids = int64_t{1} << 40;  // correlation numbers are unique within a process only

constexpr std::string_view kKnownTables[] = {"StringIds",        "ProcessStreams",        "ThreadNames",
                                             "PROCESSES",        "ANALYSIS_FILE",         "ANALYSIS_DETAILS",
                                             "EXPORT_META_DATA", "GENERIC_EVENT_SOURCES", "GENERIC_EVENT_TYPES"};

Result<Database> openForeign(const std::string& path) {
  auto database = Database::openForReading(path, true);
  if (!database) return database;
  sqlite3* db = database->handle();
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
  (void)database->execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
  return database;
}

/// A row of a foreign table, by the names of its columns.
class Row {
 public:
  explicit Row(const Statement& statement) : statement_(statement) {
    for (int c = 0; c < statement.columns(); ++c) columns_.emplace(statement.columnName(c), c);
  }
  std::optional<int64_t> integer(const char* name) const {
    const auto found = columns_.find(name);
    if (found == columns_.end() || statement_.typeAt(found->second) != Statement::Type::Integer) return std::nullopt;
    return statement_.integerAt(found->second);
  }
  std::string string(const char* name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() || statement_.typeAt(found->second) == Statement::Type::Null ? std::string()
                                                                       : std::string(statement_.textAt(found->second));
  }

 private:
  const Statement& statement_;
  std::map<std::string, int> columns_;
};

class NsightImport {
 public:
  NsightImport(Database& foreign, SessionBuilder& session, TraceLinks& links, ImportProgress* progress,
               int64_t mostRows)
      : foreign_(foreign), session_(session), links_(links), progress_(progress), mostRows_(mostRows) {}
  Result<void> all();
  int64_t events() const { return events_; }

 private:
  using Take = void (NsightImport::*)(const Row&);
  struct Table {
    std::string_view name;
    Take take;
  };
  static const Table kTables[];
  Result<void> tables();
  Result<void> each(std::string_view table, Take take);
  void names(const Row& row);
  void labels(const std::string& table, std::map<int64_t, std::string>& into);
  void kernel(const Row& row);
  void copy(const Row& row);
  void set(const Row& row);
  void sync(const Row& row);
  void graph(const Row& row);
  void call(const Row& row);
  void nvtx(const Row& row);
  void overhead(const Row& row) { span(row, "overhead"); }
  void osCall(const Row& row) { span(row, "osrt"); }
  void library(const Row& row) { span(row, "library"); }
  void graphEvent(const Row& row) { span(row, "cuda_graph"); }
  void diagnostic(const Row& row);
  void gpu(const Row& row);
  void startTime(const Row& row);
  void version(const Row& row);
  void threadName(const Row& row);

  std::string text(std::optional<int64_t> id) const;
  struct Times {
    int64_t start, duration;
  };
  std::optional<Times> times(const Row& row, bool endMayLack = false, bool isPoint = false);
  int64_t cpuThread(const Row& row);
  int64_t stream(const Row& row);
  int64_t correlation(const Row& row, int64_t pid);
  void device(const Row& row, std::string_view kind, const std::string& name, std::string_view kernelKind,
              std::string_view op, bool isLaunch = false);
  void addShape(const Row& row, DeviceSpan& span) const;
  int64_t span(const Row& row, std::string_view kind);

  Database& foreign_;
  SessionBuilder& session_;
  TraceLinks& links_;
  ImportProgress* progress_;
  const int64_t mostRows_;
  int64_t events_ = 0, rows_ = 0, totalRows_ = 1;
  std::set<std::string, std::less<>> present_;
  std::unordered_map<int64_t, std::string> strings_;
  std::map<int64_t, std::string> copyKinds_, syncTypes_, severities_;
  std::map<int64_t, int64_t> pids_;
  std::map<int64_t, cupti::GpuDevice> gpus_;
};

// Calls before what they start, so that nothing depends on the order; the rest as a reader would want it.
const NsightImport::Table NsightImport::kTables[] = {
    {"TARGET_INFO_SESSION_START_TIME", &NsightImport::startTime},
    {"TARGET_INFO_GPU", &NsightImport::gpu},
    {"META_DATA_EXPORT", &NsightImport::version},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", &NsightImport::call},
    {"CUPTI_ACTIVITY_KIND_DRIVER", &NsightImport::call},
    {"CUPTI_ACTIVITY_KIND_KERNEL", &NsightImport::kernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", &NsightImport::copy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", &NsightImport::set},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &NsightImport::sync},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &NsightImport::graph},
    {"NVTX_EVENTS", &NsightImport::nvtx},
    {"PROFILER_OVERHEAD", &NsightImport::overhead},
    {"OSRT_API", &NsightImport::osCall},
    {"CUDNN_EVENTS", &NsightImport::library},
    {"CUBLAS_EVENTS", &NsightImport::library},
    {"CUDA_GRAPH_EVENTS", &NsightImport::graphEvent},
    {"CUDA_GRAPH_NODE_EVENTS", &NsightImport::graphEvent},
    {"DIAGNOSTIC_EVENT", &NsightImport::diagnostic},
    {"ThreadNames", &NsightImport::threadName},
};

// A damaged page ends the reading of its table, not of the file.
Result<void> NsightImport::each(std::string_view table, Take take) {
  if (!present_.contains(table)) return {};
  auto statement = foreign_.prepare(fmt::format("SELECT * FROM \"{}\"", table));
  if (!statement) {
    session_.loss("tables", 1, fmt::format("{}: {}", table, statement.error().message));
    return {};
  }
  const Row row(*statement);
  for (int64_t count = 0;; ++count) {
    auto stepped = statement->step();
    if (!stepped) {
      session_.loss("tables", 1, fmt::format("{} is damaged after {} rows: {}", table, count, stepped.error().message));
      return {};
    }
    if (!*stepped) return {};
    if (count > mostRows_) {
      session_.loss("tables", 1, fmt::format("{} holds more rows than its file has room for", table));
      return {};
    }
    (this->*take)(row);
    if (++rows_ % 4096 != 0) continue;
    if (auto on = checkpoint(progress_, kNsightFormat, static_cast<double>(rows_) / static_cast<double>(totalRows_)); !on)
      return on;
    if (auto good = session_.good(); !good) return good;
  }
}

Result<void> NsightImport::tables() {
  auto list = foreign_.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'");
  if (!list) return tl::unexpected(list.error());
  for (;;) {
    auto row = list->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) break;
    if (present_.size() < 10'000) present_.insert(list->string("name"));
  }
  for (const auto& name : present_) {
    const bool about = name.starts_with("ENUM_") || name.starts_with("TARGET_INFO_") ||
                       name.starts_with("META_DATA_") || name.starts_with("sqlite_");
    bool known = about;
    for (const auto& table : kTables) known = known || table.name == name;
    for (const auto& table : kKnownTables) known = known || table == name;
    const auto count = foreign_.integer(
        fmt::format("SELECT count(*) FROM \"{}\"", name.find('"') == std::string::npos ? name : "StringIds"));
    if (!count) continue;
    totalRows_ += count->value_or(0);
    if (!known)
      session_.loss("unknown_tables", count->value_or(0), "rows of tables that have no place in a session: " + name);
  }
  return {};
}

void NsightImport::labels(const std::string& table, std::map<int64_t, std::string>& into) {
  if (!present_.contains(table)) return;
  auto statement = foreign_.prepare("SELECT * FROM " + table);
  if (!statement) return;
  const Row row(*statement);
  for (auto stepped = statement->step(); stepped && *stepped && into.size() < 10'000; stepped = statement->step()) {
    const std::string label = row.string("label");
    if (const auto id = row.integer("id")) into[*id] = label.empty() ? row.string("name") : label;
  }
}

void NsightImport::names(const Row& row) {
  if (const auto id = row.integer("id")) strings_[*id] = row.string("value").substr(0, 4000);
}

std::string NsightImport::text(std::optional<int64_t> id) const {
  if (!id) return {};
  const auto found = strings_.find(*id);
  return found == strings_.end() ? fmt::format("string {}", *id) : found->second;
}

std::optional<NsightImport::Times> NsightImport::times(const Row& row, bool endMayLack, bool isPoint) {
  const auto start = row.integer("start");
  auto end = row.integer("end");
  if (!start || (!end && !endMayLack)) {
    session_.loss("events_without_time", 1, "rows without start or end");
    return std::nullopt;
  }
  // CUPTI writes 0 for both when it lost the time stamps.
  if (*start == 0 && end == 0) {
    session_.loss("events_without_time", 1, "CUPTI lost the times of these (start = end = 0)");
    return std::nullopt;
  }
  if (!end && !isPoint) session_.loss("unfinished_spans", 1, "spans that had not ended are shown without length");
  int64_t shifted = 0, length = 0;
  if (__builtin_add_overflow(*start, kShiftNs, &shifted) ||
      __builtin_sub_overflow(end.value_or(*start), *start, &length)) {
    session_.loss("events_without_time", 1, "times out of range");
    return std::nullopt;
  }
  ++events_;
  return Times{session_.time(shifted), std::clamp<int64_t>(length, 0, int64_t{1} << 58)};
}

int64_t NsightImport::cpuThread(const Row& row) {
  const int64_t global = row.integer("globalTid").value_or(0);
  const int64_t pid = global >> 24 & 0xffffff, tid = global & 0xffffff;
  return session_.thread(fmt::format("t{}", global), fmt::format("process {} · thread {}", pid, tid), tid);
}

int64_t NsightImport::stream(const Row& row) {
  const int64_t device = row.integer("deviceId").value_or(0), stream = row.integer("streamId").value_or(0);
  const int64_t pid = row.integer("globalPid").value_or(0) >> 24 & 0xffffff;
  const bool several = pids_.size() > 1;
  return session_.thread(fmt::format("g{} {} {}", several ? pid : 0, device, stream),
                         several ? fmt::format("GPU {} stream {} · process {}", device, stream, pid)
                                 : fmt::format("GPU {} stream {}", device, stream));
}

int64_t NsightImport::correlation(const Row& row, int64_t pid) {
  const auto id = row.integer("correlationId");
  if (!id || *id < 0 || *id >= kSpreadPids) return -1;
  return *id + pids_.try_emplace(pid, std::min<int64_t>(static_cast<int64_t>(pids_.size()), 1 << 20)).first->second *
                   kSpreadPids;
}

/// "32", "2 x 6 x 1": as a session writes the sizes of grids and blocks.
std::string sizesText(const std::array<int32_t, 3>& sizes) {
  return sizes[1] == 1 && sizes[2] == 1 ? std::to_string(sizes[0]) : fmt::format("{} x {} x {}", sizes[0], sizes[1], sizes[2]);
}

/// Launch geometry, and what a kernel needs of a multiprocessor. How many of its warps that lets it hold follows from both.
void NsightImport::addShape(const Row& row, DeviceSpan& span) const {
  cupti::LaunchShape shape;
  const auto number = [&](const char* column) {
    const auto value = row.integer(column);
    return static_cast<int32_t>(std::clamp<int64_t>(value.value_or(0), 0, INT32_MAX));
  };
  if (!row.integer("gridX") || !row.integer("blockX")) return;
  shape.grid = {number("gridX"), number("gridY"), number("gridZ")};
  shape.block = {number("blockX"), number("blockY"), number("blockZ")};
  shape.registers = number("registersPerThread");
  shape.staticShared = number("staticSharedMemory");
  shape.dynamicShared = number("dynamicSharedMemory");
  span.grid = sizesText(shape.grid);
  span.block = sizesText(shape.block);
  span.registers = row.integer("registersPerThread");
  span.sharedBytes = row.integer("staticSharedMemory");
  span.dynamicSharedBytes = row.integer("dynamicSharedMemory");
  span.localBytes = row.integer("localMemoryPerThread");
  const auto gpu = gpus_.find(row.integer("deviceId").value_or(0));
  if (gpu == gpus_.end()) return;
  const cupti::Occupancy occupancy = cupti::occupancyOf(shape, gpu->second);
  if (occupancy.share <= 0) return;
  span.occupancy = occupancy.share;
  span.occupancyLimit = occupancy.limit;
}

void NsightImport::device(const Row& row, std::string_view kind, const std::string& name, std::string_view kernelKind,
                          std::string_view op, bool isLaunch) {
  const auto at = times(row);
  if (!at) return;
  const int64_t id = correlation(row, row.integer("globalPid").value_or(0) >> 24 & 0xffffff);
  const auto device = row.integer("deviceId");
  const int64_t kernel =
      kernelKind.empty() ? 0 : session_.kernel(name, kernelKind, op, fmt::format("cuda:{}", device.value_or(0)));
  DeviceSpan span{kind, name, device, row.integer("streamId"), id >= 0 ? std::optional(id) : std::nullopt,
                  row.integer("bytes"), at->start, at->duration};
  if (isLaunch) addShape(row, span);
  session_.deviceSpan(stream(row), kernel, span);
}

void NsightImport::kernel(const Row& row) {
  const std::string name = text(row.integer("demangledName") ? row.integer("demangledName") : row.integer("shortName"));
  device(row, "kernel", name, kernelKind(name), "", true);
}

void NsightImport::copy(const Row& row) {
  const auto kind = copyKinds_.find(row.integer("copyKind").value_or(-1));
  device(row, "memcpy", "Memcpy " + (kind == copyKinds_.end() ? std::string() : kind->second), "extern", "memcpy");
}

void NsightImport::set(const Row& row) { device(row, "memset", "Memset", "extern", "memset"); }

void NsightImport::sync(const Row& row) {
  const auto type = syncTypes_.find(row.integer("syncType").value_or(-1));
  device(row, "sync", type == syncTypes_.end() ? "Synchronize" : type->second, "", "");
}

void NsightImport::graph(const Row& row) {
  device(row, "graph", fmt::format("CUDA graph {}", row.integer("graphId").value_or(0)), "extern", "cuda graph");
}

/// "cudaMalloc_v3020" is cudaMalloc: the version of the library that brought it is no part of what programs call. cuInit_v2 is a name.
std::string withoutVersion(const std::string& name) {
  const size_t at = name.rfind("_v");
  const bool isVersion = at != name.npos && name.size() - at >= 6 && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return isVersion ? name.substr(0, at) : name;
}

int64_t NsightImport::span(const Row& row, std::string_view kind) {
  const auto at = times(row, true);
  if (!at) return 0;
  return session_.cpuSpan(kind, text(row.integer("nameId")), at->start, at->duration, cpuThread(row), 0, {});
}

void NsightImport::call(const Row& row) {
  const std::string name = withoutVersion(text(row.integer("nameId")));
  const bool driver = name.starts_with("cu") && !name.starts_with("cuda");
  const auto at = times(row);
  if (!at) return;
  const int64_t thread = cpuThread(row);
  const auto result = row.integer("returnValue");
  const int64_t event =
      session_.cpuSpan(driver ? "cuda_driver" : "cuda_runtime", name, at->start, at->duration, thread, 0,
                       result && *result != 0 ? fmt::format("{{\"returned\":{}}}", *result) : std::string());
  const int64_t id = correlation(row, row.integer("globalTid").value_or(0) >> 24 & 0xffffff);
  if (id >= 0) links_.deviceCall(id, event, thread, at->start, at->duration, driver);
}

// 59: push/pop, 60: start/end, 34 and 75: marks; the others declare names of domains and categories.
void NsightImport::nvtx(const Row& row) {
  const int64_t type = row.integer("eventType").value_or(0);
  if (type == 33 || type == 39 || type == 75) return;
  const auto at = times(row, true, type == 34);
  if (!at) return;
  const std::string own = row.string("text");
  session_.cpuSpan("nvtx", own.empty() ? text(row.integer("textId")) : own, at->start, at->duration, cpuThread(row), 0,
                   row.string("jsonText"));
}

void NsightImport::diagnostic(const Row& row) {
  const std::string said = row.string("text");
  const auto severity = severities_.find(row.integer("severity").value_or(-1));
  const std::string level = severity == severities_.end() ? "" : severity->second;
  const auto at = row.integer("timestamp");
  session_.put(rows::Artifact{.id = session_.newId(RowKind::Artifact), .kind = std::string("nsight_diagnostic"), .name = importing::text(level),
      .format = std::string("text"), .text = importing::text(said),
      .time_ns = at && *at > -kShiftNs ? Cell{session_.time(*at + kShiftNs)} : Cell{}});
  if (level == "Warning" || level == "Error" || level == "Fatal Error" || level == "Fatal")
    session_.loss("nsight_" + level, 1, said);
}

void NsightImport::gpu(const Row& row) {
  if (!session_.hasInfo("device")) session_.info("device", row.string("name"));
  const auto id = row.integer("cuDevice") ? row.integer("cuDevice") : row.integer("id");
  if (!id || *id < 0 || *id > 1024 || gpus_.contains(*id)) return;
  const auto number = [&](const char* column) { return std::clamp<int64_t>(row.integer(column).value_or(0), 0, int64_t{1} << 50); };
  cupti::GpuDevice gpu{.device = static_cast<int>(*id), .name = row.string("name"),
                       .capability = static_cast<int>(std::min<int64_t>(number("computeMajor"), 1000) * 10 + std::min<int64_t>(number("computeMinor"), 9)),
                       .multiprocessors = static_cast<int>(std::min<int64_t>(number("smCount"), 1 << 16)),
                       .threadsPerMultiprocessor = std::min<int64_t>(number("maxWarpsPerSm"), 1 << 16) * std::min<int64_t>(number("threadsPerWarp"), 1 << 10), .registersPerMultiprocessor = number("maxRegistersPerSm"),
                       .sharedPerMultiprocessor = number("maxShmemPerSm"), .memoryBytes = number("totalMemory"), .l2Bytes = number("l2CacheSize"),
                       .clockKhz = std::min<int64_t>(number("clockRate") / 1000, 100'000'000)};
  const auto known = [](int64_t value) { return value > 0 ? Cell{value} : Cell{}; };
  session_.put(rows::GpuDevice{.device = *id, .name = gpu.name, .capability = known(gpu.capability), .multiprocessors = known(gpu.multiprocessors),
      .threads_per_multiprocessor = known(gpu.threadsPerMultiprocessor), .registers_per_multiprocessor = known(gpu.registersPerMultiprocessor),
      .shared_per_multiprocessor = known(gpu.sharedPerMultiprocessor), .memory_bytes = known(gpu.memoryBytes), .l2_bytes = known(gpu.l2Bytes),
      .clock_khz = known(gpu.clockKhz), .peak_bytes_per_s = known(number("memoryBandwidth")), .peak_flops = known(gpu.peakFlops())});
  gpus_.emplace(*id, std::move(gpu));
}

void NsightImport::startTime(const Row& row) {
  if (const auto ns = row.integer("utcEpochNs")) session_.setUnixBase(*ns - kShiftNs);
}

void NsightImport::version(const Row& row) {
  const std::string name = row.string("name");
  if (name == "EXPORT_PRODUCT_VERSION" || name == "EXPORT_SCHEMA_VERSION")
    session_.info("imported." + name, row.string("value"));
}

void NsightImport::threadName(const Row& row) {
  const auto global = row.integer("globalTid");
  const std::string key = fmt::format("t{}", global.value_or(0));
  if (global && session_.hasThread(key)) {
    session_.nameThread(session_.thread(key, ""),
                        fmt::format("process {} · {}", *global >> 24 & 0xffffff, text(row.integer("nameId"))));
  }
}

Result<void> NsightImport::all() {
  if (auto listed = tables(); !listed) return listed;
  labels("ENUM_CUDA_MEMCPY_OPER", copyKinds_);
  labels("ENUM_CUPTI_SYNC_TYPE", syncTypes_);
  labels("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", severities_);
  if (auto read = each("StringIds", &NsightImport::names); !read) return read;
  for (const auto& table : kTables) {
    if (auto read = each(table.name, table.take); !read) return read;
  }
  return {};
}

bool holdsAnExport(const Database& database) {
  const auto found = database.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND (name = 'StringIds' OR name = 'META_DATA_EXPORT' "
      "OR name LIKE 'CUPTI_ACTIVITY_KIND_%' OR name = 'NVTX_EVENTS')");
  return found && found->value_or(0) > 0;
}

}  // namespace

bool isNsightExport(const std::string& path, std::string_view head) {
  constexpr size_t kApplicationId = 68;
  if (!head.starts_with("SQLite format 3")) return false;
  // Of a compressed one only the beginning can be seen here; the rest is looked at once it is unpacked.
  if (isGzip(path)) return head.size() > kApplicationId + 4 && head.substr(kApplicationId, 4) != "FUSB";
  auto database = openForeign(path);
  return database && holdsAnExport(*database);
}

Result<void> importNsightExport(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  std::optional<InflatedFile> inflated;
  if (isGzip(path)) {
    auto made = InflatedFile::make(path, std::filesystem::path(session.database().path()).parent_path().string(), kNsightFormat, progress);
    if (!made) return tl::unexpected(made.error());
    inflated = std::move(*made);
    if (!inflated->damage().empty()) session.loss("end_of_file", 1, inflated->damage());
  }
  const std::string& file = inflated ? inflated->path() : path;
  auto foreign = openForeign(file);
  if (!foreign) return fail(foreign.error().code, foreign.error().message, path);
  if (inflated && !holdsAnExport(*foreign)) return fail(ErrorCode::Corrupt, "the file holds an SQLite database that is no Nsight Systems export", path);
  auto links = TraceLinks::create(session);
  if (!links) return tl::unexpected(links.error());
  std::error_code error;
  NsightImport import(*foreign, session, **links, progress,
                      static_cast<int64_t>(std::filesystem::file_size(file, error)));
  if (auto read = import.all(); !read) return read;
  if (import.events() == 0) return fail(ErrorCode::Corrupt, "the export holds no event that can be read", path);
  if (auto linked = (*links)->finish(); !linked) return linked;
  return session.good();
}

}  // namespace fusebox::importing
