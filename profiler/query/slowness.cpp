#include "profiler/query/slowness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "engine/support/text.h"
#include "profiler/query/coverage.h"
#include "profiler/query/function_names.h"
#include "profiler/query/guard_words.h"
#include "profiler/query/operators.h"
#include "profiler/query/slowness_events.h"
#include "profiler/query/timeline.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr size_t kMostLooked = 24;            // steps that are read in full
constexpr double kFarFromMedian = 1;          // as a multiple of it: twice as long is no typical step
constexpr int64_t kMostSpans = 2'000'000;     // of a whole run

struct KindText {
  const char* name;
  Text title, meaning;
};
constexpr KindText kTexts[] = {
    {"device_kernels", FUSEBOX_TEXT("Slowness", "Kernels on the device"),
     FUSEBOX_TEXT("Slowness", "A kernel runs on the device.")},
    {"device_copies", FUSEBOX_TEXT("Slowness", "Copies on the device"),
     FUSEBOX_TEXT("Slowness", "The device copies or fills memory and computes nothing.")},
    {"copies", FUSEBOX_TEXT("Slowness", "Copies"),
     FUSEBOX_TEXT("Slowness", "A tensor is copied on the processor.")},
    {"kernels", FUSEBOX_TEXT("Slowness", "Kernels and operators on the processor"),
     FUSEBOX_TEXT("Slowness", "A generated kernel or a library's operator runs on the processor.")},
    {"recompiles", FUSEBOX_TEXT("Slowness", "Recompiles"),
     FUSEBOX_TEXT("Slowness", "A guard failed and the function was compiled again.")},
    {"compile", FUSEBOX_TEXT("Slowness", "Compiling"),
     FUSEBOX_TEXT("Slowness", "A function was compiled for the first time.")},
    {"waiting", FUSEBOX_TEXT("Slowness", "Waiting for the device"),
     FUSEBOX_TEXT("Slowness", "The program waits for a device that is idle already or runs something unknown.")},
    {"guards", FUSEBOX_TEXT("Slowness", "Guards"),
     FUSEBOX_TEXT("Slowness", "The assumptions of compiled functions are checked before each call; estimated from the mean check of each entry.")},
    {"launch_gaps", FUSEBOX_TEXT("Slowness", "Launch gaps"),
     FUSEBOX_TEXT("Slowness", "Inside a compiled call, and no kernel runs: arguments are bound, memory is taken, kernels are launched.")},
    {"breaks", FUSEBOX_TEXT("Slowness", "Graph breaks"),
     FUSEBOX_TEXT("Slowness", "Python runs between the pieces that a graph break made of a function.")},
    {"outside", FUSEBOX_TEXT("Slowness", "Outside compiled code"),
     FUSEBOX_TEXT("Slowness", "Python, data loading, the optimizer, operators outside compiled functions: what happens here is recorded only where somebody asks for it (run --operators).")},
};
const KindText& textOf(TimeKind kind) { return kTexts[static_cast<size_t>(kind)]; }

struct Sums {
  Split split;
  std::map<std::pair<TimeKind, int64_t>, std::pair<double, int64_t>> parts;
  std::map<int64_t, double> guards;
  double guardNs = 0;
  int64_t calls = 0;
};

/// Checks happen inside calls: what they took by their mean is moved from the gaps there, never more than there is.
void moveGuards(Sums& sums) {
  double& gaps = sums.split.ns[static_cast<size_t>(TimeKind::LaunchGaps)];
  const double guards = std::min(sums.guardNs, gaps);
  gaps -= guards;
  sums.split.ns[static_cast<size_t>(TimeKind::Guards)] += guards;
  sums.split.spans[static_cast<size_t>(TimeKind::Guards)] += sums.calls;
  const double scale = sums.guardNs > 0 ? guards / sums.guardNs : 0;
  for (const auto& [compile, ns] : sums.guards) {
    sums.parts[{TimeKind::Guards, compile}] = {ns * scale, 0};
    auto gap = sums.parts.find({TimeKind::LaunchGaps, compile});
    if (gap != sums.parts.end()) gap->second.first = std::max(0.0, gap->second.first - ns * scale);
  }
}

