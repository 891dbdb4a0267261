#include "engine/capture/evaluation/iterator_ahead.h"

#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/pickled_parts.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

bool canBeCopied(PyObject* iterator) {
  static const std::unordered_set<std::string_view> types = {
      "list_iterator", "list_reverseiterator", "tuple_iterator", "range_iterator", "longrange_iterator", "str_iterator", "str_ascii_iterator",
      "bytes_iterator", "dict_keyiterator", "dict_valueiterator", "dict_itemiterator", "dict_reversekeyiterator", "dict_reversevalueiterator",
      "dict_reverseitemiterator", "odict_iterator", "set_iterator", "enumerate", "zip", "reversed", "itertools.count", "itertools.repeat"};
  return !isPythonClass(Py_TYPE(iterator)) && types.count(Py_TYPE(iterator)->tp_name) > 0;
}

/// (callable, arguments[, state]) that pickling gives; null without error where it cannot.
PyRef reduced(PyObject* iterator) {
  if (!canBeCopied(iterator)) return {};
  PyRef parts = pickledParts(iterator);
  if (!parts || !PyTuple_Check(parts.get()) || PyTuple_GET_SIZE(parts.get()) < 2) return clearError(), PyRef();
  // What a class of the program says of its instances (__iter__, __getitem__, __add__) would run for it.
  PyObject* args = PyTuple_GET_ITEM(parts.get(), 1);
  for (Py_ssize_t i = 0; PyTuple_Check(args) && i < PyTuple_GET_SIZE(args); ++i)
    if (isChangeable(Py_TYPE(PyTuple_GET_ITEM(args, i))) && std::string_view(Py_TYPE(iterator)->tp_name) != "itertools.repeat") return {};
  return parts;
}

/// Copies iterators with the iterators inside them; one that is inside twice stays one.
class IteratorCopy {
 public:
  PyRef copy(PyObject* iterator) {
    for (auto& [from, to] : made_)
      if (from == iterator) return to;
    PyRef parts = reduced(iterator);
    PyRef args = parts ? argument(PyTuple_GET_ITEM(parts.get(), 1)) : PyRef();
    PyRef made = args ? PyRef::steal(PyObject_Call(PyTuple_GET_ITEM(parts.get(), 0), args.get(), nullptr)) : PyRef();
    if (made && PyTuple_GET_SIZE(parts.get()) > 2 && PyTuple_GET_ITEM(parts.get(), 2) != Py_None) {
      PyRef done = setPickledState(made.get(), PyTuple_GET_ITEM(parts.get(), 2));
      if (!done) made = PyRef();
    }
    if (!made) return clearError(), PyRef();
    made_.emplace_back(iterator, made);
    return made;
  }

 private:
  PyRef argument(PyObject* value) {
    if (PyTuple_CheckExact(value)) {
      PyRef tuple = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(value)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
        PyObject* element = PyTuple_GET_ITEM(value, i);
        PyRef item = PyIter_Check(element) ? copy(element) : PyRef::borrow(element);
        if (!item) return {};
        PyTuple_SET_ITEM(tuple.get(), i, item.release());
      }
      return tuple;
    }
    return PyRef::borrow(value);
  }
  std::vector<std::pair<PyObject*, PyRef>> made_;
};

}  // namespace

PyRef upcoming(PyObject* iterator) {
  PyRef rest = IteratorCopy().copy(iterator);
  if (!rest) return {};
  PyRef item = PyRef::steal(PyIter_Next(rest.get()));
  if (item) return PyRef::steal(PyTuple_Pack(2, item.get(), rest.get()));
  if (PyErr_Occurred()) return clearError(), PyRef();
  return PyRef::steal(PyTuple_New(0));
}

void forEachIteratorPart(PyObject* iterator, const std::function<void(PyObject*, bool)>& visit) {
  visit(iterator, true);
  PyRef parts = reduced(iterator);
  PyObject* args = parts ? PyTuple_GET_ITEM(parts.get(), 1) : nullptr;
  for (Py_ssize_t i = 0; args && PyTuple_Check(args) && i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* part = PyTuple_GET_ITEM(args, i);
    if (PyIter_Check(part))
      forEachIteratorPart(part, visit);
    else
      visit(part, false);
  }
}

}  // namespace fusebox::capture
