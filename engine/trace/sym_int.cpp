#include "engine/trace/sym_int.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/graph/operator_facts.h"
#include "engine/trace/break_error.h"
#include "engine/trace/python_number.h"

namespace fusebox::trace {

using c10::SymNode;
using c10::SymNodeImpl;
using graph::Compare;
using graph::NumberExpr;
using graph::ShapeEnv;
using graph::SymExpr;
using Env = std::shared_ptr<ShapeEnv>;

namespace {

/// Operators of libtorch that give the same for none and one of what data count, whichever way they go on.
bool goesEitherWay(std::string_view who) {
  static constexpr std::string_view kNames[] = {"aten::reshape", "aten::broadcast_tensors", "aten::tril", "aten::triu", "aten::one_hot"};
  return std::find(std::begin(kNames), std::end(kNames), who) != std::end(kNames) || (who.starts_with("aten::") && graph::factsOf(std::string(who)).pointwise);
}

bool decide(graph::ShapeEnv& env, Compare op, const SymExpr& a, const SymExpr& b) {
  const std::string_view who = AskedBy::now();
  if ((env.isOfData(a) || env.isOfData(b)) && goesEitherWay(who))
    if (const auto usual = env.usually(op, a, b)) return *usual;
  return env.decide(op, a, b, who);
}

thread_local std::string_view theAsker;

enum class Kind : uint8_t { Int, Bool, Float };

/// What integers, bools and floats have in common: their kind and the env.
class Node : public SymNodeImpl {
 public:
  Node(Kind kind, Env env) : kind_(kind), env_(std::move(env)) {}
  bool is_int() override { return kind_ == Kind::Int; }
  bool is_bool() override { return kind_ == Kind::Bool; }
  bool is_float() override { return kind_ == Kind::Float; }
  bool has_hint() override { return true; }
  SymNode wrap_int(int64_t value) override;
  SymNode wrap_float(double value) override;
  SymNode wrap_bool(bool value) override;
  Kind kind() const { return kind_; }
  const Env& env() const { return env_; }

 protected:
  /// Before anything that needs more than a proof.
  void wantOpen() const {
    if (env_->closed()) raiseBreak(BreakKind::FinishedTrace, "a size of a finished trace is used", "do not keep it in globals");
  }

 private:
  Kind kind_;
  Env env_;
};

SymNode makeInt(SymExpr e, const Env& env);

class BoolNode final : public Node {
 public:
  enum class Form : uint8_t { Constant, Relation, And, Or, Not };
  BoolNode(Env env, bool value) : Node(Kind::Bool, std::move(env)), form_(Form::Constant), value_(value) {}
  BoolNode(Env env, Compare op, SymExpr a, SymExpr b)
      : Node(Kind::Bool, std::move(env)), form_(Form::Relation), op_(op), a_(std::move(a)), b_(std::move(b)) {}
  BoolNode(Env env, Form form, SymNode x, SymNode y) : Node(Kind::Bool, std::move(env)), form_(form), x_(std::move(x)), y_(std::move(y)) {}

  static SymNode make(const Env& env, bool value) { return c10::make_intrusive<BoolNode>(env, value); }
  static SymNode make(const Env& env, Compare op, const SymExpr& a, const SymExpr& b) {
    if (auto known = env->provable(op, a, b)) return make(env, *known);
    return c10::make_intrusive<BoolNode>(env, op, a, b);
  }
  static const BoolNode& of(const SymNode& node) {
    auto* known = dynamic_cast<BoolNode*>(node.get());
    TORCH_CHECK(known, "a symbolic bool was expected, not ", node->str());
    return *known;
  }

