#pragma once

#include <span>
#include <vector>

#include "engine/trace/operator_facts.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

class Recorder;

/// The tensors that an operator writes in place. Functionalisation puts new results in their places; what stays eager's is said here, after it has
/// run. A tensor keeps its strides, and so does what it is a view of: a new result that has others, where there are gaps (a slice of an input) or the
/// operator lays results out by itself (cumsum), is copied into those it had. A tensor that is written where autograd does not hear of it (under
/// no_grad, by a detached alias) keeps its history: a node kOverwritten says whose. So does one that becomes a view of itself (transpose_).
class WrittenTensors {
 public:
  WrittenTensors(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args);
  void finish(Recorder& recorder) const;

 private:
  struct Written {
    at::Tensor tensor, before;  ///< the functional wrapper, and what its storage held
  };
  static void keepStrides(const Written& written);
  static void keepViewed(const Written& written);
  static void keepHistory(const Written& written, Recorder& recorder);

  std::vector<Written> written_;
  bool isView_ = false;
};

}  // namespace fusebox::trace
