#include "profiler/session/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <stdexcept>
#include <utility>

#include "profiler/session/cell.h"

namespace fusebox::session {
namespace {

struct CodeMeaning {
  int code;
  ErrorCode kind;
  const char* text;
};

// What SQLite's primary result codes mean for a session, and what to do next.
constexpr CodeMeaning kMeanings[] = {
    {SQLITE_CORRUPT, ErrorCode::Corrupt,
     "the session file is damaged; what can still be read comes out, as SQL, with `sqlite3 FILE .dump` (`.recover` finds more, but not every sqlite3 has it)"},
    {SQLITE_NOTADB, ErrorCode::Corrupt, "this is not a Fusebox session (not a SQLite database)"},
    {SQLITE_CANTOPEN, ErrorCode::Io, "the file cannot be opened; check that it exists and may be read"},
    {SQLITE_FULL, ErrorCode::Io, "the disk is full"},
    {SQLITE_IOERR, ErrorCode::Io, "the file cannot be read or written"},
    {SQLITE_READONLY, ErrorCode::Io, "the file or its directory may not be written"},
    {SQLITE_PERM, ErrorCode::Io, "permission denied"},
    {SQLITE_AUTH, ErrorCode::InvalidArgument, "only SELECT statements over the session are allowed"},
    {SQLITE_BUSY, ErrorCode::Io, "another program holds the file locked; try again"},
    {SQLITE_LOCKED, ErrorCode::Io, "another program holds the file locked; try again"},
    {SQLITE_NOMEM, ErrorCode::Io, "out of memory"},
    {SQLITE_TOOBIG, ErrorCode::InvalidArgument, "a text is too long"},
    {SQLITE_INTERRUPT, ErrorCode::InvalidArgument, "interrupted"},
    {SQLITE_ERROR, ErrorCode::InvalidArgument, "the statement is wrong"},
};

}  // namespace

Error sqliteError(sqlite3* db, int code, std::string context) {
  const std::string detail = db ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  for (const auto& meaning : kMeanings) {
    if (meaning.code == (code & 0xff)) return {meaning.kind, fmt::format("{}: {}", meaning.text, detail), std::move(context)};
  }
  return {ErrorCode::Internal, detail, std::move(context)};
}

std::string cellText(const Cell& cell) {
  switch (cell.index()) {
    case 1: return fmt::format("{}", std::get<1>(cell));
    case 2: return fmt::format("{}", std::get<2>(cell));
    case 3: return std::get<3>(cell);
    default: return {};
  }
}

Statement::Statement(Statement&& o) noexcept { *this = std::move(o); }

Statement& Statement::operator=(Statement&& o) noexcept {
  std::swap(db_, o.db_);
  std::swap(statement_, o.statement_);
  std::swap(context_, o.context_);
  std::swap(named_, o.named_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

int Statement::parameters() const { return sqlite3_bind_parameter_count(statement_); }
void Statement::bind(int index, std::nullptr_t) { sqlite3_bind_null(statement_, index); }
void Statement::bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
void Statement::bind(int index, double value) { sqlite3_bind_double(statement_, index, value); }
void Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text64(statement_, index, value.data() ? value.data() : "", value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}
void Statement::bindStatic(int index, std::string_view value) {
  sqlite3_bind_text64(statement_, index, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return tl::unexpected(sqliteError(db_, code, context_));
}

Result<void> Statement::run() {
  auto stepped = step();
  sqlite3_reset(statement_);
  if (!stepped) return tl::unexpected(stepped.error());
  return {};
}

void Statement::reset() { sqlite3_reset(statement_); }
int Statement::columns() const { return sqlite3_column_count(statement_); }
std::string Statement::columnName(int column) const {
  const char* name = sqlite3_column_name(statement_, column);
  return name ? name : "";
}
Statement::Type Statement::typeAt(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER: return Type::Integer;
    case SQLITE_FLOAT: return Type::Real;
    case SQLITE_TEXT: return Type::Text;
    case SQLITE_BLOB: return Type::Blob;
    default: return Type::Null;
  }
}
int Statement::column(std::string_view name) const {
  // The place of a literal is quicker to compare than its letters, which decide.
  for (const auto& [known, index] : named_)
    if (known.data() == name.data() && name == sqlite3_column_name(statement_, index)) return index;
  for (int index = 0; index < columns(); ++index) {
    if (name != sqlite3_column_name(statement_, index)) continue;
    std::erase_if(named_, [&](const auto& entry) { return entry.first.data() == name.data(); });
    named_.emplace_back(name, index);
    return index;
  }
  throw std::logic_error(fmt::format("a query has no column {}", name));
}

int64_t Statement::integerAt(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::realAt(int column) const { return sqlite3_column_double(statement_, column); }
std::string_view Statement::textAt(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  if (!text) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

Database::Database(Database&& o) noexcept { *this = std::move(o); }

Database& Database::operator=(Database&& o) noexcept {
  std::swap(db_, o.db_);
  std::swap(path_, o.path_);
  return *this;
}

Database::~Database() { sqlite3_close_v2(db_); }

namespace {

// A path as SQLite's URI, so that odd characters and options can both be given.
std::string fileUri(const std::string& path, const char* options) {
  std::string uri = "file:";
  for (const unsigned char c : path) {
    const bool plain = std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
    uri += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02x}", c);
  }
  return uri + options;
}

}  // namespace

Result<Database> Database::openForWriting(const std::string& path) {
  Database result;
  result.path_ = path;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(fileUri(path, "").c_str(), &result.db_, flags, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(sqliteError(result.db_, code, path));
  sqlite3_busy_timeout(result.db_, 2000);  // a reader that comes or goes holds it for a moment
  return result;
}

Result<Database> Database::openForReading(const std::string& path, bool immutable) {
  Database result;
  result.path_ = path;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(fileUri(path, immutable ? "?immutable=1" : "").c_str(), &result.db_, flags, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(sqliteError(result.db_, code, path));
  sqlite3_busy_timeout(result.db_, 2000);
  return result;
}

Result<void> Database::execute(std::string_view sql) {
  const int code = sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(sqliteError(db_, code, path_));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) const {
  Statement statement;
  statement.db_ = db_;
  statement.context_ = path_;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), 0, &statement.statement_, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(sqliteError(db_, code, path_));
  if (!statement.statement_) return fail(ErrorCode::InvalidArgument, "the statement is empty", path_);
  return statement;
}

Result<std::optional<int64_t>> Database::integer(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row || statement->typeAt(0) == Statement::Type::Null) return std::nullopt;
  return statement->integerAt(0);
}

}  // namespace fusebox::session
