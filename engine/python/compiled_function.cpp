#include "engine/python/compiled_function.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <structmember.h>

#include <optional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::python {
namespace {

using capture::PyRef;

struct CompiledFunction {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* original;
  PyCodeObject* root;
  const capture::RegionOptions* options;
  PyObject* dict;
  PyObject* weakReferences;
  WrapperKind kind;
};

CompiledFunction* cast(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o); }

/// torch.jit.trace writes down what is called: the operators of the program, not a compiled graph.
bool isBeingTraced() { return c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::Tracer); }

const capture::RegionOptions* forcedOptions = nullptr;

/// What is compiled now: as the function's own options say, by the backend that set_stance forces.
const capture::RegionOptions* optionsNow(const capture::RegionOptions* own) {
  if (!forcedOptions) return own;
  capture::RegionOptions merged = *forcedOptions;
  merged.fullgraph = own->fullgraph;
  merged.dynamic = own->dynamic;
  merged.breakEvery = own->breakEvery;
  return capture::internOptions(merged);
}

/// That of a process in which nobody has said anything: there is nothing to follow, and no reason to import what would.
bool isUsual(PyObject* stance) {
  const PyRef name = PyRef::steal(PyObject_GetAttrString(stance, "stance")), backend = PyRef::steal(PyObject_GetAttrString(stance, "backend"));
  capture::clearError();
  return name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), "default") == 0 && backend.get() == Py_None;
}

/// What torch.compiler.set_stance of PyTorch's own was given since the last call counts here, too: fusebox.install() alone puts ours in its place.
bool followStance() {
  static PyObject *const module = capture::internedName("torch._dynamo.eval_frame"), *const name = capture::internedName("_stance");
  static auto* followed = new PyRef;
  PyObject* owner = PyDict_GetItem(PyImport_GetModuleDict(), module);
  PyObject* stance = owner && PyModule_Check(owner) ? PyDict_GetItem(PyModule_GetDict(owner), name) : nullptr;
  if (!stance || stance == followed->get()) return true;
  if (!*followed && isUsual(stance)) {
    *followed = PyRef::borrow(stance);
    return true;
  }
  const PyRef now = PyRef::borrow(stance), compiler = PyRef::steal(PyImport_ImportModule("fusebox.compiler"));
  const PyRef done = compiler ? PyRef::steal(PyObject_CallMethod(compiler.get(), "follow_stance", "O", stance)) : PyRef();
  if (done) *followed = now;
  return static_cast<bool>(done);
}

PyObject* callCompiled(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwNames) {
  CompiledFunction* f = cast(self);
  // Called by CPython from inside capture (a constant being computed): nothing to open.
  if (capture::captureSuspended() || isBeingTraced()) return PyObject_Vectorcall(f->original, args, nargsf, kwNames);
  if (!followStance()) return nullptr;
  capture::Region region(optionsNow(f->options), f->root);
  return PyObject_Vectorcall(f->original, args, nargsf, kwNames);
}

PyObject* callDisabled(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwNames) {
  capture::RegionPause pause;
  return PyObject_Vectorcall(cast(self)->original, args, nargsf, kwNames);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(cast(self)->original);
  Py_VISIT(cast(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->original);
  Py_CLEAR(cast(self)->dict);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakReferences) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_CLEAR(cast(self)->root);
  Py_TYPE(self)->tp_free(self);
}

/// Own attributes first, then those of the wrapped callable (__code__, __defaults__, a partial's func, ...), but for what makes a method of that:
/// who takes a method apart (accelerate) would lose the wrapper.
PyObject* getAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || !cast(self)->original) return found;
  for (const char* part : {"__func__", "__self__"})
    if (PyUnicode_CompareWithASCIIString(name, part) == 0) return nullptr;
  capture::clearError();
  return PyObject_GetAttr(cast(self)->original, name);
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<%s %R>", cast(self)->kind == WrapperKind::Compile ? "fusebox.compile of" : "uncompiled", cast(self)->original);
}

PyMemberDef kMembers[] = {
    {"_torchdynamo_orig_callable", T_OBJECT, offsetof(CompiledFunction, original), READONLY, "what was given to torch.compile"},
    {"__wrapped__", T_OBJECT, offsetof(CompiledFunction, original), READONLY, "what was given to torch.compile"},
    {nullptr}};

