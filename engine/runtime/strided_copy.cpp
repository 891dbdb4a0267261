#include "engine/runtime/strided_copy.h"

#include <ATen/ATen.h>

namespace fusebox::runtime {

at::Tensor withStrides(const at::Tensor& tensor, c10::IntArrayRef strides) {
  if (tensor.strides() == strides) return tensor;
  at::NoGradGuard noGrad;
  auto distinct = tensor.detach();
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (strides[static_cast<size_t>(d)] == 0 && tensor.size(d) > 0) distinct = distinct.narrow(d, 0, 1);
  return at::empty_strided(distinct.sizes(), strides, tensor.options()).copy_(distinct).expand(tensor.sizes());
}

at::Tensor asInMemory(const at::Tensor& tensor) {
  at::Tensor made = tensor;
  if (made.defined() && made.is_neg()) made = at::_neg_view(made);
  if (made.defined() && made.is_conj()) made = at::_conj(made);
  return made;
}

}  // namespace fusebox::runtime
