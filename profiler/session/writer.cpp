#include "profiler/session/writer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "engine/support/clock.h"
#include "profiler/session/migrations.h"
#include "profiler/session/recording_host.h"
#include "profiler/session/schema.h"
#include "profiler/session/session_files.h"

namespace fusebox::session {
namespace {

Result<void> makeRoom(const std::string& path) {
  if (auto allowed = Writer::mayReplace(path); !allowed) return allowed;
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path + suffix, ignored);
  if (std::filesystem::exists(path, ignored)) return fail(ErrorCode::Io, "the old session cannot be replaced", path);
  return {};
}

/// A session without rows. It has its name once it has its schema and a log: whoever looks before then would be in the way of both. The schema
/// is in the file itself, so that it is known for a session even if its writer is killed before the first checkpoint.
Result<void> makeEmpty(const std::string& path) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(path, ignored).parent_path();
  if (!std::filesystem::is_directory(folder, ignored)) return fail(ErrorCode::Io, "the directory " + folder.string() + " does not exist", path);
  const std::string aside = path + ".new";
  if (auto room = makeRoom(aside); !room) return room;
  auto made = [&]() -> Result<void> {
    auto database = Database::openForWriting(aside);
    if (!database) return tl::unexpected(database.error());
    if (auto schema = createSchema(*database); !schema) return schema;
    return database->execute("PRAGMA journal_mode = WAL");
  }();
  std::error_code error;
  if (made) std::filesystem::rename(aside, path, error);
  if (error) made = fail(ErrorCode::Io, error.message(), path);
  if (made) return made;
  std::filesystem::remove(aside, error);
  return fail(made.error().code, made.error().message, path);
}

/// How often an idle recording says that it lives: readers on other machines see nothing else of its process.
constexpr int64_t kHeartbeatNs = int64_t{10} * 1'000'000'000;

int64_t threadCpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Result<void> Writer::mayReplace(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (status.type() == std::filesystem::file_type::not_found) return {};
  if (std::filesystem::is_directory(status)) {
    return fail(ErrorCode::InvalidArgument, "a session cannot be written over a directory; name a file", path);
  }
  char header[72] = {};
  std::ifstream(path, std::ios::binary).read(header, sizeof header);
  const bool isSession = std::string_view(header, 15) == "SQLite format 3" && std::string_view(header + 68, 4) == "FUSB";
  const auto size = std::filesystem::file_size(path, ignored);
  if (!isSession && size != 0) {
    return fail(ErrorCode::InvalidArgument, "this file exists and is not a session; it is left alone, name another", path);
  }
  return {};
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, WriterOptions options) {
  if (auto room = makeRoom(path); !room) return tl::unexpected(room.error());
  if (auto made = makeEmpty(path); !made) {
    Error error = made.error();
    error.message = "the session file cannot be created: " + error.message;
    return tl::unexpected(error);
  }
  auto database = Database::openForWriting(path);
  if (!database) return tl::unexpected(database.error());
  // NORMAL: a power failure may lose the last commits but never the file; a killed process loses nothing committed.
  auto prepared = database->execute("PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864; "
                                    "PRAGMA wal_autocheckpoint = 4000");
  if (!prepared) return tl::unexpected(prepared.error());
  std::unique_ptr<Writer> writer(new Writer(path, std::move(*database), options));
  for (auto& [key, value] : recordingHostFacts()) writer->post(rows::Info{.key = key, .value = value});
  writer->post(rows::Info{.key = std::string("state"), .value = std::string("recording")});
  if (!writer->flush()) return fail(ErrorCode::Io, "the session file cannot be written", path);
  removeSession(replacedName(path));
  return writer;
}