  SymNode sym_or(const SymNode& other) override { return joined(Form::Or, other); }
  SymNode sym_and(const SymNode& other) override { return joined(Form::And, other); }
  SymNode sym_not() override {
    if (auto known = proven()) return make(env(), !*known);
    return c10::make_intrusive<BoolNode>(env(), Form::Not, SymNode::reclaim_copy(this), SymNode());
  }
  SymNode eq(const SymNode& other) override { return make(env(), guard() == of(other).guard()); }
  SymNode ne(const SymNode& other) override { return make(env(), guard() != of(other).guard()); }
  SymNode sym_ite(const SymNode& yes, const SymNode& no) override { return guard() ? yes : no; }
  SymNode sym_float() override { return wrap_float(guard()); }
  SymNode clone() override { return SymNode::reclaim_copy(this); }
  bool guard_bool(const char*, int64_t) override { return guard(); }
  int64_t guard_int(const char*, int64_t) override { return guard(); }
  bool bool_() override { return guard(); }
  int64_t int_() override { return guard(); }
  bool guard_size_oblivious(const char*, int64_t) override { return guard(); }
  // Where data decide, libtorch has a way for both answers.
  bool guard_or_false(const char*, int64_t) override { return isOfData() ? proven().value_or(false) : guard(); }
  bool guard_or_true(const char*, int64_t) override { return isOfData() ? proven().value_or(true) : guard(); }
  bool expect_true(const char*, int64_t) override {
    if (isOfData() && !proven() && !hint()) refuseAssumption();
    return guard();
  }
  bool statically_known_true(const char*, int64_t) override { return proven().value_or(false); }
  std::optional<bool> constant_bool() override { return form_ == Form::Constant ? std::optional(value_) : std::nullopt; }
  bool is_constant() override { return form_ == Form::Constant; }
  bool is_symbolic() override { return form_ != Form::Constant; }
  std::string str() override {
    switch (form_) {
      case Form::Constant: return value_ ? "True" : "False";
      case Form::Relation: return fmt::format("{} {} {}", a_.str(), graph::name(op_), b_.str());
      case Form::Not: return "not (" + x_->str() + ")";
      default: return "(" + x_->str() + (form_ == Form::And ? ") and (" : ") or (") + y_->str() + ")";
    }
  }

  /// A break: what does not hold by the values at capture may well hold in a call.
  void refuseAssumption() const {
    const SymExpr what = form_ == Form::Relation ? a_ - b_ : SymExpr(env()->dataSymbols().front());
    env()->specialise(what, AskedBy::now());
  }
  bool isOfData() const {
    if (env()->dataSymbols().empty() || form_ == Form::Constant) return false;
    if (form_ == Form::Relation) return env()->isOfData(a_) || env()->isOfData(b_);
    return of(x_).isOfData() || (y_ && of(y_).isOfData());
  }
  bool hint() const {
    switch (form_) {
      case Form::Constant: return value_;
      case Form::Relation: return graph::holds(op_, env()->hint(a_), env()->hint(b_));
      case Form::And: return of(x_).hint() && of(y_).hint();
      case Form::Or: return of(x_).hint() || of(y_).hint();
      case Form::Not: return !of(x_).hint();
    }
    return false;
  }
  std::optional<bool> proven() const {
    switch (form_) {
      case Form::Constant: return value_;
      case Form::Relation: return env()->provable(op_, a_, b_);
      case Form::Not: {
        auto x = of(x_).proven();
        return x ? std::optional(!*x) : std::nullopt;
      }
      default: {
        const bool decisive = form_ == Form::Or;
        auto x = of(x_).proven(), y = of(y_).proven();
        if ((x && *x == decisive) || (y && *y == decisive)) return decisive;
        return x && y ? std::optional(!decisive) : std::nullopt;
      }
    }
  }
  /// The truth; what it depends on becomes a guard. Of several reasons for an answer one is enough.
  bool guard() const {
    if (auto known = proven()) return *known;
    wantOpen();
    switch (form_) {
      case Form::Constant: return value_;
      case Form::Relation: return decide(*env(), op_, a_, b_);
      case Form::Not: return !of(x_).guard();
      default: {
        const bool decisive = form_ == Form::Or;
        if (hint() != decisive) {
          of(x_).guard();
          of(y_).guard();
          return !decisive;
        }
        (of(x_).hint() == decisive ? of(x_) : of(y_)).guard();
        return decisive;
      }
    }
  }

