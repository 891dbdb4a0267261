#include "engine/capture/evaluation/source_table.h"

#include "engine/capture/cpython/errors.h"

namespace fusebox::capture {
namespace {

bool comparesByValue(PyObject* key) {
  return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyBool_Check(key) || PyBytes_CheckExact(key) || key == Py_None;
}

size_t keyHash(PyObject* key) {
  if (!key) return 0;
  return comparesByValue(key) ? static_cast<size_t>(PyObject_Hash(key)) : reinterpret_cast<size_t>(key) >> 4;
}

bool keysEqual(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b) || !comparesByValue(a)) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ull; }

std::string utf8(PyObject* o) {
  const char* s = o ? utf8Of(o) : nullptr;
  return s ? s : "?";
}

bool hasPlainText(PyObject* key) { return comparesByValue(key) || PyFloat_CheckExact(key); }

/// repr() of keys that cannot run Python code; the type's name of all others, with their number among those that were met (what is
/// remembered of a place from call to call goes by its text: the states of two parameters are two places).
std::string keyText(PyObject* key, int number = 0) {
  if (!key) return "<gone>";
  if (hasPlainText(key)) {
    PyRef text = PyRef::steal(PyObject_Repr(key));
    if (text) return utf8(text.get());
    clearError();
  }
  return std::string("<") + Py_TYPE(key)->tp_name + (number ? " " + std::to_string(number + 1) : "") + ">";
}

std::string pinnedText(PyObject* object) {
  if (!object) return "<gone>";
  if (PyDict_CheckExact(object)) {
    PyObject* name = PyDict_GetItemString(object, "__name__");
    return name && PyUnicode_Check(name) ? "G(" + utf8(name) + ")" : std::string("<dict>");
  }
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (!name) clearError();
    return name ? name : "<module>";
  }
  if (PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object)->tp_name;
  if (PyFunction_Check(object)) return utf8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
  if (PyCFunction_Check(object)) return reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name;
  return keyText(object);
}

}  // namespace

std::string Source::str() const {
  // An entry of an instance dict reads better as the attribute that it is. (Asked before the dict's own text is made, which costs as much again.)
  if (kind == Kind::DictItem && base->kind == Kind::InstanceDict && PyUnicode_CheckExact(key.get())) return base->base->str() + "." + utf8(key.get());
  const std::string of = base ? base->str() : "";
  switch (kind) {
    case Kind::Local: return key ? "L['" + utf8(key.get()) + "']" : "L[" + std::to_string(index) + "]";
    case Kind::Stack: return "S[" + std::to_string(index) + "]";
    case Kind::Pinned: return index == 0 ? "G" : pinnedText(key.get());
    case Kind::CellContents: return of + ".cell_contents";
    case Kind::InstanceDict: return of + ".__dict__";
    case Kind::DictItem: return of + "[" + keyText(key.get(), others) + "]";
    case Kind::DictKey: return "list(" + of + ")[" + std::to_string(index) + "]";
    case Kind::SequenceItem: return of + "[" + std::to_string(index) + "]";
    case Kind::SlotAttr:
    case Kind::ClassAttr:
    case Kind::Attr: return of + "." + utf8(key.get());
    case Kind::TypeOf: return "type(" + of + ")";
    case Kind::FunctionCode: return of + ".__code__";
    case Kind::FunctionDefaults: return of + ".__defaults__";
    case Kind::FunctionKwDefaults: return of + ".__kwdefaults__";
    case Kind::FunctionClosure: return of + ".__closure__";
    case Kind::MethodSelf: return of + ".__self__";
    case Kind::MethodFunction: return of + ".__func__";
    case Kind::ViewDict: return of + ".mapping";
    case Kind::TensorGrad: return of + ".grad";
    case Kind::ArrayTensor: return "torch.from_numpy(" + of + ")";
    case Kind::NestedValues: return of + ".values()";
    case Kind::LocalTensor: return of + ".to_local()";
    case Kind::Upcoming: return "upcoming(" + of + ")";
    case Kind::IteratorParts: return "parts(" + of + ")";
    case Kind::GlobalWeak: return "weakref()";
    case Kind::FunctionMode: return "torch_function_modes[" + std::to_string(index) + "]";
  }
  return "?";
}

