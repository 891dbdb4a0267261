#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/query/symbols.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

struct GraphRow {
  int64_t id = 0, compile = 0, parent = 0, nodes = 0;
  std::string stage, direction, name, frame, file;
  int64_t line = 0;
  std::string logId;  ///< of its compilation, as PyTorch's logs name it: [0/1]
};
Result<std::vector<GraphRow>> graphs(const session::Reader& reader);

struct GraphNode {
  int64_t id = 0, position = 0, bytes = 0, line = 0;
  int64_t group = 0;     ///< fusion group that carries it out; 0 for none
  int64_t timeNs = 0;    ///< its share of that group's kernel time
  std::string name, kind, op, args, dtype, shape, stride, device, modulePath, file, function;
  bool isBackward = false;
  double error = -1;     ///< of the compiled value against float64, relative to the largest; negative: not measured
  bool isDivergent = false;
};
struct GraphEdge {
  int64_t from = 0, to = 0, output = 0, argument = 0;
};
struct GraphGroup {
  int64_t id = 0, kernel = 0, position = 0, timeNs = 0, launches = 0, bytesSaved = 0, readBytes = 0, writeBytes = 0;
  std::string name, kind, reason;
};
struct GraphData {
  GraphRow row;
  std::string text;
  std::vector<GraphNode> nodes;    ///< by position
  std::vector<GraphEdge> edges;
  std::vector<ShapeSymbol> symbols;  ///< that its sizes may name
  std::vector<GraphGroup> groups;  ///< in order of execution; those recorded for this graph or reached through node origins
};
/// Everything needed to draw a graph.
Result<GraphData> loadGraph(const session::Reader& reader, int64_t graph);
/// The graph `stage` of the first compile that has one, or of graph `near`'s compile and direction; NotFound lists the stages
/// that the session has.
Result<int64_t> findGraph(const session::Reader& reader, const std::string& stage, int64_t near = 0);
/// Which stage is drawn when none is named: the first of these that the session has.
inline constexpr std::array<const char*, 6> kDrawnStages{"post_fusion", "post_grad", "forward", "joint", "captured", "backward"};

}  // namespace fusebox::query
