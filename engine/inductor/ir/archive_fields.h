#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"
#include "engine/inductor/ir/archive.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/inductor/ir/program.h"

/// What archives hold of each structure.
namespace fusebox::graph {

/// A structure as an archive sees it: to be filled, or to be read.
template <class A, class T>
using In = std::conditional_t<A::kReads, T, const T>;

template <class A> void fields(A& a, In<A, Relation>& v) { a(v.op, v.left, v.right, v.reason); }
template <class A> void fields(A& a, In<A, Device>& v) { a(v.kind, v.index); }
template <class A> void fields(A& a, In<A, Layout>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, MemoryFormat>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, GeneratorRef>& v) { a(v.index); }
template <class A> void fields(A& a, In<A, ValueRef>& v) { a(v.node, v.output); }
template <class A> void fields(A& a, In<A, Argument>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, TensorMeta>& v) {
  a(v.sizes, v.strides, v.storageOffset, v.dtype, v.device, v.requiresGrad);
}
template <class A> void fields(A& a, In<A, OutputMeta>& v) { a(v.kind, v.tensor, v.scalar); }

}  // namespace fusebox::graph

namespace fusebox::inductor {

using graph::In;

template <class A> void fields(A& a, In<A, Value>& v) { a(v.op, v.type, v.args, v.imm, v.buffer, v.index, v.mask, v.origin); }
template <class A> void fields(A& a, In<A, Statement>& v) {
  a(v.kind, v.buffer, v.index, v.value, v.mask, v.reduce, v.reduction, v.inputs);
}
template <class A> void fields(A& a, In<A, Axis>& v) { a(v.symbol, v.extent); }
template <class A> void fields(A& a, In<A, Section>& v) { a(v.axes, v.isReduction, v.indirect, v.values, v.body); }
template <class A> void fields(A& a, In<A, Attention>& v) { a(v.width, v.depth, v.sharing, v.safe, v.stores); }
template <class A> void fields(A& a, In<A, KernelBuffer>& v) {
  a(v.id, v.name, v.dtype, v.role, v.numel, v.alignment, v.overwrites);
}
template <class A> void fields(A& a, In<A, Kernel>& v) {
  a(v.name, v.device, v.sizeSymbols, v.outer, v.attention, v.sections, v.buffers, v.isBatch);
}

template <class A> void fields(A& a, In<A, ProgramBuffer>& v) {
  a(v.id, v.name, v.meta, v.kind, v.index, v.poolOffset, v.place, v.base);
}
template <class A> void fields(A& a, In<A, LaunchStep>& v) { a(v.kernel, v.buffers, v.group, v.sizes, v.batch); }
template <class A> void fields(A& a, In<A, ExternStep>& v) {
  a(v.op, v.args, v.results, v.integers, v.outVariant, v.changes, v.resultIsList, v.withGrad, v.group, v.reason);
}
template <class A> void fields(A& a, In<A, AllocateStep>& v) { a(v.buffer); }
template <class A> void fields(A& a, In<A, FreeStep>& v) { a(v.buffer); }
template <class A> void fields(A& a, In<A, PoolPlace>& v) { a(v.bytes, v.first, v.last, v.onDevice); }
template <class A> void fields(A& a, In<A, Program>& v) {
  a(v.name, v.buffers, v.kernels, v.steps, v.results, v.inputCount, v.poolBytes, v.devicePoolBytes, v.poolDevice,
    v.places, v.firstUnrepeatable);
}

template <class A> void fields(A& a, In<A, LoweredBuffer>& v) { a(v.id, v.name, v.meta, v.kind, v.index, v.base); }
template <class A> void fields(A& a, In<A, Operation>& v) {
  a(v.id, v.name, v.kind, v.kernel, v.call, v.reads, v.writes, v.origins, v.order);
}
template <class A> void fields(A& a, In<A, InputWrite>& v) { a(v.input, v.result, v.refusal); }
template <class A> void fields(A& a, In<A, WriteDecision>& v) { a(v.operation, v.inPlace, v.reason, v.bytes); }
template <class A> void fields(A& a, In<A, LoweredGraph>& v) {
  a(v.name, v.buffers, v.operations, v.results, v.inputCount, v.inputWrites, v.writes, v.nodeNames);
}
template <class A> void fields(A& a, In<A, FusionDecision>& v) {
  a(v.a, v.b, v.fused, v.kind, v.reason, v.scoreBytes, v.byRule);
}
template <class A> void fields(A& a, In<A, FusionGroup>& v) { a(v.id, v.operations, v.kernel, v.name, v.bytesSaved); }

}  // namespace fusebox::inductor
