// The cold half of the recorder: records into rows, in the column order of profiler/session/schema_tables.cpp.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/record/graph_rows.h"
#include "engine/record/recorder_impl.h"

namespace fusebox::record {

using session::Cell;
using session::RowKind;
using session::RowSink;

std::string stackJson(const std::vector<Place>& stack) {
  if (stack.empty()) return {};
  nlohmann::json out = nlohmann::json::array();
  for (const Place& p : stack) out.push_back({{"file", p.file}, {"line", p.line}, {"function", p.function}});
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

std::string bytecodeJson(const std::vector<GraphBreakRecord::Instruction>& code) {
  if (code.empty()) return {};
  nlohmann::json out = nlohmann::json::array();
  for (const auto& i : code) {
    nlohmann::json one = {{"offset", i.offset}, {"line", i.line}, {"op", i.op}};
    if (!i.argument.empty()) one["arg"] = i.argument;
    if (i.to >= 0) one["to"] = i.to;
    out.push_back(std::move(one));
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

session::Writer::Cells codeCells(KernelCodeRecord r) {
  return {int64_t{r.kernel}, int64_t{r.tier}, textCell(std::move(r.target)), textCell(std::move(r.llvmIr)),
          textCell(std::move(r.assembly)), r.codeBytes, r.compileNs, textCell(r.cache), nowNs()};
}

}  // namespace

Id Recorder::frame(FrameRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.frame.fetch_add(1);
    impl_->noteFile(r.place);
    impl_->put(RowKind::Frame, {int64_t{id}, idCell(r.parent), textCell(r.name), textCell(r.qualname), textCell(r.place.file),
                                lineCell(r.place.line), positiveCell(r.resumeOffset), Cell{}, Cell{}, nowNs()});
    return id;
  });
}

void Recorder::frameStatus(Id frame, std::string status, std::string reason) {
  impl_->guarded([&] { impl_->put(RowKind::FrameStatus, {int64_t{frame}, textCell(status), textCell(reason)}); });
}

Id Recorder::beginCompile(CompileRecord r) {
  return impl_->guarded([&] {
    if (thread_.owner != this) attachThread();
    const Id id = impl_->ids.compile.fetch_add(1);
    impl_->put(RowKind::Compile,
               {int64_t{id}, idCell(r.frame), idCell(r.parent), int64_t{r.attempt}, textCell(r.kind), textCell(r.backend),
                textCell(r.mode), int64_t{r.dynamic}, nowNs(), Cell{}, Cell{}, Cell{}, Cell{}, Cell{}, idCell(r.cause),
                int64_t{thread_.id}, textCell(r.place.file), lineCell(r.place.line)});
    return id;
  });
}

void Recorder::endCompile(Id compile, CompileEnd e) {
  impl_->guarded([&] {
    impl_->put(RowKind::CompileEnd, {int64_t{compile}, nowNs(), std::string(e.ok ? "ok" : "failed"), textCell(e.error),
                                     textCell(e.cache), textCell(e.cacheKey)});
  });
}

Id Recorder::graphBreak(GraphBreakRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.graphBreak.fetch_add(1);
    impl_->noteFile(r.place);
    for (const Place& p : r.stack) impl_->noteFile(p);
    impl_->put(RowKind::GraphBreak,
               {int64_t{id}, idCell(r.frame), idCell(r.compile), textCell(r.kind), textCell(r.reason), textCell(r.hint),
                textCell(r.place.file), lineCell(r.place.line), lineCell(r.endLine), positiveCell(r.column),
                positiveCell(r.endColumn), textCell(r.opcode), positiveCell(r.offset), textCell(stackJson(r.stack)), nowNs(), textCell(bytecodeJson(r.bytecode))});
    return id;
  });
}

Id Recorder::guards(Id compile, std::vector<GuardRecord> guards) {
  return impl_->guarded([&] {
    const Id first = impl_->ids.guard.fetch_add(static_cast<Id>(guards.size()));
    int64_t bytes = 0;
    for (const GuardRecord& g : guards) {
      impl_->noteFile(g.place);
      bytes += 200 + static_cast<int64_t>(g.source.size() + g.expected.size() + g.code.size() + g.reason.size());
    }
    auto job = [this, first, compile, guards = std::move(guards)](RowSink& sink) {
      int64_t position = 0;
      for (const GuardRecord& g : guards) {
        sink.put(RowKind::Guard, {first + position, idCell(compile), position, textCell(g.kind), textCell(g.source),
                                  textCell(g.expected), textCell(g.code), textCell(g.reason), textCell(g.place.file),
                                  lineCell(g.place.line), stackCell(stackJson(g.stack), impl_->stacks, sink)});
        ++position;
      }
    };
    impl_->writer->post(std::move(job), bytes);
    return first;
  });
}

