#include "profiler/session/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "profiler/session/migrations.h"
#include "profiler/session/recording_host.h"

namespace fusebox::session {
namespace {

constexpr int kMostAttempts = 10;
constexpr std::chrono::milliseconds kBetweenAttempts{10};
constexpr std::chrono::seconds kLately{5};

// What a SELECT over the session needs; everything else (ATTACH, writing, settings) is refused.
int allowReading(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return SQLITE_OK;  // extensions cannot be loaded, and unsafe ones are barred by trusted_schema
    case SQLITE_PRAGMA: {
      const std::string_view name = first ? first : "";
      const bool allowed = name == "table_info" || name == "table_xinfo" || (name == "user_version" && !second);
      return allowed ? SQLITE_OK : SQLITE_DENY;
    }
    default: return SQLITE_DENY;
  }
}

uint64_t bigEndian(const char* bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// A recorder has its log beside the file, but for the moment in which it begins.
bool lacksItsLog(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written > kLately && !std::filesystem::exists(path + "-wal", error);
}

bool hasLog(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "-wal", ignored);
}

// Looks at the file itself first: SQLite would take an empty file for an empty database, and a folder for an I/O error.
Result<void> checkFile(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail(ErrorCode::NotFound, "there is no such file", path);
  if (std::filesystem::is_directory(status)) return fail(ErrorCode::Corrupt, "this is a directory, not a session", path);
  if (!std::filesystem::is_regular_file(status)) return fail(ErrorCode::Corrupt, "this is not a regular file", path);
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::Io, "the file may not be read; check its permissions", path);
  char header[100] = {};
  in.read(header, sizeof header);
  if (in.gcount() == 0) return fail(ErrorCode::Corrupt, "the file is empty: nothing was recorded into it", path);
  if (std::string_view(header, 16) != std::string_view("SQLite format 3\0", 16)) {
    return fail(ErrorCode::Corrupt, "this is not a Fusebox session (not a SQLite database)", path);
  }
  if (in.gcount() < 100) return fail(ErrorCode::Corrupt, "the session is cut short; nothing of it can be read", path);
  // With a write-ahead log the main file may lag behind its header; without one it must be whole.
  if (hasLog(path)) return {};
  const uint64_t pageField = bigEndian(header + 16, 2);
  const uint64_t expected = (pageField == 1 ? 65536 : pageField) * bigEndian(header + 28, 4);
  const uint64_t actual = std::filesystem::file_size(path, error);
  if (actual >= expected) return {};
  return fail(ErrorCode::Corrupt,
              fmt::format("the session is cut short: {} of {} bytes are there; copy it again, or get out what is left, as SQL, with "
                          "`sqlite3 FILE .dump` (`.recover` finds more, but not every sqlite3 has it)",
                          actual, expected),
              path);
}

bool mayWriteBeside(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

Result<void> harden(Database& database) {
  sqlite3* db = database.handle();
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  return database.execute("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;");
}

}  // namespace

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  if (auto usable = checkFile(path); !usable) return tl::unexpected(usable.error());
  std::unique_ptr<Reader> reader(new Reader);
  const bool lacksLog = lacksItsLog(path);  // reading makes one
  const auto attempt = [&](bool immutable) -> Result<void> {
    auto opened = Database::openForReading(path, immutable);
    if (!opened) return tl::unexpected(opened.error());
    reader->database_ = std::move(*opened);
    if (auto hard = harden(reader->database_); !hard) return hard;
    return adoptForReading(reader->database_);
  };
  if (hasLog(path) && attempt(true) && reader->loadInfo() && recordedElsewhere(reader->info_) &&
      reader->info("state") != "finished") {
    reader->notice_ = fmt::format("{} is recorded on {}; from here only what its recorder has moved from the log into the "
                                  "file can be read. Open it there for all of it.", path, reader->info("hostname"));
    return reader;
  }
  auto result = attempt(false);
  // A recorder that is only just making its file may hold it locked, or have no log yet.
  for (int again = 0; !result && result.error().code == ErrorCode::Io && again < kMostAttempts && mayWriteBeside(path); ++again) {
    std::this_thread::sleep_for(kBetweenAttempts);
    result = attempt(false);
  }
  const Result<void> first = result;
  if (!result && result.error().code == ErrorCode::Io) {
    // A directory that may not be written, with a log left behind: read what the main file holds.
    std::error_code ignored;
    const auto logBytes = std::filesystem::file_size(path + "-wal", ignored);
    if (attempt(true)) {
      result = {};
      if (!ignored && logBytes > 0) {
        reader->notice_ = fmt::format("the newest part of the session ({}-wal) cannot be read here; "
                                      "copy both files to a directory that you may write",
                                      path);
      }
    }
  }
  if (!result) return tl::unexpected(result.error());
  if (auto loaded = reader->loadInfo(); !loaded) return tl::unexpected(loaded.error());
  // Opened like that, nothing newer would ever be seen. One that does not say yet who records it is only just being made.
  const bool isBegun = !reader->info("pid").empty() || !reader->info("imported_format").empty();
  if (!first && mayWriteBeside(path) && (reader->state() == State::Recording || !isBegun)) return tl::unexpected(first.error());
  if (reader->notice_.empty() && reader->state() == State::Elsewhere) {
    reader->notice_ = fmt::format("it was being recorded on {} when it was written last; whether it still is cannot be told here",
                                  reader->info("hostname"));
  }
  if (reader->notice_.empty() && lacksLog && reader->info("state") == "recording") {
    reader->notice_ = fmt::format("{}-wal is not there: if this is a copy, what was recorded last is in that file, which has to be copied too", path);
  }
  return reader;
}

