#include "engine/codegen/gpu/access_patterns.h"

#include <algorithm>
#include <memory>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/gpu/plan_axes.h"
#include "engine/graph/symbol_values.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

double guess(const SymExpr& e) { return static_cast<double>(graph::hint(e)); }

const KernelBuffer& bufferOf(const Kernel& k, inductor::BufferId id) {
  return *std::find_if(k.buffers.begin(), k.buffers.end(), [id](const KernelBuffer& b) { return b.id == id; });
}

uint64_t natural(double v) { return static_cast<uint64_t>(std::max(1.0, v)); }

double pointsOf(const std::vector<Axis>& axes) {
  double n = 1;
  for (const Axis& a : axes) n *= guess(a.extent);
  return n;
}

std::vector<char> valuesAlong(const Section& s, Symbol axis, const std::function<bool(inductor::BufferId)>& isScratch) {
  const bool isOuter = std::none_of(s.axes.begin(), s.axes.end(), [&](const Axis& a) { return a.symbol == axis; });
  std::vector<char> varies(s.values.size(), 0);
  const auto moves = [&](Symbol x) {
    const auto loaded = s.indirect.find(x);
    return loaded == s.indirect.end() ? x == axis : varies[static_cast<size_t>(loaded->second)] != 0;
  };
  for (size_t i = 0; i < s.values.size(); ++i) {
    const inductor::Value& v = s.values[i];
    bool differs = v.op == inductor::Op::Scan || (v.op == inductor::Op::Reduced && isOuter);
    if (v.op == inductor::Op::Load || v.op == inductor::Op::Index) differs |= cpu::dependsOn(v.index, moves);
    if (v.op == inductor::Op::Load) differs |= isOuter && isScratch(v.buffer);
    if (v.op != inductor::Op::Reduced)
      for (inductor::ValueId a : v.args) differs |= a >= 0 && varies[static_cast<size_t>(a)] != 0;
    if (v.mask >= 0) differs |= varies[static_cast<size_t>(v.mask)] != 0;
    varies[i] = differs;
  }
  return varies;
}

std::function<bool(Symbol)> variesWith(const Kernel& k, const Section& s, Symbol axis) {
  auto varies = std::make_shared<std::vector<char>>();  // worked out where it is asked for
  return [&k, &s, axis, varies](Symbol x) {
    const auto loaded = s.indirect.find(x);
    if (loaded == s.indirect.end()) return x == axis;
    if (varies->empty()) *varies = valuesAlong(s, axis, [&](inductor::BufferId id) { return bufferOf(k, id).role == inductor::BufferRole::Scratch; });
    return (*varies)[static_cast<size_t>(loaded->second)] != 0;
  };
}

Access accessAlong(const Kernel& k, const Section& s, const SymExpr& index, Symbol axis) {
  const cpu::IndexShape shape = cpu::shapeOf(index, &axis, variesWith(k, s, axis));
  if (shape.isUniform()) return Access::Uniform;
  if (shape.isAffine() && shape.stride == SymExpr(1)) return Access::Consecutive;
  return shape.isAffine() && shape.stride == SymExpr(2) ? Access::Near : Access::Other;
}

namespace {

/// Elements that an access comes to: what axes do not move is read from memory once.
double elementsAt(const Kernel& k, const Section& s, const SymExpr& index) {
  double n = 1;
  for (const std::vector<Axis>* axes : {&k.outer, &s.axes})
    for (const Axis& a : *axes)
      if (cpu::dependsOn(index, variesWith(k, s, a.symbol))) n *= guess(a.extent);
  return n;
}

/// How well a section's accesses suit neighbouring threads along `axis`, by what comes from memory.
double score(const Kernel& k, const Section& s, const Axis& axis) {
  double sum = 0.01 * pointsOf(k.outer) * pointsOf(s.axes);
  forEachAccess(k, s, [&](const SymExpr& index, bool isStore, const KernelBuffer& b) {
    const double size = graph::elementSize(b.dtype) * elementsAt(k, s, index);
    switch (accessAlong(k, s, index, axis.symbol)) {
      case Access::Uniform:
        sum += isStore ? 0 : 0.5 * size;
        break;
      case Access::Consecutive:
        sum += (isStore ? 1.1 : 1) * size;
        break;
      case Access::Near:
        sum += 0.6 * size;
        break;
      case Access::Other:
        break;
    }
  });
  return sum * std::min(1.0, guess(axis.extent) / 32);
}

/// Whether the extent is known to be a multiple, whatever the sizes are.
bool isMultiple(const SymExpr& extent, int of) {
  if (const auto known = extent.maybeConstant()) return *known % of == 0;
  const auto terms = extent.terms();
  return std::all_of(terms.begin(), terms.end(), [&](const auto& term) { return term.coefficient % of == 0; });
}

}  // namespace

