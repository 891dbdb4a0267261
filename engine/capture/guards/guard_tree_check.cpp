#include "engine/capture/cpython/errors.h"
#include "engine/capture/guards/guard_tree_op.h"

#include <ATen/PythonTorchFunctionTLS.h>

#include <optional>

#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/container_iterators.h"
#include "engine/capture/evaluation/iterator_ahead.h"
#include "engine/capture/evaluation/distributed_tensors.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/taken_iterators.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

bool sameKeys(PyObject* dict, PyObject* keys) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  if (PyODict_Check(dict)) {
    // The order of an OrderedDict is a list of its own, which move_to_end changes.
    PyRef iterator = PyRef::steal(PyODict_Type.tp_iter(dict));
    for (Py_ssize_t i = 0; iterator && i < PyTuple_GET_SIZE(keys); ++i) {
      PyRef key = PyRef::steal(PyIter_Next(iterator.get()));
      if (!key || !sameConstant(key.get(), PyTuple_GET_ITEM(keys, i))) return clearError(), false;
    }
    return static_cast<bool>(iterator);
  }
  Py_ssize_t position = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!sameConstant(key, PyTuple_GET_ITEM(keys, i++))) return false;
  return true;
}

/// Length of a builtin container (or a subclass: the builtin part's), -1 for anything else.
int64_t lengthOf(PyObject* o) {
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyAnySet_Check(o)) return PySet_GET_SIZE(o);
  if (PyBytes_Check(o)) return PyBytes_GET_SIZE(o);
  if (PyByteArray_Check(o)) return PyByteArray_GET_SIZE(o);
  if (PyUnicode_Check(o)) return PyUnicode_GET_LENGTH(o);
  // The other C containers (deque, range) answer without Python code as long as their class stays as it is.
  PyTypeObject* type = Py_TYPE(o);
  if (!isChangeable(type) && type->tp_as_sequence && type->tp_as_sequence->sq_length)
    return type->tp_as_sequence->sq_length(o);
  return -1;
}

PyObject* itemOf(PyObject* sequence, int64_t index) {
  if (PyTuple_Check(sequence)) return index < PyTuple_GET_SIZE(sequence) ? PyTuple_GET_ITEM(sequence, index) : nullptr;
  if (PyList_Check(sequence)) return index < PyList_GET_SIZE(sequence) ? PyList_GET_ITEM(sequence, index) : nullptr;
  if (!isDeque(sequence) || index >= PyObject_Size(sequence)) return nullptr;
  return PyRef::steal(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(index))).get();  // the deque holds it
}

PyObject* keyAt(PyObject* dict, int64_t index) {
  if (PyODict_Check(dict)) {
    PyRef iterator = PyRef::steal(PyODict_Type.tp_iter(dict)), key;
    do key = PyRef::steal(PyIter_Next(iterator.get()));
    while (key && index-- > 0);
    return key.get();  // the dict holds it
  }
  Py_ssize_t position = 0;
  PyObject *key = nullptr, *value;
  while (PyDict_Next(dict, &position, &key, &value))
    if (index-- == 0) return key;
  return nullptr;
}


}  // namespace

bool GuardTree::check(const FrameView& frame, const GlobalState& state) {
  if (!*alive_ || running_ || (checksGlobalState_ && !(set_->globalState() == state))) return false;
  running_ = true;
  // Attributes of tensors are read as they are: the program's modes are not asked.
  const bool hasModes = state.functionModes > 0;
  const auto asked = hasModes ? at::impl::PythonTorchFunctionTLS::get_disabled_state() : at::impl::TorchFunctionDisabledState::ENABLED;
  if (hasModes) at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  const bool ok = run(frame) < 0 && allDistinct() && (!shapeProgram_ || shapeProgram_->run(registers_.data()) == -1);
  if (hasModes) at::impl::PythonTorchFunctionTLS::set_disabled_state(asked);
  running_ = false;
  for (PyObject* o : owned_) lent_.push_back(PyRef::steal(o));
  owned_.clear();
  if (!ok || !lends_) lent_.clear();
  return ok;
}

