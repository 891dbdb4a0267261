#include <algorithm>

#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {
namespace {

using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

Exprs product(const Call& call, size_t a, size_t b) {
  auto x = call.sizes(a), y = call.sizes(b);
  const size_t n = x.size();
  Call::want(n >= 2 && y.size() == n && call.equal(x[n - 1], y[n - 2]));
  if (n == 3) Call::want(call.equal(x[0], y[0]));
  x[n - 1] = y[n - 1];
  return x;
}
template <size_t a>
Shapes matmul(const Call& call) { return symbolic::all(call, product(call, a, a + 1)); }

/// What is added is broadcast to the product.
Shapes broadcastInto(const Call& call, const Exprs& product) {
  Call::want(call.broadcast({product, call.sizes(0)}).size() == product.size());
  return symbolic::all(call, product);
}

/// addmm and the like
template <size_t a>
Shapes added(const Call& call) { return broadcastInto(call, product(call, a, a + 1)); }

Shapes mv(const Call& call) {
  auto x = call.sizes(0), y = call.sizes(1);
  Call::want(x.size() == 2 && y.size() == 1 && call.equal(x[1], y[0]));
  return {{{x[0]}}};
}
Shapes addmv(const Call& call) {
  auto x = call.sizes(1), y = call.sizes(2);
  Call::want(x.size() == 2 && y.size() == 1 && call.equal(x[1], y[0]));
  return broadcastInto(call, {x[0]});
}
Shapes dot(const Call& call) {
  auto x = call.sizes(0), y = call.sizes(1);
  Call::want(x.size() == 1 && y.size() == 1 && call.equal(x[0], y[0]));
  return {ResultShape(Exprs{})};
}
/// addbmm(self, batch1, batch2)
Shapes addbmm(const Call& call) {
  auto made = product(call, 1, 2);
  Call::want(made.size() == 3);
  return broadcastInto(call, {made[1], made[2]});
}
Shapes addr(const Call& call) { return broadcastInto(call, {call.sizes(1)[0], call.sizes(2)[0]}); }

/// linear(input, weight, bias): where a backend has its own.
Shapes linear(const Call& call) {
  auto x = call.sizes(0), w = call.sizes(1);
  Call::want(!x.empty() && w.size() == 2 && call.equal(x.back(), w[1]));
  x.back() = w[0];
  if (call.isTensor(2)) Call::want(call.equal(call.geometry(2).numel(), w[0]));
  return {{x}};
}

/// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): three broadcast factors, each of which lacks dimensions, summed over some.
Shapes trilinear(const Call& call) {
  const auto has = [](const c10::IValue& dims, size_t d) {
    const auto list = dims.toIntVector();
    return std::find(list.begin(), list.end(), static_cast<int64_t>(d)) != list.end();
  };
  std::vector<Exprs> factors;
  for (size_t k = 0; k < 3; ++k) {
    const Exprs own = call.sizes(k);
    const size_t rank = own.size() + call.value(k + 3).toIntVector().size();
    Exprs wide;
    for (size_t d = 0, next = 0; d < rank; ++d) wide.push_back(has(call.value(k + 3), d) ? SymExpr(1) : own[next++]);
    factors.push_back(std::move(wide));
  }
  const Exprs whole = call.broadcast(factors);
  Exprs made;
  for (size_t d = 0; d < whole.size(); ++d)
    if (!has(call.value(6), d)) made.push_back(whole[d]);
  return symbolic::all(call, made);
}

Shapes triangle(const Call& call) { return symbolic::sameAs(call, 0); }

/// Factorisations of square matrices: like the matrices, and a number for each.
Shapes squareMatrices(const Call& call) {
  auto sizes = call.sizes(0);
  Call::want(sizes.size() >= 2 && call.equal(sizes[sizes.size() - 1], sizes[sizes.size() - 2]));
  Shapes made;
  for (size_t k = 0; k < call.results(); ++k) {
    const auto rank = static_cast<size_t>(call.result(k).dim());
    Call::want(rank == sizes.size() || rank + 1 == sizes.size() || rank + 2 == sizes.size());
    made.emplace_back(Exprs(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(rank)));
  }
  return made;
}

/// Whether all but the last two sizes agree.
bool sameBatch(const Call& call, const Exprs& a, const Exprs& b) {
  if (a.size() < 2 || a.size() != b.size()) return false;
  for (size_t d = 0; d + 2 < a.size(); ++d)
    if (!call.equal(a[d], b[d])) return false;
  return true;
}

/// The sizes with other last ones.
Exprs withMatrix(Exprs sizes, std::initializer_list<SymExpr> last) {
  sizes.resize(sizes.size() - 2);
  sizes.insert(sizes.end(), last);
  return sizes;
}

struct Matrices {
  Exprs sizes;
  SymExpr rows, columns, least;  ///< which of the first two is the least is decided
};
Matrices matrices(const Call& call) {
  Matrices made{call.sizes(0), 0, 0, 0};
  Call::want(made.sizes.size() >= 2);
  made.rows = made.sizes[made.sizes.size() - 2];
  made.columns = made.sizes.back();
  made.least = call.lessEqual(made.rows, made.columns) ? made.rows : made.columns;
  return made;
}

/// linalg_qr(A, mode)
Shapes qr(const Call& call) {
  const Matrices a = matrices(call);
  const std::string_view mode = call.value(1).toStringView();
  Call::want(mode == "reduced" || mode == "complete");
  const SymExpr inner = mode == "reduced" ? a.least : a.rows;
  return {withMatrix(a.sizes, {a.rows, inner}), withMatrix(a.sizes, {inner, a.columns})};
}

/// _linalg_svd(A, full_matrices, compute_uv)
Shapes svd(const Call& call) {
  const Matrices a = matrices(call);
  const bool full = call.flag(1);
  if (!call.flag(2)) return {Exprs{0}, withMatrix(a.sizes, {a.least}), Exprs{0}};
  return {withMatrix(a.sizes, {a.rows, full ? a.rows : a.least}), withMatrix(a.sizes, {a.least}), withMatrix(a.sizes, {full ? a.columns : a.least, a.columns})};
}

/// linalg_lu_factor_ex(A): the factors in one, the pivots, and a number for each matrix
Shapes luFactors(const Call& call) {
  const Matrices a = matrices(call);
  return {a.sizes, withMatrix(a.sizes, {a.least}), withMatrix(a.sizes, {})};
}

/// linalg_lu(A)
Shapes lu(const Call& call) {
  const Matrices a = matrices(call);
  return {withMatrix(a.sizes, {a.rows, a.rows}), withMatrix(a.sizes, {a.rows, a.least}), withMatrix(a.sizes, {a.least, a.columns})};
}

/// _linalg_solve_ex(A, B, left): B may be a vector for each matrix.
Shapes solved(const Call& call) {
  const auto a = call.sizes(0), b = call.sizes(1);
  Call::want(a.size() >= 2 && call.equal(a.back(), a[a.size() - 2]));
  if (b.size() + 1 == a.size()) {
    for (size_t d = 0; d < b.size(); ++d) Call::want(call.equal(a[d], b[d]));
  } else {
    Call::want(sameBatch(call, a, b) && call.equal(a.back(), call.flag(2) ? b[b.size() - 2] : b.back()));
  }
  return {b, a, withMatrix(a, {a.back()}), withMatrix(a, {})};
}

/// linalg_solve_triangular(A, B), linalg_ldl_solve(LD, pivots, B), _cholesky_solve_helper(B, A), triangular_solve(B, A): like B
template <size_t unknown, size_t factor>
Shapes solvedTriangles(const Call& call) {
  const auto a = call.sizes(factor), b = call.sizes(unknown);
  Call::want(sameBatch(call, a, b) && call.equal(a.back(), a[a.size() - 2]));
  return call.results() == 2 ? Shapes{b, a} : Shapes{b};
}

/// cholesky_solve(B, A): batches are broadcast together
Shapes choleskySolve(const Call& call) {
  const auto b = call.sizes(0), a = call.sizes(1);
  Call::want(a.size() >= 2 && b.size() >= 2 && call.equal(a.back(), a[a.size() - 2]) && call.equal(b[b.size() - 2], a.back()));
  auto made = call.broadcast({Exprs(b.begin(), b.end() - 2), Exprs(a.begin(), a.end() - 2)});
  made.insert(made.end(), b.end() - 2, b.end());
  return {{made}};
}

/// geqrf(self): the reflectors in the matrix itself, and their factors
Shapes reflectors(const Call& call) {
  const auto a = matrices(call);
  return {a.sizes, withMatrix(a.sizes, {a.least})};
}

/// lu_unpack(LU, pivots, unpack_data, unpack_pivots): what is not asked for is empty.
Shapes unpackedFactors(const Call& call) {
  Shapes made = lu(call);
  for (size_t k = 0; k < made.size(); ++k)
    if (!call.flag(k == 0 ? 3 : 2)) made[k] = Exprs{0};
  return made;
}

}  // namespace

