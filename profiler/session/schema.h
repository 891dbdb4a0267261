#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// The session file: one SQLite database. Raw tables carry the prefix `t_` and are private; the views listed by
/// `publicViews()` are a promise (SCHEMA.md lists every column). A new column, as a change of meaning, raises
/// kSchemaVersion and brings a step in migrations.cpp: a view that names it could not read older files of the same version.
namespace fusebox::session {

/// PRAGMA user_version of a session written by this build.
inline constexpr int kSchemaVersion = 8;
/// PRAGMA application_id: "FUSB".
inline constexpr int32_t kApplicationId = 0x46555342;

/// Timelines are summarised in buckets of kPyramidBaseNs * kPyramidFactor^level nanoseconds, level 0 .. kPyramidLevels - 1.
inline constexpr int64_t kPyramidBaseNs = int64_t{1} << 20;
inline constexpr int kPyramidFactor = 4;
inline constexpr int kPyramidLevels = 13;
/// An event is summarised at a level only if it spans at most this many of its buckets; longer ones are read one by one.
inline constexpr int kPyramidMaxSpan = 16;

/// CREATE TABLE statements, in one string.
std::string_view tableSql();

struct ViewDefinition {
  std::string_view name;
  std::string_view select;  ///< the view's SELECT
};
/// Every public view, the promised ones first.
std::span<const ViewDefinition> publicViews();
/// The number of views at the front of publicViews() that SCHEMA.md promises by name.
inline constexpr int kPromisedViews = 22;

}  // namespace fusebox::session
