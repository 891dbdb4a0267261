// fusebox gpu: how busy the devices were, why not more, and how near their kernels come to what the device allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/cupti/kernel_counters.h"
#include "profiler/query/cuda_graphs.h"
#include "profiler/query/gpu_samples.h"
#include "profiler/query/gpu_gaps.h"
#include "views/common/units.h"
#include "views/cuda_graphs/cuda_graphs_model.h"
#include "views/kernels/kernels_model.h"

namespace fusebox::cli {
namespace {

using nlohmann::json;
using views::formatDuration;

json gapJson(const query::GpuGap& g) {
  json parts = json::array();
  for (const auto& part : g.parts) parts.push_back({{"cause", query::gapCauseName(part.cause)}, {"name", part.name}, {"ns", part.ns}});
  return {{"start_ns", g.startNs}, {"end_ns", g.endNs},  {"cause", query::gapCauseName(g.cause)}, {"detail", g.detail},
          {"before", g.before},    {"after", g.after},   {"file", g.file},                        {"line", g.line},
          {"parts", parts}};
}

json deviceJson(const query::GpuIdle& d) {
  json causes = json::object(), gaps = json::array();
  for (const auto& [cause, ns] : d.idle) causes[query::gapCauseName(cause)] = ns;
  for (const auto& gap : d.longest) gaps.push_back(gapJson(gap));
  return {{"device", d.device}, {"span_ns", d.spanNs}, {"busy_ns", d.busyNs}, {"gaps", d.gaps}, {"idle_ns_by_cause", causes}, {"longest_gaps", gaps}};
}

/// Names of kernels, and much else, are what a file says: nothing of it may reach the terminal as a command.
template <typename... Args>
void put(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}", printable(fmt::format(format, std::forward<Args>(args)...)));
}

void printDevice(const query::GpuIdle& d, size_t shown) {
  const auto ns = [](int64_t value) { return formatDuration(static_cast<double>(value)); };
  put("GPU {}: busy {} of {} ({}), {} gaps\n", d.device, ns(d.busyNs), ns(d.spanNs),
             views::formatShare(static_cast<double>(d.busyNs), static_cast<double>(d.spanNs)), d.gaps);
  for (const auto& [cause, idle] : d.idle) put("  {:<16} {:>10}  {}\n", query::gapCauseName(cause), ns(idle), query::gapCauseAdvice(cause));
  for (size_t i = 0; i < d.longest.size() && i < shown; ++i) {
    const auto& g = d.longest[i];
    put("  {:>10} {:<16} before {}{}{}\n", ns(g.endNs - g.startNs), query::gapCauseName(g.cause), g.after,
        g.file.empty() ? "" : ", " + views::shortPlace(g.file, g.line), g.detail.empty() ? "" : ": " + g.detail);
  }
}

Result<json> kernelRows(const session::Reader& reader) {
  auto roofs = views::loadRoofs(reader);
  if (!roofs) return tl::unexpected(roofs.error());
  json rows = json::array();
  auto read = reader.each("SELECT kernel_id, name, kind, op, device, timed_launches, total_ns, min_ns, max_ns, host_ns, flops, "
                          "read_bytes + write_bytes AS moved_bytes, registers, shared_bytes, local_bytes, occupancy, occupancy_limit, file, line FROM kernels "
                          "WHERE timed_launches > 0 AND kind <> 'cuda_graph' ORDER BY total_ns DESC",
                          {}, [&](const session::Statement& s) {
                            const double launches = s.real("timed_launches"), bytes = s.real("moved_bytes") * launches, flops = s.real("flops") * launches;
                            const auto roof = roofs->find(s.string("device"));
                            const double share = roof == roofs->end() ? 0 : views::shareOfRoof(roof->second, bytes, flops, s.real("total_ns"));
                            rows.push_back({{"kernel_id", s.integer("kernel_id")}, {"name", s.string("name")}, {"kind", s.string("kind")}, {"op", s.string("op")},
                                            {"device", s.string("device")}, {"launches", s.integer("timed_launches")}, {"total_ns", s.integer("total_ns")},
                                            {"min_ns", s.integer("min_ns")}, {"max_ns", s.integer("max_ns")}, {"host_ns", s.integer("host_ns")},
                                            {"bytes", bytes}, {"flops", flops}, {"share_of_roof", share}, {"registers", s.integer("registers")},
                                            {"shared_bytes", s.integer("shared_bytes")}, {"local_bytes", s.integer("local_bytes")}, {"occupancy", s.real("occupancy")},
                                            {"occupancy_limit", s.string("occupancy_limit")}, {"file", s.string("file")}, {"line", s.integer("line")}});
                          });
  if (!read) return tl::unexpected(read.error());
  return rows;
}

void printKernels(const json& rows, size_t shown) {
  put("{:>10} {:>8} {:>10} {:>12} {:>6} {:>5} {:>9}  {}\n", "total", "launches", "mean", "rate", "roof", "regs", "occupancy", "kernel");
  for (size_t i = 0; i < rows.size() && i < shown; ++i) {
    const json& k = rows[i];
    const double total = k["total_ns"], launches = k["launches"], share = k["share_of_roof"], bytes = k["bytes"];
    put("{:>10} {:>8} {:>10} {:>12} {:>6} {:>5} {:>9}  {}{}\n", formatDuration(total), k["launches"].get<int64_t>(),
        formatDuration(total / launches), bytes > 0 ? views::formatBandwidth(bytes, total) : "",
        share > 0 ? views::formatShare(share, 1) : "", k["registers"].get<int64_t>(), views::formatShare(k["occupancy"], 1),
        k["name"].get<std::string>(), k["op"].get<std::string>().empty() ? "" : " (" + k["op"].get<std::string>() + ")");
  }
}

/// Puts the counters of each kernel into its row, and what was sampled while it ran.
Result<void> addCounters(const session::Reader& reader, json& rows) {
  auto counters = query::kernelCounters(reader);
  if (!counters) return tl::unexpected(counters.error());
  auto sampled = query::sampledKernels(reader);
  if (!sampled) return tl::unexpected(sampled.error());
  std::map<int64_t, json> byKernel, sampledByKernel;
  for (const auto& s : *sampled)
    sampledByKernel[s.kernel][s.metric.metric] = {{"title", s.metric.title}, {"mean", s.metric.mean}, {"min", s.metric.least}, {"max", s.metric.most},
                                                  {"samples", s.metric.samples}, {"launches", s.launches},
                                                  {"text", query::counterText(s.metric.unit, s.metric.mean)}};
  for (const auto& c : *counters)
    byKernel[c.kernel][c.metric] = {{"title", c.title}, {"mean", c.mean}, {"min", c.least}, {"max", c.most}, {"launches", c.launches},
                                    {"text", query::counterText(c.unit, c.mean)}};
  for (json& row : rows) {
    const auto id = row["kernel_id"].get<int64_t>();
    if (const auto found = byKernel.find(id); found != byKernel.end()) row["counters"] = found->second;
    if (const auto found = sampledByKernel.find(id); found != sampledByKernel.end()) row["sampled"] = found->second;
  }
  return {};
}

json samplesJson(const std::vector<query::SampledMetric>& metrics) {
  json out = json::array();
  for (const auto& m : metrics)
    out.push_back({{"device", m.device}, {"metric", m.metric}, {"title", m.title}, {"interval_ns", m.intervalNs}, {"samples", m.samples},
                   {"mean", m.mean}, {"min", m.least}, {"max", m.most}});
  return out;
}

/// A line a metric: of the whole session.
void printSamples(const std::vector<query::SampledMetric>& metrics, const std::string& about) {
  if (metrics.empty() && !about.empty()) put("No samples of counters: {}\n", about);
  if (metrics.empty()) return;
  put("Sampled every {}: mean, most\n", formatDuration(static_cast<double>(metrics.front().intervalNs)));
  for (const auto& m : metrics)
    put("{:>10} {:>10}  {} (GPU {})\n", query::counterText(m.unit, m.mean), query::counterText(m.unit, m.most), m.title, m.device);
}

/// Counters that some kernel has under `key`, as name and title, in the order in which they were asked for.
std::vector<std::pair<std::string, std::string>> namesOf(const json& rows, const char* key) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const std::string& name, const std::string& title) {
    for (const auto& known : out)
      if (known.first == name) return;
    out.emplace_back(name, title);
  };
  for (const json& row : rows) {
    if (!row.contains(key)) continue;
    for (const auto& metric : cupti::defaultMetrics())
      if (row[key].contains(metric.name)) add(metric.name, say(metric.title));
    for (const auto& [name, value] : row[key].items()) add(name, value["title"].get<std::string>());
  }
  return out;
}

