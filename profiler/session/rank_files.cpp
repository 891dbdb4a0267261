#include "profiler/session/rank_files.h"

#include <charconv>
#include <filesystem>
#include <map>

namespace fusebox::session {

namespace fs = std::filesystem;

std::vector<RankFile> otherRanks(const Reader& reader) {
  const fs::path own = reader.path();
  const std::string name = own.filename().string(), mark = "-rank" + reader.info("rank");
  const size_t at = name.rfind(mark);
  if (reader.info("rank").empty() || at == std::string::npos) return {};
  const std::string before = name.substr(0, at + 5), behind = name.substr(at + mark.size());
  std::map<int, std::string> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(fs::absolute(own, error).parent_path(), error)) {
    const std::string other = file.path().filename().string();
    if (other == name || other.size() <= before.size() + behind.size() || !other.starts_with(before) || !other.ends_with(behind)) continue;
    const char *begin = other.data() + before.size(), *end = other.data() + other.size() - behind.size();
    int rank = 0;
    if (const auto [rest, problem] = std::from_chars(begin, end, rank); problem == std::errc() && rest == end) found[rank] = file.path().string();
  }
  std::vector<RankFile> ranks;
  for (auto& [rank, path] : found) ranks.push_back({std::to_string(rank), std::move(path)});
  return ranks;
}

}  // namespace fusebox::session
