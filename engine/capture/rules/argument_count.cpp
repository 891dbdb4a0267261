#include "engine/capture/rules/argument_count.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/capture/cpython/errors.h"

namespace fusebox::capture {

namespace {

/// The parameters of a C function; self of a method is one of them.
struct Parameters {
  size_t fewest = 0, most = SIZE_MAX;  ///< positional arguments; `fewest` counts self and what METH_O takes, others may be keywords
  bool anyKeyword = true;
  std::vector<std::string> keywords;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \n\t";
  const size_t first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The parts of "($self, key, default=None, /)" between its commas; defaults may hold brackets and quotes.
std::vector<std::string_view> partsOf(std::string_view signature) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t start = 1;
  for (size_t i = 1; i + 1 < signature.size(); ++i) {
    const char c = signature[i];
    if (quote) {
      if (c == '\\') ++i;
      else if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(trimmed(signature.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const auto last = trimmed(signature.substr(start, signature.size() - 1 - start)); !last.empty()) parts.push_back(last);
  return parts;
}

Parameters parsed(std::string_view signature) {
  Parameters p;
  p.most = 0;
  p.anyKeyword = false;
  bool keywordOnly = false, unlimited = false;
  for (std::string_view part : partsOf(signature)) {
    if (part == "/") {
      p.keywords.clear();
    } else if (part.starts_with("**")) {
      p.anyKeyword = true;
    } else if (part.starts_with("*")) {
      keywordOnly = true;
      unlimited = unlimited || part.size() > 1;
    } else {
      const bool isSelf = part.starts_with("$");
      if (!keywordOnly) ++p.most;
      if (isSelf) p.fewest = 1;
      if (!isSelf) p.keywords.emplace_back(trimmed(part.substr(0, part.find('='))));
    }
  }
  if (unlimited) p.most = SIZE_MAX;
  return p;
}

const PyMethodDef* definitionOf(PyObject* callable) {
  if (PyCFunction_Check(callable)) return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  if (Py_TYPE(callable) == &PyMethodDescr_Type) return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
  return nullptr;
}

Parameters parametersOf(PyObject* callable, const PyMethodDef& definition, size_t self) {
  if (definition.ml_flags & METH_NOARGS) return {self, self, false, {}};
  if (definition.ml_flags & METH_O) return {self + 1, self + 1, false, {}};
  PyRef text = PyRef::steal(PyObject_GetAttrString(callable, "__text_signature__"));
  clearError();
  const char* signature = text && PyUnicode_Check(text.get()) ? utf8Of(text.get()) : nullptr;
  if (!signature) return {self, SIZE_MAX, true, {}};
  Parameters p = parsed(signature);
  if (!self && p.fewest == 1 && p.most != SIZE_MAX) --p.most;  // "$module"
  p.fewest = self;
  return p;
}

}  // namespace

bool mayTake(PyObject* callable, const CallArguments& a, bool withSelf) {
  const PyMethodDef* definition = definitionOf(callable);
  if (!definition) return true;
  static auto* const known = new std::unordered_map<const PyMethodDef*, Parameters>();
  auto it = known->find(definition);
  if (it == known->end()) it = known->emplace(definition, parametersOf(callable, *definition, withSelf || Py_TYPE(callable) == &PyMethodDescr_Type)).first;
  const Parameters& p = it->second;
  if (a.positional < p.fewest || a.positional > p.most) return false;
  for (size_t i = 0; !p.anyKeyword && i < a.keywords(); ++i) {
    const char* name = utf8Of(a.keywordName(i));
    if (!name || std::find(p.keywords.begin(), p.keywords.end(), name) == p.keywords.end()) return clearError(), false;
  }
  return true;
}

}  // namespace fusebox::capture
