#include "engine/inductor/schedule/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/inductor/schedule/fusion_stop.h"
#include "engine/inductor/schedule/kernel_merge.h"

namespace fusebox::inductor {
namespace {

constexpr int kMaxRounds = 10;
constexpr int32_t kMaxDistance = 512;           ///< places in the order between two nodes, for any pair
constexpr int32_t kMaxSiblingDistance = 64;     ///< between two nodes that only read the same
constexpr size_t kSiblingWindow = 4;            ///< a reader is paired with this many readers after it
constexpr int64_t kMinSiblingBytes = 512;       ///< of the buffer that two nodes read
constexpr size_t kMaxRefusalsPerNode = 8;
constexpr int64_t kHeldBytes = int64_t{4} << 20;  ///< a pair that keeps so much in memory for longer comes after those that do not
constexpr const char* kForbidden = "forbidden by user";

struct Candidate {
  int32_t a, b;      ///< nodes, a before b
  bool isVertical;
  bool holds;        ///< what `a` would have released lies in memory until `b` can begin
  int64_t score;     ///< bytes of traffic saved
};

uint64_t keyOf(int32_t a, int32_t b) { return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b); }

class Fuser : public MergeContext {
 public:
  Fuser(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph, const ScheduleOptions& options,
        const FusionRules& rules)
      : lowered_(lowered), nodes_(nodes), graph_(graph), options_(options), rules_(rules), uses_(usesOf(lowered, nodes)),
        isResult_(resultBuffers(lowered)), versions_(nodes.size(), 0) {
    for (const LoweredBuffer& buffer : lowered.buffers) bytes_.push_back(bytesOf(buffer.meta));
  }

  std::vector<FusionDecision> run() {
    force();
    for (int round = 0; options_.fuse && round < kMaxRounds; ++round)
      if (!runRound()) break;
    force();  // what lay between two may be inside one of them by now
    return takeDecisions();
  }

  int64_t bytes(BufferId id) const override { return bytes_[static_cast<size_t>(id)]; }
  const ScheduleOptions& options() const override { return options_; }
  bool isForced() const override { return isForced_; }

  bool isSoleWriter(BufferId id, const ScheduleNode& node) const override {
    const auto& writers = uses_[static_cast<size_t>(id)].writers;
    // Of an input that is changed in place there is an old value as well, from before the program.
    const bool isOutside = lowered_.buffers[static_cast<size_t>(id)].kind != LoweredBuffer::Kind::Computed;
    if (isOutside && std::binary_search(node.reads.begin(), node.reads.end(), id)) return false;
    return std::all_of(writers.begin(), writers.end(), [&](int32_t w) { return graph_.find(w) == node.id; });
  }

  bool diesInside(BufferId id, const ScheduleNode& a, const ScheduleNode& b) const override {
    if (isResult_[static_cast<size_t>(id)] || lowered_.buffers[static_cast<size_t>(id)].kind != LoweredBuffer::Kind::Computed)
      return false;
    const BufferUses& uses = uses_[static_cast<size_t>(id)];
    auto inside = [&](int32_t user) { return graph_.find(user) == a.id || graph_.find(user) == b.id; };
    return std::all_of(uses.readers.begin(), uses.readers.end(), inside) &&
           std::all_of(uses.writers.begin(), uses.writers.end(), inside);
  }

 private:
  ScheduleNode& node(int32_t id) { return nodes_[static_cast<size_t>(id)]; }

  /// Carries out what the rules force. What cannot be is a refusal with both reasons.
  void force() {
    isForced_ = true;
    for (const auto& [first, second] : rules_.forced()) {
      int32_t a = graph_.find(first), b = graph_.find(second);
      if (a == b) continue;
      if (graph_.position(a) > graph_.position(b)) std::swap(a, b);
      if (node(a).isDead || node(b).isDead) refuseForced(first, second, "its result is not needed");
      else if (standsAlone(node(a)) || standsAlone(node(b))) refuseForced(first, second, "an extern call has no loops to fuse, and attention none of its own");
      else tryPair(a, b);
    }
    isForced_ = false;
  }

  void refuseForced(int32_t a, int32_t b, const char* why) {
    FusionDecision decision;
    decision.a = a;
    decision.b = b;
    decision.kind = "vertical";
    decision.reason = why;
    refuse(std::move(decision));
  }

