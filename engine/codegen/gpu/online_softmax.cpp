#include "engine/codegen/gpu/online_softmax.h"

#include <algorithm>
#include <optional>

#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::codegen::gpu {
using inductor::Kernel;
using inductor::Op;
using inductor::ReduceKind;
using inductor::Section;
using inductor::Statement;
using inductor::Substitution;
using inductor::SymExpr;
using inductor::Value;
using inductor::substitute;
using inductor::ValueId;

namespace {

constexpr int64_t kShortRow = 8192;  ///< whose second walk costs nothing

/// Elements of a point, where that is known.
std::optional<int64_t> elementsOf(const Section& s) {
  int64_t elements = 1;
  for (const auto& axis : s.axes) {
    if (!axis.extent.isConstant()) return std::nullopt;
    elements *= axis.extent.constant();
  }
  return elements;
}

/// Whether sections from `later` + 1 on read again what section `earlier` walks over.
bool isReadBehind(const Kernel& kernel, size_t earlier, size_t later) {
  const auto reads = [](const Section& s, inductor::BufferId buffer) {
    return !s.axes.empty() && std::any_of(s.values.begin(), s.values.end(), [&](const Value& v) { return v.op == Op::Load && v.buffer == buffer; });
  };
  for (const inductor::KernelBuffer& b : kernel.buffers)
    for (size_t s = later + 1; s < kernel.sections.size() && reads(kernel.sections[earlier], b.id); ++s)
      if (reads(kernel.sections[s], b.id)) return true;
  return false;
}

/// Whether one walk instead of two saves memory accesses: not where the threads keep the row between them.
bool isWorthJoining(const Kernel& kernel, size_t earlier, size_t later, int64_t keptRow) {
  const auto elements = elementsOf(kernel.sections[earlier]);
  return !elements || *elements > keptRow || (*elements >= kShortRow && !isReadBehind(kernel, earlier, later));
}

/// Whether `b` of section `sb` computes what `a` of `sa` does, `axes` being sb's axes in terms of sa's.
bool isSame(const Section& sa, ValueId a, const Section& sb, ValueId b, const Substitution& axes) {
  const Value &x = sa.values[static_cast<size_t>(a)], &y = sb.values[static_cast<size_t>(b)];
  if (x.op != y.op || x.type != y.type || x.imm != y.imm || x.buffer != y.buffer || (x.mask < 0) != (y.mask < 0)) return false;
  if (x.op == Op::Load || x.op == Op::Index) {
    for (const auto& [symbol, id] : sa.indirect)
      if (x.index.contains(symbol)) return false;
    if (!(x.index == substitute(y.index, axes))) return false;
  }
  if (x.mask >= 0 && !isSame(sa, x.mask, sb, y.mask, axes)) return false;
  if (x.op == Op::Reduced) return x.args == y.args;
  for (size_t i = 0; i < x.args.size(); ++i)
    if ((x.args[i] < 0) != (y.args[i] < 0) || (x.args[i] >= 0 && !isSame(sa, x.args[i], sb, y.args[i], axes))) return false;
  return true;
}

struct Pair {
  size_t maximum, sum;            ///< sections
  size_t statement;               ///< of the sum
  int32_t maximumId, sumId;       ///< reductions
};

const Statement* maximumOf(const Section& s, int32_t id) {
  for (const Statement& st : s.body)
    if (st.kind == Statement::Kind::Reduce && st.reduction == id && st.reduce == ReduceKind::Max) return &st;
  return nullptr;
}

/// Whether statement `i` of section `later` sums exp(x - m) with m the maximum of x over section `earlier`.
std::optional<Pair> matched(const Kernel& kernel, size_t earlier, size_t later, size_t i) {
  const Section &a = kernel.sections[earlier], &b = kernel.sections[later];
  const Statement& sum = b.body[i];
  if (sum.kind != Statement::Kind::Reduce || sum.reduce != ReduceKind::Sum) return std::nullopt;
  const Value& power = b.values[static_cast<size_t>(sum.inputs[0])];
  if (power.op != Op::Exp || !graph::isFloatingPoint(power.type)) return std::nullopt;
  const Value& difference = b.values[static_cast<size_t>(power.args[0])];
  if (difference.op != Op::Sub || difference.type != power.type) return std::nullopt;
  const Value& top = b.values[static_cast<size_t>(difference.args[1])];
  if (top.op != Op::Reduced || top.type != power.type) return std::nullopt;
  const Statement* maximum = maximumOf(a, top.args[0]);
  if (!maximum || a.axes.size() != b.axes.size()) return std::nullopt;
  Substitution axes;
  for (size_t k = 0; k < a.axes.size(); ++k) {
    if (!(a.axes[k].extent == b.axes[k].extent)) return std::nullopt;
    axes.emplace(b.axes[k].symbol, SymExpr(a.axes[k].symbol));
  }
  if (!isSame(a, maximum->inputs[0], b, difference.args[0], axes)) return std::nullopt;
  return Pair{earlier, later, i, maximum->reduction, sum.reduction};
}

std::optional<Pair> find(const Kernel& kernel, int64_t keptRow) {
  for (size_t later = 1; later < kernel.sections.size(); ++later)
    for (size_t earlier = 0; earlier < later; ++earlier)
      for (size_t i = 0; i < kernel.sections[later].body.size(); ++i)
        if (isWorthJoining(kernel, earlier, later, keptRow))
          if (auto pair = matched(kernel, earlier, later, i)) return pair;
  return std::nullopt;
}

/// Results of the sum become number 1 of the joint reduction, NaN where the maximum is infinite, as exp(inf - inf) makes them.
void replaceResults(Section& section, const Pair& pair) {
  for (size_t i = 0; i < section.values.size(); ++i) {
    if (section.values[i].op != Op::Reduced || section.values[i].args[0] != pair.sumId) continue;
    Value total = section.values[i];
    total.args[0] = pair.maximumId;
    total.imm = 1;
    Value top = total, rest = total;
    top.imm = 0;
    rest.op = Op::Sub;
    rest.imm = 0;
    section.values.insert(section.values.begin() + static_cast<std::ptrdiff_t>(i), {total, top, rest});
    const auto at = static_cast<ValueId>(i);
    const auto moved = [&](ValueId& id) { id += id >= at ? 3 : 0; };
    for (size_t k = i + 3; k < section.values.size(); ++k) forEachOperand(section.values[k], moved);
    for (Statement& st : section.body) forEachOperandOf(st, moved);
    for (auto& [symbol, id] : section.indirect) moved(id);
    section.values[i + 2].args = {at + 1, at + 1, -1};
    Value& sum = section.values[i + 3];
    sum.op = Op::Add;
    sum.imm = 0;
    sum.args = {at, at + 2, -1};
    i += 3;
  }
}

}  // namespace

Kernel withOnlineSoftmax(Kernel kernel, int64_t keptRow) {
  while (auto pair = find(kernel, keptRow)) {
    Section& sum = kernel.sections[pair->sum];
    sum.body.erase(sum.body.begin() + static_cast<std::ptrdiff_t>(pair->statement));
    for (Statement& st : kernel.sections[pair->maximum].body)
      if (st.kind == Statement::Kind::Reduce && st.reduction == pair->maximumId) st.reduce = ReduceKind::OnlineSoftmax;
    for (Section& section : kernel.sections) replaceResults(section, *pair);
    removeDeadValues(sum);
    std::erase_if(kernel.sections, [](const Section& s) { return s.body.empty(); });
  }
  return kernel;
}

}  // namespace fusebox::codegen::gpu
