#include "profiler/query/memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "profiler/query/bounded.h"
#include "profiler/query/entries.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

/// A graph has at most so many steps: a position beyond is damage, and taken as not recorded.
constexpr int64_t kMostSteps = int64_t{1} << 20;
int64_t boundedStep(int64_t step) { return step < -1 || step >= kMostSteps ? -1 : step; }

#define FUSEBOX_LIFE "bytes, kind, coalesce(first_use, -1) AS first, coalesce(last_use, -1) AS last, coalesce(pool_offset, -1) AS offset "
constexpr const char* kBuffers = "SELECT buffer_id, node_id, name, dtype, shape, device, file, line, reuses_buffer_id, " FUSEBOX_LIFE "FROM buffers WHERE graph_id = ? ORDER BY first_use, buffer_id";
constexpr const char* kLives = "SELECT " FUSEBOX_LIFE "FROM t_buffer WHERE graph_id = ?";  // of all graphs of a session: what sums are made of, and no more
#undef FUSEBOX_LIFE

BufferLife lifeOf(const Statement& s, int64_t steps) {
  BufferLife b;
  b.bytes = boundedAmount(s.integer("bytes"));
  b.kind = s.string("kind");
  b.first = boundedStep(s.integer("first"));
  b.last = boundedStep(s.integer("last"));
  if (b.kind == "owned" && b.first >= 0) b.last = std::max(b.last, steps - 1);
  b.poolOffset = s.integer("offset") < 0 ? -1 : boundedAmount(s.integer("offset"));
  return b;
}

