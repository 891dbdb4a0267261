#include "engine/python/cache_control.h"

#include <pybind11/stl.h>

#include "engine/cache/bundle.h"
#include "engine/cache/cache_settings.h"
#include "engine/capture/entries/job_profile.h"
#include "engine/compile/compile.h"
#include "engine/compile/graph_cache.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

/// (bytes, ids): of everything that this process has taken from the cache or put there, in its best tier.
std::pair<py::bytes, std::vector<std::string>> save() {
  std::string bundle;
  std::vector<std::string> ids;
  capture::flushProfile();
  {
    py::gil_scoped_release release;
    drainCompiler();
    GraphCache& cache = GraphCache::instance();
    cache.flush();
    if (const std::vector<std::string> used = cache.used(); !used.empty())
      if (auto folder = cache.folder()) bundle = cache::exportBundle(**folder, used, cache::cacheSecret(), &ids);
  }
  return {py::bytes(bundle), ids};
}

/// (ids, refusals). Raises ValueError for what is no bundle, OSError where the folder cannot be written to.
std::pair<std::vector<std::string>, std::vector<std::string>> load(const py::bytes& bytes) {
  const std::string bundle = bytes;
  capture::forgetProfile();
  py::gil_scoped_release release;
  auto folder = GraphCache::instance().folder();
  if (!folder) throw std::runtime_error(folder.error().text());
  auto imported = cache::importBundle(bundle, **folder, cache::cacheSecret());
  if (!imported) throw py::value_error(imported.error().text());
  GraphCache::instance().noteUsed(imported->ids);
  return {imported->ids, imported->refusals};
}

}  // namespace

void bindCache(py::module_& m) {
  m.def("save_cache_artifacts", &save);
  m.def("load_cache_artifacts", &load);
}

}  // namespace fusebox::python
