// Conditions that data decide, and what follows where one of their outcomes is an exception.
#include "engine/capture/evaluation/data_conditions.h"

#include <algorithm>
#include <stdexcept>

#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/trace/recorder.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

using graph::Compare;
using graph::SymExpr;

constexpr int kDeepest = 64;

bool isOfData(PyObject* o) {
  if (isDeferred(o)) return true;
  return isSymbolicInt(o) && shapesOf(o)->isOfData(numberExpr(o).a);
}

bool isComparable(PyObject* o) { return (isSymbolicNumber(o) && !isSymbolicBool(o) && !isArrayScalar(o)) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o); }

struct Question {
  Compare op;
  SymExpr a, b;
};

Question questionOf(int op, const SymExpr& a, const SymExpr& b, bool outcome) {
  if (!outcome) {
    static constexpr int kOpposite[] = {Py_GE, Py_GT, Py_NE, Py_EQ, Py_LE, Py_LT};
    op = kOpposite[op];
  }
  switch (op) {
    case Py_LT: return {Compare::Lt, a, b};
    case Py_LE: return {Compare::Le, a, b};
    case Py_EQ: return {Compare::Eq, a, b};
    case Py_NE: return {Compare::Ne, a, b};
    case Py_GT: return {Compare::Lt, b, a};
    default: return {Compare::Le, b, a};
  }
}

/// An int as an expression over the symbols of the capture; what is read from a tensor becomes a symbol.
std::optional<SymExpr> wholeNumber(PyObject* o) {
  if (isDeferred(o) && !settleDeferred(o)) return std::nullopt;
  if (isSymbolicInt(o)) return numberExpr(o).a;
  if (!PyLong_Check(o)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow ? std::nullopt : std::optional<SymExpr>(value);
}

/// A comparison of ints, from here on. False: what was taken for the values of data speaks against it.
bool assume(const Question& q) {
  trace::TraceContext* context = trace::TraceContext::current();
  graph::ShapeEnv& shapes = context->shapes();
  return shapes.assume(q.op, q.a, q.b, [&](graph::Symbol symbol) { return trace::isUnused(*context, symbol); });
}

/// Something is made of the symbols already, by the values taken for them: capture starts over with values with which the comparison holds, if there are.
void startOverToFit(Evaluation& e, const Question& q) {
  trace::TraceContext* context = trace::TraceContext::current();
  SymbolicPolicy* policy = e.options().symbolic;
  if (!policy || !policy->dataAllowed) return;
  graph::ShapeEnv tried = context->shapes();
  if (!tried.assume(q.op, q.a, q.b, [](graph::Symbol) { return true; })) return;
  std::vector<int64_t> hints;
  for (const trace::DataDefinition& known : context->dataSizes().definitions()) hints.push_back(tried.hint(known.symbol));
  startOverWith(e, hints);
}

}  // namespace

void startOverWith(Evaluation& e, const std::vector<int64_t>& values) {
  constexpr int kMost = 32;
  SymbolicPolicy* policy = e.options().symbolic;
  if (!policy || !policy->dataAllowed || policy->dataStarts >= kMost || values == policy->dataHints) return;  // the same: they were not taken
  const auto take = [policy, values] {
    policy->dataHints = values;
    ++policy->dataStarts;
    return true;
  };
  throw CaptureBreak{{"data-dependent value", "other values have to be taken for what data decide", "", e.place(), e.stackPlaces()}, -1, take};
}

