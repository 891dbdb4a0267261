// One graph beside another: nodes by their order, kernels by the nodes that they compute.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "profiler/compare/align.h"
#include "profiler/compare/outline.h"

namespace fusebox::compare {
namespace {

constexpr int kMostNodes = 300;  // listed of one graph; the rest is counted

std::string nodeText(const Node& node) { return fmt::format("{} {}{}", node.op, node.dtype, node.shape); }

Side nodeSide(const Node* node) {
  return node ? Side{.present = true, .text = nodeText(*node), .id = node->id, .place = node->place} : Side{};
}

struct NodePairs {
  std::vector<int32_t> inB;  ///< by node of A, -1 for none
  std::vector<Match> all;
  std::vector<char> otherShape;  ///< by match: both sides have a node, of shapes that differ
  bool cut = false;
};

/// "aten::add.Tensor" gives "aten::add".
std::string_view baseOp(std::string_view op) { return op.substr(0, op.find('.', op.find("::") == std::string_view::npos ? 0 : op.find("::"))); }

constexpr std::string_view kViews[] = {"aten::t", "aten::permute", "aten::transpose", "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::expand", "aten::unsqueeze",
                                       "aten::squeeze", "aten::slice", "aten::select", "aten::alias", "aten::detach", "aten::as_strided"};

/// getitem says nothing: engines unpack results differently. They also word views differently, which compute nothing, and sizes, which are
/// nodes to one and expressions to another.
bool counts(const Node& node, bool sameEngine) {
  if (node.op == "operator.getitem" || node.op == "getitem") return false;
  if (!sameEngine && (node.op.starts_with("operator.") || node.op.starts_with("aten::sym_"))) return false;
  return sameEngine || std::find(std::begin(kViews), std::end(kViews), baseOp(node.op)) == std::end(kViews);
}

/// Unknown shapes are no difference.
bool differ(const std::string& x, const std::string& y) { return !x.empty() && !y.empty() && x != y; }

bool changed(const Node& a, const Node& b, bool otherShape, bool sameEngine) {
  return otherShape || differ(a.dtype, b.dtype) || (sameEngine && a.op != b.op);
}

/// A shape without what only looks different: blanks, and parentheses around parentheses.
std::string plainShape(const std::string& shape) {
  std::string out;
  std::vector<size_t> open;             // where in `out` the parentheses stand that are open
  size_t closed = std::string::npos;    // the one that the last character closed
  for (const char c : shape) {
    if (c == ' ') continue;
    if (c == '(') open.push_back(out.size());
    const size_t opened = c == ')' && !open.empty() ? open.back() : std::string::npos;
    if (opened != std::string::npos) open.pop_back();
    if (opened != std::string::npos && closed == opened + 1) {  // "((s0//2))"
      out.erase(opened, 1);
      closed = opened;
      continue;
    }
    closed = opened;
    out += c;
  }
  return out;
}

/// Which symbol of B stands for which of A: an engine, and a run, numbers the sizes of a program in its own way.
class SymbolPairs {
 public:
  /// The texts are the same but for the names of symbols, which go on standing for one another.
  bool same(std::string_view x, std::string_view y) {
    const auto known = std::pair(inB_, inA_);
    while (!x.empty() && !y.empty()) {
      const std::string_view a = takeWord(x), b = takeWord(y);
      if (isSymbol(a) && isSymbol(b) ? !pair(a, b) : a != b) break;
      if (x.empty() && y.empty()) return true;
    }
    std::tie(inB_, inA_) = known;
    return false;
  }

