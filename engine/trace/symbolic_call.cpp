#include "engine/trace/symbolic_call.h"

#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <numeric>

#include "engine/trace/convert.h"
#include "engine/trace/data_sizes.h"
#include "engine/trace/python_number.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_rules.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {

using c10::IValue;
using graph::Compare;
using graph::SymExpr;

SymbolicCall::SymbolicCall(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<IValue> args, std::span<const IValue> results,
                           graph::ShapeEnv& env)
    : op_(op), facts_(facts), args_(args), env_(env) {
  for (auto& r : results) {
    forEachTensor(r, [&](const at::Tensor& t) { results_.emplace_back(t); });
    if (r.isInt()) results_.push_back(r);
  }
}

int SymbolicCall::position(std::string_view argument) const {
  auto& all = op_.schema().arguments();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].name() == argument) return static_cast<int>(i);
  return -1;
}

const IValue* SymbolicCall::find(std::string_view argument) const {
  const int at = position(argument);
  return at < 0 || args_[static_cast<size_t>(at)].isNone() ? nullptr : &args_[static_cast<size_t>(at)];
}

SymbolicGeometry SymbolicCall::geometryOf(const at::Tensor& t) {
  auto* traced = asTrace(t);
  return traced ? traced->geometry() : trace::geometryOf(t);
}

const at::Tensor& SymbolicCall::concrete(const at::Tensor& t) {
  auto* traced = asTrace(t);
  return traced ? traced->meta() : t;
}

SymExpr SymbolicCall::integer(const IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isSymInt())
    if (auto known = exprOf(value.toSymInt())) return *known;
  throw NoSymbolicRule();
}

Exprs SymbolicCall::integers(const IValue& list) {
  if (list.isInt() || list.isSymInt()) return {integer(list)};
  Exprs made;
  want(list.isList());
  for (auto& element : list.toListRef()) made.push_back(integer(element));
  return made;
}

int64_t SymbolicCall::dimension(const IValue& value, size_t rank) const {
  const int64_t d = env_.specialise(integer(value), name());
  return c10::maybe_wrap_dim(d, static_cast<int64_t>(rank));
}

bool SymbolicCall::equal(const SymExpr& a, const SymExpr& b) const { return env_.decide(Compare::Eq, a, b, name()); }
bool SymbolicCall::less(const SymExpr& a, const SymExpr& b) const { return env_.decide(Compare::Lt, a, b, name()); }
bool SymbolicCall::lessEqual(const SymExpr& a, const SymExpr& b) const { return env_.decide(Compare::Le, a, b, name()); }
int64_t SymbolicCall::specialise(const SymExpr& e) const { return env_.specialise(e, name()); }

Exprs SymbolicCall::broadcast(const std::vector<Exprs>& operands) const {
  size_t rank = 0;
  for (auto& o : operands) rank = std::max(rank, o.size());
  Exprs made(rank, SymExpr(1));
  for (auto& o : operands)
    for (size_t d = 0; d < o.size(); ++d) {
      auto& known = made[rank - o.size() + d];
      if (o[d] == SymExpr(1) || o[d] == known) continue;
      if (known == SymExpr(1)) {
        known = o[d];
        continue;
      }
      want(equal(known, o[d]));
      if (o[d].isConstant()) known = o[d];
    }
  return made;
}

bool anySymbolic(c10::ArrayRef<IValue> args) {
  return std::any_of(args.begin(), args.end(), [](const IValue& a) {
    bool any = isSymbolic(a);
    forEachTensor(a, [&](const at::Tensor& t) {
      auto* traced = asTrace(t);
      any |= traced ? traced->symbolic() != nullptr : symbolicNumber(t).has_value();
    });
    return any;
  });
}

