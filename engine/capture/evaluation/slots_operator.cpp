// Operators, comparison, formatting, names of globals and imports with provenance.
#include <array>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/numpy_warnings.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

struct OperatorNames {
  const char *forward, *reflected, *inPlace;
};
/// By CPython's NB_ number below NB_INPLACE_ADD.
constexpr OperatorNames kOperators[] = {
    {"__add__", "__radd__", "__iadd__"},          {"__and__", "__rand__", "__iand__"},
    {"__floordiv__", "__rfloordiv__", "__ifloordiv__"}, {"__lshift__", "__rlshift__", "__ilshift__"},
    {"__matmul__", "__rmatmul__", "__imatmul__"}, {"__mul__", "__rmul__", "__imul__"},
    {"__mod__", "__rmod__", "__imod__"},          {"__or__", "__ror__", "__ior__"},
    {"__pow__", "__rpow__", "__ipow__"},          {"__rshift__", "__rrshift__", "__irshift__"},
    {"__sub__", "__rsub__", "__isub__"},          {"__truediv__", "__rtruediv__", "__itruediv__"},
    {"__xor__", "__rxor__", "__ixor__"},
};

/// The function of Python's module operator.
std::string functionOf(int op) {
  const std::string_view method = op >= kFirstInPlace ? kOperators[op - kFirstInPlace].inPlace : kOperators[op].forward;
  const std::string name(method.substr(2, method.size() - 4));
  return name == "and" || name == "or" ? name + "_" : name;
}
bool isPlainContainer(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o); }

/// What `|` makes a union of, in C and without asking its operands for anything of theirs.
bool isUnionPart(PyObject* o) {
  static PyObject* const alias = torchObject("types.GenericAlias");
  static PyObject* const united = torchObject("types.UnionType");
  if (o == Py_None || Py_IS_TYPE(o, &PyType_Type) || Py_IS_TYPE(o, reinterpret_cast<PyTypeObject*>(united))) return true;
  auto* base = reinterpret_cast<PyTypeObject*>(alias);  // collections.abc.Callable[…] is of a subclass, which adds no operator
  return PyType_IsSubtype(Py_TYPE(o), base) && Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_or == base->tp_as_number->nb_or;
}

bool isView(PyObject* o) { return PyDictViewSet_Check(o) || PyDictValues_Check(o); }

/// Operators that change builtin containers, by CPython's NB_ numbers.
enum { kInPlaceAdd = kFirstInPlace, kInPlaceAnd = 14, kInPlaceMultiply = 18, kInPlaceOr = 20, kInPlaceSubtract = 23, kInPlaceXor = 25 };

/// Whether the class has a slot of its own for the operator; sequences add and repeat by others, which come last.
bool hasSlot(PyTypeObject* type, int op) {
  const PyNumberMethods* n = type->tp_as_number;
  if (!n) return false;
  const void* slots[] = {reinterpret_cast<void*>(n->nb_add), reinterpret_cast<void*>(n->nb_and), reinterpret_cast<void*>(n->nb_floor_divide),
                         reinterpret_cast<void*>(n->nb_lshift), reinterpret_cast<void*>(n->nb_matrix_multiply), reinterpret_cast<void*>(n->nb_multiply),
                         reinterpret_cast<void*>(n->nb_remainder), reinterpret_cast<void*>(n->nb_or), reinterpret_cast<void*>(n->nb_power),
                         reinterpret_cast<void*>(n->nb_rshift), reinterpret_cast<void*>(n->nb_subtract), reinterpret_cast<void*>(n->nb_true_divide),
                         reinterpret_cast<void*>(n->nb_xor)};
  return slots[op] != nullptr;
}

/// Whether the operator's own slot in C of `a`, whose class does not write it in Python, takes `b`: CPython asks it before what a class that
/// is no subclass of a's writes for the reflected operator.
bool takesNatively(int op, PyObject* a, PyObject* b) {
  if (!hasSlot(Py_TYPE(a), op)) return false;
  return takesOperand(a, b) || (PyODict_Check(a) && PyDict_Check(b)) || (PyTuple_Check(a) && PyTuple_Check(b));  // torch.Size is the tuple that has one
}

