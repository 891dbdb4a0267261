#pragma once

#include <functional>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// Writes to objects that existed before the capture. They are really made while capturing, so that the program reads what it
/// wrote; `undo` takes them back, and `effects` says what has to be done after the graph has run. A write that leaves the old
/// value in place is no effect. The GIL must be held.
class Journal {
 public:
  /// Call before the first and any later write to a container (dict, list, set, cell, or anything with copy/clear/extend).
  /// `source` is the container's. `owner`: the instance whose __dict__ a dict is, with its source, or null.
  /// False: this kind of object cannot be written to under a journal.
  bool beforeWrite(PyObject* container, const Source* source, PyObject* owner, const Source* ownerSource);
  /// Before a write to a slot (member descriptor) of an instance.
  void beforeSlotWrite(PyObject* object, const Source* source, PyObject* name);
  bool slotWritten(PyObject* object, PyObject* name) const;
  /// Whether `key` of a dict may have been written (or removed) by this capture.
  bool written(PyObject* container) const;
  /// What the container held at the frame's entry; null when it was not written.
  PyObject* original(PyObject* container) const;
  bool empty() const { return entries_.empty() && slots_.empty(); }

  /// Effects in the order of first writes. `recipe` makes the recipe of a value, `source` that of a written object.
  std::vector<SideEffect> effects(const std::function<RecipePtr(PyObject*)>& recipe) const;
  /// Puts everything back as it was. Call once, after `effects`.
  void undo();

  struct Entry {
    PyRef container;
    const Source* source = nullptr;
    PyRef snapshot;  ///< a copy of the contents; cell: the value (null: empty)
    PyRef owner;
    const Source* ownerSource = nullptr;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  struct SlotEntry {
    PyRef object;
    const Source* source;
    PyRef name, value;
  };
  const Entry* find(PyObject* container) const;
  std::vector<Entry> entries_;
  std::vector<SlotEntry> slots_;
};

}  // namespace fusebox::capture
