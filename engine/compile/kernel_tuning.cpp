#include "engine/compile/kernel_tuning.h"

#include <ATen/Functions.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/codegen/gpu/launch_shape.h"
#include "engine/record/gpu_recording.h"
#include "engine/runtime/gpu/gpu_compiler.h"
#include "engine/support/all_cores.h"
#include "engine/support/clock.h"

namespace fusebox {
namespace {

using codegen::gpu::LaunchShape;
using inductor::BufferRole;
using inductor::Kernel;
using runtime::gpu::CudaDriver;
using runtime::gpu::GpuKernel;

constexpr int kRounds = 3, kLaunches = 4;
constexpr double kWorthChanging = 0.98;  ///< of the rules' time: less is noise, and the rules are the same everywhere

bool isTunable(const Kernel& kernel) {
  if (kernel.attention || !kernel.sizeSymbols.empty() || inductor::hasChecks(kernel)) return false;
  for (const auto& buffer : kernel.buffers)
    if (buffer.role == BufferRole::InOut || buffer.overwrites >= 0 || !buffer.numel.isConstant()) return false;
  for (const auto& section : kernel.sections) {
    if (!section.indirect.empty()) return false;
    for (const auto& statement : section.body)
      if (statement.kind == inductor::Statement::Kind::AtomicAdd) return false;
  }
  return true;
}

struct Candidate {
  LaunchShape shape;
  std::shared_ptr<GpuKernel> kernel;
  double ns = std::numeric_limits<double>::infinity();
};

struct Subject {
  size_t position = 0;
  std::vector<Candidate> candidates;  ///< the rules' first
};

/// Code for every candidate, on all cores.
void generate(const inductor::Program& program, std::vector<Subject>& subjects) {
  std::vector<std::pair<const Kernel*, Candidate*>> jobs;
  for (Subject& subject : subjects)
    for (Candidate& candidate : subject.candidates)
      if (!candidate.kernel) jobs.emplace_back(&program.kernels[subject.position], &candidate);
  forEachOnAllCores(jobs.size(), [&](size_t i) {
    auto [kernel, candidate] = jobs[i];
    if (auto made = runtime::gpu::GpuCompiler::instance().compileShape(*kernel, candidate->shape)) candidate->kernel = *made;
  });
}

/// Device memory of a kernel's buffers and the clock of a stream.
class Bench {
 public:
  Bench(const Kernel& kernel, const CudaDriver& driver)
      : device_(c10::kCUDA, static_cast<c10::DeviceIndex>(std::max<int>(0, kernel.device.index))), guard_(device_), driver_(driver) {
    stream_ = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device_).native_handle();
    if (auto ready = driver_.ensureContext(device_.index()); !ready) throw std::runtime_error(ready.error().text());
    for (const auto& buffer : kernel.buffers) {
      if (buffer.role == BufferRole::Scratch) continue;
      memory_.push_back(contents(buffer));
      pointers_.push_back(memory_.back().data_ptr());
    }
    for (void** event : {&begin_, &end_}) check(driver_.cuEventCreate(event, 0), "cuEventCreate");
  }
  ~Bench() {
    for (void* event : {begin_, end_})
      if (event) driver_.cuEventDestroy(event);
  }

  /// Whether the program captures a CUDA graph, where nothing may be waited for.
  bool isCapturing() const {
    int capturing = 0;
    check(driver_.cuStreamGetCaptureInfo(stream_, &capturing, nullptr, nullptr, nullptr, nullptr), "cuStreamGetCaptureInfo");
    return capturing != 0;
  }

  double time(GpuKernel& kernel) {
    const auto made = kernel.shapeFor(nullptr);
    if (!made) throw std::runtime_error(made.error().text());
    const GpuKernel::Shape& shape = *made;
    c10::DataPtr work;
    if (shape.workBytes > 0) work = c10::GetAllocator(c10::kCUDA)->allocate(static_cast<size_t>(shape.workBytes));
    launch(kernel, shape, work.get());
    check(driver_.cuEventRecord(begin_, stream_), "cuEventRecord");
    for (int i = 0; i < kLaunches; ++i) launch(kernel, shape, work.get());
    check(driver_.cuEventRecord(end_, stream_), "cuEventRecord");
    check(driver_.cuEventSynchronize(end_), "cuEventSynchronize");
    float ms = 0;
    check(driver_.cuEventElapsedTime(&ms, begin_, end_), "cuEventElapsedTime");
    return 1e6 * ms / kLaunches;
  }

 private:
  void check(int error, const char* call) const {
    if (auto made = driver_.check(error, call); !made) throw std::runtime_error(made.error().text());
  }
  void launch(GpuKernel& kernel, const GpuKernel::Shape& shape, void* work) {
    auto launched = kernel.launch(device_.index(), stream_, std::span<void* const>(pointers_.data(), pointers_.size()), {}, shape, work);
    if (!launched) throw std::runtime_error(launched.error().text());
  }

