#include "engine/python/kept_captures.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <ctime>
#include <set>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/entries/kept_captures.h"
#include "engine/capture/entries/place_name.h"
#include "engine/capture/evaluation/deferred_calls.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/compile/graph_cache.h"
#include "engine/compile/graph_key.h"
#include "engine/compile/kernel_code.h"
#include "engine/inductor/ir/archive.h"
#include "engine/python/code_digest.h"
#include "engine/python/stored_entry.h"
#include "engine/runtime/gpu/cuda_driver.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using namespace capture;

constexpr const char* kKind = "capture";
/// Captures of one place that lie beside each other: of other classes below the same function, or of other sizes.
constexpr int kSlots = 8;

py::object function(const char* name) { return py::module_::import("fusebox._kept_captures").attr(name); }

/// Of code and of the lines that it stands on, which captures name.
std::string codeDigest(const py::object& code) { return digestOf(code, true, function("plain_form")); }

/// All that a capture depends on, besides the program.
std::string optionsText(const RegionOptions& o) {
  const auto flag = [](const char* name, bool on) { return on ? std::string(" ") + name : std::string(); };
  return o.backendName + " " + o.mode + " dynamic=" + std::to_string(o.dynamic) + flag("fullgraph", o.fullgraph) + flag("fallback_random", o.fallbackRandom) +
         flag("max_autotune", o.maxAutotune) + flag("emulate_precision_casts", o.emulatePrecisionCasts) + flag("nan_asserts", o.nanAsserts) +
         flag("deterministic", o.deterministic) + flag("capture_only", o.captureOnly) + flag("cudagraphs", o.graphs.use) + flag("cudagraph_or_error", o.graphs.orError);
}

/// What an entry holds. `graph` is read only where the rest fits.
struct Payload {
  std::string objects, archive, graph, facts, devices;
  std::vector<int64_t> gpus;  ///< that the graph works on
  int64_t captureNs = 0;
  template <class A>
  void fields(A& a) {
    a(objects, archive, graph, facts, devices, gpus, captureNs);
  }
};

std::vector<int64_t> gpusOf(const aot::AotModule& module) {
  std::set<int64_t> gpus;
  for (const graph::TensorMeta& input : module.inputs)
    if (input.device.kind == graph::DeviceKind::Cuda) gpus.insert(std::max<int>(0, input.device.index));
  return {gpus.begin(), gpus.end()};
}
/// What they are here and now: what a device can do decides how a graph is cut.
std::string textOf(const std::vector<int64_t>& gpus) {
  std::string text;
  for (const int64_t gpu : gpus) text += runtime::gpu::deviceText(static_cast<int>(gpu)).value_or("none") + "; ";
  return text;
}

/// Operators of libraries in C++ mean the same wherever they are; the program's own are its Python.
bool isProgramsOperator(const std::string& op) {
  static const std::set<std::string, std::less<>> libraries = {"fusebox", "aten", "prim", "prims", "quantized", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "torchvision", "mkldnn", "onednn", "fbgemm", "torchaudio"};
  return libraries.find(std::string_view(op).substr(0, op.find(':'))) == libraries.end();
}

/// Without a slot. Nothing: `why`.
std::optional<cache::CacheKey> keyOf(const CapturePlace& place, std::string& why) {
  const std::string globals = py::cast<std::string>(function("name_of")(py::handle(place.globals)));
  if (globals.empty()) {
    why = "the function's namespace is no module's";
    return std::nullopt;
  }
  auto jit = processJit();
  if (!jit) {
    why = jit.error().text();
    return std::nullopt;
  }
  cache::CacheKey key = platformKey((*jit)->target());
  key.add("Python", Py_GetVersion());
  key.add("cache key tag", place.caches.keyTag.value_or(cache::cacheKeyTag()));
  key.add("function", placeName(place.code, place.point));
  key.add("code", codeDigest(py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(place.code.code))));
  key.add("namespace", globals);
  key.add("options", optionsText(place.options));
  key.add("settings", py::cast<std::string>(function("settings")()));
  return key;
}

class CachedPlace final : public KeptPlace {
 public:
  /// `key`: without a slot.
  CachedPlace(const CapturePlace& place, cache::CacheKey key) : place_(place), key_(std::move(key)) {}

  bool recall(const std::function<bool(Candidate&)>& take, std::string& why) override {
    for (int slot = 0; slot < kSlots; ++slot) {
      std::string wrong;
      auto fetched = GraphCache::instance().fetch(ofSlot(key_, slot), isShared(), wrong);
      if (!wrong.empty()) why = wrong;
      if (!fetched) break;
      try {
        if (takes(fetched->entry.payload, take, why)) return true;
      } catch (const inductor::ArchiveError& error) {
        why = std::string("a capture in the cache is damaged: ") + error.what();
        GraphCache::instance().drop(ofSlot(key_, slot), why);
      } catch (py::error_already_set& error) {
        why = error.what();
        error.restore();
        capture::clearError();
      } catch (const std::runtime_error& error) {
        why = error.what();
      }
    }
    return false;
  }