 private:
  SymNode joined(Form form, const SymNode& other) {
    const bool decisive = form == Form::Or;
    auto x = proven(), y = of(other).proven();
    if ((x && *x == decisive) || (y && *y == decisive)) return make(env(), decisive);
    if (x) return other;
    if (y) return SymNode::reclaim_copy(this);
    return c10::make_intrusive<BoolNode>(env(), form, SymNode::reclaim_copy(this), other);
  }

  Form form_;
  bool value_ = false;
  Compare op_ = Compare::Eq;
  SymExpr a_, b_;
  SymNode x_, y_;
};

/// a / b, which is either exact (b a power of two, as of sizes times a scale like 0.5) or a single rounded division of integers.
struct Ratio {
  SymExpr a, b;
  bool exact = false;
};

constexpr int64_t kExactBits = 20;

/// A number of few binary digits after the point as a ratio.
std::optional<Ratio> ratioOf(double value) {
  if (!std::isfinite(value) || std::abs(value) > 1e9) return std::nullopt;
  const double scale = static_cast<double>(int64_t{1} << kExactBits);
  if (value * scale != std::floor(value * scale)) return std::nullopt;
  auto a = static_cast<int64_t>(value * scale);
  int64_t b = int64_t{1} << kExactBits;
  while (b > 1 && a % 2 == 0) a /= 2, b /= 2;
  return Ratio{a, b, true};
}

class FloatNode final : public Node {
 public:
  FloatNode(Env env, double value, NumberExpr number, std::optional<Ratio> ratio)
      : Node(Kind::Float, std::move(env)), value_(value), number_(std::move(number)), ratio_(std::move(ratio)) {
    number_.forEachInt([this](const SymExpr& e) {
      if (!e.isConstant() && std::find(from_.begin(), from_.end(), e) == from_.end()) from_.push_back(e);
    });
  }

  static SymNode constant(const Env& env, double value) { return c10::make_intrusive<FloatNode>(env, value, graph::floatOf(value), ratioOf(value)); }
  static SymNode ofInt(const Env& env, const SymExpr& e) {
    return c10::make_intrusive<FloatNode>(env, static_cast<double>(env->hint(e)), graph::floatOf(e), Ratio{e, 1, true});
  }
  static SymNode ofNumber(const Env& env, const NumberExpr& number) {
    const auto value = graph::evaluateFloat(number, [&](graph::Symbol s) -> std::optional<int64_t> { return env->hint(SymExpr(s)); });
    TORCH_CHECK_VALUE(value, number.text(), " has no value");
    std::optional<Ratio> ratio;
    if (number.kind == NumberExpr::Kind::ToFloat) ratio = Ratio{number.a, 1, true};
    return c10::make_intrusive<FloatNode>(env, *value, number, std::move(ratio));
  }
  static SymNode quotient(const Env& env, const SymExpr& a, const SymExpr& b);
  /// `node` as a float, whatever of ours it is.
  static c10::intrusive_ptr<FloatNode> of(const SymNode& node, const Env& env);

  double hint() const { return value_; }
  const std::vector<SymExpr>& from() const { return from_; }
  const NumberExpr& number() const { return number_; }

