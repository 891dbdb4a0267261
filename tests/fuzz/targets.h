#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fusebox::fuzz {

enum class Outcome { Read, Refused, NotRecognised };

/// A reader of what comes from outside.
struct Target {
  const char* name;
  /// Files and folders that changes start from. `data` is the importers' data, `scratch` a folder of the run's own.
  std::vector<std::filesystem::path> (*subjects)(const std::filesystem::path& data, const std::filesystem::path& scratch);
  /// Reads `file` as the product does. What is wrong with how it went; empty if nothing.
  std::string (*read)(const std::filesystem::path& file, const std::filesystem::path& scratch, Outcome& outcome);
};

extern const Target kImporters;    ///< foreign files (profiler/importers)
extern const Target kSessions;     ///< session files, as every view and report reads them
extern const Target kSavedGraphs;  ///< graphs without their programs (engine/graph/serialize)
extern const Target kControl;      ///< both ends of the control channel

}  // namespace fusebox::fuzz
