#include "views/find/find_model.h"

namespace fusebox::views {
namespace {

using query::SearchKind;

struct KindOfObject {
  SearchKind search;
  ObjectKind object;
};
constexpr KindOfObject kKinds[] = {
    {SearchKind::Files, ObjectKind::SourceLine},   {SearchKind::Frames, ObjectKind::Frame},
    {SearchKind::Breaks, ObjectKind::Break},       {SearchKind::Failures, ObjectKind::Failure},
    {SearchKind::Guards, ObjectKind::Guard},       {SearchKind::Kernels, ObjectKind::Kernel},
    {SearchKind::Operators, ObjectKind::SourceLine},
    {SearchKind::Groups, ObjectKind::Group},       {SearchKind::Nodes, ObjectKind::Node},
    {SearchKind::Passes, ObjectKind::Compile},     {SearchKind::Lines, ObjectKind::SourceLine},
    {SearchKind::Artifacts, ObjectKind::Artifact}, {SearchKind::Losses, ObjectKind::None}};

}  // namespace

Location locationOf(SearchKind kind, const query::SearchHit& hit) {
  for (const auto& row : kKinds) {
    if (row.search != kind) continue;
    if (row.object == ObjectKind::None) return Location::ofView("overview");
    if (row.search == SearchKind::Operators && hit.file.empty()) return Location::ofView("timeline");
    return {row.object, hit.id, {}, hit.file, static_cast<int>(hit.line)};
  }
  return {};
}

TableRows hitRows(const query::SearchGroup& group, const std::string& name) {
  TableRows rows;
  for (const auto& hit : group.hits) {
    TableRow row;
    row.location = locationOf(group.kind, hit);
    row.cells = {textCell(name), textCell(hit.title), textCell(hit.detail), textCell(shortPlace(hit.file, hit.line))};
    row.tooltip = hit.title + (hit.detail.empty() ? "" : "\n" + hit.detail) +
                  (hit.file.empty() ? "" : "\n" + hit.file + ":" + std::to_string(hit.line));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::views
