#include "profiler/importers/fx_text.h"
#include "profiler/importers/text_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace fusebox::importing {
namespace {

constexpr size_t kMostNodes = 1'000'000;
constexpr size_t kMostStatementBytes = size_t{4} << 20;

bool isNameChar(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }


std::string_view leadingName(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && isNameChar(s[n])) ++n;
  return n > 0 && !isDigit(s[0]) ? s.substr(0, n) : std::string_view();
}

/// Walks over Python text and knows where strings and brackets are.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool atEnd() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  bool inString() const { return quote_ != 0; }
  int depth() const { return depth_; }
  char here() const { return text_[at_]; }
  void step() {
    const char c = text_[at_];
    if (quote_) {
      if (c == '\\') ++at_;
      if (c == quote_) quote_ = 0;
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth_;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth_;
    }
    ++at_;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  char quote_ = 0;
  int depth_ = 0;
};

/// Calls `take(start, end)` for each word outside strings that is the name of a value: no attribute, no keyword.
template <typename Take>
void eachReference(std::string_view text, Take&& take) {
  int64_t position = 0;
  for (Scanner s(text); !s.atEnd();) {
    if (s.inString() || !isNameChar(s.here())) {
      if (!s.inString() && s.depth() == 0 && s.here() == ',') ++position;
      s.step();
      continue;
    }
    const size_t start = s.at();
    size_t end = start;
    while (end < text.size() && isNameChar(text[end])) ++end;
    while (s.at() < end) s.step();
    const std::string_view after = trim(text.substr(end, 3));
    const bool attribute = start > 0 && text[start - 1] == '.', keyword = after.starts_with('=') && !after.starts_with("==");
    if (!attribute && !keyword) take(start, end, position);
  }
}

// Where `wanted` stands outside strings and brackets.
size_t findTopLevel(std::string_view text, char wanted) {
  for (Scanner s(text); !s.atEnd(); s.step()) {
    if (!s.inString() && s.depth() == 0 && s.here() == wanted) return s.at();
  }
  return std::string_view::npos;
}

std::string_view withoutComment(std::string_view line) {
  for (Scanner s(line); !s.atEnd(); s.step()) {
    if (!s.inString() && s.here() == '#') return line.substr(0, s.at());
  }
  return line;
}

int openBrackets(std::string_view line) {
  Scanner s(line);
  while (!s.atEnd()) s.step();
  return s.depth();
}

struct BinaryOperator {
  std::string_view symbol, name;
};
constexpr std::array<BinaryOperator, 18> kBinary{{{" ** ", "operator.pow"},
                                                  {" // ", "operator.floordiv"},
                                                  {" << ", "operator.lshift"},
                                                  {" >> ", "operator.rshift"},
                                                  {" <= ", "operator.le"},
                                                  {" >= ", "operator.ge"},
                                                  {" == ", "operator.eq"},
                                                  {" != ", "operator.ne"},
                                                  {" < ", "operator.lt"},
                                                  {" > ", "operator.gt"},
                                                  {" + ", "operator.add"},
                                                  {" - ", "operator.sub"},
                                                  {" * ", "operator.mul"},
                                                  {" / ", "operator.truediv"},
                                                  {" % ", "operator.mod"},
                                                  {" @ ", "operator.matmul"},
                                                  {" & ", "operator.and_"},
                                                  {" | ", "operator.or_"}}};

// torch.ops.aten.add.Tensor → aten::add.Tensor; the overload `default` is not written.
std::string operatorName(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (!target.starts_with(kOps)) return std::string(target);
  target.remove_prefix(kOps.size());
  if (target.ends_with(".default")) target.remove_suffix(8);
  std::string name(target);
  if (const size_t dot = name.find('.'); dot != std::string::npos) name.replace(dot, 1, "::");
  return name;
}

class FxParser {
 public:
  FxGraph parse(std::string_view text);

