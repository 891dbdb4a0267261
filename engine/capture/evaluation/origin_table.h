#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

/// Where an object that the evaluator has met comes from. Provenance belongs to the object, not to the variable that holds it:
/// an object read through two sources is guarded to be the same one at both.
struct Origin {
  PyRef object;                    ///< keeps the address from being used again while the capture lasts
  const Source* source = nullptr;  ///< null: made by this capture
  PyRef twin;                      ///< real tensor <-> the stand-in that computes in its place; of a nested tensor: the stand-in of its values
  int64_t birth = 0;               ///< fresh: number of root instructions executed before it was made
  bool contentsGuarded = false;    ///< length (or keys) and elements of a container are guarded already
  bool lengthGuarded = false;      ///< its length at the frame's entry is
  bool keysGuarded = false;        ///< dict: all keys in their order are
  PyRef owner;                     ///< an instance's __dict__: the instance
  bool written = false;            ///< its contents differ (or differed) from those at the frame's entry
  bool fresh() const { return source == nullptr; }
};

/// All objects with a known origin, by address. The GIL must be held.
class OriginTable {
 public:
  Origin* find(PyObject* object) {
    auto it = byAddress_.find(object);
    return it == byAddress_.end() ? nullptr : &it->second;
  }
  Origin& add(PyObject* object, const Source* source) {
    Origin& o = byAddress_[object];
    o.object = PyRef::borrow(object);
    o.source = source;
    return o;
  }
  const std::unordered_map<PyObject*, Origin>& all() const { return byAddress_; }

 private:
  std::unordered_map<PyObject*, Origin> byAddress_;
};

}  // namespace fusebox::capture
