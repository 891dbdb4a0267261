#include "profiler/query/steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "engine/support/text.h"
#include "profiler/query/bounded.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr int64_t kMostEvents = 100'000;  // the last ones; earlier steps add nothing
constexpr int64_t kLaunches = 0, kCalls = 1;  // tracks of t_block
constexpr size_t kMostTail = 64;          // what may come after the loop: an evaluation, a last batch

/// For every prefix of `s` the length of its longest proper prefix that is also its suffix (Knuth, Morris and Pratt).
std::vector<size_t> borders(const std::vector<int64_t>& s) {
  std::vector<size_t> out(s.size() + 1, 0);
  for (size_t i = 1, k = 0; i < s.size(); ++i) {
    while (k > 0 && s[i] != s[k]) k = out[k];
    if (s[i] == s[k]) ++k;
    out[i + 1] = k;
  }
  return out;
}

struct Event {
  int64_t startNs, endNs, label;
  int64_t compiledFromNs = 0;  ///< when the compilation of what is called began
};

/// Spans that a program or its profiler counts: "step 0", "step 1", …, one after another on one thread.
struct Marks {
  std::string first, last;
  std::vector<Step> steps;
  int64_t number = -1, ns = 0;
  bool isCount = true;  ///< each is the next number, and begins when the one before has ended
};

/// The number at the end of a name; nullopt where it has none, or one that no counter reaches.
std::optional<int64_t> numberAtEnd(std::string_view name, std::string_view& stem) {
  size_t digits = 0;
  while (digits < name.size() && name[name.size() - digits - 1] >= '0' && name[name.size() - digits - 1] <= '9') ++digits;
  stem = name.substr(0, name.size() - digits);
  int64_t number = 0;
  if (digits == 0 || digits > 15) return std::nullopt;
  for (const char c : name.substr(stem.size())) number = number * 10 + (c - '0');
  return number;
}

/// Word for word as the index t_cpu_event_of_steps has it.
const std::string kMarks = "FROM t_cpu_event WHERE (kind IN ('user_annotation', 'nvtx') OR name GLOB 'ProfilerStep#*' OR name GLOB 'Optimizer.step#*') ";

