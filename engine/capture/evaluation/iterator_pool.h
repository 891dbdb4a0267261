#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;
class RecipeMaker;
struct Recipe;

/// How to make an iterator again that a segment leaves behind: callable(*args, **kwargs), or the one argument itself without a callable;
/// then __setstate__(state) where there is one; then iter() of it with `taken` items skipped. Without arguments: it cannot be.
struct Remaking {
  PyRef callable, args, kwargs, state;
  int64_t taken = -1;  ///< -1: the result of the call is the iterator
};

/// An iterator that the evaluator advances (a suspended generator, a walk over a list, zip over some, …), as a Python object. Nothing
/// but the program refers to it, so that a generator is closed where its last reference goes, as in CPython.
class LazyIterator {
 public:
  virtual ~LazyIterator() = default;
  /// Null without error: exhausted.
  virtual PyRef next(Evaluation& e) = 0;
  virtual int send(Evaluation& e, PyObject* value, PyRef* result);
  /// Generator: runs `finally` blocks.
  virtual bool close(Evaluation&) { return true; }
  /// Nobody refers to it any more.
  virtual bool letGo(Evaluation& e) { return close(e); }
  virtual int throwInto(Evaluation& e, PyObject* exception, PyRef* result);
  /// Whether closing it would run code of the program.
  virtual bool runsWhenClosed() const { return false; }
  /// The class that CPython's iterator has.
  virtual PyTypeObject* type() const = 0;
  virtual Remaking remake(Evaluation&) const { return {}; }
  /// Where it stands in for one of the program's (taken_iterators.h): what that is given after the graph. Empty: it has no state of its own.
  virtual std::vector<std::shared_ptr<Recipe>> stateAfter(Evaluation&, RecipeMaker&) const { return {}; }
  int64_t birth = 0;  ///< root instructions executed before it was made
};
PyRef makeLazy(Evaluation& e, std::unique_ptr<LazyIterator> iterator);
/// Null: not one.
LazyIterator* lazyOf(PyObject* object);
/// C code has tried to advance one since this was asked last.
bool lazyWasMisused();

/// The iterators that one evaluation made, and those among them that nobody refers to any more and that are yet to be closed.
struct IteratorPool {
  bool open = true;  ///< false: the evaluation is over, nothing is closed any more
  std::unordered_set<LazyIterator*> all;
  std::vector<std::unique_ptr<LazyIterator>> abandoned;
};

}  // namespace fusebox::capture
