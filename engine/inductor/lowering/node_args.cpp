#include "engine/inductor/lowering/node_args.h"

#include <fmt/format.h>

namespace fusebox::inductor {
namespace {

std::optional<int64_t> integerOf(const graph::Argument& a) {
  if (const auto* i = a.as<int64_t>()) return *i;
  if (const auto* b = a.as<bool>()) return *b;
  if (const auto* e = a.as<graph::SymExpr>()) return e->maybeConstant();
  return std::nullopt;
}

[[noreturn]] void refuse(size_t i, const char* wanted, const graph::Argument& a) {
  throw NotLowered(fmt::format("argument {} is ", i) + a.str() + ", not " + wanted);
}

}  // namespace

const graph::Argument& NodeArgs::at(size_t i) const {
  static const graph::Argument none;
  return i < node_.args.size() ? node_.args[i] : none;
}

graph::ValueRef NodeArgs::ref(size_t i) const {
  if (const auto* v = at(i).as<graph::ValueRef>()) return *v;
  refuse(i, "a tensor", at(i));
}

std::vector<graph::ValueRef> NodeArgs::refs(size_t i) const {
  const auto* list = at(i).as<graph::ArgumentList>();
  if (!list) refuse(i, "a list of tensors", at(i));
  std::vector<graph::ValueRef> out;
  for (const auto& a : *list) {
    const auto* v = a.as<graph::ValueRef>();
    if (!v) refuse(i, "a list of tensors", at(i));
    out.push_back(*v);
  }
  return out;
}

double NodeArgs::number(size_t i) const {
  if (const auto* d = at(i).as<double>()) return *d;
  if (auto v = integerOf(at(i))) return static_cast<double>(*v);
  refuse(i, "a known number", at(i));
}

int64_t NodeArgs::integer(size_t i) const {
  if (auto v = integerOf(at(i))) return *v;
  refuse(i, "a known integer", at(i));
}

bool NodeArgs::boolean(size_t i) const {
  if (isNone(i)) return false;
  return integer(i) != 0;
}

std::string NodeArgs::text(size_t i) const {
  if (const auto* s = at(i).as<std::string>()) return *s;
  refuse(i, "a string", at(i));
}

graph::SymExpr NodeArgs::expr(size_t i) const {
  if (const auto* e = at(i).as<graph::SymExpr>()) return *e;
  return integer(i);
}

std::vector<graph::SymExpr> NodeArgs::exprs(size_t i) const {
  const auto* list = at(i).as<graph::ArgumentList>();
  if (!list) {
    if (isNone(i)) return {};
    return {expr(i)};
  }
  std::vector<graph::SymExpr> out;
  for (const auto& a : *list) {
    if (const auto* e = a.as<graph::SymExpr>()) out.push_back(*e);
    else if (auto v = integerOf(a)) out.emplace_back(*v);
    else refuse(i, "a list of integers", at(i));
  }
  return out;
}

std::vector<int64_t> NodeArgs::integers(size_t i) const {
  std::vector<int64_t> out;
  for (const auto& e : exprs(i)) {
    auto v = e.maybeConstant();
    if (!v) refuse(i, "a list of known integers", at(i));
    out.push_back(*v);
  }
  return out;
}

graph::DType NodeArgs::scalarType(size_t i) const {
  const graph::Argument& a = at(i);
  if (a.as<bool>()) return graph::DType::Bool;
  if (a.as<double>()) return graph::DType::Float64;
  if (a.as<int64_t>() || a.as<graph::SymExpr>()) return graph::DType::Int64;
  refuse(i, "a number", a);
}

int64_t wrapDim(int64_t dim, size_t rank) {
  auto n = static_cast<int64_t>(rank == 0 ? 1 : rank);
  return dim < 0 ? dim + n : dim;
}

}  // namespace fusebox::inductor