 private:
  void logicalLine(std::string_view line);
  void header(std::string_view arguments);
  void place(std::string_view comment);
  void statement(std::string_view text);
  bool inPlace(std::string_view text);
  void describe(std::string_view line, std::string_view comment);
  void expression(FxNode& node, std::string_view rhs);
  void references(FxNode& node, std::string_view arguments);
  FxNode& add(std::string_view name, std::string_view kind);

  FxGraph graph_;
  std::unordered_map<std::string, size_t> byName_;
  std::unordered_map<std::string, std::string> descriptors_;  ///< of inputs whose statement is still being read
  std::string file_, function_, code_;
  int64_t line_ = 0;
  bool inForward_ = false, done_ = false;
};

FxNode& FxParser::add(std::string_view name, std::string_view kind) {
  FxNode node;
  node.name = name;
  node.kind = kind;
  if (const auto found = descriptors_.find(node.name); found != descriptors_.end() && kind == "placeholder")
    node.descriptor = std::move(found->second), descriptors_.erase(found);
  if (kind == "call") node.file = file_, node.function = function_, node.line = line_, node.code = code_;
  byName_[node.name] = graph_.nodes.size();
  return graph_.nodes.emplace_back(std::move(node));
}

// "# File: /x/train.py:16 in forward, code: return self.b(x)"
void FxParser::place(std::string_view comment) {
  constexpr std::string_view kFile = "File: ", kCode = ", code: ", kIn = " in ";
  const size_t start = comment.find(kFile);
  if (start == std::string_view::npos) {
    if (comment.find("No stacktrace found") != std::string_view::npos)
      file_.clear(), function_.clear(), code_.clear(), line_ = 0;
    return;
  }
  std::string_view rest = comment.substr(start + kFile.size());
  const size_t code = rest.find(kCode);
  code_ = code == std::string_view::npos ? std::string_view() : rest.substr(code + kCode.size());
  rest = rest.substr(0, code);
  const size_t in = rest.rfind(kIn);
  function_ = in == std::string_view::npos ? std::string_view() : rest.substr(in + kIn.size());
  rest = rest.substr(0, in);
  const size_t colon = rest.rfind(':');
  line_ = 0;
  if (colon != std::string_view::npos) std::from_chars(rest.data() + colon + 1, rest.data() + rest.size(), line_);
  file_ = rest.substr(0, colon);
}

// primals_4: "f32[16]",  # PlainAOTInput(idx=3)
void FxParser::describe(std::string_view line, std::string_view comment) {
  const std::string_view name = leadingName(line), words = trim(comment.substr(std::min<size_t>(comment.size(), 1)));
  if (name.empty() || name.size() == line.size() || trim(line.substr(name.size())).front() != ':' || descriptors_.size() >= kMostNodes) return;
  if (leadingName(words).ends_with("AOTInput") && words.ends_with(')')) descriptors_[std::string(name)] = words;
}

// The arguments of forward are the placeholders.
void FxParser::header(std::string_view arguments) {
  while (!arguments.empty()) {
    const size_t comma = findTopLevel(arguments, ',');
    const std::string_view one = trim(arguments.substr(0, comma));
    arguments = comma == std::string_view::npos ? std::string_view() : arguments.substr(comma + 1);
    const std::string_view name = leadingName(one);
    // The joint graph's two lists are taken apart by the first statements.
    if (name.empty() || name == "self" || ((name == "primals" || name == "tangents") && one == name)) continue;
    FxNode& node = add(name, "placeholder");
    node.args = name;
    const size_t open = one.find('"'), close = one.rfind('"');
    if (open != std::string_view::npos && close > open) parseAnnotation(one.substr(open + 1, close - open - 1), node);
  }
}

void FxParser::references(FxNode& node, std::string_view arguments) {
  eachReference(arguments, [&](size_t start, size_t end, int64_t position) {
    const auto found = byName_.find(std::string(arguments.substr(start, end - start)));
    if (found != byName_.end()) node.inputs.push_back({found->second, position});
  });
}

