#include "views/fusion/fusion_model.h"

#include <fmt/format.h>

#include <set>

#include "engine/support/text.h"
#include "profiler/query/entries.h"
#include "profiler/query/graph_part.h"
#include "profiler/query/bounded.h"
#include "profiler/query/saved_graphs.h"
#include "profiler/session/reader.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr const char* kChoices =
    R"(SELECT g.graph_id, g.compile_id, coalesce(c.frame, g.name, 'graph ' || g.graph_id) AS label, g.direction,
  g.stage, g.file, g.line, EXISTS(SELECT 1 FROM fusion_groups f WHERE f.graph_id = g.graph_id) AS is_scheduled, g.name
  FROM graphs g LEFT JOIN compiles c USING(compile_id) WHERE g.stage = 'post_fusion'
    OR (g.stage IN ('forward', 'backward', 'captured') AND NOT EXISTS(SELECT 1 FROM graphs h WHERE h.compile_id = g.compile_id
      AND (h.stage = 'post_fusion' OR (h.stage = 'forward' AND g.stage = 'captured'))) AND NOT (g.stage = 'backward' AND EXISTS(
      SELECT 1 FROM graphs h JOIN compiles d ON d.compile_id = h.compile_id WHERE d.parent_compile_id = g.compile_id)))
  ORDER BY g.graph_id LIMIT 20000)";
constexpr const char* kDecisions = R"(SELECT fused, kind, a, b, score_bytes, reason, detail, a_node_id, file, line
  FROM fusion_decisions WHERE graph_id = ? ORDER BY decision_id LIMIT ?2)";
constexpr const char* kGroups =
    R"(SELECT group_id, name, kind, node_count, read_bytes, write_bytes, bytes_saved, total_ns, reason, file,
  line FROM fusion_groups WHERE graph_id = ? ORDER BY position LIMIT ?2)";
constexpr const char* kBuffers =
    R"(SELECT name, kind, dtype, shape, bytes, first_use, last_use, node_id, file, line FROM buffers
  WHERE graph_id = ? ORDER BY bytes DESC LIMIT ?2)";
// Numerics are about the graph that was compiled, an earlier stage of the same compile.
constexpr const char* kNumerics =
    R"(SELECT x.node_id, x.name, x.op, x.dtype, x.compiled_rel, x.eager_rel, x.local_abs, x.magnitude,
  x.difference_ulp, x.mismatches, x.is_divergent, x.note, x.output, x.file, x.line FROM numerics x JOIN graphs g USING(graph_id)
  WHERE g.compile_id = (SELECT compile_id FROM graphs WHERE graph_id = ?) ORDER BY x.node_id, x.output LIMIT ?2)";

struct Count {
  TableRows FusionContent::*rows;
  int64_t FusionContent::*all;
  const char* sql;
};
constexpr Count kCounts[] = {
    {&FusionContent::decisions, &FusionContent::allDecisions, "SELECT count(*) AS count FROM t_fusion_decision WHERE graph_id = ?"},
    {&FusionContent::groups, &FusionContent::allGroups, "SELECT count(*) AS count FROM t_fusion_group WHERE graph_id = ?"},
    {&FusionContent::buffers, &FusionContent::allBuffers, "SELECT count(*) AS count FROM t_buffer WHERE graph_id = ?"},
    {&FusionContent::numerics, &FusionContent::allNumerics,
     "SELECT count(*) AS count FROM t_numerics x JOIN t_graph g ON g.id = x.graph_id WHERE g.compile_id = (SELECT compile_id FROM t_graph WHERE id = ?)"}};

Cell errorCell(double value) {
  return std::isfinite(value) ? Cell{value == 0 ? "0" : fmt::format("{:.2e}", value), value} : Cell{"", -1};
}

