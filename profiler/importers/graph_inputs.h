#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/importers/fx_text.h"

namespace fusebox::importing {

/// What a program calls a source of TorchDynamo's: L['s']._modules['layers']._modules['0']._parameters['weight'] → s.layers.0.weight.
std::string programName(std::string_view source);

/// The module that such a source leads through, from the outermost one on: L['s']._modules['layers']._modules['0']._parameters['weight'] →
/// layers.0. `withRoot`: with what the outermost is called, s.layers.0.
std::string moduleOf(std::string_view source, bool withRoot);

/// What the inputs of one compilation's graphs are in the program. TorchDynamo says of each tensor where it was read, and names its graph's
/// inputs after that; the compiler behind it is handed this graph, or parts of it one by one; inputs of AOTAutograd's graphs (primals_4,
/// arg3_1) say which input of what was handed they are. Each function returns how many tensors among the inputs keep PyTorch's names.
/// Inputs that modules hold, and what works on them (a product with a weight, its transposition), get the path of their module: the log says
/// no more of modules. What is between them keeps none.
class GraphInputs {
 public:
  /// A tensor or number was read there. Another attempt starts over.
  void source(int64_t attempt, std::string source);
  int64_t nameCaptured(FxGraph& graph);
  /// What the compiler was handed: the captured graph, or a part of it.
  int64_t nameHanded(FxGraph& graph);
  /// The captured graph was cut: it is not known which part is meant until one is handed.
  void cut() { handed_.clear(); }
  /// A graph of AOTAutograd's: by what is printed beside an input, else by numbers, if types and shapes of all inputs agree.
  int64_t nameLater(FxGraph& graph) const;
  /// A graph that was made of `earlier`, with inputs of the same names.
  static int64_t nameLike(FxGraph& graph, const FxGraph& earlier);
  /// Whether all inputs of `graph` are inputs of `earlier`; `all`: and the other way round.
  static bool sameInputs(const FxGraph& graph, const FxGraph& earlier, bool all);

 private:
  struct Input {
    std::string name, source, dtype, shape;  ///< name: empty where it is not known
  };
  Input named(std::string_view descriptor, int depth) const;
  bool agree(const FxGraph& graph, bool described) const;
  int64_t apply(FxGraph& graph, const std::unordered_map<size_t, Input>& names) const;
  bool hasSeveralRoots() const;

  int64_t attempt_ = 0;
  std::vector<std::string> sources_;
  std::unordered_map<std::string, std::string> attributes_;  ///< sources by the name of the graph's attribute that holds such a tensor
  std::unordered_map<std::string, Input> captured_;  ///< by name in the captured graph, values inside it among them
  std::vector<Input> handed_;                        ///< in order
};

}  // namespace fusebox::importing