void specialiseAll(c10::ArrayRef<IValue> args, graph::ShapeEnv& env, std::string_view who) {
  auto number = [&](const SymExpr& e) { env.specialise(e, who); };
  auto value = [&](const IValue& v) {
    if (v.isSymInt()) {
      if (auto known = exprOf(v.toSymInt())) number(*known);
      else v.toSymInt().guard_int(__FILE__, __LINE__);
    } else if (v.isSymBool()) {
      v.toSymBool().guard_bool(__FILE__, __LINE__);
    } else if (v.isSymFloat() && isSymbolic(v)) {
      v.toSymFloat().guard_float(__FILE__, __LINE__);
    }
  };
  for (auto& a : args) {
    value(a);
    if (a.isList() && !a.isIntList() && !a.isTensorList())
      for (auto& element : a.toListRef()) value(element);
    forEachTensor(a, [&](const at::Tensor& t) {
      auto* traced = asTrace(t);
      if (auto node = symbolicNumber(t)) {
        if (auto known = exprOf(*node)) number(*known);
        return;
      }
      if (!traced && t.device().is_meta() && t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
        for (auto& n : t.sym_sizes()) value(IValue(n));
        for (auto& n : t.sym_strides()) value(IValue(n));
      }
      if (!traced || !traced->symbolic()) return;
      for (auto& e : traced->symbolic()->sizes) number(e);
      for (auto& e : traced->symbolic()->strides) number(e);
      number(traced->symbolic()->offset);
    });
  }
}

namespace {

/// Whether 1, and 0 where it may be that, are sizes like others for it: data decide it, or somebody said so of an input.
bool mayBeAny(const SymExpr& size, const graph::ShapeEnv& env) {
  const std::vector<graph::Symbol> symbols = size.symbols();
  return env.isOfData(size) || std::all_of(symbols.begin(), symbols.end(), [](graph::Symbol s) { return s.lower() == 0 || s.lower() == 1; });
}

}  // namespace

SymExpr settledSize(const SymExpr& e, graph::ShapeEnv& env, std::string_view who) {
  SymExpr size = env.simplify(e);
  if (size.isConstant() || mayBeAny(size, env)) return size;
  if (env.hint(size) < 2) return env.specialise(size, who);
  env.decide(Compare::Le, 2, size, who);
  return env.simplify(size);
}

namespace {

/// A stride of a dimension of size 1 that the sizes do not explain is an argument's, where one has it there.
SymExpr strideOfArgument(c10::ArrayRef<IValue> args, const at::Tensor& concrete, size_t dim, const graph::ShapeEnv& env) {
  const int64_t stride = concrete.stride(static_cast<int64_t>(dim));
  SymExpr made = stride;
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      auto* traced = asTrace(t);
      if (!made.isConstant() || !traced || !traced->symbolic() || traced->symbolic()->strides.size() != static_cast<size_t>(concrete.dim())) return;
      auto& known = traced->symbolic()->strides[dim];
      if (env.hint(known) == stride) made = known;
    });
  return made;
}

/// Row-major-like strides in the order that `concrete` has them: a dense tensor's are products of the sizes inside of them.
std::optional<Exprs> denseStrides(const Exprs& sizes, const at::Tensor& concrete, c10::ArrayRef<IValue> args, const graph::ShapeEnv& env) {
  const size_t rank = sizes.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  // A dimension of size 1 has any stride: it goes where its stride says, before those of the same stride.
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const auto a = static_cast<int64_t>(x), b = static_cast<int64_t>(y);
    if (concrete.stride(a) != concrete.stride(b)) return concrete.stride(a) < concrete.stride(b);
    return concrete.size(a) == 1 && concrete.size(b) != 1;
  });
  Exprs made(rank);
  Exprs products{1};  // what a stride may be
  SymExpr running = 1;
  for (size_t d : order) {
    if (concrete.size(static_cast<int64_t>(d)) == 1) continue;
    if (env.hint(running) != concrete.stride(static_cast<int64_t>(d))) return std::nullopt;
    made[d] = running;
    if (sizes[d] != SymExpr(0)) running *= sizes[d];
    products.push_back(running);
  }
  for (size_t d = 0; d < rank; ++d) {
    if (concrete.size(static_cast<int64_t>(d)) != 1) continue;
    // By convention the product of what lies inside: the last dimensions first, then any.
    const int64_t stride = concrete.stride(static_cast<int64_t>(d));
    SymExpr inner = 1;
    for (size_t i = d + 1; i < rank; ++i) inner *= sizes[i];
    auto found = std::find_if(products.rbegin(), products.rend(), [&](const SymExpr& e) { return env.hint(e) == stride; });
    if (env.hint(inner) == stride) made[d] = inner;
    else made[d] = found == products.rend() ? strideOfArgument(args, concrete, d, env) : *found;
  }
  return made;
}