TableRow decisionRow(const Statement& s, FusionContent& content) {
  TableRow row;
  row.location = {ObjectKind::None, static_cast<int64_t>(content.decisionPlaces.size()), {}, {}, 0};
  content.decisionPlaces.push_back({ObjectKind::Node, s.integer("a_node_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))});
  row.cells.resize(kDecisionColumns);
  row.cells[kDecisionOutcome] = textCell(s.integer("fused") ? "fused" : "refused");
  row.cells[kDecisionKind] = textCell(s.string("kind"));
  row.cells[kDecisionA] = textCell(s.string("a"));
  row.cells[kDecisionB] = textCell(s.string("b"));
  row.cells[kDecisionBytes] = bytesCell(s.real("score_bytes"));
  row.cells[kDecisionReason] = textCell(s.string("reason"));
  row.tooltip = s.string("reason") + (s.text("detail").empty() ? "" : "\n" + s.string("detail"));
  row.tone = s.integer("fused") ? 1 : 0;
  return row;
}

TableRow groupRow(const Statement& s) {
  TableRow row;
  row.location = {ObjectKind::Group, s.integer("group_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
  row.cells.resize(kGroupColumns);
  row.cells[kGroupName] = textCell(s.string("name"));
  row.cells[kGroupKind] = textCell(s.string("kind"));
  row.cells[kGroupNodes] = s.isNull("node_count") ? Cell{"", 0} : countCell(s.integer("node_count"));
  row.cells[kGroupRead] = bytesCell(s.real("read_bytes"));
  row.cells[kGroupWrite] = bytesCell(s.real("write_bytes"));
  row.cells[kGroupSaved] = bytesCell(s.real("bytes_saved"));
  row.cells[kGroupTime] = s.integer("total_ns") > 0 ? durationCell(s.real("total_ns")) : Cell{"", 0};
  row.cells[kGroupReason] = textCell(s.string("reason"));
  row.tooltip = s.string("reason");
  return row;
}

TableRow bufferRow(const Statement& s) {
  TableRow row;
  row.location = {ObjectKind::Node, s.integer("node_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
  row.cells.resize(kBufferColumns);
  row.cells[kBufferName] = textCell(s.string("name"));
  row.cells[kBufferKind] = textCell(s.string("kind"));
  row.cells[kBufferType] = textCell(s.string("dtype"));
  row.cells[kBufferShape] = textCell(s.string("shape"));
  row.cells[kBufferBytes] = bytesCell(s.real("bytes"));
  row.cells[kBufferLife] =
      s.isNull("first_use") ? Cell{"", -1} : Cell{fmt::format("{} – {}", s.integer("first_use"), s.integer("last_use")), s.real("first_use")};
  row.cells[kBufferPlace] = textCell(shortPlace(s.string("file"), s.integer("line")));
  return row;
}

ValueErrors valueErrors(const Statement& s) {
  const auto number = [&s](const char* column) { return s.isNull(column) ? NAN : s.real(column); };
  ValueErrors v;
  v.location = {ObjectKind::Node, s.integer("node_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
  v.name = s.string("name"), v.op = s.string("op"), v.dtype = s.string("dtype"), v.note = s.string("note");
  v.compiled = number("compiled_rel"), v.eager = number("eager_rel"), v.alone = number("local_abs") / number("magnitude"), v.ulp = number("difference_ulp");
  v.mismatches = s.integer("mismatches"), v.output = s.integer("output");
  v.isDivergent = s.integer("is_divergent") != 0;
  return v;
}

/// A program that PyTorch saved can be compiled as a whole, though its graph's form here is for looking at.
bool isProgram(const session::Reader& reader) {
  const std::string format = reader.info("imported_format");
  return format.find(".pt2") != std::string::npos || format.find("TorchScript") != std::string::npos;
}

}  // namespace

TableRow numericsRow(const ValueErrors& v) {
  TableRow row;
  row.location = v.location;
  row.cells.resize(kNumericsColumns);
  row.cells[kNumericsNode] = textCell(v.output ? fmt::format("{}#{}", v.name, v.output) : v.name);
  row.cells[kNumericsOp] = textCell(v.op);
  row.cells[kNumericsType] = textCell(v.dtype);
  row.cells[kNumericsCompiled] = errorCell(v.compiled);
  row.cells[kNumericsEager] = errorCell(v.eager);
  row.cells[kNumericsLocal] = errorCell(v.alone);
  row.cells[kNumericsUlp] = std::isfinite(v.ulp) ? Cell{fmt::format("{:.0f}", v.ulp), v.ulp} : Cell{"", -1};
  std::string note = v.note;
  if (v.mismatches > 0) note = say(FUSEBOX_TEXT("Fusion", "{} elements differ in kind"), v.mismatches) + (note.empty() ? "" : "; " + note);
  if (v.isDivergent) note = say(FUSEBOX_TEXT("Fusion", "divergent")) + (note.empty() ? "" : "; " + note);
  row.cells[kNumericsNote] = textCell(note);
  row.tone = v.isDivergent ? 3 : note.empty() ? 0 : 4;
  return row;
}

Result<std::vector<FusionChoice>> loadFusionChoices(const session::Reader& reader) {
  std::vector<FusionChoice> choices;
  auto entries = query::entryNumbers(reader);
  if (!entries) return tl::unexpected(entries.error());
  std::set<std::string> labels;
  auto read = reader.each(kChoices, {}, [&](const Statement& s) {
    FusionChoice choice{s.integer("graph_id"), s.integer("compile_id"), s.string("label"), s.string("file"), s.integer("is_scheduled") != 0};
    // A graph without a frame has only its own name, which often is its direction or stage already.
    const auto says = [&](const std::string& word) { return choice.label.find(word) != std::string::npos; };
    if (s.text("direction") == "backward" && !says("backward")) choice.label += " (backward)";
    if (s.text("stage") != "post_fusion" && !says(s.string("stage"))) choice.label += " · " + s.string("stage");
    if (!s.isNull("file")) choice.label += "  " + shortPlace(s.string("file"), s.integer("line"));
    if (const auto made = entries->find(choice.compile); made != entries->end()) {
      if (made->second.isRest && s.integer("line") > 0) choice.label = say(FUSEBOX_TEXT("Recompiles", "{}, from line {}"), choice.label, s.integer("line"));
      if (!made->second.isOnly) choice.label = say(FUSEBOX_TEXT("Memory", "{}, entry {}"), choice.label, made->second.entry);
    }
    if (const query::GraphPart part = query::graphPart(s.text("name")); !part.isWhole()) choice.label += say(FUSEBOX_TEXT("Fusion", ", part {} of {}"), part.part, part.of);
    if (!labels.insert(choice.label).second) choice.label = say(FUSEBOX_TEXT("Fusion", "{}, graph {}"), choice.label, choice.graph);  // two are two
    choices.push_back(std::move(choice));
  });
  if (!read) return tl::unexpected(read.error());
  return choices;
}

Result<int64_t> fusionGraphOf(const session::Reader& reader, const Location& location) {
  const char* sql = location.kind == ObjectKind::Graph    ? "SELECT ?1 AS graph_id"
                    : location.kind == ObjectKind::Node   ? "SELECT graph_id FROM nodes WHERE node_id = ?1"
                    : location.kind == ObjectKind::Group  ? "SELECT graph_id FROM fusion_groups WHERE group_id = ?1"
                    : location.kind == ObjectKind::Kernel ? "SELECT graph_id FROM kernels WHERE kernel_id = ?1"
                                                          : nullptr;
  int64_t graph = 0;
  if (!sql) return graph;
  const auto take = [&](const Statement& s) { graph = s.integer("graph_id"); };
  auto read = reader.each(sql, {location.id}, take);
  // The scheduled graph of the same compile; a traced backward graph is scheduled by a compile of its own.
  if (read && graph)
    read = reader.each(
        "SELECT h.graph_id FROM graphs g JOIN graphs h ON h.direction = g.direction AND (h.compile_id = g.compile_id "
        "OR "
        "h.compile_id IN (SELECT compile_id FROM compiles WHERE parent_compile_id = g.compile_id)) "
        "WHERE g.graph_id = ?1 AND h.stage = 'post_fusion' ORDER BY h.graph_id <> ?1 LIMIT 1",
        {graph}, take);
  if (!read) return tl::unexpected(read.error());
  return graph;
}

Result<FusionContent> loadFusion(const session::Reader& reader, int64_t graph, int64_t most) {
  FusionContent content;
  auto read = reader.each(kDecisions, {graph, most},
                          [&](const Statement& s) { content.decisions.push_back(decisionRow(s, content)); });
  if (read)
    read = reader.each(kGroups, {graph, most}, [&](const Statement& s) { content.groups.push_back(groupRow(s)); });
  if (read)
    read = reader.each("SELECT read_bytes, write_bytes, bytes_saved FROM t_fusion_group WHERE graph_id = ?", {graph}, [&](const Statement& s) {
      for (const char* column : {"read_bytes", "write_bytes"}) query::addBounded(content.traffic, query::boundedAmount(s.integer(column)));
      content.withoutTraffic += s.isNull("read_bytes") && s.isNull("write_bytes");
      query::addBounded(content.saved, query::boundedAmount(s.integer("bytes_saved")));
    });
  if (read) read = reader.each(kBuffers, {graph, most}, [&](const Statement& s) { content.buffers.push_back(bufferRow(s)); });
  if (read)
    read = reader.each(kNumerics, {graph, most},
                       [&](const Statement& s) {
                         const ValueErrors value = valueErrors(s);
                         content.numerics.push_back(numericsRow(value));
                         content.divergent += value.isDivergent;
                       });
  for (const Count& count : kCounts) {
    content.*count.all = static_cast<int64_t>((content.*count.rows).size());
    if (read && content.*count.all >= most) read = reader.each(count.sql, {graph}, [&](const Statement& s) { content.*count.all = s.integer("count"); });
  }
  if (!read) return tl::unexpected(read.error());
  content.holdings = query::holdingsOf(reader);
  int64_t compile = 0;
  read = reader.each("SELECT compile_id FROM graphs WHERE graph_id = ?", {graph}, [&](const Statement& s) { compile = s.integer("compile_id"); });
  if (!read) return tl::unexpected(read.error());
  auto symbols = query::symbolsOf(reader, compile);
  if (!symbols) return tl::unexpected(symbols.error());
  content.symbols = std::move(*symbols);
  auto rules = query::recordedRules(reader, graph);
  if (!rules) return tl::unexpected(rules.error());
  for (const auto& rule : *rules) content.recorded.push_back({rule.force, rule.a, rule.b});
  if (isProgram(reader)) content.program = reader.info("imported_from");
  else if (!query::isOwnRecording(reader)) content.foreign = reader.path();
  content.canCompile = isProgram(reader) || query::hasSavedGraph(reader, graph);
  if (!content.canCompile) {
    const auto none = query::savedGraph(reader, graph);
    if (!none) content.whyNot = none.error().message;
  }
  return content;
}

std::string wishText(const std::vector<FusionWish>& wishes, const std::string& a, const std::string& b) {
  for (const FusionWish& wish : wishes)
    if (wish.isAbout(a, b)) return wish.force ? "force" : "forbid";
  return {};
}

std::vector<std::string> replayWords(const std::vector<FusionWish>& wishes, const std::vector<FusionWish>& recorded) {
  const auto has = [](const std::vector<FusionWish>& list, const FusionWish& wish) {
    return std::any_of(list.begin(), list.end(), [&](const FusionWish& other) { return other.force == wish.force && other.isAbout(wish.a, wish.b); });
  };
  std::vector<std::string> words;
  for (const FusionWish& wish : recorded)
    if (!has(wishes, wish)) words.insert(words.end(), {"--allow", wish.a + "," + wish.b});
  for (const FusionWish& wish : wishes)
    if (!has(recorded, wish)) words.insert(words.end(), {wish.force ? "--force" : "--forbid", wish.a + "," + wish.b});
  return words;
}

}  // namespace fusebox::views
