// The calls of torch that a segment makes, for backends that are functions of Python.
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/random_draws.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "engine/capture/evaluation/allowed_calls.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/fresh_contents.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/graph/operator_facts.h"
#include "engine/trace/sym_int.h"

namespace fusebox::capture {

namespace {

bool hasTensor(PyObject* o) {
  if (isTensorObject(o)) return true;
  for (Py_ssize_t i = 0; (PyTuple_Check(o) || PyList_Check(o)) && i < PySequence_Fast_GET_SIZE(o); ++i)
    if (hasTensor(PySequence_Fast_GET_ITEM(o, i))) return true;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_CheckExact(o) && PyDict_Next(o, &at, &key, &value);)
    if (hasTensor(value)) return true;
  return false;
}

/// A tensor, or tuples, lists and dicts of tensors.
bool consistsOfTensors(PyObject* o) {
  if (isTensorObject(o)) return true;
  bool all = PyTuple_Check(o) || PyList_Check(o) || PyDict_CheckExact(o);
  for (Py_ssize_t i = 0; all && !PyDict_CheckExact(o) && i < PySequence_Fast_GET_SIZE(o); ++i) all = consistsOfTensors(PySequence_Fast_GET_ITEM(o, i));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; all && PyDict_CheckExact(o) && PyDict_Next(o, &at, &key, &value);) all = consistsOfTensors(value);
  return all;
}

/// The containers of an argument or result as they are now: the program may change its own. Numbers of the evaluator are torch's symbolic
/// ones.
PyRef frozen(PyObject* o) {
  const bool isTuple = PyTuple_CheckExact(o) || isSizeObject(o);
  if (isTuple || PyList_CheckExact(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    PyRef copy = PyRef::steal(isTuple ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* part = frozen(PySequence_Fast_GET_ITEM(o, i)).release();
      if (isTuple) PyTuple_SET_ITEM(copy.get(), i, part);
      else PyList_SET_ITEM(copy.get(), i, part);
    }
    return copy;
  }
  if (PyDict_CheckExact(o)) {
    PyRef copy = PyRef::steal(PyDict_New());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) PyDict_SetItem(copy.get(), key, frozen(value).get());
    return copy;
  }
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    return PyRef::steal(PySlice_New(frozen(slice->start).get(), frozen(slice->stop).get(), frozen(slice->step).get()));
  }
  if (isSymbolicInt(o)) return PyRef::steal(newSymIntObject(trace::toSymInt(numberExpr(o).a, *shapesOf(o))));
  if (isSymbolicFloat(o)) return PyRef::steal(newSymFloatObject(trace::toSymFloat(numberExpr(o), *shapesOf(o))));
  return PyRef::borrow(o);
}

bool isExpressible(PyObject* o) {
  if (isTensorObject(o) || isConstantValue(o) || isSymbolicNumber(o)) return true;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!isExpressible(PySequence_Fast_GET_ITEM(o, i))) return false;
    return true;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_CheckExact(o) && PyDict_Next(o, &at, &key, &value);)
    if (!isExpressible(value)) return false;
  return PyDict_CheckExact(o);
}

/// A list, tuple or torch.Size of numbers some of which are symbols, and of such.
bool holdsSymbolicInts(PyObject* o) {
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o) && !isSizeObject(o)) return false;
  bool any = false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* part = PySequence_Fast_GET_ITEM(o, i);
    if (!isSymbolicInt(part) && !PyLong_CheckExact(part) && !holdsSymbolicInts(part)) return false;
    any = any || !PyLong_CheckExact(part);
  }
  return any;
}

bool makesTensorOf(PyObject* callable) {
  static PyObject* const makers[] = {torchObject("torch.tensor"), torchObject("torch.as_tensor")};
  return std::find(std::begin(makers), std::end(makers), callable) != std::end(makers);
}

bool holdsNumbersOfNumpy(PyObject* o) {
  if (isNumpyScalar(Py_TYPE(o))) return true;
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  return std::any_of(PySequence_Fast_ITEMS(o), PySequence_Fast_ITEMS(o) + PySequence_Fast_GET_SIZE(o), holdsNumbersOfNumpy);
}

PyRef positionalOf(const CallArguments& a) {
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional)));
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), frozen(a.args[i]).release());
  return args;
}

PyRef keywordsOf(const CallArguments& a) {
  PyRef keywords = PyRef::steal(PyDict_New());
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(keywords.get(), a.keywordName(i), frozen(a.args[a.positional + i]).get());
  return keywords;
}

/// Torch's own functions: what they give is a value of the graph even where they record no operator.
bool isTorchs(PyObject* callable) {
  if (isTorchBinding(callable)) return true;
  if (PyFunction_Check(callable)) return isLibraryNamespace(PyFunction_GET_GLOBALS(callable), Library::Torch);
  if (!PyCFunction_Check(callable)) return false;
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(callable)->m_module;
  const char* text = module && PyUnicode_Check(module) ? utf8Of(module) : "";
  return std::string_view(text).starts_with("torch");
}

