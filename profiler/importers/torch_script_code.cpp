#include "profiler/importers/text_lines.h"
#include "profiler/importers/torch_script_code.h"

#include <algorithm>
#include <optional>

#include "profiler/importers/torch_script_expression.h"

namespace fusebox::importing {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 20;
constexpr int kMaxBlocks = 100;

struct Line {
  std::string text;
  size_t indent = 0;
  int64_t number = 0;
};


/// Position of the first `wanted` outside brackets and strings from `from` on; npos if there is none. '\0': the depth
/// of brackets at the end goes to `open`.
size_t outside(std::string_view text, char wanted, size_t from = 0, int* open = nullptr) {
  int depth = 0;
  for (size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c; ++i)
        if (text[i] == '\\') ++i;
      continue;
    }
    if (c == '#' && wanted == '\0') break;
    if (depth == 0 && c == wanted && wanted != '\0') return i;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  if (open) *open = depth;
  return std::string_view::npos;
}

/// Lines with those inside brackets joined.
std::vector<Line> logicalLines(std::string_view text) {
  std::vector<Line> lines;
  Line current;
  int depth = 0;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view trimmed = trim(raw);
    if (trimmed.empty() || (trimmed[0] == '#' && depth == 0)) continue;
    if (depth == 0) current = {{}, raw.find_first_not_of(" \t"), number};
    if (current.text.size() < kMostLineBytes) current.text += (current.text.empty() ? "" : " ") + std::string(trimmed);
    int open = 0;
    outside(trimmed, '\0', 0, &open);
    depth = std::max(0, depth + open);
    if (depth == 0) lines.push_back(std::move(current));
  }
  if (depth > 0) lines.push_back(std::move(current));
  return lines;
}

