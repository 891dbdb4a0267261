#include "engine/trace/masked_writes.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/MemoryOverlap.h>

#include <optional>

#include "engine/trace/data_sizes.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

using torch::jit::Stack;
using Indices = c10::List<std::optional<at::Tensor>>;

bool isPlain(const at::Tensor& t) { return t.defined() && asTraceThroughWrapper(t); }

struct MaskedPut {
  at::Tensor self, mask, values;
  bool adds = false;
  int64_t start = 0;    ///< dimension of self that the mask begins at
  int64_t behind = 0;   ///< dimensions of self behind the mask
  int64_t counted = 0;  ///< dimension of `values` that the mask decides; negative: they have none

  bool isSameForAll() const { return counted < 0 || values.sym_size(counted) == 1; }

  /// What self is afterwards; `values` are the same for all elements.
  at::Tensor choice() const {
    at::Tensor wide = values, whole = mask;
    for (int64_t d = 1; d < mask.dim() && counted >= 0; ++d) wide = wide.unsqueeze(counted);
    for (int64_t d = 0; d < behind; ++d) whole = whole.unsqueeze(-1);
    return at::where(whole, adds ? self + wide : wide, self);
  }

  /// The positions that are set, of which there are as many as `values`; nothing where that may not be said.
  std::optional<Indices> positions() const {
    DataSizes& data = TraceContext::current()->dataSizes();
    const auto count = exprOf(values.sym_size(counted));
    if (!data.isAllowed || !count) return std::nullopt;
    if (at::functionalization::impl::isFunctionalTensor(mask)) at::functionalization::impl::sync(mask);
    const graph::ValueRef value = asTraceThroughWrapper(mask)->value();
    if (const auto* known = data.countOf(value); known && *known != *count) return std::nullopt;
    data.setCount(value, *count);
    Indices indices;
    for (int64_t d = 0; d < start; ++d) indices.push_back(std::nullopt);
    for (const at::Tensor& column : mask.nonzero().unbind(1)) indices.push_back(column);
    return indices;
  }
};

/// The only index that is not `:`, and its place in the list.
std::optional<std::pair<at::Tensor, int64_t>> onlyIndex(const c10::IValue& indices) {
  std::optional<std::pair<at::Tensor, int64_t>> found;
  int64_t dim = 0;
  for (const c10::IValue& element : indices.toListRef()) {
    if (element.isTensor() && element.toTensor().defined()) {
      if (found) return std::nullopt;
      found.emplace(element.toTensor(), dim);
    }
    ++dim;
  }
  return found;
}

std::optional<MaskedPut> maskedPut(const Stack& stack) {
  const auto args = torch::jit::last(stack, 4);
  const auto index = onlyIndex(args[1]);
  if (!index || !isPlain(args[0].toTensor()) || !isPlain(args[2].toTensor()) || !isPlain(index->first)) return std::nullopt;
  MaskedPut put{args[0].toTensor(), index->first, args[2].toTensor(), args[3].toBool(), index->second};
  put.behind = put.self.dim() - put.start - put.mask.dim();
  put.counted = put.values.dim() - put.behind - 1;
  if (!at::GradMode::is_enabled() || !(put.self.requires_grad() || put.values.requires_grad())) return std::nullopt;
  if (put.mask.scalar_type() != at::kBool || put.mask.dim() == 0 || put.behind < 0 || put.counted > put.start) return std::nullopt;
  if (put.values.scalar_type() != put.self.scalar_type()) return std::nullopt;
  if (put.mask.device() != put.self.device() || put.values.device() != put.self.device()) return std::nullopt;
  for (int64_t d = 0; d < put.mask.dim(); ++d)
    if (put.mask.sym_size(d) != put.self.sym_size(put.start + d)) return std::nullopt;
  return put;
}

bool rewritten(Stack* stack, at::Tensor (*carriedOut)(const MaskedPut& put, const std::optional<Indices>& positions)) {
  const auto put = maskedPut(*stack);
  if (!put) return false;
  const bool isChoice = put->isSameForAll();
  if (isChoice && at::has_internal_overlap(put->self) == at::MemOverlap::Yes) return false;
  const auto positions = isChoice ? std::nullopt : put->positions();
  if (!isChoice && !positions) return false;
  at::Tensor made = carriedOut(*put, positions);
  torch::jit::drop(*stack, 4);
  stack->push_back(std::move(made));
  return true;
}

}  // namespace

bool rewriteMaskedPut(Stack* stack) {
  return rewritten(stack, [](const MaskedPut& put, const std::optional<Indices>& positions) {
    if (positions) return at::index_put(put.self, *positions, put.values, put.adds);
    at::Tensor made = put.self.clone();  // which lies as the operator's result does
    made.copy_(put.choice());
    c10::VariableVersion written = made.unsafeGetTensorImpl()->version_counter();
    written.set_version(0);  // the program has written nothing to it
    return made;
  });
}

bool rewriteMaskedWrite(Stack* stack) {
  return rewritten(stack, [](const MaskedPut& put, const std::optional<Indices>& positions) {
    at::Tensor self = put.self;
    return positions ? self.index_put_(*positions, put.values, put.adds) : self.copy_(put.choice());
  });
}

}  // namespace fusebox::trace
