#include "profiler/query/filter_words.h"

#include <sstream>
#include <string_view>

namespace fusebox::query {

std::string filterCondition(const std::string& filter, const std::string& text, std::vector<session::Cell>& parameters) {
  std::string sql;
  std::istringstream words(filter);
  for (std::string word; words >> word;) {
    const bool isUnwanted = word.size() > 1 && word[0] == '-';
    std::string pattern = "%";
    for (const char c : std::string_view(word).substr(isUnwanted ? 1 : 0)) {
      if (c == '%' || c == '_' || c == '\\') pattern += '\\';
      pattern += c;
    }
    parameters.emplace_back(pattern + "%");
    sql += (isUnwanted ? " AND NOT " : " AND ") + text + " LIKE ? ESCAPE '\\'";
  }
  return sql;
}

}  // namespace fusebox::query
