#pragma once

namespace fusebox::trace {

/// While one lives on this thread, the program's operators run where libtorch's dispatcher is past autograd and pending signs, as those of a
/// `__torch_dispatch__` do: eager records no history there and reads memory as it lies. Tracing, which runs them above, refuses operands for
/// which that makes a difference (front_hook.cpp).
class BelowAutograd {
 public:
  BelowAutograd() { ++depth_; }
  ~BelowAutograd() { --depth_; }
  BelowAutograd(const BelowAutograd&) = delete;
  static bool isActive() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace fusebox::trace
