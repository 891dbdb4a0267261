#pragma once

#include <mutex>
#include <string>
#include <unordered_set>

#include "profiler/session/writer.h"

namespace fusebox::record {

/// Puts the text of the user's files into the session, each once, so that it can be read where the files are not. Files are
/// read on the writer thread; long ones are cut, and only regular files are opened.
class SourceFiles {
 public:
  /// Queues `path` unless it was queued before. Names that are no files ("<stdin>") are noted without text.
  void add(session::Writer& writer, const std::string& path);

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> seen_;
  int64_t next_ = 1;
};

}  // namespace fusebox::record
