#include "engine/codegen/cpu/jit.h"

#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "engine/codegen/cpu/batch_math.h"
#include "engine/codegen/cpu/disassembly.h"
#include "engine/codegen/cpu/kernel_check.h"
#include "engine/codegen/cpu/kernel_emitter.h"
#include "engine/codegen/cpu/machine_code.h"
#include "engine/codegen/cpu/size_function.h"
#include "engine/support/all_cores.h"

namespace fusebox::codegen::cpu {
namespace {

constexpr int kOptimisedTier = 1;

int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string why(llvm::Error error) { return llvm::toString(std::move(error)); }

/// A kernel with what is needed to compile it again.
struct Entry : CompiledKernel {
  std::string canonical;
  Plan plan;
  std::string symbol;
  std::mutex compiling;  ///< held by the thread that compiles the first tier
  bool failed = false;
  Error error;
  /// Of the newest tier, under `textMutex`: the background tier replaces them.
  std::mutex textMutex;
  std::string object, llvmIr;
  int64_t tierNs = 0;
};

class OrcJit final : public Jit {
 public:
  explicit OrcJit(Options options) : options_(std::move(options)) {}
  ~OrcJit() override { stop(); }
  Result<void> start();

  Result<std::shared_ptr<CompiledKernel>> compile(const inductor::Kernel& kernel) override;
  std::vector<Result<std::shared_ptr<CompiledKernel>>> compileAll(const std::vector<inductor::Kernel>& kernels,
                                                                  int threads) override;
  Result<KernelText> text(const CompiledKernel& kernel) override;
  void drain() override;
  void stop() override;

 private:
  struct Built {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  Result<std::unique_ptr<Built>> build(Entry& entry, int tier);
  Result<void> compileTier(Entry& entry, int tier);
  Result<KernelFunction> link(llvm::SmallVector<char, 0> object, const std::string& symbol);
  void describe(Entry& entry);
  void enqueue(std::shared_ptr<Entry> entry);
  void work();

  Options options_;
  TargetTraits traits_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // by canonical text
  std::deque<std::shared_ptr<Entry>> queue_;
  std::condition_variable wake_, idle_;
  std::thread worker_;
  bool stopping_ = false, busy_ = false;
  std::atomic<int> serial_{0};
};

Result<void> OrcJit::start() {
  using namespace llvm::orc;
  auto probe = makeTargetMachine(options_.target, true);
  if (!probe) return tl::unexpected(probe.error());
  traits_ = traitsOf(options_.target, **probe);
  JITTargetMachineBuilder builder((*probe)->getTargetTriple());
  builder.setCPU(options_.target.cpu);
  auto jit = LLJITBuilder()
                 .setJITTargetMachineBuilder(builder)
                 .setObjectLinkingLayerCreator([](ExecutionSession& session, const llvm::Triple&) {
                   return std::make_unique<ObjectLinkingLayer>(session);
                 })
                 .create();
  if (!jit) return fail(ErrorCode::Internal, "cannot start the JIT", why(jit.takeError()));
  jit_ = std::move(*jit);
  SymbolMap symbols;
  for (const auto& [name, address] : runtimeSymbols())
    symbols[jit_->mangleAndIntern(name)] = {ExecutorAddr::fromPtr(address),
                                            llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (auto error = jit_->getMainJITDylib().define(absoluteSymbols(std::move(symbols))))
    return fail(ErrorCode::Internal, "cannot define run-time symbols", why(std::move(error)));
  if (options_.background) worker_ = std::thread([this] { work(); });
  return {};
}

void OrcJit::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  if (worker_.joinable()) worker_.join();
}

Result<std::unique_ptr<OrcJit::Built>> OrcJit::build(Entry& entry, int tier) {
  auto machine = makeTargetMachine(options_.target, tier >= kOptimisedTier);
  if (!machine) return tl::unexpected(machine.error());
  auto built = std::make_unique<Built>();
  built->machine = std::move(*machine);
  built->module = std::make_unique<llvm::Module>(entry.symbol, built->context);
  built->module->setDataLayout(built->machine->createDataLayout());
  built->module->setTargetTriple(built->machine->getTargetTriple().str());
  auto emitted = guardAgainstFatalErrors(
      [&] { KernelEmitter(entry.plan, *built->module, options_.target, traits_, entry.symbol).emit(); });
  if (!emitted) return tl::unexpected(emitted.error());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*built->module, &stream))
    return fail(ErrorCode::Internal, "generated LLVM IR is invalid: " + problem, entry.plan.kernel.name);
  return built;
}

Result<KernelFunction> OrcJit::link(llvm::SmallVector<char, 0> object, const std::string& symbol) {
  auto library = jit_->createJITDylib(symbol + "#" + std::to_string(serial_++));
  if (!library) return fail(ErrorCode::Internal, "cannot make a JIT library", why(library.takeError()));
  library->addToLinkOrder(jit_->getMainJITDylib());
  auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), symbol, false);
  if (auto error = jit_->addObjectFile(*library, std::move(buffer)))
    return fail(ErrorCode::Internal, "cannot link a kernel", why(std::move(error)));
  auto address = jit_->lookup(*library, symbol);
  if (!address) return fail(ErrorCode::Internal, "cannot link a kernel", why(address.takeError()));
  return address->toPtr<KernelFunction>();
}