Result<Sums> addUp(SpanReader& spans, const std::vector<Step>& steps) {
  Sums out;
  if (auto loaded = spans.load(steps); !loaded) return tl::unexpected(loaded.error());
  for (size_t i = 0; i < steps.size(); ++i) {
    auto window = spans.window(i);
    if (!window) return tl::unexpected(window.error());
    Split split = splitTime(steps[i], std::move(window->spans));
    for (size_t k = 0; k < split.ns.size(); ++k) {
      out.split.ns[k] += split.ns[k];
      out.split.spans[k] += split.spans[k];
    }
    for (const auto& [kind, id, ns, count] : split.parts) {
      auto& part = out.parts[{kind, id}];
      part.first += ns;
      part.second += count;
    }
    for (const auto& [compile, ns] : window->guardsByCompile) out.guards[compile] += ns;
    out.guardNs += window->guardNs;
    out.calls += window->calls;
  }
  moveGuards(out);
  return out;
}

/// A recompilation: the function, and the guard with what it expected and found, where they are known.
std::string recompileName(const Statement& s) {
  const std::string frame = s.text("kind") == "backward" ? say(FUSEBOX_TEXT("Slowness", "{} (backward)"), s.string("name")) : s.string("name");
  if (s.text("guard").empty()) return say(FUSEBOX_TEXT("Slowness", "{}: compiled again"), frame);
  return say(FUSEBOX_TEXT("Slowness", "{}: {}"), frame, missWords(s.text("guard"), s.text("expected"), s.text("found")));
}

/// Names and places of what parts are about.
Result<void> describe(const Reader& reader, TimeKind kind, TimePart& part) {
  const char* sql = nullptr;
  switch (kind) {
    case TimeKind::DeviceKernels:
    case TimeKind::DeviceCopies:
    case TimeKind::Kernels:
    case TimeKind::Copies:
      part.subject = TimeSubject::Kernel;
      sql = part.id > 0 ? "SELECT name, file, line, id FROM t_kernel WHERE id = ?"
            : kind == TimeKind::Kernels ? "SELECT name, file, line, 0 AS id FROM t_cpu_event WHERE id = -?"
                                        : "SELECT name, NULL AS file, 0 AS line, 0 AS id FROM t_gpu_event WHERE id = -?";
      break;
    case TimeKind::Breaks:
      part.subject = TimeSubject::Break;
      sql = "SELECT kind || ': ' || reason AS name, file, line, id FROM t_graph_break WHERE id = ?";
      break;
    case TimeKind::Recompiles:
      part.subject = TimeSubject::Failure;
      sql = "SELECT c.frame AS name, coalesce(x.file, c.file) AS file, coalesce(x.line, c.line) AS line, coalesce(x.id, 0) AS id, x.guard, x.expected, x.found, c.kind "
            "FROM compiles c LEFT JOIN t_compile p ON p.id = c.parent_compile_id LEFT JOIN t_guard_failure x ON x.id = coalesce(c.failure_id, p.failure_id) WHERE c.compile_id = ?";
      break;
    case TimeKind::Outside:
      sql = "SELECT name, file, line, 0 AS id FROM t_cpu_event WHERE id = -?";
      break;
    default:
      part.subject = TimeSubject::Compile;
      sql = "SELECT frame AS name, file, line, compile_id AS id, kind FROM compiles WHERE compile_id = ?";
  }
  bool found = false;
  auto read = reader.each(sql, {part.id}, [&](const Statement& s) {
    part.name = s.string("name");
    if (part.subject == TimeSubject::Break) part.name = breakReason(part.name);
    if (part.subject == TimeSubject::Failure && !s.isNull("name")) part.name = recompileName(s);
    if (part.subject == TimeSubject::Compile && s.text("kind") == "backward" && !s.isNull("name")) part.name = say(FUSEBOX_TEXT("Slowness", "{} (backward)"), part.name);
    part.file = s.string("file");
    part.line = s.integer("line");
    part.id = s.integer("id");
    found = true;
  });
  if (!found || part.id == 0) part.subject = TimeSubject::None;
  if (read && part.subject == TimeSubject::Kernel) {
    read = reader.each(
        "SELECT coalesce(n.dtype, '') || coalesce(n.shape, '') AS tensor, n.module_path FROM t_fusion_group g JOIN t_fusion_member m ON m.group_id = g.id "
        "JOIN t_node n ON n.id = m.node_id WHERE g.kernel_id = ? AND m.role = 'result' ORDER BY g.id, m.position DESC LIMIT 1",
        {part.id}, [&](const Statement& s) { part.result = s.string("tensor"), part.module = s.string("module_path"); });
  }
  return read;
}

