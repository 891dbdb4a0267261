// The first difference that explains the rest. What a person changed comes before what the compiler did with it, and that goes
// from capture to kernels to times; the explanation follows the function whose calls changed most.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/compare/align.h"
#include "profiler/compare/outline.h"

namespace fusebox::compare {
namespace {

enum Level { kSurroundings, kCapture, kGuards, kGraphs, kKernels, kMemory, kTimes };

/// Where along the way an entry stands; -1 for what only sums up others.
int levelOf(const Entry& e) {
  switch (e.subject) {
    case Subject::Environment:
    case Subject::Option:
    case Subject::Program:
    case Subject::Engine: return kSurroundings;
    case Subject::CodeObject:
    case Subject::Failure:
    case Subject::Break: return kCapture;
    case Subject::Recompile:
    case Subject::Symbol:
    case Subject::Guard: return kGuards;
    case Subject::Graph:
    case Subject::Node: return kGraphs;
    case Subject::Kernel: return e.structural ? kKernels : kTimes;
    case Subject::Memory: return kMemory;
    case Subject::Time: return kTimes;
    default: return -1;
  }
}

/// What an option touches first. Options that are not here may touch anything.
struct OptionReach {
  std::string_view name;
  Level level;
};
constexpr OptionReach kReach[] = {
    {"config.fuse", kKernels},          {"config.max_fusion_size", kKernels},  {"config.target", kKernels},        {"config.max_autotune", kKernels},
    {"config.background", kTimes},      {"config.recompile_limit", kGuards},   {"config.accumulated_recompile_limit", kGuards},
    {"config.error_on_recompile", kGuards}, {"config.automatic_dynamic_shapes", kGuards}, {"config.assume_static_by_default", kGuards},
    {"config.specialize_int", kGuards},     {"config.specialize_float", kGuards},         {"config.force_parameter_static_shapes", kGuards},
    {"config.cudagraphs", kKernels},   {"config.triton.cudagraphs", kKernels},
    {"backend", kGraphs},               {"mode", kKernels},                    {"dynamic", kGuards},
    {"config.capture_scalar_outputs", kCapture}, {"config.capture_dynamic_output_shape_ops", kCapture},
};

Level reachOf(const std::string& option) {
  for (const auto& r : kReach) {
    if (r.name == option) return r.level;
  }
  if (!option.starts_with("config.inductor.")) return kCapture;
  // Where and by how many processes PyTorch's compiler works changes nothing of what it makes.
  constexpr std::string_view kWork[] = {"cache", "compile_threads", "dir", "path", "timeout", "trace.", "worker"};
  const auto said = [&](std::string_view word) { return option.find(word) != std::string::npos; };
  return std::any_of(std::begin(kWork), std::end(kWork), said) ? kTimes : kGraphs;
}

class Detective {
 public:
  explicit Detective(const Outline& outline) : o_(outline), entries_(outline.out.entries) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      root_.push_back(e.parent < 0 ? static_cast<int32_t>(i) : root_[static_cast<size_t>(e.parent)]);
      if (e.kind == Kind::Same) continue;
      const int level = levelOf(e);
      if (level == kSurroundings) surroundings_.push_back(static_cast<int32_t>(i));
      if (level > kSurroundings && !o_.out.insideOneSided(static_cast<int32_t>(i))) effects_.push_back(static_cast<int32_t>(i));
    }
  }

  Cause solve() {
    Cause cause;
    cause.effects = static_cast<int32_t>(effects_.size());
    if (effects_.empty()) {
      cause.headline = say(surroundings_.empty() ? FUSEBOX_TEXT("Compare", "Nothing differs beyond noise.")
                                                 : FUSEBOX_TEXT("Compare", "The same was compiled, and its times differ by no more than noise."));
      cause.others = surroundings_;
      return cause;
    }
    if (const std::string strangers = nothingInCommon(); !strangers.empty()) {
      cause.headline = strangers;
      cause.others = surroundings_;
      stepTime(cause);
      if (!cause.chain.empty()) cause.headline += " " + say(FUSEBOX_TEXT("Compare", "What can be compared is {}."), cause.chain.front().text);
      return cause;
    }
    scope_ = heaviestScope();
    first_ = firstEffect();
    const int32_t root = choose(cause);
    cause.found = true;
    for (const int32_t e : effects_) cause.explained += e != root && explains(root, e) ? 1 : 0;
    cause.headline = headline(root);
    chain(root, cause);
    return cause;
  }

