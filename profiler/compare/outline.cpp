#include "profiler/compare/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fusebox::compare {

namespace {

constexpr Text kSubjects[] = {
    FUSEBOX_TEXT("Compare", "section"),  FUSEBOX_TEXT("Compare", "environment"), FUSEBOX_TEXT("Compare", "option"),      FUSEBOX_TEXT("Compare", "program"),
    FUSEBOX_TEXT("Compare", "engine"),   FUSEBOX_TEXT("Compare", "function"),    FUSEBOX_TEXT("Compare", "graph break"), FUSEBOX_TEXT("Compare", "recompile"),
    FUSEBOX_TEXT("Compare", "guard"),    FUSEBOX_TEXT("Compare", "graph"),       FUSEBOX_TEXT("Compare", "node"),        FUSEBOX_TEXT("Compare", "kernel"),
    FUSEBOX_TEXT("Compare", "memory"),   FUSEBOX_TEXT("Compare", "line"),        FUSEBOX_TEXT("Compare", "time"),        FUSEBOX_TEXT("Compare", "count"),
    FUSEBOX_TEXT("Compare", "symbolic size"),
    FUSEBOX_TEXT("Compare", "not compiled")};

}  // namespace

const char* subjectName(Subject subject) { return kSubjects[static_cast<size_t>(subject)].text; }
std::string subjectTitle(Subject subject) { return say(kSubjects[static_cast<size_t>(subject)]); }

std::string entryTitle(const Entry& entry) {
  switch (entry.subject) {
    case Subject::Section:
    case Subject::Program:  // else the name of a file, which nobody translates
    case Subject::Engine:
    case Subject::Graph:
    case Subject::Memory:
    case Subject::Time:
    case Subject::Count: return say({"Compare", entry.name.c_str()});
    default: return entry.name;
  }
}

const char* kindName(Kind kind) {
  static constexpr const char* kNames[] = {"same", "added", "removed", "changed"};
  return kNames[static_cast<size_t>(kind)];
}

std::string countText(double count) { return fmt::format("{:.0f}", count); }

int32_t Outline::add(int32_t parent, Subject subject, std::string name, Side a, Side b, bool changed, std::string note) {
  Entry entry;
  entry.subject = subject;
  entry.parent = parent;
  entry.depth = parent < 0 ? 0 : at(parent).depth + 1;
  entry.name = std::move(name);
  entry.kind = !a.present ? Kind::Added : !b.present ? Kind::Removed : changed ? Kind::Changed : Kind::Same;
  if (!a.present && !b.present) entry.kind = Kind::Same;
  entry.a = std::move(a);
  entry.b = std::move(b);
  entry.note = std::move(note);
  out.entries.push_back(std::move(entry));
  return static_cast<int32_t>(out.entries.size()) - 1;
}

int32_t Outline::count(int32_t parent, Subject subject, const Text& name, double x, double y, std::string (*text)(double), std::string note) {
  const int32_t entry = add(parent, subject, name.text, {.present = true, .text = text(x), .value = x}, {.present = true, .text = text(y), .value = y},
                            std::fabs(x - y) > 1e-9 * std::fabs(x), std::move(note));
  if (at(entry).kind == Kind::Changed) {
    at(entry).change = subject == Subject::Memory || std::fabs(y - x) > 100 ? changeText(x, y) : fmt::format("{:+.0f}", y - x);
  }
  return entry;
}

int32_t Outline::kernel(int32_t parent, const std::string& name, Side a, Side b, bool structural, std::string note) {
  const Spread x = a.time, y = b.time;
  const Verdict verdict = a.present && b.present ? judge(x, y) : Verdict::Unknown;
  const bool beyond = verdict == Verdict::Slower || verdict == Verdict::Faster;
  const int32_t entry = add(parent, Subject::Kernel, name, std::move(a), std::move(b), beyond || structural, std::move(note));
  at(entry).verdict = verdict;
  at(entry).structural = structural;
  at(entry).change = verdict == Verdict::Unknown ? onceText(x, y, true) : judgedChange(x.medianNs, y.medianNs, !beyond);
  return entry;
}

