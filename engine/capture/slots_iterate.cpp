// iter, next, send and the iterators that only the evaluator can advance.
#include "engine/capture/evaluation.h"
#include "engine/capture/call_rules.h"
#include "engine/capture/lazy_iterators.h"
#include "engine/capture/value_kinds.h"

namespace fusebox::capture {

namespace {

struct LazyObject {
  PyObject_HEAD
  LazyIterator* iterator;
};

void lazyDealloc(PyObject* self) {
  delete reinterpret_cast<LazyObject*>(self)->iterator;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* lazyNext(PyObject*) {
  PyErr_SetString(PyExc_SystemError, "an iterator that belongs to a capture was advanced outside of it");
  return nullptr;
}

PyObject* lazyMethodOutside(PyObject* self, PyObject*) { return lazyNext(self); }

PyMethodDef kLazyMethods[] = {{"send", lazyMethodOutside, METH_VARARGS, nullptr},
                              {"throw", lazyMethodOutside, METH_VARARGS, nullptr},
                              {"close", lazyMethodOutside, METH_VARARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyTypeObject* lazyType() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(lazyDealloc)},
                                {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(lazyNext)},
                                {Py_tp_methods, kLazyMethods},
                                {0, nullptr}};
  static PyType_Spec spec = {"fusebox.suspended_iterator", sizeof(LazyObject), 0, Py_TPFLAGS_DEFAULT, slots};
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

/// iter() of an object with __getitem__ only: until IndexError or StopIteration.
class SequenceIterator final : public LazyIterator {
 public:
  explicit SequenceIterator(PyObject* object) : object_(PyRef::borrow(object)) {}
  PyRef next(Evaluation& e) override {
    if (!object_) return {};
    PyRef index = PyRef::steal(PyLong_FromSsize_t(at_++));
    PyRef item = e.getItem(object_.get(), index.get());
    if (!item && (PyErr_ExceptionMatches(PyExc_IndexError) || PyErr_ExceptionMatches(PyExc_StopIteration))) {
      PyErr_Clear();
      object_ = PyRef();
    }
    return item;
  }
  const char* what() const override { return "sequence iterator"; }

 private:
  PyRef object_;
  Py_ssize_t at_ = 0;
};

/// Builtin containers whose iterators hold nothing but elements.
bool isPlainIterable(PyObject* o) {
  return PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o);
}

}  // namespace

PyRef makeLazy(Evaluation& e, std::unique_ptr<LazyIterator> iterator) {
  auto* object = reinterpret_cast<LazyObject*>(lazyType()->tp_alloc(lazyType(), 0));
  object->iterator = iterator.release();
  PyRef result = PyRef::steal(reinterpret_cast<PyObject*>(object));
  if (!e.origin(result.get())) e.adoptIterator(result.get());
  return result;
}

const void* lazyMethod(const char* name) {
  for (const PyMethodDef& method : kLazyMethods)
    if (method.ml_name && std::string_view(method.ml_name) == name) return &method;
  return nullptr;
}

LazyIterator* lazyOf(PyObject* object) {
  return Py_TYPE(object) == lazyType() ? reinterpret_cast<LazyObject*>(object)->iterator : nullptr;
}

int LazyIterator::send(Evaluation& e, PyObject*, PyRef* result) {
  *result = next(e);
  if (*result) return 1;
  if (PyErr_Occurred()) return -1;
  *result = PyRef::borrow(Py_None);
  return 0;
}

int LazyIterator::throwInto(Evaluation& e, PyObject* exception, PyRef*) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  return -1;
}

PyRef Evaluation::iter(PyObject* object) {
  if (lazyOf(object)) return PyRef::borrow(object);
  PyTypeObject* type = Py_TYPE(object);
  if (isTensor(object)) return checked(PyObject_GetIter(object));
  if (isChangeable(type)) {
    static PyObject* const kIter = internedName("__iter__");
    PyObject* method = typeLookup(type, kIter);
    if (method && (PyFunction_Check(method) || !Py_IS_TYPE(method, &PyWrapperDescr_Type))) {
      PyRef bound = getSpecial(object, kIter);
      return bound ? call(bound.get(), nullptr, 0, nullptr) : PyRef();
    }
    if (!method) {
      static PyObject* const kGetItem = internedName("__getitem__");
      if (typeLookup(type, kGetItem)) return makeLazy(*this, std::make_unique<SequenceIterator>(object));
    }
  }
  requireKnown(object);
  PyRef target = isPlainIterable(object) ? expose(object) : PyRef::borrow(object);
  PyRef iterator = PyRef::steal(PyObject_GetIter(target.get()));
  if (iterator && iterator.get() != object) adoptIterator(iterator.get());
  return iterator;
}

void Evaluation::adoptIterator(PyObject* iterator) {
  Origin& o = origins_.add(iterator, nullptr);
  o.birth = rootCount_;
}

void Evaluation::willConsume(PyObject* object) {
  if (!PyIter_Check(object) || lazyOf(object)) return;
  Origin* o = origins_.find(object);
  if (!o || o->source)
    breakHere("iterator from outside", std::string("a ") + Py_TYPE(object)->tp_name + " that was made before this segment is advanced");
}

PyRef Evaluation::next(PyObject* iterator) {
  if (LazyIterator* lazy = lazyOf(iterator)) {
    PyRef keep = PyRef::borrow(iterator);
    return lazy->next(*this);
  }
  PyTypeObject* type = Py_TYPE(iterator);
  if (isChangeable(type)) {
    static PyObject* const kNext = internedName("__next__");
    PyObject* method = typeLookup(type, kNext);
    if (method && PyFunction_Check(method)) {
      PyObject* args[] = {iterator};
      pin(method);
      PyRef item = call(method, args, 1, nullptr);
      if (!item && PyErr_ExceptionMatches(PyExc_StopIteration)) PyErr_Clear();
      return item;
    }
  }
  if (!PyIter_Check(iterator)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", type->tp_name);
    return {};
  }
  willConsume(iterator);
  PyRef item = PyRef::steal(PyIter_Next(iterator));
  throwIfBreak();
  return item ? translate(item.get(), nullptr) : PyRef();
}

int Evaluation::send(PyObject* receiver, PyObject* value, PyRef* result) {
  if (LazyIterator* lazy = lazyOf(receiver)) {
    PyRef keep = PyRef::borrow(receiver);
    return lazy->send(*this, value, result);
  }
  if (value != Py_None) breakHere("generator from outside", "a value is sent into a generator that was made before this segment");
  *result = next(receiver);
  if (*result) return 1;
  if (PyErr_Occurred()) return -1;
  *result = PyRef::borrow(Py_None);
  return 0;
}

}  // namespace fusebox::capture
