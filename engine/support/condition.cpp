#include "engine/support/condition.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace fusebox {
namespace {

using nlohmann::json;

constexpr int kDeepest = 40;
constexpr size_t kLongestText = 100'000;  // what + may make of texts and lists

/// What ends parsing or evaluation; stays inside this file.
struct Refused {
  std::string why;
};

[[noreturn]] void refuse(std::string why) { throw Refused{std::move(why)}; }

}  // namespace

struct Condition::Node {
  enum class Kind : uint8_t { Literal, Name, List, Attribute, Item, Length, Not, Negative, And, Or, Compare, Binary };
  Kind kind = Kind::Literal;
  Json literal;
  std::string word;                 ///< name, attribute or operator
  std::vector<Node> parts;          ///< operands; of a comparison all of its chain
  std::vector<std::string> chain;   ///< operators of a comparison
};

namespace {

using Node = Condition::Node;
using Kind = Node::Kind;

struct Word {
  enum class Kind : uint8_t { End, Name, Number, Text, Sign } kind = Kind::End;
  std::string text;
  json value;
  size_t at = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { next(); }

  Node whole() {
    Node node = any(0);
    if (word_.kind != Word::Kind::End) refuse("\"" + word_.text + "\" is not expected at character " + std::to_string(word_.at + 1));
    return node;
  }

 private:
  [[noreturn]] void wanted(const std::string& what) const {
    refuse(what + " is missing at " + (word_.kind == Word::Kind::End ? "the end" : "\"" + word_.text + "\""));
  }