std::string sentenceOf(const TimeRow& row, double stepNs, double steps, bool knowsKernels, bool knowsOperators) {
  const auto most = [&] {
    if (row.parts.empty() || row.parts[0].name.empty()) return std::string();
    const TimePart& p = row.parts[0];
    const double percent = 100 * p.ns / stepNs;
    return percent < 0.5 ? say(FUSEBOX_TEXT("Slowness", "; most time takes {} (less than 1 % of the time)"), p.name)
                         : say(FUSEBOX_TEXT("Slowness", "; most time takes {} ({:.0f} % of the time)"), p.name, percent);
  };
  const int64_t n = row.count;
  // Compilations are counted in all steps that were read; their time is, like all times, that of one step on average.
  const std::string shared = steps > 1 ? say(FUSEBOX_TEXT("Slowness", " in {:.0f} steps, whose average this is,"), steps) : std::string();
  switch (row.kind) {
    case TimeKind::DeviceKernels:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} kernel on the device"), FUSEBOX_TEXT("Slowness", "{} kernels on the device"), n) + most();
    case TimeKind::Kernels:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} launch or call"), FUSEBOX_TEXT("Slowness", "{} launches and calls"), n) + most();
    case TimeKind::DeviceCopies:
    case TimeKind::Copies:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} copy"), FUSEBOX_TEXT("Slowness", "{} copies"), n) + most();
    case TimeKind::Recompiles:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} compilation{} because a guard failed: {}"),
                      FUSEBOX_TEXT("Slowness", "{} compilations{} because a guard failed: {}"), n, shared,
                      row.parts.empty() ? std::string() : row.parts[0].name);
    case TimeKind::Compile:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} compilation{} of functions seen for the first time"),
                      FUSEBOX_TEXT("Slowness", "{} compilations{} of functions seen for the first time"), n, shared);
    case TimeKind::Waiting:
      return sayCount(FUSEBOX_TEXT("Slowness", "{} synchronisation that waited for an idle device"),
                      FUSEBOX_TEXT("Slowness", "{} synchronisations that waited for an idle device"), n);
    case TimeKind::Guards:
      return sayCount(FUSEBOX_TEXT("Slowness", "Assumptions checked before {} call; estimated"),
                      FUSEBOX_TEXT("Slowness", "Assumptions checked before {} calls; estimated"), n);
    case TimeKind::LaunchGaps:
      if (!knowsKernels) {
        return sayCount(FUSEBOX_TEXT("Slowness", "{} compiled call; which kernels ran in it, and for how long, this recording does not tell"),
                        FUSEBOX_TEXT("Slowness", "{} compiled calls; which kernels ran in them, and for how long, this recording does not tell"), n);
      }
      return sayCount(FUSEBOX_TEXT("Slowness", "What {} compiled call does while none of its kernels runs: binding arguments, taking memory, launching"),
                      FUSEBOX_TEXT("Slowness", "What {} compiled calls do while none of their kernels runs: binding arguments, taking memory, launching"), n);
    case TimeKind::Breaks:
      return sayCount(FUSEBOX_TEXT("Slowness", "Python ran once between pieces of functions that broke"),
                      FUSEBOX_TEXT("Slowness", "Python ran {} times between pieces of functions that broke"), n);
    default:
      // Operators outside of compiled functions are in such a file, with the kernels and operators of the processor.
      if (n > 0) {
        return sayCount(FUSEBOX_TEXT("Slowness", "{} call of functions that Python runs since they are not compiled; what else happens here is not recorded"),
                        FUSEBOX_TEXT("Slowness", "{} calls of functions that Python runs since they are not compiled; what else happens here is not recorded"), n);
      }
      if (knowsOperators) return say(FUSEBOX_TEXT("Slowness", "Python and what else runs between the operators that were recorded"));
      return say(FUSEBOX_TEXT("Slowness", "What happens here is not recorded: Python, data loading, the optimizer, operators outside compiled functions (fusebox run --operators records these)"));
  }
}