void FxParser::expression(FxNode& node, std::string_view rhs) {
  node.args = rhs;
  // name(…), a.b.c(…)
  const size_t open = rhs.find('(');
  const std::string_view callee = trim(rhs.substr(0, open));
  const bool dotted =
      !callee.empty() && std::all_of(callee.begin(), callee.end(), [](char c) { return isNameChar(c) || c == '.'; });
  if (open != std::string_view::npos && dotted && rhs.ends_with(')')) {
    const std::string_view arguments = rhs.substr(open + 1, rhs.size() - open - 2);
    const std::string_view first = leadingName(callee);
    const auto self = byName_.find(std::string(first));
    node.args = arguments;
    if (self != byName_.end() && first.size() < callee.size()) {  // a method of a value
      node.op = "Tensor" + std::string(callee.substr(first.size()));
      node.inputs.push_back({self->second, 0});
      const size_t own = node.inputs.size();
      references(node, arguments);
      for (size_t i = own; i < node.inputs.size(); ++i) ++node.inputs[i].argument;
      node.args = std::string(first) + (trim(arguments).empty() ? "" : ", ") + std::string(arguments);
    } else {
      node.op = operatorName(callee);
      references(node, arguments);
    }
    return;
  }
  references(node, rhs);
  for (size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i].argument = static_cast<int64_t>(i);
  const std::string_view first = leadingName(rhs);
  if (rhs.starts_with("self.") || rhs.starts_with("getattr(self")) {
    node.kind = "constant";
  } else if (!first.empty() && rhs.substr(first.size()).starts_with('[') && rhs.ends_with(']')) {
    node.op = "operator.getitem";
  } else if (!first.empty() && rhs.substr(first.size()).starts_with('.')) {
    node.op = "getattr";
  } else if (rhs.starts_with('-')) {
    node.op = "operator.neg";
  } else {
    for (const auto& binary : kBinary) {
      if (rhs.find(binary.symbol) == std::string_view::npos) continue;
      node.op = binary.name;
      break;
    }
  }
  if (node.kind == "call" && node.op.empty()) node.op = node.inputs.empty() ? "constant" : "expression";
}

// x += 1;  iadd: "f32[]" = x;  x = None
bool FxParser::inPlace(std::string_view text) {
  struct Augmented {
    std::string_view symbol, name;
  };
  static constexpr Augmented kAugmented[] = {
      {"+=", "iadd"},  {"-=", "isub"},     {"*=", "imul"},    {"/=", "itruediv"}, {"//=", "ifloordiv"},
      {"**=", "ipow"}, {"@=", "imatmul"},  {"%=", "imod"},    {"&=", "iand"},     {"|=", "ior"},
      {"^=", "ixor"},  {"<<=", "ilshift"}, {">>=", "irshift"}};
  const std::string_view target = leadingName(text);
  const std::string_view rest = trim(text.substr(target.size()));
  const size_t semicolon = findTopLevel(rest, ';');
  if (target.empty() || semicolon == std::string_view::npos) return false;
  for (const auto& augmented : kAugmented) {
    if (!rest.starts_with(augmented.symbol)) continue;
    const std::string_view result = trim(rest.substr(semicolon + 1));
    const std::string_view name = leadingName(result);
    if (name.empty()) return false;
    FxNode node;
    node.name = name;
    node.kind = "call";
    node.file = file_, node.function = function_, node.line = line_, node.code = code_;
    node.op = "operator." + std::string(augmented.name);
    node.args = std::string(target) + ", " +
                std::string(trim(rest.substr(augmented.symbol.size(), semicolon - augmented.symbol.size())));
    const size_t open = result.find('"'), close = open == std::string_view::npos ? open : result.find('"', open + 1);
    if (close != std::string_view::npos) parseAnnotation(result.substr(open + 1, close - open - 1), node);
    references(node, node.args);
    byName_[node.name] = graph_.nodes.size();
    graph_.nodes.push_back(std::move(node));
    return true;
  }
  return false;
}

