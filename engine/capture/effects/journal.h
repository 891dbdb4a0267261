#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// Writes a C member of an object, or an attribute of a class; `value` null deletes. False with a Python error set.
bool setSlotOf(PyObject* object, PyObject* name, PyObject* value);

/// The log of what a capture did to the outside: writes to objects that existed before, and calls that are put off until after the
/// graph, in the program's order. Writes are really made while capturing, so that the program reads what it wrote. `undo` takes back
/// what this log holds and nothing else: what another thread wrote meanwhile stays. `effects` is the log as it is carried out by every
/// call, whether or not a write happens to leave in place what was there. The GIL must be held.
class Journal {
 public:
  /// An object that was written to.
  struct Entry {
    PyRef container;                      ///< dict, list, set, deque or cell; any object whose slots were written
    const Source* source = nullptr;
    PyRef owner;                          ///< the instance whose __dict__ a dict is
    const Source* ownerSource = nullptr;
    PyRef before, last;                   ///< dict, cell, slots: by key what was there first and what the capture put there last
    PyRef snapshot;                       ///< list, set, deque: the contents at first; dict: its keys, once their order may differ
    PyRef places;                         ///< list, deque: the same with the place (an int) of each at first, None for what was put there since; null where unknown
  };

  /// Call before any write to a container; `owner` and its source are those of an instance's __dict__, or null. False: objects of
  /// this kind cannot be written to.
  bool open(PyObject* container, const Source* source, PyObject* owner, const Source* ownerSource);

  // Each makes the write and notes it; the container is open (slots need not be). False with a Python error set: nothing was written.
  /// Of the builtin part of a dict; `value` null deletes a key that is there.
  bool setKey(PyObject* dict, PyObject* key, PyObject* value);
  bool clearDict(PyObject* dict);
  bool moveToEnd(PyObject* orderedDict, PyObject* key, bool last);
  /// Of the builtin part of a list, by index or slice; `value` null deletes.
  bool setElement(PyObject* list, PyObject* key, PyObject* value);
  void setCell(PyObject* cell, PyObject* value);
  /// A C member of an object, or an attribute of a class.
  bool setSlot(PyObject* object, const Source* source, PyObject* name, PyObject* value);

  // Notes of what was done.
  /// `method` (of a builtin list, set or deque) was called on an open container with `arguments`, a tuple that nothing changes.
  void called(PyObject* container, PyObject* method, PyObject* arguments);
  /// An iterator from outside gave one more item.
  void advanced(PyObject* iterator, const Source* source);
  /// A call that is made after the graph, from the root frame's instruction at `offset`. `observes`: it may look at what was written.
  void putOff(PyObject* callable, PyObject* args, PyObject* kwargs, int offset, bool observes);
  /// A cached function was asked for what it remembers. Of no account for what else is written, and before all of it in effects(), or in the
  /// program's order where its function might see what was written.
  void asked(PyObject* wrapper, PyObject* args, PyObject* kwargs, bool inOrder);

  /// Whether this capture wrote or removed a key of a dict.
  bool wrote(PyObject* dict, PyObject* key) const;
  bool slotWritten(PyObject* object, PyObject* name) const;
  bool hasWrittenSlots() const { return !slotsByAddress_.empty(); }
  /// Where an element of an open list or deque lay at first, -1 if it was put there since; nullopt: nobody knows.
  std::optional<Py_ssize_t> firstPlace(PyObject* sequence, Py_ssize_t index) const;
  /// Calls `fn` with every key of a dict that was written or removed, and whether it was there at first.
  void forEachWritten(PyObject* dict, const std::function<void(PyObject*, bool)>& fn) const;
  /// What a written container held at first, as a plain dict, list, set or deque.
  PyRef original(PyObject* container) const;
  /// How many calls are put off.
  size_t calls() const { return calls_; }
  /// How much was done so far.
  size_t size() const { return log_.size(); }
  /// How much of it anybody but a cache can tell.
  size_t writes() const { return log_.size() - asksInOrder_.size(); }
  /// How often a cached function was asked in the program's order.
  size_t asksInOrder(PyObject* wrapper) const { return asksInOrder_.count(wrapper); }
  const std::vector<Entry>& entries() const { return entries_; }

  /// The log in program order. Of several writes to one place only the last is left where nobody can tell: no call in between looks
  /// at it, and the keys come in the same order. `recipe` says how a value is made.
  std::vector<SideEffect> effects(const std::function<RecipePtr(PyObject*)>& recipe) const;
  /// Puts back what was there before the writes, in reverse. Call once, after `effects`.
  void undo();

 private:
  struct Write {
    SideEffect::Kind kind = SideEffect::Kind::SetItem;
    size_t entry = 0;             ///< what was written; not of iterators and calls
    PyRef key, value;             ///< Method: the method and its arguments; Call: the callable and its arguments
    PyRef kwargs;                 ///< Call
    const Source* source = nullptr;  ///< AdvanceIterator
    int64_t number = 0;           ///< as SideEffect::number
    bool observes = false;
  };
  const Entry* find(PyObject* container) const;
  SideEffect effectOf(const Write& write, const std::function<RecipePtr(PyObject*)>& recipe) const;
  std::vector<Write> folded() const;
  /// What the writes make of the first contents of a list, set or deque.
  PyRef image(size_t entry) const;
  void undoSequence(size_t entry);
  void undoSet(size_t entry);

  std::vector<Entry> entries_;
  std::unordered_map<PyObject*, size_t> byAddress_, slotsByAddress_;
  std::vector<Write> log_, asked_;
  size_t calls_ = 0;
  std::unordered_multiset<PyObject*> asksInOrder_;  ///< wrappers
};

}  // namespace fusebox::capture
