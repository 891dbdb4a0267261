#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/cpu/lanes.h"
#include "engine/codegen/cpu/plan.h"

namespace fusebox::codegen::cpu {

/// A kernel's buffer as the emitted function sees it.
struct BufferSlot {
  const inductor::KernelBuffer* buffer = nullptr;
  llvm::Value* base = nullptr;
  llvm::Value* laneStride = nullptr;  ///< Scratch: elements between neighbours of one lane; null: 1, shared by all lanes
};

/// A loop around the insertion point.
struct LoopFrame {
  inductor::Symbol symbol;
  llvm::BasicBlock* preheader = nullptr;  ///< the last block that runs once if the loop runs at all; ends in a branch to it
};

/// Where the function keeps a tile of an access that lies across the lanes: a vector for each point of the tile axis.
struct TurnedSlot {
  llvm::Value* base = nullptr;
  inductor::Symbol tile;
  llvm::Value* from = nullptr;  ///< the first point
};

/// What is in scope while a kernel is emitted.
struct Scope {
  std::unordered_map<uint32_t, llvm::Value*> symbols;   ///< sizes and axes: i64, of lane 0 for the vector axis
  std::unordered_map<inductor::BufferId, BufferSlot> buffers;
  std::unordered_map<int, std::vector<llvm::Value*>> reduced;  ///< results by reduction id
  std::unordered_map<const void*, TurnedSlot> turned;   ///< by the load (Value) or the Statement
  std::vector<LoopFrame> loops;                         ///< innermost last
  llvm::Value* fault = nullptr;                         ///< where a failed Check is reported; null in kernels without one
  std::unordered_set<inductor::BufferId> stored;        ///< by any section: buffers whose memory changes

  /// Adds a stored buffer and the one whose memory it takes over.
  void addWritten(inductor::BufferId id, std::unordered_set<inductor::BufferId>& to) const {
    to.insert(id);
    if (const auto over = buffers.at(id).buffer->overwrites; over >= 0) to.insert(over);
  }
};

/// The lanes that a body is emitted for.
struct LaneSet {
  int lanes = 1;
  const inductor::Symbol* axis = nullptr;  ///< vector axis; null for one lane
  llvm::Value* mask = nullptr;             ///< active lanes; null: all
};

/// Emits one instance of a section's body at the insertion point: values on demand, what does not change in the innermost loop
/// before that loop.
class BodyEmitter {
 public:
  BodyEmitter(const Lanes& lanes, Scope& scope, const inductor::Section& section, const LaneSet& set);

  /// Loads of buffers that the section also stores to happen before its first statement.
  void loadBeforeStores();
  void store(const inductor::Statement& statement);
  /// A value with all lanes.
  llvm::Value* value(inductor::ValueId id);
  llvm::Value* position(const inductor::SymExpr& expr, llvm::Type* type);

 private:
  struct ValueFacts {
    bool varies = false;  ///< from lane to lane
    bool inner = false;   ///< changes within the innermost loop, or must not move out of it
    llvm::Value* single = nullptr;
    llvm::Value* all = nullptr;
  };
  /// Where an access goes: one address, consecutive lanes, or an offset a lane.
  struct Address {
    enum class Kind { Uniform, Consecutive, Scattered } kind = Kind::Uniform;
    llvm::Value* pointer = nullptr;  ///< of lane 0, or the common base
    IndexShape shape;                ///< Scattered: what laneOffsets() are made of
    llvm::Value* laneStride = nullptr;  ///< Scattered: of the buffer
  };

  void analyse();
  bool symbolVaries(inductor::Symbol s) const;
  bool symbolInner(inductor::Symbol s) const;
  llvm::Value* symbolValue(inductor::Symbol s);
  void emit(inductor::ValueId id);
  llvm::Value* emitValue(const inductor::Value& v, bool varies);
  llvm::Value* emitIndex(const inductor::Value& v, bool varies);
  llvm::Value* emitLoad(const inductor::Value& v, bool varies);
  llvm::Value* emitCheck(const inductor::Value& v, bool varies);
  Address address(inductor::BufferId buffer, const inductor::SymExpr& index);
  llvm::Value* scalarPointer(const BufferSlot& slot, const inductor::SymExpr& index, llvm::Type* element);
  llvm::Value* laneOffsets(const IndexShape& shape);
  /// Lanes that are 2 to 4 elements apart, or run backwards: vectors that lie one behind the other, of which the elements are picked.
  llvm::Value* picked(llvm::Value* first, int64_t stride, llvm::Type* element);
  /// Lanes that are every other element from `first` on, or those between; all of them are read.
  llvm::Value* ofPairs(llvm::Value* first, bool isOdd, llvm::Type* element);
  bool loads(inductor::BufferId buffer, const inductor::SymExpr& index) const;
  llvm::Value* turnedVector(const TurnedSlot& turned, llvm::Type* vector);
  llvm::Value* combinedMask(inductor::ValueId mask, bool varies);
  /// Whether `s` waits for the next statement, which stores the other of a pair.
  bool isFirstOfPair(const inductor::Statement& s, const Address& at, llvm::Value* mask) const;
  llvm::Value* guarded(llvm::Value* pointer, llvm::Value* mask, llvm::Type* element);
  llvm::Value* lanePointers(const Address& a, llvm::Type* element);
  llvm::Value* gather(llvm::Value* pointers, llvm::Type* vector, llvm::Value* mask);
  llvm::Value* operand(inductor::ValueId id, bool all) { return all ? value(id) : uniformValue(id); }
  llvm::Value* uniformValue(inductor::ValueId id);
  template <class Emit>
  llvm::Value* outOfLoop(bool invariant, Emit&& emit);

  const Lanes& l_;
  Scope& scope_;
  const inductor::Section& section_;
  LaneSet set_;
  std::vector<ValueFacts> facts_;
  std::unordered_set<inductor::BufferId> storedHere_;
  const inductor::Statement* pendingStore_ = nullptr;  ///< the first of a pair, until the other is computed
  llvm::Value* pending_ = nullptr;                     ///< what it stores
  bool isOutOfLoop_ = false;  ///< what is emitted now goes before the innermost loop
};

}  // namespace fusebox::codegen::cpu
