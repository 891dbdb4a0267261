#include "engine/capture/guards/guard_tree.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

/// Called when a weakly held object dies; `self` is a capsule with the tree's liveness flag.
PyObject* objectDied(PyObject* self, PyObject*) {
  **static_cast<std::shared_ptr<bool>*>(PyCapsule_GetPointer(self, nullptr)) = false;
  Py_RETURN_NONE;
}
PyMethodDef kObjectDied = {"fusebox_guarded_object_died", objectDied, METH_O, nullptr};

void freeFlag(PyObject* capsule) { delete static_cast<std::shared_ptr<bool>*>(PyCapsule_GetPointer(capsule, nullptr)); }

/// Objects whose class cannot be changed by assignment, so that a dictionary that did not change still holds the same type.
bool classIsFixed(PyObject* type) {
  return PyType_Check(type) && !isChangeable(reinterpret_cast<PyTypeObject*>(type));
}

bool isSequenceRead(const Source* s) { return s->kind == Source::Kind::SequenceItem; }

/// Objects that fetching may make, which nothing but the check then holds.
bool isMadeByCheck(Source::Kind kind) {
  using Kind = Source::Kind;
  static constexpr Kind kMade[] = {Kind::Upcoming, Kind::IteratorParts, Kind::SlotAttr, Kind::Attr, Kind::ClassAttr, Kind::TensorGrad, Kind::ArrayTensor,
                                   Kind::NestedValues, Kind::LocalTensor};
  return std::find(std::begin(kMade), std::end(kMade), kind) != std::end(kMade);
}

bool readsDict(const Source* s) { return s->kind == Source::Kind::DictItem; }

}  // namespace

GuardTree::GuardTree(std::shared_ptr<GuardSet> set, const std::vector<const Source*>& outputs)
    : set_(std::move(set)), alive_(std::make_shared<bool>(true)) {
  build(outputs);
  flatten();
}

GuardTree::~GuardTree() = default;

size_t GuardTree::operationCount() const { return ops_.size() + (shapeProgram_ ? shapeProgram_->stepCount() : 0); }

uint32_t GuardTree::nodeOf(const Source* source) {
  int32_t& known = nodeOfSource_[source->id];
  if (known >= 0) return static_cast<uint32_t>(known);
  const auto position = static_cast<uint32_t>(nodes_.size());
  known = static_cast<int32_t>(position);
  nodes_.emplace_back();
  nodes_.back().source = source;
  if (source->base) {
    const uint32_t parent = nodeOf(source->base);
    nodes_[parent].children.push_back(position);
  } else {
    roots_.push_back(position);
  }
  return position;
}

void GuardTree::build(const std::vector<const Source*>& outputs) {
  nodeOfSource_.assign(set_->sources().size(), -1);
  auto& guards = const_cast<std::vector<Guard>&>(set_->guards());
  for (uint32_t i = 0; i < guards.size(); ++i) {
    Guard& guard = guards[i];
    if (guard.kind == GuardKind::GlobalState) {
      checksGlobalState_ = true;
      globalStateGuard_ = i;
      continue;
    }
    if (guard.kind == GuardKind::ShapeEnv) continue;
    const uint32_t node = nodeOf(guard.source);
    if (guard.kind == GuardKind::SymbolRange || guard.kind == GuardKind::SymbolMatch) {
      nodes_[node].referenced = true;
      continue;
    }
    nodes_[node].guards.push_back(i);
    if (guard.other) nodes_[nodeOf(guard.other)].referenced = true;
    if (guard.kind == GuardKind::NotSameObject && !guard.other) {
      nodes_[node].referenced = true;
      distinct_.push_back(node);
    }
  }
  for (const Source* source : outputs) {
    const uint32_t node = nodeOf(source);
    nodes_[node].referenced = true;
    outputRegisters_.push_back(node);
    for (const Source* s = source; s && !lends_; s = s->base) lends_ = isMadeByCheck(s->kind);
  }
  buildShapes();
  distinctSeen_.assign(distinct_.size(), nullptr);
  registers_.assign(nodes_.size(), nullptr);
}