Result<Steps> countedSteps(const Reader& reader) {
  constexpr std::string_view kProfiler = "ProfilerStep#";
  constexpr size_t kFewest = 3, kMostStems = 10'000;
  std::map<std::pair<std::string, int64_t>, Marks> marks;  // by what stands before the number, and thread
  auto read = reader.each("SELECT name, start_ns, dur_ns, thread " + kMarks + "AND name GLOB '*[0-9]' ORDER BY start_ns LIMIT ?", {kMostEvents}, [&](const Statement& s) {
    std::string_view stem;
    const std::string_view name = s.text("name");
    const auto number = numberAtEnd(name, stem);
    if (!number || stem.empty()) return;
    if (marks.size() >= kMostStems && !marks.contains({std::string(stem), s.integer("thread")})) return;
    Marks& m = marks[{std::string(stem), s.integer("thread")}];
    const Step step{boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns"))};
    if (m.steps.empty()) m.first = name;
    else if (*number != m.number + 1 || step.startNs < m.steps.back().endNs) m.isCount = false;
    m.last = name;
    m.number = *number;
    m.ns += step.ns();
    m.steps.push_back(step);
  });
  if (!read) return tl::unexpected(read.error());
  const Marks* best = nullptr;
  for (const auto& [key, m] : marks) {
    if (key.first == kProfiler) return Steps{.steps = m.steps, .how = say(FUSEBOX_TEXT("Slowness", "marked by the profiler (ProfilerStep)"))};
    if (m.isCount && m.steps.size() >= kFewest && (!best || m.ns > best->ns)) best = &m;
  }
  if (!best) return Steps{};
  return Steps{.steps = best->steps, .how = say(FUSEBOX_TEXT("Slowness", "marked by the program ({} … {})"), best->first, best->last)};
}

Result<Steps> markedSteps(const Reader& reader) {
  auto counted = countedSteps(reader);
  if (!counted || !counted->steps.empty()) return counted;
  std::vector<Step> spans;
  auto read = reader.each("SELECT start_ns, dur_ns " + kMarks + "AND name GLOB 'Optimizer.step#*' ORDER BY start_ns", {},
                          [&](const Statement& s) { spans.push_back({boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns"))}); });
  if (!read) return tl::unexpected(read.error());
  Steps out{.steps = {}, .how = say(FUSEBOX_TEXT("Slowness", "from one optimizer step to the next"))};
  for (size_t i = 0; i + 1 < spans.size(); ++i) out.steps.push_back({spans[i].endNs, spans[i + 1].endNs});
  return out.steps.empty() ? Steps{} : out;
}

/// When the last kMostEvents of a track of t_block began, or some before them: nothing earlier need be read.
Result<int64_t> lastFrom(const Reader& reader, int64_t track) {
  int64_t from = 0;
  auto read = reader.each("SELECT min(start_ns) AS from_ns FROM (SELECT start_ns, total(last_id - first_id + 1) OVER (ORDER BY end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING "
                          "AND 1 PRECEDING) AS later FROM t_block WHERE track = ?1) WHERE later < ?2",
                          {track, kMostEvents}, [&](const Statement& s) { from = s.integer("from_ns"); });
  if (!read) return tl::unexpected(read.error());
  return from;
}

/// Adds calls of functions that Python runs because the compiler gave up on them, the last ones. They stand for what they call and for its
/// backward passes: which of these are compiled may be another matter in each call.
Result<void> addPythonCalls(const Reader& reader, std::vector<Event>& events) {
  if (auto left = reader.query("SELECT 1 FROM frames WHERE status <> 'compiled' LIMIT 1"); !left || left->rows.empty()) return {};  // no scan for nothing
  std::vector<Event> outer;
  auto read = reader.each("SELECT e.start_ns, e.dur_ns, (SELECT min(f.id) FROM t_frame f WHERE f.file = e.file AND f.line = e.line) AS what FROM t_cpu_event e WHERE e.kind = 'python_call' "
                     "ORDER BY e.id DESC LIMIT ?1", {kMostEvents}, [&](const Statement& s) {
    const Event call{boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), s.integer("what")};
    const bool isInner = !outer.empty() && outer.back().startNs <= call.startNs && call.endNs <= outer.back().endNs;  // recorded when it ended
    if (!isInner) outer.push_back(call);
  });
  if (!read || outer.empty()) return read;
  std::reverse(outer.begin(), outer.end());
  std::erase_if(events, [&](const Event& e) {
    if (e.label < 0) return true;
    const auto after = std::upper_bound(outer.begin(), outer.end(), e.startNs, [](int64_t ns, const Event& o) { return ns < o.startNs; });
    return after != outer.begin() && e.endNs <= std::prev(after)->endNs;
  });
  events.insert(events.end(), outer.begin(), outer.end());
  return {};
}

Result<std::vector<Event>> lastEvents(const Reader& reader, int64_t track, const char* sql) {
  const auto from = lastFrom(reader, track);
  if (!from) return tl::unexpected(from.error());
  std::vector<Event> out;
  auto read = reader.each(sql, {*from, kMostEvents}, [&](const Statement& s) { out.push_back({boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), s.integer("what"), boundedTime(s.integer("compiled_from_ns"))}); });
  if (read && track == kCalls) read = addPythonCalls(reader, out);
  if (!read) return tl::unexpected(read.error());
  std::sort(out.begin(), out.end(), [](const Event& a, const Event& b) { return a.startNs < b.startNs; });
  return out;
}

/// The place in the pattern that follows its longest pause, by the median over its turns.
size_t placeOfBegin(const std::vector<Event>& events, const Repeat& repeat) {
  size_t best = 0;
  int64_t longest = -1;
  for (size_t r = 0; r < repeat.period; ++r) {
    std::vector<int64_t> pauses;
    for (size_t i = repeat.first + r; i < repeat.first + repeat.count; i += repeat.period) {
      if (i > 0) pauses.push_back(std::max<int64_t>(0, events[i].startNs - events[i - 1].endNs));
    }
    if (pauses.empty()) continue;
    std::nth_element(pauses.begin(), pauses.begin() + static_cast<std::ptrdiff_t>(pauses.size() / 2), pauses.end());
    const int64_t pause = pauses[pauses.size() / 2];
    if (pause > longest) longest = pause, best = r;
  }
  return best;
}

Steps repeatedSteps(const std::vector<Event>& events, const Text& one, const Text& many) {
  std::vector<int64_t> labels;
  for (const Event& e : events) labels.push_back(e.label);
  const Repeat repeat = findRepeat(labels);
  // Steps are what most of a program is: some operators in a row that were called in a row again are none.
  if (repeat.period == 0 || 3 * repeat.count < events.size()) return {};
  Steps out{.steps = {}, .how = sayCount(one, many, static_cast<int64_t>(repeat.period))};
  for (size_t i = repeat.first; i < repeat.first + repeat.period; ++i) out.frames.push_back(std::abs(events[i].label));
  const size_t begin = repeat.first + placeOfBegin(events, repeat);
  // What is compiled for a call, since the one before it ended, belongs to its step.
  const auto beginOf = [&](size_t i) {
    const Event& e = events[i];
    return e.compiledFromNs > 0 && e.compiledFromNs < e.startNs && (i == 0 || e.compiledFromNs >= events[i - 1].endNs) ? e.compiledFromNs : e.startNs;
  };
  for (size_t i = begin; i + repeat.period < repeat.first + repeat.count; i += repeat.period) out.steps.push_back({beginOf(i), beginOf(i + repeat.period)});
  return out;
}

}  // namespace

Repeat findRepeat(const std::vector<int64_t>& labels) {
  Repeat best;
  std::vector<int64_t> backwards(labels.rbegin(), labels.rend());
  for (size_t tail = 0; tail <= std::min(kMostTail, labels.size()); ++tail) {
    if (tail > 0) backwards.erase(backwards.begin());
    const auto border = borders(backwards);
    size_t length = 0, period = 0;
    for (size_t l = 3; l <= backwards.size(); ++l) {
      const size_t p = l - border[l];
      if (3 * p <= l) length = l, period = p;
    }
    // A tail is only cut off for something better than what it hides.
    if (length > 2 * best.count) best = {labels.size() - tail - length, length, period};
    if (length == backwards.size()) break;
  }
  return best;
}

Result<Steps> findSteps(const Reader& reader) {
  auto marked = markedSteps(reader);
  if (!marked || !marked->steps.empty()) return marked;
  struct Source {
    int64_t track;
    const char* sql;
    Text one, many;
  };
  // A backward pass has a compile of its own; recompiled entries count as their function.
  static constexpr Source kSources[] = {
      {kCalls, "SELECT l.start_ns, l.dur_ns, CASE c.kind WHEN 'backward' THEN -coalesce(p.frame_id, c.frame_id, c.id) ELSE coalesce(c.frame_id, c.id) END AS what, coalesce(c.start_ns, 0) AS compiled_from_ns "
       "FROM t_block b CROSS JOIN t_call l ON l.id BETWEEN b.first_id AND b.last_id LEFT JOIN t_compile c ON c.id = l.compile_id LEFT JOIN t_compile p ON p.id = c.parent_id "
       "WHERE b.track = 1 AND b.end_ns >= ?1 AND l.start_ns >= ?1 ORDER BY l.start_ns DESC LIMIT ?2",
       FUSEBOX_TEXT("Slowness", "found by {} call of a compiled function that repeats"), FUSEBOX_TEXT("Slowness", "found by {} calls of compiled functions that repeat")},
      {kLaunches, "SELECT l.start_ns, l.dur_ns, l.kernel_id AS what, 0 AS compiled_from_ns FROM t_block b CROSS JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id "
       "WHERE b.track = 0 AND b.end_ns >= ?1 AND l.start_ns >= ?1 ORDER BY l.start_ns DESC LIMIT ?2", FUSEBOX_TEXT("Slowness", "found by {} launch that repeats"), FUSEBOX_TEXT("Slowness", "found by {} launches that repeat")},
  };
  for (const Source& source : kSources) {
    auto events = lastEvents(reader, source.track, source.sql);
    if (!events) return tl::unexpected(events.error());
    Steps steps = repeatedSteps(*events, source.one, source.many);
    if (steps.steps.empty()) continue;
    if (source.track != kCalls) steps.frames.clear();  // of launches
    if (static_cast<int64_t>(events->size()) == kMostEvents) steps.how += say(FUSEBOX_TEXT("Slowness", ", among the last {}"), kMostEvents);
    return steps;
  }
  return Steps{};
}

}  // namespace fusebox::query
