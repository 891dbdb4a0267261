#include "engine/python/code_digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using capture::PyRef;

constexpr int kDeepest = 200;

class Digester {
 public:
  Digester(bool lines, PyObject* plain) : lines_(lines), plain_(plain) {}

  std::string digest(PyObject* value) {
    bytes_.clear();
    add(value, 0);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes_.data(), bytes_.size()));
    std::string text;
    for (const unsigned char byte : canonical.digest) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

 private:
  void raw(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  void tag(char kind) { bytes_ += kind; }
  void number(int64_t value) { raw(&value, sizeof value); }
  void counted(const void* data, Py_ssize_t size) {
    number(size);
    raw(data, static_cast<size_t>(size));
  }

  void text(PyObject* value) {
    tag('s');
    number(PyUnicode_KIND(value));
    counted(PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value) * static_cast<Py_ssize_t>(PyUnicode_KIND(value)));
  }

  void integer(PyObject* value) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
    tag('i');
    if (!overflow) return number(small);
    const PyRef digits = PyRef::steal(PyObject_Str(value));
    if (!digits) throw py::error_already_set();
    text(digits.get());
  }

  void set(PyObject* value, int depth) {
    std::vector<std::string> items;
    const PyRef iterator = PyRef::steal(PyObject_GetIter(value));
    if (!iterator) throw py::error_already_set();
    while (const PyRef item = PyRef::steal(PyIter_Next(iterator.get()))) {
      const size_t before = bytes_.size();
      add(item.get(), depth + 1);
      items.push_back(bytes_.substr(before));
      bytes_.resize(before);
    }
    if (PyErr_Occurred()) throw py::error_already_set();
    std::sort(items.begin(), items.end());  // its own order is another one in each process
    tag('f');
    number(static_cast<int64_t>(items.size()));
    for (const std::string& item : items) bytes_ += item;
  }

  void code(PyCodeObject* value, int depth) {
    tag('c');
    if (lines_) {
      add(value->co_filename, depth);
      number(value->co_firstlineno);
      add(value->co_linetable, depth);
    }
    const PyRef instructions = PyRef::steal(PyCode_GetCode(value));
    if (!instructions) throw py::error_already_set();
    for (PyObject* part : {instructions.get(), value->co_consts, value->co_names, value->co_localsplusnames, value->co_localspluskinds, value->co_exceptiontable})
      add(part, depth + 1);
    for (const int part : {value->co_argcount, value->co_posonlyargcount, value->co_kwonlyargcount, value->co_flags}) number(part);
  }

  void add(PyObject* value, int depth) {
    if (depth > kDeepest) {
      PyErr_SetString(PyExc_RecursionError, "constants lie too deep in each other");
      throw py::error_already_set();
    }
    if (value == Py_None) return tag('n');
    if (value == Py_True) return tag('T');
    if (value == Py_False) return tag('F');
    if (value == Py_Ellipsis) return tag('e');
    if (PyUnicode_CheckExact(value)) return text(value);
    if (PyLong_CheckExact(value)) return integer(value);
    if (PyBytes_CheckExact(value)) {
      tag('b');
      return counted(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    }
    if (PyFloat_CheckExact(value)) {
      const double number = PyFloat_AS_DOUBLE(value);
      tag('d');
      return raw(&number, sizeof number);
    }
    if (PyComplex_CheckExact(value)) {
      const Py_complex number = PyComplex_AsCComplex(value);
      tag('z');
      return raw(&number, sizeof number);
    }
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      tag(PyTuple_CheckExact(value) ? 't' : 'l');
      number(PySequence_Fast_GET_SIZE(value));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(value, i));
        add(item.get(), depth + 1);
      }
      return;
    }
    if (PyFrozenSet_CheckExact(value)) return set(value, depth);
    if (PyCode_Check(value)) return code(reinterpret_cast<PyCodeObject*>(value), depth);
    const PyRef stands = PyRef::steal(PyObject_CallOneArg(plain_, value));
    if (!stands) throw py::error_already_set();
    tag('p');
    add(stands.get(), depth + 1);
  }

  bool lines_;
  PyObject* plain_;
  std::string bytes_;
};

}  // namespace

std::string digestOf(py::handle value, bool lines, const py::object& plain) { return Digester(lines, plain.ptr()).digest(value.ptr()); }

}  // namespace fusebox::python
