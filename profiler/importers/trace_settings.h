#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace fusebox::importing {

/// PyTorch's settings as the records of compilations quote them, by the names of its configuration modules:
/// `NAME` of torch._dynamo.config, `inductor.NAME` of torch._inductor.config.
class TraceSettings {
 public:
  /// A compilation's metrics. What is no text, number or truth value, and what PyTorch keeps to itself (`_name`), is left out.
  void note(const nlohmann::json& metrics);
  /// What compilations had a setting at: "True", or "False, True" where they differ.
  std::map<std::string, std::string> values() const;

 private:
  std::map<std::string, std::string> last_;  ///< the text of each module: nearly always the same one
  std::map<std::string, std::set<std::string>> seen_;
};

}  // namespace fusebox::importing
