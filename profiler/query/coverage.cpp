// Which functions run in compiled code, and what stands in the way of the others.
#include "profiler/query/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/support/text.h"
#include "profiler/query/function_names.h"
#include "profiler/query/holdings.h"
#include "profiler/query/summary.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;
using Verdict = FunctionCoverage::Verdict;

constexpr const char* kLeft = "frame left to Python";

struct Frame {
  std::string name, qualname, file, status, reason;
  int64_t parent = 0, line = 0;
  bool resumes = false;
};

/// Frames that compilers run themselves are nobody's.
bool isCompilers(const Frame& f) { return f.reason == "tracing is active" || f.reason == "functionalisation is active"; }

/// Of an installed library, of Python, or written by Python for a class (dataclasses).
bool isLibrarys(const Frame& f) {
  return (f.file == "<string>" && f.qualname.starts_with("__create_fn__.")) || (!f.file.empty() && !StackPlace{f.file, {}, 0}.isUsers());
}

class CoverageReader {
 public:
  CoverageReader(const Reader& reader, const std::vector<BreakGroup>& breaks) : reader_(reader), breaks_(breaks) {}

  Result<Coverage> read() {
    using Part = Result<void> (CoverageReader::*)();
    for (const Part part : {&CoverageReader::readFrames, &CoverageReader::readCompiles, &CoverageReader::readBreaks, &CoverageReader::readGraphs,
                            &CoverageReader::readRecompiles, &CoverageReader::readLosses}) {
      if (auto done = (this->*part)(); !done) return tl::unexpected(done.error());
    }
    judge();
    return std::move(out_);
  }

 private:
  Result<void> readFrames() {
    auto read = reader_.each(
        "SELECT frame_id, coalesce(parent_frame_id, 0) AS parent_frame_id, name, qualname, file, line, resume_offset IS NOT NULL AS has_resume_offset, status, "
        "reason FROM frames ORDER BY frame_id",
        {}, [&](const Statement& s) {
          Frame f{s.string("name"), s.string("qualname"), s.string("file"), s.string("status"), s.string("reason"), s.integer("parent_frame_id"), s.integer("line"), false};
          f.resumes = (s.integer("has_resume_offset") != 0 && f.parent != 0) || isResumeName(f.name);
          frames_.emplace(s.integer("frame_id"), std::move(f));
        });
    if (!read) return read;
    for (const auto& [id, f] : frames_) root_[id] = rootOf(id);
    for (const auto& [id, f] : frames_) {
      if (root_[id] != id || isCompilers(f)) continue;
      index_.emplace(id, out_.functions.size());
      out_.functions.push_back({.frame = id,
                                .name = f.qualname.empty() ? rootFunction(f.name) : f.qualname,
                                .file = f.file,
                                .line = f.line,
                                .why = {},
                                .ofLibrary = isLibrarys(f)});
    }
    return {};
  }

  /// The frame that a piece after a break belongs to: its parent, or the function of its name that starts nearest above.
  int64_t rootOf(int64_t id) const {
    const Frame* f = &frames_.at(id);
    for (int depth = 0; f->parent != 0 && depth < 64; ++depth) {
      const auto above = frames_.find(f->parent);
      if (above == frames_.end()) break;
      id = above->first;
      f = &above->second;
    }
    if (!isResumeName(f->name)) return id;
    const std::string name = rootFunction(f->name);
    int64_t best = id, line = -1;
    for (const auto& [other, g] : frames_) {
      if (g.resumes || g.name != name || g.file != f->file || g.line > f->line || g.line <= line) continue;
      best = other;
      line = g.line;
    }
    return best;
  }

  FunctionCoverage* functionOf(int64_t frame) {
    const auto root = root_.find(frame);
    const auto at = root == root_.end() ? index_.end() : index_.find(root->second);
    return at == index_.end() ? nullptr : &out_.functions[at->second];
  }

