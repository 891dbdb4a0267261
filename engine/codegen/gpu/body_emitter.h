#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/cpu/lanes.h"
#include "engine/codegen/gpu/plan.h"
#include "engine/codegen/gpu/shared_divisor.h"

namespace fusebox::codegen::gpu {

/// A kernel's buffer as the emitted function sees it. Elements of Scratch buffers lie `elementStride` apart, those of a
/// point `pointStride` after those of the point before it, and `point` is that of the thread's first point; null for
/// others.
struct BufferSlot {
  const inductor::KernelBuffer* buffer = nullptr;
  llvm::Value* base = nullptr;
  llvm::Value* elementStride = nullptr;
  llvm::Value* pointStride = nullptr;
  llvm::Value* point = nullptr;
  int64_t alignment = 1;     ///< bytes, of `base`
  bool isInvariant = false;  ///< nothing writes its memory while the launch runs
};

using SymbolValues = std::unordered_map<uint32_t, llvm::Value*>;

/// What is in scope while a phase is emitted.
struct Scope {
  SymbolValues symbols;  ///< sizes: i64
  std::unordered_map<inductor::BufferId, BufferSlot> buffers;
  /// Results by reduction id: [number][point of the thread].
  std::unordered_map<int, std::vector<std::vector<llvm::Value*>>> reduced;
  bool addsVectors = false;  ///< Plan::addsVectors
};

/// A group whose vector may reach beyond the ends of its row: what neighbours stand outside have no effect, and read inside.
struct Edge {
  llvm::Value* first = nullptr;        ///< i64: position of the first neighbour, below 0 or beyond the end where it stands outside
  llvm::Value* shift = nullptr;        ///< i64: Ragged::shift
  llvm::Value* full = nullptr;         ///< whether all neighbours stand inside
  std::vector<llvm::Value*> inside;    ///< of each neighbour
};

/// The copies of a section's body that one thread carries out together: `unroll` groups of `vector` neighbours.
struct Instances {
  int unroll = 1, vector = 1;
  const inductor::Symbol* axis = nullptr;  ///< the neighbours' axis; null for vector 1
  /// Groups are neighbours too, along this axis, and the first of them stands at a multiple of `unroll`; null: they are not.
  const inductor::Symbol* groupAxis = nullptr;
  bool overPoints = false;                 ///< neighbours are outer points
  bool ownReduced = false;                 ///< each instance has a reduction's result of its own: BodyEmitter::onReduced gives it
  std::vector<SymbolValues> symbols;       ///< of each group: axes, i64; `axis` for its first neighbour
  std::vector<llvm::Value*> active;        ///< of each group: whether it may have effects; null: always
  Ragged ragged;                           ///< of `axis`
  llvm::Value* extent = nullptr;           ///< of `axis` (i64), where it is ragged
  std::vector<std::optional<Edge>> edges;  ///< of each group, where the axis is ragged
  const Edge* edge(int group) const {
    const auto at = static_cast<size_t>(group);
    return at < edges.size() && edges[at] ? &*edges[at] : nullptr;
  }
};

/// Emits the instances of a section's body at the insertion point. Groups that are not active compute on some active
/// group's indices, so their loads are in range; what they compute is dropped.
class BodyEmitter {
 public:
  BodyEmitter(const cpu::Lanes& lanes, const Scope& scope, const inductor::Section& section,
              const Instances& instances);

  /// Gives a Scan's values, one for each instance in order of groups, from what it reads (`value`).
  std::function<std::vector<llvm::Value*>(inductor::ValueId scan)> onScan;

  std::function<llvm::Value*(int reduction, int group, int neighbour)> onReduced;  ///< Instances::ownReduced
  std::function<llvm::Value*(llvm::Value*)> quickExp;  ///< gives the exponential `quickValue`, where it is set
  inductor::ValueId quickValue = -1;
  bool contracts = false;             ///< a product and a sum behind it are rounded once, where nobody compares bits with eager's

  /// Starts every load that depends on nothing else, so that they run at once.
  void loadAhead();
  /// Has the cache fetch what loads of `wanted` indices will read, each buffer once: those in `done` are left out.
  void fetch(const std::function<bool(const inductor::SymExpr&)>& wanted, std::unordered_set<inductor::BufferId>& done);
  void store(const inductor::Statement& statement);
  llvm::Value* value(inductor::ValueId id, int group, int neighbour);
  llvm::Value* position(const inductor::SymExpr& expr, llvm::Type* type, int group, int neighbour);