void GuardTree::buildShapes() {
  const ShapeGuards& shapes = set_->shapes();
  if (shapes.empty()) return;
  ShapeProgram::Places places;
  places.numberGuards.assign(shapes.numbers.size(), kNone);
  places.relationGuards.assign(shapes.relations.size(), kNone);
  for (const NumberGuard& n : shapes.numbers) places.objects.push_back(nodeOf(n.at.source));
  for (uint32_t i = 0; i < set_->guards().size(); ++i) {
    const Guard& guard = set_->guards()[i];
    const auto at = static_cast<size_t>(guard.number);
    if (guard.kind == GuardKind::ShapeEnv) places.relationGuards[at] = i;
    if (guard.kind == GuardKind::SymbolRange || guard.kind == GuardKind::SymbolMatch) places.numberGuards[at] = i;
  }
  shapeProgram_ = std::make_unique<ShapeProgram>(shapes, places);
}

namespace {

/// "function make at model.py:12", "a Config".
std::string describedObject(PyObject* object) {
  if (PyFunction_Check(object)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(object));
    const std::string file = utf8Of(code->co_filename);
    return std::string("function ") + utf8Of(code->co_qualname) + " at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(code->co_firstlineno);
  }
  if (PyType_Check(object)) return std::string("class ") + reinterpret_cast<PyTypeObject*>(object)->tp_name;
  return std::string("a ") + Py_TYPE(object)->tp_name;
}

}  // namespace

bool isWeaklyReferred(PyObject* object) {
  if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) return false;
  const auto isWatch = [](PyObject* callback) { return callback && PyCFunction_Check(callback) && PyCFunction_GET_FUNCTION(callback) == objectDied; };
  PyWeakReference* weak = *reinterpret_cast<PyWeakReference**>(PyObject_GET_WEAKREFS_LISTPTR(object));
  while (weak && isWatch(weak->wr_callback)) weak = weak->wr_next;
  return weak;
}

PyRef GuardTree::watch(PyObject* object) {
  if (!object || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) return {};
  if (auto known = watched_.find(object); known != watched_.end()) return known->second.weak;
  if (!objectDied_) {
    PyRef capsule = PyRef::steal(PyCapsule_New(new std::shared_ptr<bool>(alive_), nullptr, freeFlag));
    objectDied_ = PyRef::steal(PyCFunction_New(&kObjectDied, capsule.get()));
  }
  PyRef weak = PyRef::steal(PyWeakref_NewRef(object, objectDied_.get()));
  if (!weak) clearError();
  else watched_.emplace(object, Watched{weak, describedObject(object)});
  return weak;
}

uint32_t GuardTree::firstGuard(uint32_t node) const {
  if (!nodes_[node].guards.empty()) return nodes_[node].guards.front();
  for (uint32_t child : nodes_[node].children)
    if (const uint32_t g = firstGuard(child); g != kNone) return g;
  return kNone;
}

/// Whether nothing below `node` can change while the dictionary that holds it does not.
bool GuardTree::isStable(uint32_t node) const {
  const Node& n = nodes_[node];
  if (n.referenced) return false;
  bool isTuple = false;
  for (uint32_t g : n.guards) {
    const Guard& guard = set_->guards()[g];
    switch (guard.kind) {
      case GuardKind::IdMatch:
      case GuardKind::ConstantMatch: break;
      case GuardKind::TypeMatch:
        if (!classIsFixed(guard.expected.get())) return false;
        isTuple |= guard.expected.get() == reinterpret_cast<PyObject*>(&PyTuple_Type);
        break;
      case GuardKind::SequenceLength:
        if (!isTuple) return false;
        break;
      default: return false;
    }
  }
  return std::all_of(n.children.begin(), n.children.end(),
                     [&](uint32_t c) { return isTuple && isSequenceRead(nodes_[c].source) && isStable(c); });
}