Result<void> OrcJit::compileTier(Entry& entry, int tier) {
  const int64_t start = now();
  auto built = build(entry, tier);
  if (!built) return tl::unexpected(built.error());
  if (tier >= kOptimisedTier) {
    auto optimised = guardAgainstFatalErrors([&] { optimiseModule(*(*built)->module, *(*built)->machine); });
    if (!optimised) return optimised;
  }
  std::string ir;
  if (keepsText.load(std::memory_order_relaxed)) ir = printedModule(entry.plan.str(), *(*built)->module);
  auto object = emitObject(*(*built)->module, *(*built)->machine);
  if (!object) return tl::unexpected(object.error());
  std::string bytes(object->begin(), object->end());
  auto function = link(std::move(*object), entry.symbol);
  if (!function) return tl::unexpected(function.error());
  {
    std::lock_guard lock(entry.textMutex);
    entry.object = std::move(bytes);
    entry.llvmIr = std::move(ir);
    entry.tierNs = now() - start;
    entry.tier.store(tier, std::memory_order_release);
  }
  entry.function.store(*function, std::memory_order_release);
  return {};
}

/// What launches need to know of a kernel besides its code.
void OrcJit::describe(Entry& entry) {
  const Plan& plan = entry.plan;
  const auto& symbols = plan.kernel.sizeSymbols;
  inductor::SymExpr total(0);
  std::vector<std::function<int64_t(const int64_t*)>> phases;
  for (const Phase& p : plan.phases) {
    total += plan.unitsOf(p);
    phases.push_back(sizeFunction(plan.unitsOf(p), symbols));
  }
  entry.units = sizeFunction(total, symbols);
  entry.bytesPerUnit = plan.bytesPerUnit;
  entry.costPerUnit = plan.nsPerUnit;
  entry.checks = inductor::hasChecks(plan.kernel);
  if (!plan.isPhased()) return;
  entry.scratchBytes = sizeFunction(layoutScratch(plan).bytes, symbols);
  entry.phaseEnds = [phases = std::move(phases)](const int64_t* sizes) {
    std::vector<int64_t> ends;
    int64_t end = 0;
    for (const auto& p : phases) ends.push_back(end += p(sizes));
    return ends;
  };
}