int vectorWidth(const Kernel& k, const std::vector<const Section*>& sections, const Axis& axis, int maxBytes,
                bool aligned) {
  if (axis.extent == SymExpr(0)) return 1;
  int widest = 0;
  for (const Section* s : sections)
    forEachAccess(k, *s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      if (accessAlong(k, *s, index, axis.symbol) == Access::Consecutive)
        widest = std::max(widest, graph::elementSize(b.dtype));
    });
  if (widest == 0) return 1;
  int width = std::min(maxBytes / widest, 8 * maxBytes / kVectorBytes);
  auto useful = [&] {
    bool any = false;
    for (const Section* s : sections)
      forEachAccess(k, *s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
        const int64_t bytes = std::min<int64_t>(kVectorBytes, int64_t{width} * graph::elementSize(b.dtype));
        any |= alignmentOf(b, aligned) % bytes == 0 &&
               isVectorAccess(index, axis.symbol, width, variesWith(k, *s, axis.symbol));
      });
    return any;
  };
  while (width > 1 && (!isMultiple(axis.extent, width) || !useful())) width /= 2;
  return std::max(1, width);
}

std::vector<int> orderWithLast(size_t count, int last) {
  std::vector<int> order;
  for (size_t i = 0; i < count; ++i)
    if (static_cast<int>(i) != last) order.push_back(static_cast<int>(i));
  if (last >= 0) order.push_back(last);
  return order;
}

size_t longestBody(const Kernel& k) {
  size_t n = 0;
  for (const Section& s : k.sections) n = std::max(n, s.values.size());
  return n;
}

int instanceLimit(const Kernel& k) {
  const size_t values = longestBody(k);
  return values > 160 ? 2 : values > 80 ? 4 : values > 40 ? 8 : 16;
}

int crossingAxis(const Kernel& k, int fast) {
  std::vector<int64_t> votes(k.outer.size(), 0);
  for (const Section& s : k.sections)
    forEachAccess(k, s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      if (accessAlong(k, s, index, k.outer[static_cast<size_t>(fast)].symbol) != Access::Other) return;
      for (size_t o = 0; o < k.outer.size(); ++o)
        if (static_cast<int>(o) != fast && index.strideOf(k.outer[o].symbol) == 1)
          votes[o] += graph::elementSize(b.dtype);
    });
  const auto most = std::max_element(votes.begin(), votes.end());
  return most == votes.end() || *most == 0 ? -1 : static_cast<int>(most - votes.begin());
}

std::vector<const Section*> all(const Kernel& k) {
  std::vector<const Section*> list;
  for (const Section& s : k.sections) list.push_back(&s);
  return list;
}

std::pair<int, double> bestOuter(const Kernel& k) {
  int best = -1;
  double bestScore = -1;
  for (size_t o = 0; o < k.outer.size(); ++o) {
    double sum = 0;
    for (const Section& s : k.sections) sum += score(k, s, k.outer[o]);
    if (sum >= bestScore * 0.999) {
      best = static_cast<int>(o);
      bestScore = std::max(bestScore, sum);
    }
  }
  return {best, bestScore};
}

std::pair<int, double> bestInner(const Kernel& k, const Section& s) {
  int best = -1;
  double bestScore = -1;
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const double value = score(k, s, s.axes[i]);
    if (value >= bestScore * 0.999) {
      best = static_cast<int>(i);
      bestScore = std::max(bestScore, value);
    }
  }
  return {best, bestScore};
}

bool reducesWithoutAxes(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) {
    return s.axes.empty() && std::any_of(s.body.begin(), s.body.end(),
                                         [](const Statement& st) { return st.kind == Statement::Kind::Reduce; });
  });
}

bool scans(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) { return inductor::hasScan(s); });
}

bool readsAgain(const Kernel& k) {
  std::vector<inductor::BufferId> seen;
  for (const Section& s : k.sections) {
    if (s.axes.empty()) continue;
    const size_t before = seen.size();
    for (const auto& v : s.values) {
      if (v.op != inductor::Op::Load) continue;
      if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(before), v.buffer) != seen.begin() + static_cast<std::ptrdiff_t>(before))
        return true;
      seen.push_back(v.buffer);
    }
  }
  return false;
}

bool addsAtomically(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) {
    return std::any_of(s.body.begin(), s.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::AtomicAdd; });
  });
}

bool addsSingly(const Plan& plan, const Section& s, Symbol axis) {
  return std::any_of(s.body.begin(), s.body.end(), [&](const Statement& st) {
    if (st.kind != Statement::Kind::AtomicAdd) return false;
    const graph::DType type = bufferOf(plan.kernel, st.buffer).dtype;
    const bool isKnown = type == graph::DType::Float32 || type == graph::DType::Float16 || type == graph::DType::BFloat16;
    return !plan.addsVectors || !isKnown || accessAlong(plan.kernel, s, st.index, axis) != Access::Consecutive;
  });
}

int distinctLoads(const Kernel& k) {
  std::vector<inductor::BufferId> seen;
  for (const Section& s : k.sections)
    for (const auto& v : s.values)
      if (v.op == inductor::Op::Load && std::find(seen.begin(), seen.end(), v.buffer) == seen.end())
        seen.push_back(v.buffer);
  return std::max<int>(1, static_cast<int>(seen.size()));
}

int times(int n, int power, int least, int most) {
  return std::clamp(power >= 0 ? n << power : n >> -power, least, most);
}

}  // namespace fusebox::codegen::gpu
