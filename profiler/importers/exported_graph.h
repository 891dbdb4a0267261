#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/support/bounded_json.h"
#include "profiler/importers/fx_text.h"

namespace fusebox::importing {

/// Graphs of one `GraphModule` of an exported program's JSON.
struct ExportedGraphs {
  FxGraph main;
  std::vector<std::pair<std::string, FxGraph>> inner;  ///< bodies of higher-order operators, by name
  int64_t damaged = 0;                                 ///< values and nodes without the form that the schema says
  JsonFault fault = JsonFault::None;                   ///< of the first part that is no JSON or exceeds its bounds
};

/// Reads `graph_module`: {graph, signature, …} of torch/_export/serde/schema.py. Fields of newer schemas are passed
/// over. Nodes and values are read one at a time: there is no tree of the whole.
ExportedGraphs readExportedGraphs(std::string_view graphModule, const std::string& name);

}  // namespace fusebox::importing