 private:
  /// A name or number, or one character.
  static std::string_view takeWord(std::string_view& text) {
    const auto ends = std::find_if_not(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    const std::string_view word = text.substr(0, std::max<size_t>(1, static_cast<size_t>(ends - text.begin())));
    text.remove_prefix(word.size());
    return word;
  }
  /// "s0", "u3", "zuf1".
  static bool isSymbol(std::string_view word) {
    const size_t digits = word.find_first_of("0123456789");
    return digits != 0 && digits != std::string_view::npos && word.find_first_not_of("0123456789", digits) == std::string_view::npos;
  }
  bool pair(std::string_view a, std::string_view b) {
    const auto there = inB_.try_emplace(std::string(a), b).first, back = inA_.try_emplace(std::string(b), a).first;
    return there->second == b && back->second == a;
  }

  std::map<std::string, std::string> inB_, inA_;
};

NodePairs alignNodes(const Graph& a, const Graph& b, bool sameEngine) {
  Vocabulary words;
  NodePairs out;
  out.inB.assign(a.nodes.size(), -1);
  std::vector<int32_t> x, y, whereX, whereY;
  const auto spell = [&](const Graph& g, std::vector<int32_t>& tokens, std::vector<int32_t>& where) {
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      if (!counts(g.nodes[i], sameEngine)) continue;
      tokens.push_back(words.of(std::string(baseOp(g.nodes[i].op))));
      where.push_back(static_cast<int32_t>(i));
    }
  };
  spell(a, x, whereX);
  spell(b, y, whereY);
  for (const Match& m : alignSequences(x, y, &out.cut)) {
    const Match pair{m.a < 0 ? -1 : whereX[static_cast<size_t>(m.a)], m.b < 0 ? -1 : whereY[static_cast<size_t>(m.b)]};
    if (pair.a >= 0 && pair.b >= 0) out.inB[static_cast<size_t>(pair.a)] = pair.b;
    out.all.push_back(pair);
  }
  SymbolPairs symbols;
  for (const Match& m : out.all) {
    const bool both = m.a >= 0 && m.b >= 0;
    const std::string x = both ? a.nodes[static_cast<size_t>(m.a)].shape : "", y = both ? b.nodes[static_cast<size_t>(m.b)].shape : "";
    out.otherShape.push_back(differ(x, y) && !symbols.same(plainShape(x), plainShape(y)));
  }
  return out;
}

/// How the nodes of two graphs differ, for the row of the graphs: both of its sides may read the same.
struct NodeDifferences {
  int64_t onlyA = 0, onlyB = 0, shapes = 0, types = 0, operators = 0;
  std::string first;  ///< the first node of both sides that differs: "aten::mul float32[8, 64] → float32[16, 64]"

