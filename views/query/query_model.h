#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// What a SELECT gave. A row that names a kernel, graph, break or another thing of the session by its id leads there.
struct QueryAnswer {
  struct Column {
    std::string name;
    bool isNumber = false;  ///< in the first row that has a value
  };
  std::vector<Column> columns;
  TableRows rows;
  bool isCut = false;  ///< there were more than kMostAnswers
};
inline constexpr int64_t kMostAnswers = 100'000;

/// One SELECT over the session's views (SCHEMA.md); it can read, and nothing else. Errors: InvalidArgument, in SQLite's words.
Result<QueryAnswer> runQuery(const session::Reader& reader, const std::string& sql);

/// The views that can be asked: name, columns.
Result<TableRows> listQueryViews(const session::Reader& reader);

}  // namespace fusebox::views
