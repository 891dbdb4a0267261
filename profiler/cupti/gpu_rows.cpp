#include "profiler/cupti/gpu_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/cupti/occupancy.h"
#include "profiler/session/launch_ring.h"

namespace fusebox::cupti {

using session::Cell;
namespace rows = session::rows;
using session::RowSink;
using Kind = Activity::Kind;

namespace {

constexpr int64_t kBlockRows = 4096;
/// Spans that ended this long before an event's call are no longer looked for.
constexpr int64_t kMemoryNs = 60'000'000'000;
/// A copy that keeps the host this long is shown on its thread.
constexpr int64_t kNotableCopyNs = 20'000;

Cell idOrNull(int64_t id) { return id > 0 ? Cell{id} : Cell{}; }
Cell textOrNull(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }
std::string sizeText(const std::array<int32_t, 3>& size) {
  return size[1] == 1 && size[2] == 1 ? std::to_string(size[0]) : fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}
const char* kindName(Kind kind) { return kind == Kind::Kernel ? "kernel" : kind == Kind::Memcpy ? "memcpy" : "memset"; }

}  // namespace

GpuRows::GpuRows(RecorderLinks links, ShapeTable& shapes, std::vector<GpuDevice> devices)
    : links_(std::move(links)), shapes_(shapes), devices_(std::move(devices)) {}

void GpuRows::add(std::vector<Activity> activities) {
  std::lock_guard lock(mutex_);
  arrived_.push_back(std::move(activities));
}

void GpuRows::deviceFunction(const std::string& symbol, int32_t kernel) {
  std::lock_guard lock(mutex_);
  kernelsOfSymbol_[symbol].push_back(kernel);
}

void GpuRows::graphRecorded(GraphRecorded graph) {
  graphNodes_.add(graph.recording, std::move(graph.nodes));
  HostSpan span{graph.startNs, graph.endNs, 0, graph.recording, 0};
  span.isRecordingRun = true;
  std::lock_guard lock(mutex_);
  recordingRuns_.emplace_back(graph.thread, span);
}

void GpuRows::launched(int32_t thread, int64_t id, const session::LaunchRecord& r) {
  launches_.add(thread, {r.startNs, r.startNs + r.durNs, id, r.id, 0});
}

void GpuRows::operatorRan(int32_t thread, const session::LaunchRecord& r) {
  operators_.add(thread, {r.startNs, r.startNs + r.durNs, 0, 0, r.id});
}

int32_t GpuRows::threadOf(uint32_t cuptiThread, RowSink& sink) {
  if (const int32_t known = links_.threadOf(cuptiThread)) return known;
  const auto [place, added] = strangers_.try_emplace(cuptiThread, 0);
  if (added) {
    place->second = links_.newThread();
    sink.put(rows::Thread{.id = int64_t{place->second}, .name = fmt::format("thread that calls CUDA, {}", strangers_.size())});
  }
  return place->second;
}

void GpuRows::write(RowSink& sink, bool last) {
  std::vector<std::vector<Activity>> arrived;
  {
    std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
    for (const auto& [thread, span] : std::exchange(recordingRuns_, {})) launches_.insert(thread, span);
  }
  std::vector<Activity> events;
  for (auto& part : arrived) events.insert(events.end(), part.begin(), part.end());
  sort(std::move(events), sink);
  putShapes(sink);
  while (!waiting_.empty() && (last || waiting_.front().age >= kPatience || isSettled(waiting_.front()))) {
    put(waiting_.front().activity, sink);
    waiting_.pop_front();
  }
  int64_t oldest = INT64_MAX;
  for (Waiting& waiting : waiting_) {
    ++waiting.age;
    oldest = std::min(oldest, waiting.activity.startNs);
  }
  for (auto& [key, lane] : lanes_) {
    closeBlock(lane, sink);
    lane.pyramid.flush(sink);
  }
  putSums(sink, last);
  if (last && counted_.isExpecting()) counted_.write(sink, links_.loss);
  if (!callOrder_.empty() && oldest != INT64_MAX) {
    launches_.forgetBefore(oldest - kMemoryNs);
    operators_.forgetBefore(oldest - kMemoryNs);
  }
  if (notKept_ > 0) {
    links_.loss("gpu_event_rows", std::exchange(notKept_, 0),
                fmt::format("only the first {} events of GPUs are kept one by one; sums are complete", kMostEvents));
  }
  if (unplaced_ > 0) {
    links_.loss("gpu_unattributed", std::exchange(unplaced_, 0),
                "work of a GPU whose call was not reported: it is in the timeline, but tied to no launch");
  }
}

void GpuRows::sort(std::vector<Activity> activities, RowSink& sink) {
  std::stable_sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) { return a.startNs < b.startNs; });
  const bool counting = counted_.isExpecting();
  const int32_t waits = counting ? shapes_.firstOf("WaitNs") : 0;
  for (const Activity& a : activities) {
    if (a.kind == Kind::Synchronization || a.kind == Kind::Overhead) continue;
    if (waits > 0 && a.kind == Kind::Kernel && a.shape == waits) continue;  // CUPTI's own, after each kernel that it counts
    if (a.kind != Kind::Call) {
      waiting_.push_back({a, 0});
      continue;
    }
    const int32_t thread = threadOf(a.thread, sink);
    const ApiCall* call = keptCall(a.driver, a.code);
    callSpan(a, thread, sink);
    const auto [place, added] = calls_.try_emplace(a.correlation);
    // A call of the runtime may be reported with the driver's below it: the outer one counts.
    if (!added && place->second.startNs <= a.startNs) continue;
    place->second = {a.startNs, a.endNs - a.startNs, thread, call && call->role == ApiCall::Role::GraphLaunch};
    if (!added) continue;
    callOrder_.push_back(a.correlation);
    if (callOrder_.size() <= kMostCalls) continue;
    calls_.erase(callOrder_.front());
    callOrder_.pop_front();
  }
}

