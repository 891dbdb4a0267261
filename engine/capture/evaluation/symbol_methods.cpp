#include "engine/capture/evaluation/symbol_methods.h"

#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_functions.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/sym_int.h"

namespace fusebox::capture {

namespace {

struct NodeMethod {
  const char* function;                                       ///< what it is of plain numbers
  PyRef (*onSymbols)(PyObject* self, PyObject* other) = nullptr;  ///< null without error: there is no expression. Null: a function of module math
};

PyRef truncatedNode(PyObject* self, PyObject*) { return symbolicRounded('t', self); }
PyRef roundedNode(PyObject* self, PyObject* digits) { return digits == Py_None ? symbolicRounded('r', self) : PyRef(); }
PyRef absoluteNode(PyObject* self, PyObject*) { return symbolicAbsolute(self); }
PyRef positiveNode(PyObject* self, PyObject*) { return PyRef::borrow(self); }
template <int kOp>
PyRef combinedNodes(PyObject* self, PyObject* other) { return symbolicArithmetic(kOp, self, other); }

PyRef isWholeNode(PyObject* self, PyObject*) {
  if (isSymbolicInt(self)) return PyRef::borrow(Py_True);
  PyRef whole = symbolicRounded('f', self);
  const int answer = whole ? symbolicComparison(Py_EQ, whole.get(), self) : -1;
  return answer < 0 ? PyRef() : PyRef::borrow(answer ? Py_True : Py_False);
}

const NodeMethod* nodeMethod(const std::string& name) {
  static const std::unordered_map<std::string, NodeMethod> methods = {
      {"trunc", {"math.trunc", truncatedNode}}, {"round", {"builtins.round", roundedNode}}, {"abs", {"builtins.abs", absoluteNode}}, {"pos", {"operator.pos", positiveNode}},
      {"is_integer", {"builtins.float.is_integer", isWholeNode}}, {"bitwise_and", {"operator.and_", combinedNodes<kAnd>}},
      {"bitwise_or", {"operator.or_", combinedNodes<kOr>}}, {"bitwise_xor", {"operator.xor", combinedNodes<kXor>}}, {"lshift", {"operator.lshift", combinedNodes<kLeftShift>}},
      {"rshift", {"operator.rshift", combinedNodes<kRightShift>}}, {"sym_sqrt", {"math.sqrt"}}, {"sym_log2", {"math.log2"}}, {"sym_sin", {"math.sin"}},
      {"sym_cos", {"math.cos"}}, {"sym_tan", {"math.tan"}}, {"sym_asin", {"math.asin"}}, {"sym_acos", {"math.acos"}}, {"sym_atan", {"math.atan"}},
      {"sym_sinh", {"math.sinh"}}, {"sym_cosh", {"math.cosh"}}, {"sym_tanh", {"math.tanh"}}};
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : &found->second;
}

/// The evaluator's number of one of torch's, or a plain number; null without error: it is none of a capture's.
PyRef numberOfSymbol(PyObject* symbol) {
  if (!isSymbolObject(symbol)) return PyRef::borrow(symbol);
  if (const auto whole = symIntOf(symbol)) {
    const auto e = trace::exprOf(*whole);
    graph::ShapeEnv* env = whole->is_heap_allocated() ? trace::envOf(whole->toSymNodeImplUnowned()) : nullptr;
    if (!env) return e && e->isConstant() ? PyRef::steal(PyLong_FromLongLong(e->constant())) : PyRef();
    return newSymbolicInt(env->shared_from_this(), *e);
  }
  const auto real = symFloatOf(symbol);
  graph::ShapeEnv* env = real && real->is_symbolic() ? trace::envOf(real->toSymNodeImplUnowned()) : nullptr;
  if (!env) return {};
  if (const auto number = trace::numberOf(real->toSymNodeImpl())) return newSymbolicNumber(env->shared_from_this(), *number);
  return PyRef::steal(PyFloat_FromDouble(trace::hintOf(*real)->value));
}

/// What torch's code gets.
PyRef symbolOfNumber(PyRef number) {
  if (!number || !isSymbolicNumber(number.get())) return number;
  graph::ShapeEnv& shapes = *shapesOf(number.get());
  if (isSymbolicFloat(number.get())) return PyRef::steal(newSymFloatObject(trace::toSymFloat(numberExpr(number.get()), shapes)));
  return PyRef::steal(newSymIntObject(trace::toSymInt(numberExpr(number.get()).a, shapes)));
}

}  // namespace

PyRef symbolMethod(const std::string& name, PyObject* symbol, PyObject* other) {
  const NodeMethod* method = nodeMethod(name);
  PyRef self = method ? numberOfSymbol(symbol) : PyRef(), operand = self ? numberOfSymbol(other) : PyRef();
  if (!self || !operand) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_AttributeError, "'torch._C._SymNode' object has no attribute '%s'", name.c_str());
    return {};
  }
  PyObject* function = torchObject(method->function);
  if (isSymbolicNumber(self.get()) || isSymbolicNumber(operand.get())) {
    PyObject* const given[] = {self.get()};
    PyRef made = method->onSymbols ? method->onSymbols(self.get(), operand.get()) : symbolicMath(function, given);
    if (made || PyErr_Occurred()) return symbolOfNumber(std::move(made));
  }
  for (PyRef* number : {&self, &operand})
    if (isSymbolicNumber(number->get()) && !(*number = specialisedNumber(number->get(), "a number that is given to " + name))) return {};
  return PyRef::steal(operand.get() == Py_None ? PyObject_CallOneArg(function, self.get()) : PyObject_CallFunctionObjArgs(function, self.get(), operand.get(), nullptr));
}

}  // namespace fusebox::capture
