// Kernels on the GPU against the interpreter of the loop IR. Exit code 77: no GPU (the reason is printed).
// gpu_kernels_run [count of random kernels]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/codegen/gpu/ptx.h"
#include "engine/codegen/gpu/launch_shape.h"
#include "engine/runtime/gpu/cuda_linker.h"
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
  auto made = gpu::GpuKernel::isAligned(pointers) ? kernel.shapeFor(sizes.data()) : kernel.unalignedShapeFor(sizes.data());
  if (!made) return made.error().text();
  const gpu::GpuKernel::Shape& shape = *made;
  gpu::CudaAddress work = 0;
  if (shape.workBytes > 0) check(driver().cuMemAlloc(&work, static_cast<size_t>(shape.workBytes)), "cuMemAlloc");
  auto launched = kernel.launch(0, nullptr, pointers, sizes, shape, reinterpret_cast<void*>(work));
  if (!launched) return launched.error().text();
  check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
  device.fetch();
  if (work) driver().cuMemFree(work);
  return {};
}

/// Philox4x32-10 as its paper has it, by 32-bit words.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
  }
  return c;
}

/// What the random kernels of gpu_kernels.cpp store: value i has counter i.
void expectRandom(const NamedKernel& k, Buffers& buffers) {
  const Op op = k.kernel.sections[0].values.back().op;
  const BufferId out = k.kernel.buffers[1].id;
  const auto seed = static_cast<uint64_t>(*buffers.at<int64_t>(k.kernel.buffers[0].id));
  const int each = op == Op::RandUniform ? 4 : 2;  // numbers that a block of four words gives
  for (int64_t i = 0; i < buffers.numel(out); ++i) {
    auto r = philox(seed, static_cast<uint64_t>(i / each));
    std::rotate(r.begin(), r.begin() + i % each * (4 / each), r.end());
    const double u0 = (r[0] >> 8) * 0x1p-24, u1 = (r[1] >> 8) * 0x1p-24;
    if (op == Op::RandInt64)
      buffers.at<int64_t>(out)[i] = static_cast<int64_t>(uint64_t{r[1]} << 32 | r[0]);
    else
      buffers.at<float>(out)[i] =
          static_cast<float>(op == Op::RandUniform ? u0 : std::sqrt(-2 * std::log1p(-u0)) * std::cos(2 * M_PI * u1));
  }
}

bool isRandom(const Kernel& k) {
  return std::any_of(k.sections[0].values.begin(), k.sections[0].values.end(),
                     [](const Value& v) { return v.op >= Op::RandUniform && v.op <= Op::RandInt64; });
}

