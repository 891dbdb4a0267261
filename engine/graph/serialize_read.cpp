#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "engine/graph/base64.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/serialize.h"

namespace fusebox::graph {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 24;           ///< of lists in arguments, and of expressions
constexpr int32_t kMaxInputs = 50'000;  ///< Graph counts them at each addition
constexpr size_t kMaxRank = 64, kMaxFactors = 16, kMaxSymbols = 100'000;
constexpr int64_t kMostInExpressions = int64_t{1} << 62;

/// What is wrong with the text, on its way out.
struct Damage {
  std::string what;
};

const Json& member(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) throw Damage{fmt::format("\"{}\" is missing", key)};
  return object.at(key);
}
const Json& listOf(const Json& value, const char* what) {
  if (!value.is_array()) throw Damage{fmt::format("{} is not a list", what)};
  return value;
}
int64_t integerOf(const Json& value) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}))
    throw Damage{"an integer was expected"};
  return value.get<int64_t>();
}
int64_t integerIn(const Json& value, int64_t lower, int64_t upper) {
  const int64_t number = integerOf(value);
  if (number < lower || number > upper) throw Damage{fmt::format("{} is not between {} and {}", number, lower, upper)};
  return number;
}
std::string textOf(const Json& value) {
  if (!value.is_string()) throw Damage{"a text was expected"};
  return value.get<std::string>();
}
bool flag(const Json& object, const char* key) {
  if (!object.contains(key)) return false;
  if (!object.at(key).is_boolean()) throw Damage{fmt::format("\"{}\" is not true or false", key)};
  return object.at(key).get<bool>();
}

DType dtypeOf(const Json& value) {
  const std::string text = textOf(value);
  if (text == graph::name(DType::Undefined)) return DType::Undefined;
  for (int number = 0; number < kDTypes; ++number)
    if (const auto type = static_cast<DType>(number); graph::name(type) == text) return type;
  throw Damage{"unknown dtype " + text.substr(0, 40)};
}

Device deviceOf(const Json& value) {
  if (listOf(value, "device").size() != 2) throw Damage{"a device has two numbers"};
  return {static_cast<DeviceKind>(integerIn(value[0], 0, 3)), static_cast<int8_t>(integerIn(value[1], -1, 127))};
}

/// Why a graph that came in a file may not have an operator run; empty: it may. Most operators compute on tensors that they are given.
/// These reach further, and no schema says so: a file's name is a text like any other, an offset a number.
std::string_view whyRefused(std::string_view op) {
  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"aten::from_file", "opens the file that its argument names, and writes to it"},
      {"aten::save", "writes the file that its argument names"},
      {"debugprims::", "reads the file that its argument names"},
      {"inductor::_alloc_from_pool", "reaches memory at an offset that nothing checks"},
      {"inductor::_reinterpret_tensor", "reaches memory at an offset that nothing checks"},
      {"symm_mem::", "reaches the memory of other processes"},
  };
  for (const auto& [refused, why] : kRefused) {
    const bool isNamespace = refused.ends_with("::");
    if (isNamespace ? op.starts_with(refused) : op.substr(0, op.find('.')) == refused) return why;
  }
  return {};
}

class GraphReader {
 public:
  SavedGraph read(const Json& root) {
    SavedGraph saved;
    saved.graph.name = textOf(member(root, "name"));
    readSymbols(listOf(member(root, "symbols"), "symbols"), saved.hints);
    readStacks(listOf(member(root, "stacks"), "stacks"));
    if (root.contains("operators")) readOperators(root.at("operators"));
    const Json& nodes = listOf(member(root, "nodes"), "nodes");
    if (nodes.size() > kMaxSavedGraphNodes)
      throw Damage{fmt::format("{} nodes are more than {}", nodes.size(), kMaxSavedGraphNodes)};
    for (size_t i = 0; i < nodes.size(); ++i) {
      try {
        readNode(saved.graph, nodes[i]);
      } catch (const Damage& damage) {
        throw Damage{fmt::format("node {}: {}", i, damage.what)};
      }
    }
    for (const Json& item : listOf(member(root, "constants"), "constants")) saved.constants.push_back(constantOf(item));
    return saved;
  }

