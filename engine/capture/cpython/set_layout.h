#pragma once
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Which slots of a set's hash table its elements lie in, and where removed ones left a mark. The order of a set, and that of every set
/// made from it, follows from it; adding the elements one by one does not give the same one where hashes collide or sets were merged.

/// A set (or frozenset) with the elements and the layout of `set`, whose elements' hashes must hold in this process.
PyRef setOfSameLayout(PyObject* set);
/// The same for one that exists: a set, or a frozenset that nobody has seen. False with a MemoryError, the set unchanged.
bool takeLayout(PyObject* set, PyObject* from);
bool haveSameLayout(PyObject* a, PyObject* b);

}  // namespace fusebox::capture
