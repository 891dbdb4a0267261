#include "engine/codegen/cpu/jit.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "engine/codegen/cpu/background_worker.h"
#include "engine/codegen/cpu/batch_math.h"
#include "engine/codegen/cpu/disassembly.h"
#include "engine/codegen/cpu/kernel_check.h"
#include "engine/codegen/cpu/kernel_emitter.h"
#include "engine/codegen/cpu/machine_code.h"
#include "engine/codegen/cpu/size_function.h"
#include "engine/support/all_cores.h"
#include "engine/support/fork_gate.h"

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
  inductor::Kernel kernel;
  std::once_flag planned;
  Plan plan;        ///< planOf() gives it
  LaunchFacts facts;
  std::string symbol;
  std::mutex compiling;  ///< held by the thread that compiles the first tier
  bool failed = false, wasLoaded = false;
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
  Result<KernelImage> image(const CompiledKernel& kernel, const std::vector<inductor::Symbol>& sizes) override;
  Result<std::shared_ptr<CompiledKernel>> load(const inductor::Kernel& kernel, KernelImage image) override;
  const TargetFeatures& target() const override { return options_.target; }
  void later(std::function<void()> work) override;
  void drain() override { worker_.drain(); }
  void stop() override { worker_.stop(); }

 private:
  struct Built {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  Result<std::unique_ptr<Built>> build(Entry& entry, int tier, bool withLines);
  Result<std::unique_ptr<llvm::TargetMachine>> takeMachine(int tier);
  /// After a compilation that went well: one that LLVM gave up is its machine's last.
  void giveBack(int tier, std::unique_ptr<llvm::TargetMachine> machine);
  Result<void> makeText(Entry& entry, int tier, KernelText& text, std::string& object);
  Result<void> compileTier(Entry& entry, int tier);
  Result<KernelFunction> link(llvm::SmallVector<char, 0> object, const std::string& symbol);
  const Plan& planOf(Entry& entry);
  std::shared_ptr<Entry> entryOf(const CompiledKernel& kernel);
  std::pair<std::shared_ptr<Entry>, std::unique_lock<std::mutex>> place(const std::string& canonical);
  void enqueue(std::shared_ptr<Entry> entry);

  Options options_;
  TargetTraits traits_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::mutex machinesMutex_;
  std::vector<std::unique_ptr<llvm::TargetMachine>> machines_[2];  // by tier, not in use; reading what a processor has takes longer than a small kernel
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // by canonical text
  std::atomic<int> serial_{0};
  BackgroundWorker worker_;  // the last: its work reads what stands above
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
  giveBack(kOptimisedTier, std::move(*probe));
  return {};
}

Result<std::unique_ptr<llvm::TargetMachine>> OrcJit::takeMachine(int tier) {
  {
    std::lock_guard lock(machinesMutex_);
    auto& idle = machines_[tier >= kOptimisedTier];
    if (!idle.empty()) {
      std::unique_ptr<llvm::TargetMachine> machine = std::move(idle.back());
      idle.pop_back();
      return machine;
    }
  }
  return makeTargetMachine(options_.target, tier >= kOptimisedTier);
}

void OrcJit::giveBack(int tier, std::unique_ptr<llvm::TargetMachine> machine) {
  std::lock_guard lock(machinesMutex_);
  machines_[tier >= kOptimisedTier].push_back(std::move(machine));
}

Result<std::unique_ptr<OrcJit::Built>> OrcJit::build(Entry& entry, int tier, bool withLines) {
  auto machine = takeMachine(tier);
  if (!machine) return tl::unexpected(machine.error());
  auto built = std::make_unique<Built>();
  built->machine = std::move(*machine);
  built->module = std::make_unique<llvm::Module>(entry.symbol, built->context);
  built->module->setDataLayout(built->machine->createDataLayout());
  built->module->setTargetTriple(built->machine->getTargetTriple().str());
  const Plan& plan = planOf(entry);
  auto emitted = guardAgainstFatalErrors([&] {
    KernelEmitter emitter(plan, *built->module, options_.target, traits_, entry.symbol);
    if (withLines) emitter.keepLines();
    emitter.emit();
  });
  if (!emitted) return tl::unexpected(emitted.error());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*built->module, &stream))
    return fail(ErrorCode::Internal, "generated LLVM IR is invalid: " + problem, entry.kernel.name);
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
  const bool isKept = keepsText.load(std::memory_order_relaxed);
  auto built = build(entry, tier, isKept);
  if (!built) return tl::unexpected(built.error());
  if (tier >= kOptimisedTier) {
    auto optimised = guardAgainstFatalErrors([&] { optimiseModule(*(*built)->module, *(*built)->machine); });
    if (!optimised) return optimised;
  }
  std::string ir;
  if (isKept) ir = printedModule(planOf(entry).str(), *(*built)->module);
  auto object = emitObject(*(*built)->module, *(*built)->machine);
  if (!object) return tl::unexpected(object.error());
  giveBack(tier, std::move((*built)->machine));
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

