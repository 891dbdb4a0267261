#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/symbolic_numbers.h"

namespace fusebox::capture {

// numpy's arrays in compiled code. An array that is computed with stands for a tensor of the graph: one of the program's is an input that shares
// its memory, one that is made has its values from torch, and all else from numpy, which is called on arrays of the same layout
// (engine/python/package/_arrays.py). The evaluator's object for an array is an array, whose values nothing looks at; for a number that numpy makes of
// data (an array scalar) it is a deferred number of numpy's type.

/// numpy.ndarray itself, no subclass.
bool isArray(PyObject* object);
// For Custom guards: an array with this numpy.dtype.
bool writeableOfType(PyObject* array, PyObject* type);
bool readOnlyOfType(PyObject* array, PyObject* type);
/// The tensor that shares an array's memory. New reference, null without error where there is none.
PyObject* tensorOfArray(PyObject* array);

class Arrays {
 public:
  explicit Arrays(Evaluation& e) : e_(e) {}

  /// How a recipe makes an array again.
  struct Value {
    enum class Kind : uint8_t { Input, OfTensor, View, Made } kind = Kind::Input;
    PyRef array, tensor;
    PyRef function, args;        ///< View: the call of numpy's that gives it
    PyObject* owner = nullptr;   ///< View: the array whose memory it is
    int64_t birth = -1;
    bool isShared = false;       ///< Made: a tensor that the program has shares its memory
  };
  /// What is known of an array; null: nothing.
  const Value* find(PyObject* array) const;

  /// A call of a function of numpy, a method of an array, an operator (of module operator) or a function of torch that makes tensors, with an array
  /// among the arguments. Null without error: it is none of these.
  PyRef call(PyObject* callable, const CallArguments& a);
  /// An operator of Python's module operator, by name; a break where it cannot be followed.
  PyRef operate(const char* name, std::initializer_list<PyObject*> operands);
  /// The operator with CPython's NB_ number, which is `function` of module operator.
  PyRef binary(int op, const std::string& function, PyObject* a, PyObject* b);
  /// A comparison (Py_LT, …).
  PyRef compare(int op, PyObject* a, PyObject* b);
  /// Whether one of these is an array, or a number of numpy's that data decide.
  static bool any(PyObject* a, PyObject* b) { return is(a) || is(b); }
  static bool is(PyObject* o) { return isArray(o) || isArrayScalar(o); }
  bool meetsNumber(PyObject* a, PyObject* b) const;
  /// An operand of such a pair. Null: an exception is set.
  PyRef asNumpys(PyObject* operand);
  PyRef getAttr(PyObject* array, PyObject* name);
  Py_ssize_t length(PyObject* array);
  /// tensor.numpy(). Null without error: it is not to be followed.
  PyRef ofTensor(PyObject* tensor);
  /// An array that numpy has made of constants, in this call for the first time.
  PyRef constant(PyObject* array, const std::string& name);
  /// When all has been evaluated: assumes what makes numpy warn of nothing.
  void finish();

 private:
  Value& valueOf(PyObject* array);
  Value& input(PyObject* array);
  PyRef numberOfSymbol(PyObject* number);
  PyRef changingFloat(PyObject* number, PyObject* tensors);
  PyRef changingKey(PyObject* key, PyObject* tensors);
  /// What torch is given for a number of numpy's.
  PyRef besideTensor(PyObject* number);
  PyRef follow(PyObject* function, PyObject* args, PyObject* kwargs, const std::string& name);
  PyObject* writtenInPython(PyObject* function);
  std::vector<PyRef> arraysOfTensors(PyObject* function, const CallArguments& a);
  PyRef ofTensorsWrapped(PyObject* ufunc, const CallArguments& a);
  PyRef tensorFrom(PyObject* function, const CallArguments& a);
  PyRef getAttrOfScalar(PyObject* scalar, PyObject* name);
  PyRef tensorOfOperand(PyObject* o);
  PyRef operand(PyObject* o, const std::string& name, PyObject* tensors, int depth = 0);
  PyRef keep(Value value);
  void requireOwnMemory(PyObject* array, const std::string& name);
  bool isFollowing() const;
  void requireGraph(const std::string& name);
  /// A function of _arrays.py, of which a graph of calls gets the calls of torch that it makes.
  PyRef ask(const char* function, std::initializer_list<PyObject*> args);
  [[noreturn]] void refuse(const std::string& name, const std::string& why);

  Evaluation& e_;
  std::unordered_map<PyObject*, Value> values_;
  at::Tensor quiet_;          ///< one bool: numpy warns of nothing
  int64_t quietSince_ = -1;   ///< root instruction of the first that may
};

}  // namespace fusebox::capture