  SymNode add(const SymNode& o) override { return binary(Made::Add, o, [](double a, double b) { return a + b; }); }
  SymNode sub(const SymNode& o) override { return binary(Made::Subtract, o, [](double a, double b) { return a - b; }); }
  SymNode mul(const SymNode& o) override { return binary(Made::Multiply, o, [](double a, double b) { return a * b; }); }
  SymNode truediv(const SymNode& o) override { return binary(Made::Divide, o, [](double a, double b) { return a / b; }); }
  SymNode pow(const SymNode& o) override { return binary(Made::Power, o, [](double a, double b) { return std::pow(a, b); }); }
  SymNode floordiv(const SymNode& o) override { return binary(Made::FloorDivide, o, [](double a, double b) { return std::floor(a / b); }); }
  SymNode mod(const SymNode& o) override { return binary(Made::Remainder, o, [](double a, double b) { return a - b * std::floor(a / b); }); }
  SymNode sym_min(const SymNode& o) override { return binary(Made::Minimum, o, [](double a, double b) { return std::min(a, b); }); }
  SymNode sym_max(const SymNode& o) override { return binary(Made::Maximum, o, [](double a, double b) { return std::max(a, b); }); }
  SymNode neg() override {
    std::optional<Ratio> ratio;
    if (ratio_) ratio = Ratio{ratio_->a * -1, ratio_->b, ratio_->exact};
    return c10::make_intrusive<FloatNode>(env(), -value_, graph::floatOf(Made::Negate, number_), std::move(ratio));
  }
  SymNode eq(const SymNode& o) override { return compared(Compare::Eq, o, false, [](double a, double b) { return a == b; }); }
  SymNode ne(const SymNode& o) override { return compared(Compare::Ne, o, false, [](double a, double b) { return a != b; }); }
  SymNode lt(const SymNode& o) override { return compared(Compare::Lt, o, false, [](double a, double b) { return a < b; }); }
  SymNode le(const SymNode& o) override { return compared(Compare::Le, o, false, [](double a, double b) { return a <= b; }); }
  SymNode gt(const SymNode& o) override { return compared(Compare::Lt, o, true, [](double a, double b) { return a > b; }); }
  SymNode ge(const SymNode& o) override { return compared(Compare::Le, o, true, [](double a, double b) { return a >= b; }); }
  SymNode floor() override {
    if (ratio_) return makeInt(graph::floorDiv(ratio_->a, ratio_->b), env());
    return makeInt(static_cast<int64_t>(std::floor(guard())), env());
  }
  SymNode ceil() override {
    if (ratio_) return makeInt(graph::floorDiv(ratio_->a * -1, ratio_->b) * -1, env());
    return makeInt(static_cast<int64_t>(std::ceil(guard())), env());
  }
  SymNode sym_float() override { return SymNode::reclaim_copy(this); }
  SymNode clone() override { return SymNode::reclaim_copy(this); }
  double guard_float(const char*, int64_t) override { return guard(); }
  bool is_constant() override { return from_.empty(); }
  bool is_symbolic() override { return !from_.empty(); }
  std::string str() override { return number_.text(); }

 private:
  using Made = NumberExpr::Kind;
  double guard() const {
    for (auto& e : from_)
      if (!env()->simplify(e).isConstant()) {
        wantOpen();
        env()->specialise(e, AskedBy::now());
      }
    return value_;
  }
  SymNode binary(Made kind, const SymNode& other, double (*compute)(double, double)) {
    auto o = of(other, env());
    std::optional<Ratio> ratio;
    if (ratio_ && o->ratio_ && ratio_->exact && o->ratio_->exact) {
      const Ratio &x = *ratio_, &y = *o->ratio_;
      if (kind == Made::Add) ratio = Ratio{x.a * y.b + y.a * x.b, x.b * y.b, true};
      if (kind == Made::Subtract) ratio = Ratio{x.a * y.b - y.a * x.b, x.b * y.b, true};
      if (kind == Made::Multiply) ratio = Ratio{x.a * y.a, x.b * y.b, true};
      // One rounded division of exact numbers.
      if (kind == Made::Divide && env()->provable(Compare::Lt, 0, y.a) == true) ratio = Ratio{x.a * y.b, x.b * y.a, false};
      if (ratio && ratio->exact && !(ratio->b.isConstant() && ratio->b.constant() <= (int64_t{1} << kExactBits))) ratio.reset();
    }
    return c10::make_intrusive<FloatNode>(env(), compute(value_, o->value_), graph::floatOf(kind, number_, o->number_), std::move(ratio));
  }
  SymNode compared(Compare op, const SymNode& other, bool swapped, bool (*compute)(double, double)) {
    auto o = of(other, env());
    if (ratio_ && o->ratio_ && ratio_->exact && o->ratio_->exact) {
      SymExpr a = ratio_->a * o->ratio_->b, b = o->ratio_->a * ratio_->b;
      return swapped ? BoolNode::make(env(), op, b, a) : BoolNode::make(env(), op, a, b);
    }
    return BoolNode::make(env(), compute(guard(), o->guard()));
  }

