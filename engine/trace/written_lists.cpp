#include "engine/trace/written_lists.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/trace/break_error.h"

namespace fusebox::trace {

namespace {

using c10::IValue;

/// The bytes of its storage that a tensor may reach; the whole storage where sizes are symbols.
std::pair<int64_t, int64_t> reachOf(const at::Tensor& t) {
  if (t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return {0, std::numeric_limits<int64_t>::max()};
  if (t.numel() == 0) return {0, 0};
  int64_t last = t.storage_offset();
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  const auto width = static_cast<int64_t>(t.element_size());
  return {t.storage_offset() * width, (last + 1) * width};
}

bool mayShare(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || !a.has_storage() || !b.has_storage() || !a.storage().is_alias_of(b.storage())) return false;
  const auto [aBegin, aEnd] = reachOf(a);
  const auto [bBegin, bEnd] = reachOf(b);
  return aBegin < bEnd && bBegin < aEnd;
}

/// Whether an element of `written` shares memory with an element of `other` at another place.
bool crosses(const c10::List<at::Tensor>& written, const IValue& other) {
  if (!other.isTensorList()) return false;
  const auto list = other.toTensorList();
  for (size_t i = 0; i < written.size(); ++i)
    for (size_t k = 0; k < list.size(); ++k)
      if (i != k && mayShare(written.get(i), list.get(k))) return true;
  return false;
}

/// What the call for element `i` of `n` is given.
IValue partOf(const c10::Argument& declared, const IValue& value, size_t i, size_t n) {
  if (value.isList() && value.toListRef().size() == n) {
    auto part = value.toList().copy();
    part.clear();
    part.push_back(value.toListRef()[i]);
    return IValue(part);
  }
  const bool isOfAll = declared.name() == "scalars" && value.isTensor() && value.toTensor().dim() == 1;
  return isOfAll ? IValue(value.toTensor().narrow(0, static_cast<int64_t>(i), 1)) : value;
}

}  // namespace

bool writeListInOrder(const OperatorFacts& facts, const c10::OperatorHandle& op, std::span<const IValue> args, c10::Stack* stack) {
  if (!facts.writes || !facts.name.starts_with("aten::_foreach_") || !args[0].isTensorList()) return false;
  const auto written = args[0].toTensorList();
  if (written.size() < 2 || std::none_of(args.begin(), args.end(), [&](const IValue& other) { return crosses(written, other); })) return false;
  // What is refused, the kernel for lists refuses.
  if (std::any_of(args.begin(), args.end(), [&](const IValue& other) { return other.isList() && other.toListRef().size() != written.size(); })) return false;
  // The histories of the results are made of those from before any write.
  const auto hasHistory = [](const IValue& value) {
    bool found = false;
    if (value.isTensorList())
      for (const at::Tensor& t : value.toTensorVector()) found = found || t.requires_grad();
    return found || (value.isTensor() && value.toTensor().requires_grad());
  };
  if (at::GradMode::is_enabled() && std::any_of(args.begin(), args.end(), hasHistory))
    raiseBreak(BreakKind::UnsupportedOp, facts.name + " writes to what it reads for another element, and gradients are recorded",
               "give it copies, or write under torch.no_grad()");
  const auto& declared = op.schema().arguments();
  for (size_t i = 0; i < written.size(); ++i) {
    c10::Stack one;
    for (size_t k = 0; k < args.size(); ++k) one.push_back(partOf(declared[k], args[k], i, written.size()));
    op.callBoxed(one);
  }
  torch::jit::drop(*stack, args.size());
  return true;
}

}  // namespace fusebox::trace
