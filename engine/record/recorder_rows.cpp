// The cold half of the recorder: records into rows, in the column order of profiler/session/schema_tables.cpp.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/record/graph_rows.h"
#include "engine/record/recorder_impl.h"
#include "engine/support/file_owner.h"
#include "profiler/session/log_id.h"

namespace fusebox::record {

using session::Cell;
namespace rows = session::rows;
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

rows::KernelCode codeRow(KernelCodeRecord r) {
  return {.kernel_id = int64_t{r.kernel}, .tier = int64_t{r.tier}, .target = textCell(std::move(r.target)), .llvm_ir = textCell(std::move(r.llvmIr)),
      .assembly = textCell(std::move(r.assembly)), .code_bytes = r.codeBytes, .compile_ns = r.compileNs, .cache = textCell(r.cache),
      .time_ns = nowNs()};
}

}  // namespace

Id Recorder::frame(FrameRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.frame.fetch_add(1);
    impl_->tell(id, r);
    impl_->noteFile(r.place);
    impl_->put(rows::Frame{.id = int64_t{id}, .parent_id = idCell(r.parent), .name = textCell(r.name), .qualname = textCell(r.qualname),
        .file = textCell(r.place.file), .line = lineCell(r.place.line), .resume_offset = positiveCell(r.resumeOffset), .first_seen_ns = nowNs()});
    return id;
  });
}

void Recorder::frameStatus(Id frame, std::string status, std::string reason) {
  impl_->guarded([&] {
    impl_->tell(0, FrameStatusRecord{frame, status, reason});
    impl_->put(rows::FrameStatus{.id = int64_t{frame}, .status = textCell(status), .reason = textCell(reason)});
  });
}

Id Recorder::beginCompile(CompileRecord r) {
  return impl_->guarded([&] {
    if (thread_.owner != this) attachThread();
    const Id id = impl_->ids.compile.fetch_add(1);
    impl_->tell(id, r);
    impl_->put(rows::Compile{.id = int64_t{id}, .frame_id = idCell(r.frame), .parent_id = idCell(r.parent), .attempt = int64_t{r.attempt},
        .kind = textCell(r.kind), .backend = textCell(r.backend), .mode = textCell(r.mode), .dynamic = int64_t{r.dynamic}, .start_ns = nowNs(),
        .failure_id = idCell(r.cause), .thread = int64_t{thread_.id}, .file = textCell(r.place.file), .line = lineCell(r.place.line),
        .log_id = r.frame ? textCell(session::logId({}, int64_t{r.frame} - 1, r.attempt)) : Cell{}});
    return id;
  });
}

void Recorder::endCompile(Id compile, CompileEnd e) {
  impl_->guarded([&] {
    impl_->tell(0, CompileEndRecord{compile, e});
    impl_->put(rows::CompileEnd{.id = int64_t{compile}, .end_ns = nowNs(), .status = std::string(e.ok ? "ok" : "failed"),
        .error = textCell(e.error), .cache = textCell(e.cache), .cache_key = textCell(e.cacheKey)});
  });
}

Id Recorder::graphBreak(GraphBreakRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.graphBreak.fetch_add(1);
    if (const Place* program = programPlace(r.stack); program && !isProgramFile(r.place.file) && isProgramFile(program->file)) {
      r.place = *program;
      r.endLine = 0;
      r.column = r.endColumn = -1;
    }
    impl_->tell(id, r);
    impl_->noteFile(r.place);
    for (const Place& p : r.stack) impl_->noteFile(p);
    impl_->put(rows::GraphBreak{.id = int64_t{id}, .frame_id = idCell(r.frame), .compile_id = idCell(r.compile), .kind = textCell(r.kind),
        .reason = textCell(r.reason), .hint = textCell(r.hint), .file = textCell(r.place.file), .line = lineCell(r.place.line),
        .end_line = lineCell(r.endLine), .col = positiveCell(r.column), .end_col = positiveCell(r.endColumn), .opcode = textCell(r.opcode),
        .offset = positiveCell(r.offset), .stack = textCell(stackJson(r.stack)), .time_ns = nowNs(),
        .bytecode = textCell(bytecodeJson(r.bytecode))});
    return id;
  });
}

