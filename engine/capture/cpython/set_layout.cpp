#include "engine/capture/cpython/set_layout.h"

#include <algorithm>
#include <vector>

namespace fusebox::capture {

// CPython 3.11 and 3.12: the members of PySetObject are public, and a mark of a removed element is not counted.

PyRef setOfSameLayout(PyObject* set) {
  PyRef made = PyRef::steal(PyFrozenSet_Check(set) ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  if (!made || !takeLayout(made.get(), set)) return {};
  return made;
}

bool takeLayout(PyObject* set, PyObject* from) {
  auto* to = reinterpret_cast<PySetObject*>(set);
  const auto* as = reinterpret_cast<PySetObject*>(from);
  const auto slots = static_cast<size_t>(as->mask) + 1;
  setentry* table = to->smalltable;
  if (slots > PySet_MINSIZE) {
    table = static_cast<setentry*>(PyMem_Malloc(slots * sizeof(setentry)));
    if (!table) return PyErr_NoMemory(), false;
  }
  std::vector<PyRef> left;  // elements go when the set is whole again: that may run Python
  for (Py_ssize_t i = 0; i <= to->mask; ++i)
    if (PyObject* key = to->table[i].key; key && key != _PySet_Dummy) left.push_back(PyRef::steal(key));
  setentry* before = to->table == to->smalltable ? nullptr : to->table;
  std::fill(std::begin(to->smalltable), std::end(to->smalltable), setentry{});
  for (size_t i = 0; i < slots; ++i) {
    table[i] = as->table[i];
    if (table[i].key && table[i].key != _PySet_Dummy) Py_INCREF(table[i].key);
  }
  to->table = table;
  to->mask = as->mask;
  to->fill = as->fill;
  to->used = as->used;
  to->finger = as->finger;
  PyMem_Free(before);
  return true;
}

bool haveSameLayout(PyObject* a, PyObject* b) {
  const auto *one = reinterpret_cast<PySetObject*>(a), *other = reinterpret_cast<PySetObject*>(b);
  if (one->mask != other->mask || one->finger != other->finger) return false;
  return std::equal(one->table, one->table + one->mask + 1, other->table, [](const setentry& x, const setentry& y) { return x.key == y.key; });
}

}  // namespace fusebox::capture