void FxParser::statement(std::string_view text) {
  if (text.starts_with("return")) {
    FxNode node;
    node.name = "output";
    node.kind = "output";
    node.args = trim(text.substr(6));
    references(node, node.args.size() > 2 && node.args.front() == '('
                         ? std::string_view(node.args).substr(1, node.args.size() - 2)
                         : std::string_view(node.args));
    graph_.nodes.push_back(std::move(node));
    done_ = true;
    return;
  }
  if (inPlace(text)) return;
  const size_t semicolon = findTopLevel(text, ';');  // what follows only forgets values
  text = trim(text.substr(0, semicolon));
  const std::string_view name = leadingName(text);
  std::string_view rest = trim(text.substr(name.size()));
  if (name.empty() || rest.empty()) {
    if (!text.empty() && text.find("fx_pytree") == std::string_view::npos) ++graph_.unread;
    return;
  }
  std::string_view annotation;
  if (rest.starts_with(':')) {
    const size_t open = rest.find('"'), close = open == std::string_view::npos ? open : rest.find('"', open + 1);
    if (close == std::string_view::npos) {
      ++graph_.unread;
      return;
    }
    annotation = rest.substr(open + 1, close - open - 1);
    rest = trim(rest.substr(close + 1));
    if (rest.empty()) {  // primals_1: "f32[2]": the flattened inputs of a joint graph
      FxNode& node = add(name, "placeholder");
      node.args = name;
      parseAnnotation(annotation, node);
      return;
    }
  }
  if (!rest.starts_with('=')) {  // a, b, = fx_pytree.tree_flatten_spec(…)
    if (text.find("fx_pytree.") == std::string_view::npos) ++graph_.unread;
    return;
  }
  const std::string_view rhs = trim(rest.substr(1));
  if (rhs == "None") return;
  const auto source = byName_.find(std::string(rhs));
  if (source != byName_.end() && graph_.nodes[source->second].kind == "placeholder") {  // l_x_ = L_x_
    const size_t index = source->second;
    graph_.nodes[index].name = name;
    byName_[std::string(name)] = index;
    return;
  }
  FxNode& node = add(name, "call");
  const size_t index = graph_.nodes.size() - 1;
  byName_.erase(node.name);  // a statement may use an older value of its own name
  FxNode filled = std::move(node);
  if (!annotation.empty()) parseAnnotation(annotation, filled);
  expression(filled, rhs);
  byName_[filled.name] = index;
  graph_.nodes[index] = std::move(filled);
}

void FxParser::logicalLine(std::string_view line) {
  if (line.starts_with("class ")) {
    if (inForward_ || done_) ++graph_.nested;
    if (!inForward_ && graph_.name.empty()) graph_.name = leadingName(line.substr(6));
    if (inForward_) done_ = true;
    return;
  }
  if (done_) return;
  if (line.starts_with("def forward(")) {
    const size_t close = line.rfind(')');
    if (close != std::string_view::npos && close > 12) header(line.substr(12, close - 12));
    inForward_ = true;
    return;
  }
  if (inForward_) statement(line);
}

FxGraph FxParser::parse(std::string_view text) {
  std::string joined;
  int depth = 0;
  while (!text.empty() && graph_.nodes.size() < kMostNodes) {
    const size_t end = text.find('\n');
    const std::string_view raw = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (raw.empty()) continue;
    if (raw.front() == '#') {
      if (depth == 0) place(raw);
      continue;
    }
    const std::string_view code = withoutComment(raw), line = trim(code);
    if (code.size() < raw.size()) describe(line, raw.substr(code.size()));
    depth += openBrackets(line);
    if (joined.size() < kMostStatementBytes) joined += (joined.empty() ? "" : " ") + std::string(line);
    if (depth > 0) continue;
    depth = 0;
    logicalLine(joined);
    joined.clear();
  }
  if (!joined.empty()) ++graph_.unread;
  return std::move(graph_);
}

