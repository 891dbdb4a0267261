#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Says how to make the evaluator's objects again from graph results, sources and constants. One maker serves one segment:
/// an object that is reached twice gives the same recipe, so that aliasing survives.
class RecipeMaker {
 public:
  explicit RecipeMaker(Evaluation& evaluation) : e_(evaluation) {}

  /// Null gives a Null recipe. Throws CaptureBreak for what cannot be made again (a suspended generator, …).
  RecipePtr make(PyObject* object);
  /// Tensors that the graph has to return, in the order of GraphOutput indices.
  const std::vector<at::Tensor>& graphOutputs() const { return outputs_; }

 private:
  RecipePtr fromSource(const Source* source);
  RecipePtr node(Recipe::Kind kind, PyObject* key);
  RecipePtr tensor(PyObject* object);
  void sequence(Recipe& recipe, PyObject* object);
  void dictionary(Recipe& recipe, PyObject* object);
  void function(Recipe& recipe, PyObject* object);
  void instance(Recipe& recipe, PyObject* object);
  bool dictIterator(Recipe& recipe, PyObject* object);
  void reduced(Recipe& recipe, PyObject* object);
  RecipePtr constant(PyObject* object);

  Evaluation& e_;
  std::unordered_map<PyObject*, RecipePtr> made_;
  std::vector<at::Tensor> outputs_;
  std::vector<PyRef> keep_;
  int32_t nextId_ = 0;
};

}  // namespace fusebox::capture
