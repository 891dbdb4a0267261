// Text of objects: str, repr, format(), f-strings, "%" and str.format. What Python code gives is evaluated, piece by piece.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

bool addPiece(PyObject* list, PyRef piece) { return piece && PyList_Append(list, piece.get()) == 0; }
PyRef text(const std::string& s) { return PyRef::steal(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()))); }

/// The special method of a Python class that makes text; borrowed, or null.
PyObject* textMethod(Evaluation& e, PyObject* object, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!isChangeable(type) || e.isTensor(object)) return nullptr;
  PyObject* method = e.typeLookup(type, internedName(name));
  if (!method || !PyFunction_Check(method)) return nullptr;
  e.pin(method, Why::Class);
  return method;
}

/// Whether a Python class has a __str__ of C that reads what the object holds itself: a scalar, a date.
bool hasOwnText(Evaluation& e, PyObject* object) {
  PyTypeObject *type = Py_TYPE(object), *base = builtinBase(type);
  if (!isPythonClass(type) || base == &PyBaseObject_Type || PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) || PyAnySet_Check(object))
    return false;
  static PyObject *const kStr = internedName("__str__"), *const plain = PyObject_GetAttr(reinterpret_cast<PyObject*>(&PyBaseObject_Type), kStr);
  PyObject* method = e.typeLookup(type, kStr);
  return method && method != plain && Py_IS_TYPE(method, &PyWrapperDescr_Type) && isValueObject(object);
}

bool isText(PyObject* o) { return PyUnicode_Check(o) || isSymbolicText(o); }

/// What ascii() makes of what repr() gives.
PyRef escaped(PyObject* text) {
  PyRef bytes = PyRef::steal(PyUnicode_AsEncodedString(text, "ascii", "backslashreplace"));
  return bytes ? PyRef::steal(PyUnicode_FromEncodedObject(bytes.get(), "ascii", "strict")) : PyRef();
}

bool isEmptyText(PyObject* o) { return PyUnicode_Check(o) && PyUnicode_GET_LENGTH(o) == 0; }

bool holdsSymbols(Evaluation& e, PyObject* container, int depth = 0) {
  constexpr int kDeepest = 16;
  const auto isOne = [&](PyObject* o) { return isSymbolicNumber(o) || isSymbolicText(o) || (depth < kDeepest && e.isFresh(o) && holdsSymbols(e, o, depth + 1)); };
  if (PyDict_CheckExact(container)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);)
      if (isOne(value)) return true;
    return false;
  }
  if (!PyTuple_CheckExact(container) && !PyList_CheckExact(container)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
    if (isOne(PySequence_Fast_GET_ITEM(container, i))) return true;
  return false;
}

/// Whether the text of all that a container holds is C's alone.
bool holdsPlainText(PyObject* o) {
  if (isConstantValue(o)) return true;
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!holdsPlainText(PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

/// Whether no address stands in what C code makes of an object as text.
bool hasKnownText(PyObject* o) {
  if (isConstantValue(o) || isIdentityValue(o) || isValueObject(o)) return true;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (PySequence_Fast_GET_ITEM(o, i) != o && !hasKnownText(PySequence_Fast_GET_ITEM(o, i))) return false;
    return true;
  }
  if (PyExceptionInstance_Check(o)) return hasKnownText(reinterpret_cast<PyBaseExceptionObject*>(o)->args);
  if (!PyDict_Check(o) && !PyAnySet_Check(o)) return false;
  PyRef parts = PyDict_Check(o) ? itemsInOrder(o) : ownElements(o);
  PyRef factory = PyDict_Check(o) && !PyDict_CheckExact(o) ? PyRef::steal(PyObject_GetAttrString(o, "default_factory")) : PyRef();
  clearError();
  return (!factory || hasKnownText(factory.get())) && hasKnownText(parts.get());
}

}  // namespace