/// Functions of torch in Python that are calls of the graph as a whole, as in stock's capture.
bool isWholeFunction(PyFunctionObject* f) {
  static const std::unordered_set<std::string_view> modules = {"torch.nn.functional", "torch.functional", "torch._tensor", "torch._lobpcg",
                                                               "torch._linalg_utils"};
  PyObject* module = PyDict_GetItem(f->func_globals, internedName("__name__"));
  if (!module || !PyUnicode_Check(module) || !isLibraryNamespace(f->func_globals, Library::Torch)) return false;
  const std::string_view name = utf8Of(f->func_name), where = utf8Of(module);
  if (where == "torch._functorch.predispatch") return true;
  const bool isPrivate = name.starts_with("_") && !name.starts_with("__");
  return !isPrivate && modules.count(where) > 0;
}

/// Where modules have their parameters, buffers and other attributes, as far as guards know the modules.
class StateOfModules {
 public:
  explicit StateOfModules(const GuardSet& guards) {
    static PyObject* const module = torchObject("torch.nn.Module");
    const auto isModule = [](PyTypeObject* type) { return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(module)); };
    for (const Guard& guard : guards.guards()) {
      PyObject* expected = guard.expected.get();
      if (guard.kind == GuardKind::TypeMatch && PyType_Check(expected) && isModule(reinterpret_cast<PyTypeObject*>(expected))) modules_.insert(guard.source);
      if (guard.kind == GuardKind::IdMatch && expected && isModule(Py_TYPE(expected))) modules_.insert(guard.source);
      if (guard.kind == GuardKind::SameObject && has(guard.source) != has(guard.other)) shared_.insert({guard.source, guard.other});
    }
  }

  bool has(const Source* source) const {
    if (shared_.count(source) > 0) return true;
    const auto holds = [this](const Source* dict) { return dict && dict->kind == Source::Kind::InstanceDict && modules_.count(dict->base) > 0; };
    if (!source || source->kind != Source::Kind::DictItem) return false;
    const Source* table = source->base;  // the module's own dict, or that of its parameters or buffers
    return holds(table) || (table->kind == Source::Kind::DictItem && holds(table->base));
  }

 private:
  std::unordered_set<const Source*> modules_, shared_;
};

PyRef operatorFunction(const char* name) {
  static PyObject* const module = PyImport_ImportModule("operator");
  return PyRef::steal(PyObject_GetAttrString(module, name));
}

}  // namespace

static thread_local TorchCalls* currentCalls = nullptr;

TorchCalls::TorchCalls(Evaluation& evaluation, PyObject* backend)
    : e_(evaluation), backend_(backend), gradMode_(at::GradMode::is_enabled()) {
  currentCalls = this;
}

TorchCalls::~TorchCalls() { currentCalls = nullptr; }

TorchCalls* TorchCalls::current() { return currentCalls; }

size_t TorchCalls::operators() const { return e_.trace().recordedOps(); }

TorchCalls::Scope::Scope(TorchCalls* calls) : calls_(calls) {
  if (!calls) return;
  rows_ = calls->rows_.size();
  operators_ = calls->operators();
  accounted_ = calls->accounted_;
  answers_ = calls->e_.functionModes().answers();
}

bool TorchCalls::Scope::wasAnswered() const { return calls_->e_.functionModes().answers() != answers_; }

void TorchCalls::Scope::done(PyObject* callable, const CallArguments& a, PyObject* result, Kind kind) {
  if (!calls_ || !result || wasAnswered()) return;
  const bool inner = calls_->rows_.size() > rows_, made = calls_->operators() > operators_;
  if (kind == Kind::Function && !made && !inner && !(hasTensor(result) && isTorchs(callable))) return;
  PyRef keywords = keywordsOf(a);
  if (isTensorObject(result) && makesTensorOf(callable) && !a.keyword("dtype") && std::any_of(a.args.begin(), a.args.begin() + a.total(), holdsNumbersOfNumpy)) {
    const PyRef dtype = PyRef::steal(PyObject_GetAttrString(result, "dtype"));  // a graph has them as Python's numbers
    PyDict_SetItemString(keywords.get(), "dtype", dtype.get());
  }
  calls_->add(*this, kind, PyRef::borrow(callable), positionalOf(a), std::move(keywords), result);
}

void TorchCalls::Scope::done(const char* operation, std::initializer_list<PyObject*> args, PyObject* result) {
  if (!calls_ || !result || calls_->operators() == operators_ || wasAnswered()) return;
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  Py_ssize_t i = 0;
  for (PyObject* argument : args) PyTuple_SET_ITEM(tuple.get(), i++, frozen(argument).release());
  const bool isAttribute = std::string_view(operation) == "getattr";
  static PyObject* const getattr = torchObject("builtins.getattr");
  PyRef target = isAttribute ? PyRef::borrow(getattr) : operatorFunction(operation);
  if (target) calls_->add(*this, Kind::Function, target, tuple, {}, result);
}

void TorchCalls::Scope::doneAlone(const char* operation, std::initializer_list<PyObject*> args, PyObject* result) {
  if (calls_ && calls_->rows_.size() <= rows_) done(operation, args, result);
}

