// Functions of the user's program, aligned, and what was compiled of them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "profiler/compare/align.h"
#include "profiler/compare/outline.h"
#include "profiler/query/guard_words.h"
#include "profiler/query/operator_families.h"

namespace fusebox::compare {
namespace {

std::string placeText(const Place& place) {
  return place.file.empty() ? std::string() : fmt::format("{}:{}", baseName(place.file), place.line);
}

/// How surely two functions are the same, 0 to 4; a pair of 0 is none.
int likeness(const SourceMap& sources, const CodeObject& a, const CodeObject& b) {
  const bool file = sources.sameFile(a.place.file, b.place.file), line = file && sources.same(a.place, b.place);
  const bool name = a.name == b.name, qualified = !a.qualname.empty() && !b.qualname.empty() ? a.qualname == b.qualname : name;
  if (qualified && line) return 4;
  if (qualified && file) return 3;
  if (name && file) return 2;
  return line ? 1 : 0;  // renamed
}

std::vector<const Graph*> graphsOf(const CodeObject& object) {
  std::vector<const Graph*> out;
  for (const auto& compile : object.compiles)
    for (const auto& graph : compile.graphs) {
      if (!graph.nodes.empty() || !graph.groups.empty()) out.push_back(&graph);
    }
  return out;
}

/// Names of which a graph has some number each.
class Counts {
 public:
  void add(std::string name) { ++counts_[std::move(name)], ++total_; }
  bool isEmpty() const { return total_ == 0; }
  /// What both have, over all: 0 to 1.
  double shared(const Counts& other) const {
    int64_t common = 0;
    for (const auto& [name, count] : counts_) {
      const auto found = other.counts_.find(name);
      if (found != other.counts_.end()) common += std::min(count, found->second);
    }
    return total_ + other.total_ == 0 ? 1 : 2.0 * static_cast<double>(common) / static_cast<double>(total_ + other.total_);
  }

 private:
  std::map<std::string, int64_t> counts_;
  int64_t total_ = 0;
};

/// A symbol has a name of its own in each engine.
std::string withoutSymbols(const std::string& shape) {
  std::string out;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto isWord = [&](size_t at) { return at < shape.size() && (std::isalnum(static_cast<unsigned char>(shape[at])) || shape[at] == '_'); };
    if (!std::isalpha(static_cast<unsigned char>(shape[i]))) {
      out += shape[i];
      continue;
    }
    while (isWord(i + 1)) ++i;
    out += 's';
  }
  return out;
}

/// By the operators that two graphs share, and by what is left of them where an engine takes operators apart: a gelu is a product, an erf
/// and a sum to another, but lies between the same products of matrices.
class GraphLikeness {
 public:
  explicit GraphLikeness(const Graph& graph) : backward_(graph.backward) {
    std::set<std::string> pointwise;
    for (const auto& node : graph.nodes) {
      ops_.add(node.op);
      const std::string shape = withoutSymbols(node.shape);
      switch (query::operatorFamily(nameOf(node.op))) {
        case query::OperatorFamily::Matrix:
        case query::OperatorFamily::Convolution: work_.add(node.op + shape); break;
        case query::OperatorFamily::Pointwise:
          if (pointwise.insert(shape).second) work_.add(shape);
          break;
        default: break;
      }
    }
    for (const auto& group : graph.groups) {
      if (graph.nodes.empty()) ops_.add(group.name);
    }
  }
  double to(const GraphLikeness& other) const {
    if (backward_ != other.backward_) return 0;
    const double ops = ops_.shared(other.ops_);
    return work_.isEmpty() && other.work_.isEmpty() ? ops : std::max(ops, (ops + work_.shared(other.work_)) / 2);
  }

 private:
  /// "mul" of "aten::mul.Tensor".
  static std::string_view nameOf(std::string_view op) {
    op.remove_prefix(std::min(op.size(), op.rfind(':') + 1));
    return op.substr(0, op.find('.'));
  }