Id Recorder::guards(Id compile, std::vector<GuardRecord> guards) {
  return impl_->guarded([&] {
    const Id first = impl_->ids.guard.fetch_add(static_cast<Id>(guards.size()));
    impl_->tell(first, Listed<GuardRecord>{compile, guards});
    int64_t bytes = 0;
    for (const GuardRecord& g : guards) {
      impl_->noteFile(g.place);
      bytes += 200 + static_cast<int64_t>(g.source.size() + g.expected.size() + g.code.size() + g.reason.size());
    }
    auto job = [this, first, compile, guards = std::move(guards)](RowSink& sink) {
      int64_t position = 0;
      for (const GuardRecord& g : guards) {
        sink.put(rows::Guard{.id = first + position, .compile_id = idCell(compile), .position = position, .kind = textCell(g.kind),
            .source = textCell(g.source), .expected = textCell(g.expected), .code = textCell(g.code), .reason = textCell(g.reason),
            .file = textCell(g.place.file), .line = lineCell(g.place.line), .stack = stackCell(stackJson(g.stack), impl_->stacks, sink)});
        ++position;
      }
    };
    impl_->post(std::move(job), bytes);
    return first;
  });
}

Id Recorder::guardFailure(GuardFailureRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.failure.fetch_add(1);
    impl_->tell(id, r);
    impl_->noteFile(r.place);
    for (const Place& p : r.stack) impl_->noteFile(p);
    impl_->put(rows::GuardFailure{.id = int64_t{id}, .frame_id = idCell(r.frame), .compile_id = idCell(r.compile), .guard_id = idCell(r.guard),
        .guard = textCell(r.text), .expected = textCell(r.expected), .found = textCell(r.found), .outcome = textCell(r.outcome),
        .file = textCell(r.place.file), .line = lineCell(r.place.line), .time_ns = nowNs(), .stack = textCell(stackJson(r.stack))});
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
    impl_->tell(snapshot.id, HeardGraph{record, graph});
    if (!isSession_) return snapshot;
    const std::vector<graph::SourceLine>* last = nullptr;
    for (const graph::Node& node : graph->nodes()) {
      if (!node.origin.stack || node.origin.stack.get() == last) continue;
      last = node.origin.stack.get();
      if (const auto* place = placeOf(node)) impl_->noteFile({place->file, 0, {}});
    }
    auto job = [this, graph = std::move(graph), snapshot, record = std::move(record), now = nowNs()](RowSink& sink) {
      writeGraph(*graph, snapshot, record, now, impl_->stacks, sink);
    };
    impl_->post(std::move(job), int64_t{count} * 600);
    return snapshot;
  });
}

void Recorder::saveGraph(const GraphSnapshot& snapshot, std::shared_ptr<const graph::Graph> graph,
                         std::vector<graph::ConstantData> constants, graph::SymbolHints hints) {
  if (snapshot.id == 0 || !isSession_) return;
  impl_->guarded([&] {
    int64_t bytes = static_cast<int64_t>(graph->nodes().size()) * 600;
    for (const auto& constant : constants) bytes += static_cast<int64_t>(constant.bytes.size());
    auto job = [id = snapshot.id, graph = std::move(graph), constants = std::move(constants), hints = std::move(hints)](RowSink& sink) {
      sink.put(rows::SavedGraph{.graph_id = int64_t{id}, .format = int64_t{graph::kSavedGraphVersion},
          .text = graph::writeSavedGraph(*graph, constants, hints)});
    };
    impl_->post(std::move(job), bytes);
  });
}

void Recorder::numerics(NumericsRecord r) {
  const auto known = [](double value) { return value >= 0 ? Cell{value} : Cell{}; };
  impl_->guarded([&] {
    impl_->put(rows::Numerics{.graph_id = int64_t{r.graph}, .node_id = int64_t{r.node}, .output = int64_t{r.output}, .dtype = textCell(r.dtype),
        .elements = r.elements, .eager_abs = known(r.eagerAbs), .eager_rel = known(r.eagerRel), .compiled_abs = known(r.compiledAbs),
        .compiled_rel = known(r.compiledRel), .difference_abs = known(r.differenceAbs), .difference_ulp = known(r.differenceUlp),
        .local_abs = known(r.localAbs), .magnitude = known(r.magnitude), .mismatches = r.mismatches, .is_divergent = int64_t{r.divergent},
        .note = textCell(r.note)});
  });
}