  Result<void> readCompiles() {
    struct Failed {
      Uncompiled what;
      int64_t last;  ///< its newest compile
    };
    std::vector<Failed> failed;
    std::map<std::pair<int64_t, std::string>, size_t> known;
    std::map<int64_t, int64_t> newestGood;  // by frame
    auto read = reader_.each(
        "SELECT c.compile_id, coalesce(c.frame_id, p.frame_id, 0) AS frame_id, c.status, c.error, c.attempt, c.file, c.line, c.frame, c.kind "
        "FROM compiles c LEFT JOIN compiles p ON p.compile_id = c.parent_compile_id ORDER BY c.compile_id",
        {}, [&](const Statement& s) {
          const int64_t id = s.integer("compile_id"), frame = s.integer("frame_id");
          FunctionCoverage* function = functionOf(frame);
          if (function) function->restarts += std::max<int64_t>(0, std::min<int64_t>(s.integer("attempt"), 1'000'000));
          if (s.text("status") != "failed") {
            if (s.isNull("status") || s.text("kind") == "backward") return;
            if (s.text("status") == "saved") {
              if (function) function->verdict = Verdict::Saved;
              return;
            }
            if (function) ++function->entries;
            newestGood[frame] = id;
            return;
          }
          const auto [at, isNew] = known.try_emplace({frame, s.string("error")}, failed.size());
          if (!isNew) {
            ++failed[at->second].what.count;
            failed[at->second].last = id;
            return;
          }
          Uncompiled what{.frame = frame, .compile = id, .function = function ? function->name : s.string("frame"), .file = s.string("file"), .line = s.integer("line")};
          readError(s.text("error"), what);
          if (s.text("kind") == "backward") what.kind += " (backward)";
          failed.push_back({std::move(what), id});
        });
    if (!read) return read;
    for (Failed& f : failed) {
      const auto good = newestGood.find(f.what.frame);
      f.what.recovered = good != newestGood.end() && good->second > f.last;
      failedFrames_.insert(f.what.frame);
      out_.uncompiled.push_back(std::move(f.what));
    }
    for (const auto& [id, f] : frames_) addFrame(id, f);
    return {};
  }

  /// Frames that say themselves that they run in Python.
  void addFrame(int64_t id, const Frame& f) {
    if (isCompilers(f) || f.status.empty() || f.status == "compiled" || f.status == "saved") return;
    if (f.status == "failed" && failedFrames_.contains(id)) return;
    const FunctionCoverage* function = functionOf(id);
    Uncompiled what{.frame = id, .function = function ? function->name : f.name, .file = f.file, .line = f.line};
    readError(f.reason, what);
    if (f.status == "limit") what.kind = "recompile limit";
    if (f.status == "skipped") what.kind = kLeft;
    out_.uncompiled.push_back(std::move(what));
  }

  Result<void> readBreaks() {
    std::map<int64_t, std::set<std::tuple<std::string, std::string, std::string, int64_t, StackPlace>>> known;  // told apart as in the list of breaks
    std::set<std::tuple<int64_t, int64_t, std::string>> places;
    for (const BreakGroup& b : breaks_) {
      places.emplace(b.frame, b.line, b.file);
      FunctionCoverage* function = functionOf(b.frame);
      if (!function || !known[function->frame].emplace(b.kind, breakReason(b.reason), b.file, b.line, b.inside).second) continue;
      if (++function->breaks > 1) continue;
      function->breakId = b.first;
      const std::string told = breakWords(b.kind, b.reason);
      function->why = say(FUSEBOX_TEXT("Coverage", "graph break: {}"), told);
    }
    // No second piece can go on behind the break, so the whole function is left to Python.
    for (Uncompiled& u : out_.uncompiled)
      if (u.compile != 0 && places.contains({u.frame, u.line, u.file})) u.kind = kGivenUp;
    return {};
  }

  /// Functions of which some piece became a graph: what only broke runs in Python, whatever its bytecode was made into.
  Result<void> readGraphs() {
    return reader_.each("SELECT DISTINCT frame_id FROM graphs WHERE frame_id IS NOT NULL", {}, [&](const Statement& s) {
      if (const FunctionCoverage* function = functionOf(s.integer("frame_id"))) withGraphs_.insert(function->frame);
    });
  }

  Result<void> readRecompiles() {
    return reader_.each("SELECT frame_id FROM compiles WHERE failure_id IS NOT NULL AND kind <> 'backward'", {}, [&](const Statement& s) {
      if (FunctionCoverage* function = functionOf(s.integer("frame_id"))) ++function->recompiles;
    });
  }

  Result<void> readLosses() {
    const bool told = std::any_of(out_.uncompiled.begin(), out_.uncompiled.end(), [](const Uncompiled& u) { return u.kind == kLeft; });
    return reader_.each("SELECT what, detail, count FROM losses ORDER BY what", {}, [&](const Statement& s) {
      if (!leftToEager({s.string("what"), {}, 0}) || (told && s.text("what") == kLeft)) return;
      out_.uncompiled.push_back({.function = {}, .kind = s.string("what"), .reason = s.string("detail"), .hint = {}, .error = s.string("detail"), .file = {}, .count = s.integer("count")});
    });
  }