PyRef Evaluation::format(PyObject* value, PyObject* spec) {
  if (isSymbolicText(value) && (!spec || isEmptyText(spec))) return PyRef::borrow(value);
  if (spec && isSymbolicText(spec)) return format(value, settled(spec).get());
  if (isSymbolicText(value))
    if (PyRef made = newSymbolicText(TextBy::Format, value, spec)) return made;
  if (PyRef whole = settled(value); whole.get() != value) return format(whole.get(), spec);
  refuseAddress(value);
  if (isNumber(value)) refuseNumber("formatted");
  if (isSymbolicNumber(value)) {
    const bool asText = !spec || isEmptyText(spec);
    if (PyRef made = newSymbolicText(asText ? TextBy::Str : TextBy::Format, value, asText ? nullptr : spec)) return made;
    PyRef plain = plainNumber(value, "its text is made");
    return plain ? format(plain.get(), spec) : PyRef();
  }
  if (isTensor(value)) breakHere("data-dependent value", "a tensor is formatted", "Print outside the compiled region.");
  if (PyObject* method = textMethod(*this, value, "__format__")) {
    PyRef empty = spec ? PyRef::borrow(spec) : PyRef::steal(PyUnicode_FromString(""));
    PyObject* args[] = {value, empty.get()};
    PyRef made = call(method, args, 2, nullptr);
    return expect(made, made && isText(made.get()), "__format__");
  }
  if (isConstantValue(value)) return PyRef::steal(PyObject_Format(value, spec));
  if (spec && PyUnicode_GET_LENGTH(spec) > 0) {
    PyRef exposed = expose(value);
    refuseCallbacks(exposed.get(), Asks::Text);
    return checked(PyObject_Format(exposed.get(), spec));
  }
  return convert('s', value);
}

PyRef Evaluation::convert(char conversion, PyObject* value) {
  if (isSymbolicText(value)) return conversion == 's' ? PyRef::borrow(value) : newSymbolicText(static_cast<TextBy>(conversion), value, nullptr);
  if (PyRef whole = settled(value); whole.get() != value) return convert(conversion, whole.get());
  refuseSubclassOperands(*this, value);
  refuseAddress(value);
  if (isNumber(value)) refuseNumber("formatted");
  if (isSymbolicNumber(value)) {
    if (PyRef made = newSymbolicText(static_cast<TextBy>(conversion), value, nullptr)) return made;
    PyRef plain = plainNumber(value, "its text is made");
    return plain ? convert(conversion, plain.get()) : PyRef();
  }
  if (isConstantValue(value))
    return PyRef::steal(conversion == 's' ? PyObject_Str(value) : conversion == 'r' ? PyObject_Repr(value) : PyObject_ASCII(value));
  if (isTensor(value)) breakHere("data-dependent value", "a tensor is turned into text", "Print outside the compiled region.");
  PyObject* method = conversion == 's' ? textMethod(*this, value, "__str__") : nullptr;
  // object.__str__ asks for the representation; another class's own, as int.__repr__ of an IntEnum, does not.
  if (conversion == 's' && !method && hasOwnText(*this, value)) {
    PyRef exposed = expose(value);
    return checked(PyObject_Str(exposed.get()));
  }
  if (!method) method = textMethod(*this, value, "__repr__");
  if (method) {
    PyObject* args[] = {value};
    PyRef made = call(method, args, 1, nullptr);
    made = expect(made, made && isText(made.get()), conversion == 's' ? "__str__" : "__repr__");
    return made && conversion == 'a' ? escaped(settled(made.get()).get()) : made;
  }
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value)) {
    PyRef made = textOfContainer(value);
    if (!made || conversion != 'a') return made;
    return escaped(settled(made.get()).get());
  }
  if (PyType_Check(value) || isIdentityValue(value) || isValueObject(value) || PyExceptionInstance_Check(value) || PyTuple_Check(value) ||
      PyList_Check(value) || PyDict_Check(value) || PyAnySet_Check(value)) {
    requireKnown(value);
    PyRef exposed = expose(value);
    refuseCallbacks(exposed.get(), Asks::Text);
    if (Py_TYPE(exposed.get()) != Py_TYPE(value)) breakHere("unsupported call", std::string("the text of a ") + Py_TYPE(value)->tp_name + " that holds numbers which change");
    if (!hasKnownText(exposed.get())) breakHere("unsupported call", std::string("the text of a ") + Py_TYPE(value)->tp_name + " holds an address");
    return checked(conversion == 's' ? PyObject_Str(exposed.get()) : PyObject_Repr(exposed.get()));
  }
  const reprfunc text = Py_TYPE(value)->tp_repr;
  const bool isUsual = text == PyBaseObject_Type.tp_repr || text == PyFunction_Type.tp_repr;
  // The class may be given another name, and a function another __qualname__.
  if (isUsual && !isFresh(value) && settleObject(value)) {
    PyObject* named = PyFunction_Check(value) ? value : reinterpret_cast<PyObject*>(Py_TYPE(value));
    PyRef module = PyFunction_Check(value) ? none() : getAttr(named, internedName("__module__")), name = getAttr(named, internedName("__qualname__"));
    if (!module || !name) return {};
    return PyRef::steal(conversion == 'a' ? PyObject_ASCII(value) : PyObject_Repr(value));
  }
  breakHere("unsupported call", std::string("the text of a ") + Py_TYPE(value)->tp_name + " depends on its address");
}

