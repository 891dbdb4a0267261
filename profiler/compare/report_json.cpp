#include "profiler/compare/report.h"

namespace fusebox::compare {
namespace {

using nlohmann::json;

json placeJson(const Place& place) { return place.file.empty() ? json(nullptr) : json{{"file", place.file}, {"line", place.line}}; }

json timeJson(const Spread& s) {
  if (s.count == 0) return nullptr;
  return {{"count", s.count}, {"total_ns", s.totalNs}, {"median_ns", s.medianNs}, {"mad_ns", s.madNs}, {"min_ns", s.minNs}, {"max_ns", s.maxNs}};
}

json sideJson(const Side& s) {
  if (!s.present) return nullptr;
  return {{"text", s.text}, {"id", s.id}, {"place", placeJson(s.place)}, {"value", s.value}, {"time", timeJson(s.time)}};
}

json sessionJson(const Session& s) {
  return {{"path", s.path}, {"engine", s.engine}, {"torch", s.torch}, {"device", s.device}, {"command", s.command}, {"imported", s.imported}};
}

}  // namespace

json toJson(const Comparison& c) {
  json entries = json::array(), chain = json::array();
  for (const Entry& e : c.entries) {
    entries.push_back({{"subject", subjectName(e.subject)}, {"kind", kindName(e.kind)}, {"verdict", verdictName(e.verdict)}, {"structural", e.structural},
                       {"parent", e.parent}, {"depth", e.depth}, {"name", e.name}, {"a", sideJson(e.a)}, {"b", sideJson(e.b)}, {"note", e.note},
                       {"change", e.change}});
  }
  for (const CauseStep& step : c.cause.chain) chain.push_back({{"text", step.text}, {"entry", step.entry}});
  return {{"a", sessionJson(c.a)},
          {"b", sessionJson(c.b)},
          {"cause", {{"found", c.cause.found}, {"headline", c.cause.headline}, {"chain", chain}, {"explained", c.cause.explained}, {"effects", c.cause.effects},
                     {"others", c.cause.others}}},
          {"differences", c.differences().size()},
          {"entries", entries},
          {"limits", c.limits}};
}

}  // namespace fusebox::compare
