#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::exporting {

/// The rows of a query as text, written as they come: none is held, however many there are.
class TableWriter {
 public:
  using Output = std::function<void(std::string)>;
  /// `format`: "json" (a list of objects, column names as keys; a name that comes again is "name:1"), "csv" (RFC 4180, with a header line), or anything else for aligned
  /// columns, numbers to the right, with a count at the end.
  static std::unique_ptr<TableWriter> of(std::string_view format, Output output);

  explicit TableWriter(Output output) : out(std::move(output)) {}
  virtual ~TableWriter() = default;
  virtual void columns(const std::vector<std::string>& names) = 0;
  virtual void row(std::vector<session::Cell> cells) = 0;
  virtual void end(bool truncated) = 0;

 protected:
  const Output out;
};

/// Runs `sql` and writes its rows as CSV without holding them.
Result<int64_t> writeCsv(const session::Reader& reader, std::string_view sql, std::ostream& out);

}  // namespace fusebox::exporting
