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

Shapes triangle(const Call& call) { return symbolic::sameAs(call, 0); }

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
      {"aten::tril", triangle},
      {"aten::triu", triangle},
  };
  return table;
}

}  // namespace fusebox::trace