Id Recorder::guardFailure(GuardFailureRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.failure.fetch_add(1);
    impl_->noteFile(r.place);
    for (const Place& p : r.stack) impl_->noteFile(p);
    impl_->put(RowKind::GuardFailure,
               {int64_t{id}, idCell(r.frame), idCell(r.compile), idCell(r.guard), textCell(r.text), textCell(r.expected),
                textCell(r.found), textCell(r.outcome), textCell(r.place.file), lineCell(r.place.line), nowNs(),
                textCell(stackJson(r.stack))});
    return id;
  });
}

GraphSnapshot Recorder::graph(const graph::Graph& graph, GraphRecord record) {
  return impl_->guarded([&] { return this->graph(std::make_shared<const graph::Graph>(graph), std::move(record)); });
}

GraphSnapshot Recorder::graph(std::shared_ptr<const graph::Graph> graph, GraphRecord record) {
  return impl_->guarded([&] {
    const auto count = static_cast<Id>(graph->nodes().size());
    const GraphSnapshot snapshot{impl_->ids.graph.fetch_add(1), impl_->ids.node.fetch_add(count)};
    const std::vector<graph::SourceLine>* last = nullptr;
    for (const graph::Node& node : graph->nodes()) {
      if (!node.origin.stack || node.origin.stack.get() == last) continue;
      last = node.origin.stack.get();
      if (const auto* place = placeOf(node)) impl_->sources.add(*impl_->writer, place->file);
    }
    auto job = [this, graph = std::move(graph), snapshot, record = std::move(record), now = nowNs()](RowSink& sink) {
      writeGraph(*graph, snapshot, record, now, impl_->stacks, sink);
    };
    impl_->writer->post(std::move(job), int64_t{count} * 600);
    return snapshot;
  });
}

void Recorder::saveGraph(const GraphSnapshot& snapshot, std::shared_ptr<const graph::Graph> graph,
                         std::vector<graph::ConstantData> constants, graph::SymbolHints hints) {
  if (snapshot.id == 0) return;
  impl_->guarded([&] {
    int64_t bytes = static_cast<int64_t>(graph->nodes().size()) * 600;
    for (const auto& constant : constants) bytes += static_cast<int64_t>(constant.bytes.size());
    auto job = [id = snapshot.id, graph = std::move(graph), constants = std::move(constants), hints = std::move(hints)](RowSink& sink) {
      sink.put(RowKind::SavedGraph, {int64_t{id}, int64_t{graph::kSavedGraphVersion}, graph::writeSavedGraph(*graph, constants, hints)});
    };
    impl_->writer->post(std::move(job), bytes);
  });
}

void Recorder::numerics(NumericsRecord r) {
  const auto known = [](double value) { return value >= 0 ? Cell{value} : Cell{}; };
  impl_->guarded([&] {
    impl_->put(RowKind::Numerics,
               {int64_t{r.graph}, int64_t{r.node}, int64_t{r.output}, textCell(r.dtype), r.elements, known(r.eagerAbs),
                known(r.eagerRel), known(r.compiledAbs), known(r.compiledRel), known(r.differenceAbs), known(r.differenceUlp),
                known(r.localAbs), known(r.magnitude), r.mismatches, int64_t{r.divergent}, textCell(r.note)});
  });
}

Id Recorder::fusionGroup(FusionGroupRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.group.fetch_add(1);
    const int64_t bytes = 300 + static_cast<int64_t>(r.nodes.size()) * 40;
    auto job = [id, r = std::move(r)](RowSink& sink) {
      const auto isResult = [&](int32_t node) { return std::find(r.results.begin(), r.results.end(), node) != r.results.end(); };
      sink.put(RowKind::FusionGroup,
               {int64_t{id}, idCell(r.compile), idCell(r.graph.id), int64_t{r.position}, textCell(r.name), textCell(r.kind),
                idCell(r.kernel), r.readBytes, r.writeBytes, r.bytesSaved, textCell(r.reason), Cell{}, Cell{}});
      int64_t position = 0;
      for (const int32_t node : r.nodes) {
        sink.put(RowKind::FusionMember, {int64_t{id}, int64_t{r.graph.node(node)}, position++,
                                         std::string(isResult(node) ? "result" : "inner")});
      }
      sink.putIntegers(RowKind::FusionGroupPlace, {id});
    };
    impl_->writer->post(std::move(job), bytes);
    return id;
  });
}

void Recorder::fusionDecision(FusionDecisionRecord r) {
  impl_->guarded([&] {
    const Id id = impl_->ids.decision.fetch_add(1);
    impl_->put(RowKind::FusionDecision,
               {int64_t{id}, idCell(r.compile), idCell(r.graph.id), int64_t{r.position}, textCell(r.a), textCell(r.b),
                idCell(r.graph.node(r.aNode)), idCell(r.graph.node(r.bNode)), idCell(r.group), textCell(r.kind),
                int64_t{r.fused}, textCell(r.reason), textCell(r.detail), r.scoreBytes});
  });
}