/// Whether `a op= b` changes `a` by its slot in C, which comes before what its class writes for the operator without "=".
bool changesNatively(int op, PyObject* a, PyObject* b) {
  if (PySet_Check(a)) return (op == kInPlaceAnd || op == kInPlaceOr || op == kInPlaceSubtract || op == kInPlaceXor) && PyAnySet_Check(b);
  if (PyDict_Check(a)) return op == kInPlaceOr && PyDict_Check(b);
  // A list's slots are those of a sequence, which come last, but in subclasses.
  return PyList_Check(a) && !PyList_CheckExact(a) && (op == kInPlaceAdd || (op == kInPlaceMultiply && PyLong_Check(b)));
}

/// A tuple or torch.Size with zeros for its symbolic ints, which says of what type a result is; other objects as they are.
PyRef withZeros(PyObject* o) {
  if (!PyTuple_Check(o)) return PyRef::borrow(o);
  PyRef tuple = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(o)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    PyObject* item = PyTuple_GET_ITEM(o, i);
    PyTuple_SET_ITEM(tuple.get(), i, isSymbolicInt(item) ? PyLong_FromLong(0) : Py_NewRef(item));
  }
  return isSizeObject(o) ? newSize(tuple.get()) : tuple;
}

/// Concatenation and repetition of a torch.Size with symbolic ints: the elements move as those of tuples do, the result has the type that
/// torch.Size gives.
PyRef moveSizes(int op, PyObject* a, PyObject* b) {
  PyRef x = withZeros(a), y = withZeros(b), like = PyRef::steal(evaluateBinary(op, x.get(), y.get()));
  if (!like || !PyTuple_Check(like.get())) return like;
  const auto exact = [&](PyObject* o) {
    if (!isSizeObject(o)) return PyRef::borrow(o);
    PyRef list = PyRef::steal(PySequence_List(o));
    return PyRef::steal(PyList_AsTuple(list.get()));
  };
  PyRef left = exact(a), right = exact(b), moved = PyRef::steal(evaluateBinary(op, left.get(), right.get()));
  return moved && isSizeObject(like.get()) ? newSize(moved.get()) : moved;
}

/// Whether an operator only moves the elements of lists, tuples or dicts into a new one: with nothing beside it, or once, a tuple is what it gives itself.
bool movesElements(int op, PyObject* a, PyObject* b) {
  const auto isSequence = [](PyObject* o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o); };
  const auto isEmpty = [](PyObject* o) { return PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) == 0; };
  const auto repeats = [&](PyObject* sequence, PyObject* times) {
    return isSequence(sequence) && PyLong_CheckExact(times) && !(PyTuple_CheckExact(sequence) && PyLong_AsLong(times) == 1);
  };
  if (op == kAdd) return isSequence(a) && Py_TYPE(a) == Py_TYPE(b) && !isEmpty(a) && !isEmpty(b);
  if (op == kOr) return PyDict_CheckExact(a) && PyDict_CheckExact(b);
  if (op != kMultiply) return false;
  const bool fits = repeats(a, b) || repeats(b, a);
  clearError();  // of a number that is too large
  return fits;
}

/// The function of numpy's that an operator of its arrays calls; null: another than these.
PyObject* ufuncOf(std::string_view function) {
  static constexpr std::pair<std::string_view, const char*> names[] = {
      {"add", "numpy.add"},       {"sub", "numpy.subtract"}, {"mul", "numpy.multiply"},          {"truediv", "numpy.true_divide"},
      {"mod", "numpy.remainder"}, {"pow", "numpy.power"},    {"floordiv", "numpy.floor_divide"}, {"matmul", "numpy.matmul"}};
  for (const auto& [own, ufunc] : names)
    if (own == function) return torchObject(ufunc);
  return nullptr;
}

}  // namespace