  std::string keep(const Entry& entry, std::string facts, int64_t captureNs) override {
    if (entry.function)
      for (const graph::Node& node : entry.function->module().forward.nodes())
        if (node.kind == graph::NodeKind::Call && isProgramsOperator(node.op)) return "operator " + node.op + " is the program's own";
    Payload payload;
    try {
      const py::object names = function("Names")(followedBy(entry)), knows = names.attr("knows");
      const StoreRules rules{[&](const py::object& object) { return py::cast<bool>(knows(object)); }, codeDigest};
      StoredEntry stored = writeStoredEntry(entry, place_.code.code->co_nlocalsplus, rules);
      py::list objects;
      for (const py::object& object : stored.objects) objects.append(object);
      payload.objects = py::cast<std::string>(names.attr("text")(objects));
      payload.archive = std::move(stored.archive);
    } catch (py::error_already_set& error) {
      std::string why = py::cast<std::string>(py::str(error.value()));
      error.restore();
      capture::clearError();
      return why;
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    payload.facts = std::move(facts);
    payload.captureNs = captureNs;
    cache::EntryHeader header{kKind, key_, py::cast<std::string>(py::handle(place_.code.code->co_qualname)), static_cast<int64_t>(std::time(nullptr)), captureNs};
    // What takes no Python is done behind the program's back.
    write(std::move(header), std::move(payload), entry.function, isShared());
    return {};
  }

 private:
  bool isShared() const { return place_.caches.isShared.value_or(cache::isSwitchedOn("TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE")); }

  static cache::CacheKey ofSlot(cache::CacheKey key, int slot) {
    key.add("slot", std::to_string(slot));
    return key;
  }

  bool takes(const std::string& bytes, const std::function<bool(Candidate&)>& take, std::string& why) const {
    auto payload = std::make_shared<Payload>();
    inductor::ArchiveReader reader(bytes);
    payload->fields(reader);
    if (!reader.atEnd()) throw inductor::ArchiveError("there is more than that");
    if (textOf(payload->gpus) != payload->devices) {
      why = "it was captured with other GPUs";
      return false;
    }
    const py::object objects = function("found")(payload->objects);
    if (py::isinstance<py::str>(objects)) {
      why = py::cast<std::string>(objects);
      return false;
    }
    StoredEntry stored{std::move(payload->archive), {}};
    for (const py::handle object : objects) stored.objects.push_back(py::reinterpret_borrow<py::object>(object));
    const Finding finding{viewOf(place_.state), codeDigest};
    FoundEntry found = readStoredEntry(stored, place_.code.code, place_.globals, &finding);
    Candidate candidate;
    candidate.segment = std::move(found.segment);
    candidate.facts = payload->facts;
    candidate.captureNs = payload->captureNs;
    const size_t inputs = candidate.segment.graphInputs.size();
    candidate.readGraph = [=, results = found.results]() -> std::shared_ptr<const aot::AotModule> {
      return results < 0 ? nullptr : readStoredModule(payload->graph, inputs, results);
    };
    return take(candidate);
  }

  static void write(cache::EntryHeader header, Payload payload, std::shared_ptr<aot::AotFunction> function, bool isShared) {
    auto work = [header = std::move(header), payload = std::move(payload), function = std::move(function), isShared]() mutable {
      if (function) {
        payload.graph = writeStoredModule(function->module());
        payload.gpus = gpusOf(function->module());
        payload.devices = textOf(payload.gpus);
        header.nodes = static_cast<int64_t>(function->module().forward.nodes().size());
      }
      inductor::ArchiveWriter writer;
      payload.fields(writer);
      if (const auto slot = slotFor(header.key, payload)) {
        header.key = ofSlot(std::move(header.key), *slot);
        GraphCache::instance().put(header, writer.take(), isShared);
      }
    };
    GraphCache::instance().later(std::move(work));
  }

  /// The first that is free, or the one that was written first; nothing where the same capture is there.
  static std::optional<int> slotFor(const cache::CacheKey& key, const Payload& made) {
    int oldest = 0;
    int64_t since = std::numeric_limits<int64_t>::max();
    for (int slot = 0; slot < kSlots; ++slot) {
      std::string wrong;
      const auto there = GraphCache::instance().fetch(ofSlot(key, slot), false, wrong);
      if (!there) return slot;
      Payload other;
      inductor::ArchiveReader reader(there->entry.payload);
      other.fields(reader);
      if (other.objects == made.objects && other.archive == made.archive) return std::nullopt;
      if (there->entry.header.createdS < since) since = there->entry.header.createdS, oldest = slot;
    }
    return oldest;
  }

  CapturePlace place_;
  cache::CacheKey key_;
};

}  // namespace

void keepCaptures(py::module_& module) {
  module.def("digest_of", &digestOf, py::arg("value"), py::arg("lines"), py::arg("plain"));
  /// Whether all that an object holds are attributes.
  module.def("is_of_python", [](py::handle object) { return builtinBase(Py_TYPE(object.ptr())) == &PyBaseObject_Type; });
  module.def("caller_parts", [](const py::object& function) -> py::object {
    if (!isCaller(function.ptr())) return py::none();
    const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
    return py::make_tuple(py::handle(code->co_name), py::handle(code->co_qualname), py::handle(code->co_filename), code->co_firstlineno,
                          py::handle(PyFunction_GET_GLOBALS(function.ptr())));
  });
  module.def("caller_at", [](const py::str& name, const py::str& qualname, const py::str& file, int line, const py::dict& globals) {
    PyRef made = callerAt(name.ptr(), qualname.ptr(), file.ptr(), line, globals.ptr());
    if (!made) throw std::runtime_error("a caller cannot be made");
    return py::reinterpret_steal<py::object>(made.release());
  });
  keptPlaceOf = [](const CapturePlace& place, std::string& why) -> std::unique_ptr<KeptPlace> {
    auto key = keyOf(place, why);
    return key ? std::make_unique<CachedPlace>(place, std::move(*key)) : nullptr;
  };
}

}  // namespace fusebox::python
