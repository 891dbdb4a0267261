#include "engine/trace/symbolic_front.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "engine/trace/convert.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using c10::SymInt;
using torch::jit::Stack;
using Sizes = c10::SymDimVector;

/// Whether the larger operand can be taken for one matrix, as at::matmul decides.
bool shouldFold(const at::Tensor& a, const at::Tensor& b) {
  const bool aIsLarger = a.dim() >= b.dim();
  const at::Tensor large = aIsLarger ? a : b.mT();
  const at::Tensor& small = aIsLarger ? b : a;
  if (!(large.dim() >= 3 && small.dim() <= 2)) return false;
  if (small.requires_grad()) return true;
  if (a.dim() == 2) return false;
  const auto sizes = large.sym_sizes(), strides = large.sym_strides();
  for (int64_t d = 0; d < large.dim() - 2; ++d)
    if (strides[d] != strides[d + 1] * sizes[d + 1]) return false;
  return true;
}

at::Tensor folded(const at::Tensor& a, const at::Tensor& b) {
  const bool transpose = b.dim() > a.dim();
  const at::Tensor large = transpose ? b.mT() : a, small = !transpose ? b : a.dim() == 2 ? a.t() : a;
  const auto sizes = large.sym_sizes();
  Sizes shape(sizes.begin(), sizes.end() - 1);
  SymInt rows = 1;
  for (auto& s : shape) rows = rows * s;
  const bool isMatrix = small.dim() == 2;
  if (isMatrix) shape.push_back(small.sym_size(1));
  const at::Tensor flat = large.reshape_symint({rows, sizes.back()});
  const at::Tensor made = at::_unsafe_view_symint(isMatrix ? flat.mm(small) : flat.mv(small), shape);
  return transpose && isMatrix ? made.mT().contiguous() : made;
}

at::Tensor matrixProduct(const at::Tensor& a, const at::Tensor& b);

at::Tensor batched(const at::Tensor& a, const at::Tensor& b) {
  const auto left = a.sym_sizes(), right = b.sym_sizes();
  if (a.dim() == 3 && b.dim() == 3 && left[0] != right[0]) {
    if (left[0] == 1 && a.requires_grad()) return matrixProduct(a.squeeze(0), b);
    if (right[0] == 1 && b.requires_grad()) return matrixProduct(a, b.squeeze(0));
  }
  const SymInt n = a.dim() > 1 ? left[left.size() - 2] : SymInt(1), m = left.back();
  const SymInt m2 = b.dim() > 1 ? right[right.size() - 2] : right.front(), p = b.dim() > 1 ? right.back() : SymInt(1);
  Sizes shape = at::infer_size_symdimvector(left.slice(0, static_cast<size_t>(std::max<int64_t>(a.dim() - 2, 0))),
                                            right.slice(0, static_cast<size_t>(std::max<int64_t>(b.dim() - 2, 0))));
  SymInt batch = 1;
  for (auto& s : shape) batch = batch * s;
  Sizes wide(shape), tall(shape);
  wide.append({n, m});
  const at::Tensor x = a.expand_symint(wide).reshape_symint({batch, n, m});
  const bool vector = b.dim() == 1;
  tall.push_back(m2);
  if (!vector) tall.push_back(p);
  at::Tensor y = b.expand_symint(tall);
  y = vector ? y.reshape_symint({batch, m2}).unsqueeze(2) : y.reshape_symint({batch, m2, p});
  if (a.dim() > 1) shape.push_back(n);
  if (b.dim() > 1) shape.push_back(p);
  const at::Tensor product = x.bmm(y);
  return at::_unsafe_view_symint(vector ? product.squeeze(-1) : product, shape);
}

