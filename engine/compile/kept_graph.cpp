#include "engine/compile/kept_graph.h"

#include "engine/inductor/ir/archive_fields.h"
#include "engine/inductor/ir/archive_graph.h"

namespace fusebox::codegen::cpu {

template <class A>
void fields(A& a, graph::In<A, LaunchFacts>& v) {
  a(v.phaseUnits, v.scratchBytes, v.bytesPerUnit, v.costPerUnit, v.checks);
}

}  // namespace fusebox::codegen::cpu

namespace fusebox::codegen::gpu {

using graph::In;

template <class A>
void fields(A& a, In<A, SizeFunction>& v) {
  a(v.expression, v.symbols);
}
template <class A>
void fields(A& a, In<A, GpuTarget>& v) {
  a(v.capability, v.multiprocessors);
}
template <class A>
void fields(A& a, In<A, LaunchShape>& v) {
  a(v.threads, v.work, v.chunks, v.resident, v.ahead);
}
template <class A>
void fields(A& a, In<A, PtxLaunch>& v) {
  a(v.entry, v.threads, v.blocks, v.sharedBytes);
}
template <class A>
void fields(A& a, In<A, PtxKernel>& v) {
  a(v.text, v.architecture, v.launches, v.isBatch, v.workBytes, v.bytesMoved, v.compileNs);
}

}  // namespace fusebox::codegen::gpu

namespace fusebox::runtime::gpu {

template <class A>
void fields(A& a, graph::In<A, GpuKernelImage::Form>& v) {
  a(v.ptx, v.cubin);
}
template <class A>
void fields(A& a, graph::In<A, GpuKernelImage>& v) {
  a(v.canonical, v.target, v.shape, v.isTuned, v.compileNs, v.aligned, v.unaligned);
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