/// Calls that make the host wait become spans of their thread; launches have their own rows.
void GpuRows::callSpan(const Activity& a, int32_t thread, RowSink& sink) {
  const ApiCall* call = keptCall(a.driver, a.code);
  if (!call) return;
  using Role = ApiCall::Role;
  const bool isShown = call->role == Role::Wait || call->role == Role::Memory || call->role == Role::GraphLaunch ||
                       (call->role == Role::Copy && a.endNs - a.startNs >= kNotableCopyNs);
  if (!isShown) return;
  sink.put(rows::CpuEvent{.id = links_.newSpan(), .kind = std::string(a.driver ? "cuda_driver" : "cuda_runtime"), .name = std::string(call->name),
      .start_ns = a.startNs, .dur_ns = a.endNs - a.startNs, .thread = int64_t{thread}, .depth = int64_t{0}});
}

bool GpuRows::isSettled(const Waiting& waiting) {
  const auto call = calls_.find(waiting.activity.correlation);
  if (call == calls_.end()) return false;
  const Call& c = call->second;
  return launches_.holding(c.thread, c.startNs, c.startNs + c.durNs) || operators_.holding(c.thread, c.startNs, c.startNs + c.durNs);
}

void GpuRows::put(const Activity& a, RowSink& sink) {
  ++inBatch_;
  const auto found = calls_.find(a.correlation);
  const Call* call = found == calls_.end() ? nullptr : &found->second;
  HostSpan *launch = nullptr, *op = nullptr;
  if (call) {
    launch = launches_.holding(call->thread, call->startNs, call->startNs + call->durNs);
    op = operators_.holding(call->thread, call->startNs, call->startNs + call->durNs);
  } else {
    ++unplaced_;
  }
  if (op && launch && !launch->isRecordingRun) op = nullptr;  // inside a compiled graph the launch says all
  if (op && op->id == 0) {
    op->id = links_.newSpan();
    const OperatorPlace place = links_.operatorOf(op->op);
    sink.put(rows::CpuEvent{.id = op->id, .kind = std::string("cpu_op"), .name = place.name, .start_ns = op->startNs,
        .dur_ns = op->endNs - op->startNs, .thread = int64_t{call->thread}, .depth = int64_t{0}, .file = textOrNull(place.file),
        .line = place.line > 0 ? Cell{int64_t{place.line}} : Cell{}});
  }
  const int32_t kernel = kernelOfEvent(a, launch, op, sink);
  if (kernel > 0) addToSums(kernel, launch ? launch->id : 0, a);
  if (launch && !launch->isRecordingRun && launch->kernel != kernel && graphNodes_.isRecording(launch->kernel)) {
    Activity part = a;  // a replay takes what its nodes take; their shapes are not its own
    part.shape = 0;
    addToSums(launch->kernel, launch->id, part);
  }
  Lane& lane = laneOf(a.device, a.stream, sink);
  int64_t id = 0;
  if (nextId_ <= kMostEvents) {
    id = nextId_++;
    Cell name = a.kind == Kind::Kernel  ? Cell{}
                : a.kind == Kind::Memcpy ? Cell{std::string("Memcpy ") + copyKindName(a.copyKind)}
                                         : Cell{std::string("Memset")};
    sink.put(rows::GpuEvent{.id = id, .kind = std::string(kindName(a.kind)), .name = std::move(name), .device = int64_t{a.device},
        .stream = int64_t{a.stream}, .start_ns = a.startNs, .dur_ns = a.endNs - a.startNs, .correlation = int64_t{a.correlation},
        .kernel_id = idOrNull(kernel), .launch_id = idOrNull(launch ? launch->id : 0), .bytes = a.kind == Kind::Kernel ? Cell{} : Cell{a.bytes},
        .shape_id = idOrNull(a.shape), .lane = int64_t{lane.thread}, .thread = call ? Cell{int64_t{call->thread}} : Cell{},
        .called_ns = call ? Cell{call->startNs} : Cell{}, .call_dur_ns = call ? Cell{call->durNs} : Cell{},
        .cpu_event = idOrNull(op ? op->id : 0), .graph = a.graph ? Cell{int64_t{a.graph}} : Cell{},
        .graph_node = a.graph ? Cell{int64_t{a.graphNode}} : Cell{}});
    if (lane.rows == 0) lane.firstId = id, lane.startNs = a.startNs, lane.endNs = a.endNs;
    lane.lastId = id;
    lane.startNs = std::min(lane.startNs, a.startNs);
    lane.endNs = std::max(lane.endNs, a.endNs);
    if (++lane.rows >= kBlockRows) closeBlock(lane, sink);
  } else {
    ++notKept_;
  }
  if (a.kind == Kind::Kernel && id > 0 && counted_.isExpecting(a.device)) counted_.kernelRan(id, a.startNs);
  lane.pyramid.add(id, a.startNs, a.endNs - a.startNs, sink);
}

