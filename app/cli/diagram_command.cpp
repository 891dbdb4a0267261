#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/cli/child_output.h"
#include "app/cli/commands.h"
#include "app/cli/graph_drawing.h"
#include "app/cli/open_input.h"
#include "profiler/export/dot.h"
#include "profiler/export/output_file.h"
#include "profiler/query/graphs.h"
#include "profiler/session/reader.h"

namespace fusebox::cli {
namespace {

constexpr int kDotLimitMs = 10'000;
constexpr size_t kMostDotNodes = 2500;  ///< beyond, dot takes minutes
constexpr std::array<const char*, 4> kFormats{"svg", "png", "pdf", "dot"};

std::string formatOf(const std::string& path) {
  for (const char* format : kFormats) {
    if (path.ends_with(std::string(".") + format)) return format;
  }
  return {};
}

Result<int64_t> chooseGraph(const session::Reader& reader, const DiagramOptions& options) {
  if (options.graph > 0 && options.stage.empty()) return options.graph;
  if (!options.stage.empty()) return query::findGraph(reader, options.stage, options.graph);
  Result<int64_t> found = fail(ErrorCode::NotFound, "the session holds no graph", reader.origin());
  for (const char* stage : query::kDrawnStages) {
    found = query::findGraph(reader, stage);
    if (found) return found;
  }
  return found;
}

struct Drawn {
  std::string whyOwn;  ///< why the picture is not dot's; empty where it is
  double scale = 1;    ///< less: a .png of the full size would be too large
};

/// "dot: graph is too large for cairo-renderer bitmaps. Scaling by 0.0408 to fit"
double scaleSaid(const std::string& complaint) {
  constexpr std::string_view kWords = "Scaling by ";
  const size_t at = complaint.find(kWords);
  const double scale = at == std::string::npos ? 1.0 : std::strtod(complaint.c_str() + at + kWords.size(), nullptr);
  return scale > 0 && scale < 1 ? scale : 1.0;
}

/// Graphviz' picture. Errors: NotFound (no dot), Unsupported (it gave up).
Result<std::string> renderByDot(const query::GraphData& graph, const std::string& format, double* scale) {
  if (graph.nodes.size() > kMostDotNodes) return fail(ErrorCode::Unsupported, fmt::format("dot takes too long for {} nodes", graph.nodes.size()));
  auto drawn = runChild({"dot", "-T" + format}, exporting::toDot(graph), kDotLimitMs);
  if (!drawn && drawn.error().code == ErrorCode::NotFound) return fail(ErrorCode::NotFound, "dot is not installed (apt install graphviz)");
  if (!drawn) return fail(ErrorCode::Unsupported, "dot gave up: " + drawn.error().message);
  if (drawn->exitCode != 0) return fail(ErrorCode::Unsupported, "dot failed: " + drawn->err);
  *scale = scaleSaid(drawn->err);
  return std::move(drawn->out);
}

Result<Drawn> draw(const query::GraphData& graph, const std::string& format, const std::string& path) {
  Drawn drawn;
  if (format == "dot") {
    if (auto written = exporting::writeOutput(path, exporting::toDot(graph)); !written) return tl::unexpected(written.error());
    return drawn;
  }
  auto picture = renderByDot(graph, format, &drawn.scale);
  if (picture) {
    if (auto written = exporting::writeOutput(path, *picture); !written) return tl::unexpected(written.error());
    return drawn;
  }
  if (!graphDrawing()) return tl::unexpected(picture.error());
  auto scale = graphDrawing()(graph, path);
  if (!scale) return tl::unexpected(scale.error());
  return Drawn{picture.error().message, *scale};
}

}  // namespace

GraphDrawing& graphDrawing() {
  static GraphDrawing drawing;
  return drawing;
}

int drawDiagram(const DiagramOptions& options) {
  const std::string format = formatOf(options.output);
  if (format.empty()) return complainUsage(options.output + ": the name must end in .svg, .png, .pdf or .dot");
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto id = chooseGraph(**reader, options);
  if (!id) return complain(id.error());
  auto graph = query::loadGraph(**reader, *id);
  if (!graph) return complain(graph.error());
  auto drawn = draw(*graph, format, options.output);
  if (!drawn) return complain(drawn.error());
  if (drawn->scale < 1)
    fmt::print(stderr,
               "fusebox: {} is scaled down to {:.2g} % of its size, since images end at some thousand pixels; as .svg or .pdf it "
               "stays readable\n",
               options.output, 100 * drawn->scale);
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"output", options.output},
                                      {"graph", graph->row.id},
                                      {"stage", graph->row.stage},
                                      {"direction", graph->row.direction},
                                      {"nodes", graph->nodes.size()},
                                      {"groups", graph->groups.size()},
                                      {"layout", format == "dot" ? "none" : drawn->whyOwn.empty() ? "dot" : "own"},
                                      {"scale", drawn->scale}}
                           .dump());
  } else {
    fmt::print("{}: graph {} ({}, {}), {} nodes in {} groups\n", options.output, graph->row.id, graph->row.stage,
               graph->row.direction, graph->nodes.size(), graph->groups.size());
    if (!drawn->whyOwn.empty()) fmt::print("laid out by Fusebox itself: {}\n", drawn->whyOwn);
  }
  return kOk;
}

}  // namespace fusebox::cli
