// Calls of functools.lru_cache wrappers.
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

/// torch.compiler.is_compiling() is False while this lives: what runs is the program itself.
class NotCompiling {
 public:
  NotCompiling() { set(Py_False); }
  ~NotCompiling() { set(Py_True); }
  NotCompiling(const NotCompiling&) = delete;

 private:
  static void set(PyObject* value) {
    static Once<PyObject*> module;
    PyDict_SetItem(PyModule_GetDict(module.get([] { return PyImport_ImportModule("torch.compiler"); })), internedName("_is_compiling_flag"), value);
  }
};

/// What a wrapper refers to itself, as the garbage collector sees it.
std::vector<PyObject*> referents(PyObject* object) {
  std::vector<PyObject*> found;
  if (Py_TYPE(object)->tp_traverse)
    Py_TYPE(object)->tp_traverse(object, [](PyObject* part, void* data) {
      static_cast<std::vector<PyObject*>*>(data)->push_back(part);
      return 0;
    }, &found);
  return found;
}

/// CPython's link of a bounded cache.
struct LinkObject {
  PyObject_HEAD
  LinkObject *previous, *next;
  Py_hash_t hash;
  PyObject *key, *result;
};

/// Whether an entry of the cache holds `result`: itself, or in the link of a bounded cache.
bool holds(PyObject* entry, PyObject* result) {
  if (entry == result) return true;
  return std::string_view(Py_TYPE(entry)->tp_name) == "functools._lru_list_elem" && reinterpret_cast<LinkObject*>(entry)->result == result;
}

/// `expected` is what placeOf() gave: asking again would give the same object.
bool stillCached(PyObject*, PyObject* expected) {
  PyObject* entry = PyDict_GetItemWithError(PyTuple_GET_ITEM(expected, 0), PyTuple_GET_ITEM(expected, 1));
  PyErr_Clear();
  return entry && holds(entry, PyTuple_GET_ITEM(expected, 2));
}

/// Identity is equality for it, and its hash is its address.
bool comparesByIdentity(PyObject* o) {
  return Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash && Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

bool startsWith(PyObject* key, const CallArguments& a) {
  if (a.positional == 1 && key == a.args[0]) return true;
  if (!PyTuple_Check(key)) return a.positional == 1 && PyObject_RichCompareBool(key, a.args[0], Py_EQ) == 1;
  if (PyTuple_GET_SIZE(key) < static_cast<Py_ssize_t>(a.positional)) return false;
  for (size_t i = 0; i < a.positional; ++i)
    if (PyObject_RichCompareBool(PyTuple_GET_ITEM(key, static_cast<Py_ssize_t>(i)), a.args[i], Py_EQ) != 1) return PyErr_Clear(), false;
  return true;
}

/// The cache of a wrapper and the key under which it remembers `result` for these arguments; null: it does not.
PyRef placeOf(PyObject* wrapper, const CallArguments& a, PyObject* result) {
  PyObject *key, *entry;
  for (PyObject* cache : referents(wrapper))
    for (Py_ssize_t at = 0; PyDict_CheckExact(cache) && PyDict_Next(cache, &at, &key, &entry);)
      if (holds(entry, result) && startsWith(key, a)) return PyRef::steal(PyTuple_Pack(3, cache, key, result));
  return {};
}

bool isEqual(PyObject* a, PyObject* b) {
  const int answer = PyObject_RichCompareBool(a, b, Py_EQ);
  if (answer < 0) PyErr_Clear();
  return answer == 1;
}

/// Whether `key` is what the wrapper makes of the arguments: themselves, a mark, pairs of keywords, and all their types where it is typed;
/// one int or str alone is its own key, which 1 and True do not share.
bool isKeyOf(PyObject* key, const CallArguments& a) {
  if (!startsWith(key, a)) return false;
  const auto positional = static_cast<Py_ssize_t>(a.positional), keywords = static_cast<Py_ssize_t>(a.total()) - positional;
  const bool isOwnKey = a.total() == 1 && keywords == 0 && (PyLong_CheckExact(a.args[0]) || PyUnicode_CheckExact(a.args[0]));
  if (!PyTuple_Check(key)) return isOwnKey;
  const Py_ssize_t size = positional + (keywords ? 2 * keywords + 1 : 0), given = PyTuple_GET_SIZE(key);
  const bool isTyped = given == size + positional + keywords;
  if (!isTyped && (given != size || isOwnKey)) return false;
  for (Py_ssize_t i = 0; isTyped && i < positional + keywords; ++i)
    if (PyTuple_GET_ITEM(key, size + i) != reinterpret_cast<PyObject*>(Py_TYPE(a.args[i]))) return false;
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* const* pair = &PyTuple_GET_ITEM(key, positional + 1 + 2 * i);
    if (!isEqual(pair[0], PyTuple_GET_ITEM(a.kwNames, i)) || !isEqual(pair[1], a.args[positional + i])) return false;
  }
  return true;
}

