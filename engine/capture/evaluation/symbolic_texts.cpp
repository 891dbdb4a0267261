#include "engine/capture/evaluation/symbolic_texts.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

struct TextObject {
  PyObject ob_base;
  PyRef callable;                 ///< null: the arguments are joined
  PyRef arguments;                ///< a tuple; null: the text is the program's
  PyRef plain;                    ///< what it is: once it is settled, or the program's
  const Source* source = nullptr; ///< of the program's, until it is settled
  Evaluation* reader = nullptr;   ///< of the program's
};

TextObject* textCast(PyObject* o) { return reinterpret_cast<TextObject*>(o); }

size_t alive = 0;

void textDealloc(PyObject* o) {
  --alive;
  textCast(o)->~TextObject();
  PyObject_Free(o);
}

/// C code that comes upon a text within an object gets it as it is, as with a number.
PyObject* plainOf(PyObject* o) {
  try {
    return settledText(o).release();
  } catch (const std::exception& error) {  // nothing of C++ may pass through CPython's code
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* textRepr(PyObject* o) {
  PyRef plain = PyRef::steal(plainOf(o));
  return plain ? PyObject_Repr(plain.get()) : nullptr;
}

Py_hash_t textHash(PyObject* o) {
  PyRef plain = PyRef::steal(plainOf(o));
  return plain ? PyObject_Hash(plain.get()) : -1;
}

PyObject* textCompare(PyObject* a, PyObject* b, int op) {
  PyRef left = isSymbolicText(a) ? PyRef::steal(plainOf(a)) : PyRef::borrow(a), right = isSymbolicText(b) ? PyRef::steal(plainOf(b)) : PyRef::borrow(b);
  return left && right ? PyObject_RichCompare(left.get(), right.get(), op) : nullptr;
}

PyTypeObject* textType() {
  static PyTypeObject type{PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name) return &type;
  type.tp_name = "fusebox.text";
  type.tp_basicsize = sizeof(TextObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_dealloc = textDealloc;
  type.tp_str = plainOf;
  type.tp_repr = textRepr;
  type.tp_hash = textHash;
  type.tp_richcompare = textCompare;
  if (PyType_Ready(&type) < 0) clearError();
  return &type;
}

PyRef newText(PyObject* callable, PyRef arguments) {
  auto* made = PyObject_New(TextObject, textType());
  if (!made) throw std::bad_alloc();
  ++alive;
  new (&made->callable) PyRef(callable ? PyRef::borrow(callable) : PyRef());
  new (&made->arguments) PyRef(std::move(arguments));
  new (&made->plain) PyRef();
  made->source = nullptr;
  made->reader = nullptr;
  return PyRef::steal(reinterpret_cast<PyObject*>(made));
}

PyObject* callableOf(TextBy by) {
  switch (by) {
    case TextBy::Str: return reinterpret_cast<PyObject*>(&PyUnicode_Type);
    case TextBy::Repr: return torchObject("builtins.repr");
    case TextBy::Ascii: return torchObject("builtins.ascii");
    case TextBy::Format: return torchObject("builtins.format");
    case TextBy::Percent: return torchObject("_operator.mod");
  }
  return nullptr;
}

PyRef argumentsOf(TextBy by, PyObject* number, PyObject* detail) {
  if (!detail) return PyRef::steal(PyTuple_Pack(1, number));
  return PyRef::steal(by == TextBy::Percent ? PyTuple_Pack(2, detail, number) : PyTuple_Pack(2, number, detail));
}

/// A text that stands in for one that is not known.
PyObject* sample() {
  static PyObject* const text = internedName("1");
  return text;
}

/// Whether it is that method of a builtin class, bound to an object.
bool isBoundOf(PyObject* callable, PyObject* method) {
  return PyCFunction_Check(callable) && Py_IS_TYPE(method, &PyMethodDescr_Type) &&
         reinterpret_cast<PyCFunctionObject*>(callable)->m_ml == reinterpret_cast<PyMethodDescrObject*>(method)->d_method;
}

/// The arguments with constants in the place of symbols.
PyRef settledPart(PyObject* part) {
  if (isSymbolicText(part)) return settledText(part);
  if (isSymbolicNumber(part)) return specialisedNumber(part, "its text is read");
  if (!PyTuple_CheckExact(part)) return PyRef::borrow(part);
  PyRef plain = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(part)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); ++i) {
    PyRef item = settledPart(PyTuple_GET_ITEM(part, i));
    if (!item) return {};
    PyTuple_SET_ITEM(plain.get(), i, item.release());
  }
  return plain;
}

/// Whether a text of a number of this type can be made, whatever its value is: 'c' asks for a character's number.
bool takes(TextBy by, PyTypeObject* type, PyObject* detail) {
  if (detail && PyUnicode_GET_LENGTH(detail) > 0 && PyUnicode_READ_CHAR(detail, PyUnicode_GET_LENGTH(detail) - 1) == 'c') return false;
  PyRef one = PyRef::steal(PyLong_FromLong(1)), example = PyRef::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), one.get()));
  PyRef made = example ? PyRef::steal(PyObject_CallObject(callableOf(by), argumentsOf(by, example.get(), detail).get())) : PyRef();
  clearError();
  return bool(made);
}

}  // namespace

