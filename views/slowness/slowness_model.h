#pragma once

#include "profiler/query/slowness.h"
#include "views/common/table.h"

namespace fusebox::views {

/// One row a kind of time; leads to what takes most of it, or to the timeline.
TableRows slownessRows(const query::Slowness& slowness);
/// What a row is made of.
TableRows slownessParts(const query::Slowness& slowness, size_t row);
/// "A step takes 1.24 ms", and in small: how it was found and how much steps vary.
std::string slownessHeadline(const query::Slowness& slowness);
std::string slownessNote(const query::Slowness& slowness);
/// The category colour of a kind.
int timeCategory(query::TimeKind kind);

}  // namespace fusebox::views