 private:
  const Entry& at(int32_t e) const { return entries_[static_cast<size_t>(e)]; }

  /// Nanoseconds that an entry's times changed by, over all calls.
  static double weight(const Entry& e) {
    if (e.verdict != Verdict::Faster && e.verdict != Verdict::Slower) return 0;
    return std::fabs(e.b.time.medianNs - e.a.time.medianNs) * static_cast<double>(std::min(e.a.time.count, e.b.time.count));
  }

  /// Sessions of two programs have nothing to explain. Empty where they share a function (or neither has any).
  std::string nothingInCommon() const {
    int functions = 0;
    for (const Entry& e : entries_) {
      if (e.subject != Subject::CodeObject) continue;
      if (e.a.present && e.b.present) return {};
      ++functions;
    }
    if (o_.a.objects.empty() || o_.b.objects.empty() || functions == 0) return {};
    return say(FUSEBOX_TEXT("Compare", "No function was compiled in both sessions: these are different programs, or different parts of one."));
  }

  int32_t heaviestScope() const {
    std::map<int32_t, std::pair<double, int>> scopes;
    for (const int32_t e : effects_) {
      auto& [time, count] = scopes[root_[static_cast<size_t>(e)]];
      time += weight(at(e));
      count += at(e).structural ? 1 : 0;
    }
    // The step is what all scopes cost together: it explains nothing by itself.
    if (scopes.size() > 1) std::erase_if(scopes, [&](const auto& scope) { return at(scope.first).subject == Subject::Section && at(scope.first).name == "Whole session"; });
    // Where something was compiled differently, that is the story; times alone follow from it or from the machine.
    const auto best = std::max_element(scopes.begin(), scopes.end(), [](const auto& x, const auto& y) {
      const bool a = x.second.second > 0, b = y.second.second > 0;
      if (a != b) return b;
      return x.second.first != y.second.first ? x.second.first < y.second.first : x.second.second < y.second.second;
    });
    return best->first;
  }

  int32_t firstEffect() const {
    int32_t first = -1;
    for (const int32_t e : effects_) {
      if (root_[static_cast<size_t>(e)] != scope_) continue;
      if (first < 0 || levelOf(at(e)) < levelOf(at(first))) first = e;
    }
    return first;
  }

  /// How well something that a person changed explains the first effect: 0 not at all.
  int suits(const Entry& e) const {
    const Entry& first = at(first_);
    const int level = levelOf(first);
    if (e.subject == Subject::Engine) return 95;
    if (e.subject == Subject::Option) {
      if (e.parent >= 0 && entries_[static_cast<size_t>(e.parent)].subject == Subject::CodeObject && root_[static_cast<size_t>(e.parent)] != scope_) return 0;
      const int reach = reachOf(e.name);
      return reach == level ? 90 : reach > level ? 0 : level == kTimes ? 15 : 55;
    }
    if (e.subject == Subject::Program) {
      if (level == kTimes) return 15;  // the same was compiled
      if (e.name == "arguments") return 70;
      return suitsEdit(e, first);
    }
    struct Fact {
      std::string_view key;
      int score;
      int least;  ///< first level that it can change
    };
    static constexpr Fact kFacts[] = {{"device", 85, kGuards}, {"torch", 50, kCapture}, {"fusebox_version", 48, kCapture}, {"cpu", 44, kKernels}, {"torch_threads", 46, kKernels},
                                      {"cpus", 42, kKernels}, {"python", 25, kCapture}, {"hostname", 22, kTimes}, {"exit_code", 0, kTimes}};
    for (const Fact& fact : kFacts) {
      if (fact.key == e.name) return level >= fact.least ? fact.score : 0;
    }
    return 10;
  }

