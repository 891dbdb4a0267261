#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"

namespace fusebox::importing {

class SessionBuilder;

/// What there is to recognise a format by.
struct Probe {
  std::string path;
  bool isFolder = false;
  std::string head;  ///< the first 64 kB of the content, decompressed; empty for a folder
};

/// A foreign format that Fusebox reads.
struct Format {
  const char* title;  ///< for people
  bool (*sniff)(const Probe& probe);
  /// Errors: Corrupt when nothing of it can be read, Unsupported, Io. Damage to parts is a loss of the session, not an
  /// error.
  Result<void> (*import)(const std::string& path, SessionBuilder& session, ImportProgress* progress);
};

/// In the order of asking.
std::span<const Format> formats();
/// The format of a file or folder, or null.
const Format* recognise(const Probe& probe);
/// Reads what recognise() needs.
Result<Probe> probe(const std::string& path);

}  // namespace fusebox::importing