at::Tensor matrixProduct(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() != 0 && b.dim() != 0, "both arguments to matmul need to be at least 1D, but they are ", a.dim(), "D and ", b.dim(), "D");
  if (a.dim() == 1 && b.dim() == 1) return a.dot(b);
  if (a.dim() == 2 && b.dim() == 1) return a.mv(b);
  if (a.dim() == 1 && b.dim() == 2) return a.unsqueeze(0).mm(b).squeeze_(0);
  if (a.dim() == 2 && b.dim() == 2) return a.mm(b);
  return shouldFold(a, b) ? folded(a, b) : batched(a, b);
}

bool isPlain(const at::Tensor& t) { return asTraceThroughWrapper(belowLevels(t)) != nullptr; }

bool rewriteMatmul(Stack* stack, size_t) {
  const at::Tensor a = (*stack)[stack->size() - 2].toTensor(), b = stack->back().toTensor();
  if (!isPlain(a) || !isPlain(b) || !(hasSymbolicSizes(a) || hasSymbolicSizes(b))) return false;
  torch::jit::drop(*stack, 2);
  stack->push_back(matrixProduct(a, b));
  return true;
}

/// upsample_*.vec(input, output_size?, [align_corners,] scale_factors?): the sizes are computed here, the operator that takes them does the rest.
bool rewriteUpsample(const OperatorFacts& facts, Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  const at::Tensor input = args[0].toTensor();
  const bool symbolic = isPlain(input) && (hasSymbolicSizes(input) || isSymbolic(args[1]));
  if (!symbolic) return false;
  const IValue& scales = args[arity - 1];
  const auto spatial = static_cast<size_t>(input.dim()) - 2;
  std::vector<SymInt> sizes;
  if (!args[1].isNone()) {
    for (const IValue& s : args[1].toListRef()) sizes.push_back(s.isInt() ? SymInt(s.toInt()) : s.toSymInt());
  } else {
    if (scales.isNone()) return false;
    const auto factors = scales.toDoubleVector();
    for (size_t i = 0; i < spatial && i < factors.size(); ++i) {
      const SymInt own = input.sym_size(static_cast<int64_t>(i) + 2);
      if (!own.is_symbolic()) {
        sizes.emplace_back(static_cast<int64_t>(static_cast<double>(own.expect_int()) * factors[i]));
        continue;
      }
      const c10::SymNode node = own.toSymNode();
      sizes.emplace_back(node->mul(node->wrap_float(factors[i]))->floor());
    }
  }
  if (sizes.size() != spatial) return false;
  std::string name = facts.name.substr(0, facts.name.find('.'));
  auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!op) return false;
  Stack inner{input, IValue(c10::SymIntArrayRef(sizes))};
  for (size_t i = 2; i + 1 < arity; ++i) inner.push_back(args[i]);
  const bool given = !scales.isNone();
  for (size_t i = 0; i < spatial; ++i) inner.push_back(given ? IValue(scales.toDoubleVector()[i]) : IValue());
  if (inner.size() != op->schema().arguments().size()) return false;
  op->callBoxed(&inner);
  torch::jit::drop(*stack, arity);
  stack->push_back(inner.back());
  return true;
}

/// unsafe_chunk(self, chunks, dim)
bool rewriteUnsafeChunk(Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  const at::Tensor self = args[0].toTensor();
  const int64_t chunks = args[1].toInt(), dim = args[2].toInt();
  if (!isPlain(self) || !hasSymbolicSizes(self) || self.dim() == 0 || chunks <= 0) return false;
  const SymInt length = (self.sym_size(dim) + chunks - 1) / chunks;
  auto parts = at::unsafe_split_symint(self, length, dim);
  torch::jit::drop(*stack, arity);
  stack->emplace_back(std::move(parts));
  return true;
}

/// max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode)
bool rewriteMaxPool1d(Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  const at::Tensor self = args[0].toTensor();
  if (!isPlain(self) || !hasSymbolicSizes(self)) return false;
  auto made = std::get<0>(at::max_pool1d_with_indices(self, args[1].toIntVector(), args[2].toIntVector(), args[3].toIntVector(), args[4].toIntVector(),
                                                      args[5].toBool()));
  if (poolsRowByRow(self)) made = ownMaximum(self, made);
  torch::jit::drop(*stack, arity);
  stack->push_back(std::move(made));
  return true;
}