  bool any() const { return onlyA + onlyB + shapes + types + operators > 0; }
  /// "3 nodes of other shapes, 1 only in B".
  std::string text() const {
    struct Part {
      int64_t count;
      Text one, many;
    };
    const Part parts[] = {{shapes, FUSEBOX_TEXT("Compare", "1 node of another shape"), FUSEBOX_TEXT("Compare", "{} nodes of other shapes")},
                          {types, FUSEBOX_TEXT("Compare", "1 node of another type"), FUSEBOX_TEXT("Compare", "{} nodes of other types")},
                          {operators, FUSEBOX_TEXT("Compare", "1 node of another operator"), FUSEBOX_TEXT("Compare", "{} nodes of other operators")},
                          {onlyA, FUSEBOX_TEXT("Compare", "1 node only in A"), FUSEBOX_TEXT("Compare", "{} nodes only in A")},
                          {onlyB, FUSEBOX_TEXT("Compare", "1 node only in B"), FUSEBOX_TEXT("Compare", "{} nodes only in B")}};
    std::string out;
    for (const Part& part : parts) {
      if (part.count == 0) continue;
      out += (out.empty() ? "" : ", ") + (part.count == 1 ? say(part.one) : say(part.many, part.count));
    }
    return out;
  }
};

NodeDifferences nodeDifferences(const Graph& a, const Graph& b, const NodePairs& pairs, bool sameEngine) {
  NodeDifferences out;
  for (size_t i = 0; i < pairs.all.size(); ++i) {
    const Match& m = pairs.all[i];
    if (m.a < 0 || m.b < 0) {
      ++(m.a < 0 ? out.onlyB : out.onlyA);
      continue;
    }
    const Node &x = a.nodes[static_cast<size_t>(m.a)], &y = b.nodes[static_cast<size_t>(m.b)];
    if (!changed(x, y, pairs.otherShape[i], sameEngine)) continue;
    ++(pairs.otherShape[i] ? out.shapes : differ(x.dtype, y.dtype) ? out.types : out.operators);
    if (out.first.empty()) out.first = fmt::format("{} → {}", nodeText(x), x.op == y.op ? y.dtype + y.shape : nodeText(y));
  }
  return out;
}

std::string nameOf(const Graph& graph) { return graph.name.empty() ? say(FUSEBOX_TEXT("Compare", "a graph")) : graph.name; }

void listNodes(Outline& o, int32_t parent, const Graph& a, const Graph& b, const NodePairs& pairs) {
  int listed = 0;
  int64_t left = 0;
  for (size_t i = 0; i < pairs.all.size(); ++i) {
    const Match& m = pairs.all[i];
    const Node *x = m.a < 0 ? nullptr : &a.nodes[static_cast<size_t>(m.a)], *y = m.b < 0 ? nullptr : &b.nodes[static_cast<size_t>(m.b)];
    const bool other = x && y && changed(*x, *y, pairs.otherShape[i], o.sameEngine);
    if (x && y && !other) continue;
    if (++listed > kMostNodes) {
      ++left;
      continue;
    }
    o.add(parent, Subject::Node, (x ? x : y)->op, nodeSide(x), nodeSide(y), other);
  }
  if (left > 0) o.out.limits.push_back(say(FUSEBOX_TEXT("Compare", "{}: {} more nodes differ and are not listed"), nameOf(a), left));
  if (pairs.cut) o.out.limits.push_back(say(FUSEBOX_TEXT("Compare", "{}: the graphs are too different to be aligned node by node"), nameOf(a)));
}

/// How much two groups compute the same nodes: 0 to 1.
double overlap(const Group& a, const Group& b, const NodePairs& pairs) {
  int64_t common = 0;
  for (const int32_t node : a.nodes) {
    const int32_t other = pairs.inB[static_cast<size_t>(node)];
    if (other >= 0 && std::find(b.nodes.begin(), b.nodes.end(), other) != b.nodes.end()) ++common;
  }
  const auto whole = static_cast<int64_t>(a.nodes.size() + b.nodes.size()) - common;
  return whole > 0 ? static_cast<double>(common) / static_cast<double>(whole) : 0;
}

/// Groups whose nodes are not known are paired by their place between those that have partners, and by their names.
void pairByOrder(const Graph& a, const Graph& b, std::vector<int32_t>& partner, std::vector<char>& used) {
  const auto unknown = [](const Group& g) { return g.nodes.empty(); };
  const bool needed = std::any_of(a.groups.begin(), a.groups.end(), unknown) || std::any_of(b.groups.begin(), b.groups.end(), unknown);
  if (!needed || a.groups.size() * b.groups.size() > 4'000'000) return;
  const auto matches = alignBySimilarity(static_cast<int32_t>(a.groups.size()), static_cast<int32_t>(b.groups.size()), 0.1, [&](int32_t i, int32_t j) {
    if (partner[static_cast<size_t>(i)] >= 0 || used[static_cast<size_t>(j)]) return partner[static_cast<size_t>(i)] == j ? 2.0 : 0.0;
    const Group &x = a.groups[static_cast<size_t>(i)], &y = b.groups[static_cast<size_t>(j)];
    if (!unknown(x) && !unknown(y)) return 0.0;
    if (withoutNumber(x.name) == withoutNumber(y.name)) return 1.0;
    return (x.kind == "extern") == (y.kind == "extern") && x.kind != "extern" ? 0.4 : 0.0;
  });
  for (const Match& m : matches) {
    if (m.a < 0 || m.b < 0 || partner[static_cast<size_t>(m.a)] >= 0 || used[static_cast<size_t>(m.b)]) continue;
    partner[static_cast<size_t>(m.a)] = m.b;
    used[static_cast<size_t>(m.b)] = 1;
  }
}

/// Pairs of groups: those that share most nodes first.
std::vector<Match> alignGroups(const Graph& a, const Graph& b, const NodePairs& pairs) {
  std::vector<std::vector<int32_t>> groupsOfB(b.nodes.size());  // several may compute a node
  for (size_t j = 0; j < b.groups.size(); ++j)
    for (const int32_t node : b.groups[j].nodes) groupsOfB[static_cast<size_t>(node)].push_back(static_cast<int32_t>(j));
  struct Scored {
    double score;
    int32_t a, b;
  };
  std::vector<Scored> scored;
  for (size_t i = 0; i < a.groups.size(); ++i) {
    std::set<int32_t> candidates;
    for (const int32_t node : a.groups[i].nodes) {
      const int32_t other = pairs.inB[static_cast<size_t>(node)];
      if (other >= 0) candidates.insert(groupsOfB[static_cast<size_t>(other)].begin(), groupsOfB[static_cast<size_t>(other)].end());
    }
    for (const int32_t j : candidates) scored.push_back({overlap(a.groups[i], b.groups[static_cast<size_t>(j)], pairs), static_cast<int32_t>(i), j});
  }
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& x, const Scored& y) { return x.score > y.score; });
  std::vector<int32_t> partner(a.groups.size(), -1);
  std::vector<char> used(b.groups.size(), 0);
  for (const Scored& s : scored) {
    if (partner[static_cast<size_t>(s.a)] >= 0 || used[static_cast<size_t>(s.b)]) continue;
    partner[static_cast<size_t>(s.a)] = s.b;
    used[static_cast<size_t>(s.b)] = 1;
  }
  pairByOrder(a, b, partner, used);
  std::vector<Match> out;
  for (size_t i = 0; i < a.groups.size(); ++i) out.push_back({static_cast<int32_t>(i), partner[i]});
  for (size_t j = 0; j < b.groups.size(); ++j) {
    if (!used[j]) out.push_back({-1, static_cast<int32_t>(j)});
  }
  return out;
}