bool mayHold(PyObject* wrapper, const CallArguments& a) {
  PyObject *key, *entry;
  for (PyObject* cache : referents(wrapper))
    for (Py_ssize_t at = 0; PyDict_CheckExact(cache) && PyDict_Next(cache, &at, &key, &entry);)
      if (isKeyOf(key, a)) return true;
  return false;
}

/// Whether the call may make the cache forget a result, or will not be remembered: then it happens once, where the program makes
/// it. Which result a full cache forgets next depends on every call, so these are real ones too.
bool mayForget(PyObject* wrapper, const CallArguments& a) {
  PyRef info = PyRef::steal(PyObject_CallMethod(wrapper, "cache_info", nullptr));  // hits, misses, maxsize, currsize
  if (!info || !PyTuple_Check(info.get()) || PyTuple_GET_SIZE(info.get()) != 4) return PyErr_Clear(), false;
  PyObject* most = PyTuple_GET_ITEM(info.get(), 2);
  if (most == Py_None) return false;
  const Py_ssize_t size = PyLong_AsSsize_t(most);
  if (PyLong_AsSsize_t(PyTuple_GET_ITEM(info.get(), 3)) < size) return false;
  return size != 1 || !mayHold(wrapper, a);
}

}  // namespace

/// The cache is asked for real, as the program would ask it here, with arguments that stay the same; a guard asks whether it still
/// holds the answer. Whatever else may change what the function computes is the cache's to ignore, as in eager.
PyRef Evaluation::callCached(PyObject* wrapper, const CallArguments& a) {
  if (givesNumbers(a)) return withPlainNumbers(wrapper, a, "a key of functools.lru_cache");
  pin(wrapper, Why::Guarded);
  bool plain = true;
  for (size_t i = 0; i < a.total(); ++i) {
    PyObject* o = a.args[i];
    if (isConstantValue(o) || isIdentityValue(o)) continue;
    const Source* source = isTensor(o) ? nullptr : sourceOf(o);
    if (!source || !comparesByIdentity(o))
      breakHere("cached function", std::string("functools.lru_cache is asked with a ") + Py_TYPE(o)->tp_name);
    guard(GuardKind::IdMatch, source, o);
    plain = false;
  }
  if (journal_.calls() > 0 || (!plain && (!journal_.entries().empty() || trace_->wroteInputs())))
    breakHere("cached function", "functools.lru_cache is asked after effects that its function might see");
  // What it writes would be taken for what the program wrote, and undone.
  if ((!journal_.entries().empty() || trace_->wroteInputs()) && !mayHold(wrapper, a))
    breakHere("cached function", "functools.lru_cache calls its function after effects that it might see");
  if (mayForget(wrapper, a)) breakHere("cached function", "functools.lru_cache holds as many results as it may");
  PyRef result;
  {
    NotCompiling flag;
    trace::NoTrace off;
    result = PyRef::steal(PyObject_Vectorcall(wrapper, a.args, a.positional, a.kwNames));
  }
  if (!result) return {};
  PyRef place = placeOf(wrapper, a, result.get());
  if (!place) breakHere("cached function", "functools.lru_cache does not keep the result of a call");
  Guard remembered;
  remembered.kind = GuardKind::Custom;
  remembered.source = sources().pinned(wrapper);
  remembered.expected = std::move(place);
  remembered.predicate = stillCached;
  remembered.text = "remembered result";
  remembered.place = Evaluation::place();
  guards_->add(std::move(remembered));
  return pin(result.get(), Why::Cached);
}

}  // namespace fusebox::capture