void printCounters(const json& rows, const char* key, const char* heading) {
  const auto metrics = namesOf(rows, key);
  if (metrics.empty()) return;
  put("{}\n", heading);
  for (const auto& [name, title] : metrics) put("{:>{}} ", title, std::max<size_t>(title.size(), 10));
  put(" kernel\n");
  for (const json& row : rows) {
    if (!row.contains(key)) continue;
    for (const auto& [name, title] : metrics)
      put("{:>{}} ", row[key].contains(name) ? row[key][name]["text"].get<std::string>() : "", std::max<size_t>(title.size(), 10));
    put(" {}\n", row["name"].get<std::string>());
  }
}

void printAllCounters(const json& rows, const std::string& about, bool isSampled) {
  printCounters(rows, "counters", "Counters, a launch on average");
  printCounters(rows, "sampled", "Sampled of the whole device while launches of several intervals ran");
  if (namesOf(rows, "counters").empty() && namesOf(rows, "sampled").empty() && !isSampled)
    put("No counters: {}\n", about.empty() ? "fusebox run --gpu-counters reads them, --gpu-sampling samples them" : about);
}

void printGraphs(const std::vector<query::CudaGraphEvent>& events) {
  put("CUDA graphs\n{:>8} {:>10} {:>10} {:>6} {:>6}  {}\n", "replays", "on device", "call", "nodes", "pieces", "function");
  const auto mean = [](int64_t total, int64_t count) { return count > 0 ? formatDuration(static_cast<double>(total) / static_cast<double>(count)) : std::string("-"); };
  for (const auto& e : events) {
    const std::string what = fmt::format("{}{}, {}{}{}", e.function, e.direction == "backward" ? " (backward)" : "", views::cudaGraphEventName(e),
                                         e.reason.empty() ? "" : ": ", e.reason);
    if (!e.isRecording()) {
      put("{:>44}  {}\n", "", what);
      continue;
    }
    put("{:>8} {:>10} {:>10} {:>6} {:>6}  {}{}\n", e.replays, mean(e.deviceNs, e.timedReplays), mean(e.hostNs, e.replays), e.nodes, e.pieces, what,
        e.plainReason.empty() ? "" : "; runs plainly: " + e.plainReason);
  }
}

}  // namespace

