#include "views/kernels/kernels_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "engine/support/text.h"
#include "profiler/query/disassembler.h"
#include "profiler/query/filter_words.h"
#include "profiler/query/gpu_samples.h"
#include "profiler/query/holdings.h"
#include "profiler/query/program_kernels.h"
#include "profiler/session/reader.h"
#include "views/kernels/kernel_inputs_model.h"

namespace fusebox::views {
namespace {

using session::Statement;

/// The operator of what Fusebox launches to choose launch shapes.
constexpr const char* kTuning = "autotune";

// Only the columns of the table: the code of a thousand kernels is not read to list them.
constexpr const char* kKernels = R"(SELECT kernel_id, name, kind, launches, total_ns, min_ns, max_ns, bytes, file, line,
  compile_ns, (SELECT max(g.node_count) FROM fusion_groups g WHERE g.kernel_id = k.kernel_id) AS nodes, timed_launches, registers, shared_bytes,
  local_bytes, occupancy, device, flops, read_bytes + write_bytes AS moved_bytes, occupancy_limit, op, reason FROM kernels k WHERE 1{0})";
/// Those of a list of ids, found by key: "all or these" would look at every kernel.
constexpr const char* kChosen = " AND kernel_id IN (SELECT value FROM json_each(?1))";
constexpr const char* kCount = "SELECT count(*) AS count FROM t_kernel";
constexpr const char* kKernel = R"(SELECT name, kind, op, device, reason, loop_ir, file, line, launches, total_ns, min_ns,
  max_ns, bytes, flops, compile_ns, compile_id, group_id, graph_id, timed_launches, host_ns, registers, shared_bytes, local_bytes, device_function,
  grid, block, occupancy_limit, occupancy,
  (SELECT count(*) FROM t_frame f WHERE f.file = kernels.file AND f.line = kernels.line) AS is_function FROM kernels WHERE kernel_id = ?)";
// What a kernel's last result is, and the module that asked for it; the first kernel of many that share code.
constexpr const char* kResults = R"(SELECT g.kernel_id, n.dtype, n.shape, n.module_path, max(m.position) FROM t_fusion_group g
  CROSS JOIN t_fusion_member m ON m.group_id = g.id CROSS JOIN t_node n ON n.id = m.node_id
  WHERE m.role = 'result' AND g.kernel_id IS NOT NULL{0} GROUP BY g.kernel_id)";
constexpr const char* kTiers = R"(SELECT tier, target, llvm_ir, assembly, cache, code_bytes, compile_ns FROM kernel_code
  WHERE kernel_id = ? ORDER BY tier)";
constexpr const char* kNodes = R"(SELECT n.node_id, n.op, n.name, n.dtype, n.shape, n.file, n.line, m.role
  FROM fusion_groups g JOIN fusion_members m ON m.group_id = g.group_id JOIN nodes n ON n.node_id = m.node_id
  WHERE g.kernel_id = ? ORDER BY g.group_id, m.position LIMIT ?2)";
// Decisions are about nodes of one graph, by which they are found.
constexpr const char* kDecisions = R"(WITH mine(node, graph) AS MATERIALIZED (SELECT n.id, n.graph_id FROM t_fusion_group g
    JOIN t_fusion_member m ON m.group_id = g.id JOIN t_node n ON n.id = m.node_id WHERE g.kernel_id = ?1)
  SELECT {0} FROM t_fusion_decision d WHERE d.graph_id IN (SELECT graph FROM mine)
  AND (d.a_node IN (SELECT node FROM mine) OR d.b_node IN (SELECT node FROM mine)))";
constexpr const char* kDecision = "d.fused, d.kind, d.a, d.b, d.reason, d.detail, d.a_node";
constexpr const char* kNodeCount = "SELECT count(*) AS count FROM t_fusion_group g JOIN t_fusion_member m ON m.group_id = g.id WHERE g.kernel_id = ?1";

// Evenly thinned, so that a million launches are as quick as a thousand.
// Launches of a graph are few beside all; in it other kernels run as well.
constexpr const char* kTimes = R"(WITH all_times AS (SELECT start_ns, dur_ns, launch_id FROM t_gpu_event WHERE kernel_id = ?1
    UNION ALL SELECT e.start_ns, e.dur_ns, e.launch_id FROM t_gpu_event e CROSS JOIN t_launch l
      WHERE l.id = e.launch_id AND e.graph IS NOT NULL AND e.kernel_id IS NOT ?1 AND l.kernel_id = ?1),
  numbered AS (SELECT sum(dur_ns) AS ns, row_number() OVER (ORDER BY min(start_ns)) AS n, count(*) OVER () AS c FROM all_times
    GROUP BY coalesce(launch_id, -start_ns))
  SELECT ns FROM numbered WHERE n % max(1, c / 4000) = 0 ORDER BY n)";