  void judge() {
    for (const Uncompiled& what : out_.uncompiled) {
      FunctionCoverage* function = what.recovered ? nullptr : functionOf(what.frame);
      if (!function) continue;
      function->verdict = Verdict::Partly;
      function->compile = what.compile;
      function->breakId = 0;
      function->why = what.reason.empty() ? what.kind : fmt::format("{}: {}", what.kind, what.reason);
    }
    const bool knowsGraphs = holdingsOf(reader_).has(Holding::Graphs);
    std::erase_if(out_.functions, [&](FunctionCoverage& f) {
      if (f.entries == 0 && f.verdict == Verdict::Partly) f.verdict = Verdict::Not;
      if (f.breaks > 0 && f.verdict == Verdict::Whole) f.verdict = knowsGraphs && !withGraphs_.contains(f.frame) ? Verdict::Not : Verdict::Partly;
      return f.entries == 0 && f.verdict == Verdict::Whole;  // being compiled, or only looked at
    });
    if (!holdingsOf(reader_).has(Holding::Breaks))
      for (FunctionCoverage& f : out_.functions) f.verdict = f.verdict == Verdict::Whole ? Verdict::AtLeastPartly : f.verdict;
    std::stable_sort(out_.functions.begin(), out_.functions.end(), [](const auto& a, const auto& b) { return a.ofLibrary != b.ofLibrary ? b.ofLibrary : a.verdict > b.verdict; });
    std::stable_sort(out_.uncompiled.begin(), out_.uncompiled.end(), [](const auto& a, const auto& b) { return a.recovered < b.recovered; });
  }

  const Reader& reader_;
  const std::vector<BreakGroup>& breaks_;
  Coverage out_;
  std::map<int64_t, Frame> frames_;
  std::unordered_map<int64_t, int64_t> root_;
  std::unordered_map<int64_t, size_t> index_;
  std::set<int64_t> failedFrames_, withGraphs_;
};

}  // namespace

const char* verdictName(Verdict verdict) {
  static constexpr const char* kNames[] = {"whole", "partly", "not", "saved", "at_least_partly"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string verdictTitle(Verdict verdict) {
  static constexpr Text kTitles[] = {FUSEBOX_TEXT("Coverage", "compiled"), FUSEBOX_TEXT("Coverage", "partly compiled"),
                                     FUSEBOX_TEXT("Coverage", "not compiled"), FUSEBOX_TEXT("Coverage", "saved, not compiled here"),
                                     FUSEBOX_TEXT("Coverage", "compiled at least in part")};
  return say(kTitles[static_cast<size_t>(verdict)]);
}

Result<Coverage> coverageOf(const Reader& reader, const std::vector<BreakGroup>& breaks) { return CoverageReader(reader, breaks).read(); }

Result<Coverage> coverageOf(const Reader& reader) {
  auto breaks = breakGroups(reader);
  if (!breaks) return tl::unexpected(breaks.error());
  return coverageOf(reader, *breaks);
}

std::string coverageSentence(const Coverage& coverage) {
  std::string out;
  for (const bool ofLibrary : {false, true}) {
    int64_t counts[5] = {}, all = 0;
    for (const FunctionCoverage& f : coverage.functions) {
      if (f.ofLibrary == ofLibrary) ++counts[static_cast<size_t>(f.verdict)], ++all;
    }
    std::string list;
    for (const Verdict verdict : {Verdict::Whole, Verdict::AtLeastPartly, Verdict::Partly, Verdict::Not, Verdict::Saved}) {
      const int64_t count = counts[static_cast<size_t>(verdict)];
      if (count > 0) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, verdictTitle(verdict));
    }
    if (list.empty()) continue;
    out += (out.empty() ? "" : "; ") +
           (ofLibrary ? sayCount(FUSEBOX_TEXT("Coverage", "{} function of libraries: {}"), FUSEBOX_TEXT("Coverage", "{} functions of libraries: {}"), all, list)
                      : sayCount(FUSEBOX_TEXT("Coverage", "{} function: {}"), FUSEBOX_TEXT("Coverage", "{} functions: {}"), all, list));
  }
  return out;
}

nlohmann::json toJson(const std::vector<Uncompiled>& list) {
  nlohmann::json out = nlohmann::json::array();
  for (const Uncompiled& u : list) {
    nlohmann::json advice = nlohmann::json::array();
    for (const Advice& a : adviseUncompiled(u)) advice.push_back({{"title", a.title}, {"text", a.text}, {"diff", a.diff}});
    out.push_back({{"kind", u.kind}, {"reason", u.reason}, {"hint", u.hint}, {"error", u.error}, {"function", u.function}, {"file", u.file},
                   {"line", u.line}, {"count", u.count}, {"frame", u.frame}, {"compile", u.compile}, {"recovered", u.recovered},
                   {"advice", std::move(advice)}});
  }
  return out;
}

}  // namespace fusebox::query
