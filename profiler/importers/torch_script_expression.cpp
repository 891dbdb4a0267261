#include "profiler/importers/torch_script_expression.h"

#include <array>
#include <cctype>

namespace fusebox::importing {
namespace {

constexpr int kMaxDepth = 200;
/// Chains nest to the left (a.b.c, a + b + c) without going deeper here: what follows their first few links is counted
/// over the whole expression.
constexpr int kFreeLinks = 4, kMaxLinks = 1000;

/// Not an expression; on its way out.
struct NoExpression {};

bool isNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool isNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Recursive descent over Python's expression grammar, as far as TorchScript prints it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ScriptExpression whole() {
    ScriptExpression e = commaList();
    space();
    if (at_ != text_.size()) throw NoExpression{};
    return e;
  }

 private:
  using Kind = ScriptExpression::Kind;

  struct Depth {
    explicit Depth(int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth) throw NoExpression{};
    }
    ~Depth() { --depth_; }
    int& depth_;
  };

  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const bool isWord = isNameStart(token[0]);
    if (isWord && at_ + token.size() < text_.size() && isNamePart(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) throw NoExpression{};
  }
  bool peek(std::string_view token) {
    const size_t before = at_;
    const bool found = take(token);
    at_ = before;
    return found;
  }

  void link(int& count) {
    if (++count > kFreeLinks && ++links_ > kMaxLinks) throw NoExpression{};
  }

  /// "a, b, " is a tuple, "a" is itself.
  ScriptExpression commaList() {
    ScriptExpression first = ternary();
    if (!peek(",")) return first;
    ScriptExpression tuple{Kind::Tuple, {}, {}, {}};
    tuple.parts.push_back(std::move(first));
    while (take(",")) {
      space();
      if (at_ == text_.size() || text_[at_] == ')' || text_[at_] == ']') break;
      tuple.parts.push_back(ternary());
    }
    return tuple;
  }

  ScriptExpression ternary() {
    const Depth deeper(depth_);
    ScriptExpression e = binary(0);
    if (!take("if")) return e;
    ScriptExpression condition = binary(0);
    need("else");
    ScriptExpression otherwise = ternary();
    return other("if", list(std::move(condition), std::move(e), std::move(otherwise)));
  }

  static ScriptExpression other(std::string_view what, std::vector<ScriptExpression> parts) {
    return {Kind::Other, std::string(what), std::move(parts), {}};
  }

  /// Operators of one level, the loosest first; longer ones before those that begin them.
  ScriptExpression binary(size_t level) {
    static constexpr std::array<std::array<std::string_view, 10>, 7> kLevels{
        {{"or"},
         {"and"},
         {"==", "!=", "<=", ">=", "<", ">", "is not", "is", "not in", "in"},
         {"|", "^", "&"},
         {"<<", ">>"},
         {"+", "-"},
         {"//", "*", "/", "%", "@"}}};
    if (level == kLevels.size()) return unary();
    ScriptExpression left = binary(level + 1);
    int count = 0;
    for (bool found = true; found;) {
      found = false;
      for (const std::string_view token : kLevels[level]) {
        if (token.empty() || peek("**") || !take(token)) continue;
        link(count);
        ScriptExpression right = binary(level + 1);
        left = other(token, list(std::move(left), std::move(right)));
        found = true;
        break;
      }
    }
    return left;
  }

  ScriptExpression unary() {
    const Depth deeper(depth_);
    for (const std::string_view token : {"-", "+", "~", "not"}) {
      if (!take(token)) continue;
      ScriptExpression operand = unary();
      if (token == "-" && operand.kind == Kind::Literal) return {Kind::Literal, "-" + operand.text, {}, {}};
      return other(token, list(std::move(operand)));
    }
    ScriptExpression base = postfix(primary());
    if (!take("**")) return base;
    ScriptExpression exponent = unary();
    return other("**", list(std::move(base), std::move(exponent)));
  }

  ScriptExpression postfix(ScriptExpression e) {
    for (int count = 0;; link(count)) {
      if (take(".")) {
        e = {Kind::Attribute, name(), list(std::move(e)), {}};
      } else if (take("(")) {
        e = call(std::move(e));
      } else if (take("[")) {
        ScriptExpression index = subscript();
        need("]");
        ScriptExpression whole{Kind::Subscript, {}, list(std::move(e)), {}};
        whole.parts.push_back(std::move(index));
        e = std::move(whole);
      } else {
        return e;
      }
    }
  }
  /// Moved, where braces would copy whole trees.
  template <class... Parts>
  static std::vector<ScriptExpression> list(Parts&&... parts) {
    std::vector<ScriptExpression> made;
    made.reserve(sizeof...(parts));
    (made.push_back(std::move(parts)), ...);
    return made;
  }

  ScriptExpression subscript() {
    std::vector<ScriptExpression> parts;
    bool isSlice = false;
    while (!peek("]")) {
      if (take(":"))
        isSlice = true;
      else
        parts.push_back(commaList());
    }
    if (!isSlice && parts.size() == 1) return std::move(parts[0]);
    return other("slice", std::move(parts));
  }

  ScriptExpression call(ScriptExpression callee) {
    ScriptExpression e{Kind::Call, {}, list(std::move(callee)), {}};
    while (!take(")")) {
      std::string keyword;
      const size_t before = at_;
      space();
      if (at_ < text_.size() && isNameStart(text_[at_])) {
        keyword = name();
        if (!take("=") || peek("=")) keyword.clear(), at_ = before;
      }
      e.parts.push_back(ternary());
      e.keywords.push_back(std::move(keyword));
      if (!take(",") && !peek(")")) throw NoExpression{};
    }
    return e;
  }

  std::string name() {
    space();
    const size_t start = at_;
    if (at_ == text_.size() || !isNameStart(text_[at_])) throw NoExpression{};
    while (at_ < text_.size() && isNamePart(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  ScriptExpression primary() {
    space();
    if (at_ == text_.size()) throw NoExpression{};
    const char c = text_[at_];
    if (c == '(' || c == '[' || c == '{') return bracket(c);
    if (c == '"' || c == '\'') return quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return numeral();
    std::string word = name();
    const bool isLiteral = word == "True" || word == "False" || word == "None" || word == "inf" || word == "nan";
    return {isLiteral ? Kind::Literal : Kind::Name, std::move(word), {}, {}};
  }

  ScriptExpression bracket(char open) {
    const Depth deeper(depth_);
    ++at_;
    const std::string_view close = open == '(' ? ")" : open == '[' ? "]" : "}";
    ScriptExpression e{open == '['   ? Kind::List
                       : open == '(' ? Kind::Tuple
                                     : Kind::Other,
                       open == '{' ? "dict" : "",
                       {},
                       {}};
    bool comma = false;
    while (!take(close)) {
      e.parts.push_back(ternary());
      if (open == '{' && take(":")) e.parts.push_back(ternary());
      if (take(","))
        comma = true;
      else if (!peek(close))
        throw NoExpression{};
    }
    if (open == '(' && e.parts.size() == 1 && !comma) {
      ScriptExpression inner = std::move(e.parts[0]);
      return inner;
    }
    return e;
  }

  ScriptExpression quoted(char quote) {
    const size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) throw NoExpression{};
    ++at_;
    return {Kind::Literal, std::string(text_.substr(start, at_ - start)), {}, {}};
  }

  ScriptExpression numeral() {
    const size_t start = at_;
    while (at_ < text_.size() &&
           (isNamePart(text_[at_]) || text_[at_] == '.' ||
            ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))))
      ++at_;
    return {Kind::Literal, std::string(text_.substr(start, at_ - start)), {}, {}};
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0, links_ = 0;
};

}  // namespace

std::optional<ScriptExpression> parseScriptExpression(std::string_view text) {
  try {
    return Parser(text).whole();
  } catch (const NoExpression&) {
    return std::nullopt;
  }
}

}  // namespace fusebox::importing
