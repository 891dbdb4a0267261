#include "profiler/query/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <unordered_map>

#include "engine/support/bounded_json.h"
#include "engine/support/text.h"
#include "profiler/query/bounded.h"
#include "profiler/query/guard_difference.h"
#include "profiler/query/recompiles.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

using ByCompile = std::unordered_map<int64_t, ShapeEntry>;

std::vector<std::string> parseNames(std::string_view text) {
  std::vector<std::string> out;
  const auto list = parseBounded(text);
  if (!list.is_array()) return out;
  for (const auto& name : list) {
    if (name.is_string()) out.push_back(name.get<std::string>());
  }
  return out;
}

std::optional<int64_t> integerOrNone(const Statement& s, const char* column) {
  return s.isNull(column) ? std::nullopt : std::optional(s.integer(column));
}

Result<void> readSymbols(const Reader& reader, ByCompile& out, const std::string& where) {
  return reader.each("SELECT symbol_id, compile_id, name, kind, source, hint, lower, upper, policy, reason, before, after, file, line, "
                          "stack FROM symbols" + where + " ORDER BY position, symbol_id", {}, [&](const Statement& s) {
    ShapeSymbol one;
    one.id = s.integer("symbol_id"), one.compile = s.integer("compile_id");
    one.name = s.string("name"), one.kind = s.string("kind"), one.source = s.string("source"), one.hint = s.string("hint");
    one.lower = integerOrNone(s, "lower"), one.upper = integerOrNone(s, "upper");
    one.policy = s.string("policy"), one.reason = s.string("reason"), one.before = s.string("before"), one.after = s.string("after");
    one.file = s.string("file"), one.line = s.integer("line"), one.stack = parseStack(s.text("stack"));
    out[one.compile].symbols.push_back(std::move(one));
  });
}

