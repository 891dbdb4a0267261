#include "engine/python/debug_control.h"

#include <functional>
#include <stdexcept>

#include "engine/capture/entries/entry_cache.h"
#include "engine/compile/compile.h"
#include "engine/compile/compile_requests.h"
#include "engine/debug/debugger.h"

namespace fusebox::python {
namespace {

using nlohmann::json;

/// A setting that can be changed while the compiler is stopped.
struct Option {
  const char* name;
  std::function<json()> get;
  std::function<bool(const json&)> set;  ///< false: not a value of its type
};

Option boolean(const char* name, bool& value) {
  return {name, [&value] { return json(value); },
          [&value](const json& j) {
            if (j.is_boolean()) value = j.get<bool>();
            return j.is_boolean();
          }};
}

Option positive(const char* name, int& value) {
  return {name, [&value] { return json(value); },
          [&value](const json& j) {
            const bool fits = j.is_number_integer() && j.get<int64_t>() > 0 && j.get<int64_t>() <= 1'000'000'000;
            if (fits) value = j.get<int>();
            return fits;
          }};
}

const std::vector<Option>& options() {
  static const std::vector<Option> all{
      boolean("fuse", compilerConfig().fuse),
      positive("max_fusion_size", compilerConfig().maxFusionSize),
      positive("recompile_limit", capture::captureConfig().recompileLimit),
      positive("accumulated_recompile_limit", capture::captureConfig().accumulatedRecompileLimit),
      boolean("fail_on_recompile_limit_hit", capture::captureConfig().failOnRecompileLimitHit),
      boolean("error_on_recompile", capture::captureConfig().errorOnRecompile),
  };
  return all;
}

/// A rule for the graphs that are scheduled from now on. A pair has one rule at most.
Result<void> changeFusionRule(const std::string& verb, const std::string& text) {
  using inductor::FusionRule;
  const auto kind = verb == "force" ? FusionRule::Kind::Force : FusionRule::Kind::Forbid;
  const auto rule = inductor::parseFusionRule(kind, text);
  if (!rule) return fail(ErrorCode::InvalidArgument, "a fusion is named by two operations, A,B, not \"" + text + "\"");
  std::vector<FusionRule> rules = fusionRules();
  const size_t before = rules.size();
  std::erase_if(rules, [&](const FusionRule& r) {
    return (r.a == rule->a && r.b == rule->b) || (r.a == rule->b && r.b == rule->a);
  });
  if (verb == "clear" && rules.size() == before) return fail(ErrorCode::NotFound, "there is no rule about " + text);
  if (verb != "clear") rules.push_back(*rule);
  setFusionRules(std::move(rules));
  return {};
}

debug::Controls controls() {
  debug::Controls c;
  c.options = [] {
    json all = json::object();
    for (const Option& option : options()) all[option.name] = option.get();
    return all;
  };
  c.set = [](const std::string& name, const json& value) -> Result<void> {
    for (const Option& option : options()) {
      if (option.name != name) continue;
      if (option.set(value)) return {};
      return fail(ErrorCode::InvalidArgument, value.dump() + " is no value for " + name);
    }
    return fail(ErrorCode::NotFound, "there is no option \"" + name + "\" that can be changed here");
  };
  c.fusionRule = changeFusionRule;
  c.fusionRules = [] {
    json all = json::array();
    for (const inductor::FusionRule& rule : fusionRules())
      all.push_back({{"verb", rule.kind == inductor::FusionRule::Kind::Force ? "force" : "forbid"}, {"rule", rule.b.empty() ? rule.a : rule.a + "," + rule.b}});
    return all;
  };
  return c;
}

}  // namespace

void attachDebugger(const std::string& path, const std::string& token) {
  if (auto attached = debug::Debugger::instance().attach(path, token, controls()); !attached)
    throw std::runtime_error(attached.error().text());
}

}  // namespace fusebox::python
