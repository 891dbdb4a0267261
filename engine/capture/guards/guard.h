#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/capture/evaluation/source.h"
#include "engine/graph/graph.h"

namespace fusebox::capture {

/// What is assumed of the object at a source. Names are TorchDynamo's where it has one.
enum class GuardKind : uint8_t {
  TypeMatch,        ///< type(x) is expected
  IdMatch,          ///< x is expected (kept alive weakly where possible, else strongly)
  ConstantMatch,    ///< exact type and equal value: int, float (NaN equals NaN, -0.0 differs), str, bytes, bool, None, Ellipsis,
                    ///< frozen containers of these, torch.dtype/device/layout/Size
  TensorMatch,      ///< Python type, dtype, device, sizes, strides, requires_grad, dispatch keys, not a subclass with overrides
  SequenceLength,   ///< len(list or tuple) == number
  DictKeysMatch,    ///< exact keys in order
  DictLength,       ///< len(dict) == number
  DictContains,     ///< key present
  DictLacks,        ///< key absent (for an instance dict: attribute absent)
  DictEmpty,        ///< hook tables
  TypeVersion,      ///< the type's attributes and those of its bases are as they were (tp_version_tag)
  SameObject,       ///< x is the object at `other`
  NotSameObject,    ///< x is not the object at `other` (two tensors that were two inputs)
  CodeMatch,        ///< function whose __code__ is expected; `number`, unless 0: the address of its globals
  WeakrefAlive,
  GlobalState,      ///< grad mode, inference mode, autocast, default dtype and device, deterministic mode, torch function modes,
                    ///< functorch stack, cudnn flags: as when captured; no source
  SymbolRange,      ///< the number at `source` is the value of a symbol, within its range (ShapeGuards::numbers at `number`)
  SymbolMatch,      ///< the number at `source` is the value of an expression over symbols (the same)
  ShapeEnv,         ///< a relation between symbols holds (ShapeGuards::relations at `number`); no source
  Custom,           ///< `predicate` decides
};

/// A position in the user's program that made an assumption.
struct Place {
  std::string file;
  int line = 0;
  std::string function;
  /// Callers of an inlined function, outermost first; only while a session is recorded.
  std::shared_ptr<const std::vector<Place>> callers = {};
};

struct Guard {
  GuardKind kind = GuardKind::TypeMatch;
  const Source* source = nullptr;
  const Source* other = nullptr;
  HeldRef expected;       ///< object, key, or tuple of keys, by kind
  int64_t number = 0;
  bool (*predicate)(PyObject* value, PyObject* expected) = nullptr;  ///< Custom
  std::string text;       ///< Custom: what it says, for people; of symbols: what asked for it
  Place place;
};

/// Collects the guards of one capture; equal guards are added once. The order of addition is the order of reading, so that a
/// guard is added only after those that make reading its source safe.
class GuardSet;  // engine/capture/guards/guard_set.h

/// What a failing check says.
struct GuardFailure {
  std::string guard;     ///< "TENSOR_MATCH L['x']"
  std::string expected, found;
  Place place;
  int64_t index = -1;    ///< of the guard in its set; -1: none of them
  int distance = 0;      ///< in how many things the call differs from the entry, as far as that can be told
  std::vector<const Source*> changedFloats, changedTexts;  ///< there, or behind it as far as only numbers, texts and tensors differ
};

}  // namespace fusebox::capture
