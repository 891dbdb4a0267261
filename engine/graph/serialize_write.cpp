#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/graph/base64.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/serialize.h"

namespace fusebox::graph {
namespace {

using Json = nlohmann::json;

constexpr const char* kKinds[] = {"placeholder", "constant", "call", "output"};

class GraphWriter {
 public:
  Json write(const Graph& graph, const std::vector<ConstantData>& constants, const SymbolHints& hints) {
    hints_.insert(hints.begin(), hints.end());
    Json nodes = Json::array();
    for (const Node& node : graph.nodes()) nodes.push_back(nodeJson(node));
    Json kept = Json::array();
    for (const ConstantData& constant : constants) {
      Json item = tensorJson(constant.meta);
      if (!constant.bytes.empty()) item["data"] = toBase64(constant.bytes);
      kept.push_back(std::move(item));
    }
    return {{"format", "fusebox-graph"},   {"version", kSavedGraphVersion},
            {"name", graph.name},          {"symbols", symbols_},
            {"stacks", stacks_},           {"nodes", std::move(nodes)},
            {"constants", std::move(kept)}, {"operators", operatorsJson(graph)}};
  }

 private:
  /// What the dispatcher says of the operators, for readers without one.
  static Json operatorsJson(const Graph& graph) {
    Json out = Json::object();
    for (const Node& node : graph.nodes())
      if (!node.op.empty() && !out.contains(node.op))
        if (auto names = flagNames(factsOf(node)); !names.empty()) out[node.op] = std::move(names);
    return out;
  }

  Json nodeJson(const Node& node) {
    Json out = {
        {"kind", kKinds[static_cast<size_t>(node.kind)]}, {"name", node.name}, {"args", argumentsJson(node.args)}};
    Json outputs = Json::array();
    for (const OutputMeta& meta : node.outputs) outputs.push_back(outputJson(meta));
    out["out"] = std::move(outputs);
    if (!node.op.empty()) out["op"] = node.op;
    if (node.index >= 0) out["index"] = node.index;
    if (node.outputIsList) out["list"] = true;
    if (node.noGrad) out["no_grad"] = true;
    if (node.isBackward) out["backward"] = true;
    if (!node.origin.modulePath.empty()) out["module"] = node.origin.modulePath;
    if (!node.origin.from.empty()) out["from"] = node.origin.from;
    if (node.origin.stack && !node.origin.stack->empty()) out["stack"] = stackIndex(node.origin.stack.get());
    return out;
  }

  Json outputJson(const OutputMeta& meta) {
    if (meta.kind == OutputMeta::Kind::None) return nullptr;
    if (meta.kind == OutputMeta::Kind::SymInt) return {{"int", expressionJson(meta.scalar)}};
    return tensorJson(meta.tensor);
  }

  Json tensorJson(const TensorMeta& meta) {
    Json out = {{"dtype", graph::name(meta.dtype)},
                {"sizes", expressionsJson(meta.sizes)},
                {"strides", expressionsJson(meta.strides)}};
    if (!(meta.storageOffset == SymExpr(0))) out["offset"] = expressionJson(meta.storageOffset);
    if (!(meta.device == Device{})) out["device"] = deviceJson(meta.device);
    if (meta.requiresGrad) out["grad"] = true;
    return out;
  }

  static Json deviceJson(const Device& device) {
    return Json::array({static_cast<int>(device.kind), static_cast<int>(device.index)});
  }

  Json argumentsJson(const ArgumentList& args) {
    Json out = Json::array();
    for (const Argument& argument : args)
      out.push_back(std::visit([this](const auto& v) { return argumentJson(v); }, argument.value));
    return out;
  }
  Json argumentJson(std::monostate) { return nullptr; }
  Json argumentJson(bool v) { return v; }
  Json argumentJson(int64_t v) { return v; }
  Json argumentJson(double v) {
    if (std::isfinite(v)) return v;
    return {{"f", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
  }
  Json argumentJson(const std::complex<double>& v) {
    return {{"c", Json::array({argumentJson(v.real()), argumentJson(v.imag())})}};
  }
  Json argumentJson(const std::string& v) { return v; }
  Json argumentJson(const SymExpr& v) { return {{"e", expressionJson(v)}}; }
  Json argumentJson(DType v) { return {{"dtype", graph::name(v)}}; }
  Json argumentJson(const Device& v) { return {{"device", deviceJson(v)}}; }
  Json argumentJson(Layout v) { return {{"layout", static_cast<int>(v.value)}}; }
  Json argumentJson(MemoryFormat v) { return {{"memory_format", static_cast<int>(v.value)}}; }
  Json argumentJson(GeneratorRef v) { return {{"generator", v.index}}; }
  Json argumentJson(ValueRef v) { return {{"v", Json::array({v.node, v.output})}}; }
  Json argumentJson(const ArgumentList& v) { return argumentsJson(v); }

  Json expressionsJson(const std::vector<SymExpr>& list) {
    Json out = Json::array();
    for (const SymExpr& e : list) out.push_back(expressionJson(e));
    return out;
  }
  Json expressionJson(const SymExpr& e) {
    if (e.isConstant()) return e.constant();
    Json terms = Json::array();
    for (const SymExpr::Term& term : e.terms()) {
      Json item = Json::array({term.coefficient});
      for (const SymAtom& atom : term.factors) item.push_back(atomJson(atom));
      terms.push_back(std::move(item));
    }
    return terms;
  }
  Json atomJson(const SymAtom& atom) {
    static constexpr const char* kAtoms[] = {"", "div", "mod", "min", "max"};
    if (atom.kind == SymAtom::Kind::Symbol) return symbolIndex(atom.symbol);
    return Json::array({kAtoms[static_cast<size_t>(atom.kind)], expressionJson(atom.a), expressionJson(atom.b)});
  }

  size_t symbolIndex(Symbol symbol) {
    const auto [entry, isNew] = symbolOf_.emplace(symbol, symbols_.size());
    if (!isNew) return entry->second;
    Json item = {{"name", symbol.name()}, {"lower", symbol.lower()}, {"upper", symbol.upper()}};
    const auto hint = hints_.find(symbol);
    if (hint != hints_.end() && symbol.lower() <= hint->second && hint->second <= symbol.upper()) item["hint"] = hint->second;
    symbols_.push_back(std::move(item));
    return entry->second;
  }
  size_t stackIndex(const std::vector<SourceLine>* stack) {
    const auto [entry, isNew] = stackOf_.emplace(stack, stacks_.size());
    if (!isNew) return entry->second;
    Json lines = Json::array();
    for (const SourceLine& line : *stack) lines.push_back(Json::array({line.file, line.line, line.function}));
    stacks_.push_back(std::move(lines));
    return entry->second;
  }

  Json symbols_ = Json::array(), stacks_ = Json::array();
  std::map<Symbol, size_t> symbolOf_;
  std::map<Symbol, int64_t> hints_;
  std::map<const std::vector<SourceLine>*, size_t> stackOf_;
};

}  // namespace

std::string writeSavedGraph(const Graph& graph, const std::vector<ConstantData>& constants, const SymbolHints& hints) {
  return GraphWriter().write(graph, constants, hints).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fusebox::graph
