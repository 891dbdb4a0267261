#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/child_output.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/export/dot.h"
#include "profiler/query/graphs.h"
#include "profiler/session/reader.h"

namespace fusebox::cli {
namespace {

constexpr int kDotLimitMs = 10'000;
constexpr std::array<const char*, 4> kFormats{"svg", "png", "pdf", "dot"};
/// Preference when no stage is named.
constexpr std::array<const char*, 6> kStages{"post_fusion", "post_grad", "forward", "joint", "captured", "backward"};

std::string formatOf(const std::string& path) {
  for (const char* format : kFormats) {
    if (path.ends_with(std::string(".") + format)) return format;
  }
  return {};
}

Result<int64_t> chooseGraph(const session::Reader& reader, const DiagramOptions& options) {
  if (options.graph > 0 && options.stage.empty()) return options.graph;
  if (!options.stage.empty()) return query::findGraph(reader, options.stage, options.graph);
  Result<int64_t> found = fail(ErrorCode::NotFound, "the session holds no graph", reader.path());
  for (const char* stage : kStages) {
    found = query::findGraph(reader, stage);
    if (found) return found;
  }
  return found;
}

Result<std::string> render(const std::string& dot, const std::string& format, size_t nodes) {
  if (format == "dot") return dot;
  auto drawn = runChild({"dot", "-T" + format}, dot, kDotLimitMs);
  if (!drawn && drawn.error().code == ErrorCode::NotFound) {
    return fail(ErrorCode::InvalidArgument,
                "the picture is drawn by Graphviz' `dot`, which is not installed (apt install graphviz); "
                "-o NAME.dot works without it");
  }
  if (!drawn) {
    return fail(ErrorCode::InvalidArgument, fmt::format("dot gave up on a graph of {} nodes: {}; use --stage post_fusion, "
                                                        "another --graph, or -o NAME.dot and a larger layout program",
                                                        nodes, drawn.error().message));
  }
  if (drawn->exitCode != 0) return fail(ErrorCode::InvalidArgument, "dot failed: " + drawn->err);
  return std::move(drawn->out);
}

}  // namespace

int drawDiagram(const DiagramOptions& options) {
  const std::string format = formatOf(options.output);
  if (format.empty()) return complainUsage(options.output + ": the name must end in .svg, .png, .pdf or .dot");
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto id = chooseGraph(**reader, options);
  if (!id) return complain(id.error());
  auto graph = query::loadGraph(**reader, *id);
  if (!graph) return complain(graph.error());
  auto picture = render(exporting::toDot(*graph), format, graph->nodes.size());
  if (!picture) return complain(picture.error());
  std::ofstream out(options.output, std::ios::binary);
  out << *picture;
  out.close();
  if (!out) return complainUsage(options.output + ": cannot be written: " + std::strerror(errno));
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"output", options.output},
                                      {"graph", graph->row.id},
                                      {"stage", graph->row.stage},
                                      {"direction", graph->row.direction},
                                      {"nodes", graph->nodes.size()},
                                      {"groups", graph->groups.size()}}
                           .dump());
  } else {
    fmt::print("{}: graph {} ({}, {}), {} nodes in {} groups\n", options.output, graph->row.id, graph->row.stage,
               graph->row.direction, graph->nodes.size(), graph->groups.size());
  }
  return kOk;
}

}  // namespace fusebox::cli