LaunchFacts factsOf(const Plan& plan) {
  LaunchFacts facts;
  for (const Phase& p : plan.phases) facts.phaseUnits.push_back(plan.unitsOf(p));
  if (plan.isPhased()) facts.scratchBytes = layoutScratch(plan).bytes;
  facts.bytesPerUnit = plan.bytesPerUnit;
  facts.costPerUnit = plan.nsPerUnit;
  facts.checks = inductor::hasChecks(plan.kernel);
  return facts;
}

/// Fills in what launches ask of a kernel.
void describe(Entry& entry, LaunchFacts facts) {
  const auto& symbols = entry.kernel.sizeSymbols;
  inductor::SymExpr total(0);
  std::vector<std::function<int64_t(const int64_t*)>> phases;
  for (const inductor::SymExpr& units : facts.phaseUnits) {
    total += units;
    phases.push_back(sizeFunction(units, symbols));
  }
  entry.units = sizeFunction(total, symbols);
  entry.bytesPerUnit = facts.bytesPerUnit;
  entry.costPerUnit = facts.costPerUnit;
  entry.checks = facts.checks;
  if (phases.size() > 1) {
    entry.scratchBytes = sizeFunction(facts.scratchBytes, symbols);
    entry.phaseEnds = [phases = std::move(phases)](const int64_t* sizes) {
      std::vector<int64_t> ends;
      int64_t end = 0;
      for (const auto& p : phases) ends.push_back(end += p(sizes));
      return ends;
    };
  }
  entry.facts = std::move(facts);
}

/// Kernels whose code was loaded have none until somebody wants to see or to improve it.
const Plan& OrcJit::planOf(Entry& entry) {
  std::call_once(entry.planned, [&] { entry.plan = makePlan(entry.kernel, traits_); });
  return entry.plan;
}

/// The entry of a kernel's canonical text; with its lock held where it is new.
std::pair<std::shared_ptr<Entry>, std::unique_lock<std::mutex>> OrcJit::place(const std::string& canonical) {
  std::lock_guard lock(mutex_);
  auto& slot = entries_[canonical];
  if (slot) return {slot, std::unique_lock<std::mutex>()};
  slot = std::make_shared<Entry>();
  return {slot, std::unique_lock(slot->compiling)};
}

/// What another thread made, or is making now.
Result<std::shared_ptr<CompiledKernel>> whenMade(const std::shared_ptr<Entry>& entry) {
  std::lock_guard wait(entry->compiling);
  if (entry->failed) return tl::unexpected(entry->error);
  return std::static_pointer_cast<CompiledKernel>(entry);
}