  bool backward_;
  Counts ops_, work_;
};

/// What an object's graphs compute, both directions.
double sameWork(const CodeObject& a, const CodeObject& b) {
  double best = 0;
  for (const Graph* g : graphsOf(a)) {
    const GraphLikeness left(*g);
    for (const Graph* h : graphsOf(b)) best = std::max(best, left.to(GraphLikeness(*h)));
  }
  return best;
}

/// Functions of PyTorch's own that engines put around a module (`inner` of one, `Sequential.forward` of the other) are told by what
/// they compute: the best pairs first.
void alignWrappers(const Outline& o, std::vector<char>& usedA, std::vector<char>& usedB, std::vector<Match>& out) {
  constexpr double kLeast = 0.55;  // more than equal shapes of other work
  constexpr size_t kMostPairs = 10'000;
  struct Pair {
    double likeness;
    size_t a, b;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < usedA.size(); ++i) {
    for (size_t j = 0; j < usedB.size() && pairs.size() < kMostPairs; ++j) {
      if (usedA[i] || usedB[j]) continue;
      const CodeObject &x = o.a.objects[i], &y = o.b.objects[j];
      if (SourceMap::isUsers(x.place.file) && SourceMap::isUsers(y.place.file)) continue;
      pairs.push_back({sameWork(x, y), i, j});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) { return x.likeness > y.likeness; });
  for (const Pair& p : pairs) {
    if (p.likeness < kLeast || usedA[p.a] || usedB[p.b]) continue;
    usedA[p.a] = usedB[p.b] = 1;
    out.push_back({static_cast<int32_t>(p.a), static_cast<int32_t>(p.b)});
  }
}

std::vector<Match> alignObjects(const Outline& o) {
  const auto &x = o.a.objects, &y = o.b.objects;
  std::vector<Match> out;
  std::vector<char> usedA(x.size(), 0), usedB(y.size(), 0);
  for (int wanted = 4; wanted > 0; --wanted) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (usedA[i]) continue;
      size_t best = y.size();
      int64_t nearest = 0;
      for (size_t j = 0; j < y.size(); ++j) {
        if (usedB[j] || likeness(o.sources, x[i], y[j]) != wanted) continue;
        const int64_t distance = std::abs(x[i].place.line - y[j].place.line);
        if (best == y.size() || distance < nearest) best = j, nearest = distance;
      }
      if (best == y.size()) continue;
      usedA[i] = usedB[best] = 1;
      out.push_back({static_cast<int32_t>(i), static_cast<int32_t>(best)});
    }
  }
  alignWrappers(o, usedA, usedB, out);
  std::sort(out.begin(), out.end(), [](const Match& m, const Match& n) { return m.a < n.a; });
  for (size_t i = 0; i < x.size(); ++i) {
    if (!usedA[i]) out.push_back({static_cast<int32_t>(i), -1});
  }
  for (size_t j = 0; j < y.size(); ++j) {
    if (!usedB[j]) out.push_back({-1, static_cast<int32_t>(j)});
  }
  return out;
}

/// Pairs what the first of the tests calls the same, then of the rest what the next one does.
template <class T, class... Same>
std::vector<Match> pairUp(const std::vector<T>& a, const std::vector<T>& b, const Same&... same) {
  std::vector<Match> out;
  std::vector<char> used(b.size(), 0);
  for (size_t i = 0; i < a.size(); ++i) out.push_back({static_cast<int32_t>(i), -1});
  const auto pass = [&](const auto& test) {
    for (Match& m : out) {
      for (size_t j = 0; j < b.size() && m.b < 0; ++j) {
        if (!used[j] && test(a[static_cast<size_t>(m.a)], b[j])) m.b = static_cast<int32_t>(j), used[j] = 1;
      }
    }
  };
  (pass(same), ...);
  for (size_t j = 0; j < b.size(); ++j) {
    if (!used[j]) out.push_back({-1, static_cast<int32_t>(j)});
  }
  return out;
}

