#include "engine/capture/entries/place_name.h"

#include <string_view>

#include "engine/capture/cpython/errors.h"

namespace fusebox::capture {
namespace {

/// FNV-1a: equal in every process, which std::hash does not promise.
std::string textDigest(std::string_view text) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return std::to_string(digest);
}

}  // namespace

std::string placeName(const CodeState& of, const EntryPoint& point) {
  PyCodeObject* const code = of.code;
  const auto text = [](PyObject* o) {
    const char* utf8 = o && PyUnicode_Check(o) ? utf8Of(o) : nullptr;
    clearError();
    return std::string(utf8 ? utf8 : "?");
  };
  std::string content;
  if (const PyRef bytes = PyRef::steal(PyCode_GetCode(code)); bytes && PyBytes_Check(bytes.get()))
    content.assign(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
  clearError();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) content += '\n' + text(PyTuple_GET_ITEM(code->co_names, i));
  const std::string path = text(code->co_filename), name = path.substr(path.rfind('/') + 1);
  return name + ":" + std::to_string(code->co_firstlineno) + " " + text(code->co_qualname) + " " + textDigest(content) + " @" +
         std::to_string(point.offset) + "/" + std::to_string(point.depth);
}

}  // namespace fusebox::capture