void GuardTree::flatten() {
  ops_.clear();
  auto byFailures = [&](uint32_t a, uint32_t b) { return nodes_[a].failures > nodes_[b].failures; };
  if (failures_) {
    std::stable_sort(roots_.begin(), roots_.end(), byFailures);
    for (Node& n : nodes_) std::stable_sort(n.children.begin(), n.children.end(), byFailures);
  }
  for (uint32_t root : roots_) emitNode(root, false);
  // These read two registers, so they come when all are filled.
  for (uint32_t i = 0; i < set_->guards().size(); ++i) {
    const Guard& g = set_->guards()[i];
    if (!g.other || (g.kind != GuardKind::SameObject && g.kind != GuardKind::NotSameObject)) continue;
    Op op;
    op.code = Op::Code::SameObject;
    op.from = nodeOf(g.source);
    op.to = nodeOf(g.other);
    op.number = g.kind == GuardKind::SameObject;
    op.guard = i;
    ops_.push_back(op);
  }
}

void GuardTree::emitNode(uint32_t position, bool fetched) {
  if (!fetched) emitFetch(position);
  const Node& n = nodes_[position];
  const bool guardsDict = std::any_of(n.children.begin(), n.children.end(), [&](uint32_t c) { return readsDict(nodes_[c].source); }) ||
                          std::any_of(n.guards.begin(), n.guards.end(), [&](uint32_t g) {
                            const GuardKind k = set_->guards()[g].kind;
                            return k == GuardKind::DictContains || k == GuardKind::DictLacks || k == GuardKind::DictKeysMatch;
                          });
  if (!guardsDict) {
    emitChecks(position);
    for (uint32_t child : n.children) emitNode(child, false);
    return;
  }
  const auto unchanged = static_cast<uint32_t>(ops_.size());
  Op op;
  op.code = Op::Code::DictUnchanged;
  op.from = position;
  op.guard = firstGuard(position);
  ops_.push_back(op);
  emitChecks(position);
  std::vector<uint32_t> changing;
  for (uint32_t child : n.children) {
    if (!readsDict(nodes_[child].source)) {
      changing.push_back(child);
    } else if (isStable(child)) {
      emitNode(child, false);
    } else {
      // Fetched inside the skipped part: the register keeps the object, which an unchanged dictionary still holds.
      emitFetch(child);
      changing.push_back(child);
    }
  }
  op.code = Op::Code::DictCommit;
  op.skip = unchanged;
  ops_.push_back(op);
  ops_[unchanged].skip = static_cast<uint32_t>(ops_.size());
  for (uint32_t child : changing) emitNode(child, readsDict(nodes_[child].source));
}

namespace {

/// A tensor's is its address, which torch says in Python.
Py_hash_t hashOfKey(PyObject* key) {
  return isTensorObject(key) ? static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(key)) : PyObject_Hash(key);
}

}  // namespace

void GuardTree::emitFetch(uint32_t position) {
  using Kind = Source::Kind;
  using Code = Op::Code;
  static constexpr std::pair<Kind, Code> kCodes[] = {
      {Kind::Local, Code::Local}, {Kind::Stack, Code::Stack}, {Kind::Pinned, Code::Pinned}, {Kind::GlobalWeak, Code::Weak},
      {Kind::CellContents, Code::Cell}, {Kind::InstanceDict, Code::InstanceDict}, {Kind::DictItem, Code::DictItem},
      {Kind::DictKey, Code::DictKey}, {Kind::SequenceItem, Code::SequenceItem}, {Kind::SlotAttr, Code::SlotAttr},
      {Kind::Attr, Code::Attr}, {Kind::ClassAttr, Code::ClassAttr}, {Kind::TypeOf, Code::TypeOf}, {Kind::FunctionCode, Code::FunctionCode},
      {Kind::FunctionDefaults, Code::FunctionDefaults}, {Kind::FunctionKwDefaults, Code::FunctionKwDefaults},
      {Kind::FunctionClosure, Code::FunctionClosure}, {Kind::MethodSelf, Code::MethodSelf},
      {Kind::MethodFunction, Code::MethodFunction}, {Kind::ViewDict, Code::ViewDict}, {Kind::TensorGrad, Code::TensorGrad},
      {Kind::ArrayTensor, Code::ArrayTensor}, {Kind::NestedValues, Code::NestedValues}, {Kind::LocalTensor, Code::LocalTensor},
      {Kind::Upcoming, Code::Upcoming}, {Kind::IteratorParts, Code::IteratorParts},
      {Kind::FunctionMode, Code::FunctionMode}};
  const Source* source = nodes_[position].source;
  Op op;
  for (const auto& [kind, code] : kCodes)
    if (kind == source->kind) op.code = code;
  op.to = position;
  op.from = source->base ? nodeOf(source->base) : kNone;
  op.key = source->key.get();
  op.number = source->index;
  if (source->kind == Kind::DictItem) {
    op.number = hashOfKey(op.key);
    if (PyErr_Occurred()) clearError();
  }
  op.guard = firstGuard(position);
  if (source->kind == Kind::Pinned) {
    registers_[position] = op.key;  // never changes: no step at run time
    return;
  }
  ops_.push_back(op);
}