PyRef Evaluation::binary(int op, PyObject* givenA, PyObject* givenB) {
  constexpr int kAdd = 0;
  const auto isText = [](PyObject* o) { return PyUnicode_CheckExact(o) || isSymbolicText(o); };
  if ((isSymbolicText(givenA) || isSymbolicText(givenB)) && (op == kAdd || op == kFirstInPlace + kAdd) && isText(givenA) && isText(givenB))
    return joinedTexts(PyRef::steal(PyTuple_Pack(2, givenA, givenB)).get());
  if (op % kFirstInPlace == kRemainder && PyUnicode_CheckExact(givenA) && (isSymbolicNumber(givenB) || isSymbolicText(givenB))) return percent(givenA, givenB);
  const bool moves = movesElements(op, givenA, givenB), extends = op == kFirstInPlace + kAdd && PyList_CheckExact(givenA) && PyTuple_CheckExact(givenB);
  const PyRef wholeA = moves ? moved(givenA) : settled(givenA), wholeB = moves || extends ? moved(givenB) : settled(givenB);
  if (!wholeA || !wholeB) return {};
  PyObject *a = wholeA.get(), *b = wholeB.get();
  refuseAddress(a);
  refuseAddress(b);
  if (isTensor(a) && isArray(b) && op < kFirstInPlace) {
    // The tensor leaves it to the array.
    PyObject *ufunc = ufuncOf(functionOf(op)), *operands[] = {a, b};
    PyRef made = ufunc ? arrays_->call(ufunc, {operands, 2, nullptr}) : PyRef();
    if (made || PyErr_Occurred()) return made;
  }
  if (Arrays::any(a, b)) return arrays_->binary(op, functionOf(op), a, b);
  if (arrays_->meetsNumber(a, b)) {
    const PyRef left = arrays_->asNumpys(a), right = left ? arrays_->asNumpys(b) : PyRef();
    return right ? arrays_->binary(op, functionOf(op), left.get(), right.get()) : PyRef();
  }
  if ((isRaggedSize(a) && PyLong_CheckExact(b)) || (PyLong_CheckExact(a) && isRaggedSize(b))) return PyRef::steal(evaluateBinary(op, a, b));
  if (isSymbolicNumber(a) || isSymbolicNumber(b)) {
    TorchCalls::Scope scope(torchCalls_.get());
    if (std::optional<PyRef> made = symbolicBinary(op, a, b)) {
      // A graph has the tensor that a number is read from.
      const auto inGraph = [&](PyObject* o) {
        return torchCalls_ && isDeferred(o) && deferredNumber(o).op == DeferredNumber::kRead && deferredNumber(o).element < 0 ? deferredNumber(o).tensor.get() : o;
      };
      scope.doneAlone(op >= kFirstInPlace ? kOperators[op - kFirstInPlace].inPlace : kOperators[op].forward, {inGraph(a), inGraph(b)}, made->get());
      return *std::move(made);
    }
  } else if ((isNumber(a) || isNumber(b)) && !answersTorchFunctions(a) && !answersTorchFunctions(b)) {
    return numberBinary(op, a, b);
  }
  const bool inPlace = op >= kFirstInPlace;
  if ((inPlace ? op - kFirstInPlace : op) == kRemainder && PyUnicode_CheckExact(a) && !isConstantValue(b) && !(PyUnicode_Check(b) && pythonMethod(b, "__rmod__")))
    return percent(a, b);
  // A tensor changes in place by its class's own method, whatever the program has made of the operator without "=".
  const bool ownInPlace = inPlace && (isTensor(a) || isTensorObject(a)) && !pythonMethod(a, kOperators[op - kFirstInPlace].inPlace) &&
                           (isTensor(b) || !mayBePython(b) || takesNatively(op - kFirstInPlace, a, b));
  if (!ownInPlace && (mayBePython(a) || mayBePython(b))) {
    const OperatorNames& names = kOperators[inPlace ? op - kFirstInPlace : op];
    bool declined = false;
    PyObject* writing = inPlace ? pythonMethod(a, names.inPlace) : nullptr;
    if (writing) {
      PyRef result = tryBinary(writing, a, b, &declined);
      if (!declined) return result;
    }
    const bool inC = inPlace && !writing && changesNatively(op, a, b);
    // A subclass goes first where it has a reflected method of its own.
    const bool subclassFirst = Py_TYPE(a) != Py_TYPE(b) && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a)) &&
                               typeLookup(Py_TYPE(a), internedName(names.reflected)) != typeLookup(Py_TYPE(b), internedName(names.reflected));
    PyObject* reflected = !inC && Py_TYPE(a) != Py_TYPE(b) ? pythonMethod(b, names.reflected) : nullptr;
    if (reflected && subclassFirst) {
      PyRef result = tryBinary(reflected, b, a, &declined);
      if (!declined) return result;
      reflected = nullptr;
    }
    PyObject* forward = inC ? nullptr : pythonMethod(a, names.forward);
    if (forward) {
      PyRef result = tryBinary(forward, a, b, &declined);
      if (!declined) return result;
    }
    if (reflected && (forward || !takesNatively(inPlace ? op - kFirstInPlace : op, a, b))) {
      PyRef result = tryBinary(reflected, b, a, &declined);
      if (!declined) return result;
    }
  }
  if (answersTorchFunctions(a) || answersTorchFunctions(b)) {
    const OperatorNames& names = kOperators[inPlace ? op - kFirstInPlace : op];
    return operatorOfSubclass(*this, names.forward, names.reflected, inPlace ? names.inPlace : nullptr, a, b);
  }
  if (inPlace && (PyList_Check(a) || PyDict_Check(a) || PySet_Check(a))) {
    // A builtin container changes in place.
    if (PyList_Check(a) && op == kFirstInPlace) return extendByAny(a, b) ? PyRef::borrow(a) : PyRef();
    if (!isFresh(a)) return changeInPlace(op, a, b);
    know(b);
    refuseCallbacks(b, PyList_Check(a) ? Asks::Numbers : Asks::Keys);
    return checked(evaluateBinary(op, a, isTensor(b) || isView(b) ? expose(b).get() : b));
  }
  if (isConstantValue(a) && isConstantValue(b)) {
    PyRef result = PyRef::steal(evaluateBinary(op, a, b));
    if (result && PyObject_IS_GC(result.get())) adopt(result.get());
    return result;
  }
  if ((isPlainContainer(a) || PyLong_CheckExact(a)) && (isPlainContainer(b) || PyLong_CheckExact(b))) {
    // Concatenation, repetition, unions: elements are only moved.
    know(a);
    know(b);
    for (PyObject* operand : {a, b})
      if (PyAnySet_Check(operand) || PyDict_Check(operand)) refuseCallbacks(operand, Asks::Keys);
    const auto holds = [](PyObject* o) { return PyTuple_Check(o) && holdsSymbols(o); };
    if ((isSizeObject(a) || isSizeObject(b)) && (holds(a) || holds(b))) return moveSizes(op, a, b);
    return checked(evaluateBinary(op, a, b));
  }
  PyRef left = expose(a), right = expose(b);
  constexpr int kOr = 7;
  const bool isUnion = op == kOr && isUnionPart(a) && isUnionPart(b);
  for (PyObject* operand : {left.get(), right.get()})
    if (!isUnion && !isPlainContainer(operand)) refuseCallbacks(operand, Asks::Numbers);
  TorchCalls::Scope scope(torchCalls_.get());
  NumpyWarnings warnings(*this);
  warnings.watch(std::array{left.get(), right.get()}.data(), 2);
  PyRef result = original(checked(warnings.done(evaluateBinary(op, left.get(), right.get()))));
  scope.done(inPlace ? kOperators[op - kFirstInPlace].inPlace : kOperators[op].forward, {left.get(), right.get()}, result.get());
  return result;
}

