#include "engine/python/operator_trace.h"

#include <ATen/Context.h>
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <Python.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/capture/cpython/frame_walk.h"
#include "engine/capture/entries/hook.h"
#include "engine/record/gpu_recording.h"
#include "engine/record/recorder.h"
#include "engine/support/clock.h"

namespace fusebox::python {
namespace {

using record::GpuRecording;
using record::Recorder;

struct Line {
  std::string_view file;  ///< of a code object on the stack of this thread: valid while the operator runs
  int line = 0;
  bool compiling = false;  ///< called by stock torch.compile's compiler: on values without data
};

/// Text of an ASCII file name without asking Python (there may be no GIL); other names are left out.
std::string_view asciiText(PyObject* text) {
  if (!text || !PyUnicode_Check(text) || !PyUnicode_IS_COMPACT_ASCII(text)) return {};
  return {static_cast<const char*>(PyUnicode_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
}

bool isUsers(std::string_view file) {
  if (file.empty() || file.front() == '<') return false;
  for (const char* part : {"/site-packages/", "/dist-packages/", "/torch/", "/fusebox/", "/torchinductor_", "/lib/python3."})
    if (file.find(part) != std::string_view::npos) return false;
  return true;
}

Line userLine() {
  Line found;
  capture::visitFrames(
      [](PyCodeObject* code, int offset, void* context) {
        auto& line = *static_cast<Line*>(context);
        const std::string_view file = asciiText(code->co_filename);
        for (const std::string_view compiler : {"/torch/_dynamo/convert_frame.py", "/torch/_inductor/compile_fx.py"})
          line.compiling = line.compiling || file.ends_with(compiler);
        if (!isUsers(file)) return true;
        line.file = file;
        line.line = PyCode_Addr2Line(code, offset);
        return false;
      },
      &found);
  return found;
}

/// Where forward operators were called, by the thread and sequence number that autograd gives their backward ones. A ring: the
/// oldest go.
class ForwardPlaces {
 public:
  void put(uint64_t thread, int64_t sequence, int32_t number) {
    const uint32_t key = keyOf(thread, sequence);
    slots_[key % kSlots].store(uint64_t{key} << 32 | static_cast<uint32_t>(number), std::memory_order_relaxed);
  }
  /// 0: not known.
  int32_t get(uint64_t thread, int64_t sequence) const {
    const uint32_t key = keyOf(thread, sequence);
    const uint64_t value = slots_[key % kSlots].load(std::memory_order_relaxed);
    return value >> 32 == key ? static_cast<int32_t>(value) : 0;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 16;
  static uint32_t keyOf(uint64_t thread, int64_t sequence) {
    return static_cast<uint32_t>(thread * 0x9e3779b1u + static_cast<uint64_t>(sequence));
  }
  std::array<std::atomic<uint64_t>, kSlots> slots_{};
};
ForwardPlaces& forwardPlaces() {
  static auto* places = new ForwardPlaces;
  return *places;
}

struct Span : at::ObserverContext {
  int64_t startNs = 0;
  int64_t firstSequence = 0;  ///< of the backward operators that it makes
  int32_t number = 0;         ///< 0: not an operator itself
};

/// Autograd's engine announces each backward operator with a span of its own, which does not know its forward one.
constexpr std::string_view kAnnouncement = "autograd::engine::evaluate_function";
/// An operator that makes more backward ones than this (a whole model in one) is not the place of the others.
constexpr int64_t kMostBackward = 256;

/// Spans around what stock torch.compile runs: the operators and kernels inside are what took the time.
constexpr std::array<std::string_view, 5> kRegions = {"CompiledFunction", "## Call CompiledFxGraph", "Torch-Compiled Region",
                                                      "AOTDispatcher Runtime Wrapper", "TorchDynamo Cache Lookup"};

thread_local int depth = 0;
std::atomic<OperatorTrace> mode{OperatorTrace::Spans};

/// The kernels of kind eager that stand for operators and their lines in a session without a GPU's times.
class EagerKernels {
 public:
  record::Id of(Recorder& recorder, const GpuRecording& recording, int32_t number) {
    std::lock_guard lock(mutex_);
    if (owner_ != &recorder) kernels_.clear(), owner_ = &recorder;
    const auto at = static_cast<size_t>(number);
    if (kernels_.size() <= at) kernels_.resize(at + 1, 0);
    if (kernels_[at] == 0) kernels_[at] = make(recorder, recording.operatorPlace(number));
    return kernels_[at];
  }

 private:
  static record::Id make(Recorder& recorder, cupti::OperatorPlace place) {
    record::KernelRecord kernel;
    kernel.name = place.name;
    kernel.op = std::move(place.name);
    kernel.kind = "eager";
    kernel.device = at::hasCUDA() ? "" : "cpu";
    kernel.place = {std::move(place.file), place.line, {}};
    return recorder.kernel(std::move(kernel));
  }
  std::mutex mutex_;
  Recorder* owner_ = nullptr;
  std::vector<record::Id> kernels_;  ///< by operator number
};
EagerKernels& eagerKernels() {
  static auto* kernels = new EagerKernels;
  return *kernels;
}

bool isRegion(std::string_view name) {
  return std::any_of(kRegions.begin(), kRegions.end(), [&](std::string_view region) { return name.substr(0, region.size()) == region; });
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name.substr(0, kAnnouncement.size()) == kAnnouncement) return std::make_unique<Span>();
  if (depth == 0 && mode.load(std::memory_order_relaxed) == OperatorTrace::Launches && isRegion(name)) return std::make_unique<Span>();
  if (depth++ > 0 || GpuRecording::compiledDepth() > 0 || capture::isCapturing()) return nullptr;
  GpuRecording* recording = GpuRecording::active();
  if (!recording) return nullptr;
  auto span = std::make_unique<Span>();
  const bool isBackward = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  if (const int32_t forward = isBackward && function.seqNr() >= 0 ? forwardPlaces().get(function.forwardThreadId(), function.seqNr()) : 0) {
    span->number = recording->operatorLike(forward, name);
  } else {
    const Line line = userLine();
    if (line.compiling && mode.load(std::memory_order_relaxed) == OperatorTrace::Launches) return nullptr;
    span->number = recording->operatorNumber(name, line.file, line.line);
  }
  span->firstSequence = isBackward ? -1 : static_cast<int64_t>(at::sequence_number::peek());
  span->startNs = nowNs();
  return span;
}

void leave(const at::RecordFunction&, at::ObserverContext* context) {
  auto* span = static_cast<Span*>(context);
  if (span && span->startNs == 0) return;  // an announcement or a region
  --depth;
  if (!span) return;
  if (span->firstSequence >= 0) {
    const auto end = static_cast<int64_t>(at::sequence_number::peek());
    const uint64_t thread = at::RecordFunction::currentThreadId();
    for (int64_t s = span->firstSequence; s < std::min(end, span->firstSequence + kMostBackward); ++s) forwardPlaces().put(thread, s, span->number);
  }
  Recorder* recorder = Recorder::session();
  if (!recorder || span->number == 0) return;
  const int64_t took = nowNs() - span->startNs;
  if (mode.load(std::memory_order_relaxed) == OperatorTrace::Spans) return recorder->launch(span->number, record::kOperatorTag, span->startNs, took, 0);
  const GpuRecording* recording = GpuRecording::active();
  if (const record::Id kernel = recording ? eagerKernels().of(*recorder, *recording, span->number) : 0) recorder->launch(kernel, 0, span->startNs, took, 0);
}

std::optional<at::CallbackHandle> handle;

}  // namespace

void startOperatorTrace(OperatorTrace what) {
  mode.store(what, std::memory_order_relaxed);
  if (handle) return;
  handle = at::addGlobalCallback(
      at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

void stopOperatorTrace() {
  if (!handle) return;
  at::removeCallback(*handle);
  handle.reset();
}

}  // namespace fusebox::python