/// Places where capture stopped. One kind at one place is one thing, however it is worded.
void compareStops(Outline& o, int32_t parent, Subject subject, const std::vector<Break>& a, const std::vector<Break>& b) {
  const auto side = [](const Break* x) {
    if (!x) return Side{};
    return Side{.present = true, .text = fmt::format("{}: {}", placeText(x->place), x->reason.empty() ? x->kind : x->reason), .id = x->id, .place = x->place,
                .value = static_cast<double>(x->count)};
  };
  // One line can hold several kinds; engines word them differently.
  const auto same = [&](const Break& x, const Break& y) { return o.sources.same(x.place, y.place) && (!o.sameEngine || x.kind == y.kind); };
  const auto moved = [&](const Break& x, const Break& y) { return o.sources.same(x.place, y.place); };
  for (const Match& m : pairUp(a, b, same, moved)) {
    const Break *x = m.a < 0 ? nullptr : &a[static_cast<size_t>(m.a)], *y = m.b < 0 ? nullptr : &b[static_cast<size_t>(m.b)];
    const bool other = x && y && o.sameEngine && x->kind != y->kind;
    o.add(parent, subject, (x ? x : y)->kind, side(x), side(y), other, other ? fmt::format("{} → {}", x->kind, y->kind) : std::string());
  }
}

void compareRecompiles(Outline& o, int32_t parent, const CodeObject& a, const CodeObject& b) {
  const auto side = [](const Recompile* x) {
    if (!x) return Side{};
    const std::string values = query::valuesOfMiss(x->expected, x->found);
    return Side{.present = true, .text = x->count == 1 ? values : values.empty() ? say(FUSEBOX_TEXT("Compare", "{} times"), x->count) : say(FUSEBOX_TEXT("Compare", "{} ({} times)"), values, x->count),
                .id = x->id, .place = x->place, .value = static_cast<double>(x->count)};
  };
  const auto same = [&](const Recompile& x, const Recompile& y) { return o.sameEngine ? x.guard == y.guard && x.outcome == y.outcome : o.sources.same(x.place, y.place); };
  // Engines check their guards in orders of their own: for one call that did not fit, each names the guard that it came to first.
  const auto another = [&](const Recompile& x, const Recompile& y) { return !o.sameEngine && x.outcome == y.outcome; };
  for (const Match& m : pairUp(a.recompiles, b.recompiles, same, another)) {
    const Recompile *x = m.a < 0 ? nullptr : &a.recompiles[static_cast<size_t>(m.a)], *y = m.b < 0 ? nullptr : &b.recompiles[static_cast<size_t>(m.b)];
    o.add(parent, Subject::Recompile, (x ? x : y)->guard, side(x), side(y), x && y && x->count != y->count);
  }
}

/// Guards of all entries of a function by kind and source.
std::map<std::string, const Guard*> guardsOf(const CodeObject& object) {
  std::map<std::string, const Guard*> out;
  for (const auto& compile : object.compiles)
    for (const auto& guard : compile.guards) out.emplace(guard.kind + " " + guard.source, &guard);
  return out;
}

void compareGuards(Outline& o, int32_t parent, const CodeObject& a, const CodeObject& b) {
  const auto x = guardsOf(a), y = guardsOf(b);
  if (x.empty() && y.empty()) return;
  o.count(parent, Subject::Count, FUSEBOX_TEXT("Compare", "guards"), static_cast<double>(x.size()), static_cast<double>(y.size()), countText,
          o.sameEngine ? std::string() : say(FUSEBOX_TEXT("Compare", "engines word guards differently: only their number is compared")));
  if (!o.sameEngine || x.empty() || y.empty()) return;
  const auto side = [](const Guard* g) { return g ? Side{.present = true, .text = g->expected, .id = g->id, .place = g->place} : Side{}; };
  std::set<std::string> keys;
  for (const auto* guards : {&x, &y})
    for (const auto& [key, guard] : *guards) keys.insert(key);
  for (const auto& key : keys) {
    const auto left = x.find(key), right = y.find(key);
    const Guard *g = left == x.end() ? nullptr : left->second, *h = right == y.end() ? nullptr : right->second;
    if (g && h && (!g->isOfSource || g->expected == h->expected)) continue;  // equal ones would bury the rest
    o.add(parent, Subject::Guard, key, side(g), side(h), true);
  }
}

