#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// A file of the user's program and what happened in it.
struct SourceFile {
  std::string path;
  int64_t breaks = 0, nodes = 0, timeNs = 0;
};
/// Files with stored text, those with most kernel time first.
Result<std::vector<SourceFile>> sourceFiles(const session::Reader& reader);
/// Stored text; NotFound says so when the recorder could not read the file.
Result<std::string> sourceText(const session::Reader& reader, const std::string& path);

/// Where a file that the session names lies, if the recorded machine is this one: relative names began in the program's folder.
std::string pathOnDisk(const session::Reader& reader, const std::string& path);

/// What stands beside a line.
struct LineNotes {
  int64_t nodes = 0;      ///< captured nodes made by this line
  int64_t kernels = 0;    ///< distinct kernels and extern calls that carry out nodes of this line
  int64_t timeNs = 0;     ///< their run time, a group's time shared equally among its nodes
  int64_t launches = 0;
  int64_t breaks = 0, guards = 0, recompiles = 0;
};
/// By line number; lines without anything are absent.
Result<std::map<int64_t, LineNotes>> lineNotes(const session::Reader& reader, const std::string& path);

}  // namespace fusebox::query
