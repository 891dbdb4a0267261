#include "engine/compile/stored_module.h"

#include <cstring>

#include "engine/inductor/ir/archive_fields.h"
#include "engine/inductor/ir/archive_graph.h"
#include "engine/trace/convert.h"

namespace fusebox::aot {

using graph::In;

template <class A> void fields(A& a, In<A, OutputPlan>& v) {
  auto& [kind, index, views, parent, inputMemory, resultMemory, sibling, versions, detached, ownVersions, unrecorded, inference, isStale, isPlain, creation, meta] = v;  // views are strides over their base here, and no siblings
  a(kind, index, parent, inputMemory, resultMemory, versions, detached, ownVersions, unrecorded, inference, isStale, isPlain, creation, meta);
}
template <class A> void fields(A& a, In<A, MutationPlan>& v) {
  auto& [input, result, differentiable, metadata, inference, versions, meta] = v;
  a(input, result, differentiable, metadata, inference, versions, meta);
}
template <class A> void fields(A& a, In<A, SavedPlan>& v) {
  auto& [kind, index, aliasedResult, joint] = v;
  a(kind, index, aliasedResult, joint);
}
template <class A> void fields(A& a, In<A, InnerResult>& v) {
  auto& [tangent, arriving, whole, output, value, from] = v;
  a(tangent, arriving, whole, output, value, from);
}
template <class A> void fields(A& a, In<A, DataSize>& v) {
  auto& [symbol, value, dim, text] = v;
  a(symbol, value, dim, text);
}
template <class A> void fields(A& a, In<A, Positions>& v) { Positions::fields(a, v); }
template <class A> void fields(A& a, In<A, Way>& v) {
  auto& [given, computed] = v;
  a(given, computed);
}
template <class A> void fields(A& a, In<A, FunctionHistory>& v) {
  auto& [gradient, outputs, given, inputs, reads] = v;  // the graph stands behind
  a(outputs, given, inputs, reads);
}

}  // namespace fusebox::aot

namespace fusebox {
namespace {

using aot::AotModule;
using aot::OutputPlan;
using graph::In;
using inductor::ArchiveError;
using inductor::ArchiveReader;
using inductor::ArchiveWriter;

template <class A>
void moduleFields(A& a, In<A, AotModule>& m) {
  auto& [joint, traced, forward, backward, constants, inputs, memoryOf, outputs, mutations, saved, tangents, gradInputs, inner, keepers, reentrant, functions, forwardResults, symbols,
         hints, dataSizes, assumptions, beforeBackward, opaqueHistory] = m;  // graphs, constants and symbols stand before; what a file has read stays
  a(inputs, memoryOf, outputs, mutations, saved, tangents, gradInputs, inner, keepers, reentrant, functions, forwardResults, hints, dataSizes, assumptions, opaqueHistory);
}

const graph::TensorMeta* baseOf(const AotModule& module, const OutputPlan& plan) {
  if (plan.parent >= 0) return &module.outputs.at(static_cast<size_t>(plan.parent)).meta;
  if (plan.kind == OutputPlan::Kind::InputView) return &module.inputs.at(static_cast<size_t>(plan.index));
  const auto* value = module.forward.output()->args.at(static_cast<size_t>(plan.index)).as<graph::ValueRef>();
  return value ? &module.forward.meta(*value).tensor : nullptr;
}

/// Elements in dense order, whatever the strides.
struct Constant {
  graph::TensorMeta meta;
  std::string bytes;
};

at::Tensor tensorOf(const Constant& constant) {
  const auto numbers = [](const std::vector<graph::SymExpr>& list) {
    std::vector<int64_t> made;
    for (const graph::SymExpr& e : list) {
      const auto number = e.maybeConstant();
      if (!number || *number < 0) throw ArchiveError("a constant of unknown size");
      made.push_back(*number);
    }
    return made;
  };
  const std::vector<int64_t> sizes = numbers(constant.meta.sizes), strides = numbers(constant.meta.strides);
  if (strides.size() != sizes.size()) throw ArchiveError("a constant of unknown strides");
  const at::ScalarType type = static_cast<at::ScalarType>(constant.meta.dtype);
  unsigned __int128 count = 1, extent = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    count *= static_cast<uint64_t>(sizes[i]);
    if (sizes[i] > 0) extent += static_cast<unsigned __int128>(sizes[i] - 1) * static_cast<uint64_t>(strides[i]);
    if (count > (1ull << 40) || extent > (1ull << 40)) throw ArchiveError("a constant that is too large");
  }
  if (count * c10::elementSize(type) != constant.bytes.size()) throw ArchiveError("a constant of another size");
  at::Tensor dense = at::empty(sizes, type);
  if (!constant.bytes.empty()) std::memcpy(dense.data_ptr(), constant.bytes.data(), constant.bytes.size());
  return at::empty_strided(sizes, strides, dense.options().device(trace::fromDevice(constant.meta.device))).copy_(dense);
}

}  // namespace