PyObject* methodOfTexts(PyObject* name) {
  static constexpr const char* kNames[] = {"capitalize", "center", "expandtabs", "join",   "ljust", "lower", "lstrip",   "removeprefix", "removesuffix",
                                           "replace",    "rjust",  "rstrip",     "strip",  "swapcase", "title", "upper", "zfill"};
  const bool known = std::any_of(std::begin(kNames), std::end(kNames), [name](const char* n) { return PyUnicode_CompareWithASCIIString(name, n) == 0; });
  return known ? _PyType_Lookup(&PyUnicode_Type, name) : nullptr;
}

PyRef symbolicTextOfCall(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool isBound = PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) && PyUnicode_CheckExact(PyCFunction_GET_SELF(callable));
  if (a.kwNames || (!isBound && !Py_IS_TYPE(callable, &PyMethodDescr_Type))) return {};
  PyRef name = isBound ? PyRef::steal(PyUnicode_FromString(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name)) : PyRef::borrow(PyDescr_NAME(callable));
  PyObject* method = methodOfTexts(name.get());
  if (!method || (isBound ? !isBoundOf(callable, method) : method != callable)) return {};
  PyRef given = PyRef::steal(PyList_New(0)), samples = PyRef::steal(PyList_New(0));
  bool any = false;
  const auto add = [&](PyObject* o, PyObject* into, PyObject* intoSamples) {
    any = any || isSymbolicText(o);
    if (!isSymbolicText(o) && !isConstantValue(o)) return false;
    return PyList_Append(into, o) == 0 && PyList_Append(intoSamples, isSymbolicText(o) ? sample() : o) == 0;
  };
  // What center(), ljust() and rjust() fill with is one character, or they raise.
  static PyObject* const filling[] = {torchObject("builtins.str.center"), torchObject("builtins.str.ljust"), torchObject("builtins.str.rjust")};
  const size_t fill = isBound ? 1 : 2;
  if (a.total() > fill && isSymbolicText(a.args[fill]) && std::find(std::begin(filling), std::end(filling), method) != std::end(filling)) return {};
  if (isBound && !add(PyCFunction_GET_SELF(callable), given.get(), samples.get())) return {};
  for (PyObject* o : std::span(a.args.begin(), a.total())) {
    if ((PyList_CheckExact(o) || PyTuple_CheckExact(o)) && e.isFresh(o)) {
      PyRef parts = PyRef::steal(PyList_New(0)), partSamples = PyRef::steal(PyList_New(0));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        if (!add(e.element(o, i).get(), parts.get(), partSamples.get())) return clearError(), PyRef();
      PyList_Append(given.get(), PyRef::steal(PyList_AsTuple(parts.get())).get());
      PyList_Append(samples.get(), partSamples.get());
    } else if (!add(o, given.get(), samples.get())) {
      return clearError(), PyRef();
    }
  }
  if (!any) return {};
  PyRef made = PyRef::steal(PyObject_CallObject(method, PyRef::steal(PyList_AsTuple(samples.get())).get()));
  clearError();
  return made && PyUnicode_CheckExact(made.get()) ? newText(method, PyRef::steal(PyList_AsTuple(given.get()))) : PyRef();
}

