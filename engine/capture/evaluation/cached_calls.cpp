// Calls of functools.lru_cache wrappers.
#include "engine/capture/evaluation/cached_calls.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/entries/torch_contents.h"
#include "engine/capture/evaluation/compiling_flag.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/torch_warnings.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree.h"

namespace fusebox::capture {

namespace {

/// CPython's link of a bounded cache.
struct LinkObject {
  PyObject_HEAD
  LinkObject *previous, *next;
  Py_hash_t hash;
  PyObject *key, *result;
};

/// CPython's functools._lru_cache_wrapper.
struct CacheObject {
  LinkObject root;
  void* call;
  int isTyped;
  PyObject* results;  ///< a dict: by key, the result or its link
  Py_ssize_t hits;
  PyObject* function;
  Py_ssize_t most;  ///< negative: no bound
  Py_ssize_t misses;
  PyObject* keywordsMark;
  PyTypeObject* linkType;
  PyObject *infoType, *attributes, *weakReferences;
};

/// The wrapper as it lies in memory; null where it says of itself something else than what lies there.
CacheObject* cacheOf(PyObject* wrapper) {
  auto* cache = reinterpret_cast<CacheObject*>(wrapper);
  if (Py_TYPE(wrapper)->tp_basicsize != sizeof(CacheObject) || !cache->results || !PyDict_CheckExact(cache->results)) return nullptr;
  PyRef info = PyRef::steal(PyObject_CallMethod(wrapper, "cache_info", nullptr));  // hits, misses, most, size
  const auto says = [&](Py_ssize_t i, Py_ssize_t number) { return PyLong_AsSsize_t(PyTuple_GET_ITEM(info.get(), i)) == number; };
  const bool fits = info && PyTuple_Check(info.get()) && PyTuple_GET_SIZE(info.get()) == 4 && says(0, cache->hits) && says(1, cache->misses) &&
                    (PyTuple_GET_ITEM(info.get(), 2) == Py_None ? cache->most < 0 : says(2, cache->most)) && says(3, PyDict_GET_SIZE(cache->results));
  clearError();
  return fits ? cache : nullptr;
}

/// The key that the wrapper makes of the arguments: themselves, a mark, pairs of keywords, and all their types where it is typed; one int
/// or str alone is its own key.
PyRef keyOf(const CacheObject& cache, const CallArguments& a) {
  if (!cache.isTyped && a.total() == 1 && a.positional == 1 && (PyUnicode_CheckExact(a.args[0]) || PyLong_CheckExact(a.args[0]))) return PyRef::borrow(a.args[0]);
  std::vector<PyObject*> parts(a.args.begin(), a.args.begin() + a.positional);
  if (a.keywords() > 0) parts.push_back(cache.keywordsMark);
  for (size_t i = 0; i < a.keywords(); ++i) parts.insert(parts.end(), {a.keywordName(i), a.args[a.positional + i]});
  for (size_t i = 0; cache.isTyped && i < a.total(); ++i) parts.push_back(reinterpret_cast<PyObject*>(Py_TYPE(a.args[i])));
  PyRef key = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (size_t i = 0; i < parts.size(); ++i) PyTuple_SET_ITEM(key.get(), static_cast<Py_ssize_t>(i), Py_NewRef(parts[i]));
  return key;
}

PyObject* resultOf(PyObject* entry) {
  const bool isLink = entry && std::string_view(Py_TYPE(entry)->tp_name) == "functools._lru_list_elem";
  return isLink ? reinterpret_cast<LinkObject*>(entry)->result : entry;
}

/// Of the tuple that stillCached() is given.
enum Expected : Py_ssize_t { kResults, kKey, kResult, kPositional, kNamed, kExpected };

PyObject* partOf(PyObject* expected, Expected part) { return PyTuple_GET_ITEM(expected, part); }

thread_local int mayLack = 0;

/// The arguments of a call as they lie in two tuples.
struct KeptArguments {
  KeptArguments(PyObject* positional, PyObject* named) : count(static_cast<size_t>(PyTuple_GET_SIZE(positional))) {
    for (size_t i = 0; i < count; ++i) all.push_back(PyTuple_GET_ITEM(positional, static_cast<Py_ssize_t>(i)));
    const Py_ssize_t names = PyTuple_GET_SIZE(named);
    if (names > 0) kwNames = PyRef::steal(PyTuple_New(names));
    for (Py_ssize_t i = 0; i < names; ++i) {
      PyTuple_SET_ITEM(kwNames.get(), i, Py_NewRef(PyTuple_GET_ITEM(PyTuple_GET_ITEM(named, i), 0)));
      all.push_back(PyTuple_GET_ITEM(PyTuple_GET_ITEM(named, i), 1));
    }
  }
  CallArguments arguments() const { return {all.data(), count, kwNames.get()}; }