void GuardTree::emitChecks(uint32_t position) {
  using Code = Op::Code;
  static constexpr std::pair<GuardKind, Code> kCodes[] = {
      {GuardKind::TypeMatch, Code::TypeMatch}, {GuardKind::IdMatch, Code::IdMatch}, {GuardKind::ConstantMatch, Code::ConstantMatch},
      {GuardKind::TensorMatch, Code::TensorMatch}, {GuardKind::SequenceLength, Code::SequenceLength},
      {GuardKind::DictKeysMatch, Code::DictKeysMatch}, {GuardKind::DictLength, Code::DictLength},
      {GuardKind::DictContains, Code::DictContains}, {GuardKind::DictLacks, Code::DictLacks},
      {GuardKind::DictEmpty, Code::DictEmpty}, {GuardKind::TypeVersion, Code::TypeVersion}, {GuardKind::CodeMatch, Code::CodeMatch},
      {GuardKind::WeakrefAlive, Code::Alive}, {GuardKind::Custom, Code::Custom}};
  const auto& guards = nodes_[position].guards;
  const bool isWhole = std::any_of(guards.begin(), guards.end(), [this](uint32_t g) { return set_->guards()[g].kind == GuardKind::ConstantMatch; });
  for (uint32_t g : guards) {
    const Guard& guard = set_->guards()[g];
    if (isWhole && (guard.kind == GuardKind::TypeMatch || guard.kind == GuardKind::SequenceLength)) continue;  // the constant has them
    const auto* code = std::find_if(std::begin(kCodes), std::end(kCodes), [&](auto& c) { return c.first == guard.kind; });
    if (code == std::end(kCodes)) continue;  // SameObject and NotSameObject come last
    Op op;
    op.code = code->second;
    op.from = position;
    op.guard = g;
    op.key = guard.expected.get();
    op.number = guard.number;
    op.predicate = guard.predicate;
    if (guard.kind == GuardKind::TensorMatch) op.tensor = &set_->tensorSpec(guard);
    if (guard.kind == GuardKind::DictContains || guard.kind == GuardKind::DictLacks) op.number = hashOfKey(op.key);
    if (guard.kind == GuardKind::TypeVersion) {
      auto* type = reinterpret_cast<PyTypeObject*>(op.key);
      op.number = snapshotOf(g, type);
      op.tag = snapshots_[static_cast<size_t>(op.number)].version;
    }
    if (PyErr_Occurred()) clearError();
    ops_.push_back(op);
  }
}

int64_t GuardTree::snapshotOf(uint32_t guard, PyTypeObject* type) {
  // Taken once, when the tree is made: a later flatten() must not take what has changed since for what was captured.
  for (size_t i = 0; i < snapshots_.size(); ++i)
    if (snapshots_[i].guard == guard) return static_cast<int64_t>(i);
  snapshots_.push_back(TypeSnapshot::of(type, *set_));
  snapshots_.back().guard = guard;
  return static_cast<int64_t>(snapshots_.size()) - 1;
}

void GuardTree::countFailure(const Op& op) {
  uint32_t node = op.code < Op::Code::DictUnchanged ? op.to : op.from;
  for (; node != kNone; node = nodes_[node].source->base ? nodeOf(nodes_[node].source->base) : kNone) ++nodes_[node].failures;
  if (running_) return;
  // Reordering costs about what a few checks cost, so it is done ever more rarely.
  if (++failures_ <= 4 || (failures_ & (failures_ - 1)) == 0) flatten();
}

}  // namespace fusebox::capture
