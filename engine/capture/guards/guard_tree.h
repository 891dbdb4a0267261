#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/capture/cpython/frame_view.h"
#include "engine/capture/guards/global_state.h"
#include "engine/capture/guards/guard_set.h"
#include "engine/capture/guards/shape_program.h"

namespace fusebox::capture {

/// The guards of one compiled entry as a flat program: a tree keyed by source is walked in order, every node fetches its object
/// once, runs its checks, then its children. A dictionary whose version tag is what it was at the last success is not read
/// again, and neither are the constants, types and identities found in it; only what can change without the dictionary
/// changing (tensors, nested containers) is.
///
/// A check allocates nothing, runs no Python code and holds no reference. The GIL must be held. Objects of IdMatch guards are
/// held weakly where their type allows (looseReferences); when one dies, alive() turns false for ever.
class GuardTree {
 public:
  /// Compiles `set`; `outputs` are sources whose objects check() hands out (graph inputs, sources of recipes). The set is
  /// finished: nothing may be added to it later, and its strong references to weakly held objects are dropped.
  GuardTree(std::shared_ptr<GuardSet> set, const std::vector<const Source*>& outputs);
  ~GuardTree();
  GuardTree(const GuardTree&) = delete;
  GuardTree& operator=(const GuardTree&) = delete;

  /// True if every guard holds. outputs(): borrowed, valid until Python code runs; those that the check itself made, as long as what
  /// takeTemporaries() returns lives.
  bool check(const FrameView& frame, const GlobalState& state);
  PyObject* output(size_t i) const { return registers_[outputRegisters_[i]]; }
  std::vector<PyRef> takeTemporaries() { return std::exchange(lent_, {}); }
  size_t outputCount() const { return outputRegisters_.size(); }
  /// After check() was true, until the next one: the values of ShapeGuards::symbols.
  std::span<const int64_t> symbolValues() const { return shapeProgram_ ? shapeProgram_->symbolValues() : std::span<const int64_t>(); }

  /// Runs the check again and says which guard failed, what was expected and what was found. Call it only after check() was
  /// false. Guards that fail are moved towards the front of the program.
  GuardFailure explain(const FrameView& frame, const GlobalState& state);

  /// Gives up the strong references of the guards, their sources and `others` (recipes') to what belongs to the program: compiled code
  /// would keep it alive, and with it itself, since CPython's collector does not see what hangs on code objects. `globals`: those of the
  /// frame, which every check is made with. Called once, when nothing else of the capture is left.
  void loosen(const std::vector<HeldRef*>& others, PyObject* globals);

  bool alive() const { return *alive_; }
  /// A weak reference to `object`, with whose death alive() turns false; null if its type has none.
  PyRef watch(PyObject* object);
  const GuardSet& guards() const { return *set_; }
  size_t operationCount() const;

  struct Op;

 private:
  struct Node;
  struct TypeSnapshot;
  void build(const std::vector<const Source*>& outputs);
  void buildShapes();
  uint32_t nodeOf(const Source* source);
  void flatten();
  int64_t snapshotOf(uint32_t guard, PyTypeObject* type);
  void emitNode(uint32_t node, bool fetched);
  void emitFetch(uint32_t node);
  void emitChecks(uint32_t node);
  bool isStable(uint32_t node) const;
  uint32_t firstGuard(uint32_t node) const;
  int64_t run(const FrameView& frame, uint32_t from = 0, bool allHeld = true);
  void noteChanged(const FrameView& frame, int64_t failed, GuardFailure& failure);
  bool fetch(Op& op, const FrameView& frame);
  bool checkOp(Op& op);
  bool typeUnchanged(Op& op);
  bool allDistinct();
  void countFailure(const Op& op);

  std::shared_ptr<GuardSet> set_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;
  std::vector<int32_t> nodeOfSource_;
  std::vector<Op> ops_;
  std::vector<PyObject*> registers_;        ///< one for each node: the object that it fetched last, borrowed
  void release();
  std::vector<PyObject*> owned_;            ///< objects that fetching created, until the end of the check
  std::vector<PyRef> lent_;                 ///< the same after a check that held, when outputs may be among them
  bool lends_ = false;                      ///< some output is reached through what a check makes
  std::vector<uint32_t> outputRegisters_;
  std::vector<uint32_t> distinct_;          ///< registers that must all differ
  std::vector<PyObject*> distinctSeen_;     ///< their objects at the last success
  std::unique_ptr<ShapeProgram> shapeProgram_;  ///< null: no number is symbolic
  PyRef objectDied_;                        ///< what the weak references call
  struct Watched {
    PyRef weak;
    std::string what;  ///< for people
  };
  std::unordered_map<PyObject*, Watched> watched_;
  std::vector<TypeSnapshot> snapshots_;
  std::shared_ptr<bool> alive_;
  bool checksGlobalState_ = false;
  uint32_t globalStateGuard_ = 0;
  size_t failures_ = 0;
  bool running_ = false;                    ///< a check is under way: one that begins inside it (a finaliser's) fails
};

/// Whether two values of exact builtin or torch types are the same constant: equal type, equal value, NaN equals NaN, -0.0 and
/// 0.0 differ; containers element by element. No Python code runs; other types are equal only if identical.
bool sameConstant(PyObject* a, PyObject* b);

/// What a guard asks for, for people.
std::string expectedText(const Guard& guard, const GuardSet& set);

/// A short description of an object that runs no Python code: value of constants, properties of tensors, type of the rest.
std::string describeObject(PyObject* object);

}  // namespace fusebox::capture
