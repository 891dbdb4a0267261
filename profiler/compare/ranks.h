#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/summary.h"

namespace fusebox::compare {

/// Sessions of one run, one a rank: what each compiled, and what is different between them.
struct RankReport {
  struct Rank {
    std::string rank, file;  ///< its number in the process group, as text; where the session does not say, the position in the list
    query::Summary summary;
  };
  struct Difference {
    std::string rank, text;  ///< whose, and how it differs from the first
  };
  std::vector<Rank> ranks;
  std::vector<std::string> told;        ///< what ranks themselves found while they ran
  std::vector<Difference> differences;  ///< from comparing each session with the first
};

Result<RankReport> compareRanks(const std::vector<std::string>& files);
std::string toText(const RankReport& report);
/// `ranks[{rank, file, summary}], told[], differences[{rank, text}]`.
nlohmann::json toJson(const RankReport& report);

}  // namespace fusebox::compare
