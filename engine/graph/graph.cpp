#include "engine/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusebox::graph {

std::string shortName(std::string_view op) {
  if (auto colons = op.rfind("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
  op = op.substr(0, op.find('.'));
  std::string out(op);
  for (char& c : out) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  }
  return out.empty() ? "node" : out;
}

namespace {

/// Whether a name was made of another by a suffix. Such names are not written down: all up to a name's last suffix are taken.
bool isMade(const std::string& name, const std::unordered_map<std::string, int32_t>& lastSuffixes) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits < 2 || digits == name.size() || name[digits - 1] != '_' || name[digits] == '0' || name.size() - digits > 9) return false;
  const auto of = lastSuffixes.find(name.substr(0, digits - 1));
  return of != lastSuffixes.end() && std::stoi(name.substr(digits)) <= of->second;
}

}  // namespace

std::string Graph::uniqueName(const std::string& base) {
  auto [it, fresh] = names_.try_emplace(base, 0);
  if (fresh && !isMade(base, names_)) return base;
  std::string candidate;
  do {
    candidate = base + "_" + std::to_string(++it->second);
  } while (names_.count(candidate));
  return candidate;
}

NodeId Graph::append(Node node, const std::string& baseName) {
  node.id = static_cast<NodeId>(nodes_.size());
  node.name = uniqueName(baseName);
  nodes_.push_back(std::move(node));
  return nodes_.back().id;
}

NodeId Graph::addPlaceholder(std::string name, OutputMeta meta, Provenance origin) {
  Node node;
  node.kind = NodeKind::Placeholder;
  const auto last = std::find_if(nodes_.rbegin(), nodes_.rend(), [](const Node& n) { return n.kind == NodeKind::Placeholder; });
  node.index = last == nodes_.rend() ? 0 : last->index + 1;
  node.outputs.push_back(std::move(meta));
  node.origin = std::move(origin);
  return append(std::move(node), name);
}

NodeId Graph::addConstant(std::string name, int32_t index, OutputMeta meta) {
  Node node;
  node.kind = NodeKind::Constant;
  node.index = index;
  node.outputs.push_back(std::move(meta));
  return append(std::move(node), name);
}

NodeId Graph::addCall(std::string op, ArgumentList args, std::vector<OutputMeta> outputs, Provenance origin) {
  Node node;
  std::string base = shortName(op);
  node.op = std::move(op);
  node.args = std::move(args);
  node.outputs = std::move(outputs);
  node.origin = std::move(origin);
  return append(std::move(node), base);
}

NodeId Graph::setOutputs(ArgumentList results) {
  if (!nodes_.empty() && nodes_.back().kind == NodeKind::Output) {
    nodes_.back().args = std::move(results);
    return nodes_.back().id;
  }
  Node node;
  node.kind = NodeKind::Output;
  node.args = std::move(results);
  return append(std::move(node), "output");
}

std::vector<NodeId> Graph::placeholders() const {
  std::vector<NodeId> out;
  for (const Node& n : nodes_) {
    if (n.kind == NodeKind::Placeholder) out.push_back(n.id);
  }
  return out;
}

const Node* Graph::output() const {
  return nodes_.empty() || nodes_.back().kind != NodeKind::Output ? nullptr : &nodes_.back();
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> out(nodes_.size());
  for (const Node& n : nodes_) {
    forEachValue(n.args, [&](ValueRef v) {
      auto& list = out[static_cast<size_t>(v.node)];
      if (list.empty() || list.back() != n.id) list.push_back(n.id);
    });
  }
  return out;
}

namespace {

std::string badReference(const Graph& graph, const Node& n) {
  std::string problem;
  Graph::forEachValue(n.args, [&](ValueRef v) {
    if (v.node < 0 || v.node >= n.id) {
      problem = fmt::format("refers to node {}, which is not an earlier one", v.node);
    } else if (v.output < 0 || static_cast<size_t>(v.output) >= graph.node(v.node).outputs.size()) {
      problem = fmt::format("refers to output {} of ", v.output) + graph.node(v.node).name + ", which has " +
                std::to_string(graph.node(v.node).outputs.size());
    }
  });
  return problem;
}

std::string badShape(const Node& n) {
  for (const OutputMeta& o : n.outputs) {
    if (o.kind == OutputMeta::Kind::Tensor && o.tensor.sizes.size() != o.tensor.strides.size()) {
      return "has as many as " + std::to_string(o.tensor.sizes.size()) + " sizes but " +
             std::to_string(o.tensor.strides.size()) + " strides";
    }
  }
  return {};
}

}  // namespace

