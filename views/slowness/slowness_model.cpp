#include "views/slowness/slowness_model.h"

#include "engine/support/text.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

using query::TimeKind;
using query::TimePart;
using query::TimeSubject;

Location placeOf(const TimePart& part) {
  static constexpr ObjectKind kObjects[] = {ObjectKind::None, ObjectKind::Kernel, ObjectKind::Compile, ObjectKind::Break, ObjectKind::Failure};
  return {kObjects[static_cast<size_t>(part.subject)], part.id, {}, part.file, static_cast<int>(part.line)};
}

/// The sentence on guards says itself that they are estimated.
std::string sentenceOf(const query::TimeRow& row) {
  return row.estimated && row.kind != TimeKind::Guards ? say(FUSEBOX_TEXT("Slowness", "{} (estimated)"), row.sentence) : row.sentence;
}

const query::TimeRow& rowAt(const query::Slowness& s, size_t i) { return i < s.rows.size() ? s.rows[i] : s.apart[i - s.rows.size()]; }

}  // namespace

TableRows slownessRows(const query::Slowness& slowness) {
  TableRows rows;
  for (size_t i = 0; i < slowness.rows.size() + slowness.apart.size(); ++i) {
    const bool apart = i >= slowness.rows.size();
    const query::TimeRow& r = rowAt(slowness, i);
    TableRow row;
    row.cells = {textCell(apart ? say(FUSEBOX_TEXT("Slowness", "{}, in the whole recording"), r.title) : r.title), durationCell(r.ns),
                 apart ? Cell{"", 0} : shareCell(r.ns, slowness.stepNs), r.count > 0 ? countCell(r.count) : Cell{"", 0}, textCell(sentenceOf(r))};
    row.tooltip = query::timeKindMeaning(r.kind) + "\n\n" + r.sentence;
    row.location = r.parts.empty() ? Location::ofView("timeline") : placeOf(r.parts.front());
    if (row.location.kind == ObjectKind::None) row.location = Location::ofView("timeline");
    if (r.kind == TimeKind::Outside) row.tone = 4;
    if (r.kind == TimeKind::Recompiles || r.kind == TimeKind::Breaks) row.tone = 2;
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows slownessParts(const query::Slowness& slowness, size_t index) {
  TableRows rows;
  if (index >= slowness.rows.size() + slowness.apart.size()) return rows;
  const bool apart = index >= slowness.rows.size();
  for (const TimePart& p : rowAt(slowness, index).parts) {
    TableRow row;
    row.cells = {textCell(p.name.empty() ? say(FUSEBOX_TEXT("Slowness", "(unnamed)")) : p.name), durationCell(p.ns), apart ? Cell{"", 0} : shareCell(p.ns, slowness.stepNs), p.count > 0 ? countCell(p.count) : Cell{"", 0}, textCell(p.result), textCell(p.module), textCell(shortPlace(p.file, p.line))};
    row.location = placeOf(p);
    row.tooltip = p.name + (p.file.empty() ? "" : "\n" + p.file + ":" + std::to_string(p.line));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string slownessHeadline(const query::Slowness& s) {
  return say(s.wholeRun ? FUSEBOX_TEXT("Slowness", "The recording takes {}") : FUSEBOX_TEXT("Slowness", "A step takes {}"),
             formatDuration(s.wholeRun ? s.stepNs : s.medianNs));
}

std::string slownessNote(const query::Slowness& s) {
  if (s.wholeRun) return s.how;
  const bool left = s.compiling > 0 && s.compiling * 2 <= s.steps;
  const std::string steps = formatCount(left ? s.steps - s.compiling : s.steps);
  const bool isOnly = (left ? s.steps - s.compiling : s.steps) == 1;
  std::string out = isOnly ? say(FUSEBOX_TEXT("Slowness", "{}; one such step was found"), s.how)
                    : say(FUSEBOX_TEXT("Slowness", "{}; median of {}, which take {} to {}. Split here: the {} nearest to the median, on average {}"), s.how, steps,
                        formatDuration(s.minNs), formatDuration(s.maxNs), formatCount(s.looked), formatDuration(s.stepNs));
  if (left) {
    out += sayCount(FUSEBOX_TEXT("Slowness", ". {} step in which something was compiled is kept apart"),
                    FUSEBOX_TEXT("Slowness", ". {} steps in which something was compiled are kept apart"), s.compiling);
  }
  return out;
}

int timeCategory(TimeKind kind) {
  static constexpr int kCategories[] = {2, 5, 5, 0, 6, 4, 7, 3, 1, 8, 9};
  return kCategories[static_cast<size_t>(kind)];
}

}  // namespace fusebox::views
