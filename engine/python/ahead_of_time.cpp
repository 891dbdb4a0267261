#include "engine/python/ahead_of_time.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "engine/cache/cache_settings.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/entries/entry_maker.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/compile/build_identity.h"
#include "engine/compile/stored_file.h"
#include "engine/compile/stored_graphs.h"
#include "engine/compile/stored_program.h"
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

struct Ahead {
  std::shared_ptr<Entry> entry;
  std::shared_ptr<StoredGraphs> graphs = std::make_shared<StoredGraphs>();
};

/// Captures and compiles without a call. `locals`: values of the arguments, in the order of the code's names.
Ahead makeAhead(const py::object& function, const py::list& locals, const RegionOptions* options) {
  if (!PyFunction_Check(function.ptr())) throw py::type_error("a function of Python is needed");
  FrameState state;
  state.function = PyRef::borrow(function.ptr());
  state.code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  if (locals.size() > static_cast<size_t>(state.code->co_nlocalsplus)) throw py::value_error("more locals than the function has");
  for (const py::handle value : locals) state.locals.push_back(PyRef::borrow(value.ptr()));
  state.locals.resize(static_cast<size_t>(state.code->co_nlocalsplus));
  CodeState scratch;  // nobody else's entries
  scratch.code = state.code;
  const GlobalState now = GlobalState::current();
  if (const char* why = now.refusal()) throw std::runtime_error(why);
  if (now.functionModes) throw std::runtime_error("a torch function mode is active");
  bool failed = false;
  const Region region(options, state.code);
  Ahead made;
  const CompilingTold told;
  made.entry = makeEntry(scratch, scratch.point(0, 0), state, now, options, PyFunction_GET_GLOBALS(function.ptr()), &failed, made.graphs);
  if (failed) throw py::error_already_set();
  if (!made.entry) throw std::runtime_error("the function cannot be captured");
  return made;
}

/// (archive, objects, compiled graphs, what was followed).
py::tuple captureAhead(const py::object& function, const py::list& locals, const RegionOptions* options,
                       const std::function<bool(const py::object&)>& canStore) {
  const auto [entry, graphs] = makeAhead(function, locals, options);
  StoredEntry stored = writeStoredEntry(*entry, static_cast<int>(locals.size()), {canStore, {}});
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
  inductor::ArchiveWriter archive;
  archive(stored.archive, entry->function ? writeStoredModule(entry->function->module()) : std::string());
  return py::make_tuple(py::bytes(archive.take()), objects, code, followedBy(*entry));
}

std::vector<std::string> stringsOf(const py::list& list) {
  std::vector<std::string> strings;
  for (const py::handle bytes : list) strings.push_back(py::cast<std::string>(bytes));
  return strings;
}

cache::Trust trustOf(const std::string& secret) { return secret.empty() ? cache::Trust::Owner : cache::Trust::Signature; }