/// Symbolic numbers of a function by source, as its newest entry has them.
std::map<std::string, const Symbol*> symbolsOf(const CodeObject& object) {
  std::map<std::string, const Symbol*> out;
  for (const auto& compile : object.compiles)
    for (const auto& symbol : compile.symbols) out[symbol.source] = &symbol;
  return out;
}

/// A function that an engine puts around a module names the module's arguments its own way (L['args'][0].size()[0], L['input'].size()[0]): what
/// only one side has is called as on the other, where as many there are the same part of an argument.
std::map<std::string, const Symbol*> calledAlike(const std::map<std::string, const Symbol*>& x, std::map<std::string, const Symbol*> y) {
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> byPart;
  const auto partOf = [](const std::string& source) { return source.substr(std::min(source.size(), source.rfind(".size()["))); };
  for (const auto& [source, symbol] : x)
    if (!symbol->isConstant && !y.contains(source)) byPart[partOf(source)].first.push_back(source);
  for (const auto& [source, symbol] : y)
    if (!symbol->isConstant && !x.contains(source)) byPart[partOf(source)].second.push_back(source);
  for (const auto& [part, sources] : byPart) {
    if (part.empty() || sources.first.size() != sources.second.size()) continue;
    for (size_t i = 0; i < sources.first.size(); ++i) {
      auto symbol = y.extract(sources.second[i]);
      symbol.key() = sources.first[i];
      y.insert(std::move(symbol));
    }
  }
  return y;
}

void compareSymbols(Outline& o, int32_t parent, const CodeObject& a, const CodeObject& b) {
  const auto x = symbolsOf(a), y = o.sameEngine ? symbolsOf(b) : calledAlike(x, symbolsOf(b));
  const auto side = [](const Symbol* s) { return s ? Side{.present = true, .text = s->text, .place = s->place} : Side{}; };
  std::set<std::string> sources;
  for (const auto* symbols : {&x, &y})
    for (const auto& [source, symbol] : *symbols) sources.insert(source);
  for (const auto& source : sources) {
    const auto left = x.find(source), right = y.find(source);
    const Symbol *s = left == x.end() ? nullptr : left->second, *t = right == y.end() ? nullptr : right->second;
    // What an engine does not speak of is a constant of its entry; not every one says that it could have been symbolic.
    if (!o.sameEngine && (!s || !t) && (s ? s : t)->isConstant) continue;
    o.add(parent, Subject::Symbol, source, side(s), side(t), s && t && s->text != t->text);
  }
}

void compareGraphList(Outline& o, int32_t parent, const CodeObject& a, const CodeObject& b) {
  const auto x = graphsOf(a), y = graphsOf(b);
  if (x.empty() && y.empty()) return;
  const auto backward = [](const std::vector<const Graph*>& graphs) { return static_cast<double>(std::count_if(graphs.begin(), graphs.end(), [](const Graph* g) { return g->backward; })); };
  const double backwardA = backward(x), backwardB = backward(y);
  o.count(parent, Subject::Count, FUSEBOX_TEXT("Compare", "graphs"), static_cast<double>(x.size()) - backwardA, static_cast<double>(y.size()) - backwardB, countText);
  if (backwardA + backwardB > 0) o.count(parent, Subject::Count, FUSEBOX_TEXT("Compare", "graphs of backward passes"), backwardA, backwardB, countText);
  constexpr size_t kMostPairs = 4'000'000;
  std::vector<Match> matches;
  if (x.size() * y.size() <= kMostPairs) {
    std::vector<GraphLikeness> left, right;
    for (const Graph* g : x) left.emplace_back(*g);
    for (const Graph* g : y) right.emplace_back(*g);
    matches = alignBySimilarity(static_cast<int32_t>(x.size()), static_cast<int32_t>(y.size()), 0.3,
                                [&](int32_t i, int32_t j) { return left[static_cast<size_t>(i)].to(right[static_cast<size_t>(j)]); });
  } else {
    for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) matches.push_back({i < x.size() ? static_cast<int32_t>(i) : -1, i < y.size() ? static_cast<int32_t>(i) : -1});
    o.out.limits.push_back(say(FUSEBOX_TEXT("Compare", "{}: {} and {} graphs are paired by their order"), a.name, x.size(), y.size()));
  }
  for (const Match& m : matches) compareGraphs(o, parent, m.a < 0 ? nullptr : x[static_cast<size_t>(m.a)], m.b < 0 ? nullptr : y[static_cast<size_t>(m.b)]);
}