  /// Changed lines of the program: surest where the first effect is on one of them, next where they are in its function's file.
  int suitsEdit(const Entry& edit, const Entry& first) const {
    const auto [change, score] = changeBehind(edit, first);
    return change ? score : SourceMap::isUsers(edit.a.place.file) ? 40 : 30;
  }

  /// The change of a file that suits the first effect best, and how well; none where no change is in its function.
  std::pair<const SourceMap::Change*, int> changeBehind(const Entry& edit, const Entry& first) const {
    std::pair<const SourceMap::Change*, int> best{nullptr, 0};
    for (const auto& e : o_.sources.edits()) {
      if (e.fileA != edit.a.place.file) continue;
      for (const auto& change : e.changes) {
        const bool there = (first.a.place.file == e.fileA && change.holds(first.a.place.line, true)) || (first.b.place.file == e.fileB && change.holds(first.b.place.line, false));
        const int score = there ? 100 : inScope(e.fileA, change.linesA, true) || inScope(e.fileB, change.linesB, false) ? 80 : 0;
        if (score > best.second) best = {&change, score};
      }
    }
    return best;
  }

  /// Whether one of the lines is in the function of the scope, as far as functions that were compiled tell: the one that starts last
  /// before the line.
  bool inScope(const std::string& file, const std::vector<int64_t>& lines, bool inA) const {
    for (const int64_t line : lines) {
      int32_t owner = -1;
      for (size_t i = 0; i < entries_.size(); ++i) {
        const Side& side = inA ? entries_[i].a : entries_[i].b;
        if (entries_[i].subject != Subject::CodeObject || side.place.file != file || side.place.line > line) continue;
        if (owner < 0 || side.place.line > (inA ? at(owner).a : at(owner).b).place.line) owner = static_cast<int32_t>(i);
      }
      if (owner >= 0 && owner == scope_) return true;
    }
    return false;
  }

  int32_t choose(Cause& cause) const {
    int32_t best = -1;
    int most = 0;
    for (const int32_t e : surroundings_) {
      const int score = suits(at(e));
      if (score <= most) continue;
      best = e;
      most = score;
    }
    for (const int32_t e : surroundings_) {
      if (e != best && suits(at(e)) >= 20) cause.others.push_back(e);
    }
    return most >= 20 ? best : first_;
  }

  bool explains(int32_t root, int32_t effect) const {
    const Entry& r = at(root);
    const bool global = levelOf(r) == kSurroundings;
    if (global && r.subject == Subject::Option) {
      const bool local = r.parent >= 0 && at(r.parent).subject == Subject::CodeObject;
      return levelOf(at(effect)) >= reachOf(r.name) && (!local || root_[static_cast<size_t>(root)] == root_[static_cast<size_t>(effect)]);
    }
    if (global) return true;
    return root_[static_cast<size_t>(root)] == root_[static_cast<size_t>(effect)] && levelOf(at(effect)) >= levelOf(r);
  }

  std::string arrow(const Entry& e) const {
    return fmt::format("{} → {}{}", e.a.present ? e.a.text : "–", e.b.present ? e.b.text : "–", e.change.empty() ? "" : " (" + e.change + ")");
  }
  /// A name with the function that it belongs to: "recompiles of Net.forward".
  std::string inFunction(const std::string& name) const {
    return at(scope_).subject == Subject::CodeObject ? say(FUSEBOX_TEXT("Compare", "{} of {}"), name, at(scope_).name) : name;
  }