 private:
  void readSymbols(const Json& list, SymbolHints& hints) {
    if (list.size() > kMaxSymbols) throw Damage{"too many symbols"};
    for (const Json& item : list) {
      const int64_t lower = integerOf(member(item, "lower")), upper = integerOf(member(item, "upper"));
      if (lower > upper) throw Damage{"a symbol's bounds exclude everything"};
      symbols_.push_back(Symbol::make(textOf(member(item, "name")), lower, upper));
      if (item.contains("hint")) hints.emplace_back(symbols_.back(), integerIn(item.at("hint"), lower, upper));
    }
  }

  void readOperators(const Json& operators) {
    if (!operators.is_object()) throw Damage{"operators are no object"};
    for (const auto& [op, flags] : operators.items()) {
      std::vector<std::string> names;
      for (const Json& name : listOf(flags, "what holds of an operator")) names.push_back(textOf(name));
      learnFacts(op, factsOfFlags(names));
    }
  }

  void readStacks(const Json& list) {
    for (const Json& item : list) {
      auto stack = std::make_shared<std::vector<SourceLine>>();
      for (const Json& line : listOf(item, "stack")) {
        if (listOf(line, "stack line").size() != 3) throw Damage{"a stack line has file, line and function"};
        stack->push_back({textOf(line[0]), static_cast<int>(integerIn(line[1], 0, std::numeric_limits<int>::max())),
                          textOf(line[2])});
      }
      stacks_.push_back(std::move(stack));
    }
  }

  void readNode(Graph& graph, const Json& item) {
    const std::string kind = textOf(member(item, "kind")), name = textOf(member(item, "name"));
    std::vector<OutputMeta> outputs;
    for (const Json& output : listOf(member(item, "out"), "out")) outputs.push_back(outputOf(output));
    const auto count = static_cast<int64_t>(graph.nodes().size());
    ArgumentList args = argumentsOf(member(item, "args"), count, 0);
    Provenance origin = originOf(item);
    NodeId id = -1;
    if (kind == "call") {
      id = graph.addCall(textOf(member(item, "op")), std::move(args), std::move(outputs), std::move(origin));
    } else if (kind == "output") {
      id = graph.setOutputs(std::move(args));
    } else if (kind == "placeholder" || kind == "constant") {
      if (outputs.size() != 1) throw Damage{"an input has one output"};
      const auto index = static_cast<int32_t>(integerIn(member(item, "index"), 0, int64_t{kMaxSavedGraphNodes}));
      if (kind == "constant")
        id = graph.addConstant(name, index, outputs[0]);
      else
        id = addPlaceholder(graph, name, outputs[0], index, std::move(origin));
    } else {
      throw Damage{"unknown kind of node " + kind.substr(0, 40)};
    }
    Node& node = graph.node(id);
    node.name = name;  // as it was: decisions and rules name nodes
    node.outputIsList = flag(item, "list");
    node.noGrad = flag(item, "no_grad");
    node.isBackward = flag(item, "backward");
  }

  /// Graph counts placeholders at each call; thousands of them would take long, so the position is checked here.
  NodeId addPlaceholder(Graph& graph, const std::string& name, OutputMeta meta, int32_t index, Provenance origin) {
    if (index != placeholders_++ || index >= kMaxInputs) throw Damage{"an input out of order, or too many inputs"};
    return graph.addPlaceholder(name, std::move(meta), std::move(origin));
  }

  Provenance originOf(const Json& item) {
    Provenance origin;
    if (item.contains("module")) origin.modulePath = textOf(item.at("module"));
    if (item.contains("stack")) {
      if (stacks_.empty()) throw Damage{"a stack is named, but there are none"};
      origin.stack =
          stacks_[static_cast<size_t>(integerIn(item.at("stack"), 0, static_cast<int64_t>(stacks_.size()) - 1))];
    }
    if (item.contains("from"))
      for (const Json& id : listOf(item.at("from"), "from"))
        origin.from.push_back(static_cast<NodeId>(integerIn(id, 0, std::numeric_limits<NodeId>::max())));
    return origin;
  }

