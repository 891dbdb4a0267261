#pragma once

#include <csignal>
#include <memory>

namespace fusebox::views {

/// Where signal handlers of a thread run, so that a crash report can be written when its stack is full. Make one `thread_local`.
class SignalStack {
 public:
  SignalStack() : bytes_(std::make_unique<char[]>(kBytes)) {
    stack_t stack{};
    stack.ss_sp = bytes_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kBytes = 1 << 16;
  std::unique_ptr<char[]> bytes_;
};

}  // namespace fusebox::views