/// By which PyTorch's own capture (torch._dynamo.export) knows a wrapper whose original it is to follow.
PyObject* wrapperId(PyObject* self, void*) {
  if (cast(self)->kind == WrapperKind::Compile) return PyLong_FromVoidPtr(self);
  PyErr_SetString(PyExc_AttributeError, "_torchdynamo_wrapper_id");
  return nullptr;
}

PyGetSetDef kProperties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                             {"_torchdynamo_wrapper_id", wrapperId, nullptr, nullptr, nullptr},
                             {nullptr}};

PyTypeObject compiledFunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// The Python code that calling `callable` runs first, as far as that can be told; null otherwise. Borrowed.
PyCodeObject* codeBehind(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable)) return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
  if (Py_TYPE(callable) == &compiledFunctionType) return cast(callable)->root;
  return nullptr;
}

void copyNames(PyObject* from, PyObject* to) {
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__"}) {
    PyRef value = PyRef::steal(PyObject_GetAttrString(from, name));
    if (value) PyDict_SetItemString(to, name, value.get());
    capture::clearError();
  }
  PyRef own = PyRef::steal(PyObject_GetAttrString(from, "__dict__"));
  if (own && PyDict_Check(own.get()) && !PyType_Check(from)) PyDict_Merge(to, own.get(), 0);
  capture::clearError();
}

}  // namespace

namespace {

PyObject* originalOf(PyObject* callable) {
  const bool compiled = Py_TYPE(callable) == &compiledFunctionType && cast(callable)->kind == WrapperKind::Compile;
  return compiled ? cast(callable)->original : nullptr;
}

}  // namespace

int addCompiledFunctionType(PyObject* module) {
  capture::originalOfCompiled = originalOf;
  PyTypeObject& t = compiledFunctionType;
  t.tp_name = "fusebox._engine.CompiledFunction";
  t.tp_basicsize = sizeof(CompiledFunction);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_vectorcall_offset = offsetof(CompiledFunction, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_dealloc = dealloc;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_getattro = getAttribute;
  t.tp_setattro = PyObject_GenericSetAttr;
  t.tp_descr_get = bind;
  t.tp_repr = represent;
  t.tp_members = kMembers;
  t.tp_getset = kProperties;
  t.tp_dictoffset = offsetof(CompiledFunction, dict);
  t.tp_weaklistoffset = offsetof(CompiledFunction, weakReferences);
  if (PyType_Ready(&t) < 0) return -1;
  return PyModule_AddObjectRef(module, "CompiledFunction", reinterpret_cast<PyObject*>(&t));
}

OpenRegion::OpenRegion(const capture::RegionOptions* options) : thread_(std::this_thread::get_id()) {
  if (options) region_ = std::make_unique<capture::Region>(optionsNow(options), nullptr);
  else pause_ = std::make_unique<capture::RegionPause>();
}

OpenRegion::~OpenRegion() {
  if (!close()) region_.release(), pause_.release();
}

bool OpenRegion::close() {
  if (std::this_thread::get_id() != thread_) return false;
  region_.reset();
  pause_.reset();
  return true;
}

void forceBackend(const capture::RegionOptions* options) { forcedOptions = options; }

PyObject* makeCompiledFunction(PyObject* original, WrapperKind kind, const capture::RegionOptions* options, PyObject* root) {
  if (!PyCallable_Check(original)) return PyErr_Format(PyExc_TypeError, "torch.compile expects a callable, got %R", original);
  auto* f = PyObject_GC_New(CompiledFunction, &compiledFunctionType);
  if (!f) return nullptr;
  f->vectorcall = kind == WrapperKind::Compile ? callCompiled : callDisabled;
  f->original = Py_NewRef(original);
  f->root = root && root != Py_None ? codeBehind(root) : codeBehind(original);
  Py_XINCREF(f->root);
  f->options = options;
  f->dict = PyDict_New();
  f->weakReferences = nullptr;
  f->kind = kind;
  PyObject_GC_Track(f);
  if (!f->dict) return Py_DECREF(f), nullptr;
  copyNames(original, f->dict);
  if (kind == WrapperKind::Disable && PyDict_SetItemString(f->dict, "_torchdynamo_disable", Py_True) < 0) return Py_DECREF(f), nullptr;
  return reinterpret_cast<PyObject*>(f);
}

}  // namespace fusebox::python
