#include "engine/python/ahead_of_time.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <ctime>

#include "engine/cache/bundle.h"
#include "engine/cache/cache_settings.h"
#include "engine/cache/entry_file.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/entry_maker.h"
#include "engine/capture/entries/hook.h"
#include "engine/compile/graph_key.h"
#include "engine/compile/kernel_code.h"
#include "engine/compile/stored_graphs.h"
#include "engine/inductor/ir/archive.h"
#include "engine/python/compiled_function.h"
#include "engine/python/stored_entry.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using namespace capture;
using OptionsFrom = const RegionOptions* (*)(const py::dict&);

constexpr const char* kFunctionKind = "function";

std::vector<py::object> objectsOf(const py::list& list) {
  std::vector<py::object> objects;
  for (const py::handle object : list) objects.push_back(py::reinterpret_borrow<py::object>(object));
  return objects;
}

/// Captures and compiles without a call: (archive, objects, compiled graphs, what was followed). `locals`: values of the arguments, in the order of
/// the code's names.
py::tuple captureAhead(const py::object& function, const py::list& locals, const RegionOptions* options,
                       const std::function<bool(const py::object&)>& canStore) {
  if (!PyFunction_Check(function.ptr())) throw py::type_error("a function of Python is needed");
  FrameState state;
  state.function = PyRef::borrow(function.ptr());
  state.code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  if (locals.size() > static_cast<size_t>(state.code->co_nlocalsplus)) throw py::value_error("more locals than the function has");
  for (const py::handle value : locals) state.locals.push_back(PyRef::borrow(value.ptr()));
  state.locals.resize(static_cast<size_t>(state.code->co_nlocalsplus));
  CodeState scratch;  // nobody else's entries
  scratch.code = state.code;
  EntryPoint& point = scratch.point(0, 0);
  auto graphs = std::make_shared<StoredGraphs>();
  const GlobalState now = GlobalState::current();
  if (const char* why = now.refusal()) throw std::runtime_error(why);
  bool failed = false;
  const Region region(options, state.code);
  const std::shared_ptr<Entry> entry = makeEntry(scratch, point, state, now, options, PyFunction_GET_GLOBALS(function.ptr()), &failed, graphs);
  if (failed) throw py::error_already_set();
  if (!entry) throw std::runtime_error("the function cannot be captured");
  StoredEntry stored = writeStoredEntry(*entry, static_cast<int>(locals.size()), canStore);
  Result<std::vector<std::string>> entries = std::vector<std::string>();
  {
    py::gil_scoped_release release;
    if (entry->function) entry->function->compileBackwardNow();
    drainCompiler();
    entries = graphs->entries(cache::cacheSecret());
  }
  if (!entries) throw std::runtime_error(entries.error().text());
  py::list code;
  for (const std::string& bytes : *entries) code.append(py::bytes(bytes));
  py::list objects;
  for (const py::object& object : stored.objects) objects.append(object);
  return py::make_tuple(py::bytes(stored.archive), objects, code, followedBy(*entry));
}

std::vector<std::string> stringsOf(const py::list& list) {
  std::vector<std::string> strings;
  for (const py::handle bytes : list) strings.push_back(py::cast<std::string>(bytes));
  return strings;
}

Result<cache::CacheKey> platform() {
  auto jit = processJit();
  if (!jit) return tl::unexpected(jit.error());
  return platformKey((*jit)->target());
}

cache::Trust trustOf(const std::string& secret) { return secret.empty() ? cache::Trust::Owner : cache::Trust::Signature; }

