#include "app/cli/run_arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace fusebox::cli {
namespace {
constexpr std::array<std::string_view, 7> kWithValue{"--break", "--session", "--engine", "--engines", "--html", "--python", "--summary"};
}

size_t scriptFormStart(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return i + 1;
    if (word == "-" || word.empty() || word[0] != '-' || word.rfind("-m", 0) == 0 || word.rfind("-c", 0) == 0) return i;
    if (std::find(kWithValue.begin(), kWithValue.end(), word) != kWithValue.end()) ++i;
  }
  return words.size();
}

}  // namespace fusebox::cli