/// Position of the first step from `from` on that fails, -1 if none does. `allHeld`: none failed before, so that dictionaries are known to be as expected.
int64_t GuardTree::run(const FrameView& frame, uint32_t from, bool allHeld) {
  const auto end = static_cast<uint32_t>(ops_.size());
  for (uint32_t i = from; i < end; ++i) {
    Op& op = ops_[i];
    if (op.code == Op::Code::DictUnchanged) {
      PyObject* dict = registers_[op.from];
      if (!PyDict_Check(dict)) return i;
      if (dictVersion(dict) == op.tag) i = op.skip - 1;
      else op.tag = 0;
    } else if (op.code == Op::Code::DictCommit) {
      // An OrderedDict changes its order without a new version.
      PyObject* dict = registers_[op.from];
      ops_[op.skip].tag = PyODict_Check(dict) || !allHeld ? 0 : dictVersion(dict);
    } else if (op.code < Op::Code::DictUnchanged) {
      if (!fetch(op, frame)) return i;
    } else if (!checkOp(op)) {
      return i;
    }
  }
  return -1;
}

namespace {

PyObject* functionPart(PyObject* f, GuardTree::Op::Code code) {
  if (!PyFunction_Check(f)) return nullptr;
  using Code = GuardTree::Op::Code;
  switch (code) {
    case Code::FunctionCode: return PyFunction_GET_CODE(f);
    case Code::FunctionDefaults: return PyFunction_GET_DEFAULTS(f) ? PyFunction_GET_DEFAULTS(f) : Py_None;
    case Code::FunctionKwDefaults: return PyFunction_GET_KW_DEFAULTS(f) ? PyFunction_GET_KW_DEFAULTS(f) : Py_None;
    default: return PyFunction_GET_CLOSURE(f) ? PyFunction_GET_CLOSURE(f) : Py_None;
  }
}

}  // namespace

bool GuardTree::fetch(Op& op, const FrameView& frame) {
  using Code = Op::Code;
  PyObject* base = op.from == kNone ? nullptr : registers_[op.from];
  PyObject* o = nullptr;
  switch (op.code) {
    case Code::Local: o = frame.local(op.number); break;
    case Code::Stack: o = frame.onStack(op.number); break;
    case Code::Pinned: o = op.key; break;
    case Code::Weak: o = PyWeakref_GET_OBJECT(op.key); o = o == Py_None ? nullptr : o; break;
    case Code::FunctionMode: o = functionModeAt(op.number); break;
    case Code::Cell: o = PyCell_Check(base) ? PyCell_GET(base) : nullptr; break;
    case Code::InstanceDict: o = instanceDictOf(base); break;
    case Code::DictItem: o = PyDict_Check(base) ? _PyDict_GetItem_KnownHash(base, op.key, op.number) : nullptr; break;
    case Code::DictKey: o = PyDict_Check(base) ? keyAt(base, op.number) : nullptr; break;
    case Code::SequenceItem: o = itemOf(base, op.number); break;
    case Code::SlotAttr: {
      std::optional<ClassesNotAsked> off;
      if (isTensorObject(base) && Py_TYPE(base) != tensorType()) off.emplace();
      o = PyObject_GenericGetAttr(base, op.key);
      if (o) owned_.push_back(o);
      break;
    }
    case Code::Attr:
      o = PyObject_GetAttr(base, op.key);
      if (o) owned_.push_back(o);
      break;
    case Code::ClassAttr:
      // Held: what a check of a later step sets off may set the attribute.
      o = PyType_Check(base) ? Py_XNewRef(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(base), op.key)) : nullptr;
      if (o) owned_.push_back(o);
      break;
    case Code::TypeOf: o = reinterpret_cast<PyObject*>(Py_TYPE(base)); break;
    case Code::FunctionCode:
    case Code::FunctionDefaults:
    case Code::FunctionKwDefaults:
    case Code::FunctionClosure: o = functionPart(base, op.code); break;
    case Code::MethodSelf:
      o = PyMethod_Check(base) ? PyMethod_GET_SELF(base) : selfOfMethod(base);
      break;
    case Code::MethodFunction: o = PyMethod_Check(base) ? PyMethod_GET_FUNCTION(base) : nullptr; break;
    case Code::ViewDict: {
      DictWalk::Kind kind{};
      o = dictOfView(base, &kind);
      break;
    }
    case Code::TensorGrad:
      if (isTensorObject(base)) o = newTensorObject(tensorOf(base).grad());
      if (o) owned_.push_back(o);
      break;
    case Code::ArrayTensor:
      o = tensorOfArray(base);
      if (o) owned_.push_back(o);
      break;
    case Code::NestedValues:
      o = valuesOfNested(base).release();
      if (o) owned_.push_back(o);
      break;
    case Code::LocalTensor:
      o = localOfDistributed(base, op.key).release();
      if (o) owned_.push_back(o);
      break;
    case Code::Upcoming:
      o = PyIter_Check(base) ? upcoming(base).release() : nullptr;
      if (o) owned_.push_back(o);
      break;
    case Code::IteratorParts:
      o = partsOfIterator(base).release();
      if (o) owned_.push_back(o);
      break;
    default: break;
  }
  if (!o) {
    if (PyErr_Occurred()) clearError();
    return false;
  }
  registers_[op.to] = o;
  return true;
}

