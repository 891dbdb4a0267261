// Two guard trees side by side.
#include <algorithm>
#include <map>
#include <memory>

#include "profiler/query/recompiles.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

struct GuardRow {
  int64_t id = 0, line = 0;
  std::string kind, source, expected, file, found, wanted;  ///< `wanted`: of what was found, as its failure says it
  bool madeOther = false;  ///< its failure made the other entry, which was made for what was found
  bool matched = false;
};

Result<std::vector<GuardRow>> guardsOf(const Reader& reader, int64_t compile, int64_t other) {
  std::vector<GuardRow> out;
  auto read = reader.each(
      // Of several failures that of the call which made the other entry: each entry has a guard that failed then, and one is named as its cause.
      "WITH mine AS MATERIALIZED (SELECT f.guard_id, f.found, f.expected, f.failure_id, f.outcome = 'recompile' AND (coalesce(f.recompile_id = ?2, 0) OR "
      "EXISTS(SELECT 1 FROM compiles c WHERE c.failure_id = f.failure_id AND c.compile_id = ?2)) AS made FROM guard_failures f WHERE f.compile_id = ?1), "
      "best AS (SELECT guard_id, found, expected, made, max(made * 1000000000000000000 + failure_id) FROM mine GROUP BY guard_id) "
      "SELECT g.guard_id, g.kind, g.source, coalesce(g.expected, g.code) AS wanted, g.file, g.line, b.found, coalesce(b.made, 0) AS made, b.expected FROM guards g "
      "LEFT JOIN best b ON b.guard_id = g.guard_id WHERE g.compile_id = ?1 ORDER BY g.position",
      {compile, other}, [&](const Statement& s) {
        out.push_back({s.integer("guard_id"), s.integer("line"), s.string("kind"), s.string("source"), s.string("wanted"), s.string("file"), s.string("found"), s.string("expected"), s.integer("made") != 0, false});
      });
  if (!read) return tl::unexpected(read.error());
  return out;
}

/// "L['self'].layers[0].weight" into "L['self']", ".layers", "[0]", ".weight". What stands in brackets is not cut.
std::vector<std::string> partsOf(const std::string& source) {
  constexpr size_t kDeepest = 100;
  std::vector<std::string> out;
  size_t start = 0;
  int depth = 0;
  char quote = 0;
  // The first subscript of L and G names the variable.
  const bool rooted = source.starts_with("L[") || source.starts_with("G[");
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (quote) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    const bool cut =
        depth == 0 && i > start && (c == '.' || c == '[') && !(rooted && start == 0 && i == 1) && out.size() < kDeepest;
    if (cut) {
      out.push_back(source.substr(start, i - start));
      start = i;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  if (start < source.size()) out.push_back(source.substr(start));
  return out;
}

/// A part of a source with the guards of both entries that hang on it.
struct SourceNode {
  std::string label;
  std::vector<GuardRow> a, b;
  std::vector<std::unique_ptr<SourceNode>> children;
  std::map<std::string, SourceNode*> index;

  SourceNode* child(const std::string& part) {
    auto [entry, isNew] = index.try_emplace(part, nullptr);
    if (isNew) {
      children.push_back(std::make_unique<SourceNode>());
      entry->second = children.back().get();
      entry->second->label = part;
    }
    return entry->second;
  }
};

void place(SourceNode& root, std::vector<GuardRow> guards, std::vector<GuardRow> SourceNode::* side) {
  for (GuardRow& guard : guards) {
    SourceNode* at = &root;
    for (const auto& part : partsOf(guard.source)) at = at->child(part);
    (at->*side).push_back(std::move(guard));
  }
}

/// The partner of a guard of A: the same kind, the same expectation if there is one.
GuardRow* partnerOf(const GuardRow& guard, std::vector<GuardRow>& others) {
  GuardRow* found = nullptr;
  for (GuardRow& other : others) {
    if (other.matched || other.kind != guard.kind) continue;
    if (other.expected == guard.expected) return &other;
    if (!found) found = &other;
  }
  return found;
}

using State = GuardTreeRow::State;

GuardTreeRow rowOf(const GuardRow* a, const GuardRow* b, int depth) {
  const GuardRow& any = a ? *a : *b;
  GuardTreeRow row;
  row.depth = depth;
  row.label = any.kind;
  row.file = any.file;
  row.line = any.line;
  if (a) row.a = a->expected, row.guardA = a->id, row.found = a->found;
  if (b) row.b = b->expected, row.guardB = b->id;
  // Words like "state as captured" are the same for different states.
  if (a && b && a->expected == b->expected && a->madeOther && !a->found.empty()) {
    row.b = a->found;
    if (!a->wanted.empty()) row.a = a->wanted;
  }
  row.state = !a ? State::OnlyB : !b ? State::OnlyA : row.a == row.b ? State::Same : State::Changed;
  return row;
}

int addRows(SourceNode& node, int depth, bool both, std::vector<GuardTreeRow>& out) {
  int differences = 0;
  const auto add = [&](const GuardRow* a, const GuardRow* b) {
    GuardTreeRow row = rowOf(a, b, depth);
    if (!both) row.state = State::Same;
    differences += row.state != State::Same;
    out.push_back(std::move(row));
  };
  // First those that both have word for word, so that they find each other.
  std::vector<GuardRow*> partners;
  for (GuardRow& guard : node.a) {
    GuardRow* partner = partnerOf(guard, node.b);
    if (partner && partner->expected == guard.expected)
      partner->matched = true;
    else
      partner = nullptr;
    partners.push_back(partner);
  }
  for (size_t i = 0; i < node.a.size(); ++i) {
    GuardRow* partner = partners[i] ? partners[i] : partnerOf(node.a[i], node.b);
    if (partner) partner->matched = true;
    add(&node.a[i], partner);
  }
  for (const GuardRow& guard : node.b) {
    if (!guard.matched) add(nullptr, &guard);
  }
  for (const auto& child : node.children) {
    GuardTreeRow row;
    row.depth = depth;
    row.isSource = true;
    row.label = child->label;
    const size_t at = out.size();
    out.push_back(std::move(row));
    const int below = addRows(*child, depth + 1, both, out);
    out[at].differences = below;
    if (below > 0) out[at].state = State::Changed;
    differences += below;
  }
  return differences;
}

}  // namespace

Result<std::vector<GuardTreeRow>> compareGuards(const Reader& reader, int64_t a, int64_t b) {
  const bool both = b != 0 && b != a;
  auto guardsA = guardsOf(reader, a, both ? b : 0);
  if (!guardsA) return tl::unexpected(guardsA.error());
  SourceNode root;
  place(root, std::move(*guardsA), &SourceNode::a);
  if (both) {
    auto guardsB = guardsOf(reader, b, 0);
    if (!guardsB) return tl::unexpected(guardsB.error());
    place(root, std::move(*guardsB), &SourceNode::b);
  }
  std::vector<GuardTreeRow> out;
  addRows(root, 0, both, out);
  return out;
}

}  // namespace fusebox::query