/// a |= b and the like of a set, dict or list from outside.
PyRef Evaluation::changeInPlace(int op, PyObject* a, PyObject* b) {
  if (PyList_Check(a) && op == kInPlaceMultiply) {
    know(a);
    PyRef all = PyRef::steal(PySlice_New(nullptr, nullptr, nullptr)), contents = ownElements(a);
    PyRef times = plainNumber(b, "how often a list is repeated"), product = PyRef::steal(PyNumber_Multiply(contents.get(), times.get()));
    return product && storeElement(a, all.get(), product.get()) ? PyRef::borrow(a) : PyRef();
  }
  if (PyDict_Check(a) && op == kInPlaceOr) return updateDict(a, b) ? PyRef::borrow(a) : PyRef();
  const char* method = op == kInPlaceAnd ? "intersection_update" : op == kInPlaceOr ? "update" : op == kInPlaceSubtract ? "difference_update" : "symmetric_difference_update";
  if (!PyAnySet_Check(a) || !PyAnySet_Check(b) || (op != kInPlaceAnd && op != kInPlaceOr && op != kInPlaceSubtract && op != kInPlaceXor))
    breakHere("unsupported side effect", std::string("an operator that changes a ") + Py_TYPE(a)->tp_name + " in place");
  PyRef items = collect(b, true);
  PyObject* args[] = {a, items.get()};
  return items && mutate(_PyType_Lookup(&PySet_Type, internedName(method)), {args, 2, nullptr}) ? PyRef::borrow(a) : PyRef();
}

