#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiler/importers/shape_text.h"

namespace fusebox::importing {

/// What a compile's records say of its symbolic numbers, until the compile is written. An analysis that PyTorch restarts says it
/// again, so each attempt begins anew.
struct TraceShapes {
  struct Place {
    std::string file, stack;  ///< stack: JSON, innermost last
    int64_t line = 0;
  };
  struct Symbol {
    std::string name, source, hint;
    RangeText range;
    Place place;
    int64_t timeNs = 0;
  };
  struct Relation {
    RelationText text;
    std::string kind, reason;
    Place place;
    int64_t timeNs = 0;
    int64_t guard = 0;
  };
  struct Specialisation {
    std::string symbol, source, value, reason;
    Place place;
    int64_t timeNs = 0;
  };
  /// A number that a recompilation was made for: what the entry had, and what the call brought.
  using Changes = std::map<std::string, std::pair<std::string, std::string>>;
  /// A guard of the entry, of those that relations may be.
  struct Guard {
    int64_t id;
    std::string_view kind, source, code, reason, file;
    int64_t line;
  };

  int64_t attempt = 0;
  bool captured = false;  ///< the graph was written: what follows is the backend's
  bool first = true;      ///< the frame's first entry
  std::vector<Symbol> symbols;
  std::vector<Relation> relations;
  std::vector<Specialisation> specialisations;

  bool empty() const { return symbols.empty() && relations.empty() && specialisations.empty(); }
  const Symbol* symbol(std::string_view name) const;
  /// Finds the guards that check the relations; guards on symbols that nothing asked for become relations of their own.
  void link(std::span<const Guard> guards);
};

/// Which number a failing guard found changed, by its source: of guard `source` and "tensor 'x' size mismatch at index 0. …". Empty
/// where it is no number.
std::string changedSource(std::string_view kind, std::string_view source, std::string_view failure);

}  // namespace fusebox::importing