int showGpu(const GpuOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto devices = query::gpuIdle(**reader, static_cast<size_t>(std::max<int64_t>(options.gaps, 1)));
  if (!devices) return complain(devices.error());
  auto rows = kernelRows(**reader);
  if (!rows) return complain(rows.error());
  if (auto added = addCounters(**reader, *rows); !added) return complain(added.error());
  const std::string about = query::countersAbout(**reader);
  auto samples = query::sampledMetrics(**reader);
  if (!samples) return complain(samples.error());
  const std::string sampling = query::samplingAbout(**reader);
  auto graphs = query::cudaGraphs(**reader);
  if (!graphs) return complain(graphs.error());
  const std::string times = (*reader)->info("gpu_times");
  if (options.json) {
    json list = json::array();
    for (const auto& device : *devices) list.push_back(deviceJson(device));
    json recordings = json::array();
    for (const auto& graph : *graphs) {
      auto nodes = query::cudaGraphNodes(**reader, graph);
      if (!nodes) return complain(nodes.error());
      recordings.push_back(query::toJson(graph, *nodes));
    }
    fmt::print("{}\n", json{{"gpu_times", times}, {"gpu_counters", about}, {"gpu_sampling", sampling}, {"sampled", samplesJson(*samples)}, {"devices", list}, {"kernels", *rows}, {"cuda_graphs", recordings}}.dump(2, ' ', false, json::error_handler_t::replace));
    return kOk;
  }
  if (devices->empty()) put("{}\n", times.empty() || times == "on" ? "No GPU did anything in this session." : "GPU times are " + times);
  for (const auto& device : *devices) printDevice(device, 10);
  if (!rows->empty()) printKernels(*rows, 20);
  printSamples(*samples, sampling);
  if (options.counters) printAllCounters(*rows, about, !sampling.empty());
  if (!graphs->empty()) printGraphs(*graphs);
  return kOk;
}

}  // namespace fusebox::cli