Result<void> readRows(const Reader& reader, ByCompile& out, const std::string& where) {
  auto read = readSymbols(reader, out, where);
  if (read) read = reader.each("SELECT relation_id, compile_id, guard_id, kind, relation, op, left, right, symbols, reason, failures, file, "
                               "line, stack FROM relations" + where + " ORDER BY position, relation_id", {}, [&](const Statement& s) {
    ShapeRelation one;
    one.id = s.integer("relation_id"), one.compile = s.integer("compile_id"), one.guard = s.integer("guard_id");
    one.kind = s.string("kind"), one.text = s.string("relation"), one.op = s.string("op"), one.left = s.string("left"), one.right = s.string("right");
    one.symbols = parseNames(s.text("symbols")), one.reason = s.string("reason"), one.cost.misses = boundedAmount(s.integer("failures"));
    one.file = s.string("file"), one.line = s.integer("line"), one.stack = parseStack(s.text("stack"));
    if (one.right == "True" && one.op == "==") one.text = one.left;
    out[one.compile].relations.push_back(std::move(one));
  });
  if (read) read = reader.each("SELECT specialisation_id, compile_id, guard_id, kind, expression, symbols, source, value, operator, reason, "
                               "file, line, stack FROM specialisations" + where + " ORDER BY position, specialisation_id", {}, [&](const Statement& s) {
    ShapeSpecialisation one;
    one.id = s.integer("specialisation_id"), one.compile = s.integer("compile_id"), one.guard = s.integer("guard_id");
    one.kind = s.string("kind"), one.expression = s.string("expression"), one.symbols = parseNames(s.text("symbols")), one.source = s.string("source");
    one.value = s.string("value"), one.op = s.string("operator"), one.reason = s.string("reason");
    one.file = s.string("file"), one.line = s.integer("line"), one.stack = parseStack(s.text("stack"));
    out[one.compile].specialisations.push_back(std::move(one));
  });
  if (!read) return read;
  for (auto& [compile, entry] : out) {
    for (auto& relation : entry.relations) {
      relation.isSpecialisation = std::any_of(entry.specialisations.begin(), entry.specialisations.end(), [&](const auto& s) {
        return relation.op == "==" && ((relation.left == s.expression && relation.right == s.value) || (relation.right == s.expression && relation.left == s.value));
      });
    }
  }
  return {};
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("-0123456789.e+") == text.npos && std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// A number that a call brought and the entry was not made for.
struct Changed {
  std::string source, from, to;
};

std::vector<Changed> changesOf(const GuardMiss& miss) {
  std::vector<Changed> out;
  GuardProblem problem;
  problem.kind = miss.kind, problem.text = miss.text, problem.expected = miss.expected, problem.found = miss.found;
  const TensorChange change = changeOf(problem);
  const bool isSize = change.what == TensorChange::What::Size;
  if (isSize || change.what == TensorChange::What::Stride) {
    for (size_t i = 0; i < change.dims.size() && i < change.numbers.size(); ++i) {
      out.push_back({fmt::format("{}.{}()[{}]", miss.source, isSize ? "size" : "stride", change.dims[i]), change.numbers[i].first, change.numbers[i].second});
    }
  } else if (isNumber(miss.expected) && !miss.source.empty() && (miss.found.empty() || isNumber(miss.found))) {
    out.push_back({miss.source, miss.expected, miss.found});
  }
  return out;
}

struct Miss {
  const GuardMiss* miss;
  std::vector<Changed> changes;
  int64_t ns;  ///< compile time of the entry that it led to
};

void addTo(ShapeCost& cost, const Miss& miss) {
  if (miss.miss->recompile > 0) ++cost.recompiles, addBounded(cost.ns, miss.ns);
  cost.limit |= miss.miss->outcome == "limit";
}

bool concerns(const Miss& miss, const std::string& source) {
  return std::any_of(miss.changes.begin(), miss.changes.end(), [&](const Changed& c) { return c.source == source; });
}

void addCosts(ShapeEntry& entry, const std::vector<Miss>& misses) {
  for (const Miss& m : misses) {
    if (m.miss->entry != entry.compile) continue;
    for (auto& relation : entry.relations) {
      if (relation.guard > 0 && relation.guard == m.miss->guard && m.changes.empty()) addTo(relation.cost, m);
    }
    for (auto& s : entry.specialisations) {
      const bool byGuard = s.guard > 0 && s.guard == m.miss->guard && (m.changes.empty() || s.source.empty());
      if (byGuard || (!s.source.empty() && concerns(m, s.source))) {
        addTo(s.cost, m);
        ++s.cost.misses;
      }
    }
  }
}

const ShapeSpecialisation* specialisationOf(const ShapeEntry& entry, const std::string& source) {
  for (const auto& s : entry.specialisations) {
    if (s.source == source) return &s;
  }
  // Of an expression over several, the one symbol that is read there.
  for (const auto& s : entry.specialisations) {
    for (const auto& symbol : entry.symbols) {
      if (symbol.source == source && s.symbols.size() == 1 && s.symbols[0] == symbol.name) return &s;
    }
  }
  return nullptr;
}

std::string staticReason(const Reader& reader, const VariedNumber& number, const ShapeFrame& frame) {
  const std::string automatic = reader.info("config.automatic_dynamic_shapes"), engine = reader.info("engine");
  if (automatic == "False" || automatic == "false" || automatic == "0") return say(FUSEBOX_TEXT("Shapes", "automatic_dynamic_shapes was off"));
  if (frame.limit) return say(FUSEBOX_TEXT("Shapes", "the frame's limit of entries was reached"));
  const bool isSize = number.source.find(".size()[") != std::string::npos;
  if (number.cost.recompiles == 0) {
    return say(isSize ? FUSEBOX_TEXT("Shapes", "a size is a constant until a second value of it is seen")
                      : FUSEBOX_TEXT("Shapes", "a number is a constant until a second value of it is seen"));
  }
  const auto isApart = [](const std::string& value) { return value == "0" || value == "1"; };
  if (isSize && number.values.size() == 2 && std::any_of(number.values.begin(), number.values.end(), isApart))
    return say(FUSEBOX_TEXT("Shapes", "sizes 0 and 1 are entries of their own"));
  return say(FUSEBOX_TEXT("Shapes", "each value was compiled for itself; the session holds no reason"));
}

/// The first entry that was made for another value of a number and takes any; 0 if there is none. Sizes have symbols for that.
int64_t entryForAny(const Reader& reader, const ShapeFrame& frame, const std::vector<Miss>& misses, const std::string& source) {
  if (source.ends_with(']') && (source.find(".size()[") != std::string::npos || source.find(".stride()[") != std::string::npos)) return 0;
  for (const Miss& m : misses) {
    if (m.miss->recompile == 0 || !concerns(m, source)) continue;
    const auto entry = std::find_if(frame.entries.begin(), frame.entries.end(), [&](const ShapeEntry& e) { return e.compile == m.miss->recompile; });
    if (entry != frame.entries.end() && takesAnyValue(reader, *entry, *m.miss)) return entry->compile;
  }
  return 0;
}

void findVaried(const Reader& reader, const RecompileChain& chain, const std::vector<Miss>& misses, ShapeFrame& frame) {
  const auto of = [&](const std::string& source) -> VariedNumber& {
    for (auto& v : frame.varied) {
      if (v.source == source) return v;
    }
    frame.varied.push_back({.source = source});
    return frame.varied.back();
  };
  for (const Miss& m : misses) {
    for (const Changed& c : m.changes) {
      VariedNumber& v = of(c.source);
      for (const auto& value : {c.from, c.to}) {
        if (!value.empty() && std::find(v.values.begin(), v.values.end(), value) == v.values.end()) v.values.push_back(value);
      }
      addTo(v.cost, m);
    }
  }
  for (auto& v : frame.varied) {
    const ShapeSpecialisation* fixed = nullptr;
    for (const auto& entry : frame.entries) {
      const auto* specialised = specialisationOf(entry, v.source);
      const auto symbol = std::find_if(entry.symbols.begin(), entry.symbols.end(), [&](const auto& s) { return s.source == v.source; });
      if (specialised) fixed = specialised;
      if (symbol == entry.symbols.end() || specialised) continue;
      if (v.compile == 0) v.compile = entry.compile;
      v.symbol = symbol->name;
      fixed = nullptr;
    }
    if (fixed) {
      v.outcome = VariedNumber::Outcome::Specialised;
      v.compile = fixed->compile;
      v.symbol.clear();
      v.why = fixed->sentence();
      v.advice = adviseShape(reader, *fixed);
    } else if (!v.symbol.empty() || (v.compile = entryForAny(reader, frame, misses, v.source)) != 0) {
      v.outcome = VariedNumber::Outcome::Symbolic;
    } else {
      v.why = staticReason(reader, v, frame);
      for (auto m = misses.rbegin(); m != misses.rend() && v.advice.empty(); ++m) {
        if (concerns(*m, v.source)) v.advice = adviseMiss(reader, chain, *m->miss);
      }
    }
  }
}

}  // namespace

