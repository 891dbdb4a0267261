#include "engine/debug/breakpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/support/message_fields.h"

namespace fusebox::debug {
namespace {

using nlohmann::json;

using control::kKindNames;
using control::textField;

static_assert(kKindNames.size() == kKinds);
constexpr size_t kMaxField = 4096;

}  // namespace

const char* name(Kind kind) { return kKindNames[static_cast<size_t>(kind)].data(); }

std::optional<Kind> kindNamed(const std::string& name) {
  const auto found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) return std::nullopt;
  return static_cast<Kind>(found - kKindNames.begin());
}

bool matchesPattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool isSameFile(std::string_view path, std::string_view wanted) {
  while (wanted.starts_with("./")) wanted.remove_prefix(2);
  if (path == wanted) return true;
  return path.size() > wanted.size() && path.ends_with(wanted) && path[path.size() - wanted.size() - 1] == '/';
}

bool Breakpoint::matches(const Event& event) const {
  if (!enabled || event.kind != kind) return false;
  if (line > 0 && (line != event.line || !event.isNewLine)) return false;
  if (kind == Kind::Line && line == 0 && !event.isEntry) return false;
  if (when && event.when != When::At && *when != event.when) return false;
  if (!file.empty() && !(event.file && isSameFile(event.file, file))) return false;
  return text.empty() || std::any_of(event.names.begin(), event.names.end(),
                                     [&](const std::string& name) { return matchesPattern(text, name); });
}

Result<Breakpoint> breakpointFrom(const json& description) {
  Breakpoint made;
  const std::string kindText = textField(description, "kind");
  const auto kind = kindNamed(kindText);
  if (!kind)
    return fail(ErrorCode::InvalidArgument, "there are no breakpoints of kind \"" + kindText.substr(0, 40) + "\"");
  made.kind = *kind;
  made.file = textField(description, "file");
  made.text = textField(description, "name");
  if (made.file.size() > kMaxField || made.text.size() > kMaxField)
    return fail(ErrorCode::InvalidArgument, "that name is too long");
  if (const auto line = description.find("line"); line != description.end() && line->is_number_integer())
    made.line = static_cast<int>(std::clamp<int64_t>(line->get<int64_t>(), 0, 1 << 30));
  const std::string when = textField(description, "when");
  if (when == "before")
    made.when = When::Before;
  else if (when == "after")
    made.when = When::After;
  else if (!when.empty())
    return fail(ErrorCode::InvalidArgument, "\"when\" is before or after");
  if (const auto once = description.find("once"); once != description.end() && once->is_boolean())
    made.once = once->get<bool>();
  if (const auto on = description.find("enabled"); on != description.end() && on->is_boolean())
    made.enabled = on->get<bool>();
  if (const auto ignore = description.find("ignore"); ignore != description.end() && ignore->is_number_integer())
    made.ignore = std::clamp<int64_t>(ignore->get<int64_t>(), 0, int64_t{1} << 40);
  if (const std::string text = textField(description, "if"); !text.empty()) {
    auto condition = Condition::parse(text);
    if (!condition) return fail(ErrorCode::InvalidArgument, "the condition: " + condition.error().message);
    made.condition = std::make_shared<const Condition>(std::move(*condition));
  }
  if (const auto tag = description.find("tag"); tag != description.end() && tag->is_number_integer())
    made.tag = tag->get<int64_t>();
  if (made.kind == Kind::Line && made.line == 0 && made.text.empty())
    return fail(ErrorCode::InvalidArgument, "a place in the program needs a file and a line, or a function's name");
  if (made.kind == Kind::Line && made.line > 0 && made.file.empty())
    return fail(ErrorCode::InvalidArgument, "which file? Write FILE:LINE");
  return made;
}

json toJson(const Breakpoint& b) {
  json j{{"breakpoint", b.id}, {"kind", name(b.kind)}, {"enabled", b.enabled}, {"hits", b.hits}};
  if (!b.file.empty()) j["file"] = b.file;
  if (b.line) j["line"] = b.line;
  if (!b.text.empty()) j["name"] = b.text;
  if (b.when) j["when"] = *b.when == When::Before ? "before" : "after";
  if (b.tag) j["tag"] = b.tag;
  if (b.once) j["once"] = true;
  if (b.ignore) j["ignore"] = b.ignore;
  if (b.condition) j["if"] = b.condition->text();
  return j;
}

}  // namespace fusebox::debug
