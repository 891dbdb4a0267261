#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "engine/graph/operator_facts.h"
#include "engine/trace/kernel_warnings.h"
#include "engine/trace/shape_rules.h"

namespace fusebox::trace {

/// What tracing needs to know of an operator beyond what holds for every stage; looked up once and kept.
struct OperatorFacts : graph::OperatorFacts {
  /// How results are computed without data, fastest and safest first.
  enum class Route : uint8_t { OwnRule, HiddenMeta, Composite, PythonMeta, Probe, None };
  struct Shape {
    Route route = Route::None;
    ShapeRule rule = nullptr;                     ///< for OwnRule
    const c10::KernelFunction* kernel = nullptr;  ///< for HiddenMeta and Composite
    bool onDevice = false;                        ///< for Probe: CUDA's kernel is run, not the CPU's
    bool rowMajor = false;                        ///< the result is, whatever the route makes of its layout
  };
  std::string name;
  Shape onCpu, onCuda;                                     ///< differ where the CPU's kernel is probed: CUDA's lays memory out otherwise
  const Shape& shape() const { return shape::forCuda() ? onCuda : onCpu; }
  const c10::KernelFunction* compositeImplicit = nullptr;  ///< decomposes into other operators; never recorded itself
  const c10::OperatorHandle* functional = nullptr;         ///< of an in-place operator by inPlaceRule(): tells the result's type
  bool hasPythonMeta = false;  ///< second try when a composite kernel touches data
  int devicePosition = -1, pinPosition = -1;               ///< of the argument, or -1
  bool dataDependent = false;  ///< returns a Python number read from data
  bool dynamicShape = false;   ///< result shape depends on data
  bool takesAnyNumber = false; ///< raises for no value of its scalars, nor chooses by it: floats that are symbols are values of the graph there
  KernelWarning warning = nullptr;  ///< says what its kernel would warn of
  bool hasOut = false;         ///< has out= arguments
  bool returnsTensor = false;
  bool returnsObject = false;  ///< returns something that is no tensor, which only the real call knows where the operator is foreign
};

/// Facts of `op`. The reference stays valid for the thread's life. Operators without any route are looked up again next time, because
/// a shape function may be registered in between.
const OperatorFacts& factsOf(const c10::OperatorHandle& op);

/// Whether the program has given the operator a kernel of its own for autograd, which torch.library.custom_op's is not.
bool hasOwnAutograd(const c10::OperatorHandle& op);

}  // namespace fusebox::trace