struct ScalarType {
  std::string_view shortName, name;
  int bytes;
};
constexpr ScalarType kTypes[] = {
    {"f64", "float64", 8},
    {"f32", "float32", 4},
    {"f16", "float16", 2},
    {"bf16", "bfloat16", 2},
    {"i64", "int64", 8},
    {"i32", "int32", 4},
    {"i16", "int16", 2},
    {"i8", "int8", 1},
    {"u64", "uint64", 8},
    {"u32", "uint32", 4},
    {"u16", "uint16", 2},
    {"u8", "uint8", 1},
    {"b8", "bool", 1},
    {"c32", "complex32", 4},
    {"c64", "complex64", 8},
    {"c128", "complex128", 16},
    {"f8e4m3fn", "float8_e4m3fn", 1},
    {"f8e5m2", "float8_e5m2", 1},
    {"f8e4m3fnuz", "float8_e4m3fnuz", 1},
    {"f8e5m2fnuz", "float8_e5m2fnuz", 1},
    {"f8e8m0fnu", "float8_e8m0fnu", 1},
    {"f4e2m1fnx2", "float4_e2m1fn_x2", 1},
};

// The number of elements of "[2, 3]"; -1 with symbolic sizes.
int64_t elements(std::string_view shape) {
  int64_t product = 1;
  shape = shape.substr(1, shape.size() - 2);
  while (!trim(shape).empty()) {
    const size_t comma = shape.find(',');
    const std::string_view one = trim(shape.substr(0, comma));
    int64_t size = 0;
    const auto parsed = std::from_chars(one.data(), one.data() + one.size(), size);
    if (parsed.ptr != one.data() + one.size() || size < 0 || __builtin_mul_overflow(product, size, &product)) return -1;
    shape = comma == std::string_view::npos ? std::string_view() : shape.substr(comma + 1);
  }
  return product;
}

}  // namespace

int64_t FxGraph::edges() const {
  int64_t count = 0;
  for (const auto& node : nodes) count += static_cast<int64_t>(node.inputs.size());
  return count;
}

FxGraph parseFxText(std::string_view text) { return FxParser().parse(text); }

std::vector<std::string> valuesIn(std::string_view args) {
  std::vector<std::string> out;
  eachReference(args, [&](size_t start, size_t end, int64_t) { out.emplace_back(args.substr(start, end - start)); });
  return out;
}

std::string withNames(std::string_view args, const std::unordered_map<std::string, std::string>& names) {
  std::string out;
  size_t written = 0;
  eachReference(args, [&](size_t start, size_t end, int64_t) {
    const auto found = names.find(std::string(args.substr(start, end - start)));
    if (found == names.end()) return;
    out.append(args.substr(written, start - written)).append(found->second);
    written = end;
  });
  return out.append(args.substr(written));
}

void parseAnnotation(std::string_view annotation, FxNode& node) {
  const size_t open = annotation.find('[');
  std::string_view type = annotation.substr(0, open);
  if (type.starts_with("Sym(")) {
    node.dtype = annotation;
    return;
  }
  int64_t width = 0;
  node.dtype = type;
  for (const auto& t : kTypes) {
    if (t.shortName == type) node.dtype = t.name, width = t.bytes;
  }
  if (open == std::string_view::npos) return;
  const size_t close = annotation.find(']', open);
  if (close == std::string_view::npos) return;
  node.shape = annotation.substr(open, close - open + 1);
  std::string_view rest = annotation.substr(close + 1);
  if (rest.starts_with('[')) {
    const size_t strideEnd = rest.find(']');
    if (strideEnd == std::string_view::npos) return;
    node.stride = rest.substr(0, strideEnd + 1);
    rest = rest.substr(strideEnd + 1);
  }
  node.device = rest;
  if (const int64_t count = elements(node.shape); count >= 0 && width > 0 && count < (int64_t{1} << 55))
    node.bytes = count * width;
}

}  // namespace fusebox::importing
