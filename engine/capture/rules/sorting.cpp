#include "engine/capture/rules/sorting.h"

#include <exception>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

/// One sort by keys that only the evaluator can compare. What it throws waits here until CPython's sort has returned.
struct Comparisons {
  Evaluation& e;
  std::exception_ptr thrown;
};

struct KeyObject {
  PyObject_HEAD
  Comparisons* comparisons;
  PyObject* key;  ///< borrowed from the list of keys
};

PyObject* compareKeys(PyObject* a, PyObject* b, int op) {
  auto *x = reinterpret_cast<KeyObject*>(a), *y = reinterpret_cast<KeyObject*>(b);
  Comparisons& c = *x->comparisons;
  int answer = -1;
  try {
    PyRef less = c.e.compare(op, x->key, y->key);
    answer = less ? c.e.truth(less.get()) : -1;
  } catch (...) {
    c.thrown = std::current_exception();
    clearError();
  }
  if (c.thrown) PyErr_SetString(PyExc_SystemError, "the evaluation of a comparison has ended");
  return answer < 0 ? nullptr : Py_NewRef(answer ? Py_True : Py_False);
}

void freeKey(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* keyType() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(freeKey)},
                                {Py_tp_richcompare, reinterpret_cast<void*>(compareKeys)},
                                {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                                {0, nullptr}};
  static PyType_Spec spec = {"fusebox.sort_key", sizeof(KeyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

PyRef keyObject(Comparisons& comparisons, PyObject* key) {
  auto* object = reinterpret_cast<KeyObject*>(keyType()->tp_alloc(keyType(), 0));
  object->comparisons = &comparisons;
  object->key = key;
  return PyRef::steal(reinterpret_cast<PyObject*>(object));
}

/// The positions of `keys` in sorted order, by CPython's sort: it asks the same comparisons in the same order.
PyRef sortedPositions(PyObject* keys, bool reverse) {
  const Py_ssize_t n = PyList_GET_SIZE(keys);
  PyRef positions = PyRef::steal(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) PyList_SET_ITEM(positions.get(), i, PyLong_FromSsize_t(i));
  PyRef sort = PyRef::steal(PyObject_GetAttrString(positions.get(), "sort")), keyOf = PyRef::steal(PyObject_GetAttrString(keys, "__getitem__"));
  PyRef none = PyRef::steal(PyTuple_New(0));
  PyRef named = PyRef::steal(Py_BuildValue("{s:O,s:O}", "key", keyOf.get(), "reverse", reverse ? Py_True : Py_False));
  PyRef done = PyRef::steal(PyObject_Call(sort.get(), none.get(), named.get()));
  return done ? positions : PyRef();
}

/// The keys to sort `items` by, those that only the evaluator can compare wrapped; null: a key function raised.
PyRef keysOf(Evaluation& e, PyObject* items, PyObject* key, Comparisons& comparisons, PyRef* raw) {
  const Py_ssize_t n = PyList_GET_SIZE(items);
  *raw = PyRef::steal(PyList_New(0));
  bool constant = true;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef item = e.translate(PyList_GET_ITEM(items, i), nullptr);
    PyObject* args[] = {item.get()};
    PyRef made = key && key != Py_None ? e.call(key, args, 1, nullptr) : item;
    if (!made) return {};
    e.refuseAddress(made.get());
    constant = constant && isConstantValue(made.get());
    PyList_Append(raw->get(), made.get());
  }
  if (constant) return *raw;
  PyRef keys = PyRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < n; ++i) PyList_Append(keys.get(), keyObject(comparisons, PyList_GET_ITEM(raw->get(), i)).get());
  return keys;
}

}  // namespace

bool sortList(Evaluation& e, PyObject* list, PyObject* key, bool reverse) {
  const Py_ssize_t n = PyList_GET_SIZE(list);
  PyRef raw;
  Comparisons comparisons{e, nullptr};
  PyRef keys = keysOf(e, list, key, comparisons, &raw);
  PyRef positions = keys ? sortedPositions(keys.get(), reverse) : PyRef();
  if (comparisons.thrown) {
    clearError();
    std::rethrow_exception(comparisons.thrown);
  }
  if (!positions) return false;
  PyRef items = PyRef::steal(PyList_GetSlice(list, 0, n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Py_ssize_t from = PyLong_AsSsize_t(PyList_GET_ITEM(positions.get(), i));
    PyList_SetItem(list, i, PyRef::borrow(PyList_GET_ITEM(items.get(), from)).release());
  }
  return true;
}

}  // namespace fusebox::capture
