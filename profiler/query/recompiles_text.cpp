// Recompiles as JSON and as text.
#include <fmt/format.h>

#include "profiler/query/guard_words.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/report_time.h"

namespace fusebox::query {
namespace {

using nlohmann::json;

constexpr const char* kStates[] = {"same", "changed", "only_a", "only_b"};

json numberOrNull(int64_t value) { return value < 0 ? json() : json(value); }

json toJson(const ChainEntry& e) {
  return {{"compile", e.compile},
          {"attempt", e.attempt},
          {"kind", e.kind},
          {"status", e.status},
          {"error", e.error},
          {"cache", e.cache},
          {"log_id", e.logId},
          {"compile_ns", e.compileNs},
          {"hits", numberOrNull(e.hits)},
          {"runs", numberOrNull(e.runs)},
          {"run_ns", e.runNs},
          {"guards", e.guards},
          {"failures", e.failures},
          {"failure", e.cause},
          {"shapes", e.shapes}};
}

json toJson(const session::Reader& reader, const RecompileChain& chain, const GuardMiss& m) {
  json advice = json::array();
  for (const Advice& a : adviseMiss(reader, chain, m)) advice.push_back(query::toJson(a));
  return {{"failure", m.failure},
          {"entry", m.entry},
          {"recompile", m.recompile},
          {"guard", m.guard},
          {"kind", m.kind},
          {"source", m.source},
          {"text", m.text},
          {"expected", m.expected},
          {"found", m.found},
          {"difference", m.difference},
          {"outcome", m.outcome},
          {"file", m.file},
          {"line", m.line},
          {"assumption_stack", query::toJson(m.assumption)},
          {"call_stack", query::toJson(m.call)},
          {"advice", advice}};
}

std::string count(int64_t value) { return value < 0 ? "–" : std::to_string(value); }

const GuardMiss* causeOf(const RecompileChain& chain, const ChainEntry& entry) {
  for (const GuardMiss& m : chain.misses) {
    if (m.failure == entry.cause) return &m;
  }
  return nullptr;
}

const StackPlace* callerOf(const GuardMiss& m) {
  for (auto at = m.call.rbegin(); at != m.call.rend(); ++at) {
    if (at != m.call.rbegin() && at->isUsers()) return &*at;
  }
  return nullptr;
}

}  // namespace

std::string missSentence(const GuardMiss& m) {
  const std::string guard = m.kind.empty() || (m.source.empty() && !m.text.empty()) ? m.text : m.source.empty() ? m.kind : m.kind + " " + m.source;
  if (!m.difference.empty()) return guard + ": " + m.difference;
  return missWords(guard, m.expected, m.found);
}

json toJson(const Advice& advice) { return {{"title", advice.title}, {"text", advice.text}, {"diff", advice.diff}}; }

json toJson(const StackPlace& p) { return p.file.empty() ? json() : json{{"file", p.file}, {"line", p.line}, {"function", p.function}}; }

json toJson(const std::vector<StackPlace>& stack) {
  json out = json::array();
  for (const StackPlace& p : stack) out.push_back(toJson(p));
  return out;
}

json toJson(const session::Reader& reader, const std::vector<RecompileChain>& chains) {
  json out = json::array();
  for (const RecompileChain& c : chains) {
    json entries = json::array(), misses = json::array();
    for (const ChainEntry& e : c.entries) entries.push_back(toJson(e));
    for (const GuardMiss& m : c.misses) misses.push_back(toJson(reader, c, m));
    out.push_back({{"frame", c.frame},
                   {"parent_frame", c.parent},
                   {"name", c.name},
                   {"file", c.file},
                   {"line", c.line},
                   {"status", c.status},
                   {"reason", c.reason},
                   {"compile_ns", c.compileNs},
                   {"recompile_ns", c.recompileNs},
                   {"hits", numberOrNull(c.hits)},
                   {"entries", entries},
                   {"causes", misses}});
  }
  return {{"code_objects", out}};
}

json toJson(const std::vector<GuardTreeRow>& rows) {
  json out = json::array();
  for (const GuardTreeRow& r : rows) {
    json row = {
        {"depth", r.depth}, {"source", r.isSource}, {"label", r.label}, {"state", kStates[static_cast<int>(r.state)]}};
    if (r.isSource) {
      row["differences"] = r.differences;
    } else {
      row.update({{"a", r.a},
                  {"b", r.b},
                  {"guard_a", r.guardA},
                  {"guard_b", r.guardB},
                  {"found", r.found},
                  {"file", r.file},
                  {"line", r.line}});
    }
    out.push_back(std::move(row));
  }
  return {{"guards", out}};
}

std::string toText(const std::vector<Advice>& advice, int indent) {
  const std::string blank(static_cast<size_t>(indent), ' ');
  std::string out;
  for (const Advice& a : advice) {
    out += fmt::format("{}* {}\n", blank, a.title);
    for (const auto line : splitLines(a.text)) out += fmt::format("{}  {}\n", blank, line);
    for (const auto line : splitLines(a.diff)) out += fmt::format("{}    {}\n", blank, line);
  }
  return out;
}

std::string toText(const session::Reader& reader, const std::vector<RecompileChain>& chains) {
  if (chains.empty()) return "No code object was compiled more than once.\n";
  std::string out;
  for (const RecompileChain& c : chains) {
    out += fmt::format("{}  {}:{}{}\n  {} entries, {} of compiling, {} of it again; hits {}\n", chainName(c), c.file, c.line,
                       c.parent != 0 ? "  (after a graph break)" : "", c.entries.size(), reportTime(c.compileNs),
                       reportTime(c.recompileNs), count(c.hits));
    if (c.status == "limit") out += fmt::format("  {}\n", c.reason);
    int number = 0;
    for (const ChainEntry& e : c.entries) {
      out += fmt::format("  #{:<4} {:<7}  {:>10}  {:>8} hits  {:>5} guards{}", number++, e.logId, reportTime(e.compileNs), count(e.hits),
                         e.guards, e.cache.empty() ? "" : "  cache " + e.cache);
      const GuardMiss* cause = causeOf(c, e);
      out += cause ? fmt::format("  because {}\n", missSentence(*cause)) : "\n";
      if (!e.error.empty()) out += fmt::format("        failed: {}\n", e.error);
      for (const auto& sentence : e.shapes) out += fmt::format("        {}\n", sentence);
    }
    std::string said;
    for (const GuardMiss& m : c.misses) {
      // The same guard fails again and again: it is explained once.
      const bool isSaidByText = m.source.empty() || m.text.starts_with("tensor '");  // PyTorch's words
      const std::string key = m.kind + (isSaidByText ? m.text.substr(0, m.text.find(". expected")) : m.source) + (m.outcome == "limit" ? "limit" : "") +
                              (m.difference.empty() ? "" : m.difference.substr(0, 6));
      if (said.find("\n" + key + "\n") != std::string::npos) continue;
      said += "\n" + key + "\n";
      out += fmt::format("  {}{}\n", m.outcome == "limit" ? "limit reached: " : "", missSentence(m));
      const bool isInside = !m.assumption.empty() && m.assumption.back().file != m.file;
      const std::string inside = isInside ? fmt::format(" (in {}:{})", m.assumption.back().file, m.assumption.back().line) : std::string();
      if (m.line > 0) out += fmt::format("    assumed at {}:{}{}\n", m.file, m.line, inside);
      if (const StackPlace* caller = callerOf(m))
        out += fmt::format("    called from {}:{} in {}\n", caller->file, caller->line, caller->function);
      out += toText(adviseMiss(reader, c, m), 4);
    }
    out += "\n";
  }
  return out;
}

std::string toText(const std::vector<GuardTreeRow>& rows) {
  constexpr const char* kMarks[] = {" ", "!", "<", ">"};
  std::string out;
  for (const GuardTreeRow& r : rows) {
    out += fmt::format("{} {}{}", r.isSource ? " " : kMarks[static_cast<int>(r.state)],
                       std::string(static_cast<size_t>(r.depth) * 2, ' '), r.label);
    if (!r.isSource) {
      out += r.state == GuardTreeRow::State::Changed ? fmt::format(": {}  |  {}", r.a, r.b)
                                                     : ": " + (r.a.empty() ? r.b : r.a);
      if (!r.found.empty()) out += fmt::format("   (found {})", r.found);
    }
    out += "\n";
  }
  return out;
}

}  // namespace fusebox::query