PyRef Evaluation::textOfContainer(PyObject* container) {
  // What the segment made of numbers that change is gone through as it is.
  PyRef exposed = isFresh(container) && holdsSymbols(*this, container) ? PyRef::borrow(container) : expose(container);
  if (holdsPlainText(exposed.get())) return PyRef::steal(PyObject_Repr(exposed.get()));
  if (Py_EnterRecursiveCall(" while a container is turned into text")) return {};
  struct Leave { ~Leave() { Py_LeaveRecursiveCall(); } } leave;
  PyRef pieces = PyRef::steal(PyList_New(0));
  bool ok = true;
  const auto comma = [&](bool first) { ok = ok && (first || addPiece(pieces.get(), text(", "))); };
  if (PyDict_Check(exposed.get())) {
    PyRef items = itemsInOrder(exposed.get());
    ok = addPiece(pieces.get(), text("{"));
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      comma(i == 0);
      ok = ok && addPiece(pieces.get(), convert('r', PyTuple_GET_ITEM(pair, 0))) && addPiece(pieces.get(), text(": ")) &&
           addPiece(pieces.get(), convert('r', PyTuple_GET_ITEM(pair, 1)));
    }
    ok = ok && addPiece(pieces.get(), text("}"));
  } else {
    const bool list = PyList_Check(exposed.get());
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(exposed.get());
    ok = addPiece(pieces.get(), text(list ? "[" : "("));
    for (Py_ssize_t i = 0; ok && i < n; ++i) {
      comma(i == 0);
      ok = ok && addPiece(pieces.get(), convert('r', PySequence_Fast_GET_ITEM(exposed.get(), i)));
    }
    ok = ok && addPiece(pieces.get(), text(list ? "]" : n == 1 ? ",)" : ")"));
  }
  return ok ? joinedTexts(pieces.get()) : PyRef();
}

namespace {

/// One "%" conversion of a format: "%(key)-5.2f" and what stands before it.
struct Conversion {
  std::string before, key, flags;  ///< `flags` with width, precision and length, as written
  bool keyed = false;
  int stars = 0;
  char type = 0;
};

/// The conversions of a format in ASCII-compatible UTF-8; false where CPython would raise.
bool parseConversions(const std::string& s, std::vector<Conversion>* list, std::string* rest) {
  Conversion next;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '%') {
      next.before += s[i];
      continue;
    }
    if (++i < s.size() && s[i] == '(') {
      int depth = 1;
      const size_t start = ++i;
      for (; i < s.size() && depth > 0; ++i) depth += s[i] == '(' ? 1 : s[i] == ')' ? -1 : 0;
      if (depth) return false;
      next.key = s.substr(start, i - start - 1);
      next.keyed = true;
    }
    for (; i < s.size() && std::string_view("#0- +*.123456789hlL").find(s[i]) != std::string_view::npos; ++i) {
      next.flags += s[i];
      next.stars += s[i] == '*';
    }
    if (i >= s.size()) return false;
    next.type = s[i];
    list->push_back(std::move(next));
    next = Conversion();
  }
  *rest = next.before;
  return true;
}

constexpr std::string_view kIntegers = "diuxXoc", kFloats = "eEfFgG";

}  // namespace

