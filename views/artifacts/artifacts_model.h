#pragma once

#include "engine/support/result.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Which records are listed, where a session holds more than kMostArtifacts.
struct ArtifactRequest {
  std::string filter;  ///< words as in a list's filter; of function, kind and name
  int column = -1;     ///< those come first that are first in this column; -1: those of a compilation together
  bool ascending = true;
  static bool isKnownOrder(int column);
};
struct ArtifactList {
  TableRows rows;   ///< number, compile, kind, name, bytes, time since the start, damage
  int64_t all = 0;  ///< records of the session
  bool isWhole() const { return static_cast<int64_t>(rows.size()) == all; }
};
inline constexpr int64_t kMostArtifacts = 20'000;
inline constexpr int64_t kArtifactsOfMore = 5'000;  ///< where there are more

Result<ArtifactList> listArtifacts(const session::Reader& reader, const ArtifactRequest& request, int64_t most = kMostArtifacts);

/// One record in full.
struct ArtifactText {
  int64_t id = 0, graph = 0;
  std::string kind, name, format, text, detail, damaged, compile;
  int64_t line = 0;
  std::string file;
  bool cut = false;  ///< longer than what is shown
  bool operator==(const ArtifactText&) const = default;
};
Result<ArtifactText> loadArtifact(const session::Reader& reader, int64_t id);

}  // namespace fusebox::views
