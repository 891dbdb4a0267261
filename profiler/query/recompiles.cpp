#include "profiler/query/recompiles.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "engine/support/text.h"
#include "profiler/query/bounded.h"
#include "profiler/query/call_site.h"
#include "profiler/query/function_names.h"
#include "profiler/query/shapes.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr const char* kFrames =
    "SELECT frame_id, coalesce(parent_frame_id, 0) AS parent_frame_id, coalesce(qualname, name) AS qualname, file, line, resume_offset, status, "
    "reason "
    "FROM frames ORDER BY frame_id";
constexpr const char* kEntries =
    "SELECT c.compile_id, c.frame_id, c.attempt, c.kind, c.status, c.error, c.cache, c.log_id, c.dur_ns, coalesce(c.failure_id, "
    "0) AS failure_id "
    "FROM compiles c WHERE c.frame_id IS NOT NULL AND coalesce(c.kind, '') <> 'backward' "
    "AND NOT (c.status = 'failed' AND coalesce(c.error, '') LIKE '%recompile limit exceeded%') ORDER BY c.compile_id";
constexpr const char* kCalls = "SELECT compile_id, kind, calls, total_ns FROM calls";
constexpr const char* kGuardCounts = "SELECT compile_id, count(*) AS count FROM t_guard GROUP BY compile_id";
constexpr const char* kFailedGuards = "SELECT g.compile_id FROM t_guard_failure f JOIN t_guard g ON g.id = f.guard_id";
const std::string kMisses =
    std::string("SELECT f.id, f.frame_id, f.compile_id, coalesce(c.id, 0) AS recompile, f.guard_id, g.kind, g.source, f.guard, f.expected, f.found, f.outcome, f.file, "
    "f.line, (SELECT s.text FROM t_stack s WHERE s.id = g.stack) AS assumption, f.stack AS call, g.file AS guard_file, g.line AS guard_line FROM t_guard_failure f LEFT JOIN t_compile c ON c.failure_id = f.id "
    "LEFT JOIN t_guard g ON g.id = f.guard_id WHERE f.id IN (") + kDecisiveFailures + ") ORDER BY f.id";

using ByFrame = std::unordered_map<int64_t, RecompileChain*>;

Result<void> readEntries(const Reader& reader, const ByFrame& frames) {
  std::unordered_map<int64_t, ChainEntry> facts;
  bool counted = false;
  auto read = reader.each(kCalls, {}, [&](const Statement& s) {
    ChainEntry& e = facts[s.integer("compile_id")];
    counted = true;
    if (s.text("kind") == "guard_check") {
      e.hits = boundedAmount(s.integer("calls"));
    } else {
      e.runs = s.integer("calls");
      e.runNs = s.integer("total_ns");
    }
  });
  if (!read) return read;
  read = reader.each(kGuardCounts, {}, [&](const Statement& s) {
    ChainEntry& e = facts[s.integer("compile_id")];
    e.guards = s.integer("count");
    e.failures = 0;
  });
  if (!read) return read;
  read = reader.each(kFailedGuards, {}, [&](const Statement& s) { ++facts[s.integer("compile_id")].failures; });
  if (!read) return read;
  return reader.each(kEntries, {}, [&](const Statement& s) {
    const auto chain = frames.find(s.integer("frame_id"));
    if (chain == frames.end()) return;
    ChainEntry e = facts[s.integer("compile_id")];
    e.compile = s.integer("compile_id");
    e.attempt = s.integer("attempt");
    e.kind = s.string("kind");
    e.status = s.string("status");
    e.error = s.string("error");
    e.cache = s.string("cache");
    e.logId = s.string("log_id");
    e.compileNs = boundedAmount(s.integer("dur_ns"));
    e.cause = s.integer("failure_id");
    if (counted) {
      e.hits = std::max<int64_t>(0, e.hits);
      e.runs = std::max<int64_t>(0, e.runs);
    }
    RecompileChain& c = *chain->second;
    c.compileNs += e.compileNs;
    if (!c.entries.empty()) c.recompileNs += e.compileNs;
    if (counted) c.hits = std::max<int64_t>(0, c.hits) + e.hits;
    c.entries.push_back(std::move(e));
  });
}

