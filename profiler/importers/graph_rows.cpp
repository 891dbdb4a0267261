#include "profiler/importers/graph_rows.h"

#include "engine/support/bounded_json.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

namespace fusebox::importing {
namespace {

constexpr size_t kMostMembers = 2'000'000, kMostNamedInputs = 8;
constexpr const char* kNodesUntold = "the log does not say which nodes it computes; with INDUCTOR_PROVENANCE=1 in its environment, PyTorch does";

void putNode(SessionBuilder& session, const StoredGraph& stored, size_t position, bool backward, const std::unordered_map<std::string, std::string>& names) {
  const FxNode& node = stored.graph.nodes[position];
  const std::string args = names.empty() || node.kind == "placeholder" ? node.args : withNames(node.args, names);
  session.put(rows::Node{.id = stored.nodeIds[position], .graph_id = stored.id, .position = static_cast<int64_t>(position), .name = node.shown.empty() ? node.name : node.shown,
      .kind = node.kind, .op = text(node.op), .args = text(args), .dtype = text(node.dtype), .shape = text(node.shape),
      .stride = text(node.stride), .device = text(node.device), .outputs = text(node.outputs),
      .bytes = node.bytes >= 0 ? Cell{node.bytes} : Cell{}, .is_backward = int64_t{backward}, .module_path = text(node.modulePath),
      .file = text(node.file), .line = node.line > 0 ? Cell{node.line} : Cell{}, .function = text(node.function), .stack = text(node.stack)});
}

void putRows(SessionBuilder& session, StoredGraph& stored, int64_t compile, std::string_view printed, int64_t timeNs,
             int64_t parent) {
  const auto& nodes = stored.graph.nodes;
  const auto count = [&](std::string_view kind) {
    return static_cast<int64_t>(
        std::count_if(nodes.begin(), nodes.end(), [&](const FxNode& n) { return n.kind == kind; }));
  };
  stored.id = session.newId(RowKind::Graph);
  std::unordered_map<std::string, std::string> names;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].shown.empty()) names.emplace(nodes[i].name, nodes[i].shown);
    stored.nodeIds.push_back(session.newId(RowKind::Node));
    stored.byName.emplace(nodes[i].name, i);
  }
  const int64_t outputs =
      nodes.empty() || nodes.back().kind != "output" ? 0 : static_cast<int64_t>(nodes.back().inputs.size());
  session.put(rows::Graph{.id = stored.id, .compile_id = idOrNull(compile), .stage = stored.stage, .direction = stored.direction,
      .name = text(stored.graph.name), .parent_id = idOrNull(parent), .node_count = static_cast<int64_t>(nodes.size()),
      .edge_count = stored.graph.edges(), .input_count = count("placeholder"), .output_count = outputs, .text = text(printed), .time_ns = timeNs});
  for (size_t i = 0; i < nodes.size(); ++i) {
    putNode(session, stored, i, stored.direction == "backward", names);
    for (const auto& input : nodes[i].inputs) {
      session.put(rows::Edge{.graph_id = stored.id, .src = stored.nodeIds[input.node], .dst = stored.nodeIds[i], .output = input.output,
          .arg = input.argument});
    }
    session.sourceLine(nodes[i].file, nodes[i].line, nodes[i].code);
  }
}

