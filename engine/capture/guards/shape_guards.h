#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/capture/evaluation/source.h"
#include "engine/graph/shape_env.h"

namespace fusebox::capture {

/// A number that a check reads off the object at a source.
struct NumberSource {
  enum class Kind : uint8_t {
    Size, Stride, Offset,
    Value,  ///< of an int
    Bits,   ///< of a float: IEEE's
    ArrayInt, ArrayBits,  ///< the same of a number of numpy's, whose type is guarded
  } kind = Kind::Size;
  const Source* source = nullptr;
  int dim = -1;  ///< of Size and Stride

  bool isOfTensor() const { return kind < Kind::Value; }
  bool isBits() const { return kind == Kind::Bits || kind == Kind::ArrayBits; }

  /// "L['x'].size()[0]", "L['x'].stride()[1]", "L['x'].storage_offset()", "L['n']".
  std::string str() const;
};

/// The number at a source is `is`: its value where that is a symbol that no number before defines, else checked to be equal.
struct NumberGuard {
  NumberSource at;
  graph::SymExpr is;
  bool defines = false;
};

/// Why a number of an input is a symbol.
struct SymbolOrigin {
  graph::Symbol symbol;
  NumberSource at;
  std::string policy;                   ///< automatic, dynamic, marked, unbacked (record::SymbolRecord)
  std::string reason;                   ///< a sentence
  std::optional<int64_t> before, after; ///< automatic: what differed
  bool strict = false;                  ///< mark_dynamic: an error where it becomes a constant
};

/// A symbol that the capture's relations leave one value for.
struct PinnedSymbol {
  size_t origin = 0;     ///< in ShapeGuards::origins
  int64_t value = 0;
  int64_t relation = -1; ///< that did it; -1: several together
};

/// A number that would have been a symbol, and is a constant of the capture.
struct KeptConstant {
  NumberSource at;
  int64_t value = 0;
  std::string kind;    ///< zero_one, static (record::SpecialisationRecord)
  std::string reason;
};

/// What a capture assumes of the numbers of its inputs.
struct ShapeGuards {
  std::vector<graph::Symbol> symbols;  ///< of the trace, in the order in which the graph takes their values
  std::vector<int64_t> hints;          ///< parallel
  std::vector<SymbolOrigin> origins;
  std::vector<graph::ComputedSymbol> computed;  ///< symbols that are functions of others, each of earlier ones
  std::vector<graph::Symbol> ofData;            ///< symbols whose values the graph finds: no guard knows them
  std::vector<NumberGuard> numbers;
  std::vector<graph::Relation> relations;
  std::vector<PinnedSymbol> pinned;
  std::vector<KeptConstant> constants;

  bool empty() const { return symbols.empty() && numbers.empty(); }
  /// With numbers' sources in the place of symbols: "L['x'].size()[0] % 8".
  std::string text(const graph::SymExpr& e) const;
  std::string text(const graph::Relation& r) const;
  /// Whether `e` is the symbol of a float's bits.
  bool isFloat(const graph::SymExpr& e) const;
  /// With symbols as they are, and how those that are computed are made of others: "0 < (f0 > 0.5)".
  std::string spelled(const graph::SymExpr& e) const { return named(written(e).str(), false); }
  /// The symbols that `e` is made of in the end.
  std::vector<graph::Symbol> symbolsOf(const graph::SymExpr& e) const;
  /// Takes over what the trace's environment has decided; the environment is finished. False: a symbol has no number that defines it.
  bool finish(const graph::ShapeEnv& env);

 private:
  std::string named(const std::string& text, bool bySource = true) const;
  /// With expressions in place of the symbols that they make: halves of halves are quarters.
  graph::SymExpr written(const graph::SymExpr& e) const;
};

}  // namespace fusebox::capture
