#include "profiler/importers/shape_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "profiler/importers/text_lines.h"

namespace fusebox::importing {
namespace {

constexpr size_t kLongest = 20'000;

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::optional<int64_t> wholeNumber(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

/// Position of the bracket that closes the one at `open`; npos if none does.
size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if ((text[i] == ')' || text[i] == ']') && --depth == 0) return i;
  }
  return std::string_view::npos;
}

/// Without brackets around the whole.
std::string_view bare(std::string_view text) {
  text = trim(text);
  while (text.size() > 1 && text.front() == '(' && closing(text, 0) == text.size() - 1) text = trim(text.substr(1, text.size() - 2));
  return text;
}

/// The two arguments of a call whose text between the brackets is `inside`; nullopt if it has another number of them.
std::optional<std::pair<std::string_view, std::string_view>> twoArguments(std::string_view inside) {
  int depth = 0;
  size_t comma = std::string_view::npos;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '(' || inside[i] == '[') ++depth;
    if (inside[i] == ')' || inside[i] == ']') --depth;
    if (inside[i] != ',' || depth != 0) continue;
    if (comma != std::string_view::npos) return std::nullopt;
    comma = i;
  }
  if (comma == std::string_view::npos) return std::nullopt;
  return std::pair(trim(inside.substr(0, comma)), trim(inside.substr(comma + 1)));
}

/// Where the one comparison outside of all brackets is, and how long; nullopt if there is none or several.
std::optional<std::pair<size_t, std::string_view>> comparison(std::string_view text) {
  constexpr std::string_view kOperators[] = {" <= ", " >= ", " == ", " != ", " < ", " > "};
  std::optional<std::pair<size_t, std::string_view>> found;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (depth != 0 || text[i] != ' ') continue;
    for (const auto& one : kOperators) {
      if (!text.substr(i).starts_with(one)) continue;
      if (found) return std::nullopt;
      found = {i, one};
    }
  }
  return found;
}

/// Without blanks, and a product of words with its factors in order.
std::string canonical(std::string_view expression) {
  std::string plain;
  for (const char c : expression) {
    if (c != ' ') plain += c;
  }
  if (plain.find('*') == std::string::npos || std::any_of(plain.begin(), plain.end(), [](char c) { return !isWord(c) && c != '*'; })) return plain;
  std::vector<std::string> factors;
  for (size_t at = 0; at <= plain.size();) {
    const size_t end = std::min(plain.find('*', at), plain.size());
    factors.push_back(plain.substr(at, end - at));
    at = end + 1;
  }
  std::sort(factors.begin(), factors.end());
  std::string out;
  for (const auto& factor : factors) out.append(out.empty() ? "" : "*").append(factor);
  return out;
}

}  // namespace

std::string pythonExpression(std::string_view text) {
  struct Call {
    std::string_view name, infix, instead;
  };
  static constexpr Call kCalls[] = {{"Mod(", " % ", ""}, {"PythonMod(", " % ", ""}, {"FloorDiv(", " // ", ""}, {"Max(", "", "max("}, {"Min(", "", "min("}};
  std::string out(bare(text.substr(0, kLongest)));
  for (const auto& call : kCalls) {
    for (size_t at = out.find(call.name); at != std::string::npos; at = out.find(call.name, at + 1)) {
      if (at > 0 && isWord(out[at - 1])) continue;
      if (!call.instead.empty()) {
        out.replace(at, call.name.size(), call.instead);
        continue;
      }
      const size_t open = at + call.name.size() - 1, close = closing(out, open);
      if (close == std::string::npos) break;
      const auto arguments = twoArguments(std::string_view(out).substr(open + 1, close - open - 1));
      if (!arguments) continue;
      std::string instead = "(";
      instead.append(arguments->first).append(call.infix).append(arguments->second).append(")");
      out.replace(at, close + 1 - at, instead);
    }
  }
  return std::string(bare(out));
}

bool sameRelation(const RelationText& a, const RelationText& b) {
  if (a.op != b.op) return false;
  const std::string left = canonical(a.left), right = canonical(a.right), otherLeft = canonical(b.left), otherRight = canonical(b.right);
  if (left == otherLeft && right == otherRight) return true;
  return (a.op == "==" || a.op == "!=") && left == otherRight && right == otherLeft;
}