bool anySymbolicTexts() { return alive > 0; }

bool handsTextsOn(PyObject* callable) {
  static PyObject* const all[] = {
      torchObject("builtins.print"),           torchObject("builtins.str"),           torchObject("builtins.format"),        torchObject("builtins.isinstance"),
      torchObject("builtins.type"),            torchObject("builtins.dict"),          torchObject("builtins.str.format"),    torchObject("builtins.list.append"),
      torchObject("builtins.list.insert"),     torchObject("builtins.dict.get"),      torchObject("builtins.dict.setdefault"), torchObject("builtins.dict.update"),
      torchObject("logging.Logger.debug"),     torchObject("logging.Logger.info"),    torchObject("logging.Logger.warning"), torchObject("logging.Logger.error"),
      torchObject("logging.Logger.critical")};
  return std::any_of(std::begin(all), std::end(all), [callable](PyObject* function) { return function == callable || isBoundOf(callable, function); });
}

bool isSymbolicText(PyObject* object) { return Py_IS_TYPE(object, textType()); }

PyRef newSymbolicText(TextBy by, PyObject* of, PyObject* detail) {
  if (!(isSymbolicText(of) || (isSymbolicNumber(of) && !isArrayScalar(of))) || !takes(by, pythonTypeOf(of), detail)) return {};
  return newText(callableOf(by), argumentsOf(by, of, detail));
}

PyRef newSymbolicText(Evaluation& e, PyObject* text, const Source* source) {
  e.guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(&PyUnicode_Type));
  PyRef made = newText(nullptr, PyRef());
  textCast(made.get())->plain = PyRef::borrow(text);
  textCast(made.get())->source = source;
  textCast(made.get())->reader = &e;
  return made;
}

PyRef joinedTexts(PyObject* parts) {
  const auto at = [&](Py_ssize_t i) { return PySequence_Fast_GET_ITEM(parts, i); };
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(parts);
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) any = any || isSymbolicText(at(i));
  if (!any) return PyRef::steal(PyUnicode_Join(PyRef::steal(PyUnicode_FromString("")).get(), parts));
  if (n == 1) return PyRef::borrow(at(0));
  PyRef flat = PyRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const bool join = isSymbolicText(at(i)) && !textCast(at(i))->callable && textCast(at(i))->arguments;
    const Py_ssize_t end = PyList_GET_SIZE(flat.get());
    if (join ? PyList_SetSlice(flat.get(), end, end, textCast(at(i))->arguments.get()) < 0 : PyList_Append(flat.get(), at(i)) < 0) return {};
  }
  return newText(nullptr, PyRef::steal(PyList_AsTuple(flat.get())));
}

TextParts partsOfText(PyObject* text) {
  const TextObject* t = textCast(text);
  return {t->callable.get(), t->arguments.get(), t->source ? nullptr : t->plain.get()};
}

PyRef settledText(PyObject* text) {
  TextObject* t = textCast(text);
  if (t->source) t->reader->guard(GuardKind::ConstantMatch, std::exchange(t->source, nullptr), t->plain.get());
  if (t->plain) return t->plain;
  PyRef arguments = settledPart(t->arguments.get());
  if (!arguments) return {};
  t->plain = t->callable ? PyRef::steal(PyObject_CallObject(t->callable.get(), arguments.get())) : joinedTexts(arguments.get());
  return t->plain;
}

}  // namespace fusebox::capture
