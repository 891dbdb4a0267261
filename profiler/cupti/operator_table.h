#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/cupti/gpu_rows.h"

namespace fusebox::cupti {

/// Numbers for operators and the lines that ran them, from 1. Thread-safe.
class OperatorTable {
 public:
  int32_t number(std::string_view name, std::string_view file, int line, bool* isNew = nullptr) {
    const size_t hash = std::hash<std::string_view>{}(name) * 31 + std::hash<std::string_view>{}(file) * 7 + static_cast<size_t>(line);
    std::lock_guard lock(mutex_);
    const auto [first, last] = numbers_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      const OperatorPlace& known = places_[static_cast<size_t>(at->second - 1)];
      if (known.line == line && known.name == name && known.file == file) return at->second;
    }
    if (isNew) *isNew = true;
    places_.push_back({std::string(name), std::string(file), line});
    const auto number = static_cast<int32_t>(places_.size());
    numbers_.emplace(hash, number);
    return number;
  }
  OperatorPlace place(int32_t number) const {
    std::lock_guard lock(mutex_);
    return number > 0 && number <= static_cast<int32_t>(places_.size()) ? places_[static_cast<size_t>(number - 1)] : OperatorPlace{};
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_multimap<size_t, int32_t> numbers_;
  std::vector<OperatorPlace> places_;
};

}  // namespace fusebox::cupti
