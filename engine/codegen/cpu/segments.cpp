#include "engine/codegen/cpu/segments.h"

#include <algorithm>
#include <map>

#include "engine/graph/axis_symbol.h"
#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::codegen::cpu {
using inductor::DType;
using inductor::Kernel;
using inductor::Op;
using inductor::Section;
using inductor::SymExpr;
using inductor::Symbol;
using inductor::ValueId;

namespace {

constexpr size_t kMostSegments = 8;
constexpr double kWorthIt = 0.85;  // of the values, so many are left in the largest body

/// A comparison that is true on one side of `cut` along an axis.
struct Comparison {
  SymExpr cut;
  bool before = false;  ///< true for positions before the cut; false: from it on
};

/// `v` as a comparison with the axis; other axes take no part in it.
std::optional<Comparison> comparisonWith(const Kernel& k, const Section& s, const inductor::Value& v, Symbol axis) {
  if (v.op != Op::Lt && v.op != Op::Ge && v.op != Op::Le && v.op != Op::Gt) return std::nullopt;
  const inductor::Value &e = s.values[static_cast<size_t>(v.args[0])], &bound = s.values[static_cast<size_t>(v.args[1])];
  if (e.op != Op::Index || (bound.op != Op::Constant && bound.op != Op::Index) || e.index.strideOf(axis) != 1) return std::nullopt;
  SymExpr cut = (bound.op == Op::Constant ? SymExpr(bound.imm) : bound.index) - (e.index - SymExpr(axis));
  const bool isFixed = std::none_of(k.outer.begin(), k.outer.end(), [&](const auto& a) { return cut.contains(a.symbol); }) &&
                       std::none_of(s.indirect.begin(), s.indirect.end(), [&](const auto& entry) { return cut.contains(entry.first); });
  if (!isFixed) return std::nullopt;
  if (v.op == Op::Le || v.op == Op::Gt) cut += SymExpr(1);
  return Comparison{cut, v.op == Op::Lt || v.op == Op::Le};
}

/// The body where some Bool values are known.
Section bodyWhere(const Section& section, std::map<ValueId, bool> known) {
  Section s = section;
  std::vector<ValueId> standsFor(s.values.size());
  const auto constant = [&](size_t i, DType type, int64_t imm) {
    inductor::Value c;
    c.op = Op::Constant;
    c.type = type;
    c.imm = imm;
    c.origin = s.values[i].origin;
    c.line = s.values[i].line;
    s.values[i] = c;
  };
  const auto knownOf = [&](ValueId id) -> std::optional<bool> {
    const auto found = known.find(id);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
  for (size_t i = 0; i < s.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    standsFor[i] = id;
    inductor::Value& v = s.values[i];
    inductor::forEachOperand(v, [&](ValueId& operand) { operand = standsFor[static_cast<size_t>(operand)]; });
    if (const auto value = knownOf(id)) {
      constant(i, DType::Bool, *value);
    } else if (v.op == Op::BitAnd && v.type == DType::Bool) {
      for (int side = 0; side < 2; ++side) {
        const auto one = knownOf(v.args[static_cast<size_t>(side)]);
        if (!one) continue;
        standsFor[i] = v.args[*one ? static_cast<size_t>(1 - side) : static_cast<size_t>(side)];
        break;
      }
    } else if (v.op == Op::Where) {
      if (const auto one = knownOf(v.args[0])) standsFor[i] = v.args[*one ? 1 : 2];
    } else if (v.op == Op::Load && v.mask >= 0) {
      if (const auto one = knownOf(v.mask); one && *one) {
        v.mask = -1;
        v.imm = 0;
      } else if (one) {
        constant(i, v.type, v.imm);
      }
    }
  }
  const auto follow = [&](ValueId& id) { id = standsFor[static_cast<size_t>(id)]; };
  for (auto& statement : s.body) {
    inductor::forEachOperandOf(statement, follow);
    if (statement.mask >= 0 && knownOf(statement.mask) == true) statement.mask = -1;
  }
  std::erase_if(s.body, [&](const auto& statement) { return statement.mask >= 0 && knownOf(statement.mask) == false; });
  for (auto& [symbol, id] : s.indirect) follow(id);
  inductor::removeDeadValues(s);
  return s;
}

bool isLoading(const Section& s) {
  return std::any_of(s.values.begin(), s.values.end(), [](const inductor::Value& v) { return v.op == Op::Load; });
}

/// The segments of one axis that its comparisons make.
std::optional<Segments> alongAxis(const Kernel& k, int axis, bool isVector, int lanes) {
  const Section& s = k.sections[0];
  const inductor::Axis& a = k.outer[static_cast<size_t>(axis)];
  std::map<ValueId, Comparison> comparisons;
  std::vector<SymExpr> cuts;
  for (size_t i = 0; i < s.values.size(); ++i) {
    const auto c = comparisonWith(k, s, s.values[i], a.symbol);
    if (!c) continue;
    comparisons.emplace(static_cast<ValueId>(i), *c);
    if (std::find(cuts.begin(), cuts.end(), c->cut) == cuts.end()) cuts.push_back(c->cut);
  }
  if (cuts.empty() || cuts.size() >= kMostSegments) return std::nullopt;
  const auto isUpTo = [](const SymExpr& x, const SymExpr& y) { return graph::isNeverNegative(y - x); };
  for (size_t i = 1; i < cuts.size(); ++i)
    for (size_t j = i; j > 0 && !isUpTo(cuts[j - 1], cuts[j]); --j) {
      if (!isUpTo(cuts[j], cuts[j - 1])) return std::nullopt;
      std::swap(cuts[j - 1], cuts[j]);
    }
  Segments made{axis, cuts, {}};
  size_t total = 0;
  for (size_t part = 0; part <= cuts.size(); ++part) {
    std::map<ValueId, bool> known;
    for (const auto& [id, c] : comparisons) {
      const auto cut = static_cast<size_t>(std::find(cuts.begin(), cuts.end(), c.cut) - cuts.begin());
      known.emplace(id, (part <= cut) == c.before);
    }
    made.bodies.push_back(bodyWhere(s, std::move(known)));
    total += made.bodies.back().values.size();
    if (!isVector || !isLoading(made.bodies.back())) continue;
    const SymExpr length = (part < cuts.size() ? cuts[part] : a.extent) - (part > 0 ? cuts[part - 1] : SymExpr(0));
    if (const auto known = length.maybeConstant(); known && *known < lanes) return std::nullopt;
  }
  const auto whole = static_cast<double>(s.values.size());
  if (total > 2 * s.values.size() + 16 || static_cast<double>(made.largest().values.size()) > kWorthIt * whole) return std::nullopt;
  return made;
}

}  // namespace

const Section& Segments::largest() const {
  return *std::max_element(bodies.begin(), bodies.end(), [](const Section& a, const Section& b) { return a.values.size() < b.values.size(); });
}

std::optional<Segments> segmentsOf(const Kernel& k, int vectorAxis, int lanes) {
  if (k.sections.size() != 1 || !k.sections[0].axes.empty() || inductor::hasReduction(k.sections[0])) return std::nullopt;
  std::optional<Segments> best;
  for (size_t i = 0; i < k.outer.size(); ++i) {
    const auto axis = static_cast<int>(i);
    auto made = alongAxis(k, axis, axis == vectorAxis, lanes);
    if (made && (!best || made->largest().values.size() < best->largest().values.size())) best = std::move(made);
  }
  return best;
}

}  // namespace fusebox::codegen::cpu