  bool runRound() {
    bool changed = false;
    pending_ = candidates();
    pendingFrom_ = 0;
    for (const Candidate& candidate : pending_) {
      ++pendingFrom_;
      int32_t a = graph_.find(candidate.a), b = graph_.find(candidate.b);
      if (a == b) continue;
      if (graph_.position(a) > graph_.position(b)) std::swap(a, b);
      if (!tried_.insert(keyOf(a, b) ^ versionKey(a, b)).second) continue;
      changed |= tryPair(a, b);
    }
    return changed;
  }

  /// Differs whenever one of the two has grown since the last try.
  uint64_t versionKey(int32_t a, int32_t b) const {
    const uint64_t grown = static_cast<uint64_t>(versions_[static_cast<size_t>(a)]) * 0x9e3779b97f4a7c15u ^
                           static_cast<uint64_t>(versions_[static_cast<size_t>(b)]) * 0xc2b2ae3d27d4eb4fu;
    return grown << 1;
  }

  /// Pairs of live nodes that share a buffer, best first.
  std::vector<Candidate> candidates() {
    std::unordered_map<uint64_t, Candidate> found;
    auto add = [&](int32_t x, int32_t y, bool vertical) {
      if (x == y || standsAlone(node(x)) || standsAlone(node(y))) return;
      if (graph_.position(x) > graph_.position(y)) std::swap(x, y);
      found.try_emplace(keyOf(x, y), Candidate{x, y, false, false, 0}).first->second.isVertical |= vertical;
    };
    std::vector<int32_t> readers;
    for (size_t id = 0; id < uses_.size(); ++id) {
      readers.clear();
      for (int32_t reader : uses_[id].readers) readers.push_back(graph_.find(reader));
      std::sort(readers.begin(), readers.end(), [&](int32_t x, int32_t y) { return graph_.position(x) < graph_.position(y); });
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      for (int32_t writer : uses_[id].writers)
        for (int32_t reader : readers) add(graph_.find(writer), reader, true);
      if (bytes_[id] < kMinSiblingBytes) continue;
      for (size_t i = 0; i < readers.size(); ++i)
        for (size_t k = i + 1; k < readers.size() && k <= i + kSiblingWindow; ++k) add(readers[i], readers[k], false);
    }
    std::vector<Candidate> list;
    for (auto& [key, candidate] : found) {
      candidate.score = sharedBytes(node(candidate.a), node(candidate.b));
      candidate.holds = candidate.isVertical && holds(node(candidate.a), node(candidate.b));
      list.push_back(candidate);
    }
    std::sort(list.begin(), list.end(), [&](const Candidate& x, const Candidate& y) {
      if (x.isVertical != y.isVertical) return x.isVertical;
      if (x.holds != y.holds) return y.holds;
      if (x.score != y.score) return x.score > y.score;
      const int32_t dx = graph_.distance(x.a, x.b), dy = graph_.distance(y.a, y.b);
      return dx != dy ? dx < dy : keyOf(x.a, x.b) < keyOf(y.a, y.b);
    });
    return list;
  }

  /// Traffic that merging saves: a common read once, a stored intermediate's read, and its store if nobody else needs it.
  int64_t sharedBytes(const ScheduleNode& a, const ScheduleNode& b) const {
    int64_t total = 0;
    for (BufferId id : b.reads) {
      const bool stored = std::binary_search(a.writes.begin(), a.writes.end(), id);
      if (!stored && !std::binary_search(a.reads.begin(), a.reads.end(), id)) continue;
      total += bytes(id);
      if (stored && diesInside(id, a, b)) total += bytes(id);
    }
    return total;
  }

  /// Whether nobody needs it once `node` has run.
  bool isReleasedBy(BufferId id, const ScheduleNode& node) const {
    const auto& readers = uses_[static_cast<size_t>(id)].readers;
    return !isResult_[static_cast<size_t>(id)] && lowered_.buffers[static_cast<size_t>(id)].kind == LoweredBuffer::Kind::Computed &&
           std::all_of(readers.begin(), readers.end(), [&](int32_t reader) { return graph_.position(graph_.find(reader)) <= graph_.position(node.id); });
  }

