#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/support/result.h"

namespace fusebox::graph {

/// A tensor fixed at capture, as far as a saved graph holds it.
struct ConstantData {
  TensorMeta meta;
  std::string bytes;  ///< elements in row-major order, little-endian; empty: not kept (too large), only described
};

/// The values that symbols had when the graph was captured.
using SymbolHints = std::vector<std::pair<Symbol, int64_t>>;

/// A graph in a form that lasts: everything needed to compile it again alone.
struct SavedGraph {
  Graph graph;
  std::vector<ConstantData> constants;  ///< by Node::index of Constant nodes
  SymbolHints hints;                    ///< of the symbols that have one
};

inline constexpr int kSavedGraphVersion = 1;
/// What readSavedGraph() takes at most, in bytes of text and in nodes.
inline constexpr size_t kMaxSavedGraphBytes = size_t{512} << 20;
inline constexpr size_t kMaxSavedGraphNodes = 2'000'000;

/// JSON, one object: format "fusebox-graph", version, name, symbols [{name, lower, upper, hint}], stacks, nodes, constants, operators (what
/// holds of each: operator_facts.h).
/// - A node: kind, name, op, args, out; where they are not the default: index, list, no_grad, backward, module, stack
/// (position in
///   `stacks`), from.
/// - An output: {dtype, sizes, strides, offset, device, grad}, {"int": expression}, or null.
/// - An argument: null, bool, integer, float, string, list, or an object with one key: v [node, output], e
/// (expression), dtype,
///   device, layout, memory_format, generator, c [re, im], f ("inf", "-inf", "nan").
/// - An expression: an integer, or a list of terms [coefficient, factor, …], where a factor is the position of a symbol
/// or
///   ["div"|"mod"|"min"|"max", expression, expression].
std::string writeSavedGraph(const Graph& graph, const std::vector<ConstantData>& constants = {}, const SymbolHints& hints = {});

/// Reads what writeSavedGraph() wrote, here or elsewhere: bounded, and verified. Errors: Corrupt (with the place),
/// TooNew.
Result<SavedGraph> readSavedGraph(std::string_view text);

}  // namespace fusebox::graph