  size_t count;
  std::vector<PyObject*> all;
  PyRef kwNames;
};

/// Identity is equality for it, and its hash is its address.
bool comparesByIdentity(PyObject* o) {
  return Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash && Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

/// What torch's own caches count is nobody's business, and what they remember does not depend on the program.
bool isOfTorch(const CacheObject& cache) {
  PyRef module = PyRef::steal(PyObject_GetAttrString(cache.function, "__module__"));
  clearError();
  const std::string_view name = module && PyUnicode_Check(module.get()) ? utf8Of(module.get()) : "";
  return name == "torch" || name.starts_with("torch.");
}

/// A function or class of the module typing: what it makes of types it makes of nothing else, so that no effect of the program's matters to it.
bool isOfTyping(PyObject* made) {
  PyRef module = PyRef::steal(PyObject_GetAttrString(made, "__module__"));
  clearError();
  return module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "typing") == 0;
}

/// What a cached function raised while capturing. It is not called again where the program calls it: the first real call with these arguments
/// raises this.
struct RaisedAhead {
  PyRef wrapper, key, exception;

  bool isOf(PyObject* callable, PyObject* asked) const {
    const int same = callable == wrapper.get() && asked ? PyObject_RichCompareBool(key.get(), asked, Py_EQ) : 0;
    if (same < 0) clearError();
    return same == 1;
  }
};

RaisedAhead& raisedAhead() {
  static thread_local auto* raised = new RaisedAhead;  // not destroyed: the thread may end after the interpreter
  return *raised;
}

/// The real call for a result that the cache lacks; the program's own finds it then, which is no hit. Null: the function raised, which the program's
/// call will raise; or, without `raised`, something that is no business of the program's is raised now.
PyRef callAhead(PyObject* wrapper, CacheObject* cache, const PyRef& key, const CallArguments& a, bool& raised) {
  PyRef result = PyRef::steal(PyObject_Vectorcall(wrapper, a.args, a.positional, a.kwNames));
  if (!result && (raised = PyErr_ExceptionMatches(PyExc_Exception))) raisedAhead() = {PyRef::borrow(wrapper), key, takeException()};
  if (result) --cache->hits;
  return result;
}

/// The arguments of a call, as a tuple and a dict.
std::pair<PyRef, PyRef> kept(const CallArguments& a) {
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional))), keywords = PyRef::steal(PyDict_New());
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), Py_NewRef(a.args[i]));
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(keywords.get(), a.keywordName(i), a.args[a.positional + i]);
  return {std::move(args), std::move(keywords)};
}

/// Codes of functions behind caches that make tensors, or write.
std::unordered_map<PyObject*, PyRef>& makeMore() {
  static auto* codes = new std::unordered_map<PyObject*, PyRef>;
  return *codes;
}

/// What a break does where a function makes what cannot be taken: evaluation starts over and asks its cache for real.
CaptureBreak askForReal(const Evaluation& e, const PyRef& code, const char* reason) {
  return {{"cached function", reason, "", e.place(), e.stackPlaces()}, -1, [code] {
            makeMore().emplace(code.get(), code);
            return true;
          }};
}

/// Whether two objects, both just made of the same arguments, hold the same: numbers, texts and types, in containers and plain instances.
bool holdAlike(PyObject* a, PyObject* b, int depth = 0) {
  constexpr int kDeepest = 32;
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || depth == kDeepest) return false;
  if (isConstantValue(a)) return sameConstant(a, b);
  if (PyDict_CheckExact(a)) {
    PyObject *key, *value;
    bool alike = PyDict_GET_SIZE(a) == PyDict_GET_SIZE(b);
    for (Py_ssize_t at = 0; alike && PyDict_Next(a, &at, &key, &value);) {
      PyObject* other = isConstantValue(key) ? PyDict_GetItemWithError(b, key) : nullptr;
      alike = other && holdAlike(value, other, depth + 1);
    }
    clearError();
    return alike;
  }
  if (PyList_CheckExact(a) || PyTuple_CheckExact(a)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(a);
    bool alike = n == PySequence_Fast_GET_SIZE(b);
    for (Py_ssize_t i = 0; alike && i < n; ++i) alike = holdAlike(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i), depth + 1);
    return alike;
  }
  PyObject** dict = _PyObject_GetDictPtr(a);
  if (!isPythonClass(Py_TYPE(a)) || !dict) return false;
  const PyRef left = PyRef::steal(PyObject_GenericGetDict(a, nullptr)), right = PyRef::steal(PyObject_GenericGetDict(b, nullptr));
  return left && right && holdAlike(left.get(), right.get(), depth + 1);
}