/// Why `side` did not keep together what the other did: a refusal between a node of `group` and one outside it that the other side has in
/// the same kernel.
std::string refusalNote(const Graph& side, const Group& group, const std::set<int32_t>& together, const char* who) {
  const std::set<int32_t> inside(group.nodes.begin(), group.nodes.end());
  for (const Refusal& r : side.refusals) {
    const bool a = inside.contains(r.a), b = inside.contains(r.b);
    const int32_t outer = a ? r.b : r.a;
    if (a != b && together.contains(outer)) return say(FUSEBOX_TEXT("Compare", "{} refused to fuse it with {}: {}"), who, side.nodes[static_cast<size_t>(outer)].op, r.reason);
  }
  return {};
}

/// The nodes of `to` that correspond to those of `group`.
std::set<int32_t> translated(const Group& group, const std::vector<int32_t>& map) {
  std::set<int32_t> out;
  for (const int32_t node : group.nodes) {
    if (map[static_cast<size_t>(node)] >= 0) out.insert(map[static_cast<size_t>(node)]);
  }
  return out;
}

Side groupSide(const Group* g) {
  if (!g) return {};
  std::string text = g->nodes.empty() ? g->kind : g->nodes.size() == 1 ? say(FUSEBOX_TEXT("Compare", "{}, 1 node"), g->kind) : say(FUSEBOX_TEXT("Compare", "{}, {} nodes"), g->kind, g->nodes.size());
  if (g->time.count > 0) text += ", " + spreadText(g->time);
  return {.present = true, .text = std::move(text), .id = g->kernel, .place = g->place, .value = static_cast<double>(g->readBytes + g->writeBytes), .time = g->time};
}

struct GroupContext {
  const Graph &a, &b;
  const NodePairs& pairs;
  std::vector<int32_t> inA;  ///< by node of B
};

