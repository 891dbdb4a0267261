#include "profiler/query/steps.h"

#include <algorithm>
#include <map>

#include "engine/support/text.h"
#include "profiler/query/bounded.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr int64_t kMostEvents = 100'000;  // the last ones; earlier steps add nothing
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
};

Result<Steps> markedSteps(const Reader& reader) {
  struct Mark {
    const char* pattern;
    bool whole;  ///< the span is the step; else steps lie between the starts of two
    Text how;
  };
  static constexpr Mark kMarks[] = {{"ProfilerStep#*", true, FUSEBOX_TEXT("Slowness", "marked by the profiler (ProfilerStep)")},
                                    {"Optimizer.step#*", false, FUSEBOX_TEXT("Slowness", "from one optimizer step to the next")}};
  for (const Mark& mark : kMarks) {
    std::vector<Step> spans;
    auto read = reader.each("SELECT start_ns, dur_ns FROM t_cpu_event WHERE name GLOB ? ORDER BY start_ns", {std::string(mark.pattern)},
                            [&](const Statement& s) { spans.push_back({boundedTime(s.integer(0)), boundedEnd(s.integer(0), s.integer(1))}); });
    if (!read) return tl::unexpected(read.error());
    Steps out{.steps = {}, .how = say(mark.how)};
    if (mark.whole) out.steps = spans;
    for (size_t i = 0; !mark.whole && i + 1 < spans.size(); ++i) out.steps.push_back({spans[i].endNs, spans[i + 1].endNs});
    if (!out.steps.empty()) return out;
  }
  return Steps{};
}

Result<std::vector<Event>> lastEvents(const Reader& reader, const char* sql) {
  std::vector<Event> out;
  auto read = reader.each(sql, {kMostEvents}, [&](const Statement& s) { out.push_back({boundedTime(s.integer(0)), boundedEnd(s.integer(0), s.integer(1)), s.integer(2)}); });
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

Steps repeatedSteps(const std::vector<Event>& events, const Text& how) {
  std::vector<int64_t> labels;
  for (const Event& e : events) labels.push_back(e.label);
  const Repeat repeat = findRepeat(labels);
  if (repeat.period == 0) return {};
  Steps out{.steps = {}, .how = say(how, repeat.period)};
  const size_t begin = repeat.first + placeOfBegin(events, repeat);
  for (size_t i = begin; i + repeat.period < repeat.first + repeat.count; i += repeat.period) out.steps.push_back({events[i].startNs, events[i + repeat.period].startNs});
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
    const char* sql;
    Text how;
  };
  // A backward pass has a compile of its own; recompiled entries count as their function.
  static constexpr Source kSources[] = {
      {"SELECT l.start_ns, l.dur_ns, CASE c.kind WHEN 'backward' THEN -coalesce(p.frame_id, c.frame_id, c.id) ELSE coalesce(c.frame_id, c.id) END "
       "FROM t_call l LEFT JOIN t_compile c ON c.id = l.compile_id LEFT JOIN t_compile p ON p.id = c.parent_id ORDER BY l.start_ns DESC LIMIT ?",
       FUSEBOX_TEXT("Slowness", "found by {} calls of compiled functions that repeat")},
      {"SELECT start_ns, dur_ns, kernel_id FROM t_launch ORDER BY start_ns DESC LIMIT ?", FUSEBOX_TEXT("Slowness", "found by {} launches that repeat")},
  };
  for (const Source& source : kSources) {
    auto events = lastEvents(reader, source.sql);
    if (!events) return tl::unexpected(events.error());
    Steps steps = repeatedSteps(*events, source.how);
    if (steps.steps.empty()) continue;
    if (static_cast<int64_t>(events->size()) == kMostEvents) steps.how += say(FUSEBOX_TEXT("Slowness", ", among the last {}"), kMostEvents);
    return steps;
  }
  return Steps{};
}

}  // namespace fusebox::query
