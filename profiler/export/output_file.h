#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "engine/support/result.h"

namespace fusebox::exporting {

/// A file in the making. It is written beside its place, under path(), and takes it when it is whole: until then what was there stays, and
/// of a file that could not be finished nothing does. What is no file (a pipe, /dev/stdout) is written to as it is.
class OutputFile {
 public:
  explicit OutputFile(std::string place);
  ~OutputFile();  ///< removes what was not put in place
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Where to write; it ends as the place does.
  const std::string& path() const { return path_; }
  /// Gives the file its place. Errors: Io, with the place.
  Result<void> finish();

 private:
  std::string place_, path_;
  bool isFinished_ = false;
};

/// Makes the file at `place` of what `write` puts into the stream, compressed where the name ends in .gz; what `write` returns. Errors: its
/// own; Io, with the place.
Result<int64_t> writeOutput(const std::string& place, const std::function<Result<int64_t>(std::ostream&)>& write);
/// The same with a text.
Result<void> writeOutput(const std::string& place, const std::string& text);

}  // namespace fusebox::exporting
