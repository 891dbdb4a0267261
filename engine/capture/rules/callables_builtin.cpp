// Rules for the functions of the builtins module and a few relatives.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/rules/kept_predicates.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/class_checks.h"
#include "engine/capture/rules/sorting.h"
#include "engine/capture/rules/state_queries.h"
#include "engine/capture/evaluation/symbolic_functions.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {


/// Whether the arguments are what a rule is written for; else CPython's own error.
bool wants(Evaluation& e, PyObject* callable, const CallArguments& a, size_t least, size_t most, std::initializer_list<const char*> keywords = {}) {
  bool fits = a.positional >= least && a.positional <= most;
  for (size_t i = 0; fits && i < a.keywords(); ++i)
    fits = std::any_of(keywords.begin(), keywords.end(), [&](const char* k) { return PyUnicode_CompareWithASCIIString(a.keywordName(i), k) == 0; });
  return fits || e.refuseArguments(callable, a);
}

/// An attribute's name in args[1]; else CPython's error.
bool hasName(const CallArguments& a) {
  if (PyUnicode_Check(a.args[1])) return true;
  PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'", Py_TYPE(a.args[1])->tp_name);
  return false;
}

PyRef ruleLen(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1)) return {};
  return e.lengthOf(a.args[0]);
}

PyRef ruleGetattr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 2, 3) || !hasName(a)) return {};
  PyRef value = e.getAttr(a.args[0], a.args[1]);
  if (!value && a.positional < 3) tellAttribute(a.args[0], a.args[1]);
  if (value || a.positional < 3 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  clearError();
  return PyRef::borrow(a.args[2]);
}

PyRef ruleHasattr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 2, 2) || !hasName(a)) return {};
  if (e.getAttr(a.args[0], a.args[1])) return boolean(1);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  clearError();
  return boolean(0);
}

PyRef ruleSetattr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 3, 3) && hasName(a) && e.setAttr(a.args[0], a.args[1], a.args[2]) ? none() : PyRef();
}

PyRef ruleDelattr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) && hasName(a) && e.setAttr(a.args[0], a.args[1], nullptr) ? none() : PyRef();
}

PyRef ruleNext(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 2)) return {};
  PyRef item = nextOrStop(e, a.args[0]);
  if (item || a.positional < 2 || !PyErr_ExceptionMatches(PyExc_StopIteration)) return item;
  clearError();
  return PyRef::borrow(a.args[1]);
}

/// any and all, stopping early.
template <bool kAll>
PyRef ruleAnyAll(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1)) return {};
  PyRef iterator = e.iter(a.args[0]);
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    const int truth = e.truth(item.get());
    if (truth < 0) return {};
    if ((truth != 0) != kAll) return boolean(!kAll);
  }
  return PyErr_Occurred() ? PyRef() : boolean(kAll);
}

bool isPlainNumber(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o); }

/// Numbers that changed between calls, added up as CPython's sum does while ints and floats come: since 3.12 what an addition of floats rounds off is
/// kept, and added at the end (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974; here without a branch, as
/// Knuth's TwoSum, which gives the same).
class ChangingSum {
 public:
  ChangingSum(Evaluation& e, PyRef* total) : e_(e), total_(*total) {}
  static bool takes(PyObject* item) { return PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item) || isSymbolicFloat(item); }
  /// So many were added that one constant is better.
  bool isFull() const { return count_ > kMost; }
  /// False with a Python error set.
  bool add(PyObject* item) {
    ++count_;
    const PyRef before = std::exchange(total_, e_.binary(kAdd, total_.get(), item));
    if (!total_ || PY_VERSION_HEX < 0x030C0000 || PyLong_Check(item)) return static_cast<bool>(total_);
    const PyRef taken = e_.binary(kSubtract, total_.get(), before.get());
    const PyRef left = taken ? e_.binary(kSubtract, total_.get(), taken.get()) : PyRef();
    const PyRef one = left ? e_.binary(kSubtract, before.get(), left.get()) : PyRef();
    const PyRef other = one ? e_.binary(kSubtract, item, taken.get()) : PyRef();
    PyRef error = other ? e_.binary(kAdd, one.get(), other.get()) : PyRef();
    if (error) lost_ = lost_ ? e_.binary(kAdd, lost_.get(), error.get()) : std::move(error);
    return other && lost_;
  }
  /// What was rounded off comes to the total, unless that is infinite or no number. False with a Python error set.
  bool finish() {
    const PyRef lost = std::exchange(lost_, {});
    if (!lost) return true;
    const PyRef limit = PyRef::steal(PyFloat_FromDouble(HUGE_VAL)), lowest = PyRef::steal(PyFloat_FromDouble(-HUGE_VAL));
    for (const auto& [op, bound] : {std::pair{Py_LT, limit.get()}, std::pair{Py_GT, lowest.get()}}) {
      const PyRef within = e_.compare(op, lost.get(), bound);
      const int truth = within ? e_.truth(within.get()) : -1;
      if (truth <= 0) return truth == 0;
    }
    total_ = e_.binary(kAdd, total_.get(), lost.get());
    return static_cast<bool>(total_);
  }

 private:
  static constexpr int kMost = 64;
  Evaluation& e_;
  PyRef& total_;
  PyRef lost_;
  int count_ = 0;
};

