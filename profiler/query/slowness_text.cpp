#include <fmt/format.h>

#include <cmath>

#include "profiler/query/slowness.h"

namespace fusebox::query {
namespace {

std::string duration(double ns) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
  for (const Unit& unit : kUnits) {
    if (std::fabs(ns) >= unit.size) return fmt::format("{:.{}f} {}", ns / unit.size, ns >= 100 * unit.size ? 0 : 2, unit.name);
  }
  return fmt::format("{:.0f} ns", ns);
}

const char* subjectName(TimeSubject subject) {
  static constexpr const char* kNames[] = {"", "kernel", "compile", "graph_break", "guard_failure"};
  return kNames[static_cast<size_t>(subject)];
}

}  // namespace

nlohmann::json toJson(const Slowness& s) {
  using nlohmann::json;
  json rows = json::array();
  for (const TimeRow& row : s.rows) {
    json parts = json::array();
    for (const TimePart& p : row.parts) {
      parts.push_back({{"subject", subjectName(p.subject)}, {"id", p.id}, {"name", p.name}, {"file", p.file}, {"line", p.line}, {"count", p.count}, {"ns", p.ns}});
    }
    rows.push_back({{"kind", timeKindName(row.kind)}, {"title", timeKindTitle(row.kind)}, {"ns", row.ns}, {"share", row.ns / s.stepNs}, {"count", row.count}, {"estimated", row.estimated},
                    {"sentence", row.sentence}, {"parts", parts}});
  }
  return {{"whole_run", s.wholeRun}, {"how", s.how}, {"steps", s.steps}, {"steps_read", s.looked}, {"step_ns", s.stepNs}, {"median_ns", s.medianNs}, {"min_ns", s.minNs}, {"max_ns", s.maxNs},
          {"rows", rows}, {"limits", s.limits}};
}

std::string toText(const Slowness& s) {
  std::string out = s.wholeRun ? fmt::format("{}: {}\n", duration(s.stepNs), s.how)
                               : fmt::format("A step takes {} (median of {}: {} to {})\n  {}; of {} that were read in full the average is split here: {}\n", duration(s.medianNs), s.steps,
                                             duration(s.minNs), duration(s.maxNs), s.how, s.looked, duration(s.stepNs));
  for (const TimeRow& row : s.rows) {
    out += fmt::format("\n  {:>10}  {:>5.1f} %  {}{}\n                       {}\n", duration(row.ns), 100 * row.ns / s.stepNs, timeKindTitle(row.kind), row.estimated ? " (estimated)" : "", row.sentence);
    for (size_t i = 0; i < row.parts.size() && i < 3; ++i) {
      const TimePart& p = row.parts[i];
      if (p.name.empty()) continue;
      out += fmt::format("                       {:>10}  {}{}\n", duration(p.ns), p.name, p.file.empty() ? "" : fmt::format("  {}:{}", p.file, p.line));
    }
  }
  for (const auto& limit : s.limits) out += "  note: " + limit + "\n";
  return out;
}

}  // namespace fusebox::query
