#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "profiler/importers/fx_text.h"

namespace fusebox::importing {

/// Graphs of one `GraphModule` of an exported program's JSON.
struct ExportedGraphs {
  FxGraph main;
  std::vector<std::pair<std::string, FxGraph>> inner;  ///< bodies of higher-order operators, by name
  int64_t damaged = 0;                                 ///< values and nodes without the form that the schema says
};

/// Reads `graph_module`: {graph, signature, …} of torch/_export/serde/schema.py. Fields of newer schemas are passed
/// over.
ExportedGraphs readExportedGraphs(const nlohmann::json& graphModule, const std::string& name);

}  // namespace fusebox::importing
