#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/support/result.h"

struct sqlite3;
struct sqlite3_stmt;

/// The little of SQLite's C interface that sessions need, with errors as Result.
namespace fusebox::session {

/// The error of `db`'s last call as an Error: Io for the operating system's refusals and a full disk, Corrupt for a damaged
/// file, NotFound for a missing one, InvalidArgument for wrong SQL, Internal for the rest. `context` is usually the path.
Error sqliteError(sqlite3* db, int code, std::string context);

/// A prepared statement, used by one thread at a time. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  /// Binds the values from parameter 1 on: integers, doubles, string_views, nullptr, optionals.
  template <class... Values>
  Statement& bindAll(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  void bind(int index, std::nullptr_t);
  void bind(int index, int64_t value);
  void bind(int index, int value) { bind(index, int64_t{value}); }
  void bind(int index, bool value) { bind(index, int64_t{value}); }
  void bind(int index, double value);
  /// The text is copied by bind(); bindStatic() keeps a pointer that must live until reset().
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bindStatic(int index, std::string_view value);
  template <class T>
  void bind(int index, const std::optional<T>& value) {
    value ? bind(index, *value) : bind(index, nullptr);
  }

  /// True: a row is there; false: done.
  Result<bool> step();
  /// Steps a statement that returns no rows, and resets it.
  Result<void> run();
  void reset();

  /// Number of parameters to bind.
  int parameters() const;
  int columns() const;
  std::string columnName(int column) const;
  enum class Type : uint8_t { Null, Integer, Real, Text, Blob };
  /// A value of the row by the column's name (its alias, where the query gives one). A name that the query lacks is a fault of the
  /// program: std::logic_error. text() is valid until the next step().
  bool isNull(std::string_view name) const { return typeAt(column(name)) == Type::Null; }
  int64_t integer(std::string_view name) const { return integerAt(column(name)); }
  double real(std::string_view name) const { return realAt(column(name)); }
  std::string_view text(std::string_view name) const { return textAt(column(name)); }
  std::string string(std::string_view name) const { return std::string(text(name)); }
  void isNull(int) const = delete;  // a column that is added or moved would change what a number means
  void integer(int) const = delete;
  void real(int) const = delete;
  void text(int) const = delete;
  void string(int) const = delete;
  /// The same by its place, for tables of whatever a person asked.
  Type typeAt(int column) const;
  int64_t integerAt(int column) const;
  double realAt(int column) const;
  std::string_view textAt(int column) const;

 private:
  friend class Database;
  int column(std::string_view name) const;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  std::string context_;
  mutable std::vector<std::pair<std::string_view, int>> named_;  ///< columns asked for, by the caller's own names, which mostly are literals
};

/// A connection. Move-only; used by one thread at a time.
class Database {
 public:
  Database() = default;
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  static Result<Database> openForWriting(const std::string& path);
  /// `immutable`: reads the main file only, without locks and without looking at a write-ahead log.
  static Result<Database> openForReading(const std::string& path, bool immutable = false);

  Result<void> execute(std::string_view sql);
  Result<Statement> prepare(std::string_view sql) const;
  /// First column of the first row; nullopt if there is none or it is NULL.
  Result<std::optional<int64_t>> integer(std::string_view sql) const;
  sqlite3* handle() const { return db_; }
  const std::string& path() const { return path_; }

 private:
  sqlite3* db_ = nullptr;
  std::string path_;
};

}  // namespace fusebox::session
