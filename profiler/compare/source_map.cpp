#include "profiler/compare/source_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "profiler/compare/align.h"
#include "engine/support/file_owner.h"
#include "profiler/query/python_line.h"

namespace fusebox::compare {
namespace {

/// Every file that the session speaks of.
std::set<std::string> filesOf(const Snapshot& s) {
  std::set<std::string> files;
  for (const auto& [file, text] : s.sources) files.insert(file);
  for (const auto& object : s.objects) {
    files.insert(object.place.file);
    for (const auto& x : object.breaks) files.insert(x.place.file);
    for (const auto& x : object.failures) files.insert(x.place.file);
    for (const auto& compile : object.compiles)
      for (const auto& graph : compile.graphs)
        for (const auto& node : graph.nodes) files.insert(node.place.file);
  }
  for (const auto& line : s.lines) files.insert(line.place.file);
  files.erase("");
  return files;
}

/// The user's file where there is one only, libraries left out; else empty.
std::string onlyScript(const Snapshot& s, const std::set<std::string>& files) {
  std::set<std::string> own;
  for (const auto& file : files) {
    if (SourceMap::isUsers(file)) own.insert(file);
  }
  if (own.size() == 1) return *own.begin();
  // Of several, the one that ran: the session names it.
  const auto fact = s.facts.find("script");
  if (fact == s.facts.end()) return {};
  const std::string name(baseName(fact->second.substr(0, fact->second.find(' '))));
  std::string found;
  for (const auto& file : own) {
    if (baseName(file) != name) continue;
    if (!found.empty()) return {};
    found = file;
  }
  return found;
}

/// Lines between two that both texts have, by their numbers.
struct Gap {
  std::vector<int64_t> a, b;
};

std::vector<Gap> gapsOf(const std::vector<Match>& matches) {
  std::vector<Gap> out(1);
  for (const Match& m : matches) {
    if (m.a >= 0 && m.b >= 0) {
      if (!out.back().a.empty() || !out.back().b.empty()) out.emplace_back();
      continue;
    }
    if (m.a >= 0) out.back().a.push_back(m.a + 1);
    if (m.b >= 0) out.back().b.push_back(m.b + 1);
  }
  if (out.back().a.empty() && out.back().b.empty()) out.pop_back();
  return out;
}

}  // namespace

SourceMap::SourceMap(const Snapshot& a, const Snapshot& b) {
  const auto filesA = filesOf(a);
  const std::string scriptA = onlyScript(a, filesA), scriptB = onlyScript(b, filesOf(b));
  std::map<std::string_view, std::vector<const std::string*>> byName;
  for (const auto& file : filesA) byName[baseName(file)].push_back(&file);
  for (const auto& file : filesOf(b)) {
    const std::string* best = nullptr;
    int most = 0;
    if (const auto found = byName.find(baseName(file)); found != byName.end()) {
      for (const std::string* candidate : found->second) {
        const int common = *candidate == file ? 1000 : commonTail(*candidate, file);
        if (common > most) most = common, best = candidate;
      }
    }
    // The same script under another name, where both sessions have one only.
    if (!best && !scriptA.empty() && file == scriptB) best = &scriptA;
    if (!best) continue;
    fileInA_.emplace(file, *best);
    const auto textA = a.sources.find(*best), textB = b.sources.find(file);
    if (textA == a.sources.end() || textB == b.sources.end() || a.imported || b.imported) continue;
    compareTexts(*best, textA->second, file, textB->second);
  }
}

void SourceMap::compareTexts(const std::string& fileA, const std::string& textA, const std::string& fileB, const std::string& textB) {
  const auto linesA = linesOf(textA), linesB = linesOf(textB);
  auto aligned = [words = Vocabulary()](const std::vector<std::string_view>& x, const std::vector<std::string_view>& y) mutable {
    std::vector<int32_t> a, b;
    for (const auto line : x) a.push_back(words.of(std::string(line)));
    for (const auto line : y) b.push_back(words.of(std::string(line)));
    return alignSequences(a, b);
  };
  auto& lines = lineInA_[fileB];
  lines.assign(linesB.size() + 1, 0);
  const auto whole = aligned(linesA, linesB);
  for (const Match& m : whole) {
    if (m.a >= 0 && m.b >= 0) lines[static_cast<size_t>(m.b) + 1] = m.a + 1;
  }
  // As many lines in the place of others are these, rewritten.
  for (const Gap& gap : gapsOf(whole)) {
    for (size_t i = 0; gap.a.size() == gap.b.size() && i < gap.a.size(); ++i) lines[static_cast<size_t>(gap.b[i])] = gap.a[i];
  }
  // Words about the code, and blank lines, are no edit of the program.
  const auto codeA = query::codeLines(linesA), codeB = query::codeLines(linesB);
  const auto trimmed = [](std::string_view line) {
    const size_t start = line.find_first_not_of(" \t");
    return std::string(start == std::string_view::npos ? std::string_view() : line.substr(start));
  };
  Edit edit{.fileA = fileA, .fileB = fileB, .changes = {}};
  for (Gap& gap : gapsOf(aligned(codeA, codeB))) {
    std::erase_if(gap.a, [&](int64_t line) { return codeA[static_cast<size_t>(line - 1)].empty(); });
    std::erase_if(gap.b, [&](int64_t line) { return codeB[static_cast<size_t>(line - 1)].empty(); });
    if (gap.a.empty() && gap.b.empty()) continue;
    Change change{.textA = gap.a.empty() ? std::string() : trimmed(linesA[static_cast<size_t>(gap.a[0] - 1)]),
                  .textB = gap.b.empty() ? std::string() : trimmed(linesB[static_cast<size_t>(gap.b[0] - 1)]), .linesA = {}, .linesB = {}};
    change.linesA = std::move(gap.a), change.linesB = std::move(gap.b);
    edit.changes.push_back(std::move(change));
  }
  if (!edit.changes.empty() && !isFuseboxFile(fileB)) edits_.push_back(std::move(edit));
}

Place SourceMap::inA(const Place& b) const {
  const auto file = fileInA_.find(b.file);
  if (file == fileInA_.end()) return {};
  const auto lines = lineInA_.find(b.file);
  if (lines == lineInA_.end()) return {file->second, b.line};
  return {file->second, b.line > 0 && b.line < static_cast<int64_t>(lines->second.size()) ? lines->second[static_cast<size_t>(b.line)] : 0};
}

bool SourceMap::sameFile(const std::string& a, const std::string& b) const {
  const auto file = fileInA_.find(b);
  return file == fileInA_.end() ? a == b : file->second == a;
}

bool SourceMap::same(const Place& a, const Place& b) const {
  const Place before = inA(b);
  return before.line > 0 && before.line == a.line && before.file == a.file;
}

std::string SourceMap::Change::told(bool inA) const {
  const auto& lines = inA ? linesA : linesB;
  return lines.empty() ? std::string("–") : fmt::format("{}: {}", lines.front(), inA ? textA : textB);
}

bool SourceMap::Change::holds(int64_t line, bool inA) const {
  const auto& lines = inA ? linesA : linesB;
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

bool SourceMap::isUsers(const std::string& file) {
  return !isFuseboxFile(file) && file.find("site-packages/") == std::string::npos && file.find("/lib/python3") == std::string::npos && !file.empty() && file[0] != '<';
}

}  // namespace fusebox::compare
