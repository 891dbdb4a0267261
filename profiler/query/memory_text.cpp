#include <fmt/format.h>

#include <algorithm>

#include "profiler/query/memory.h"

namespace fusebox::query {
namespace {

using nlohmann::json;

std::string bytes(int64_t count) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 2, kUnits[unit]);
}

/// `longest`: of the whole; what tells the graphs of one function apart is not cut.
std::string nameOf(const MemoryGraph& g, size_t longest = std::string::npos) {
  const std::string which = (g.resumesAt > 0 ? fmt::format(", from line {}", g.resumesAt) : std::string()) + (g.backward ? " (backward)" : "") + (g.entry >= 0 ? fmt::format(", entry {}", g.entry) : std::string()) +
                            (g.part.isWhole() ? std::string() : fmt::format(", part {} of {}", g.part.part, g.part.of));
  if (g.name.size() + which.size() <= longest) return g.name + which;
  size_t end = longest - std::min(longest, which.size() + 1);
  while (end > 0 && (static_cast<unsigned char>(g.name[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return g.name.substr(0, end) + "…" + which;
}

json graphJson(const MemoryGraph& g) {
  return {{"graph", g.graph}, {"compile", g.compile}, {"name", g.name}, {"file", g.file}, {"line", g.line}, {"backward", g.backward}, {"resumes_at", g.resumesAt > 0 ? json(g.resumesAt) : json()}, {"entry", g.entry >= 0 ? json(g.entry) : json()}, {"steps", g.steps}, {"peak_bytes", g.peakBytes},
          {"peak_step", g.peakStep}, {"pool_bytes", g.poolBytes}, {"planned_bytes", g.plannedBytes}, {"allocated_bytes", g.allocatedBytes}, {"result_bytes", g.resultBytes}, {"input_bytes", g.inputBytes},
          {"saved_bytes", g.savedBytes}};
}

}  // namespace

json toJson(const Memory& m) {
  json graphs = json::array(), devices = json::array();
  for (const auto& g : m.graphs) graphs.push_back(graphJson(g));
  for (const auto& d : m.measured.devices) devices.push_back({{"device", d.name}, {"peak_allocated_bytes", d.allocatedBytes}, {"peak_reserved_bytes", d.reservedBytes}});
  return {{"graphs", graphs}, {"measured", {{"start_rss_bytes", m.measured.startRssBytes}, {"peak_rss_bytes", m.measured.peakRssBytes}, {"devices", devices}}}};
}

json toJson(const GraphLifetimes& l) {
  json out = graphJson(l.graph), buffers = json::array(), saved = json::array();
  for (const auto& b : l.buffers) {
    buffers.push_back({{"id", b.id}, {"node", b.node}, {"name", b.name}, {"kind", b.kind}, {"dtype", b.dtype}, {"shape", b.shape}, {"device", b.device}, {"bytes", b.bytes}, {"first", b.first},
                       {"last", b.last}, {"pool_offset", b.poolOffset}, {"reuses", b.reuses}, {"file", b.file}, {"line", b.line}});
  }
  for (const auto& s : l.saved) saved.push_back({{"node", s.node}, {"name", s.name}, {"bytes", s.bytes}, {"dtype", s.dtype}, {"shape", s.shape}, {"kept_anyway", s.kept}, {"file", s.file}, {"line", s.line}});
  out["buffers"] = buffers;
  out["saved"] = saved;
  out["alive_bytes"] = l.alive;
  out["step_names"] = l.stepNames;
  return out;
}

std::string toText(const Memory& m) {
  std::string out = "  measured  ";
  if (m.measured.peakRssBytes > 0) {
    out += fmt::format("the process held {} at most", bytes(m.measured.peakRssBytes));
    if (m.measured.startRssBytes > 0) out += fmt::format(", {} when recording began", bytes(m.measured.startRssBytes));
  } else {
    out += m.measured.devices.empty() ? "not recorded" : "";
  }
  out += "\n";
  for (const auto& d : m.measured.devices) out += fmt::format("            {}: {} in use at most, {} taken from the device\n", d.name, bytes(d.allocatedBytes), bytes(d.reservedBytes));
  if (m.graphs.empty()) return out + "  no buffers of compiled graphs were recorded\n";
  constexpr size_t kLongestName = 64;
  std::vector<std::string> names;
  size_t width = 0;
  for (const auto& g : m.graphs) {
    names.push_back(nameOf(g, kLongestName));
    width = std::max(width, names.back().size());
  }
  out += fmt::format("\n  {:>5}  {:<{}} {:>10} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "graph", "", width, "peak", "step", "pool", "allocated", "results", "inputs", "saved");
  for (size_t i = 0; i < names.size(); ++i) {
    const MemoryGraph& g = m.graphs[i];
    out += fmt::format("  {:>5}  {:<{}} {:>10} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10}\n", g.graph, names[i], width, bytes(g.peakBytes), g.peakStep, bytes(g.poolBytes), bytes(g.allocatedBytes), bytes(g.resultBytes),
                       bytes(g.inputBytes), g.backward ? bytes(g.savedBytes) : "");
  }
  return out + "\n  peak: buffers and results alive at one step. allocated: apart from the pool, freed after their last use. saved: activations kept from forward to backward.\n  --graph N shows the buffers of one.\n";
}

std::string toText(const GraphLifetimes& l) {
  std::string out = fmt::format("  {}: {} at its peak, at step {} of {}{}\n  pool {} for {} of planned buffers\n", nameOf(l.graph), bytes(l.graph.peakBytes), l.graph.peakStep, l.graph.steps,
                                static_cast<size_t>(l.graph.peakStep) < l.stepNames.size() ? " (" + l.stepNames[static_cast<size_t>(l.graph.peakStep)] + ")" : "", bytes(l.graph.poolBytes),
                                bytes(l.graph.plannedBytes));
  out += fmt::format("\n  {:<28} {:<9} {:>10} {:>11}  {}\n", "alive at the peak", "kind", "bytes", "steps", "what");
  std::vector<const BufferLife*> alive;
  for (const auto& b : l.buffers) {
    if (b.countsInPeak() && b.first <= l.graph.peakStep && b.last >= l.graph.peakStep) alive.push_back(&b);
  }
  std::stable_sort(alive.begin(), alive.end(), [](const BufferLife* a, const BufferLife* b) { return a->bytes > b->bytes; });
  for (size_t i = 0; i < alive.size() && i < 15; ++i) {
    const BufferLife& b = *alive[i];
    out += fmt::format("  {:<28} {:<9} {:>10} {:>5} – {:<3}  {}{}{}\n", b.name, b.kind, bytes(b.bytes), b.first, b.last, b.dtype, b.shape, b.file.empty() ? "" : fmt::format("  {}:{}", b.file, b.line));
  }
  if (alive.size() > 15) out += fmt::format("  … and {} smaller ones\n", alive.size() - 15);
  if (!l.saved.empty()) out += "\n  kept for the backward pass\n";
  for (size_t i = 0; i < l.saved.size() && i < 15; ++i) {
    const SavedTensor& s = l.saved[i];
    out += fmt::format("  {:<28} {:<9} {:>10} {:>11}  {}{}{}\n", s.name, s.kept ? "input" : "saved", bytes(s.bytes), "", s.dtype, s.shape, s.file.empty() ? "" : fmt::format("  {}:{}", s.file, s.line));
  }
  return out;
}

}  // namespace fusebox::query