/// arange(…, dtype, layout, device, pin_memory) up to a float that is an int of the symbols: up to that int, of the type that floats make.
bool rewriteArange(const OperatorFacts& facts, Stack* stack, size_t arity) {
  const auto args = torch::jit::last(*stack, arity);
  const size_t bounds = arity - 4;
  std::vector<IValue> ints(args.begin(), args.end());
  bool changes = false;
  for (size_t i = 0; i < bounds; ++i) {
    if (!isSymbolic(args[i]) || !args[i].isSymFloat()) continue;
    const c10::SymNode node = args[i].toSymFloat().toSymNodeImpl();
    const auto number = numberOf(node);
    if (!number || number->kind != graph::NumberExpr::Kind::ToFloat) return false;
    ints[i] = toSymInt(number->a, TraceContext::current()->shapes());
    changes = true;
  }
  if (!changes) return false;
  if (ints[bounds].isNone()) ints[bounds] = c10::typeMetaToScalarType(at::get_default_dtype());
  torch::jit::drop(*stack, arity);
  for (IValue& value : ints) stack->push_back(std::move(value));
  const size_t dot = facts.name.find('.');
  c10::Dispatcher::singleton().findSchemaOrThrow("aten::arange", dot == std::string::npos ? "" : facts.name.c_str() + dot + 1).callBoxed(stack);
  return true;
}

/// take_along_dim(self, indices, dim)
bool rewriteTakeAlong(Stack* stack, size_t arity) {
  const auto args = torch::jit::last(*stack, arity);
  const at::Tensor self = args[0].toTensor(), indices = args[1].toTensor();
  if (args[2].isNone() || !isPlain(self) || !isPlain(indices) || !(hasSymbolicSizes(self) || hasSymbolicSizes(indices))) return false;
  if (self.dim() == 0 || self.dim() != indices.dim() || indices.scalar_type() != at::kLong) return false;
  const int64_t dim = at::maybe_wrap_dim(args[2].toInt(), self.dim());
  Sizes own(self.sym_sizes()), given(indices.sym_sizes());
  std::swap(own[static_cast<size_t>(dim)], given[static_cast<size_t>(dim)]);
  const at::Tensor places = indices.expand_symint(at::infer_size_symdimvector(own, indices.sym_sizes()));
  const at::Tensor from = self.expand_symint(at::infer_size_symdimvector(given, self.sym_sizes()));
  const at::Tensor made = from.gather(dim, places.remainder(from.sym_size(dim)));  // those below zero count from the end
  torch::jit::drop(*stack, arity);
  stack->push_back(made);
  return true;
}

/// kron(self, other): every element of one by every element of the other.
bool rewriteKron(Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  const at::Tensor a = args[0].toTensor(), b = args[1].toTensor();
  if (!isPlain(a) || !isPlain(b) || !(hasSymbolicSizes(a) || hasSymbolicSizes(b))) return false;
  const auto rank = std::max(a.dim(), b.dim());
  Sizes left, right, whole;
  for (int64_t d = 0; d < rank; ++d) {
    const auto sizeOf = [&](const at::Tensor& t) { return d < rank - t.dim() ? SymInt(1) : t.sym_size(d - (rank - t.dim())); };
    left.append({sizeOf(a), SymInt(1)});
    right.append({SymInt(1), sizeOf(b)});
    whole.push_back(sizeOf(a) * sizeOf(b));
  }
  const at::Tensor made = at::_unsafe_view_symint(a, left).mul(at::_unsafe_view_symint(b, right));
  torch::jit::drop(*stack, arity);
  stack->push_back(at::_unsafe_view_symint(made, whole));
  return true;
}

