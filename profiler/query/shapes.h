#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/query/symbols.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// What recompilations a row had for its part in them: guards of it that did not hold.
struct ShapeCost {
  int64_t recompiles = 0, ns = 0;  ///< entries made because of it, and their compile time
  int64_t misses = 0;              ///< calls that did not fit, those that another entry took among them
  bool limit = false;              ///< the frame's limit was reached with it
};

struct ShapeRelation {
  int64_t id = 0, compile = 0, guard = 0;
  std::string kind, text, op, left, right, reason, file;
  std::vector<std::string> symbols;
  int64_t line = 0;
  std::vector<StackPlace> stack;
  ShapeCost cost;
  bool isSpecialisation = false;  ///< says the same as one of the entry's specialisations
};

struct ShapeSpecialisation {
  int64_t id = 0, compile = 0, guard = 0;
  std::string kind, expression, source, value, op, reason, file;
  std::vector<std::string> symbols;
  int64_t line = 0;
  std::vector<StackPlace> stack;
  ShapeCost cost;

  /// "s0 was specialised to 5 at f.py:13: a dict's key": what it is, where and why.
  std::string sentence() const;
};

/// One compiled entry.
struct ShapeEntry {
  int64_t compile = 0, attempt = 0, ns = 0, failure = 0;
  std::string status;
  std::vector<ShapeSymbol> symbols;
  std::vector<ShapeRelation> relations;
  std::vector<ShapeSpecialisation> specialisations;
};

/// A number of the calls that was found different from what an entry had been made for, and what became of it.
struct VariedNumber {
  enum class Outcome { Static, Symbolic, Specialised };
  std::string source;
  std::vector<std::string> values;  ///< those that entries were made for, in order
  Outcome outcome = Outcome::Static;
  std::string symbol;               ///< Symbolic: its name in the newest entry that has it; empty where it has none and any value fits
  int64_t compile = 0;              ///< Symbolic: the first entry that has it; Specialised: the newest that fixed it
  std::string why;                  ///< Static and Specialised: why it is a constant
  ShapeCost cost;
  std::vector<Advice> advice;       ///< what to do where it is still a constant
};

/// A code object, or what resumes after a break in it, with all that is symbolic in it or could be.
struct ShapeFrame {
  int64_t frame = 0, line = 0;
  std::string name, file;
  std::vector<ShapeEntry> entries;  ///< oldest first
  std::vector<VariedNumber> varied;
  int64_t recompiles = 0, recompileNs = 0;
  bool limit = false;
};

/// Frames that have symbols, specialisations or sizes that varied; the most expensive recompilation first. With `all` every frame.
Result<std::vector<ShapeFrame>> shapeFrames(const session::Reader& reader, bool all = false);
/// The symbols, relations and specialisations of one compiled entry (compile_id), with what they cost.
Result<ShapeEntry> shapeEntry(const session::Reader& reader, int64_t compile);
/// Those of all entries by compile_id, without their costs.
Result<std::unordered_map<int64_t, ShapeEntry>> shapeEntries(const session::Reader& reader);
/// What an entry has that the one before (null for the first) had not: "L['x'].size()[0] became symbolic (s0): it was 8, now 10", "s0 was
/// specialised to 5 at f.py:13: a dict's key".
std::vector<std::string> shapeSentences(const ShapeEntry& entry, const ShapeEntry* before);
/// What to do about a number that became a constant, or about a relation that failed. Best first; may be empty.
std::vector<Advice> adviseShape(const session::Reader& reader, const ShapeSpecialisation& specialisation);
std::vector<Advice> adviseShape(const session::Reader& reader, const ShapeRelation& relation);

nlohmann::json toJson(const session::Reader& reader, const std::vector<ShapeFrame>& frames);
std::string toText(const session::Reader& reader, const std::vector<ShapeFrame>& frames);

}  // namespace fusebox::query