RelationText parseRelation(std::string_view text) {
  text = bare(text.substr(0, kLongest));
  for (const auto& [name, op] : {std::pair{"Eq(", "=="}, std::pair{"Ne(", "!="}}) {
    if (!text.starts_with(name) || closing(text, 2) != text.size() - 1) continue;
    if (const auto sides = twoArguments(text.substr(3, text.size() - 4)))
      return {pythonExpression(sides->first), op, pythonExpression(sides->second)};
  }
  const bool joined = text.find(" & ") != text.npos || text.find(" | ") != text.npos || text.find(" and ") != text.npos || text.find(" or ") != text.npos;
  if (const auto found = joined ? std::nullopt : comparison(text)) {
    std::string left = pythonExpression(text.substr(0, found->first));
    std::string right = pythonExpression(text.substr(found->first + found->second.size()));
    std::string op(trim(found->second));
    if (op[0] == '>') {
      std::swap(left, right);
      op[0] = '<';
    }
    return {std::move(left), std::move(op), std::move(right)};
  }
  return {pythonExpression(text), "==", "True"};
}

RangeText parseRange(std::string_view text) {
  text = trim(text);
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return {};
  const auto sides = twoArguments(text.substr(1, text.size() - 2));
  if (!sides) return {};
  return {wholeNumber(sides->first), wholeNumber(sides->second)};
}

BoundText parseBound(std::string_view code) {
  BoundText bound;
  code = trim(code);
  constexpr std::string_view kLess = " <= ";
  if (const size_t first = code.find(kLess); first != code.npos) {
    if (const auto lower = wholeNumber(code.substr(0, first))) {
      bound.range.lower = lower;
      code = code.substr(first + kLess.size());
    }
  }
  if (const size_t last = code.rfind(kLess); last != code.npos) {
    const auto upper = wholeNumber(code.substr(last + kLess.size()));
    if (!upper) return {};
    bound.range.upper = upper;
    code = code.substr(0, last);
  }
  if ((!bound.range.lower && !bound.range.upper) || comparison(code)) return {};
  bound.of = code;
  return bound;
}

std::string_view symbolKind(std::string_view name, std::string_view source) {
  if (name.starts_with("u") || name.starts_with("zu")) return "unbacked";
  if (name.starts_with("zf")) return "float";
  if (source.ends_with(".storage_offset()")) return "offset";
  const size_t dot = source.rfind('.');
  if (dot != source.npos && source.ends_with(']')) {
    if (source.substr(dot).starts_with(".size()[")) return "size";
    if (source.substr(dot).starts_with(".stride()[")) return "stride";
  }
  return "int";
}

std::vector<std::string> symbolsIn(std::string_view expression) {
  std::vector<std::string> out;
  for (size_t i = 0; i < expression.size();) {
    if (expression[i] == '\'' || expression[i] == '"') {
      const size_t end = expression.find(expression[i], i + 1);
      if (end == expression.npos) break;
      i = end + 1;
      continue;
    }
    if (!isWord(expression[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < expression.size() && isWord(expression[end])) ++end;
    const std::string_view word = expression.substr(i, end - i);
    i = end;
    const size_t digits = word.find_first_of("0123456789");
    if (digits == word.npos || word.find_first_not_of("0123456789", digits) != word.npos) continue;
    const std::string_view letters = word.substr(0, digits);
    if (letters != "s" && letters != "u" && letters != "zf" && letters != "zuf") continue;
    if (std::find(out.begin(), out.end(), word) == out.end()) out.emplace_back(word);
  }
  return out;
}

std::string_view ownerOf(std::string_view source) {
  const size_t dot = source.rfind('.');
  if (dot == source.npos) return source;
  for (const std::string_view geometry : {".size()", ".stride()", ".storage_offset()"}) {
    if (source.substr(dot).starts_with(geometry)) return source.substr(0, dot);
  }
  return source;
}

std::string withoutScopes(std::string_view code) {
  std::string out;
  for (size_t i = 0; i < code.size();) {
    const std::string_view rest = code.substr(i);
    if ((rest.starts_with("L['") || rest.starts_with("G['")) && (i == 0 || !isWord(code[i - 1]))) {
      const size_t end = rest.find("']", 3);
      if (end != rest.npos) {
        out += rest.substr(3, end - 3);
        i += end + 2;
        continue;
      }
    }
    out += code[i++];
  }
  return out;
}

}  // namespace fusebox::importing
