#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fusebox::capture {

/// The properties of a tensor that a graph is specialised for. Plain numbers: no tensor is kept alive.
struct TensorSpec {
  PyTypeObject* type = nullptr;  ///< exact Python class (kept alive by the guard that uses the spec)
  uint64_t keys = 0;             ///< raw dispatch key set
  int8_t dtype = 0, deviceType = 0, deviceIndex = -1, layout = 0;
  bool requiresGrad = false, isLeaf = true;
  bool hasStrides = true;        ///< strided layout
  bool hasSizes = true;          ///< false (nested tensors, subclasses): the spec matches nothing
  bool comparesStorage = false;  ///< the graph depends on where in its storage the tensor lies, of which there are at least storageBytes
  int64_t storageOffset = 0, storageBytes = 0;
  std::vector<int64_t> sizes, strides;
  uint64_t freeSizes = 0, freeStrides = 0;  ///< a bit for each dimension of which these are not compared: guards of their own speak of them
  bool freeOffset = false;
  std::vector<std::string> symbols;         ///< what str() says for free sizes and strides, in this order; none: "?"

  /// Takes the properties of a torch.Tensor (or subclass). Sizes that are symbolic make the call fail with a Python error set.
  static TensorSpec of(PyObject* tensor);
  /// True if the tensor has these properties. No Python code runs, nothing is allocated.
  bool matches(PyObject* object) const;
  bool isInference() const;
  static constexpr size_t kMostFree = 64;  ///< dimensions
  /// "Float[2, 3] strides [3, 1] cpu requires_grad".
  std::string str() const;
  /// In how many of these properties `object`, which does not match, differs: 1 at least.
  int differences(PyObject* object) const;
  /// `object` in the words of str(), with whatever else makes it different.
  std::string difference(PyObject* object) const;
};

}  // namespace fusebox::capture
