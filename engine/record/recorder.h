#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/serialize.h"
#include "engine/record/listener.h"
#include "engine/record/records.h"
#include "engine/support/clock.h"
#include "engine/support/result.h"
#include "profiler/session/launch_ring.h"

namespace fusebox::record {

/// How a recording starts.
struct RecorderOptions {
  std::string path;                           ///< session file; an existing one is replaced
  std::map<std::string, std::string> facts;   ///< rows of session_info: engine, torch, python, device, command, config.NAME
};

/// The engine's side of a session. Every method may be called from any thread, returns at once (a background thread writes),
/// and never throws: what cannot be recorded is counted in the session's losses. A null Recorder* means that nothing is
/// recorded; callers ask `Recorder::active()` once per stage of a compilation, `Recorder::session()` once per launch or call.
/// A recorder without a session tells a listener of what is compiled, and that is all.
class Recorder {
 public:
  /// The recorder that is on, or null. A pointer stays valid for the life of the process, also after stop().
  static Recorder* active() noexcept { return active_.load(std::memory_order_acquire); }
  /// The same, if it writes a session: what happens in every call is of no use to a listener alone.
  static Recorder* session() noexcept {
    Recorder* recorder = active();
    return recorder && recorder->isSession() ? recorder : nullptr;
  }
  bool isSession() const noexcept { return isSession_; }
  /// From now on `listener` hears of what is compiled; null: nobody does. It lives as long as the process.
  static void listen(Listener* listener);
  /// Who hears of what this thread records; null: nobody.
  static Listener* listener() noexcept { return quiet_ > 0 ? nullptr : listener_.load(std::memory_order_acquire); }
  /// Whether code is to be kept as text when it is made.
  bool keepsCode() const noexcept;
  /// While it lives this thread's records go to the session alone: they are of what was compiled earlier.
  struct Quiet {
    Quiet() noexcept { ++quiet_; }
    ~Quiet() { --quiet_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
  };
  /// Creates the session file and makes the recorder active. One at a time: a second start fails until stop().
  static Result<Recorder*> start(RecorderOptions options);
  /// Writes what is queued, marks the session finished and closes it. Called at process exit too. No-op when off.
  static void stop();

  void fact(std::string key, std::string value);

  // --- compile time ---
  Id frame(FrameRecord record);
  /// status: compiled, skipped, failed, limit.
  void frameStatus(Id frame, std::string status, std::string reason = {});
  Id beginCompile(CompileRecord record);
  void endCompile(Id compile, CompileEnd end = {});
  Id graphBreak(GraphBreakRecord record);
  /// Guards of a compiled entry, in checking order. Returns the id of the first; the others follow.
  Id guards(Id compile, std::vector<GuardRecord> guards);
  Id guardFailure(GuardFailureRecord record);
  /// The symbols of a compiled entry, in the order in which they were made; and, in the order in which capture came to them, what it
  /// took as true of them and which numbers it took as constants. May be called several times for one entry: later ones follow.
  void symbols(Id compile, std::vector<SymbolRecord> symbols);
  void relations(Id compile, std::vector<RelationRecord> relations);
  void specialisations(Id compile, std::vector<SpecialisationRecord> specialisations);
  /// Copies `graph` and writes its nodes, edges and origins in the background.
  GraphSnapshot graph(const graph::Graph& graph, GraphRecord record);
  GraphSnapshot graph(std::shared_ptr<const graph::Graph> graph, GraphRecord record);
  /// Keeps `graph`, recorded as `snapshot`, in the form that can be compiled again alone; written in the background.
  void saveGraph(const GraphSnapshot& snapshot, std::shared_ptr<const graph::Graph> graph, std::vector<graph::ConstantData> constants = {},
                 graph::SymbolHints hints = {});
  void numerics(NumericsRecord record);
  Id fusionGroup(FusionGroupRecord record);
  void fusionDecision(FusionDecisionRecord record);
  Id buffer(BufferRecord record);
  Id kernel(KernelRecord record);
  void kernelCode(KernelCodeRecord record);
  /// The same, made by `make` on the background thread: printing and disassembling take time. An empty result is no row.
  void kernelCode(std::function<std::optional<KernelCodeRecord>()> make);
  /// For a listener alone: the session has the loop IR of each kernel.
  void ir(IrRecord record);
  void tracedInstruction(TracedInstruction record);
  void bytecode(BytecodeRecord record);
  void effects(EffectsRecord record);
  void stage(StageRecord record);
  void cacheEvent(CacheRecord record);
  Id cudaGraph(CudaGraphRecord record);
  /// The text of a file of the user's program; each path is read once. Files named by places are added by themselves.
  void sourceFile(std::string path);
  void loss(std::string what, int64_t count = 1, std::string detail = {});

