// Tensors indexed by symbolic ints: torch's own subscript asks every int for its number, so what has symbols becomes select and slice.
#include "engine/capture/evaluation/symbolic_index.h"

#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/trace/sym_int.h"

namespace fusebox::capture {

namespace {

bool sliceHasSymbols(PyObject* o) {
  auto* s = reinterpret_cast<PySliceObject*>(o);
  return isSymbolicNumber(s->start) || isSymbolicNumber(s->stop) || isSymbolicNumber(s->step);
}

bool elementHasSymbols(PyObject* o) { return isSymbolicInt(o) || (PySlice_Check(o) && sliceHasSymbols(o)); }

/// How many dimensions of the tensor an element of an index is for; nullopt: that is not known here. Ellipsis: 0.
std::optional<int64_t> dimensionsOf(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (PyLong_CheckExact(o) || isSymbolicInt(o) || PySlice_Check(o)) return 1;
  if (!isTensorObject(o)) return std::nullopt;
  const at::Tensor& index = tensorOf(o);
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte ? index.dim() : 1;
}

bool isFullSlice(PyObject* o) {
  if (!PySlice_Check(o)) return false;
  auto* s = reinterpret_cast<PySliceObject*>(o);
  return s->start == Py_None && s->stop == Py_None && s->step == Py_None;
}

/// An operator of libtorch; what it raises is a Python error.
PyRef onTensor(Evaluation& e, PyObject* tensor, const std::function<at::Tensor(const at::Tensor&)>& operation) {
  const at::Tensor operand = tensorOf(tensor);
  at::Tensor made;
  try {
    const GilRelease release;
    made = operation(operand);
  } catch (...) {
    raiseInPython(std::current_exception());
    return e.checked(nullptr);
  }
  return e.checked(newTensorObject(made));
}

/// A bound of a slice; nullopt: it cannot be one, or is left out.
std::optional<c10::SymInt> boundOf(Evaluation& e, PyObject* o) {
  if (isSymbolicInt(o)) return trace::toSymInt(numberExpr(o).a, e.trace().shapes());
  return PyLong_CheckExact(o) ? std::optional<c10::SymInt>(PyNumber_AsSsize_t(o, nullptr)) : std::nullopt;
}

}  // namespace

bool indexHasSymbols(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return elementHasSymbols(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (elementHasSymbols(PyTuple_GET_ITEM(key, i))) return true;
  return false;
}

PyRef takeSymbols(Evaluation& e, PyObject* tensor, PyObject* key, PyRef* rest) {
  const auto n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
  const auto at = [&](Py_ssize_t i) { return PyTuple_CheckExact(key) ? PyTuple_GET_ITEM(key, i) : key; };
  int64_t named = 0, ellipses = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const std::optional<int64_t> dimensions = dimensionsOf(at(i));
    if (!dimensions) return {};
    named += *dimensions;
    ellipses += at(i) == Py_Ellipsis;
    if (!PySlice_Check(at(i))) continue;
    auto* s = reinterpret_cast<PySliceObject*>(at(i));
    for (PyObject* part : {s->start, s->stop})
      if (part != Py_None && !boundOf(e, part)) return {};
    if (s->step != Py_None && !PyLong_CheckExact(s->step)) return {};
  }
  if (named > tensorOf(tensor).dim() || ellipses > 1) return {};
  int64_t dim = 0;
  PyRef view = PyRef::borrow(tensor), left = PyRef::steal(PyList_New(0)), all = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr));
  const int64_t between = tensorOf(tensor).dim() - named;
  bool more = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = at(i);
    if (isSymbolicInt(item)) {
      const c10::SymInt index = *boundOf(e, item);
      view = onTensor(e, view.get(), [&](const at::Tensor& t) { return t.select_symint(dim, index); });
      if (!view) return {};
      continue;
    }
    if (PySlice_Check(item) && sliceHasSymbols(item)) {
      auto* s = reinterpret_cast<PySliceObject*>(item);
      const std::optional<c10::SymInt> start = boundOf(e, s->start), stop = boundOf(e, s->stop);
      const c10::SymInt step = s->step == Py_None ? c10::SymInt(1) : *boundOf(e, s->step);
      view = onTensor(e, view.get(), [&](const at::Tensor& t) { return t.slice_symint(dim, start, stop, step); });
      if (!view) return {};
      item = all.get();
    }
    if (item == Py_None) {  // in its turn, as its stride is made of the dimensions that come then
      view = onTensor(e, view.get(), [&](const at::Tensor& t) { return t.unsqueeze(dim); });
      if (!view) return {};
      item = all.get();
    }
    more = more || !(isFullSlice(item) || item == Py_Ellipsis);
    dim += item == Py_Ellipsis ? between : *dimensionsOf(item);
    PyList_Append(left.get(), item);
  }
  if (more) *rest = PyRef::steal(PyList_AsTuple(left.get()));
  return view;
}

}  // namespace fusebox::capture
