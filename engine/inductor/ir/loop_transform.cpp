#include "engine/inductor/ir/loop_transform.h"

#include <unordered_map>

namespace fusebox::inductor {
namespace {

size_t mixed(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15u; }

size_t hashOfValue(const Value& v) {
  size_t h = mixed(static_cast<size_t>(v.op), static_cast<size_t>(static_cast<int>(v.type)));
  for (ValueId arg : v.args) h = mixed(h, static_cast<size_t>(arg));
  h = mixed(h, static_cast<size_t>(v.imm));
  h = mixed(h, static_cast<size_t>(v.buffer));
  h = mixed(h, static_cast<size_t>(v.mask));
  return v.op == Op::Load || v.op == Op::Index ? mixed(h, v.index.hash()) : h;
}

bool equal(const Value& a, const Value& b) {
  return a.op == b.op && a.type == b.type && a.args == b.args && a.imm == b.imm && a.buffer == b.buffer && a.mask == b.mask &&
         ((a.op != Op::Load && a.op != Op::Index) || a.index == b.index);
}

void renumber(Value& value, const std::vector<ValueId>& ids) {
  forEachOperand(value, [&](ValueId& id) { id = ids[static_cast<size_t>(id)]; });
}

void renumber(Statement& statement, const std::vector<ValueId>& ids) {
  forEachOperandOf(statement, [&](ValueId& id) { id = ids[static_cast<size_t>(id)]; });
}

}  // namespace

SymExpr substitute(const SymExpr& expression, const Substitution& map) {
  if (expression.isConstant() || map.empty()) return expression;
  return expression.substitute([&](Symbol symbol) -> std::optional<SymExpr> {
    auto found = map.find(symbol);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  });
}

void substitute(Section& section, const Substitution& map) {
  if (map.empty()) return;
  forEachIndex(section, [&](SymExpr& index) { index = substitute(index, map); });
}

void appendSection(Section& to, const Section& from) {
  const auto shift = static_cast<ValueId>(to.values.size());
  Substitution fresh;
  for (const auto& [symbol, id] : from.indirect) {
    Symbol copy = Symbol::make(symbol.name(), symbol.lower(), symbol.upper());
    fresh.emplace(symbol, copy);
    to.indirect.emplace(copy, id + shift);
  }
  auto move = [&](ValueId& id) { id += shift; };
  to.values.reserve(to.values.size() + from.values.size());
  for (Value value : from.values) {
    forEachOperand(value, move);
    value.index = substitute(value.index, fresh);
    to.values.push_back(std::move(value));
  }
  for (Statement statement : from.body) {
    forEachOperandOf(statement, move);
    statement.index = substitute(statement.index, fresh);
    to.body.push_back(std::move(statement));
  }
  to.isReduction = to.isReduction || from.isReduction;
}

void removeDeadValues(Section& section) {
  std::vector<char> live(section.values.size(), 0);
  auto mark = [&](ValueId id) { live[static_cast<size_t>(id)] = 1; };
  // A loaded index lives if an index that is needed names it.
  auto markIndirect = [&](const SymExpr& index) {
    if (section.indirect.empty() || index.isConstant()) return;
    for (Symbol symbol : index.symbols())
      if (auto found = section.indirect.find(symbol); found != section.indirect.end()) mark(found->second);
  };
  for (const Statement& statement : section.body) {
    forEachOperandOf(statement, mark);
    if (statement.kind != Statement::Kind::Reduce) markIndirect(statement.index);
  }
  for (size_t i = section.values.size(); i-- > 0;) {
    if (!live[i]) continue;
    forEachOperand(section.values[i], mark);
    markIndirect(section.values[i].index);
  }
  std::vector<ValueId> ids(section.values.size(), -1);
  size_t count = 0;
  for (size_t i = 0; i < section.values.size(); ++i) {
    if (!live[i]) continue;
    ids[i] = static_cast<ValueId>(count);
    renumber(section.values[i], ids);
    if (count != i) section.values[count] = std::move(section.values[i]);
    ++count;
  }
  section.values.resize(count);
  for (Statement& statement : section.body) renumber(statement, ids);
  std::erase_if(section.indirect, [&](const auto& entry) { return ids[static_cast<size_t>(entry.second)] < 0; });
  for (auto& [symbol, id] : section.indirect) id = ids[static_cast<size_t>(id)];
}

void mergeEqualValues(Section& section) {
  std::vector<ValueId> ids(section.values.size());
  std::unordered_multimap<size_t, ValueId> known;
  Substitution sameIndirect;  // symbols whose loaded values turned out equal
  std::unordered_map<ValueId, std::vector<Symbol>> symbolsOf;
  for (const auto& [symbol, id] : section.indirect) symbolsOf[id].push_back(symbol);
  std::unordered_map<ValueId, Symbol> canonicalSymbol;
  for (size_t i = 0; i < section.values.size(); ++i) {
    Value& value = section.values[i];
    renumber(value, ids);
    if (!sameIndirect.empty()) value.index = substitute(value.index, sameIndirect);
    ids[i] = static_cast<ValueId>(i);
    const size_t hash = hashOfValue(value);
    auto [first, last] = known.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (equal(section.values[static_cast<size_t>(it->second)], value)) ids[i] = it->second;
    if (ids[i] == static_cast<ValueId>(i)) known.emplace(hash, static_cast<ValueId>(i));
    if (auto found = symbolsOf.find(static_cast<ValueId>(i)); found != symbolsOf.end())
      for (Symbol symbol : found->second) {
        auto [entry, isNew] = canonicalSymbol.emplace(ids[i], symbol);
        if (!isNew && entry->second.lower() == symbol.lower() && entry->second.upper() == symbol.upper())
          sameIndirect.emplace(symbol, entry->second);
      }
  }
  for (Statement& statement : section.body) {
    renumber(statement, ids);
    if (statement.kind != Statement::Kind::Reduce) statement.index = substitute(statement.index, sameIndirect);
  }
  for (auto& [symbol, id] : section.indirect) id = ids[static_cast<size_t>(id)];
  removeDeadValues(section);
}

}  // namespace fusebox::inductor
