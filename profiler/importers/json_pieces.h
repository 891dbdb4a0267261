#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fusebox::importing {

/// Takes an object or an array of a JSON text apart into its members or elements, without a tree and without recursion: each is a part of
/// the text, which the caller reads (or takes apart further) and forgets before it asks for the next. Knows enough of JSON to find where
/// a value ends; whether that is well formed is for who reads it to say.
class JsonPieces {
 public:
  explicit JsonPieces(std::string_view text);
  /// False behind the last piece, or where the text is no object or array any more.
  bool next();
  std::string_view key() const { return key_; }  ///< of an object's member, as it is written; escapes stay
  std::string_view value() const { return value_; }
  bool isObject() const { return close_ == '}'; }
  /// After next() said false: whether the closing bracket was there, and nothing behind it.
  bool isComplete() const { return complete_; }

 private:
  void skipSpace();
  bool takeString(std::string_view& out);
  bool takeValue();

  std::string_view text_;
  size_t at_ = 0;
  char close_ = 0;
  bool first_ = true, complete_ = false;
  std::string_view key_, value_;
};

/// Members of an object by name; `complete` says whether the text was one object from its first to its last letter.
std::map<std::string, std::string_view, std::less<>> jsonMembers(std::string_view object, bool& complete);

}  // namespace fusebox::importing
