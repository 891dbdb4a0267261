#include "engine/runtime/graph_tree.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "engine/runtime/effect_log.h"
#include "engine/runtime/error_text.h"
#include "engine/runtime/written_inputs.h"
#include "engine/support/clock.h"

namespace fusebox::runtime {
namespace {

std::unique_ptr<GraphCapture>& installed() {
  static auto* capture = new std::unique_ptr<GraphCapture>;  // leaked: compiled graphs may be destroyed after static destructors
  return *capture;
}

/// Whoever works with CUDA graphs holds `mutex`, and may take Python's lock meanwhile: so nobody waits for it who may hold that.
struct Process {
  std::recursive_mutex mutex;
  std::mutex registry;                          ///< of `recordings`
  std::set<const GraphRecording*> recordings;   ///< all of the process
  bool working = false;    ///< on the thread that holds the mutex: an operator called a compiled graph
  std::string broken;      ///< why nothing is captured any more
};
Process& process() {
  static auto* made = new Process;
  return *made;
}

void registerRecording(const GraphRecording* recording) {
  std::lock_guard lock(process().registry);
  process().recordings.insert(recording);
}

void forgetRecording(const GraphRecording* recording) {
  std::lock_guard lock(process().registry);
  process().recordings.erase(recording);
}

bool isManaged(uint64_t address) {
  if (address == 0) return false;
  std::lock_guard lock(process().registry);
  return std::any_of(process().recordings.begin(), process().recordings.end(),
                     [&](const GraphRecording* recording) { return recording->owns(address); });
}

}  // namespace

GraphCapture* GraphCapture::instance() { return installed().get(); }
void GraphCapture::install(std::unique_ptr<GraphCapture> capture) { installed() = std::move(capture); }

GraphTree::GraphTree(const RuntimePlan& plan, Settings settings) : plan_(plan), settings_(settings), choice_(settings.recordLimit) {}

GraphTree::~GraphTree() {
  for (const Branch& branch : branches_) forgetRecording(branch.recording.get());
}

void GraphTree::tell(GraphListener* listener, GraphEvent event) {
  if (!listener) return;
  if (event.kind != GraphEvent::Kind::Busy) event.cut = cut_ ? &*cut_ : nullptr;  // another thread may be making it then
  if (event.startNs == 0) event.startNs = nowNs();
  listener->event(listener, event);
}

void GraphTree::tellRecorded(GraphListener* listener, const Branch& branch) {
  tell(listener, {GraphEvent::Kind::Recorded, branch.reason, branch.number, branch.replaced, branch.recording.get(), nullptr,
                  branch.startNs, branch.recording->recordNs});
}

void GraphTree::describe(GraphListener* listener) {
  std::lock_guard lock(process().mutex);
  if (refused_ && cut_) tell(listener, {GraphEvent::Kind::Refused, cut_->refusal});
  for (const Branch& branch : branches_) tellRecorded(listener, branch);
}

std::optional<std::vector<at::Tensor>> GraphTree::record(c10::ArrayRef<at::Tensor> inputs, const gpu::GraphDecision& decision,
                                                         GraphListener* listener) {
  GraphCapture& capture = *GraphCapture::instance();
  const auto place = static_cast<size_t>(decision.recording < 0 ? static_cast<int32_t>(branches_.size()) : decision.recording);
  Branch branch;
  branch.reason = decision.reason;
  branch.startNs = nowNs();
  if (place < branches_.size()) {
    branch.replaced = branches_[place].number;
    forgetRecording(branches_[place].recording.get());
    branches_.erase(branches_.begin() + static_cast<std::ptrdiff_t>(place));  // its memory is for the new one; what is in use stays
    states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(place));
  }
  branch.recording = std::make_unique<GraphRecording>(plan_, *cut_, capture, choice_.copied());
  std::vector<at::Tensor> results;
  EffectLog effects;
  // Where it has several parts, some have run when another fails.
  std::optional<WrittenInputs> before;
  if (plan_.program().firstUnrepeatable >= 0 && cut_->stretches.size() > 1) before.emplace(plan_, inputs);
  try {
    results = branch.recording->record(inputs);
  } catch (const CaptureFailed& error) {
    if (before) before->restore(inputs);
    keepForReplay(effects.take());  // the plain run that follows does not do again what steps between captured ones did
    // A capture that failed leaves torch's allocator and generators in a state that further captures must not build on.
    process().broken = "capture failed: " + textOf(error);
    choice_.giveUp();
    tell(listener, {GraphEvent::Kind::Stopped, process().broken});
    if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: CUDA graphs: %s\n", process().broken.c_str());
    return std::nullopt;
  }
  branch.number = (*settings_.numbers)++;
  branch.recording->recordNs = nowNs() - branch.startNs;  // with its first run
  registerRecording(branch.recording.get());
  tellRecorded(listener, branch);
  const auto at = static_cast<std::ptrdiff_t>(std::min(place, branches_.size()));
  states_.insert(states_.begin() + at, {branch.recording->addresses(), 0});
  branches_.insert(branches_.begin() + at, std::move(branch));
  return results;
}

