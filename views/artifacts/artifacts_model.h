#pragma once

#include "engine/support/result.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Records of an imported file, at most 100,000, those of a compilation together: number, compile, kind, name, bytes, time since the start, damage.
Result<TableRows> loadArtifacts(const session::Reader& reader);

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