/// `function`, whose code nobody runs, with the compiled capture in its place.
py::object storedFunction(const py::object& function, const RegionOptions* options, const py::bytes& archive, const py::list& objects,
                          const py::list& graphs) {
  if (!PyFunction_Check(function.ptr())) throw py::type_error("a function of Python is needed");
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  PyObject* globals = PyFunction_GET_GLOBALS(function.ptr());
  StoredEntry stored{archive, objectsOf(objects)};
  for (py::object& object : stored.objects)
    if (object.ptr() == Py_NotImplemented) object = py::object();  // missing here
  Segment segment;
  const std::string secret = cache::cacheSecret();
  auto found = StoredGraphs::of(stringsOf(graphs), trustOf(secret), secret);
  if (!found) throw std::runtime_error(found.error().text());
  try {
    segment = readStoredEntry(stored, code, globals);
  } catch (const inductor::ArchiveError& error) {
    throw py::value_error(std::string("the file does not hold a captured function: ") + error.what());
  }
  auto entry = std::make_shared<Entry>();
  entry->options = options;
  entry->globals = globals;
  if (segment.graph) {
    CompileOptions how = compileOptions(*options);
    how.fullgraph = true;
    how.stored = *found;
    how.name = py::cast<std::string>(function.attr("__name__"));
    py::gil_scoped_release release;
    entry->function = compileModule(segment.graph, how);
    entry->function->compileBackwardNow();
  }
  (*found)->open();
  finishEntry(*entry, std::move(segment));
  CodeState& state = stateOf(code);
  state.isStored = true;
  state.point(0, 0).entries.push_back(std::move(entry));
  return py::reinterpret_steal<py::object>(makeCompiledFunction(function.ptr(), WrapperKind::Compile, options, nullptr));
}

/// One file of it all.
py::bytes writeAhead(const std::string& name, const std::string& text, const py::bytes& archive, const py::list& graphs) {
  auto key = platform();
  if (!key) throw std::runtime_error(key.error().text());
  const std::string secret = cache::cacheSecret();
  inductor::ArchiveWriter payload;
  payload(text, std::string(archive));
  const std::string bytes = payload.take();
  key->add("function", bytes, name);
  cache::EntryHeader header{kFunctionKind, *key, name, static_cast<int64_t>(std::time(nullptr))};
  std::vector<std::string> entries = {cache::writeEntry(header, bytes, secret)};
  for (std::string& graph : stringsOf(graphs)) entries.push_back(std::move(graph));
  return cache::writeBundle(entries);
}

/// (text, archive, graphs) of such a file, once all of it is believed.
py::tuple readAhead(const py::bytes& file) {
  const std::string bytes = file, secret = cache::cacheSecret();
  auto entries = cache::readBundle(bytes);
  if (!entries || entries->empty()) throw py::value_error("this is no function that was compiled ahead of time, or it is cut off");
  auto function = cache::readEntry(entries->front(), trustOf(secret), secret);
  if (!function) throw py::value_error(function.error().text());
  if (function->header.kind != kFunctionKind) throw py::value_error("this is a bundle of cache entries and no compiled function: load_cache_artifacts takes it");
  auto here = platform();
  if (!here) throw std::runtime_error(here.error().text());
  auto differences = cache::differences(*here, function->header.key);
  std::erase_if(differences, [](const cache::KeyDifference& d) { return d.name == "function"; });
  if (!differences.empty()) throw py::value_error("it was compiled for something else: " + cache::differenceText(differences));
  std::string text, archive;
  try {
    inductor::ArchiveReader payload(function->payload);
    payload(text, archive);
    if (!payload.atEnd()) throw inductor::ArchiveError("there is more than that");
  } catch (const inductor::ArchiveError& error) {
    throw py::value_error(std::string("the file does not hold a captured function: ") + error.what());
  }
  py::list graphs;
  for (size_t i = 1; i < entries->size(); ++i) graphs.append(py::bytes(std::string((*entries)[i])));
  return py::make_tuple(text, py::bytes(archive), graphs);
}

}  // namespace

void bindAheadOfTime(py::module_& m, OptionsFrom optionsFrom) {
  m.def("capture_ahead", [optionsFrom](const py::object& function, const py::list& locals, const py::dict& options,
                                       const std::function<bool(const py::object&)>& canStore) {
    return captureAhead(function, locals, optionsFrom(options), canStore);
  });
  m.def("stored_function", [optionsFrom](const py::object& function, const py::dict& options, const py::bytes& archive, const py::list& objects,
                                         const py::list& graphs) { return storedFunction(function, optionsFrom(options), archive, objects, graphs); });
  m.def("write_ahead", &writeAhead);
  m.def("read_ahead", &readAhead);
}

}  // namespace fusebox::python
