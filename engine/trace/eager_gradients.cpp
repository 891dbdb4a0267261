#include "engine/trace/eager_gradients.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <string_view>
#include <unordered_map>

#include "engine/trace/transform_levels.h"

namespace fusebox::trace {
namespace {

namespace history = torch::autograd::generated;
using torch::autograd::Node;
using torch::autograd::variable_list;

/// Of the gradient of a result, the gradient of what it was made of.
using Formula = at::Tensor (*)(Node&, const at::Tensor& grad);

/// An extreme or a median of all elements: all that are equal to it share its gradient, the others have zero, not zero times it. Kernels of CUDA multiply.
template <typename Backward>
at::Tensor sharedAmongEqual(Node& node, const at::Tensor& grad) {
  auto& made = static_cast<Backward&>(node);
  const at::Tensor self = made.self_.unpack(), value = made.result_.unpack(node.getptr());
  if (!self.device().is_cpu()) return {};
  const at::Tensor mask = at::where(value.isnan(), self.isnan(), self.eq(value));
  return at::zeros_symint(self.sym_sizes(), self.options()).masked_fill(mask, grad / mask.sum());
}

/// Products of all others, for each element along `dim`.
at::Tensor productsOfOthers(const at::Tensor& self, int64_t dim) {
  const c10::SymInt others = self.sym_size(dim) - 1;
  const at::Tensor one = at::ones_like(self.narrow_symint(dim, 0, 1));
  const at::Tensor before = at::cat({one, self.narrow_symint(dim, 0, others)}, dim).cumprod(dim);
  const at::Tensor behind = at::cat({one, self.narrow_symint(dim, 1, others).flip(dim)}, dim).cumprod(dim).flip(dim);
  return before * behind;
}

/// The gradient of products along `dim`: the products by the element, where nothing is zero. The way that is not taken gets zeros and ones, whose own
/// gradients are zero.
at::Tensor quotientsOrOthers(const at::Tensor& self, const at::Tensor& result, const at::Tensor& grad, int64_t dim, const at::Tensor& zeros) {
  const at::Tensor one = at::ones({}, self.options()), none = at::zeros({}, grad.options()), isAnyZero = zeros.sum().ne(0);
  const at::Tensor quotients = at::where(isAnyZero, none, grad) * (result / at::where(isAnyZero, one, self)).conj();
  if (self.sym_size(dim) == 1) return at::where(isAnyZero, grad, quotients);
  return at::where(isAnyZero, at::where(isAnyZero, grad, none) * productsOfOthers(at::where(isAnyZero, self, one), dim).conj(), quotients);
}

at::Tensor ofProduct(Node& node, const at::Tensor& grad) {
  auto& made = static_cast<history::ProdBackward0&>(node);
  const at::Tensor self = made.self_.unpack().to(grad.scalar_type()), result = made.result_.unpack(node.getptr());
  if (self.dim() == 0 || self.sym_numel() == 0) return {};
  const at::Tensor zeros = self.eq(0);
  const at::Tensor one = quotientsOrOthers(self.contiguous().view(-1), result, grad, 0, zeros).view_symint(self.sym_sizes());
  if (c10::GradMode::is_enabled()) return one;
  // Of several zeros eager makes zeros, whatever stands beside them; they have the history of what they are for finite numbers.
  return one.masked_fill(zeros.sum().gt(1).logical_and(one.isfinite().logical_not()), 0);
}

at::Tensor ofProductsAlong(Node& node, const at::Tensor& grad) {
  auto& made = static_cast<history::ProdBackward1&>(node);
  const at::Tensor self = made.self_.unpack().to(grad.scalar_type()), result = made.result_.unpack(node.getptr());
  if (self.dim() == 0 || self.sym_numel() == 0) return {};
  const int64_t dim = at::maybe_wrap_dim(made.dim, self.dim());
  const auto along = [&](const at::Tensor& t) { return made.keepdim ? t : t.unsqueeze(dim); };
  return quotientsOrOthers(self, along(result), along(grad), dim, self.eq(0));
}

Formula formulaOf(const std::string& name) {
  static const std::unordered_map<std::string_view, Formula> kFormulas{
      {"aten::max", sharedAmongEqual<history::MaxBackward1>},        {"aten::min", sharedAmongEqual<history::MinBackward1>},
      {"aten::median", sharedAmongEqual<history::MedianBackward0>},  {"aten::nanmedian", sharedAmongEqual<history::NanmedianBackward0>},
      {"aten::prod", ofProduct},                                     {"aten::prod.dim_int", ofProductsAlong},
  };
  const auto it = kFormulas.find(name);
  return it == kFormulas.end() ? nullptr : it->second;
}

class EagersGradient final : public torch::autograd::FunctionPostHook {
 public:
  EagersGradient(Node& node, Formula formula) : node_(node), formula_(formula) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    variable_list made = outputs;
    if (made.size() != 1 || !made[0].defined() || !inputs[0].defined()) return made;
    if (at::Tensor own = formula_(node_, inputs[0]); own.defined()) made[0] = own.to(made[0].scalar_type());
    return made;
  }

 private:
  Node& node_;  ///< owns this
  const Formula formula_;
};

}  // namespace

void followEagersGradient(const OperatorFacts& facts, const at::Tensor& result) {
  const Formula formula = formulaOf(facts.name);
  if (!formula || insideTransform() || !result.defined() || !result.grad_fn()) return;
  Node& node = *result.grad_fn();
  node.add_post_hook(std::make_unique<EagersGradient>(node, formula));
}

}  // namespace fusebox::trace