void TorchCalls::add(const Scope& scope, Kind kind, PyRef target, PyRef args, PyRef keywords, PyObject* result) {
  Row row{kind, std::move(target), std::move(args), keywords ? std::move(keywords) : PyRef::steal(PyDict_New()),
          hasTensor(result) ? frozen(result) : PyRef::borrow(Py_None), places(), modules(), nameOfResult(), e_.rootCount()};
  rows_.resize(std::min(rows_.size(), scope.rows_));
  rows_.push_back(std::move(row));
  insideTry_ = insideTry_ || e_.insideTry();
  accounted_ = scope.accounted_ + (operators() - scope.operators_);
}

PyRef TorchCalls::method(const char* name, std::initializer_list<PyObject*> args, PyObject* keywords) {
  static PyObject* const type = torchObject("torch.Tensor");
  const Scope scope(this);
  PyRef target = PyRef::steal(PyObject_GetAttrString(type, name)), tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  Py_ssize_t i = 0;
  for (PyObject* argument : args) PyTuple_SET_ITEM(tuple.get(), i++, frozen(argument).release());
  PyRef result = target ? PyRef::steal(PyObject_Call(target.get(), tuple.get(), keywords)) : PyRef();
  if (result) add(scope, Kind::Read, target, tuple, PyRef::borrow(keywords), result.get());
  return result;
}

void TorchCalls::addAll(const Scope& scope, PyObject* calls) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); ++i) {
    PyObject *target, *args, *keywords, *result;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(calls, i), "OOOO", &target, &args, &keywords, &result)) throw std::runtime_error("a call is no four objects");
    rows_.push_back({Kind::Function, PyRef::borrow(target), frozen(args), frozen(keywords), frozen(result), places(), modules(), PyRef::borrow(Py_None), e_.rootCount()});
  }
  insideTry_ = insideTry_ || e_.insideTry();
  accounted_ = scope.accounted_ + (operators() - scope.operators_);
}

void TorchCalls::assume(PyObject* condition, int64_t since) {
  assumedSince_ = assumed_ ? std::min(assumedSince_, since) : since;
  assumed_ = assumed_ ? method("logical_and", {assumed_.get(), condition}) : PyRef::borrow(condition);
  if (!assumed_) throw std::runtime_error("conditions of one bool cannot be combined");
}

void TorchCalls::number(const graph::SymExpr& symbol, PyObject* tensor, int64_t element, size_t before) {
  if (numbers_.empty()) numbersSince_ = e_.rootCount();
  numbers_.push_back({symbol.str(), PyRef::borrow(tensor), element});
  accounted_ += operators() - before;
}

TorchCalls::Whole TorchCalls::wholeOf(PyObject* function, const CallArguments& a) {
  Whole whole;
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  PyObject* globals = f->func_globals;
  static PyObject* const blocks[] = {torchObject("torch.amp.autocast_mode.autocast"), torchObject("torch.autograd.grad_mode.inference_mode")};
  if (a.total() >= 1 && PyDict_GetItem(globals, internedName("__name__")) && isLibraryNamespace(globals, Library::Torch)) {
    const std::string_view name = utf8Of(f->func_qualname);
    const bool enters = name.ends_with(".__enter__"), leaves = name.ends_with(".__exit__");
    const auto isOf = [&](PyObject* type) { return type && PyObject_IsInstance(a.args[0], type) == 1 && _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), internedName(enters ? "__enter__" : "__exit__")) == function; };
    if ((enters || leaves) && std::any_of(std::begin(blocks), std::end(blocks), isOf)) {
      const auto isItsEntry = [&](const Row& row) { return row.kind == Kind::EnterBlock && PyTuple_GET_ITEM(row.args.get(), 0) == a.args[0]; };
      if (leaves && std::none_of(rows_.begin(), rows_.end(), isItsEntry)) return whole;  // entered before this segment
      whole.kind = enters ? Kind::EnterBlock : Kind::LeaveBlock;
      whole.args = PyRef::steal(PyTuple_Pack(1, a.args[0]));
      whole.keywords = PyRef::steal(PyDict_New());
      return whole;
    }
  }
  if (!isAllowedInGraph(function) && !isWholeFunction(f)) return whole;
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    PyObject* given = a.args[i];
    const bool looksInside = PyTuple_Check(given) || PyList_Check(given) || PyDict_Check(given) || isTensorObject(given);
    keep.push_back(looksInside && !holdsSymbolicInts(given) ? e_.expose(given) : PyRef::borrow(given));
    if (!isExpressible(keep.back().get())) return whole;
    args.push_back(keep.back().get());
  }
  const CallArguments exposed{args.data(), a.positional, a.kwNames};
  whole.args = positionalOf(exposed);
  whole.keywords = keywordsOf(exposed);
  return whole;
}

void TorchCalls::done(const Scope& scope, const Whole& whole, PyObject* function, PyObject* result) {
  if (!whole.args || !result || scope.wasAnswered()) return;
  const bool isMode = whole.kind != Kind::Function;
  const bool inner = rows_.size() > scope.rows_, made = operators() > scope.operators_;
  if (!isMode && !inner && !made && !hasTensor(result)) return;
  add(scope, whole.kind, PyRef::borrow(function), whole.args, whole.keywords, result);
}

