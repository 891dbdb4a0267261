#pragma once

#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

class Evaluation;
class RecipeMaker;
struct CallArguments;

/// What the program asks of generators of Python's module random. Its calls are made in every run of the segment before the graph, in their order; a
/// number that is drawn is an input of the graph without dimensions, which the program sees as a deferred number (deferred_numbers.h).
class RandomDraws {
 public:
  enum class Gives : uint8_t { Nothing, Float, Int };

  explicit RandomDraws(Evaluation& e) : e_(e) {}
  /// A method of random.Random; the generator is the first argument. A break where it is none that can be called beforehand.
  PyRef call(PyObject* method, const CallArguments& a, Gives gives);
  /// random.Random(...) in the region.
  PyRef makeGenerator(PyObject* type, const CallArguments& a);
  /// The arguments that a generator was made of in the region; null: it was not.
  PyObject* argumentsOf(PyObject* generator) const;
  /// How many calls there are.
  size_t count() const { return calls_.size(); }
  std::vector<Draw> finish(RecipeMaker& recipes) const;

 private:
  struct Call {
    PyRef generator, method, args, keywords;
    const Source* number = nullptr;
    Gives gives = Gives::Nothing;
  };
  struct Made {
    PyRef generator, args;
  };
  void requirePlain(const CallArguments& a, size_t first);
  Evaluation& e_;
  std::vector<Call> calls_;
  std::vector<Made> made_;
};

}  // namespace fusebox::capture