  /// Something that only one session has.
  std::string describeOneSided(const Entry& e) const {
    const bool inB = e.kind == Kind::Added;
    const auto told = [&](const Text& onlyA, const Text& onlyB, const auto&... words) { return say(inB ? onlyB : onlyA, words...); };
    const std::string& text = (e.a.present ? e.a : e.b).text;
    switch (e.subject) {
      case Subject::Break: return told(FUSEBOX_TEXT("Compare", "graph break only in A, {}"), FUSEBOX_TEXT("Compare", "graph break only in B, {}"), text);
      case Subject::Failure: return told(FUSEBOX_TEXT("Compare", "{} is not compiled in A, {}"), FUSEBOX_TEXT("Compare", "{} is not compiled in B, {}"), at(scope_).name, text);
      case Subject::Guard: return told(FUSEBOX_TEXT("Compare", "guard only in A: {}"), FUSEBOX_TEXT("Compare", "guard only in B: {}"), e.name);
      case Subject::Symbol: return told(FUSEBOX_TEXT("Compare", "{} is {} only in A"), FUSEBOX_TEXT("Compare", "{} is {} only in B"), e.name, text);
      case Subject::Node: return told(FUSEBOX_TEXT("Compare", "node only in A: {}"), FUSEBOX_TEXT("Compare", "node only in B: {}"), text);
      case Subject::Kernel: return told(FUSEBOX_TEXT("Compare", "kernel {} only in A: {}"), FUSEBOX_TEXT("Compare", "kernel {} only in B: {}"), e.name, text);
      default: {
        const std::string what = inFunction(e.subject == Subject::Recompile ? say(FUSEBOX_TEXT("Compare", "recompile")) : entryTitle(e));
        return told(FUSEBOX_TEXT("Compare", "{} only in A: {}"), FUSEBOX_TEXT("Compare", "{} only in B: {}"), what, text);
      }
    }
  }

  std::string describeChanged(const Entry& e) const {
    switch (e.subject) {
      case Subject::Option: return say(FUSEBOX_TEXT("Compare", "option {}: {}"), e.name, arrow(e));
      case Subject::Environment: return fmt::format("{}: {}", e.name, arrow(e));
      case Subject::Engine: return say(FUSEBOX_TEXT("Compare", "engine: {}"), arrow(e));
      case Subject::Program:
        if (e.name == "arguments") return say(FUSEBOX_TEXT("Compare", "the script's arguments: {}"), arrow(e));
        if (const auto* change = changeBehind(e, at(first_)).first) return say(FUSEBOX_TEXT("Compare", "the program changed, {}: {}"), e.name, fmt::format("{} → {}", change->told(true), change->told(false)));
        return say(FUSEBOX_TEXT("Compare", "the program changed, {}: {}"), e.name, arrow(e));
      case Subject::CodeObject: {
        const std::string& text = (e.a.present ? e.a : e.b).text;
        return say(e.kind == Kind::Added ? FUSEBOX_TEXT("Compare", "{} was compiled only in B ({})") : FUSEBOX_TEXT("Compare", "{} was compiled only in A ({})"), e.name, text);
      }
      case Subject::Break: return say(FUSEBOX_TEXT("Compare", "graph break: {}"), arrow(e));
      case Subject::Failure: return say(FUSEBOX_TEXT("Compare", "not compiled: {}"), arrow(e));
      case Subject::Recompile: return fmt::format("{}: {}", inFunction(say(FUSEBOX_TEXT("Compare", "recompiles"))), arrow(e));
      case Subject::Guard: return say(FUSEBOX_TEXT("Compare", "guard {}: {}"), e.name, arrow(e));
      case Subject::Symbol: return fmt::format("{}: {}", e.name, arrow(e));
      case Subject::Node: return say(FUSEBOX_TEXT("Compare", "node {}: {}"), e.name, arrow(e));
      case Subject::Kernel: return say(FUSEBOX_TEXT("Compare", "kernel {}: {}"), e.name, arrow(e));
      default: return fmt::format("{}: {}", inFunction(entryTitle(e)), arrow(e));
    }
  }