Writer::Writer(std::string path, Database database, WriterOptions options)
    : path_(std::move(path)), options_(options), database_(std::move(database)), sink_(database_),
      launches_(sink_, options.maxLaunches) {
  // Signals are the script's: none may be delivered to this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Writer::~Writer() { finish(); }

void Writer::enqueue(Item item) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (queueBytes_ + item.bytes > options_.maxQueueBytes) {
      lock.unlock();
      loss("rows", 1, "more was recorded than the disk takes");
      return;
    }
    queueBytes_ += item.bytes;
    const bool much = queueBytes_ > options_.maxQueueBytes / 8;
    queue_.push_back(std::move(item));
    lock.unlock();
    if (much) wake_.notify_one();
  } catch (...) {
    lostForMemory_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Writer::postCells(RowKind kind, Cells cells) noexcept {
  int64_t bytes = 64;
  for (const Cell& cell : cells) {
    bytes += 40;
    if (const auto* text = std::get_if<std::string>(&cell)) bytes += static_cast<int64_t>(text->size());
  }
  enqueue({kind, std::move(cells), nullptr, bytes});
}

void Writer::post(Job job, int64_t approximateBytes) noexcept {
  enqueue({RowKind::Count, {}, std::move(job), approximateBytes + 64});
}

void Writer::loss(const std::string& what, int64_t count, const std::string& detail) noexcept {
  try {
    std::lock_guard lock(mutex_);
    LossRow& row = losses_[what];
    const int64_t now = nowNs();
    if (row.count == 0) row.firstNs = now;
    row.lastNs = now;
    row.count += count;
    if (!detail.empty()) row.detail = detail;
    row.dirty = true;
  } catch (...) {
    lostForMemory_.fetch_add(1, std::memory_order_relaxed);
  }
}

LaunchRing* Writer::openRing(int32_t thread) noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (stopping_) return nullptr;
    if (!freeRings_.empty()) {
      LaunchRing* ring = freeRings_.back();
      freeRings_.pop_back();
      ring->setThread(thread);
      return ring;
    }
    rings_.push_back(std::make_unique<LaunchRing>(thread));
    return rings_.back().get();
  } catch (...) {
    lostForMemory_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
}

void Writer::loop() {
  pthread_setname_np(pthread_self(), "fusebox-record");
  threadId_ = gettid();
  // Where processors are short, the script's threads come first; the rings hold what waits.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, std::chrono::milliseconds(options_.commitMs), [&] {
      return stopping_ || flushWanted_ != flushDone_ || queueBytes_ > options_.maxQueueBytes / 8;
    });
    const bool last = stopping_;
    const uint64_t flush = flushWanted_;
    const uint64_t batch = begun_.fetch_add(1) + 1;
    takeQueue();
    listener_ = newListener_;
    lock.unlock();
    const bool ok = writeBatch(last);
    if (last) close();
    ended_ = batch;
    lock.lock();
    lastBatchOk_ = ok;
    flushDone_ = flush;
    if (last) finished_ = true;
    done_.notify_all();
    if (last) return;
    // A disk that refuses is not asked again at once.
    if (!ok) wake_.wait_for(lock, std::chrono::seconds(1), [&] { return stopping_; });
  }
}

void Writer::setListener(std::shared_ptr<BatchListener> listener) {
  std::lock_guard lock(mutex_);
  newListener_ = std::move(listener);
}