/// `function`, whose code nobody runs, with the compiled capture in its place.
py::object storedFunction(const py::object& function, const RegionOptions* options, const py::bytes& archive, const py::list& objects,
                          const py::list& graphs) {
  if (!PyFunction_Check(function.ptr())) throw py::type_error("a function of Python is needed");
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  PyObject* globals = PyFunction_GET_GLOBALS(function.ptr());
  StoredEntry stored{{}, objectsOf(objects)};
  for (py::object& object : stored.objects)
    if (object.ptr() == Py_NotImplemented) object = py::object();  // missing here
  Segment segment;
  const std::string secret = cache::cacheSecret();
  auto found = StoredGraphs::of(stringsOf(graphs), trustOf(secret), secret);
  if (!found) throw std::runtime_error(found.error().text());
  try {
    std::string graph;
    const std::string bytes = archive;
    inductor::ArchiveReader parts(bytes);
    parts(stored.archive, graph);
    if (!parts.atEnd()) throw inductor::ArchiveError("there is more than that");
    FoundEntry read = readStoredEntry(stored, code, globals);
    segment = std::move(read.segment);
    if (read.results >= 0) segment.graph = readStoredModule(graph, segment.graphInputs.size(), read.results);
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
  inductor::ArchiveWriter payload;
  payload(text, std::string(archive));
  auto file = writeStoredFile(kFunctionKind, name, payload.take(), stringsOf(graphs));
  if (!file) throw std::runtime_error(file.error().text());
  return *file;
}

/// (text, archive, graphs) of such a file, once all of it is believed.
py::tuple readAhead(const py::bytes& bytes) {
  auto file = readStoredFile(std::string(bytes), kFunctionKind, "function");
  if (!file) throw py::value_error(file.error().text());
  std::string text, archive;
  try {
    inductor::ArchiveReader payload(file->payload);
    payload(text, archive);
    if (!payload.atEnd()) throw inductor::ArchiveError("there is more than that");
  } catch (const inductor::ArchiveError& error) {
    throw py::value_error(std::string("the file does not hold a captured function: ") + error.what());
  }
  py::list graphs;
  for (const std::string& graph : file->graphs) graphs.append(py::bytes(graph));
  return py::make_tuple(text, py::bytes(archive), graphs);
}

/// A program as one file: `function` takes a tuple of tensors and returns a tuple of tensors; tensors that it reads from elsewhere are its weights.
py::bytes writeProgram(const std::string& name, const std::string& text, const py::object& function, const py::tuple& arguments,
                       const RegionOptions* options) {
  py::list locals;
  locals.append(arguments);
  const Ahead made = makeAhead(function, locals, options);
  ProgramForm form = programOf(*made.entry, arguments.size());
  form.name = name;
  form.text = text;
  Result<std::string> file = std::string();
  {
    py::gil_scoped_release release;
    drainCompiler();
    auto entries = made.graphs->entries(cache::cacheSecret());
    if (!entries) file = tl::unexpected(entries.error());
    else file = StoredProgram::write(form, *entries);
  }
  if (!file) throw std::runtime_error(file.error().text());
  return *file;
}

std::vector<at::Tensor> runProgram(const StoredProgram& program, const std::vector<at::Tensor>& arguments) {
  py::gil_scoped_release release;
  auto results = program.run(arguments);
  if (!results) throw py::value_error(results.error().text());
  return *results;
}

}  // namespace

void bindAheadOfTime(py::module_& m, OptionsFrom optionsFrom) {
  m.def("capture_ahead", [optionsFrom](const py::object& function, const py::list& locals, const py::dict& options,
                                       const std::function<bool(const py::object&)>& canStore) {
    return captureAhead(function, locals, optionsFrom(options), canStore);
  });
  m.def("stored_function", [optionsFrom](const py::object& function, const py::dict& options, const py::bytes& archive, const py::list& objects,
                                         const py::list& graphs) { return storedFunction(function, optionsFrom(options), archive, objects, graphs); });
  m.def("build", &engineBuild);
  m.def("write_ahead", &writeAhead);
  m.def("read_ahead", &readAhead);
  m.def("write_program", [optionsFrom](const std::string& name, const std::string& text, const py::object& function, const py::tuple& arguments,
                                       const py::dict& options) { return writeProgram(name, text, function, arguments, optionsFrom(options)); });
  py::class_<StoredProgram, std::shared_ptr<StoredProgram>>(m, "StoredProgram")
      .def_static("read", [](const py::bytes& bytes) {
        const std::string file = bytes;
        Result<std::shared_ptr<StoredProgram>> program = std::shared_ptr<StoredProgram>();
        {
          py::gil_scoped_release release;
          program = StoredProgram::read(file);
        }
        if (!program) throw py::value_error(program.error().text());
        return *program;
      })
      .def_property_readonly("name", &StoredProgram::name)
      .def_property_readonly("text", &StoredProgram::text)
      .def("run", [](const StoredProgram& program, const py::list& arguments) {
        std::vector<at::Tensor> tensors;
        for (const py::handle argument : arguments) {
          if (!isTensorObject(argument.ptr())) throw py::type_error("a tensor is needed");
          tensors.push_back(tensorOf(argument.ptr()));
        }
        py::list results;
        for (const at::Tensor& result : runProgram(program, tensors)) results.append(py::reinterpret_steal<py::object>(newTensorObject(result)));
        return results;
      });
}

}  // namespace fusebox::python
