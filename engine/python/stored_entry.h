#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/capture/entries/entry_cache.h"
#include "engine/compile/stored_program.h"

namespace fusebox::python {

/// An entry written down: the archive speaks of the program's objects by their position in `objects`.
struct StoredEntry {
  std::string archive;
  std::vector<pybind11::object> objects;
};

/// `arguments`: how many locals the caller fills. What is assumed of other places than arguments is kept where `canStore` knows the objects on
/// the way, else left out: it is the program's, which is as it was when it was captured. Throws std::runtime_error, which names what of the
/// arguments or the results cannot be written down.
StoredEntry writeStoredEntry(const capture::Entry& entry, int arguments, const std::function<bool(const pybind11::object&)>& canStore);

/// The same entry for the frames of `code`, not yet compiled; guards of the program's own places on objects that are missing here (null) are
/// left out. Throws inductor::ArchiveError for damage, std::runtime_error for what the arguments would need.
capture::Segment readStoredEntry(const StoredEntry& stored, PyCodeObject* code, PyObject* globals);

/// The entry of a function of one tuple of tensors as a program that needs no Python. Throws std::runtime_error where it is none.
ProgramForm programOf(const capture::Entry& entry, size_t arguments);

/// Functions whose code was followed and classes whose attributes were read: (object, None or names).
pybind11::list followedBy(const capture::Entry& entry);

}  // namespace fusebox::python
