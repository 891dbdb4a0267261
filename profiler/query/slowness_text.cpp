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

nlohmann::json toJson(const TimeRow& row, double whole) {
  nlohmann::json parts = nlohmann::json::array();
  for (const TimePart& p : row.parts) {
    parts.push_back({{"subject", subjectName(p.subject)}, {"id", p.id}, {"name", p.name}, {"file", p.file}, {"line", p.line}, {"count", p.count}, {"ns", p.ns}, {"result", p.result}, {"module", p.module}});
  }
  nlohmann::json out = {{"kind", timeKindName(row.kind)}, {"title", row.title}, {"ns", row.ns}, {"count", row.count}, {"estimated", row.estimated},
                        {"sentence", row.sentence}, {"parts", std::move(parts)}};
  if (whole > 0) out["share"] = row.ns / whole;
  return out;
}

std::string toText(const TimeRow& row, double whole) {
  const double percent = whole > 0 ? 100 * row.ns / whole : 0;
  const std::string share = whole <= 0 ? std::string() : percent > 0 && percent < 0.05 ? std::string("<0.1 %") : fmt::format("{:.1f} %", percent);
  std::string out = fmt::format("\n  {:>10}  {:>7}  {}{}\n                       {}\n", duration(row.ns), share, row.title, row.estimated ? " (estimated)" : "", row.sentence);
  for (size_t i = 0; i < row.parts.size() && i < 3; ++i) {
    const TimePart& p = row.parts[i];
    if (p.name.empty()) continue;
    out += fmt::format("                       {:>10}  {}{}\n", duration(p.ns), p.name + (p.result.empty() ? "" : "  " + p.result), p.file.empty() ? "" : fmt::format("  {}:{}", p.file, p.line));
  }
  return out;
}

/// "A step takes 396 µs (median of 19,998: 350 µs to 1.2 ms)" and what was read of them.
std::string head(const Slowness& s) {
  if (s.wholeRun) return fmt::format("{}: {}\n", duration(s.stepNs), s.how);
  const int64_t usual = s.steps - (s.compiling * 2 > s.steps ? 0 : s.compiling);
  std::string out = usual == 1 ? fmt::format("A step takes {} (the only one that was found)\n  {}\n", duration(s.stepNs), s.how)
                               : fmt::format("A step takes {} (median of {}: {} to {})\n  {}\n  split here: the {} nearest to the median, on average {}\n",
                                             duration(s.medianNs), usual, duration(s.minNs), duration(s.maxNs), s.how, s.looked, duration(s.stepNs));
  if (s.compiling > 0 && s.compiling * 2 <= s.steps) out += fmt::format("  apart from them: {} in which something was compiled\n", s.compiling == 1 ? "1 step" : fmt::format("{} steps", s.compiling));
  return out;
}

}  // namespace

nlohmann::json toJson(const Slowness& s) {
  using nlohmann::json;
  json rows = json::array(), apart = json::array();
  for (const TimeRow& row : s.rows) rows.push_back(toJson(row, s.stepNs));
  for (const TimeRow& row : s.apart) apart.push_back(toJson(row, 0));
  return {{"whole_run", s.wholeRun}, {"how", s.how}, {"steps", s.steps}, {"steps_read", s.looked}, {"steps_compiling", s.compiling}, {"step_ns", s.stepNs},
          {"median_ns", s.medianNs}, {"min_ns", s.minNs}, {"max_ns", s.maxNs}, {"rows", rows}, {"apart", apart}, {"limits", s.limits}};
}

std::string toText(const Slowness& s) {
  std::string out = head(s);
  for (const TimeRow& row : s.rows) out += toText(row, s.stepNs);
  if (!s.apart.empty()) out += "\nCompiling, in the whole recording:\n";
  for (const TimeRow& row : s.apart) out += toText(row, 0);
  for (const auto& limit : s.limits) out += "  note: " + limit + "\n";
  return out;
}

}  // namespace fusebox::query