  double value_;
  NumberExpr number_;
  std::vector<SymExpr> from_;  ///< the ints in it that are not constant
  std::optional<Ratio> ratio_;
};

class IntNode final : public Node {
 public:
  IntNode(Env env, SymExpr e) : Node(Kind::Int, std::move(env)), e_(std::move(e)) {}
  const SymExpr& expr() const { return e_; }

  SymNode add(const SymNode& o) override { return isFloat(o) ? sym_float()->add(o) : made(e_ + other(o)); }
  SymNode sub(const SymNode& o) override { return isFloat(o) ? sym_float()->sub(o) : made(e_ - other(o)); }
  SymNode mul(const SymNode& o) override { return isFloat(o) ? sym_float()->mul(o) : made(e_ * other(o)); }
  SymNode truediv(const SymNode& o) override { return isFloat(o) ? sym_float()->truediv(o) : FloatNode::quotient(env(), e_, other(o)); }
  SymNode floordiv(const SymNode& o) override {
    if (isFloat(o)) return sym_float()->floordiv(o);
    const SymExpr d = other(o);
    wantDivisor(d);
    return made(graph::floorDiv(e_, d));
  }
  SymNode mod(const SymNode& o) override {
    if (isFloat(o)) return sym_float()->mod(o);
    const SymExpr d = other(o);
    wantDivisor(d);
    return made(graph::mod(e_, d));
  }
  SymNode pow(const SymNode& o) override {
    constexpr int64_t kFactors = 16;
    if (isFloat(o)) return sym_float()->pow(o);
    const SymExpr power = env()->simplify(other(o));
    if (power.isConstant() && power.constant() >= 0 && power.constant() <= kFactors) {
      SymExpr result = 1;
      for (int64_t i = 0; i < power.constant(); ++i) result *= e_;
      return made(result);
    }
    if (power.isConstant() && power.constant() < 0) return sym_float()->pow(FloatNode::ofInt(env(), power));
    int64_t base = specialised(e_), exponent = specialised(power), result = 1;
    if (exponent < 0) return FloatNode::constant(env(), std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    for (int64_t i = 0; i < exponent; ++i) TORCH_CHECK(!__builtin_mul_overflow(result, base, &result), "an integer power does not fit 64 bits");
    return made(result);
  }
  SymNode neg() override { return made(e_ * -1); }
  SymNode ceil() override { return clone(); }
  SymNode floor() override { return clone(); }
  SymNode sym_min(const SymNode& o) override { return isFloat(o) ? sym_float()->sym_min(o) : made(extreme(o, false)); }
  SymNode sym_max(const SymNode& o) override { return isFloat(o) ? sym_float()->sym_max(o) : made(extreme(o, true)); }
  SymNode eq(const SymNode& o) override { return isFloat(o) ? sym_float()->eq(o) : BoolNode::make(env(), Compare::Eq, e_, other(o)); }
  SymNode ne(const SymNode& o) override { return isFloat(o) ? sym_float()->ne(o) : BoolNode::make(env(), Compare::Ne, e_, other(o)); }
  SymNode lt(const SymNode& o) override { return isFloat(o) ? sym_float()->lt(o) : BoolNode::make(env(), Compare::Lt, e_, other(o)); }
  SymNode le(const SymNode& o) override { return isFloat(o) ? sym_float()->le(o) : BoolNode::make(env(), Compare::Le, e_, other(o)); }
  SymNode gt(const SymNode& o) override { return isFloat(o) ? sym_float()->gt(o) : BoolNode::make(env(), Compare::Lt, other(o), e_); }
  SymNode ge(const SymNode& o) override { return isFloat(o) ? sym_float()->ge(o) : BoolNode::make(env(), Compare::Le, other(o), e_); }
  SymNode sym_float() override { return FloatNode::ofInt(env(), e_); }
  SymNode clone() override { return SymNode::reclaim_copy(this); }
  int64_t guard_int(const char*, int64_t) override { return specialised(e_); }
  bool guard_bool(const char*, int64_t) override { return decided(Compare::Ne, e_, 0); }
  double guard_float(const char*, int64_t) override { return static_cast<double>(specialised(e_)); }
  int64_t int_() override { return specialised(e_); }
  bool bool_() override { return decided(Compare::Ne, e_, 0); }
  std::string str() override { return e_.str(); }
  std::optional<int64_t> constant_int() override { return e_.maybeConstant(); }
  std::optional<int64_t> maybe_as_int() override { return e_.maybeConstant(); }
  bool is_constant() override { return e_.isConstant(); }
  bool is_symbolic() override { return !e_.isConstant(); }

  SymNode is_contiguous(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return dense(sizes, strides, rowMajor(sizes.size()));
  }
  SymNode is_channels_last_contiguous_2d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return sizes.size() == 4 ? dense(sizes, strides, {1, 3, 2, 0}) : wrap_bool(false);
  }
  SymNode is_channels_last_contiguous_3d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return sizes.size() == 5 ? dense(sizes, strides, {1, 4, 3, 2, 0}) : wrap_bool(false);
  }
  SymNode is_channels_last_strides_2d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return sizes.size() == 4 ? ordered(sizes, strides, {1, 3, 2, 0}) : wrap_bool(false);
  }
  SymNode is_channels_last_strides_3d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return sizes.size() == 5 ? ordered(sizes, strides, {1, 4, 3, 2, 0}) : wrap_bool(false);
  }
  SymNode is_non_overlapping_and_dense(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    auto order = rowMajor(sizes.size());
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return env()->hint(other(strides[x])) < env()->hint(other(strides[y])); });
    // A dimension of size 1 may have any stride.
    std::stable_partition(order.begin(), order.end(), [&](int d) { return env()->hint(other(sizes[d])) == 1; });
    return dense(sizes, strides, order);
  }

 private:
  static bool isFloat(const SymNode& node) { return node->is_float(); }
  /// Another operand as an expression; bools count as their numbers.
  SymExpr other(const SymNode& node) const {
    if (auto* known = dynamic_cast<IntNode*>(node.get())) return known->e_;
    if (auto* known = dynamic_cast<BoolNode*>(node.get())) return int64_t{known->guard()};
    if (auto constant = node->constant_int()) return *constant;
    TORCH_CHECK(false, "a symbolic integer of another kind meets one of this trace: ", node->str());
  }
  SymNode made(const SymExpr& e) const { return makeInt(e, env()); }
  bool decided(Compare op, const SymExpr& a, const SymExpr& b) const {
    if (auto known = env()->provable(op, a, b)) return *known;
    wantOpen();
    return decide(*env(), op, a, b);
  }
  int64_t specialised(const SymExpr& e) const {
    if (e.isConstant()) return e.constant();
    if (!env()->simplify(e).isConstant()) wantOpen();
    return env()->specialise(e, AskedBy::now());
  }
  void wantDivisor(const SymExpr& d) const {
    TORCH_CHECK_VALUE(!decided(Compare::Eq, d, 0), "ZeroDivisionError: integer modulo by zero");
    if (!d.isConstant() && !env()->provable(Compare::Lt, 0, d)) decided(Compare::Lt, 0, d);
  }
  SymExpr extreme(const SymNode& node, bool greater) const {
    const SymExpr o = other(node);
    if (auto less = env()->provable(Compare::Le, e_, o)) return *less == greater ? o : e_;
    return greater ? graph::max(e_, o) : graph::min(e_, o);
  }
  static std::vector<int> rowMajor(size_t n) {
    std::vector<int> order;
    for (size_t d = n; d-- > 0;) order.push_back(static_cast<int>(d));
    return order;
  }
  SymNode dense(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides, const std::vector<int>& order) {
    SymNode all = BoolNode::make(env(), true);
    SymExpr running = 1;
    for (int d : order) {
      const SymExpr size = other(sizes[d]);
      if (size == SymExpr(0)) return BoolNode::make(env(), true);
      if (size == SymExpr(1)) continue;
      all = all->sym_and(BoolNode::make(env(), Compare::Eq, other(strides[d]), running));
      if (all->constant_bool() == false) return all;
      running *= size;
    }
    return all;
  }
  /// As libtorch's test of strides alone: each is at least what lies inside of it.
  SymNode ordered(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides, const std::vector<int>& order) {
    SymExpr least = 0;
    SymNode all = BoolNode::make(env(), true);
    if (other(strides[1]) == SymExpr(0)) return BoolNode::make(env(), false);
    for (int d : order) {
      const SymExpr size = other(sizes[d]), stride = other(strides[d]);
      if (size == SymExpr(0)) return BoolNode::make(env(), false);
      all = all->sym_and(BoolNode::make(env(), Compare::Le, least, stride));
      // N111 and the like are not taken for channels last.
      if (d == 0) all = all->sym_and(BoolNode::make(env(), Compare::Ne, least, other(strides[1])));
      if (all->constant_bool() == false) return all;
      least = stride;
      if (size != SymExpr(1)) least = stride * size;
    }
    return all;
  }

  SymExpr e_;
};

