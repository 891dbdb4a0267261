#include "profiler/query/source_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "engine/support/text.h"

namespace fusebox::query {
namespace {

/// A stretch of the old file, lines [first, last] from 0, that one hunk covers.
struct Stretch {
  int first = 0, last = 0;
};

std::vector<Stretch> stretchesOf(const std::vector<LineEdit>& edits, int lines, int context) {
  std::vector<Stretch> out;
  for (const LineEdit& edit : edits) {
    const int first = std::max(0, edit.line - 1 - context);
    // An insertion covers no line of its own.
    const int end = edit.line - 1 + (edit.kind == LineEdit::Kind::InsertBefore ? 0 : 1) + context;
    const int last = std::min(lines, end) - 1;
    if (!out.empty() && first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, last);
    } else {
      out.push_back({first, last});
    }
  }
  return out;
}

/// How a line of `source` ends there: "\n", "\r\n", or without a newline as the last one.
std::string_view endingOf(std::string_view line, std::string_view source) {
  const auto rest = source.substr(static_cast<size_t>(line.data() + line.size() - source.data()));
  return rest.substr(0, rest.starts_with('\r') ? 2 : rest.starts_with('\n') ? 1 : 0);
}

void addLine(std::string& out, char mark, std::string_view line, std::string_view ending) {
  out += mark;
  out += line;
  out += ending;
  if (!ending.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

}  // namespace

std::vector<std::string_view> splitLines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.push_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

std::string unifiedDiff(const std::string& path, std::string_view source, std::vector<LineEdit> edits, int context) {
  const auto lines = splitLines(source);
  const int count = static_cast<int>(lines.size());
  std::stable_sort(edits.begin(), edits.end(), [](const LineEdit& a, const LineEdit& b) { return a.line < b.line; });
  for (const LineEdit& edit : edits) {
    if (edit.line < 1 || edit.line > count) return {};
  }
  // New lines end as the first one does.
  const std::string_view newline = !lines.empty() && endingOf(lines[0], source) == "\r\n" ? "\r\n" : "\n";
  std::string out;
  int shift = 0;
  auto edit = edits.begin();
  for (const Stretch& stretch : stretchesOf(edits, count, context)) {
    std::string body;
    int before = 0, after = 0;
    for (int at = stretch.first; at <= stretch.last + 1; ++at) {
      bool gone = false;
      for (; edit != edits.end() && edit->line == at + 1; ++edit) {
        if (edit->kind != LineEdit::Kind::InsertBefore && !gone && at <= stretch.last) {
          const std::string_view line = lines[static_cast<size_t>(at)];
          addLine(body, '-', line, endingOf(line, source));
          ++before;
          gone = true;
        }
        if (edit->kind == LineEdit::Kind::Remove) continue;
        for (const auto line : splitLines(edit->text.empty() ? "\n" : std::string_view(edit->text))) {
          addLine(body, '+', line, newline);
          ++after;
        }
      }
      if (gone || at > stretch.last) continue;
      const std::string_view line = lines[static_cast<size_t>(at)];
      addLine(body, ' ', line, endingOf(line, source));
      ++before, ++after;
    }
    // A side without lines is said to lie before its first one.
    const int oldStart = stretch.first + (before == 0 ? 0 : 1);
    const int newStart = stretch.first + shift + (after == 0 ? 0 : 1);
    out += fmt::format("@@ -{},{} +{},{} @@\n{}", oldStart, before, newStart, after, body);
    shift += after - before;
  }
  return out.empty() ? out : fmt::format("--- {}\n+++ {}\n{}", path, path, out);
}

std::string pathOfDiff(std::string_view diff) {
  constexpr std::string_view kBefore = "--- ";
  return diff.starts_with(kBefore) ? std::string(diff.substr(kBefore.size(), diff.find('\n') - kBefore.size())) : std::string();
}

Result<std::string> applyDiff(std::string_view source, std::string_view diff) {
  const auto lineOf = [](std::string_view& rest) {  // with its newline
    const std::string_view line = rest.substr(0, rest.find('\n') == std::string_view::npos ? rest.size() : rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    return line;
  };
  std::string out;
  int64_t at = 0;  // lines of the source that are behind
  while (!diff.empty()) {
    const std::string_view line = lineOf(diff);
    int64_t start = 0, count = 1;
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("@@ -")) {
      std::sscanf(std::string(line).c_str(), "@@ -%" SCNd64 ",%" SCNd64, &start, &count);
      for (const int64_t first = count == 0 ? start : start - 1; at < first && !source.empty(); ++at) out += lineOf(source);
      continue;
    }
    // A last line without a newline is told by the line behind it.
    std::string_view text = line.substr(1);
    if (diff.starts_with('\\')) {
      text.remove_suffix(text.ends_with('\n') ? 1 : 0);
      lineOf(diff);
    }
    if (line.starts_with('+')) {
      out += text;
      continue;
    }
    if (lineOf(source) != text) return fail(ErrorCode::InvalidArgument, say(FUSEBOX_TEXT("FileChange", "line {} is not what it was"), at + 1));
    ++at;
    if (line.starts_with(' ')) out += text;
  }
  out += source;
  return out;
}

}  // namespace fusebox::query