/// Numbers are added up by CPython's own sum, which keeps more digits than additions one by one (3.12) as long as nothing else comes; those that
/// changed between calls as it would.
PyRef ruleSum(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 2, {"start"})) return {};
  PyObject* startKeyword = a.keyword("start");
  PyRef total = a.positional == 2 ? PyRef::borrow(a.args[1]) : startKeyword ? PyRef::borrow(startKeyword) : PyRef::steal(PyLong_FromLong(0));
  PyRef iterator = e.iter(a.args[0]), numbers = PyRef::steal(PyList_New(0));
  if (!iterator) return {};
  auto addNumbers = [&] {
    PyObject* args[] = {numbers.get(), total.get()};
    total = PyRef::steal(PyObject_Vectorcall(callable, args, 2, nullptr));
    numbers = PyRef();
    return static_cast<bool>(total);
  };
  std::optional<ChangingSum> changing;
  if (isSymbolicFloat(total.get())) changing.emplace(e, &total);
  if (!isPlainNumber(total.get())) {
    if (isConstantValue(total.get()) && !addNumbers()) return {};  // text is refused
    numbers = PyRef();
  }
  while (PyRef item = e.next(iterator.get())) {
    e.refuseAddress(item.get());
    if (PY_VERSION_HEX >= 0x030C0000 && e.isNumber(item.get())) e.refuseNumber("added up by sum(), which keeps what is rounded off");
    if (numbers && isSymbolicFloat(item.get()) && ChangingSum::takes(total.get())) {
      changing.emplace(e, &total);
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers.get()); ++i)
        if (!changing->add(PyList_GET_ITEM(numbers.get(), i))) return {};
      numbers = PyRef();
    }
    if (isSymbolicFloat(item.get()) && (numbers || (changing && changing->isFull()))) item = e.plainNumber(item.get(), "sum() of floats");
    if (changing && ChangingSum::takes(item.get())) {
      if (!changing->add(item.get())) return {};
      continue;
    }
    if (changing && !changing->finish()) return {};
    changing.reset();
    if (numbers && isPlainNumber(item.get())) {
      PyList_Append(numbers.get(), item.get());
      continue;
    }
    if (numbers && !addNumbers()) return {};
    total = e.binary(kAdd, total.get(), item.get());
    if (!total) return {};
  }
  if (PyErr_Occurred() || (numbers && !addNumbers()) || (changing && !changing->finish())) return {};
  return total;
}

/// The greater (or less) of two, one of which is a tensor with one element, as a value of the graph: which of the two objects it is, data say when the
/// graph has run, so that elsewhere it is a break. Null without error: they are something else.
PyRef extremeOfTensors(Evaluation& e, PyObject* best, PyObject* item, int op) {
  static PyObject* const where = torchObject("torch.where");
  const auto isOne = [&](PyObject* o) { return e.isStandIn(o) && !e.isNumber(o) && isPlainTensorClass(Py_TYPE(o)) && tensorOf(o).sym_numel() == 1; };
  const auto fits = [&](PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || isOne(o); };
  if (!e.options().fullgraph || !fits(best) || !fits(item) || !(isOne(best) || isOne(item))) return {};
  const auto isKept = [&](PyObject* o, PyObject* other) {  // in the type that the other one has
    return isOne(o) ? !isOne(other) || (tensorOf(o).dim() == tensorOf(other).dim() && tensorOf(o).scalar_type() == tensorOf(other).scalar_type())
                    : PyLong_CheckExact(o) || tensorOf(other).is_floating_point();
  };
  if (!isKept(best, item) || !isKept(item, best)) return {};
  const PyRef better = e.compare(op, item, best);
  PyObject* args[] = {better.get(), item, best};
  return better ? e.call(where, args, 3, nullptr) : PyRef();
}