PyRef TorchCalls::places() {
  std::vector<std::pair<const void*, int>> frames;
  for (const Frame* f = e_.frame(); f; f = f->caller) frames.emplace_back(f->code(), f->line());
  if (lastPlaces_ && frames == lastFrames_) return lastPlaces_;
  lastFrames_ = std::move(frames);
  const std::vector<Place> stack = e_.stackPlaces();
  lastPlaces_ = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
  for (size_t i = 0; i < stack.size(); ++i)
    PyTuple_SET_ITEM(lastPlaces_.get(), static_cast<Py_ssize_t>(i), Py_BuildValue("(sis)", stack[i].file.c_str(), stack[i].line, stack[i].function.c_str()));
  return lastPlaces_;
}

PyRef TorchCalls::modules() {
  const std::vector<PyObject*>& stack = e_.modulesUnderCall();
  if (lastModules_ && stack == lastModuleStack_) return lastModules_;
  lastModuleStack_ = stack;
  lastModules_ = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
  for (size_t i = 0; i < stack.size(); ++i)
    PyTuple_SET_ITEM(lastModules_.get(), static_cast<Py_ssize_t>(i),
                     Py_BuildValue("(sO)", e_.modulePath(stack[i]).c_str(), reinterpret_cast<PyObject*>(Py_TYPE(stack[i]))));
  return lastModules_;
}

/// The local that the program stores what it gets in; None: none; False: what it gets is dropped.
PyRef TorchCalls::nameOfResult() const {
  const Frame* f = e_.frame();
  const auto& list = f->decoded->instructions;
  for (size_t at = static_cast<size_t>(f->pc) + 1; at < list.size(); ++at) {
    if (list[at].op == Op::CACHE || list[at].op == Op::NOP) continue;
    if (list[at].op == Op::STORE_FAST) return PyRef::borrow(PyTuple_GET_ITEM(f->code()->co_localsplusnames, list[at].arg));
    if (list[at].op == Op::POP_TOP) return PyRef::borrow(Py_False);
    break;
  }
  return PyRef::borrow(Py_None);
}

void TorchCalls::named(PyObject* standIn, PyObject* name) {
  names_.try_emplace(std::pair{standIn, depth_}, PyRef::borrow(standIn), PyRef::borrow(name));
}

void TorchCalls::requireAll() {
  if (operators() == accounted_) return;
  accounted_ = operators();
  e_.breakHere("backend", "an operator is recorded by something that is no call of torch's, so that a backend in Python cannot be given it",
               "Use a backend of the engine, or move it out of the compiled region.");
}

PyRef TorchCalls::described(const Row& row) {
  return PyRef::steal(Py_BuildValue("(iOOOOOOO)", static_cast<int>(row.kind), row.target.get(), row.args.get(), row.keywords.get(), row.result.get(),
                                    row.places.get(), row.modules.get(), row.name.get()));
}

namespace {

PyRef listOf(const std::vector<PyRef>& objects) {
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(objects[i].get()).release());
  return list;
}

}  // namespace

/// What a function given to a higher-order operator does with `arguments`: its calls leave this graph for one of their own.
TorchCalls::SubGraph TorchCalls::follow(PyObject* function, PyObject* arguments) {
  std::vector<PyObject*> args;
  const Py_ssize_t n = PyTuple_GET_SIZE(arguments);
  for (Py_ssize_t i = 0; i < n; ++i) args.push_back(PyTuple_GET_ITEM(arguments, i));
  SubGraph graph = follow(function, CallArguments{args.data(), args.size(), nullptr});
  if (!graph.returned) return graph;
  graph.arguments = PyRef::borrow(arguments);
  graph.returned = graph.exposed;
  return graph;
}

TorchCalls::SubGraph TorchCalls::follow(PyObject* function, const CallArguments& a) {
  accounted_ = operators();
  const Scope scope(this);
  const Evaluation::Effects before = e_.effectsSoFar();
  const FreshContents made(e_);
  SubGraph graph;
  const struct Inside {
    int& depth;
    ~Inside() { --depth; }
  } inside{++depth_};
  graph.returned = e_.call(function, a);
  if (!graph.returned) return graph;
  requireAll();
  if (!(e_.effectsSoFar() == before) || made.changed())
    e_.breakHere("higher-order operator", "HigherOrderOperator: Mutating a variable not in the current scope (SideEffects)");
  graph.exposed = e_.expose(graph.returned.get());
  if (!graph.exposed) return {};
  std::vector<PyRef> rows;
  for (size_t i = scope.rows_; i < rows_.size(); ++i) rows.push_back(described(rows_[i]));
  rows_.resize(scope.rows_);
  graph.rows = listOf(rows);
  graph.arguments = PyRef::steal(PyTuple_New(0));
  graph.results = frozen(graph.exposed.get());
  return graph;
}