Reader::~Reader() {
  const std::string path = database_.path();
  const bool finished = info("state") == "finished";
  database_ = Database();
  if (!finished || !hasLog(path)) return;
  // Fails while others read it: then the last of them does it.
  if (auto database = Database::openForWriting(path)) {
    (void)harden(*database);
    (void)database->execute("PRAGMA wal_checkpoint(TRUNCATE)");
    (void)database->execute("PRAGMA journal_mode = DELETE");
  }
}

Result<void> Reader::loadInfo() {
  std::map<std::string, std::string> info;
  auto read = each("SELECT key, value FROM session_info", {},
                   [&](const Statement& row) { info[row.string("key")] = row.string("value"); });
  if (!read) return read;
  info_ = std::move(info);
  if (origin_.empty()) origin_ = this->info("imported_from");
  return {};
}

Result<void> Reader::each(std::string_view sql, const std::vector<Cell>& parameters,
                          const std::function<void(const Statement&)>& row) const {
  if (interrupted_) return fail(ErrorCode::Cancelled, "reading was stopped", path());
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  int index = 0;
  for (const Cell& cell : parameters) {
    ++index;
    if (const auto* i = std::get_if<int64_t>(&cell)) statement->bind(index, *i);
    if (const auto* d = std::get_if<double>(&cell)) statement->bind(index, *d);
    if (const auto* s = std::get_if<std::string>(&cell)) statement->bind(index, *s);
  }
  while (true) {
    auto more = statement->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return {};
    row(*statement);
  }
}

namespace {

Cell cellOf(const Statement& row, int column) {
  switch (row.typeAt(column)) {
    case Statement::Type::Integer: return row.integerAt(column);
    case Statement::Type::Real: return row.realAt(column);
    case Statement::Type::Null: return {};
    default: return std::string(row.textAt(column));
  }
}

// True if anything but white space, comments and semicolons follows the first statement.
bool hasSecondStatement(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* first = nullptr;
  const char* tail = nullptr;
  sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &first, &tail);
  sqlite3_finalize(first);
  if (!tail) return false;
  sqlite3_stmt* second = nullptr;
  const int code = sqlite3_prepare_v2(db, tail, static_cast<int>(sql.data() + sql.size() - tail), &second, nullptr);
  const bool found = second != nullptr || code != SQLITE_OK;
  sqlite3_finalize(second);
  return found;
}

}  // namespace

Result<Table> Reader::query(std::string_view sql, int64_t limit) const {
  Table table;
  auto truncated = query(sql, limit, [&](const std::vector<std::string>& columns) { table.columns = columns; },
                         [&](std::vector<Cell> row) { table.rows.push_back(std::move(row)); });
  if (!truncated) return tl::unexpected(truncated.error());
  table.truncated = *truncated;
  return table;
}

Result<bool> Reader::query(std::string_view sql, int64_t limit, const std::function<void(const std::vector<std::string>&)>& columns,
                           const std::function<void(std::vector<Cell>)>& row) const {
  sqlite3* db = database_.handle();
  // Until the end: a statement is prepared again in the middle where the schema changed.
  struct ReadingOnly {
    sqlite3* db;
    explicit ReadingOnly(sqlite3* of) : db(of) { sqlite3_set_authorizer(db, allowReading, nullptr); }
    ~ReadingOnly() { sqlite3_set_authorizer(db, nullptr, nullptr); }
  };
  const ReadingOnly guard(db);
  auto statement = prepare(sql);
  const bool several = statement && hasSecondStatement(db, sql);
  if (!statement) return tl::unexpected(statement.error());
  if (several) return fail(ErrorCode::InvalidArgument, "one SELECT at a time", std::string(sql));
  std::vector<std::string> names;
  for (int c = 0; c < statement->columns(); ++c) names.push_back(statement->columnName(c));
  columns(names);
  for (int64_t rows = 0;; ++rows) {
    if (interrupted_) return fail(ErrorCode::Cancelled, "reading was stopped", path());
    auto more = statement->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return false;
    if (limit >= 0 && rows == limit) return true;
    std::vector<Cell> cells;
    for (int c = 0; c < statement->columns(); ++c) cells.push_back(cellOf(*statement, c));
    row(std::move(cells));
  }
}

std::string Reader::info(const std::string& key) const {
  const auto it = info_.find(key);
  return it == info_.end() ? std::string() : it->second;
}

int64_t Reader::infoInteger(const std::string& key) const { return std::strtoll(info(key).c_str(), nullptr, 10); }

bool Reader::refresh() {
  const auto version = database_.integer("PRAGMA data_version");
  const int64_t now = version ? version->value_or(0) : 0;
  if (now == dataVersion_) return false;
  if (!loadInfo()) return false;  // busy: the next time
  dataVersion_ = now;
  return true;
}

void Reader::interrupt() const {
  interrupted_ = true;  // between two statements SQLite would know of nothing to end
  sqlite3_interrupt(database_.handle());
}

Reader::State Reader::state() const {
  if (info("state") == "finished") return State::Finished;
  switch (recordingProcess(info_)) {
    case RecordingProcess::Lives: return State::Recording;
    case RecordingProcess::Elsewhere: return State::Elsewhere;
    default: return State::Abandoned;
  }
}

std::string_view stateName(Reader::State state) {
  switch (state) {
    case Reader::State::Recording: return "recording";
    case Reader::State::Finished: return "finished";
    case Reader::State::Elsewhere: return "elsewhere";
    default: return "abandoned";
  }
}

}  // namespace fusebox::session
