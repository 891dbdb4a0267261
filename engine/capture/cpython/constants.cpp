#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/Size.h>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {
namespace {

bool sameTuple(PyObject* a, PyObject* b) {
  const Py_ssize_t n = PyTuple_GET_SIZE(a);
  if (PyTuple_GET_SIZE(b) != n) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!sameConstant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

bool sameFloat(PyObject* a, PyObject* b) {
  const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
  uint64_t p, q;
  std::memcpy(&p, &x, 8);
  std::memcpy(&q, &y, 8);
  return p == q || (x != x && y != y);
}

bool sameFrozenSet(PyObject* a, PyObject* b) {
  // Elements that are strings or numbers compare in C; a set with others is equal only to itself.
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  Py_ssize_t position = 0;
  PyObject* element;
  Py_hash_t hash;
  while (_PySet_NextEntry(a, &position, &element, &hash)) {
    if (!PyUnicode_CheckExact(element) && !PyLong_CheckExact(element) && !PyFloat_CheckExact(element) && element != Py_None)
      return false;
    if (PySet_Contains(b, element) != 1) {
      clearError();
      return false;
    }
  }
  return true;
}

std::string reprInC(PyObject* o) {
  PyRef text = PyRef::steal(PyObject_Repr(o));
  const char* s = text ? utf8Of(text.get()) : nullptr;
  if (!s) {
    clearError();
    return "?";
  }
  std::string r = s;
  if (r.size() > 120) r = r.substr(0, 117) + "...";
  return r;
}

bool isPlain(PyObject* o) {
  return o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || THPDtype_Check(o) || THPDevice_Check(o) ||
         THPLayout_Check(o);
}

}  // namespace

bool sameConstant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  PyTypeObject* type = Py_TYPE(a);
  if (type != Py_TYPE(b)) return false;
  if (type == &PyFloat_Type) return sameFloat(a, b);
  if (type == &PyTuple_Type || type == &THPSizeType) return sameTuple(a, b);
  if (type == &PyFrozenSet_Type) return sameFrozenSet(a, b);
  if (type == &THPDeviceType)
    return reinterpret_cast<THPDevice*>(a)->device == reinterpret_cast<THPDevice*>(b)->device;
  if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type) {
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) clearError();
    return equal == 1;
  }
  if (type == &PyComplex_Type) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  return false;
}

std::string describeObject(PyObject* o) {
  if (!o) return "nothing there";
  if (isPlain(o)) return reprInC(o);
  if (isTensorObject(o)) {
    TensorSpec spec = TensorSpec::of(o);
    clearError();
    return spec.str();
  }
  if (PyType_Check(o)) return std::string("class ") + reinterpret_cast<PyTypeObject*>(o)->tp_name;
  if (PyFunction_Check(o)) {
    const char* s = utf8Of(reinterpret_cast<PyFunctionObject*>(o)->func_qualname);
    return std::string("function ") + (s ? s : "?");
  }
  if (PyTuple_CheckExact(o) || Py_TYPE(o) == &THPSizeType) {
    std::string text = "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o) && i < 8; ++i) text += (i ? ", " : "") + describeObject(PyTuple_GET_ITEM(o, i));
    return text + (PyTuple_GET_SIZE(o) > 8 ? ", ...)" : ")");
  }
  std::string text = std::string("an object of type ") + Py_TYPE(o)->tp_name;
  if (PyList_CheckExact(o)) text += " with " + std::to_string(PyList_GET_SIZE(o)) + " items";
  if (PyDict_CheckExact(o)) text += " with " + std::to_string(PyDict_GET_SIZE(o)) + " keys";
  char at[32];
  std::snprintf(at, sizeof at, " at %p", static_cast<void*>(o));
  return text + at;
}

}  // namespace fusebox::capture