int32_t Outline::time(int32_t parent, const Text& name, const Spread& x, const Spread& y, std::string note) {
  const auto side = [](const Spread& s) { return Side{.present = s.count > 0, .text = spreadText(s), .value = s.medianNs, .time = s}; };
  const Verdict verdict = judge(x, y);
  const bool changed = verdict == Verdict::Faster || verdict == Verdict::Slower;
  const int32_t entry = add(parent, Subject::Time, name.text, side(x), side(y), changed, std::move(note));
  at(entry).verdict = verdict;
  at(entry).structural = false;
  if (verdict == Verdict::Unknown) at(entry).kind = Kind::Same;  // times of one side only are no difference
  at(entry).change = verdict == Verdict::Unknown ? onceText(x, y, false) : judgedChange(x.medianNs, y.medianNs, verdict == Verdict::Noise);
  return entry;
}

bool Comparison::insideOneSided(int32_t entry) const {
  for (int32_t above = entries[static_cast<size_t>(entry)].parent; above >= 0; above = entries[static_cast<size_t>(above)].parent) {
    const Kind kind = entries[static_cast<size_t>(above)].kind;
    if (kind == Kind::Added || kind == Kind::Removed) return true;
  }
  return false;
}

std::vector<int32_t> Comparison::differences() const {
  std::vector<int32_t> out;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    if (e.kind != Kind::Same && e.subject != Subject::Section && !insideOneSided(static_cast<int32_t>(i))) out.push_back(static_cast<int32_t>(i));
  }
  return out;
}

namespace {

Session sessionOf(const Snapshot& s) {
  const auto fact = [&](const char* key) {
    const auto found = s.facts.find(key);
    return found == s.facts.end() ? std::string() : found->second;
  };
  std::string engine = fact("engine");
  if (s.imported) engine = engine.empty() ? fact("imported_format") : engine + " (" + fact("imported_format") + ")";
  return {s.path, engine.empty() ? say(FUSEBOX_TEXT("Compare", "unknown engine")) : engine, fact("torch"), fact("device"), fact("script"), s.imported};
}

void sayLimits(const Snapshot& a, const Snapshot& b, std::vector<std::string>& limits) {
  const auto both = [&](bool inA, bool inB, const Text& sentence) {
    if (inA != inB) limits.push_back(say(sentence, inA ? "B" : "A"));
  };
  both(!a.objects.empty(), !b.objects.empty(), FUSEBOX_TEXT("Compare", "{} holds no compiled functions: they are not compared"));
  both(a.kernels.launches > 0, b.kernels.launches > 0, FUSEBOX_TEXT("Compare", "{} holds no run times of kernels: they are not compared"));
  both(!a.sources.empty() && !a.imported, !b.sources.empty() && !b.imported, FUSEBOX_TEXT("Compare", "{} holds no texts of the program: they are not compared"));
}

}  // namespace

Result<Comparison> compareSessions(const session::Reader& a, const session::Reader& b, Progress* progress) {
  constexpr double kReading = 0.45;  // share of each session's reading
  const auto reached = [progress](double fraction) -> Result<void> {
    if (!progress) return {};
    if (progress->report) progress->report(fraction);
    if (progress->cancelled) return fail(ErrorCode::InvalidArgument, "cancelled");
    return {};
  };
  const int levels[] = {highestLevel(a), highestLevel(b)};
  // A session without graphs (eager, a profiler's trace) does not limit the other's.
  const int level = levels[0] < 0 || levels[1] < 0 ? std::max({levels[0], levels[1], 0}) : std::min(levels[0], levels[1]);
  auto left = takeSnapshot(a, level, [&](double fraction) { return reached(fraction * kReading); });
  if (!left) return tl::unexpected(left.error());
  auto right = takeSnapshot(b, level, [&](double fraction) { return reached(kReading + fraction * kReading); });
  if (!right) return tl::unexpected(right.error());
  Comparison out{.a = sessionOf(*left), .b = sessionOf(*right), .entries = {}, .cause = {}, .limits = {}};
  const SourceMap sources(*left, *right);
  const auto engine = [](const Snapshot& s) { return s.facts.contains("engine") ? s.facts.at("engine") : std::string(); };
  Outline outline{*left, *right, sources, out, engine(*left) == engine(*right)};
  using Part = void (*)(Outline&);
  double done = 2 * kReading;
  for (const Part part : {compareSurroundings, compareObjects, compareLoose, compareLines, compareTotals}) {
    if (auto going = reached(done); !going) return tl::unexpected(going.error());
    part(outline);
    done += 0.02;
  }
  sayLimits(*left, *right, out.limits);
  out.cause = findCause(outline);
  return out;
}

}  // namespace fusebox::compare
