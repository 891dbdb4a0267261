#include "engine/capture/entries/debug_facts.h"

#include <sstream>
#include <utility>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/debug/tensor_facts.h"

namespace fusebox::capture {
namespace {

std::string textOf(PyObject* name) {
  const char* s = utf8Of(name);
  return s ? s : "?";
}

using nlohmann::json;

constexpr Py_ssize_t kLongText = 200;
constexpr size_t kMaxRows = 1000;
constexpr int kCodeWindow = 24;

/// How the argument of an instruction is to be read.
enum class ArgumentKind : uint8_t { None, Number, Local, Name, Constant, Target };

ArgumentKind argumentKindOf(Op op) {
  switch (op) {
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
    case Op::LOAD_FAST_AND_CLEAR:
    case Op::STORE_FAST:
    case Op::DELETE_FAST:
    case Op::MAKE_CELL:
    case Op::LOAD_CLOSURE:
    case Op::LOAD_DEREF:
    case Op::STORE_DEREF:
    case Op::DELETE_DEREF:
    case Op::LOAD_CLASSDEREF:
      return ArgumentKind::Local;
    case Op::LOAD_GLOBAL:
    case Op::STORE_GLOBAL:
    case Op::DELETE_GLOBAL:
    case Op::LOAD_NAME:
    case Op::STORE_NAME:
    case Op::DELETE_NAME:
    case Op::LOAD_ATTR:
    case Op::LOAD_METHOD:
    case Op::STORE_ATTR:
    case Op::DELETE_ATTR:
    case Op::IMPORT_NAME:
    case Op::IMPORT_FROM:
      return ArgumentKind::Name;
    case Op::LOAD_CONST:
    case Op::RETURN_CONST:
    case Op::KW_NAMES:
      return ArgumentKind::Constant;
    case Op::NOP:
    case Op::CACHE:
    case Op::POP_TOP:
    case Op::PUSH_NULL:
    case Op::RETURN_VALUE:
    case Op::RESUME:
      return ArgumentKind::None;
    default:
      return ArgumentKind::Number;
  }
}

/// Index of the name: some instructions keep a flag in the lowest bit.
int nameIndex(const Instruction& i) {
  if (i.op == Op::LOAD_GLOBAL) return i.arg >> 1;
#if PY_VERSION_HEX >= 0x030C0000
  if (i.op == Op::LOAD_ATTR) return i.arg >> 1;
#endif
  return i.arg;
}

PyObject* itemOf(PyObject* tuple, int index) {
  return tuple && index >= 0 && index < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, index) : nullptr;
}

/// The contents of a cell that a local variable lives in.
PyObject* unboxed(PyObject* object, bool* isCell) {
  *isCell = object && PyCell_Check(object);
  return *isCell ? PyCell_GET(object) : object;
}

/// A stand-in while sizes are symbols: "Float[s0, 64] cpu".
std::string symbolicTensor(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << "[";
  const char* comma = "";
  for (const c10::SymInt& size : tensor.sym_sizes()) text << std::exchange(comma, ", ") << size;
  text << "] " << tensor.device();
  if (tensor.requires_grad()) text << " requires_grad";
  return text.str();
}

json valueRow(PyObject* object) {
  json row{{"value", object ? shortValue(object) : "(unbound)"}};
  if (object) row["type"] = Py_TYPE(object)->tp_name;
  if (object && isTensorObject(object)) {
    const TensorSpec spec = TensorSpec::of(object);
    clearError();
    if (spec.hasSizes) {
      row["dtype"] = c10::toString(static_cast<c10::ScalarType>(spec.dtype));
      row["sizes"] = spec.sizes;
    }
  }
  return row;
}

json localRow(PyCodeObject* code, size_t index, PyObject* object) {
  bool isCell = false;
  json row = valueRow(unboxed(object, &isCell));
  row["name"] = textOf(itemOf(code->co_localsplusnames, static_cast<int>(index)));
  if (isCell) row["cell"] = true;
  return row;
}

void addSource(json& row, Evaluation& e, PyObject* object) {
  const Origin* origin = object ? e.origin(object) : nullptr;
  if (!origin) {
    if (object && e.isStandIn(object)) row["source"] = "made while capturing";
    return;
  }
  if (origin->source)
    row["source"] = origin->source->label();
  else
    row["source"] = "made while capturing";
}

}  // namespace

