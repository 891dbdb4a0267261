#include "profiler/query/breaks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/support/bounded_json.h"
#include "profiler/query/bounded.h"
#include "profiler/query/break_groups.h"
#include "profiler/query/function_names.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr int64_t kMostCalls = 500'000;  // read to measure what lies between graphs
constexpr int kMostBetween = 64;         // compiled calls inside the Python between two graphs

std::vector<BreakInstruction> parseCode(std::string_view json) {
  constexpr size_t kMost = 2000;
  std::vector<BreakInstruction> out;
  const auto parsed = parseBounded(json);
  if (!parsed.is_array()) return out;
  const auto number = [](const nlohmann::json& o, const char* key, int64_t otherwise) {
    const auto found = o.find(key);
    return found != o.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
  };
  const auto text = [](const nlohmann::json& o, const char* key) {
    const auto found = o.find(key);
    return found != o.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  for (const auto& one : parsed) {
    if (!one.is_object() || out.size() == kMost) continue;
    out.push_back(
        {number(one, "offset", 0), number(one, "line", 0), number(one, "to", -1), text(one, "op"), text(one, "arg")});
  }
  return out;
}

/// Frames and compiles, to tell what belongs to one code object.
struct Program {
  struct Frame {
    int64_t parent = 0, resumeOffset = 0;
    std::string name;
  };
  struct Compile {
    int64_t frame = 0, thread = 0, startNs = 0, endNs = 0, operators = 0;
    bool nested = false;
  };
  std::unordered_map<int64_t, Frame> frames;
  std::map<int64_t, Compile> compiles;
  std::unordered_map<int64_t, std::vector<int64_t>> compilesOf;            ///< of a frame
  std::unordered_map<int64_t, std::vector<int64_t>> resumedFrom;           ///< frames whose parent it is
  std::unordered_map<std::string, std::vector<int64_t>> framesNamed;
  std::unordered_map<int64_t, int64_t> runs;  ///< of an entry

  int64_t rootOf(int64_t frame) const {
    const auto found = frames.find(frame);
    return found != frames.end() && found->second.parent != 0 ? found->second.parent : frame;
  }
  int64_t rootOfCompile(int64_t compile) const {
    const auto found = compiles.find(compile);
    return found == compiles.end() ? 0 : rootOf(found->second.frame);
  }
  /// Whether an entry is of that function, whatever classes stand before either name.
  bool isOf(int64_t compile, std::string_view function) const {
    const auto found = frames.find(rootOfCompile(compile));
    const auto last = [](std::string_view name) { return name.substr(name.rfind('.') + 1); };
    return found != frames.end() && !function.empty() && last(found->second.name) == last(function);
  }
};

Result<Program> readProgram(const Reader& reader) {
  Program out;
  auto read =
      reader.each("SELECT frame_id, coalesce(parent_frame_id, 0) AS parent_frame_id, resume_offset, name FROM frames", {},
                  [&](const Statement& s) { out.frames[s.integer("frame_id")] = {s.integer("parent_frame_id"), s.integer("resume_offset"), s.string("name")}; });
  if (read) {
    read = reader.each(
        "SELECT c.compile_id, coalesce(c.frame_id, 0) AS frame_id, coalesce(c.thread, 0) AS thread, c.start_ns, c.end_ns, "
        "c.parent_compile_id IS NOT NULL AS is_part, coalesce(g.operators, 0) AS operators FROM compiles c LEFT JOIN "
        "(SELECT compile_id, sum(max(0, node_count - input_count)) AS operators FROM t_graph WHERE stage = 'captured' GROUP BY compile_id) g "
        "ON g.compile_id = c.compile_id",
        {}, [&](const Statement& s) {
          out.compiles[s.integer("compile_id")] = {s.integer("frame_id"),
                                        s.integer("thread"),
                                        boundedTime(s.integer("start_ns")),
                                        boundedTime(s.integer("end_ns")),
                                        std::max<int64_t>(0, s.integer("operators")),
                                        s.integer("is_part") != 0};
        });
  }
  if (read) {
    read = reader.each("SELECT compile_id, kind, calls FROM calls", {}, [&](const Statement& s) {
      // The run that compiled is no hit, so an entry without a graph has been passed once more than its guards say.
      int64_t& runs = out.runs[s.integer("compile_id")];
      runs = std::max(runs, boundedAmount(s.integer("calls")) + (s.text("kind") == "call" ? 0 : 1));
    });
  }
  if (!read) return tl::unexpected(read.error());
  for (const auto& [id, c] : out.compiles) out.compilesOf[c.frame].push_back(id);
  for (const auto& [id, frame] : out.frames) {
    out.resumedFrom[frame.parent].push_back(id);
    out.framesNamed[frame.name].push_back(id);
  }
  return out;
}

/// What is recorded of the first of equal breaks.
Result<void> readFirst(const Reader& reader, BreakSummary& b, std::optional<Statement>& statement) {
  if (!statement) {
    auto prepared = reader.prepare("SELECT frame, hint, end_line, col, end_col, opcode, offset, stack, bytecode FROM graph_breaks WHERE break_id = ?");
    if (!prepared) return tl::unexpected(prepared.error());
    statement = std::move(*prepared);
  }
  Statement& s = *statement;
  s.reset();
  s.bind(1, b.id);
  if (auto row = s.step(); !row || !*row) return row ? Result<void>() : tl::unexpected(row.error());
  b.function = s.string("frame");
  b.endLine = s.integer("end_line");
  b.column = s.isNull("col") ? -1 : s.integer("col");
  b.endColumn = s.isNull("end_col") ? -1 : s.integer("end_col");
  b.opcode = s.string("opcode");
  b.offset = s.isNull("offset") ? -1 : s.integer("offset");
  b.stack = parseStack(s.text("stack"));
  b.code = parseCode(s.text("bytecode"));
  const auto listed = std::find_if(b.stack.rbegin(), b.stack.rend(), [&](const StackPlace& p) { return p.file == b.file && p.line == b.line; });
  if (listed != b.stack.rend() && !listed->function.empty()) b.function = listed->function;
  return {};
}

/// Groups of one place, kind and reason, whichever frame or hint they have.
Result<std::vector<BreakSummary>> readDistinct(const Reader& reader, const std::vector<BreakGroup>& groups) {
  std::vector<BreakSummary> out;
  std::map<std::tuple<std::string, int64_t, int64_t, std::string, std::string, StackPlace>, size_t> index;
  std::optional<Statement> first;
  for (const BreakGroup& g : groups) {
    std::string reason = breakReason(g.reason);
    // Without a file its function says where it is.
    const auto [at, isNew] = index.try_emplace({g.file, g.file.empty() ? g.frame : 0, g.line, g.kind, reason, g.inside}, out.size());
    if (isNew) {
      BreakSummary b;
      b.id = g.first;
      b.frame = g.frame;
      b.compile = g.met.front().second;
      b.kind = g.kind;
      b.reason = std::move(reason);
      b.recorded = g.reason;
      b.hint = g.hint;
      b.file = g.file;
      b.line = g.line;
      b.inside = g.inside;
      if (auto read = readFirst(reader, b, first); !read) return tl::unexpected(read.error());
      out.push_back(std::move(b));
    }
    BreakSummary& b = out[at->second];
    for (const auto& [id, compile] : g.met) {
      b.ids.push_back(id);
      b.before.push_back({.compile = compile});
    }
  }
  for (BreakSummary& b : out) std::sort(b.ids.begin(), b.ids.end());
  return out;
}

/// Which break an entry ends in: position in the list.
using BreakOfCompile = std::unordered_map<int64_t, size_t>;

struct Call {
  int64_t compile = 0, startNs = 0, endNs = 0;
};

/// What lies between two graphs of one code object, from the calls of one thread in order of time.
class GapReader {
 public:
  GapReader(const Program& program, const BreakOfCompile& breaks, std::vector<BreakSummary>& out,
            std::vector<std::set<int64_t>>& resumed)
      : program_(program), breaks_(breaks), out_(out), resumed_(resumed) {
    for (const auto& [id, c] : program.compiles) {
      if (!c.nested && c.endNs > c.startNs) compiling_.emplace_back(c.startNs, c.endNs);
    }
    std::sort(compiling_.begin(), compiling_.end());
  }

  void add(int64_t thread, const Call& call) {
    auto& open = open_[thread];
    const int64_t root = program_.rootOfCompile(call.compile);
    for (size_t i = open.size(); i-- > 0;) {
      Open& o = open[i];
      if (o.root != root) {
        o.innerNs += boundedAmount(call.endNs - call.startNs);
        if (++o.inner > kMostBetween) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      close(o, call);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    if (const auto found = breaks_.find(call.compile); found != breaks_.end())
      open.push_back({found->second, root, call.endNs, 0, 0});
  }

 private:
  struct Open {
    size_t at = 0;
    int64_t root = 0, sinceNs = 0, innerNs = 0;
    int inner = 0;
  };

  void close(const Open& o, const Call& next) {
    const auto compiled = program_.compiles.find(next.compile);
    if (compiled == program_.compiles.end()) return;
    const auto frame = program_.frames.find(compiled->second.frame);
    // The function from its start is a new call, not what comes after the break.
    if (frame == program_.frames.end() || frame->second.parent == 0) return;
    BreakSummary& b = out_[o.at];
    const int64_t compileNs = compiledIn(o.sinceNs, next.startNs);
    b.lostNs = std::max<int64_t>(0, b.lostNs) + boundedAmount(next.startNs - o.sinceNs - o.innerNs - compileNs);
    b.compileNs += compileNs;
    ++b.measured;
    resumed_[o.at].insert(compiled->second.frame);
  }

  int64_t compiledIn(int64_t from, int64_t to) const {
    int64_t sum = 0;
    for (auto at = std::lower_bound(compiling_.begin(), compiling_.end(), std::pair<int64_t, int64_t>{from, 0});
         at != compiling_.end() && at->first < to; ++at) {
      sum += boundedAmount(std::min(at->second, to) - at->first);
    }
    return sum;
  }

  const Program& program_;
  const BreakOfCompile& breaks_;
  std::vector<BreakSummary>& out_;
  std::vector<std::set<int64_t>>& resumed_;
  std::vector<std::pair<int64_t, int64_t>> compiling_;
  std::unordered_map<int64_t, std::vector<Open>> open_;
};

/// Offsets at which code can go on after the break, where no call has shown it.
std::vector<int64_t> successorsOf(const BreakSummary& b) {
  std::vector<int64_t> out;
  size_t at = 0;
  while (at < b.code.size() && b.code[at].offset != b.offset) ++at;
  while (at < b.code.size() && (b.code[at].op == "KW_NAMES" || b.code[at].op == "PRECALL")) ++at;
  if (at >= b.code.size()) return out;
  if (at + 1 < b.code.size()) out.push_back(b.code[at + 1].offset);
  if (b.code[at].to >= 0) out.push_back(b.code[at].to);
  return out;
}

BreakPiece pieceOf(const Program& program, int64_t frame) {
  BreakPiece piece;
  piece.frame = frame;
  if (const auto found = program.frames.find(frame); found != program.frames.end())
    piece.offset = found->second.resumeOffset;
  const auto compiles = program.compilesOf.find(frame);
  if (compiles == program.compilesOf.end()) return piece;
  for (const int64_t id : compiles->second) {
    const Program::Compile& c = program.compiles.at(id);
    ++piece.entries;
    if (piece.compile == 0) piece.compile = id, piece.operators = c.operators;
    piece.compileNs += boundedAmount(c.endNs - c.startNs);
  }
  return piece;
}

void addPieces(const Program& program, BreakSummary& b, std::set<int64_t> resumed) {
  std::set<int64_t> starts;
  for (const BreakPiece& piece : b.before) {
    if (const auto found = program.compiles.find(piece.compile); found != program.compiles.end())
      starts.insert(found->second.frame);
  }
  b.before.clear();
  for (const int64_t frame : starts) b.before.push_back(pieceOf(program, frame));
  const int64_t root = program.rootOf(b.frame);
  const auto next = successorsOf(b);
  if (const auto pieces = program.resumedFrom.find(root); resumed.empty() && root != 0 && pieces != program.resumedFrom.end()) {
    for (const int64_t id : pieces->second) {
      if (std::find(next.begin(), next.end(), program.frames.at(id).resumeOffset) != next.end()) resumed.insert(id);
    }
  }
  for (const StackPlace& p : b.stack) {
    const auto named = program.framesNamed.find("torch_dynamo_resume_in_" + p.function + "_at_" + std::to_string(p.line));
    if (named != program.framesNamed.end()) resumed.insert(named->second.begin(), named->second.end());
  }
  for (const int64_t frame : resumed) b.after.push_back(pieceOf(program, frame));
  if (b.measured == 0) {
    for (const BreakPiece& piece : b.after) b.compileNs += piece.compileNs;
  }
}

Result<std::vector<BreakSummary>> breakSummaries(const Reader& reader, const std::vector<BreakGroup>& groups) {
  auto out = readDistinct(reader, groups);
  if (!out || out->empty()) return out;
  auto program = readProgram(reader);
  if (!program) return tl::unexpected(program.error());
  BreakOfCompile breaks;
  for (size_t i = 0; i < out->size(); ++i) {
    const std::vector<BreakPiece>& before = (*out)[i].before;
    // Callers that a break inside of what they call stopped are stopped before that call: it is passed there, where it is compiled by itself.
    const auto isOfLine = [&](const BreakPiece& piece) { return program->isOf(piece.compile, (*out)[i].function); };
    const bool isCompiledThere = std::any_of(before.begin(), before.end(), isOfLine);
    for (const BreakPiece& piece : before) {
      if (piece.compile == 0 || !breaks.try_emplace(piece.compile, i).second || (isCompiledThere && !isOfLine(piece))) continue;
      if (const auto runs = program->runs.find(piece.compile); runs != program->runs.end())
        (*out)[i].crossings = std::max<int64_t>(0, (*out)[i].crossings) + runs->second;
    }
  }
  std::vector<std::set<int64_t>> resumed(out->size());
  GapReader gaps(*program, breaks, *out, resumed);
  auto read = reader.each("SELECT thread, compile_id, start_ns, dur_ns FROM t_call ORDER BY id LIMIT ?", {kMostCalls},
                          [&](const Statement& s) {
                            const int64_t start = boundedTime(s.integer("start_ns"));
                            gaps.add(s.integer("thread"), {s.integer("compile_id"), start, start + boundedAmount(s.integer("dur_ns"))});
                          });
  if (!read) return tl::unexpected(read.error());
  for (size_t i = 0; i < out->size(); ++i) addPieces(*program, (*out)[i], std::move(resumed[i]));
  std::stable_sort(out->begin(), out->end(), [](const BreakSummary& a, const BreakSummary& b) {
    return std::max<int64_t>(0, a.lostNs) + a.compileNs > std::max<int64_t>(0, b.lostNs) + b.compileNs;
  });
  return out;
}

}  // namespace

Result<std::vector<BreakSummary>> breakSummaries(const Reader& reader) {
  auto groups = breakGroups(reader);
  if (!groups) return tl::unexpected(groups.error());
  return breakSummaries(reader, *groups);
}

Result<std::vector<BreakSummary>> stopSummaries(const Reader& reader) {
  auto groups = breakGroups(reader);
  if (!groups) return tl::unexpected(groups.error());
  auto coverage = coverageOf(reader, *groups);
  if (!coverage) return tl::unexpected(coverage.error());
  auto breaks = breakSummaries(reader, *groups);
  if (!breaks) return breaks;
  std::vector<BreakSummary> out;
  for (const Uncompiled& u : coverage->uncompiled) {
    BreakSummary b;
    b.id = -1 - static_cast<int64_t>(out.size());
    b.ids.assign(static_cast<size_t>(std::clamp<int64_t>(u.count, 1, 1000)), b.id);
    b.frame = u.frame;
    b.compile = u.compile;
    b.kind = u.kind;
    b.reason = u.reason;
    b.hint = u.hint;
    b.error = u.error;
    b.function = u.function;
    b.file = u.file;
    b.line = u.line;
    b.isFailure = true;
    out.push_back(std::move(b));
  }
  std::move(breaks->begin(), breaks->end(), std::back_inserter(out));
  return out;
}

std::vector<Advice> adviseBreak(const Reader& reader, const BreakSummary& b) {
  if (b.isFailure) return adviseUncompiled({.function = b.function, .kind = b.kind, .reason = b.reason, .hint = b.hint, .error = b.error, .file = b.file});
  Sources sources(reader);
  // What the break is about stands where it happened.
  const StackPlace at = b.inside.file.empty() ? StackPlace{b.file, b.function, static_cast<int>(b.line)} : b.inside;
  return adviseBreak({reader.info("engine"), b.kind, b.recorded, b.hint, b.opcode, at.file, at.line, b.stack}, sources);
}

}  // namespace fusebox::query