Result<std::vector<TimeRow>> rowsOf(const Reader& reader, const Sums& sums, double steps, double stepNs, bool knowsKernels) {
  std::vector<TimeRow> rows;
  const bool knowsOperators = query::knowsOperators(reader);
  for (size_t k = 0; k < sums.split.ns.size(); ++k) {
    const auto kind = static_cast<TimeKind>(k);
    if (sums.split.ns[k] <= 0) continue;
    const double turns = kind == TimeKind::Recompiles || kind == TimeKind::Compile ? 1 : steps;  // too few to be averaged
    const bool dark = kind == TimeKind::LaunchGaps && !knowsKernels;
    // Without calls of compiled functions there is no telling what of it is theirs.
    const auto ran = [&](TimeKind k) { return sums.split.ns[static_cast<size_t>(k)] > 0; };
    const bool between = kind == TimeKind::Outside && sums.calls == 0 && (ran(TimeKind::Kernels) || ran(TimeKind::DeviceKernels));
    TimeRow row{.kind = kind, .title = dark ? say(FUSEBOX_TEXT("Slowness", "Inside compiled calls")) : between ? say(FUSEBOX_TEXT("Slowness", "Between kernels and operators")) : timeKindTitle(kind), .ns = sums.split.ns[k] / steps, .count = std::llround(static_cast<double>(sums.split.spans[k]) / turns), .estimated = kind == TimeKind::Guards, .sentence = {}, .parts = {}};
    for (const auto& [key, value] : sums.parts) {
      if (key.first != kind || key.second == 0 || value.first <= 0) continue;
      row.parts.push_back({.subject = TimeSubject::None, .id = key.second, .name = {}, .file = {}, .line = 0, .count = std::llround(static_cast<double>(value.second) / turns), .ns = value.first / steps});
    }
    std::sort(row.parts.begin(), row.parts.end(), [](const TimePart& a, const TimePart& b) { return a.ns > b.ns; });
    if (row.parts.size() > kMostParts) row.parts.resize(kMostParts);
    for (TimePart& part : row.parts) {
      if (auto described = describe(reader, kind, part); !described) return tl::unexpected(described.error());
    }
    row.sentence = sentenceOf(row, stepNs, steps, knowsKernels, knowsOperators);
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const TimeRow& a, const TimeRow& b) { return a.ns > b.ns; });
  return rows;
}

/// First and last moment of anything that takes time.
Result<Step> wholeRecording(const Reader& reader) {
  Step out;
  bool any = false;
  auto read = reader.each(
      "SELECT min(a) AS first_ns, max(b) AS last_ns FROM (SELECT min(start_ns) AS a, max(end_ns) AS b FROM t_block WHERE track < 3 UNION ALL SELECT min(start_ns), max(end_ns) FROM t_compile "
      "UNION ALL SELECT min(start_ns), max(start_ns + dur_ns) FROM t_gpu_event UNION ALL SELECT min(start_ns), max(start_ns + dur_ns) FROM t_cpu_event WHERE dur_ns > 0)",
      {}, [&](const Statement& s) {
        any = !s.isNull("first_ns") && !s.isNull("last_ns");
        out = {s.integer("first_ns"), s.integer("last_ns")};
      });
  if (!read) return tl::unexpected(read.error());
  if (any && out.ns() > 0) return out;
  return fail(ErrorCode::NotFound, "the session holds nothing that took time: no call, launch or compilation was recorded", reader.origin());
}

Result<int64_t> countEvents(const Reader& reader) {
  int64_t count = 0;
  auto read = reader.each("SELECT (SELECT count(*) FROM t_launch) + (SELECT count(*) FROM t_call) + (SELECT count(*) FROM t_gpu_event) AS count", {}, [&](const Statement& s) { count = s.integer("count"); });
  if (!read) return tl::unexpected(read.error());
  return count;
}

