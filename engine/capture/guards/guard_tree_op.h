#pragma once

#include "engine/capture/guards/guard_tree.h"

namespace fusebox::capture {

constexpr uint32_t kNone = UINT32_MAX;

/// Whether the program has a weak reference to an object; a guard tree's, which hears of the end of what it was made for, is none.
bool isWeaklyReferred(PyObject* object);

/// One step of the flat program. Fetches read register `from` and write register `to`; checks read register `from`.
struct GuardTree::Op {
  enum class Code : uint8_t {
    // fetches
    Local, Stack, Pinned, Weak, FunctionMode, Cell, InstanceDict, DictItem, DictKey, SequenceItem, SlotAttr, Attr, ClassAttr, TypeOf,
    FunctionCode, FunctionDefaults, FunctionKwDefaults, FunctionClosure, MethodSelf, MethodFunction, ViewDict, TensorGrad, ArrayTensor, NestedValues,
    LocalTensor, Upcoming, IteratorParts,
    // control
    DictUnchanged,  ///< version tag as at the last success: jump to `skip`
    DictCommit,     ///< remember the version tag
    // checks
    TypeMatch, IdMatch, ConstantMatch, TensorMatch, SequenceLength, DictKeysMatch, DictLength, DictContains, DictLacks, DictEmpty,
    TypeVersion, SameObject, CodeMatch, Alive, Custom,
  } code = Code::Local;
  uint32_t from = kNone, to = kNone;
  uint32_t skip = 0;         ///< DictUnchanged: program position to go on at; DictCommit: position of its DictUnchanged
  uint32_t guard = kNone;    ///< the guard that fails when this step fails
  PyObject* key = nullptr;   ///< borrowed from the guard or source
  int64_t number = 0;        ///< index, length, hash of the key, position of a spec or snapshot
  uint64_t tag = 0;          ///< dictionary or type version
  bool (*predicate)(PyObject*, PyObject*) = nullptr;
  const TensorSpec* tensor = nullptr;
};

struct GuardTree::Node {
  const Source* source = nullptr;
  std::vector<uint32_t> guards;    ///< positions in the GuardSet, in order of addition
  std::vector<uint32_t> children;
  bool referenced = false;         ///< its register is read by others: the object must be fetched on every check
  uint32_t failures = 0;
};

/// The attributes of a type and its bases that were looked up by capture, and all special methods, as they were: for types whose
/// version tag changed although nothing relevant did (a counter kept in the class), or that ran out of tags.
struct GuardTree::TypeSnapshot {
  /// The attributes of the class at a position of the MRO; `copy` holds the relevant ones in a form that keeps none alive (heldForm).
  struct Entry { Py_ssize_t position; PyRef copy; };
  std::vector<Entry> dicts;
  std::unordered_set<PyObject*> names;  ///< interned; empty: all are relevant
  std::unordered_set<PyObject*> numbers;  ///< of these, that there is a number: guards of their own say which
  bool ordered = false;                 ///< and their order is
  std::vector<PyObject*> mro;           ///< addresses
  uint32_t guard = kNone;
  uint32_t version = 0;  ///< the type's tag for which the attributes are known to be these
  static TypeSnapshot of(PyTypeObject* type, const GuardSet& set);
  bool matches(PyTypeObject* type) const;
  bool isRelevant(PyObject* key) const;
  PyRef heldAs(PyObject* key, PyObject* value) const;
};

/// The instance dict of an object (made if it does not exist yet), borrowed; null if it has none.
PyObject* instanceDictOf(PyObject* object);
/// Changes with every change of the dict; unique over all dicts of the process.
uint64_t dictVersion(PyObject* dict);
/// The version tag of a type, 0 while it has none.
uint32_t typeVersion(PyTypeObject* type);
/// Gives the type a version tag if it can have one.
uint32_t assignTypeVersion(PyTypeObject* type);

}  // namespace fusebox::capture