SymNode makeInt(SymExpr e, const Env& env) { return c10::make_intrusive<IntNode>(env, std::move(e)); }

SymNode Node::wrap_int(int64_t value) { return makeInt(value, env_); }
SymNode Node::wrap_float(double value) { return FloatNode::constant(env_, value); }
SymNode Node::wrap_bool(bool value) { return BoolNode::make(env_, value); }

SymNode FloatNode::quotient(const Env& env, const SymExpr& a, const SymExpr& b) {
  const auto divisor = static_cast<double>(env->hint(b));
  TORCH_CHECK_VALUE(divisor != 0, "ZeroDivisionError: division by zero");
  std::optional<Ratio> ratio;
  if (env->provable(Compare::Lt, 0, b) == true) {
    const bool exact = b.isConstant() && b.constant() <= (int64_t{1} << kExactBits) && (b.constant() & (b.constant() - 1)) == 0;
    ratio = Ratio{a, b, exact};
  }
  NumberExpr number{.kind = NumberExpr::Kind::Ratio, .a = a, .b = b};
  return c10::make_intrusive<FloatNode>(env, static_cast<double>(env->hint(a)) / divisor, std::move(number), std::move(ratio));
}

c10::intrusive_ptr<FloatNode> FloatNode::of(const SymNode& node, const Env& env) {
  if (auto known = dynamic_cast<FloatNode*>(node.get())) return c10::intrusive_ptr<FloatNode>::reclaim_copy(known);
  SymNode made;
  if (auto* known = dynamic_cast<IntNode*>(node.get())) made = ofInt(env, known->expr());
  else if (auto* truth = dynamic_cast<BoolNode*>(node.get())) made = constant(env, truth->guard());
  else made = constant(env, node->guard_float(__FILE__, __LINE__));
  return c10::intrusive_ptr<FloatNode>::reclaim_copy(static_cast<FloatNode*>(made.get()));
}

}  // namespace