Recorder::Geometry finished(ResultShape shape, const at::Tensor& concrete, c10::ArrayRef<IValue> args, graph::ShapeEnv& env, std::string_view who) {
  SymbolicCall::want(static_cast<int64_t>(shape.sizes.size()) == concrete.dim());
  for (size_t d = 0; d < shape.sizes.size(); ++d) {
    SymbolicCall::want(env.hint(shape.sizes[d]) == concrete.size(static_cast<int64_t>(d)));
    shape.sizes[d] = settledSize(shape.sizes[d], env, who);
  }
  SymbolicGeometry made;
  if (!shape.strides) shape.strides = denseStrides(shape.sizes, concrete, args, env);
  SymbolicCall::want(shape.strides.has_value());
  made.sizes = std::move(shape.sizes);
  for (auto& s : *shape.strides) made.strides.push_back(env.simplify(s));
  made.offset = env.simplify(shape.offset);
  SymbolicCall::want(fits(made, concrete, env));
  if (!made.symbolic()) return nullptr;
  return std::make_shared<const SymbolicGeometry>(std::move(made));
}

/// New memory lies in the order of an argument's strides (of equal ones, of its sizes): that order is the same at all sizes.
void settleOrder(const SymbolicGeometry& g, graph::ShapeEnv& env, std::string_view who) {
  std::vector<size_t> order;
  for (size_t d = g.sizes.size(); d-- > 0;)
    if (g.sizes[d] != SymExpr(1)) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto x = env.hint(g.strides[a]), y = env.hint(g.strides[b]);
    return x != y ? x < y : env.hint(g.sizes[a]) < env.hint(g.sizes[b]);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const size_t a = order[i - 1], b = order[i];
    if (env.decide(Compare::Lt, g.strides[a], g.strides[b], who)) continue;
    env.decide(Compare::Eq, g.strides[a], g.strides[b], who);
    // Of equal sizes the later dimension lies inside.
    if (g.strides[a] != SymExpr(0)) env.decide(a > b ? Compare::Le : Compare::Lt, g.sizes[a], g.sizes[b], who);
  }
}

void settleOrders(c10::ArrayRef<IValue> args, graph::ShapeEnv& env, std::string_view who) {
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      auto* traced = asTrace(t);
      if (traced && traced->symbolic()) settleOrder(*traced->symbolic(), env, who);
    });
}

/// Where a result is an argument itself (in place), it keeps what it has.
Recorder::Geometry ofArgument(c10::ArrayRef<IValue> args, const at::Tensor& result, bool& found) {
  Recorder::Geometry known;
  for (auto& a : args)
    forEachTensor(a, [&](const at::Tensor& t) {
      auto* traced = asTrace(t);
      if (!traced || traced->meta().unsafeGetTensorImpl() != result.unsafeGetTensorImpl()) return;
      found = true;
      known = traced->symbolic();
    });
  return known;
}

}  // namespace

std::vector<Recorder::Geometry> symbolicResults(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<IValue> args,
                                                std::span<IValue> results, graph::ShapeEnv& env) {
  const SymbolicCall call(op, facts, args, results, env);
  std::vector<Recorder::Geometry> made;
  std::vector<std::optional<SymExpr>> scalars;
  bool known = false;
  if (auto rule = findSymbolicRule(facts)) try {
      auto shapes = rule(call);
      SymbolicCall::want(shapes.size() == call.results());
      if (std::any_of(shapes.begin(), shapes.end(), [](const ResultShape& r) { return !r.strides && !r.scalar && r.sizes.size() > 1; }))
        settleOrders(args, env, facts.name);
      for (size_t k = 0; k < shapes.size(); ++k) {
        if (call.isScalar(k)) {
          SymbolicCall::want(shapes[k].scalar.has_value());
          scalars.push_back(shapes[k].scalar);
          continue;
        }
        bool isArgument = false;
        auto kept = ofArgument(args, call.result(k), isArgument);
        if (isArgument && kept && fits(*kept, call.result(k), env)) made.push_back(kept);
        else made.push_back(finished(std::move(shapes[k]), call.result(k), args, env, facts.name));
      }
      known = true;
    } catch (const NoSymbolicRule&) {
    }
  if (!known) {
    if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: sizes given to %s are constants: %s\n", facts.name.c_str(), findSymbolicRule(facts) ? "its rule does not fit" : "it has no rule");
    specialiseAll(args, env, facts.name);
    return {};
  }
  size_t next = 0;
  for (auto& r : results)
    if (r.isInt()) r = IValue(toSymInt(*scalars[next++], env));
  return made;
}

}  // namespace fusebox::trace