/// Stand-ins of their own with the sizes, type and gradient of others, in the same containers.
PyRef TorchCalls::copyOf(PyObject* o) {
  if (isTensorObject(o)) {
    PyRef copy = PyRef::steal(newTensorObject(at::clone(tensorOf(o))));
    if (!copy) clearError();
    return copy;
  }
  if (PyDict_CheckExact(o)) {
    PyRef made = PyRef::steal(PyDict_New());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      PyRef part = copyOf(value);
      if (!part || PyDict_SetItem(made.get(), key, part.get()) < 0) return {};
    }
    e_.adopt(made.get());
    return made;
  }
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) {
    if (isConstantValue(o) || isSymbolicInt(o)) return PyRef::borrow(o);
    e_.breakHere("higher-order operator", std::string("a function given to the operator returns a ") + Py_TYPE(o)->tp_name);
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyRef made = PyRef::steal(PyTuple_Check(o) ? PyTuple_New(n) : PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef part = copyOf(PySequence_Fast_GET_ITEM(o, i));
    if (!part) return {};
    if (PyTuple_Check(o)) PyTuple_SET_ITEM(made.get(), i, part.release());
    else PyList_SET_ITEM(made.get(), i, part.release());
  }
  if (PyList_Check(o)) e_.adopt(made.get());
  return made;
}

PyRef TorchCalls::firstOf(PyObject* tensors) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors);
  PyRef made = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* whole = PySequence_Fast_GET_ITEM(tensors, i);
    if (!isTensorObject(whole) || tensorOf(whole).dim() == 0) e_.breakHere("higher-order operator", "what it goes through is no tensor with a dimension");
    PyTuple_SET_ITEM(made.get(), i, newTensorObject(tensorOf(whole).select(0, 0).clone()));
  }
  return made;
}

PyRef TorchCalls::stackOf(PyObject* part, const c10::SymInt& count) {
  const at::Tensor& one = tensorOf(part);
  std::vector<c10::SymInt> sizes = one.sym_sizes().vec();
  sizes.insert(sizes.begin(), count);
  return PyRef::steal(newTensorObject(one.unsqueeze(0).expand_symint(sizes).clone(at::MemoryFormat::Contiguous)));
}

/// The same of tuples, lists and dicts of tensors.
PyRef TorchCalls::stacksOf(PyObject* parts, const c10::SymInt& count) {
  if (isTensorObject(parts)) return stackOf(parts, count);
  if (PyDict_Check(parts)) {
    PyRef made = PyRef::steal(PyDict_New());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(parts, &at, &key, &value);) PyDict_SetItem(made.get(), key, stacksOf(value, count).get());
    e_.adopt(made.get());
    return made;
  }
  PyRef made = PyRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts); ++i) PyList_Append(made.get(), stacksOf(PySequence_Fast_GET_ITEM(parts, i), count).get());
  if (PyTuple_Check(parts)) return PyRef::steal(PyList_AsTuple(made.get()));
  e_.adopt(made.get());
  return made;
}

namespace {

PyRef joined(std::initializer_list<PyObject*> sequences) {
  PyRef all = PyRef::steal(PyTuple_New(0));
  for (PyObject* s : sequences) {
    PyRef tuple = PyRef::steal(PySequence_Tuple(s));
    all = tuple ? PyRef::steal(PySequence_Concat(all.get(), tuple.get())) : PyRef();
    if (!all) return {};
  }
  return all;
}

PyRef packed(PyObject* rows, PyObject* arguments, PyObject* results) { return PyRef::steal(PyTuple_Pack(3, rows, arguments, results)); }

}  // namespace

/// An argument of a higher-order operator that is a tuple or list, of stand-ins; a break where it is something else.
PyRef TorchCalls::sequence(PyObject* given, std::string_view op) {
  PyRef exposed = given ? e_.expose(given) : PyRef::steal(PyTuple_New(0));
  if (!exposed || (!PyTuple_Check(exposed.get()) && !PyList_Check(exposed.get())))
    e_.breakHere("higher-order operator", std::string(op) + " with operands that are no tuple");
  return PyRef::steal(PySequence_Tuple(exposed.get()));
}

PyRef TorchCalls::higherOrder(PyObject* op, const CallArguments& a, bool* known) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(op, "_name"));
  clearError();
  const std::string_view text = name && PyUnicode_Check(name.get()) ? utf8Of(name.get()) : "";
  const auto fits = [&](std::string_view wanted, size_t positional, size_t total) { return text == wanted && a.positional >= positional && a.total() == total; };
  PyRef (TorchCalls::*rule)(PyObject*, const CallArguments&) = fits("cond", 4, 4)         ? &TorchCalls::condition
                                                                 : fits("while_loop", 4, 4) ? &TorchCalls::loop
                                                                 : fits("map_impl", 3, 3)   ? &TorchCalls::map
                                                                 : fits("scan", 3, 4)       ? &TorchCalls::scan
                                                                                            : nullptr;
  *known = rule;
  return rule ? (this->*rule)(op, a) : PyRef();
}

PyRef TorchCalls::condition(PyObject* op, const CallArguments& a) {
  const Scope scope(this);
  PyRef operands = sequence(a.args[3], "cond"), predicate = e_.expose(a.args[0]);
  const SubGraph yes = follow(a.args[1], operands.get());
  if (!yes.returned) return {};
  const SubGraph no = follow(a.args[2], operands.get());
  if (!no.returned) return {};
  PyRef results = copyOf(yes.returned.get());
  if (!results) return {};
  addHigherOrder(scope, Kind::Condition, op, {predicate, packed(yes.rows.get(), yes.arguments.get(), yes.results.get()),
                                              packed(no.rows.get(), no.arguments.get(), no.results.get()), operands}, results.get());
  return results;
}