c10::SymInt toSymInt(const SymExpr& e, ShapeEnv& env) {
  if (e.isConstant()) return e.constant();
  return c10::SymInt(makeInt(e, env.shared_from_this()));
}

c10::SymBool toSymBool(Compare op, const SymExpr& a, const SymExpr& b, ShapeEnv& env) {
  if (auto known = env.provable(op, a, b)) return *known;
  return c10::SymBool(BoolNode::make(env.shared_from_this(), op, a, b));
}

std::optional<SymExpr> exprOf(const c10::SymInt& value) {
  if (!value.is_heap_allocated()) return SymExpr(value.as_int_unchecked());
  if (auto* known = dynamic_cast<IntNode*>(value.toSymNodeImplUnowned())) return known->expr();
  if (auto constant = value.maybe_as_int()) return SymExpr(*constant);
  return std::nullopt;
}

std::optional<SymExpr> exprOf(const SymNode& node) {
  if (!node) return std::nullopt;
  if (auto* known = dynamic_cast<IntNode*>(node.get())) return known->expr();
  if (auto constant = node->constant_int()) return SymExpr(*constant);
  return std::nullopt;
}

ShapeEnv* envOf(SymNodeImpl* node) {
  const SymNode inner = unwrapped(node);
  auto* known = dynamic_cast<Node*>(inner.get());
  return known ? known->env().get() : nullptr;
}