std::string ShapeSymbol::range() const {
  if (lower && upper) return *lower == *upper ? std::to_string(*lower) : fmt::format("{} … {}", *lower, *upper);
  if (lower) return say(FUSEBOX_TEXT("Shapes", "at least {}"), *lower);
  if (upper) return say(FUSEBOX_TEXT("Shapes", "at most {}"), *upper);
  return say(FUSEBOX_TEXT("Shapes", "any number"));
}

std::string ShapeSymbol::legend() const {
  std::string out = name;
  if (!source.empty()) out += " = " + source;
  out += (source.empty() ? ": " : ", ") + range();
  if (!hint.empty()) out += say(FUSEBOX_TEXT("Shapes", ", {} at capture"), hint);
  if (kind == "unbacked") out += say(FUSEBOX_TEXT("Shapes", ", known when the graph runs"));
  return out;
}

std::string ShapeSpecialisation::sentence() const {
  const std::string what = expression.empty() ? source : expression;
  std::string out = line > 0 ? say(FUSEBOX_TEXT("Shapes", "{} was specialised to {} at {}:{}"), what, value, file, line)
                             : say(FUSEBOX_TEXT("Shapes", "{} was specialised to {}"), what, value);
  const std::string why = op.empty() ? reason : reason.empty() ? op : op + ", " + reason;
  if (!why.empty()) out += ": " + why;
  return out;
}

Result<std::unordered_map<int64_t, ShapeEntry>> shapeEntries(const Reader& reader) {
  ByCompile entries;
  auto read = readRows(reader, entries, "");
  if (!read) return tl::unexpected(read.error());
  return entries;
}

Result<ShapeEntry> shapeEntry(const Reader& reader, int64_t compile) {
  ByCompile entries;
  auto read = readRows(reader, entries, fmt::format(" WHERE compile_id = {}", compile));
  if (!read) return tl::unexpected(read.error());
  ShapeEntry entry = std::move(entries[compile]);
  entry.compile = compile;
  if (entry.relations.empty() && entry.specialisations.empty()) return entry;
  std::deque<GuardMiss> kept;
  std::vector<Miss> misses;
  read = reader.each("SELECT f.compile_id, coalesce(c.id, 0) AS recompile, f.guard_id, g.kind, g.source, f.guard, f.expected, f.found, f.outcome, "
                     "c.end_ns - c.start_ns AS cost_ns FROM t_guard_failure f LEFT JOIN t_compile c ON c.failure_id = f.id LEFT JOIN t_guard g ON "
                     "g.id = f.guard_id WHERE f.compile_id = ? AND (c.id IS NOT NULL OR f.outcome = 'limit')",
                     {compile}, [&](const Statement& s) {
    GuardMiss& m = kept.emplace_back();
    m.entry = s.integer("compile_id"), m.recompile = s.integer("recompile"), m.guard = s.integer("guard_id");
    m.kind = s.string("kind"), m.source = s.string("source"), m.text = s.string("guard"), m.expected = s.string("expected"), m.found = s.string("found"), m.outcome = s.string("outcome");
    misses.push_back({&m, changesOf(m), boundedAmount(s.integer("cost_ns"))});
  });
  if (!read) return tl::unexpected(read.error());
  addCosts(entry, misses);
  return entry;
}

