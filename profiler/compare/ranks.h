#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/summary.h"

namespace fusebox::compare {

/// Sessions of one run, one a rank, or of any other runs: what each compiled, and what is different between them.
struct RankReport {
  struct Rank {
    std::string rank, file;  ///< its number in the process group, as text; empty in a session that is no rank's
    query::Summary summary;
  };
  struct Difference {
    size_t rank = 0;   ///< whose: position in `ranks`
    std::string text;  ///< how it differs from the first
  };
  std::vector<Rank> ranks;
  std::vector<std::string> told;        ///< what ranks themselves found while they ran
  std::vector<Difference> differences;  ///< from comparing each session with the first

  bool areRanks() const;  ///< all of them say which

  /// "rank 1"; "session 2" of the list where they are no ranks.
  std::string name(size_t position) const;
};

Result<RankReport> compareRanks(const std::vector<std::string>& files);
std::string toText(const RankReport& report);
/// `ranks[{rank, file, summary}], told[], differences[{rank, file, text}]`; `rank` is null in a session that is no rank's.
nlohmann::json toJson(const RankReport& report);

}  // namespace fusebox::compare
