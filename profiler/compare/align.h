#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusebox::compare {

/// A pair of positions that belong together; -1 where only the other side has one.
struct Match {
  int32_t a = -1, b = -1;
  bool operator==(const Match&) const = default;
};

/// The fewest insertions and deletions that turn sequence `a` into `b` (Myers 1986), as pairs in order: equal tokens paired,
/// the rest alone. Sequences further apart than kMostEdits are paired by their common beginning and end only; `cut`, where
/// given, says so. Memory: kMostEdits² · 2 bytes at most.
inline constexpr int32_t kMostEdits = 4000;
std::vector<Match> alignSequences(const std::vector<int32_t>& a, const std::vector<int32_t>& b, bool* cut = nullptr);

/// The order-keeping pairing of 0..n-1 with 0..m-1 with the largest sum of `similarity` (0 to 1; below `least`: no pair).
/// n · m should stay below a few million.
std::vector<Match> alignBySimilarity(int32_t n, int32_t m, double least, const std::function<double(int32_t, int32_t)>& similarity);

/// Numbers for words, so that texts of two sides can be compared as integers.
class Vocabulary {
 public:
  int32_t of(const std::string& word) { return words_.try_emplace(word, static_cast<int32_t>(words_.size())).first->second; }

 private:
  std::unordered_map<std::string, int32_t> words_;
};

/// How many trailing path components two paths share.
int commonTail(std::string_view a, std::string_view b);
/// "file.py" of a path.
std::string_view baseName(std::string_view path);
std::vector<std::string_view> linesOf(std::string_view text);

/// A text without what differs between any two runs: addresses and ids of objects become "<id>", trailing numbers of generated
/// names stay.
std::string withoutIds(std::string_view text);
/// An operator's name in one spelling: "aten.add.Tensor" and "aten::add.Tensor" are the same, ".default" goes.
std::string plainOp(std::string_view op);
/// A kernel's name without the number that makes it unique: "fused_gelu_1" gives "fused_gelu".
std::string_view withoutNumber(std::string_view name);

}  // namespace fusebox::compare
