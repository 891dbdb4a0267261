#include "profiler/query/other_recordings.h"

#include "engine/support/bounded_json.h"

namespace fusebox::query {

std::vector<OtherRecording> otherRecordings(const session::Reader& reader) {
  std::vector<OtherRecording> out;
  const auto listed = parseBounded(reader.info("imported.others"));
  if (!listed.is_array()) return out;
  for (const auto& one : listed) {
    const auto text = [&](const char* key) { return one.is_object() && one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : std::string(); };
    if (!text("file").empty()) out.push_back({text("kind"), text("file")});
  }
  return out;
}

}  // namespace fusebox::query
