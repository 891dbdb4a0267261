#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;
class GuardSet;

/// What functions of functools.lru_cache made while they were evaluated: new objects, where the cache would give one and the same at every call. They
/// stand in for it as long as nobody can tell: they are not written to, not compared by identity with one another, and do not leave the frame. Where
/// one is, evaluation starts over and asks the cache for real. The GIL must be held.
class StandIns {
 public:
  explicit StandIns(Evaluation& e) : e_(e) {}
  /// Of numbers, texts, tensors that require no gradient, containers and plain instances. False: `result` holds something else, and none is added.
  /// `code` is that of the function.
  bool add(PyObject* result, const PyRef& code);
  bool holds(PyObject* object) const;
  /// Throws CaptureBreak for a stand-in, and for a tensor that shares the memory of one.
  void requireUnseen(PyObject* object) const;
  /// Throws CaptureBreak where one has changed since it was added.
  void requireUnchanged() const;

 private:
  struct StandIn {
    PyRef object;
    PyRef before;  ///< list: a tuple of its elements; dict: a copy
    PyRef code;
    uint32_t version;  ///< tensor
  };
  Evaluation& e_;
  std::vector<StandIn> all_;
};

/// Before a real call: whether it is one that a capture made ahead, of a cached function that raised. The exception is set then, and the
/// function is not called again.
bool raiseAhead(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames);

/// The question of a guard: whether a cache remembers what it did. `expected`: its dict, the key, the result, and the arguments, those by name as pairs.
bool stillCached(PyObject* wrapper, PyObject* expected);
/// What of that other processes know: the result and the arguments; and what this process is to expect of it, null where that is none.
PyRef writtenOfCached(PyObject* wrapper, PyObject* expected);
PyRef expectedOfCached(PyObject* wrapper, PyObject* written);
bool isCached(PyObject* wrapper, PyObject* written);

/// While it lives, such guards hold also where nothing is remembered yet: for a capture of another process, whose other guards come first.
class CachesMayLack {
 public:
  CachesMayLack();
  ~CachesMayLack();
  CachesMayLack(const CachesMayLack&) = delete;
  CachesMayLack& operator=(const CachesMayLack&) = delete;
};
/// Asks caches that remember nothing yet of what `guards` expect of them, in the order of the capture, which would ask them too: a call that is
/// no hit later. Python's code runs: the guards are to be checked again. Returns why the capture cannot be taken; empty: it can.
std::string askLackingCaches(const GuardSet& guards);

}  // namespace fusebox::capture