int32_t GpuRows::kernelOfEvent(const Activity& a, const HostSpan* launch, const HostSpan* op, RowSink& sink) {
  if (const int32_t replayed = a.graph != 0 ? replayedKernel(a, launch) : 0) return replayed;
  if (launch && !launch->isRecordingRun) return launch->kernel;
  return a.kind == Kind::Kernel ? eagerKernel(a, op ? op->op : 0, sink) : 0;
}

/// The kernel of a node of a CUDA graph: by its place in the recording, checked against its name where that is one of ours, else by
/// its name, where only one kernel has it (structurally equal kernels share their code).
int32_t GpuRows::replayedKernel(const Activity& a, const HostSpan* launch) {
  const int32_t byNode = graphNodes_.kernelOf(launch ? launch->kernel : 0, a.graph, a.graphNode);
  if (a.kind != Kind::Kernel) return byNode;
  std::lock_guard lock(mutex_);
  const auto named = kernelsOfSymbol_.find(symbols_[static_cast<size_t>(a.shape - 1)]);
  if (named == kernelsOfSymbol_.end()) return byNode;
  const auto& kernels = named->second;
  if (std::find(kernels.begin(), kernels.end(), byNode) != kernels.end()) return byNode;
  return kernels.size() == 1 ? kernels.front() : 0;
}

int32_t GpuRows::eagerKernel(const Activity& a, int32_t op, RowSink& sink) {
  const std::string& symbol = symbols_[static_cast<size_t>(a.shape - 1)];
  const OperatorPlace place = op ? links_.operatorOf(op) : OperatorPlace{};
  const auto [known, added] = eagerKernels_.try_emplace({place.name, symbol, a.device}, 0);
  if (!added) return known->second;
  known->second = links_.newKernel();
  const bool isTriton = symbol.rfind("triton_", 0) == 0;
  sink.put(rows::Kernel{.id = int64_t{known->second}, .name = shortName(demangled(symbol)), .kind = std::string(isTriton ? "generated" : "eager"),
      .op = textOrNull(place.name), .device = fmt::format("cuda:{}", a.device), .flops = int64_t{0}, .file = textOrNull(place.file),
      .line = place.line > 0 ? Cell{int64_t{place.line}} : Cell{}, .time_ns = a.startNs});
  return known->second;
}

void GpuRows::closeLaunch(Sums& s) {
  if (!s.open) return;
  s.minNs = s.launches ? std::min(s.minNs, s.launchNs) : s.launchNs;
  s.maxNs = std::max(s.maxNs, s.launchNs);
  s.totalNs += s.launchNs;
  ++s.launches;
  s.launchNs = 0;
  s.open = false;
}