/// What a loop changes from turn to turn has stand-ins of its own: the functions may also use the first value.
PyRef TorchCalls::loop(PyObject* op, const CallArguments& a) {
  const Scope scope(this);
  PyRef operands = sequence(a.args[2], "while_loop"), others = sequence(a.args[3], "while_loop"), changing = copyOf(operands.get());
  PyRef arguments = changing ? joined({changing.get(), others.get()}) : PyRef();
  if (!arguments) return {};
  const SubGraph test = follow(a.args[0], arguments.get());
  if (!test.returned) return {};
  const SubGraph body = follow(a.args[1], arguments.get());
  if (!body.returned) return {};
  PyRef results = copyOf(body.returned.get());
  if (!results) return {};
  addHigherOrder(scope, Kind::Loop, op, {packed(test.rows.get(), test.arguments.get(), test.results.get()),
                                         packed(body.rows.get(), body.arguments.get(), body.results.get()), operands, others}, results.get());
  return results;
}

PyRef TorchCalls::map(PyObject* op, const CallArguments& a) {
  const Scope scope(this);
  PyRef operands = sequence(a.args[1], "map"), others = sequence(a.args[2], "map"), parts = firstOf(operands.get());
  if (PyTuple_GET_SIZE(operands.get()) == 0) e_.breakHere("higher-order operator", "map over nothing");
  const c10::SymInt count = tensorOf(PyTuple_GET_ITEM(operands.get(), 0)).sym_size(0);
  PyRef arguments = joined({parts.get(), others.get()});
  const SubGraph body = arguments ? follow(a.args[0], arguments.get()) : SubGraph();
  if (!body.returned) return {};
  if (!consistsOfTensors(body.results.get())) e_.breakHere("higher-order operator", "a function given to map returns something else than tensors");
  PyRef results = stacksOf(body.results.get(), count);
  addHigherOrder(scope, Kind::Map, op, {packed(body.rows.get(), body.arguments.get(), body.results.get()), operands, others}, results.get());
  return results;
}

PyRef TorchCalls::scan(PyObject* op, const CallArguments& a) {
  const Scope scope(this);
  PyObject* more = a.positional > 3 ? a.args[3] : a.keyword("additional_inputs");
  PyRef initial = sequence(a.args[1], "scan"), operands = sequence(a.args[2], "scan"), others = sequence(more, "scan");
  PyRef changing = copyOf(initial.get()), parts = firstOf(operands.get());
  if (PyTuple_GET_SIZE(operands.get()) == 0) e_.breakHere("higher-order operator", "scan over nothing");
  const c10::SymInt count = tensorOf(PyTuple_GET_ITEM(operands.get(), 0)).sym_size(0);
  PyRef arguments = changing ? joined({changing.get(), parts.get(), others.get()}) : PyRef();
  const SubGraph body = arguments ? follow(a.args[0], arguments.get()) : SubGraph();
  if (!body.returned) return {};
  // What it carries and what it gives are trees: the operator's graph has their leaves, the program the same trees of the results.
  PyRef parted = PyRef::steal(PyObject_CallOneArg(torchObject("torch.utils._pytree.tree_flatten"), body.returned.get()));
  PyRef leaves = parted ? PyRef::steal(PySequence_List(PyTuple_GET_ITEM(parted.get(), 0))) : PyRef();
  if (!leaves) return {};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves.get()); ++i) {
    PyObject* part = PyList_GET_ITEM(leaves.get(), i);
    if (!isTensorObject(part)) e_.breakHere("higher-order operator", "a function given to scan returns something else than tensors");
    PyList_SetItem(leaves.get(), i, (i < PyTuple_GET_SIZE(initial.get()) ? copyOf(part) : stackOf(part, count)).release());
  }
  PyRef results = PyRef::steal(PyObject_CallFunctionObjArgs(torchObject("torch.utils._pytree.tree_unflatten"), leaves.get(), PyTuple_GET_ITEM(parted.get(), 1), nullptr));
  if (!results) return {};
  addHigherOrder(scope, Kind::Scan, op, {packed(body.rows.get(), body.arguments.get(), body.results.get()), initial, operands, others}, results.get());
  return results;
}

PyRef TorchCalls::wrap(PyObject* op, const CallArguments& a) {
  const Scope scope(this);
  const SubGraph body = follow(a.args[0], CallArguments{a.args + 1, a.positional - 1, a.kwNames});
  if (!body.returned) return {};
  if (!consistsOfTensors(body.results.get())) e_.breakHere("higher-order operator", "HigherOrderOperator body's output must consist of tensors only");
  addHigherOrder(scope, Kind::Wrap, op, {packed(body.rows.get(), body.arguments.get(), body.results.get())}, body.results.get());
  return body.returned;
}

void TorchCalls::addHigherOrder(const Scope& scope, Kind kind, PyObject* op, const std::vector<PyRef>& parts, PyObject* results) {
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  for (size_t i = 0; i < parts.size(); ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(parts[i].get()).release());
  add(scope, kind, PyRef::borrow(op), args, {}, results);
  accounted_ = operators();  // follow() has seen to those of the functions; the others made stand-ins
}

