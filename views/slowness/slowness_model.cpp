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

}  // namespace

TableRows slownessRows(const query::Slowness& slowness) {
  TableRows rows;
  for (const auto& r : slowness.rows) {
    TableRow row;
    row.cells = {textCell(query::timeKindTitle(r.kind)), durationCell(r.ns), shareCell(r.ns, slowness.stepNs),
                 r.count > 0 ? countCell(r.count) : Cell{"", 0}, textCell(sentenceOf(r))};
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
  if (index >= slowness.rows.size()) return rows;
  for (const TimePart& p : slowness.rows[index].parts) {
    TableRow row;
    row.cells = {textCell(p.name.empty() ? say(FUSEBOX_TEXT("Slowness", "(unnamed)")) : p.name), durationCell(p.ns), shareCell(p.ns, slowness.stepNs), p.count > 0 ? countCell(p.count) : Cell{"", 0}, textCell(shortPlace(p.file, p.line))};
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
  return say(FUSEBOX_TEXT("Slowness", "{}; median of {}, which take {} to {}. Of {} that were read in full the average is split here: {}"), s.how,
             formatCount(s.steps), formatDuration(s.minNs), formatDuration(s.maxNs), formatCount(s.looked), formatDuration(s.stepNs));
}

int timeCategory(TimeKind kind) {
  static constexpr int kCategories[] = {2, 5, 5, 0, 6, 4, 7, 3, 1, 8, 9};
  return kCategories[static_cast<size_t>(kind)];
}

}  // namespace fusebox::views