void Writer::takeQueue() noexcept {
  try {
    while (!queue_.empty()) {
      pending_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  } catch (const std::bad_alloc&) {  // what is still queued comes with a later batch
  }
}

template <class Part>
bool Writer::contain(const char* what, Part&& part) noexcept {
  try {
    part();
    return true;
  } catch (const std::exception& thrown) {
    loss(what, 1, thrown.what());
  } catch (...) {
    loss(what, 1, "an exception of unknown type");
  }
  return false;
}

bool Writer::beat() {
  const int64_t now = unixNs();
  if (now - lastBeatNs_ < kHeartbeatNs) return false;
  lastBeatNs_ = now;
  sink_.put(rows::Info{.key = std::string("heartbeat_unix_ns"), .value = now});
  return true;
}

void Writer::putPending() {
  for (Item& item : pending_) {
    // A job that throws is not asked again: it would throw with every try.
    if (!contain("rows", [&] { item.job ? item.job(sink_) : sink_.putCells(item.kind, item.cells); })) item.job = [](RowSink&) {};
    if (sink_.error()) break;
  }
}

bool Writer::writeBatch(bool last) noexcept {
  bool ok = false;
  if (contain("rows", [&] { ok = tryBatch(last); })) return ok;
  contain("rows", [&] { failed({ErrorCode::Io, "a batch could not be written", path_}); });
  return false;
}

bool Writer::tryBatch(bool last) {
  launches_.setListener(listener_.get());
  if (auto begun = database_.execute("BEGIN IMMEDIATE"); !begun) {
    failed(begun.error());
    return false;
  }
  putPending();
  contain("launches", [&] {
    drainRings();
    launches_.flush();
  });
  if (listener_) contain("gpu_events", [&] { listener_->write(sink_, last); });
  const bool beaten = beat();
  putLosses();
  const std::optional<Error> error = sink_.error();
  if (!error) {
    if (auto committed = database_.execute("COMMIT"); !committed) {
      failed(committed.error());
      return false;
    }
    // What readers on other machines can see is what has left the log.
    if (beaten) (void)database_.execute("PRAGMA wal_checkpoint(PASSIVE)");
    launches_.committed();
    if (listener_) listener_->committed();
    int64_t bytes = 0;
    for (const Item& item : pending_) bytes += item.bytes;
    pending_.clear();
    std::lock_guard lock(mutex_);
    queueBytes_ -= bytes;
    return true;
  }
  failed(*error);
  return false;
}

void Writer::failed(const Error& error) {
  sink_.clearError();
  if (!sqlite3_get_autocommit(database_.handle())) (void)database_.execute("ROLLBACK");
  {
    std::lock_guard lock(mutex_);
    for (auto& [what, row] : losses_) row.dirty = true;
  }
  lossOf(launches_.rolledBack(), error.message);
  if (const int64_t events = listener_ ? listener_->rolledBack() : 0; events > 0) loss("gpu_events", events, error.message);
  // An error of a row itself (not of the disk) would come again with every try: such a batch is given up.
  if (error.code != ErrorCode::Io && !pending_.empty()) {
    loss("rows", static_cast<int64_t>(pending_.size()), error.message);
    std::lock_guard lock(mutex_);
    for (const Item& item : pending_) queueBytes_ -= item.bytes;
    pending_.clear();
  }
  if (reported_) return;
  reported_ = true;
  fmt::print(stderr, "fusebox: recording is interrupted: {}. The script goes on; what is not recorded is counted.\n",
             error.text());
}

void Writer::lossOf(const RecordCounts& lost, const std::string& why) {
  for (size_t i = 0; i < lost.size(); ++i)
    if (lost[i] > 0) loss(kRecordKinds[i], lost[i], why);
}

void Writer::drainRings() {
  std::vector<LaunchRing*> rings;
  {
    std::lock_guard lock(mutex_);
    for (auto& ring : rings_) rings.push_back(ring.get());
  }
  for (LaunchRing* ring : rings) {
    const bool closed = ring->closed.load(std::memory_order_acquire);
    launches_.drain(*ring);
    lossOf(ring->takeDropped(), "more than the recorder could take");
    if (!closed) continue;
    ring->closed.store(false, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    freeRings_.push_back(ring);
  }
  if (const int64_t more = launches_.notKept() - notKeptReported_; more > 0) {
    loss("launch_rows", more, fmt::format("only the first {} launches are kept one by one; sums are complete",
                                          options_.maxLaunches));
    notKeptReported_ += more;
  }
}

void Writer::putLosses() {
  if (const int64_t lost = lostForMemory_.exchange(0)) loss("rows", lost, "out of memory");
  std::lock_guard lock(mutex_);
  for (auto& [what, row] : losses_) {
    if (!row.dirty) continue;
    row.dirty = false;  // what is lost from here on belongs to the next batch
    sink_.put(rows::Loss{.what = what, .count = row.count, .detail = row.detail.empty() ? Cell{} : Cell{row.detail}, .first_ns = row.firstNs,
        .last_ns = row.lastNs});
  }
}

bool Writer::flush() {
  std::unique_lock lock(mutex_);
  if (stopping_) return false;
  const uint64_t wanted = ++flushWanted_;
  wake_.notify_one();
  done_.wait(lock, [&] { return finished_ || flushDone_ >= wanted; });
  return lastBatchOk_;
}

void Writer::awaitBatch(std::chrono::milliseconds patience) const noexcept {
  if (gettid() == threadId_) return;
  constexpr timespec kLook{0, 1'000'000};
  const uint64_t wanted = begun_ + 1;  // the one that is being written may have left out what came last
  for (int64_t looks = patience.count(); looks > 0 && ended_ < wanted; --looks) nanosleep(&kLook, nullptr);
}

void Writer::finish() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Writer::close() noexcept {
  contain("rows", [&] { tryClose(); });
}

void Writer::tryClose() {
  if (database_.execute("BEGIN IMMEDIATE")) {
    sink_.put(rows::Info{.key = std::string("state"), .value = std::string("finished")});
    sink_.put(rows::Info{.key = std::string("end_ns"), .value = nowNs()});
    sink_.put(rows::Info{.key = std::string("recorder_ns"), .value = threadCpuNs()});
    putLosses();
    if (!sink_.error()) (void)database_.execute("COMMIT");
  }
  int64_t lost = 0;
  {
    std::lock_guard lock(mutex_);
    lost = static_cast<int64_t>(pending_.size());
  }
  if (lost > 0) fmt::print(stderr, "fusebox: {} recorded rows could not be written to {}\n", lost, path_);
  // One file without a log, unless a reader is in the middle of something; then the log stays beside it.
  sqlite3_busy_timeout(database_.handle(), 300);
  (void)database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  sink_.reset();
  (void)database_.execute("PRAGMA journal_mode = DELETE");
  database_ = Database();
}

}  // namespace fusebox::session
