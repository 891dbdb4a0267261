#include "engine/capture/guards/size_marks.h"

#include <string_view>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {
namespace {

std::optional<int64_t> integerOf(PyObject* o) {
  if (!o || !PyLong_Check(o)) return std::nullopt;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow ? std::nullopt : std::optional(value);
}

template <class Set>
void markAll(PyObject* dict, const char* name, std::vector<SizeMark>& marks, Set set) {
  PyObject* dimensions = PyDict_GetItemString(dict, name);
  if (!dimensions || !PyAnySet_Check(dimensions)) return;
  PyObject* element;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(dimensions, &at, &element, &hash);)
    if (const auto dim = integerOf(element); dim && *dim >= 0 && static_cast<size_t>(*dim) < marks.size()) set(marks[static_cast<size_t>(*dim)]);
}

std::optional<int64_t> attribute(PyObject* object, const char* name) {
  const PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  if (!value) clearError();
  return integerOf(value.get());
}

/// A set of objects with dim, min and max.
void markRanges(PyObject* dict, std::vector<SizeMark>& marks) {
  PyObject* ranges = PyDict_GetItemString(dict, "_dynamo_dynamic_range");
  if (!ranges || !PyAnySet_Check(ranges)) return;
  PyObject* range;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; _PySet_NextEntry(ranges, &at, &range, &hash);) {
    const auto dim = attribute(range, "dim");
    if (!dim || *dim < 0 || static_cast<size_t>(*dim) >= marks.size()) continue;
    marks[static_cast<size_t>(*dim)].least = attribute(range, "min");
    marks[static_cast<size_t>(*dim)].most = attribute(range, "max");
  }
}

}  // namespace

std::vector<SizeMark> sizeMarks(PyObject* tensor, size_t dimensions) {
  PyObject** dict = _PyObject_GetDictPtr(tensor);
  if (!dict || !*dict || PyDict_GET_SIZE(*dict) == 0) return {};
  bool any = false;
  for (const char* name : {"_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices", "_dynamo_unbacked_indices",
                           "_dynamo_strict_unbacked_indices", "_dynamo_marked_static"})
    any = any || PyDict_GetItemString(*dict, name);
  if (!any) return {};
  std::vector<SizeMark> marks(dimensions);
  markAll(*dict, "_dynamo_dynamic_indices", marks, [](SizeMark& m) { m.dynamic = true; });
  markAll(*dict, "_dynamo_weak_dynamic_indices", marks, [](SizeMark& m) { m.weak = true; });
  markAll(*dict, "_dynamo_static_indices", marks, [](SizeMark& m) { m.fixed = true; });
  markAll(*dict, "_dynamo_unbacked_indices", marks, [](SizeMark& m) { m.unbacked = true; });
  markAll(*dict, "_dynamo_strict_unbacked_indices", marks, [](SizeMark& m) { m.strictUnbacked = true; });
  markRanges(*dict, marks);
  return marks;
}

}  // namespace fusebox::capture