Result<void> readMisses(const Reader& reader, const ByFrame& frames) {
  return reader.each(kMisses.c_str(), {}, [&](const Statement& s) {
    const auto chain = frames.find(s.integer("frame_id"));
    if (chain == frames.end()) return;
    GuardMiss m;
    m.failure = s.integer("id");
    m.frame = s.integer("frame_id");
    m.entry = s.integer("compile_id");
    m.recompile = s.integer("recompile");
    m.guard = s.integer("guard_id");
    m.kind = s.string("kind");
    m.source = sourceWords(s.text("source"));
    m.text = sourceWords(s.text("guard"));
    m.expected = s.string("expected");
    m.found = s.string("found");
    m.outcome = s.string("outcome");
    m.file = s.string("file");
    m.line = s.integer("line");
    m.assumption = parseStack(s.text("assumption"));
    // A library's line, where the failure is told at the program's that called it.
    if (m.assumption.empty() && !s.text("guard_file").empty() && s.text("guard_file") != m.file)
      m.assumption = {{m.file, {}, static_cast<int>(m.line)}, {s.string("guard_file"), {}, static_cast<int>(s.integer("guard_line"))}};
    m.call = parseStack(s.text("call"));
    // A guard of no row still says its kind in its text: "READABLE L['x']".
    if (m.kind.empty() && !m.text.starts_with("tensor '")) {
      const size_t space = m.text.find(' ');
      const std::string first = m.text.substr(0, space);
      if (!first.empty() &&
          std::all_of(first.begin(), first.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; })) {
        m.kind = first;
        if (space != std::string::npos) m.source = m.text.substr(space + 1);
      }
    }
    m.difference = tensorDifference(m.expected, m.found);
    chain->second->misses.push_back(std::move(m));
  });
}

}  // namespace

Result<std::vector<RecompileChain>> recompileChains(const Reader& reader, bool all) {
  std::vector<RecompileChain> chains;
  auto read = reader.each(kFrames, {}, [&](const Statement& s) {
    RecompileChain c;
    c.frame = s.integer("frame_id");
    c.parent = s.integer("parent_frame_id");
    c.name = rootFunction(s.text("qualname"));
    c.file = s.string("file");
    c.line = s.integer("line");
    c.resumeOffset = s.integer("resume_offset");
    c.status = s.string("status");
    c.reason = s.string("reason");
    chains.push_back(std::move(c));
  });
  ByFrame frames;
  std::map<std::tuple<std::string, std::string, int64_t>, std::vector<RecompileChain*>> resumed;  // by name and place
  for (RecompileChain& c : chains) {
    frames[c.frame] = &c;
    if (c.parent != 0) resumed[{c.name, c.file, c.line}].push_back(&c);
  }
  for (auto& [place, parts] : resumed) {
    for (size_t i = 0; parts.size() > 1 && i < parts.size(); ++i) parts[i]->part = static_cast<int>(i) + 1;
  }
  if (read) read = readEntries(reader, frames);
  if (read) read = readMisses(reader, frames);
  if (!read) return tl::unexpected(read.error());
  auto shapes = shapeEntries(reader);
  if (!shapes) return tl::unexpected(shapes.error());
  for (RecompileChain& c : chains) {
    const ShapeEntry* before = nullptr;
    for (ChainEntry& e : c.entries) {
      const auto found = shapes->find(e.compile);
      if (found != shapes->end()) e.shapes = shapeSentences(found->second, before);
      before = found == shapes->end() ? nullptr : &found->second;
    }
  }
  if (!all) std::erase_if(chains, [](const RecompileChain& c) { return c.entries.size() < 2 && c.misses.empty(); });
  std::stable_sort(chains.begin(), chains.end(), [](const RecompileChain& a, const RecompileChain& b) {
    return a.recompileNs != b.recompileNs ? a.recompileNs > b.recompileNs : a.entries.size() > b.entries.size();
  });
  return chains;
}

