#include "views/recompiles/recompiles_model.h"

#include <algorithm>

#include "engine/support/text.h"

namespace fusebox::views {
namespace {

using query::GuardMiss;
using query::GuardTreeRow;
using query::RecompileChain;

Cell knownCount(int64_t count) { return count < 0 ? textCell("–") : countCell(count); }

const GuardMiss* causeOf(const RecompileChain& chain, int64_t failure) {
  const auto found =
      std::find_if(chain.misses.begin(), chain.misses.end(), [&](const GuardMiss& m) { return m.failure == failure; });
  return failure != 0 && found != chain.misses.end() ? &*found : nullptr;
}

int toneOf(GuardTreeRow::State state) { return state == GuardTreeRow::State::Same ? 0 : 2; }

}  // namespace

TableRows chainRows(const std::vector<RecompileChain>& chains) {
  TableRows rows;
  for (const RecompileChain& c : chains) {
    TableRow row;
    row.location = {ObjectKind::Frame, c.frame, {}, c.file, static_cast<int>(c.line)};
    row.cells = {textCell(query::chainName(c)), countCell(static_cast<int64_t>(c.entries.size())),
                 durationCell(static_cast<double>(c.recompileNs)), knownCount(c.hits),
                 textCell(shortPlace(c.file, c.line))};
    row.tooltip = query::chainName(c) + "\n" + c.file + ":" + std::to_string(c.line) + (c.reason.empty() ? "" : "\n\n" + c.reason);
    if (c.status == "limit") row.tone = 3;
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows entryRows(const RecompileChain& chain) {
  TableRows rows;
  int64_t number = 0;
  for (const auto& e : chain.entries) {
    const GuardMiss* cause = causeOf(chain, e.cause);
    TableRow row;
    row.location = {ObjectKind::Compile, e.compile, {}, chain.file, static_cast<int>(chain.line)};
    row.cells = {countCell(number++), textCell(e.logId), durationCell(static_cast<double>(e.compileNs)), textCell(e.cache), knownCount(e.hits),
                 countCell(e.guards), textCell(cause ? query::missSentence(*cause) : e.error)};
    std::string& because = row.cells.back().text;
    row.tooltip = because;
    for (const auto& sentence : e.shapes) {
      because += (because.empty() ? "" : "; ") + sentence;
      row.tooltip += (row.tooltip.empty() ? "" : "\n") + sentence;
    }
    if (!e.error.empty()) row.tone = 3;
    rows.push_back(std::move(row));
  }
  // The call at the limit made no entry, but is what people look for.
  for (const GuardMiss& m : chain.misses) {
    if (m.outcome != "limit") continue;
    TableRow row;
    row.location = {ObjectKind::Failure, m.failure, {}, m.file, static_cast<int>(m.line)};
    row.cells = {textCell(say(FUSEBOX_TEXT("Recompiles", "limit"))), textCell(""), textCell(""), textCell(""), textCell(""), textCell(""), textCell(query::missSentence(m))};
    row.tooltip = chain.reason;
    row.tone = 3;
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows guardTreeRows(const std::vector<GuardTreeRow>& tree, bool onlyDifferences) {
  TableRows rows;
  std::vector<std::string> path;
  for (const GuardTreeRow& r : tree) {
    const auto depth = static_cast<size_t>(r.depth);
    path.resize(std::min(path.size(), depth));
    if (r.isSource) path.push_back(r.label);
    if (onlyDifferences && (r.isSource ? r.differences == 0 : r.state == GuardTreeRow::State::Same))
      continue;
    TableRow row;
    row.location =
        r.isSource
            ? Location{}
            : Location{ObjectKind::Guard, r.guardA != 0 ? r.guardA : r.guardB, {}, r.file, static_cast<int>(r.line)};
    std::string indented;
    for (size_t i = 0; i < depth; ++i) indented += "\u2003";
    row.cells = {textCell(indented + r.label), textCell(r.a), textCell(r.b), textCell(r.found),
                 textCell(r.isSource ? "" : shortPlace(r.file, r.line))};
    for (const auto& part : path) row.tooltip += part;
    if (!r.isSource)
      row.tooltip += "\n" + r.label + (r.a.empty() ? "" : "\n" + r.a) + (r.b.empty() || r.b == r.a ? "" : "\n" + r.b);
    row.tone = r.isSource ? (r.differences > 0 ? 2 : 4) : toneOf(r.state);
    if (!r.found.empty()) row.tone = 3;
    rows.push_back(std::move(row));
  }
  return rows;
}

RecompilePlace recompilePlace(const std::vector<RecompileChain>& chains, const Location& location) {
  for (size_t c = 0; c < chains.size(); ++c) {
    const RecompileChain& chain = chains[c];
    RecompilePlace place{static_cast<int>(c), -1, -1};
    if (location.kind == ObjectKind::Frame && chain.frame == location.id) return place;
    for (size_t e = 0; e < chain.entries.size(); ++e) {
      place.entry = static_cast<int>(e);
      if (location.kind == ObjectKind::Compile && chain.entries[e].compile == location.id) return place;
    }
    for (size_t m = 0; m < chain.misses.size(); ++m) {
      if (location.kind != ObjectKind::Failure || chain.misses[m].failure != location.id) continue;
      place.miss = static_cast<int>(m);
      place.entry = -1;
      for (size_t e = 0; e < chain.entries.size(); ++e) {
        if (chain.entries[e].cause == location.id) place.entry = static_cast<int>(e);
      }
      return place;
    }
  }
  return {};
}

}  // namespace fusebox::views