namespace {

/// The traced value of a tensor of one bool; null: it has none.
const trace::TraceTensorImpl* tracedTruth(at::Tensor value) {
  namespace functional = at::functionalization::impl;
  if (value.scalar_type() != at::kBool) value = value.ne(0);
  if (value.dim() > 0) value = value.reshape({});
  value = value.detach();
  if (functional::isFunctionalTensor(value)) {
    functional::sync(value);
    value = functional::from_functional_tensor(value);
  }
  return trace::asTrace(value);
}

bool assumeTensor(const at::Tensor& value, bool outcome, const std::string& text) {
  trace::TraceContext* context = trace::TraceContext::current();
  if (!context || !context->dataSizes().isAllowed || context->recorder().isBackward() || trace::insideTransform()) return false;
  const auto* traced = tracedTruth(value);
  if (!traced) return false;
  const SymExpr truth = context->dataSizes().defineTruth(*context, traced->value(), outcome, text);
  return assume(outcome ? Question{Compare::Le, 1, truth} : Question{Compare::Le, truth, 0});
}

/// The same of a graph of calls.
bool assumeInCalls(Evaluation& e, PyObject* value, bool outcome) {
  if (!e.options().assumesOfData || e.functions().isLate() || trace::insideTransform()) return false;
  TorchCalls& calls = *e.torchCalls();
  PyRef truth = PyRef::borrow(value);
  const auto then = [&](const char* method, PyRef argument) {
    truth = argument ? calls.method(method, {truth.get(), argument.get()}) : calls.method(method, {truth.get()});
    if (!truth) throw std::runtime_error(std::string("a condition on data: ") + method);
  };
  if (tensorOf(value).scalar_type() != at::kBool) then("ne", PyRef::steal(PyLong_FromLong(0)));
  if (tensorOf(value).dim() > 0) then("reshape", PyRef::steal(PyTuple_New(0)));
  if (!outcome) then("logical_not", {});
  calls.assume(truth.get(), e.rootCount());
  return true;
}

/// What follows from `pc` is an exception on every way.
bool alwaysRaises(const DecodedCode& code, int pc) {
  constexpr size_t kMost = 400;
  std::vector<bool> seen(code.instructions.size());
  std::vector<int> waiting{pc};
  for (size_t steps = 0; !waiting.empty(); ++steps) {
    const int at = waiting.back();
    waiting.pop_back();
    if (steps > kMost || at < 0 || static_cast<size_t>(at) >= code.instructions.size()) return false;
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    const Instruction& i = code.instructions[static_cast<size_t>(at)];
    switch (i.op) {
      case Op::RAISE_VARARGS: continue;
      case Op::RETURN_VALUE:
      case Op::RETURN_CONST:
      case Op::YIELD_VALUE:
      case Op::RERAISE:
      case Op::UNKNOWN: return false;
      default: break;
    }
    if (i.target >= 0) waiting.push_back(i.target);
    if (i.op != Op::JUMP) waiting.push_back(at + 1);
  }
  return true;
}

}  // namespace

PyRef deferredComparison(int op, PyObject* a, PyObject* b) {
  if ((!isOfData(a) && !isOfData(b)) || !isComparable(a) || !isComparable(b)) return {};
  if (!isDeferred(a) && !isDeferred(b))
    if (const auto left = wholeNumber(a), right = wholeNumber(b); left && right) {
      const Question q = questionOf(op, *left, *right, true);
      const auto& shapes = shapesOf(isSymbolicNumber(a) ? a : b);
      if (const auto known = shapes->provable(q.op, q.a, q.b)) return PyRef::borrow(*known ? Py_True : Py_False);
    }
  const auto depthOf = [](PyObject* o) { return isDeferred(o) ? deferredNumber(o).depth : 0; };
  const int depth = 1 + std::max(depthOf(a), depthOf(b));
  if (depth > kDeepest) return {};
  return newDeferred(&PyBool_Type, {.op = DeferredNumber::kCompare + op, .left = PyRef::borrow(a), .right = PyRef::borrow(b), .depth = depth});
}

PyRef deferredNot(PyObject* truth) {
  const int depth = 1 + deferredNumber(truth).depth;
  if (depth > kDeepest) return PyRef::borrow(decideTruth(truth) ? Py_False : Py_True);
  return newDeferred(&PyBool_Type, {.op = DeferredNumber::kNot, .left = PyRef::borrow(truth), .depth = depth});
}

