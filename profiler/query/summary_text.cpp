#include <fmt/format.h>

#include "profiler/query/guard_words.h"
#include "profiler/query/summary.h"

namespace fusebox::query {
namespace {

std::string ms(double value) {
  if (value >= 1000) return fmt::format("{:.2f} s", value / 1000);
  return fmt::format("{:.{}f} ms", value, value >= 10 ? 1 : 3);
}

std::string place(const std::string& file, int64_t line) {
  if (file.empty()) return "unknown place";
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

std::string plural(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Long lists are cut here; --json and the window have all of them.
constexpr size_t kListed = 10;

void more(std::string& out, size_t total) {
  if (total > kListed) out += fmt::format("    … and {} more\n", total - kListed);
}

/// What a later attempt compiled is no failure of the program that runs.
std::string uncompiledLine(const Uncompiled& u) {
  std::string where = u.function;
  if (!u.file.empty()) where += fmt::format("{}{}", where.empty() ? "" : ", ", place(u.file, u.line));
  return fmt::format("  {}{}{}: {}{}\n", u.recovered ? "restarted     " : kNotCompiled, where.empty() ? "" : where + ": ", u.kind, u.reason,
                     u.count > 1 ? fmt::format(" ({} times)", u.count) : "");
}

}  // namespace

std::string runSentence(const Summary& s) {
  const std::string made = fmt::format("{} and {}", plural(s.kernels, "kernel", "kernels"), plural(s.externCalls, "extern call", "extern calls"));
  const bool anyMade = s.kernels + s.externCalls > 0;
  if (!s.hasRunTimes) return anyMade ? fmt::format("not recorded; {} in the code that was made", made) : "not recorded";
  std::string out = s.runMs <= 0 && !s.importedFormat.empty() ? std::string("nothing compiled")
                    : s.runIsKernels ? fmt::format("{} in kernels", ms(s.runMs)) : fmt::format("{} in compiled code", ms(s.runMs));
  if (!s.hasLaunches) return out + ", launches are not recorded";
  out += fmt::format(", {} of {} and {}", plural(s.launches, "launch", "launches"), plural(s.kernelsRun, "kernel", "kernels"),
                     plural(s.externCallsRun, "extern call", "extern calls"));
  // Where another engine compiles, operators are recorded wherever they are called.
  if (s.eagerRun > 0) out += fmt::format(" and {}{}", plural(s.eagerRun, "operator", "operators"), s.engine == "stock" ? "" : " outside");
  if (s.kernelsRun < s.kernels || s.externCallsRun < s.externCalls) out += fmt::format("; {} were made", made);
  return out;
}

bool leftToEager(const Summary::Loss& loss) {
  return loss.what == "graph not compiled" || loss.what == "kernel without code" || loss.what == "frame left to Python" || loss.what.ends_with("ran eagerly");
}

std::string toText(const Summary& s) {
  std::string out = fmt::format("  engine    {}{}{}{}\n", s.engine.empty() ? "unknown" : s.engine,
                                s.torch.empty() ? "" : ", torch " + s.torch,
                                s.python.empty() ? "" : ", Python " + s.python, s.device.empty() ? "" : ", " + s.device);
  if (!s.importedFormat.empty()) out += fmt::format("  from      {}\n", s.importedFormat);
  if (s.state == "recording") out += "  state     still being written\n";
  if (s.state == "abandoned") out += "  state     its process ended without finishing it; what was committed is here\n";
  const std::string backward = s.backwardCompiles > 0 ? fmt::format(" ({} of backward passes)", s.backwardCompiles) : std::string();
  out += fmt::format("  captured  {}, {}{}, {}\n", plural(s.frames, "frame", "frames"), plural(s.compiles, "compile", "compiles"), backward,
                     plural(s.graphs, "graph", "graphs"));
  if (const std::string sentence = coverageSentence(s.coverage); !sentence.empty()) out += fmt::format("  functions {}\n", sentence);
  const auto& uncompiled = s.coverage.uncompiled;
  for (size_t i = 0; i < uncompiled.size() && i < kListed; ++i) out += uncompiledLine(uncompiled[i]);
  more(out, uncompiled.size());
  constexpr const char* kUnknown = "not recorded";
  const double inNoStage = s.totalCompileMs - s.captureMs - s.aotMs - s.inductorMs - s.codegenMs;
  const std::string rest = inNoStage > s.totalCompileMs / 100 ? fmt::format(", in no stage {}", ms(inNoStage)) : std::string();
  out += fmt::format("  compile   {}\n", s.hasCompileTimes || s.totalCompileMs > 0 ? fmt::format("{} (capture {}, aot {}, inductor {}, codegen {}{})", ms(s.totalCompileMs), ms(s.captureMs), ms(s.aotMs), ms(s.inductorMs), ms(s.codegenMs), rest)
                                                                                   : kUnknown);
  out += fmt::format("  run       {}\n", runSentence(s));
  const std::string disabled = s.cacheDisabled > 0 ? fmt::format(", not asked for {}: {}", plural(s.cacheDisabled, "graph", "graphs"), s.cacheDisabledBy.empty() ? "it is disabled" : s.cacheDisabledBy) : std::string();
  const bool knowsCache = s.hasCompileTimes || s.cacheHits + s.cacheMisses + s.cacheBypasses + s.cacheDisabled > 0;
  out += fmt::format("  cache     {}\n", knowsCache ? fmt::format("{}, {}, {}{}", plural(s.cacheHits, "hit", "hits"), plural(s.cacheMisses, "miss", "misses"), plural(s.cacheBypasses, "bypass", "bypasses"), disabled)
                                                     : kUnknown);
  out += fmt::format("  breaks    {}\n", !s.graphBreaks.empty() ? std::to_string(s.graphBreaks.size()) : s.hasBreaks ? "none" : kUnknown);
  for (size_t i = 0; i < s.graphBreaks.size() && i < kListed; ++i) {
    const auto& b = s.graphBreaks[i];
    const std::string inside = b.inside.file.empty() ? std::string() : fmt::format(" (in {})", place(b.inside.file, b.inside.line));
    out += fmt::format("    {}{}: {}: {}{}\n", place(b.file, b.line), inside, b.kind, b.reason,
                       b.count > 1 ? fmt::format(" ({} times)", b.count) : "");
    if (!b.hint.empty()) out += fmt::format("      hint: {}\n", b.hint);
  }
  more(out, s.graphBreaks.size());
  out += fmt::format("  recompiles {}{}\n", s.compiledAgain > 0 ? std::to_string(s.compiledAgain) : s.hasRecompiles ? "none" : kUnknown,
                     s.limitsReached == 0 ? "" : fmt::format(", {} that reached the limit of entries", plural(s.limitsReached, "frame", "frames")));
  for (size_t i = 0; i < s.recompiles.size() && i < kListed; ++i) {
    const auto& r = s.recompiles[i];
    out += fmt::format("    {}: {}: {}{}\n", place(r.file, r.line), r.frame, missWords(r.guard, r.expected, r.found),
                       r.outcome == "limit" ? " (recompile limit reached, runs in eager)" : "");
  }
  more(out, s.recompiles.size());
  if (!s.hottest.empty()) out += "  hottest\n";
  for (const auto& h : s.hottest) {
    out += fmt::format("    {:>12}  {:>9} x  {}{}\n", ms(static_cast<double>(h.totalNs) / 1e6), h.launches, h.name,
                       h.file.empty() ? "" : "  " + place(h.file, h.line));
  }
  for (const auto& l : s.losses) {
    if (leftToEager(l)) continue;
    out += fmt::format("  lost      {} {}{}\n", l.count, l.what, l.detail.empty() ? "" : ": " + l.detail);
  }
  return out;
}

}  // namespace fusebox::query
