#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

int64_t integer(const IValue& v) { return v.isSymInt() ? v.toSymInt().guard_int(__FILE__, __LINE__) : v.toInt(); }

Values embedding(const IValue* a) {
  TORCH_CHECK(a[0].toTensor().dim() == 2, "'weight' must be 2-D");
  auto type = a[1].toTensor().scalar_type();
  TORCH_CHECK(type == at::kLong || type == at::kInt, "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
              "Long, Int; but got ", type, " instead (while checking arguments for embedding)");
  auto sizes = a[1].toTensor().sizes().vec();
  sizes.push_back(a[0].toTensor().size(1));
  return {fresh(sizes, a[0].toTensor().scalar_type())};
}

// embedding_dense_backward(grad, indices, num_weights, ...)
Values embeddingBackward(const IValue* a) {
  auto& grad = a[0].toTensor();
  return {fresh({integer(a[2]), grad.size(-1)}, grad.scalar_type())};
}

/// Of the CPU's kernel: single precision and half types are added up without noting which bag an element belongs to.
bool notesNoBags(const IValue* a, int64_t paddingIndex) {
  auto& weight = a[0].toTensor();
  const auto type = weight.scalar_type();
  const bool quick = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  return quick && weight.stride(1) == 1 && paddingIndex < 0 && (!present(a[6]) || a[6].toTensor().stride(0) == 1);
}

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
template <bool kForBackward>
Values embeddingBag(const IValue* a) {
  enum { kSum, kMean, kMax };
  auto &weight = a[0].toTensor(), &indices = a[1].toTensor(), &offsets = a[2].toTensor();
  TORCH_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, "embedding_bag: a matrix, and indices and offsets in one dimension");
  const int64_t mode = integer(a[4]), given = offsets.size(0), bags = given - (a[7].toBool() ? 1 : 0);
  TORCH_CHECK(bags >= 0, "include_last_offset: number of offset should be at least 1");
  TORCH_CHECK(!present(a[6]) || (mode == kSum && a[6].toTensor().numel() == indices.numel()), "embedding_bag: per_sample_weights");
  const auto type = forCuda() ? indices.scalar_type() : offsets.scalar_type();
  const at::Tensor sums = fresh({bags, weight.size(1)}, weight.scalar_type());
  if (forCuda())
    return {sums, fresh({indices.size(0)}, type), fresh({given}, type),
            mode == kMax ? fresh({bags, weight.size(1)}, type) : fresh({0}, type)};
  const int64_t sizes = kForBackward || mode != kSum ? bags : given;
  return {sums, fresh({mode == kSum && notesNoBags(a, integer(a[8])) ? 0 : indices.size(0)}, type), fresh({sizes}, type),
          mode == kMax ? fresh({bags, weight.size(1)}, type) : fresh({sizes}, type)};
}

Values indexSelect(const IValue* a) {
  auto &x = a[0].toTensor(), &index = a[2].toTensor();
  TORCH_CHECK(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  auto sizes = x.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(a[1].toInt(), x.dim())] = index.numel();
  return {fresh(sizes, x.scalar_type())};
}

/// (self, dim, index, source, alpha): libtorch's own looks into the first row, also where there is none.
Values indexAdd(const IValue* a) {
  auto &x = a[0].toTensor(), &index = a[2].toTensor(), &source = a[3].toTensor();
  const int64_t dim = at::maybe_wrap_dim(a[1].toInt(), x.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_add(): Index is supposed to be a vector, but got dim: ", index.dim());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "index_add(): Expected dtype int32/int64 for index but got: ",
              index.scalar_type());
  TORCH_CHECK(x.scalar_type() == source.scalar_type(), "index_add(): self (", x.scalar_type(), ") and source (", source.scalar_type(),
              ") must have the same scalar type");
  TORCH_CHECK(dim == 0 || dim < source.dim(), "index_add(): Indexing dim ", dim, " is out of bounds of the source tensor with dim ", source.dim());
  TORCH_CHECK(index.numel() == (source.dim() == 0 ? 1 : source.size(dim)), "index_add(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim)");
  auto rest = x.sizes().vec(), given = source.sizes().vec();
  if (!rest.empty()) rest.erase(rest.begin() + dim);
  if (!given.empty()) given.erase(given.begin() + dim);
  TORCH_CHECK(rest == given, "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ", x.sizes(),
              " source.shape = ", source.sizes());
  return {fresh(x.sizes(), x.scalar_type())};
}

