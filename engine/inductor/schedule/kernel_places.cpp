#include "engine/inductor/schedule/kernel_places.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/graph/sym_node.h"

namespace fusebox::inductor {
namespace {

/// Calls `visit(buffer, index)` for each element that is read or written.
template <class Visit>
void forEachAccess(Kernel& kernel, Visit&& visit) {
  for (Section& section : kernel.sections) {
    for (Value& value : section.values)
      if (value.op == Op::Load) visit(value.buffer, value.index);
    for (Statement& statement : section.body)
      if (statement.kind != Statement::Kind::Reduce) visit(statement.buffer, statement.index);
  }
}

}  // namespace

void takePlaces(FinishedKernel& finished) {
  Kernel& kernel = finished.kernel;
  if (kernel.attention || kernel.device.kind != graph::DeviceKind::Cpu) return;
  std::vector<int64_t> first(kernel.buffers.size(), std::numeric_limits<int64_t>::max());
  forEachAccess(kernel, [&](BufferId buffer, const SymExpr& index) {
    int64_t& least = first[static_cast<size_t>(buffer)];
    least = std::min(least, graph::constantTerm(index));
  });
  std::vector<SymExpr> shift(kernel.buffers.size());
  for (const KernelBuffer& buffer : kernel.buffers) {
    const int64_t begin = first[static_cast<size_t>(buffer.id)];
    if (buffer.role == BufferRole::Scratch || begin <= 0 || begin == std::numeric_limits<int64_t>::max()) continue;
    const Symbol place = Symbol::make("at", 0, std::max(begin, buffer.numel.bounds().second));
    kernel.sizeSymbols.push_back(place);
    finished.sizes.emplace_back(begin);
    shift[static_cast<size_t>(buffer.id)] = SymExpr(place) - begin;
  }
  forEachAccess(kernel, [&](BufferId buffer, SymExpr& index) { index += shift[static_cast<size_t>(buffer)]; });
}

}  // namespace fusebox::inductor
