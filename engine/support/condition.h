#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/support/result.h"

namespace fusebox {

/// A question about named facts, in Python's spelling: `x.shape[0] > 32 and x.dtype == torch.float32`. It has `or`, `and`, `not`,
/// comparisons (also `in`), + - * / // %, attributes, subscripts, `len`, lists and literals; it calls nothing else and changes nothing.
/// A tensor is an object with dtype, shape and device; `.ndim` and `.numel` are computed.
class Condition {
 public:
  using Json = nlohmann::json;
  /// The fact of that name; none: nobody knows it.
  using Lookup = std::function<std::optional<Json>(const std::string& name)>;

  static constexpr size_t kLongest = 2000;  ///< characters

  /// InvalidArgument says what is wrong with the text, and where.
  static Result<Condition> parse(std::string_view text);
  /// InvalidArgument: a fact is missing, or of a kind that this cannot be asked of.
  Result<Json> value(const Lookup& facts) const;
  /// The value's truth, as Python has it.
  Result<bool> holds(const Lookup& facts) const;
  const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

/// "Float" → "float32": the types of libtorch's C++ as Python names them; others as they are.
std::string dtypeInPython(std::string_view name);

}  // namespace fusebox
