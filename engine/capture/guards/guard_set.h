#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/capture/guards/global_state.h"
#include "engine/capture/guards/guard.h"
#include "engine/capture/evaluation/source_table.h"
#include "engine/capture/guards/shape_guards.h"
#include "engine/capture/guards/tensor_spec.h"

namespace fusebox::capture {

/// The assumptions of one capture, in the order in which they were made, and the sources they speak of. Equal guards are kept
/// once (the first place wins). The GIL must be held.
///
/// Make it before tracing changes libtorch's thread state: the constructor takes down the GlobalState that a guard of that
/// kind will compare with.
class GuardSet {
 public:
  GuardSet(PyCodeObject* code, PyObject* globals);

  SourceTable& sources() { return sources_; }
  const SourceTable& sources() const { return sources_; }

  /// Adds an assumption. `expected` by kind:
  ///   TypeMatch the type · IdMatch the object · ConstantMatch the value · DictKeysMatch a tuple of the keys in order ·
  ///   DictContains, DictLacks the key · TypeVersion the type (the value at `source` is the type itself) ·
  ///   CodeMatch the code object · TensorMatch the tensor, of which only the properties are kept ·
  ///   SequenceLength, DictLength use `number` · SameObject uses `other` · GlobalState, DictEmpty, WeakrefAlive nothing.
  /// NotSameObject without `other` puts the object in the set of those that are all different from one another; that is one
  /// check for any number of tensors, where pairs would be n².
  /// Returns false if an equal guard was there.
  bool add(Guard guard);

  /// A guard of a set that was written down, with what it knows of its tensor.
  void restore(Guard guard, std::optional<TensorSpec> spec);
  void restore(const GlobalState& state) { globalState_ = state; }

  // The common ones, short.
  /// From now on TensorMatch guards speak of where in its storage a tensor begins, and with `bytes` of how far that reaches at least.
  void requireStorage(bool bytes);
  bool tensorMatch(const Source* s, PyObject* t, const Place& p) { return addKind(GuardKind::TensorMatch, s, t, p); }
  bool typeVersion(const Source* s, PyObject* type, const Place& p) { return addKind(GuardKind::TypeVersion, s, type, p); }
  bool addKind(GuardKind kind, const Source* source, PyObject* expected, const Place& place, int64_t number = 0);

  /// The number that `at` says is `is`, which guards make sure of from now on instead of the TensorMatch or ConstantMatch of its source; of a
  /// tensor the TensorMatch comes first. Several for one source in the order sizes, strides.
  void number(const NumberSource& at, const graph::SymExpr& is, std::string why, const Place& place);
  /// Whether the tensor at a source has a TensorMatch whose numbers may be symbols.
  bool mayBeSymbolic(const Source* source) const;
  /// Dimensions of the tensor of a source that has a TensorMatch.
  size_t rankOf(const Source* source) const { return tensorSpecs_[specOf_.at(source)].sizes.size(); }
  /// Everything that the trace decided on its symbols becomes guards. False: a symbol has no number that says its value.
  bool finishShapes(const graph::ShapeEnv& env);
  ShapeGuards& shapes() { return shapes_; }
  const ShapeGuards& shapes() const { return shapes_; }

  const std::vector<Guard>& guards() const { return guards_; }
  /// A TypeVersion guard of `type` speaks of the attributes that are named here and of special methods; of all while none is.
  /// A null name: all of them, in their order.
  void addAttributeOf(PyTypeObject* type, PyObject* name);
  const std::unordered_set<PyObject*>& attributesOf(PyTypeObject* type) const;
  /// Of an attribute that the guard of `type` speaks of, only that it is a number and where: which number matters to guards of its Source, if at all.
  void addNumberOf(PyTypeObject* type, PyObject* name);
  const std::unordered_set<PyObject*>& numbersOf(PyTypeObject* type) const;

  const GlobalState& globalState() const { return globalState_; }
  /// Properties taken from the tensor of a TensorMatch guard; `Guard::number` is the position.
  const TensorSpec& tensorSpec(const Guard& guard) const { return tensorSpecs_[static_cast<size_t>(guard.number)]; }

 private:
  void addName(std::unordered_set<PyObject*>& names, PyObject* name);
  struct Hash { const GuardSet* set; size_t operator()(size_t i) const; };
  struct Equal { const GuardSet* set; bool operator()(size_t a, size_t b) const; };
  SourceTable sources_;
  std::vector<Guard> guards_;
  std::vector<TensorSpec> tensorSpecs_;
  std::unordered_map<const Source*, size_t> specOf_;
  ShapeGuards shapes_;
  std::unordered_map<PyTypeObject*, std::unordered_set<PyObject*>> attributes_;  ///< interned names, kept alive by names_; null: all
  std::unordered_map<PyTypeObject*, std::unordered_set<PyObject*>> numbers_;     ///< likewise
  std::vector<PyRef> names_;
  GlobalState globalState_;
  std::unordered_set<size_t, Hash, Equal> index_;
};

/// "TENSOR_MATCH", the name by which people know the kind.
const char* name(GuardKind kind);

}  // namespace fusebox::capture