Id Recorder::fusionGroup(FusionGroupRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.group.fetch_add(1);
    impl_->tell(id, r);
    const int64_t bytes = 300 + static_cast<int64_t>(r.nodes.size()) * 40;
    auto job = [id, r = std::move(r)](RowSink& sink) {
      const auto isResult = [&](int32_t node) { return std::find(r.results.begin(), r.results.end(), node) != r.results.end(); };
      sink.put(rows::FusionGroup{.id = int64_t{id}, .compile_id = idCell(r.compile), .graph_id = idCell(r.graph.id),
          .position = int64_t{r.position}, .name = textCell(r.name), .kind = textCell(r.kind), .kernel_id = idCell(r.kernel),
          .read_bytes = r.readBytes, .write_bytes = r.writeBytes, .bytes_saved = r.bytesSaved, .reason = textCell(r.reason)});
      int64_t position = 0;
      for (const int32_t node : r.nodes) {
        sink.put(rows::FusionMember{.group_id = int64_t{id}, .node_id = int64_t{r.graph.node(node)}, .position = position++,
            .role = std::string(isResult(node) ? "result" : "inner")});
      }
      sink.put(rows::FusionGroupPlace{.id = int64_t{id}});
    };
    impl_->post(std::move(job), bytes);
    return id;
  });
}

void Recorder::fusionDecision(FusionDecisionRecord r) {
  impl_->guarded([&] {
    const Id id = impl_->ids.decision.fetch_add(1);
    impl_->tell(id, r);
    impl_->put(rows::FusionDecision{.id = int64_t{id}, .compile_id = idCell(r.compile), .graph_id = idCell(r.graph.id),
        .position = int64_t{r.position}, .a = textCell(r.a), .b = textCell(r.b), .a_node = idCell(r.graph.node(r.aNode)),
        .b_node = idCell(r.graph.node(r.bNode)), .group_id = idCell(r.group), .kind = textCell(r.kind), .fused = int64_t{r.fused},
        .reason = textCell(r.reason), .detail = textCell(r.detail), .score_bytes = r.scoreBytes});
  });
}

Id Recorder::buffer(BufferRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.buffer.fetch_add(1);
    impl_->tell(id, r);
    impl_->put(rows::Buffer{.id = int64_t{id}, .compile_id = idCell(r.compile), .graph_id = idCell(r.graph.id), .name = textCell(r.name),
        .kind = textCell(r.kind), .node_id = idCell(r.graph.node(r.node)), .dtype = textCell(r.dtype), .shape = textCell(r.shape),
        .device = textCell(r.device), .bytes = r.bytes, .first_use = positiveCell(r.firstUse), .last_use = positiveCell(r.lastUse),
        .pool_offset = positiveCell(r.poolOffset), .reuses_id = idCell(r.reuses)});
    return id;
  });
}

Id Recorder::kernel(KernelRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.kernel.fetch_add(1);
    impl_->tell(id, r);
    const int64_t bytes = 400 + static_cast<int64_t>(r.loopIr.size());
    auto job = [id, r = std::move(r), now = nowNs()](RowSink& sink) {
      sink.put(rows::Kernel{.id = int64_t{id}, .compile_id = idCell(r.compile), .graph_id = idCell(r.graph.id), .group_id = idCell(r.group),
          .name = textCell(r.name), .kind = textCell(r.kind), .op = textCell(r.op), .device = textCell(r.device), .loop_ir = textCell(r.loopIr),
          .reason = textCell(r.reason), .read_bytes = r.readBytes, .write_bytes = r.writeBytes, .flops = r.flops, .file = textCell(r.place.file),
          .line = lineCell(r.place.line), .time_ns = now, .code_of = idCell(r.codeOf)});
      for (const int32_t node : r.nodes) sink.put(rows::KernelPlace{.id = int64_t{id}, .node_id = int64_t{r.graph.node(node)}});
    };
    impl_->post(std::move(job), bytes);
    return id;
  });
}

void Recorder::kernelCode(KernelCodeRecord r) {
  impl_->guarded([&] {
    impl_->tell(0, r);
    impl_->put(codeRow(std::move(r)));
  });
}

void Recorder::kernelCode(std::function<std::optional<KernelCodeRecord>()> make) {
  impl_->guarded([&] {
    if (const Listener* hears = listener(); hears && hears->wantsCode) {
      if (auto record = make()) kernelCode(std::move(*record));
      return;
    }
    auto job = [make = std::move(make)](RowSink& sink) {
      if (auto record = make()) sink.put(codeRow(std::move(*record)));
    };
    impl_->post(std::move(job), 20000);
  });
}