 private:
  using Copies = std::vector<llvm::Value*>;  ///< one for all instances, or one for each
  bool varies(inductor::Symbol s) const;
  /// Whether a symbol of an index differs along Instances::axis or groupAxis.
  bool differsAlong(const inductor::Symbol* axis, inductor::Symbol s) const;
  bool isVarying(inductor::ValueId id) const { return varying_[static_cast<size_t>(id)]; }
  void analyse();
  void emit(inductor::ValueId id);
  llvm::Value* emitOne(const inductor::Value& v, int group, int neighbour);
  /// The least and the greatest that an integer can be, where that is known.
  std::optional<std::pair<int64_t, int64_t>> boundsOf(inductor::ValueId id) const;
  llvm::Value* quickFloat(llvm::Value* small);
  llvm::Value* emitDivision(const inductor::Value& v, int group, int neighbour);
  llvm::Value* emitCheck(const inductor::Value& v, int group, int neighbour);
  llvm::Value* activeAnywhere();
  void emitLoads(const inductor::Value& v, bool varying, Copies& out);
  llvm::Value* loadMasked(const inductor::Value& v, int group, int neighbour, bool isShared);
  bool loadVector(const inductor::Value& v, int group, Copies& out);
  void emitRandoms(const inductor::Value& v, Copies& out);
  bool loadAcross(const inductor::Value& v, Copies& out);
  bool isVector(const BufferSlot& slot, const inductor::SymExpr& index, const inductor::Symbol* axis, int width) const;
  bool isVector(const BufferSlot& slot, const inductor::SymExpr& index) const { return isVector(slot, index, set_.axis, set_.vector); }
  bool isAcross(const BufferSlot& slot, const inductor::SymExpr& index) const { return isVector(slot, index, set_.groupAxis, set_.unroll); }
  bool sharesRandoms(const inductor::Value& v) const;
  llvm::Value* symbolValue(inductor::Symbol s, int group, int neighbour);
  llvm::Value* indexValue(const inductor::SymExpr& expr, int group, int neighbour);
  llvm::Value* pointer(const BufferSlot& slot, const inductor::SymExpr& index, int group, int neighbour,
                       llvm::Value* onlyIf = nullptr);
  llvm::Value* clamped(llvm::Value* position);
  llvm::Value* vectorPointer(const BufferSlot& slot, const inductor::SymExpr& index, int group, int at, int width, bool isMasked);
  bool isAlwaysInside(const inductor::Value& load) const;
  void choose(const inductor::Value& load, bool varying, Copies& out);
  /// Whether one neighbour may have effects; null: always.
  llvm::Value* activeAt(int group, int neighbour);
  llvm::Value* load(const BufferSlot& slot, llvm::Type* type, llvm::Value* pointer, int64_t align);
  llvm::Value* fromMemory(const BufferSlot& slot, llvm::Value* stored, inductor::DType type);
  llvm::Value* toMemory(const inductor::Statement& s, const BufferSlot& slot, int group, int neighbour);
  void storeVector(const inductor::Statement& s, const BufferSlot& slot, int group);
  void storeAcross(const inductor::Statement& s, const BufferSlot& slot, int neighbour);
  void putVector(const BufferSlot& slot, llvm::Value* first, const std::vector<llvm::Value*>& elements);
  /// `at` gives the address of an element among them.
  std::vector<llvm::Value*> takeVector(const BufferSlot& slot, const std::function<llvm::Value*(int at)>& address, int count, inductor::DType type);
  void atomicAdd(const BufferSlot& slot, llvm::Value* pointer, llvm::Value* added);
  bool addsVector(const inductor::Statement& s, const BufferSlot& slot) const;
  void atomicAddVector(const inductor::Statement& s, const BufferSlot& slot, int group);
  /// Emits `work` for when `condition` holds (null: always).
  void when(llvm::Value* condition, const std::function<void()>& work);
  llvm::Value* both(llvm::Value* a, llvm::Value* b);

  const cpu::Lanes& l_;
  const Scope& scope_;
  const inductor::Section& section_;
  const Instances& set_;
  std::vector<char> varying_;
  std::vector<char> alongAxis_, alongGroups_;  ///< values that differ along Instances::axis and groupAxis; empty where nothing is loaded for an index
  std::vector<Copies> values_;
  std::unordered_map<inductor::ValueId, SharedDivisor> divisors_;
  llvm::Value* along_ = nullptr;  ///< not null: where along the axis an address is wanted
};

}  // namespace fusebox::codegen::gpu