struct KernelResult {
  std::string tensor, module;
};
using KernelResults = std::unordered_map<int64_t, KernelResult>;
using KernelInputs = std::unordered_map<int64_t, std::string>;

/// The mean without the slowest launch, which mostly is the first: its memory and code were touched by nobody yet.
double typicalNs(double launches, double total, double slowest) {
  return launches > 2 && slowest > 0 ? (total - slowest) / (launches - 1) : launches > 0 ? total / launches : 0;
}

/// An operator stands for what runs in it. Whether compiled code called it, or the program did, the recorder of another engine cannot tell.
std::string kindWord(std::string_view kind, std::string_view op, std::string_view name) {
  if (kind != "eager") return std::string(kind);
  return op == kTuning ? kTuning : op == name ? "operator" : std::string(kind);
}

TableRow kernelRow(const Statement& s, double all, const std::map<std::string, Roof>& roofs, const KernelResults& results, const KernelInputs& inputs, bool knowsLaunches) {
  const bool timed = s.integer("timed_launches") > 0;
  const query::KernelRuns runs = query::kernelRuns(s.integer("launches"), s.integer("timed_launches"));
  const double launches = runs.timed, total = s.real("total_ns");
  const double bytes = s.real("bytes") > 0 ? s.real("bytes") * runs.ofLaunches : s.real("moved_bytes") * launches;
  const bool isTuning = s.text("kind") == "eager" && s.text("op") == kTuning;
  TableRow row;
  row.location = {ObjectKind::Kernel, s.integer("kernel_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
  row.cells.resize(kKernelColumns);
  row.cells[kKernelName] = textCell(s.string("name"));
  row.cells[kKernelKind] = textCell(kindWord(s.text("kind"), s.text("op"), s.text("name")));
  row.cells[kKernelLaunches] = knowsLaunches ? countCell(runs.count) : Cell{"", 0};
  row.cells[kKernelTotal] = durationCell(total);
  row.cells[kKernelShare] = isTuning ? Cell{"", 0} : shareCell(total, all);
  row.cells[kKernelTypical] = durationCell(typicalNs(launches, total, s.real("max_ns")));
  row.cells[kKernelMean] = durationCell(launches > 0 ? total / launches : 0);
  row.cells[kKernelMin] = durationCell(s.real("min_ns"));
  row.cells[kKernelMax] = durationCell(s.real("max_ns"));
  row.cells[kKernelBytes] = bytesCell(bytes);
  row.cells[kKernelBandwidth] = bandwidthCell(bytes, total);
  const auto roof = roofs.find(s.string("device"));
  const double share = timed && roof != roofs.end() ? shareOfRoof(roof->second, bytes, s.real("flops") * launches, total) : 0;
  row.cells[kKernelRoof] = share > 0 ? shareCell(share, 1) : Cell{"", 0};
  row.cells[kKernelRegisters] = s.isNull("registers") ? Cell{"", 0} : countCell(s.integer("registers"));
  row.cells[kKernelShared] = s.real("shared_bytes") > 0 ? bytesCell(s.real("shared_bytes")) : Cell{"", 0};
  row.cells[kKernelSpilled] = s.real("local_bytes") > 0 ? bytesCell(s.real("local_bytes")) : Cell{"", 0};
  row.cells[kKernelOccupancy] = s.isNull("occupancy") ? Cell{"", 0} : shareCell(s.real("occupancy"), 1);
  const std::string limit = s.isNull("occupancy_limit") ? std::string() : say(FUSEBOX_TEXT("Kernels", "occupancy is limited by {}"), s.string("occupancy_limit"));
  for (const std::string& line : {runs.note, s.string("reason"), limit}) row.tooltip += (row.tooltip.empty() || line.empty() ? "" : "\n") + line;
  row.cells[kKernelCompile] = s.isNull("compile_ns") ? Cell{"", 0} : durationCell(s.real("compile_ns"));
  row.cells[kKernelNodes] = s.isNull("nodes") ? Cell{"", 0} : countCell(s.integer("nodes"));
  if (const auto result = results.find(s.integer("kernel_id")); result != results.end()) {
    row.cells[kKernelResult] = textCell(result->second.tensor);
    row.cells[kKernelModule] = textCell(result->second.module);
  }
  if (const auto given = inputs.find(s.integer("kernel_id")); given != inputs.end()) row.cells[kKernelInputs] = textCell(given->second);
  row.cells[kKernelPlace] = textCell(shortPlace(s.string("file"), s.integer("line")));
  if (isTuning) row.tone = 4;
  if (s.integer("launches") == 0) {
    if (knowsLaunches) row.tone = 4;
    for (int c : {kKernelTotal, kKernelShare, kKernelTypical, kKernelMean, kKernelMin, kKernelMax}) row.cells[c] = {"", 0};
  }
  return row;
}

/// What was read around each launch, and what was sampled of the device while it ran.
Result<void> addCounters(const session::Reader& reader, KernelDetail& detail) {
  detail.countersAbout = query::countersAbout(reader);
  if (detail.countersAbout.empty()) detail.countersAbout = query::samplingAbout(reader);
  auto counters = query::kernelCounters(reader, detail.id);
  if (!counters) return tl::unexpected(counters.error());
  auto sampled = query::sampledKernels(reader, detail.id);
  if (!sampled) return tl::unexpected(sampled.error());
  const auto add = [&](const auto& c, const std::string& how, int64_t launches, const std::string& note) {
    TableRow row;
    const auto cell = [&](double value) { return Cell{query::counterText(c.unit, value), value}; };
    row.cells = {textCell(c.title), textCell(how), cell(c.mean), cell(c.least), cell(c.most), countCell(launches)};
    row.tooltip = (c.meaning.empty() ? "" : c.meaning + "\n") + c.metric + note;
    detail.counters.push_back(std::move(row));
  };
  const std::string around = say(FUSEBOX_TEXT("Kernels", "around each launch")), sampling = say(FUSEBOX_TEXT("Kernels", "sampled"));
  for (const auto& c : *counters) add(c, around, c.launches, "");
  for (const auto& s : *sampled) {
    add(s.metric, sampling, s.launches,
        "\n" + say(FUSEBOX_TEXT("Kernels", "{} samples of the whole device inside of launches of at least {} intervals: what ran beside them is in it"), s.metric.samples,
                   query::kSampledIntervals));
  }
  return {};
}

}  // namespace

Result<std::map<std::string, Roof>> loadRoofs(const session::Reader& reader) {
  std::map<std::string, Roof> roofs;
  const auto outcome = reader.each(
      "SELECT device, name, coalesce(copy_bytes_per_s, 0) AS copy_bytes_per_s, coalesce(peak_bytes_per_s, 0) AS peak_bytes_per_s, coalesce(peak_flops, 0) AS peak_flops FROM gpu_devices", {},
      [&](const Statement& s) {
        Roof& roof = roofs["cuda:" + std::to_string(s.integer("device"))];
        roof.device = s.string("name");
        roof.measured = s.integer("copy_bytes_per_s") > 0;
        roof.bytes = roof.measured ? s.real("copy_bytes_per_s") : s.real("peak_bytes_per_s");
        roof.flops = s.real("peak_flops");
      });
  if (!outcome) return tl::unexpected(outcome.error());
  return roofs;
}

double shareOfRoof(const Roof& roof, double bytes, double flops, double ns) {
  if (ns <= 0) return 0;
  const double memory = roof.bytes > 0 ? bytes / (ns / 1e9) / roof.bytes : 0;
  const double arithmetic = roof.flops > 0 ? flops / (ns / 1e9) / roof.flops : 0;
  if (arithmetic > 1) return 0;  // tensor cores: their roof depends on types and modes that the session does not know
  return std::max(memory, arithmetic);
}

Result<Roofline> loadRoofline(const session::Reader& reader) {
  Roofline line;
  line.isForeign = !reader.info("imported_format").empty();
  const auto roofs = loadRoofs(reader);
  if (!roofs) return tl::unexpected(roofs.error());
  std::string device;
  auto outcome = reader.each("SELECT device FROM kernels WHERE " + query::ranKernels() + " AND timed_launches > 0 GROUP BY device ORDER BY sum(total_ns) DESC LIMIT 1", {},
                             [&](const Statement& s) { device = s.string("device"); });
  if (outcome) {
    if (const auto roof = roofs->find(device); roof != roofs->end()) line.roof = roof->second;
    outcome = reader.each("SELECT kernel_id, name, flops, read_bytes + write_bytes AS moved_bytes, total_ns, timed_launches FROM kernels WHERE " + query::ranKernels() +
                          " AND timed_launches > 0 AND device = ? AND kind <> 'cuda_graph' ORDER BY total_ns DESC LIMIT 2000",
                          {device}, [&](const Statement& s) {
                            const double flops = s.real("flops"), bytes = s.real("moved_bytes"), ns = s.real("total_ns"), launches = s.real("timed_launches");
                            if (flops <= 0 || bytes <= 0 || ns <= 0) {
                              ++line.without;
                              return;
                            }
                            line.points.push_back({s.integer("kernel_id"), s.string("name"), flops / bytes, flops * launches / (ns / 1e9), ns});
                          });
  }
  if (!outcome) return tl::unexpected(outcome.error());
  return line;
}

namespace {

const char* orderOf(int column) {
  switch (column) {
    case kKernelName: return "name";
    case kKernelKind: return "kind";
    case kKernelLaunches: return "max(launches, coalesce(timed_launches, 0))";
    case kKernelMean: return "total_ns * 1.0 / nullif(coalesce(timed_launches, launches), 0)";
    case kKernelMin: return "min_ns";
    case kKernelMax: return "max_ns";
    case kKernelBytes: return "bytes";
    case kKernelPlace: return "file, line";
    case kKernelRegisters: return "registers";
    case kKernelShared: return "shared_bytes";
    case kKernelOccupancy: return "occupancy";
    case kKernelCompile: return "compile_ns";
    default: return "total_ns";
  }
}

/// Whether kernels that never ran come last in this order: then those that did are looked through first, and mostly are enough.
bool isOfRuns(const KernelRequest& request) {
  constexpr int kColumns[] = {kKernelLaunches, kKernelTotal, kKernelShare, kKernelTypical, kKernelMean, kKernelMin, kKernelMax, kKernelBytes};
  return !request.ascending && std::find(std::begin(kColumns), std::end(kColumns), request.column) != std::end(kColumns);
}

/// The kernels that a request names, as a JSON list of their ids.
Result<std::string> requestedKernels(const session::Reader& reader, const KernelRequest& request, int64_t most) {
  std::vector<session::Cell> parameters;
  const std::string order = orderOf(request.column);
  const std::string rest = query::filterCondition(request.filter, "(name || ' ' || kind || ' ' || coalesce(file, ''))", parameters) + " ORDER BY " +
                           (request.ascending ? order : order == "file, line" ? "file DESC, line DESC" : order + " DESC") + " LIMIT " + std::to_string(most);
  std::string ids;
  for (const bool onlyRun : {true, false}) {
    if (onlyRun && !isOfRuns(request)) continue;
    ids = "[";
    int64_t count = 0;
    auto outcome = reader.each("SELECT kernel_id FROM kernels WHERE " + (onlyRun ? query::ranKernels() : std::string("1")) + rest, parameters, [&](const Statement& s) {
      ids += (ids.size() > 1 ? "," : "") + std::to_string(s.integer("kernel_id"));
      ++count;
    });
    if (!outcome) return tl::unexpected(outcome.error());
    if (count >= most) break;
  }
  return ids + "]";
}

}  // namespace

Result<TableRows> loadKernels(const session::Reader& reader) {
  auto list = listKernels(reader, {});
  if (!list) return tl::unexpected(list.error());
  return std::move(list->rows);
}

Result<KernelList> listKernels(const session::Reader& reader, const KernelRequest& request, int64_t most) {
  KernelList list;
  TableRows& rows = list.rows;
  double all = 0;
  auto outcome = reader.each(kCount, {}, [&](const Statement& s) { list.all = s.integer("count"); });
  if (outcome)
    outcome = reader.each("WITH k AS MATERIALIZED (SELECT total_ns FROM kernels WHERE " + query::ranKernels() + " AND " + query::kernelsOfProgram() + ") SELECT sum(total_ns) AS all_ns FROM k", {},
                          [&](const Statement& s) { all = s.real("all_ns"); });
  std::string chosen;
  if (outcome && list.all > most) {
    auto ids = requestedKernels(reader, request, std::min(most, kListedOfMore));
    if (!ids) return tl::unexpected(ids.error());
    chosen = std::move(*ids);
  }
  const auto roofs = loadRoofs(reader);
  if (!roofs) return tl::unexpected(roofs.error());
  KernelResults results;
  const char* which = chosen.empty() ? "" : kChosen;
  const bool knowsLaunches = query::holdingsOf(reader).has(query::Holding::Launches);  // a log of the compiler tells of none
  std::vector<session::Cell> parameters;
  if (!chosen.empty()) parameters.emplace_back(chosen);
  if (outcome)
    outcome = reader.each(fmt::format(kResults, which), parameters, [&](const Statement& s) { results.emplace(s.integer("kernel_id"), KernelResult{s.string("dtype") + s.string("shape"), s.string("module_path")}); });
  const auto inputs = loadKernelInputs(reader, chosen);
  if (!inputs) return tl::unexpected(inputs.error());
  if (outcome) outcome = reader.each(fmt::format(kKernels, which), parameters, [&](const Statement& s) { rows.push_back(kernelRow(s, all, *roofs, results, *inputs, knowsLaunches)); });
  if (!outcome) return tl::unexpected(outcome.error());
  return list;
}

/// As `nsys stats` prints them: the median of an even number is the mean of both in the middle, the deviation that of a sample.
static void spreadOf(KernelDetail& detail) {
  std::vector<double> times = detail.times;
  const size_t n = times.size();
  if (n < 2) return;
  std::sort(times.begin(), times.end());
  detail.medianNs = (times[(n - 1) / 2] + times[n / 2]) / 2;
  double mean = 0, squares = 0;
  for (const double t : times) mean += t / static_cast<double>(n);
  for (const double t : times) squares += (t - mean) * (t - mean);
  detail.deviationNs = std::sqrt(squares / static_cast<double>(n - 1));
}

Result<KernelDetail> loadKernel(const session::Reader& reader, int64_t kernel, int64_t most) {
  KernelDetail detail;
  auto outcome = reader.each(kKernel, {kernel}, [&](const Statement& s) {
    detail.id = kernel;
    const std::pair<const char*, std::string*> texts[] = {
        {"name", &detail.name}, {"kind", &detail.kind}, {"op", &detail.op}, {"device", &detail.device}, {"reason", &detail.reason}, {"loop_ir", &detail.loopIr},
        {"file", &detail.file}, {"device_function", &detail.function}, {"grid", &detail.grid}, {"block", &detail.block}, {"occupancy_limit", &detail.occupancyLimit}};
    for (const auto& [column, text] : texts) *text = s.string(column);
    const std::pair<const char*, int64_t*> numbers[] = {
        {"launches", &detail.launches}, {"total_ns", &detail.totalNs}, {"min_ns", &detail.minNs}, {"max_ns", &detail.maxNs}, {"bytes", &detail.bytes},
        {"flops", &detail.flops}, {"compile_ns", &detail.compileNs}, {"group_id", &detail.group}, {"graph_id", &detail.graph}, {"timed_launches", &detail.timedLaunches},
        {"host_ns", &detail.hostNs}, {"registers", &detail.registers}, {"shared_bytes", &detail.sharedBytes}, {"local_bytes", &detail.localBytes}};
    for (const auto& [column, number] : numbers) *number = s.integer(column);
    detail.line = static_cast<int>(s.integer("line"));
    detail.occupancy = s.real("occupancy");
    const query::KernelRuns runs = query::kernelRuns(detail.launches, detail.timedLaunches);
    detail.bytes = static_cast<int64_t>(std::clamp(s.real("bytes") * runs.ofLaunches, 0.0, 9e18));
    detail.runs = runs.count;
    detail.runsNote = runs.note;
    detail.knowsLaunches = query::holdingsOf(reader).has(query::Holding::Launches);
    detail.isForeign = !reader.info("imported_format").empty() || reader.info("engine").starts_with("stock");
    // A line where a function begins runs nothing: what is compiled has no other.
    detail.placeIsFunction = s.isNull("compile_id") && detail.line > 0 && (!reader.info("imported_format").empty() || s.integer("is_function") > 0);
    detail.isTuning = detail.kind == "eager" && detail.op == kTuning;
    detail.isOperator = detail.kind == "eager" && detail.op == detail.name;
    detail.kind = kindWord(s.text("kind"), detail.op, detail.name);
  });
  if (outcome && detail.id == 0) {
    return fail(ErrorCode::NotFound, "the session has no kernel " + std::to_string(kernel), reader.origin());
  }
  if (outcome && (detail.timedLaunches > 0 || detail.device.starts_with("cuda"))) {
    outcome = reader.each(kTimes, {kernel}, [&](const Statement& s) { detail.times.push_back(s.real("ns")); });
    if (static_cast<int64_t>(detail.times.size()) == detail.runs) spreadOf(detail);
  }
  if (auto binary = query::kernelBinary(reader, kernel)) detail.cubin = std::move(*binary);
  if (outcome) {
    outcome = reader.each(kTiers, {kernel}, [&](const Statement& s) {
      detail.tiers.push_back({static_cast<int>(s.integer("tier")), s.string("target"), s.string("llvm_ir"), s.string("assembly"), s.string("cache"),
                              s.integer("code_bytes"), s.integer("compile_ns")});
    });
  }
  if (outcome) {
    outcome = reader.each(kNodes, {kernel, most}, [&](const Statement& s) {
      TableRow row;
      row.location = {ObjectKind::Node, s.integer("node_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
      row.cells = {textCell(s.string("op")), textCell(s.string("name")), textCell(s.string("dtype") + s.string("shape")), textCell(s.string("role")),
                   textCell(shortPlace(s.string("file"), s.integer("line")))};
      detail.nodes.push_back(std::move(row));
    });
  }
  if (outcome) {
    outcome = reader.each(fmt::format(kDecisions, kDecision) + " ORDER BY d.id LIMIT ?2", {kernel, most}, [&](const Statement& s) {
      TableRow row;
      row.location = Location::of(ObjectKind::Node, s.integer("a_node"));
      row.cells = {textCell(s.integer("fused") != 0 ? "fused" : "refused"), textCell(s.string("kind")), textCell(s.string("a")),
                   textCell(s.string("b")), textCell(s.string("reason"))};
      row.tooltip = s.string("reason") + (s.text("detail").empty() ? "" : "\n" + s.string("detail"));
      row.tone = s.integer("fused") != 0 ? 1 : 2;
      detail.decisions.push_back(std::move(row));
    });
  }
  const auto count = [&](const std::string& sql, const TableRows& listed, int64_t& all) {
    if (outcome && static_cast<int64_t>(listed.size()) >= most) outcome = reader.each(sql, {kernel}, [&](const Statement& s) { all = s.integer("count"); });
    else all = static_cast<int64_t>(listed.size());
  };
  count(kNodeCount, detail.nodes, detail.allNodes);
  count(fmt::format(kDecisions, "count(*) AS count"), detail.decisions, detail.allDecisions);
  if (outcome) {
    int64_t compile = 0;
    outcome = reader.each("SELECT compile_id FROM kernels WHERE kernel_id = ?", {kernel}, [&](const Statement& s) { compile = s.integer("compile_id"); });
    auto symbols = query::symbolsOf(reader, compile);
    if (!symbols) return tl::unexpected(symbols.error());
    std::string text = detail.loopIr;
    for (const TableRow& row : detail.nodes) text += " " + row.cells[2].text;
    for (const auto* symbol : query::symbolsNamedIn(*symbols, text)) detail.symbols.push_back(*symbol);
  }
  if (!outcome) return tl::unexpected(outcome.error());
  if (auto added = addCounters(reader, detail); !added) return tl::unexpected(added.error());
  return detail;
}

Result<int64_t> kernelOf(const session::Reader& reader, const Location& location) {
  if (location.kind == ObjectKind::Kernel) return location.id;
  const char* sql = location.kind == ObjectKind::Group    ? "SELECT kernel_id FROM fusion_groups WHERE group_id = ?"
                    : location.kind == ObjectKind::Launch ? "SELECT kernel_id FROM launches WHERE launch_id = ?"
                    : location.kind == ObjectKind::Node
                        ? "SELECT g.kernel_id FROM fusion_members m JOIN fusion_groups g ON g.group_id = m.group_id "
                          "WHERE m.node_id = ?"
                        : nullptr;
  int64_t kernel = 0;
  if (!sql) return kernel;
  const auto outcome = reader.each(sql, {location.id}, [&](const Statement& s) { kernel = s.integer("kernel_id"); });
  if (!outcome) return tl::unexpected(outcome.error());
  return kernel;
}

}  // namespace fusebox::views
