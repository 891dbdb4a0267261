// Kernels on the GPU against the interpreter of the loop IR. Exit code 77: no GPU (the reason is printed).
// gpu_kernels_run [count of random kernels]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "engine/runtime/gpu/gpu_kernel.h"
#include "engine/support/clock.h"
#include "tests/engine/codegen/gpu_kernels.h"
#include "tests/engine/codegen/interpret.h"
#include "tests/engine/codegen/kernel_writer.h"

using namespace fusebox::codegen::testing;
namespace gpu = fusebox::runtime::gpu;
namespace graph = fusebox::graph;

namespace {

constexpr int kSkipped = 77;

[[noreturn]] void stop(const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::exit(1);
}

const gpu::CudaDriver& driver() { return **gpu::CudaDriver::get(); }

void check(int error, const char* call) {
  if (auto r = driver().check(error, call); !r) stop(r.error().text());
}

/// Device memory for every buffer; `shift` bytes behind the start of an allocation.
class DeviceBuffers {
 public:
  DeviceBuffers(Buffers& host, size_t shift) : host_(host), shift_(shift) {
    for (const KernelBuffer& b : host.kernel.buffers) {
      if (b.role == BufferRole::Scratch) continue;
      const auto bytes = static_cast<size_t>(host.numel(b.id) * graph::elementSize(b.dtype)) + kGuard;
      gpu::CudaAddress address = 0;
      check(driver().cuMemAlloc(&address, bytes + shift), "cuMemAlloc");
      check(driver().cuMemcpyHtoD(address + shift, host.at<char>(b.id), bytes), "cuMemcpyHtoD");
      addresses_.push_back(address);
      sizes_.push_back(bytes);
      ids_.push_back(b.id);
    }
  }
  ~DeviceBuffers() {
    for (gpu::CudaAddress a : addresses_) driver().cuMemFree(a);
  }
  std::vector<void*> pointers() const {
    std::vector<void*> list;
    for (gpu::CudaAddress a : addresses_) list.push_back(reinterpret_cast<void*>(a + shift_));
    return list;
  }
  /// Copies everything back, guard bytes too.
  void fetch() {
    for (size_t i = 0; i < addresses_.size(); ++i)
      check(driver().cuMemcpyDtoH(host_.at<char>(ids_[i]), addresses_[i] + shift_, sizes_[i]), "cuMemcpyDtoH");
  }

 private:
  static constexpr size_t kGuard = 256;  // bytes behind each buffer that must stay as they are (Buffers::guardsIntact)
  Buffers& host_;
  size_t shift_;
  std::vector<gpu::CudaAddress> addresses_;
  std::vector<size_t> sizes_;
  std::vector<BufferId> ids_;
};

std::string launch(gpu::GpuKernel& kernel, Buffers& buffers, const std::vector<int64_t>& sizes, size_t shift) {
  DeviceBuffers device(buffers, shift);
  const std::vector<void*> pointers = device.pointers();
  auto shape = kernel.shapeFor(sizes.data());
  if (!gpu::GpuKernel::isAligned(pointers)) {
    auto other = kernel.unalignedShapeFor(sizes.data());
    if (!other) return other.error().text();
    shape = *other;
  }
  gpu::CudaAddress work = 0;
  if (shape.workBytes > 0) check(driver().cuMemAlloc(&work, static_cast<size_t>(shape.workBytes)), "cuMemAlloc");
  auto launched = kernel.launch(0, nullptr, pointers, sizes, shape, reinterpret_cast<void*>(work));
  if (!launched) return launched.error().text();
  check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
  device.fetch();
  if (work) driver().cuMemFree(work);
  return {};
}

std::string run(const NamedKernel& k, const fusebox::codegen::gpu::GpuTarget& target, unsigned seed) {
  auto compiled = gpu::GpuKernel::compile(k.kernel, target, false);
  if (!compiled) return compiled.error().text();
  Buffers start(k.kernel, k.sizes);
  std::mt19937 random(seed);
  start.fill(random, k.limit);
  Buffers expected = start;
  interpret(k.kernel, expected.pointers(), k.sizes);
  for (size_t shift : {0, 8}) {
    Buffers actual = start;
    if (std::string problem = launch(**compiled, actual, k.sizes, shift); !problem.empty()) return problem;
    if (std::string d = difference(actual, expected, k.scale); !d.empty())
      return fmt::format("{}{}\n{}\n{}", shift ? "unaligned: " : "", d, k.kernel.str(), (*compiled)->code().text.substr(0, 3000));
  }
  return {};
}

/// Angles for which reduction needs many bits of 2/pi, and fmod with distant exponents, in both precisions.
NamedKernel farArguments(Op op, DType type) {
  KernelBuilder b(std::string("far_") + std::string(name(op)));
  const int n = 4096;
  const auto x = b.input(DType::Int64, n), z = b.output(type, n);
  const SymExpr i = b.outer(n);
  b.section();
  // 2^(0..120) scaled numbers from random integers.
  const ValueId raw = b.op(Op::Cast, type, b.load(x, i));
  const ValueId power = b.op(Op::Exp2, type, b.op(Op::Mul, type, b.op(Op::Cast, type, b.index(i)), b.constant(type, 120.0 / n)));
  const ValueId argument = b.op(Op::Mul, type, b.op(Op::Floor, type, power), b.op(Op::Add, type, raw, b.constant(type, 1)));
  b.store(z, i, op == Op::Fmod ? b.op(op, type, argument, b.constant(type, 0.7)) : b.op(op, type, argument));
  return {b.kernel.name + "_" + std::string(graph::name(type)), b.kernel, {}, 10, 1000};
}

}  // namespace

int main(int argc, char** argv) {
  if (auto d = gpu::CudaDriver::get(); !d) {
    std::printf("skipped: %s\n", d.error().text().c_str());
    return kSkipped;
  }
  int devices = 0;
  check(driver().cuDeviceGetCount(&devices), "cuDeviceGetCount");
  if (devices == 0) {
    std::printf("skipped: no CUDA device\n");
    return kSkipped;
  }
  int device = 0;
  gpu::CudaContext context = nullptr;
  check(driver().cuDeviceGet(&device, 0), "cuDeviceGet");
  check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  auto facts = gpu::deviceFacts(0);
  if (!facts) stop(facts.error().text());
  const fusebox::codegen::gpu::GpuTarget target{facts->capability, facts->multiprocessors};
  std::vector<NamedKernel> kernels = gpuKernels();
  for (Op op : {Op::Sin, Op::Cos, Op::Tan, Op::Fmod})
    for (DType type : {DType::Float32, DType::Float64}) kernels.push_back(farArguments(op, type));
  const unsigned randomKernels = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 60;
  for (unsigned seed = 0; seed < randomKernels; ++seed) kernels.push_back({fmt::format("random_{}", seed), Writer(seed).write(), {}});
  int wrong = 0;
  const int64_t start = fusebox::nowNs();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string problem = run(kernels[i], target, static_cast<unsigned>(i) + 1);
    if (problem.empty()) continue;
    std::printf("%s: %s\n", kernels[i].name.c_str(), problem.c_str());
    if (++wrong >= 5) break;
  }
  std::printf("%zu kernels on compute capability %d in %.1f s: %d wrong\n", kernels.size(), facts->capability,
              static_cast<double>(fusebox::nowNs() - start) * 1e-9, wrong);
  return wrong ? 1 : 0;
}
