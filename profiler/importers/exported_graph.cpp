#include "profiler/importers/exported_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "profiler/importers/json_pieces.h"
#include "profiler/importers/trace_json.h"

namespace fusebox::importing {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 12;  ///< of lists in arguments, and of graphs in graphs
constexpr size_t kMostNodes = 2'000'000;
constexpr size_t kMostTextBytes = 4000;

/// By the schema's ScalarType; the short form is that of annotations.
std::string shortType(int64_t number) {
  static constexpr std::array kTypes = {"",    "u8",  "i8",  "i16", "i32",  "i64", "f16",
                                        "f32", "f64", "c32", "c64", "c128", "b8",  "bf16"};
  static constexpr std::pair<int64_t, const char*> kLate[] = {
      {28, "u16"}, {29, "f8e4m3fn"}, {30, "f8e5m2"}, {31, "f8e4m3fnuz"}, {32, "f8e5m2fnuz"}};
  if (number > 0 && number < static_cast<int64_t>(kTypes.size())) return kTypes[static_cast<size_t>(number)];
  for (const auto& [late, name] : kLate)
    if (late == number) return name;
  return fmt::format("dtype{}", number);
}

/// "Symbol('s23', positive=True, integer=True)" is s23; the rest of sympy's form stays as it is.
std::string expressionText(std::string text) {
  static constexpr std::string_view kOpen = "Symbol('";
  for (size_t at; (at = text.find(kOpen)) != std::string::npos;) {
    const size_t quote = text.find('\'', at + kOpen.size()), close = text.find(')', at);
    if (quote == std::string::npos || close == std::string::npos || quote > close) break;
    text = text.substr(0, at) + text.substr(at + kOpen.size(), quote - at - kOpen.size()) + text.substr(close + 1);
  }
  return text.substr(0, 200);
}

/// The first member of an object that has one. (What items() gives of one that is gone by the next statement would dangle.)
std::pair<const std::string&, const Json&> firstOf(const Json& object) {
  const auto first = object.begin();
  return {first.key(), first.value()};
}

std::string sizeText(const Json& size) {
  if (!size.is_object() || size.empty()) return "?";
  const auto [key, value] = firstOf(size);
  if (key == "as_int" && value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (key == "as_expr" && value.is_object()) return expressionText(stringOf(value, "expr_str"));
  return "?";
}

std::string sizesText(const Json* sizes) {
  std::string out = "[";
  if (sizes && sizes->is_array())
    for (const Json& size : *sizes) out += (out.size() > 1 ? ", " : "") + sizeText(size);
  return out + "]";
}

/// "f32[2, 3][3, 1]cpu" of a TensorMeta.
std::string annotationOf(const Json& meta) {
  if (!meta.is_object()) return {};
  std::string device;
  if (const Json* d = member(meta, "device"); d && d->is_object()) {
    device = stringOf(*d, "type");
    if (const Json* index = member(*d, "index"); index && index->is_number_integer())
      device += ":" + std::to_string(index->get<int64_t>());
  }
  return shortType(integerOf(meta, "dtype")) + sizesText(member(meta, "sizes")) + sizesText(member(meta, "strides")) +
         device;
}

/// "torch.ops.aten.add.Tensor" is aten::add.Tensor, "…add.default" aten::add; others stay.
std::string operatorOf(std::string target) {
  static constexpr std::string_view kPrefix = "torch.ops.";
  if (!target.starts_with(kPrefix)) return target;
  target.erase(0, kPrefix.size());
  if (const size_t dot = target.find('.'); dot != std::string::npos) target.replace(dot, 1, "::");
  if (target.ends_with(".default")) target.resize(target.size() - 8);
  return target;
}

struct Frame {
  std::string file, function, code;
  int64_t line = 0;
};

/// Python's form: `File "a.py", line 7, in f` and the line itself below it, innermost last.
std::vector<Frame> framesOf(std::string_view trace) {
  std::vector<Frame> frames;
  while (!trace.empty() && frames.size() < 200) {
    const size_t end = trace.find('\n');
    std::string_view line = trace.substr(0, end);
    trace = end == std::string_view::npos ? std::string_view() : trace.substr(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t close = line.find("\", line ");
    if (!line.starts_with("File \"") || close == std::string_view::npos) {
      if (!frames.empty() && frames.back().code.empty()) frames.back().code = line;
      continue;
    }
    Frame frame;
    frame.file = line.substr(6, close - 6);
    const std::string_view rest = line.substr(close + 8);
    std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
    if (const size_t in = rest.find(", in "); in != std::string_view::npos) frame.function = rest.substr(in + 5);
    frames.push_back(std::move(frame));
  }
  return frames;
}

void placeNode(FxNode& node, const std::string& trace) {
  const std::vector<Frame> frames = framesOf(trace);
  if (frames.empty()) return;
  const auto own = std::find_if(frames.rbegin(), frames.rend(), [](const Frame& f) {
    return f.file.find("/site-packages/torch/") == std::string::npos;
  });
  const Frame& place = own == frames.rend() ? frames.back() : *own;
  node.file = place.file;
  node.line = place.line;
  node.function = place.function;
  node.code = place.code;
  Json stack = Json::array();
  for (const Frame& frame : frames)
    stack.push_back({{"file", frame.file}, {"line", frame.line}, {"function", frame.function}});
  node.stack = stack.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// "L__self__,,M;L__self__emb,emb,torch.nn.modules.sparse.Embedding" is emb: the path of the innermost module.
std::string modulePathOf(const std::string& stack) {
  const std::string last = stack.substr(stack.rfind(';') + 1);
  const size_t first = last.find(','), second = last.find(',', first + 1);
  return first == std::string::npos || second == std::string::npos ? std::string()
                                                                   : last.substr(first + 1, second - first - 1);
}

class GraphReader {
 public:
  GraphReader(ExportedGraphs& out, int depth) : out_(out), depth_(depth) {}

  FxGraph read(std::string_view graph, const std::string& name, std::string_view signature) {
    graph_.name = name;
    bool complete = false;
    const auto parts = jsonMembers(graph, complete);
    if (!complete) fault(JsonFault::Damaged);
    const auto part = [&](std::string_view key) {
      const auto found = parts.find(key);
      return found == parts.end() ? std::string_view() : found->second;
    };
    pieces(part("tensor_values"), [&](std::string_view value, const Json& meta) { annotations_.emplace(value, annotationOf(meta)); });
    pieces(part("sym_int_values"), [&](std::string_view value, const Json&) { numbers_.emplace(value); });
    readRoles(signature);
    pieces(part("inputs"), [&](std::string_view, const Json& input) { placeholder(input); });
    pieces(part("nodes"), [&](std::string_view, const Json& node) {
      if (graph_.nodes.size() < kMostNodes) call(node);
    });
    output(part("outputs"));
    return std::move(graph_);
  }

 private:
  void fault(JsonFault found) {
    if (out_.fault == JsonFault::None) out_.fault = found;
  }

  /// Each member or element of a text, read by itself.
  template <class Take>
  void pieces(std::string_view text, Take&& take) {
    JsonPieces piece(text);
    while (piece.next()) {
      JsonFault found = JsonFault::None;
      const Json value = parseBounded(piece.value(), &found);
      if (found != JsonFault::None) fault(found);
      take(piece.key(), value);
    }
  }

  static const Json& listOf(const Json& object, const char* key) {
    static const Json kNone = Json::array();
    const Json* found = object.is_object() ? member(object, key) : nullptr;
    return found && found->is_array() ? *found : kNone;
  }

  /// What inputs are: parameters and buffers by their names in the module.
  void readRoles(std::string_view signature) {
    bool complete = false;
    const auto parts = jsonMembers(signature, complete);
    const auto specs = parts.find("input_specs");
    if (specs == parts.end()) return;
    pieces(specs->second, [&](std::string_view, const Json& spec) {
      if (!spec.is_object() || spec.empty()) return;
      const auto [kind, facts] = firstOf(spec);
      if (!facts.is_object()) return;
      const Json* arg = member(facts, "arg");
      const std::string name = arg && arg->is_object() ? stringOf(*arg, "name") : std::string();
      for (const char* key : {"parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name"})
        if (const std::string role = stringOf(facts, key); !name.empty() && !role.empty()) roles_[name] = {kind, role};
    });
  }

  std::string annotationFor(const std::string& name) const {
    const auto found = annotations_.find(name);
    return found == annotations_.end() ? std::string() : found->second;
  }

  size_t add(const std::string& name, const char* kind) {
    FxNode node;
    node.name = name;
    for (int i = 1; known_.contains(node.name); ++i) node.name = fmt::format("{}_{}", name, i);
    node.kind = kind;
    known_.emplace(node.name, graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  void placeholder(const Json& input) {
    const std::string name = valueName(input);
    if (name.empty()) {
      ++out_.damaged;
      return;
    }
    const size_t index = add(name, "placeholder");
    FxNode& node = graph_.nodes[index];
    if (const std::string annotation = annotationFor(name); !annotation.empty()) parseAnnotation(annotation, node);
    if (const auto role = roles_.find(name); role != roles_.end()) {
      node.shown = role->second.second;
      node.args = name + ": " + role->second.first;
      node.modulePath = role->second.second;
    }
    values_[name] = {index, 0};
  }

  /// The name of the one value that an argument is.
  static std::string valueName(const Json& argument) {
    if (!argument.is_object() || argument.empty()) return {};
    const auto [kind, value] = firstOf(argument);
    if (!value.is_object()) return {};
    const std::string name = stringOf(value, "name");
    return name.empty() ? stringOf(value, "as_name") : name;
  }

  void call(const Json& item) {
    if (!item.is_object()) {
      ++out_.damaged;
      return;
    }
    const std::string target = stringOf(item, "target");
    std::vector<std::string> results;
    for (const Json& output : listOf(item, "outputs")) resultNames(output, results, 0);
    std::string name = stringOf(item, "name");
    if (name.empty()) name = results.empty() ? "node" : results[0];
    FxNode made;
    made.op = operatorOf(target);
    int64_t position = 0;
    for (const Json& input : listOf(item, "inputs")) {
      const Json* arg = input.is_object() ? member(input, "arg") : nullptr;
      if (!made.args.empty()) made.args += ", ";
      if (integerOf(input.is_object() ? input : Json::object(), "kind") == 2)
        made.args += stringOf(input, "name") + "=";
      made.args += arg ? argument(*arg, made, position, 0) : "?";
      ++position;
    }
    if (const Json* metadata = member(item, "metadata"); metadata && metadata->is_object()) {
      placeNode(made, stringOf(*metadata, "stack_trace"));
      made.modulePath = modulePathOf(stringOf(*metadata, "nn_module_stack"));
    }
    describeResults(made, results);
    const size_t index = add(name, "call");
    made.name = graph_.nodes[index].name;
    made.kind = "call";
    graph_.nodes[index] = std::move(made);
    for (size_t i = 0; i < results.size(); ++i) values_[results[i]] = {index, static_cast<int64_t>(i)};
  }

  void describeResults(FxNode& node, const std::vector<std::string>& results) const {
    if (results.empty()) return;
    if (const std::string annotation = annotationFor(results[0]); !annotation.empty())
      parseAnnotation(annotation, node);
    else if (numbers_.contains(results[0]))
      node.dtype = "int";
    if (results.size() < 2) return;
    Json all = Json::array();
    for (const std::string& result : results) {
      FxNode one;
      parseAnnotation(annotationFor(result), one);
      all.push_back(one.dtype + one.shape);
      if (&result != &results[0] && one.bytes > 0 && node.bytes >= 0 && node.bytes < int64_t{1} << 60)
        node.bytes += one.bytes;
    }
    node.outputs = all.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void resultNames(const Json& output, std::vector<std::string>& names, int depth) const {
    if (depth > kMaxDepth || !output.is_object() || output.empty()) return;
    const auto [kind, value] = firstOf(output);
    if (value.is_array()) {
      for (const Json& item : value) {
        if (item.is_object() && item.contains("name"))
          names.push_back(stringOf(item, "name"));
        else
          resultNames(item, names, depth + 1);
      }
    } else if (const std::string name = valueName(output); !name.empty()) {
      names.push_back(name);
    }
  }

  /// Text of an argument, with its values as inputs of `node`.
  std::string argument(const Json& item, FxNode& node, int64_t position, int depth) {
    if (depth > kMaxDepth || !item.is_object() || item.empty()) return "?";
    const auto [kind, value] = firstOf(item);
    if (kind == "as_none") return "None";
    if (kind == "as_graph") return innerGraph(value);
    if (kind == "as_scalar_type") return "torch." + fullType(value);
    if (kind == "as_device" && value.is_object()) return stringOf(value, "type");
    if (kind == "as_memory_format")
      return enumText(value, {"?", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format"});
    if (kind == "as_layout")
      return enumText(value,
                      {"?", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "mkldnn", "strided"});
    if (kind == "as_custom_obj" && value.is_object()) return stringOf(value, "class_fqn");
    if (value.is_array()) return list(value, node, position, depth);
    if (value.is_object()) {
      const std::string name = valueName(item);
      if (!name.empty()) return reference(name, node, position);
      if (value.size() == 1) return argument(value, node, position, depth + 1);
    }
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kMostTextBytes);
  }

  std::string list(const Json& items, FxNode& node, int64_t position, int depth) {
    std::string out = "[";
    for (const Json& item : items) {
      if (out.size() > 1) out += ", ";
      if (item.is_object() && item.contains("name"))
        out += reference(stringOf(item, "name"), node, position);
      else if (item.is_object())
        out += argument(item, node, position, depth + 1);
      else if (item.is_array() && depth < kMaxDepth)
        out += list(item, node, position, depth + 1);
      else
        out += item.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kMostTextBytes);
    }
    return out + "]";
  }

  std::string reference(const std::string& name, FxNode& node, int64_t position) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      ++out_.damaged;
      return name;
    }
    node.inputs.push_back({found->second.first, position, found->second.second});
    return "%" + name;
  }

  static std::string fullType(const Json& value) {
    FxNode node;
    parseAnnotation(shortType(value.is_number_integer() ? value.get<int64_t>() : 0), node);
    return node.dtype;
  }
  static std::string enumText(const Json& value, std::vector<const char*> names) {
    const int64_t number = value.is_number_integer() ? value.get<int64_t>() : 0;
    return std::string("torch.") +
           names[number > 0 && number < static_cast<int64_t>(names.size()) ? static_cast<size_t>(number) : 0];
  }

  std::string innerGraph(const Json& value) {
    if (!value.is_object() || depth_ >= kMaxDepth || out_.inner.size() > 10'000) return "graph";
    const std::string name = stringOf(value, "name");
    if (const Json* graph = member(value, "graph"); graph && graph->is_object()) {
      FxGraph made = GraphReader(out_, depth_ + 1).read(graph->dump(-1, ' ', false, Json::error_handler_t::replace), name, {});
      out_.inner.emplace_back(name, std::move(made));
    }
    return "graph " + name;
  }

  void output(std::string_view outputs) {
    FxNode made;
    int64_t position = 0;
    pieces(outputs, [&](std::string_view, const Json& item) { made.args += (made.args.empty() ? "" : ", ") + argument(item, made, position++, 0); });
    const size_t index = add("output", "output");
    made.name = graph_.nodes[index].name;
    made.kind = "output";
    graph_.nodes[index] = std::move(made);
  }

  ExportedGraphs& out_;
  const int depth_;
  FxGraph graph_;
  std::unordered_map<std::string, std::string> annotations_;  ///< of tensors by name
  std::unordered_set<std::string> numbers_;
  std::unordered_map<std::string, std::pair<std::string, std::string>> roles_;
  std::unordered_map<std::string, size_t> known_;
  std::unordered_map<std::string, std::pair<size_t, int64_t>> values_;  ///< node and output by name
};

}  // namespace

ExportedGraphs readExportedGraphs(std::string_view graphModule, const std::string& name) {
  ExportedGraphs out;
  bool complete = false;
  const auto parts = jsonMembers(graphModule, complete);
  if (!complete) out.fault = JsonFault::Damaged;
  const auto graph = parts.find("graph"), signature = parts.find("signature");
  if (graph == parts.end() || !graph->second.starts_with('{')) {
    ++out.damaged;
    return out;
  }
  FxGraph main = GraphReader(out, 0).read(graph->second, name, signature == parts.end() ? std::string_view() : signature->second);
  out.main = std::move(main);
  return out;
}

}  // namespace fusebox::importing
