#include "profiler/importers/graph_inputs.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "profiler/importers/shape_text.h"

namespace fusebox::importing {
namespace {

constexpr size_t kMostSources = 1'000'000;
constexpr int kDeepest = 16;

bool isWord(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// TorchDynamo names an input after its source, with '_' for each run of other characters.
std::string mangled(std::string_view source) {
  std::string out;
  for (const char c : source) {
    if (isWord(c) && c != '_') out += c;
    else if (out.empty() || out.back() != '_') out += '_';
  }
  return out;
}

// What it calls an attribute of its graph's module that holds a tensor: [0] is _0, all other characters are '_'.
std::string attributeName(std::string_view source) {
  if (source.starts_with("L['") || source.starts_with("G['")) source.remove_prefix(3);
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    const size_t end = source[i] == '[' ? source.find_first_not_of("0123456789", i + 1) : source.npos;
    if (end != source.npos && end > i + 1 && source[end] == ']') {
      out.append("_").append(source.substr(i + 1, end - i - 1));
      i = end;
    } else {
      out += isWord(source[i]) ? source[i] : '_';
    }
  }
  return out;
}

// Of sources that are written alike nobody says which is which: they have none.
void noteAlike(std::unordered_map<std::string, std::string>& names, std::string name, const std::string& source) {
  const auto [found, isNew] = names.emplace(std::move(name), source);
  if (!isNew && found->second != source) found->second.clear();
}

std::optional<size_t> number(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "PlainAOTInput(idx=3)" → its field `idx`; a field may be a descriptor itself.
std::string_view field(std::string_view descriptor, std::string_view name) {
  const size_t open = descriptor.find('(');
  if (open == descriptor.npos || !descriptor.ends_with(')')) return {};
  std::string_view rest = descriptor.substr(open + 1, descriptor.size() - open - 2);
  while (!rest.empty()) {
    int depth = 0;
    char quote = 0;
    size_t end = 0;
    for (; end < rest.size() && (rest[end] != ',' || depth > 0 || quote); ++end) {
      if (quote) quote = rest[end] == quote ? 0 : quote;
      else if (rest[end] == '\'' || rest[end] == '"') quote = rest[end];
      else depth += (rest[end] == '(') - (rest[end] == ')');
    }
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.size() <= name.size() || !one.starts_with(name) || one[name.size()] != '=') continue;
    one.remove_prefix(name.size() + 1);
    if (one.size() >= 2 && (one.front() == '\'' || one.front() == '"')) one = one.substr(1, one.size() - 2);
    return one;
  }
  return {};
}

/// Which of the captured graph's inputs primals_4 or arg3_1 is.
std::optional<size_t> positionOf(std::string_view name) {
  constexpr std::string_view kPrimals = "primals_", kArg = "arg";
  if (name.starts_with(kPrimals)) {
    const auto at = number(name.substr(kPrimals.size()));
    return at && *at > 0 ? std::optional(*at - 1) : std::nullopt;
  }
  if (name.starts_with(kArg) && name.ends_with("_1") && name.size() > kArg.size() + 2) return number(name.substr(kArg.size(), name.size() - kArg.size() - 2));
  return std::nullopt;
}

constexpr std::string_view kModules = "._modules['";

/// A call belongs to the one module whose tensors it is given, as they are or after they were turned, cast or the like.
void placeCalls(FxGraph& graph) {
  std::vector<bool> isHeld(graph.nodes.size());  // by a module, or made of nothing but what it holds
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    FxNode& node = graph.nodes[i];
    isHeld[i] = node.kind == "placeholder" && !node.modulePath.empty();
    if (node.kind != "call") continue;
    std::string_view module;
    bool isOne = true, onlyHeld = !node.inputs.empty();
    for (const auto& input : node.inputs) {
      if (!isHeld[input.node]) {
        onlyHeld = false;
        continue;
      }
      const std::string_view its = graph.nodes[input.node].modulePath;
      isOne = isOne && (module.empty() || module == its);
      module = its;
    }
    if (!isOne || module.empty()) continue;
    node.modulePath = module;
    isHeld[i] = onlyHeld;
  }
}

/// Whether PyTorch made up the name of an input. Other compilers' logs may have the program's names throughout.
bool isMadeUp(std::string_view name) {
  return positionOf(name) || name.starts_with("tangents_") || name.starts_with("L_") || name.starts_with("l_");
}

}  // namespace