std::vector<std::string> shapeSentences(const ShapeEntry& entry, const ShapeEntry* before) {
  std::vector<std::string> out;
  for (const auto& s : entry.symbols) {
    const auto same = [&](const ShapeSymbol& other) { return other.source == s.source; };
    if (s.source.empty() || s.kind == "unbacked" || (before && std::any_of(before->symbols.begin(), before->symbols.end(), same))) continue;
    out.push_back(s.before.empty() || s.after.empty()
                      ? say(FUSEBOX_TEXT("Shapes", "{} became symbolic ({})"), s.source, s.name)
                      : say(FUSEBOX_TEXT("Shapes", "{} became symbolic ({}): it was {}, now {}"), s.source, s.name, s.before, s.after));
  }
  for (const auto& s : entry.specialisations) out.push_back(s.sentence());
  return out;
}

Result<std::vector<ShapeFrame>> shapeFrames(const Reader& reader, bool all) {
  ByCompile rows;
  auto read = readRows(reader, rows, "");
  if (!read) return tl::unexpected(read.error());
  auto chains = recompileChains(reader, true);
  if (!chains) return tl::unexpected(chains.error());
  std::vector<ShapeFrame> frames;
  for (const RecompileChain& chain : *chains) {
    ShapeFrame frame;
    frame.frame = chain.frame, frame.line = chain.line, frame.name = chain.name, frame.file = chain.file;
    frame.recompiles = std::max<int64_t>(0, static_cast<int64_t>(chain.entries.size()) - 1);
    frame.recompileNs = chain.recompileNs;
    frame.limit = chain.status == "limit";
    std::unordered_map<int64_t, int64_t> ns;
    for (const ChainEntry& e : chain.entries) {
      ShapeEntry entry = std::move(rows[e.compile]);
      entry.compile = e.compile, entry.attempt = e.attempt, entry.ns = e.compileNs, entry.status = e.status, entry.failure = e.cause;
      ns[e.compile] = e.compileNs;
      frame.entries.push_back(std::move(entry));
    }
    std::vector<Miss> misses;
    for (const GuardMiss& m : chain.misses) misses.push_back({&m, changesOf(m), m.recompile > 0 ? ns[m.recompile] : 0});
    for (auto& entry : frame.entries) addCosts(entry, misses);
    findVaried(reader, chain, misses, frame);
    const bool any = !frame.varied.empty() || std::any_of(frame.entries.begin(), frame.entries.end(), [](const ShapeEntry& e) {
      return !e.symbols.empty() || !e.relations.empty() || !e.specialisations.empty();
    });
    if (any || all) frames.push_back(std::move(frame));
  }
  return frames;
}

Result<std::vector<ShapeSymbol>> symbolsOf(const Reader& reader, int64_t compile) {
  ByCompile entries;
  auto read = readSymbols(reader, entries, fmt::format(" WHERE compile_id IN (SELECT {0} UNION SELECT parent_compile_id FROM compiles WHERE compile_id = {0} "
                                                       "AND kind = 'backward')", compile));
  if (!read) return tl::unexpected(read.error());
  std::vector<ShapeSymbol> out;
  for (auto& [id, entry] : entries) {
    if (id == compile || !entries.contains(compile)) out = std::move(entry.symbols);
  }
  return out;
}

std::vector<const ShapeSymbol*> symbolsNamedIn(const std::vector<ShapeSymbol>& symbols, std::string_view text) {
  std::vector<const ShapeSymbol*> out;
  const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    if (!isWord(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && isWord(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    i = end;
    for (const auto& s : symbols) {
      if (s.name == word && std::find(out.begin(), out.end(), &s) == out.end()) out.push_back(&s);
    }
  }
  return out;
}

}  // namespace fusebox::query