  void next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    word_ = Word{};
    word_.at = at_;
    if (at_ >= text_.size()) return;
    const char c = text_[at_];
    const auto isDigit = [](char d) { return d >= '0' && d <= '9'; };
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80)) {
      size_t end = at_;
      while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' || (text_[end] & 0x80))) ++end;
      take(Word::Kind::Name, end);
    } else if (isDigit(c) || (c == '.' && at_ + 1 < text_.size() && isDigit(text_[at_ + 1]))) {
      number();
    } else if (c == '"' || c == '\'') {
      const size_t close = text_.find(c, at_ + 1);
      if (close == std::string_view::npos) refuse("a text that begins at character " + std::to_string(at_ + 1) + " does not end");
      word_.value = std::string(text_.substr(at_ + 1, close - at_ - 1));
      take(Word::Kind::Text, close + 1);
    } else {
      for (const std::string_view sign : {"==", "!=", "<=", ">=", "//"}) {
        if (text_.substr(at_).starts_with(sign)) return take(Word::Kind::Sign, at_ + 2);
      }
      if (std::string_view("<>+-*/%()[].,").find(c) == std::string_view::npos) refuse(std::string("\"") + c + "\" is not understood at character " + std::to_string(at_ + 1));
      take(Word::Kind::Sign, at_ + 1);
    }
  }
  void take(Word::Kind kind, size_t end) {
    word_.kind = kind;
    word_.text = text_.substr(at_, end - at_);
    at_ = end;
  }
  void number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    int64_t whole = 0;
    double real = 0;
    const auto asWhole = std::from_chars(begin, end, whole);
    const auto asReal = std::from_chars(begin, end, real);
    if (asReal.ec == std::errc() && (asWhole.ec != std::errc() || asReal.ptr > asWhole.ptr)) {
      word_.value = real;
      take(Word::Kind::Number, static_cast<size_t>(asReal.ptr - text_.data()));
    } else if (asWhole.ec == std::errc()) {
      word_.value = whole;
      take(Word::Kind::Number, static_cast<size_t>(asWhole.ptr - text_.data()));
    } else {
      refuse("a number at character " + std::to_string(at_ + 1) + " is too large");
    }
  }

  bool isWord(std::string_view text) const { return (word_.kind == Word::Kind::Name || word_.kind == Word::Kind::Sign) && word_.text == text; }
  bool skip(std::string_view text) {
    if (!isWord(text)) return false;
    next();
    return true;
  }
  void need(std::string_view sign) {
    if (!skip(sign)) wanted("\"" + std::string(sign) + "\"");
  }

  /// `or`, the loosest.
  Node any(int depth) {
    if (depth > kDeepest) refuse("it is nested too deeply");
    Node node = all(depth + 1);
    while (skip("or")) node = joined(Kind::Or, std::move(node), all(depth + 1));
    return node;
  }
  Node all(int depth) {
    Node node = negated(depth);
    while (skip("and")) node = joined(Kind::And, std::move(node), negated(depth));
    return node;
  }
  Node negated(int depth) {
    if (depth > kDeepest) refuse("it is nested too deeply");
    if (!skip("not")) return comparison(depth);
    Node node;
    node.kind = Kind::Not;
    node.parts.push_back(negated(depth + 1));
    return node;
  }
  Node comparison(int depth) {
    Node node = sum(depth);
    Node chain;
    chain.kind = Kind::Compare;
    for (;;) {
      std::string sign;
      for (const char* known : {"==", "!=", "<", "<=", ">", ">=", "in"})
        if (isWord(known)) sign = known;
      const bool isNotIn = sign.empty() && isWord("not");
      if (isNotIn) sign = "not in";
      if (sign.empty()) break;
      next();
      if (isNotIn) need("in");
      if (chain.parts.empty()) chain.parts.push_back(std::move(node));
      chain.parts.push_back(sum(depth));
      chain.chain.push_back(std::move(sign));
    }
    return chain.parts.empty() ? node : chain;
  }
  Node sum(int depth) {
    Node node = product(depth);
    while (isWord("+") || isWord("-")) node = calculated(std::move(node), depth, &Parser::product);
    return node;
  }
  Node product(int depth) {
    Node node = signedOne(depth);
    while (isWord("*") || isWord("/") || isWord("//") || isWord("%")) node = calculated(std::move(node), depth, &Parser::signedOne);
    return node;
  }
  Node signedOne(int depth) {
    if (depth > kDeepest) refuse("it is nested too deeply");
    if (!skip("-")) return reached(depth);
    Node node;
    node.kind = Kind::Negative;
    node.parts.push_back(signedOne(depth + 1));
    return node;
  }
  Node calculated(Node left, int depth, Node (Parser::*operand)(int)) {
    Node node;
    node.kind = Kind::Binary;
    node.word = word_.text;
    next();
    node.parts.push_back(std::move(left));
    node.parts.push_back((this->*operand)(depth + 1));
    return node;
  }
  /// A value with its attributes and subscripts.
  Node reached(int depth) {
    Node node = one(depth);
    for (;;) {
      Node outer;
      if (skip(".")) {
        if (word_.kind != Word::Kind::Name) wanted("the name of an attribute");
        outer.kind = Kind::Attribute;
        outer.word = word_.text;
        next();
        outer.parts.push_back(std::move(node));
      } else if (skip("[")) {
        outer.kind = Kind::Item;
        outer.parts.push_back(std::move(node));
        outer.parts.push_back(any(depth + 1));
        need("]");
      } else {
        return node;
      }
      node = std::move(outer);
    }
  }
  Node one(int depth) {
    Node node;
    if (word_.kind == Word::Kind::Number || word_.kind == Word::Kind::Text) {
      node.literal = word_.value;
      next();
      return node;
    }
    if (skip("(")) {
      bool isTuple = isWord(")");
      Node list = listed(")", depth, &isTuple);
      return isTuple ? list : std::move(list.parts[0]);
    }
    if (skip("[")) return listed("]", depth, nullptr);
    if (word_.kind != Word::Kind::Name || isWord("and") || isWord("or") || isWord("in") || isWord("not")) wanted("a value");
    const std::string name = word_.text;
    next();
    if (name == "True" || name == "False") {
      node.literal = name == "True";
    } else if (name == "None") {
      node.literal = nullptr;
    } else if (isWord("(")) {
      if (name != "len") refuse("\"" + name + "\" cannot be called: only len(…) can");
      next();
      node.kind = Kind::Length;
      node.parts.push_back(any(depth + 1));
      need(")");
    } else {
      node.kind = Kind::Name;
      node.word = name;
    }
    return node;
  }
  Node listed(std::string_view close, int depth, bool* isTuple) {
    Node node;
    node.kind = Kind::List;
    while (!skip(close)) {
      node.parts.push_back(any(depth + 1));
      if (skip(",")) {
        if (isTuple) *isTuple = true;
      } else if (!isWord(close)) {
        wanted("\"" + std::string(close) + "\"");
      }
    }
    return node;
  }
  static Node joined(Kind kind, Node left, Node right) {
    Node node;
    node.kind = kind;
    node.parts.push_back(std::move(left));
    node.parts.push_back(std::move(right));
    return node;
  }

  std::string_view text_;
  size_t at_ = 0;
  Word word_;
};

bool isTrue(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  if (value.is_array()) return !value.empty();
  if (value.is_object() && value.contains("shape")) refuse("a tensor is neither true nor false: ask for its shape or dtype");
  return !value.is_null();
}