/// pad_sequence(sequences, batch_first, padding_value, padding_side): each padded to the longest, and stacked.
bool rewritePadSequence(Stack* stack, size_t arity) {
  auto args = torch::jit::last(*stack, arity);
  const std::vector<at::Tensor> sequences = args[0].toTensorVector();
  if (sequences.empty() || std::none_of(sequences.begin(), sequences.end(), hasSymbolicSizes)) return false;
  SymInt longest = 0;
  for (const at::Tensor& t : sequences) {
    const bool isLike = isPlain(t) && t.dim() > 0 && t.dim() == sequences[0].dim() && t.scalar_type() == sequences[0].scalar_type() && t.device() == sequences[0].device();
    if (!isLike || (t.dim() > 1 && t.sym_sizes().slice(1) != sequences[0].sym_sizes().slice(1))) return false;
    longest = longest.max(t.sym_size(0));
  }
  const std::string_view side = args[3].toStringView();
  if (side != "left" && side != "right") return false;
  std::vector<at::Tensor> padded;
  for (const at::Tensor& t : sequences) {
    std::vector<SymInt> around(2 * static_cast<size_t>(t.dim()), 0);
    around[around.size() - (side == "left" ? 2 : 1)] = longest - t.sym_size(0);
    padded.push_back(at::constant_pad_nd_symint(t, around, args[2].toScalar()));
  }
  at::Tensor made = at::stack(padded, args[1].toBool() ? 0 : 1);
  torch::jit::drop(*stack, arity);
  stack->push_back(std::move(made));
  return true;
}

}  // namespace

bool hasSymbolicSizes(const at::Tensor& t) {
  auto* traced = asTraceThroughWrapper(belowLevels(t));
  return traced && traced->symbolic();
}

bool poolsRowByRow(const at::Tensor& self) {
  return self.is_cpu() && !(self.requires_grad() && at::GradMode::is_enabled()) && !self._fw_grad(0).defined();
}

at::Tensor ownMaximum(const at::Tensor& self, const at::Tensor& made) {
  return self.is_contiguous() ? at::_unsafe_view_symint(made, made.sym_sizes()) : made.clone(at::MemoryFormat::Contiguous);
}

bool rewriteBlockDiag(Stack* stack) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& t : stack->back().toTensorVector()) {
    if (t.dim() > 2 || (!parts.empty() && (t.scalar_type() != parts[0].scalar_type() || t.device() != parts[0].device()))) return false;
    parts.push_back(t.dim() == 2 ? t : t.dim() == 1 ? t.unsqueeze(0) : t.reshape({1, 1}));
  }
  if (parts.empty()) return false;
  c10::SymInt columns = 0, before = 0;
  for (const at::Tensor& t : parts) columns = columns + t.sym_size(1);
  for (at::Tensor& t : parts) {
    const c10::SymInt width = t.sym_size(1), behind = columns - before - width, pads[] = {before, behind};
    t = at::constant_pad_nd_symint(t, pads, 0);
    before = before + width;
  }
  stack->back() = at::cat(parts, 0);
  return true;
}

bool decomposeSymbolically(const OperatorFacts& facts, size_t arity, Stack* stack) {
  if (facts.name == "aten::matmul" || facts.name == "aten::linalg_matmul") return rewriteMatmul(stack, arity);
  if (facts.name == "aten::unsafe_chunk") return rewriteUnsafeChunk(stack, arity);
  if (facts.name == "aten::max_pool1d") return rewriteMaxPool1d(stack, arity);
  if (facts.name.starts_with("aten::arange") && arity > 4) return rewriteArange(facts, stack, arity);
  if (facts.name == "aten::take_along_dim") return rewriteTakeAlong(stack, arity);
  if (facts.name == "aten::kron") return rewriteKron(stack, arity);
  if (facts.name == "aten::pad_sequence") return rewritePadSequence(stack, arity);
  if (facts.name.starts_with("aten::upsample_") || facts.name.starts_with("aten::_upsample_"))
    if (facts.name.ends_with(".vec")) return rewriteUpsample(facts, stack, arity);
  return false;
}

}  // namespace fusebox::trace
