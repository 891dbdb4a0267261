#include "engine/trace/argument_checks.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <vector>

#include "engine/trace/break_error.h"

namespace fusebox::trace {
namespace {

using c10::IValue;

std::optional<int64_t> known(const IValue& v) { return v.isSymInt() ? v.toSymInt().maybe_as_int() : v.toInt(); }

std::optional<std::vector<int64_t>> knownList(const IValue& list) {
  std::vector<int64_t> made;
  for (auto& element : list.toListRef()) {
    auto value = known(element);
    if (!value) return std::nullopt;
    made.push_back(*value);
  }
  return made;
}

}  // namespace

void checkWithinStorage(const std::string& op, c10::ArrayRef<IValue> arguments) {
  const bool scatters = op == "aten::as_strided_scatter";
  if (op != "aten::as_strided" && !scatters) return;
  auto& t = arguments[0].toTensor();
  if (scatters && at::has_internal_overlap(t) != at::MemOverlap::No) return;  // of a copy that has memory of its own
  const auto view = arguments.slice(scatters ? 2 : 1);
  auto sizes = knownList(view[0]), strides = knownList(view[1]);
  auto offset = view[2].isNone() ? std::optional<int64_t>(t.storage_offset()) : known(view[2]);
  if (!sizes || !strides || !offset || sizes->size() != strides->size()) return;
  TORCH_CHECK(*offset >= 0, "Tensor: invalid storage offset ", *offset);
  int64_t last = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    TORCH_CHECK((*strides)[i] >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ",
                at::IntArrayRef(*strides));
    if ((*sizes)[i] == 0) return;
    last += ((*sizes)[i] - 1) * (*strides)[i];
  }
  const auto item = static_cast<int64_t>(t.element_size()), bytes = static_cast<int64_t>(t.storage().nbytes());
  const int64_t needed = (*offset + last + 1) * item;
  TORCH_CHECK(needed <= (bytes + item - 1) / item * item, "setStorage: sizes ", at::IntArrayRef(*sizes), ", strides ", at::IntArrayRef(*strides),
              ", storage offset ", *offset, ", and itemsize ", item, " requiring a storage size of ", needed,
              " are out of bounds for storage of size ", bytes);
}

void checkScatterSource(const std::string& op, c10::ArrayRef<IValue> arguments) {
  const bool slices = op == "aten::slice_scatter";
  if (!slices && op != "aten::select_scatter") return;
  std::vector<IValue> view(arguments.begin(), arguments.end());
  view.erase(view.begin() + 1);
  c10::Dispatcher::singleton().findSchemaOrThrow(slices ? "aten::slice" : "aten::select", slices ? "Tensor" : "int").callBoxed(&view);
  const auto &part = view.back().toTensor(), &source = arguments[1].toTensor();
  TORCH_CHECK(part.sym_sizes() == source.sym_sizes(), "expected src to have a size equal to the slice of self. src size = ", source.sym_sizes(),
              ", slice size = ", part.sym_sizes());
}

namespace {

/// A bias is added in place where the product is no plain matrix; on what looks like a tensor of a class, in a new tensor.
void checkBias(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  for (auto* t : {&input, &weight, &bias})
    if (!t->defined() || t->unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return;
  const bool isOneProduct = weight.dim() == 2 && (input.dim() == 2 || (input.dim() == 3 && bias.dim() == 1));
  if (isOneProduct || input.dim() == 0 || weight.dim() == 0 || input.size(-1) != weight.size(-1)) return;
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end() - 1);
  sizes.insert(sizes.end(), weight.sizes().begin(), weight.sizes().end() - 1);
  const auto whole = at::infer_size(sizes, bias.sizes());
  TORCH_CHECK(whole == sizes, "output with shape ", at::IntArrayRef(sizes), " doesn't match the broadcast shape ", at::IntArrayRef(whole));
}

}  // namespace

void checkAddend(const std::string& op, c10::ArrayRef<IValue> arguments) {
  if (op == "aten::linear" && arguments[2].isTensor()) return checkBias(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor());
  const bool ofMatrix = op == "aten::addmm" || op == "aten::_addmm_activation";
  if (!ofMatrix && op != "aten::addmv") return;
  const auto &self = arguments[0].toTensor(), &left = arguments[1].toTensor(), &right = arguments[2].toTensor();
  for (auto* t : {&self, &left, &right})
    if (t->unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return;
  if (left.dim() != 2 || right.dim() != (ofMatrix ? 2 : 1)) return;
  std::vector<int64_t> sizes{left.size(0)};
  if (ofMatrix) sizes.push_back(right.size(1));
  (void)at::inferExpandGeometry(self.sizes(), self.strides(), sizes);
}

void checkFloorDivided(const std::string& op, c10::ArrayRef<IValue> arguments) {
  if (!op.starts_with("aten::floor_divide_")) return;
  const auto& self = arguments[0].toTensor();
  if (!arguments[1].isTensor()) return;
  const auto whole = at::infer_size_symint(self.sym_sizes(), arguments[1].toTensor().sym_sizes());
  TORCH_CHECK(c10::SymIntArrayRef(whole) == self.sym_sizes(), "output with shape ", self.sym_sizes(), " doesn't match the broadcast shape ", c10::SymIntArrayRef(whole));
}

void checkFilling(const std::string& op, c10::ArrayRef<IValue> arguments) {
  if (op != "aten::masked_fill.Tensor" && op != "aten::masked_fill_.Tensor") return;
  const auto &self = arguments[0].toTensor(), &value = arguments[2].toTensor();
  const bool isInteger = at::isIntegralType(self.scalar_type(), false), mayNotFit = !at::isIntegralType(value.scalar_type(), true) || value.element_size() > self.element_size();
  if (isInteger && mayNotFit) raiseBreak(BreakKind::UnsupportedOp, op + " is given a number of a wider type, which eager refuses where it does not fit", "convert it first");
}

void checkPooled(const std::string& op, c10::ArrayRef<IValue> arguments) {
  if (op != "aten::max_pool1d" || !arguments[0].toTensor().device().is_cpu()) return;
  const at::ScalarType type = arguments[0].toTensor().scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(type), "\"max_pool1d_impl\" not implemented for '", toString(type), "'");
}

}  // namespace fusebox::trace
