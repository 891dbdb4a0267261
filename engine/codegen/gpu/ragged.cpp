#include "engine/codegen/gpu/ragged.h"

#include <algorithm>
#include <set>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/gpu/access_patterns.h"
#include "engine/codegen/gpu/plan_axes.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Op;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int64_t kShortestRow = 512;  ///< whose first and last vectors are few among all
constexpr int64_t kLongRow = 2048;     ///< of which it costs little to begin where a line does

/// Whether some loaded index differs along the axis: what a vector brings from beyond the row must not become an address.
bool indicesVary(const Kernel& k, const Section& s, Symbol axis) {
  const auto varies = variesWith(k, s, axis);
  return std::any_of(s.indirect.begin(), s.indirect.end(), [&](const auto& loaded) { return varies(loaded.first); });
}

bool isSuited(const Kernel& k, const Section& s, Symbol axis) {
  return !inductor::hasScan(s) && !indicesVary(k, s, axis) && std::all_of(s.body.begin(), s.body.end(), [](const Statement& st) {
    return st.kind == Statement::Kind::Store || st.kind == Statement::Kind::Reduce;
  });
}

/// Accesses along the axis: where their rows begin, and bytes of an element.
struct RowAccess {
  SymExpr start;
  int size;
  inductor::BufferId buffer;
};

std::vector<RowAccess> rowAccesses(const Kernel& k, const std::vector<const Section*>& sections, Symbol axis, bool aligned) {
  std::vector<RowAccess> list;
  for (const Section* s : sections)
    forEachAccess(k, *s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      if (accessAlong(k, *s, index, axis) != Access::Consecutive || alignmentOf(b, aligned) < kVectorBytes) return;
      const SymExpr start = cpu::shapeOf(index, &axis, variesWith(k, *s, axis)).uniform;
      if (cpu::isNatural(start) && !cpu::dependsOn(start, [s](Symbol x) { return s->indirect.count(x) > 0; })) list.push_back({start, graph::elementSize(b.dtype), b.id});
    });
  return list;
}

bool isMultiple(const SymExpr& e, int of) {
  if (e.isConstant()) return e.constant() % of == 0;
  return std::all_of(e.terms().begin(), e.terms().end(), [of](const SymExpr::Term& term) { return term.coefficient % of == 0; });
}

}  // namespace

RaggedChoice raggedVectors(const Kernel& k, const std::vector<const Section*>& sections, const Axis& axis, int maxBytes, bool aligned) {
  const double extent = guess(axis.extent);
  if (extent < kShortestRow || !std::all_of(sections.begin(), sections.end(), [&](const Section* s) { return isSuited(k, *s, axis.symbol); })) return {};
  const std::vector<RowAccess> list = rowAccesses(k, sections, axis.symbol, aligned);
  if (list.empty()) return {};
  const int widest = std::max_element(list.begin(), list.end(), [](const RowAccess& a, const RowAccess& b) { return a.size < b.size; })->size;
  RaggedChoice choice;
  choice.width = std::min(maxBytes / widest, 8 * maxBytes / kVectorBytes);
  if (choice.width < 2) return {};
  // Where most bytes begin; of equals the last, which is stored.
  int most = 0;
  for (const RowAccess& a : list) {
    int bytes = 0;
    for (const RowAccess& other : list)
      if (isMultiple(other.start - a.start, choice.width)) bytes += other.size;
    if (bytes < most) continue;
    most = bytes;
    choice.rows.start = a.start;
  }
  // Others are accessed element by element, as far apart as vectors are: of those there may be one.
  std::set<inductor::BufferId> apart;
  for (const RowAccess& a : list)
    if (!isMultiple(a.start - choice.rows.start, choice.width)) apart.insert(a.buffer);
  if (apart.size() > 1) return {};
  choice.rows.on = true;
  if (isMultiple(choice.rows.start, choice.width)) choice.rows.start = 0;
  else choice.rows.shift = graph::mod(choice.rows.start, SymExpr(extent >= kLongRow ? kLineElements : choice.width));
  return choice;
}

SymExpr raggedCount(const SymExpr& extent, int vector, const Ragged& rows) {
  return ceilDiv(extent + SymExpr(rows.shift.bounds().second), SymExpr(vector));
}

int64_t raggedHead(int vector, const Ragged& rows) { return (rows.shift.bounds().second + vector - 1) / vector; }

}  // namespace fusebox::codegen::gpu
