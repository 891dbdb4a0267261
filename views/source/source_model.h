#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/source.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Something that happened at a line, as the side panel explains it.
struct SourceEvent {
  enum class Kind { Uncompiled, Break, Failure, Kernel };
  Kind kind = Kind::Break;
  int line = 0;
  std::string headline;
  std::string detail;
  std::string hint;
  Location location;
};

/// A file of the user's program with everything known about its lines.
struct SourceText {
  std::string path;
  std::string onDisk;    ///< where it lies, if the recorded machine is this one
  std::string text;
  std::string problem;   ///< why there is no text
  bool isQuoted = false; ///< only the lines that an imported file quotes; the others are empty
  std::map<int64_t, query::LineNotes> notes;
  std::vector<SourceEvent> events;   ///< by line
  struct Cut {
    SourceEvent::Kind kind;
    int lastLine = 0;  ///< events of this kind are there up to here
    int64_t shown = 0, all = 0;
  };
  std::vector<Cut> cuts;             ///< kinds of which the file has more than are held
};

/// Files with notes: name, breaks, kernel time.
Result<TableRows> loadSourceFiles(const session::Reader& reader);
/// With at most `most` failed guards and as many kernels; `cuts` says where that is not all.
Result<SourceText> loadSource(const session::Reader& reader, const std::string& path, int64_t most = INT64_MAX);
/// File and line of any object that has a place; an empty file if it has none.
Result<Location> placeOf(const session::Reader& reader, const Location& object);

}  // namespace fusebox::views
