#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusebox::importing {

/// A node of a graph that was printed as Python by torch.fx (GraphModule.print_readable).
struct FxNode {
  std::string name;
  std::string shown;                         ///< what the program calls it, where that is known and differs
  std::string descriptor;                    ///< of an input, as AOTAutograd prints it: PlainAOTInput(idx=3)
  std::string kind;                          ///< placeholder, constant, call, output
  std::string op;                            ///< aten::add.Tensor, torch.softmax, Tensor.sum, operator.mul, …
  std::string args;                          ///< as printed
  std::string dtype, shape, stride, device;  ///< of the annotation; shape and stride as "[2, 3]"
  int64_t bytes = -1;                        ///< -1: not known
  std::string file, function;
  int64_t line = 0;
  std::string code;  ///< the user's line
  std::string modulePath;  ///< layers.0.attn, or the parameter that an input is
  std::string stack;       ///< JSON list of {file, line, function}, innermost last
  std::string outputs;     ///< JSON list of their shapes, where there are several
  struct Input {
    size_t node;         ///< its index
    int64_t argument;    ///< position among the arguments
    int64_t output = 0;  ///< of that node
  };
  std::vector<Input> inputs;
};

struct FxGraph {
  std::string name;
  std::vector<FxNode> nodes;  ///< in order of execution, placeholders first
  int64_t unread = 0;         ///< statements that were not understood
  int64_t nested = 0;         ///< further modules in the text (bodies of higher-order operators), which are left out
  int64_t edges() const;
};

/// Parses the text of one printed module. Never fails: what is no statement of a printed graph is counted in `unread`.
/// Python in it is read as text only.
FxGraph parseFxText(std::string_view text);

/// The words of printed arguments that are names of values, in order.
std::vector<std::string> valuesIn(std::string_view args);

/// `args` with what `names` says of each value that they refer to.
std::string withNames(std::string_view args, const std::unordered_map<std::string, std::string>& names);

/// "f32[2, 3][3, 1]cuda:0" of an annotation into the node's fields.
void parseAnnotation(std::string_view annotation, FxNode& node);

}  // namespace fusebox::importing
