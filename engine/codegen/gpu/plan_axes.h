#pragma once

#include "engine/codegen/gpu/plan.h"

/// Which axes threads run along, and how many threads.
namespace fusebox::codegen::gpu {

inductor::SymExpr ceilDiv(const inductor::SymExpr& a, const inductor::SymExpr& b);
/// Bytes rounded up to where other things in working memory may begin.
inductor::SymExpr wholeLines(const inductor::SymExpr& bytes);
/// Extent, or a guess where it is dynamic.
double guess(const inductor::SymExpr& extent);
const inductor::KernelBuffer& bufferOf(const inductor::Kernel& kernel, inductor::BufferId id);

/// Calls fn(index, isStore, buffer) for every access of a section to memory outside the kernel.
template <class Fn>
void forEachAccess(const inductor::Kernel& kernel, const inductor::Section& s, Fn&& fn) {
  auto visit = [&](inductor::BufferId id, const inductor::SymExpr& index, bool isStore) {
    const inductor::KernelBuffer& b = bufferOf(kernel, id);
    if (b.role != inductor::BufferRole::Scratch) fn(index, isStore, b);
  };
  for (const auto& v : s.values)
    if (v.op == inductor::Op::Load) visit(v.buffer, v.index, false);
  for (const auto& st : s.body)
    if (st.kind != inductor::Statement::Kind::Reduce) visit(st.buffer, st.index, true);
}

/// Elements of a row that the threads sharing it can keep in registers from one section to the next.
int64_t keptRow(const inductor::Kernel& kernel, const GpuTarget& target);

/// Kernels without loops of their own: a thread for one point or a few. Sets outerOrder and vectorAxis.
Mapping mapPoints(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape);

/// Kernels with loops. Rows: the threads of a block share a point, and neighbouring threads take neighbouring inner
/// elements. Columns: neighbouring threads take neighbouring points. Sets also the sections' order, vector, unroll and
/// chunk.
Mapping mapLoops(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape);

}  // namespace fusebox::codegen::gpu
