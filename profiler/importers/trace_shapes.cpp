#include "profiler/importers/trace_shapes.h"

#include <algorithm>

namespace fusebox::importing {
namespace {

constexpr size_t kMostRelations = 100'000;

/// `code` with the names of symbols where it reads their sources.
std::string withNames(std::string code, const std::vector<TraceShapes::Symbol>& symbols) {
  std::vector<const TraceShapes::Symbol*> longestFirst;
  for (const auto& s : symbols) {
    if (!s.source.empty()) longestFirst.push_back(&s);
  }
  std::stable_sort(longestFirst.begin(), longestFirst.end(), [](auto* a, auto* b) { return a->source.size() > b->source.size(); });
  for (const auto* s : longestFirst) {
    for (size_t at = code.find(s->source); at != std::string::npos; at = code.find(s->source, at + s->name.size()))
      code.replace(at, s->source.size(), s->name);
  }
  return code;
}

/// Whether the relation is a whole-number bound of that symbol alone.
bool boundsOnly(const RelationText& relation, std::string_view name) {
  const auto number = [](const std::string& side) { return !side.empty() && side.find_first_not_of("-0123456789") == std::string::npos; };
  return (relation.left == name && number(relation.right)) || (relation.right == name && number(relation.left));
}

}  // namespace

const TraceShapes::Symbol* TraceShapes::symbol(std::string_view name) const {
  const auto found = std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == name; });
  return found == symbols.end() ? nullptr : &*found;
}

void TraceShapes::link(std::span<const Guard> guards) {
  if (symbols.empty()) return;
  for (const Guard& guard : guards) {
    const bool mayBe = guard.kind.empty() || guard.kind == "LAMBDA_GUARD" || guard.kind == "SYMBOLIC_SHAPE_GUARD" || guard.kind == "SHAPE_ENV";
    if (!mayBe || guard.code.size() > 4000 || guard.code.find("___as_tensor(") != guard.code.npos) continue;
    const std::string code = withNames(std::string(guard.code), symbols);
    if (code == guard.code) continue;
    if (const BoundText bound = parseBound(code); !bound.of.empty() && symbol(bound.of)) {
      // PyTorch checks all bounds of a symbol at once; those that nobody asked for are the symbol's range.
      for (auto& r : relations) {
        if (r.guard == 0 && boundsOnly(r.text, bound.of)) r.guard = guard.id;
      }
      continue;
    }
    const RelationText text = parseRelation(code);
    bool asked = false;
    for (auto& r : relations) {
      if (!sameRelation(r.text, text)) continue;
      if (r.guard == 0) r.guard = guard.id;
      asked = true;
    }
    if (asked || relations.size() >= kMostRelations) continue;
    const bool duck = guard.reason.find("duck sizing") != guard.reason.npos;
    const bool unknown = guard.reason.starts_with("(unknown source");
    relations.push_back({text, duck ? "duck" : "guard", unknown ? "the stride follows from the sizes" : std::string(guard.reason),
                         {std::string(guard.file), {}, guard.line}, 0, guard.id});
  }
}

std::string changedSource(std::string_view kind, std::string_view source, std::string_view failure) {
  if (kind != "TENSOR_MATCH") return kind == "EQUALS_MATCH" || kind == "CONSTANT_MATCH" ? std::string(source) : std::string();
  for (const auto& [what, method] : {std::pair{" size mismatch at index ", ".size()["}, std::pair{" stride mismatch at index ", ".stride()["}}) {
    const size_t at = failure.find(what);
    if (at == failure.npos) continue;
    const std::string_view index = failure.substr(at + std::string_view(what).size());
    const size_t digits = std::min(index.find_first_not_of("0123456789"), index.size());
    if (digits == 0 || digits > 4) continue;
    return std::string(source) + method + std::string(index.substr(0, digits)) + "]";
  }
  return {};
}

}  // namespace fusebox::importing
