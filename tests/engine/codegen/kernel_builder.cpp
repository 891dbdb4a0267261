#include "tests/engine/codegen/kernel_builder.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/engine/codegen/interpret.h"

namespace fusebox::codegen::testing {

namespace {
constexpr size_t kGuard = 256;
constexpr char kGuardByte = 0x5a;
}  // namespace

BufferId KernelBuilder::buffer(BufferRole role, DType type, SymExpr numel) {
  KernelBuffer b;
  b.id = static_cast<BufferId>(kernel.buffers.size());
  b.name = fmt::format("buf{}", b.id);
  b.dtype = type;
  b.role = role;
  b.numel = numel;
  b.alignment = graph::elementSize(type);
  kernel.buffers.push_back(b);
  return b.id;
}

Symbol KernelBuilder::size(int64_t lower, int64_t upper) {
  kernel.sizeSymbols.push_back(Symbol::make(fmt::format("s{}", kernel.sizeSymbols.size()), lower, upper));
  return kernel.sizeSymbols.back();
}

SymExpr KernelBuilder::outer(SymExpr extent) {
  const Symbol s = Symbol::make(fmt::format("i{}", kernel.outer.size()), 0, extent.bounds().second - 1);
  kernel.outer.push_back({s, extent});
  return s;
}

void KernelBuilder::section(bool isReduction) {
  kernel.sections.emplace_back();
  current().isReduction = isReduction;
}

SymExpr KernelBuilder::axis(SymExpr extent) {
  const Symbol s = Symbol::make(fmt::format("r{}", current().axes.size()), 0, extent.bounds().second - 1);
  current().axes.push_back({s, extent});
  return s;
}

ValueId KernelBuilder::add(Value v) {
  current().values.push_back(std::move(v));
  return static_cast<ValueId>(current().values.size()) - 1;
}

ValueId KernelBuilder::constant(DType type, double v) {
  Value c;
  c.op = Op::Constant;
  c.type = type;
  c.imm = graph::isFloatingPoint(type) ? std::bit_cast<int64_t>(v) : static_cast<int64_t>(v);
  return add(c);
}

ValueId KernelBuilder::index(SymExpr e) {
  Value v;
  v.op = Op::Index;
  v.type = DType::Int64;
  v.index = e;
  return add(v);
}

ValueId KernelBuilder::load(BufferId b, SymExpr index, ValueId mask, double otherwise) {
  Value v;
  v.op = Op::Load;
  v.buffer = b;
  v.type = kernel.buffers[static_cast<size_t>(b)].dtype;
  v.index = index;
  v.mask = mask;
  v.imm = graph::isFloatingPoint(v.type) ? std::bit_cast<int64_t>(otherwise) : static_cast<int64_t>(otherwise);
  return add(v);
}

ValueId KernelBuilder::op(Op op, DType type, ValueId a, ValueId b, ValueId c) {
  Value v;
  v.op = op;
  v.type = type;
  v.args = {a, b, c};
  return add(v);
}

ValueId KernelBuilder::scan(ReduceKind kind, int result, DType type, ValueId a) {
  const ValueId made = op(Op::Scan, type, a);
  current().values.back().imm = scanImm(kind, result);
  return made;
}

ValueId KernelBuilder::reduced(int reduction, DType type, int number) {
  Value v;
  v.op = Op::Reduced;
  v.type = type;
  v.args = {reduction, -1, -1};
  v.imm = number;
  return add(v);
}

SymExpr KernelBuilder::indirect(ValueId value, int64_t lower, int64_t upper) {
  const Symbol s = Symbol::make(fmt::format("v{}", value), lower, upper);
  current().indirect[s] = value;
  return s;
}

void KernelBuilder::store(BufferId b, SymExpr index, ValueId value, ValueId mask) {
  Statement s;
  s.buffer = b;
  s.index = index;
  s.value = value;
  s.mask = mask;
  current().body.push_back(s);
}

void KernelBuilder::atomicAdd(BufferId b, SymExpr index, ValueId value, ValueId mask) {
  store(b, index, value, mask);
  current().body.back().kind = Statement::Kind::AtomicAdd;
}

void KernelBuilder::accumulate(ReduceKind kind, BufferId b, SymExpr index, ValueId value) {
  store(b, index, value, -1);
  current().body.back().kind = Statement::Kind::Accumulate;
  current().body.back().reduce = kind;
}

int KernelBuilder::reduce(ReduceKind kind, ValueId a, ValueId b, ValueId c) {
  Statement s;
  s.kind = Statement::Kind::Reduce;
  s.reduce = kind;
  s.reduction = reductions_++;
  s.inputs = {a, b, c};
  current().body.push_back(s);
  return s.reduction;
}

Buffers::Buffers(const Kernel& k, const std::vector<int64_t>& sizes) : kernel(k) {
  for (const KernelBuffer& b : k.buffers) {
    if (slot_.size() <= static_cast<size_t>(b.id)) slot_.resize(static_cast<size_t>(b.id) + 1);
    if (b.role == BufferRole::Scratch) continue;
    slot_[static_cast<size_t>(b.id)] = storage_.size();
    const int64_t n = b.numel.evaluate([&](Symbol s) -> std::optional<int64_t> {
      for (size_t i = 0; i < k.sizeSymbols.size(); ++i)
        if (k.sizeSymbols[i] == s) return sizes[i];
      return std::nullopt;
    }).value();
    numel_.push_back(n);
    storage_.emplace_back(static_cast<size_t>(n * graph::elementSize(b.dtype)) + kGuard, kGuardByte);
  }
}

std::vector<void*> Buffers::pointers() {
  std::vector<void*> p;
  for (auto& s : storage_) p.push_back(s.data());
  return p;
}

void Buffers::fill(std::mt19937& random, int64_t limit) {
  std::normal_distribution<double> normal(0, 1.5);
  for (const KernelBuffer& b : kernel.buffers) {
    if (b.role == BufferRole::Scratch) continue;
    const size_t s = slot_[static_cast<size_t>(b.id)];
    for (int64_t i = 0; i < numel_[s]; ++i) {
      Number v;
      v.real = normal(random);
      v.integer = b.dtype == DType::Bool ? static_cast<int64_t>(random() & 1) : static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
      storeNumber(storage_[s].data() + i * graph::elementSize(b.dtype), b.dtype, rounded(v, b.dtype));
    }
  }
}

bool Buffers::guardsIntact() const {
  for (const auto& s : storage_)
    for (size_t i = s.size() - kGuard; i < s.size(); ++i)
      if (s[i] != kGuardByte) return false;
  return true;
}

int32_t launch(const cpu::CompiledKernel& kernel, Buffers& buffers, const std::vector<int64_t>& sizes, int pieces) {
  std::vector<void*> pointers = buffers.pointers();
  std::vector<char> scratch;
  if (kernel.scratchBytes) {
    scratch.assign(static_cast<size_t>(kernel.scratchBytes(sizes.data())) + 64, 0x33);
    pointers.push_back(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
  }
  int32_t fault = 0;
  if (kernel.checks) pointers.push_back(&fault);
  std::vector<int64_t> ends = kernel.phaseEnds ? kernel.phaseEnds(sizes.data()) : std::vector{kernel.units(sizes.data())};
  const cpu::KernelFunction run = kernel.function.load();
  int64_t begin = 0;
  for (int64_t end : ends) {
    for (int p = pieces; p-- > 0;)
      run(pointers.data(), sizes.data(), begin + (end - begin) * p / pieces, begin + (end - begin) * (p + 1) / pieces);
    begin = end;
  }
  return fault;
}

Tolerance toleranceOf(DType type) {
  switch (type) {
    case DType::Float64: return {1e-13, 1e-14};
    case DType::Float32: return {1e-5, 1e-6};
    case DType::BFloat16: return {1.0 / 64, 1e-2};
    case DType::Float16: return {1.0 / 512, 1e-3};
    default: return {0, 0};
  }
}

std::string difference(Buffers& actual, Buffers& expected, double scale) {
  if (!actual.guardsIntact()) return "wrote behind the end of a buffer";
  for (const KernelBuffer& b : actual.kernel.buffers) {
    if (b.role == BufferRole::Scratch) continue;
    const Tolerance t = toleranceOf(b.dtype);
    for (int64_t i = 0; i < actual.numel(b.id); ++i) {
      const auto offset = i * graph::elementSize(b.dtype);
      const Number x = loadNumber(actual.at<char>(b.id) + offset, b.dtype);
      const Number y = loadNumber(expected.at<char>(b.id) + offset, b.dtype);
      bool same = x.integer == y.integer;
      if (graph::isFloatingPoint(b.dtype))
        same = x.real == y.real || (std::isnan(x.real) && std::isnan(y.real)) ||
               std::fabs(x.real - y.real) <= static_cast<long double>(scale) * (t.absolute + t.relative * std::fabs(y.real));
      if (!same) {
        char text[200];
        std::snprintf(text, sizeof text, "%s[%lld]: %.9Lg (%lld), expected %.9Lg (%lld)", b.name.c_str(), static_cast<long long>(i),
                      x.real, static_cast<long long>(x.integer), y.real, static_cast<long long>(y.integer));
        return text;
      }
    }
  }
  return {};
}

const std::vector<std::string>& testTargets() {
  static const std::vector<std::string> targets = [] {
    std::vector<std::string> list{"baseline"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list.push_back("avx2");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) list.push_back("avx512");
    return list;
  }();
  return targets;
}

std::shared_ptr<cpu::Jit> jitFor(const std::string& target, bool background, int firstTier) {
  static std::map<std::string, std::shared_ptr<cpu::Jit>> jits;
  auto& slot = jits[target + (background ? "+" : "-") + std::to_string(firstTier)];
  if (!slot) {
    auto features = cpu::TargetFeatures::named(target);
    if (!features) throw std::runtime_error(features.error().text());
    auto jit = cpu::Jit::create({*features, background, firstTier});
    if (!jit) throw std::runtime_error(jit.error().text());
    slot = *jit;
  }
  return slot;
}

std::string check(const Kernel& kernel, const std::vector<int64_t>& sizes, unsigned seed, double scale, int64_t limit) {
  Buffers start(kernel, sizes);
  std::mt19937 random(seed);
  start.fill(random, limit);
  Buffers expected = start;
  interpret(kernel, expected.pointers(), sizes);
  for (const std::string& target : testTargets())
    for (int tier : {0, 1}) {
      auto compiled = jitFor(target, false, tier)->compile(kernel);
      const std::string where = target + " tier " + std::to_string(tier) + ": ";
      if (!compiled) return where + compiled.error().text() + "\n" + kernel.str();
      Buffers actual = start;
      launch(**compiled, actual, sizes);
      if (std::string d = difference(actual, expected, scale); !d.empty()) return where + d + "\n" + kernel.str();
    }
  return {};
}

}  // namespace fusebox::codegen::testing