const SymbolicTable& symbolicMatrixRules() {
  static const SymbolicTable table{
      {"aten::mm", matmul<0>},
      {"aten::bmm", matmul<0>},
      {"aten::addmm", added<1>},
      {"aten::_addmm_activation", added<1>},
      {"aten::baddbmm", added<1>},
      {"aten::_int_mm", matmul<0>},
      {"aten::_scaled_mm", matmul<0>},
      {"aten::mv", mv},
      {"aten::addmv", addmv},
      {"aten::dot", dot},
      {"aten::vdot", dot},
      {"aten::addbmm", addbmm},
      {"aten::addr", addr},
      {"aten::linear", linear},
      {"aten::_trilinear", trilinear},
      {"aten::tril", triangle},
      {"aten::triu", triangle},
      {"aten::linalg_cholesky_ex", squareMatrices},
      {"aten::cholesky", squareMatrices},
      {"aten::cholesky_inverse", squareMatrices},
      {"aten::linalg_inv_ex", squareMatrices},
      {"aten::_linalg_eigh", squareMatrices},
      {"aten::linalg_eig", squareMatrices},
      {"aten::_linalg_eigvals", squareMatrices},
      {"aten::_linalg_det", squareMatrices},
      {"aten::_linalg_slogdet", squareMatrices},
      {"aten::linalg_ldl_factor_ex", squareMatrices},
      {"aten::linalg_lu_factor_ex", luFactors},
      {"aten::linalg_lu", lu},
      {"aten::linalg_qr", qr},
      {"aten::_linalg_svd", svd},
      {"aten::_linalg_solve_ex", solved},
      {"aten::linalg_solve_triangular", solvedTriangles<1, 0>},
      {"aten::triangular_solve", solvedTriangles<0, 1>},
      {"aten::_cholesky_solve_helper", solvedTriangles<0, 1>},
      {"aten::linalg_ldl_solve", solvedTriangles<2, 0>},
      {"aten::linalg_lu_solve", solvedTriangles<2, 0>},
      {"aten::lu_unpack", unpackedFactors},
      {"aten::cholesky_solve", choleskySolve},
      {"aten::geqrf", reflectors},
      {"aten::linalg_householder_product", symbolic::like<0>},
      {"aten::ormqr", symbolic::like<2>},
  };
  return table;
}

}  // namespace fusebox::trace