/// Whether nobody could tell that the graph has run, up to an operator that raised.
bool TorchCalls::mayRepeat() const {
  const auto& nodes = e_.trace().graph().nodes();
  return !e_.trace().wroteInputs() && std::none_of(nodes.begin(), nodes.end(), [](const graph::Node& node) {
    if (node.kind != graph::NodeKind::Call) return false;
    const graph::OperatorFacts& facts = graph::factsOf(node.op);
    return graph::drawsRandom(node) || facts.foreign || facts.effectful || facts.writes || facts.collective;
  });
}

/// What is assumed of data is known when the graph has run: a call that does not fit is the program's.
void TorchCalls::requireRepeatable() const {
  const bool ofNumbers = !e_.trace().shapes().assumptions().empty();
  if ((!assumed_ && !ofNumbers) || mayRepeat()) return;
  const int64_t since = !ofNumbers ? assumedSince_ : !assumed_ ? numbersSince_ : std::min(assumedSince_, numbersSince_);
  throw CaptureBreak{{"backend", "a condition on data is known when the graph has run, which others see", "", e_.place(), e_.stackPlaces()}, since};
}

/// [(name of a symbol that data decide, the tensor that it is read from, or None: it is a size, which element)]
PyRef TorchCalls::dataSymbols() const {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const graph::Symbol symbol : e_.trace().shapes().dataSymbols()) {
    const auto known = std::find_if(numbers_.begin(), numbers_.end(), [&](const Number& n) { return n.symbol == symbol.name(); });
    const bool isSize = known == numbers_.end();
    PyRef row = PyRef::steal(Py_BuildValue("(sOL)", symbol.name().c_str(), isSize ? Py_None : known->tensor.get(),
                                           isSize ? -1LL : static_cast<long long>(known->element)));
    PyList_Append(list.get(), row.get());
  }
  return list;
}

/// [(comparison of Python's operator module, left, right)] of what is assumed of them, as text over symbols.
PyRef TorchCalls::assumptions() const {
  static constexpr const char* kNames[] = {"eq", "ne", "lt", "le"};
  PyRef list = PyRef::steal(PyList_New(0));
  for (const graph::Relation& r : e_.trace().shapes().assumptions()) {
    PyRef row = PyRef::steal(Py_BuildValue("(sss)", kNames[static_cast<size_t>(r.op)], r.left.str().c_str(), r.right.str().c_str()));
    PyList_Append(list.get(), row.get());
  }
  return list;
}

/// Where the values of symbols that data decide are found among the last results of the graph, and what is assumed of them.
void TorchCalls::fillData(PyObject* answer, Segment& segment) const {
  const graph::ShapeEnv& shapes = e_.trace().shapes();
  PyRef dims = PyRef::steal(PyObject_GetAttrString(answer, "data_dims"));
  for (size_t i = 0; dims && i < shapes.dataSymbols().size(); ++i) {
    const auto at = std::find(shapes.symbols().begin(), shapes.symbols().end(), shapes.dataSymbols()[i]);
    segment.torchData.emplace_back(at - shapes.symbols().begin(), static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(dims.get(), static_cast<Py_ssize_t>(i)))));
  }
  segment.torchAssumptions = shapes.assumptions();
}

/// Symbols that guards compute from those of inputs (a root, the int of a float) are inputs too. Which symbol each is.
std::vector<size_t> TorchCalls::addComputed(std::vector<PyRef>& inputs) const {
  const graph::ShapeEnv& shapes = e_.trace().shapes();
  const std::vector<graph::Symbol>& symbols = shapes.symbols();
  std::vector<size_t> added;
  std::set<graph::Symbol> ofData(shapes.dataSymbols().begin(), shapes.dataSymbols().end());
  for (const graph::ComputedSymbol& made : shapes.computed()) {
    if (std::any_of(made.from.begin(), made.from.end(), [&](graph::Symbol s) { return ofData.contains(s); })) {
      ofData.insert(made.symbol);
      continue;
    }
    const graph::SymExpr expression(made.symbol);
    PyRef number = PyRef::steal(newSymIntObject(trace::toSymInt(expression, e_.trace().shapes())));
    inputs.push_back(PyRef::steal(Py_BuildValue("(OLs)", number.get(), static_cast<long long>(shapes.hint(expression)), made.text.c_str())));
    added.push_back(static_cast<size_t>(std::find(symbols.begin(), symbols.end(), made.symbol) - symbols.begin()));
  }
  return added;
}