std::string Source::label() const {
  const auto isModuleTable = [](const Source* s) {
    if (s->kind != Kind::DictItem || s->base->kind != Kind::InstanceDict || !PyUnicode_CheckExact(s->key.get())) return false;
    const std::string name = utf8(s->key.get());
    return name == "_parameters" || name == "_buffers" || name == "_modules";
  };
  switch (kind) {
    case Kind::Local: return key ? utf8(key.get()) : str();
    case Kind::CellContents: return base->label();
    case Kind::DictItem:
      if (!PyUnicode_CheckExact(key.get())) return base->label() + "[" + keyText(key.get(), others) + "]";
      if (isModuleTable(base)) return base->base->base->label() + "." + utf8(key.get());
      if (base->kind == Kind::InstanceDict) return base->base->label() + "." + utf8(key.get());
      if (base->kind == Kind::Pinned) return utf8(key.get());  // a global
      return base->label() + "[" + keyText(key.get()) + "]";
    case Kind::SequenceItem: return base->label() + "[" + std::to_string(index) + "]";
    case Kind::SlotAttr:
    case Kind::ClassAttr:
    case Kind::Attr: return base->label() + "." + utf8(key.get());
    case Kind::TensorGrad: return base->label() + ".grad";
    case Kind::ArrayTensor: return base->label();
    case Kind::NestedValues: return base->label() + ".values()";
    case Kind::LocalTensor: return base->label();
    default: return str();
  }
}

SourceTable::SourceTable(PyCodeObject* code, PyObject* globals)
    : code_(PyRef::borrow(reinterpret_cast<PyObject*>(code))), globals_(PyRef::borrow(globals)) {}

void SourceTable::release() {
  code_ = globals_ = PyRef();
  byHash_.clear();
  keysByIdentity_.clear();
}

const Source* SourceTable::local(int index) {
  PyObject* names = code_ ? reinterpret_cast<PyCodeObject*>(code_.get())->co_localsplusnames : nullptr;
  PyObject* name = names && index < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, index) : nullptr;
  Source s;
  s.kind = Source::Kind::Local;
  s.index = index;
  return intern(std::move(s), name);
}

const Source* SourceTable::stack(int index) {
  Source s;
  s.kind = Source::Kind::Stack;
  s.index = index;
  return intern(std::move(s), nullptr);
}

const Source* SourceTable::pinned(PyObject* object, Why why) {
  Source s;
  s.kind = Source::Kind::Pinned;
  s.index = object == globals_.get() ? 0 : -1;
  s.why = why;
  return intern(std::move(s), object);
}

const Source* SourceTable::globalWeak(PyObject* weakref) {
  Source s;
  s.kind = Source::Kind::GlobalWeak;
  return intern(std::move(s), weakref);
}

const Source* SourceTable::derived(Source::Kind kind, const Source* base, PyObject* key, int64_t index) {
  Source s;
  s.kind = kind;
  s.base = base;
  s.index = index;
  return intern(std::move(s), key);
}

const Source* SourceTable::intern(Source source, PyObject* key) {
  // Pinned and weak sources are places of their own: two equal objects are two.
  const bool byIdentity = source.kind == Source::Kind::Pinned || source.kind == Source::Kind::GlobalWeak;
  size_t hash = mix(mix(static_cast<size_t>(source.kind), reinterpret_cast<size_t>(source.base)), static_cast<size_t>(source.index));
  hash = mix(hash, byIdentity ? reinterpret_cast<size_t>(key) >> 4 : keyHash(key));
  auto [begin, end] = byHash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Source* known = it->second;
    if (known->kind == source.kind && known->base == source.base && known->index == source.index &&
        (byIdentity ? known->key.get() == key : keysEqual(known->key.get(), key)))
      return known;
  }
  source.key = PyRef::borrow(key);
  source.id = static_cast<uint32_t>(sources_.size());
  if (source.kind == Source::Kind::DictItem && !hasPlainText(key)) source.others = keysByIdentity_[source.base]++;
  sources_.push_back(std::move(source));
  byHash_.emplace(hash, &sources_.back());
  return &sources_.back();
}

}  // namespace fusebox::capture
