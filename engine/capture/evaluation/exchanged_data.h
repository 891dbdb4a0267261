#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;

/// `x.data = y` where x existed before the region: its stand-in goes on with the data of y, and x itself is given them after the graph.
class ExchangedData {
 public:
  explicit ExchangedData(Evaluation& e) : e_(e) {}
  /// A break where it would not be what the program sees. `data` null: the attribute is deleted.
  void exchange(PyObject* tensor, PyObject* data);
  /// Before the segment is finished: stand-ins are inputs again as they came, with what was written to that memory.
  void takeBack();
  bool has(PyObject* tensor) const { return exchanged_.contains(tensor); }

 private:
  struct Input {
    PyRef tensor;
    at::Tensor before;         ///< shares the memory that it had first
    int64_t version = 0;       ///< when it was first exchanged
    int64_t reshapedAt = -1;   ///< root instruction that gave one which requires a gradient data of another shape
  };
  [[noreturn]] void refuse(const char* why);
  void putOff(PyObject* callable, PyObject* args);
  Evaluation& e_;
  std::unordered_map<PyObject*, Input> exchanged_;
};

}  // namespace fusebox::capture
