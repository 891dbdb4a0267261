#include "engine/compile/compiled_region.h"

#include <algorithm>

#include "engine/compile/kernel_code.h"
#include "engine/compile/pipeline_stops.h"
#include "engine/record/gpu_recording.h"

namespace fusebox {

using inductor::Operation;
using record::GpuRecording;
using record::Recorder;

/// Forwards launches of one region to one recording. Sinks live as long as their region, which outlives its runs.
struct CompiledRegion::Sink : runtime::LaunchSink {
  Recorder* recorder;
  record::Id compile;
  std::vector<record::Id> groups, kernels;
  std::vector<int64_t> bytes;  ///< that a group moves, for calls of operators, which do not say themselves

  Sink(Recorder* r, record::Id c, std::vector<record::Id> g, std::vector<record::Id> k, const ProgramFacts& facts)
      : recorder(r), compile(c), groups(std::move(g)), kernels(std::move(k)) {
    for (const auto& traffic : facts.groups) bytes.push_back(traffic.readBytes + traffic.writeBytes);
    record = [](runtime::LaunchSink* self, const runtime::LaunchRecord& launch) {
      auto* sink = static_cast<Sink*>(self);
      if (launch.group < 0 || launch.group >= static_cast<int32_t>(sink->groups.size())) return;
      const size_t group = static_cast<size_t>(launch.group);
      sink->recorder->launch(sink->kernels[group], sink->groups[group], launch.startNs, launch.durationNs,
                             launch.kernel < 0 ? sink->bytes[group] : launch.bytes);
    };
  }
};

namespace {

std::vector<std::optional<graph::TensorMeta>> resultsOfGraph(const inductor::LoweredGraph& lowered) {
  std::vector<std::optional<graph::TensorMeta>> metas(lowered.results.size());
  for (size_t i = 0; i < metas.size(); ++i)
    if (const auto* value = lowered.results[i].as<graph::ValueRef>()) metas[i] = lowered.buffers[static_cast<size_t>(value->node)].meta;
  return metas;
}

}  // namespace

CompiledRegion::CompiledRegion(GraphForms forms, std::shared_ptr<runtime::CompiledGraph> program, std::string name, std::string direction)
    : CompiledRegion(ReadForms(), resultsOfGraph(forms.lowered), std::move(program), std::move(name), std::move(direction)) {
  forms_ = std::move(forms);
}

CompiledRegion::CompiledRegion(ReadForms read, std::vector<std::optional<graph::TensorMeta>> results, std::shared_ptr<runtime::CompiledGraph> program,
                               std::string name, std::string direction)
    : read_(std::move(read)),
      results_(std::move(results)),
      program_(std::move(program)),
      name_(std::move(name)),
      direction_(std::move(direction)),
      isBackward_(direction_ == "backward") {}

Result<const GraphForms*> CompiledRegion::forms() {
  std::lock_guard lock(formsMutex_);
  if (auto read = std::exchange(read_, nullptr)) forms_ = read();
  if (!forms_) return tl::unexpected(forms_.error());
  return &*forms_;
}

CompiledRegion::~CompiledRegion() = default;

std::vector<at::Tensor> CompiledRegion::run(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
  Recorder* recorder = Recorder::active();
  if (recorder != described_.load(std::memory_order_acquire)) [[unlikely]] {
    const auto& caller = Recorder::caller();
    const Recorder::Quiet quiet;
    describe(recorder, caller.compile, caller.forward);
  }
  struct Inside {
    Inside() { ++GpuRecording::compiledDepth(); }
    ~Inside() { --GpuRecording::compiledDepth(); }
  } inside;
  if (!recorder || !recorder->isSession() || !isBackward_) return program_->run(inputs, symbolValues);
  // A forward graph is timed by the frame that calls it; a backward one is called by autograd.
  const int64_t start = nowNs();
  auto results = program_->run(inputs, symbolValues);
  recorder->call(compile_.load(std::memory_order_relaxed), start, nowNs() - start);
  return results;
}

void CompiledRegion::describe(Recorder* recorder, record::Id compile, const record::GraphSnapshot& source) {
  std::lock_guard lock(mutex_);
  if (recorder == described_.load(std::memory_order_relaxed)) return;
  if (recorder) {
    const bool own = compile == 0;
    if (own) {
      record::CompileRecord row;
      row.kind = isBackward_ ? "backward" : "graph";
      row.backend = "inductor";
      compile = recorder->beginCompile(std::move(row));
    }
    const auto read = forms();
    if (!read) recorder->loss("graph", 1, "what " + name_ + " was compiled to cannot be shown: " + read.error().text());
    const ProgramFacts facts = read ? factsOf((*read)->lowered, (*read)->schedule) : ProgramFacts();
    if (read) recordForms(recorder, compile, source, facts);
    const auto& gpu = program_->gpuKernels();
    if (const auto count = std::count_if(gpu.begin(), gpu.end(), [](const auto& k) { return k != nullptr; });
        count > 0 && recorder->isSession() && !(GpuRecording::active() && GpuRecording::active()->isOn()))
      recorder->loss("device times", count, "launches of GPU kernels show the host's time for the call, not the device's for the kernel");
    if (own) recorder->endCompile(compile);
    compile_.store(compile, std::memory_order_relaxed);
    // The previous sink may still be in use by a run on another thread; it is kept until the region goes.
    auto sink = std::make_unique<Sink>(recorder, compile, groupIds_, kernelIds_, facts);
    program_->setSink(recorder->isSession() ? sink.get() : nullptr);
    auto log = std::make_unique<CudaGraphLog>(recorder, compile, snapshot_, *program_, name_, groupIds_, kernelIds_);
    program_->setGraphListener(log.get());
    graphLog_.swap(log);
    retiredLogs_.push_back(std::move(log));
    sink_.swap(sink);
    retired_.push_back(std::move(sink));
  } else {
    program_->setSink(nullptr);
    program_->setGraphListener(nullptr);
  }
  described_.store(recorder, std::memory_order_release);
}

void CompiledRegion::recordForms(Recorder* recorder, record::Id compile, const record::GraphSnapshot& source, const ProgramFacts& facts) {
  recordGraphs(recorder, compile, source);
  if (const record::Listener* hears = Recorder::listener(); hears && hears->wantsCode) {
    recorder->ir({compile, "pre_fusion", direction_, irText(forms_->lowered)});
    recorder->ir({compile, "post_fusion", direction_, irText(forms_->schedule)});
  }
  recordGroups(recorder, compile, facts);
  recordDecisions(recorder, compile);
  recordBuffers(recorder, compile, facts);
}

void CompiledRegion::recordGraphs(Recorder* recorder, record::Id compile, const record::GraphSnapshot& source) {
  record::GraphRecord row;
  row.compile = compile;
  row.name = name_;
  row.stage = "post_grad";
  row.direction = direction_;
  row.from = source;
  row.from = recorder->graph(forms_->postGrad, row);
  row.stage = "post_fusion";
  row.samePositions = true;
  // Groups, decisions and buffers name nodes of this last one; earlier stages find theirs along the origins.
  snapshot_ = recorder->graph(forms_->postGrad, std::move(row));
}

std::vector<int32_t> CompiledRegion::originsOf(const inductor::FusionGroup& group) const {
  std::vector<int32_t> nodes;
  for (int32_t id : group.operations) {
    const Operation& operation = forms_->lowered.operations[static_cast<size_t>(id)];
    nodes.insert(nodes.end(), operation.origins.begin(), operation.origins.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

record::Id CompiledRegion::recordKernel(Recorder* recorder, record::KernelRecord row, int32_t kernel) {
  if (kernel < 0) return recorder->kernel(std::move(row));
  if (const auto& gpu = program_->gpuKernels(); static_cast<size_t>(kernel) < gpu.size() && gpu[static_cast<size_t>(kernel)]) {
    const auto& code = gpu[static_cast<size_t>(kernel)];
    row.codeOf = codeOwner(recorder, *code);
    const bool owns = row.codeOf == 0;
    const record::Id id = recorder->kernel(std::move(row));
    if (owns) recordGpuCode(recorder, id, code);
    if (GpuRecording* times = GpuRecording::active())
      for (const auto& launch : code->code().launches) times->deviceFunction(launch.entry, id);
    return id;
  }
  const auto& code = program_->kernels()[static_cast<size_t>(kernel)];
  row.codeOf = codeOwner(recorder, *code);
  const bool owns = row.codeOf == 0;
  const record::Id id = recorder->kernel(std::move(row));
  if (owns) recordCode(recorder, id, code);
  return id;
}

void CompiledRegion::recordGroups(Recorder* recorder, record::Id compile, const ProgramFacts& facts) {
  const auto& kernels = forms_->schedule.program.kernels;
  groupIds_.clear();
  kernelIds_.clear();
  for (const inductor::FusionGroup& group : forms_->schedule.groups) {
    const Operation& first = forms_->lowered.operations[static_cast<size_t>(group.operations.at(0))];
    const bool isExtern = group.kernel < 0;
    const auto& traffic = facts.groups[static_cast<size_t>(group.id)];
    record::KernelRecord kernel;
    kernel.compile = compile;
    kernel.graph = snapshot_;
    kernel.name = group.name;
    kernel.nodes = originsOf(group);
    if (kernel.nodes.empty()) kernel.place = placeOfReader(group);
    kernel.kind = isExtern ? "extern" : "generated";
    kernel.device = isExtern ? deviceOf(first.call, forms_->schedule.program.buffers) : kernels[static_cast<size_t>(group.kernel)].device.str();
    kernel.readBytes = traffic.readBytes;
    kernel.writeBytes = traffic.writeBytes;
    if (isExtern) {
      kernel.op = first.call.op;
      kernel.reason = first.call.reason;
      kernel.flops = flopsOf(first.call, forms_->schedule.program.buffers);
    } else {
      kernel.flops = traffic.flops;
      kernel.loopIr = kernels[static_cast<size_t>(group.kernel)].str(forms_->lowered.nodeNames);
    }
    record::FusionGroupRecord row;
    row.compile = compile;
    row.graph = snapshot_;
    row.position = group.id;
    row.name = group.name;
    row.nodes = kernel.nodes;
    row.results = resultsOf(group, facts);
    row.readBytes = traffic.readBytes;
    row.writeBytes = traffic.writeBytes;
    row.bytesSaved = group.bytesSaved;
    row.reason = kernel.reason;
    const bool reduces = !isExtern && std::any_of(kernels[static_cast<size_t>(group.kernel)].sections.begin(),
                                                  kernels[static_cast<size_t>(group.kernel)].sections.end(),
                                                  [](const inductor::Section& s) { return s.isReduction; });
    row.kind = isExtern ? "extern" : reduces ? "reduction" : "pointwise";
    row.kernel = recordKernel(recorder, std::move(kernel), group.kernel);
    kernelIds_.push_back(row.kernel);
    groupIds_.push_back(recorder->fusionGroup(std::move(row)));
  }
}

/// A copy into another layout belongs to no node: it is made for the first one that reads it.
record::Place CompiledRegion::placeOfReader(const inductor::FusionGroup& group) const {
  const auto& operations = forms_->lowered.operations;
  const auto isMade = [&](inductor::BufferId buffer) {
    return std::any_of(group.operations.begin(), group.operations.end(), [&](int32_t id) {
      const auto& writes = operations[static_cast<size_t>(id)].writes;
      return std::find(writes.begin(), writes.end(), buffer) != writes.end();
    });
  };
  for (const Operation& operation : operations) {
    if (operation.origins.empty() || std::none_of(operation.reads.begin(), operation.reads.end(), isMade)) continue;
    if (const graph::SourceLine* line = record::placeOf(forms_->postGrad.node(operation.origins.front()))) return {line->file, line->line, line->function};
  }
  return {};
}

/// Nodes of the group whose values other steps can see: those that make buffers which some step touches.
std::vector<int32_t> CompiledRegion::resultsOf(const inductor::FusionGroup& group, const ProgramFacts& facts) const {
  std::vector<int32_t> nodes;
  for (int32_t id : group.operations) {
    const Operation& operation = forms_->lowered.operations[static_cast<size_t>(id)];
    for (inductor::BufferId buffer : operation.writes) {
      if (facts.buffers[static_cast<size_t>(buffer)].first >= 0 && facts.producers[static_cast<size_t>(buffer)] >= 0)
        nodes.push_back(facts.producers[static_cast<size_t>(buffer)]);
    }
  }
  return nodes;
}

void CompiledRegion::recordDecisions(Recorder* recorder, record::Id compile) const {
  std::vector<record::Id> groupOf(forms_->lowered.operations.size(), 0);
  for (size_t g = 0; g < forms_->schedule.groups.size(); ++g)
    for (int32_t id : forms_->schedule.groups[g].operations) groupOf[static_cast<size_t>(id)] = groupIds_[g];
  int position = 0;
  for (const inductor::FusionDecision& decision : forms_->schedule.decisions) {
    const Operation& a = forms_->lowered.operations[static_cast<size_t>(decision.a)];
    const Operation& b = forms_->lowered.operations[static_cast<size_t>(decision.b)];
    record::FusionDecisionRecord row;
    row.compile = compile;
    row.graph = snapshot_;
    row.position = position++;
    row.a = a.name;
    row.b = b.name;
    row.aNode = a.origins.empty() ? -1 : a.origins.front();
    row.bNode = b.origins.empty() ? -1 : b.origins.front();
    row.group = decision.fused ? groupOf[static_cast<size_t>(decision.b)] : 0;
    row.kind = decision.kind;
    row.fused = decision.fused;
    row.reason = decision.reason;
    row.scoreBytes = decision.scoreBytes;
    recorder->fusionDecision(std::move(row));
  }
}

namespace {

std::string sizesText(const graph::TensorMeta& meta) {
  std::string text = "[";
  for (const auto& size : meta.sizes) text += (text.size() > 1 ? ", " : "") + size.str();
  return text + "]";
}

}  // namespace

void CompiledRegion::recordBuffers(Recorder* recorder, record::Id compile, const ProgramFacts& facts) const {
  static constexpr const char* kKinds[] = {"input", "constant", "planned", "owned", "view"};
  const auto& buffers = forms_->schedule.program.buffers;
  const std::vector<graph::NodeId> inputs = forms_->postGrad.placeholders();
  std::vector<record::Id> ids(buffers.size(), 0);
  // In order of first use, so that what a buffer replaces has its row already.
  std::vector<size_t> order(buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return facts.buffers[a].first < facts.buffers[b].first; });
  for (size_t i : order) {
    const inductor::ProgramBuffer& buffer = buffers[i];
    const bool isPlanned = buffer.kind == inductor::ProgramBuffer::Kind::Planned;
    // Values that fusion kept inside kernels have no memory at all.
    if (isPlanned && facts.buffers[i].first < 0) continue;
    record::BufferRecord row;
    row.compile = compile;
    row.graph = snapshot_;
    row.name = buffer.name;
    row.kind = facts.buffers[i].isFreed ? "allocated" : kKinds[static_cast<size_t>(buffer.kind)];
    row.node = facts.producers[i];
    if (buffer.kind == inductor::ProgramBuffer::Kind::Input && buffer.index >= 0 && buffer.index < static_cast<int32_t>(inputs.size()))
      row.node = inputs[static_cast<size_t>(buffer.index)];
    row.dtype = graph::name(buffer.meta.dtype);
    row.shape = sizesText(buffer.meta);
    row.device = buffer.meta.device.str();
    row.bytes = bytesOf(buffer.meta);
    row.firstUse = facts.buffers[i].first;
    row.lastUse = facts.buffers[i].last;
    if (isPlanned) row.poolOffset = buffer.poolOffset;
    if (facts.reuses[i] >= 0) row.reuses = ids[static_cast<size_t>(facts.reuses[i])];
    ids[i] = recorder->buffer(std::move(row));
  }
}

}  // namespace fusebox