Result<void> Graph::verify() const {
  std::vector<std::pair<size_t, const std::string*>> names;  // sorted by hash: a set would allocate for every node
  names.reserve(nodes_.size());
  int32_t inputs = 0;
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Node& n = nodes_[i];
    auto bad = [&](const std::string& what) {
      return fail(ErrorCode::Internal, "graph node " + n.name + " " + what, name);
    };
    if (n.id != static_cast<NodeId>(i)) return bad("has an id that is not its position");
    names.emplace_back(std::hash<std::string>()(n.name), &n.name);
    if (n.kind == NodeKind::Output && i + 1 != nodes_.size()) return bad("is an output but not the last node");
    if (n.kind == NodeKind::Placeholder && n.index != inputs++) return bad("is an input out of order");
    if ((n.kind == NodeKind::Placeholder || n.kind == NodeKind::Constant) && n.outputs.size() != 1) {
      return bad("must have exactly one output");
    }
    if ((n.kind == NodeKind::Call) == n.op.empty()) return bad("has an operator name where none belongs, or lacks one");
    if (auto problem = badReference(*this, n); !problem.empty()) return bad(problem);
    if (auto problem = badShape(n); !problem.empty()) return bad(problem);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : *a.second < *b.second; });
  const auto twice = std::adjacent_find(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first == b.first && *a.second == *b.second; });
  if (twice != names.end()) return fail(ErrorCode::Internal, "graph node " + *twice->second + " shares its name with another node", name);
  if (!output()) return fail(ErrorCode::Internal, "graph has no output node", name);
  return {};
}

std::string Graph::str() const {
  auto metaText = [](const OutputMeta& o) {
    if (o.kind == OutputMeta::Kind::Tensor) return o.tensor.str();
    return o.kind == OutputMeta::Kind::SymInt ? "int " + o.scalar.str() : std::string("None");
  };
  std::function<std::string(const Argument&)> argText = [&](const Argument& a) -> std::string {
    if (const auto* v = a.as<ValueRef>()) {
      return "%" + node(v->node).name + (v->output ? fmt::format("#{}", v->output) : "");
    }
    const auto* list = a.as<ArgumentList>();
    if (!list) return a.str();
    std::string out = "[";
    for (size_t i = 0; i < list->size(); i++) out += (i ? ", " : "") + argText((*list)[i]);
    return out + "]";
  };
  std::string out = "graph " + name + ":\n";
  for (const Node& n : nodes_) {
    std::string args;
    for (size_t i = 0; i < n.args.size(); i++) args += (i ? ", " : "") + argText(n.args[i]);
    if (n.kind == NodeKind::Output) {
      out += "  return (" + args + ")\n";
      continue;
    }
    out += "  %" + n.name + " : ";
    for (size_t i = 0; i < n.outputs.size(); i++) out += (i ? ", " : "") + metaText(n.outputs[i]);
    if (n.kind == NodeKind::Placeholder) out += fmt::format(" = input {}\n", n.index);
    else if (n.kind == NodeKind::Constant) out += fmt::format(" = constant {}\n", n.index);
    else out += " = " + n.op + "(" + args + ")\n";
  }
  return out;
}

std::vector<Symbol> symbolsOf(const Graph& graph) {
  std::vector<Symbol> symbols;
  const auto add = [&](const SymExpr& expression) {
    for (const Symbol s : expression.symbols())
      if (std::find(symbols.begin(), symbols.end(), s) == symbols.end()) symbols.push_back(s);
  };
  std::function<void(const ArgumentList&)> addArguments = [&](const ArgumentList& arguments) {
    for (const Argument& argument : arguments) {
      if (const auto* expression = argument.as<SymExpr>()) add(*expression);
      if (const auto* list = argument.as<ArgumentList>()) addArguments(*list);
    }
  };
  for (const Node& node : graph.nodes()) {
    addArguments(node.args);
    for (const OutputMeta& meta : node.outputs) {
      add(meta.scalar);
      for (const auto& size : meta.tensor.sizes) add(size);
      for (const auto& stride : meta.tensor.strides) add(stride);
      add(meta.tensor.storageOffset);
    }
  }
  return symbols;
}

Graph withoutDeadNodes(const Graph& graph, const std::function<bool(const Node&)>& keep) {
  const auto& nodes = graph.nodes();
  std::vector<bool> live(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& n = nodes[i];
    if (n.kind == NodeKind::Placeholder || n.kind == NodeKind::Output || (n.kind == NodeKind::Call && keep(n))) {
      live[i] = true;
    }
    if (live[i]) Graph::forEachValue(n.args, [&](ValueRef v) { live[static_cast<size_t>(v.node)] = true; });
  }
  Graph out;
  out.name = graph.name;
  std::vector<NodeId> moved(nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); i++) {
    if (!live[i]) continue;
    const Node& n = nodes[i];
    ArgumentList args = n.args;
    Graph::mapValues(args, [&](ValueRef v) { return ValueRef{moved[static_cast<size_t>(v.node)], v.output}; });
    NodeId id = -1;
    switch (n.kind) {
      case NodeKind::Placeholder: id = out.addPlaceholder(n.name, n.outputs[0], n.origin); break;
      case NodeKind::Constant: id = out.addConstant(n.name, n.index, n.outputs[0]); break;
      case NodeKind::Call: id = out.addCall(n.op, std::move(args), n.outputs, n.origin); break;
      case NodeKind::Output: id = out.setOutputs(std::move(args)); break;
    }
    Node& copy = out.node(id);
    copy.isBackward = n.isBackward;
    copy.noGrad = n.noGrad;
    copy.outputIsList = n.outputIsList;
    if (n.kind == NodeKind::Constant || n.kind == NodeKind::Output) copy.origin = n.origin;
    moved[i] = id;
  }
  return out;
}

}  // namespace fusebox::graph
