#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/holdings.h"
#include "profiler/query/summary.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// The numbers of a run, ready to be shown.
struct OverviewModel {
  query::Summary summary;
  query::Holdings holdings;         ///< which of the numbers can be known
  std::string state;                ///< recording, finished, abandoned
  std::string notice;               ///< what the reader could not see
  double guardMs = 0;               ///< time in guard checks, where recorded
  int64_t calls = 0;                ///< calls of compiled code
  int64_t fusedGroups = 0;          ///< of several nodes; -1 where no groups were recorded
  bool hasOperators = false;        ///< a recording of torch.profiler: loadOperators() has rows
  std::vector<std::pair<std::string, std::string>> facts;  ///< versions and machine, in reading order (key, value)
  TableRows functions;              ///< function, verdict, entries, breaks, recompiles, what stands in the way, what to do, place
  TableRows failures;               ///< what, reason, what to do, times, place
  TableRows kernels;                ///< kernel, kind, launches, total, share, mean, GB/s, place
  TableRows breaks;                 ///< place, kind, reason, hint, times
  TableRows recompiles;             ///< frame, guard, expected, found, outcome, place
  TableRows stages;                 ///< stage, phase, runs, total, own, share of own
  TableRows losses;                 ///< what, count, detail
};

Result<OverviewModel> loadOverview(const session::Reader& reader);
/// Of it what is known at once, however long the lists are: state, facts, and the numbers of frames, graphs, kernels and launches.
Result<OverviewModel> loadOverviewStart(const session::Reader& reader);
/// Operator, calls, own time, share of it, total, mean, least, most, device, line, shapes: reads every event, so ask only for who looks.
Result<TableRows> loadOperators(const session::Reader& reader);

}  // namespace fusebox::views
