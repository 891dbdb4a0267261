#include "engine/record/recorder.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "engine/record/crash_commit.h"
#include "engine/record/recorder_impl.h"

namespace fusebox::record {

std::atomic<Recorder*> Recorder::active_{nullptr};
std::atomic<Listener*> Recorder::listener_{nullptr};
thread_local int Recorder::quiet_ = 0;
thread_local Recorder::Thread Recorder::thread_;
thread_local Recorder::Caller Recorder::caller_;

namespace rows = session::rows;
using session::Writer;

namespace {

std::mutex startMutex;

std::string threadName() {
  char name[32] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return gettid() == getpid() ? "main" : name;
}

}  // namespace

Recorder::Recorder(std::unique_ptr<Impl> impl, bool isSession) : impl_(std::move(impl)), isSession_(isSession) {}

Recorder* Recorder::withoutSession() {
  static Recorder* recorder = [] {
    auto impl = std::make_unique<Impl>();
    for (auto* id : {&impl->ids.frame, &impl->ids.compile, &impl->ids.graph, &impl->ids.kernel}) *id = kFirstIdWithoutSession;
    return new Recorder(std::move(impl), false);
  }();
  return recorder;
}

void Recorder::listen(Listener* listener) {
  std::lock_guard lock(startMutex);
  listener_.store(listener, std::memory_order_release);
  if (!session()) active_.store(listener ? withoutSession() : nullptr, std::memory_order_release);
}

bool Recorder::keepsCode() const noexcept {
  const Listener* hears = listener();
  return isSession_ || (hears && hears->wantsCode);
}

Result<Recorder*> Recorder::start(RecorderOptions options) {
  std::lock_guard lock(startMutex);
  if (session()) {
    return fail(ErrorCode::InvalidArgument, "a session is being recorded already; stop it first", active()->path());
  }
  auto writer = Writer::create(options.path);
  if (!writer) return tl::unexpected(writer.error());
  auto impl = std::make_unique<Impl>();
  impl->writer = std::move(*writer);
  auto& i = *impl;
  i.gpu = std::make_unique<GpuRecording>(
      *i.writer, i.sources,
      GpuRecording::Numbers{[&i] { return i.ids.thread.fetch_add(1); }, [&i] { return i.ids.kernel.fetch_add(1); },
                            [&i] { return i.ids.span.fetch_add(1); }});
  auto* recorder = new Recorder(std::move(impl), true);
  recorder->impl_->guarded([&] { recorder->impl_->tell(0, SessionBegins()); });
  for (auto& [key, value] : options.facts) recorder->fact(key, value);
  recorder->flush();  // a session says whose it is, however soon its process dies
  static const bool once = [] {
    // A forked child has neither the writer's thread nor a right to the file: it records nothing.
    pthread_atfork([] { startMutex.lock(); }, [] { startMutex.unlock(); },
                   [] {
                     startMutex.unlock();
                     forgetCommitAtCrash();
                     active_.store(listener_.load() ? withoutSession() : nullptr, std::memory_order_release);
                     GpuRecording::active_.store(nullptr, std::memory_order_release);
                   });
    std::atexit([] { stop(); });
    return true;
  }();
  (void)once;
  GpuRecording::active_.store(recorder->impl_->gpu.get(), std::memory_order_release);
  active_.store(recorder, std::memory_order_release);
  commitAtCrash(i.writer.get());
  return recorder;
}

void Recorder::stop() {
  std::lock_guard lock(startMutex);
  Recorder* recorder = session();
  if (!recorder) return;
  active_.store(listener_.load() ? withoutSession() : nullptr, std::memory_order_release);
  GpuRecording::active_.store(nullptr, std::memory_order_release);
  commitAtCrash(nullptr);
  recorder->impl_->gpu->stop();
  recorder->impl_->writer->finish();
}

void Recorder::fact(std::string key, std::string value) {
  impl_->guarded([&] { impl_->put(rows::Info{.key = std::move(key), .value = std::move(value)}); });
}

void Recorder::flush() {
  if (impl_->writer) impl_->writer->flush();
}

const std::string& Recorder::path() const {
  static const std::string none;
  return impl_->writer ? impl_->writer->path() : none;
}

void Recorder::attachThread() noexcept {
  Thread& t = thread_;
  if (t.ring) Writer::closeRing(t.ring);
  t = Thread{};
  t.owner = this;
  t.id = impl_->ids.thread.fetch_add(1);
  if (!isSession_) return;
  t.ring = impl_->writer->openRing(t.id);
  impl_->guarded([&] {
    impl_->gpu->noteThread(t.id);
    impl_->put(rows::Thread{.id = int64_t{t.id}, .os_tid = int64_t{gettid()}, .name = textCell(threadName())});
  });
  if (!t.ring) impl_->writer->loss("launches", 1, "no ring for a thread");
}

Recorder::Thread::~Thread() {
  if (ring) Writer::closeRing(ring);
  ring = nullptr;
}

void Recorder::loss(std::string what, int64_t count, std::string detail) {
  if (impl_->writer) impl_->writer->loss(what, count, detail);
  impl_->guarded([&] { impl_->tell(0, LossRecord{std::move(what), std::move(detail), count}); });
}

void Recorder::sourceFile(std::string path) {
  impl_->guarded([&] { impl_->noteFile({std::move(path), 0, {}}); });
}

namespace {
constexpr const char* kPhaseNames[] = {"capture", "aot", "inductor", "codegen"};
}

StageTimer::StageTimer(Recorder* recorder, Id compile, Phase phase, std::string_view name) : recorder_(recorder) {
  if (!recorder_) return;
  if (Recorder::thread_.owner != recorder_) recorder_->attachThread();
  auto& thread = Recorder::thread_;
  compile_ = compile;
  phase_ = phase;
  recorder_->impl_->guarded([&] { name_ = name; });
  id_ = recorder_->impl_->ids.stage.fetch_add(1);
  parent_ = thread.stage;
  depth_ = thread.depth++;
  thread.stage = id_;
  startNs_ = nowNs();
}

StageTimer::~StageTimer() {
  if (!recorder_) return;
  const int64_t end = nowNs();
  auto& thread = Recorder::thread_;
  if (thread.owner == recorder_) {
    thread.stage = parent_;
    thread.depth = depth_;
  }
  auto& impl = *recorder_->impl_;
  impl.guarded([&] {
    impl.tell(id_, StageRecord{compile_, kPhaseNames[static_cast<size_t>(phase_)], name_, startNs_, end, changed_, before_, after_, detail_});
    impl.put(rows::Stage{.id = int64_t{id_}, .compile_id = idCell(compile_), .parent_id = idCell(parent_), .depth = int64_t{depth_},
        .phase = std::string(kPhaseNames[static_cast<size_t>(phase_)]), .name = textCell(std::move(name_)), .start_ns = startNs_, .end_ns = end,
        .thread = int64_t{thread.id}, .changed = positiveCell(changed_), .nodes_before = positiveCell(before_),
        .nodes_after = positiveCell(after_), .error = textCell(std::move(error_)), .detail = textCell(std::move(detail_))});
  });
}

void StageTimer::detail(std::string text) { detail_ = std::move(text); }
void StageTimer::error(std::string text) { error_ = std::move(text); }

}  // namespace fusebox::record
