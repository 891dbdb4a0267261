#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"
#include "engine/inductor/ir/archive.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/inductor/ir/program.h"

/// What archives hold of each structure. Its fields are bound by their number: one that is added and not thought of here does not compile.
namespace fusebox::graph {

/// A structure as an archive sees it: to be filled, or to be read.
template <class A, class T>
using In = std::conditional_t<A::kReads, T, const T>;

template <class A> void fields(A& a, In<A, SourceLine>& v) {
  auto& [file, line, function] = v;
  a(file, line, function);
}
template <class A> void fields(A& a, In<A, Relation>& v) {
  auto& [op, left, right, reason, origin] = v;
  a(op, left, right, reason, origin.stack, origin.modulePath);
}
template <class A> void fields(A& a, In<A, Device>& v) {
  auto& [kind, index] = v;
  a(kind, index);
}
template <class A> void fields(A& a, In<A, Layout>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, MemoryFormat>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, GeneratorRef>& v) { a(v.index); }
template <class A> void fields(A& a, In<A, ValueRef>& v) {
  auto& [node, output] = v;
  a(node, output);
}
template <class A> void fields(A& a, In<A, Argument>& v) { a(v.value); }
template <class A> void fields(A& a, In<A, TensorMeta>& v) {
  auto& [sizes, strides, storageOffset, dtype, device, requiresGrad] = v;
  a(sizes, strides, storageOffset, dtype, device, requiresGrad);
}
template <class A> void fields(A& a, In<A, OutputMeta>& v) {
  auto& [kind, tensor, scalar] = v;
  a(kind, tensor, scalar);
}

}  // namespace fusebox::graph

namespace fusebox::inductor {

using graph::In;

template <class A> void fields(A& a, In<A, Value>& v) {
  auto& [op, type, args, imm, buffer, index, mask, origin, line] = v;  // lines are numbered anew
  a(op, type, args, imm, buffer, index, mask, origin);
}
template <class A> void fields(A& a, In<A, Statement>& v) {
  auto& [kind, buffer, index, value, mask, reduce, reduction, inputs, line] = v;
  a(kind, buffer, index, value, mask, reduce, reduction, inputs);
}
template <class A> void fields(A& a, In<A, Axis>& v) {
  auto& [symbol, extent] = v;
  a(symbol, extent);
}
template <class A> void fields(A& a, In<A, Section>& v) {
  auto& [axes, isReduction, indirect, values, body] = v;
  a(axes, isReduction, indirect, values, body);
}
template <class A> void fields(A& a, In<A, Attention>& v) {
  auto& [width, depth, sharing, safe, stores] = v;
  a(width, depth, sharing, safe, stores);
}
template <class A> void fields(A& a, In<A, KernelBuffer>& v) {
  auto& [id, name, dtype, role, numel, alignment, overwrites] = v;
  a(id, name, dtype, role, numel, alignment, overwrites);
}
template <class A> void fields(A& a, In<A, Kernel>& v) {
  auto& [name, device, sizeSymbols, outer, attention, sections, buffers, isBatch] = v;
  a(name, device, sizeSymbols, outer, attention, sections, buffers, isBatch);
}

template <class A> void fields(A& a, In<A, ProgramBuffer>& v) {
  auto& [id, name, meta, kind, index, poolOffset, place, base] = v;
  a(id, name, meta, kind, index, poolOffset, place, base);
}
template <class A> void fields(A& a, In<A, LaunchStep>& v) {
  auto& [kernel, buffers, group, sizes, batch] = v;
  a(kernel, buffers, group, sizes, batch);
}
template <class A> void fields(A& a, In<A, ExternStep>& v) {
  auto& [op, args, results, integers, outVariant, changes, resultIsList, withGrad, group, reason] = v;
  a(op, args, results, integers, outVariant, changes, resultIsList, withGrad, group, reason);
}
template <class A> void fields(A& a, In<A, AllocateStep>& v) { a(v.buffer); }
template <class A> void fields(A& a, In<A, FreeStep>& v) { a(v.buffer); }
template <class A> void fields(A& a, In<A, PoolPlace>& v) {
  auto& [bytes, first, last, onDevice] = v;
  a(bytes, first, last, onDevice);
}
template <class A> void fields(A& a, In<A, Program>& v) {
  auto& [name, buffers, kernels, steps, results, inputCount, poolBytes, devicePoolBytes, poolDevice, places, firstUnrepeatable] = v;
  a(name, buffers, kernels, steps, results, inputCount, poolBytes, devicePoolBytes, poolDevice, places, firstUnrepeatable);
}

template <class A> void fields(A& a, In<A, LoweredBuffer>& v) {
  auto& [id, name, meta, kind, index, base, isKept] = v;
  a(id, name, meta, kind, index, base, isKept);
}
template <class A> void fields(A& a, In<A, Operation>& v) {
  auto& [id, name, kind, kernel, call, reads, writes, origins, order] = v;
  a(id, name, kind, kernel, call, reads, writes, origins, order);
}
template <class A> void fields(A& a, In<A, InputWrite>& v) {
  auto& [input, result, refusal] = v;
  a(input, result, refusal);
}
template <class A> void fields(A& a, In<A, WriteDecision>& v) {
  auto& [operation, inPlace, reason, bytes] = v;
  a(operation, inPlace, reason, bytes);
}
template <class A> void fields(A& a, In<A, LoweredGraph>& v) {
  auto& [name, buffers, operations, results, inputCount, inputWrites, writes, nodeNames] = v;
  a(name, buffers, operations, results, inputCount, inputWrites, writes, nodeNames);
}
template <class A> void fields(A& a, In<A, FusionDecision>& v) {
  auto& [first, second, fused, kind, reason, scoreBytes, byRule] = v;
  a(first, second, fused, kind, reason, scoreBytes, byRule);
}
template <class A> void fields(A& a, In<A, FusionGroup>& v) {
  auto& [id, operations, kernel, name, bytesSaved] = v;
  a(id, operations, kernel, name, bytesSaved);
}

}  // namespace fusebox::inductor
