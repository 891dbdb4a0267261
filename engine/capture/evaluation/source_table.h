#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

/// Makes and owns the Sources of one capture. Asking twice for the same place gives the same pointer; pointers stay valid as
/// long as the table lives. `id` is the order of creation, so a base always has a smaller id than what is reached through it.
/// Keys that are str, int, bytes, bool or None are compared by value, all others by identity. The GIL must be held.
class SourceTable {
 public:
  /// `code` names the locals of the root frame; `globals` is its globals dict (printed as G). Both are kept alive until release().
  SourceTable(PyCodeObject* code, PyObject* globals);
  SourceTable(const SourceTable&) = delete;
  SourceTable& operator=(const SourceTable&) = delete;

  const Source* local(int index);
  const Source* stack(int index);
  const Source* pinned(PyObject* object, Why why = Why::Guarded);
  const Source* globalWeak(PyObject* weakref);
  const Source* cellContents(const Source* base) { return derived(Source::Kind::CellContents, base); }
  const Source* instanceDict(const Source* base) { return derived(Source::Kind::InstanceDict, base); }
  const Source* dictItem(const Source* base, PyObject* key) { return derived(Source::Kind::DictItem, base, key); }
  const Source* dictKey(const Source* base, int64_t i) { return derived(Source::Kind::DictKey, base, nullptr, i); }
  const Source* sequenceItem(const Source* base, int64_t i) { return derived(Source::Kind::SequenceItem, base, nullptr, i); }
  const Source* slotAttr(const Source* base, PyObject* name) { return derived(Source::Kind::SlotAttr, base, name); }
  const Source* attr(const Source* base, PyObject* name) { return derived(Source::Kind::Attr, base, name); }
  const Source* tensorGrad(const Source* base) { return derived(Source::Kind::TensorGrad, base); }

  /// Any source that has a base; `key` (borrowed) and `index` as the kind asks.
  const Source* derived(Source::Kind kind, const Source* base, PyObject* key = nullptr, int64_t index = -1);

  size_t size() const { return sources_.size(); }
  const Source* at(size_t id) const { return &sources_[id]; }
  /// The sources whose keys can be given up.
  std::deque<Source>& all() { return sources_; }
  /// No source is asked for any more: code and globals are given up.
  void release();

 private:
  const Source* intern(Source source, PyObject* name);
  PyRef code_, globals_;
  std::deque<Source> sources_;
  std::unordered_multimap<size_t, const Source*> byHash_;
  std::unordered_map<const Source*, int> keysByIdentity_;  // how many there are of a dict
};

}  // namespace fusebox::capture
