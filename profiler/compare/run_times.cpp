// What is compared without graphs: kernels by name, time by line, and the session as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/compare/align.h"
#include "profiler/compare/outline.h"

namespace fusebox::compare {
namespace {

Side looseSide(const Group* g) {
  if (!g) return {};
  return {.present = true, .text = g->time.count > 0 ? fmt::format("{}, {} × {}", g->kind, g->time.count, spreadText(g->time)) : g->kind, .id = g->kernel,
          .place = g->place, .value = g->time.totalNs, .time = g->time};
}

/// Kernels of one name, operator and line are one row: their order says nothing between sessions.
std::string looseKey(const Group& g) { return fmt::format("{}|{}|{}", withoutNumber(g.name), baseName(g.place.file), g.place.line); }

struct LineSum {
  double ns[2] = {0, 0};
  int64_t launches[2] = {0, 0};
  Place place[2];
};

/// Operators outside compiled functions (kind eager) are compared where the other session has them recorded too, which this engine does not do
/// unless asked.
bool recordsOperators(const Snapshot& session) {
  const auto engine = session.facts.find("engine"), operators = session.facts.find("operators");
  return engine == session.facts.end() || engine->second != "fusebox" || (operators != session.facts.end() && operators->second == "on");
}

/// What a session has outside graphs.
std::vector<const Group*> looseOf(const Snapshot& session, const Snapshot& other) {
  std::vector<const Group*> out;
  for (const Group& g : session.loose)
    if (recordsOperators(other) || g.kind != "eager") out.push_back(&g);
  return out;
}

KernelSums sumsOf(const Snapshot& session, const Snapshot& other) {
  const KernelSums &all = session.kernels, &operators = session.operators;
  if (recordsOperators(other)) return all;
  return {all.count - operators.count, all.launches - operators.launches, all.ns - operators.ns};
}

}  // namespace

void compareLoose(Outline& o) {
  const std::vector<const Group*> a = looseOf(o.a, o.b), b = looseOf(o.b, o.a);
  if (a.size() < o.a.loose.size() || b.size() < o.b.loose.size())
    o.out.limits.push_back(say(FUSEBOX_TEXT("Compare", "operators outside compiled functions are recorded in one session only: their kernels are not compared")));
  if (a.empty() && b.empty()) return;
  if (o.a.kernels.launches == 0 || o.b.kernels.launches == 0) return;  // said by the limits
  if (a.empty() != b.empty() && o.a.hasGroups != o.b.hasGroups) {
    o.out.limits.push_back(say(FUSEBOX_TEXT("Compare", "kernels of one session belong to graphs, those of the other do not: compare them by line")));
    return;
  }
  const int32_t section = o.section(FUSEBOX_TEXT("Compare", "Kernels and calls outside graphs"));
  std::map<std::string, std::pair<std::vector<const Group*>, std::vector<const Group*>>> byKey;
  for (const Group* g : a) byKey[looseKey(*g)].first.push_back(g);
  for (const Group* g : b) byKey[looseKey(*g)].second.push_back(g);
  for (const auto& [key, sides] : byKey) {
    for (size_t i = 0; i < std::max(sides.first.size(), sides.second.size()); ++i) {
      const Group *x = i < sides.first.size() ? sides.first[i] : nullptr, *y = i < sides.second.size() ? sides.second[i] : nullptr;
      o.kernel(section, (x ? x : y)->name, looseSide(x), looseSide(y), !x || !y);
    }
  }
}

void compareLines(Outline& o) {
  std::map<std::pair<std::string, int64_t>, LineSum> sums;
  const auto add = [&](int which, const Place& key, const LineTime& line) {
    auto& sum = sums[{std::string(baseName(key.file)), key.line}];
    sum.ns[which] += line.totalNs;
    sum.launches[which] += line.launches;
    sum.place[which] = line.place;
  };
  for (const LineTime& line : o.a.lines) add(0, line.place, line);
  for (const LineTime& line : o.b.lines) {
    const Place before = o.sources.inA(line.place);
    add(1, before.line > 0 ? before : Place{line.place.file, -line.place.line}, line);
  }
  std::vector<const LineSum*> rows;
  for (const auto& [key, sum] : sums) rows.push_back(&sum);
  std::stable_sort(rows.begin(), rows.end(), [](const LineSum* x, const LineSum* y) { return x->ns[0] + x->ns[1] > y->ns[0] + y->ns[1]; });
  if (rows.empty() || o.a.lines.empty() || o.b.lines.empty()) return;
  const int32_t section = o.section(FUSEBOX_TEXT("Compare", "Kernel time by line"));
  for (const LineSum* row : rows) {
    Side sides[2];
    for (int s = 0; s < 2; ++s) {
      if (row->launches[s] == 0) continue;
      sides[s] = {.present = true, .text = say(FUSEBOX_TEXT("Compare", "{}, {} launches"), durationText(row->ns[s]), row->launches[s]), .place = row->place[s], .value = row->ns[s]};
    }
    const Place& named = row->launches[0] > 0 ? row->place[0] : row->place[1];
    // Sums have no spread, so they are shown and never judged: the kernels of the line are.
    const bool both = sides[0].present && sides[1].present;
    const std::string change = both ? changeText(row->ns[0], row->ns[1]) : std::string();
    const int32_t entry = o.add(section, Subject::Line, fmt::format("{}:{}", baseName(named.file), named.line), sides[0], sides[1], false);
    o.at(entry).change = change;
  }
}

/// A loop is found by what repeats: where one side's turn calls other functions and it turns much more often, it is another loop (an inner one,
/// of which the whole is not compiled).
bool isSameLoop(const Snapshot& a, const Snapshot& b) {
  const double most = static_cast<double>(std::max(a.step.count, b.step.count)), least = static_cast<double>(std::min(a.step.count, b.step.count));
  return a.stepFunctions == b.stepFunctions || most <= 1.25 * least + 3;
}

void compareTotals(Outline& o) {
  const int32_t section = o.section(FUSEBOX_TEXT("Compare", "Whole session"));
  const auto number = [&](const Text& name, int64_t x, int64_t y) { o.count(section, Subject::Count, name, static_cast<double>(x), static_cast<double>(y), countText); };
  const KernelSums a = sumsOf(o.a, o.b), b = sumsOf(o.b, o.a);
  number(FUSEBOX_TEXT("Compare", "functions"), static_cast<int64_t>(o.a.objects.size()), static_cast<int64_t>(o.b.objects.size()));
  number(FUSEBOX_TEXT("Compare", "compiles"), o.a.compiles, o.b.compiles);
  // Where only one side's operators outside compiled functions are known, a side that has nothing else (an eager run) has no number.
  if (recordsOperators(o.a) == recordsOperators(o.b) || (a.count > 0 && b.count > 0)) {
    number(FUSEBOX_TEXT("Compare", "kernels and calls"), a.count, b.count);
    number(FUSEBOX_TEXT("Compare", "launches"), a.launches, b.launches);
  }
  if (o.a.step.count > 0 || o.b.step.count > 0) {
    const int32_t entry = o.time(section, FUSEBOX_TEXT("Compare", "step"), o.a.step, o.b.step, say(FUSEBOX_TEXT("Compare", "one turn of the program's loop, with all that happens between its calls")));
    if (o.a.step.count > 0 && o.b.step.count > 0 && !isSameLoop(o.a, o.b)) {
      o.at(entry).kind = Kind::Same;
      o.at(entry).verdict = Verdict::Unknown;
      o.at(entry).change = say(FUSEBOX_TEXT("Compare", "turns of different loops"));
    }
  }
  const auto sum = [&](const Text& name, double x, double y, const Text& note) {
    const auto side = [](double ns) { return Side{.present = ns > 0, .text = durationText(ns), .value = ns}; };
    const int32_t entry = o.add(section, Subject::Count, name.text, side(x), side(y), false, say(note));
    o.at(entry).kind = Kind::Same;
    o.at(entry).change = changeText(x, y);
  };
  sum(FUSEBOX_TEXT("Compare", "compile time"), o.a.compileNs, o.b.compileNs, FUSEBOX_TEXT("Compare", "measured once on each side"));
  sum(FUSEBOX_TEXT("Compare", "kernel time"), a.ns, b.ns, FUSEBOX_TEXT("Compare", "of all launches: it grows with the number of steps"));
}

}  // namespace fusebox::compare