template <bool kMax>
PyRef ruleMinMax(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject *key = a.keyword("key"), *fallback = a.keyword("default");
  if (!wants(e, callable, a, 1, fallback ? 1 : SIZE_MAX, {"key", "default"})) return {};
  PyRef items = a.positional == 1 ? PyRef::borrow(a.args[0]) : PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional)));
  for (size_t i = 0; a.positional != 1 && i < a.positional; ++i)
    PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  PyRef iterator = e.iter(items.get()), best, bestKey;
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    PyRef itemKey = item;
    if (key && key != Py_None) {
      PyObject* args[] = {item.get()};
      itemKey = e.call(key, args, 1, nullptr);
      if (!itemKey) return {};
    }
    const auto isInt = [](PyObject* o) { return isSymbolicInt(o) || PyLong_CheckExact(o); };
    if (best && !key && isInt(item.get()) && isInt(best.get()) && (isSymbolicInt(item.get()) || isSymbolicInt(best.get())))
      if (PyRef extreme = symbolicExtreme(kMax, best.get(), item.get())) {
        best = bestKey = extreme;
        continue;
      }
    if (best && !key) {
      PyRef extreme = deferredExtreme(kMax, best.get(), item.get());
      if (!extreme) extreme = extremeOfTensors(e, best.get(), item.get(), kMax ? Py_GT : Py_LT);
      if (PyErr_Occurred()) return {};
      if (extreme) {
        best = bestKey = extreme;
        continue;
      }
    }
    if (best) {
      PyRef better = e.compare(kMax ? Py_GT : Py_LT, itemKey.get(), bestKey.get());
      const int truth = better ? e.truth(better.get()) : -1;
      if (truth < 0) return {};
      if (!truth) continue;
    }
    best = std::move(item);
    bestKey = std::move(itemKey);
  }
  if (PyErr_Occurred()) return {};
  if (best) return best;
  if (fallback) return PyRef::borrow(fallback);
  PyErr_SetString(PyExc_ValueError, kMax ? "max() arg is an empty sequence" : "min() arg is an empty sequence");
  return {};
}

int reverseFlag(Evaluation& e, const CallArguments& a) {
  PyObject* reverse = a.keyword("reverse");
  return reverse ? e.truth(reverse) : 0;
}

PyRef ruleSorted(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1, {"key", "reverse"})) return {};
  PyRef items = e.collect(a.args[0], false, true);
  const int reverse = items ? reverseFlag(e, a) : -1;
  return reverse < 0 || !sortList(e, items.get(), a.keyword("key"), reverse != 0) ? PyRef() : items;
}

PyRef ruleListSort(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1, {"key", "reverse"})) return {};
  PyObject* list = a.args[0];
  const int reverse = reverseFlag(e, a);
  if (reverse < 0) return {};
  // As in CPython the list is empty meanwhile, and must stay so.
  PyRef items = PyRef::steal(PyList_New(0)), none_ = PyRef::steal(PyList_New(0)), all = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr));
  const Py_ssize_t n = e.builtinLength(list);
  for (Py_ssize_t i = 0; i < n; ++i) PyList_Append(items.get(), e.element(list, i).get());
  e.adopt(items.get());
  if (!e.storeElement(list, all.get(), none_.get())) return {};
  const bool sorted = sortList(e, items.get(), a.keyword("key"), reverse != 0), touched = PyList_GET_SIZE(list) > 0;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool stored = e.storeElement(list, all.get(), items.get());
  PyErr_Restore(type, value, traceback);
  if (sorted && touched) PyErr_SetString(PyExc_ValueError, "list modified during sort");
  return sorted && stored && !touched ? none() : PyRef();
}

PyRef ruleRepr(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 1, 1) ? e.convert('r', a.args[0]) : PyRef();
}

PyRef ruleFormat(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 2)) return {};
  PyObject* spec = a.positional == 2 ? a.args[1] : nullptr;
  if (spec && !PyUnicode_Check(spec)) {
    PyErr_Format(PyExc_TypeError, "format() argument 2 must be str, not %s", spec == Py_None ? "None" : Py_TYPE(spec)->tp_name);
    return {};
  }
  return e.format(a.args[0], spec);
}

PyRef ruleCallable(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 1, 1) ? boolean(PyCallable_Check(a.args[0])) : PyRef();
}

PyRef ruleId(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 1, 1) ? e.addressOf(a.args[0]) : PyRef();
}

PyRef ruleHash(Evaluation& e, PyObject* callable, const CallArguments& a) { return wants(e, callable, a, 1, 1) ? e.hashOf(a.args[0]) : PyRef(); }

PyRef ruleVars(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1)) return {};
  PyRef dict = e.getAttr(a.args[0], internedName("__dict__"));
  if (!dict && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
  return dict;
}

bool addNamesOfClass(Evaluation& e, PyTypeObject* type, PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* holder = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    e.guardTypeAttribute(holder, nullptr);
    if (_PySet_Update(names, typeDict(holder).get()) < 0) return false;
  }
  return true;
}

/// Whether what object.__dir__ and type.__dir__ read of an object, its `__dict__` and `__class__`, is its own: bound methods tell those of their functions.
bool tellsItsOwn(Evaluation& e, PyObject* object) {
  static PyObject* const kNames[] = {internedName("__dir__"), internedName("__getattribute__"), internedName("__class__")};
  auto* const base = PyType_Check(object) ? &PyType_Type : &PyBaseObject_Type;
  for (PyObject* name : kNames)
    if (e.typeLookup(Py_TYPE(object), name) != _PyType_Lookup(base, name)) return false;
  static PyObject *const dict = internedName("__dict__"), *const otherwise = internedName("__getattr__");
  PyObject* own = e.typeLookup(Py_TYPE(object), dict);
  return own ? Py_IS_TYPE(own, &PyGetSetDescr_Type) : !e.typeLookup(Py_TYPE(object), otherwise);
}

