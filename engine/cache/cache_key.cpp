#include "engine/cache/cache_key.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "engine/cache/sha256.h"

namespace fusebox::cache {
namespace {

constexpr size_t kShownBytes = 2000;
constexpr size_t kLongValue = 80;  ///< of two such values only the words that differ are shown

const KeyComponent* find(const CacheKey& key, const std::string& name) {
  const auto& all = key.components();
  const auto at = std::find_if(all.begin(), all.end(), [&](const KeyComponent& c) { return c.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

void CacheKey::add(std::string name, std::string_view content, std::string value) {
  std::string digest = hex(sha256(content));
  if (value.size() > kShownBytes) {
    size_t end = kShownBytes;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
    value = value.substr(0, end) + "…";
  }
  components_.push_back({std::move(name), std::move(value), std::move(digest)});
}

std::string CacheKey::id() const {
  std::string all;
  for (const KeyComponent& c : components_) all += c.name + '\0' + c.digest + '\n';
  return hex(sha256(all));
}

std::vector<KeyDifference> differences(const CacheKey& a, const CacheKey& b) {
  std::vector<KeyDifference> found;
  for (const KeyComponent& mine : a.components()) {
    const KeyComponent* theirs = find(b, mine.name);
    if (!theirs || theirs->digest != mine.digest)
      found.push_back({mine.name, mine.value, theirs ? theirs->value : std::string()});
  }
  for (const KeyComponent& theirs : b.components())
    if (!find(a, theirs.name)) found.push_back({theirs.name, {}, theirs.value});
  return found;
}

namespace {

/// In their order; what stands in brackets is one.
std::vector<std::string> wordsOf(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  for (const char c : text + " ") {
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (depth > 0 || (c != ' ' && c != ',')) word += c;
    else if (!word.empty()) words.push_back(std::exchange(word, {}));
  }
  return words;
}

/// Of a long value what the other one does not have.
std::string shown(const std::string& value, const std::string& other) {
  if (value.empty()) return "none";
  if (value.size() < kLongValue && other.size() < kLongValue) return value;
  const std::vector<std::string> words = wordsOf(value), ofOther = wordsOf(other);
  const std::set<std::string> others(ofOther.begin(), ofOther.end());
  std::string text;
  for (const std::string& word : words)
    if (!others.contains(word)) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "the same words" : text;
}

}  // namespace

std::string differenceText(const std::vector<KeyDifference>& differences) {
  std::string text;
  for (const KeyDifference& d : differences) {
    text += (text.empty() ? "" : "; ") + d.name;
    // Shortened values may read the same.
    if (d.a != d.b) text += ": " + shown(d.a, d.b) + " here, " + shown(d.b, d.a) + " there";
  }
  return text;
}

bool isEntryId(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace fusebox::cache