PyRef Evaluation::unary(Op op, PyObject* a) {
  refuseAddress(a);
  if (Arrays::is(a)) {
    PyRef made = arrays_->operate(op == Op::UNARY_NEGATIVE ? "neg" : op == Op::UNARY_INVERT ? "invert" : "pos", {a});
    return op == Op::UNARY_NEGATIVE && !isArray(a) ? madeByOperator(std::move(made), DeferredNumber::kNegate, a, nullptr) : made;
  }
  if (isNumber(a)) return numberUnary(op, a);
  const char* name = op == Op::UNARY_NEGATIVE ? "__neg__" : op == Op::UNARY_INVERT ? "__invert__" : "__pos__";
  if (PyObject* method = pythonMethod(a, name)) {
    PyObject* args[] = {a};
    return call(method, args, 1, nullptr);
  }
  if (answersTorchFunctions(a)) return methodOfSubclass(*this, name, {a});
  if (!isSymbolicNumber(a)) {
    requireKnown(a);
    refuseCallbacks(a, Asks::Numbers);
  }
  TorchCalls::Scope scope(torchCalls_.get());
  NumpyWarnings warnings(*this);
  warnings.watch(&a, 1);
  PyRef result = checked(warnings.done(op == Op::UNARY_NEGATIVE ? PyNumber_Negative(a) : op == Op::UNARY_INVERT ? PyNumber_Invert(a) : PyNumber_Positive(a)));
  scope.done(name, {a}, result.get());
  return result;
}

PyRef Evaluation::loadGlobal(Frame& f, PyObject* name) {
  if (!PyDict_CheckExact(f.globals) || !PyDict_CheckExact(f.builtins)) breakHere("unsupported global", "globals or builtins are no plain dict");
  pin(f.globals, Why::Owner);
  PyRef value = readDict(f.globals, name);
  if (value || PyErr_Occurred()) return value;
  pin(f.builtins, Why::Owner);
  value = readDict(f.builtins, name);
  if (value || PyErr_Occurred()) return value;
  nameNotDefined(name);
  return {};
}

bool Evaluation::storeGlobal(Frame& f, PyObject* name, PyObject* value) {
  pin(f.globals, Why::Owner);
  if (value) return storeKey(f.globals, name, value);
  return deleteKey(f.globals, name, [&] { nameNotDefined(name); });
}

PyRef Evaluation::loadCell(PyObject* cell) {
  PyObject* raw = PyCell_GET(cell);
  Origin* o = origins_.find(cell);
  if (!raw) return hasCellContents(cell), PyRef();
  if (!o || o->fresh() || o->written) return translate(raw, nullptr);
  return read(raw, sources().cellContents(o->source));
}