Spread compileTime(const CodeObject& object) {
  Spread out;
  for (const auto& compile : object.compiles) out.totalNs += compile.durNs;
  out.count = object.compiles.empty() || out.totalNs == 0 ? 0 : 1;
  out.medianNs = out.minNs = out.maxNs = out.totalNs;
  return out;
}

void compareCompiles(Outline& o, int32_t parent, const CodeObject& a, const CodeObject& b) {
  struct Field {
    const char* name;
    std::string (*of)(const Compile&);
  };
  static constexpr Field kFields[] = {{"backend", [](const Compile& c) { return c.backend; }},
                                      {"mode", [](const Compile& c) { return c.mode; }},
                                      {"dynamic", [](const Compile& c) { return say(c.dynamic ? FUSEBOX_TEXT("Compare", "yes") : FUSEBOX_TEXT("Compare", "no")); }}};
  if (!a.compiles.empty() && !b.compiles.empty()) {
    for (const Field& field : kFields) {
      const std::string x = field.of(a.compiles.front()), y = field.of(b.compiles.front());
      if (x.empty() || y.empty() || x == y) continue;
      o.add(parent, Subject::Option, field.name, {.present = true, .text = x}, {.present = true, .text = y}, true);
    }
  }
  o.count(parent, Subject::Count, FUSEBOX_TEXT("Compare", "entries compiled"), static_cast<double>(a.compiles.size()), static_cast<double>(b.compiles.size()), countText);
}

}  // namespace

void compareObjects(Outline& o) {
  static const CodeObject kNone;
  for (const Match& m : alignObjects(o)) {
    const CodeObject *x = m.a < 0 ? nullptr : &o.a.objects[static_cast<size_t>(m.a)], *y = m.b < 0 ? nullptr : &o.b.objects[static_cast<size_t>(m.b)];
    const auto side = [](const CodeObject* c) { return c ? Side{.present = true, .text = placeText(c->place), .id = c->frame, .place = c->place} : Side{}; };
    // A method says more than a wrapper around it.
    const bool method = x && y && x->qualname.find('.') == std::string::npos && y->qualname.find('.') != std::string::npos;
    const CodeObject& named = x && !method ? *x : *y;
    const int32_t entry = o.add(-1, Subject::CodeObject, named.qualname.empty() ? named.name : named.qualname, side(x), side(y), false);
    const CodeObject &a = x ? *x : kNone, &b = y ? *y : kNone;
    compareCompiles(o, entry, a, b);
    compareStops(o, entry, Subject::Failure, a.failures, b.failures);
    compareStops(o, entry, Subject::Break, a.breaks, b.breaks);
    compareRecompiles(o, entry, a, b);
    compareSymbols(o, entry, a, b);
    compareGraphList(o, entry, a, b);
    o.time(entry, FUSEBOX_TEXT("Compare", "guard check"), a.guardCheck, b.guardCheck, say(FUSEBOX_TEXT("Compare", "of the entry that was called most")));
    o.time(entry, FUSEBOX_TEXT("Compare", "compile time"), compileTime(a), compileTime(b));
    compareGuards(o, entry, a, b);  // last: they come in hundreds
  }
}

}  // namespace fusebox::compare
