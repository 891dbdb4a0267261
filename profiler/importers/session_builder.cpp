#include "profiler/importers/session_builder.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "profiler/importers/qualified_names.h"
#include "profiler/session/event_blocks.h"
#include "profiler/session/migrations.h"
#include "profiler/session/recording_host.h"
#include "profiler/session/schema.h"

namespace fusebox::importing {
namespace {

constexpr size_t kLaneRows = 4096;  // launches of a row of the timeline written in one go: their ids are consecutive
constexpr size_t kPendingRows = 262'144;  // over all rows
constexpr int64_t kRowsPerCommit = 500'000;
constexpr int64_t kMostLaunches = 200'000'000;
constexpr size_t kMostThreads = 20'000, kMostKernelsOfAll = 1'000'000;
constexpr int64_t kMostSessionBytes = int64_t{32} << 30;
constexpr std::chrono::milliseconds kShowEvery{1000};
/// What tells readers that this process still writes; see recording_host.h.
constexpr const char* kWriterKeys[] = {"boot_id", "hostname", "pid", "pid_start"};
constexpr int64_t kMostSourceLine = 200'000;
constexpr size_t kMostSourceBytes = size_t{64} << 20;
constexpr int64_t kLargeTime = int64_t{1} << 58;  // views calculate with sums of times; see the timeline's model
constexpr int64_t kDayNs = int64_t{86'400} * 1'000'000'000;

}  // namespace

Result<std::unique_ptr<SessionBuilder>> SessionBuilder::create(const std::string& path, ImportProgress* progress) {
  auto database = session::Database::openForWriting(path);
  if (!database) return tl::unexpected(database.error());
  // The file is given its name only when it is complete; until then nothing needs to survive a crash.
  auto set = database->execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536");
  if (!set) return tl::unexpected(set.error());
  if (auto made = session::createSchema(*database); !made) return tl::unexpected(made.error());
  if (auto begun = database->execute("BEGIN"); !begun) return tl::unexpected(begun.error());
  // Long statements at the end can be cancelled too.
  if (progress) {
    sqlite3_progress_handler(
        database->handle(), 100'000,
        [](void* p) { return static_cast<ImportProgress*>(p)->isOver() ? 1 : 0; },
        progress);
  }
  std::unique_ptr<SessionBuilder> builder(new SessionBuilder(std::move(*database), progress));
  auto link = builder->database_.prepare("UPDATE t_gpu_event SET launch_id = ?2 WHERE id = ?1");
  if (!link) return tl::unexpected(link.error());
  builder->gpuLaunch_ = std::move(*link);
  return builder;
}

SessionBuilder::SessionBuilder(session::Database database, ImportProgress* progress)
    : database_(std::move(database)), sink_(database_), launches_(sink_, kMostLaunches), progress_(progress),
      nextShow_(std::chrono::steady_clock::now() + (progress ? progress->usableAfter : kShowEvery)) {}

SessionBuilder::~SessionBuilder() { sink_.reset(); }

void SessionBuilder::loss(const std::string& what, int64_t count, std::string_view detail) {
  if (count <= 0) return;
  auto& [total, said] = losses_[losses_.size() < 1000 || losses_.contains(what) ? what : "other"];
  total += count;
  if (said.empty()) said = detail.substr(0, 400);
}

int64_t SessionBuilder::time(int64_t foreignNs) {
  if (!origin_) {
    origin_ = foreignNs > kLargeTime || foreignNs < 0 ? foreignNs - kDayNs : 0;
    firstNs_ = lastNs_ = foreignNs - *origin_;
  }
  int64_t moved = 0;
  if (__builtin_sub_overflow(foreignNs, *origin_, &moved) || moved < 0 || moved > kLargeTime) {
    loss("time", 1, "an event's time lies far outside the others'");
    return std::clamp<int64_t>(moved, firstNs_, lastNs_);
  }
  firstNs_ = std::min(firstNs_, moved);
  lastNs_ = std::max(lastNs_, moved);
  return moved;
}

int64_t SessionBuilder::thread(const std::string& key, std::string_view name, int64_t osTid) {
  if (const auto known = threads_.find(key); known != threads_.end()) return known->second;
  if (threads_.size() >= kMostThreads) {
    loss("threads", 1, fmt::format("only the first {} threads have rows of their own", kMostThreads));
    return 0;
  }
  const int64_t id = static_cast<int64_t>(threads_.size());
  threads_.emplace(key, id);
  threadNames_[id] = {std::string(name.substr(0, 200)), osTid};
  return id;
}

void SessionBuilder::nameThread(int64_t thread, std::string_view name) {
  if (const auto known = threadNames_.find(thread); known != threadNames_.end())
    known->second.first = name.substr(0, 200);
}

int64_t SessionBuilder::kernel(std::string_view name, std::string_view kind, std::string_view op,
                               std::string_view device, int64_t compile) {
  std::string key = fmt::format("{}\n{}\n{}", compile, device, name);
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  if (kernels_.size() >= kMostKernelsOfAll) {
    loss("kernels", 1, fmt::format("only the first {} kernels are told apart", kMostKernelsOfAll));
    key = name = "other kernels";
    if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  }
  const int64_t id = newId(RowKind::Kernel);
  kernels_.emplace(std::move(key), id);
  put(rows::Kernel{.id = id, .compile_id = idOrNull(compile), .name = std::string(name), .kind = std::string(kind), .op = text(op),
      .device = text(device), .flops = int64_t{0}});
  return id;
}

int64_t SessionBuilder::shapeOf(const DeviceSpan& s) {
  constexpr size_t kMostShapes = 200'000;
  if (s.grid.empty() && s.block.empty() && !s.registers) return 0;
  const auto number = [](const std::optional<int64_t>& value) { return value.value_or(-1); };
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", s.grid, s.block, number(s.registers), number(s.sharedBytes), number(s.dynamicSharedBytes), number(s.localBytes), s.occupancy.value_or(-1), number(s.device), s.name);
  if (const auto known = shapes_.find(key); known != shapes_.end()) return known->second;
  if (shapes_.size() >= kMostShapes) {
    loss("launch_shapes", 1, "more launch shapes than a session holds");
    return 0;
  }
  const auto cell = [](const std::optional<int64_t>& value) { return value ? Cell{*value} : Cell{}; };
  int64_t threads = s.block.empty() ? 0 : 1;
  for (size_t at = 0; at < s.block.size();) {
    const size_t end = std::min(s.block.find(" x ", at), s.block.size());
    threads *= std::clamp<int64_t>(std::strtoll(s.block.substr(at, end - at).c_str(), nullptr, 10), 0, 4096);
    at = end + 3;
  }
  const int64_t id = newId(RowKind::GpuShape);
  put(rows::GpuShape{.id = id, .name = std::string(s.name), .device = cell(s.device), .grid = text(s.grid), .block = text(s.block),
      .threads = threads > 0 ? Cell{threads} : Cell{}, .registers = cell(s.registers), .static_shared = cell(s.sharedBytes),
      .dynamic_shared = s.dynamicSharedBytes ? cell(s.dynamicSharedBytes) : s.sharedBytes ? Cell{int64_t{0}} : Cell{}, .local_bytes = cell(s.localBytes),
      .occupancy = s.occupancy ? Cell{std::clamp(*s.occupancy, 0.0, 1.0)} : Cell{}, .occupancy_limit = text(std::string(s.occupancyLimit))});
  shapes_.emplace(std::move(key), id);
  return id;
}

void SessionBuilder::deviceSpan(int64_t thread, int64_t kernel, const DeviceSpan& s) {
  const int64_t shape = s.kind == "kernel" ? shapeOf(s) : 0;
  if (shape > 0 && kernel > 0) {
    auto& [events, ns] = shapeSums_[{kernel, shape}];
    ++events;
    ns += std::clamp<int64_t>(s.durNs, 0, int64_t{1} << 40);
  }
  const auto cell = [](const std::optional<int64_t>& value) { return value ? Cell{*value} : Cell{}; };
  const int64_t event = newId(RowKind::GpuEvent);
  put(rows::GpuEvent{.id = event, .kind = std::string(s.kind), .name = std::string(s.name), .device = cell(s.device), .stream = cell(s.stream),
      .start_ns = s.startNs, .dur_ns = s.durNs, .correlation = cell(s.correlation), .kernel_id = idOrNull(kernel), .bytes = cell(s.bytes),
      .shape_id = idOrNull(shape), .lane = thread, .cpu_event = s.operatorId ? Cell{unresolved(*s.operatorId)} : Cell{}});
  lastNs_ = std::max(lastNs_, s.startNs + s.durNs);
  ++rowsSinceCommit_;
  if (kernel == 0) return;
  Lane& lane = lanes_[thread];
  lane.launches.push_back({{s.startNs, s.durNs, s.bytes.value_or(0), static_cast<int32_t>(kernel), 0}, event});
  if (lane.launches.size() >= kLaneRows) flushLane(thread, lane);
  if (++pending_ >= kPendingRows) flushLanes();
}

void SessionBuilder::call(int64_t thread, int64_t compile, int64_t startNs, int64_t durNs) {
  Lane& lane = lanes_[thread];
  lane.calls.push_back({startNs, durNs, 0, static_cast<int32_t>(compile), session::kCallTag});
  lastNs_ = std::max(lastNs_, startNs + durNs);
  if (lane.calls.size() >= kLaneRows) flushLane(thread, lane);
  if (++pending_ >= kPendingRows) flushLanes();
}

void SessionBuilder::flushLane(int64_t thread, Lane& lane) {
  // The summary pyramid works best in order of time; foreign traces often are in order of completion.
  std::stable_sort(lane.launches.begin(), lane.launches.end(),
                   [](const Pending& a, const Pending& b) { return a.record.startNs < b.record.startNs; });
  std::stable_sort(lane.calls.begin(), lane.calls.end(),
                   [](const auto& a, const auto& b) { return a.startNs < b.startNs; });
  ring_.setThread(static_cast<int32_t>(thread));
  for (const auto& call : lane.calls) ring_.push(call);
  const int64_t first = launches_.nextLaunchId();
  for (const auto& launch : lane.launches) ring_.push(launch.record);
  launches_.drain(ring_);
  for (size_t i = 0; i < lane.launches.size() && first + static_cast<int64_t>(i) < launches_.nextLaunchId(); ++i) {
    gpuLaunch_.bindAll(lane.launches[i].gpuEvent, first + static_cast<int64_t>(i));
    (void)gpuLaunch_.run();
  }
  pending_ -= std::min(pending_, lane.launches.size() + lane.calls.size());
  lane.launches.clear();
  lane.calls.clear();
}

void SessionBuilder::flushLanes() {
  for (auto& [thread, lane] : lanes_) flushLane(thread, lane);
  pending_ = 0;
}

int64_t SessionBuilder::cpuSpan(std::string_view kind, std::string_view name, int64_t startNs, int64_t durNs,
                                int64_t thread, int64_t depth, std::string_view detail, std::string_view file,
                                int64_t line, int64_t compile) {
  const int64_t id = newId(RowKind::CpuEvent);
  put(rows::CpuEvent{.id = id, .kind = std::string(kind), .name = std::string(name), .start_ns = startNs, .dur_ns = durNs, .thread = thread,
      .depth = depth, .compile_id = idOrNull(compile), .detail = text(detail), .file = text(file), .line = line > 0 ? Cell{line} : Cell{}});
  lastNs_ = std::max(lastNs_, startNs + durNs);
  ++rowsSinceCommit_;
  return id;
}

void SessionBuilder::sourceLine(const std::string& file, int64_t line, std::string_view code) {
  if (file.empty() || line <= 0 || line > kMostSourceLine || sourceBytes_ > kMostSourceBytes) return;
  auto& known = sources_[file][line];
  if (!known.empty() || code.empty()) return;
  known = code.substr(0, 2000);
  sourceBytes_ += known.size() + 64;
}

void SessionBuilder::sourceText(const std::string& file, std::string_view whole) {
  put(rows::SourceFile{.id = newId(RowKind::SourceFile), .path = file, .text = std::string(whole), .bytes = static_cast<int64_t>(whole.size()),
      .truncated = int64_t{0}});
  sources_.erase(file);
}

namespace {

using QuotedLines = std::map<int64_t, std::string>;

std::string_view trimmed(std::string_view line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  return line;
}

/// Whether a file's text has every line where the trace quotes it, and the trace quotes any. Of statements the first line is compared.
bool agrees(std::string_view text, const QuotedLines& quoted) {
  int64_t at = 0, found = 0;
  auto next = quoted.begin();
  while (next != quoted.end() && !text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (++at == next->first) {
      const std::string_view code = next->second;
      if (!code.empty() && trimmed(code.substr(0, code.find('\n'))) != trimmed(text.substr(0, end))) return false;
      found += code.empty() ? 0 : 1;
      ++next;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return next == quoted.end() && found > 0;
}

/// A Python file of this disk that is still the one which the trace quotes; empty where it is not.
std::string unchangedSource(const std::string& file, const QuotedLines& quoted) {
  namespace fs = std::filesystem;
  constexpr uintmax_t kMostBytes = 1 << 20;
  std::error_code error;
  if (!file.ends_with(".py") || !fs::path(file).is_absolute() || !fs::is_regular_file(fs::symlink_status(file, error)) || fs::file_size(file, error) > kMostBytes) return {};
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  return agrees(text, quoted) ? text : std::string();
}

}  // namespace

// The text of files is not in foreign traces, but many of their lines are quoted: those stand at their place. Where the file lies on this
// disk and has each of these lines there, it is the one.
void SessionBuilder::putSources() {
  size_t fromDisk = 0;
  std::erase_if(sources_, [&](const auto& source) {
    if (fromDisk > kMostSourceBytes) return false;
    const std::string text = unchangedSource(source.first, source.second);
    if (text.empty()) return false;
    fromDisk += text.size();
    put(rows::SourceFile{.id = newId(RowKind::SourceFile), .path = source.first, .text = text, .bytes = static_cast<int64_t>(text.size()),
        .truncated = int64_t{0}});
    return true;
  });
  for (const auto& [file, lines] : sources_) {
    std::string whole;
    int64_t at = 1;
    for (const auto& [line, code] : lines) {
      whole.append(static_cast<size_t>(line - at), '\n');
      whole += code;
      at = line;
    }
    whole += '\n';
    put(rows::SourceFile{.id = newId(RowKind::SourceFile), .path = file, .text = whole, .bytes = static_cast<int64_t>(whole.size()),
        .truncated = int64_t{1}});
  }
  if (!sources_.empty()) {
    loss("source_text", static_cast<int64_t>(sources_.size()),
         "only the lines of these files that the imported file quotes are known");
  }
}

void SessionBuilder::settle() {
  flushLanes();
  launches_.flush();
  launches_.committed();
}

Result<void> SessionBuilder::good() {
  if (sink_.error()) return tl::unexpected(*sink_.error());
  const auto now = std::chrono::steady_clock::now();
  const bool show = progress_ && progress_->usable && now >= nextShow_;
  if (rowsSinceCommit_ < kRowsPerCommit && !show) return {};
  if (show) nextShow_ = now + kShowEvery;
  return commit(show);
}

Result<void> SessionBuilder::commit(bool show) {
  rowsSinceCommit_ = 0;
  if (show) {
    flushLanes();
    putFacts();
    sink_.put(rows::Info{.key = std::string("state"), .value = std::string("importing")});
    if (!shown_) {
      const auto host = session::recordingHostFacts();
      for (const char* key : kWriterKeys) sink_.put(rows::Info{.key = std::string(key), .value = host.at(key)});
    }
  }
  launches_.flush();
  launches_.committed();
  const auto pages = database_.integer("PRAGMA page_count");
  if (pages && pages->value_or(0) * 4096 > kMostSessionBytes) {
    return fail(ErrorCode::Unsupported, fmt::format("the file holds more than {} GB of events; cut it into parts first",
                                                    kMostSessionBytes >> 30));
  }
  if (!show || shown_) return database_.execute("COMMIT; BEGIN");
  shown_ = true;
  if (auto logged = database_.execute("COMMIT; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000; BEGIN"); !logged)
    return logged;
  progress_->usable(database_.path());
  return {};
}

void SessionBuilder::putFacts() {
  for (const auto& [id, named] : threadNames_) {
    put(rows::Thread{.id = id, .os_tid = named.second ? Cell{named.second} : Cell{}, .name = text(named.first)});
  }
  info("schema_version", int64_t{session::kSchemaVersion});
  info("clock", std::string("of the imported file"));
  info("start_ns", firstNs_);
  info("end_ns", lastNs_);
  int64_t unixNs = 0;
  if (!__builtin_add_overflow(unixBase_, origin_.value_or(0) + firstNs_, &unixNs)) info("start_unix_ns", unixNs);
  for (const auto& [key, value] : info_) sink_.put(rows::Info{.key = key, .value = value});
  for (const auto& [what, row] : losses_) {
    put(rows::Loss{.what = what, .count = row.first, .detail = text(row.second), .first_ns = firstNs_, .last_ns = lastNs_});
  }
}

Result<void> SessionBuilder::finish() {
  if (finished_) return {};
  finished_ = true;
  flushLanes();
  launches_.flush();
  for (const auto& [key, sum] : shapeSums_) put(rows::GpuShapeStats{.kernel_id = key.first, .shape_id = key.second, .events = sum.first,
      .total_ns = sum.second});
  putSources();
  settle();
  if (auto named = qualifyNames(database_); !named) return named;
  if (auto blocks = session::writeEventBlocks(database_); !blocks) return blocks;
  if (shown_) {
    for (const char* key : kWriterKeys) (void)database_.execute(fmt::format("DELETE FROM t_info WHERE key = '{}'", key));
  }
  info("state", std::string("finished"));
  putFacts();
  if (sink_.error()) return tl::unexpected(*sink_.error());
  auto committed = database_.execute("COMMIT");
  sink_.reset();
  gpuLaunch_ = session::Statement();
  if (!committed) return committed;
  if (shown_) {  // one file without a log, as if nobody had looked
    if (progress_->closing) progress_->closing();
    sqlite3_busy_timeout(database_.handle(), 2000);
    if (auto single = database_.execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE"); !single) return single;
  }
  database_ = session::Database();
  return {};
}

Result<void> SessionBuilder::finishPartial() {
  sqlite3_progress_handler(database_.handle(), 0, nullptr, nullptr);
  sink_.clearError();  // a row may have been interrupted; another error comes again
  if (sqlite3_get_autocommit(database_.handle())) {  // that ended its transaction
    lanes_.clear();
    (void)launches_.rolledBack();
    if (auto begun = database_.execute("BEGIN"); !begun) return begun;
  }
  loss("rest_of_file", 1, fmt::format("reading was stopped after {:.0f} % of the file", progress_->fraction * 100));
  return finish();
}

}  // namespace fusebox::importing