/// Why a kernel differs, and whether it is because a fusion was refused.
struct Note {
  std::string text;
  bool refusal = false;
};
Note groupNote(const GroupContext& c, const Group* x, const Group* y) {
  if (x && y) {
    const auto ofA = translated(*x, c.pairs.inB);
    const std::set<int32_t> ofB(y->nodes.begin(), y->nodes.end());
    std::string note;
    if (!std::includes(ofB.begin(), ofB.end(), ofA.begin(), ofA.end())) note = refusalNote(c.b, *y, ofA, "B");
    if (note.empty() && !std::includes(ofA.begin(), ofA.end(), ofB.begin(), ofB.end())) note = refusalNote(c.a, *x, translated(*y, c.inA), "A");
    if (!note.empty()) return {note, true};
    if (x->kind == y->kind) return {};
    note = y->kind == "extern" ? y->reason : x->reason;
    return {note, note.find("refused") != std::string::npos};
  }
  // On one side only: it was part of a larger kernel on the other.
  const Graph& other = x ? c.b : c.a;
  const auto there = x ? translated(*x, c.pairs.inB) : translated(*y, c.inA);
  for (const Group& group : other.groups) {
    const bool holds = std::any_of(group.nodes.begin(), group.nodes.end(), [&](int32_t n) { return there.contains(n); });
    if (!holds) continue;
    const auto together = translated(group, x ? c.inA : c.pairs.inB);
    const std::string refused = refusalNote(x ? c.a : c.b, x ? *x : *y, together, x ? "A" : "B");
    if (!refused.empty()) return {refused, true};
    return {say(FUSEBOX_TEXT("Compare", "{} computes this in {}"), x ? "B" : "A", group.name)};
  }
  return {};
}

bool groupChanged(const Group& x, const Group& y, const NodePairs& pairs, bool sameEngine) {
  if (sameEngine ? x.kind != y.kind : (x.kind == "extern") != (y.kind == "extern")) return true;
  if (!x.nodes.empty() && !y.nodes.empty() && overlap(x, y, pairs) < 1) return true;
  if (!sameEngine) return false;  // engines count bytes differently
  const double a = static_cast<double>(x.readBytes + x.writeBytes), b = static_cast<double>(y.readBytes + y.writeBytes);
  return a > 0 && b > 0 && std::abs(a - b) > 0.01 * std::max(a, b);
}

/// What a kernel of both sides does otherwise where nothing was refused: the first node that one side alone computes in it, or its bytes.
std::string otherWork(const GroupContext& c, const Group& x, const Group& y) {
  const auto firstAlone = [](const Graph& graph, const Group& own, const std::set<int32_t>& others) -> std::string {
    for (const int32_t node : own.nodes)
      if (!others.contains(node)) return graph.nodes[static_cast<size_t>(node)].op;
    return {};
  };
  if (!x.nodes.empty() && !y.nodes.empty()) {
    const std::string inA = firstAlone(c.a, x, translated(y, c.inA)), inB = firstAlone(c.b, y, translated(x, c.pairs.inB));
    if (!inA.empty() && !inB.empty() && inA != inB) return say(FUSEBOX_TEXT("Compare", "it computes {} in A only, {} in B only"), inA, inB);
    if (!inA.empty() && inB.empty()) return say(FUSEBOX_TEXT("Compare", "it computes {} in A only"), inA);
    if (!inB.empty() && inA.empty()) return say(FUSEBOX_TEXT("Compare", "it computes {} in B only"), inB);
  }
  const auto bytes = [](const Group& g) { return static_cast<double>(g.readBytes + g.writeBytes); };
  return bytes(x) > 0 && bytes(y) > 0 && bytes(x) != bytes(y) ? say(FUSEBOX_TEXT("Compare", "it moves {} instead of {}"), bytesText(bytes(y)), bytesText(bytes(x))) : std::string();
}

void listGroups(Outline& o, int32_t parent, const Graph& a, const Graph& b, const NodePairs& pairs) {
  GroupContext context{a, b, pairs, std::vector<int32_t>(b.nodes.size(), -1)};
  for (size_t i = 0; i < pairs.inB.size(); ++i) {
    if (pairs.inB[i] >= 0) context.inA[static_cast<size_t>(pairs.inB[i])] = static_cast<int32_t>(i);
  }
  for (const Match& m : alignGroups(a, b, pairs)) {
    const Group *x = m.a < 0 ? nullptr : &a.groups[static_cast<size_t>(m.a)], *y = m.b < 0 ? nullptr : &b.groups[static_cast<size_t>(m.b)];
    const bool structural = !x || !y || groupChanged(*x, *y, pairs, o.sameEngine);
    Note note = groupNote(context, x, y);
    if (note.text.empty() && x && y && structural) note.text = otherWork(context, *x, *y);
    const int32_t entry = o.kernel(parent, (x ? x : y)->name, groupSide(x), groupSide(y), structural, std::move(note.text));
    o.at(entry).refusal = note.refusal;
  }
}

