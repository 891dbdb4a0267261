#include "profiler/query/saved_graphs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "profiler/session/recording_host.h"

namespace fusebox::query {
namespace {

constexpr int kMaxSteps = 64;  ///< stages from one graph to another; a damaged session may hold circles

/// The last `found` that `sql` gives for `id`; 0 for none.
int64_t lookUp(const session::Reader& reader, const char* sql, int64_t id) {
  int64_t found = 0;
  (void)reader.each(sql, {id}, [&](const session::Statement& row) { found = row.integer("found"); });
  return found;
}

/// Up along the graphs that this one was made from, then down to one made from it.
int64_t nearest(const session::Reader& reader, int64_t graph) {
  constexpr const char* kHas = "SELECT graph_id AS found FROM t_saved_graph WHERE graph_id = ?1";
  std::set<int64_t> seen;
  for (int64_t id = graph, step = 0; id > 0 && step < kMaxSteps && seen.insert(id).second; ++step) {
    if (lookUp(reader, kHas, id)) return id;
    id = lookUp(reader, "SELECT parent_id AS found FROM t_graph WHERE id = ?1", id);
  }
  std::vector<int64_t> row{graph};
  for (int step = 0; step < kMaxSteps && !row.empty(); ++step) {
    std::vector<int64_t> below;
    for (int64_t id : row) {
      (void)reader.each(
          "SELECT g.id, s.graph_id FROM t_graph g LEFT JOIN t_saved_graph s ON s.graph_id = g.id WHERE g.parent_id = "
          "?1 "
          "ORDER BY g.stage = 'forward' DESC, g.id",
          {id}, [&](const session::Statement& r) {
            if (seen.insert(r.integer("id")).second || !r.isNull("graph_id"))
              below.push_back(r.isNull("graph_id") ? r.integer("id") : -r.integer("id"));
          });
    }
    const auto saved = std::find_if(below.begin(), below.end(), [](int64_t id) { return id < 0; });
    if (saved != below.end()) return -*saved;
    row = std::move(below);
  }
  return 0;
}

std::string whyNone(const session::Reader& reader, int64_t graph) {
  if (graph > 0 && !lookUp(reader, "SELECT id AS found FROM t_graph WHERE id = ?1", graph))
    return fmt::format("the session has no graph {}; the graphs view lists what there is", graph);
  if (const std::string format = reader.info("imported_format"); !format.empty())
    return fmt::format("graphs of {} are for looking at only: that format does not keep what compiling takes", format);
  if (reader.info("redacted") == "1")
    return "names and sources were taken out of this session, and its graphs' forms that can be compiled again with them; replay the original";
  return "the session keeps no graph in a form that can be compiled again: it was recorded by an older Fusebox, under "
         "another engine, "
         "or nothing was compiled; record it again with `fusebox run`";
}

}  // namespace

bool isOwnRecording(const session::Reader& reader) {
  struct stat file;
  return !reader.info("hostname").empty() && !session::recordedElsewhere(reader.info()) && ::stat(reader.path().c_str(), &file) == 0 && file.st_uid == ::getuid();
}

bool hasSavedGraph(const session::Reader& reader, int64_t graph) { return graph > 0 && nearest(reader, graph) > 0; }

Result<SavedGraph> savedGraph(const session::Reader& reader, int64_t graph) {
  const int64_t id =
      graph > 0 ? nearest(reader, graph) : lookUp(reader, "SELECT s.graph_id AS found FROM t_saved_graph s JOIN t_graph g ON g.id = s.graph_id WHERE ?1 = ?1 ORDER BY g.direction = 'backward', s.graph_id LIMIT 1", 0);
  if (id <= 0) return fail(ErrorCode::NotFound, whyNone(reader, graph), reader.origin());
  std::optional<SavedGraph> found;
  auto read = reader.each(
      "SELECT s.graph_id, g.name, g.stage, g.direction, s.text FROM t_saved_graph s JOIN t_graph g ON g.id = "
      "s.graph_id "
      "WHERE s.graph_id = ?1",
      {id}, [&](const session::Statement& r) {
        found = SavedGraph{r.integer("graph_id"), r.string("name"), r.string("stage"), r.string("direction"), r.string("text")};
      });
  if (!read) return tl::unexpected(read.error());
  if (!found || found->text.empty()) return fail(ErrorCode::NotFound, whyNone(reader, graph), reader.origin());
  return std::move(*found);
}

Result<std::vector<RecordedRule>> recordedRules(const session::Reader& reader, int64_t graph) {
  std::vector<RecordedRule> rules;
  auto read = reader.each(
      "SELECT DISTINCT d.a, d.b, d.reason LIKE 'forced%' AS is_forced FROM fusion_decisions d JOIN graphs h ON h.graph_id = d.graph_id JOIN graphs g ON g.graph_id = ?1 "
      "WHERE h.direction = g.direction AND (h.compile_id = g.compile_id OR h.compile_id IN (SELECT compile_id FROM compiles WHERE "
      "parent_compile_id = g.compile_id)) AND (d.reason LIKE 'forbidden by user%' OR d.reason LIKE 'forced%')",
      {graph}, [&](const session::Statement& r) { rules.push_back({r.integer("is_forced") != 0, r.string("a"), r.string("b")}); });
  if (!read) return tl::unexpected(read.error());
  return rules;
}

}  // namespace fusebox::query