/// dir() of a class, of an object with the __dir__ of object, or with one in Python.
PyRef ruleDir(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 1, 1)) return {};
  LazyIterator* lazy = lazyOf(a.args[0]);
  PyObject* object = lazy ? reinterpret_cast<PyObject*>(lazy->type()) : a.args[0];
  PyRef names;
  if (PyObject* own = e.pythonMethod(object, "__dir__")) {
    PyRef given = e.call(own, a);
    names = given ? e.collect(given.get(), false, true) : PyRef();
  } else {
    if (!tellsItsOwn(e, object)) e.breakHere("unsupported call", std::string("dir() of a ") + Py_TYPE(object)->tp_name);
    PyRef all = PyRef::steal(PySet_New(nullptr));
    if (!all || !addNamesOfClass(e, PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object) : Py_TYPE(object), all.get())) return {};
    if (!PyType_Check(object)) {
      PyRef dict = e.instanceDict(object), keys = dict ? e.collect(dict.get(), false, true) : PyRef();
      if (keys && _PySet_Update(all.get(), keys.get()) < 0) return {};
    }
    if (PyErr_Occurred()) return {};
    names = PyRef::steal(PySequence_List(all.get()));
    if (names) e.adopt(names.get());
  }
  return names && sortList(e, names.get(), nullptr, false) ? names : PyRef();
}

PyRef ruleGlobals(Evaluation& e, PyObject*, const CallArguments&) { return e.pin(e.frame()->globals, Why::Owner); }

/// The special method of a symbolic number where it has an expression; else null.
PyRef symbolicSpecial(std::string_view method, PyObject* number) {
  if (method == "__abs__") return symbolicAbsolute(number);
  if (method == "__floor__" || method == "__trunc__") return symbolicRounded(method == "__floor__" ? 'f' : 't', number);
  if (method == "__ceil__") return symbolicRounded('c', number);
  return symbolicRounded('r', number);
}

constexpr const char *kAbs = "__abs__", *kRound = "__round__", *kFloor = "__floor__", *kCeil = "__ceil__", *kTrunc = "__trunc__";

/// abs, round, math.floor, …: a special method where Python code defines it, else the function itself.
template <const char* const& kMethod>
PyRef ruleBySpecial(Evaluation& e, PyObject* callable, const CallArguments& a) {
  // numpy's numbers give an int of Python's there, as floats.
  if (PyRef known = a.total() == 1 && isArrayScalar(a.args[0]) && kMethod != kAbs ? pythonNumberOf(a.args[0]) : PyRef(); known && isSymbolicNumber(known.get())) {
    if (isSymbolicInt(known.get()) && (kMethod == kFloor || kMethod == kCeil)) known = symbolicToFloat(known.get());
    if (PyRef made = known && isSymbolicFloat(known.get()) ? symbolicSpecial(kMethod, known.get()) : PyRef()) return made;
  }
  if (a.total() == 1 && isSymbolicNumber(a.args[0]))
    if (PyRef made = symbolicSpecial(kMethod, a.args[0])) return made;
  if (kMethod == kRound && a.keywords() == 0)
    if (PyRef made = deferredFunction(e, callable, {a.args.begin(), a.total()})) return made;
  PyObject* method = a.positional > 0 ? e.pythonMethod(a.args[0], kMethod) : nullptr;
  return method ? e.call(method, a) : e.callReal(callable, a);
}

/// C functions of numbers: objects become what their __float__ or __index__ gives, before.
PyRef onNumbers(Evaluation& e, PyObject* callable, const CallArguments& a, std::initializer_list<const char*> methods) {
  if (a.keywords() == 0)
    if (PyRef made = deferredFunction(e, callable, {a.args.begin(), a.total()})) return made;
  if (a.keywords() == 0)
    if (PyRef made = symbolicMath(callable, {a.args.begin(), a.args.begin() + a.total()})) return made;
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    const bool isKnown = isConstantValue(a.args[i]) || PyFloat_Check(a.args[i]);  // C code reads a float's own value
    keep.push_back(isKnown ? PyRef::borrow(a.args[i]) : e.numberOf(a.args[i], methods));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  if (a.keywords() == 0)
    if (PyRef made = deferredFunction(e, callable, args)) return made;
  return e.callReal(callable, {args.data(), a.positional, a.kwNames});
}
PyRef ruleOnIndices(Evaluation& e, PyObject* callable, const CallArguments& a) { return onNumbers(e, callable, a, {"__index__"}); }

PyRef ruleIndex(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return a.total() == 1 && isSymbolicInt(a.args[0]) ? PyRef::borrow(a.args[0]) : ruleOnIndices(e, callable, a);
}

