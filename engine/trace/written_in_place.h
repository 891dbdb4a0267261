#pragma once

#include <string>

namespace fusebox::trace {

/// While it lives, an operator of the program writes to its first argument: what its functional form gives lies as that does, as eager's would, so that
/// what it is a view of can be told from it. On this thread.
class WrittenInPlace {
 public:
  /// `name`: of the operator that writes, "aten::masked_fill_.Scalar".
  explicit WrittenInPlace(const std::string& name) : before_(functional_) {
    const size_t at = name.find("_.") != std::string::npos ? name.find("_.") : name.size() - 1;
    functional_ = name[at] == '_' ? name.substr(0, at) + name.substr(at + 1) : std::string();
  }
  ~WrittenInPlace() { functional_ = before_; }
  WrittenInPlace(const WrittenInPlace&) = delete;

  static bool isBy(const std::string& functional) { return !functional_.empty() && functional == functional_; }

 private:
  static inline thread_local std::string functional_;
  std::string before_;
};

}  // namespace fusebox::trace