std::string shortValue(PyObject* o) {
  if (PyUnicode_CheckExact(o) && PyUnicode_GET_LENGTH(o) > kLongText) {
    PyRef head = PyRef::steal(PyUnicode_Substring(o, 0, kLongText));
    return (head ? describeObject(head.get()) : "?") + " (" + std::to_string(PyUnicode_GET_LENGTH(o)) + " characters)";
  }
  if (PyBytes_CheckExact(o) && PyBytes_GET_SIZE(o) > kLongText)
    return "bytes of length " + std::to_string(PyBytes_GET_SIZE(o));
  if (PyLong_CheckExact(o) && _PyLong_NumBits(o) > 512)
    return "an integer of " + std::to_string(_PyLong_NumBits(o)) + " bits";
  if (isTensorObject(o) && tensorOf(o).unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return symbolicTensor(tensorOf(o));
  return describeObject(o);
}

std::string instructionText(const Frame& frame, const Instruction& i) {
  std::string text = name(i.op);
  if (i.op == Op::UNKNOWN) text = opcodeName(i.opcode);
  switch (argumentKindOf(i.op)) {
    case ArgumentKind::None:
      return text;
    case ArgumentKind::Local:
      return text + " " + textOf(itemOf(frame.code()->co_localsplusnames, i.arg));
    case ArgumentKind::Name:
      return text + " " + textOf(itemOf(frame.decoded->names.get(), nameIndex(i)));
    case ArgumentKind::Constant: {
      PyObject* constant = itemOf(frame.decoded->consts.get(), i.arg);
      return text + " " + (constant ? shortValue(constant) : "?");
    }
    default:
      if (i.target >= 0)
        return text + " to " + std::to_string(frame.decoded->instructions[static_cast<size_t>(i.target)].offset * 2);
      return text + " " + std::to_string(i.arg);
  }
}

json localsOf(Evaluation& e, const Frame& frame) {
  json rows = json::array();
  for (size_t i = 0; i < frame.locals.size() && rows.size() < kMaxRows; ++i) {
    PyObject* object = frame.locals[i].get();
    json row = localRow(frame.code(), i, object);
    const bool unread = frame.isRoot && i < frame.unread.size() && frame.unread[i];
    if (object && unread) {
      row["unread"] = true;  // nothing is guarded yet
      row["source"] = frame.unreadSource[i] ? frame.unreadSource[i]->label() : row["name"].get<std::string>();
    } else {
      addSource(row, e, object);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json stackOf(Evaluation& e, const Frame& frame) {
  json rows = json::array();
  for (size_t i = frame.stack.size(); i-- > 0 && rows.size() < kMaxRows;) {
    PyObject* object = frame.stack[i].get();
    json row = object ? valueRow(object) : json{{"value", "NULL"}};
    row["index"] = i;
    addSource(row, e, object);
    rows.push_back(std::move(row));
  }
  return rows;
}

json framesOf(const Evaluation& e) {
  json rows = json::array();
  for (const Frame* f = e.frame(); f && rows.size() < kMaxRows; f = f->caller)
    rows.push_back({{"function", utf8Of(f->code()->co_qualname)},
                    {"file", utf8Of(f->code()->co_filename)},
                    {"line", f->line()},
                    {"instruction", instructionText(*f, f->instruction())},
                    {"root", f->isRoot}});
  return rows;
}

json guardsOf(const GuardSet& set) {
  const auto& guards = set.guards();
  json rows = json::array();
  for (size_t i = guards.size() > kMaxRows ? guards.size() - kMaxRows : 0; i < guards.size(); ++i) {
    const Guard& guard = guards[i];
    rows.push_back({{"kind", name(guard.kind)},
                    {"source", guard.source ? guard.source->str() : ""},
                    {"expected", expectedText(guard, set)},
                    {"file", guard.place.file},
                    {"line", guard.place.line}});
  }
  return {{"count", guards.size()}, {"guards", std::move(rows)}};
}

json codeOf(const Frame& frame) {
  json rows = json::array();
  const auto& list = frame.decoded->instructions;
  const int last = std::min(static_cast<int>(list.size()), frame.pc + kCodeWindow);
  for (int i = std::max(0, frame.pc - kCodeWindow); i < last; ++i) {
    const Instruction& instruction = list[static_cast<size_t>(i)];
    if (instruction.op == Op::CACHE) continue;
    json row{{"offset", instruction.offset * 2},
             {"line", frame.decoded->lineOf(i)},
             {"text", instructionText(frame, instruction)}};
    if (i == frame.pc) row["current"] = true;
    rows.push_back(std::move(row));
  }
  return rows;
}

json localsOf(const FrameState& state) {
  json rows = json::array();
  const FrameView view = viewOf(state);
  for (int i = 0; i < view.localCount && rows.size() < kMaxRows; ++i) {
    json row = localRow(state.code, static_cast<size_t>(i), view.local(i));
    if (view.local(i)) row["source"] = row["name"];
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

/// `key` of `object`: an attribute in its dictionary or in those of a module, an element of a list, tuple or dict. Borrowed; null: none.
PyObject* keptIn(PyObject* object, const std::string& key) {
  const bool isIndex = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
  if (isIndex && (PyList_CheckExact(object) || PyTuple_CheckExact(object))) {
    const Py_ssize_t index = std::stoll(key);
    if (index >= PySequence_Fast_GET_SIZE(object)) return nullptr;
    return PySequence_Fast_GET_ITEM(object, index);
  }
  if (PyDict_CheckExact(object)) return PyDict_GetItemString(object, key.c_str());
  if (PyType_Check(object) || !Py_TYPE(object)->tp_dictoffset) return nullptr;
  const PyRef attributes = PyRef::steal(PyObject_GenericGetDict(object, nullptr));
  if (!attributes || !PyDict_Check(attributes.get())) {
    clearError();
    return nullptr;
  }
  if (PyObject* own = PyDict_GetItemString(attributes.get(), key.c_str())) return own;
  for (const char* kept : {"_parameters", "_buffers", "_modules"}) {
    PyObject* of = PyDict_GetItemString(attributes.get(), kept);
    if (of && PyDict_CheckExact(of))
      if (PyObject* found = PyDict_GetItemString(of, key.c_str())) return found;
  }
  return nullptr;
}

PyObject* localNamed(const FrameState& state, const std::string& name) {
  const FrameView view = viewOf(state);
  for (int i = 0; i < view.localCount; ++i) {
    bool isCell = false;
    if (textOf(itemOf(state.code->co_localsplusnames, i)) == name) return unboxed(view.local(i), &isCell);
  }
  return nullptr;
}

/// Borrowed.
Result<PyObject*> reached(const FrameState& state, const std::string& path) {
  size_t dot = path.find('.');
  PyObject* object = localNamed(state, path.substr(0, dot));
  while (object && dot != std::string::npos) {
    const size_t next = path.find('.', dot + 1);
    object = keptIn(object, path.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
    dot = next;
  }
  if (!object) return fail(ErrorCode::NotFound, "nothing is called that here", path.substr(0, 100));
  return object;
}

/// Adds what a dictionary has under names.
void addNamed(PyObject* dictionary, const std::string& path, json& rows) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dictionary, &at, &key, &value) && rows.size() < kMaxRows;) {
    if (!PyUnicode_Check(key)) continue;
    const std::string name = textOf(key);
    if (name.find('.') != std::string::npos || name.starts_with('_')) continue;  // what nobody else is to see
    json row = valueRow(value);
    row["name"] = path + "." + name;
    rows.push_back(std::move(row));
  }
}

}  // namespace

Result<json> contentOf(const FrameState& state, const std::string& path) {
  const auto object = reached(state, path);
  if (!object) return tl::unexpected(object.error());
  json rows = json::array();
  if (PyDict_CheckExact(*object)) {
    addNamed(*object, path, rows);
  } else if (PyList_CheckExact(*object) || PyTuple_CheckExact(*object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(*object) && rows.size() < kMaxRows; ++i) {
      json row = valueRow(PySequence_Fast_GET_ITEM(*object, i));
      row["name"] = path + "." + std::to_string(i);
      rows.push_back(std::move(row));
    }
  } else if (!PyType_Check(*object) && Py_TYPE(*object)->tp_dictoffset && !isTensorObject(*object)) {
    const PyRef attributes = PyRef::steal(PyObject_GenericGetDict(*object, nullptr));
    clearError();
    if (attributes && PyDict_Check(attributes.get())) {
      for (const char* kept : {"_parameters", "_buffers", "_modules"})
        if (PyObject* of = PyDict_GetItemString(attributes.get(), kept); of && PyDict_CheckExact(of)) addNamed(of, path, rows);
      addNamed(attributes.get(), path, rows);
    }
  }
  return rows;
}

Result<json> tensorOf(const FrameState& state, const std::string& path) {
  const auto found = reached(state, path);
  if (!found) return tl::unexpected(found.error());
  PyObject* const object = *found;
  if (!isTensorObject(object)) return fail(ErrorCode::NotFound, "it is no tensor: " + shortValue(object));
  const at::Tensor& tensor = tensorOf(object);
  const auto keys = tensor.key_set();
  const bool isPlain = tensor.layout() == at::kStrided && !tensor.is_conj() && !tensor.is_neg() && !tensor.is_quantized() &&
                       !keys.has(c10::DispatchKey::Python) && !keys.has(c10::DispatchKey::Fake) && tensor.has_storage();
  if (!isPlain) return fail(ErrorCode::NotFound, "it is no plain tensor in memory: " + shortValue(object));
  if (!tensor.device().is_cpu()) return fail(ErrorCode::NotFound, "it lies on " + tensor.device().str() + ", which is not read");
  return debug::tensorFacts({tensor.const_data_ptr(), c10::toString(tensor.scalar_type()), tensor.sizes(), tensor.strides()});
}

json stackOf(const FrameState& state) {
  json rows = json::array();
  for (size_t i = state.stack.size(); i-- > 0;) {
    PyObject* object = state.stack[i].get();
    json row = object ? valueRow(object) : json{{"value", "NULL"}};
    row["index"] = i;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::capture
