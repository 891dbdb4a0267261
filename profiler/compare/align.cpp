#include "profiler/compare/align.h"

#include <algorithm>
#include <cctype>

namespace fusebox::compare {
namespace {

/// Myers' greedy search on what lies between the common beginning and end; false where more than kMostEdits are needed.
/// `trace` keeps, for every number of edits d, the furthest x on the diagonals -d..d.
bool searchEdits(const int32_t* a, int32_t n, const int32_t* b, int32_t m, std::vector<std::vector<int32_t>>& trace) {
  const int32_t most = std::min(n + m, kMostEdits);
  std::vector<int32_t> reach(static_cast<size_t>(2 * most + 3), 0);
  const auto at = [&](int32_t k) -> int32_t& { return reach[static_cast<size_t>(k + most + 1)]; };
  for (int32_t d = 0; d <= most; ++d) {
    for (int32_t k = -d; k <= d; k += 2) {
      int32_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      while (x < n && x - k < m && a[x] == b[x - k]) ++x;
      at(k) = x;
      if (x >= n && x - k >= m) {
        trace.emplace_back(&at(-d), &at(d) + 1);
        return true;
      }
    }
    trace.emplace_back(&at(-d), &at(d) + 1);
  }
  return false;
}

void walkBack(int32_t n, int32_t m, const std::vector<std::vector<int32_t>>& trace, int32_t offset, std::vector<Match>& out) {
  int32_t x = n, y = m;
  for (int32_t d = static_cast<int32_t>(trace.size()) - 1; d > 0; --d) {
    const auto& before = trace[static_cast<size_t>(d - 1)];
    const auto at = [&](int32_t k) { return before[static_cast<size_t>(k + d - 1)]; };
    const int32_t k = x - y;
    const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
    const int32_t fromK = down ? k + 1 : k - 1;
    const int32_t fromX = at(fromK), fromY = fromX - fromK;
    while (x > (down ? fromX : fromX + 1) && y > (down ? fromY + 1 : fromY)) --x, --y, out.push_back({offset + x, offset + y});
    if (down) {
      out.push_back({-1, offset + --y});
    } else {
      out.push_back({offset + --x, -1});
    }
  }
  while (x > 0 && y > 0) --x, --y, out.push_back({offset + x, offset + y});
}

}  // namespace

std::vector<Match> alignSequences(const std::vector<int32_t>& a, const std::vector<int32_t>& b, bool* cut) {
  const auto n = static_cast<int32_t>(a.size()), m = static_cast<int32_t>(b.size());
  int32_t head = 0, tail = 0;
  while (head < n && head < m && a[static_cast<size_t>(head)] == b[static_cast<size_t>(head)]) ++head;
  while (tail < n - head && tail < m - head && a[static_cast<size_t>(n - 1 - tail)] == b[static_cast<size_t>(m - 1 - tail)]) ++tail;
  std::vector<Match> out;
  for (int32_t i = 0; i < head; ++i) out.push_back({i, i});
  std::vector<std::vector<int32_t>> trace;
  const int32_t middleA = n - head - tail, middleB = m - head - tail;
  const bool found = searchEdits(a.data() + head, middleA, b.data() + head, middleB, trace);
  if (cut) *cut = !found;
  if (found) {
    std::vector<Match> middle;
    walkBack(middleA, middleB, trace, head, middle);
    out.insert(out.end(), middle.rbegin(), middle.rend());
  } else {
    for (int32_t i = head; i < n - tail; ++i) out.push_back({i, -1});
    for (int32_t i = head; i < m - tail; ++i) out.push_back({-1, i});
  }
  for (int32_t i = tail; i > 0; --i) out.push_back({n - i, m - i});
  return out;
}

std::vector<Match> alignBySimilarity(int32_t n, int32_t m, double least, const std::function<double(int32_t, int32_t)>& similarity) {
  const auto width = static_cast<size_t>(m) + 1;
  std::vector<double> best(static_cast<size_t>(n + 1) * width, 0);
  std::vector<uint8_t> step(best.size(), 0);  // 0: skip a, 1: skip b, 2: pair
  for (int32_t i = n - 1; i >= 0; --i) {
    for (int32_t j = m - 1; j >= 0; --j) {
      const size_t here = static_cast<size_t>(i) * width + static_cast<size_t>(j);
      const double alike = similarity(i, j);
      double value = best[here + width];
      uint8_t choice = 0;
      if (best[here + 1] > value) value = best[here + 1], choice = 1;
      if (alike >= least && alike + best[here + width + 1] >= value) value = alike + best[here + width + 1], choice = 2;
      best[here] = value;
      step[here] = choice;
    }
  }
  std::vector<Match> out;
  int32_t i = 0, j = 0;
  while (i < n && j < m) {
    switch (step[static_cast<size_t>(i) * width + static_cast<size_t>(j)]) {
      case 2: out.push_back({i++, j++}); break;
      case 1: out.push_back({-1, j++}); break;
      default: out.push_back({i++, -1});
    }
  }
  while (i < n) out.push_back({i++, -1});
  while (j < m) out.push_back({-1, j++});
  return out;
}

int commonTail(std::string_view a, std::string_view b) {
  int common = 0;
  while (!a.empty() && !b.empty()) {
    const std::string_view x = baseName(a), y = baseName(b);
    if (x != y) break;
    ++common;
    a.remove_suffix(std::min(a.size(), x.size() + 1));
    b.remove_suffix(std::min(b.size(), y.size() + 1));
  }
  return common;
}

std::string_view baseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string withoutIds(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool hex = text.substr(i, 2) == "0x";
    size_t end = hex ? i + 2 : i;
    while (end < text.size() && (hex ? std::isxdigit(static_cast<unsigned char>(text[end])) : std::isdigit(static_cast<unsigned char>(text[end])))) ++end;
    const bool inWord = i > 0 && (std::isalnum(static_cast<unsigned char>(text[i - 1])) || text[i - 1] == '_' || text[i - 1] == '.');
    if ((hex && end > i + 2) || (!hex && end >= i + 8 && !inWord)) {
      out += "<id>";
      i = end;
    } else if (end > i) {
      out += text.substr(i, end - i);
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string plainOp(std::string_view op) {
  if (op.ends_with(".default")) op.remove_suffix(8);
  if (op.starts_with("torch.ops.")) op.remove_prefix(10);
  std::string out(op);
  for (const std::string_view space : {"aten", "prims", "inductor"}) {
    if (op.size() > space.size() + 1 && op.starts_with(space) && op[space.size()] == '.') {
      return std::string(space) + "::" + out.substr(space.size() + 1);
    }
  }
  return out;
}

std::string_view withoutNumber(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  if (end == name.size() || end < 2 || name[end - 1] != '_') return name;
  return name.substr(0, end - 1);
}

}  // namespace fusebox::compare
