#pragma once

#include <string>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

class Evaluation;
class RecipeMaker;
struct CallArguments;

/// The state of a generator that random_draws follows. New reference, or null with a Python error set.
PyRef stateOfGenerator(PyObject* generator);
/// Gives it that state again; a Python error may be set.
void setStateOfGenerator(PyObject* generator, PyObject* state);
/// An array or number of numpy's as a tensor; null: it has none.
PyRef tensorOfNumpy(PyObject* value);

/// What the program asks of generators of Python's module random, of numpy's, and of torch's own ones. Its calls are made in every run of the segment before the graph,
/// in their order; a number that is drawn is an input of the graph without dimensions, which the program sees as a deferred number (deferred_numbers.h), an array one
/// that shares memory with such an input, a tensor is such an input.
class RandomDraws {
 public:
  explicit RandomDraws(Evaluation& e) : e_(e) {}
  /// A method of a generator, which is the first argument, that draws from it or seeds it. A break where it cannot be called beforehand.
  PyRef call(PyObject* method, const CallArguments& a);
  /// A function of torch that makes a tensor of numbers which a torch.Generator gives, its keyword argument `generator`.
  PyRef tensor(PyObject* function, const CallArguments& a);
  /// random.Random(...) or torch.Generator(...) in the region.
  PyRef makeGenerator(PyObject* type, const CallArguments& a);
  /// The arguments that a generator was made of in the region; null: it was not.
  PyObject* argumentsOf(PyObject* generator) const;
  /// How many calls there are.
  size_t count() const { return calls_.size(); }
  /// How an input of the graph is called there.
  std::string nameOf(const Source* input) const;
  std::vector<Draw> finish(RecipeMaker& recipes) const;

 private:
  struct Call {
    PyRef generator, method, args, keywords;
    const Source* number = nullptr;
    Draw::Gives gives = Draw::Gives::Nothing;
  };
  struct Made {
    PyRef generator, args;
  };
  void requirePlain(const CallArguments& a, size_t first);
  PyRef sample(PyObject* method, const CallArguments& a, const char* kind);
  PyRef resultOf(Call& call, PyObject* sample);
  void requireTime() const;
  Evaluation& e_;
  std::vector<Call> calls_;
  std::vector<Made> made_;
};

}  // namespace fusebox::capture
