#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace fusebox::trace {

/// What the program does with a tensor while this lives, in its author's words. A break says so where an operator that nobody wrote down
/// (item() behind bool(tensor)) needs data for it.
class DataUse {
 public:
  enum class Form : bool { Words, Call };
  /// `text` must outlive this: words, or the name of what is called with the tensor.
  DataUse(std::string_view text, Form form) : text_(text), form_(form), before_(std::exchange(current(), this)) {}
  ~DataUse() { current() = before_; }
  DataUse(const DataUse&) = delete;

  /// Empty: an operator of the program itself.
  static std::string words() {
    const DataUse* use = current();
    if (!use || use->text_.empty()) return {};
    return std::string(use->text_) + (use->form_ == Form::Call ? "(tensor)" : "");
  }

 private:
  static DataUse*& current() {
    thread_local DataUse* use = nullptr;
    return use;
  }

  std::string_view text_;
  Form form_;
  DataUse* before_;
};

}  // namespace fusebox::trace