/// Whether it may have to forget something once it has remembered `more` results.
bool isFull(const CacheObject& cache, size_t more = 0) { return cache.most >= 0 && PyDict_GET_SIZE(cache.results) + static_cast<Py_ssize_t>(more) >= cache.most; }

}  // namespace

bool stillCached(PyObject*, PyObject* expected) {
  PyObject* entry = PyDict_GetItemWithError(partOf(expected, kResults), partOf(expected, kKey));
  const bool failed = PyErr_Occurred();
  clearError();
  return entry ? sameConstant(resultOf(entry), partOf(expected, kResult)) : mayLack > 0 && !failed;
}

PyRef writtenOfCached(PyObject*, PyObject* expected) {
  return PyRef::steal(PyTuple_Pack(3, partOf(expected, kResult), partOf(expected, kPositional), partOf(expected, kNamed)));
}

bool isCached(PyObject* wrapper, PyObject* written) {
  if (std::string_view(Py_TYPE(wrapper)->tp_name) != "functools._lru_cache_wrapper" || !PyTuple_CheckExact(written) || PyTuple_GET_SIZE(written) != 3) return false;
  PyObject *positional = PyTuple_GET_ITEM(written, 1), *named = PyTuple_GET_ITEM(written, 2);
  if (!PyTuple_CheckExact(positional) || !PyTuple_CheckExact(named)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(named); ++i) {
    PyObject* pair = PyTuple_GET_ITEM(named, i);
    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0))) return false;
  }
  return true;
}

PyRef expectedOfCached(PyObject* wrapper, PyObject* written) {
  const CacheObject* cache = cacheOf(wrapper);
  if (!cache) return {};
  PyObject *positional = PyTuple_GET_ITEM(written, 1), *named = PyTuple_GET_ITEM(written, 2);
  const PyRef key = keyOf(*cache, KeptArguments(positional, named).arguments());
  return PyRef::steal(PyTuple_Pack(kExpected, cache->results, key.get(), PyTuple_GET_ITEM(written, 0), positional, named));
}

CachesMayLack::CachesMayLack() { ++mayLack; }
CachesMayLack::~CachesMayLack() { --mayLack; }

std::string askLackingCaches(const GuardSet& guards) {
  for (const Guard& guard : guards.guards()) {
    if (guard.predicate != stillCached) continue;
    const PyRef expected = PyRef::borrow(guard.expected.get()), wrapper = PyRef::borrow(guard.source->key.get());
    CacheObject* cache = expected && wrapper ? cacheOf(wrapper.get()) : nullptr;
    if (!cache || cache->results != partOf(expected.get(), kResults)) return "functools.lru_cache is laid out in a way that is not known";
    const PyRef key = PyRef::borrow(partOf(expected.get(), kKey));
    const int isThere = PyDict_Contains(cache->results, key.get());
    if (isThere < 0) clearError();
    if (isThere != 0) continue;  // the guard says whether it is what it was
    if (isFull(*cache)) return "functools.lru_cache holds as many results as it may";
    const KeptArguments arguments(partOf(expected.get(), kPositional), partOf(expected.get(), kNamed));
    bool raised = false;
    if (!callAhead(wrapper.get(), cache, key, arguments.arguments(), raised)) return "the function of functools.lru_cache raises";
  }
  return {};
}

bool raiseAhead(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames) {
  RaisedAhead& ahead = raisedAhead();
  if (!ahead.wrapper || callable != ahead.wrapper.get()) return false;
  const CacheObject* cache = cacheOf(callable);
  if (!cache || !ahead.isOf(callable, keyOf(*cache, {args, positional, kwNames}).get())) return false;
  const RaisedAhead taken = std::exchange(ahead, {});
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(taken.exception.get()));
  PyErr_Restore(Py_NewRef(type), Py_NewRef(taken.exception.get()), PyException_GetTraceback(taken.exception.get()));
  return true;
}

