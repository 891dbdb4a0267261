// Symbolic shapes as JSON and as text.
#include <fmt/format.h>

#include <algorithm>

#include "profiler/query/bounded.h"
#include "engine/support/bounded_json.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/shapes.h"
#include "profiler/query/report_time.h"

namespace fusebox::query {
namespace {

using nlohmann::json;
using session::Reader;

constexpr const char* kOutcomes[] = {"static", "symbolic", "specialised"};

json boundOrNull(const std::optional<int64_t>& bound) { return bound ? json(*bound) : json(); }

/// A number where the text is one.
json value(const std::string& text) {
  const json parsed = parseBounded(text);
  return parsed.is_number() ? parsed : text.empty() ? json() : json(text);
}

json toJson(const ShapeCost& cost) { return {{"recompiles", cost.recompiles}, {"ns", cost.ns}, {"misses", cost.misses}, {"limit", cost.limit}}; }

json adviceJson(const std::vector<Advice>& advice) {
  json out = json::array();
  for (const auto& a : advice) out.push_back(query::toJson(a));
  return out;
}

json toJson(const ShapeSymbol& s) {
  return {{"id", s.id}, {"name", s.name}, {"kind", s.kind}, {"source", s.source}, {"hint", value(s.hint)}, {"lower", boundOrNull(s.lower)},
          {"upper", boundOrNull(s.upper)}, {"policy", s.policy}, {"reason", s.reason}, {"before", s.before}, {"after", s.after},
          {"file", s.file}, {"line", s.line}, {"stack", query::toJson(s.stack)}};
}

json toJson(const Reader& reader, const ShapeRelation& r) {
  return {{"id", r.id}, {"kind", r.kind}, {"relation", r.text}, {"left", r.left}, {"op", r.op}, {"right", r.right}, {"symbols", r.symbols},
          {"reason", r.reason}, {"guard", r.guard}, {"file", r.file}, {"line", r.line}, {"stack", query::toJson(r.stack)}, {"cost", toJson(r.cost)},
          {"advice", adviceJson(r.cost.recompiles > 0 ? adviseShape(reader, r) : std::vector<Advice>())}};
}

json toJson(const Reader& reader, const ShapeSpecialisation& s) {
  return {{"id", s.id}, {"kind", s.kind}, {"expression", s.expression}, {"symbols", s.symbols}, {"source", s.source}, {"value", value(s.value)},
          {"operator", s.op}, {"reason", s.reason}, {"guard", s.guard}, {"file", s.file}, {"line", s.line}, {"stack", query::toJson(s.stack)},
          {"cost", toJson(s.cost)}, {"advice", adviceJson(adviseShape(reader, s))}};
}

json toJson(const VariedNumber& v) {
  json values = json::array();
  for (const auto& one : v.values) values.push_back(value(one));
  return {{"source", v.source}, {"values", values}, {"outcome", kOutcomes[static_cast<int>(v.outcome)]}, {"symbol", v.symbol},
          {"compile", v.compile > 0 ? json(v.compile) : json()}, {"why", v.why}, {"cost", toJson(v.cost)}, {"advice", adviceJson(v.advice)}};
}

std::string counted(int64_t count, const char* one) { return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s"); }

std::string costText(const ShapeCost& cost) {
  if (cost.recompiles == 0 && !cost.limit) return {};
  std::string out = cost.recompiles > 0 ? fmt::format("{}, {}", counted(cost.recompiles, "recompile"), reportTime(cost.ns)) : std::string();
  if (cost.limit) out += std::string(out.empty() ? "" : "; ") + "the limit of entries was reached";
  return "   [" + out + "]";
}

std::string placeText(const std::string& file, int64_t line) { return line > 0 ? fmt::format("  at {}:{}", file, line) : std::string(); }

void addEntry(std::string& out, const Reader& reader, const ShapeEntry& entry, int number) {
  if (entry.symbols.empty() && entry.relations.empty() && entry.specialisations.empty()) return;
  out += fmt::format("  #{} (compiled in {})\n", number, reportTime(entry.ns));
  for (const auto& s : entry.symbols) {
    out += fmt::format("    {}{}\n", s.legend(), placeText(s.file, s.line));
    std::string why = s.reason.empty() ? s.policy : s.reason;
    const bool isSaid = !s.before.empty() && why.find(s.before + " and became") != std::string::npos;
    if (!isSaid && (!s.before.empty() || !s.after.empty())) why += fmt::format(": it was {}, now {}", s.before.empty() ? "another" : s.before, s.after.empty() ? "another" : s.after);
    if (!why.empty()) out += fmt::format("      {} ({})\n", why, s.kind);
  }
  for (const auto& r : entry.relations) {
    if (r.isSpecialisation) continue;
    out += fmt::format("    {}{}{}{}\n", r.text, r.kind == "guard" ? "" : " (" + r.kind + ")", placeText(r.file, r.line), costText(r.cost));
    if (r.line == 0 && !r.reason.empty()) out += fmt::format("      {}\n", r.reason);
    if (r.cost.recompiles > 0) out += toText(adviseShape(reader, r), 6);
  }
  for (const auto& s : entry.specialisations) out += fmt::format("    {}{}\n", s.sentence(), costText(s.cost));
}

}  // namespace

json toJson(const Reader& reader, const std::vector<ShapeFrame>& frames) {
  json out = json::array();
  int64_t symbols = 0, relations = 0, specialisations = 0, recompiles = 0, ns = 0;
  for (const auto& f : frames) {
    json entries = json::array(), varied = json::array();
    for (const auto& e : f.entries) {
      json ours = json::array(), related = json::array(), fixed = json::array();
      for (const auto& s : e.symbols) ours.push_back(toJson(s));
      for (const auto& r : e.relations) related.push_back(toJson(reader, r));
      for (const auto& s : e.specialisations) {
        fixed.push_back(toJson(reader, s));
        recompiles += s.cost.recompiles;
        addBounded(ns, s.cost.ns);
      }
      symbols += static_cast<int64_t>(ours.size()), relations += static_cast<int64_t>(related.size()), specialisations += static_cast<int64_t>(fixed.size());
      entries.push_back({{"compile", e.compile}, {"attempt", e.attempt}, {"status", e.status}, {"compile_ns", e.ns}, {"symbols", ours},
                         {"relations", related}, {"specialisations", fixed}});
    }
    for (const auto& v : f.varied) varied.push_back(toJson(v));
    out.push_back({{"frame", f.frame}, {"name", f.name}, {"file", f.file}, {"line", f.line}, {"recompiles", f.recompiles},
                   {"recompile_ns", f.recompileNs}, {"limit", f.limit}, {"entries", entries}, {"varied", varied}});
  }
  return {{"frames", out}, {"symbols", symbols}, {"relations", relations}, {"specialisations", specialisations},
          {"specialised_cost", {{"recompiles", recompiles}, {"ns", ns}}}};
}

std::string toText(const Reader& reader, const std::vector<ShapeFrame>& frames) {
  if (frames.empty()) return "Nothing is symbolic, and no size, stride or number differed between calls.\n";
  std::string out;
  for (const auto& f : frames) {
    out += fmt::format("{}  {}:{}\n  {}", f.name, f.file, f.line, f.entries.size() == 1 ? "1 entry" : fmt::format("{} entries", f.entries.size()));
    if (f.recompiles > 0) out += fmt::format(", {}, {} of compiling again", counted(f.recompiles, "recompile"), reportTime(f.recompileNs));
    if (f.limit) out += "; the limit of entries was reached";
    out += "\n";
    const auto numberOf = [&](int64_t compile) {
      const auto at = std::find_if(f.entries.begin(), f.entries.end(), [&](const auto& e) { return e.compile == compile; });
      return static_cast<int>(at - f.entries.begin());
    };
    for (const auto& v : f.varied) {
      constexpr size_t kShown = 12;
      std::string values;
      for (size_t i = 0; i < std::min(kShown, v.values.size()); ++i) values += (i > 0 ? ", " : "") + v.values[i];
      if (v.values.size() > kShown) values += ", …";
      out += fmt::format("  {} was {}: ", v.source, values);
      if (v.outcome == VariedNumber::Outcome::Symbolic) out += fmt::format("{} from #{} on", v.symbol.empty() ? "any value" : "symbolic (" + v.symbol + ")", numberOf(v.compile));
      if (v.outcome == VariedNumber::Outcome::Specialised) out += fmt::format("a constant in #{}: {}", numberOf(v.compile), v.why);
      if (v.outcome == VariedNumber::Outcome::Static) out += fmt::format("a constant in every entry: {}", v.why);
      out += costText(v.cost) + "\n" + toText(v.advice, 4);
    }
    int number = 0;
    for (const auto& e : f.entries) addEntry(out, reader, e, number++);
    out += "\n";
  }
  return out;
}

}  // namespace fusebox::query