Result<std::vector<BufferLife>> buffersOf(const Reader& reader, int64_t graph, int64_t steps) {
  std::vector<BufferLife> out;
  auto read = reader.each(kBuffers, {graph}, [&](const Statement& s) {
    BufferLife b = lifeOf(s, steps);
    b.id = s.integer("buffer_id");
    b.node = s.integer("node_id");
    const std::pair<const char*, std::string*> texts[] = {{"name", &b.name}, {"dtype", &b.dtype}, {"shape", &b.shape}, {"device", &b.device}, {"file", &b.file}};
    for (const auto& [column, text] : texts) *text = s.string(column);
    b.line = s.integer("line");
    b.reuses = s.integer("reuses_buffer_id");
    out.push_back(std::move(b));
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<void> livesOf(Statement& lives, const MemoryGraph& graph, std::vector<BufferLife>& out) {
  out.clear();
  lives.reset();
  lives.bind(1, graph.graph);
  for (;;) {
    auto row = lives.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    out.push_back(lifeOf(lives, graph.steps));
  }
}

struct Overlaps {
  std::vector<std::pair<int64_t, int64_t>> made, dying;  ///< ranges of bytes: begin, end
};

/// Bytes that a range made and a dying one have in common, over all pairs: by one walk, since a damaged session may hold
/// any number of them.
int64_t commonBytes(const Overlaps& ranges) {
  struct Edge {
    int64_t at;
    int made, dying;
  };
  std::vector<Edge> edges;
  for (const auto& [begin, end] : ranges.made) edges.insert(edges.end(), {{begin, 1, 0}, {end, -1, 0}});
  for (const auto& [begin, end] : ranges.dying) edges.insert(edges.end(), {{begin, 0, 1}, {end, 0, -1}});
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  __int128 sum = 0;
  int64_t made = 0, dying = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (i > 0) sum += static_cast<__int128>(edges[i].at - edges[i - 1].at) * made * dying;
    made += edges[i].made;
    dying += edges[i].dying;
  }
  return static_cast<int64_t>(std::min<__int128>(sum, INT64_MAX));
}

std::vector<int64_t> aliveBytes(const std::vector<BufferLife>& buffers, int64_t steps) {
  std::vector<int64_t> change(static_cast<size_t>(std::max<int64_t>(steps, 0)) + 1, 0);
  for (const BufferLife& b : buffers) {
    if (!b.countsInPeak() || b.first >= steps) continue;
    addBounded(change[static_cast<size_t>(b.first)], b.bytes);
    addBounded(change[static_cast<size_t>(std::min(std::max(b.last, b.first) + 1, steps))], -b.bytes);
  }
  // A buffer may take over the place of one that dies in the step that makes it: those bytes are there once.
  std::map<int64_t, Overlaps> inStep;
  for (const BufferLife& b : buffers) {
    if (!b.countsInPeak() || b.poolOffset < 0) continue;
    const std::pair range{b.poolOffset, b.poolOffset + b.bytes};
    if (b.first < steps) inStep[b.first].made.push_back(range);
    if (b.last > b.first) inStep[b.last].dying.push_back(range);
  }
  for (const auto& [step, ranges] : inStep) {
    if (step >= steps) break;
    const int64_t once = commonBytes(ranges);
    addBounded(change[static_cast<size_t>(step)], -once);
    addBounded(change[static_cast<size_t>(step) + 1], once);
  }
  std::vector<int64_t> alive;
  int64_t sum = 0;
  for (int64_t s = 0; s < steps; ++s) alive.push_back(addBounded(sum, change[static_cast<size_t>(s)]));
  return alive;
}

void addUp(MemoryGraph& g, const std::vector<BufferLife>& buffers) {
  const auto alive = aliveBytes(buffers, g.steps);
  for (size_t s = 0; s < alive.size(); ++s) {
    if (alive[s] > g.peakBytes) g.peakBytes = alive[s], g.peakStep = static_cast<int64_t>(s);
  }
  for (const BufferLife& b : buffers) {
    if (b.poolOffset >= 0) g.poolBytes = std::max(g.poolBytes, b.poolOffset + b.bytes);
    if (b.kind == "input") addBounded(g.inputBytes, b.bytes);
    if (!b.countsInPeak()) continue;  // no step touches it: its values live in a kernel it was fused into, not in memory
    addBounded(b.kind == "owned" ? g.resultBytes : b.kind == "allocated" ? g.allocatedBytes : g.plannedBytes, b.bytes);
  }
}

/// "saved_relu" and "relu" are one tensor on both sides of the pass.
std::string plainName(const std::string& name) { return name.starts_with("saved_") ? name.substr(6) : name; }

Result<std::vector<SavedTensor>> savedFor(const Reader& reader, int64_t backward, int64_t compile) {
  std::set<std::string> kept;
  auto read = reader.each(
      "SELECT n.name FROM t_node n JOIN t_graph g ON g.id = n.graph_id WHERE n.kind = 'placeholder' AND g.direction <> 'backward' AND g.stage = 'forward' "
      "AND g.compile_id IN (?1, (SELECT parent_id FROM t_compile WHERE id = ?1))",
      {compile}, [&](const Statement& s) { kept.insert(s.string("name")); });
  if (!read) return tl::unexpected(read.error());
  std::vector<SavedTensor> out;
  read = reader.each("SELECT id, name, coalesce(bytes, 0) AS bytes, dtype, shape, file, line FROM t_node WHERE graph_id = ? AND kind = 'placeholder'", {backward}, [&](const Statement& s) {
    const std::string name = s.string("name");
    if (name.starts_with("tangent")) return;  // the gradient that comes in
    out.push_back({s.integer("id"), boundedAmount(s.integer("bytes")), plainName(name), s.string("dtype"), s.string("shape"), s.string("file"), s.integer("line"), kept.contains(plainName(name))});
  });
  if (!read) return tl::unexpected(read.error());
  std::stable_sort(out.begin(), out.end(), [](const SavedTensor& a, const SavedTensor& b) { return a.bytes > b.bytes; });
  return out;
}

Result<std::vector<MemoryGraph>> graphRows(const Reader& reader, int64_t only) {
  std::vector<MemoryGraph> out;
  auto read = reader.each(
      "SELECT g.graph_id, coalesce(g.compile_id, 0) AS compile_id, coalesce(f.qualname, f.name, g.name) AS qualname, g.file, g.line, g.direction = 'backward' AS is_backward, "
      "(SELECT min(?2, max(count(*), coalesce(max(x.position) FILTER (WHERE x.position < ?2) + 1, 0))) FROM t_fusion_group x WHERE x.graph_id = g.graph_id) AS steps, g.name "
      "FROM graphs g LEFT JOIN t_frame f ON f.id = g.frame_id WHERE (?1 = 0 OR g.graph_id = ?1) AND EXISTS(SELECT 1 FROM t_buffer b WHERE b.graph_id = g.graph_id) ORDER BY g.graph_id",
      {only, kMostSteps}, [&](const Statement& s) {
        out.push_back({.graph = s.integer("graph_id"), .compile = s.integer("compile_id"), .line = s.integer("line"), .name = s.string("qualname"), .file = s.string("file"), .backward = s.integer("is_backward") != 0, .part = graphPart(s.text("name")), .steps = s.integer("steps")});
      });
  if (!read) return tl::unexpected(read.error());
  auto entries = entryNumbers(reader);
  if (!entries) return tl::unexpected(entries.error());
  for (MemoryGraph& g : out) {
    const auto made = entries->find(g.compile);
    if (made == entries->end()) continue;
    if (!made->second.isOnly) g.entry = made->second.entry;
    if (made->second.isRest) g.resumesAt = std::max<int64_t>(0, g.line);
  }
  return out;
}

Result<void> complete(const Reader& reader, MemoryGraph& graph, const std::vector<BufferLife>& buffers) {
  // Where groups were not recorded, buffers still say how far their steps go.
  for (const BufferLife& b : buffers) {
    if (b.kind != "owned") graph.steps = std::max(graph.steps, b.last + 1);
  }
  addUp(graph, buffers);
  if (!graph.backward) return {};
  auto saved = savedFor(reader, graph.graph, graph.compile);
  if (!saved) return tl::unexpected(saved.error());
  for (const SavedTensor& t : *saved) addBounded(graph.savedBytes, t.kept ? 0 : t.bytes);
  return {};
}

MeasuredMemory measuredBy(const Reader& reader) {
  MeasuredMemory out{reader.infoInteger("memory.start_rss_bytes"), reader.infoInteger("memory.peak_rss_bytes"), {}};
  for (const auto& [key, value] : reader.info()) {
    constexpr std::string_view kPrefix = "memory.device.", kSuffix = ".peak_allocated_bytes";
    if (!key.starts_with(kPrefix) || !key.ends_with(kSuffix)) continue;
    const std::string name = key.substr(kPrefix.size(), key.size() - kPrefix.size() - kSuffix.size());
    out.devices.push_back({name, reader.infoInteger(key), reader.infoInteger("memory.device." + name + ".peak_reserved_bytes")});
  }
  return out;
}

}  // namespace

Result<Memory> memoryOf(const Reader& reader) {
  Memory out;
  auto graphs = graphRows(reader, 0);
  if (!graphs) return tl::unexpected(graphs.error());
  out.graphs = std::move(*graphs);
  auto lives = reader.prepare(kLives);
  if (!lives) return tl::unexpected(lives.error());
  std::vector<BufferLife> buffers;
  for (MemoryGraph& graph : out.graphs) {
    if (auto read = livesOf(*lives, graph, buffers); !read) return tl::unexpected(read.error());
    if (auto done = complete(reader, graph, buffers); !done) return tl::unexpected(done.error());
  }
  out.measured = measuredBy(reader);
  return out;
}

Result<GraphLifetimes> lifetimesOf(const Reader& reader, int64_t graph) {
  auto rows = graphRows(reader, graph);
  if (!rows) return tl::unexpected(rows.error());
  if (graph <= 0 || rows->empty()) return fail(ErrorCode::NotFound, "no buffers were recorded for graph " + std::to_string(graph), reader.origin());
  GraphLifetimes out{.graph = rows->front(), .buffers = {}, .stepNames = {}, .stepKernels = {}, .alive = {}, .saved = {}};
  auto buffers = buffersOf(reader, graph, out.graph.steps);
  if (!buffers) return tl::unexpected(buffers.error());
  out.buffers = std::move(*buffers);
  if (auto done = complete(reader, out.graph, out.buffers); !done) return tl::unexpected(done.error());
  out.alive = aliveBytes(out.buffers, out.graph.steps);
  out.stepNames.resize(static_cast<size_t>(out.graph.steps));
  out.stepKernels.resize(static_cast<size_t>(out.graph.steps));
  auto read = reader.each("SELECT position, name, coalesce(kernel_id, 0) AS kernel_id FROM t_fusion_group WHERE graph_id = ?", {graph}, [&](const Statement& s) {
    const int64_t position = s.integer("position");
    if (position < 0 || position >= out.graph.steps) return;
    out.stepNames[static_cast<size_t>(position)] = s.string("name");
    out.stepKernels[static_cast<size_t>(position)] = s.integer("kernel_id");
  });
  if (!read) return tl::unexpected(read.error());
  // The backward graph of the same function: this one, or that of a compile below it.
  int64_t backward = out.graph.backward ? graph : 0, compile = out.graph.compile;
  if (!backward) {
    read = reader.each(
        "SELECT g.id, g.compile_id FROM t_graph g LEFT JOIN t_compile c ON c.id = g.compile_id WHERE g.direction = 'backward' AND (g.compile_id = ?1 OR c.parent_id = ?1) "
        "ORDER BY EXISTS(SELECT 1 FROM t_buffer b WHERE b.graph_id = g.id), g.id",
        {out.graph.compile}, [&](const Statement& s) {
          backward = s.integer("id");
          compile = s.integer("compile_id");
        });
    if (!read) return tl::unexpected(read.error());
  }
  if (backward) {
    auto saved = savedFor(reader, backward, compile);
    if (!saved) return tl::unexpected(saved.error());
    out.saved = std::move(*saved);
  }
  return out;
}

}  // namespace fusebox::query
