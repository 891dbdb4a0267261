#include "engine/debug/site.h"

#include <array>
#include <nlohmann/json.hpp>

#include "engine/support/control_frame.h"

namespace fusebox::debug {

using nlohmann::json;

json Site::detail() { return json::object(); }

Result<json> Site::answer(const std::string& question) {
  return fail(ErrorCode::NotFound, "there is no \"" + question + "\" at this stop");
}

Result<json> TextSite::answer(const std::string& question) {
  if (question != "ir" || !before_) return Site::answer(question);
  const std::string before = before_(), after = after_ ? after_() : std::string();
  json answer{{"before", control::clipped(before)}, {"done", done_}};
  if (after_) {
    answer["after"] = control::clipped(after);
    answer["changed"] = after != before;
  }
  return answer;
}

std::span<const std::string_view> TextSite::questions() const {
  static constexpr std::array<std::string_view, 1> kQuestions{"ir"};
  if (!before_) return {};
  return kQuestions;
}

void reachPass(When when, const std::string& name, int level, const TextSite::Text& before,
               const TextSite::Text& after) {
  TextSite site((when == When::Before ? "before pass " : "after pass ") + name, before, after, when == When::After);
  Event event;
  event.kind = Kind::Pass;
  event.when = when;
  event.names = {&name, 1};
  event.depth = level;
  reach(event, site);
}

void reachError(const std::string& where, const std::string& what) {
  TextSite site("compiler error while " + where + ": " + what, {});
  Event event;
  event.kind = Kind::Error;
  event.names = {&where, 1};
  reach(event, site);
}

}  // namespace fusebox::debug