const char* kindOf(const json& value) {
  if (value.is_object()) return value.contains("shape") ? "a tensor" : "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a text";
  if (value.is_null()) return "None";
  return value.is_boolean() ? "a truth value" : "a number";
}

bool isNumber(const json& v) { return v.is_number() || v.is_boolean(); }
double realOf(const json& v) { return v.is_boolean() ? (v.get<bool>() ? 1.0 : 0.0) : v.get<double>(); }
json plain(const json& v) { return v.is_boolean() ? json(static_cast<int64_t>(v.get<bool>())) : v; }

bool equal(const json& a, const json& b) {
  if (isNumber(a) && isNumber(b)) return plain(a) == plain(b);
  if (a.is_object() || b.is_object()) {
    if (!(a.is_null() || b.is_null())) refuse(std::string("what ") + kindOf(a.is_object() ? a : b) + " equals is not known: ask for one of its attributes");
    return false;
  }
  return a == b;
}

bool compared(const std::string& sign, const json& a, const json& b) {
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  if (sign == "in" || sign == "not in") {
    bool found = false;
    if (a.is_string() && b.is_string()) {
      found = b.get_ref<const std::string&>().find(a.get_ref<const std::string&>()) != std::string::npos;
    } else if (b.is_array()) {
      for (const json& element : b) found |= equal(a, element);
    } else {
      refuse(std::string("nothing is in ") + kindOf(b));
    }
    return found == (sign == "in");
  }
  int order = 0;  // of a before b
  if (isNumber(a) && isNumber(b)) {
    const json x = plain(a), y = plain(b);
    if ((x.is_number_float() && std::isnan(realOf(x))) || (y.is_number_float() && std::isnan(realOf(y)))) return false;
    order = x < y ? -1 : y < x ? 1 : 0;
  } else if ((a.is_string() && b.is_string()) || (a.is_array() && b.is_array())) {
    order = a < b ? -1 : b < a ? 1 : 0;
  } else {
    refuse(std::string(kindOf(a)) + " and " + kindOf(b) + " have no order");
  }
  if (sign == "<") return order < 0;
  if (sign == "<=") return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

int64_t floored(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

json calculated(const std::string& sign, const json& a, const json& b) {
  if (sign == "+" && a.is_string() && b.is_string()) {
    if (a.get_ref<const std::string&>().size() + b.get_ref<const std::string&>().size() > kLongestText) refuse("the text would be too long");
    return a.get<std::string>() + b.get<std::string>();
  }
  if (!isNumber(a) || !isNumber(b)) refuse(std::string(kindOf(a)) + " " + sign + " " + kindOf(b) + " is not understood");
  const json x = plain(a), y = plain(b);
  const bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && realOf(y) == 0) refuse("it divides by zero");
  if (x.is_number_integer() && y.is_number_integer() && sign != "/") {
    const auto i = x.get<int64_t>(), j = y.get<int64_t>();
    int64_t result = 0;
    bool overflows = false;
    if (sign == "+") overflows = __builtin_add_overflow(i, j, &result);
    else if (sign == "-") overflows = __builtin_sub_overflow(i, j, &result);
    else if (sign == "*") overflows = __builtin_mul_overflow(i, j, &result);
    else if (i == INT64_MIN && j == -1) overflows = true;
    else result = sign == "//" ? floored(i, j) : i - floored(i, j) * j;
    if (overflows) refuse("a number becomes too large");
    return result;
  }
  const double i = realOf(x), j = realOf(y);
  if (sign == "+") return i + j;
  if (sign == "-") return i - j;
  if (sign == "*") return i * j;
  if (sign == "/") return i / j;
  return sign == "//" ? std::floor(i / j) : i - std::floor(i / j) * j;
}

json attribute(const json& object, const std::string& name) {
  if (object.is_object()) {
    const bool isTensor = object.contains("shape");
    if (isTensor && name == "ndim") return static_cast<int64_t>(object["shape"].size());
    if (isTensor && (name == "numel" || name == "size")) {
      if (name == "size") return object["shape"];
      double count = 1;
      for (const json& size : object["shape"]) count *= size.is_number() ? size.get<double>() : NAN;
      if (!(count < 9e18)) refuse("how many elements there are is not known");
      return static_cast<int64_t>(count);
    }
    if (const auto found = object.find(name); found != object.end()) return *found;
  }
  refuse(std::string(kindOf(object)) + " has no attribute \"" + name + "\" that a stop knows");
}

json item(const json& list, const json& index) {
  if (list.is_object() && index.is_string()) return attribute(list, index.get<std::string>());
  if (!list.is_array() && !list.is_string()) refuse(std::string(kindOf(list)) + " has no elements that a stop knows");
  if (!index.is_number_integer()) refuse("an index is a whole number");
  const auto size = static_cast<int64_t>(list.is_array() ? list.size() : list.get_ref<const std::string&>().size());
  int64_t at = index.get<int64_t>();
  if (at < 0 && at >= -size) at += size;
  if (at < 0 || at >= size) refuse("index " + index.dump() + " lies outside of " + std::to_string(size) + " elements");
  if (list.is_array()) return list[static_cast<size_t>(at)];
  return std::string(1, list.get_ref<const std::string&>()[static_cast<size_t>(at)]);
}

json evaluated(const Node& node, const Condition::Lookup& facts) {
  const auto part = [&](size_t i) { return evaluated(node.parts[i], facts); };
  switch (node.kind) {
    case Kind::Literal: return node.literal;
    case Kind::Name: {
      auto known = facts(node.word);
      if (!known) refuse("nothing is called \"" + node.word + "\" here");
      return std::move(*known);
    }
    case Kind::List: {
      json list = json::array();
      for (const Node& element : node.parts) list.push_back(evaluated(element, facts));
      return list;
    }
    case Kind::Attribute: {
      const Node& of = node.parts[0];
      if (of.kind == Kind::Name && of.word == "torch") return node.word;  // torch.float32
      return attribute(part(0), node.word);
    }
    case Kind::Item: return item(part(0), part(1));
    case Kind::Length: {
      const json list = part(0);
      if (list.is_object() && list.contains("shape") && !list["shape"].empty()) return list["shape"][0];
      if (!list.is_array() && !list.is_string()) refuse(std::string(kindOf(list)) + " has no length that a stop knows");
      return static_cast<int64_t>(list.is_array() ? list.size() : list.get_ref<const std::string&>().size());
    }
    case Kind::Not: return !isTrue(part(0));
    case Kind::Negative: return calculated("-", 0, part(0));
    case Kind::And: {
      json left = part(0);
      return isTrue(left) ? part(1) : left;
    }
    case Kind::Or: {
      json left = part(0);
      return isTrue(left) ? left : part(1);
    }
    case Kind::Compare: {
      json left = part(0);
      for (size_t i = 0; i < node.chain.size(); ++i) {
        json right = part(i + 1);
        if (!compared(node.chain[i], left, right)) return false;
        left = std::move(right);
      }
      return true;
    }
    case Kind::Binary: return calculated(node.word, part(0), part(1));
  }
  return {};
}

}  // namespace

