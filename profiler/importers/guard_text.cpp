#include "profiler/importers/guard_text.h"
#include "profiler/importers/text_lines.h"

#include <algorithm>
#include <charconv>

namespace fusebox::importing {
namespace {


bool isKind(std::string_view word) {
  return word.size() > 2 && std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
         });
}

// "mp/demo/recompile.py:16 in f (HINT: type Config)"
void readPlace(std::string_view text, GuardText& guard) {
  const size_t in = text.find(" in ");
  const std::string_view place = text.substr(0, in);
  if (place.starts_with('(')) return;  // PyTorch's own line
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return;
  int64_t line = 0;
  const char* end = place.data() + place.size();
  if (std::from_chars(place.data() + colon + 1, end, line).ptr != end) return;
  guard.file = trim(place.substr(0, colon));
  guard.line = line;
}

std::string_view sourceOf(std::string_view manager) {
  constexpr std::string_view kSource = "source=";
  const size_t start = manager.find(kSource);
  if (start == std::string_view::npos) return {};
  manager.remove_prefix(start + kSource.size());
  return manager.substr(0, std::min<size_t>(manager.find(", accessed_by="), 1000));
}

}  // namespace

GuardText parseGuardLine(std::string_view text) {
  GuardText guard;
  const size_t comment = text.find("  # ");
  guard.code = trim(text.substr(0, comment));
  if (const size_t equals = guard.code.rfind(" == "); equals != std::string::npos)
    guard.expected = guard.code.substr(equals + 4);
  if (comment == std::string_view::npos) return guard;
  const std::string_view comments = text.substr(comment + 2);
  guard.reason = trim(comments.substr(1));
  const size_t last = comments.rfind("# ");
  readPlace(comments.substr(last + 2), guard);
  return guard;
}

std::vector<GuardText> parseGuardTree(std::string_view text) {
  std::vector<GuardText> guards;
  std::vector<std::string> sources;  // of the managers above, by depth
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t mark = line.find("+- ");
    if (mark == std::string_view::npos || mark > 4000) continue;
    const size_t depth = mark / 2;
    const std::string_view item = line.substr(mark + 3);
    const std::string_view kind = item.substr(0, item.find(':'));
    sources.resize(std::min(sources.size(), depth));
    if (!isKind(kind) || kind.size() == item.size()) {
      while (sources.size() < depth) sources.push_back(sources.empty() ? "" : sources.back());
      sources.push_back(std::string(sourceOf(item)));
      continue;
    }
    GuardText guard = parseGuardLine(item.substr(kind.size() + 1));
    guard.kind = kind;
    if (!sources.empty()) guard.source = sources.back();
    if (guard.kind == "TENSOR_MATCH" && guard.expected.empty()) {
      const size_t comma = guard.code.find(", ");
      if (comma != std::string::npos) guard.expected = guard.code.substr(comma + 2);
      if (guard.expected.ends_with(')')) guard.expected.pop_back();
    }
    guards.push_back(std::move(guard));
  }
  return guards;
}

RecompileReason parseRecompileReason(std::string_view text) {
  RecompileReason reason;
  text = trim(text);
  const size_t colon = text.find(": ");
  if (colon != std::string_view::npos && text.substr(0, colon).find('/') != std::string_view::npos &&
      text.substr(0, colon).find_first_not_of("0123456789/!_") == std::string_view::npos) {
    reason.entry = text.substr(0, colon);
    text.remove_prefix(colon + 2);
  }
  reason.guard = parseGuardLine(text);
  const std::string& code = reason.guard.code;
  const size_t expected = code.find("expected "), actual = code.find(", actual ");
  if (expected != std::string::npos && actual != std::string::npos && actual > expected) {
    reason.expected = code.substr(expected + 9, actual - expected - 9);
    reason.found = code.substr(actual + 9);
    // "CONSTANT_MATCH L['n']: expected 1, actual 2" of this engine.
    const std::string named = code.substr(0, code.find(": expected "));
    const size_t space = named.find(' ');
    if (isKind(std::string_view(named).substr(0, space))) {
      reason.guard.kind = named.substr(0, space);
      if (space != std::string::npos) reason.guard.source = named.substr(space + 1);
      reason.guard.code = named;
    }
  } else {
    reason.expected = reason.guard.expected;
  }
  return reason;
}

}  // namespace fusebox::importing
