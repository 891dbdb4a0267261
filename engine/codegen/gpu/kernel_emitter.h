#pragma once

#include <llvm/IR/Module.h>

#include <functional>
#include <string>

#include "engine/codegen/cpu/reduction_emitter.h"
#include "engine/codegen/gpu/block_combine.h"
#include "engine/codegen/gpu/body_emitter.h"

namespace fusebox::codegen::gpu {

/// Emits the kernel function of one phase into `module`. Its arguments, by value: the buffers' addresses in the order
/// of Kernel::buffers (Scratch ones left out), the address of the working memory if Plan::workBytes is not 0, the sizes
/// as int64. A batched kernel has one argument, a BatchTable.
class KernelEmitter {
 public:
  KernelEmitter(const Plan& plan, const Phase& phase, llvm::Module& module, const cpu::TargetTraits& traits,
                const std::string& name, bool aligned);
  /// What is emitted says which line of inductor::Kernel::str() it carries out.
  void keepLines();
  llvm::Function* emit();

 private:
  using Values = std::vector<llvm::Value*>;
  using States = std::vector<std::vector<cpu::ReductionState>>;  ///< by Reduce statement, point of the thread
  struct SectionReduction {
    const inductor::Statement* statement;
    cpu::ReductionEmitter emitter;
  };

  bool isArgument(const inductor::KernelBuffer& buffer) const;
  void makeFunction(const std::string& name);
  void findEntry();
  llvm::Value* argument(unsigned position, llvm::Type* type);
  void bindArguments(bool aligned);
  void bindThread();
  void bindPoints(llvm::Value* block);
  void bindTile(llvm::Value* block);
  /// A vector at `first` (i64, perhaps outside of the row) of `count` neighbours of a row of `extent`; `within`: else all of it is outside.
  Edge edgeAt(llvm::Value* first, llvm::Value* shift, const inductor::SymExpr& extent, int count, llvm::Value* within);
  /// i64, by the outer axes of one group.
  llvm::Value* shiftOf(const Ragged& rows, const SymbolValues& symbols);
  void bindScratch();
  llvm::Value* scalar(const inductor::SymExpr& expr);
  /// Splits `number` into the values of axes; the last of `order` runs fastest. `vector` neighbours along `vectorAxis`
  /// count as one.
  void decompose(llvm::Value* number, const std::vector<inductor::Axis>& axes, const std::vector<int>& order,
                 int vectorAxis, int vector, SymbolValues& out, const Ragged* ragged = nullptr);
  void barrier();
  llvm::Value* both(llvm::Value* a, llvm::Value* b) { return !a ? b : !b ? a : ir_.CreateAnd(a, b); }

  std::vector<SectionReduction> reductionsOf(int section) const;
  void emitWhole();
  void emitWalk();
  void fetchAhead(llvm::Value* group);
  void storeAcross();
  /// The statements of Plan::across as reductions.
  cpu::ReductionEmitter acrossEmitter(const AcrossPlace& place) const;
  void accumulateAcross(int section, const inductor::Statement& statement, BodyEmitter& body, const Instances& set);
  void emitChunk();
  void emitFinish();
  void bindEarlierResults(int first, int last);
  States emitSection(int section);
  States emitPlainSection(int section);
  /// Vectors [from, to) of the section's inner axes.
  States emitLoops(int section, llvm::Value* from, llvm::Value* to, bool exact);
  Values emitIteration(int section, llvm::Value* base, llvm::Value* to, bool exact, const Values& carried);
  /// The instances of one iteration from vector `base` on, up to `to`; `counted` gets which groups exist.
  Instances instancesAt(int section, llvm::Value* base, llvm::Value* to, bool exact, Values& counted);
  Instances raggedAt(int section, llvm::Value* base, llvm::Value* to, bool exact, Values& counted);
  Values accumulate(int section, const Instances& set, const std::vector<llvm::Value*>& counted, const Values& carried);
  void takeAll(int section, const cpu::ReductionEmitter& emitter, const inductor::Statement& statement, BodyEmitter& body, const Instances& set,
               const std::vector<llvm::Value*>& counted, Values& states, size_t& at);
  States joinInstances(int section, const Instances& set, const Values& carried);
  /// Running states of a reduction in one thread: one for each instance, so that none waits for another, or one for each point.
  struct Grid {
    int unroll, vector;
    int count() const { return unroll * vector; }
  };
  Grid statesOf(int section, const cpu::ReductionEmitter& emitter) const;
  Values identities(int section) const;
  /// A running reduction along a section: what it has come to, for each point of the thread.
  struct ScanState {
    inductor::ReduceKind kind;
    inductor::ValueId input;
    cpu::ReductionEmitter emitter;
    std::vector<cpu::ReductionState> carry, results;  ///< results: by instance, once they are there
  };
  std::vector<ScanState> scansOf(int section) const;
  Values scanned(int section, inductor::ValueId id, BodyEmitter& body, const Instances& set, std::vector<ScanState>& scans);
  void advance(int section, ScanState& scan, BodyEmitter& body, const Instances& set);
  Instances shapeOf(int section) const;
  void bindResults(int section, const States& states);
  bool needsBarrier(int section) const;

  // partial results
  llvm::Value* stateAddress(const inductor::SymExpr& place, llvm::Type* element, llvm::Value* chunk, int neighbour);
  void storeStates(int section, const States& states, llvm::Value* chunk);
  cpu::ReductionState loadState(int section, size_t reduction, llvm::Value* chunk);
  States combinePartials(int section);

  /// A loop over [from, to) by `step` that carries values: `body` gets the position and the values so far, and gives the
  /// next ones. Returns the last values (`initial` where no turn is taken); goes on behind the loop.
  Values carriedLoop(llvm::Value* from, llvm::Value* to, llvm::Value* step, const Values& initial,
                     const std::function<Values(llvm::Value* at, const Values& carried)>& body);

  const Plan& plan_;
  const Phase& phase_;
  llvm::Module& module_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> ir_;
  cpu::TargetTraits traits_;
  cpu::Lanes lanes_;
  Scope scope_;
  BlockCombiner combiner_;
  llvm::Type* table_ = nullptr;         ///< Kernel::isBatch: of the argument, as BatchTable describes it
  llvm::Value* entry_ = nullptr;        ///< i32: of this block in the table
  llvm::Value* block_ = nullptr;        ///< i32: number of this block among its entry's
  llvm::Value* work_ = nullptr;
  llvm::Value* inner_ = nullptr;        ///< i32: this thread among those that share a point
  llvm::Value* isFirst_ = nullptr;      ///< of those; null where it is alone
  llvm::Value* side_ = nullptr;         ///< i32: which of the block's vectors of points
  llvm::Value* chunk_ = nullptr;        ///< i64
  std::vector<Values> across_;          ///< by Plan::across, instance: what this thread has accumulated over points so far
  llvm::Value* point_ = nullptr;        ///< i64: number of the thread's first point
  std::vector<SymbolValues> outer_;     ///< axes of the points, by group; in the scope where there is one group
  std::vector<llvm::Value*> isInside_;  ///< whether a group exists; null: always
  std::vector<std::optional<Edge>> outerEdges_;  ///< of ragged points, by group
  llvm::Value* outerExtent_ = nullptr;  ///< of the axis that these are edges of
};

}  // namespace fusebox::codegen::gpu