std::string run(const NamedKernel& k, const fusebox::codegen::gpu::GpuTarget& target, unsigned seed) {
  auto compiled = gpu::GpuKernel::compile(k.kernel, target, false);
  if (!compiled) return compiled.error().text();
  Buffers start(k.kernel, k.sizes);
  std::mt19937 random(seed);
  start.fill(random, k.limit);
  Buffers expected = start;
  if (isRandom(k.kernel))
    expectRandom(k, expected);
  else
    interpret(k.kernel, expected.pointers(), k.sizes);
  for (size_t shift : {0, 8}) {
    Buffers actual = start;
    if (std::string problem = launch(**compiled, actual, k.sizes, shift); !problem.empty()) return problem;
    if (std::string d = difference(actual, expected, k.scale); !d.empty())
      return fmt::format("{}{}\n{}\n{}", shift ? "unaligned: " : "", d, k.kernel.str(),
                         (*compiled)->code().text.substr(0, 1000));
  }
  if (!k.tryShapes) return {};
  for (const auto& shape : fusebox::codegen::gpu::candidateShapes(k.kernel, target)) {
    auto shaped = gpu::GpuKernel::compile(k.kernel, target, false, shape);
    if (!shaped) return shape.str() + ": " + shaped.error().text();
    Buffers actual = start;
    if (std::string problem = launch(**shaped, actual, k.sizes, 0); !problem.empty()) return shape.str() + ": " + problem;
    if (std::string d = difference(actual, expected, k.scale); !d.empty()) return fmt::format("{}: {}\n{}", shape.str(), d, k.kernel.str());
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
  // Small integers times exact powers of two up to 2^120.
  const ValueId raw = b.op(Op::Cast, type, b.load(x, i));
  const ValueId exponent =
      b.op(Op::Floor, type, b.op(Op::Mul, type, b.op(Op::Cast, type, b.index(i)), b.constant(type, 120.0 / n)));
  const ValueId argument =
      b.op(Op::Mul, type, b.op(Op::Exp2, type, exponent), b.op(Op::Add, type, raw, b.constant(type, 1)));
  b.store(z, i, op == Op::Fmod ? b.op(op, type, argument, b.constant(type, 0.7)) : b.op(op, type, argument));
  return {b.kernel.name + "_" + std::string(graph::name(type)), b.kernel, {}, 10, 1000};
}

/// Largest error of an operation on floats over random bit patterns, in units of the last place of the double result rounded once.
struct Accuracy {
  Op op;
  double (*exact)(double);
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double log10Of(double x) { return std::log10(x); }
const Accuracy kAccuracy[] = {
    {Op::Exp, std::exp},     {Op::Exp2, std::exp2},   {Op::Expm1, std::expm1}, {Op::Log, std::log},     {Op::Log2, std::log2},
    {Op::Log10, log10Of},    {Op::Log1p, std::log1p}, {Op::Sin, std::sin},     {Op::Cos, std::cos},     {Op::Tan, std::tan},
    {Op::Asin, std::asin},   {Op::Acos, std::acos},   {Op::Atan, std::atan},   {Op::Sinh, std::sinh},   {Op::Cosh, std::cosh},
    {Op::Tanh, std::tanh},   {Op::Asinh, std::asinh}, {Op::Acosh, std::acosh}, {Op::Atanh, std::atanh}, {Op::Erf, std::erf},
    {Op::Sigmoid, sigmoid},
};

std::string checkAccuracy(const Accuracy& a, const fusebox::codegen::gpu::GpuTarget& target, double& worst) {
  constexpr int64_t kCount = 1 << 20;
  KernelBuilder b("accuracy_" + std::string(name(a.op)));
  const auto x = b.input(DType::Float32, kCount), z = b.output(DType::Float32, kCount);
  const SymExpr i = b.outer(kCount);
  b.section();
  b.store(z, i, b.op(a.op, DType::Float32, b.load(x, i)));
  auto compiled = gpu::GpuKernel::compile(b.kernel, target, false);
  if (!compiled) return compiled.error().text();
  Buffers data(b.kernel, {});
  std::mt19937 random(7);
  for (int64_t k = 0; k < kCount; ++k) {  // half of them anywhere, half near 1
    const auto bits = static_cast<uint32_t>(random());
    data.at<float>(x)[k] = k % 2 ? std::bit_cast<float>(bits) : std::ldexp(static_cast<float>(bits % 65536) / 32768.0f - 1.0f, static_cast<int>(bits >> 28) - 8);
  }
  if (std::string problem = launch(**compiled, data, {}, 0); !problem.empty()) return problem;
  const double bound = fusebox::codegen::gpu::deviceUlp(a.op, DType::Float32);
  worst = 0;
  for (int64_t k = 0; k < kCount; ++k) {
    const float in = data.at<float>(x)[k], got = data.at<float>(z)[k];
    const double exact = a.exact(in);
    const auto nearest = static_cast<float>(exact);
    if (std::isnan(nearest) || std::isinf(nearest) || std::isnan(got) || std::isinf(got)) {
      const bool same = (std::isnan(nearest) && std::isnan(got)) || nearest == got || (std::fabs(exact) > 3.40282e38 && std::fabs(got) > 3.40282e38f);
      if (!same) return fmt::format("{}({:a}) is {}, expected {}", name(a.op), in, got, nearest);
      continue;
    }
    const double unit = std::max(0x1p-149, std::ldexp(1.0, std::ilogb(std::max(std::fabs(exact), 0x1p-126)) - 23));
    double error = std::fabs(got - exact) / unit;
    if (a.op == Op::Sigmoid && std::fabs(exact) < 0x1p-125) error = std::fabs(got - exact) > 0x1p-126 ? 1e9 : 0;
    worst = std::max(worst, error);
    if (error > bound + 0.5) return fmt::format("{}({:a}) is {:a}, expected {:a}: {:.2f} ulp, at most {} stated", name(a.op), in, got, exact, error, bound);
  }
  return {};
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
  for (NamedKernel& kernel : kernels) kernel.tryShapes = true;
  for (Op op : {Op::Sin, Op::Cos, Op::Tan, Op::Fmod})
    for (DType type : {DType::Float32, DType::Float64}) kernels.push_back(farArguments(op, type));
  const unsigned randomKernels = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 60;
  for (unsigned seed = 0; seed < randomKernels; ++seed)
    kernels.push_back({fmt::format("random_{}", seed), Writer(seed).write(), {}});
  int wrong = 0;
  const int64_t start = fusebox::nowNs();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string problem = run(kernels[i], target, static_cast<unsigned>(i) + 1);
    if (problem.empty()) continue;
    std::printf("%s: %s\n", kernels[i].name.c_str(), problem.c_str());
    if (++wrong >= 5) break;
  }
  for (const Accuracy& a : kAccuracy) {
    double worst = 0;
    const std::string problem = checkAccuracy(a, target, worst);
    std::printf("%s%s %.2f ulp", problem.empty() ? "" : ("\n" + problem + "\n").c_str(), std::string(name(a.op)).c_str(), worst);
    std::printf(a.op == Op::Sigmoid ? "\n" : ", ");
    wrong += !problem.empty();
  }
  auto linker = gpu::CudaLinker::get();
  std::printf("machine code by %s\n", linker ? "nvJitLink" : ("the driver: " + linker.error().text()).c_str());
  std::printf("%zu kernels on compute capability %d in %.1f s: %d wrong\n", kernels.size(), facts->capability,
              static_cast<double>(fusebox::nowNs() - start) * 1e-9, wrong);
  return wrong ? 1 : 0;
}