std::optional<std::vector<at::Tensor>> GraphTree::run(c10::ArrayRef<at::Tensor> inputs, LaunchSink* sink, GraphListener* listener) {
  GraphCapture* capture = GraphCapture::instance();
  if (refused_ || !capture) return std::nullopt;
  std::unique_lock lock(process().mutex, std::try_to_lock);
  if (!lock || process().working) {
    if (!busyTold_.exchange(true)) tell(listener, {GraphEvent::Kind::Busy, lock ? "called by an operator of a graph that is being recorded" : "another thread is replaying a graph"});
    return std::nullopt;
  }
  if (!cut_) {
    cut_ = planCapture(plan_, capture->deviceType());
    refused_ = !cut_->refusal.empty();
    if (refused_) {
      tell(listener, {GraphEvent::Kind::Refused, cut_->refusal});
      if (settings_.orError)
        throw GraphsRefused("CUDA graphs were asked for (triton.cudagraph_or_error) and cannot be used: " + cut_->refusal);
      return std::nullopt;
    }
  }
  struct Working {
    Working() { process().working = true; }
    ~Working() { process().working = false; }
  } working;
  if (!capture->begin(cut_->device)) {
    if (!busyTold_.exchange(true)) tell(listener, {GraphEvent::Kind::Busy, "the program itself captures a CUDA graph"});
    return std::nullopt;
  }
  inputs_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) inputs_.push_back(cut_->isCapturedInput[i] ? graphInput(inputs[i]) : gpu::GraphInput{});
  for (size_t b = 0; b < branches_.size(); ++b) states_[b].liveBytes = branches_[b].recording->liveBytes();
  if (branches_.empty() && !process().broken.empty()) return std::nullopt;
  const gpu::GraphDecision decision = choice_.decide(inputs_, states_, isManaged);
  using Action = gpu::GraphDecision::Action;
  if (decision.action == Action::Plain) {
    const bool warmUp = decision.reason.empty() && branches_.empty();
    if (warmUp || !decision.reason.empty())
      tell(listener, {warmUp ? GraphEvent::Kind::WarmUp : GraphEvent::Kind::Stopped, decision.reason});
    return std::nullopt;
  }
  if (decision.action == Action::Record) {
    if (!process().broken.empty()) return std::nullopt;
    return record(inputs, decision, listener);
  }
  Branch& branch = branches_[static_cast<size_t>(decision.recording)];
  const int64_t start = listener ? nowNs() : 0;
  if (decision.moveResults) {
    const int64_t bytes = states_[static_cast<size_t>(decision.recording)].liveBytes;
    branch.recording->moveResults();
    if (listener && !std::exchange(branch.moveTold, true))  // a loop that holds its last result does so every time
      tell(listener, {GraphEvent::Kind::Moved, std::to_string(bytes) + " bytes of results were still in use", branch.number});
  }
  auto results = branch.recording->replay(inputs, sink);
  if (listener) listener->replayed(listener, branch.number, start, nowNs() - start);
  return results;
}

}  // namespace fusebox::runtime