  /// Whether `a`, run with `b`, keeps much more in memory than its own result while it waits for what else `b` reads.
  bool holds(const ScheduleNode& a, const ScheduleNode& b) const {
    int64_t held = 0;
    for (BufferId id : a.reads)
      if (!std::binary_search(b.reads.begin(), b.reads.end(), id) && isReleasedBy(id, a)) held += bytes(id);
    for (BufferId id : a.writes) held -= bytes(id);
    if (held < kHeldBytes) return false;
    return std::any_of(b.reads.begin(), b.reads.end(), [&](BufferId id) {
      const auto& writers = uses_[static_cast<size_t>(id)].writers;
      return std::any_of(writers.begin(), writers.end(), [&](int32_t w) { return graph_.position(graph_.find(w)) > graph_.position(a.id); });
    });
  }

  bool tryPair(int32_t a, int32_t b) {
    FusionDecision decision;
    decision.a = node(a).firstOperation();
    decision.b = node(b).firstOperation();
    decision.scoreBytes = sharedBytes(node(a), node(b));
    const bool vertical = std::any_of(node(a).writes.begin(), node(a).writes.end(), [&](BufferId id) {
      return std::binary_search(node(b).reads.begin(), node(b).reads.end(), id);
    });
    decision.kind = vertical ? "vertical" : "horizontal";
    if (!debug::armed(debug::Kind::Fusion)) [[likely]] return decidePair(a, b, vertical, std::move(decision));
    const bool wasForced = isForced_;
    switch (stopAtPair(a, b, vertical, decision)) {
      case debug::Verdict::Fusion::Open: break;
      case debug::Verdict::Fusion::Force: isForced_ = true; break;
      case debug::Verdict::Fusion::Forbid: forbiddenHere_.emplace_back(decision.a, decision.b); break;
    }
    const bool fused = decidePair(a, b, vertical, std::move(decision));
    isForced_ = wasForced;
    return fused;
  }

  /// A debugger's stop before a pair is decided.
  debug::Verdict::Fusion stopAtPair(int32_t a, int32_t b, bool vertical, const FusionDecision& decision) {
    FusionStop stop{lowered_, node(a), node(b), decision};
    stop.outlook = [&] { return outlook(a, b, vertical); };
    stop.pending = [&] {
      std::vector<FusionDecision> waiting;
      for (size_t i = pendingFrom_; i < pending_.size(); ++i) {
        const int32_t x = graph_.find(pending_[i].a), y = graph_.find(pending_[i].b);
        if (x == y) continue;
        waiting.push_back({node(x).firstOperation(), node(y).firstOperation(), false, pending_[i].isVertical ? "vertical" : "horizontal", {},
                           sharedBytes(node(x), node(y))});
      }
      return waiting;
    };
    return fusebox::inductor::stopAtFusion(stop);
  }

  /// What will come of a pair if nobody interferes.
  std::string outlook(int32_t a, int32_t b, bool vertical) {
    if (isForbidden(a, b)) return kForbidden;
    if (!isForced_ && areFarApart(a, b, vertical)) return "will stay apart: too far apart";
    const MergeOutcome outcome = mergeKernels(*this, node(a), node(b));
    return outcome.kernel ? "will be fused, unless another operation lies between them" : "will stay apart: " + outcome.reason;
  }

  /// In the present order; siblings also where they were not in the program's: what depends on nothing drifts to the beginning.
  bool areFarApart(int32_t a, int32_t b, bool vertical) {
    if (graph_.distance(a, b) <= (vertical ? kMaxDistance : kMaxSiblingDistance)) return false;
    if (vertical) return true;
    for (int32_t x : node(a).operations)
      for (int32_t y : node(b).operations)
        if (std::abs(x - y) <= kMaxSiblingDistance) return false;
    return true;
  }

  bool isForbidden(int32_t a, int32_t b) {
    const std::vector<int32_t>&of = node(a).operations, &with = node(b).operations;
    const auto has = [](const std::vector<int32_t>& list, int32_t id) { return std::find(list.begin(), list.end(), id) != list.end(); };
    return rules_.forbids(of, with) || std::any_of(forbiddenHere_.begin(), forbiddenHere_.end(), [&](const auto& pair) {
             return (has(of, pair.first) && has(with, pair.second)) || (has(of, pair.second) && has(with, pair.first));
           });
  }