  // --- run time ---
  /// A span that is not a stage, launch or call ("optimizer step", "garbage collection").
  void span(SpanRecord record);
  /// One run of kernel `kernel`: no lock, no allocation.
  void launch(Id kernel, Id group, int64_t startNs, int64_t durNs, int64_t bytes) noexcept {
    push({startNs, durNs, bytes, kernel, group});
  }
  /// One call of compiled entry `compile`, from guard check to result.
  void call(Id compile, int64_t startNs, int64_t durNs) noexcept {
    push({startNs, durNs, 0, compile, session::kCallTag});
  }
  void guardCheck(Id compile, int64_t startNs, int64_t durNs) noexcept {
    push({startNs, durNs, 0, compile, session::kGuardCheckTag});
  }

  /// What the compiled graph that this thread runs belongs to; set by the caller around every recorded call.
  struct Caller {
    Id compile = 0;
    GraphSnapshot forward;
  };
  static Caller& caller() noexcept { return caller_; }

  /// Blocks until everything recorded so far can be read by another process.
  void flush();
  const std::string& path() const;

 private:
  friend class StageTimer;
  struct Impl;
  explicit Recorder(std::unique_ptr<Impl> impl, bool isSession);
  static Recorder* withoutSession();
  ~Recorder() = delete;  // never destroyed: other threads may still hold it

  void push(const session::LaunchRecord& record) noexcept {
    Thread& t = thread_;
    if (t.owner != this) [[unlikely]] attachThread();
    if (t.ring) t.ring->push(record);
  }
  void attachThread() noexcept;

  struct Thread {
    Recorder* owner = nullptr;
    session::LaunchRing* ring = nullptr;  ///< owned by the session writer, returned at thread exit
    Id id = 0;
    Id stage = 0;   ///< innermost open stage
    int depth = 0;
    ~Thread();
  };
  static thread_local Thread thread_;
  static thread_local Caller caller_;
  static thread_local int quiet_;
  static std::atomic<Recorder*> active_;
  static std::atomic<Listener*> listener_;
  std::unique_ptr<Impl> impl_;
  bool isSession_ = true;
};

/// Which column of the summary's compile_ms a stage counts towards.
enum class Phase : uint8_t { Capture, Aot, Inductor, Codegen };

/// Records one stage of a compilation: construct at its start, destroy at its end. Nested timers become a tree. Only the
/// outermost stage of a phase counts in sums. Free of cost with a null recorder.
class StageTimer {
 public:
  StageTimer(Recorder* recorder, Id compile, Phase phase, std::string_view name);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

  void nodes(int64_t before, int64_t after) { before_ = before, after_ = after; }
  void changed(bool yes) { changed_ = yes ? 1 : 0; }
  void detail(std::string text);
  void error(std::string text);

 private:
  Recorder* recorder_;
  Id compile_ = 0, id_ = 0, parent_ = 0;
  Phase phase_ = Phase::Capture;
  int depth_ = 0, changed_ = -1;
  int64_t before_ = -1, after_ = -1, startNs_ = 0;
  std::string name_, detail_, error_;
};

}  // namespace fusebox::record