std::string programName(std::string_view source) {
  const std::string plain = withoutScopes(source);
  std::string out;
  for (size_t at = 0; at < plain.size();) {
    const std::string_view rest = std::string_view(plain).substr(at);
    std::string_view key;
    for (const std::string_view table : {"._modules['", "._parameters['", "._buffers['"}) {
      if (!rest.starts_with(table)) continue;
      const size_t end = rest.find("']", table.size());
      if (end != rest.npos) key = rest.substr(table.size(), end - table.size()), at += end + 2;
      break;
    }
    if (key.empty()) out += plain[at++];
    else out.append(".").append(key);
  }
  return out;
}

std::string moduleOf(std::string_view source, bool withRoot) {
  const size_t first = source.find(kModules);
  if (first == source.npos) return {};
  std::string out = withRoot ? programName(source.substr(0, first)) : std::string();
  for (std::string_view rest = source.substr(first); rest.starts_with(kModules);) {
    const size_t end = rest.find("']", kModules.size());
    if (end == rest.npos) break;
    out.append(out.empty() ? "" : ".").append(rest.substr(kModules.size(), end - kModules.size()));
    rest.remove_prefix(end + 2);
  }
  return out;
}

// A graph may work on modules of several models.
bool GraphInputs::hasSeveralRoots() const {
  std::string_view root;
  for (const std::string_view source : sources_) {
    const size_t first = source.find(kModules);
    if (first == source.npos) continue;
    if (!root.empty() && root != source.substr(0, first)) return true;
    root = source.substr(0, first);
  }
  return false;
}

void GraphInputs::source(int64_t attempt, std::string source) {
  if (attempt != attempt_) {
    attempt_ = attempt;
    sources_.clear();
  }
  if (!source.empty() && sources_.size() < kMostSources) sources_.push_back(std::move(source));
}

// Two inputs that the program calls the same, or as a value inside the graph is called, keep their sources.
int64_t GraphInputs::apply(FxGraph& graph, const std::unordered_map<size_t, Input>& names) const {
  std::unordered_map<std::string, int> wanted;
  for (const auto& node : graph.nodes) ++wanted[node.name];
  for (const auto& [index, one] : names) {
    if (!one.name.empty() && one.name != graph.nodes[index].name) ++wanted[one.name];
  }
  int64_t untold = 0;
  const bool withRoot = hasSeveralRoots();
  for (const auto& [index, one] : names) {
    FxNode& node = graph.nodes[index];
    if (one.name.empty()) {
      untold += !node.shape.empty() && isMadeUp(node.name);
      continue;
    }
    const std::string& name = wanted[one.name] > 1 && !one.source.empty() ? one.source : one.name;
    if (name != node.name) node.shown = name;
    node.args = one.source.empty() ? node.name : node.name + ": " + one.source;
    node.modulePath = moduleOf(one.source, withRoot);
  }
  placeCalls(graph);
  return untold;
}

int64_t GraphInputs::nameCaptured(FxGraph& graph) {
  std::unordered_map<std::string, std::string> byName;
  attributes_.clear();
  for (const auto& source : sources_) {
    for (const std::string& one : {source, source + ".grad"}) noteAlike(byName, mangled(one), one);
    noteAlike(attributes_, attributeName(source), source);
  }
  captured_.clear();
  for (const FxNode& node : graph.nodes) {
    Input& one = captured_[node.name];
    one = {node.name, {}, node.dtype, node.shape};
    if (node.kind != "placeholder") continue;
    const auto found = byName.find(node.args);
    if (found != byName.end() && !found->second.empty()) one.name = programName(found->second), one.source = found->second;
    else if (!node.shape.empty()) one.name.clear();
  }
  return nameHanded(graph);
}

int64_t GraphInputs::nameHanded(FxGraph& graph) {
  std::unordered_map<size_t, Input> names;
  handed_.clear();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const FxNode& node = graph.nodes[i];
    if (node.kind != "placeholder") continue;
    const auto found = captured_.find(node.name);
    handed_.push_back(found == captured_.end() ? Input{} : found->second);
    handed_.back().dtype = node.dtype;
    handed_.back().shape = node.shape;
    names.emplace(i, handed_.back());
  }
  return apply(graph, names);
}

