#include "engine/compile/kept_graph.h"

#include "engine/inductor/ir/archive_fields.h"
#include "engine/inductor/ir/archive_graph.h"

namespace fusebox::codegen::cpu {

template <class A>
void fields(A& a, graph::In<A, LaunchFacts>& v) {
  a(v.phaseUnits, v.scratchBytes, v.bytesPerUnit, v.costPerUnit, v.checks);
}

}  // namespace fusebox::codegen::cpu

namespace fusebox {
namespace {

using inductor::ArchiveError;
using inductor::ArchiveReader;
using inductor::ArchiveWriter;

template <class A>
void keptFields(A& a, graph::In<A, inductor::Program>& program,
                graph::In<A, std::vector<codegen::cpu::KernelImage>>& code,
                graph::In<A, std::vector<std::optional<graph::TensorMeta>>>& results,
                graph::In<A, std::string>& forms) {
  a(program, results, forms);
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
  keptFields(archive, graph.program, graph.code, graph.results, graph.forms);
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
    keptFields(archive, made.program, made.code, made.results, made.forms);
    if (!archive.atEnd()) throw ArchiveError("there is more than that");
    if (made.code.size() != made.program.kernels.size()) throw ArchiveError("kernels without code");
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
