#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// What a session can be searched for.
enum class SearchKind : uint8_t {
  Files,
  Frames,
  Breaks,
  Failures,
  Guards,
  Kernels,
  Operators,  ///< of a trace, and its other spans on the CPU
  Groups,
  Nodes,
  Passes,
  Lines,
  Artifacts,
  Losses
};

struct SearchHit {
  int64_t id = 0;  ///< frame_id, break_id, failure_id, guard_id, kernel_id, group_id, node_id, stage's compile_id,
                   ///< artifact_id; else 0
  std::string title, detail, file;
  int64_t line = 0;
};
struct SearchGroup {
  SearchKind kind = SearchKind::Frames;
  std::vector<SearchHit> hits;
  bool more = false;  ///< there are others beyond the limit
};

/// Every kind with the word that the command line and the palette know it by ("nodes"), in the order of showing.
struct SearchSubject {
  SearchKind kind;
  const char* name;
};
std::span<const SearchSubject> searchSubjects();

enum class SearchMatch { Substring, Letters };  ///< Letters: they appear in this order, as in a palette
/// Rows of a kind that hold `text` (ASCII letters without case) in what the views show of them, in recorded order. An
/// empty text finds nothing as Substring and everything as Letters.
Result<SearchGroup> searchIn(const session::Reader& reader, SearchKind kind, const std::string& text, int limit,
                             SearchMatch match = SearchMatch::Substring);

nlohmann::json toJson(const std::vector<SearchGroup>& groups);
std::string toText(const std::vector<SearchGroup>& groups);

}  // namespace fusebox::query
