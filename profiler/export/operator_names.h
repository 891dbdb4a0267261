#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace fusebox::exporting {

/// Operators that are not PyTorch's own ("acme::secret"), told apart by their namespace and numbered over a session, so
/// that it can be given away without their names. C++ namespaces of kernels that come with PyTorch and CUDA count as known.
class OperatorNames {
 public:
  /// Notes the operators that a text names, as "acme::secret.overload" or "torch.ops.acme.secret".
  void learn(std::string_view text);
  /// The text with "custom::op_N" for each of those that learn() has seen. `alsoWords`: their names by themselves too, as
  /// in "fused_secret_add_0", where no operator of PyTorch has the same name.
  std::string renamed(std::string_view text, bool alsoWords) const;
  bool empty() const { return custom_.empty(); }

 private:
  std::map<std::string, std::string, std::less<>> custom_;  ///< "acme::secret" -> "op_1"
  std::map<std::string, std::string, std::less<>> words_;   ///< "secret" -> "op_1", "acme" -> "custom"
  std::set<std::string, std::less<>> known_;                ///< names of PyTorch's operators
};

}  // namespace fusebox::exporting
