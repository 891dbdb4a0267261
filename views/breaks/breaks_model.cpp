#include "views/breaks/breaks_model.h"

#include <algorithm>

#include "engine/support/text.h"

namespace fusebox::views {

TableRows breakRows(const std::vector<query::BreakSummary>& breaks) {
  TableRows rows;
  const auto duration = [](int64_t ns, bool known) {
    return known ? durationCell(static_cast<double>(ns)) : textCell("–");
  };
  for (const auto& b : breaks) {
    TableRow row;
    row.location = {ObjectKind::Break, b.id, {}, b.file, static_cast<int>(b.line)};
    row.cells = {textCell(b.file.empty() ? b.function : shortPlace(b.file, b.line)),
                 textCell(breakTitle(b)),
                 textCell(b.reason),
                 countCell(static_cast<int64_t>(b.ids.size())),
                 b.crossings < 0 ? textCell("–") : countCell(b.crossings),
                 duration(b.lostNs, b.measured > 0),
                 duration(b.measured > 0 ? b.lostNs / b.measured : 0, b.measured > 0),
                 duration(b.compileNs, b.compileNs > 0)};
    row.tooltip = b.reason + (b.hint.empty() ? "" : "\n\n" + b.hint) + "\n\n" + b.file + ":" + std::to_string(b.line) +
                  (b.inside.file.empty() ? "" : "\n" + b.inside.file + ":" + std::to_string(b.inside.line));
    if (b.isFailure) row.tone = 3;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string breakTitle(const query::BreakSummary& b) {
  if (!b.isFailure) return b.kind;
  return b.kind == query::kUnnamedFailure ? say(FUSEBOX_TEXT("Coverage", "not compiled")) : say(FUSEBOX_TEXT("Breaks", "not compiled: {}"), b.kind);
}

int breakAt(const std::vector<query::BreakSummary>& breaks, const Location& location) {
  for (size_t i = 0; i < breaks.size(); ++i) {
    const auto& b = breaks[i];
    if (location.kind == ObjectKind::Break && std::binary_search(b.ids.begin(), b.ids.end(), location.id))
      return static_cast<int>(i);
    if (location.kind == ObjectKind::Compile && b.isFailure && b.compile == location.id) return static_cast<int>(i);
    if (location.kind == ObjectKind::SourceLine && b.file == location.file && b.line == location.line)
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace fusebox::views
