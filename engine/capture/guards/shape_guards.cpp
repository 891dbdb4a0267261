#include "engine/capture/guards/shape_guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>

namespace fusebox::capture {
namespace {

bool isNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// `e` is nothing but this symbol.
bool isSymbol(const graph::SymExpr& e, graph::Symbol symbol) { return e == graph::SymExpr(symbol); }

/// The relation that makes `symbol` a constant: one that says so, else the first equation that it is in.
int64_t pinningRelation(const std::vector<graph::Relation>& relations, graph::Symbol symbol) {
  int64_t first = -1;
  for (size_t i = 0; i < relations.size(); ++i) {
    const graph::Relation& r = relations[i];
    if (r.op != graph::Compare::Eq) continue;
    if ((isSymbol(r.left, symbol) && r.right.isConstant()) || (isSymbol(r.right, symbol) && r.left.isConstant())) return static_cast<int64_t>(i);
    if (first < 0 && (r.left.contains(symbol) || r.right.contains(symbol))) first = static_cast<int64_t>(i);
  }
  return first;
}

/// The last of those that together leave one value for it.
int64_t lastRelation(const std::vector<graph::Relation>& relations, graph::Symbol symbol) {
  for (size_t i = relations.size(); i-- > 0;)
    if (relations[i].left.contains(symbol) || relations[i].right.contains(symbol)) return static_cast<int64_t>(i);
  return -1;
}

/// Two bounds meet.
bool leavesOne(const graph::ShapeEnv& env, const graph::SymExpr& symbol) {
  const graph::SymExpr value = env.hint(symbol);
  return env.provable(graph::Compare::Le, symbol, value).value_or(false) && env.provable(graph::Compare::Le, value, symbol).value_or(false);
}

}  // namespace

std::string NumberSource::str() const {
  const std::string base = source ? source->str() : "?";
  switch (kind) {
    case Kind::Size: return base + ".size()[" + std::to_string(dim) + "]";
    case Kind::Stride: return base + ".stride()[" + std::to_string(dim) + "]";
    case Kind::Offset: return base + ".storage_offset()";
    case Kind::Value:
    case Kind::Bits:
    case Kind::ArrayInt:
    case Kind::ArrayBits: return base;
  }
  return base;
}

graph::SymExpr ShapeGuards::written(const graph::SymExpr& e) const {
  return e.substitute([&](graph::Symbol s) -> std::optional<graph::SymExpr> {
    const auto made = std::find_if(computed.begin(), computed.end(), [&](const graph::ComputedSymbol& c) { return c.symbol == s; });
    return made != computed.end() && made->is ? std::optional(written(*made->is)) : std::nullopt;
  });
}

std::string ShapeGuards::text(const graph::SymExpr& e) const { return named(written(e).str()); }

std::string ShapeGuards::named(const std::string& plain, bool bySource) const {
  std::string out;
  for (size_t i = 0; i < plain.size();) {
    if (!isNameCharacter(plain[i])) {
      out += plain[i++];
      continue;
    }
    size_t end = i;
    while (end < plain.size() && isNameCharacter(plain[end])) ++end;
    const std::string name = plain.substr(i, end - i);
    const auto origin = std::find_if(origins.begin(), origins.end(), [&](const SymbolOrigin& o) { return o.symbol.name() == name; });
    const auto made = std::find_if(computed.begin(), computed.end(), [&](const graph::ComputedSymbol& c) { return c.symbol.name() == name; });
    out += origin != origins.end() ? (bySource ? origin->at.str() : name) : made != computed.end() ? named(made->text, bySource) : name;
    i = end;
  }
  return out;
}

std::vector<graph::Symbol> ShapeGuards::symbolsOf(const graph::SymExpr& e) const {
  std::vector<graph::Symbol> found = e.symbols();
  for (size_t i = 0; i < found.size();) {
    const auto made = std::find_if(computed.begin(), computed.end(), [&](const graph::ComputedSymbol& c) { return c.symbol == found[i]; });
    if (made == computed.end()) {
      ++i;
      continue;
    }
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    for (const graph::Symbol s : made->from)
      if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  }
  return found;
}

bool ShapeGuards::isFloat(const graph::SymExpr& e) const {
  return std::any_of(origins.begin(), origins.end(), [&](const SymbolOrigin& o) { return o.at.isBits() && isSymbol(e, o.symbol); });
}

std::string ShapeGuards::text(const graph::Relation& r) const {
  if (r.right.isConstant() && isFloat(r.left)) return fmt::format("{} {} {}", text(r.left), graph::name(r.op), std::bit_cast<double>(r.right.constant()));
  return text(r.left) + " " + std::string(graph::name(r.op)) + " " + text(r.right);
}

bool ShapeGuards::finish(const graph::ShapeEnv& env) {
  symbols = env.symbols();
  hints = env.hints();
  computed = env.computed();
  ofData = env.dataSymbols();
  relations = env.relations();
  pinned.clear();
  for (size_t i = 0; i < origins.size(); ++i) {
    const graph::SymExpr symbol(origins[i].symbol), known = env.simplify(symbol);
    if (known.isConstant()) pinned.push_back({i, known.constant(), pinningRelation(relations, origins[i].symbol)});
    else if (leavesOne(env, symbol)) pinned.push_back({i, env.hint(symbol), lastRelation(relations, origins[i].symbol)});
  }
  return std::all_of(symbols.begin(), symbols.end(), [&](graph::Symbol s) {
    return std::find(ofData.begin(), ofData.end(), s) != ofData.end() ||
           std::any_of(numbers.begin(), numbers.end(), [&](const NumberGuard& n) { return n.defines && isSymbol(n.is, s); }) ||
           std::any_of(computed.begin(), computed.end(), [&](const graph::ComputedSymbol& c) { return c.symbol == s; });
  });
}

}  // namespace fusebox::capture
