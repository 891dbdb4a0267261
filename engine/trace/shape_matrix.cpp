#include <ATen/ExpandUtils.h>
#include <ATen/native/LinearAlgebraUtils.h>

#include "engine/trace/shape_rules.h"

namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

/// Matrices of the sizes given, column by column, as LAPACK wants them.
at::Tensor columnMajor(std::vector<int64_t> sizes, at::ScalarType type) {
  std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
  return fresh(sizes, type).transpose(-2, -1);
}

/// Products of two vectors: a number
Values dot(const IValue* a) {
  auto &x = a[0].toTensor(), &y = a[1].toTensor();
  TORCH_CHECK(x.dim() == 1 && y.dim() == 1, "1D tensors expected, but got ", x.dim(), "D and ", y.dim(), "D tensors");
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "dot : expected both vectors to have same dtype, but found ", x.scalar_type(), " and ", y.scalar_type());
  TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensor [", x.numel(), "] and src [", y.numel(),
              "] to have the same number of elements, but got ", x.numel(), " and ", y.numel(), " elements respectively");
  return {fresh({}, x.scalar_type())};
}

/// (self, batch1, batch2, beta, alpha): the products of all matrices added up
Values addbmm(const IValue* a) {
  auto &x = a[0].toTensor(), &left = a[1].toTensor(), &right = a[2].toTensor();
  TORCH_CHECK(left.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(right.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(left.size(0) == right.size(0), "batch1 and batch2 must have same number of batches, got ", left.size(0), " and ", right.size(0));
  TORCH_CHECK(left.size(2) == right.size(1), "Incompatible matrix sizes for bmm (", left.size(1), "x", left.size(2), " and ", right.size(1), "x",
              right.size(2), ")");
  const std::vector<int64_t> sizes{left.size(1), right.size(2)};
  TORCH_CHECK(at::is_expandable_to(x.sizes(), sizes), "self tensor does not match matmul output shape");
  return {fresh(sizes, x.scalar_type())};
}

/// (self): eigenvalues and -vectors
Values eigenvectors(const IValue* a) {
  auto& x = a[0].toTensor();
  at::native::squareCheckInputs(x, "linalg.eig");
  at::native::checkFloatingOrComplex(x, "linalg.eig");
  const auto type = c10::toComplexType(x.scalar_type());
  return {fresh(x.sizes().slice(0, x.dim() - 1).vec(), type), columnMajor(x.sizes().vec(), type)};
}

/// A matrix for each pair of matrices.
std::vector<int64_t> ofEachPair(const at::Tensor& x, const at::Tensor& y, int64_t rows, int64_t columns) {
  auto sizes = at::infer_size(x.sizes().slice(0, x.dim() - 2), y.sizes().slice(0, y.dim() - 2));
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

/// (x1, x2, p, compute_mode): distances of all rows
Values cdist(const IValue* a) {
  auto &x = a[0].toTensor(), &y = a[1].toTensor();
  TORCH_CHECK(x.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x.dim(), "D");
  TORCH_CHECK(y.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", y.dim(), "D");
  TORCH_CHECK(x.size(-1) == y.size(-1), "X1 and X2 must have the same number of columns. X1: ", x.size(-1), " X2: ", y.size(-1));
  TORCH_CHECK(x.is_floating_point(), "cdist only supports floating-point dtypes, X1 got: ", x.scalar_type());
  TORCH_CHECK(y.is_floating_point(), "cdist only supports floating-point dtypes, X2 got: ", y.scalar_type());
  TORCH_CHECK(a[2].toDouble() >= 0, "cdist only supports non-negative p values");
  return {fresh(ofEachPair(x, y, x.size(-2), y.size(-2)), x.scalar_type())};
}
/// (grad, x1, x2, p, cdist)
Values cdistBackward(const IValue* a) {
  auto &x = a[1].toTensor(), &y = a[2].toTensor();
  const auto sizes = ofEachPair(x, y, x.size(-2), x.size(-1));
  if (y.size(-2) == 0 || c10::multiply_integers(sizes) == 0) return {like(x)};  // of no distances: zeros for the operand as it is
  return {fresh(sizes, x.scalar_type())};
}

/// (self, upper)
Values cholesky(const IValue* a) {
  auto& x = a[0].toTensor();
  if (x.numel() == 0) return {fresh(x.sizes(), x.scalar_type())};
  at::native::squareCheckInputs(x, "cholesky");
  return {columnMajor(x.sizes().vec(), x.scalar_type())};
}
Values choleskyInverse(const IValue* a) {
  auto& x = a[0].toTensor();
  at::native::squareCheckInputs(x, "cholesky_inverse");
  return {columnMajor(x.sizes().vec(), x.scalar_type())};
}

/// (A, B, upper, left, unitriangular)
Values solveTriangular(const IValue* a) {
  auto &matrices = a[0].toTensor(), &right = a[1].toTensor();
  at::native::checkInputsSolver(matrices, right, a[3].toBool(), "linalg.solve_triangular");
  const auto sizes = std::get<0>(at::native::_linalg_broadcast_batch_dims(right, matrices));
  // What is read conjugated as it lies is copied nowhere, and the result is row by row.
  if (matrices.is_conj() && matrices.transpose(-2, -1).is_contiguous()) return {fresh(sizes, matrices.scalar_type())};
  return {columnMajor(sizes, matrices.scalar_type())};
}

Values matrixExponential(const IValue* a) {
  auto& x = a[0].toTensor();
  at::native::squareCheckInputs(x, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(x, "linalg.matrix_exp");
  return {fresh(x.sizes(), x.scalar_type())};
}

}  // namespace

const ShapeTable& matrixRules() {
  static const ShapeTable table{
      {"aten::dot", dot},
      {"aten::vdot", dot},
      {"aten::addbmm", addbmm},
      {"aten::_cdist_forward", cdist},
      {"aten::_cdist_backward", cdistBackward},
      {"aten::linalg_eig", eigenvectors},
      {"aten::cholesky", cholesky},
      {"aten::cholesky_inverse", choleskyInverse},
      {"aten::linalg_solve_triangular", solveTriangular},
      {"aten::linalg_matrix_exp", matrixExponential},
  };
  return table;
}

}  // namespace fusebox::trace
