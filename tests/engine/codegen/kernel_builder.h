#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/codegen/cpu/jit.h"
#include "engine/inductor/ir/loop_ir.h"

/// Short ways to write kernels down, to fill their buffers and to compare two runs.
namespace fusebox::codegen::testing {

using namespace inductor;

class KernelBuilder {
 public:
  explicit KernelBuilder(std::string name) { kernel.name = std::move(name); }
  Kernel kernel;

  BufferId buffer(BufferRole role, DType type, SymExpr numel);
  BufferId input(DType type, SymExpr numel) { return buffer(BufferRole::Input, type, numel); }
  BufferId output(DType type, SymExpr numel) { return buffer(BufferRole::Output, type, numel); }
  Symbol size(int64_t lower = 2, int64_t upper = 1 << 24);
  SymExpr outer(SymExpr extent);
  /// Starts a section; the following calls belong to it.
  void section(bool isReduction = false);
  SymExpr axis(SymExpr extent);

  ValueId constant(DType type, double v);
  ValueId index(SymExpr e);
  ValueId load(BufferId b, SymExpr index, ValueId mask = -1, double otherwise = 0);
  ValueId op(Op op, DType type, ValueId a, ValueId b = -1, ValueId c = -1);
  ValueId scan(ReduceKind kind, int result, DType type, ValueId a);
  ValueId reduced(int reduction, DType type, int number = 0);
  SymExpr indirect(ValueId value, int64_t lower, int64_t upper);
  void store(BufferId b, SymExpr index, ValueId value, ValueId mask = -1);
  void atomicAdd(BufferId b, SymExpr index, ValueId value, ValueId mask = -1);
  void accumulate(ReduceKind kind, BufferId b, SymExpr index, ValueId value);
  int reduce(ReduceKind kind, ValueId a, ValueId b = -1, ValueId c = -1);

 private:
  Section& current() { return kernel.sections.back(); }
  ValueId add(Value v);
  int reductions_ = 0;
};

/// Memory for a kernel's buffers, with guard bytes behind each that must stay as they are.
class Buffers {
 public:
  Buffers(const Kernel& kernel, const std::vector<int64_t>& sizes);
  Buffers(const Buffers&) = default;
  std::vector<void*> pointers();
  template <class T>
  T* at(BufferId id) { return reinterpret_cast<T*>(storage_[slot_[static_cast<size_t>(id)]].data()); }
  int64_t numel(BufferId id) const { return numel_[slot_[static_cast<size_t>(id)]]; }
  /// Numbers around zero (integers: small ones; `limit` bounds them) in every buffer.
  void fill(std::mt19937& random, int64_t limit = 100);
  bool guardsIntact() const;

  const Kernel& kernel;

 private:
  std::vector<std::vector<char>> storage_;
  std::vector<int64_t> numel_;
  std::vector<size_t> slot_;  ///< by buffer id
};

/// Runs a compiled kernel as the run time does: phases one after another, units in `pieces` calls, in reverse order to show
/// that units are independent.
int32_t launch(const cpu::CompiledKernel& kernel, Buffers& buffers, const std::vector<int64_t>& sizes, int pieces = 3);

struct Tolerance {
  double relative = 0, absolute = 0;
};
Tolerance toleranceOf(DType type);
/// Empty if every output agrees; else where and how it differs.
std::string difference(Buffers& actual, Buffers& expected, double scale = 1);

/// The JITs under test, one a target, made once: "avx512", "avx2", "baseline" where this machine can run them.
const std::vector<std::string>& testTargets();
std::shared_ptr<cpu::Jit> jitFor(const std::string& target, bool background = false, int firstTier = 0);

/// Compiles, runs and compares with the interpreter on every target and in both tiers. Empty if all agree.
std::string check(const Kernel& kernel, const std::vector<int64_t>& sizes, unsigned seed, double scale = 1, int64_t limit = 100);

}  // namespace fusebox::codegen::testing
