#include "profiler/compare/source_map.h"

#include <set>

#include "profiler/compare/align.h"
#include "engine/support/file_owner.h"

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
  Vocabulary words;
  const auto linesA = linesOf(textA), linesB = linesOf(textB);
  std::vector<int32_t> a, b;
  for (const auto line : linesA) a.push_back(words.of(std::string(line)));
  for (const auto line : linesB) b.push_back(words.of(std::string(line)));
  auto& lines = lineInA_[fileB];
  lines.assign(linesB.size() + 1, 0);
  Edit edit{.fileA = fileA, .fileB = fileB, .textA = {}, .textB = {}, .linesA = {}, .linesB = {}};
  for (const Match& m : alignSequences(a, b)) {
    if (m.a >= 0 && m.b >= 0) {
      lines[static_cast<size_t>(m.b) + 1] = m.a + 1;
    } else if (m.a >= 0) {
      edit.linesA.push_back(m.a + 1);
    } else {
      edit.linesB.push_back(m.b + 1);
    }
  }
  if ((edit.linesA.empty() && edit.linesB.empty()) || isFuseboxFile(fileB)) return;
  edit.removed = static_cast<int64_t>(edit.linesA.size());
  edit.added = static_cast<int64_t>(edit.linesB.size());
  const auto trimmed = [](std::string_view line) {
    const size_t start = line.find_first_not_of(" \t");
    return std::string(start == std::string_view::npos ? std::string_view() : line.substr(start));
  };
  if (!edit.linesA.empty()) edit.lineA = edit.linesA.front(), edit.textA = trimmed(linesA[static_cast<size_t>(edit.lineA - 1)]);
  if (!edit.linesB.empty()) edit.lineB = edit.linesB.front(), edit.textB = trimmed(linesB[static_cast<size_t>(edit.lineB - 1)]);
  edits_.push_back(std::move(edit));
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

bool SourceMap::isUsers(const std::string& file) {
  return !isFuseboxFile(file) && file.find("site-packages/") == std::string::npos && file.find("/lib/python3") == std::string::npos && !file.empty() && file[0] != '<';
}

}  // namespace fusebox::compare