std::string chainName(const RecompileChain& c) {
  if (c.parent != 0 && c.line > 0 && c.part > 0) return say(FUSEBOX_TEXT("Recompiles", "{}, from line {}, part {}"), c.name, c.line, c.part);
  return c.parent != 0 && c.line > 0 ? say(FUSEBOX_TEXT("Recompiles", "{}, from line {}"), c.name, c.line) : c.name;
}

/// "L['x']", 1 of "L['x'].size()[1]".
static std::optional<GuardProblem::Size> sizeOf(const std::string& source) {
  constexpr std::string_view kSize = ".size()[";
  const size_t at = source.rfind(kSize);
  GuardProblem::Size size;
  if (at == std::string::npos) return std::nullopt;
  const char *begin = source.data() + at + kSize.size(), *end = source.data() + source.size();
  const auto [behind, error] = std::from_chars(begin, end, size.dim);
  if (error != std::errc() || behind + 1 != end || *behind != ']') return std::nullopt;
  size.source = source.substr(0, at);
  return size;
}

bool takesAnyValue(const Reader& reader, const ShapeEntry& entry, const GuardMiss& miss) {
  if (miss.guard == 0 || miss.source.empty()) return false;  // not every log has the guards themselves
  const std::string& source = miss.source;
  const auto isOfSource = [&](const ShapeSpecialisation& s) { return s.source == source; };
  if (std::any_of(entry.specialisations.begin(), entry.specialisations.end(), isOfSource)) return false;
  bool isRecorded = false, isFixed = false;
  const auto read = reader.each("SELECT kind, source, expected FROM guards WHERE compile_id = ?", {entry.compile}, [&](const Statement& s) {
    isRecorded = true;
    const std::string kind = s.string("kind"), whole = sourceWords(s.text("source"));
    const bool isConstant = kind.find("CONSTANT_MATCH") != std::string::npos || kind.find("EQUALS_MATCH") != std::string::npos;
    // A constant that contains the number has it, too.
    isFixed |= isConstant && !whole.empty() && source.starts_with(whole);
    isFixed |= sourceWords(s.text("expected")).starts_with(source + " == ");
  });
  return read && isRecorded && !isFixed;
}

std::vector<Advice> adviseMiss(const Reader& reader, const RecompileChain& chain, const GuardMiss& miss) {
  Sources sources(reader);
  GuardProblem p;
  p.engine = reader.info("engine");
  p.kind = miss.kind;
  p.source = miss.source;
  p.text = miss.text;
  p.expected = miss.expected;
  p.found = miss.found;
  p.outcome = miss.outcome;
  p.file = miss.file;
  p.line = static_cast<int>(miss.line);
  p.codeFile = chain.file;
  p.codeLine = static_cast<int>(chain.line);
  p.call = miss.call;
  if (const auto entry = miss.recompile > 0 ? shapeEntry(reader, miss.recompile) : Result<ShapeEntry>(); entry) {
    p.takesAny = takesAnyValue(reader, *entry, miss);
    for (const ShapeSpecialisation& s : entry->specialisations) {
      if (s.source == miss.source && p.use.empty()) p.use = adviseShape(reader, s);
    }
    for (const ShapeSymbol& s : entry->symbols) {
      const auto size = sizeOf(s.source);
      if (size && !s.before.empty() && !s.after.empty() && s.before != s.after && std::find(p.sizes.begin(), p.sizes.end(), *size) == p.sizes.end()) p.sizes.push_back(*size);
    }
  }
  // What resumes after a break starts in the middle of its function.
  p.isResumed = chain.parent != 0;
  if (p.isResumed) {
    (void)reader.each("SELECT file, line FROM frames WHERE frame_id = ?", {chain.parent}, [&](const Statement& s) {
      p.codeFile = s.string("file");
      p.codeLine = static_cast<int>(s.integer("line"));
    });
  }
  findEntrance(reader, sources, p);
  return adviseGuard(p, sources);
}

}  // namespace fusebox::query