/// 0 where they are not known of every kernel.
double callBytes(const Graph& graph) {
  double sum = 0;
  for (const Group& group : graph.groups) {
    if (group.kind != "extern" && group.readBytes + group.writeBytes == 0) return 0;
  }
  for (const Group& group : graph.groups) sum += static_cast<double>(group.readBytes + group.writeBytes);
  return sum;
}

}  // namespace

void compareGraphs(Outline& o, int32_t parent, const Graph* x, const Graph* y) {
  static const Graph kNone;
  const Graph &a = x ? *x : kNone, &b = y ? *y : kNone;
  const Graph& named = x ? *x : *y;
  const auto side = [&](const Graph* g) {
    if (!g) return Side{};
    const auto calls = std::count_if(g->nodes.begin(), g->nodes.end(), [&](const Node& n) { return counts(n, o.sameEngine); });
    const std::string nodes = calls == 1 ? say(FUSEBOX_TEXT("Compare", "1 node")) : say(FUSEBOX_TEXT("Compare", "{} nodes"), calls);
    const std::string groups = g->groups.size() == 1 ? say(FUSEBOX_TEXT("Compare", "1 kernel or call")) : say(FUSEBOX_TEXT("Compare", "{} kernels and calls"), g->groups.size());
    const std::string text = g->groups.empty() ? say(FUSEBOX_TEXT("Compare", "{} ({})"), nodes, g->stage) : say(FUSEBOX_TEXT("Compare", "{}, {} ({})"), nodes, groups, g->stage);
    return Side{.present = true, .text = g->which.empty() ? text : g->which + ": " + text,
                .id = g->id, .value = static_cast<double>(calls)};
  };
  const NodePairs pairs = alignNodes(a, b, o.sameEngine);
  const NodeDifferences nodes = x && y ? nodeDifferences(a, b, pairs, o.sameEngine) : NodeDifferences{};
  const int32_t entry = o.add(parent, Subject::Graph, (named.backward ? FUSEBOX_TEXT("Compare", "backward graph") : FUSEBOX_TEXT("Compare", "graph")).text, side(x), side(y), nodes.any(), nodes.first);
  o.at(entry).change = nodes.text();
  if (x && y) listNodes(o, entry, a, b, pairs);
  if (!a.groups.empty() || !b.groups.empty()) {
    if (x && y) {
      o.count(entry, Subject::Count, FUSEBOX_TEXT("Compare", "kernels and calls"), static_cast<double>(a.groups.size()), static_cast<double>(b.groups.size()), countText);
      if (callBytes(a) > 0 && callBytes(b) > 0) {
        o.count(entry, Subject::Memory, FUSEBOX_TEXT("Compare", "bytes moved by a call"), callBytes(a), callBytes(b), bytesText,
                say(FUSEBOX_TEXT("Compare", "what kernels and calls read and write")));
      }
      if (a.poolBytes > 0 && b.poolBytes > 0) {
        o.count(entry, Subject::Memory, FUSEBOX_TEXT("Compare", "memory at its peak"), static_cast<double>(a.poolBytes), static_cast<double>(b.poolBytes), bytesText,
                say(FUSEBOX_TEXT("Compare", "buffers alive at one time, as planned")));
      }
    }
    listGroups(o, entry, a, b, pairs);
  }
  if (a.call.count > 0 || b.call.count > 0) o.time(entry, named.backward ? FUSEBOX_TEXT("Compare", "backward call") : FUSEBOX_TEXT("Compare", "call"), a.call, b.call, named.which);
}

}  // namespace fusebox::compare