Values roll(const IValue* a) {
  auto& x = a[0].toTensor();
  auto shifts = a[1].toListRef(), dims = a[2].toListRef();
  if (x.numel() == 0) return {like(x)};
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1), "shifts and dimensions must align. shifts: ",
              shifts.size(), ", dims:", dims.size());
  // The CPU's kernel joins two parts along each dimension, of which an empty one has no layout to keep; of no dimension it rolls one row.
  bool keepsLayout = !forCuda() && !dims.empty();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = at::maybe_wrap_dim(dims[i].toInt(), x.dim(), /*wrap_scalar=*/false);
    keepsLayout &= integer(shifts[i]) % x.size(dim) != 0;
  }
  return {keepsLayout ? likeFormat(x) : fresh(x.sizes(), x.scalar_type())};
}

Values flip(const IValue* a) {
  auto& x = a[0].toTensor();
  at::dim_list_to_bitset(a[1].toIntVector(), static_cast<size_t>(x.dim()));
  return {like(x)};
}

Values repeat(const IValue* a) {
  auto& x = a[0].toTensor();
  std::vector<int64_t> sizes;
  for (auto& r : a[1].toListRef()) sizes.push_back(integer(r));
  TORCH_CHECK(static_cast<int64_t>(sizes.size()) >= x.dim(), "repeat: fewer repeats than dimensions");
  for (int64_t d = 0; d < x.dim(); ++d) sizes[sizes.size() - x.dim() + d] *= x.size(d);
  return {fresh(sizes, x.scalar_type())};
}

/// (self, index)
Values take(const IValue* a) {
  auto &x = a[0].toTensor(), &index = a[1].toTensor();
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK_INDEX(x.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  return {fresh(index.sizes(), x.scalar_type())};
}

/// (sorted_sequence, self, out_int32, right, side, sorter): places of numbers, of one or as many as a tensor has
Values searchsorted(const IValue* a) {
  auto& sorted = a[0].toTensor();
  TORCH_CHECK(a[4].isNone() || a[4].toStringView() != "left" || !a[3].toBool(),
              "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  TORCH_CHECK(!present(a[5]) || a[5].toTensor().sizes() == sorted.sizes(), "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
              sorted.sizes(), "and got sorter tensor ", present(a[5]) ? a[5].toTensor().sizes() : at::IntArrayRef());
  const auto type = a[2].toBool() ? at::kInt : at::kLong;
  if (!a[1].isTensor()) return {fresh({}, type)};
  auto& values = a[1].toTensor();
  TORCH_CHECK(sorted.dim() <= 1 || (values.dim() == sorted.dim() &&
                                    values.sizes().slice(0, values.dim() - 1) == sorted.sizes().slice(0, sorted.dim() - 1)),
              "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor "
              "must match, but we got boundaries tensor ", sorted.sizes(), " and input value tensor ", values.sizes());
  return {fresh(values.sizes(), type)};
}

/// isin.Scalar_Tensor(element, test_elements): an answer, for which libtorch predicts no element
Values oneAnswer(const IValue*) { return {fresh({}, at::kBool)}; }

/// Samples of distributions, and what they change with their parameters: row-major, whatever the parameters are.
Values sample(const IValue* a) { return {fresh(a[0].toTensor().sizes(), a[0].toTensor().scalar_type())}; }

}  // namespace

const ShapeTable& indexingRules() {
  static const ShapeTable table{
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embeddingBackward},
      {"aten::_embedding_bag", embeddingBag<true>},
      {"aten::_embedding_bag_forward_only", embeddingBag<false>},
      {"aten::index_select", indexSelect},
      {"aten::index_add", indexAdd},
      {"aten::roll", roll},
      {"aten::flip", flip},
      {"aten::repeat", repeat},
      {"aten::take", take},
      {"aten::searchsorted.Tensor", searchsorted},
      {"aten::searchsorted.Scalar", searchsorted},
      {"aten::isin.Scalar_Tensor", oneAnswer},
      {"aten::binomial", sample},
      {"aten::_sample_dirichlet", sample},
      {"aten::_dirichlet_grad", sample},
      {"aten::_standard_gamma", sample},
      {"aten::_standard_gamma_grad", sample},
  };
  return table;
}

}  // namespace fusebox::trace
