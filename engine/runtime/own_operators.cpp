#include "engine/runtime/own_operators.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>

namespace fusebox::runtime {
namespace {

using at::Tensor;

/// Whether the CPU's products in float32 are allowed to be less.
bool roundsOnCpu(const Tensor& a) {
  return a.is_cpu() && a.scalar_type() == at::kFloat && at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
}

Tensor exactProduct(const Tensor& a, const Tensor& b) {
  if (roundsOnCpu(a)) return at::bmm(a.to(at::kDouble), b.to(at::kDouble)).to(a.scalar_type());
  const at::NoTF32Guard exact;
  return at::bmm(a, b);
}

Tensor& exactProductInto(const Tensor& a, const Tensor& b, Tensor& out) {
  if (roundsOnCpu(a)) return out.copy_(exactProduct(a, b));
  const at::NoTF32Guard exact;
  return at::bmm_out(out, a, b);
}

Tensor low(const Tensor& word) { return word.bitwise_and(int64_t{0xffffffff}); }
Tensor high(const Tensor& word) { return low(word.__rshift__(32)); }

/// Philox4x32-10 in integers of 64 bits, whose products wrap around.
Tensor uniform(const Tensor& seed, int64_t stream, c10::SymIntArrayRef sizes) {
  const auto size = C10_AS_INTARRAYREF_SLOW(sizes);
  const Tensor counter = at::arange(c10::multiply_integers(size), seed.options()).add(stream << 40), block = counter.__rshift__(2);
  Tensor key0 = low(seed), key1 = high(seed);
  std::array<Tensor, 4> c{low(block), high(block), at::zeros_like(block), at::zeros_like(block)};
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key0 = low(key0.add(int64_t{0x9E3779B9}));
      key1 = low(key1.add(int64_t{0xBB67AE85}));
    }
    const Tensor p0 = c[0].mul(int64_t{0xD2511F53}), p1 = c[2].mul(int64_t{0xCD9E8D57});
    c = {high(p1).bitwise_xor(c[1]).bitwise_xor(key0), low(p1), high(p0).bitwise_xor(c[3]).bitwise_xor(key1), low(p0)};
  }
  const Tensor which = counter.bitwise_and(3);
  Tensor word = c[3];
  for (int64_t i = 0; i < 3; ++i) word = at::where(which.eq(i), c[static_cast<size_t>(i)], word);
  return word.__rshift__(8).to(at::kFloat).mul(0x1p-24).view(size);
}

Tensor laidOut(const Tensor& self, c10::SymIntArrayRef strides) {
  return at::empty_strided(self.sizes(), C10_AS_INTARRAYREF_SLOW(strides), self.options()).copy_(self);
}

class Overwritten : public torch::autograd::Function<Overwritten> {
 public:
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& now, const Tensor&) { return now.detach(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, const torch::autograd::variable_list& grads) { return {Tensor(), grads[0]}; }
};

Tensor overwritten(const Tensor& now, const Tensor& before) { return Overwritten::apply(now, before); }

[[maybe_unused]] const bool kAreThere = (registerOwnOperators(), true);  // facts about them are asked before they are called

}  // namespace

void registerOwnOperators() {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::FRAGMENT, "fusebox", std::nullopt, __FILE__, __LINE__);
    made.def("exact_bmm(Tensor self, Tensor mat2) -> Tensor", &exactProduct);
    made.def("exact_bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", &exactProductInto);
    made.def("uniform(Tensor seed, int stream, SymInt[] size) -> Tensor", &uniform);
    made.def("overwritten(Tensor(a) now, Tensor before) -> Tensor(a)", &overwritten);
    made.def("laid_out(Tensor self, SymInt[] stride) -> Tensor", &laidOut);
    return made;
  }();
}

}  // namespace fusebox::runtime