bool decideTruth(PyObject* o) {
  if (const PyRef known = isArrayScalar(o) ? pythonNumberOf(o) : PyRef()) return isSymbolicNumber(known.get()) ? symbolicTruth(known.get()) : PyObject_IsTrue(known.get()) == 1;
  const DeferredNumber n = deferredNumber(o);
  if (n.op == DeferredNumber::kNot) return !decideTruth(n.left.get());
  if (n.op >= DeferredNumber::kCompare) return symbolicComparison(n.op - DeferredNumber::kCompare, n.left.get(), n.right.get()) == 1;
  refuseDeferred(o, "a condition of the program");
}

bool assumeTruth(Evaluation& e, PyObject* condition, bool outcome) {
  const Place place = e.place();
  const std::string text = "whether " + place.file.substr(place.file.rfind('/') + 1) + ":" + std::to_string(place.line) + " goes on";
  const auto assumed = [&](PyObject* tensor) { return e.torchCalls() ? assumeInCalls(e, tensor, outcome) : assumeTensor(tensorOf(tensor), outcome, text); };
  if (isArrayScalar(condition)) return !pythonNumberOf(condition) && assumed(deferredNumber(condition).tensor.get());
  if (!isSymbolicBool(condition)) return assumed(condition);
  const DeferredNumber n = deferredNumber(condition);
  if (n.op == DeferredNumber::kNot) return assumeTruth(e, n.left.get(), !outcome);
  if (n.op == DeferredNumber::kRead) return assumed(n.tensor.get());
  if (e.torchCalls() && !e.trace().dataSizes().isAllowed) return false;
  const int op = n.op - DeferredNumber::kCompare;
  PyObject *a = n.left.get(), *b = n.right.get();
  if (pythonTypeOf(a) != &PyFloat_Type && pythonTypeOf(b) != &PyFloat_Type) {
    const auto left = wholeNumber(a), right = left ? wholeNumber(b) : std::nullopt;
    if (left && right) {
      const Question q = questionOf(op, *left, *right, outcome);
      if (assume(q)) return true;
      startOverToFit(e, q);
      return false;
    }
  }
  if (e.torchCalls()) return false;  // the floats that are compared have no calls
  const at::Tensor compared = deferredAsTensor(op, a, b);
  return compared.defined() && assumeTensor(compared, outcome, text);
}

bool assumeOutcome(const at::Tensor& value, bool outcome, const std::string& text) { return assumeTensor(value, outcome, text); }

std::optional<bool> outcomeThatGoesOn(const Frame& f, const Instruction& jump, bool jumpsWhen) {
  const bool jumpRaises = alwaysRaises(*f.decoded, jump.target), nextRaises = alwaysRaises(*f.decoded, f.pc + 1);
  if (jumpRaises == nextRaises) return std::nullopt;
  return jumpRaises ? !jumpsWhen : jumpsWhen;
}

int Evaluation::condition(PyObject* value, const Frame& f, const Instruction& jump, bool jumpsWhen) {
  // A class of the program's own hears of the question.
  const auto answersItself = [&] {
    PyObject* name = internedName("__torch_function__");
    return answersTorchFunctions(value) && typeLookup(Py_TYPE(value), name) != typeLookup(tensorType(), name);
  };
  const bool isAsked = isSymbolicBool(value) || isArrayScalar(value) ||
                       (isStandIn(value) && !isNumber(value) && !mayBePython(value) && tensorOf(value).sym_numel() == 1 && !answersItself());
  if (isAsked)
    if (const auto outcome = outcomeThatGoesOn(f, jump, jumpsWhen); outcome && assumeTruth(*this, value, *outcome)) return *outcome;
  return truth(value);
}

PyRef Evaluation::opposite(PyObject* value) {
  if (isSymbolicBool(value)) return deferredNot(value);
  if (isArrayScalar(value))
    if (PyRef truth = deferredTruth(*this, value)) return isSymbolicBool(truth.get()) ? deferredNot(truth.get()) : Operations::opposite(truth.get());
  return Operations::opposite(value);
}

}  // namespace fusebox::capture
