// Reads one graph as JSON a line, writes what lowering made of it as JSON a line. numerics.py drives it, so that lowered
// kernels can be evaluated by an interpreter that shares nothing with the code generators.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/inductor/ir/lowered_graph.h"

using namespace fusebox;
using namespace fusebox::graph;
using namespace fusebox::inductor;
using Json = nlohmann::json;

namespace {

TensorMeta metaFrom(const Json& j) {
  TensorMeta m;
  for (int64_t s : j["sizes"]) m.sizes.emplace_back(s);
  for (int64_t s : j["strides"]) m.strides.emplace_back(s);
  m.storageOffset = j.value("offset", int64_t{0});
  m.dtype = static_cast<DType>(j["dtype"].get<int>());
  return m;
}

OutputMeta outputFrom(const Json& j) {
  OutputMeta o;
  if (j.is_null()) o.kind = OutputMeta::Kind::None;
  else o.tensor = metaFrom(j);
  return o;
}

Argument argFrom(const Json& j) {
  if (j.is_null()) return {};
  if (j.contains("v")) return ValueRef{j["v"][0], j["v"][1]};
  if (j.contains("b")) return j["b"].get<bool>();
  if (j.contains("i")) return j["i"].get<int64_t>();
  if (j.contains("d")) return std::stod(j["d"].get<std::string>());
  if (j.contains("s")) return j["s"].get<std::string>();
  if (j.contains("dt")) return static_cast<DType>(j["dt"].get<int>());
  if (j.contains("dev")) return Device{};
  if (j.contains("lay")) return Layout{j["lay"].get<int8_t>()};
  if (j.contains("mf")) return MemoryFormat{j["mf"].get<int8_t>()};
  ArgumentList list;
  for (const Json& e : j["l"]) list.push_back(argFrom(e));
  return list;
}

Json argTo(const Argument& a) {
  if (const auto* v = a.as<ValueRef>()) return {{"v", v->node}};
  if (const auto* b = a.as<bool>()) return {{"b", *b}};
  if (const auto* i = a.as<int64_t>()) return {{"i", *i}};
  if (const auto* e = a.as<SymExpr>()) return {{"i", e->constant()}};
  if (const auto* d = a.as<double>()) return {{"d", Argument(*d).str()}};
  if (const auto* s = a.as<std::string>()) return {{"s", *s}};
  if (const auto* t = a.as<DType>()) return {{"dt", static_cast<int>(*t)}};
  if (a.as<Device>()) return {{"dev", "cpu"}};
  if (const auto* l = a.as<Layout>()) return {{"lay", l->value}};
  if (const auto* m = a.as<MemoryFormat>()) return {{"mf", m->value}};
  if (const auto* l = a.as<ArgumentList>()) {
    Json out = Json::array();
    for (const Argument& e : *l) out.push_back(argTo(e));
    return {{"l", out}};
  }
  return nullptr;
}

/// An expression in Python's syntax, symbols as s<id>.
std::string python(const SymExpr& e) {
  if (e.isConstant()) return std::to_string(e.constant());
  std::string out;
  for (const auto& t : e.terms()) {
    out += (out.empty() ? "" : " + ") + std::string("(") + std::to_string(t.coefficient) + ")";
    for (const SymAtom& f : t.factors) {
      using Kind = SymAtom::Kind;
      switch (f.kind) {
        case Kind::Symbol: out += fmt::format("*s{}", f.symbol.id); break;
        case Kind::FloorDiv: out += "*((" + python(f.a) + ") // (" + python(f.b) + "))"; break;
        case Kind::Mod: out += "*((" + python(f.a) + ") % (" + python(f.b) + "))"; break;
        case Kind::Min: out += "*lesser((" + python(f.a) + "), (" + python(f.b) + "))"; break;
        case Kind::Max: out += "*greater((" + python(f.a) + "), (" + python(f.b) + "))"; break;
      }
    }
  }
  return out;
}

Json axesTo(const std::vector<Axis>& axes) {
  Json out = Json::array();
  for (const Axis& a : axes) out.push_back({a.symbol.id, a.extent.constant()});
  return out;
}

Json sectionTo(const Section& s) {
  Json values = Json::array(), body = Json::array(), indirect = Json::array();
  for (const Value& v : s.values) {
    values.push_back({{"op", name(v.op)}, {"type", static_cast<int>(v.type)}, {"args", v.args}, {"imm", v.imm},
                      {"buffer", v.buffer}, {"index", python(v.index)}, {"mask", v.mask}});
  }
  for (const Statement& t : s.body) {
    body.push_back({{"kind", static_cast<int>(t.kind)}, {"buffer", t.buffer}, {"index", python(t.index)}, {"value", t.value},
                    {"mask", t.mask}, {"reduce", name(t.reduce)}, {"reduction", t.reduction}, {"inputs", t.inputs}});
  }
  for (const auto& [symbol, value] : s.indirect) indirect.push_back({symbol.id, value});
  return {{"axes", axesTo(s.axes)}, {"reduction", s.isReduction}, {"values", values}, {"body", body}, {"indirect", indirect}};
}

Json operationTo(const Operation& op) {
  Json j = {{"name", op.name}, {"reads", op.reads}, {"writes", op.writes}};
  if (op.kind == Operation::Kind::Extern) {
    Json args = Json::array();
    for (const Argument& a : op.call.args) args.push_back(argTo(a));
    j["call"] = {{"op", op.call.op}, {"args", args}, {"results", op.call.results}, {"list", op.call.resultIsList},
                 {"reason", op.call.reason}};
    return j;
  }
  j["outer"] = axesTo(op.kernel.outer);
  j["sections"] = Json::array();
  for (const Section& s : op.kernel.sections) j["sections"].push_back(sectionTo(s));
  return j;
}

Json loweredTo(const LoweredGraph& g) {
  Json buffers = Json::array(), operations = Json::array(), results = Json::array();
  for (const LoweredBuffer& b : g.buffers) {
    std::vector<int64_t> sizes, strides;
    for (const auto& s : b.meta.sizes) sizes.push_back(s.constant());
    for (const auto& s : b.meta.strides) strides.push_back(s.constant());
    buffers.push_back({{"kind", static_cast<int>(b.kind)}, {"index", b.index}, {"base", b.base}, {"sizes", sizes},
                       {"strides", strides}, {"offset", b.meta.storageOffset.constant()},
                       {"dtype", static_cast<int>(b.meta.dtype)}});
  }
  for (const Operation& op : g.operations) operations.push_back(operationTo(op));
  for (const Argument& a : g.results) results.push_back(argTo(a));
  return {{"buffers", buffers}, {"operations", operations}, {"results", results}};
}

Json answer(const Json& request) {
  Graph graph;
  graph.name = "request";
  for (const Json& n : request["nodes"]) {
    std::vector<OutputMeta> outputs;
    for (const Json& o : n.value("outputs", Json::array())) outputs.push_back(outputFrom(o));
    ArgumentList args;
    for (const Json& a : n.value("args", Json::array())) args.push_back(argFrom(a));
    const std::string kind = n["kind"];
    if (kind == "placeholder") graph.addPlaceholder("arg", outputs[0]);
    else if (kind == "constant") graph.addConstant("constant", n["index"], outputs[0]);
    else if (kind == "output") graph.setOutputs(std::move(args));
    else graph.node(graph.addCall(n["op"], std::move(args), std::move(outputs))).outputIsList = n.value("list", false);
  }
  const bool onGpu = request.value("cuda", false);
  if (onGpu)
    for (const Node& node : graph.nodes())
      for (OutputMeta& o : graph.node(node.id).outputs) o.tensor.device = {DeviceKind::Cuda, 0};
  auto optimised = runGraphPasses(std::move(graph), nullptr);
  if (!optimised) return {{"error", optimised.error().text()}};
  LowerOptions options;
  if (onGpu) options.refusal = [](const Device&) { return std::string(); };
  auto lowered = lower(*optimised, options);
  if (!lowered) return {{"error", lowered.error().text()}};
  Json out = loweredTo(*lowered);
  if (request.value("text", false)) out["text"] = optimised->str();
  return out;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << answer(Json::parse(line)).dump() << std::endl;
  }
}