PyRef ruleDivmod(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 2, 2)) return {};
  bool declined = true;
  PyRef result;
  if (PyObject* method = e.pythonMethod(a.args[0], "__divmod__")) result = e.tryBinary(method, a.args[0], a.args[1], &declined);
  if (declined)
    if (PyObject* method = e.pythonMethod(a.args[1], "__rdivmod__")) result = e.tryBinary(method, a.args[1], a.args[0], &declined);
  if (!declined) return result;
  if (!isSymbolicNumber(a.args[0]) && !isSymbolicNumber(a.args[1])) return e.callReal(callable, a);
  constexpr int kFloorDivide = 2, kRemainder = 6;
  PyRef quotient = e.binary(kFloorDivide, a.args[0], a.args[1]), rest = quotient ? e.binary(kRemainder, a.args[0], a.args[1]) : PyRef();
  return rest ? PyRef::steal(PyTuple_Pack(2, quotient.get(), rest.get())) : PyRef();
}

PyRef rulePow(Evaluation& e, PyObject* callable, const CallArguments& a) {
  constexpr int kPower = 8;
  return a.total() == 2 && a.positional == 2 ? e.binary(kPower, a.args[0], a.args[1]) : e.callReal(callable, a);
}

/// str.format, str.format_map: fields are looked up and turned into text one by one where Python code may run.
template <bool kMap>
PyRef ruleStrFormat(Evaluation& e, PyObject* callable, const CallArguments& a) {
  bool plain = true;
  for (size_t i = 0; i < a.total(); ++i) plain = plain && isConstantValue(a.args[i]);
  if (plain) return e.callReal(callable, a, Evaluation::Asks::Text);
  if (kMap && !wants(e, callable, a, 2, 2)) return {};
  return e.formatFields(a.args[0], a, kMap ? a.args[1] : nullptr);
}

/// A signature is read off a function and what it wraps; its parts belong to nobody else.
PyRef ruleSignature(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 0; i < a.total(); ++i) {
    PyObject* subject = PyMethod_Check(a.args[i]) ? PyMethod_GET_FUNCTION(a.args[i]) : a.args[i];
    if (PyFunction_Check(subject)) e.guardFunction(subject);
  }
  PyRef signature = e.callReal(callable, a, Evaluation::Asks::Nothing);
  PyRef parameters = signature ? PyRef::steal(PyObject_GetAttrString(signature.get(), "parameters")) : PyRef();
  PyRef values = parameters ? PyRef::steal(PyMapping_Values(parameters.get())) : PyRef();
  for (Py_ssize_t i = 0; values && i < PyList_GET_SIZE(values.get()); ++i) e.adopt(PyList_GET_ITEM(values.get(), i));
  return signature;
}

PyRef ruleGetrecursionlimit(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 0, 0) ? guardAnswer(e, callable, {}, "recursion limit") : PyRef();
}

PyRef ruleImport(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.breakHere("import", "__import__ is called");
}

/// importlib.util.find_spec: whether a package is installed does not change while a program runs.
PyRef ruleFindSpec(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 0; i < a.total(); ++i)
    if (!isConstantValue(a.args[i])) e.breakHere("import", "importlib.util.find_spec is called with something else than names");
  PyRef spec;
  {
    trace::NoTrace off;  // finders are Python
    spec = PyRef::steal(PyObject_Vectorcall(callable, a.args, a.positional, a.kwNames));
  }
  e.ownToProcess("which packages are installed");
  return spec ? e.pin(spec.get(), Why::Process) : PyRef();
}

/// importlib.import_module, by which packages load their parts late (a module's __getattr__). A module that nobody has imported is
/// imported now, as it would be by this call, unless writes or prints before it wait for the graph.
PyRef ruleImportModule(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool named = a.positional == 1 && a.total() == 1, within = a.positional == 2 && a.total() == 2;
  for (size_t i = 0; i < a.positional; ++i)
    if (!PyUnicode_CheckExact(a.args[i])) e.breakHere("import", "importlib.import_module is called with something else than names");
  if (!named && !within) e.breakHere("import", "importlib.import_module is called with keywords");
  PyRef resolve = PyRef::steal(PyImport_ImportModule("importlib.util"));
  PyRef full = PyRef::steal(PyObject_CallMethod(resolve.get(), "resolve_name", "OO", a.args[0], within ? a.args[1] : Py_None));
  if (!full) return {};  // eager's error
  PyObject* modules = PyImport_GetModuleDict();
  if (!e.importFirst(full.get())) return {};
  return e.readDict(modules, full.get());
}

PyRef ruleReduce(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 2, 3)) return {};
  PyRef iterator = e.iter(a.args[1]), value = a.positional > 2 ? PyRef::borrow(a.args[2]) : PyRef();
  if (!iterator) return {};
  while (PyRef item = e.next(iterator.get())) {
    if (!value) {
      value = std::move(item);
      continue;
    }
    PyObject* args[] = {value.get(), item.get()};
    value = e.call(a.args[0], args, 2, nullptr);
    if (!value) return {};
  }
  if (PyErr_Occurred()) return {};
  if (!value) PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
  return value;
}

