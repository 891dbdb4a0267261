#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox::cache {

/// One reason for which something compiled here would not be the same elsewhere.
struct KeyComponent {
  std::string name;    ///< for people: "CPU features", "operators"
  std::string value;   ///< for people, shortened where it is long
  std::string digest;  ///< of the whole value
};

/// What an entry was made from. Equal keys stand for equal results of compiling.
class CacheKey {
 public:
  CacheKey() = default;
  explicit CacheKey(std::vector<KeyComponent> components) : components_(std::move(components)) {}

  /// `content`: all that matters; `value`: what people are shown of it, else the content itself.
  void add(std::string name, std::string_view content, std::string value);
  void add(std::string name, std::string content) { add(std::move(name), content, content); }

  const std::vector<KeyComponent>& components() const { return components_; }
  /// 64 hexadecimal digits: the digest of all components. The entry's name everywhere.
  std::string id() const;

 private:
  std::vector<KeyComponent> components_;
};

/// A component in which two keys differ; a value is empty where the key has no such component.
struct KeyDifference {
  std::string name, a, b;
};
std::vector<KeyDifference> differences(const CacheKey& a, const CacheKey& b);
/// "CPU features: A here, B there", joined by "; ".
std::string differenceText(const std::vector<KeyDifference>& differences);

bool isEntryId(std::string_view text);

}  // namespace fusebox::cache
