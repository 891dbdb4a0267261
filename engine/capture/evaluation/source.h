#pragma once

#include <cstdint>
#include <string>

#include "engine/capture/cpython/held_ref.h"

namespace fusebox::capture {

/// Why an object may be taken as it is, without a guard on the place where it was found.
enum class Why : uint8_t {
  Guarded,    ///< a guard on this very object was just made
  Class,      ///< a class holds it under a TYPE_VERSION guard, or it is the class of an object whose type is guarded
  Function,   ///< part of a function whose code and defaults are guarded
  Owner,      ///< belongs to a known object that cannot be given another one: a namespace, the parts of a property
  Container,  ///< key or element of a container whose contents are guarded
  Cached,     ///< the program would be given this very object (functools.lru_cache)
  Immutable,  ///< C code made it of guarded values, and it never changes
  Process,    ///< torch's or the interpreter's own, one for as long as the process lives
  Capture,    ///< the capture made it and nobody else knows it
};

/// How to reach an object from the state a frame starts with. Sources form a tree and are interned per capture: two reads of
/// the same place give the same pointer. They are the spine of the guard tree.
struct Source {
  enum class Kind : uint8_t {
    Local,        ///< localsplus[index] of the root frame (arguments, locals, cells, free variables)
    Stack,        ///< value stack slot `index` of the root frame (when capture starts in the middle of a frame)
    Pinned,       ///< `key` itself: an object that a guard on its holder, or its immortality, fixes (a globals dict, a type)
    CellContents, ///< contents of the cell `base`
    InstanceDict, ///< base.__dict__, the object itself
    DictItem,     ///< base[key] of an exact dict (or OrderedDict), without calling Python
    DictKey,      ///< the index-th key of dict `base`, in order
    SequenceItem, ///< base[index] of an exact list or tuple (or a subclass that does not override __getitem__)
    SlotAttr,     ///< member descriptor or C getset `key` (a str) of `base`: PyObject_GenericGetAttr
    Attr,         ///< getattr(base, key) by C code only (module attributes, tensor attributes)
    ClassAttr,    ///< attribute `key` of class `base`: its own or a base's, as it is there
    TypeOf,       ///< type(base)
    FunctionCode, FunctionDefaults, FunctionKwDefaults, FunctionClosure,  ///< parts of a Python function
    MethodSelf, MethodFunction,                                           ///< parts of a bound method
    ViewDict,     ///< the dict that `base`, a view of its keys, values or items, looks at
    TensorGrad,   ///< base.grad
    ArrayTensor,  ///< a tensor that shares the memory of array `base`
    Upcoming,     ///< what iterator `base` would give next: () at its end, else (item, iterator over the rest); `base` is not advanced
    IteratorParts, ///< what iterator `base`, in which Python code takes part, consists of (taken_iterators.h): a tuple
    GlobalWeak,   ///< the object a weak reference `key` points to
    FunctionMode, ///< torch function mode `index` of the thread's stack
    NestedValues, ///< the values of nested tensor `base` with their history, which has its own
    LocalTensor,  ///< the local tensor of distributed tensor `base` with its history; `key`: how its gradient is laid
  } kind = Kind::Local;
  const Source* base = nullptr;
  HeldRef key;         ///< attribute name or dict key; Pinned: the object
  int64_t index = -1;
  int others = 0;      ///< DictItem: how many keys of this dict that only identity tells apart had a source before; the text numbers them
  Why why = Why::Guarded;  ///< Pinned: the reason that was given first
  uint32_t id = 0;     ///< position in the capture's SourceTable

  /// As a person writes it: "L['x'].layers[0].weight", "G['torch'].nn".
  std::string str() const;
  /// Shorter, as the program names it: "x", "self.layers.0.weight" (the tables of nn.Module are left out).
  std::string label() const;
};

inline bool isPinned(const Source* s) { return s && s->kind == Source::Kind::Pinned; }

}  // namespace fusebox::capture