// A descriptor that leads to one of the inputs, or to what the compiler adds.
GraphInputs::Input GraphInputs::named(std::string_view descriptor, int depth) const {
  if (depth > kDeepest) return {};
  const std::string_view kind = descriptor.substr(0, descriptor.find('('));
  if (kind == "PlainAOTInput") {
    const auto at = number(field(descriptor, "idx"));
    return at && *at < handed_.size() ? handed_[*at] : Input{};
  }
  if (kind == "ParamAOTInput" || kind == "BufferAOTInput") {
    const std::string target(field(descriptor, "target"));
    const auto found = attributes_.find(target);
    if (found == attributes_.end() || found->second.empty()) return {target, {}, {}, {}};
    return {programName(found->second), found->second, {}, {}};
  }
  if (kind == "TangentAOTInput") {
    const std::string_view of = field(descriptor, "output");
    const std::string_view result = of.starts_with("PlainAOTOutput(") ? field(of, "idx") : std::string_view();
    return result.empty() ? Input{} : Input{"tangent_" + std::string(result), {}, {}, {}};
  }
  struct Part {
    std::string_view kind, of, before, after;
  };
  static constexpr Part kParts[] = {{"SubclassGetAttrAOTInput", "base", ".", ""},   {"SubclassSizeAOTInput", "base", ".size(", ")"},
                                    {"SubclassStrideAOTInput", "base", ".stride(", ")"}, {"ViewBaseAOTInput", "base_of", "._base", ""},
                                    {"SyntheticBaseAOTInput", "base_of", "._base", ""}};
  for (const auto& part : kParts) {
    if (part.kind != kind) continue;
    const Input of = named(field(descriptor, part.of), depth + 1);
    if (of.name.empty()) return {};
    const std::string_view which = kind == "SubclassGetAttrAOTInput" ? field(descriptor, "attr") : field(descriptor, "idx");
    const std::string words = std::string(part.before) + std::string(which) + std::string(part.after);
    return {of.name + words, of.source.empty() ? std::string() : of.source + words, {}, {}};
  }
  return {};
}

// Whether every input that is one of what was handed has its type and shape.
bool GraphInputs::agree(const FxGraph& graph, bool described) const {
  size_t numbered = 0;
  for (const auto& node : graph.nodes) {
    if (node.kind != "placeholder") continue;
    const bool plain = node.descriptor.starts_with("PlainAOTInput(");
    const auto at = plain ? number(field(node.descriptor, "idx")) : described ? std::nullopt : positionOf(node.name);
    if (!at) continue;
    ++numbered;
    if (*at >= handed_.size() || handed_[*at].dtype != node.dtype || handed_[*at].shape != node.shape) return false;
  }
  return described || numbered == handed_.size();
}

int64_t GraphInputs::nameLater(FxGraph& graph) const {
  const bool described = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const FxNode& node) { return !node.descriptor.empty(); });
  const bool known = agree(graph, described);
  std::unordered_map<size_t, Input> names;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const FxNode& node = graph.nodes[i];
    if (node.kind != "placeholder") continue;
    const auto at = described ? std::nullopt : positionOf(node.name);
    if (node.descriptor.empty() && !at) continue;  // a value of the forward graph, under its own name there
    Input one = !known ? Input{} : at ? handed_[*at] : named(node.descriptor, 0);
    // What the compiler adds (seeds, tokens) has no other name.
    if (one.name.empty() && !at && node.descriptor.find("PlainAOTInput(") == std::string::npos) continue;
    names.emplace(i, std::move(one));
  }
  return apply(graph, names);
}

bool GraphInputs::sameInputs(const FxGraph& graph, const FxGraph& earlier, bool all) {
  std::unordered_map<std::string_view, const FxNode*> byName;
  for (const auto& node : earlier.nodes) {
    if (node.kind == "placeholder") byName.emplace(node.name, &node);
  }
  size_t inputs = 0;
  for (const auto& node : graph.nodes) {
    if (node.kind != "placeholder") continue;
    const auto found = byName.find(node.name);
    if (found == byName.end() || found->second->dtype != node.dtype || found->second->shape != node.shape) return false;
    ++inputs;
  }
  return !all || inputs == byName.size();
}

int64_t GraphInputs::nameLike(FxGraph& graph, const FxGraph& earlier) {
  std::unordered_map<std::string_view, const FxNode*> byName;
  for (const auto& node : earlier.nodes) {
    if (node.kind == "placeholder") byName.emplace(node.name, &node);
  }
  int64_t untold = 0;
  for (auto& node : graph.nodes) {
    if (node.kind != "placeholder") continue;
    const auto found = byName.find(node.name);
    if (found != byName.end()) node.shown = found->second->shown, node.args = found->second->args, node.modulePath = found->second->modulePath;
    untold += node.shown.empty() && !node.shape.empty() && positionOf(node.name).has_value();
  }
  placeCalls(graph);
  return untold;
}

}  // namespace fusebox::importing