  OutputMeta outputOf(const Json& item) {
    OutputMeta meta;
    if (item.is_null()) {
      meta.kind = OutputMeta::Kind::None;
    } else if (item.contains("int")) {
      meta.kind = OutputMeta::Kind::SymInt;
      meta.scalar = expressionOf(item.at("int"), 0);
    } else {
      meta.tensor = tensorOf(item);
    }
    return meta;
  }

  TensorMeta tensorOf(const Json& item) {
    TensorMeta meta;
    meta.dtype = dtypeOf(member(item, "dtype"));
    meta.sizes = expressionsOf(member(item, "sizes"));
    meta.strides = expressionsOf(member(item, "strides"));
    if (meta.sizes.size() != meta.strides.size()) throw Damage{"sizes and strides differ in number"};
    for (const SymExpr& size : meta.sizes)
      if (size.maybeConstant().value_or(0) < 0) throw Damage{"a size is negative"};
    if (item.contains("offset")) meta.storageOffset = expressionOf(item.at("offset"), 0);
    if (item.contains("device")) meta.device = deviceOf(item.at("device"));
    meta.requiresGrad = flag(item, "grad");
    return meta;
  }

  ConstantData constantOf(const Json& item) {
    ConstantData constant{tensorOf(item), {}};
    if (!item.contains("data")) return constant;
    auto bytes = fromBase64(textOf(item.at("data")));
    if (!bytes) throw Damage{"a constant's data is not base64"};
    int64_t expected = elementSize(constant.meta.dtype);
    for (const SymExpr& size : constant.meta.sizes) {
      if (!size.isConstant() || __builtin_mul_overflow(expected, size.constant(), &expected))
        throw Damage{"a constant has no size"};
    }
    if (expected != static_cast<int64_t>(bytes->size()))
      throw Damage{"a constant's data has another length than its sizes say"};
    constant.bytes = std::move(*bytes);
    return constant;
  }

  std::vector<SymExpr> expressionsOf(const Json& list) {
    if (listOf(list, "sizes").size() > kMaxRank) throw Damage{"a tensor with too many dimensions"};
    std::vector<SymExpr> out;
    for (const Json& item : list) out.push_back(expressionOf(item, 0));
    return out;
  }

  SymExpr expressionOf(const Json& item, int depth) {
    if (item.is_number()) return integerIn(item, -kMostInExpressions, kMostInExpressions);
    if (depth > kMaxDepth) throw Damage{"an expression is nested too deeply"};
    SymExpr sum = 0;
    if (listOf(item, "expression").size() > 1000) throw Damage{"an expression is too long"};
    for (const Json& term : item) {
      if (listOf(term, "term").empty() || term.size() > kMaxFactors + 1)
        throw Damage{"a term has no coefficient or too many factors"};
      SymExpr product = integerIn(term[0], -kMostInExpressions, kMostInExpressions);
      for (size_t i = 1; i < term.size(); ++i) product *= factorOf(term[i], depth);
      sum += product;
    }
    return sum;
  }

  SymExpr factorOf(const Json& item, int depth) {
    if (item.is_number()) {
      if (symbols_.empty()) throw Damage{"a symbol is named, but there are none"};
      return symbols_[static_cast<size_t>(integerIn(item, 0, static_cast<int64_t>(symbols_.size()) - 1))];
    }
    if (listOf(item, "factor").size() != 3) throw Damage{"a factor has a name and two operands"};
    const std::string kind = textOf(item[0]);
    const SymExpr a = expressionOf(item[1], depth + 1), b = expressionOf(item[2], depth + 1);
    if ((kind == "div" || kind == "mod") && b == SymExpr(0)) throw Damage{"a division by zero"};
    if (kind == "div") return floorDiv(a, b);
    if (kind == "mod") return mod(a, b);
    if (kind == "min") return min(a, b);
    if (kind == "max") return max(a, b);
    throw Damage{"unknown factor " + kind.substr(0, 40)};
  }

