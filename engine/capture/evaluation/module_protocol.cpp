// torch.nn.Module calls without the frames of _wrapped_call_impl and _call_impl where no hook is set.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/lazy_modules.h"
#include "engine/capture/evaluation/module_paths.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

struct ModuleNames {
  PyObject* call = nullptr;      ///< nn.Module.__call__, that is _wrapped_call_impl
  PyObject* callImpl = nullptr;  ///< nn.Module._call_impl
  PyObject* globals = nullptr;   ///< of torch.nn.modules.module
};

/// A method of nn.Module as torch wrote it; null where the program has put another in its place, which is then followed like any code.
PyObject* ownMethod(PyObject* type, const char* name, const char* function) {
  PyRef found = PyRef::steal(PyObject_GetAttrString(type, name));
  PyObject* module = torchObject("torch.nn.modules.module");
  if (!found || !PyFunction_Check(found.get()) || PyFunction_GetGlobals(found.get()) != PyModule_GetDict(module)) return clearError(), nullptr;
  PyObject* written = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(found.get()))->co_qualname;
  return PyUnicode_CompareWithASCIIString(written, function) == 0 ? found.release() : nullptr;
}

const ModuleNames& moduleNames() {
  static Once<ModuleNames> names;
  return names.get([] {
    ModuleNames n;
    PyObject* type = torchObject("torch.nn.modules.module.Module");
    n.call = ownMethod(type, "_wrapped_call_impl", "Module._wrapped_call_impl");
    n.callImpl = ownMethod(type, "_call_impl", "Module._call_impl");
    n.globals = PyModule_GetDict(torchObject("torch.nn.modules.module"));
    return n;
  });
}

constexpr const char* kInstanceHooks[] = {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"};
constexpr const char* kGlobalHooks[] = {"_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks",
                                        "_global_forward_pre_hooks"};

/// Whether a hook table is empty, guarded. A missing table counts as not empty, so that Python's code decides.
bool emptyTable(Evaluation& e, PyObject* dict, const char* name) {
  PyRef table = e.readDict(dict, internedName(name));
  if (!table || !PyDict_Check(table.get())) {
    clearError();
    return false;
  }
  return e.length(table.get()) == 0;
}

}  // namespace

PyRef Evaluation::callModuleInstance(PyObject* module, PyObject* callMethod, const CallArguments& a, bool* handled) {
  if (!moduleNames().call || !moduleNames().callImpl || !isModuleClass(Py_TYPE(module)) || callMethod != moduleNames().call) return {};
  const ModuleNames& names = moduleNames();
  static PyObject* const kCompiled = internedName("_compiled_call_impl");
  static PyObject* const kCallImpl = internedName("_call_impl");
  static PyObject* const kForward = internedName("forward");
  PyRef dict = instanceDict(module);
  // Module.compile() inside a compiled module: the outer compilation covers it.
  if (PyDict_Contains(dict.get(), kCompiled) == 1) readDict(dict.get(), kCompiled);
  if (typeLookup(Py_TYPE(module), kCallImpl) != names.callImpl || PyDict_Contains(dict.get(), kCallImpl) == 1) return {};
  *handled = true;
  setUpLazyModule(*this, module, dict.get(), a);
  modules_.push_back(module);
  struct Pop {
    std::vector<PyObject*>& modules;
    ~Pop() { modules.pop_back(); }
  } pop{modules_};
  bool plain = true;
  for (const char* table : kInstanceHooks) plain = plain && emptyTable(*this, dict.get(), table);
  pin(names.globals, Why::Owner);
  for (const char* table : kGlobalHooks) plain = plain && emptyTable(*this, names.globals, table);
  if (!plain) {
    std::vector<PyObject*> all = {module};
    all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
    pin(names.callImpl, Why::Class);
    return call(names.callImpl, all.data(), a.positional + 1, a.kwNames);
  }
  PyRef self;
  PyRef forward = getMethod(module, kForward, &self);
  if (!forward) return {};
  if (!self) return call(forward.get(), a);
  std::vector<PyObject*> all = {self.get()};
  all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
  return call(forward.get(), all.data(), a.positional + 1, a.kwNames);
}

/// "layers.0.attn" of a module that was read through its parents' _modules, or is held by modules among the locals; empty for others.
std::string Evaluation::modulePath(PyObject* module) {
  const Source* s = sourceOf(module);
  std::string path;
  while (s && s->kind == Source::Kind::DictItem && s->base && s->base->kind == Source::Kind::DictItem && PyUnicode_Check(s->key.get())) {
    path = path.empty() ? utf8Of(s->key.get()) : std::string(utf8Of(s->key.get())) + "." + path;
    const Source* dict = s->base->base;
    s = dict ? dict->base : nullptr;
  }
  if (liesAhead(s))
    if (const auto place = placeInModules(frame_, module)) return place->path;
  return path;
}

graph::Provenance Evaluation::provenance() {
  graph::Provenance origin;
  std::vector<std::pair<PyObject*, int>> frames;
  for (const Frame* f = frame_; f; f = f->caller) frames.emplace_back(reinterpret_cast<PyObject*>(f->code()), f->pc);
  // Layers of one kind come by the same instructions: their stacks are one.
  auto& stack = stacks_[frames];
  if (!stack) {
    std::vector<graph::SourceLine> lines;
    for (const Place& p : stackPlaces()) lines.push_back({p.file, p.line, p.function});
    stack = std::make_shared<const std::vector<graph::SourceLine>>(std::move(lines));
    for (const auto& [code, pc] : frames) keepAlive_.push_back(PyRef::borrow(code));
  }
  origin.stack = stack;
  if (!modules_.empty()) origin.modulePath = modulePath(modules_.back());
  return origin;
}

}  // namespace fusebox::capture