Result<Condition> Condition::parse(std::string_view text) {
  if (text.size() > kLongest) return fail(ErrorCode::InvalidArgument, "the condition is too long");
  try {
    Condition made;
    made.text_ = text;
    made.root_ = std::make_shared<const Node>(Parser(text).whole());
    return made;
  } catch (const Refused& refused) {
    return fail(ErrorCode::InvalidArgument, refused.why);
  }
}

Result<nlohmann::json> Condition::value(const Lookup& facts) const {
  try {
    return evaluated(*root_, facts);
  } catch (const Refused& refused) {
    return fail(ErrorCode::InvalidArgument, refused.why);
  } catch (const Json::exception& error) {
    return fail(ErrorCode::InvalidArgument, "a fact is not what its name says", error.what());
  }
}

Result<bool> Condition::holds(const Lookup& facts) const {
  const auto made = value(facts);
  if (!made) return tl::unexpected(made.error());
  try {
    return isTrue(*made);
  } catch (const Refused& refused) {
    return fail(ErrorCode::InvalidArgument, refused.why);
  }
}

std::string dtypeInPython(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kNames{{{"Float", "float32"},
                                                                                       {"Double", "float64"},
                                                                                       {"Half", "float16"},
                                                                                       {"BFloat16", "bfloat16"},
                                                                                       {"Long", "int64"},
                                                                                       {"Int", "int32"},
                                                                                       {"Short", "int16"},
                                                                                       {"Char", "int8"},
                                                                                       {"Byte", "uint8"},
                                                                                       {"Bool", "bool"},
                                                                                       {"ComplexFloat", "complex64"},
                                                                                       {"ComplexDouble", "complex128"},
                                                                                       {"ComplexHalf", "complex32"},
                                                                                       {"UInt16", "uint16"}}};
  for (const auto& [cpp, python] : kNames)
    if (cpp == name) return std::string(python);
  return std::string(name);
}

}  // namespace fusebox
