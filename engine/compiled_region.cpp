#include "engine/compiled_region.h"

#include <algorithm>

namespace fusebox {

using inductor::Operation;
using record::Recorder;

/// Forwards launches of one region to one recording. Sinks live as long as their region, which outlives its runs.
struct CompiledRegion::Sink : runtime::LaunchSink {
  Recorder* recorder;
  std::vector<record::Id> groups, kernels;

  Sink(Recorder* r, std::vector<record::Id> g, std::vector<record::Id> k)
      : recorder(r), groups(std::move(g)), kernels(std::move(k)) {
    record = [](runtime::LaunchSink* self, const runtime::LaunchRecord& launch) {
      auto* sink = static_cast<Sink*>(self);
      if (launch.group < 0 || launch.group >= static_cast<int32_t>(sink->groups.size())) return;
      const size_t group = static_cast<size_t>(launch.group);
      sink->recorder->launch(sink->kernels[group], sink->groups[group], launch.startNs, launch.durationNs, launch.bytes);
    };
  }
};

CompiledRegion::CompiledRegion(graph::Graph postGrad, inductor::LoweredGraph lowered, inductor::Schedule schedule,
                               std::shared_ptr<runtime::CompiledGraph> program, std::string name, std::string direction)
    : postGrad_(std::move(postGrad)),
      lowered_(std::move(lowered)),
      schedule_(std::move(schedule)),
      program_(std::move(program)),
      name_(std::move(name)),
      direction_(std::move(direction)) {}

CompiledRegion::~CompiledRegion() = default;

std::vector<at::Tensor> CompiledRegion::run(c10::ArrayRef<at::Tensor> inputs) {
  Recorder* recorder = Recorder::active();
  if (recorder != described_.load(std::memory_order_acquire)) [[unlikely]] describe(recorder, 0);
  return program_->run(inputs);
}

void CompiledRegion::describe(Recorder* recorder, record::Id compile) {
  std::lock_guard lock(mutex_);
  if (recorder == described_.load(std::memory_order_relaxed)) return;
  if (recorder) {
    const bool own = compile == 0;
    if (own) {
      record::CompileRecord row;
      row.kind = "graph";
      row.backend = "inductor";
      compile = recorder->beginCompile(std::move(row));
    }
    recordGraphs(recorder, compile);
    recordGroups(recorder, compile);
    recordDecisions(recorder, compile);
    recordBuffers(recorder, compile);
    if (own) recorder->endCompile(compile);
    // The previous sink may still be in use by a run on another thread; it is kept until the region goes.
    auto sink = std::make_unique<Sink>(recorder, groupIds_, kernelIds_);
    program_->setSink(sink.get());
    sink_.swap(sink);
    retired_.push_back(std::move(sink));
  } else {
    program_->setSink(nullptr);
  }
  described_.store(recorder, std::memory_order_release);
}

void CompiledRegion::recordGraphs(Recorder* recorder, record::Id compile) {
  record::GraphRecord row;
  row.compile = compile;
  row.stage = "post_grad";
  row.direction = direction_;
  snapshot_ = recorder->graph(postGrad_, row);
  row.stage = "post_fusion";
  row.from = snapshot_;
  recorder->graph(postGrad_, std::move(row));
}

std::vector<int32_t> CompiledRegion::originsOf(const inductor::FusionGroup& group) const {
  std::vector<int32_t> nodes;
  for (int32_t id : group.operations) {
    const Operation& operation = lowered_.operations[static_cast<size_t>(id)];
    nodes.insert(nodes.end(), operation.origins.begin(), operation.origins.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void CompiledRegion::recordGroups(Recorder* recorder, record::Id compile) {
  const auto& kernels = schedule_.program.kernels;
  groupIds_.clear();
  kernelIds_.clear();
  for (const inductor::FusionGroup& group : schedule_.groups) {
    const Operation& first = lowered_.operations[static_cast<size_t>(group.operations.at(0))];
    const bool isExtern = group.kernel < 0;
    record::KernelRecord kernel;
    kernel.compile = compile;
    kernel.graph = snapshot_;
    kernel.name = group.name;
    kernel.nodes = originsOf(group);
    kernel.kind = isExtern ? "extern" : "generated";
    if (isExtern) {
      kernel.op = first.call.op;
      kernel.reason = first.call.reason;
    } else {
      kernel.loopIr = kernels[static_cast<size_t>(group.kernel)].str();
    }
    record::FusionGroupRecord row;
    row.compile = compile;
    row.graph = snapshot_;
    row.position = group.id;
    row.name = group.name;
    row.nodes = kernel.nodes;
    row.bytesSaved = group.bytesSaved;
    row.reason = kernel.reason;
    const bool reduces = !isExtern && std::any_of(kernels[static_cast<size_t>(group.kernel)].sections.begin(),
                                                  kernels[static_cast<size_t>(group.kernel)].sections.end(),
                                                  [](const inductor::Section& s) { return s.isReduction; });
    row.kind = isExtern ? "extern" : reduces ? "reduction" : "pointwise";
    const record::Id kernelId = recorder->kernel(std::move(kernel));
    row.kernel = kernelId;
    kernelIds_.push_back(kernelId);
    groupIds_.push_back(recorder->fusionGroup(std::move(row)));
    if (!isExtern) {
      const auto& code = *program_->kernels()[static_cast<size_t>(group.kernel)];
      record::KernelCodeRecord text;
      text.kernel = kernelId;
      text.tier = code.tier.load();
      text.llvmIr = code.llvmIr;
      text.assembly = code.assembly;
      text.compileNs = code.compileNs;
      recorder->kernelCode(std::move(text));
    }
  }
}

void CompiledRegion::recordDecisions(Recorder* recorder, record::Id compile) const {
  std::vector<record::Id> groupOf(lowered_.operations.size(), 0);
  for (size_t g = 0; g < schedule_.groups.size(); ++g)
    for (int32_t id : schedule_.groups[g].operations) groupOf[static_cast<size_t>(id)] = groupIds_[g];
  int position = 0;
  for (const inductor::FusionDecision& decision : schedule_.decisions) {
    const Operation& a = lowered_.operations[static_cast<size_t>(decision.a)];
    const Operation& b = lowered_.operations[static_cast<size_t>(decision.b)];
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

void CompiledRegion::recordBuffers(Recorder* recorder, record::Id compile) const {
  static constexpr const char* kKinds[] = {"input", "constant", "planned", "owned", "view"};
  for (const inductor::ProgramBuffer& buffer : schedule_.program.buffers) {
    record::BufferRecord row;
    row.compile = compile;
    row.graph = snapshot_;
    row.name = buffer.name;
    row.kind = kKinds[static_cast<size_t>(buffer.kind)];
    row.dtype = graph::name(buffer.meta.dtype);
    row.shape = buffer.meta.str();
    row.device = buffer.meta.device.str();
    if (auto numel = buffer.meta.numel().maybeConstant()) row.bytes = *numel * graph::elementSize(buffer.meta.dtype);
    if (buffer.kind == inductor::ProgramBuffer::Kind::Planned) row.poolOffset = buffer.poolOffset;
    recorder->buffer(std::move(row));
  }
}

}  // namespace fusebox