  ArgumentList argumentsOf(const Json& list, int64_t nodes, int depth) {
    if (depth > kMaxDepth) throw Damage{"arguments are nested too deeply"};
    ArgumentList out;
    for (const Json& item : listOf(list, "args")) out.push_back(argumentOf(item, nodes, depth));
    return out;
  }

  Argument argumentOf(const Json& item, int64_t nodes, int depth) {
    if (item.is_null()) return {};
    if (item.is_boolean()) return item.get<bool>();
    if (item.is_number_integer()) return integerOf(item);
    if (item.is_number_float()) return item.get<double>();
    if (item.is_string()) return item.get<std::string>();
    if (item.is_array()) return argumentsOf(item, nodes, depth + 1);
    if (!item.is_object() || item.size() != 1) throw Damage{"an argument of no known form"};
    const std::string key = item.begin().key();
    const Json& value = item.begin().value();
    if (key == "v") {
      if (listOf(value, "value").size() != 2) throw Damage{"a value has a node and an output"};
      return ValueRef{static_cast<NodeId>(integerIn(value[0], 0, nodes - 1)),
                      static_cast<int32_t>(integerIn(value[1], 0, 1 << 30))};
    }
    if (key == "e") return expressionOf(value, 0);
    if (key == "dtype") return dtypeOf(value);
    if (key == "device") return deviceOf(value);
    if (key == "layout") return Layout{static_cast<int8_t>(integerIn(value, 0, 127))};
    if (key == "memory_format") return MemoryFormat{static_cast<int8_t>(integerIn(value, 0, 127))};
    if (key == "generator") return GeneratorRef{static_cast<int32_t>(integerIn(value, 0, 1000))};
    if (key == "f") return nonFinite(textOf(value));
    if (key == "c") {
      if (listOf(value, "complex number").size() != 2) throw Damage{"a complex number has two parts"};
      return std::complex<double>(realOf(value[0]), realOf(value[1]));
    }
    throw Damage{"unknown argument " + key.substr(0, 40)};
  }

  static double nonFinite(const std::string& text) {
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  static double realOf(const Json& item) {
    return item.is_number() ? item.get<double>() : nonFinite(textOf(member(item, "f")));
  }

  std::vector<Symbol> symbols_;
  std::vector<std::shared_ptr<const std::vector<SourceLine>>> stacks_;
  int32_t placeholders_ = 0;
};

}  // namespace

Result<SavedGraph> readSavedGraph(std::string_view text) {
  const auto corrupt = [](std::string what) {
    return fail(ErrorCode::Corrupt, "this is not a saved graph: " + std::move(what));
  };
  if (text.size() > kMaxSavedGraphBytes) return corrupt("it is too large");
  // Lists inside lists cost a level of the parser's own stack each: none of ours go deeper than a few.
  int depth = 0, deepest = 0;
  for (char c : text) {
    if (c == '[' || c == '{')
      deepest = std::max(deepest, ++depth);
    else if (c == ']' || c == '}')
      --depth;
  }
  if (deepest > 4000) return corrupt("it is nested too deeply");
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return corrupt("its JSON is damaged");
  try {
    if (textOf(member(root, "format")) != "fusebox-graph") return corrupt("its format is another one");
    if (const int64_t version = integerOf(member(root, "version")); version > kSavedGraphVersion)
      return fail(ErrorCode::TooNew,
                  fmt::format("the graph was saved by a newer Fusebox (format {}, this program reads up to {})",
                              version, kSavedGraphVersion));
    SavedGraph saved = GraphReader().read(root);
    if (auto verified = saved.graph.verify(); !verified) return corrupt(verified.error().message);
    for (const Node& node : saved.graph.nodes())
      if (const auto why = whyRefused(node.op); !why.empty())
        return fail(ErrorCode::Unsupported, fmt::format("{} is not run from a saved graph: {} {}", node.name, node.op, why));
    return saved;
  } catch (const Damage& damage) {
    return corrupt(damage.what);
  }
}

}  // namespace fusebox::graph