int64_t hintOf(const c10::SymInt& value) {
  if (auto plain = value.maybe_as_int()) return *plain;
  if (auto* known = dynamic_cast<IntNode*>(value.toSymNodeImplUnowned())) return known->env()->hint(known->expr());
  return value.guard_int(__FILE__, __LINE__);
}

std::optional<FloatHint> hintOf(const c10::SymFloat& value) {
  if (!value.is_symbolic()) return FloatHint{value.as_float_unchecked(), {}};
  const SymNode node = unwrapped(value.toSymNodeImplUnowned());
  auto* known = dynamic_cast<FloatNode*>(node.get());
  return known ? std::optional(FloatHint{known->hint(), known->from()}) : std::nullopt;
}

std::optional<NumberExpr> numberOf(const SymNode& given) {
  const SymNode node = unwrapped(given.get());
  auto* known = dynamic_cast<FloatNode*>(node.get());
  const bool isOpen = known && std::any_of(known->from().begin(), known->from().end(), [&](const SymExpr& e) { return !known->env()->simplify(e).isConstant(); });
  return isOpen ? std::optional(known->number()) : std::nullopt;
}

c10::SymFloat toSymFloat(const NumberExpr& number, ShapeEnv& env) { return c10::SymFloat(FloatNode::ofNumber(env.shared_from_this(), number)); }

bool isSymbolic(const c10::IValue& value) {
  if (value.isSymInt() || value.isSymBool()) return true;
  if (value.isSymFloat()) return hintOf(value.toSymFloat()).has_value();
  if (!value.isList() || value.isTensorList() || value.isIntList()) return false;
  for (auto& element : value.toListRef())
    if (element.isSymInt() || element.isSymBool() || element.isSymFloat()) return true;
  return false;
}

c10::IValue withHints(const c10::IValue& value) {
  if (value.isSymInt()) return hintOf(value.toSymInt());
  if (value.isSymBool()) {
    auto truth = value.toSymBool();
    if (!truth.is_heap_allocated()) return truth.as_bool_unchecked();
    auto* known = dynamic_cast<BoolNode*>(truth.toSymNodeImplUnowned());
    return known ? known->hint() : truth.guard_bool(__FILE__, __LINE__);
  }
  if (value.isSymFloat()) {
    auto known = hintOf(value.toSymFloat());
    return known ? c10::IValue(known->value) : value;
  }
  if (!isSymbolic(value)) return value;
  std::vector<int64_t> numbers;
  for (auto& element : value.toListRef()) {
    if (element.isSymInt()) numbers.push_back(hintOf(element.toSymInt()));
    else if (element.isInt()) numbers.push_back(element.toInt());
    else return value;
  }
  return numbers;
}

AskedBy::AskedBy(std::string_view who) : before_(std::exchange(theAsker, who)) {}
AskedBy::~AskedBy() { theAsker = before_; }
std::string_view AskedBy::now() { return theAsker.empty() ? std::string_view("the program") : theAsker; }

}  // namespace fusebox::trace
