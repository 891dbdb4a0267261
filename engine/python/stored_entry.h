#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/capture/cpython/frame_view.h"
#include "engine/capture/entries/entry_cache.h"
#include "engine/compile/stored_program.h"

namespace fusebox::python {

/// An entry written down, but for its graph: the archive speaks of the program's objects by their position in `objects`.
struct StoredEntry {
  std::string archive;
  std::vector<pybind11::object> objects;
};

/// What a file may speak of.
struct StoreRules {
  /// Whether other processes know an object, by a name or by its value.
  std::function<bool(const pybind11::object&)> canStore;
  /// Of a code object. Given: the entry is one of a whole program, which the reader has too. All that it assumes is written down, wherever it
  /// is, all that it does, and it may end in a break. Else it is a function of its arguments: what is assumed of other places is kept where
  /// `canStore` knows the objects on the way, or left out, since the program is as it was when it was captured.
  std::function<std::string(const pybind11::object&)> codeDigest;
};
/// `arguments`: how many locals the caller fills. Throws std::runtime_error, which names what cannot be written down.
StoredEntry writeStoredEntry(const capture::Entry& entry, int arguments, const StoreRules& rules);
std::string writeStoredModule(const aot::AotModule& module);
/// Throws inductor::ArchiveError, also where it is not of so many inputs and results.
std::shared_ptr<aot::AotModule> readStoredModule(const std::string& bytes, size_t inputs, int64_t results);

struct FoundEntry {
  capture::Segment segment;
  int64_t results = -1;  ///< of its graph; -1: there is none
};
/// Where an entry of a whole program is read: at a frame.
struct Finding {
  capture::FrameView frame;
  std::function<std::string(const pybind11::object&)> codeDigest;
};
/// The same entry for the frames of `code`, without its graph. Guards of a function on the program's own places are left out where objects are
/// missing here (null); an entry of a whole program (`finding`) needs all of them. Throws inductor::ArchiveError for damage, std::runtime_error for
/// what is needed and not as it was.
FoundEntry readStoredEntry(const StoredEntry& stored, PyCodeObject* code, PyObject* globals, const Finding* finding = nullptr);

/// The entry of a function of one tuple of tensors as a program that needs no Python. Throws std::runtime_error where it is none.
ProgramForm programOf(const capture::Entry& entry, size_t arguments);

/// Functions whose code was followed and classes whose attributes were read: (object, None or names; a None among names: all of them).
pybind11::list followedBy(const capture::Entry& entry);

}  // namespace fusebox::python