  std::string describe(const Entry& e) const {
    const bool mayBeOneSided = e.subject == Subject::Break || e.subject == Subject::Recompile || e.subject == Subject::Guard || e.subject == Subject::Symbol ||
                               e.subject == Subject::Graph || e.subject == Subject::Failure ||
                               e.subject == Subject::Node || e.subject == Subject::Kernel;
    const bool oneSided = mayBeOneSided && (e.kind == Kind::Added || e.kind == Kind::Removed);
    const std::string text = oneSided ? describeOneSided(e) : describeChanged(e);
    return e.subject == Subject::Kernel && !e.note.empty() ? text + "; " + e.note : text;
  }

  std::string headline(int32_t root) const {
    const Entry& r = at(root);
    if (r.subject == Subject::Engine) return say(FUSEBOX_TEXT("Compare", "Two engines: {} and {}. What they do differently first: {}."), r.a.text, r.b.text, describe(at(first_)));
    std::string text = describe(r);
    if (!text.starts_with("fused_") && !text.starts_with("aten::")) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    if (levelOf(r) == kTimes) {
      return say(FUSEBOX_TEXT("Compare", "{}. What was compiled is the same and nothing recorded before it differs: look at the machine's load and clocks."), text);
    }
    if (levelOf(r) == kGuards) {
      return say(o_.a.hasScript() && o_.b.hasScript() ? FUSEBOX_TEXT("Compare", "{}. Nothing recorded before it differs: the inputs did.")
                                                      : FUSEBOX_TEXT("Compare", "{}. Nothing recorded before it differs. The text of the script is not recorded on both sides: it may differ, or the inputs."),
                 text);
    }
    return text + ".";
  }

  void chain(int32_t root, Cause& cause) const {
    cause.chain.push_back({describe(at(root)), root});
    for (int level = kCapture; level <= kTimes; ++level) {
      std::vector<int32_t> steps;
      for (const int32_t e : effects_) {
        if (e != root && root_[static_cast<size_t>(e)] == scope_ && levelOf(at(e)) == level && !isStepTime(at(e))) steps.push_back(e);
      }
      if (level == kGraphs) sumsNamed("graphs", cause);
      if (level == kKernels) sumsNamed("kernels and calls", cause);
      if (steps.empty()) continue;
      // Of times the one that changed most, of the rest the first; a kernel that says why before one that does not.
      auto pick = steps.begin();
      if (level == kTimes) {
        pick = std::max_element(steps.begin(), steps.end(), [&](int32_t x, int32_t y) { return weight(at(x)) < weight(at(y)); });
      } else if (level == kKernels) {
        const auto telling = std::find_if(steps.begin(), steps.end(), [&](int32_t e) { return at(e).refusal; });
        if (telling != steps.end()) pick = telling;
      }
      std::string text = describe(at(*pick));
      if (steps.size() > 1) text = say(FUSEBOX_TEXT("Compare", "{} (and {} more at this stage)"), text, steps.size() - 1);
      cause.chain.push_back({std::move(text), *pick});
    }
    stepTime(cause);
  }

  static bool isStepTime(const Entry& e) { return e.subject == Subject::Time && e.name == "step"; }

  /// What it all costs in the end: a step of the program.
  void stepTime(Cause& cause) const {
    for (const int32_t e : effects_) {
      if (!isStepTime(at(e))) continue;
      if (cause.chain.empty() || cause.chain.front().entry != e) cause.chain.push_back({say(FUSEBOX_TEXT("Compare", "a step of the program: {}"), arrow(at(e))), e});
      return;
    }
  }

  /// Counts below the scope that changed: "graphs: 1 → 2".
  void sumsNamed(std::string_view name, Cause& cause) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      if (e.subject != Subject::Count || e.kind != Kind::Changed || e.name != name || root_[i] != scope_) continue;
      cause.chain.push_back({describe(e), static_cast<int32_t>(i)});
      return;
    }
  }

  const Outline& o_;
  const std::vector<Entry>& entries_;
  std::vector<int32_t> root_, surroundings_, effects_;
  int32_t scope_ = -1, first_ = -1;
};

}  // namespace

Cause findCause(const Outline& outline) { return Detective(outline).solve(); }

}  // namespace fusebox::compare