/// "..." % arguments with the conversions that would call Python done first, so that C code sees text and numbers only.
PyRef Evaluation::percent(PyObject* formatText, PyObject* arguments) {
  const char* utf8 = PyUnicode_AsUTF8(formatText);
  if (!utf8) {  // a lone surrogate
    clearError();
    PyRef exposed = expose(arguments);
    refuseCallbacks(exposed.get(), Asks::Text);
    return checked(PyUnicode_Format(formatText, exposed.get()));
  }
  std::vector<Conversion> conversions;
  std::string rest, made;
  if (!parseConversions(utf8, &conversions, &rest)) {
    refuseCallbacks(arguments, Asks::Text);
    return checked(PyUnicode_Format(formatText, arguments));
  }
  const bool many = PyTuple_Check(arguments);
  PyRef exposed = isSymbolicNumber(arguments) || isSymbolicText(arguments) || (many && isFresh(arguments)) ? PyRef::borrow(arguments) : expose(arguments);
  PyRef values = PyRef::steal(PyList_New(0)), pieces = PyRef::steal(PyList_New(0));
  Py_ssize_t at = 0;
  const Py_ssize_t given = many ? PyTuple_GET_SIZE(exposed.get()) : 1;
  bool keyed = false;
  // What stands before a symbolic text is done by itself.
  const auto flush = [&] {
    PyRef format = text(made), tuple = PyRef::steal(PyList_AsTuple(values.get()));
    made.clear();
    values = PyRef::steal(PyList_New(0));
    return format && tuple && addPiece(pieces.get(), checked(PyUnicode_Format(format.get(), tuple.get())));
  };
  for (const Conversion& c : conversions) {
    made += c.before;
    std::string own = "%" + c.flags;
    for (int k = 0; k < c.stars && many && at < given; ++k) PyList_Append(values.get(), expose(PyTuple_GET_ITEM(exposed.get(), at++)).get());
    if (c.type == '%') {
      made += own + '%';
      continue;
    }
    PyRef value;
    if (c.keyed) {
      keyed = true;
      PyRef key = text(c.key);
      value = getItem(arguments, key.get());
      if (!value) return {};
    } else {
      if (at >= given) {
        PyErr_SetString(PyExc_TypeError, "not enough arguments for format string");
        return {};
      }
      value = many ? element(exposed.get(), at) : PyRef::borrow(arguments);
      ++at;
    }
    if (isNumber(value.get())) refuseNumber("formatted");
    const bool isText = c.type == 's' || c.type == 'r' || c.type == 'a';
    const bool isOfInteger = kIntegers.find(c.type) != std::string_view::npos, isOfFloat = kFloats.find(c.type) != std::string_view::npos;
    own += c.type;
    if ((c.type == 'd' || c.type == 'i' || c.type == 'u') && isSymbolicFloat(value.get()) && !isDeferred(value.get())) value = symbolicRounded('t', value.get());
    if (!value) return {};
    PyRef symbolic;
    if (isSymbolicNumber(value.get()) && c.stars == 0 && !(isOfInteger && isSymbolicFloat(value.get())))
      symbolic = newSymbolicText(TextBy::Percent, value.get(), text(own).get());
    else if (isSymbolicText(value.get()) && isText && c.stars == 0)
      symbolic = newSymbolicText(TextBy::Percent, value.get(), text(own).get());
    if (symbolic) {
      if (!flush() || !addPiece(pieces.get(), symbolic)) return {};
      continue;
    }
    if (PyErr_Occurred()) return {};
    if (isText)
      value = convert(c.type, value.get());
    else if (isOfInteger)
      value = numberOf(value.get(), {c.type == 'd' || c.type == 'i' || c.type == 'u' ? "__int__" : "__index__", "__index__"});
    else if (isOfFloat)
      value = numberOf(value.get(), {"__float__", "__index__"});
    if (value) value = expose(value.get());
    if (!value || !addPiece(values.get(), value)) return {};
    made += "%" + c.flags + (isText ? 's' : c.type);
  }
  made += rest;
  for (; many && at < given; ++at) PyList_Append(values.get(), expose(PyTuple_GET_ITEM(exposed.get(), at)).get());  // too many: CPython's error
  const bool mapping = !many && !PyUnicode_Check(arguments) && PyMapping_Check(arguments);
  if (!many && !keyed && at < given && !mapping) PyList_Append(values.get(), expose(arguments).get());
  return flush() ? joinedTexts(pieces.get()) : PyRef();
}