/// math.prod: the products one by one where not all are constants.
PyRef ruleProduct(Evaluation& e, PyObject* callable, const CallArguments& a) {
  constexpr int kMultiply = 5;
  PyObject* start = a.keyword("start");
  if (a.positional != 1 || a.keywords() != (start ? 1u : 0u) || isConstantValue(a.args[0])) return e.callReal(callable, a);
  PyRef items = e.collect(a.args[0], true), product = start ? PyRef::borrow(start) : PyRef::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; items && product && i < PyTuple_GET_SIZE(items.get()); ++i)
    product = e.binary(kMultiply, product.get(), PyTuple_GET_ITEM(items.get(), i));
  return items ? product : PyRef();
}

/// torch.sym_max, torch.sym_min: no decision which of two ints is the larger.
template <bool kLarger>
PyRef ruleExtreme(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!wants(e, callable, a, 2, 2)) return {};
  if (isSymbolicNumber(a.args[0]) || isSymbolicNumber(a.args[1]))
    if (PyRef made = symbolicExtreme(kLarger, a.args[0], a.args[1])) return made;
  PyRef best = ruleMinMax<kLarger>(e, callable, a);
  const auto isFloat = [](PyObject* o) { return pythonTypeOf(o) == &PyFloat_Type; };
  if (!best || (!isFloat(a.args[0]) && !isFloat(a.args[1]))) return best;
  return isSymbolicNumber(best.get()) ? symbolicToFloat(best.get()) : PyRef::steal(PyNumber_Float(best.get()));
}

/// sys.exc_info() and sys.exception().
template <bool kAll>
PyRef ruleHandledException(Evaluation& e, PyObject* callable, const CallArguments&) {
  PyRef handled = PyRef::steal(PyErr_GetHandledException());
  const bool any = handled && handled.get() != Py_None;
  if (any && handled.get() == e.handledBefore()) e.breakHere("exception", "an exception that was raised before the compiled region is asked for");
  const PyObject* before = e.handledBefore();
  if (!any && (!before || before == Py_None)) e.guardCustom(e.sources().pinned(callable, Why::Process), handlesNothing, Py_None, "no exception is handled");
  if (!kAll) return any ? handled : none();
  if (!any) return PyRef::steal(PyTuple_Pack(3, Py_None, Py_None, Py_None));
  PyRef traceback = e.tracebackOf(handled.get());
  return PyRef::steal(PyTuple_Pack(3, Py_TYPE(handled.get()), handled.get(), traceback.get()));
}

/// object.__format__(x, ""): its text.
PyRef ruleObjectFormat(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool plain = a.positional == 2 && PyUnicode_Check(a.args[1]) && PyUnicode_GET_LENGTH(a.args[1]) == 0;
  return plain ? e.convert('s', a.args[0]) : e.callReal(callable, a, Evaluation::Asks::Text);
}

/// operator.xyz(a, b): the operator itself.
template <int kOp>
PyRef ruleOperator(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) ? e.binary(kOp, a.args[0], a.args[1]) : PyRef();
}
template <int kOp>
PyRef ruleCompare(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) ? e.compare(kOp, a.args[0], a.args[1]) : PyRef();
}
PyRef ruleOperatorGetItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) ? e.getItem(a.args[0], a.args[1]) : PyRef();
}
/// operator.setitem, delitem, contains, is_, is_not: what the statements do, on the objects themselves.
PyRef ruleOperatorSetItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 3, 3) && e.setItem(a.args[0], a.args[1], a.args[2]) ? none() : PyRef();
}
PyRef ruleOperatorDelItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) && e.setItem(a.args[0], a.args[1], nullptr) ? none() : PyRef();
}
PyRef ruleOperatorContains(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) ? boolean(e.contains(a.args[0], a.args[1])) : PyRef();
}
template <bool kSame>
PyRef ruleOperatorIs(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 2, 2) ? boolean(e.same(a.args[0], a.args[1]) == kSame) : PyRef();
}
/// operator.length_hint: an iterator is asked, not gone through.
PyRef ruleLengthHint(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (lazyOf(a.args[0]) || isChangeable(Py_TYPE(a.args[0]))) e.breakHere("unsupported call", std::string("operator.length_hint of a ") + Py_TYPE(a.args[0])->tp_name);
  return e.callReal(callable, a);
}

PyRef ruleOperatorTruth(Evaluation& e, PyObject* callable, const CallArguments& a) {
  return wants(e, callable, a, 1, 1) ? boolean(e.truth(a.args[0])) : PyRef();
}

/// bisect.insort and the like write to the list that they are given.
PyRef ruleWritesFirst(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.total(); ++i)
    if (!isConstantValue(a.args[i])) e.breakHere("unsupported call", "a C function writes objects that are not constants to a container");
  if (a.positional == 0 || !PyList_CheckExact(a.args[0])) e.breakHere("unsupported call", "a C function writes to a container");
  if (e.expose(a.args[0]).get() != a.args[0]) e.breakHere("unsupported call", "a C function compares tensors");
  if (!e.isFresh(a.args[0])) e.breakHere("unsupported call", "a C function writes to a list that existed before");
  return e.callRaw(callable, a);
}

