#include <limits>

#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"

namespace fusebox::capture {
namespace {

std::string rangeText(const ShapeGuards& shapes, const Guard& guard) {
  const NumberGuard& n = shapes.numbers[static_cast<size_t>(guard.number)];
  const graph::Symbol symbol = n.is.symbols().front();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const std::string text = n.at.str() + " (" + symbol.name() + ")";
  if (symbol.lower() != kLeast && symbol.upper() != kMost)
    return std::to_string(symbol.lower()) + " <= " + text + " <= " + std::to_string(symbol.upper());
  if (symbol.lower() != kLeast) return text + " >= " + std::to_string(symbol.lower());
  return symbol.upper() != kMost ? text + " <= " + std::to_string(symbol.upper()) : text + " is an int of 64 bits";
}

std::string relationText(const ShapeGuards& shapes, const Guard& guard) {
  const graph::Relation& relation = shapes.relations[static_cast<size_t>(guard.number)];
  const std::string text = shapes.text(relation);
  const auto& stack = relation.origin.stack;
  if (!stack || stack->empty()) return relation.reason.empty() ? text : text + ", asked by " + relation.reason;
  const graph::SourceLine& line = stack->back();
  return text + ", asked by " + (relation.reason.empty() ? "" : relation.reason + " in ") + line.file + ":" + std::to_string(line.line);
}

std::string keysText(PyObject* dict) {
  if (!PyDict_Check(dict)) return describeObject(dict);
  std::string text = "keys (";
  Py_ssize_t position = 0;
  PyObject *key, *value;
  int shown = 0;
  while (shown < 16 && PyDict_Next(dict, &position, &key, &value)) text += (shown++ ? ", " : "") + describeObject(key);
  return text + (PyDict_GET_SIZE(dict) > shown ? ", ...)" : ")");
}

std::string foundText(const Guard& guard, const GuardSet& set, PyObject* found) {
  switch (guard.kind) {
    case GuardKind::TypeMatch: return std::string("type ") + Py_TYPE(found)->tp_name;
    case GuardKind::TensorMatch: return set.tensorSpec(guard).difference(found);
    case GuardKind::SequenceLength:
    case GuardKind::DictLength:
    case GuardKind::DictEmpty: {
      const Py_ssize_t n = PyTuple_Check(found) || PyList_Check(found) || PyDict_Check(found) ? PyObject_Length(found) : -1;
      return n < 0 ? describeObject(found) : "length " + std::to_string(n);
    }
    case GuardKind::DictKeysMatch:
    case GuardKind::DictContains: return keysText(found);
    case GuardKind::DictLacks: return "the key is there";
    case GuardKind::TypeVersion: return "an attribute of the class or of a base was set or deleted";
    default: return describeObject(found);
  }
}

}  // namespace

std::string expectedText(const Guard& guard, const GuardSet& set) {
  if (guard.expected.isGone()) return "an object that is gone";
  PyObject* expected = guard.expected.get();
  switch (guard.kind) {
    case GuardKind::TypeMatch: return std::string("type ") + reinterpret_cast<PyTypeObject*>(expected)->tp_name;
    case GuardKind::IdMatch: return "the same object: " + describeObject(expected);
    case GuardKind::TensorMatch: return set.tensorSpec(guard).str();
    case GuardKind::SequenceLength:
    case GuardKind::DictLength: return "length " + std::to_string(guard.number);
    case GuardKind::DictKeysMatch: return "keys " + describeObject(expected);
    case GuardKind::DictContains: return "key " + describeObject(expected);
    case GuardKind::DictLacks: return "no key " + describeObject(expected);
    case GuardKind::DictEmpty: return "empty";
    case GuardKind::TypeVersion: return "class unchanged since capture: " + describeObject(expected);
    case GuardKind::SameObject: return "the same object as " + guard.other->str();
    case GuardKind::NotSameObject:
      return guard.other ? "another object than " + guard.other->str() : std::string("no two tensors the same object");
    case GuardKind::CodeMatch: return "the same code";
    case GuardKind::WeakrefAlive: return "alive";
    case GuardKind::GlobalState: return "state as captured";
    case GuardKind::SymbolRange: return rangeText(set.shapes(), guard);
    case GuardKind::SymbolMatch: {
      const NumberGuard& n = set.shapes().numbers[static_cast<size_t>(guard.number)];
      return n.at.str() + " == " + set.shapes().text(n.is);
    }
    case GuardKind::ShapeEnv: return relationText(set.shapes(), guard);
    case GuardKind::Custom: return guard.text;
    case GuardKind::ConstantMatch: return describeObject(expected);
  }
  return "";
}

void GuardTree::noteChanged(const FrameView& frame, int64_t failed, GuardFailure& failure) {
  for (; failed >= 0; failed = run(frame, static_cast<uint32_t>(failed) + 1, false)) {
    const Op op = ops_[static_cast<size_t>(failed)];
    ++failure.distance;
    if (op.guard == kNone || op.code < Op::Code::DictUnchanged) break;
    PyObject* found = registers_[op.from];
    const bool isConstant = op.code == Op::Code::ConstantMatch || (op.code == Op::Code::Custom && op.predicate == sameValue);
    // What is read behind a number or a tensor can be read of another one, too.
    if (op.code == Op::Code::TensorMatch ? Py_TYPE(found) != op.tensor->type : !isConstant || !Py_IS_TYPE(found, Py_TYPE(op.key))) break;
    if (op.code == Op::Code::TensorMatch) failure.distance += op.tensor->differences(found) - 1;
    const Source* source = set_->guards()[op.guard].source;
    if (isConstant && (PyFloat_CheckExact(found) || isNumpyScalar(Py_TYPE(found)))) failure.changedFloats.push_back(source);
    if (isConstant && PyUnicode_CheckExact(found)) failure.changedTexts.push_back(source);
  }
  if (failed >= 0) ++failure.distance;  // what lies behind is another thing, too
}

void GuardTree::release() {
  for (PyObject* o : owned_) Py_DECREF(o);
  owned_.clear();
}

GuardFailure GuardTree::explain(const FrameView& frame, const GlobalState& state) {
  GuardFailure failure;
  auto fill = [&](uint32_t index, std::string found) {
    const Guard& guard = set_->guards()[index];
    failure.guard = std::string(name(guard.kind)) + (guard.source ? " " + guard.source->str() : "");
    failure.expected = expectedText(guard, *set_);
    failure.found = std::move(found);
    failure.place = guard.place;
    failure.index = index;
  };
  if (running_) return failure;
  if (!*alive_) {
    failure.distance = std::numeric_limits<int>::max();
    for (uint32_t i = 0; i < set_->guards().size(); ++i) {
      const Guard& g = set_->guards()[i];
      if (g.expected.isGone() || (g.source && g.source->key.isGone())) {
        fill(i, "the object it was compiled for no longer exists");
        return failure;
      }
    }
    for (const auto& [object, watched] : watched_)
      if (PyWeakref_GetObject(watched.weak.get()) == Py_None) failure = {.guard = "WATCHED " + watched.what, .expected = "alive", .found = "it no longer exists", .distance = std::numeric_limits<int>::max()};
    return failure;
  }
  if (checksGlobalState_ && !(set_->globalState() == state)) {
    fill(globalStateGuard_, set_->globalState().difference(state));
    failure.expected = set_->globalState().ownSide(state);
    GuardFailure besides;
    if (state.functionModes == 0) noteChanged(frame, run(frame), besides);  // a mode of the program would be asked
    failure.distance = 1 + besides.distance;
    release();
    return failure;
  }
  const int64_t position = run(frame);
  if (position >= 0) {
    const Op op = ops_[static_cast<size_t>(position)];
    if (op.guard != kNone) {
      const bool isFetch = op.code < Op::Code::DictUnchanged;
      fill(op.guard, isFetch ? nodes_[op.to].source->str() + " is not there" : foundText(set_->guards()[op.guard], *set_, registers_[op.from]));
    } else {
      failure.guard = "READABLE " + nodes_[op.code < Op::Code::DictUnchanged ? op.to : op.from].source->str();
      failure.expected = "readable";
      failure.found = "not there";
    }
    noteChanged(frame, position, failure);
    countFailure(op);
  } else if (!allDistinct()) {
    for (uint32_t i = 0; i < distinct_.size(); ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (registers_[distinct_[i]] == registers_[distinct_[j]]) {
          for (uint32_t g : nodes_[distinct_[i]].guards)
            if (set_->guards()[g].kind == GuardKind::NotSameObject)
              fill(g, nodes_[distinct_[i]].source->str() + " is " + nodes_[distinct_[j]].source->str());
        }
  } else if (const int64_t guard = shapeProgram_ ? shapeProgram_->run(registers_.data()) : -1; guard >= 0) {
    fill(static_cast<uint32_t>(guard), shapeProgram_->found(set_->shapes(), guard));
  }
  if (position < 0 && !failure.guard.empty()) failure.distance = 1;
  release();
  return failure;
}

}  // namespace fusebox::capture
