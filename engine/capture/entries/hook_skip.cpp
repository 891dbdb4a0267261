#include "engine/capture/entries/hook_skip.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/lazy_modules.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

/// Folders of torch (relative to it) whose functions people compile: layers, functions, optimisers, distributions.
constexpr std::string_view kTorchModelCode[] = {"nn/modules/", "nn/functional.py", "nn/utils/parametrizations.py", "optim/",
                                                "distributions/", "ao/nn/"};
/// ... and what in these is machinery all the same.
constexpr std::string_view kTorchMachinery[] = {"nn/modules/module.py", "nn/modules/lazy.py", "optim/lr_scheduler.py"};

/// Installed packages that compute without tensors: what of them is called inside of captured functions is followed, but where that breaks they run as
/// they are rather than in pieces.
constexpr std::string_view kWithoutTensors[] = {"numpy", "pandas", "scipy", "sklearn", "networkx", "tqdm", "xarray", "matplotlib", "onnx", "onnxruntime", "tensorflow",
                                                "typing_extensions.py"};

bool isWithoutTensors(std::string_view path) {
  constexpr std::string_view kInstalled = "-packages/";  // of a site or a distribution
  const size_t at = path.rfind(kInstalled);
  if (at == std::string_view::npos) return false;
  const std::string_view inside = path.substr(at + kInstalled.size());
  const std::string_view package = inside.substr(0, inside.find('/'));
  return std::find(std::begin(kWithoutTensors), std::end(kWithoutTensors), package) != std::end(kWithoutTensors);
}

/// PyTorch's own tracing, and what it reckons with (sympy): nothing that it calls is the program's to compile.
constexpr std::string_view kTorchTracing[] = {"_dynamo/symbolic_convert.py", "fx/experimental/", "fx/passes/", "_subclasses/", "_inductor/", "utils/_sympy/"};

struct Folders {
  std::string torch;                 ///< with a trailing slash
  std::vector<std::string> skipped;
};

std::string folderOfModule(const char* name) {
  PyRef module = PyRef::steal(PyImport_ImportModule(name));
  PyRef file = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "__file__")) : PyRef();
  const char* path = file && PyUnicode_Check(file.get()) ? utf8Of(file.get()) : nullptr;
  clearError();
  std::string text = path ? path : "";
  const size_t slash = text.rfind('/');
  return slash == std::string::npos ? "" : text.substr(0, slash + 1);
}

Folders& folders() {
  static Once<std::shared_ptr<Folders>> known;
  return *known.get([] {
    auto f = std::make_shared<Folders>();
    f->torch = folderOfModule("torch");
    f->skipped.push_back(folderOfModule("os"));  // the standard library
    return f;
  });
}

bool startsWith(std::string_view text, std::string_view prefix) { return !prefix.empty() && text.substr(0, prefix.size()) == prefix; }

bool isTorchMachinery(std::string_view path) {
  for (std::string_view p : kTorchMachinery)
    if (startsWith(path, p)) return true;
  for (std::string_view p : kTorchModelCode)
    if (startsWith(path, p)) return false;
  return true;
}

}  // namespace

bool isTracing(PyCodeObject* code) {
  const char* file = utf8Of(code->co_filename);
  if (!file) return clearError(), false;
  const std::string_view path = file;
  const std::string& torch = folders().torch;
  return startsWith(path, torch) && std::any_of(std::begin(kTorchTracing), std::end(kTorchTracing), [&](std::string_view folder) {
    return startsWith(path.substr(torch.size()), folder);
  });
}

void addSkippedFolder(std::string folder) { folders().skipped.push_back(std::move(folder)); }

bool isLibraryPath(std::string_view path) {
  Folders& f = folders();
  if (startsWith(path, f.torch)) return true;
  for (const std::string& folder : f.skipped) {
    if (!startsWith(path, folder)) continue;
    // Installed packages lie inside the standard library's folder.
    const std::string_view inside = path.substr(folder.size());
    return inside.find("site-packages/") == std::string_view::npos && inside.find("dist-packages/") == std::string_view::npos;
  }
  return false;
}

bool isSkipped(PyCodeObject* code, PyObject* globals) {
  const char* file = utf8Of(code->co_filename);
  if (!file) return clearError(), true;
  std::string_view path = file;
  // Frozen modules and code made at run time (dataclasses, namedtuple) say "<...>"; so do cells of notebooks and -c, which are the user's.
  if (startsWith(path, "<frozen") || startsWith(path, "<__array_function__")) return true;
  PyObject* own = globals && startsWith(path, "<") ? PyDict_GetItemString(globals, "__file__") : nullptr;
  if (const char* module = own && PyUnicode_Check(own) ? utf8Of(own) : nullptr) path = module;
  Folders& f = folders();
  if (startsWith(path, f.torch)) return isTorchMachinery(path.substr(f.torch.size()));
  return isWithoutTensors(path) || isLibraryPath(path);
}

namespace {

/// The code that all functions share which torch._disable_dynamo makes.
PyObject* codeOfDisabled() {
  PyObject* maker = torchObject("torch._compile._disable_dynamo");
  PyObject* constants = maker && PyFunction_Check(maker) ? reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(maker))->co_consts : nullptr;
  for (Py_ssize_t i = 0; constants && i < PyTuple_GET_SIZE(constants); ++i)
    if (PyObject* constant = PyTuple_GET_ITEM(constants, i); PyCode_Check(constant)) return constant;
  return nullptr;
}

}  // namespace

bool isDisabledByTorch(PyObject* function) {
  if (setsUpLazyModule(function)) return true;
  static PyObject* const code = codeOfDisabled();
  if (!code || PyFunction_GET_CODE(function) != code) return false;
  // Its cells are the function and whether what that calls is left alone too.
  PyObject *names = reinterpret_cast<PyCodeObject*>(code)->co_localsplusnames, *closure = PyFunction_GET_CLOSURE(function);
  const Py_ssize_t cells = closure ? PyTuple_GET_SIZE(closure) : 0, first = PyTuple_GET_SIZE(names) - cells;
  for (Py_ssize_t i = 0; i < cells; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, first + i), "recursive") == 0)
      return PyCell_GET(PyTuple_GET_ITEM(closure, i)) == Py_True;
  return false;
}

}  // namespace fusebox::capture