Id Recorder::buffer(BufferRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.buffer.fetch_add(1);
    impl_->put(RowKind::Buffer,
               {int64_t{id}, idCell(r.compile), idCell(r.graph.id), textCell(r.name), textCell(r.kind),
                idCell(r.graph.node(r.node)), textCell(r.dtype), textCell(r.shape), textCell(r.device), r.bytes,
                positiveCell(r.firstUse), positiveCell(r.lastUse), positiveCell(r.poolOffset), idCell(r.reuses)});
    return id;
  });
}

Id Recorder::kernel(KernelRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.kernel.fetch_add(1);
    const int64_t bytes = 400 + static_cast<int64_t>(r.loopIr.size());
    auto job = [id, r = std::move(r), now = nowNs()](RowSink& sink) {
      sink.put(RowKind::Kernel,
               {int64_t{id}, idCell(r.compile), idCell(r.graph.id), idCell(r.group), textCell(r.name), textCell(r.kind),
                textCell(r.op), textCell(r.device), textCell(r.loopIr), textCell(r.reason), r.readBytes, r.writeBytes, r.flops,
                textCell(r.place.file), lineCell(r.place.line), now, idCell(r.codeOf)});
      for (const int32_t node : r.nodes) sink.putIntegers(RowKind::KernelPlace, {id, r.graph.node(node)});
    };
    impl_->writer->post(std::move(job), bytes);
    return id;
  });
}

void Recorder::kernelCode(KernelCodeRecord r) {
  impl_->guarded([&] { impl_->writer->post(RowKind::KernelCode, codeCells(std::move(r))); });
}

void Recorder::kernelCode(std::function<std::optional<KernelCodeRecord>()> make) {
  impl_->guarded([&] {
    auto job = [make = std::move(make)](RowSink& sink) {
      if (auto record = make()) sink.put(RowKind::KernelCode, codeCells(std::move(*record)));
    };
    impl_->writer->post(std::move(job), 20000);
  });
}

void Recorder::stage(StageRecord r) {
  impl_->guarded([&] {
    if (thread_.owner != this) attachThread();
    const Id id = impl_->ids.stage.fetch_add(1);
    impl_->put(RowKind::Stage, {int64_t{id}, idCell(r.compile), idCell(thread_.stage), int64_t{thread_.depth}, textCell(r.phase),
                                textCell(r.name), r.startNs, r.endNs, int64_t{thread_.id}, positiveCell(r.changed),
                                positiveCell(r.nodesBefore), positiveCell(r.nodesAfter), Cell{}, textCell(r.detail)});
  });
}

void Recorder::cacheEvent(CacheRecord r) {
  impl_->guarded([&] {
    const Id id = impl_->ids.cache.fetch_add(1);
    impl_->put(RowKind::CacheEvent, {int64_t{id}, idCell(r.compile), textCell(r.cache), textCell(r.outcome), textCell(r.key),
                                     textCell(r.reason), r.savedNs, nowNs()});
  });
}

Id Recorder::cudaGraph(CudaGraphRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.cudaGraph.fetch_add(1);
    impl_->put(RowKind::CudaGraph,
               {int64_t{id}, idCell(r.compile), textCell(r.event), positiveCell(r.number), textCell(r.reason), positiveCell(r.replaces),
                textCell(r.device), positiveCell(r.nodeCount), positiveCell(r.stretches), positiveCell(r.plainSteps),
                textCell(r.plainReason), positiveCell(r.staticInputs), positiveCell(r.copiedInputs), positiveCell(r.copiedBytes),
                positiveCell(r.keptBytes), r.startNs, r.durNs, idCell(r.kernel), positiveCell(r.poolBytes)});
    if (thread_.owner != this) attachThread();
    cupti::GraphRecorded made{r.kernel, thread_.id, r.startNs, r.startNs + r.durNs, {}};
    for (const auto& n : r.nodes) {
      made.nodes.push_back({n.stretch, n.first, n.count, n.kernel});
      impl_->put(RowKind::CudaGraphNode, {int64_t{id}, int64_t{n.stretch}, int64_t{n.first}, int64_t{n.count}, idCell(n.group),
                                          idCell(n.kernel)});
    }
    if (r.kernel > 0 && !made.nodes.empty()) impl_->gpu->graphRecorded(made);
    return id;
  });
}

void Recorder::span(SpanRecord r) {
  impl_->guarded([&] {
    if (thread_.owner != this) attachThread();
    const Id id = impl_->ids.span.fetch_add(1);
    impl_->noteFile(r.place);
    impl_->put(RowKind::CpuEvent,
               {int64_t{id}, textCell(r.kind), textCell(r.name), r.startNs, r.durNs, int64_t{thread_.id}, int64_t{0},
                idCell(r.compile), textCell(r.detail), textCell(r.place.file), lineCell(r.place.line)});
  });
}

}  // namespace fusebox::record
