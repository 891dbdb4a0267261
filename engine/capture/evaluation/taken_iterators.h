#pragma once

#include <memory>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

class Evaluation;
class LazyIterator;
class RecipeMaker;

/// What an iterator consists of in which Python code takes part: a generator (generatorParts), or zip, enumerate, map, filter and chain, whose parts are
/// what pickling says. Null without error: another, or one that runs.
PyRef partsOfIterator(PyObject* iterator);

/// Such iterators of the program, which it made before the segment and now advances: one of the evaluator's stands in for each, made of
/// its parts, and after the graph the program's is given the state that this one has then.
class TakenIterators {
 public:
  explicit TakenIterators(Evaluation& e) : e_(e) {}
  ~TakenIterators();
  /// Null: none of these kinds. Breaks where it cannot be taken.
  LazyIterator* take(PyObject* iterator, const Source* source);
  /// Null: it has not been taken.
  LazyIterator* find(PyObject* iterator) const;
  void giveBack(RecipeMaker& recipes, std::vector<SideEffect>& effects) const;

 private:
  struct Taken {
    PyRef iterator;
    const Source* source;
    std::unique_ptr<LazyIterator> by;
  };
  std::unique_ptr<LazyIterator> ofGenerator(PyObject* parts, const Source* source, bool isCoroutine);
  Evaluation& e_;
  std::vector<Taken> taken_;
};

}  // namespace fusebox::capture
