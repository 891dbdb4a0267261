#include "engine/capture/evaluation/module_paths.h"

#include <unordered_set>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

class Search {
 public:
  explicit Search(PyObject* wanted) : wanted_(wanted) {}

  /// The path from `module` to what is wanted.
  std::optional<std::string> from(PyObject* module) {
    if (module == wanted_) return std::string();
    if (!seen_.insert(module).second) return std::nullopt;
    PyRef attributes = PyRef::steal(PyObject_GenericGetDict(module, nullptr));
    if (!attributes) return clearError(), std::nullopt;
    for (const char* table : {"_parameters", "_buffers", "_modules"}) {
      PyObject* entries = PyDict_GetItemString(attributes.get(), table);
      if (auto path = in(entries)) return path;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> in(PyObject* entries) {
    if (!entries || !PyDict_Check(entries)) return std::nullopt;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(entries, &at, &key, &value);) {
      const char* name = PyUnicode_Check(key) ? utf8Of(key) : nullptr;
      if (!name) {
        clearError();
        continue;
      }
      if (value == wanted_) return name;
      if (!isModuleClass(Py_TYPE(value))) continue;
      if (auto rest = from(value)) return std::string(name) + "." + *rest;
    }
    return std::nullopt;
  }

  PyObject* wanted_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

bool liesAhead(const Source* source) {
  for (; source; source = source->base)
    if (source->kind == Source::Kind::Upcoming || source->kind == Source::Kind::IteratorParts || source->kind == Source::Kind::Stack) return true;
  return false;
}

std::optional<ModulePlace> placeInModules(const Frame* frame, PyObject* object) {
  while (frame && !frame->isRoot) frame = frame->caller;
  if (!frame) return std::nullopt;
  PyObject* names = frame->code()->co_localsplusnames;
  Search search(object);
  for (size_t i = 0; i < frame->locals.size() && static_cast<Py_ssize_t>(i) < PyTuple_GET_SIZE(names); ++i) {
    PyObject* held = frame->locals[i].get();
    if (!held || !isModuleClass(Py_TYPE(held))) continue;
    const char* name = utf8Of(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)));
    if (!name) return clearError(), std::nullopt;
    if (auto path = search.from(held)) return ModulePlace{name, *path};
  }
  return std::nullopt;
}

}  // namespace fusebox::capture
