#include "views/guards/shapes_model.h"

#include "engine/support/text.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

using query::ShapeCost;

/// Where a row leads: its guard, else its line.
Location locationOf(int64_t guard, const std::string& file, int64_t line) {
  if (guard > 0) return {ObjectKind::Guard, guard, {}, file, static_cast<int>(line)};
  return line > 0 ? Location::sourceLine(file, static_cast<int>(line)) : Location{};
}

std::string joined(const std::string& a, const std::string& b, const char* between) { return a.empty() || b.empty() ? a + b : a + between + b; }

Cell costCell(const ShapeCost& cost) {
  if (cost.recompiles == 0) return cost.limit ? textCell(say(FUSEBOX_TEXT("Shapes", "limit"))) : Cell{"", 0};
  return {sayCount(FUSEBOX_TEXT("Shapes", "{} recompile, {}"), FUSEBOX_TEXT("Shapes", "{} recompiles, {}"), cost.recompiles,
                   formatDuration(static_cast<double>(cost.ns))),
          static_cast<double>(cost.recompiles)};
}

/// Names of kinds stay English in the session; people read what they mean.
std::string relationKind(const std::string& kind) {
  if (kind == "guard") return say(FUSEBOX_TEXT("Shapes", "relation"));
  if (kind == "duck") return say(FUSEBOX_TEXT("Shapes", "equal sizes"));
  if (kind == "plan") return say(FUSEBOX_TEXT("Shapes", "of a plan"));
  if (kind == "runtime") return say(FUSEBOX_TEXT("Shapes", "asserted"));
  if (kind == "assumed") return say(FUSEBOX_TEXT("Shapes", "assumed"));
  return kind;
}

TableRow rowOf(const query::ShapeSymbol& s) {
  TableRow row;
  row.location = locationOf(0, s.file, s.line);
  std::string about = joined(s.source, s.range(), ", ");
  if (!s.hint.empty()) about += say(FUSEBOX_TEXT("Shapes", ", {} at capture"), s.hint);
  row.cells = {textCell(s.name), textCell(s.kind), textCell(about), Cell{"", 0}, textCell(shortPlace(s.file, s.line))};
  row.tooltip = joined(s.legend(), s.reason, "\n");
  if (!s.before.empty() && !s.after.empty()) row.tooltip += say(FUSEBOX_TEXT("Shapes", ": it was {}, now {}"), s.before, s.after);
  row.tone = 1;
  return row;
}

TableRow rowOf(const query::ShapeRelation& r, const std::vector<query::ShapeSymbol>& symbols) {
  TableRow row;
  row.location = locationOf(r.guard, r.file, r.line);
  row.cells = {textCell(r.text), textCell(relationKind(r.kind)), textCell(r.reason), costCell(r.cost), textCell(shortPlace(r.file, r.line))};
  row.tooltip = joined(r.text, r.reason, "\n");
  for (const auto* symbol : query::symbolsNamedIn(symbols, r.text)) row.tooltip += "\n" + symbol->legend();
  row.tone = r.cost.recompiles > 0 || r.cost.limit ? 2 : 0;
  return row;
}

TableRow rowOf(const query::ShapeSpecialisation& s, const std::vector<query::ShapeSymbol>& symbols) {
  TableRow row;
  row.location = locationOf(s.guard, s.file, s.line);
  const std::string what = s.expression.empty() ? s.source : s.expression;
  row.cells = {textCell(what + " = " + s.value), textCell(say(FUSEBOX_TEXT("Shapes", "constant"))), textCell(joined(s.op, s.reason, ": ")), costCell(s.cost),
               textCell(shortPlace(s.file, s.line))};
  row.tooltip = s.sentence();
  for (const auto* symbol : query::symbolsNamedIn(symbols, s.expression)) row.tooltip += "\n" + symbol->legend();
  row.tone = s.cost.recompiles > 0 || s.cost.limit ? 2 : 4;
  return row;
}

}  // namespace

std::string shapeKey(const TableRow& row) {
  std::string key;
  for (const size_t cell : {size_t{0}, size_t{1}, size_t{4}}) key += (cell < row.cells.size() ? row.cells[cell].text : "") + "\n";
  return key;
}

Result<ShapeTable> loadShapes(const session::Reader& reader, int64_t compile) {
  auto entry = query::shapeEntry(reader, compile);
  if (!entry) return tl::unexpected(entry.error());
  ShapeTable table;
  for (const auto& s : entry->symbols) table.rows.push_back(rowOf(s));
  for (const auto& r : entry->relations) {
    if (r.isSpecialisation) continue;
    table.rows.push_back(rowOf(r, entry->symbols));
    if (r.cost.recompiles > 0 || r.cost.limit) table.advice[shapeKey(table.rows.back())] = query::adviseShape(reader, r);
  }
  for (const auto& s : entry->specialisations) {
    table.rows.push_back(rowOf(s, entry->symbols));
    table.advice[shapeKey(table.rows.back())] = query::adviseShape(reader, s);
  }
  return table;
}

}  // namespace fusebox::views
