#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/support/result.h"
#include "profiler/session/cell.h"
#include "profiler/session/sqlite.h"

namespace fusebox::session {

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  bool truncated = false;  ///< more rows than the limit
};

/// A session opened for reading: finished, still being written, or left behind by a process that died. Nothing in the file is
/// executed: the public views are defined by this build, the file's own views and triggers are not used. One thread at a
/// time; open the file again for another thread (it is cheap).
class Reader {
 public:
  /// Errors: NotFound, Io, Corrupt (damaged or no session at all), TooNew. The text says what to do next.
  static Result<std::unique_ptr<Reader>> open(const std::string& path);
  /// The last reader of a finished session that still has a log beside it makes it one file, where it may be written.
  ~Reader();

  const std::string& path() const { return database_.path(); }
  /// The file that a person opened, which errors name: the session, or what it was made of.
  const std::string& origin() const { return origin_.empty() ? path() : origin_; }
  void setOrigin(std::string file) { origin_ = std::move(file); }
  /// Prepares SQL of our own over the public views.
  Result<Statement> prepare(std::string_view sql) const { return database_.prepare(sql); }
  /// Calls `row` for each result row; `parameters` are bound in order.
  Result<void> each(std::string_view sql, const std::vector<Cell>& parameters,
                    const std::function<void(const Statement&)>& row) const;
  /// One SELECT of the user's, over the public views, at most `limit` rows (negative: all). Anything that would write, attach
  /// or change settings is refused.
  Result<Table> query(std::string_view sql, int64_t limit = -1) const;
  /// The same, a row at a time: `columns` before the first of them. Whether `limit` left some out.
  Result<bool> query(std::string_view sql, int64_t limit, const std::function<void(const std::vector<std::string>&)>& columns,
                     const std::function<void(std::vector<Cell>)>& row) const;

  /// All of session_info as text.
  const std::map<std::string, std::string>& info() const { return info_; }
  std::string info(const std::string& key) const;
  int64_t infoInteger(const std::string& key) const;
  /// Reads session_info again; true if anything was committed to the file since the last call.
  bool refresh();
  /// Makes what another thread is reading here, and whatever it would read next, fail soon: until allow().
  void interrupt() const;
  void allow() const { interrupted_ = false; }

  enum class State : uint8_t {
    Recording,  ///< its process lives and writes
    Finished,
    Abandoned,  ///< its process ended without finishing it: killed, crashed, out of memory
    Elsewhere,  ///< not finished, and its process belongs to another machine and is silent: it may live or not
  };
  State state() const;
  /// What the reader itself could not see (a write-ahead log that could not be opened); empty if nothing.
  const std::string& notice() const { return notice_; }

 private:
  Reader() = default;
  Result<void> loadInfo();
  mutable std::atomic<bool> interrupted_{false};
  Database database_;
  std::map<std::string, std::string> info_;
  std::string notice_, origin_;
  int64_t dataVersion_ = 0;
};

std::string_view stateName(Reader::State state);

}  // namespace fusebox::session
