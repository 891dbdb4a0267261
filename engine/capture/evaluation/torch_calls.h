#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

/// The calls of torch that a segment makes, as the program makes them: what a backend that is a function of Python gets as an FX graph
/// (fusebox._torch_calls builds it). Only outermost calls count; what a call does inside is its own. Every operator that the trace
/// records must belong to one of them, else the segment ends before the instruction that made it.
class TorchCalls {
 public:
  /// How a call is to be written down; the names that _torch_calls.py gives them are in the same order.
  enum class Kind : uint8_t { Function, Mode, EnterBlock, LeaveBlock, AutogradFunction, Condition, Loop, Map, Scan, Wrap, Read };

  /// `backend`: fusebox._torch_calls.FunctionBackend, borrowed.
  TorchCalls(Evaluation& evaluation, PyObject* backend);
  ~TorchCalls();
  TorchCalls(const TorchCalls&) = delete;
  TorchCalls& operator=(const TorchCalls&) = delete;
  /// Those of the capture that goes on in this thread; null: it has none.
  static TorchCalls* current();

  /// Around one call. Without `calls` it does nothing.
  class Scope {
   public:
    explicit Scope(TorchCalls* calls);
    /// The call has given `result`; null: it raised.
    void done(PyObject* callable, const CallArguments& a, PyObject* result, Kind kind = Kind::Function);
    /// The same of a function of Python's operator module, by name.
    void done(const char* operation, std::initializer_list<PyObject*> args, PyObject* result);
    /// The same where nothing inside has been written down.
    void doneAlone(const char* operation, std::initializer_list<PyObject*> args, PyObject* result);

   private:
    friend class TorchCalls;
    TorchCalls* calls_;
    size_t rows_ = 0, operators_ = 0, accounted_ = 0, answers_ = 0;
    /// A torch function mode was asked instead: what it called is written down.
    bool wasAnswered() const;
  };

  /// What one call of a Python function of torch's amounts to.
  struct Whole {
    Kind kind = Kind::Function;
    PyRef args;  ///< as they were before it; null: the function is not written down as one call
    PyRef keywords;
  };
  /// Whether a Python function that is about to be interpreted is one call of the graph, as torch.nn.functional's are.
  Whole wholeOf(PyObject* function, const CallArguments& a);
  void done(const Scope& scope, const Whole& whole, PyObject* function, PyObject* result);

  /// torch.cond and its like: the functions that they are given are graphs of their own. Null: not one that can be written down.
  PyRef higherOrder(PyObject* op, const CallArguments& a, bool* known);
  /// wrap(function, …): what the function does is a graph of its own, whatever it is given. One positional argument at least.
  PyRef wrap(PyObject* op, const CallArguments& a);

  /// The program stores a stand-in in a local: the first such name is that of what gave it.
  void named(PyObject* standIn, PyObject* name);

  /// A method of torch.Tensor that only computes and that the evaluator calls, on tensors and constants: a Read, which the graph lacks where nobody
  /// uses it. Null: it raised.
  PyRef method(const char* name, std::initializer_list<PyObject*> args, PyObject* keywords = nullptr);
  /// All operators since `scope` began belong to these calls: a list of (callable, args, keywords, result).
  void addAll(const Scope& scope, PyObject* calls);
  /// A tensor of one bool, asked at instruction `since` of the root frame: where it is false the graph's results do not count, and the call is the
  /// program's. A graph whose run others can see ends before that.
  void assume(PyObject* condition, int64_t since);

  /// A symbol of data is element `element` of a row of ints, or the one int of a tensor (-1). `before`: operators() before it was read.
  void number(const graph::SymExpr& symbol, PyObject* tensor, int64_t element, size_t before);
  size_t operators() const;

  /// After an instruction of the root frame: a break if an operator was recorded that no call accounts for.
  void requireAll();
  /// Everything as an FX graph: fills `segment.torchGraph` and the inputs that it uses. CaptureBreak where a call cannot be part of one.
  void finish(const std::vector<at::Tensor>& results, Segment& segment);

 private:
  struct Row {
    Kind kind;
    PyRef target, args, keywords, result, places, modules, name;
    int64_t root;  ///< instruction of the root frame
  };
  struct SubGraph {
    PyRef rows, arguments, results;  ///< for _torch_calls.py
    PyRef returned;                  ///< by the function
    PyRef exposed;                   ///< the same without objects of the evaluator's
  };
  bool mayRepeat() const;
  void requireRepeatable() const;
  void fillData(PyObject* answer, Segment& segment) const;
  PyRef dataSymbols() const;
  PyRef assumptions() const;
  std::vector<size_t> addComputed(std::vector<PyRef>& inputs) const;
  void add(const Scope& scope, Kind kind, PyRef target, PyRef args, PyRef keywords, PyObject* result);
  PyRef places();
  PyRef modules();
  PyRef nameOfResult() const;
  static PyRef described(const Row& row);
  SubGraph follow(PyObject* function, PyObject* arguments);
  SubGraph follow(PyObject* function, const CallArguments& a);
  PyRef sequence(PyObject* given, std::string_view op);
  PyRef copyOf(PyObject* tensors);
  /// Stand-ins of the first elements along the first dimension, and of as many tensors on top of each other.
  PyRef firstOf(PyObject* tensors);
  PyRef stackOf(PyObject* part, const c10::SymInt& count);
  PyRef stacksOf(PyObject* parts, const c10::SymInt& count);
  PyRef condition(PyObject* op, const CallArguments& a);
  PyRef loop(PyObject* op, const CallArguments& a);
  PyRef map(PyObject* op, const CallArguments& a);
  PyRef scan(PyObject* op, const CallArguments& a);
  void addHigherOrder(const Scope& scope, Kind kind, PyObject* op, const std::vector<PyRef>& parts, PyObject* results);

  Evaluation& e_;
  PyObject* backend_;
  bool gradMode_, insideTry_ = false;
  std::vector<Row> rows_;
  int depth_ = 0;  ///< of functions given to higher-order operators, one in the other
  std::map<std::pair<PyObject*, int>, std::pair<PyRef, PyRef>> names_;  ///< by stand-in and depth: it, which its key borrows, and its name there
  size_t accounted_ = 0;  ///< operators of the trace that belong to a call
  PyRef lastPlaces_, lastModules_, assumed_;
  int64_t assumedSince_ = 0, numbersSince_ = 0;
  struct Number {
    std::string symbol;
    PyRef tensor;
    int64_t element;
  };
  std::vector<Number> numbers_;
  std::vector<std::pair<const void*, int>> lastFrames_;
  std::vector<PyObject*> lastModuleStack_;
};

}  // namespace fusebox::capture
