#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/support/text.h"
#include "profiler/compare/comparison.h"
#include "profiler/compare/source_map.h"

namespace fusebox::compare {

/// Both sessions, and the list of entries that is being made of them.
struct Outline {
  const Snapshot& a;
  const Snapshot& b;
  const SourceMap& sources;
  Comparison& out;
  bool sameEngine;  ///< else graphs are decomposed and kernels named differently, and only what they compute is compared

  /// Appends an entry below `parent`; returns its number. Kind follows from which sides are present, `changed` and the verdict.
  int32_t add(int32_t parent, Subject subject, std::string name, Side a, Side b, bool changed, std::string note = {});
  /// A heading.
  int32_t section(const Text& title) { return add(-1, Subject::Section, title.text, {}, {}, false); }
  /// A number of both sides, Changed where they differ.
  int32_t count(int32_t parent, Subject subject, const Text& name, double a, double b, std::string (*text)(double), std::string note = {});
  /// A time of both sides, Changed where the difference is beyond noise.
  int32_t time(int32_t parent, const Text& name, const Spread& a, const Spread& b, std::string note = {});
  /// A kernel of both sides or of one, Changed where `structural` or where the difference of its times is beyond noise.
  int32_t kernel(int32_t parent, const std::string& name, Side a, Side b, bool structural, std::string note = {});
  Entry& at(int32_t entry) { return out.entries[static_cast<size_t>(entry)]; }
};

std::string countText(double count);

/// Environment, options, program and engine: what a person changed.
void compareSurroundings(Outline& outline);
/// Functions, and below them breaks, recompiles, guards, graphs, kernels, times and memory.
void compareObjects(Outline& outline);
/// A graph with its nodes, kernels, memory and times; either may be null.
void compareGraphs(Outline& outline, int32_t parent, const Graph* a, const Graph* b);
/// Kernels and calls that belong to no graph.
void compareLoose(Outline& outline);
/// Run time by the user's lines: comparable whatever engine ran them.
void compareLines(Outline& outline);
/// Sums of the whole session.
void compareTotals(Outline& outline);
/// Finds the cause among the entries.
Cause findCause(const Outline& outline);

}  // namespace fusebox::compare
