#include "profiler/importers/json_pieces.h"

#include <utility>

namespace fusebox::importing {

JsonPieces::JsonPieces(std::string_view text) : text_(text) {
  skipSpace();
  if (at_ == text_.size() || (text_[at_] != '{' && text_[at_] != '[')) return;
  close_ = text_[at_++] == '{' ? '}' : ']';
}

void JsonPieces::skipSpace() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
}

bool JsonPieces::takeString(std::string_view& out) {
  const size_t start = ++at_;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size()) return false;
  out = text_.substr(start, at_++ - start);
  return true;
}

bool JsonPieces::takeValue() {
  const size_t start = at_;
  size_t depth = 0;
  std::string_view ignored;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      if (!takeString(ignored)) return false;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    if (c == '}' || c == ']') --depth;
    ++at_;
  }
  if (depth > 0 || at_ == start) return false;
  value_ = text_.substr(start, at_ - start);
  return true;
}

bool JsonPieces::next() {
  if (close_ == 0) return false;
  skipSpace();
  if (at_ < text_.size() && text_[at_] == close_) {
    ++at_;
    skipSpace();
    complete_ = at_ == text_.size();
    at_ = text_.size();
    return false;
  }
  if (!std::exchange(first_, false)) {
    if (at_ == text_.size() || text_[at_] != ',') return false;
    ++at_;
    skipSpace();
  }
  if (isObject()) {
    if (at_ == text_.size() || text_[at_] != '"' || !takeString(key_)) return false;
    skipSpace();
    if (at_ == text_.size() || text_[at_] != ':') return false;
    ++at_;
    skipSpace();
  }
  return takeValue();
}

std::map<std::string, std::string_view, std::less<>> jsonMembers(std::string_view object, bool& complete) {
  std::map<std::string, std::string_view, std::less<>> out;
  JsonPieces pieces(object);
  while (pieces.next()) out[std::string(pieces.key())] = pieces.value();
  complete = pieces.isObject() && pieces.isComplete();
  return out;
}

}  // namespace fusebox::importing