  /// Zeros, or fractions with changing digits for floats: data of few bits passes through the device at other speeds.
  at::Tensor contents(const inductor::KernelBuffer& buffer) const {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto options = at::TensorOptions(device_).dtype(static_cast<c10::ScalarType>(buffer.dtype));
    const int64_t count = std::max<int64_t>(buffer.numel.constant(), 1);
    if (!graph::isFloatingPoint(buffer.dtype)) return at::zeros({count}, options);
    constexpr double kGoldenSection = 0.61803398875;
    return at::arange(count, options.dtype(at::kFloat)).mul_(kGoldenSection).frac_().sub_(0.5).to(options.dtype());
  }

  c10::Device device_;
  c10::DeviceGuard guard_;
  const CudaDriver& driver_;
  void* stream_ = nullptr;
  std::vector<at::Tensor> memory_;
  std::vector<void*> pointers_;
  void *begin_ = nullptr, *end_ = nullptr;
};

/// Shows the GPU's work while it lives as an operator of the user's line, not of the program's own.
class TimingSpan {
 public:
  explicit TimingSpan(const graph::SourceLine* place) : recording_(record::GpuRecording::active()) {
    if (recording_) number_ = recording_->operatorNumber("autotune", place ? place->file : std::string(), place ? place->line : 0);
  }
  ~TimingSpan() {
    if (auto* recorder = record::Recorder::active(); recorder && recording_)
      recorder->launch(number_, record::kOperatorTag, startNs_, nowNs() - startNs_, 0);
  }
  TimingSpan(const TimingSpan&) = delete;
  TimingSpan& operator=(const TimingSpan&) = delete;

 private:
  record::GpuRecording* recording_;
  record::Id number_ = 0;
  int64_t startNs_ = nowNs();
};

/// Times the candidates in turns; the quickest, or the rules' where it is hardly slower.
const Candidate& quickest(Subject& subject, Bench& bench) {
  for (int round = 0; round < kRounds; ++round)
    for (Candidate& candidate : subject.candidates)
      if (candidate.kernel) candidate.ns = std::min(candidate.ns, bench.time(*candidate.kernel));
  const Candidate* best = &subject.candidates.front();
  const double limit = kWorthChanging * best->ns;
  for (const Candidate& candidate : subject.candidates)
    if (candidate.ns < limit && candidate.ns < best->ns) best = &candidate;
  return *best;
}

}  // namespace

Result<int> tuneKernels(const inductor::Program& program, std::vector<std::shared_ptr<GpuKernel>>& kernels, int64_t leastBytes,
                bool deterministic, record::Id compile, const std::vector<const graph::SourceLine*>& places) {
  std::vector<Subject> subjects;
  auto& compiler = runtime::gpu::GpuCompiler::instance();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i] && deterministic && inductor::roundsByOrder(program.kernels[i])) {
      if (kernels[i]->isTuned())
        if (auto rules = compiler.compileShape(program.kernels[i], {})) kernels[i] = *rules;
      continue;
    }
    if (!kernels[i] || kernels[i]->isTuned() || kernels[i]->code().bytesMoved < leastBytes || !isTunable(program.kernels[i])) continue;
    auto target = compiler.targetOf(std::max<int>(0, program.kernels[i].device.index));
    if (!target) continue;
    Subject subject{i, {}};
    for (const LaunchShape& shape : codegen::gpu::candidateShapes(program.kernels[i], *target)) subject.candidates.push_back({shape, {}});
    subject.candidates.front().kernel = kernels[i];
    if (subject.candidates.size() > 1) subjects.push_back(std::move(subject));
  }
  if (subjects.empty()) return 0;
  generate(program, subjects);
  const record::GpuRecording::CountersPaused uncounted;  // counting would stand in the way of timing
  int timed = 0;
  for (Subject& subject : subjects) {
    const Kernel& kernel = program.kernels[subject.position];
    try {
      TimingSpan span(places[subject.position]);
      Bench bench(kernel, **CudaDriver::get());
      if (bench.isCapturing()) return timed;
      const Candidate& best = quickest(subject, bench);
      best.kernel->setTuned();
      kernels[subject.position] = best.kernel;
      compiler.keep(kernel, best.kernel);
      if (auto* recorder = record::Recorder::active()) {
        record::CacheRecord row{compile, "autotune", "store", kernel.name, best.shape.str(), 0};
        row.savedNs = static_cast<int64_t>(subject.candidates.front().ns - best.ns);
        for (const Candidate& candidate : subject.candidates)
          row.reason += fmt::format("; {}: {:.1f} us", candidate.shape.str(), candidate.ns / 1e3);
        recorder->cacheEvent(std::move(row));
      }
      ++timed;
    } catch (const c10::OutOfMemoryError&) {  // to time it with: the rules are good enough
    } catch (const std::exception& error) {  // the device is lost to this process: whoever reads of it later should know since when
      return fail(ErrorCode::Internal, error.what(), "timing launch shapes of " + kernel.name);
    }
  }
  return timed;
}

}  // namespace fusebox