bool Evaluation::hasCellContents(PyObject* cell) {
  static constexpr auto kEmpty = [](PyObject* now, PyObject*) { return PyCell_Check(now) && !PyCell_GET(now); };
  static constexpr auto kFull = [](PyObject* now, PyObject*) { return PyCell_Check(now) && PyCell_GET(now); };
  const bool has = PyCell_GET(cell) != nullptr;
  if (const Origin* o = origins_.find(cell); o && o->source && !o->fresh() && !o->written)
    guardCustom(o->source, has ? +kFull : +kEmpty, nullptr, has ? "a cell that is not empty" : "an empty cell");
  return has;
}

void Evaluation::storeCell(PyObject* cell, PyObject* value) {
  if (isFresh(cell)) {
    PyCell_Set(cell, value);
    return;
  }
  openForWriting(cell);
  journal_.setCell(cell, value);
}

void Evaluation::readLocal(Frame& f, int index) {
  const auto i = static_cast<size_t>(index);
  f.unread[i] = false;
  if (f.locals[i]) f.locals[i] = read(f.locals[i].get(), unreadSource(f, i));
}

/// A module that nobody has imported is imported now, as it would be by this instruction, unless writes or prints before it wait for
/// the graph: PyTorch's own modules look at none. False: it raises, since there is none.
bool Evaluation::importFirst(PyObject* name) {
  PyObject* modules = PyImport_GetModuleDict();
  pin(modules, Why::Process);
  if (PyDict_GetItemWithError(modules, name)) return true;
  const std::string module = utf8Of(name);
  if (!module.starts_with("torch.") && (journal_.size() > 0 || trace_->wroteInputs())) breakHere("import", "module " + module + " is imported for the first time");
  {
    trace::NoTrace off;  // what a module does while it is imported is its own
    if (PyRef::steal(PyImport_Import(name))) return true;
  }
  // Neither the module nor a package that it is in may be there; a module that lacks something itself runs anew every time.
  const bool missing = PyErr_ExceptionMatches(PyExc_ModuleNotFoundError);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const PyRef error[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(traceback)};
  PyRef lacking = PyRef::steal(PyObject_GetAttrString(value, "name"));
  clearError();
  const std::string lacks = lacking && PyUnicode_Check(lacking.get()) ? utf8Of(lacking.get()) : "";
  if (!missing || (lacks != module && !module.starts_with(lacks + "."))) breakHere("import", "module " + module + " cannot be imported");
  readDict(modules, lacking.get());  // guarded to be missing still
  PyRef text = PyRef::steal(PyUnicode_FromFormat("No module named %R", lacking.get()));
  PyErr_SetImportErrorSubclass(PyExc_ModuleNotFoundError, text.get(), lacking.get(), nullptr);
  return false;
}

PyRef Evaluation::importName(Frame& f, PyObject* name, PyObject* fromList, PyObject* level) {
  PyObject* modules = PyImport_GetModuleDict();
  pin(modules, Why::Process);
  const long up = PyLong_AsLong(level);
  PyRef full = PyRef::borrow(name);
  if (up > 0) {
    PyObject* package = PyDict_GetItemString(f.globals, "__package__");
    if (!package || !PyUnicode_Check(package)) breakHere("import", "a relative import outside a package");
    std::string path = utf8Of(package);
    for (long k = 1; k < up; ++k) path = path.substr(0, path.rfind('.'));
    if (PyUnicode_GET_LENGTH(name) > 0) path += std::string(".") + utf8Of(name);
    full = PyRef::steal(PyUnicode_FromString(path.c_str()));
  }
  if (!importFirst(full.get())) return {};
  PyRef leaf = readDict(modules, full.get());
  if (!leaf) return {};
  const bool from = fromList != Py_None && PyObject_IsTrue(fromList) == 1;
  if (from) {
    // A submodule named in the list must be there already.
    for (Py_ssize_t i = 0; PyTuple_Check(fromList) && i < PyTuple_GET_SIZE(fromList); ++i) {
      PyRef found = getAttr(leaf.get(), PyTuple_GET_ITEM(fromList, i));
      clearError();
      if (!found) {
        const std::string part = std::string(utf8Of(full.get())) + "." + utf8Of(PyTuple_GET_ITEM(fromList, i));
        PyRef partName = PyRef::steal(PyUnicode_FromString(part.c_str()));
        PyRef path = PyRef::steal(PyObject_GetAttrString(leaf.get(), "__path__"));
        clearError();
        const bool imported = path && importFirst(partName.get());
        found = imported ? getAttr(leaf.get(), PyTuple_GET_ITEM(fromList, i)) : PyRef();
        clearError();
      }
      if (!found) breakHere("import", std::string("a name that ") + utf8Of(full.get()) + " does not have yet");
    }
    return leaf;
  }
  if (up > 0) return leaf;
  const std::string dotted = utf8Of(full.get());
  const size_t dot = dotted.find('.');
  if (dot == std::string::npos) return leaf;
  PyRef top = PyRef::steal(PyUnicode_FromString(dotted.substr(0, dot).c_str()));
  return readDict(modules, top.get());
}

