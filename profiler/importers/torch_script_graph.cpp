#include "profiler/importers/torch_script_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace fusebox::importing {
namespace {

using Expression = ScriptExpression;
using Statement = ScriptStatement;

constexpr int kMaxCalls = 100;  ///< of functions in functions
constexpr int kMaxCallDepth = 3000;  ///< of expressions in expressions, those of called functions included
constexpr size_t kMostNodes = 200'000;
constexpr int64_t kMostSteps = 3'000'000;
constexpr size_t kMostTextBytes = 2000;

/// What an expression stands for while the code is walked.
struct Value {
  enum class Kind : uint8_t {
    Text,      ///< a constant, as printed
    Node,      ///< output `output` of node `node`
    Object,    ///< a module: class `text`, at `path`
    Function,  ///< of the code, by qualified name
    List,      ///< items
  } kind = Kind::Text;
  std::string text;
  size_t node = 0;
  int64_t output = 0;
  std::string path;
  std::vector<Value> items;
  bool operator==(const Value&) const = default;
};

Value textValue(std::string text) { return {Value::Kind::Text, std::move(text), 0, 0, {}, {}}; }

/// The code that is being walked: its variables, and whose it is.
struct Scope {
  std::map<std::string, Value> variables;
  std::string path, file;
  int64_t line = 0;
  std::vector<Value> returned;
};

std::string plainName(std::string_view op) {
  if (const size_t colons = op.rfind("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return std::string(op.substr(0, op.find('.')));
}

class Builder {
 public:
  explicit Builder(const ScriptCode& code) : code_(code) {}

  FxGraph build(const std::string& rootClass) {
    graph_.name = rootClass.substr(rootClass.rfind('.') + 1);
    const auto root = code_.classes.find(rootClass);
    if (root == code_.classes.end() || !root->second.methods.contains("forward")) return std::move(graph_);
    const ScriptFunction& forward = root->second.methods.at("forward");
    Scope scope;
    scope.file = forward.file;
    for (size_t i = 0; i < forward.parameters.size(); ++i) {
      if (i == 0) {
        scope.variables[forward.parameters[0]] = {Value::Kind::Object, rootClass, 0, 0, {}, {}};
        continue;
      }
      const size_t index = add(forward.parameters[i], "placeholder", scope);
      graph_.nodes[index].args = forward.types[i];
      scope.variables[forward.parameters[i]] = nodeValue(index);
    }
    run(forward.body, scope);
    const size_t index = add("output", "output", scope);
    int64_t position = 0;
    std::string args;
    for (const Value& value : scope.returned) args += (args.empty() ? "" : ", ") + describe(value, index, position++);
    graph_.nodes[index].args = args;
    return std::move(graph_);
  }

 private:
  static Value nodeValue(size_t node, int64_t output = 0) { return {Value::Kind::Node, {}, node, output, {}, {}}; }

  bool spent() {
    if (++steps_ <= kMostSteps && graph_.nodes.size() < kMostNodes) return false;
    if (!full_) ++graph_.unread;
    return full_ = true;
  }

  size_t add(const std::string& name, const char* kind, const Scope& scope) {
    FxNode node;
    node.name = name.empty() ? "node" : name;
    int& count = names_[name];
    while (!taken_.insert(node.name).second) node.name = fmt::format("{}_{}", name, ++count);
    node.kind = kind;
    node.modulePath = scope.path;
    node.file = scope.file;
    node.line = scope.line;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  /// A call of `op` on `values`; `keywords` name some of them.
  Value call(const std::string& op, const std::vector<Value>& values, const std::vector<std::string>& keywords,
             const Scope& scope) {
    const size_t index = add(plainName(op), "call", scope);
    std::string args;
    for (size_t i = 0; i < values.size() && args.size() < kMostTextBytes; ++i) {
      const std::string keyword = i < keywords.size() && !keywords[i].empty() ? keywords[i] + "=" : std::string();
      args += (i ? ", " : "") + keyword + describe(values[i], index, static_cast<int64_t>(i));
    }
    graph_.nodes[index].op = op;
    graph_.nodes[index].args = args;
    return nodeValue(index);
  }

  /// Text of a value that `reader` reads as its argument, which it becomes an input of.
  std::string describe(const Value& value, size_t reader, int64_t position) {
    switch (value.kind) {
      case Value::Kind::Text:
        return value.text.substr(0, kMostTextBytes);
      case Value::Kind::Function:
        return value.text;
      case Value::Kind::Object:
        return value.path.empty() ? "self" : value.path;
      case Value::Kind::Node: {
        auto& inputs = graph_.nodes[reader].inputs;
        inputs.push_back({value.node, position, value.output});
        return "%" + graph_.nodes[value.node].name + (value.output ? fmt::format("#{}", value.output) : "");
      }
      case Value::Kind::List:
        break;
    }
    std::string out = "[";
    for (const Value& item : value.items)
      if (out.size() < kMostTextBytes) out += (out.size() > 1 ? ", " : "") + describe(item, reader, position);
    return out + "]";
  }

  // --- statements ---

  void run(const std::vector<Statement>& body, Scope& scope) {
    for (const Statement& statement : body) {
      if (spent()) return;
      scope.line = statement.line;
      switch (statement.kind) {
        case Statement::Kind::Pass:
          break;
        case Statement::Kind::Evaluate:
          evaluate(statement.value, scope);
          break;
        case Statement::Kind::Assign:
          assign(statement, scope);
          break;
        case Statement::Kind::Return:
          scope.returned.push_back(evaluate(statement.value, scope));
          break;
        case Statement::Kind::If:
          branch(statement, scope);
          break;
        case Statement::Kind::Loop:
          loop(statement, scope);
          break;
      }
    }
  }

  void assign(const Statement& statement, Scope& scope) {
    Value value = evaluate(statement.value, scope);
    if (statement.targets.size() == 1) {
      scope.variables[statement.targets[0]] = std::move(value);
      return;
    }
    for (size_t i = 0; i < statement.targets.size(); ++i) {
      Value part = textValue("?");
      if (value.kind == Value::Kind::List && i < value.items.size()) part = value.items[i];
      if (value.kind == Value::Kind::Node) part = nodeValue(value.node, static_cast<int64_t>(i));
      scope.variables[statement.targets[i]] = std::move(part);
    }
  }

  void branch(const Statement& statement, Scope& scope) {
    const Value condition = evaluate(statement.value, scope);
    if (condition.kind == Value::Kind::Text && (condition.text == "True" || condition.text == "False")) {
      run(condition.text == "True" ? statement.body : statement.otherwise, scope);
      return;
    }
    const std::map<std::string, Value> before = scope.variables;
    steps_ += static_cast<int64_t>(before.size() / 8);
    run(statement.body, scope);
    const std::map<std::string, Value> then = std::move(scope.variables);
    scope.variables = before;
    run(statement.otherwise, scope);
    scope.line = statement.line;
    for (const auto& [name, value] : then) {
      const auto other = scope.variables.find(name);
      if (other == scope.variables.end()) continue;  // defined in one branch only: nothing after it may read it
      if (!(other->second == value)) other->second = call("prim::If", {condition, value, other->second}, {}, scope);
    }
  }

  /// Variables that a loop carries from one turn to the next: assigned inside, known before.
  static void assignedIn(const std::vector<Statement>& body, const Scope& scope, std::vector<std::string>& names) {
    for (const Statement& statement : body) {
      for (const std::string& target : statement.targets)
        if (scope.variables.contains(target) && std::find(names.begin(), names.end(), target) == names.end())
          names.push_back(target);
      assignedIn(statement.body, scope, names);
      assignedIn(statement.otherwise, scope, names);
    }
  }

  void loop(const Statement& statement, Scope& scope) {
    std::vector<Value> entry{evaluate(statement.value, scope)};
    std::vector<std::string> carried;
    assignedIn(statement.body, scope, carried);
    for (const std::string& name : carried) entry.push_back(scope.variables[name]);
    const Value head = call("prim::Loop", entry, {}, scope);
    for (size_t i = 0; i < carried.size(); ++i)
      scope.variables[carried[i]] = nodeValue(head.node, static_cast<int64_t>(i) + 1);
    for (const std::string& name : statement.targets) scope.variables[name] = head;
    run(statement.body, scope);
    scope.line = statement.line;
    std::vector<Value> last;
    for (const std::string& name : carried) last.push_back(scope.variables[name]);
    const Value end = call("prim::LoopEnd", last, carried, scope);
    for (size_t i = 0; i < carried.size(); ++i)
      scope.variables[carried[i]] = nodeValue(end.node, static_cast<int64_t>(i));
  }

  // --- expressions ---

  Value evaluate(const Expression& e, Scope& scope) {
    if (spent()) return textValue("?");
    if (depth_ >= kMaxCallDepth) {
      ++graph_.unread;
      return textValue("?");
    }
    ++depth_;
    Value value = evaluated(e, scope);
    --depth_;
    return value;
  }

  Value evaluated(const Expression& e, Scope& scope) {
    switch (e.kind) {
      case Expression::Kind::Literal:
        return textValue(e.text);
      case Expression::Kind::Name: {
        const auto found = scope.variables.find(e.text);
        return found == scope.variables.end() ? textValue(e.text) : found->second;
      }
      case Expression::Kind::List:
      case Expression::Kind::Tuple:
        return {Value::Kind::List, {}, 0, 0, {}, evaluateAll(e.parts, 0, scope)};
      case Expression::Kind::Attribute:
        return attribute(e, scope);
      case Expression::Kind::Subscript:
        return subscript(e, scope);
      case Expression::Kind::Call:
        return callExpression(e, scope);
      case Expression::Kind::Other:
        break;
    }
    return call("prim::" + e.text, evaluateAll(e.parts, 0, scope), {}, scope);
  }

  std::vector<Value> evaluateAll(const std::vector<Expression>& parts, size_t from, Scope& scope) {
    std::vector<Value> values;
    for (size_t i = from; i < parts.size(); ++i) values.push_back(evaluate(parts[i], scope));
    return values;
  }

  /// "torch.nn.f" of names and attributes that are no variables; empty for other expressions.
  static std::string dotted(const Expression& e, const Scope& scope) {
    if (e.kind == Expression::Kind::Name) return scope.variables.contains(e.text) ? std::string() : e.text;
    if (e.kind != Expression::Kind::Attribute) return {};
    const std::string base = dotted(e.parts[0], scope);
    return base.empty() ? base : base + "." + e.text;
  }

  Value attribute(const Expression& e, Scope& scope) {
    if (const std::string name = dotted(e, scope); !name.empty()) {
      if (name.starts_with("CONSTANTS.")) return input(name, "constant", scope);
      if (name.starts_with("__torch__.")) return {Value::Kind::Function, name, 0, 0, {}, {}};
      return textValue(name);
    }
    return field(evaluate(e.parts[0], scope), e.text, scope);
  }

  Value field(const Value& object, const std::string& name, Scope& scope) {
    if (object.kind != Value::Kind::Object) return call("prim::GetAttr", {object, textValue(name)}, {}, scope);
    const std::string path = object.path.empty() ? name : object.path + "." + name;
    const auto known = code_.classes.find(object.text);
    if (known == code_.classes.end()) return input(path, "constant", scope);
    if (const auto constant = known->second.constants.find(name); constant != known->second.constants.end())
      return textValue(constant->second);
    const auto type = known->second.fields.find(name);
    if (type != known->second.fields.end() && code_.classes.contains(type->second))
      return {Value::Kind::Object, type->second, 0, 0, path, {}};
    return input(path, type == known->second.fields.end() ? "" : type->second, scope);
  }

  /// An attribute that is data: one input of the graph however often it is read.
  Value input(const std::string& path, const std::string& type, const Scope& scope) {
    const auto known = inputs_.find(path);
    if (known != inputs_.end()) return nodeValue(known->second);
    std::string name = path;
    std::replace_if(name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
    Scope place = scope;
    place.path = path;
    const size_t index = add(name, "constant", place);
    graph_.nodes[index].args = type;
    if (path.find('.') != std::string::npos && !path.starts_with("CONSTANTS.")) graph_.nodes[index].shown = path;
    inputs_.emplace(path, index);
    return nodeValue(index);
  }

  Value subscript(const Expression& e, Scope& scope) {
    const Value base = evaluate(e.parts[0], scope), index = evaluate(e.parts[1], scope);
    if (index.kind == Value::Kind::Text && !index.text.empty() &&
        index.text.find_first_not_of("0123456789") == std::string::npos && index.text.size() < 7) {
      const auto position = static_cast<size_t>(std::stoul(index.text));
      if (base.kind == Value::Kind::List && position < base.items.size()) return base.items[position];
    }
    return call("aten::__getitem__", {base, index}, {}, scope);
  }

  Value callExpression(const Expression& e, Scope& scope) {
    const Expression& callee = e.parts[0];
    std::string name = dotted(callee, scope);
    if (name == "annotate" || name == "unchecked_cast")
      return e.parts.size() > 2 ? evaluate(e.parts[2], scope) : textValue("?");
    if (name == "uninitialized") return textValue("uninitialized");
    if (name == "getattr" && e.parts.size() == 3 && e.parts[2].text.size() > 2)
      return field(evaluate(e.parts[1], scope), e.parts[2].text.substr(1, e.parts[2].text.size() - 2), scope);
    std::vector<Value> values = evaluateAll(e.parts, 1, scope);
    if (name.empty()) {
      if (callee.kind != Expression::Kind::Attribute) {
        const Value target = evaluate(callee, scope);
        if (target.kind == Value::Kind::Function) return callNamed(target.text, std::move(values), e.keywords, scope);
        values.insert(values.begin(), target);
        return call("prim::CallFunction", values, {}, scope);
      }
      return callMethod(evaluate(callee.parts[0], scope), callee.text, std::move(values), e.keywords, scope);
    }
    if (name == "int" || name == "float" || name == "bool" || name == "str" || name == "complex") {
      name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
      return call("aten::" + name, values, e.keywords, scope);
    }
    return callNamed(name, std::move(values), e.keywords, scope);
  }

  Value callNamed(const std::string& name, std::vector<Value> values, const std::vector<std::string>& keywords,
                  Scope& scope) {
    if (const auto function = code_.functions.find(name); function != code_.functions.end())
      return inlined(function->second, std::move(values), keywords, scope.path, scope, name);
    if (name.starts_with("torch.")) return call("aten::" + name.substr(6), values, keywords, scope);
    if (name.starts_with("ops.")) {
      std::string op = name.substr(4);
      if (const size_t dot = op.find('.'); dot != std::string::npos) op.replace(dot, 1, "::");
      return call(op, values, keywords, scope);
    }
    return call("prim::" + name, values, keywords, scope);
  }

  Value callMethod(const Value& object, const std::string& method, std::vector<Value> values,
                   const std::vector<std::string>& keywords, Scope& scope) {
    if (object.kind == Value::Kind::Object) {
      const auto known = code_.classes.find(object.text);
      if (known != code_.classes.end()) {
        if (const auto function = known->second.methods.find(method); function != known->second.methods.end()) {
          values.insert(values.begin(), object);
          std::vector<std::string> names = keywords;
          names.insert(names.begin(), std::string());
          return inlined(function->second, std::move(values), names, object.path, scope, object.text + "." + method);
        }
      }
      ++graph_.unread;
    }
    values.insert(values.begin(), object);
    return call("prim::CallMethod." + method, values, {}, scope);
  }

  Value inlined(const ScriptFunction& function, std::vector<Value> values, const std::vector<std::string>& keywords,
                const std::string& path, Scope& caller, const std::string& name) {
    if (calls_ >= kMaxCalls) {
      ++graph_.unread;
      return call("prim::CallFunction", values, keywords, caller);
    }
    ++calls_;
    Scope scope;
    scope.path = path;
    scope.file = function.file;
    scope.line = function.line;
    for (size_t i = 0; i < function.parameters.size(); ++i)
      if (!function.defaults[i].text.empty() || !function.defaults[i].parts.empty())
        scope.variables[function.parameters[i]] = evaluate(function.defaults[i], scope);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i < keywords.size() && !keywords[i].empty())
        scope.variables[keywords[i]] = std::move(values[i]);
      else if (i < function.parameters.size())
        scope.variables[function.parameters[i]] = std::move(values[i]);
    }
    run(function.body, scope);
    --calls_;
    if (scope.returned.empty()) return textValue("None");
    if (scope.returned.size() == 1) return std::move(scope.returned[0]);
    return call("prim::Return", scope.returned, {}, caller);
  }

  const ScriptCode& code_;
  FxGraph graph_;
  std::unordered_map<std::string, int> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> inputs_;
  int calls_ = 0, depth_ = 0;
  int64_t steps_ = 0;
  bool full_ = false;
};

}  // namespace

FxGraph scriptGraph(const ScriptCode& code, const std::string& rootClass) { return Builder(code).build(rootClass); }

}  // namespace fusebox::importing
