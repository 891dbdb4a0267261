#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
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
  bool hasMade(const LazyIterator* iterator) const { return lazies_.contains(iterator); }

 private:
  using Maker = RecipePtr (RecipeMaker::*)(PyObject*);
  static Maker makerOf(PyTypeObject* type);
  RecipePtr fromSource(const Source* source);
  RecipePtr node(Recipe::Kind kind, PyObject* key);
  RecipePtr constant(PyObject* object);
  RecipePtr tensor(PyObject* object);
  RecipePtr wrapper(PyObject* object);
  RecipePtr parameter(PyObject* object);
  RecipePtr withoutData(PyObject* object);
  RecipePtr number(PyObject* object);
  RecipePtr text(PyObject* object);
  RecipePtr deferred(PyObject* object);
  RecipePtr array(PyObject* object);
  RecipePtr size(PyObject* object);
  RecipePtr call(PyObject* object, PyObject* callable, std::initializer_list<PyObject*> arguments);
  RecipePtr callWith(PyObject* object, PyObject* callable, PyObject* arguments);
  RecipePtr elements(PyObject* object);
  RecipePtr plainDict(PyObject* object);
  RecipePtr plainSet(PyObject* object);
  void setContents(Recipe& recipe, PyObject* set);
  RecipePtr slice(PyObject* object);
  RecipePtr builtinFunction(PyObject* object);
  RecipePtr cell(PyObject* object);
  RecipePtr function(PyObject* object);
  RecipePtr method(PyObject* object);
  RecipePtr partial(PyObject* object);
  RecipePtr super(PyObject* object);
  RecipePtr generator(PyObject* object, PyObject* args);
  RecipePtr aroundFunction(PyObject* object);
  RecipePtr property(PyObject* object);
  RecipePtr deque(PyObject* object);
  RecipePtr weakReference(PyObject* object);
  RecipePtr dictView(PyObject* object);
  RecipePtr proxy(PyObject* object);
  RecipePtr instance(PyObject* object);
  RecipePtr reduced(PyObject* object);
  void sequence(Recipe& recipe, PyObject* object);
  void dictionary(Recipe& recipe, PyObject* object);
  void pythonSlots(Recipe& recipe, PyObject* object);
  void members(Recipe& recipe, PyObject* object, PyTypeObject* type);
  void exception(Recipe& recipe, PyObject* object);
  void builtinPart(Recipe& recipe, PyObject* object);
  RecipePtr lazy(LazyIterator& iterator, PyObject* object);
  [[noreturn]] void refuse(PyObject* object, std::string reason);

  Evaluation& e_;
  std::unordered_map<PyObject*, RecipePtr> made_;
  std::vector<at::Tensor> outputs_;
  std::vector<PyRef> keep_;
  int32_t nextId_ = 0;
  std::unordered_set<const LazyIterator*> lazies_;
};

}  // namespace fusebox::capture
