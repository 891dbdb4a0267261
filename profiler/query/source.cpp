#include "profiler/query/source.h"

#include <fmt/format.h>

#include "engine/support/file_owner.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

// On a GPU the time of the device counts, where it was measured: a group has one kernel then.
constexpr const char* kGroupTime =
    "(SELECT coalesce((SELECT d.total_ns FROM t_gpu_stats d WHERE d.kernel_id = s.kernel_id), sum(s.total_ns)) FROM t_launch_stats s "
    "WHERE s.group_id = {0})";
// Of a profiler's kernels, which are of no group.
constexpr const char* kPlacedTimes =
    " UNION ALL SELECT k.file, sum(s.total_ns) FROM t_kernel k JOIN t_launch_stats s ON s.kernel_id = k.id WHERE k.file IS NOT NULL GROUP BY k.file";
// Run time of each node that carries a place: its group's time, shared equally among the group's nodes.
constexpr const char* kGroupNodes = "(SELECT count(*) FROM t_fusion_member x WHERE x.group_id = {0})";

/// Kernels of a profiler's trace are of no graph: their stacks say where they were launched. Other sessions may have a million kernels.
bool hasPlacedKernels(const Reader& reader) {
  const std::string format = reader.info("imported_format");
  return format.starts_with("Kineto") || format.starts_with("Chrome");
}

}  // namespace

Result<std::vector<SourceFile>> sourceFiles(const Reader& reader) {
  std::vector<SourceFile> out;
  // Of the groups that ran, and of the graphs that were captured: the other nodes need not be looked at.
  auto read = reader.each(
      fmt::format("WITH times AS MATERIALIZED (SELECT group_id, {} / max(1, {}) AS ns FROM (SELECT DISTINCT group_id FROM t_launch_stats) g), "
                  "by_file AS (SELECT n.file AS file, sum(t.ns) AS ns FROM times t CROSS JOIN t_fusion_member f ON f.group_id = t.group_id "
                  "CROSS JOIN t_node n ON n.id = f.node_id WHERE n.file IS NOT NULL GROUP BY n.file{}), "
                  "made AS (SELECT n.file AS file, count(*) AS nodes FROM t_graph g CROSS JOIN t_node n ON n.graph_id = g.id "
                  "WHERE g.stage = 'captured' GROUP BY n.file), "
                  "broken AS (SELECT file, count(*) AS breaks FROM (SELECT DISTINCT file, line, kind, reason FROM t_graph_break) GROUP BY file) "
                  "SELECT s.path, coalesce(broken.breaks, 0) AS all_breaks, coalesce(made.nodes, 0) AS all_nodes, coalesce(by_file.ns, 0) AS all_ns "
                  "FROM t_source_file s LEFT JOIN by_file ON by_file.file = s.path LEFT JOIN made ON made.file = s.path "
                  "LEFT JOIN broken ON broken.file = s.path ORDER BY all_ns DESC, all_breaks DESC, all_nodes DESC, s.text IS NULL, s.id",
                  fmt::format(kGroupTime, "g.group_id"), fmt::format(kGroupNodes, "g.group_id"), hasPlacedKernels(reader) ? kPlacedTimes : ""),
      {}, [&](const Statement& row) {
        SourceFile file{row.string("path"), row.integer("all_breaks"), row.integer("all_nodes"), row.integer("all_ns")};
        // What starts the program is on every stack, and nobody's code.
        if (file.breaks + file.nodes + file.timeNs > 0 || (!isFuseboxFile(file.path) && !file.path.starts_with("<frozen "))) out.push_back(std::move(file));
      });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<std::string> sourceText(const Reader& reader, const std::string& path) {
  std::string text;
  bool found = false;
  auto read = reader.each("SELECT text FROM source_files WHERE file = ? AND text IS NOT NULL", {path},
                          [&](const Statement& row) { text = row.string("text"), found = true; });
  if (!read) return tl::unexpected(read.error());
  if (!found) return fail(ErrorCode::NotFound, "the session does not hold the text of this file", path);
  return text;
}

Result<std::map<int64_t, LineNotes>> lineNotes(const Reader& reader, const std::string& path) {
  std::map<int64_t, LineNotes> out;
  struct Part {
    const char* sql;
    void (*note)(LineNotes&, const Statement&);
  };
  static const std::string kTimes = fmt::format(
      "WITH mine AS MATERIALIZED (SELECT n.line AS line, f.group_id AS group_id, count(*) AS nodes FROM t_node n "
      "CROSS JOIN t_fusion_member f ON f.node_id = n.id WHERE n.file = ? GROUP BY n.line, f.group_id) "
      "SELECT line, sum(nodes * ({} / max(1, {}))) AS ns, count(DISTINCT (SELECT g.kernel_id FROM t_fusion_group g WHERE g.id = m.group_id)) AS kernels, "
      "sum((SELECT sum(s.launches) FROM t_launch_stats s WHERE s.group_id = m.group_id)) AS launches FROM mine m GROUP BY line",
      fmt::format(kGroupTime, "m.group_id"), fmt::format(kGroupNodes, "m.group_id"));
  static const Part kParts[] = {
      {kTimes.c_str(),
       [](LineNotes& n, const Statement& row) {
         n.timeNs = row.integer("ns"), n.kernels = row.integer("kernels"), n.launches = row.integer("launches");
       }},
      {"SELECT n.line, count(*) AS count FROM t_node n JOIN t_graph g ON g.id = n.graph_id WHERE g.stage = 'captured' AND n.file = ? "
       "GROUP BY n.line",
       [](LineNotes& n, const Statement& row) { n.nodes = row.integer("count"); }},
      {"SELECT line, count(*) AS count FROM t_graph_break WHERE file = ? GROUP BY line",
       [](LineNotes& n, const Statement& row) { n.breaks = row.integer("count"); }},
      {"SELECT line, count(*) AS count FROM t_guard WHERE file = ? GROUP BY line",
       [](LineNotes& n, const Statement& row) { n.guards = row.integer("count"); }},
      {"SELECT line, count(*) AS count FROM t_guard_failure WHERE file = ? AND outcome IN ('recompile', 'limit') GROUP BY line",
       [](LineNotes& n, const Statement& row) { n.recompiles = row.integer("count"); }},
  };
  std::vector<Part> parts(std::begin(kParts), std::end(kParts));
  if (hasPlacedKernels(reader)) {
    parts.push_back({"SELECT k.line, sum(s.total_ns) AS total_ns, count(DISTINCT k.id) AS kernels, sum(s.launches) AS launches FROM t_kernel k JOIN t_launch_stats s ON s.kernel_id = k.id WHERE k.file = ? GROUP BY k.line",
                     [](LineNotes& n, const Statement& row) { n.timeNs += row.integer("total_ns"), n.kernels += row.integer("kernels"), n.launches += row.integer("launches"); }});
  }
  for (const Part& part : parts) {
    auto read = reader.each(part.sql, {path}, [&](const Statement& row) {
      if (row.integer("line") > 0) part.note(out[row.integer("line")], row);
    });
    if (!read) return tl::unexpected(read.error());
  }
  return out;
}

std::string pathOnDisk(const session::Reader& reader, const std::string& path) {
  const std::string folder = reader.info("cwd");
  return path.starts_with('/') || path.empty() || folder.empty() ? path : folder + "/" + path;
}

}  // namespace fusebox::query
