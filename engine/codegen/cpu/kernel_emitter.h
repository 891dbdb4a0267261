#pragma once

#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <span>
#include <string>

#include "engine/codegen/cpu/body_emitter.h"
#include "engine/codegen/cpu/reduction_emitter.h"

namespace fusebox::codegen::cpu {

/// Working memory of a phased kernel: partial and final states of every reduction, one array a component.
struct ScratchLayout {
  struct Component {
    inductor::SymExpr partial, final;  ///< byte offsets; element (chunk, point) of partial is at chunk * points + point
  };
  std::vector<std::vector<std::vector<Component>>> reductions;  ///< by section, Reduce statement (in order), component
  std::vector<inductor::SymExpr> buffers;                       ///< by position in Kernel::buffers; only for Scratch ones
  inductor::SymExpr bytes = 0;
};
ScratchLayout layoutScratch(const Plan& plan);

/// Emits the function `name` (jit.h's KernelFunction) for a plan into `module`.
class KernelEmitter {
 public:
  KernelEmitter(const Plan& plan, llvm::Module& module, const TargetFeatures& features, const TargetTraits& traits,
                const std::string& name);
  /// What is emitted says which line of Kernel::str() it carries out.
  void keepLines();
  llvm::Function* emit();

 private:
  using Values = std::vector<llvm::Value*>;
  using LoopBody = std::function<Values(llvm::Value* index, const Values& carried)>;
  using RunBody = std::function<Values(llvm::Value* lo, llvm::Value* hi, const Values& carried)>;
  using LaneBody = std::function<Values(const LaneSet& set, const Values& carried)>;

  void makeFunction(const TargetFeatures& features, const std::string& name);
  void bindArguments();
  void placeScratch();
  llvm::Value* scalar(const inductor::SymExpr& expr);
  /// for (i = lo; i < hi; i += step); the values carried round the loop are returned.
  Values loop(const inductor::Symbol* symbol, llvm::Value* lo, llvm::Value* hi, int64_t step, const Values& init,
              const LoopBody& body);
  void branch(llvm::Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise);
  /// The vector axis over [lo, hi): masked, or whole vectors and then single lanes. `extent`: where known; if whole vectors cover it, they
  /// cover [lo, hi) too.
  Values laneLoop(const inductor::Symbol& axis, llvm::Value* lo, llvm::Value* hi, std::optional<int64_t> extent,
                  const Values& init, const LaneBody& body);

  // work units (unit_emitter.cpp)
  void emitPhase(const Phase& phase, llvm::Value* first, llvm::Value* last);
  void emitUnit(const Phase& phase);
  /// [lo, hi) of an outer axis by `run`, cut where the plan's segments of that axis end; what it emits has the segment's body.
  void inSegments(int axis, llvm::Value* lo, llvm::Value* hi, const std::function<void(llvm::Value* from, llvm::Value* to)>& run);
  void emitSections(const Phase& phase, const LaneSet& set);

  // the points of a unit (tile_emitter.cpp)
  /// An access that steps by one along the tile axis and by more along the vector axis. Whole tiles of it are turned: they lie in memory of
  /// the function's own, a vector for each point of the tile axis, while the points are computed.
  struct Turned {
    const void* access;          ///< the Value or Statement
    const BufferSlot* slot;
    inductor::SymExpr index, stride;
    int64_t points;              ///< in a tile
    bool isStore;
    int block;                   ///< rows and columns turned at a time
    llvm::Value* turned;
  };
  std::vector<Turned> turnedOf(const inductor::Section& section, const inductor::Axis& along, int64_t points) const;
  /// Room for a tile of any of the kernel's buffers; one segment's tiles take over that of another's.
  llvm::Value* turnedMemory(size_t position, int64_t points);
  /// Copies a tile from memory into the function's own, or back.
  void turn(const Turned& access, bool isFilling);
  void emitTile(const Phase& phase);
  void emitLanes(const std::function<void(const LaneSet& set)>& points, bool isTurning);
  /// `points` of a whole tile that begins at `from`, with its accesses turned.
  Values emitTurned(const inductor::Axis& tile, llvm::Value* from, std::vector<Turned>& turned, const std::function<Values()>& points);
  /// The innermost loop of a section whose lanes are outer points, where accesses lie along it; else null.
  const inductor::Axis* turnedAxis(int section) const;
  bool turnsInSections() const;
  /// That loop over [lo, hi), in tiles as far as these are whole.
  Values turnedLoop(int section, const inductor::Axis& axis, llvm::Value* lo, llvm::Value* hi, const Values& init, const LoopBody& body);

  // sections (section_emitter.cpp)
  struct SectionReduction {
    const inductor::Statement* statement;
    ReductionEmitter emitter;
    size_t wide, narrow;  ///< position of the first component of both states among the carried values; equal where there is no tail
  };
  std::vector<SectionReduction> reductionsOf(int section, bool hasTail) const;
  std::vector<ReductionState> emitSection(int section, const LaneSet& outer, const inductor::SymExpr* chunkNumber);
  Values emitLoops(int section, size_t depth, const LaneSet& set, const Values& carried,
                   std::vector<SectionReduction>& reductions, llvm::Value* lo, llvm::Value* hi);
  Values emitBody(int section, const LaneSet& set, const Values& carried, std::vector<SectionReduction>& reductions);
  /// [lo, hi) by `run`, cut into runs of these lengths (runSizes()), each with accumulators of its own.
  Values inRuns(std::span<const int64_t> sizes, llvm::Value* lo, llvm::Value* hi, const Values& carried,
                const std::vector<SectionReduction>& reductions, const RunBody& run);
  void bindResults(int section, const std::vector<ReductionState>& states);
  bool hasTail(int section) const;

  // partial results (partials_emitter.cpp)
  llvm::Value* outerPoint();
  void storeStates(int section, const std::vector<ReductionState>& states, const LaneSet& set, llvm::Value* chunk);
  std::vector<ReductionState> loadStates(int section, const LaneSet& set, llvm::Value* chunk);
  std::vector<ReductionState> combinePartials(int section, const LaneSet& set);
  llvm::Value* stateAddress(const inductor::SymExpr& offset, llvm::Type* element, llvm::Value* chunk);

  const Plan& plan_;
  llvm::Module& module_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> ir_;
  TargetTraits traits_;
  Lanes lanes_;
  Scope scope_;
  ScratchLayout layout_;
  llvm::Value* working_ = nullptr;  ///< the launch's working memory
  const inductor::Section* segment_ = nullptr;  ///< whose body stands for that of the one section; null: its own
  llvm::Value* chunkNumber_ = nullptr;
  llvm::Value* vectorChunk_ = nullptr;
  std::vector<std::pair<llvm::Value*, llvm::Value*>> scratchBases_;
  std::map<std::pair<size_t, int64_t>, llvm::Value*> turnedMemory_;  ///< by position among the turned accesses, and points
};

}  // namespace fusebox::codegen::cpu