// --- stand-ins ------------------------------------------------------------------------------------------------------------

bool StandIns::add(PyObject* result, const PyRef& code) {
  std::vector<StandIn> found;
  const std::function<bool(PyObject*, int)> walk = [&](PyObject* o, int depth) {
    constexpr int kDeepest = 32;
    if (depth > kDeepest) return false;
    if (isConstantValue(o) || isSymbolicNumber(o) || isSizeObject(o)) return true;
    const auto holds = [&](const StandIn& known) { return known.object.get() == o; };
    if (std::any_of(found.begin(), found.end(), holds) || std::any_of(all_.begin(), all_.end(), holds)) return true;
    if (e_.isTensor(o)) {
      const at::Tensor& tensor = tensorOf(o);
      if (!e_.isFresh(o)) return true;
      if (tensor.requires_grad() || !isPlainTensorClass(Py_TYPE(o))) return false;
      found.push_back({PyRef::borrow(o), {}, code, static_cast<uint32_t>(tensor._version())});
      return true;
    }
    if (PyTuple_CheckExact(o)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
        if (!walk(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
      return true;
    }
    const bool isList = PyList_CheckExact(o), isDict = PyDict_CheckExact(o);
    if (!isList && !isDict && (isModuleClass(Py_TYPE(o)) || !isPythonClass(Py_TYPE(o)) || !_PyObject_GetDictPtr(o) || holdsTorch(reinterpret_cast<PyObject*>(Py_TYPE(o)))))
      return false;
    if (!e_.isFresh(o)) return true;
    if (!isList && !isDict) {
      found.push_back({PyRef::borrow(o), {}, code, 0});
      const PyRef dict = e_.instanceDict(o);
      return dict && walk(dict.get(), depth + 1);
    }
    found.push_back({PyRef::borrow(o), isList ? PyRef::steal(PyList_AsTuple(o)) : PyRef::steal(PyDict_Copy(o)), code, 0});
    PyObject *key, *value;
    for (Py_ssize_t at = 0; isDict && PyDict_Next(o, &at, &key, &value);)
      if (!walk(key, depth + 1) || !walk(value, depth + 1)) return false;
    for (Py_ssize_t i = 0; isList && i < PyList_GET_SIZE(o); ++i)
      if (!walk(PyList_GET_ITEM(o, i), depth + 1)) return false;
    return true;
  };
  if (!walk(result, 0)) return clearError(), false;
  std::move(found.begin(), found.end(), std::back_inserter(all_));
  return true;
}

void StandIns::requireUnseen(PyObject* object) const {
  const c10::StorageImpl* storage = nullptr;
  if (!all_.empty() && e_.isTensor(object) && tensorOf(object).has_storage()) storage = tensorOf(object).storage().unsafeGetStorageImpl();
  for (const StandIn& standIn : all_) {
    PyObject* own = standIn.object.get();
    if (own == object || (storage && e_.isTensor(own) && tensorOf(own).storage().unsafeGetStorageImpl() == storage))
      throw askForReal(e_, standIn.code, "what a function of functools.lru_cache made is seen beyond the frame, where it is one and the same");
  }
}

bool StandIns::holds(PyObject* object) const {
  return std::any_of(all_.begin(), all_.end(), [&](const StandIn& standIn) { return standIn.object.get() == object; });
}

void StandIns::requireUnchanged() const {
  const auto unchanged = [&](const StandIn& standIn) {
    PyObject *now = standIn.object.get(), *before = standIn.before.get();
    if (e_.isTensor(now)) return tensorOf(now)._version() == standIn.version;
    if (!before) return true;  // an instance: its dict lies beside it
    if (PyList_CheckExact(now)) {
      bool same = PyList_GET_SIZE(now) == PyTuple_GET_SIZE(before);
      for (Py_ssize_t i = 0; same && i < PyList_GET_SIZE(now); ++i) same = PyList_GET_ITEM(now, i) == PyTuple_GET_ITEM(before, i);
      return same;
    }
    PyObject *key, *value;
    bool same = PyDict_GET_SIZE(now) == PyDict_GET_SIZE(before);
    for (Py_ssize_t at = 0; same && PyDict_Next(before, &at, &key, &value);) same = PyDict_GetItemWithError(now, key) == value;
    clearError();
    return same;
  };
  for (const StandIn& standIn : all_)
    if (!unchanged(standIn)) throw askForReal(e_, standIn.code, "what a function of functools.lru_cache made is written to");
}

/// The function behind a cache, evaluated as others are: where the key holds symbols, so that what is remembered is no constant, or the function
/// may see what the program has written. What it makes stands in for what the cache remembers. The cache is asked after the graph, in the program's
/// order, so that it remembers and counts what it would. Null without an error: it is not such a function. With `made`, instead of a stand-in: the
/// object, where making it changes nothing, so that the cache may be asked for real now.
PyRef Evaluation::evaluateCached(PyObject* wrapper, const CallArguments& a, PyRef* made) {
  const bool takesTensors = std::any_of(a.args.begin(), a.args.begin() + a.total(), [&](PyObject* o) { return isTensor(o); });
  PyRef function = getAttr(wrapper, internedName("__wrapped__"));
  if (!function) clearError();
  const CacheObject* cache = cacheOf(wrapper);
  if (takesTensors || !function || !PyFunction_Check(function.get()) || !cache || cache->function != function.get()) return {};
  PyRef code = PyRef::borrow(PyFunction_GET_CODE(function.get()));
  if (makeMore().contains(code.get())) return {};
  const auto done = [&] { return std::tuple(journal_.writes(), journal_.calls(), effectsSoFar().writes, trace_->wroteInputs()); };
  const auto before = done();
  const size_t nodes = trace_->graph().nodes().size();
  PyRef result = call(function.get(), a);
  if (!result && !PyErr_Occurred()) return {};
  clearError();
  if (!result && made) breakHere("cached function", "the function of functools.lru_cache raises");
  const auto& now = trace_->graph().nodes();
  const bool changesNothing = result && done() == before && (now.size() == nodes || !trace_->wroteInputs()) &&
                              std::none_of(now.begin() + static_cast<std::ptrdiff_t>(nodes), now.end(), [](const auto& node) { return graph::isOrdered(node) || graph::drawsRandom(node); });
  if (changesNothing && made && now.size() == nodes && !isConstantValue(result.get()) && !holdsTorch(result.get())) return *made = std::move(result), PyRef();
  if (changesNothing && standIns_->add(result.get(), code)) {
    const auto [args, kwargs] = kept(a);
    if (!isOfTorch(*cache)) journal_.asked(wrapper, args.get(), kwargs.get(), true);
    return result;
  }
  throw askForReal(*this, code, "the function of functools.lru_cache does more than to make values");
}

static bool hasConstantsAlone(PyObject* set) {
  PyObject* item;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(set, &at, &item, &hash);)
    if (!isConstantValue(item)) return false;
  return true;
}

/// What the cache remembers is looked up as the program would find it here, with arguments that stay the same, and a guard asks whether it is
/// still there; after the graph the cache is really asked, so that it counts the call and knows what was used last. What it does not
/// remember yet is computed by a real call now, unless that would make it forget something: the program's own call then finds it, which is
/// no hit. Whatever else may change what the function computes is the cache's to ignore, as in eager.
PyRef Evaluation::callCached(PyObject* wrapper, const CallArguments& a) {
  if (givesSymbols(a))
    if (PyRef result = evaluateCached(wrapper, a, nullptr)) return result;
  if (givesNumbers(a)) return withPlainNumbers(wrapper, a, "a key of functools.lru_cache");
  std::vector<PyRef> keys;  // which are hashed, with the tuples inside
  std::vector<PyObject*> keyed;
  for (size_t i = 0; i < a.total(); ++i) keyed.push_back(keys.emplace_back(settledKey(a.args[i])).get());
  if (!std::equal(keyed.begin(), keyed.end(), a.args.begin())) return callCached(wrapper, {keyed.data(), a.positional, a.kwNames});
  pin(wrapper, Why::Guarded);
  CacheObject* cache = cacheOf(wrapper);
  if (!cache) breakHere("cached function", "functools.lru_cache is laid out in a way that is not known");
  const bool ofTypes = isOfTyping(cache->function), ofTorch = isOfTorch(*cache);
  bool plain = true;
  const std::function<void(PyObject*)> read = [&](PyObject* o) {
    if (isConstantValue(o) || isIdentityValue(o)) return;
    for (Py_ssize_t i = 0; PyTuple_CheckExact(o) && i < builtinLength(o); ++i) read(element(o, i).get());
    if (PyTuple_CheckExact(o)) return;
    if (PyFrozenSet_CheckExact(o) && hasConstantsAlone(o)) {
      if (sourceOf(o)) know(o);
      return;
    }
    const Source* source = isTensor(o) ? nullptr : sourceOf(o);
    if (!source || !(comparesByIdentity(o) || (ofTypes && isOfTyping(reinterpret_cast<PyObject*>(Py_TYPE(o))))))
      breakHere("cached function", std::string("functools.lru_cache is asked with a ") + Py_TYPE(o)->tp_name);
    guard(GuardKind::IdMatch, source, o);
    plain = false;
  };
  for (size_t i = 0; i < a.total(); ++i) read(a.args[i]);
  if (const size_t asks = journal_.asksInOrder(wrapper); asks > 0 && isFull(*cache, asks))
    breakHere("cached function", "functools.lru_cache holds as many results as it may");
  const PyRef key = keyOf(*cache, a);
  PyRef result = PyRef::borrow(resultOf(PyDict_GetItemWithError(cache->results, key.get())));
  if (!result && PyErr_Occurred()) return {};
  if (ofTypes && isFull(*cache)) {
    // What typing forgets it makes again, and a guard would only ask what it remembers by chance.
    NotCompiling flag;
    trace::NoTrace off;
    const KeptWarnings::Pass heard;
    const PyRef made = PyRef::steal(PyObject_Vectorcall(wrapper, a.args, a.positional, a.kwNames));
    if (made) return pin(made.get(), Why::Immutable);
    clearError();
    breakHere("cached function", "the function of functools.lru_cache raises");
  }
  if (!result) {
    // What it writes would be taken for what the program wrote, and undone.
    const bool writes = !ofTypes && (journal_.calls() > 0 || !journal_.entries().empty() || trace_->wroteInputs());
    if (writes && ofTorch && plain) {
      // Asked before the program has written anything.
      const auto [args, keywords] = kept(a);
      throw CaptureBreak{{"cached function", "functools.lru_cache calls a function of torch's that raises", "", place(), stackPlaces()}, -1,
                         [asked = PyRef::borrow(wrapper), args = args, keywords = keywords] {
                           const PyRef known = PyRef::steal(PyObject_Call(asked.get(), args.get(), keywords.get()));
                           clearError();
                           return static_cast<bool>(known);
                         }};
    }
    PyRef made;
    if (PyRef value = writes ? evaluateCached(wrapper, a, &made) : PyRef()) return value;
    if (writes && !made) breakHere("cached function", "functools.lru_cache calls its function after effects that it might see");
    if (isFull(*cache)) breakHere("cached function", "functools.lru_cache holds as many results as it may");
    if (raisedAhead().isOf(wrapper, key.get())) breakHere("cached function", "the function of functools.lru_cache raises");
    bool raised = false;
    {
      NotCompiling flag;
      trace::NoTrace off;
      const KeptWarnings::Pass heard;
      if (made) {
        // What is put off has not been done yet: what the function makes for real tells whether it looks at that.
        const PyRef real = PyRef::steal(PyObject_Vectorcall(cache->function, a.args, a.positional, a.kwNames));
        clearError();
        if (!real || !holdAlike(made.get(), real.get())) breakHere("cached function", "functools.lru_cache calls its function after effects that it sees");
      }
      result = callAhead(wrapper, cache, key, a, raised);
    }
    if (!result) {
      if (!raised) return {};
      breakHere("cached function", "the function of functools.lru_cache raises");
    }
    if (resultOf(PyDict_GetItemWithError(cache->results, key.get())) != result.get()) {
      clearError();
      breakHere("cached function", "functools.lru_cache does not keep the result of a call");
    }
  }
  const auto [args, kwargs] = kept(a);
  if (!ofTorch) journal_.asked(wrapper, args.get(), kwargs.get(), false);
  Guard remembered;
  remembered.kind = GuardKind::Custom;
  remembered.source = sources().pinned(wrapper);
  const PyRef named = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.keywords())));
  for (size_t i = 0; i < a.keywords(); ++i)
    PyTuple_SET_ITEM(named.get(), static_cast<Py_ssize_t>(i), PyTuple_Pack(2, a.keywordName(i), a.args[a.positional + i]));
  remembered.expected = PyRef::steal(PyTuple_Pack(kExpected, cache->results, key.get(), result.get(), args.get(), named.get()));
  remembered.predicate = stillCached;
  remembered.text = "remembered result";
  remembered.place = Evaluation::place();
  guards_->add(std::move(remembered));
  return pin(result.get(), Why::Cached);
}

}  // namespace fusebox::capture
