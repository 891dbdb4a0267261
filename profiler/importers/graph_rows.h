#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/importers/fx_text.h"
#include "profiler/importers/output_code.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// A printed graph as it lies in the session.
struct StoredGraph {
  int64_t id = 0;
  std::string stage, direction;
  FxGraph graph;
  std::vector<int64_t> nodeIds;  ///< by index of graph.nodes
  std::unordered_map<std::string, size_t> byName;
};

/// inference, forward or backward, by the names of its inputs.
std::string directionOf(const FxGraph& graph);

/// Parses a printed graph; what was not understood of it is a loss.
FxGraph readGraph(SessionBuilder& session, std::string_view printed);

/// Writes a graph with its nodes, edges and the user's lines that it quotes. direction: inference, forward, backward or joint; empty: read
/// from the names of its inputs. `text`: what to show as its text.
StoredGraph storeGraph(SessionBuilder& session, int64_t compile, const std::string& stage, std::string direction, FxGraph graph,
                       std::string_view text, int64_t timeNs, int64_t parent = 0);

/// Nodes of `later` that bear the name and the operator of one of `earlier` were made from it.
void linkByName(SessionBuilder& session, const StoredGraph& later, const StoredGraph& earlier);

/// What provenance tracking knows (the artifact inductor_provenance_tracking_node_mappings).
struct NodeMappings {
  std::unordered_map<std::string, std::vector<std::string>> postToPre;   ///< post-grad node → captured nodes
  std::unordered_map<std::string, std::vector<std::string>> codeToPost;  ///< "kernel:handle" → post-grad nodes
  bool empty() const { return postToPre.empty() && codeToPost.empty(); }
};
/// False if the text is not what it should be.
bool parseNodeMappings(std::string_view json, NodeMappings& into);
void linkByMappings(SessionBuilder& session, const StoredGraph& postGrad, const StoredGraph& captured,
                    const NodeMappings& mappings);

/// Writes the kernels of generated code, the post-fusion graph (the post-grad nodes) and the fusion groups. Library
/// calls find their nodes by provenance handle, else by operator in order of execution, and say which. `compileNs`: by
/// kernel name.
void storeFusion(SessionBuilder& session, int64_t compile, const OutputCode& code, const StoredGraph* postGrad,
                 const NodeMappings& mappings, const std::unordered_map<std::string, int64_t>& compileNs,
                 int64_t timeNs);

}  // namespace fusebox::importing
