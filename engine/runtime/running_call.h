#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>

namespace fusebox::runtime {

/// While it lives this thread runs an extern call of that operator.
class RunningCall {
 public:
  explicit RunningCall(const c10::OperatorHandle& op) : outer_(std::exchange(current(), &op)) {}
  ~RunningCall() { current() = outer_; }
  RunningCall(const RunningCall&) = delete;

  /// Null: none.
  static const c10::OperatorHandle*& current() {
    static thread_local const c10::OperatorHandle* op = nullptr;
    return op;
  }

 private:
  const c10::OperatorHandle* outer_;
};

}  // namespace fusebox::runtime
