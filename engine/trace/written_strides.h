#pragma once

#include <span>
#include <vector>

#include "engine/trace/operator_facts.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

/// What an operator writes in place keeps its strides, and so does what it is a view of. Functionalisation puts a new result in its place,
/// which has others where there are gaps (a slice of an input) or the operator lays results out by itself (cumsum): finish() has it copied
/// into those it had.
class WrittenStrides {
 public:
  WrittenStrides(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args);
  void finish() const;

 private:
  struct Written {
    at::Tensor tensor, before;  ///< the functional wrapper, and what its storage held
  };
  std::vector<Written> written_;
};

}  // namespace fusebox::trace
