#pragma once

#include "profiler/compare/comparison.h"
#include "views/common/table.h"

namespace fusebox::views {

/// Which entries of a comparison are shown.
struct CompareFilter {
  bool added = true, removed = true, changed = true;
  bool same = false;
  int subject = -1;       ///< a compare::Subject; -1: all
};

/// Columns of the rows that compareRows() makes; the left list shows the first two, the right one the rest.
enum CompareColumn { kCompareNameA, kCompareA, kCompareNameB, kCompareB, kCompareChange, kCompareNote, kCompareColumns };

/// The lines of both lists in tree order: entries that pass, and the headings above them. A row's location holds the entry's
/// number, as ObjectKind::Node of no session: rows are told apart by it. Equal rows on both sides, so that the lists scroll together.
TableRows compareRows(const compare::Comparison& comparison, const CompareFilter& filter);

/// Where an entry is in session A (or B): what its views can show; ObjectKind::None where that session has nothing there.
Location placeIn(const compare::Entry& entry, bool inA);

/// Number of differences by kind: added, removed, changed.
struct CompareCounts {
  int added = 0, removed = 0, changed = 0, same = 0;
};
CompareCounts countKinds(const compare::Comparison& comparison);

}  // namespace fusebox::views