PyRef ruleOperatorNot(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const int truth = wants(e, callable, a, 1, 1) ? e.truth(a.args[0]) : -1;
  return truth < 0 ? PyRef() : boolean(!truth);
}

/// Changes of an exception that this segment made.
PyRef ruleFreshException(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!e.isFresh(a.args[0])) e.breakHere("unsupported side effect", "an exception that existed before is changed");
  return e.callRaw(callable, a);
}

/// C functions that may call back what they are given: run on constants only.
PyRef ruleOnConstants(Evaluation& e, PyObject* callable, const CallArguments& a) {
  for (size_t i = 1; i < a.total(); ++i)
    if (!isConstantValue(a.args[i]) && !(PyUnicode_Check(a.args[i]) && isValueObject(a.args[i])))
      e.breakHere("unsupported call", "a C function that may call Python functions it is given");
  return e.callRaw(callable, a);
}

/// What of `o` pickle refers back to where it meets the same object again; false where something else than values is among it.
bool findRemembered(PyObject* o, std::vector<PyObject*>& found, int depth = 0) {
  constexpr int kDeepest = 50;
  if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) return true;
  if (PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) == 0) return true;
  found.push_back(o);
  if (PyUnicode_CheckExact(o) || PyBytes_CheckExact(o)) return true;
  bool values = depth < kDeepest;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; values && i < PySequence_Fast_GET_SIZE(o); ++i) values = findRemembered(PySequence_Fast_GET_ITEM(o, i), found, depth + 1);
  } else if (PyDict_CheckExact(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; values && PyDict_Next(o, &at, &key, &value);)
      values = findRemembered(key, found, depth + 1) && findRemembered(value, found, depth + 1);
  } else {
    return false;
  }
  return values;
}

/// pickle.dumps of values in containers. Its bytes say also which of them are one object: where two are equal that is no matter of values.
PyRef rulePickle(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional < 1 || std::any_of(a.args.begin() + 1, a.args.begin() + a.total(), [](PyObject* o) { return !isConstantValue(o); }))
    e.breakHere("unsupported call", "pickle.dumps is called with something else than an object and constants");
  e.know(a.args[0]);
  PyRef object = e.expose(a.args[0]);
  std::vector<PyObject*> remembered;
  if (!object || !findRemembered(object.get(), remembered)) e.breakHere("unsupported call", "pickle.dumps of other objects than values in containers");
  for (size_t i = 0; i < remembered.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (Py_TYPE(remembered[i]) == Py_TYPE(remembered[k]) && PyObject_RichCompareBool(remembered[i], remembered[k], Py_EQ) != 0)
        e.breakHere("unsupported call", "pickle.dumps of two equal objects, which may be one");
  return e.callReal(callable, a, Evaluation::Asks::Nothing);
}

