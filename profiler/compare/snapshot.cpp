#include "profiler/compare/snapshot.h"

#include <algorithm>
#include <unordered_map>

#include "engine/support/text.h"
#include "profiler/compare/align.h"
#include "profiler/compare/snapshot_times.h"
#include "profiler/query/coverage.h"
#include "profiler/query/entries.h"
#include "profiler/query/function_names.h"
#include "profiler/query/memory.h"
#include "profiler/query/program_kernels.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/shapes.h"
#include "profiler/query/steps.h"

namespace fusebox::compare {
namespace {

using session::Reader;
using session::Statement;

/// Stages of graphs by level: those of one level can be compared with one another. Where a compile has both of a level, the
/// one that was fused has the groups.
int levelOf(std::string_view stage) {
  if (stage == "post_fusion" || stage == "post_grad") return 3;
  if (stage == "forward" || stage == "backward") return 2;
  return stage == "joint" ? 1 : 0;
}

/// What the parts of reading share.
struct Loading {
  const Reader& reader;
  Snapshot& out;
  int level;                                        ///< of the graphs to take
  std::unordered_map<int64_t, size_t> objectOfFrame;
  std::unordered_map<int64_t, std::pair<size_t, size_t>> compileAt;  ///< object and index; a backward compile belongs to its forward one
  SampledTimes times;
  std::unordered_map<int64_t, int64_t> peaks;  ///< planned bytes by graph
};

Result<void> readFrames(Loading& l) {
  struct Row {
    int64_t id;
    CodeObject object;
    bool resumes;
  };
  std::vector<Row> rows;
  auto read = l.reader.each(
      "SELECT frame_id, name, qualname, file, line, resume_offset IS NOT NULL AS has_resume_offset FROM frames ORDER BY frame_id", {}, [&](const Statement& s) {
        CodeObject object{.frame = s.integer("frame_id"), .name = s.string("name"), .qualname = s.string("qualname"), .place = {s.string("file"), s.integer("line")}};
        const bool resumes = s.integer("has_resume_offset") != 0 || query::isResumeName(object.name);
        object.name = query::rootFunction(object.name);
        rows.push_back({s.integer("frame_id"), std::move(object), resumes});
      });
  if (!read) return read;
  // Functions first, then what resumes them: the nearest function of that name that starts above.
  for (const bool resuming : {false, true}) {
    for (Row& row : rows) {
      if (row.resumes != resuming) continue;
      size_t found = l.out.objects.size();
      for (size_t i = 0; i < l.out.objects.size(); ++i) {
        const CodeObject& o = l.out.objects[i];
        if (o.name != row.object.name || o.place.file != row.object.place.file) continue;
        const bool same = resuming ? o.place.line <= row.object.place.line && (found == l.out.objects.size() || l.out.objects[found].place.line < o.place.line)
                                   : o.place.line == row.object.place.line;
        if (same) found = i;
      }
      l.objectOfFrame[row.id] = found;
      if (found == l.out.objects.size()) l.out.objects.push_back(std::move(row.object));
    }
  }
  return {};
}

std::string whichOf(const query::EntryNumber& number, int64_t line) {
  std::string out = number.isRest && line > 0 ? say(FUSEBOX_TEXT("Compare", "from line {}"), line) : std::string();
  if (!number.isOnly) out += (out.empty() ? "" : ", ") + say(FUSEBOX_TEXT("Compare", "entry {}"), number.entry);
  return out;
}

Result<void> readCompiles(Loading& l) {
  const auto numbers = query::entryNumbers(l.reader);
  if (!numbers) return tl::unexpected(numbers.error());
  return l.reader.each(
      "SELECT compile_id, frame_id, parent_compile_id, kind, backend, mode, cache, status, coalesce(dynamic, 0) AS dynamic, coalesce(dur_ns, 0) AS dur_ns, frame, file, line "
      "FROM compiles ORDER BY compile_id",
      {}, [&](const Statement& s) {
        ++l.out.compiles;
        if (s.isNull("parent_compile_id")) l.out.compileNs += s.real("dur_ns");
        const auto parent = s.isNull("parent_compile_id") ? l.compileAt.end() : l.compileAt.find(s.integer("parent_compile_id"));
        if (parent != l.compileAt.end() && (s.text("kind") == "backward" || s.isNull("frame_id") || l.objectOfFrame.contains(s.integer("frame_id")) == false)) {
          l.compileAt.emplace(s.integer("compile_id"), parent->second);
          return;
        }
        auto frame = l.objectOfFrame.find(s.integer("frame_id"));
        if (frame == l.objectOfFrame.end()) {  // a graph that was compiled by itself
          l.out.objects.push_back({.name = s.string("frame").empty() ? "graph" : s.string("frame"), .place = {s.string("file"), s.integer("line")}});
          frame = l.objectOfFrame.emplace(-s.integer("compile_id"), l.out.objects.size() - 1).first;
        }
        auto& object = l.out.objects[frame->second];
        l.compileAt.emplace(s.integer("compile_id"), std::pair{frame->second, object.compiles.size()});
        const auto number = numbers->find(s.integer("compile_id"));
        object.compiles.push_back({.id = s.integer("compile_id"), .backend = s.string("backend"), .mode = s.string("mode"), .cache = s.string("cache"),
                                   .status = s.string("status"), .which = number == numbers->end() ? std::string() : whichOf(number->second, s.integer("line")), .dynamic = s.integer("dynamic") != 0, .durNs = s.real("dur_ns")});
      });
}

/// The line that asked may have another number in the other session, or be in a file of another name: it is no part of what is guarded.
void sayWhole(Guard& guard, std::string code) {
  constexpr std::string_view kAsked = ", asked by ";
  if (code.starts_with(guard.kind + ": ")) code.erase(0, guard.kind.size() + 2);
  const size_t asked = code.find(kAsked);
  guard.isOfSource = false;
  guard.expected = asked == std::string::npos ? std::string() : code.substr(asked + 2);
  guard.source = code.substr(0, std::min<size_t>(asked, 200));
}

Result<void> readGuards(Loading& l) {
  return l.reader.each("SELECT guard_id, compile_id, kind, source, expected, file, line, code FROM guards ORDER BY guard_id", {}, [&](const Statement& s) {
    ++l.out.guards;
    const auto at = l.compileAt.find(s.integer("compile_id"));
    if (at == l.compileAt.end()) return;
    Guard guard{s.integer("guard_id"), s.string("kind"), s.string("source"), withoutIds(s.text("expected")), {s.string("file"), s.integer("line")}};
    if (guard.source.empty()) sayWhole(guard, withoutIds(s.text("code")));
    l.out.objects[at->second.first].compiles[at->second.second].guards.push_back(std::move(guard));
  });
}

Result<void> readSymbols(Loading& l) {
  auto entries = query::shapeEntries(l.reader);
  if (!entries) return tl::unexpected(entries.error());
  for (const auto& [compile, entry] : *entries) {
    const auto at = l.compileAt.find(compile);
    if (at == l.compileAt.end()) continue;
    auto& out = l.out.objects[at->second.first].compiles[at->second.second].symbols;
    for (const auto& s : entry.symbols)
      if (!s.source.empty()) out.push_back({s.source, say(FUSEBOX_TEXT("Compare", "symbolic, {}"), s.range()), {s.file, s.line}});
    for (const auto& s : entry.specialisations)
      if (!s.source.empty()) out.push_back({s.source, say(FUSEBOX_TEXT("Compare", "specialised to {}"), s.value), {s.file, s.line}, true});
  }
  return {};
}

/// A break is what stops capture at a place: how the compiler words it for its developers differs between attempts.
Result<void> readBreaks(Loading& l) {
  return l.reader.each("SELECT break_id, frame_id, kind, reason, file, line FROM graph_breaks ORDER BY 1", {}, [&](const Statement& s) {
    const auto object = l.objectOfFrame.find(s.integer("frame_id"));
    if (object == l.objectOfFrame.end()) return;
    const Place place{s.string("file"), s.integer("line")};
    auto& breaks = l.out.objects[object->second].breaks;
    const auto same = [&](const Break& b) { return b.kind == s.text("kind") && b.place.file == place.file && b.place.line == place.line; };
    const auto known = std::find_if(breaks.begin(), breaks.end(), same);
    if (known != breaks.end()) ++known->count;
    else breaks.push_back({s.integer("break_id"), 1, s.string("kind"), withoutIds(query::breakReason(s.text("reason"))), place});
  });
}

Result<void> readUncompiled(Loading& l) {
  auto coverage = query::coverageOf(l.reader);
  if (!coverage) return tl::unexpected(coverage.error());
  for (const query::Uncompiled& u : coverage->uncompiled) {
    const auto object = u.recovered ? l.objectOfFrame.end() : l.objectOfFrame.find(u.frame);
    if (object == l.objectOfFrame.end()) continue;
    l.out.objects[object->second].failures.push_back({u.compile, u.count, u.kind, withoutIds(u.reason), {u.file, u.line}});
  }
  return {};
}

Result<void> readRecompiles(Loading& l) {
  return l.reader.each(
      "SELECT min(failure_id) AS failure_id, frame_id, guard, min(expected) AS expected, min(found) AS found, outcome, file, line, count(*) AS count FROM guard_failures WHERE failure_id IN (" +
          std::string(query::kDecisiveFailures) + ") GROUP BY frame_id, guard, outcome, file, line ORDER BY 1",
      {}, [&](const Statement& s) {
        const auto object = l.objectOfFrame.find(s.integer("frame_id"));
        if (object == l.objectOfFrame.end()) return;
        l.out.objects[object->second].recompiles.push_back({s.integer("failure_id"), s.integer("count"), withoutIds(s.text("guard")), withoutIds(s.text("expected")),
                                                            withoutIds(s.text("found")), s.string("outcome"), {s.string("file"), s.integer("line")}});
      });
}

Result<void> readNodes(const Reader& reader, Graph& graph, std::unordered_map<int64_t, int32_t>& at) {
  return reader.each("SELECT id, op, shape, dtype, file, line FROM t_node WHERE graph_id = ? AND kind = 'call' ORDER BY position", {graph.id},
                     [&](const Statement& s) {
                       at.emplace(s.integer("id"), static_cast<int32_t>(graph.nodes.size()));
                       graph.nodes.push_back({s.integer("id"), plainOp(s.text("op")), s.string("shape"), s.string("dtype"), {s.string("file"), s.integer("line")}});
                     });
}

Result<void> readGroups(const Reader& reader, const SampledTimes& times, Graph& graph, const std::unordered_map<int64_t, int32_t>& at) {
  std::unordered_map<int64_t, size_t> index;
  auto read = reader.each(
      "SELECT id, coalesce(kernel_id, 0) AS kernel_id, name, kind, reason, coalesce(read_bytes, 0) AS read_bytes, coalesce(write_bytes, 0) AS write_bytes, file, line FROM t_fusion_group "
      "WHERE graph_id = ? ORDER BY position, id",
      {graph.id}, [&](const Statement& s) {
        index.emplace(s.integer("id"), graph.groups.size());
        graph.groups.push_back({s.integer("id"), s.integer("kernel_id"), s.string("name"), s.string("kind"), s.string("reason"), {}, s.integer("read_bytes"), s.integer("write_bytes"),
                                times.launch(s.integer("kernel_id"), s.integer("id")), {s.string("file"), s.integer("line")}});
      });
  if (!read || graph.groups.empty()) return read;
  read = reader.each("SELECT m.group_id, m.node_id FROM t_fusion_member m JOIN t_fusion_group g ON g.id = m.group_id WHERE g.graph_id = ?",
                     {graph.id}, [&](const Statement& s) {
                       const auto node = at.find(s.integer("node_id"));
                       if (node != at.end()) graph.groups[index.at(s.integer("group_id"))].nodes.push_back(node->second);
                     });
  if (!read) return read;
  constexpr int64_t kMostRefusals = 20000;
  return reader.each("SELECT id, a_node, b_node, reason FROM t_fusion_decision WHERE graph_id = ? AND NOT fused LIMIT ?", {graph.id, kMostRefusals},
                     [&](const Statement& s) {
                       const auto a = at.find(s.integer("a_node")), b = at.find(s.integer("b_node"));
                       if (a != at.end() && b != at.end()) graph.refusals.push_back({s.integer("id"), a->second, b->second, s.string("reason")});
                     });
}

struct Candidate {
  int64_t id, compile;
  std::string stage, name;
  bool backward, groups;
};

/// Which graph of a compile and direction is taken: of the wanted level, else of the next lower one; with groups before without.
bool better(const Candidate& a, const Candidate& b, int level) {
  const int x = levelOf(a.stage), y = levelOf(b.stage);
  if ((x <= level) != (y <= level)) return x <= level;
  if (x != y) return (x > y) == (x <= level);
  return a.groups && !b.groups;
}

Result<std::vector<Candidate>> chooseGraphs(const Loading& l) {
  std::vector<Candidate> chosen;
  std::unordered_map<int64_t, size_t> slot;
  auto read = l.reader.each(
      "SELECT id, coalesce(compile_id, 0) AS compile_id, stage, name, direction = 'backward' AS is_backward, EXISTS(SELECT 1 FROM t_fusion_group f WHERE f.graph_id = g.id) AS has_groups "
      "FROM t_graph g ORDER BY id",
      {}, [&](const Statement& s) {
        Candidate c{s.integer("id"), s.integer("compile_id"), s.string("stage"), s.string("name"), s.integer("is_backward") != 0, s.integer("has_groups") != 0};
        if (!l.compileAt.contains(c.compile)) return;
        const auto& at = l.compileAt.at(c.compile);
        const int64_t root = l.out.objects[at.first].compiles[at.second].id;
        const auto [it, fresh] = slot.emplace(root * 2 + (c.backward ? 1 : 0), chosen.size());
        if (fresh) {
          chosen.push_back(std::move(c));
        } else if (better(c, chosen[it->second], l.level)) {
          chosen[it->second] = std::move(c);
        }
      });
  if (!read) return tl::unexpected(read.error());
  return chosen;
}

Result<void> readGraphs(Loading& l) {
  auto chosen = chooseGraphs(l);
  if (!chosen) return tl::unexpected(chosen.error());
  for (Candidate& c : *chosen) {
    Graph graph{.id = c.id, .compile = c.compile, .stage = c.stage, .name = c.name, .backward = c.backward};
    std::unordered_map<int64_t, int32_t> at;
    if (auto read = readNodes(l.reader, graph, at); !read) return read;
    if (auto read = readGroups(l.reader, l.times, graph, at); !read) return read;
    if (const auto peak = l.peaks.find(c.id); peak != l.peaks.end()) graph.poolBytes = peak->second;
    graph.call = l.times.call(c.compile);
    l.out.hasGroups = l.out.hasGroups || !graph.groups.empty();
    const auto& place = l.compileAt.at(c.compile);
    Compile& compile = l.out.objects[place.first].compiles[place.second];
    auto& graphs = compile.graphs;
    graph.which = compile.which;
    graphs.push_back(std::move(graph));
    std::stable_sort(graphs.begin(), graphs.end(), [](const Graph& x, const Graph& y) { return x.backward < y.backward; });
  }
  return {};
}

Result<void> readLoose(Loading& l) {
  std::unordered_map<int64_t, bool> taken;
  for (const auto& object : l.out.objects)
    for (const auto& compile : object.compiles)
      for (const auto& graph : compile.graphs)
        for (const auto& group : graph.groups) taken[group.kernel] = true;
  return l.reader.each(
      "SELECT kernel_id, name, kind, reason, coalesce(read_bytes, 0) AS read_bytes, coalesce(write_bytes, 0) AS write_bytes, file, line, launches, total_ns, (" +
          query::kernelsOfProgram() + ") AS is_timed FROM kernels WHERE " + query::kOfProgram + " ORDER BY kernel_id",
      {}, [&](const Statement& s) {
        const auto add = [&](KernelSums& sums) {
          ++sums.count;
          sums.launches += s.integer("launches");
          if (s.integer("is_timed") != 0) sums.ns += s.real("total_ns");
        };
        add(l.out.kernels);
        if (s.string("kind") == "eager") add(l.out.operators);
        const int64_t kernel = s.integer("kernel_id");
        if (taken.contains(kernel)) return;
        l.out.loose.push_back({0, kernel, s.string("name"), s.string("kind"), s.string("reason"), {}, s.integer("read_bytes"), s.integer("write_bytes"),
                               l.times.kernel(kernel), {s.string("file"), s.integer("line")}});
      });
}

Result<void> readLines(Loading& l) {
  return l.reader.each(
      "SELECT file, line, sum(total_ns) AS total_ns, sum(max(launches, coalesce(timed_launches, 0))) AS runs FROM kernels WHERE file IS NOT NULL AND launches > 0 AND " +
          query::kernelsOfProgram() + " GROUP BY file, line ORDER BY 3 DESC LIMIT 2000",
      {}, [&](const Statement& s) { l.out.lines.push_back({{s.string("file"), s.integer("line")}, s.real("total_ns"), s.integer("runs")}); });
}

Result<void> readSources(Loading& l) {
  return l.reader.each("SELECT file, text FROM source_files WHERE text IS NOT NULL", {},
                       [&](const Statement& s) { l.out.sources.emplace(s.string("file"), s.string("text")); });
}

Result<void> readSteps(Loading& l) {
  auto steps = query::findSteps(l.reader);
  if (!steps) return tl::unexpected(steps.error());
  std::vector<double> times;
  for (const auto& step : steps->steps) times.push_back(static_cast<double>(step.ns()));
  l.out.step = spreadOf(std::move(times));
  const std::set<int64_t> frames(steps->frames.begin(), steps->frames.end());
  return l.reader.each("SELECT frame_id, name FROM frames", {}, [&](const Statement& s) {
    if (!frames.contains(s.integer("frame_id"))) return;
    const std::string name = s.string("name");
    l.out.stepFunctions.insert(name.substr(name.rfind('.') + 1));  // engines differ in how much of a qualified name they know
  });
}

Result<void> readGuardChecks(Loading& l) {
  for (auto& object : l.out.objects) {
    for (const auto& compile : object.compiles) {
      const Spread check = l.times.guardCheck(compile.id);
      if (check.count > object.guardCheck.count) object.guardCheck = check;
    }
  }
  return {};
}

}  // namespace

bool Snapshot::hasScript() const {
  const auto script = facts.find("script");
  if (script == facts.end()) return false;
  const std::string_view name = baseName(std::string_view(script->second).substr(0, script->second.find(' ')));
  return std::any_of(sources.begin(), sources.end(), [&](const auto& source) { return baseName(source.first) == name; });
}

int highestLevel(const Reader& reader) {
  int level = -1;
  (void)reader.each("SELECT DISTINCT stage FROM t_graph", {}, [&](const Statement& s) { level = std::max(level, levelOf(s.text("stage"))); });
  return level;
}

Result<Snapshot> takeSnapshot(const Reader& reader, int level, const Checkpoint& checkpoint) {
  Snapshot out;
  out.path = reader.path();
  out.facts = reader.info();
  out.imported = !reader.info("imported_format").empty();
  if (auto going = checkpoint(0); !going) return tl::unexpected(going.error());
  auto times = SampledTimes::read(reader);
  if (!times) return tl::unexpected(times.error());
  auto memory = query::memoryOf(reader);
  if (!memory) return tl::unexpected(memory.error());
  Loading loading{reader, out, level, {}, {}, std::move(*times), {}};
  for (const auto& graph : memory->graphs) loading.peaks[graph.graph] = graph.peakBytes;
  using Part = Result<void> (*)(Loading&);
  const Part parts[] = {readFrames, readCompiles, readGuards, readSymbols, readBreaks,      readUncompiled, readRecompiles, readGraphs,
                        readLoose,  readLines,    readSources, readGuardChecks, readSteps};
  double done = 1;  // the times above are one part, too
  for (const Part part : parts) {
    if (auto going = checkpoint(done++ / (std::size(parts) + 1)); !going) return tl::unexpected(going.error());
    if (auto read = part(loading); !read) return tl::unexpected(read.error());
  }
  return out;
}

}  // namespace fusebox::compare
