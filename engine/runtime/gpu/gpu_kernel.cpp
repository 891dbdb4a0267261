#include "engine/runtime/gpu/gpu_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <tuple>

#include "engine/codegen/gpu/batch_table.h"
#include "engine/runtime/gpu/cuda_linker.h"
#include "engine/support/clock.h"

namespace fusebox::runtime::gpu {
namespace {

constexpr uintptr_t kAlignment = 16;

GpuKernel::Shape shapeOf(const codegen::gpu::PtxKernel& ptx, const int64_t* sizes) {
  GpuKernel::Shape shape;
  for (const auto& launch : ptx.launches) shape.blocks.push_back(launch.blocks(sizes));
  shape.workBytes = ptx.workBytes ? ptx.workBytes(sizes) : 0;
  return shape;
}

/// What a launch on the stream led to, where the user wants each to be waited for (CUDA_LAUNCH_BLOCKING=1): an error then names the kernel.
int waitFor(const CudaDriver& driver, CudaStream stream) {
  static const bool isWanted = [] {
    const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
    return value && std::string_view(value) == "1";
  }();
  if (!isWanted) [[likely]]
    return 0;
  int capturing = 0;
  const int error = driver.cuStreamGetCaptureInfo(stream, &capturing, nullptr, nullptr, nullptr, nullptr);
  return error || capturing ? error : driver.cuCtxSynchronize();
}

/// Launches, making the device's context the thread's first where it is not.
Result<void> start(CudaFunction function, int device, int64_t blocks, const codegen::gpu::PtxLaunch& how, CudaStream stream, void** arguments) {
  const CudaDriver& d = **CudaDriver::get();
  const auto launch = [&] {
    return d.cuLaunchKernel(function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(how.threads), 1, 1, static_cast<unsigned>(how.sharedBytes), stream,
                            arguments, nullptr);
  };
  constexpr int kInvalidContext = 201;
  int error = launch();
  if (error == kInvalidContext) [[unlikely]]
    if (d.ensureContext(device)) error = launch();
  if (!error) error = waitFor(d, stream);
  if (error) [[unlikely]]
    return d.check(error, fmt::format("cuLaunchKernel of {}, {} blocks of {} threads", how.entry, blocks, how.threads).c_str());
  return {};
}

/// Loads a cubin, or the text through the driver's own compiler, whose complaints become the error.
Result<CudaModule> loadModule(const CudaDriver& driver, const void* image) {
  constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // CU_JIT_ERROR_LOG_BUFFER and its size
  char log[4096] = {};
  int names[] = {kErrorLog, kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  // Loading takes memory, which a thread that captures a CUDA graph may only do when it says that it means it.
  struct Relaxed {
    const CudaDriver& driver;
    int mode = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
    explicit Relaxed(const CudaDriver& d) : driver(d) { driver.cuThreadExchangeStreamCaptureMode(&mode); }
    ~Relaxed() { driver.cuThreadExchangeStreamCaptureMode(&mode); }
  } relaxed(driver);
  CudaModule module = nullptr;
  auto loaded = driver.check(driver.cuModuleLoadDataEx(&module, image, 2, names, values), "cuModuleLoadDataEx");
  if (!loaded) {
    Error error = loaded.error();
    error.context += std::string(" ") + log;
    return tl::unexpected(error);
  }
  return module;
}

}  // namespace

Result<std::shared_ptr<GpuKernel>> GpuKernel::compile(const inductor::Kernel& kernel,
                                                      const codegen::gpu::GpuTarget& target, bool keepsIr,
                                                      const codegen::gpu::LaunchShape& shape) {
  const int64_t start = nowNs();
  std::shared_ptr<GpuKernel> made(new GpuKernel(kernel, target));
  made->launchShape_ = shape;
  if (auto done = made->generate(made->aligned_, true, false, keepsIr); !done) return tl::unexpected(done.error());
  made->compileNs_ = nowNs() - start;
  return made;
}

Result<std::shared_ptr<GpuKernel>> GpuKernel::restore(const inductor::Kernel& kernel, GpuKernelImage image) {
  if (image.canonical != inductor::canonicalText(kernel))
    return fail(ErrorCode::Corrupt, "kept GPU code is another kernel's", kernel.name);
  for (const GpuKernelImage::Form* form : {&image.aligned, image.unaligned ? &*image.unaligned : nullptr, image.wide ? &*image.wide : nullptr}) {
    if (!form) continue;
    const auto& launches = form->ptx.launches;
    const bool isWhole = !launches.empty() && std::all_of(launches.begin(), launches.end(), [](const auto& l) { return bool(l.blocks); });
    if (!isWhole) return fail(ErrorCode::Corrupt, "kept GPU code lacks its launches", kernel.name);
  }
  std::shared_ptr<GpuKernel> made(new GpuKernel(kernel, image.target));
  made->launchShape_ = image.shape;
  made->tuned_ = image.isTuned;
  made->compileNs_ = image.compileNs;
  made->aligned_.ptx = std::move(image.aligned.ptx);
  made->aligned_.cubin = std::move(image.aligned.cubin);
  const auto restored = [](std::optional<GpuKernelImage::Form>& kept) {
    auto form = kept ? std::make_unique<Form>() : nullptr;
    if (form) std::tie(form->ptx, form->cubin) = std::pair(std::move(kept->ptx), std::move(kept->cubin));
    return form;
  };
  made->unaligned_ = restored(image.unaligned);
  made->wide_ = restored(image.wide);
  return made;
}

GpuKernelImage GpuKernel::image() {
  const auto kept = [](const Form& form) {
    GpuKernelImage::Form copy{form.ptx, form.cubin};
    copy.ptx.llvmIr.clear();
    return copy;
  };
  GpuKernelImage made{inductor::canonicalText(kernel_), target_, launchShape_, isTuned(), compileNs_, kept(aligned_), {}, {}};
  std::lock_guard lock(mutex_);
  if (unaligned_) made.unaligned = kept(*unaligned_);
  if (wide_) made.wide = kept(*wide_);
  return made;
}

Result<void> GpuKernel::loadNow(int device) {
  if (auto loaded = loadedOn(aligned_, device); !loaded) return tl::unexpected(loaded.error());
  return {};
}

Result<void> GpuKernel::generate(Form& form, bool aligned, bool isWide, bool keepsIr) {
  auto ptx = codegen::gpu::compilePtx(kernel_, target_, aligned, keepsIr, launchShape_, isWide);
  if (!ptx) return tl::unexpected(ptx.error());
  form.ptx = std::move(*ptx);
  auto linker = CudaLinker::get();
  if (!linker) return {};  // the driver compiles the text when it is loaded
  auto cubin = (*linker)->link(form.ptx.text, target_.capability);
  if (!cubin && cubin.error().code != ErrorCode::Unsupported) return tl::unexpected(cubin.error());
  if (cubin) form.cubin = std::move(*cubin);
  return {};
}

/// The code for such buffers and sizes, made where nobody has asked for it before.
Result<GpuKernel::Form*> GpuKernel::form(bool isAligned, const int64_t* sizes) {
  const auto &least = aligned_.ptx.least, &most = aligned_.ptx.most;
  const bool isUsual = std::equal(most.begin(), most.end(), sizes, std::greater_equal<>()) && std::equal(least.begin(), least.end(), sizes, std::less_equal<>());
  if (isAligned && isUsual) [[likely]] return &aligned_;
  std::lock_guard lock(mutex_);
  std::unique_ptr<Form>& kept = isAligned ? wide_ : unaligned_;
  if (!kept) {
    auto form = std::make_unique<Form>();
    if (auto done = generate(*form, isAligned, true, false); !done) return tl::unexpected(done.error());
    kept = std::move(form);
  }
  return kept.get();
}

Result<GpuKernel::Shape> GpuKernel::shapeFor(const int64_t* sizes) {
  auto code = form(true, sizes);
  if (!code) return tl::unexpected(code.error());
  return shapeOf((*code)->ptx, sizes);
}

Result<GpuKernel::Shape> GpuKernel::unalignedShapeFor(const int64_t* sizes) {
  auto code = form(false, sizes);
  if (!code) return tl::unexpected(code.error());
  return shapeOf((*code)->ptx, sizes);
}

Result<const GpuKernel::Loaded*> GpuKernel::load(Form& form, int device) {
  auto driver = CudaDriver::get();
  if (!driver) return tl::unexpected(driver.error());
  const CudaDriver& d = **driver;
  if (auto ready = d.ensureContext(device); !ready) return tl::unexpected(ready.error());
  std::lock_guard lock(mutex_);
  auto& slot = form.loaded[static_cast<size_t>(device)];
  if (const Loaded* known = slot.load(std::memory_order_acquire)) return known;
  auto module = loadModule(d, form.cubin.empty() ? form.ptx.text.c_str() : form.cubin.data());
  if (!module) return tl::unexpected(module.error());
  auto made = std::make_unique<Loaded>();
  for (const auto& launch : form.ptx.launches) {
    CudaFunction function = nullptr;
    if (auto found = d.check(d.cuModuleGetFunction(&function, *module, launch.entry.c_str()), "cuModuleGetFunction");
        !found)
      return tl::unexpected(found.error());
    constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (launch.sharedBytes > 0)
      if (auto set = d.check(d.cuFuncSetAttribute(function, kMaxDynamicShared, launch.sharedBytes), "cuFuncSetAttribute"); !set)
        return tl::unexpected(set.error());
    made->functions.push_back(function);
  }
  // Modules stay loaded: launches may still be running when the last graph that uses them goes.
  slot.store(made.get(), std::memory_order_release);
  owned_.push_back(std::move(made));
  return slot.load(std::memory_order_relaxed);
}

bool GpuKernel::isAligned(std::span<void* const> pointers) {
  uintptr_t bits = 0;
  for (void* p : pointers) bits |= reinterpret_cast<uintptr_t>(p);
  return bits % kAlignment == 0;
}

Result<void> GpuKernel::launch(int device, CudaStream stream, std::span<void* const> pointers,
                               std::span<const int64_t> sizes, const Shape& shape, void* work) {
  auto code = form(isAligned(pointers), sizes.data());
  if (!code) return tl::unexpected(code.error());
  return launchForm(**code, device, stream, pointers, sizes, shape, work);
}

Result<void> GpuKernel::launchForm(Form& form, int device, CudaStream stream, std::span<void* const> pointers,
                                   std::span<const int64_t> sizes, const Shape& shape, void* work) {
  const auto loaded = loadedOn(form, device);
  if (!loaded) return tl::unexpected(loaded.error());
  constexpr size_t kUsual = 64;
  void* onStack[kUsual];
  std::vector<void*> onHeap;
  void** arguments = onStack;
  if (pointers.size() + sizes.size() + 1 > kUsual) {
    onHeap.resize(pointers.size() + sizes.size() + 1);
    arguments = onHeap.data();
  }
  size_t count = 0;
  for (void* const& p : pointers) arguments[count++] = const_cast<void**>(&p);
  if (form.ptx.workBytes) arguments[count++] = &work;
  for (const int64_t& s : sizes) arguments[count++] = const_cast<int64_t*>(&s);
  for (size_t i = 0; i < (*loaded)->functions.size(); ++i) {
    if (shape.blocks[i] <= 0) continue;
    const auto& launch = form.ptx.launches[i];
    if (auto started = start((*loaded)->functions[i], device, shape.blocks[i], launch, stream, arguments); !started) return started;
  }
  return {};
}

Result<const GpuKernel::Loaded*> GpuKernel::loadedOn(Form& form, int device) {
  if (device < 0 || device >= kMaxDevices) return fail(ErrorCode::InvalidArgument, "no such CUDA device", std::to_string(device));
  if (const Loaded* loaded = form.loaded[static_cast<size_t>(device)].load(std::memory_order_acquire)) return loaded;
  return load(form, device);
}

Result<void> GpuKernel::launchBatch(int device, CudaStream stream, std::span<const BatchEntry> entries) {
  if (entries.empty()) return {};
  const codegen::gpu::BatchTable layout(entries[0].buffers.size(), entries[0].sizes.size());
  const bool isAlignedAll = std::all_of(entries.begin(), entries.end(), [](const BatchEntry& entry) { return isAligned(entry.buffers); });
  auto code = form(isAlignedAll, entries[0].sizes.data());
  if (!code) return tl::unexpected(code.error());
  const auto capacity = static_cast<size_t>(layout.capacity);
  for (size_t at = 0; at < entries.size(); at += capacity)
    if (auto done = launchTable(**code, device, stream, entries.subspan(at, std::min(capacity, entries.size() - at))); !done) return done;
  return {};
}

Result<void> GpuKernel::launchTable(Form& form, int device, CudaStream stream, std::span<const BatchEntry> entries) {
  const auto loaded = loadedOn(form, device);
  if (!loaded) return tl::unexpected(loaded.error());
  const codegen::gpu::BatchTable layout(entries[0].buffers.size(), entries[0].sizes.size());
  std::vector<int64_t> memory((layout.bytes() + 7) / 8);
  auto* firstBlocks = reinterpret_cast<int32_t*>(memory.data());
  int64_t* words = memory.data() + layout.entriesAt() / 8;
  std::fill_n(firstBlocks, layout.capacity, static_cast<int32_t>(codegen::gpu::BatchTable::kUnused));
  int64_t blocks = 0;
  for (size_t e = 0; e < entries.size(); ++e) {
    firstBlocks[e] = static_cast<int32_t>(blocks);
    blocks += form.ptx.launches.front().blocks(entries[e].sizes.data());
    for (void* buffer : entries[e].buffers) *words++ = static_cast<int64_t>(reinterpret_cast<uintptr_t>(buffer));
    for (int64_t size : entries[e].sizes) *words++ = size;
  }
  if (blocks == 0) return {};
  if (blocks > codegen::gpu::BatchTable::kUnused) return fail(ErrorCode::Unsupported, "too many blocks in one batch");
  void* arguments[] = {memory.data()};
  return start((*loaded)->functions.front(), device, blocks, form.ptx.launches.front(), stream, arguments);
}

}  // namespace fusebox::runtime::gpu