namespace {

/// The fields of str.format and what they are filled with.
class Fields {
 public:
  Fields(Evaluation& e, const CallArguments& a, PyObject* mapping) : e_(e), a_(a), mapping_(mapping) {}

  PyRef fill(PyObject* format, int depth = 0) {
    static PyObject* const module = PyImport_ImportModule("_string");
    if (depth > 2) return PyErr_SetString(PyExc_ValueError, "Max string recursion exceeded"), PyRef();
    PyRef parser = PyRef::steal(PyObject_CallMethod(module, "formatter_parser", "O", format)), pieces = PyRef::steal(PyList_New(0));
    while (PyRef part = parser ? PyRef::steal(PyIter_Next(parser.get())) : PyRef()) {
      PyList_Append(pieces.get(), PyTuple_GET_ITEM(part.get(), 0));
      PyObject *name = PyTuple_GET_ITEM(part.get(), 1), *spec = PyTuple_GET_ITEM(part.get(), 2), *conversion = PyTuple_GET_ITEM(part.get(), 3);
      if (name == Py_None) continue;
      PyRef value = field(module, name);
      if (value && conversion != Py_None) {
        const Py_UCS4 how = PyUnicode_READ_CHAR(conversion, 0);
        if (how != 's' && how != 'r' && how != 'a') {
          const bool isShown = how > 32 && how < 127;
          PyErr_Format(PyExc_ValueError, isShown ? "Unknown conversion specifier %c" : "Unknown conversion specifier \\x%x", static_cast<int>(how));
          return {};
        }
        value = e_.convert(static_cast<char>(how), value.get());
      }
      PyRef filled = value ? fill(spec, depth + 1) : PyRef();
      if (!filled || !addPiece(pieces.get(), e_.format(value.get(), filled.get()))) return {};
    }
    return PyErr_Occurred() ? PyRef() : joinedTexts(pieces.get());
  }

 private:
  PyRef field(PyObject* module, PyObject* name) {
    PyRef split = PyRef::steal(PyObject_CallMethod(module, "formatter_field_name_split", "O", name));
    if (!split) return {};
    PyRef value = first(PyTuple_GET_ITEM(split.get(), 0));
    PyRef path = PyRef::steal(PyObject_GetIter(PyTuple_GET_ITEM(split.get(), 1)));
    while (value) {
      PyRef step = PyRef::steal(PyIter_Next(path.get()));
      if (!step) break;
      PyRef key = PyRef::borrow(PyTuple_GET_ITEM(step.get(), 1));
      if (PyTuple_GET_ITEM(step.get(), 0) == Py_True) {
        PyObject* interned = key.release();
        PyUnicode_InternInPlace(&interned);
        key = PyRef::steal(interned);
        value = e_.getAttr(value.get(), key.get());
      } else {
        value = e_.getItem(value.get(), key.get());
      }
    }
    return PyErr_Occurred() ? PyRef() : value;
  }

  PyRef first(PyObject* name) {
    if (PyLong_Check(name) || PyUnicode_GET_LENGTH(name) == 0) {
      if (mapping_) return PyErr_SetString(PyExc_ValueError, "Format string contains positional fields"), PyRef();
      const size_t index = PyLong_Check(name) ? PyLong_AsSize_t(name) : next_++;
      if (index + 1 < a_.positional) return PyRef::borrow(a_.args[index + 1]);
      PyErr_Format(PyExc_IndexError, "Replacement index %zu out of range for positional args tuple", index);
      return {};
    }
    if (mapping_) return e_.getItem(mapping_, name);
    const char* text = utf8Of(name);
    if (PyObject* value = text ? a_.keyword(text) : nullptr) return PyRef::borrow(value);
    PyErr_SetObject(PyExc_KeyError, name);
    return {};
  }

  Evaluation& e_;
  const CallArguments& a_;
  PyObject* mapping_;
  size_t next_ = 0;
};

}  // namespace

PyRef Evaluation::formatFields(PyObject* formatText, const CallArguments& a, PyObject* mapping) {
  return Fields(*this, a, mapping).fill(formatText);
}

}  // namespace fusebox::capture
