#include "engine/compile/kept_graph.h"

#include "engine/inductor/ir/archive_fields.h"
#include "engine/inductor/ir/archive_graph.h"

namespace fusebox::codegen::cpu {

template <class A>
void fields(A& a, graph::In<A, LaunchFacts>& v) {
  auto& [phaseUnits, scratchBytes, bytesPerUnit, costPerUnit, checks] = v;
  a(phaseUnits, scratchBytes, bytesPerUnit, costPerUnit, checks);
}

}  // namespace fusebox::codegen::cpu

namespace fusebox::codegen::gpu {

using graph::In;

template <class A>
void fields(A& a, In<A, SizeFunction>& v) {
  auto& [expression, symbols] = v;
  a(expression, symbols);
}
template <class A>
void fields(A& a, In<A, GpuTarget>& v) {
  auto& [capability, multiprocessors] = v;
  a(capability, multiprocessors);
}
template <class A>
void fields(A& a, In<A, LaunchShape>& v) {
  auto& [threads, work, chunks, resident, ahead] = v;
  a(threads, work, chunks, resident, ahead);
}
template <class A>
void fields(A& a, In<A, PtxLaunch>& v) {
  auto& [entry, threads, blocks, sharedBytes] = v;
  a(entry, threads, blocks, sharedBytes);
}
template <class A>
void fields(A& a, In<A, PtxKernel>& v) {
  auto& [text, llvmIr, architecture, launches, isBatch, workBytes, least, most, bytesMoved, compileNs] = v;  // IR is made again where it is asked for
  a(text, architecture, launches, isBatch, workBytes, least, most, bytesMoved, compileNs);
}

}  // namespace fusebox::codegen::gpu

namespace fusebox::runtime::gpu {

template <class A>
void fields(A& a, graph::In<A, GpuKernelImage::Form>& v) {
  auto& [ptx, cubin] = v;
  a(ptx, cubin);
}
template <class A>
void fields(A& a, graph::In<A, GpuKernelImage>& v) {
  auto& [canonical, target, shape, isTuned, compileNs, aligned, unaligned, wide] = v;
  a(canonical, target, shape, isTuned, compileNs, aligned, unaligned, wide);
}

}  // namespace fusebox::runtime::gpu

namespace fusebox {
namespace {

using inductor::ArchiveError;
using inductor::ArchiveReader;
using inductor::ArchiveWriter;

template <class A>
void keptFields(A& a, graph::In<A, inductor::Program>& program,
                graph::In<A, std::vector<codegen::cpu::KernelImage>>& code,
                graph::In<A, std::vector<std::optional<runtime::gpu::GpuKernelImage>>>& gpuCode,
                graph::In<A, std::vector<std::optional<graph::TensorMeta>>>& results,
                graph::In<A, std::string>& forms) {
  a(program, gpuCode, results, forms);
  for (auto& image : code) a(image.tier, image.canonical, image.symbol, image.object, image.facts);
}

template <class A>
void formFields(A& a, graph::In<A, GraphForms>& v) {
  a(v.lowered, v.schedule.groups, v.schedule.decisions, v.schedule.unknownNames);
}

tl::unexpected<Error> damaged(const std::exception& error) {
  return fail(ErrorCode::Corrupt, std::string("the cache entry does not hold a compiled graph: ") + error.what());
}

}  // namespace

std::string writeKeptGraph(const KeptGraph& graph, const std::vector<graph::Symbol>& symbols) {
  ArchiveWriter archive(symbols);
  archive(graph.code.size());
  keptFields(archive, graph.program, graph.code, graph.gpuCode, graph.results, graph.forms);
  return archive.take();
}

Result<KeptGraph> readKeptGraph(std::string_view payload, const std::vector<graph::Symbol>& symbols) {
  try {
    ArchiveReader archive(payload, symbols);
    KeptGraph made;
    size_t kernels = 0;
    archive(kernels);
    if (kernels > payload.size()) throw ArchiveError("too many kernels");
    made.code.resize(kernels);
    keptFields(archive, made.program, made.code, made.gpuCode, made.results, made.forms);
    if (!archive.atEnd()) throw ArchiveError("there is more than that");
    if (made.code.size() != made.program.kernels.size() || made.gpuCode.size() != made.code.size()) throw ArchiveError("kernels without code");
    return made;
  } catch (const ArchiveError& error) {
    return damaged(error);
  }
}

std::string writeForms(const GraphForms& forms, const graph::Graph& traced, const std::vector<graph::Symbol>& symbols) {
  ArchiveWriter archive(symbols);
  inductor::writeDerivedGraph(archive, forms.postGrad, traced);
  formFields(archive, forms);
  return archive.take();
}

Result<GraphForms> readForms(std::string_view bytes, const graph::Graph& traced, const inductor::Program& program,
                             const std::vector<graph::Symbol>& symbols) {
  try {
    ArchiveReader archive(bytes, symbols);
    GraphForms forms;
    forms.postGrad = inductor::readDerivedGraph(archive, traced);
    formFields(archive, forms);
    if (!archive.atEnd()) throw ArchiveError("there is more than that");
    forms.schedule.program = program;
    return forms;
  } catch (const ArchiveError& error) {
    return damaged(error);
  }
}

}  // namespace fusebox
