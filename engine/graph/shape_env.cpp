#include "engine/graph/shape_env.h"

#include <algorithm>
#include <stdexcept>

#include "engine/graph/specialise_watch.h"
#include "engine/graph/sym_node.h"

namespace fusebox::graph {
namespace {

constexpr size_t kFacts = 64;  ///< inequalities that later questions look at
constexpr int64_t kSeveral = 2;

/// a - b with a positive leading coefficient, so that a == b and b == a are one relation.
SymExpr withoutSign(SymExpr difference) {
  const auto& terms = difference.terms();
  return !terms.empty() && terms.back().coefficient < 0 ? difference * -1 : difference;
}

/// If `e` is k*s + rest with rest free of s and k = 1 or -1: s and what it equals where e is 0.
std::optional<std::pair<Symbol, SymExpr>> solved(const SymExpr& e, const std::vector<Symbol>& dataSymbols) {
  // The youngest symbol goes, older ones were named first; before all others one that is known late.
  auto all = e.symbols();
  const auto isLate = [&](Symbol s) { return std::find(dataSymbols.begin(), dataSymbols.end(), s) != dataSymbols.end(); };
  std::sort(all.begin(), all.end(), [&](Symbol a, Symbol b) { return std::pair(isLate(a), a.id) > std::pair(isLate(b), b.id); });
  for (Symbol s : all) {
    auto k = e.strideOf(s);
    if (!k || (*k != 1 && *k != -1)) continue;
    return std::pair(s, *k == 1 ? SymExpr(s) - e : SymExpr(s) + e);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(Compare op) {
  switch (op) {
    case Compare::Eq: return "==";
    case Compare::Ne: return "!=";
    case Compare::Lt: return "<";
    case Compare::Le: return "<=";
  }
  return "?";
}

bool holds(Compare op, int64_t left, int64_t right) {
  switch (op) {
    case Compare::Eq: return left == right;
    case Compare::Ne: return left != right;
    case Compare::Lt: return left < right;
    case Compare::Le: return left <= right;
  }
  return false;
}

std::string Relation::str() const { return left.str() + " " + std::string(name(op)) + " " + right.str(); }

std::shared_ptr<ShapeEnv> ShapeEnv::make(std::function<Provenance()> origin) {
  return std::shared_ptr<ShapeEnv>(new ShapeEnv(std::move(origin)));
}

SymExpr ShapeEnv::symbol(std::string name, int64_t hint, int64_t lower, int64_t upper) {
  if (hint < lower || hint > upper) throw std::invalid_argument("symbol " + name + " begins outside of its range");
  const Symbol made = Symbol::make(std::move(name), lower, upper);
  index_.emplace(made.id, symbols_.size());
  symbols_.push_back(made);
  hints_.push_back(hint);
  return made;
}

ComputedSymbol ComputedSymbol::of(const SymExpr& is) {
  ComputedSymbol made;
  made.text = is.str();
  made.from = is.symbols();
  made.is = is;
  made.compute = [is, from = made.from](std::span<const int64_t> values) {
    return is.evaluate([&](Symbol s) -> std::optional<int64_t> {
      const auto at = static_cast<size_t>(std::find(from.begin(), from.end(), s) - from.begin());
      return at < values.size() ? std::optional(values[at]) : std::nullopt;
    });
  };
  return made;
}

std::optional<SymExpr> ShapeEnv::computed(ComputedSymbol how, int64_t lower, int64_t upper) {
  for (const ComputedSymbol& known : computed_)
    if (known.text == how.text) return simplify(known.symbol);
  if (closed_) throw std::logic_error("a size of a finished trace is used: " + how.text);
  std::vector<int64_t> values;
  for (const Symbol s : how.from) {
    if (isOfData(s)) askData(how.text, "a computation of the program", true);
    values.push_back(hint(s));
  }
  const auto value = how.compute(values);
  if (!value) return std::nullopt;
  const SymExpr made = symbol("s" + std::to_string(symbols_.size()), *value, lower, upper);
  how.symbol = symbols_.back();
  computed_.push_back(std::move(how));
  return made;
}

SymExpr ShapeEnv::dataSymbol(int64_t hint, int64_t lower, int64_t upper) {
  const SymExpr made = symbol("u" + std::to_string(dataSymbols_.size()), hint, lower, upper);
  dataSymbols_.push_back(symbols_.back());
  return made;
}

bool ShapeEnv::isOfData(const SymExpr& e) const {
  return std::any_of(dataSymbols_.begin(), dataSymbols_.end(), [&](Symbol s) { return e.contains(s); });
}

void ShapeEnv::askData(const std::string& what, std::string_view reason, bool isConstant) const {
  if (!dataPolicy_) throw std::logic_error("nothing may be assumed of a number that data decide: " + what);
  dataPolicy_(what, reason, isConstant);
}

int64_t ShapeEnv::hint(const SymExpr& e) const {
  if (e.isConstant()) return e.constant();
  auto value = e.evaluate([&](Symbol s) -> std::optional<int64_t> {
    auto known = index_.find(s.id);
    return known == index_.end() ? std::nullopt : std::optional(hints_[known->second]);
  });
  if (!value) throw std::logic_error("no value is known for " + e.str());
  return *value;
}

SymExpr ShapeEnv::simplify(const SymExpr& e) const {
  if (e.isConstant() || replacements_.empty()) return e;
  return e.substitute([&](Symbol s) -> std::optional<SymExpr> {
    auto known = replacements_.find(s.id);
    return known == replacements_.end() ? std::nullopt : std::optional(known->second);
  });
}

/// `e` written over what each symbol exceeds its lower bound by. Sums of bounds lose what factors have in common (s0*s1 - s0); here a sum
/// without negative coefficients is at least its constant.
SymExpr ShapeEnv::fromZero(const SymExpr& e) const {
  return e.substitute([&](Symbol s) -> std::optional<SymExpr> {
    const auto learnt = lower_.find(s.id);
    const int64_t lower = learnt == lower_.end() ? s.lower() : std::max(s.lower(), learnt->second);
    if (lower == bound::kMin || lower == 0) return std::nullopt;
    auto [it, isNew] = shifted_.try_emplace(s.id);
    if (isNew) {
      const int64_t room = s.upper() == bound::kMax ? bound::kMax : s.upper() - lower;
      it->second = lower + SymExpr(Symbol::make(s.name() + "'", 0, room));
    }
    return it->second;
  });
}

bool ShapeEnv::atLeast(const SymExpr& e, int64_t least) const {
  if (e.bounds().first >= least) return true;
  if (e.isConstant()) return false;
  const SymExpr moved = fromZero(e);
  if (moved.bounds().first >= least) return true;
  if (nonNegativeFromZero_.size() != nonNegative_.size()) {
    nonNegativeFromZero_.clear();
    for (const SymExpr& fact : nonNegative_) nonNegativeFromZero_.push_back(fromZero(fact));
  }
  // e >= e - fact
  return std::any_of(nonNegativeFromZero_.begin(), nonNegativeFromZero_.end(),
                     [&](const SymExpr& fact) { return lowerBoundOfDifference(moved, fact) >= least; });
}

std::optional<bool> ShapeEnv::provable(Compare op, const SymExpr& a, const SymExpr& b) const {
  if (a.isConstant() && b.isConstant()) return holds(op, a.constant(), b.constant());
  auto [answer, isNew] = answers_.try_emplace(Question{op, a, b}, Answer{std::nullopt, 0});
  if (isNew || (!answer->second.known && answer->second.facts != facts_)) answer->second = {prove(op, a, b), facts_};
  return answer->second.known;
}

std::optional<bool> ShapeEnv::prove(Compare op, const SymExpr& a, const SymExpr& b) const {
  const SymExpr d = simplify(b) - simplify(a);
  if (d.isConstant()) return holds(op, 0, d.constant());
  switch (op) {
    case Compare::Eq:
    case Compare::Ne: {
      const bool apart = std::find(nonZero_.begin(), nonZero_.end(), withoutSign(d)) != nonZero_.end() || atLeast(d, 1) || atLeast(d * -1, 1);
      return apart ? std::optional(op == Compare::Ne) : std::nullopt;
    }
    case Compare::Lt:
    case Compare::Le: {
      const int64_t least = op == Compare::Lt ? 1 : 0;
      if (atLeast(d, least)) return true;
      if (atLeast(d * -1, 1 - least)) return false;
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void ShapeEnv::learn(Compare op, const SymExpr& a, const SymExpr& b) {
  facts_++;
  nonNegativeFromZero_.clear();
  const SymExpr d = simplify(b) - simplify(a);
  switch (op) {
    case Compare::Eq: {
      auto known = solved(d, dataSymbols_);
      if (!known || known->second.contains(known->first)) return;
      auto only = [&](Symbol s) -> std::optional<SymExpr> { return s == known->first ? std::optional(known->second) : std::nullopt; };
      for (auto& [id, e] : replacements_) e = e.substitute(only);
      for (auto& e : nonNegative_) e = e.substitute(only);
      for (auto& e : nonZero_) e = withoutSign(e.substitute(only));
      // What replaces the symbol lies in its range.
      if (!known->second.isConstant() && nonNegative_.size() < kFacts) {
        const Symbol s = known->first;
        if (s.lower() != bound::kMin) nonNegative_.push_back(known->second - s.lower());
        if (s.upper() != bound::kMax) nonNegative_.push_back(SymExpr(s.upper()) - known->second);
      }
      replacements_.emplace(known->first.id, known->second);
      return;
    }
    case Compare::Ne: nonZero_.push_back(withoutSign(d)); return;
    case Compare::Lt:
    case Compare::Le:
      if (nonNegative_.size() < kFacts) nonNegative_.push_back(op == Compare::Lt ? d - 1 : d);
      learnLower(op == Compare::Lt ? d - 1 : d);
      return;
  }
}

/// Of k*s + c >= 0 with k > 0: s is at least -c / k.
void ShapeEnv::learnLower(const SymExpr& nonNegative) {
  const auto all = nonNegative.symbols();
  if (all.size() != 1) return;
  const auto k = nonNegative.strideOf(all[0]);
  if (!k || *k <= 0) return;
  const SymExpr rest = nonNegative - SymExpr(all[0]) * *k;
  if (!rest.isConstant()) return;
  const int64_t lower = bound::floorDiv(-rest.constant() + *k - 1, *k);
  auto [it, isNew] = lower_.try_emplace(all[0].id, lower);
  if (!isNew && it->second >= lower) return;
  it->second = lower;
  shifted_.erase(all[0].id);
}

void ShapeEnv::record(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason) {
  if (closed_) throw std::logic_error("a size of a finished trace is compared: " + a.str() + " with " + b.str());
  SymExpr d = b - a;
  if (op == Compare::Eq || op == Compare::Ne) d = withoutSign(d);
  const size_t key = d.hash() * 4 + static_cast<size_t>(op);
  learn(op, a, b);
  std::vector<Relation>& relations = isOfData(a) || isOfData(b) ? assumptions_ : relations_;
  if (!recorded_.insert(key).second)
    for (const auto& r : relations)
      if (r.op == op && r.left == a && r.right == b) return;
  relations.push_back({op, a, b, std::string(reason), origin_ ? origin_() : Provenance{}});
  if (op != Compare::Eq || a.isConstant() == b.isConstant()) return;
  tellSpecialised(this, b.isConstant() ? a : b, (b.isConstant() ? b : a).constant(), reason);
}

/// The answer where data give at least 2 of everything, if it follows from that; which is assumed then.
std::vector<Symbol> ShapeEnv::maybeFew(const SymExpr& a, const SymExpr& b) const {
  std::vector<Symbol> few;
  for (const Symbol s : dataSymbols_)
    if ((a.contains(s) || b.contains(s)) && !atLeast(simplify(s), kSeveral)) few.push_back(s);
  return few;
}

std::optional<bool> ShapeEnv::usually(Compare op, const SymExpr& a, const SymExpr& b) {
  const std::vector<Symbol> few = maybeFew(a, b);
  if (few.empty()) return std::nullopt;
  const auto before = lower_;
  const auto forget = [&] {
    for (const Symbol s : few) shifted_.erase(s.id);
    nonNegativeFromZero_.clear();
  };
  for (const Symbol s : few) lower_[s.id] = kSeveral;
  forget();
  const auto answer = prove(op, a, b);
  lower_ = before;
  forget();
  return answer;
}

std::optional<bool> ShapeEnv::ofSeveral(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason) {
  const auto answer = usually(op, a, b);
  if (answer && !closed_)
    for (const Symbol s : maybeFew(a, b)) record(Compare::Le, kSeveral, s, reason);
  return answer;
}

namespace {

/// Atoms s // c of `e`, also those inside of others.
void collectHalves(const SymExpr& e, std::vector<std::pair<Symbol, int64_t>>& into) {
  for (const SymExpr::Term& term : e.terms())
    for (const SymAtom& factor : term.factors) {
      if (factor.kind == SymAtom::Kind::Symbol) continue;
      const SymAtom* divided = factor.kind == SymAtom::Kind::FloorDiv ? soleAtom(factor.a) : nullptr;
      if (divided && divided->kind == SymAtom::Kind::Symbol && factor.b.isConstant() && factor.b.constant() > 1) into.emplace_back(divided->symbol, factor.b.constant());
      collectHalves(factor.a, into);
      collectHalves(factor.b, into);
    }
}

}  // namespace

bool ShapeEnv::dividesWhole(const SymExpr& a, const SymExpr& b, std::string_view reason) {
  const SymExpr left = simplify(a), right = simplify(b);
  std::vector<std::pair<Symbol, int64_t>> halves;
  collectHalves(left, halves);
  collectHalves(right, halves);
  for (const auto& [symbol, divisor] : halves) {
    const int64_t value = hint(symbol);
    if (isOfData(symbol) || value % divisor != 0 || value / divisor < 2) continue;
    const SymExpr part = Symbol::make("part", 2, symbol.upper() == bound::kMax ? bound::kMax : symbol.upper() / divisor);
    const auto parts = [&](Symbol s) -> std::optional<SymExpr> { return s == symbol ? std::optional(part * SymExpr(divisor)) : std::nullopt; };
    if (!(left.substitute(parts) == right.substitute(parts))) continue;
    const bool isLarge = provable(Compare::Le, 2, floorDiv(symbol, divisor)) == std::optional(true);
    const auto made = computed(ComputedSymbol::of(floorDiv(symbol, divisor)), 2, symbol.upper() == bound::kMax ? bound::kMax : symbol.upper() / divisor);
    if (!made) continue;
    if (!isLarge) record(Compare::Le, 2, *made, reason);
    record(Compare::Eq, symbol, *made * SymExpr(divisor), reason);
    return true;
  }
  return false;
}

bool ShapeEnv::decide(Compare op, const SymExpr& a, const SymExpr& b, std::string_view reason) {
  if (auto known = provable(op, a, b)) return *known;
  if (op == Compare::Eq && holds(op, hint(a), hint(b)) && dividesWhole(a, b, reason)) return true;
  if (isOfData(a) || isOfData(b)) {
    if (auto usual = ofSeveral(op, a, b, reason)) return *usual;
    askData(a.str() + " " + std::string(name(op)) + " " + b.str(), reason, false);
  }
  const bool answer = holds(op, hint(a), hint(b));
  if (answer) {
    record(op, a, b, reason);
    return true;
  }
  switch (op) {
    case Compare::Eq: record(Compare::Ne, a, b, reason); break;
    case Compare::Ne: record(Compare::Eq, a, b, reason); break;
    case Compare::Lt: record(Compare::Le, b, a, reason); break;
    case Compare::Le: record(Compare::Lt, b, a, reason); break;
  }
  return false;
}

bool ShapeEnv::assume(Compare op, const SymExpr& a, const SymExpr& b, const std::function<bool(Symbol)>& isFree) {
  if (const auto known = provable(op, a, b)) return *known;
  if (!holds(op, hint(a), hint(b)) && !takeAnother(op, a, b, isFree)) return false;
  record(op, a, b, kRaisesOtherwise);
  return true;
}

/// Where a relation is no sum of symbols (n // 2 == 3, 3 * n == 12): a value about where the line through two points of the difference meets zero.
static bool meetNear(int64_t from, const std::function<int64_t(int64_t)>& put, const std::function<bool()>& fits) {
  constexpr int64_t kApart = 64, kAround = 16, kMost = 1'000'000'000;
  const auto here = static_cast<double>(put(from)), there = static_cast<double>(put(from + kApart));
  const double meets = here == there ? 0 : static_cast<double>(from) - here * kApart / (there - here);
  const int64_t middle = std::abs(meets) < kMost ? static_cast<int64_t>(meets) : from;
  for (int64_t i = 0; i <= 2 * kAround; ++i) {
    const int64_t other = middle + (i % 2 ? -(i + 1) / 2 : i / 2);
    if (other < kSeveral) continue;
    put(other);
    if (fits()) return true;
  }
  return false;
}

/// Other values for symbols of data of which nothing has been made yet, with which the relation holds: for one of them the nearest, for several whose sum
/// is given different ones of about its share.
bool ShapeEnv::takeAnother(Compare op, const SymExpr& a, const SymExpr& b, const std::function<bool(Symbol)>& isFree) {
  std::vector<size_t> free;  // positions of symbols that occur once, all with one sign
  int64_t sign = 0;
  for (const Symbol s : (b - a).symbols()) {
    const auto k = (b - a).strideOf(s);
    const bool isOfData = std::find(dataSymbols_.begin(), dataSymbols_.end(), s) != dataSymbols_.end();
    if (!isOfData || !k || (*k != 1 && *k != -1) || (sign && *k != sign) || !isFree(s)) continue;
    sign = *k;
    free.push_back(index_.at(s.id));
  }
  const std::vector<int64_t> before = hints_;
  const auto fits = [&] {
    const auto holdsNow = [&](const Relation& r) { return holds(r.op, hint(r.left), hint(r.right)); };
    // None and one are no example of what holds for several.
    const auto inRange = [&](size_t i) { return hints_[i] >= std::max<int64_t>(kSeveral, symbols_[i].lower()) && hints_[i] <= symbols_[i].upper(); };
    return std::all_of(free.begin(), free.end(), inRange) && holds(op, hint(a), hint(b)) && std::all_of(assumptions_.begin(), assumptions_.end(), holdsNow);
  };
  for (size_t i : free) {
    const int64_t meets = before[i] - sign * (hint(b) - hint(a));
    for (int64_t other : {meets, meets + 1, meets - 1}) {
      hints_[i] = other;
      if (fits()) return true;
    }
    hints_[i] = before[i];
  }
  if (op != Compare::Ne && free.size() > 1) {
    const auto count = static_cast<int64_t>(free.size());
    int64_t sum = -sign * (hint(b) - hint(a) - (op == Compare::Lt ? 1 : 0));
    for (size_t i : free) sum += before[i];
    for (const int64_t apart : {1, 0}) {  // small sums have no different ones
      const int64_t least = sum / count - apart * (count / 2);
      int64_t left = sum;
      for (int64_t j = 0; j + 1 < count; ++j) left -= hints_[free[static_cast<size_t>(j)]] = least + apart * j;
      hints_[free.back()] = left;
      if (fits()) return true;
      hints_ = before;
    }
  }
  hints_ = before;
  for (const Symbol s : (b - a).symbols()) {
    if (std::find(dataSymbols_.begin(), dataSymbols_.end(), s) == dataSymbols_.end() || !isFree(s)) continue;
    int64_t& value = hints_[index_.at(s.id)];
    const auto put = [&](int64_t other) {
      value = other;
      return hint(b) - hint(a);
    };
    if (meetNear(value, put, [&] { return value >= std::max<int64_t>(kSeveral, s.lower()) && value <= s.upper() && fits(); })) return true;
    hints_ = before;
  }
  return false;
}

int64_t ShapeEnv::specialise(const SymExpr& e, std::string_view reason) {
  const int64_t value = hint(e);
  if (e.isConstant()) return value;
  const SymExpr left = simplify(e);
  if (isOfData(left)) askData(left.str(), reason, true);
  if (!left.isConstant()) record(Compare::Eq, left, value, reason);
  return value;
}

}  // namespace fusebox::graph
