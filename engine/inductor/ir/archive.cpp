#include "engine/inductor/ir/archive.h"

#include <algorithm>

#include "engine/graph/sym_node.h"
#include "engine/graph/symbol_table.h"

namespace fusebox::inductor {

using graph::SymAtom;
using graph::Symbol;
using graph::SymExpr;

ArchiveWriter::ArchiveWriter(std::span<const Symbol> outer) {
  for (const Symbol symbol : outer) numbers_.emplace(symbol.id, static_cast<int64_t>(numbers_.size()) + 1);
  outer_ = numbers_.size();
  if (outer_ != outer.size()) throw std::invalid_argument("a symbol is named twice");
}

/// Seven bits a byte, the sign in the lowest.
void ArchiveWriter::integer(int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) bytes_ += static_cast<char>(bits | 0x80);
  bytes_ += static_cast<char>(bits);
}

void ArchiveWriter::item(const double& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

void ArchiveWriter::item(const std::string& value) {
  integer(static_cast<int64_t>(value.size()));
  bytes_ += value;
}

void ArchiveWriter::item(const Symbol& symbol) {
  if (const auto known = numbers_.find(symbol.id); known != numbers_.end()) return integer(known->second);
  integer(0);
  item(symbol.name());
  integer(symbol.lower());
  integer(symbol.upper());
  integer(graph::symbolHint(symbol).load(std::memory_order_relaxed));
  const SymExpr* extent = graph::symbolExtent(symbol).load(std::memory_order_acquire);
  item(extent != nullptr);
  if (extent) item(*extent);  // of symbols that were made before this one
  numbers_.emplace(symbol.id, static_cast<int64_t>(numbers_.size()) + 1);
}

void ArchiveWriter::item(const SymExpr& expression) {
  if (expression.isConstant()) {
    integer(0);
    return integer(expression.constant());
  }
  const auto& terms = expression.terms();
  integer(static_cast<int64_t>(terms.size()));
  for (const SymExpr::Term& term : terms) {
    integer(term.coefficient);
    integer(static_cast<int64_t>(term.factors.size()));
    for (const SymAtom& atom : term.factors) {
      item(atom.kind);
      if (atom.kind == SymAtom::Kind::Symbol)
        item(atom.symbol);
      else
        item(atom.a), item(atom.b);
    }
  }
}

int64_t ArchiveReader::integer() {
  uint64_t bits = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) throw ArchiveError("it ends too early");
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    bits |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }
  throw ArchiveError("a number is too long");
}

size_t ArchiveReader::count() {
  const int64_t number = integer();
  if (number < 0 || static_cast<uint64_t>(number) > rest_.size())
    throw ArchiveError("a list is longer than what is left");
  return static_cast<size_t>(number);
}

void ArchiveReader::item(double& value) {
  if (rest_.size() < sizeof value) throw ArchiveError("it ends too early");
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
}

void ArchiveReader::item(std::string& value) {
  const size_t size = count();
  value.assign(rest_.substr(0, size));
  rest_.remove_prefix(size);
}

void ArchiveReader::item(Symbol& symbol) {
  const int64_t number = integer();
  if (number < 0 || number > static_cast<int64_t>(symbols_.size())) throw ArchiveError("a symbol that is none");
  if (number > 0) {
    symbol = symbols_[static_cast<size_t>(number) - 1];
    return;
  }
  std::string name;
  item(name);
  const int64_t lower = integer(), upper = integer(), hint = integer();
  bool hasExtent = false;
  item(hasExtent);
  SymExpr extent;
  if (hasExtent) item(extent);
  symbol = Symbol::make(std::move(name), lower, upper);
  if (hint != graph::kNoHint) graph::symbolHint(symbol).store(hint, std::memory_order_relaxed);
  if (hasExtent)
    graph::symbolExtent(symbol).store(new SymExpr(extent), std::memory_order_release);  // records live for good
  symbols_.push_back(symbol);
}

void ArchiveReader::item(SymExpr& expression) {
  const size_t terms = count();
  if (terms == 0) {
    expression = SymExpr(integer());
    return;
  }
  if (++depth_ > kMaxDepth) throw ArchiveError("nested too deeply");
  std::vector<SymExpr::Term> made(terms);
  for (SymExpr::Term& term : made) {
    term.coefficient = integer();
    term.factors.resize(count());
    for (SymAtom& atom : term.factors) {
      item(atom.kind);
      if (atom.kind > SymAtom::Kind::Max) throw ArchiveError("an unknown operation on sizes");
      if (atom.kind == SymAtom::Kind::Symbol)
        item(atom.symbol);
      else
        item(atom.a), item(atom.b);
      const bool divides = atom.kind == SymAtom::Kind::FloorDiv || atom.kind == SymAtom::Kind::Mod;
      if (divides && atom.b == SymExpr(0)) throw ArchiveError("a division by zero");
    }
    // The order of factors is that of symbols, which have other numbers here.
    std::sort(term.factors.begin(), term.factors.end(),
              [](const SymAtom& a, const SymAtom& b) { return graph::compare(a, b) < 0; });
  }
  expression = graph::fromTerms(std::move(made));
  --depth_;
}

}  // namespace fusebox::inductor