void TorchCalls::finish(const std::vector<at::Tensor>& results, Segment& segment) {
  requireRepeatable();
  trace::NoTrace off;
  std::vector<PyRef> rows, inputs, outputs;
  for (const Row& row : rows_) rows.push_back(described(row));
  const auto& traced = e_.trace().inputs();
  std::vector<const Source*> sources;
  const StateOfModules modules(e_.guardSet());
  for (const trace::TracedInput& input : traced) {
    PyRef real = PyRef::steal(newTensorObject(input.real)), standIn = PyRef::steal(newTensorObject(input.standIn));
    sources.push_back(e_.origin(real.get())->source);
    inputs.push_back(PyRef::steal(Py_BuildValue("(OOsO)", standIn.get(), real.get(), e_.draws().nameOf(sources.back()).c_str(),
                                                modules.has(sources.back()) ? Py_True : Py_False)));
  }
  // Ints that are symbols come after the tensors.
  std::vector<std::pair<std::string, const Source*>> ints;
  for (const auto& [source, expression] : e_.symbolicIntegers()) ints.emplace_back(source->str(), source);
  std::sort(ints.begin(), ints.end());
  for (const auto& [name, source] : ints) {
    const graph::SymExpr& expression = e_.symbolicIntegers().at(source);
    PyRef number = PyRef::steal(newSymIntObject(trace::toSymInt(expression, e_.trace().shapes())));
    sources.push_back(source);
    inputs.push_back(PyRef::steal(Py_BuildValue("(OLs)", number.get(), static_cast<long long>(e_.trace().shapes().hint(expression)), name.c_str())));
  }
  // So do those that only a wrapper has, which is no tensor of the graph.
  const std::set<const Source*> ofTensors(sources.begin(), sources.end());
  for (const SymbolOrigin& origin : e_.guardSet().shapes().origins) {
    if (origin.at.kind != NumberSource::Kind::Size || ofTensors.contains(origin.at.source)) continue;
    const Source* size = e_.sources().sequenceItem(e_.sources().slotAttr(origin.at.source, internedName("shape")), origin.at.dim);
    PyRef number = PyRef::steal(newSymIntObject(trace::toSymInt(graph::SymExpr(origin.symbol), e_.trace().shapes())));
    sources.push_back(size);
    inputs.push_back(PyRef::steal(Py_BuildValue("(OLs)", number.get(), static_cast<long long>(e_.trace().shapes().hint(graph::SymExpr(origin.symbol))), size->str().c_str())));
  }
  const std::vector<size_t> computed = addComputed(inputs);
  for (const at::Tensor& result : results) outputs.push_back(PyRef::steal(newTensorObject(result)));
  if (assumed_) outputs.push_back(assumed_);
  const auto& nodes = e_.trace().graph().nodes();
  segment.torchWrites = e_.trace().wroteInputs() || std::any_of(nodes.begin(), nodes.end(), [](const graph::Node& node) {
    return node.kind == graph::NodeKind::Call && (graph::factsOf(node.op).writes || graph::factsOf(node.op).foreign);
  });
  PyRef names = PyRef::steal(PyDict_New());
  for (const auto& [at, known] : names_) {
    PyRef key = PyRef::steal(Py_BuildValue("(Ni)", PyLong_FromVoidPtr(at.first), at.second));
    PyDict_SetItem(names.get(), key.get(), known.second.get());
  }
  PyRef answer = PyRef::steal(PyObject_CallMethod(backend_, "graph", "OOOOOOOOOii", listOf(rows).get(), names.get(), listOf(inputs).get(), listOf(outputs).get(),
                                                  gradMode_ ? Py_True : Py_False, at::GradMode::is_enabled() ? Py_True : Py_False,
                                                  assumed_ ? Py_True : Py_False, dataSymbols().get(), assumptions().get(),
                                                  static_cast<int>(segment.torchWrites), static_cast<int>(segment.exit == Segment::Exit::Break)));
  if (!answer) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyRef text = value ? PyRef::steal(PyObject_Str(value)) : PyRef();
    const std::string why = text ? utf8Of(text.get()) : "an error";
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    clearError();
    throw CaptureBreak{{"backend", "the graph of the region cannot be made: " + why, "", e_.place(), e_.stackPlaces()}, 0};
  }
  if (answer.get() == Py_None) return;
  int row = -1;
  const char* reason = nullptr;
  if (PyTuple_CheckExact(answer.get()) && PyArg_ParseTuple(answer.get(), "is", &row, &reason)) {
    // The segment ends before the call that cannot be part of it.
    GraphBreak why{"backend", reason, "Use a backend of the engine, or move the call out of the compiled region.", e_.place(), e_.stackPlaces()};
    const int64_t before = row >= 0 ? rows_[static_cast<size_t>(row)].root : 0;
    if (row >= 0) {
      const char *file = nullptr, *function = nullptr;
      PyObject* places = rows_[static_cast<size_t>(row)].places.get();
      const Py_ssize_t n = PyTuple_GET_SIZE(places);
      if (n > 0 && PyArg_ParseTuple(PyTuple_GET_ITEM(places, n - 1), "sis", &file, &why.place.line, &function)) {
        why.place.file = file;
        why.place.function = function;
      }
    }
    throw CaptureBreak{std::move(why), before};
  }
  clearError();
  PyRef used = PyRef::steal(PyObject_GetAttrString(answer.get(), "used_inputs"));
  for (Py_ssize_t i = 0; used && i < PyList_GET_SIZE(used.get()); ++i) {
    const auto at = static_cast<size_t>(PyLong_AsLong(PyList_GET_ITEM(used.get(), i)));
    if (at < sources.size()) segment.graphInputs.push_back(sources[at]);
    else segment.torchNumbers.push_back(computed[at - sources.size()]);
  }
  segment.torchGraph = std::move(answer);
  fillData(segment.torchGraph.get(), segment);
  segment.torchResults = results.size() + segment.torchData.size();
  segment.torchMayRepeat = (insideTry_ || assumed_ || !segment.torchAssumptions.empty()) && mayRepeat();
}

}  // namespace fusebox::capture
