#include "engine/trace/selected_views.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/ops/select_scatter.h>
#include <ATen/ops/unbind.h>

#include <memory>
#include <vector>

#include "engine/trace/convert.h"

namespace fusebox::trace {

namespace {

using at::functionalization::ViewMeta;
using Metas = std::vector<std::shared_ptr<ViewMeta>>;

// How a view comes from its base has no setter; explicit instantiation may name private members.
template <auto Member>
struct MetasAccess {
  friend Metas& metasOf(at::FunctionalTensorWrapper& wrapper) { return wrapper.*Member; }
};
Metas& metasOf(at::FunctionalTensorWrapper&);
template struct MetasAccess<&at::FunctionalTensorWrapper::view_metas_>;

class Unbound final : public ViewMeta {
 public:
  Unbound(int64_t dim, int64_t index) : ViewMeta(/*has_symbolic_inputs=*/false, /*is_multi_output=*/true, /*is_as_strided=*/false, index), dim_(dim) {}
  at::Tensor forward(const at::Tensor& base) override { return at::unbind(base, dim_)[static_cast<size_t>(out_index)]; }
  at::Tensor reverse(const at::Tensor& base, const at::Tensor& view) override { return at::select_scatter(base, view, dim_, out_index); }
  std::shared_ptr<ViewMeta> to_out_index(int64_t index) override { return std::make_shared<Unbound>(dim_, index); }

 private:
  int64_t dim_;
};

}  // namespace

void viewBySelection(const c10::IValue& unbound, int64_t dim) {
  int64_t index = 0;
  forEachTensor(unbound, [&](const at::Tensor& t) {
    const int64_t own = index++;
    if (!at::functionalization::impl::isFunctionalTensor(t)) return;
    Metas& metas = metasOf(*at::functionalization::impl::unsafeGetFunctionalWrapper(t));
    if (!metas.empty()) metas.back() = std::make_shared<Unbound>(dim, own);
  });
}

}  // namespace fusebox::trace
