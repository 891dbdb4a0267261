// The dictionary of a class as a mapping: vars(cls), cls.__dict__, and read-only views of other dicts.
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/cpython/frame_internals.h"

namespace fusebox::capture {

namespace {

/// The mapping that a types.MappingProxyType shows; borrowed from the proxy.
PyObject* mappingOf(PyObject* proxy) {
  PyObject* mapping = nullptr;
  Py_TYPE(proxy)->tp_traverse(proxy, [](PyObject* visited, void* out) {
    *static_cast<PyObject**>(out) = visited;
    return 1;
  }, &mapping);
  return mapping;
}

/// Predicate of a Custom guard: a proxy of this very mapping.
bool showsMapping(PyObject* proxy, PyObject* mapping) { return Py_IS_TYPE(proxy, &PyDictProxy_Type) && mappingOf(proxy) == mapping; }

}  // namespace

PyRef Evaluation::classDict(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  PyRef proxy = PyRef::steal(PyObject_GetAttrString(object, "__dict__"));
  if (proxy && !origins_.find(proxy.get())) origins_.add(proxy.get(), nullptr).owner = PyRef::borrow(object);
  return proxy;
}

PyRef Evaluation::proxied(PyObject* proxy) {
  Origin* o = origins_.find(proxy);
  if (o && o->owner) {
    // A class: all of its attributes are looked at, in their order.
    auto* type = reinterpret_cast<PyTypeObject*>(o->owner.get());
    guardTypeAttribute(type, nullptr);
    PyRef copy = PyRef::steal(PyDict_Copy(typeDict(type).get())), items = PyRef::steal(PyDict_Values(copy.get()));
    adopt(copy.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) pin(PyList_GET_ITEM(items.get(), i), Why::Class);
    return copy;
  }
  PyObject* mapping = mappingOf(proxy);
  const Source* source = sourceOf(proxy);
  if (source && source->kind != Source::Kind::Pinned) guardCustom(source, showsMapping, mapping, "a view of the same mapping");
  return source ? pin(mapping, Why::Owner) : PyRef::borrow(mapping);
}

PyRef Evaluation::proxyItem(PyObject* proxy, PyObject* key) {
  Origin* o = origins_.find(proxy);
  if (!o || !o->owner) {
    PyRef mapping = proxied(proxy);
    return getItem(mapping.get(), key);
  }
  auto* type = reinterpret_cast<PyTypeObject*>(o->owner.get());
  PyRef dict = typeDict(type);
  PyObject* found = nullptr;
  if (PyUnicode_Check(key)) {
    guardTypeAttribute(type, key);
    found = PyDict_GetItemWithError(dict.get(), key);
  }
  if (found) return heldByClass(type, type, key, found);
  PyRef tuple = PyRef::steal(PyTuple_Pack(1, key));
  if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, tuple.get());
  return {};
}

}  // namespace fusebox::capture