/// Parts between commas outside brackets.
std::vector<std::string_view> splitList(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!trim(text).empty()) {
    const size_t comma = outside(text, ',');
    parts.push_back(trim(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

class CodeParser {
 public:
  CodeParser(const std::string& file, std::string_view text, ScriptCode& code)
      : file_(file), code_(code), lines_(logicalLines(text)) {
    std::string module = file.starts_with("code/") ? file.substr(5) : file;
    if (module.ends_with(".py")) module.resize(module.size() - 3);
    std::replace(module.begin(), module.end(), '/', '.');
    module_ = module;
  }

  void run() {
    while (at_ < lines_.size()) {
      const Line& line = lines_[at_];
      if (line.text.starts_with("class "))
        readClass();
      else if (line.text.starts_with("def "))
        function(code_.functions, module_ + ".");
      else
        ++at_, code_.unread += !line.text.starts_with("op_version_set");
    }
  }

 private:
  void readClass() {
    const Line head = lines_[at_++];
    const std::string_view rest = std::string_view(head.text).substr(6);
    const std::string name(trim(rest.substr(0, rest.find_first_of("(:"))));
    ScriptClass& made = code_.classes[module_ + "." + name];
    while (at_ < lines_.size() && lines_[at_].indent > head.indent) {
      if (lines_[at_].text.starts_with("def "))
        function(made.methods, "");
      else
        field(lines_[at_++].text, made);
    }
  }

  static void field(std::string_view text, ScriptClass& made) {
    const size_t colon = outside(text, ':'), equals = outside(text, '=');
    if (colon == std::string_view::npos || (equals != std::string_view::npos && equals < colon))
      return;  // __parameters__ = […]
    const std::string name(trim(text.substr(0, colon)));
    const std::string_view type =
        trim(text.substr(colon + 1, equals == std::string_view::npos ? equals : equals - colon - 1));
    made.fields[name] = type;
    if (equals != std::string_view::npos) made.constants[name] = trim(text.substr(equals + 1));
  }

  void function(std::unordered_map<std::string, ScriptFunction>& into, const std::string& prefix) {
    const Line head = lines_[at_++];
    const std::string_view text = head.text;
    const size_t open = text.find('(');
    const size_t close = text.rfind(')', text.rfind("->"));
    ScriptFunction made;
    made.file = file_;
    made.line = head.number;
    if (open != std::string_view::npos && close != std::string_view::npos && close > open) {
      for (const std::string_view part : splitList(text.substr(open + 1, close - open - 1))) {
        const size_t colon = outside(part, ':'), equals = outside(part, '=');
        made.parameters.emplace_back(trim(part.substr(0, std::min(colon, equals))));
        made.types.emplace_back(
            colon == std::string_view::npos
                ? std::string_view()
                : trim(part.substr(colon + 1, equals == std::string_view::npos ? equals : equals - colon - 1)));
        auto value = equals == std::string_view::npos ? std::nullopt : parseScriptExpression(part.substr(equals + 1));
        made.defaults.push_back(value ? std::move(*value) : ScriptExpression{});
      }
    } else {
      ++code_.unread;
    }
    made.body = block(head.indent, 0);
    into[prefix + std::string(trim(text.substr(4, open == std::string_view::npos ? open : open - 4)))] =
        std::move(made);
  }

  std::vector<ScriptStatement> block(size_t indent, int depth) {
    std::vector<ScriptStatement> body;
    while (at_ < lines_.size() && lines_[at_].indent > indent) {
      if (depth > kMaxBlocks) {
        ++at_, ++code_.unread;
        continue;
      }
      if (auto made = statement(depth))
        body.push_back(std::move(*made));
      else
        ++code_.unread;
    }
    return body;
  }

  std::optional<ScriptStatement> statement(int depth) {
    const Line line = lines_[at_++];
    std::string_view text = line.text;
    ScriptStatement made;
    made.line = line.number;
    using Kind = ScriptStatement::Kind;
    if (text == "pass" || text == "break" || text == "continue") return made;
    if (text == "return") return made.kind = Kind::Return, made;
    if (text.starts_with("return ")) return made.kind = Kind::Return, valued(std::move(made), text.substr(7));
    if (text.starts_with("if ") && text.ends_with(":"))
      return branch(std::move(made), text.substr(3, text.size() - 4), line.indent, depth);
    if (text.starts_with("while ") && text.ends_with(":"))
      return loop(std::move(made), text.substr(6, text.size() - 7), line.indent, depth);
    if (text.starts_with("for ") && text.ends_with(":")) {
      const size_t in = text.find(" in ");
      if (in == std::string_view::npos) return std::nullopt;
      made.targets.emplace_back(trim(text.substr(4, in - 4)));
      return loop(std::move(made), text.substr(in + 4, text.size() - in - 5), line.indent, depth);
    }
    if (text.starts_with("with ")) {  // a scope: its statements stand where it stands
      made.kind = Kind::If;
      made.value = {ScriptExpression::Kind::Literal, "True", {}, {}};
      made.body = block(line.indent, depth + 1);
      return made;
    }
    return assignment(std::move(made), text);
  }

  static std::optional<ScriptStatement> valued(ScriptStatement made, std::string_view text) {
    auto value = parseScriptExpression(text);
    if (!value) return std::nullopt;
    made.value = std::move(*value);
    return made;
  }

  std::optional<ScriptStatement> branch(ScriptStatement made, std::string_view condition, size_t indent, int depth) {
    made.kind = ScriptStatement::Kind::If;
    made.body = block(indent, depth + 1);
    if (at_ < lines_.size() && lines_[at_].indent == indent && lines_[at_].text == "else:") {
      ++at_;
      made.otherwise = block(indent, depth + 1);
    }
    return valued(std::move(made), condition);
  }

  std::optional<ScriptStatement> loop(ScriptStatement made, std::string_view over, size_t indent, int depth) {
    made.kind = ScriptStatement::Kind::Loop;
    made.body = block(indent, depth + 1);
    return valued(std::move(made), over);
  }

  /// "a = …", "a, b, = …", "a : T = …", or an expression for its effect.
  static std::optional<ScriptStatement> assignment(ScriptStatement made, std::string_view text) {
    size_t equals = outside(text, '=');
    if (equals != std::string_view::npos && equals + 1 < text.size() &&
        (text[equals + 1] == '=' ||
         std::string_view("<>!=").find(text[equals - (equals > 0)]) != std::string_view::npos))
      equals = std::string_view::npos;
    made.kind = equals == std::string_view::npos ? ScriptStatement::Kind::Evaluate : ScriptStatement::Kind::Assign;
    if (equals == std::string_view::npos) return valued(std::move(made), text);
    for (std::string_view target : splitList(text.substr(0, equals))) {
      target = trim(target.substr(0, outside(target, ':')));
      if (!target.empty()) made.targets.emplace_back(target);
    }
    if (made.targets.empty()) return std::nullopt;
    return valued(std::move(made), text.substr(equals + 1));
  }

  const std::string file_;
  ScriptCode& code_;
  std::vector<Line> lines_;
  std::string module_;
  size_t at_ = 0;
};

}  // namespace

void parseScriptCode(const std::string& file, std::string_view text, ScriptCode& into) {
  CodeParser(file, text, into).run();
}

}  // namespace fusebox::importing