void Recorder::ir(IrRecord r) {
  impl_->guarded([&] { impl_->tell(0, r); });
}

void Recorder::tracedInstruction(TracedInstruction r) {
  impl_->guarded([&] { impl_->tell(0, r); });
}

void Recorder::bytecode(BytecodeRecord r) {
  impl_->guarded([&] { impl_->tell(0, r); });
}

void Recorder::effects(EffectsRecord r) {
  impl_->guarded([&] { impl_->tell(0, r); });
}

void Recorder::stage(StageRecord r) {
  impl_->guarded([&] {
    if (thread_.owner != this) attachThread();
    const Id id = impl_->ids.stage.fetch_add(1);
    impl_->tell(id, r);
    impl_->put(rows::Stage{.id = int64_t{id}, .compile_id = idCell(r.compile), .parent_id = idCell(thread_.stage),
        .depth = int64_t{thread_.depth}, .phase = textCell(r.phase), .name = textCell(r.name), .start_ns = r.startNs, .end_ns = r.endNs,
        .thread = int64_t{thread_.id}, .changed = positiveCell(r.changed), .nodes_before = positiveCell(r.nodesBefore),
        .nodes_after = positiveCell(r.nodesAfter), .detail = textCell(r.detail)});
  });
}

void Recorder::cacheEvent(CacheRecord r) {
  impl_->guarded([&] {
    const Id id = impl_->ids.cache.fetch_add(1);
    impl_->tell(id, r);
    impl_->put(rows::CacheEvent{.id = int64_t{id}, .compile_id = idCell(r.compile), .cache = textCell(r.cache), .outcome = textCell(r.outcome),
        .key = textCell(r.key), .reason = textCell(r.reason), .saved_ns = r.savedNs, .time_ns = nowNs()});
    if (r.cache == "graph" && r.outcome != "store")
      impl_->put(rows::CompileCache{.id = int64_t{r.compile}, .cache = textCell(r.outcome), .cache_key = textCell(r.key)});
  });
}

Id Recorder::cudaGraph(CudaGraphRecord r) {
  return impl_->guarded([&] {
    const Id id = impl_->ids.cudaGraph.fetch_add(1);
    impl_->tell(id, r);
    if (!isSession_) return id;
    impl_->put(rows::CudaGraph{.id = int64_t{id}, .compile_id = idCell(r.compile), .event = textCell(r.event), .number = positiveCell(r.number),
        .reason = textCell(r.reason), .replaces = positiveCell(r.replaces), .device = textCell(r.device), .nodes = positiveCell(r.nodeCount),
        .stretches = positiveCell(r.stretches), .plain_steps = positiveCell(r.plainSteps), .plain_reason = textCell(r.plainReason),
        .static_inputs = positiveCell(r.staticInputs), .copied_inputs = positiveCell(r.copiedInputs), .copied_bytes = positiveCell(r.copiedBytes),
        .kept_bytes = positiveCell(r.keptBytes), .time_ns = r.startNs, .dur_ns = r.durNs, .kernel_id = idCell(r.kernel),
        .pool_bytes = positiveCell(r.poolBytes)});
    if (thread_.owner != this) attachThread();
    cupti::GraphRecorded made{r.kernel, thread_.id, r.startNs, r.startNs + r.durNs, {}};
    for (const auto& n : r.nodes) {
      made.nodes.push_back({n.stretch, n.first, n.count, n.kernel});
      impl_->put(rows::CudaGraphNode{.graph_id = int64_t{id}, .stretch = int64_t{n.stretch}, .first_node = int64_t{n.first},
          .node_count = int64_t{n.count}, .group_id = idCell(n.group), .kernel_id = idCell(n.kernel)});
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
    impl_->put(rows::CpuEvent{.id = int64_t{id}, .kind = textCell(r.kind), .name = textCell(r.name), .start_ns = r.startNs, .dur_ns = r.durNs,
        .thread = int64_t{thread_.id}, .depth = int64_t{0}, .compile_id = idCell(r.compile), .detail = textCell(r.detail),
        .file = textCell(r.place.file), .line = lineCell(r.place.line)});
  });
}

}  // namespace fusebox::record
