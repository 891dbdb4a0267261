#include "views/layout/ordering.h"

#include <algorithm>
#include <chrono>

namespace fusebox::views::layout {
namespace {

/// Prefix sums over positions of one rank, for counting inversions.
class FenwickTree {
 public:
  explicit FenwickTree(int size) : sums_(size + 1, 0) {}
  void add(int position) {
    for (int i = position + 1; i < static_cast<int>(sums_.size()); i += i & -i) ++sums_[i];
  }
  int upTo(int position) const {
    int total = 0;
    for (int i = position + 1; i > 0; i -= i & -i) total += sums_[i];
    return total;
  }

 private:
  std::vector<int> sums_;
};

std::vector<int> positions(const Layering& layering) {
  std::vector<int> position(layering.items.size());
  for (const auto& rank : layering.ranks) {
    for (int i = 0; i < static_cast<int>(rank.size()); ++i) position[rank[i]] = i;
  }
  return position;
}

/// Sorts one rank by the mean position of its neighbours; items without neighbours keep their place.
void sortByBarycentre(Layering& layering, int rank, bool useAbove, std::vector<int>& position) {
  auto& row = layering.ranks[rank];
  std::vector<std::pair<double, int>> keyed;
  keyed.reserve(row.size());
  for (int item : row) {
    const auto& around = useAbove ? layering.items[item].above : layering.items[item].below;
    double sum = 0;
    for (int other : around) sum += position[other];
    keyed.emplace_back(around.empty() ? position[item] : sum / static_cast<double>(around.size()), item);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int i = 0; i < static_cast<int>(row.size()); ++i) {
    row[i] = keyed[i].second;
    position[row[i]] = i;
  }
}

}  // namespace

int countCrossings(const Layering& layering) {
  const auto position = positions(layering);
  int total = 0;
  std::vector<int> targets;
  for (size_t r = 0; r + 1 < layering.ranks.size(); ++r) {
    FenwickTree seen(static_cast<int>(layering.ranks[r + 1].size()));
    int inserted = 0;
    for (int item : layering.ranks[r]) {
      targets.clear();
      for (int other : layering.items[item].below) targets.push_back(position[other]);
      for (int target : targets) total += inserted - seen.upTo(target);
      for (int target : targets) seen.add(target);
      inserted += static_cast<int>(targets.size());
    }
  }
  return total;
}

int reduceCrossings(Layering& layering, const LayoutOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + options.budget;
  auto position = positions(layering);
  auto best = layering.ranks;
  int bestCrossings = countCrossings(layering);
  int sinceBetter = 0;
  const int ranks = static_cast<int>(layering.ranks.size());
  for (int sweep = 0; sweep < options.maxSweeps && bestCrossings > 0 && sinceBetter < 4; ++sweep) {
    if (options.cancel && options.cancel->load()) break;
    if (std::chrono::steady_clock::now() > deadline) break;
    if (sweep % 2 == 0) {
      for (int r = 1; r < ranks; ++r) sortByBarycentre(layering, r, true, position);
    } else {
      for (int r = ranks - 2; r >= 0; --r) sortByBarycentre(layering, r, false, position);
    }
    const int crossings = countCrossings(layering);
    if (crossings < bestCrossings) {
      bestCrossings = crossings;
      best = layering.ranks;
      sinceBetter = 0;
    } else {
      ++sinceBetter;
    }
  }
  layering.ranks = std::move(best);
  return bestCrossings;
}

namespace {

/// Least-squares positions that keep the order: pool-adjacent-violators on the wishes after the gaps are taken out.
class RowPlacer {
 public:
  RowPlacer(const Layering& layering, double gap) : layering_(layering), gap_(gap) {}

  void place(const std::vector<int>& row, const std::vector<double>& wish, const std::vector<double>& weight,
             std::vector<double>& x) {
    offsets_.assign(row.size(), 0);
    for (size_t i = 1; i < row.size(); ++i) offsets_[i] = offsets_[i - 1] + distance(row[i - 1], row[i]);
    blocks_.clear();
    for (size_t i = 0; i < row.size(); ++i) {
      blocks_.push_back({(wish[i] - offsets_[i]) * weight[i], weight[i], i});
      while (blocks_.size() > 1 && mean(blocks_[blocks_.size() - 2]) > mean(blocks_.back())) {
        const Block last = blocks_.back();
        blocks_.pop_back();
        blocks_.back().sum += last.sum;
        blocks_.back().weight += last.weight;
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const size_t end = b + 1 < blocks_.size() ? blocks_[b + 1].first : row.size();
      for (size_t i = blocks_[b].first; i < end; ++i) x[row[i]] = mean(blocks_[b]) + offsets_[i];
    }
  }

  double distance(int left, int right) const {
    const auto& a = layering_.items[left];
    const auto& b = layering_.items[right];
    const double gap = a.node < 0 || b.node < 0 ? gap_ * 0.6 : gap_;
    return a.width / 2 + b.width / 2 + gap;
  }

 private:
  struct Block {
    double sum = 0;
    double weight = 0;
    size_t first = 0;
  };
  static double mean(const Block& block) { return block.sum / block.weight; }

  const Layering& layering_;
  double gap_;
  std::vector<double> offsets_;
  std::vector<Block> blocks_;
};

constexpr int kPlacementSweeps = 10;

}  // namespace

std::vector<double> placeItems(const Layering& layering, const LayoutOptions& options) {
  std::vector<double> x(layering.items.size(), 0);
  RowPlacer placer(layering, options.nodeGap);
  for (const auto& row : layering.ranks) {  // packed and centred on zero
    double at = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) at += placer.distance(row[i - 1], row[i]);
      x[row[i]] = at;
    }
    for (int item : row) x[item] -= at / 2;
  }
  std::vector<double> wish, weight;
  const int ranks = static_cast<int>(layering.ranks.size());
  const auto sweepRow = [&](int r, bool useAbove, bool useBelow) {
    const auto& row = layering.ranks[r];
    wish.clear();
    weight.clear();
    for (int item : row) {
      const auto& it = layering.items[item];
      double sum = 0, total = 0;
      const auto pull = [&](int other) {
        // A bend pulls its edge straight; between two bends straightness matters most.
        const double strength = it.node < 0 && layering.items[other].node < 0 ? 8 : it.node < 0 ? 2 : 1;
        sum += strength * x[other];
        total += strength;
      };
      if (useAbove) std::for_each(it.above.begin(), it.above.end(), pull);
      if (useBelow) std::for_each(it.below.begin(), it.below.end(), pull);
      wish.push_back(total > 0 ? sum / total : x[item]);
      weight.push_back(total > 0 ? total : 0.05);
    }
    placer.place(row, wish, weight, x);
  };
  for (int sweep = 0; sweep < kPlacementSweeps; ++sweep) {
    if (options.cancel && options.cancel->load()) break;
    const bool last = sweep >= kPlacementSweeps - 2;
    if (sweep % 2 == 0) {
      for (int r = 0; r < ranks; ++r) sweepRow(r, true, last);
    } else {
      for (int r = ranks - 1; r >= 0; --r) sweepRow(r, last, true);
    }
  }
  return x;
}

}  // namespace fusebox::views::layout
