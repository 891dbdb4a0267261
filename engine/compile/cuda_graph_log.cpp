#include "engine/compile/cuda_graph_log.h"

#include <algorithm>

#include "engine/runtime/graph_capture.h"

namespace fusebox {

using runtime::GraphEvent;

CudaGraphLog::CudaGraphLog(record::Recorder* recorder, record::Id compile, record::GraphSnapshot snapshot,
                           const runtime::CompiledGraph& program, std::string name, std::vector<record::Id> groups,
                           std::vector<record::Id> kernels)
    : recorder_(recorder),
      compile_(compile),
      snapshot_(snapshot),
      program_(program),
      name_(std::move(name)),
      groups_(std::move(groups)),
      kernels_(std::move(kernels)) {
  event = [](runtime::GraphListener* self, const GraphEvent& what) { static_cast<CudaGraphLog*>(self)->write(what); };
  replayed = [](runtime::GraphListener* self, int32_t recording, int64_t startNs, int64_t durationNs) {
    auto* log = static_cast<CudaGraphLog*>(self);
    if (static_cast<size_t>(recording) < log->recordings_.size())
      log->recorder_->launch(log->recordings_[static_cast<size_t>(recording)], 0, startNs, durationNs, 0);
  };
}

void CudaGraphLog::write(const GraphEvent& what) {
  static constexpr const char* kNames[] = {"refused", "warm_up", "recorded", "stopped", "moved", "busy"};
  record::CudaGraphRecord row;
  row.compile = compile_;
  row.event = kNames[static_cast<size_t>(what.kind)];
  row.number = what.recording;
  row.replaces = what.replaced;
  row.reason = what.reason;
  row.startNs = what.startNs;
  row.durNs = what.durationNs;
  if (what.cut && what.cut->refusal.empty()) row.device = what.cut->device.str();
  if (what.kind == GraphEvent::Kind::Recorded && what.facts) addFacts(what, row);
  else if (what.recording >= 0 && static_cast<size_t>(what.recording) < recordings_.size())
    row.kernel = recordings_[static_cast<size_t>(what.recording)];
  recorder_->cudaGraph(std::move(row));
}

void CudaGraphLog::addFacts(const GraphEvent& what, record::CudaGraphRecord& row) {
  const runtime::GraphRecording& facts = *what.facts;
  record::KernelRecord kernel;
  kernel.compile = compile_;
  kernel.graph = snapshot_;
  kernel.name = name_ + " recording " + std::to_string(what.recording);
  kernel.kind = "cuda_graph";
  kernel.device = row.device;
  kernel.reason = what.reason;
  row.kernel = recorder_->kernel(std::move(kernel));
  const auto number = static_cast<size_t>(what.recording);
  if (recordings_.size() <= number) recordings_.resize(number + 1, 0);
  recordings_[number] = row.kernel;
  row.nodeCount = facts.nodeCount;
  row.staticInputs = facts.staticInputs;
  row.copiedInputs = facts.copiedInputs;
  row.copiedBytes = facts.copiedBytes;
  row.keptBytes = facts.keptBytes;
  if (auto* capture = runtime::GraphCapture::instance()) row.poolBytes = capture->poolBytes(what.cut->device);
  row.stretches = row.plainSteps = 0;
  const auto& steps = program_.program().steps;
  auto groupOf = [&](size_t step) {
    if (auto* launch = std::get_if<inductor::LaunchStep>(&steps[step])) return launch->group;
    if (auto* call = std::get_if<inductor::ExternStep>(&steps[step])) return call->group;
    return -1;
  };
  for (const runtime::CaptureStretch& stretch : what.cut->stretches) {
    row.stretches += stretch.isCaptured;
    if (stretch.isCaptured) continue;
    for (size_t i = stretch.begin; i < stretch.end; ++i) row.plainSteps += groupOf(i) >= 0;
    if (row.plainReason.find(stretch.reason) == std::string::npos)
      row.plainReason += (row.plainReason.empty() ? "" : "; ") + stretch.reason;
  }
  for (const runtime::RecordedNodes& nodes : facts.nodes) {
    const int32_t group = groupOf(static_cast<size_t>(nodes.step));
    const bool known = group >= 0 && static_cast<size_t>(group) < groups_.size();
    row.nodes.push_back({nodes.stretch, nodes.first, nodes.count, known ? groups_[static_cast<size_t>(group)] : 0,
                         known ? kernels_[static_cast<size_t>(group)] : 0});
  }
}

}  // namespace fusebox