PyRef Evaluation::importFrom(PyObject* module, PyObject* name) {
  PyRef value = getAttr(module, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  clearError();
  cannotImport(module, name);
  return {};
}

bool Evaluation::extendByAny(PyObject* list, PyObject* iterable) {
  if (runsProgram(iterable)) return extendList(list, iterable, true);
  PyRef items = collect(iterable, false, true);
  PyObject* args[] = {list, items.get()};
  return items && mutate(_PyType_Lookup(&PyList_Type, internedName("extend")), {args, 2, nullptr});
}

bool Evaluation::updateDict(PyObject* dict, PyObject* mapping) { return updateDictBy(dict, mapping, false); }

bool Evaluation::updateDictBy(PyObject* dict, PyObject* mapping, bool byItsClass) {
  const auto store = [&](PyObject* key, PyObject* value) { return byItsClass ? setItem(dict, key, value) : storeKey(dict, key, value); };
  if (PyDict_Check(mapping) && Py_TYPE(mapping)->tp_iter == PyDict_Type.tp_iter) {
    const PyRef given = moved(mapping);
    if (!given) return false;
    if (!byItsClass && isFresh(dict)) return PyDict_Update(dict, given.get()) == 0;
    PyRef items = itemsInOrder(given.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      if (!store(PyTuple_GET_ITEM(pair, 0), translate(PyTuple_GET_ITEM(pair, 1), nullptr).get())) return false;
    }
    return true;
  }
  PyRef keysMethod = getAttr(mapping, internedName("keys"));
  if (!keysMethod) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    clearError();
    PyRef iterator = iter(mapping);
    if (!iterator) return false;
    while (PyRef pair = next(iterator.get())) {
      PyRef items = collect(pair.get(), true);
      if (!items) return false;
      if (PyTuple_GET_SIZE(items.get()) != 2) {
        PyErr_SetString(PyExc_ValueError, "dictionary update sequence element has the wrong length");
        return false;
      }
      if (!store(PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_ITEM(items.get(), 1))) return false;
    }
    return !PyErr_Occurred();
  }
  PyRef keys = call(keysMethod.get(), nullptr, 0, nullptr);
  PyRef iterator = keys ? iter(keys.get()) : PyRef();
  if (!iterator) return false;
  while (PyRef key = next(iterator.get())) {
    PyRef value = getItem(mapping, key.get());
    if (!value || !store(key.get(), value.get())) return false;
  }
  return !PyErr_Occurred();
}

int Evaluation::exceptionMatches(PyObject* exception, PyObject* type) {
  if (!checkExceptionClasses(type)) return -1;
  return PyErr_GivenExceptionMatches(exception, type);
}

void Evaluation::willRaise(PyObject* exception) {
  if (!isFresh(exception)) breakHere("exception", "an exception that existed before is raised, which gives it another context and traceback");
}

void Evaluation::noteTraceback(Frame& frame) {
  if (frame.isRoot) lastRaise_ = rootCount_;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && caught_.emplace(value, rootCount_).second) keepAlive_.push_back(PyRef::borrow(value));
  PyErr_Restore(type, value, traceback);
}

int64_t Evaluation::raisedAt(PyObject* exception) const {
  auto it = caught_.find(exception);
  return it == caught_.end() ? -1 : it->second;
}

}  // namespace fusebox::capture