void GpuRows::addToSums(int32_t kernel, int64_t launch, const Activity& a) {
  Sums& s = sums_[kernel];
  if (s.open && (launch == 0 || s.launch != launch)) closeLaunch(s);
  if (s.events == 0) s.firstNs = a.startNs;
  ++s.events;
  s.open = s.touched = true;
  s.launch = launch;
  s.launchNs += a.endNs - a.startNs;
  s.firstNs = std::min(s.firstNs, a.startNs);
  s.lastNs = std::max(s.lastNs, a.endNs);
  if (a.shape == 0) return;
  auto& [events, total] = shapeSums_[{kernel, a.shape}];
  ++events;
  total += a.endNs - a.startNs;
}

/// Sums of launches that are complete: one that was added to in this batch may go on in the next.
void GpuRows::putSums(RowSink& sink, bool last) {
  for (auto& [kernel, s] : sums_) {
    if (last || !std::exchange(s.touched, false)) closeLaunch(s);
    if (s.launches == 0) continue;
    sink.put(rows::GpuStats{.kernel_id = int64_t{kernel}, .launches = int64_t{s.launches}, .events = int64_t{s.events},
        .total_ns = int64_t{s.totalNs}, .min_ns = int64_t{s.minNs}, .max_ns = int64_t{s.maxNs}, .first_ns = int64_t{s.firstNs},
        .last_ns = int64_t{s.lastNs}});
  }
  for (const auto& [key, sum] : shapeSums_)
    sink.put(rows::GpuShapeStats{.kernel_id = int64_t{key.first}, .shape_id = int64_t{key.second}, .events = int64_t{sum.first},
        .total_ns = int64_t{sum.second}});
}

void GpuRows::committed() {
  for (auto entry = sums_.begin(); entry != sums_.end();) {
    Sums& s = entry->second;
    if (s.launches > 0) s.launches = s.events = s.totalNs = s.minNs = s.maxNs = 0;
    entry = s.open ? std::next(entry) : sums_.erase(entry);
  }
  shapeSums_.clear();
  inBatch_ = 0;
}

int64_t GpuRows::rolledBack() {
  const int64_t lost = std::exchange(inBatch_, 0);
  for (auto& [key, lane] : lanes_) {
    lane.pyramid.discard();
    lane.rows = 0;
  }
  lanes_.clear();  // their rows of threads may be lost too: they are made again
  strangers_.clear();
  eagerKernels_.clear();
  sums_.clear();
  shapeSums_.clear();
  launches_.clear();
  operators_.clear();
  shapesPut_ = 0;
  return lost;
}

void GpuRows::putShapes(RowSink& sink) {
  for (const LaunchShape& shape : shapes_.from(shapesPut_ + 1)) {
    const int32_t id = ++shapesPut_;
    if (static_cast<size_t>(id) > symbols_.size()) symbols_.push_back(shape.symbol);
    const auto device = std::find_if(devices_.begin(), devices_.end(),
                                     [&](const GpuDevice& d) { return d.device == static_cast<int>(shape.device); });
    const Occupancy occupancy = device == devices_.end() ? Occupancy{} : occupancyOf(shape, *device);
    const std::string name = demangled(shape.symbol);
    sink.put(rows::GpuShape{.id = int64_t{id}, .name = name, .symbol = name == shape.symbol ? Cell{} : Cell{shape.symbol},
        .device = int64_t{shape.device}, .grid = sizeText(shape.grid), .block = sizeText(shape.block), .threads = shape.threads(),
        .registers = int64_t{shape.registers}, .static_shared = int64_t{shape.staticShared}, .dynamic_shared = int64_t{shape.dynamicShared},
        .local_bytes = int64_t{shape.localBytes}, .occupancy = occupancy.share > 0 ? Cell{occupancy.share} : Cell{},
        .occupancy_limit = textOrNull(occupancy.limit)});
  }
}

GpuRows::Lane& GpuRows::laneOf(uint32_t device, uint32_t stream, RowSink& sink) {
  const auto known = lanes_.find({device, stream});
  if (known != lanes_.end()) return known->second;
  const int32_t thread = links_.newThread();
  sink.put(rows::Thread{.id = int64_t{thread}, .name = fmt::format("GPU {}, stream {}", device, stream)});
  return lanes_.try_emplace({device, stream}, thread).first->second;
}

void GpuRows::closeBlock(Lane& lane, RowSink& sink) {
  if (lane.rows == 0) return;
  sink.put(rows::Block{.track = int64_t{2}, .first_id = int64_t{lane.firstId}, .last_id = int64_t{lane.lastId}, .thread = int64_t{lane.thread},
      .start_ns = int64_t{lane.startNs}, .end_ns = int64_t{lane.endNs}});
  lane.rows = 0;
}

}  // namespace fusebox::cupti
