#include "views/compare/compare_model.h"

#include <algorithm>

#include "engine/support/text.h"

namespace fusebox::views {
namespace {

using compare::Entry;
using compare::Kind;
using compare::Subject;

bool isHeading(const Entry& e) { return e.subject == Subject::Section || (e.subject == Subject::CodeObject && e.kind == Kind::Same); }

bool passes(const Entry& e, const CompareFilter& f) {
  if (f.subject >= 0 && static_cast<int>(e.subject) != f.subject) return false;
  switch (e.kind) {
    case Kind::Added: return f.added;
    case Kind::Removed: return f.removed;
    case Kind::Changed: return f.changed;
    case Kind::Same: break;
  }
  return f.same;
}

int toneOf(const Entry& e) {
  if (isHeading(e)) return 0;
  if (e.kind == Kind::Same) return 4;
  if (e.verdict == compare::Verdict::Slower) return 3;
  if (e.verdict == compare::Verdict::Faster) return 1;
  return 0;
}

std::string nameOf(const Entry& e) {
  const std::string indent(static_cast<size_t>(e.depth) * 4, ' ');
  const bool plain = e.subject == Subject::Count || e.subject <= Subject::Engine || isHeading(e) || e.name == compare::subjectName(e.subject);
  return indent + (plain ? compare::entryTitle(e) : compare::subjectTitle(e.subject) + ": " + compare::entryTitle(e));
}

std::string changeOf(const Entry& e) {
  if (!e.change.empty()) return e.change;
  if (e.kind == Kind::Added) return say(FUSEBOX_TEXT("Compare", "only in B"));
  if (e.kind == Kind::Removed) return say(FUSEBOX_TEXT("Compare", "only in A"));
  return e.kind == Kind::Changed && !isHeading(e) ? say(FUSEBOX_TEXT("Compare", "changed")) : std::string();
}

TableRow rowOf(const Entry& e, int64_t number) {
  TableRow row;
  row.cells.resize(kCompareColumns);
  const std::string name = nameOf(e);
  const bool heading = isHeading(e);
  // An empty name where a side has nothing: the gap shows that it is missing there.
  row.cells[kCompareNameA] = textCell(heading || e.a.present || e.kind == Kind::Same ? name : "");
  row.cells[kCompareNameB] = textCell(heading || e.b.present || e.kind == Kind::Same ? name : "");
  row.cells[kCompareA] = textCell(e.a.present ? e.a.text : "");
  row.cells[kCompareB] = textCell(e.b.present ? e.b.text : "");
  row.cells[kCompareChange] = textCell(changeOf(e));
  row.cells[kCompareNote] = textCell(e.note);
  row.location = Location::of(ObjectKind::Node, number + 1);
  row.tone = toneOf(e);
  row.tooltip = compare::entryTitle(e) + (e.a.present ? "\nA: " + e.a.text : "") + (e.b.present ? "\nB: " + e.b.text : "") + (e.note.empty() ? "" : "\n" + e.note);
  return row;
}

struct SubjectKind {
  Subject subject;
  ObjectKind object;
};
constexpr SubjectKind kObjects[] = {{Subject::CodeObject, ObjectKind::Frame}, {Subject::Break, ObjectKind::Break}, {Subject::Recompile, ObjectKind::Failure},
                                    {Subject::Guard, ObjectKind::Guard},      {Subject::Graph, ObjectKind::Graph}, {Subject::Node, ObjectKind::Node},
                                    {Subject::Kernel, ObjectKind::Kernel},    {Subject::Failure, ObjectKind::Compile}};

}  // namespace

TableRows compareRows(const compare::Comparison& comparison, const CompareFilter& filter) {
  const auto& entries = comparison.entries;
  std::vector<char> shown(entries.size(), 0);
  for (size_t i = entries.size(); i-- > 0;) {
    if (!isHeading(entries[i]) && passes(entries[i], filter)) shown[i] = 1;
    if (shown[i] && entries[i].parent >= 0) shown[static_cast<size_t>(entries[i].parent)] = 1;
  }
  TableRows rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (shown[i]) rows.push_back(rowOf(entries[i], static_cast<int64_t>(i)));
  }
  return rows;
}

Location placeIn(const Entry& entry, bool inA) {
  const compare::Side& side = inA ? entry.a : entry.b;
  if (!side.present) return {};
  for (const auto& [subject, object] : kObjects) {
    if (subject == entry.subject && side.id > 0) return {object, side.id, {}, side.place.file, static_cast<int>(side.place.line)};
  }
  return side.place.file.empty() ? Location{} : Location::sourceLine(side.place.file, static_cast<int>(side.place.line));
}

CompareCounts countKinds(const compare::Comparison& comparison) {
  CompareCounts counts;
  for (size_t i = 0; i < comparison.entries.size(); ++i) {
    const Entry& e = comparison.entries[i];
    if (isHeading(e) || comparison.insideOneSided(static_cast<int32_t>(i))) continue;
    ++(e.kind == Kind::Added ? counts.added : e.kind == Kind::Removed ? counts.removed : e.kind == Kind::Changed ? counts.changed : counts.same);
  }
  return counts;
}

}  // namespace fusebox::views
