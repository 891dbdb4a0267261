#include "views/query/query_model.h"

#include <algorithm>
#include <optional>

#include "profiler/session/reader.h"
#include "profiler/session/schema.h"

namespace fusebox::views {
namespace {

struct IdColumn {
  std::string_view name;
  ObjectKind kind;
};
// Of several in a row the first of this list is what the row is about.
constexpr IdColumn kIds[] = {{"launch_id", ObjectKind::Launch}, {"kernel_id", ObjectKind::Kernel}, {"failure_id", ObjectKind::Failure}, {"break_id", ObjectKind::Break},
                             {"guard_id", ObjectKind::Guard}, {"node_id", ObjectKind::Node}, {"group_id", ObjectKind::Group}, {"artifact_id", ObjectKind::Artifact},
                             {"graph_id", ObjectKind::Graph}, {"compile_id", ObjectKind::Compile}, {"frame_id", ObjectKind::Frame}};

Cell cellOf(const session::Cell& value) {
  Cell cell = textCell(session::cellText(value));
  if (const auto* whole = std::get_if<int64_t>(&value)) cell.number = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) cell.number = *real;
  return cell;
}

std::optional<std::pair<size_t, ObjectKind>> subjectOf(const std::vector<std::string>& columns) {
  for (const IdColumn& id : kIds) {
    const auto at = std::find(columns.begin(), columns.end(), id.name);
    if (at != columns.end()) return std::pair(static_cast<size_t>(at - columns.begin()), id.kind);
  }
  return std::nullopt;
}

}  // namespace

Result<QueryAnswer> runQuery(const session::Reader& reader, const std::string& sql) {
  auto table = reader.query(sql, kMostAnswers);
  if (!table) return tl::unexpected(table.error());
  QueryAnswer answer;
  answer.isCut = table->truncated;
  for (const std::string& name : table->columns) answer.columns.push_back({name});
  for (size_t c = 0; c < answer.columns.size(); ++c) {
    const auto known = std::find_if(table->rows.begin(), table->rows.end(), [c](const auto& row) { return !std::holds_alternative<std::monostate>(row[c]); });
    answer.columns[c].isNumber = known != table->rows.end() && !std::holds_alternative<std::string>((*known)[c]);
  }
  const auto subject = subjectOf(table->columns);
  for (const auto& values : table->rows) {
    TableRow row;
    for (const session::Cell& value : values) row.cells.push_back(cellOf(value));
    if (subject) {
      if (const auto* id = std::get_if<int64_t>(&values[subject->first])) row.location = Location::of(subject->second, *id);
    }
    answer.rows.push_back(std::move(row));
  }
  return answer;
}

Result<TableRows> listQueryViews(const session::Reader& reader) {
  TableRows rows;
  for (const session::ViewDefinition& view : session::publicViews()) {
    auto empty = reader.query("SELECT * FROM " + std::string(view.name) + " LIMIT 0");
    if (!empty) return tl::unexpected(empty.error());
    std::string columns;
    for (const std::string& name : empty->columns) columns += (columns.empty() ? "" : ", ") + name;
    TableRow row;
    row.cells = {textCell(std::string(view.name)), textCell(columns)};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::views
