#pragma once

#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// A file that lay in the folder a session was imported from and is a recording of another kind: it was not read with it. Its path is relative
/// to the folder, which may have been moved since.
struct OtherRecording {
  std::string kind, file;
};

/// In order of kind and path, the first 200; empty for a session of anything but a folder of several kinds.
std::vector<OtherRecording> otherRecordings(const session::Reader& reader);

}  // namespace fusebox::query