bool GuardTree::checkOp(Op& op) {
  using Code = Op::Code;
  PyObject* o = registers_[op.from];
  switch (op.code) {
    case Code::TypeMatch: return reinterpret_cast<PyObject*>(Py_TYPE(o)) == op.key;
    case Code::IdMatch: return o == op.key;
    case Code::ConstantMatch: return sameConstant(o, op.key);
    case Code::TensorMatch: return op.tensor->matches(o);
    case Code::SequenceLength: return lengthOf(o) == op.number;
    case Code::DictKeysMatch: return PyDict_Check(o) && sameKeys(o, op.key);
    case Code::DictLength: return PyDict_Check(o) && PyDict_GET_SIZE(o) == op.number;
    case Code::DictContains: return PyDict_Check(o) && _PyDict_GetItem_KnownHash(o, op.key, op.number);
    case Code::DictLacks: return PyDict_Check(o) && !_PyDict_GetItem_KnownHash(o, op.key, op.number) && !PyErr_Occurred();
    case Code::DictEmpty: return lengthOf(o) == 0;
    case Code::TypeVersion: return o == op.key && typeUnchanged(op);
    case Code::SameObject: return (o == registers_[op.to]) == (op.number != 0);
    case Code::CodeMatch:
      return PyFunction_Check(o) && PyFunction_GET_CODE(o) == op.key &&
             (op.number == 0 || reinterpret_cast<int64_t>(PyFunction_GET_GLOBALS(o)) == op.number);
    case Code::Alive: return o != Py_None;
    case Code::Custom: return op.predicate(o, op.key);
    default: return true;
  }
}

bool GuardTree::typeUnchanged(Op& op) {
  auto* type = reinterpret_cast<PyTypeObject*>(op.key);
  const uint32_t version = typeVersion(type);
  if (version != 0 && version == op.tag) return true;
  TypeSnapshot& snapshot = snapshots_[static_cast<size_t>(op.number)];
  if (!snapshot.matches(type)) return false;
  snapshot.version = assignTypeVersion(type);
  op.tag = snapshot.version;
  return true;
}

bool GuardTree::allDistinct() {
  const size_t n = distinct_.size();
  bool asBefore = true;
  for (size_t i = 0; i < n; ++i) asBefore &= registers_[distinct_[i]] == distinctSeen_[i];
  if (asBefore) return true;
  std::vector<PyObject*> sorted(n);
  for (size_t i = 0; i < n; ++i) sorted[i] = registers_[distinct_[i]];
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;
  for (size_t i = 0; i < n; ++i) distinctSeen_[i] = registers_[distinct_[i]];
  return true;
}

}  // namespace fusebox::capture