void sayDistribution(const std::vector<Step>& steps, Slowness& out) {
  std::vector<double> ns;
  for (const Step& s : steps) ns.push_back(static_cast<double>(s.ns()));
  std::sort(ns.begin(), ns.end());
  out.minNs = ns.front();
  out.maxNs = ns.back();
  out.medianNs = ns.size() % 2 == 1 ? ns[ns.size() / 2] : (ns[ns.size() / 2 - 1] + ns[ns.size() / 2]) / 2;
}

bool compilesIn(const Step& step, const std::vector<Step>& compiling) {
  const auto at = std::upper_bound(compiling.begin(), compiling.end(), step.startNs, [](int64_t ns, const Step& c) { return ns < c.endNs; });
  return at != compiling.end() && at->startNs < step.endNs;
}

/// Stretches of time in which anything is compiled, in order and apart from one another.
std::vector<Step> united(const std::vector<TimeSpan>& spans) {
  std::vector<Step> out;
  for (const TimeSpan& span : spans) {
    if (!out.empty() && span.startNs <= out.back().endNs) out.back().endNs = std::max(out.back().endNs, span.endNs);
    else out.push_back({span.startNs, span.endNs});
  }
  return out;
}

/// Takes the steps out in which something is compiled, unless those are most: then compiling is what a step of this program does.
void keepTypical(const std::vector<TimeSpan>& compiles, std::vector<Step>& steps, Slowness& out) {
  const std::vector<Step> compiling = united(compiles);
  std::vector<Step> others;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(others), [&](const Step& step) { return !compilesIn(step, compiling); });
  out.compiling = static_cast<int64_t>(steps.size() - others.size());
  if (2 * others.size() >= steps.size()) steps = std::move(others);
}

/// Those whose length is nearest to the median, in order of time. One of twice its length, as a warm-up or one that the machine disturbed, is
/// no typical one however few there are.
std::vector<Step> chooseSteps(std::vector<Step> steps, double medianNs) {
  const auto off = [medianNs](const Step& step) { return std::fabs(static_cast<double>(step.ns()) - medianNs); };
  std::stable_sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) { return off(a) < off(b); });
  if (steps.size() > kMostLooked) steps.resize(kMostLooked);
  while (steps.size() > 1 && off(steps.back()) > kFarFromMedian * medianNs) steps.pop_back();
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.startNs < b.startNs; });
  return steps;
}

/// Compiling, summed up over the whole recording: no part of a typical step.
Result<std::vector<TimeRow>> compilingApart(const Reader& reader, std::vector<TimeSpan> compiles) {
  Step whole{INT64_MAX, INT64_MIN};
  for (const TimeSpan& span : compiles) {
    whole.startNs = std::min(whole.startNs, span.startNs);
    whole.endNs = std::max(whole.endNs, span.endNs);
  }
  if (compiles.empty() || whole.ns() <= 0) return std::vector<TimeRow>();
  Sums sums;
  sums.split = splitTime(whole, std::move(compiles));
  sums.split.ns[static_cast<size_t>(TimeKind::Outside)] = 0;
  for (const auto& [kind, id, ns, count] : sums.split.parts) sums.parts[{kind, id}] = {ns, count};
  return rowsOf(reader, sums, 1, static_cast<double>(whole.ns()), true);
}

/// Some names, for a sentence.
std::string firstOf(const std::set<std::string>& names) {
  constexpr size_t kMost = 3;
  std::string out;
  for (auto name = names.begin(); name != names.end() && std::distance(names.begin(), name) < static_cast<std::ptrdiff_t>(kMost); ++name) out += (out.empty() ? "" : ", ") + *name;
  return names.size() > kMost ? out + ", …" : out;
}

