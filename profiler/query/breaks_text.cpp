// Graph breaks as JSON and as text.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "profiler/query/breaks.h"
#include "profiler/query/recompiles.h"

namespace fusebox::query {
namespace {

using nlohmann::json;

json numberOrNull(int64_t value) { return value < 0 ? json() : json(value); }

json toJson(const std::vector<BreakPiece>& pieces) {
  json out = json::array();
  for (const BreakPiece& p : pieces) {
    out.push_back({{"frame", p.frame},
                   {"compile", p.compile},
                   {"offset", p.offset},
                   {"entries", p.entries},
                   {"operators", p.operators},
                   {"compile_ns", p.compileNs}});
  }
  return out;
}

std::string time(int64_t ns) {
  const double us = static_cast<double>(ns) / 1e3;
  if (us < 1000) return fmt::format("{:.1f} µs", us);
  return us < 1e6 ? fmt::format("{:.2f} ms", us / 1e3) : fmt::format("{:.2f} s", us / 1e6);
}

bool isPrefix(const BreakInstruction& i) { return i.op == "KW_NAMES" || i.op == "PRECALL"; }

std::string listingLine(const BreakSummary& b, size_t at, bool breaking, int64_t& line) {
  const BreakInstruction& i = b.code[at];
  const std::string number = i.line != line && i.line > 0 ? std::to_string(i.line) : std::string();
  if (i.line > 0) line = i.line;
  return fmt::format("{:>5} {} {:>5} {:<26} {}\n", number, breaking ? ">>" : "  ", i.offset, i.op,
                     i.to >= 0 ? fmt::format("to {}", i.to) : i.argument);
}

/// [first, behind) of the instruction that breaks, with what belongs to it.
std::pair<size_t, size_t> breakingRange(const BreakSummary& b) {
  size_t at = 0;
  while (at < b.code.size() && b.code[at].offset != b.offset) ++at;
  size_t end = at;
  while (end < b.code.size() && isPrefix(b.code[end])) ++end;
  return {at, std::min(end + 1, b.code.size())};
}

std::string pieceText(const BreakPiece& p) {
  return fmt::format("{} {}, {} {}, {} of compiling", p.entries, p.entries == 1 ? "entry" : "entries", p.operators,
                     p.operators == 1 ? "operator" : "operators", time(p.compileNs));
}

std::string notCompiledText(const std::vector<Uncompiled>& list) {
  std::string out;
  for (const Uncompiled& u : list) {
    const std::string where = u.file.empty() ? u.function : fmt::format("{}:{}", u.file, u.line);
    out += fmt::format("{}{}{}: {}\n", where, where.empty() ? "" : "  ", u.kind, u.reason);
    if (!u.function.empty()) out += fmt::format("  {} is {}{}\n", u.function, u.recovered ? "compiled at a later attempt" : "not compiled", u.count > 1 ? fmt::format(" ({} times)", u.count) : "");
    out += toText(adviseUncompiled(u), 2) + "\n";
  }
  return out;
}

}  // namespace

std::string bytecodeText(const BreakSummary& b) {
  std::string out;
  const auto [first, behind] = breakingRange(b);
  int64_t line = 0;
  for (size_t i = 0; i < b.code.size(); ++i) out += listingLine(b, i, i >= first && i < behind, line);
  return out;
}

std::string bytecodeAfterText(const BreakSummary& b) {
  if (b.code.empty()) return {};
  const auto [first, behind] = breakingRange(b);
  std::string out;
  for (const BreakPiece& p : b.before)
    out += fmt::format("compiled from {} up to {}: {}\n", p.offset, b.offset, pieceText(p));
  out += "\nPython executes\n";
  int64_t line = 0;
  size_t last = behind;
  // Arithmetic on what came out of a break is executed with it, up to where the next piece starts.
  if (b.after.size() == 1) {
    while (last < b.code.size() && b.code[last].offset < b.after[0].offset && b.after[0].offset <= b.code.back().offset)
      ++last;
  }
  for (size_t i = first; i < last; ++i) out += listingLine(b, i, i < behind, line);
  out += "\n";
  if (b.after.empty()) out += "nothing is compiled after it: what is left has no tensor operation, or runs in Python\n";
  for (const BreakPiece& p : b.after) out += fmt::format("compiled from {} on: {}\n", p.offset, pieceText(p));
  return out;
}

json toJson(const session::Reader& reader, const std::vector<BreakSummary>& breaks, const std::vector<Uncompiled>& uncompiled) {
  json out = json::array();
  for (const BreakSummary& b : breaks) {
    json advice = json::array(), code = json::array();
    for (const Advice& a : adviseBreak(reader, b)) advice.push_back(toJson(a));
    for (const BreakInstruction& i : b.code)
      code.push_back(
          {{"offset", i.offset}, {"line", i.line}, {"op", i.op}, {"arg", i.argument}, {"to", numberOrNull(i.to)}});
    out.push_back({{"kind", b.kind},
                   {"reason", b.reason},
                   {"hint", b.hint},
                   {"function", b.function},
                   {"file", b.file},
                   {"line", b.line},
                   {"opcode", b.opcode},
                   {"offset", numberOrNull(b.offset)},
                   {"count", b.ids.size()},
                   {"break_ids", b.ids},
                   {"crossings", numberOrNull(b.crossings)},
                   {"lost_ns", numberOrNull(b.lostNs)},
                   {"measured_crossings", b.measured},
                   {"compile_ns", b.compileNs},
                   {"inside", toJson(b.inside)},
                   {"stack", toJson(b.stack)},
                   {"advice", advice},
                   {"bytecode", code},
                   {"before", toJson(b.before)},
                   {"after", toJson(b.after)}});
  }
  return {{"breaks", out}, {"not_compiled", toJson(uncompiled)}};
}

std::string toText(const session::Reader& reader, const std::vector<BreakSummary>& breaks, const std::vector<Uncompiled>& uncompiled) {
  std::string out = notCompiledText(uncompiled);
  if (breaks.empty()) return out + "No graph break.\n";
  for (const BreakSummary& b : breaks) {
    out += fmt::format("{}:{}  {}: {}\n", b.file.empty() ? "unknown place" : b.file, b.line, b.kind, b.reason);
    if (!b.inside.file.empty()) out += fmt::format("  inside {}, at {}:{}\n", b.inside.function, b.inside.file, b.inside.line);
    out += fmt::format("  in {}, {} {}", b.function, b.ids.size(), b.ids.size() == 1 ? "compile" : "compiles");
    if (b.crossings >= 0) out += b.crossings == 1 ? ", passed once" : fmt::format(", passed {} times", b.crossings);
    if (b.measured > 0)
      out += fmt::format(", {} between the graphs ({} a time)", time(b.lostNs), time(b.lostNs / b.measured));
    if (b.compileNs > 0) out += fmt::format(", {} of compiling after it", time(b.compileNs));
    out += "\n";
    // What started the program is no part of it.
    const auto start = std::find_if(b.stack.begin(), b.stack.end(), [](const StackPlace& p) { return p.isUsers(); });
    const auto end = start == b.stack.end() ? b.stack.rend() : std::make_reverse_iterator(start);
    for (auto at = b.stack.rbegin(); at != end && b.stack.size() > 1; ++at)
      out += fmt::format("    {}:{} in {}\n", at->file, at->line, at->function);
    out += toText(adviseBreak(reader, b), 2) + "\n";
  }
  return out;
}

}  // namespace fusebox::query