Result<std::shared_ptr<CompiledKernel>> OrcJit::compile(const inductor::Kernel& kernel) {
  std::string canonical = inductor::canonicalText(kernel);
  std::shared_ptr<Entry> entry;
  std::unique_lock<std::mutex> first;
  {
    std::lock_guard lock(mutex_);
    auto& slot = entries_[canonical];
    if (!slot) {
      slot = std::make_shared<Entry>();
      first = std::unique_lock(slot->compiling);
    }
    entry = slot;
  }
  if (!first.owns_lock()) {  // another thread made it, or is making it now
    std::lock_guard wait(entry->compiling);
    if (entry->failed) return tl::unexpected(entry->error);
    return std::static_pointer_cast<CompiledKernel>(entry);
  }
  const int64_t start = now();
  entry->canonical = std::move(canonical);
  entry->symbol = "kernel_" + kernel.name;  // the prefix keeps a kernel named "exp" apart from libm's
  Result<void> done = checkKernel(kernel);
  if (done && inductor::isForGpu(kernel)) done = fail(ErrorCode::Unsupported, "no CPU code for scans, for scattered additions and for accumulation over points", kernel.name);
  if (done) {
    try {
      entry->plan = makePlan(kernel, traits_);
      describe(*entry);
      done = compileTier(*entry, options_.firstTier);
    } catch (const std::exception& error) {  // whoever waits for this entry must learn of it
      done = fail(ErrorCode::Internal, error.what(), kernel.name);
    }
  }
  if (!done) {
    entry->failed = true;
    entry->error = done.error();
    return tl::unexpected(done.error());
  }
  entry->compileNs = now() - start;
  if (options_.background && options_.firstTier < kOptimisedTier) enqueue(entry);
  return std::static_pointer_cast<CompiledKernel>(entry);
}

std::vector<Result<std::shared_ptr<CompiledKernel>>> OrcJit::compileAll(const std::vector<inductor::Kernel>& kernels,
                                                                        int threads) {
  std::vector<Result<std::shared_ptr<CompiledKernel>>> results(kernels.size());
  forEachOnAllCores(kernels.size(), [&](size_t i) { results[i] = compile(kernels[i]); }, static_cast<size_t>(std::max(1, threads)));
  return results;
}

Result<KernelText> OrcJit::text(const CompiledKernel& kernel) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    for (auto& [key, e] : entries_)
      if (e.get() == &kernel) entry = e;
  }
  if (!entry) return fail(ErrorCode::NotFound, "not a kernel of this JIT");
  KernelText out;
  std::string object;
  {
    std::lock_guard lock(entry->textMutex);
    object = entry->object;
    out.llvmIr = entry->llvmIr;
    out.compileNs = entry->tierNs;
    out.tier = entry->tier.load();
  }
  out.target = options_.target.cpu + ", " + std::to_string(options_.target.vectorBits) + "-bit vectors";
  auto code = disassembleObject(object, options_.target);
  if (!code) return tl::unexpected(code.error());
  out.assembly = std::move(code->text);
  out.codeBytes = code->codeBytes;
  if (!out.llvmIr.empty()) return out;
  auto built = build(*entry, out.tier);
  if (!built) return tl::unexpected(built.error());
  if (out.tier >= kOptimisedTier) {
    auto optimised = guardAgainstFatalErrors([&] { optimiseModule(*(*built)->module, *(*built)->machine); });
    if (!optimised) return tl::unexpected(optimised.error());
  }
  out.llvmIr = printedModule(entry->plan.str(), *(*built)->module);
  return out;
}

void OrcJit::enqueue(std::shared_ptr<Entry> entry) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(entry));
  }
  wake_.notify_one();
}

void OrcJit::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Entry> entry = queue_.front();
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const int64_t start = now();
    // A failure leaves the first tier in place, which is correct, only slower.
    try {
      if (compileTier(*entry, kOptimisedTier) && onTier) onTier(*entry, now() - start);
    } catch (...) {
      // Out of memory, or what a recorder could not write down: an exception would end the program with this thread.
    }
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

void OrcJit::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

}  // namespace

Result<std::shared_ptr<Jit>> Jit::create(Options options) {
  auto jit = std::make_shared<OrcJit>(std::move(options));
  if (auto started = jit->start(); !started) return tl::unexpected(started.error());
  return std::static_pointer_cast<Jit>(jit);
}

}  // namespace fusebox::codegen::cpu