bool isPlain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_conj() && !tensor.is_neg() && tensor.has_storage();
}

void writeTensor(ArchiveWriter& archive, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  archive(trace::toMeta(tensor, tensor.device()), std::string(static_cast<const char*>(dense.data_ptr()), dense.nbytes()));
}

at::Tensor readTensor(ArchiveReader& archive) {
  Constant constant;
  archive(constant.meta, constant.bytes);
  return tensorOf(constant);
}

std::string whyNotStored(const AotModule& module) {
  for (const OutputPlan& plan : module.outputs) {
    if (plan.views.empty() || (plan.kind != OutputPlan::Kind::InputView && plan.kind != OutputPlan::Kind::ResultView)) continue;
    const graph::TensorMeta* base = baseOf(module, plan);
    if (!base || base->dtype != plan.meta.dtype || graph::isComplex(base->dtype)) return "a result is a view of another element type";
  }
  for (const at::Tensor& constant : module.constants)
    if (constant.requires_grad() || !isPlain(constant))
      return "the program holds a tensor that is no plain constant: pass it as an argument";
  return {};
}

void writeModule(ArchiveWriter& archive, const AotModule& module) {
  archive(module.symbols);
  archive(module.backward.has_value(), module.traced.has_value());
  inductor::writeTracedGraph(archive, module.joint);
  if (module.traced) inductor::writeTracedGraph(archive, *module.traced);
  // Lines are the joint graph's, where there is one.
  if (module.joint.nodes().empty()) inductor::writeTracedGraph(archive, module.forward);
  else inductor::writeDerivedGraph(archive, module.forward, module.joint);
  if (module.backward) inductor::writeDerivedGraph(archive, *module.backward, module.joint);
  moduleFields(archive, module);
  for (auto& function : module.functions) inductor::writeTracedGraph(archive, function.gradient);
  archive(module.constants.size());
  for (const at::Tensor& constant : module.constants) writeTensor(archive, constant);
}

AotModule readModule(ArchiveReader& archive) {
  AotModule module;
  archive(module.symbols);
  bool hasBackward = false, isRewritten = false;
  archive(hasBackward, isRewritten);
  module.joint = inductor::readTracedGraph(archive);
  if (isRewritten) module.traced = inductor::readTracedGraph(archive);
  module.forward = module.joint.nodes().empty() ? inductor::readTracedGraph(archive) : inductor::readDerivedGraph(archive, module.joint);
  if (hasBackward) module.backward = inductor::readDerivedGraph(archive, module.joint);
  moduleFields(archive, module);
  for (auto& function : module.functions) function.gradient = inductor::readTracedGraph(archive);
  size_t constants = 0;
  archive(constants);
  for (; constants > 0; --constants) module.constants.push_back(readTensor(archive));
  return module;
}

}  // namespace fusebox