constexpr RuleRow kBuiltinRows[] = {
    {"builtins.len", ruleLen},           {"builtins.getattr", ruleGetattr},   {"builtins.hasattr", ruleHasattr},
    {"builtins.setattr", ruleSetattr},   {"builtins.delattr", ruleDelattr},   {"builtins.isinstance", ruleIsinstance},
    {"builtins.issubclass", ruleIssubclass},   {"builtins.next", ruleNext},         {"builtins.all", ruleAnyAll<true>},
    {"builtins.any", ruleAnyAll<false>}, {"builtins.sum", ruleSum},           {"builtins.max", ruleMinMax<true>},
    {"builtins.min", ruleMinMax<false>}, {"builtins.sorted", ruleSorted},     {"builtins.list.sort", ruleListSort},
    {"builtins.repr", ruleRepr},         {"builtins.format", ruleFormat},     {"builtins.callable", ruleCallable},
    {"builtins.id", ruleId},             {"builtins.hash", ruleHash},         {"builtins.vars", ruleVars},         {"builtins.dir", ruleDir},
    {"builtins.globals", ruleGlobals},   {"builtins.abs", ruleBySpecial<kAbs>},           {"builtins.divmod", ruleDivmod},
    {"builtins.pow", rulePow},          {"builtins.round", ruleBySpecial<kRound>},        {"builtins.ord", rulePure},
    {"builtins.chr", ruleOnIndices},          {"builtins.bin", ruleOnIndices},          {"builtins.hex", ruleOnIndices},
    {"builtins.oct", ruleOnIndices},          {"builtins.__import__", ruleImport}, {"importlib.import_module", ruleImportModule}, {"importlib.util.find_spec", ruleFindSpec}, {"sys.getrecursionlimit", ruleGetrecursionlimit},
    {"functools.reduce", ruleReduce},    {"operator.add", ruleOperator<0>},   {"operator.and_", ruleOperator<1>},
    {"operator.floordiv", ruleOperator<2>}, {"operator.matmul", ruleOperator<4>}, {"operator.mul", ruleOperator<5>},
    {"operator.mod", ruleOperator<6>},   {"operator.or_", ruleOperator<7>},   {"operator.pow", ruleOperator<8>},
    {"operator.sub", ruleOperator<10>},  {"operator.truediv", ruleOperator<11>}, {"operator.xor", ruleOperator<12>},
    {"operator.iadd", ruleOperator<13>}, {"operator.lt", ruleCompare<Py_LT>}, {"operator.le", ruleCompare<Py_LE>},
    {"operator.eq", ruleCompare<Py_EQ>}, {"operator.ne", ruleCompare<Py_NE>}, {"operator.gt", ruleCompare<Py_GT>},
    {"operator.ge", ruleCompare<Py_GE>}, {"operator.getitem", ruleOperatorGetItem},
    {"operator.setitem", ruleOperatorSetItem}, {"operator.delitem", ruleOperatorDelItem}, {"operator.contains", ruleOperatorContains},
    {"operator.is_", ruleOperatorIs<true>}, {"operator.is_not", ruleOperatorIs<false>}, {"operator.truth", ruleOperatorTruth}, {"operator.length_hint", ruleLengthHint},
    {"operator.concat", ruleOperator<0>}, {"operator.iconcat", ruleOperator<13>}, {"operator.iand", ruleOperator<14>},
    {"operator.ifloordiv", ruleOperator<15>}, {"operator.ilshift", ruleOperator<16>}, {"operator.imatmul", ruleOperator<17>},
    {"operator.imul", ruleOperator<18>}, {"operator.imod", ruleOperator<19>}, {"operator.ior", ruleOperator<20>},
    {"operator.ipow", ruleOperator<21>}, {"operator.irshift", ruleOperator<22>}, {"operator.isub", ruleOperator<23>},
    {"operator.itruediv", ruleOperator<24>}, {"operator.ixor", ruleOperator<25>}, {"operator.lshift", ruleOperator<3>},
    {"operator.rshift", ruleOperator<9>}, {"bisect.insort", ruleWritesFirst}, {"bisect.insort_left", ruleWritesFirst},
    {"sys.exc_info", ruleHandledException<true>}, {"sys.exception", ruleHandledException<false>}, {"operator.not_", ruleOperatorNot},
    {"_abc._abc_instancecheck", ruleAbcInstance}, {"_abc._abc_subclasscheck", ruleAbcSubclass}, {"builtins.type.__instancecheck__", ruleTypeInstance},
    {"builtins.type.__subclasscheck__", ruleTypeSubclass}, {"builtins.type.mro", rulePure}, {"builtins.object.__format__", ruleObjectFormat},
    {"builtins.object.__dir__", rulePure}, {"sys.intern", rulePure}, {"re.Pattern.sub", ruleOnConstants},
    {"builtins.str.maketrans", rulePure}, {"builtins.BaseException.add_note", ruleFreshException},
    {"builtins.BaseException.with_traceback", ruleFreshException}, {"re.Match.group", rulePure}, {"re.Match.groups", rulePure},
    {"re.Match.start", rulePure}, {"re.Match.end", rulePure}, {"re.Match.span", rulePure}, {"re.Match.groupdict", rulePure},
    {"re.Match.__getitem__", rulePure},
    {"re.Pattern.match", ruleOnConstants}, {"re.Pattern.fullmatch", ruleOnConstants}, {"re.Pattern.search", ruleOnConstants},
    {"re.Pattern.split", ruleOnConstants}, {"re.Pattern.findall", ruleOnConstants}, {"posix.fspath", rulePure},
    {"builtins.str.format", ruleStrFormat<false>}, {"builtins.str.format_map", ruleStrFormat<true>}, {"inspect.signature", ruleSignature},
    {"math.prod", ruleProduct}, {"torch.sym_max", ruleExtreme<true>}, {"torch.sym_min", ruleExtreme<false>},
    {"pickle.dumps", rulePickle}, {"operator.index", ruleIndex}, {"math.floor", ruleBySpecial<kFloor>}, {"math.ceil", ruleBySpecial<kCeil>}, {"math.trunc", ruleBySpecial<kTrunc>},
    {"math.gcd", ruleOnIndices}, {"math.lcm", ruleOnIndices}, {"math.factorial", ruleOnIndices}, {"math.comb", ruleOnIndices},
    {"math.perm", ruleOnIndices}, {"math.isqrt", ruleOnIndices},
};

}  // namespace

RuleRows builtinRules() { return {kBuiltinRows, std::size(kBuiltinRows)}; }

PyRef ruleText(Evaluation& e, PyObject* callable, const CallArguments& a) {
  static PyObject* const join = torchObject("builtins.str.join");
  if (callable == join && a.positional == 2 && a.total() == 2 && PyIter_Check(a.args[1])) {
    PyRef items = e.collect(a.args[1], true);  // texts may be among them that are not read
    PyObject* args[] = {a.args[0], items.get()};
    return items ? e.call(callable, args, 2, nullptr) : PyRef();
  }
  return e.callReal(callable, a, Evaluation::Asks::Text);
}

PyRef ruleOnFloats(Evaluation& e, PyObject* callable, const CallArguments& a) { return onNumbers(e, callable, a, {"__float__", "__index__"}); }

}  // namespace fusebox::capture