Result<std::shared_ptr<CompiledKernel>> OrcJit::compile(const inductor::Kernel& kernel) {
  const ForkGate::Inside inside;
  std::string canonical = inductor::canonicalText(kernel);
  auto [entry, first] = place(canonical);
  if (!first.owns_lock()) {
    auto made = whenMade(entry);
    return made || !entry->wasLoaded ? made : compile(kernel);
  }
  const int64_t start = now();
  entry->canonical = std::move(canonical);
  entry->kernel = kernel;
  inductor::numberLines(entry->kernel);
  entry->symbol = "kernel_" + kernel.name;  // the prefix keeps a kernel named "exp" apart from libm's
  Result<void> done = checkKernel(kernel);
  if (done && inductor::isForGpu(kernel)) done = fail(ErrorCode::Unsupported, "no CPU code for scans, for scattered additions and for accumulation over points", kernel.name);
  if (done) {
    try {
      describe(*entry, factsOf(planOf(*entry)));
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

Result<std::shared_ptr<CompiledKernel>> OrcJit::load(const inductor::Kernel& kernel, KernelImage image) {
  const ForkGate::Inside inside;
  auto [entry, first] = place(image.canonical);
  if (!first.owns_lock()) return whenMade(entry);
  const int64_t start = now();
  entry->canonical = std::move(image.canonical);
  entry->kernel = kernel;
  inductor::numberLines(entry->kernel);
  entry->symbol = std::move(image.symbol);
  entry->object = std::move(image.object);
  entry->wasLoaded = true;
  describe(*entry, std::move(image.facts));
  auto function = link({entry->object.begin(), entry->object.end()}, entry->symbol);
  if (!function) {
    entry->failed = true;
    entry->error = function.error();
    std::lock_guard lock(mutex_);
    entries_.erase(entry->canonical);  // whoever compiles it instead begins anew
    return tl::unexpected(function.error());
  }
  entry->tier.store(image.tier, std::memory_order_release);
  entry->function.store(*function, std::memory_order_release);
  entry->compileNs = now() - start;
  if (options_.background && image.tier < kOptimisedTier) enqueue(entry);
  return std::static_pointer_cast<CompiledKernel>(entry);
}

std::shared_ptr<Entry> OrcJit::entryOf(const CompiledKernel& kernel) {
  std::lock_guard lock(mutex_);
  for (auto& [key, e] : entries_)
    if (e.get() == &kernel) return e;
  return nullptr;
}

/// The facts of a kernel with `from` for its sizes, for an equal one that has `to`.
LaunchFacts renamed(LaunchFacts facts, const std::vector<inductor::Symbol>& from, const std::vector<inductor::Symbol>& to) {
  const auto named = [&](inductor::Symbol symbol) -> std::optional<inductor::SymExpr> {
    const auto at = std::find(from.begin(), from.end(), symbol);
    return at == from.end() ? std::nullopt : std::optional(inductor::SymExpr(to[static_cast<size_t>(at - from.begin())]));
  };
  for (inductor::SymExpr& units : facts.phaseUnits) units = units.substitute(named);
  facts.scratchBytes = facts.scratchBytes.substitute(named);
  return facts;
}

Result<KernelImage> OrcJit::image(const CompiledKernel& kernel, const std::vector<inductor::Symbol>& sizes) {
  const std::shared_ptr<Entry> entry = entryOf(kernel);
  if (!entry) return fail(ErrorCode::NotFound, "not a kernel of this JIT");
  if (sizes.size() != entry->kernel.sizeSymbols.size()) return fail(ErrorCode::Internal, "a kernel with other sizes");
  std::lock_guard lock(entry->textMutex);
  return KernelImage{entry->tier.load(), entry->canonical, entry->symbol, entry->object, renamed(entry->facts, entry->kernel.sizeSymbols, sizes)};
}

std::vector<Result<std::shared_ptr<CompiledKernel>>> OrcJit::compileAll(const std::vector<inductor::Kernel>& kernels,
                                                                        int threads) {
  std::vector<Result<std::shared_ptr<CompiledKernel>>> results(kernels.size());
  forEachOnAllCores(kernels.size(), [&](size_t i) { results[i] = compile(kernels[i]); }, static_cast<size_t>(std::max(1, threads)));
  return results;
}

Result<KernelText> OrcJit::text(const CompiledKernel& kernel) {
  const ForkGate::Inside inside;
  const std::shared_ptr<Entry> entry = entryOf(kernel);
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
  if (out.llvmIr.empty())
    if (auto made = makeText(*entry, out.tier, out, object); !made) return tl::unexpected(made.error());
  auto code = disassembleObject(object, options_.target);
  if (!code) return tl::unexpected(code.error());
  out.assembly = std::move(code->text);
  out.codeBytes = code->codeBytes;
  return out;
}

/// The LLVM IR of code that was compiled while nobody asked for it, and its lines: `object` becomes one of the same code that has them.
Result<void> OrcJit::makeText(Entry& entry, int tier, KernelText& text, std::string& object) {
  auto built = build(entry, tier, true);
  if (!built) return tl::unexpected(built.error());
  if (tier >= kOptimisedTier) {
    auto optimised = guardAgainstFatalErrors([&] { optimiseModule(*(*built)->module, *(*built)->machine); });
    if (!optimised) return optimised;
  }
  text.llvmIr = printedModule(planOf(entry).str(), *(*built)->module);
  auto again = emitObject(*(*built)->module, *(*built)->machine);
  if (again && hasSameCode({again->data(), again->size()}, object)) object.assign(again->begin(), again->end());
  return {};
}

void OrcJit::enqueue(std::shared_ptr<Entry> entry) {
  later([this, entry = std::move(entry)] {
    const int64_t start = now();
    // A failure leaves the first tier in place, which is correct, only slower.
    if (compileTier(*entry, kOptimisedTier) && onTier) onTier(*entry, now() - start);
  });
}

void OrcJit::later(std::function<void()> work) {
  if (options_.background) worker_.later(std::move(work));
  else work();
}

}  // namespace

std::string llvmVersion() { return LLVM_VERSION_STRING; }

Result<std::shared_ptr<Jit>> Jit::create(Options options) {
  auto jit = std::make_shared<OrcJit>(std::move(options));
  if (auto started = jit->start(); !started) return tl::unexpected(started.error());
  return std::static_pointer_cast<Jit>(jit);
}

}  // namespace fusebox::codegen::cpu