/// What runs in Python is outside compiled code, whatever its time: the split cannot say so.
Result<void> sayUncompiled(const Reader& reader, Slowness& out) {
  auto coverage = coverageOf(reader, {});  // what broke runs in part, which is not asked for here
  if (!coverage) return tl::unexpected(coverage.error());
  std::set<std::string> not_, limited;
  for (const FunctionCoverage& f : coverage->functions) {
    if (f.verdict == FunctionCoverage::Verdict::Not) not_.insert(f.name);
  }
  for (const Uncompiled& what : coverage->uncompiled) {
    if (what.kind == "recompile limit") limited.insert(what.function);
  }
  if (!not_.empty()) {
    out.limits.push_back(sayCount(FUSEBOX_TEXT("Slowness", "{} function is not compiled and runs in Python, outside compiled code: {}"),
                                  FUSEBOX_TEXT("Slowness", "{} functions are not compiled and run in Python, outside compiled code: {}"), static_cast<int64_t>(not_.size()), firstOf(not_)));
  }
  if (!limited.empty()) {
    // Another engine's recording lacks calls of what runs in Python: what repeats may be something that such a function calls.
    const bool areThere = std::any_of(out.rows.begin(), out.rows.end(), [](const TimeRow& row) { return row.kind == TimeKind::Outside && !row.parts.empty(); });
    const auto told = [&](const Text& one, const Text& many) { return sayCount(one, many, static_cast<int64_t>(limited.size()), firstOf(limited)); };
    out.limits.push_back(areThere ? told(FUSEBOX_TEXT("Slowness", "{} function reached the recompile limit, and runs in Python where no entry fits: {}"),
                                         FUSEBOX_TEXT("Slowness", "{} functions reached the recompile limit, and run in Python where no entry fits: {}"))
                                  : told(FUSEBOX_TEXT("Slowness", "{} function reached the recompile limit, and runs in Python where no entry fits: {}; a step found here may be a part of such a call"),
                                         FUSEBOX_TEXT("Slowness", "{} functions reached the recompile limit, and run in Python where no entry fits: {}; a step found here may be a part of such a call")));
  }
  return {};
}

}  // namespace

const char* timeKindName(TimeKind kind) { return textOf(kind).name; }
std::string timeKindTitle(TimeKind kind) { return say(textOf(kind).title); }
std::string timeKindMeaning(TimeKind kind) { return say(textOf(kind).meaning); }

Result<Slowness> whySlow(const Reader& reader, bool wholeRun) {
  auto steps = findSteps(reader);
  if (!steps) return tl::unexpected(steps.error());
  Slowness out;
  out.wholeRun = wholeRun || steps->steps.empty();
  out.how = !out.wholeRun ? steps->how
            : wholeRun    ? say(FUSEBOX_TEXT("Slowness", "the whole recording"))
                          : say(FUSEBOX_TEXT("Slowness", "nothing repeats, so this is the whole recording"));
  if (out.wholeRun) {
    auto whole = wholeRecording(reader);
    if (!whole) return tl::unexpected(whole.error());
    auto events = countEvents(reader);
    if (!events) return tl::unexpected(events.error());
    if (*events > kMostSpans) return fail(ErrorCode::Unsupported, fmt::format("the recording has {} launches and calls, more than are split as a whole ({}); look at a step", *events, kMostSpans), reader.origin());
    steps->steps = {*whole};
  }
  out.steps = static_cast<int64_t>(steps->steps.size());
  auto compiles = compileSpans(reader);
  if (!compiles) return tl::unexpected(compiles.error());
  if (!out.wholeRun) keepTypical(*compiles, steps->steps, out);
  sayDistribution(steps->steps, out);
  const std::vector<Step> looked = chooseSteps(std::move(steps->steps), out.medianNs);
  out.looked = static_cast<int64_t>(looked.size());
  auto spans = SpanReader::open(reader);
  if (!spans) return tl::unexpected(spans.error());
  auto sums = addUp(*spans, looked);
  if (!sums) return tl::unexpected(sums.error());
  double total = 0;
  for (const Step& step : looked) total += static_cast<double>(step.ns());
  out.stepNs = total / static_cast<double>(looked.size());
  auto rows = rowsOf(reader, *sums, static_cast<double>(looked.size()), out.stepNs, spans->knowsKernels());
  if (!rows) return tl::unexpected(rows.error());
  out.rows = std::move(*rows);
  if (!out.wholeRun) {
    auto apart = compilingApart(reader, std::move(*compiles));
    if (!apart) return tl::unexpected(apart.error());
    out.apart = std::move(*apart);
  }
  if (auto said = sayUncompiled(reader, out); !said) return tl::unexpected(said.error());
  if (spans->lacksDeviceTimes()) {
    out.limits.push_back(say(FUSEBOX_TEXT("Slowness", "kernels ran on a device, and for how long is not recorded: their time is in launch gaps and outside")));
  }
  return out;
}

}  // namespace fusebox::query