std::string baseName(std::string_view op) {
  if (const size_t colons = op.rfind("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return std::string(op.substr(0, op.find('.')));
}

// extern_kernels.mm, aten.randint.low_out, torch.ops.aten.convolution.default → mm, randint, convolution
std::string libraryOperator(std::string_view callee) {
  for (const std::string_view prefix : {"extern_kernels.", "torch.ops.", "aten."}) {
    if (!callee.starts_with(prefix)) continue;
    callee.remove_prefix(prefix.size());
    if (prefix == "torch.ops.") callee.remove_prefix(std::min(callee.size(), callee.find('.') + 1));
    break;
  }
  return std::string(callee.substr(0, callee.find('.')));
}

/// Groups of one compile's post-fusion graph.
class FusionRows {
 public:
  FusionRows(SessionBuilder& session, int64_t compile, const OutputCode& code, const NodeMappings& mappings,
             int64_t timeNs)
      : session_(session), compile_(compile), code_(code), mappings_(mappings), timeNs_(timeNs) {}
  void kernels(const std::unordered_map<std::string, int64_t>& compileNs);
  void graph(const StoredGraph& postGrad);
  void groups();

 private:
  std::vector<size_t> membersOf(const OutputCode::Call& call, std::string& how);
  bool isMapped(const OutputCode::Call& call) const { return mappings_.codeToPost.contains(call.name + ":" + std::to_string(call.handle)); }
  std::string inputsOf(const OutputCode::Call& call) const;
  void put(const OutputCode::Call& call, const std::vector<size_t>& members, const std::string& how);
  struct Traffic {
    int64_t read = 0, written = 0;
    bool isKnown = true;
    std::set<size_t> results;
  };
  Traffic traffic(const std::vector<size_t>& members) const;

  SessionBuilder& session_;
  const int64_t compile_;
  const OutputCode& code_;
  const NodeMappings& mappings_;
  const int64_t timeNs_;
  std::vector<int64_t> kernelIds_;
  StoredGraph fused_;
  std::vector<std::vector<size_t>> users_;
  std::set<size_t> taken_;
  std::unordered_map<std::string, std::deque<size_t>> byOperator_;
  size_t members_ = 0;
  int64_t position_ = 0;
};

void FusionRows::kernels(const std::unordered_map<std::string, int64_t>& compileNs) {
  std::vector<bool> isKnown;
  for (const auto& kernel : code_.kernels) isKnown.push_back(!kernel.nodes.empty());
  for (const auto& call : code_.calls) {
    if (call.kernel >= 0 && (!call.nodes.empty() || isMapped(call))) isKnown[static_cast<size_t>(call.kernel)] = true;
  }
  for (size_t i = 0; i < code_.kernels.size(); ++i) {
    const auto& kernel = code_.kernels[i];
    const int64_t id = session_.newId(RowKind::Kernel);
    kernelIds_.push_back(id);
    session_.put(rows::Kernel{.id = id, .compile_id = idOrNull(compile_), .graph_id = idOrNull(fused_.id), .name = kernel.name,
        .kind = std::string("generated"), .device = text(kernel.device), .loop_ir = kernel.source, .reason = text(isKnown[i] ? "" : kNodesUntold), .flops = int64_t{0}, .time_ns = timeNs_});
    const auto ns = compileNs.find(kernel.name);
    session_.put(rows::KernelCode{.kernel_id = id, .tier = int64_t{0}, .target = kernel.language,
        .compile_ns = ns == compileNs.end() ? Cell{} : Cell{ns->second}, .time_ns = timeNs_});
    if (!kernel.path.empty() && !kernel.source.empty()) session_.sourceText(kernel.path, kernel.source);
  }
}

void FusionRows::graph(const StoredGraph& postGrad) {
  fused_.stage = "post_fusion";
  fused_.direction = postGrad.direction;
  fused_.graph = postGrad.graph;
  putRows(session_, fused_, compile_, {}, timeNs_, postGrad.id);
  users_.resize(fused_.graph.nodes.size());
  for (size_t i = 0; i < fused_.graph.nodes.size(); ++i) {
    session_.put(rows::NodeOrigin{.node_id = fused_.nodeIds[i], .origin_id = postGrad.nodeIds[i]});
    for (const auto& input : fused_.graph.nodes[i].inputs) users_[input.node].push_back(i);
    if (fused_.graph.nodes[i].kind == "call") byOperator_[baseName(fused_.graph.nodes[i].op)].push_back(i);
  }
}

std::vector<size_t> FusionRows::membersOf(const OutputCode::Call& call, std::string& how) {
  std::vector<size_t> members;
  const auto add = [&](const std::vector<std::string>& names) {
    members_ += names.size();
    for (const auto& name : names) {
      const auto found = fused_.byName.find(name);
      if (found != fused_.byName.end() && fused_.graph.nodes[found->second].kind == "call")
        members.push_back(found->second);
    }
  };
  if (isMapped(call)) add(mappings_.codeToPost.at(call.name + ":" + std::to_string(call.handle)));
  if (members.empty()) add(call.nodes);
  if (members.empty() && call.kernel >= 0) add(code_.kernels[static_cast<size_t>(call.kernel)].nodes);
  if (members.empty() && call.kernel < 0) {
    const std::string wanted = libraryOperator(call.name);
    auto& waiting = byOperator_[wanted];
    while (!waiting.empty() && taken_.contains(waiting.front())) waiting.pop_front();
    if (!waiting.empty()) {
      members.push_back(waiting.front());
      how = "its node is the next " + wanted + " in order of execution";
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  taken_.insert(members.begin(), members.end());
  return members;
}

// The graph's inputs that a call is given: they tell apart what bears one name.
std::string FusionRows::inputsOf(const OutputCode::Call& call) const {
  std::vector<std::string> names;
  for (const auto& word : valuesIn(call.arguments)) {
    const auto found = fused_.byName.find(word);
    if (found == fused_.byName.end() || fused_.graph.nodes[found->second].kind != "placeholder") continue;
    const auto& node = fused_.graph.nodes[found->second];
    const std::string& name = node.shown.empty() ? node.name : node.shown;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string out;
  for (size_t i = 0; i < names.size() && i < kMostNamedInputs; ++i) out += (i ? ", " : "it is given ") + names[i];
  if (names.size() > kMostNamedInputs) out += " and " + std::to_string(names.size() - kMostNamedInputs) + " more";
  return out;
}

FusionRows::Traffic FusionRows::traffic(const std::vector<size_t>& members) const {
  Traffic out;
  const std::set<size_t> inside(members.begin(), members.end());
  std::set<size_t> inputs;
  for (const size_t member : members) {
    for (const auto& input : fused_.graph.nodes[member].inputs) {
      if (!inside.contains(input.node)) inputs.insert(input.node);
    }
    const auto& users = users_[member];
    if (users.empty() || std::any_of(users.begin(), users.end(), [&](size_t user) { return !inside.contains(user); })) {
      out.results.insert(member);
    }
  }
  const auto add = [&](int64_t& sum, const FxNode& node) {
    sum += std::max<int64_t>(0, node.bytes);
    out.isKnown &= node.bytes >= 0 || node.shape.empty();  // a number is none; a tensor of symbolic sizes may have any
  };
  for (const size_t input : inputs) add(out.read, fused_.graph.nodes[input]);
  for (const size_t result : out.results) add(out.written, fused_.graph.nodes[result]);
  return out;
}

void FusionRows::put(const OutputCode::Call& call, const std::vector<size_t>& members, const std::string& how) {
  const int64_t group = session_.newId(RowKind::FusionGroup);
  const Traffic bytes = traffic(members);
  const std::string inputs = inputsOf(call), library = "Inductor calls a library for it";
  const auto joined = [](const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + "; " + b; };
  const auto known = [&](int64_t count) { return members.empty() || !bytes.isKnown ? Cell{} : Cell{count}; };
  int64_t kernel = call.kernel >= 0 ? kernelIds_[static_cast<size_t>(call.kernel)] : 0;
  if (kernel == 0) {
    kernel = session_.newId(RowKind::Kernel);
    const std::string op = members.empty() ? libraryOperator(call.name) : fused_.graph.nodes[members.front()].op;
    session_.put(rows::Kernel{.id = kernel, .compile_id = idOrNull(compile_), .graph_id = idOrNull(fused_.id), .group_id = group,
        .name = call.name, .kind = std::string("extern"), .op = op, .reason = joined(library, inputs),
        .read_bytes = known(bytes.read), .write_bytes = known(bytes.written), .flops = int64_t{0}, .time_ns = timeNs_});
  }
  const std::string kind = call.kernel >= 0 ? code_.kernels[static_cast<size_t>(call.kernel)].kind : "extern";
  session_.put(rows::FusionGroup{.id = group, .compile_id = idOrNull(compile_), .graph_id = idOrNull(fused_.id), .position = position_++,
      .name = call.name, .kind = kind, .kernel_id = kernel, .read_bytes = known(bytes.read), .write_bytes = known(bytes.written),
      .reason = text(joined(members.empty() && call.kernel >= 0 ? kNodesUntold : how, inputs))});
  int64_t position = 0;
  for (const size_t member : members) {
    session_.put(rows::FusionMember{.group_id = group, .node_id = fused_.nodeIds[member], .position = position++,
        .role = std::string(bytes.results.contains(member) ? "result" : "inner")});
    session_.put(rows::KernelPlace{.id = kernel, .node_id = fused_.nodeIds[member]});
  }
  session_.put(rows::FusionGroupPlace{.id = group});
}

void FusionRows::groups() {
  for (const auto& call : code_.calls) {
    if (members_ > kMostMembers) {
      session_.loss("fusion_groups", 1, "calls of generated code beyond two million nodes in their kernels");
      continue;
    }
    std::string how;
    const auto members = membersOf(call, how);
    ++members_;
    put(call, members, how);
  }
}

}  // namespace

std::string directionOf(const FxGraph& graph) {
  bool primals = false;
  for (const auto& node : graph.nodes) {
    if (node.kind != "placeholder") continue;
    if (node.name.starts_with("tangents")) return "backward";
    primals = primals || node.name.starts_with("primals");
  }
  return primals ? "forward" : "inference";
}

FxGraph readGraph(SessionBuilder& session, std::string_view printed) {
  FxGraph graph = parseFxText(printed);
  session.loss("graph_statements", graph.unread, "statements of printed graphs that were not understood; the text is kept");
  session.loss("nested_graphs", graph.nested, "graphs inside graphs (bodies of higher-order operators) are kept as text only");
  return graph;
}

StoredGraph storeGraph(SessionBuilder& session, int64_t compile, const std::string& stage, std::string direction, FxGraph graph,
                       std::string_view text, int64_t timeNs, int64_t parent) {
  StoredGraph stored;
  stored.stage = stage;
  stored.direction = direction.empty() ? directionOf(graph) : std::move(direction);
  stored.graph = std::move(graph);
  putRows(session, stored, compile, text, timeNs, parent);
  return stored;
}

void linkByName(SessionBuilder& session, const StoredGraph& later, const StoredGraph& earlier) {
  for (size_t i = 0; i < later.graph.nodes.size(); ++i) {
    const auto& node = later.graph.nodes[i];
    const auto found = earlier.byName.find(node.name);
    if (found == earlier.byName.end()) continue;
    const auto& other = earlier.graph.nodes[found->second];
    if (other.op == node.op && other.kind == node.kind) {
      session.put(rows::NodeOrigin{.node_id = later.nodeIds[i], .origin_id = earlier.nodeIds[found->second]});
    }
  }
}

bool parseNodeMappings(std::string_view json, NodeMappings& into) {
  const auto all = parseBounded(json);
  if (!all.is_object()) return false;
  using Names = std::unordered_map<std::string, std::vector<std::string>>;
  const auto read = [&](const char* key, Names& map) {
    const auto found = all.find(key);
    if (found == all.end() || !found->is_object()) return;
    for (const auto& [name, list] : found->items()) {
      if (!list.is_array()) continue;
      for (const auto& one : list) {
        if (one.is_string()) map[name].push_back(one.get<std::string>());
      }
    }
  };
  read("postToPre", into.postToPre);
  read("cppCodeToPost", into.codeToPost);
  return true;
}

void linkByMappings(SessionBuilder& session, const StoredGraph& postGrad, const StoredGraph& captured,
                    const NodeMappings& mappings) {
  for (const auto& [post, pres] : mappings.postToPre) {
    const auto later = postGrad.byName.find(post);
    if (later == postGrad.byName.end()) continue;
    for (const auto& pre : pres) {
      const auto earlier = captured.byName.find(pre);
      if (earlier == captured.byName.end()) continue;
      session.put(rows::NodeOrigin{.node_id = postGrad.nodeIds[later->second], .origin_id = captured.nodeIds[earlier->second]});
    }
  }
}

void storeFusion(SessionBuilder& session, int64_t compile, const OutputCode& code, const StoredGraph* postGrad,
                 const NodeMappings& mappings, const std::unordered_map<std::string, int64_t>& compileNs,
                 int64_t timeNs) {
  FusionRows rows(session, compile, code, mappings, timeNs);
  if (postGrad) rows.graph(*postGrad);
  rows.kernels(compileNs);
  rows.groups();
}

}  // namespace fusebox::importing