  bool decidePair(int32_t a, int32_t b, bool vertical, FusionDecision decision) {
    if (isForbidden(a, b)) {
      decision.reason = kForbidden;
      decision.byRule = true;
      return refuse(std::move(decision));
    }
    if (!isForced_ && areFarApart(a, b, vertical)) {
      decision.reason = "too far apart";
      return refuse(std::move(decision));
    }
    MergeOutcome outcome = mergeKernels(*this, node(a), node(b));
    decision.kind = outcome.kind;
    decision.reason = outcome.reason;
    if (!outcome.kernel) return refuse(std::move(decision));
    if (!graph_.merge(a, b)) {
      decision.reason = "another operation lies between them";
      return refuse(std::move(decision));
    }
    absorb(node(a), node(b), std::move(*outcome.kernel), decision.scoreBytes);
    decision.fused = true;
    decision.byRule = isForced_;
    decision.reason = fmt::format("{}saves {} bytes of memory traffic", isForced_ ? "forced by user; " : "", decision.scoreBytes);
    fused_.push_back(std::move(decision));
    return true;
  }

  bool refuse(FusionDecision decision) {
    if (isForced_) decision.reason = (decision.byRule ? "forced and " : "forced by user, but impossible: ") + decision.reason;
    decision.byRule |= isForced_;
    refused_[keyOf(decision.a, decision.b)] = std::move(decision);
    return false;
  }

  void absorb(ScheduleNode& a, ScheduleNode& b, Kernel kernel, int64_t saved) {
    a.kernel = std::move(kernel);
    a.accesses = accessesOf(a.kernel);
    a.operations.insert(a.operations.end(), b.operations.begin(), b.operations.end());
    auto join = [](std::vector<BufferId>& to, const std::vector<BufferId>& from) {
      to.insert(to.end(), from.begin(), from.end());
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    };
    join(a.reads, b.reads);
    join(a.writes, b.writes);
    a.bytesSaved += b.bytesSaved + saved;
    b.isDead = true;
    b.kernel = {};
    b.accesses.clear();
    ++versions_[static_cast<size_t>(a.id)];
  }

  /// Fusions in the order in which they happened, then the last refusal of every pair that stayed apart.
  std::vector<FusionDecision> takeDecisions() {
    std::vector<FusionDecision> decisions = std::move(fused_);
    std::vector<FusionDecision> refusals;
    for (auto& [key, decision] : refused_)
      if (nodeOf(decision.a) != nodeOf(decision.b)) refusals.push_back(std::move(decision));
    std::sort(refusals.begin(), refusals.end(), [](const FusionDecision& x, const FusionDecision& y) {
      return x.scoreBytes != y.scoreBytes ? x.scoreBytes > y.scoreBytes : std::pair(x.a, x.b) < std::pair(y.a, y.b);
    });
    std::unordered_map<int32_t, size_t> kept;
    for (FusionDecision& decision : refusals) {
      size_t& ofA = kept[nodeOf(decision.a)];
      size_t& ofB = kept[nodeOf(decision.b)];
      if (ofA >= kMaxRefusalsPerNode && ofB >= kMaxRefusalsPerNode && !decision.byRule) continue;
      ++ofA;
      ++ofB;
      decisions.push_back(std::move(decision));
    }
    return decisions;
  }

  /// Nodes begin as one for each operation, so an operation's id is that of the node it began in.
  int32_t nodeOf(int32_t operation) const { return graph_.find(operation); }

  const LoweredGraph& lowered_;
  std::vector<ScheduleNode>& nodes_;
  DependencyGraph& graph_;
  const ScheduleOptions& options_;
  const FusionRules& rules_;
  bool isForced_ = false;
  std::vector<Candidate> pending_;                            ///< of this round
  size_t pendingFrom_ = 0;                                    ///< those from here on wait
  std::vector<std::pair<int32_t, int32_t>> forbiddenHere_;    ///< operations that a person at a debugger keeps apart
  std::vector<BufferUses> uses_;   ///< by original nodes; read through find()
  std::vector<char> isResult_;
  std::vector<int64_t> bytes_;
  std::vector<int32_t> versions_;  ///< merges that each node went through
  std::unordered_set<uint64_t> tried_;
  std::vector<FusionDecision> fused_;
  std::unordered_map<uint64_t, FusionDecision> refused_;
};

}  // namespace

std::vector<FusionDecision> fuseNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph,
                                      const ScheduleOptions& options, const FusionRules& rules) {
  return Fuser(lowered, nodes, graph, options, rules).run();
}

}  // namespace fusebox::inductor
