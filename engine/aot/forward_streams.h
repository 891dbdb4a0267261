#pragma once

#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace fusebox::aot {

/// The streams that the forward of a compiled function used on some devices, so that its backward uses them too. libtorch's engine sees
/// to that on one device of a node, the first of its gradients; a compiled function may be a node of several.
class ForwardStreams {
 public:
  /// Notes torch's current streams of `devices`. Call it on the thread of the forward.
  void note(const std::vector<c10::Device>& devices);

  /// Makes them torch's current ones while alive. What the thread's own streams were given before comes first, and what they are given
  /// afterwards waits for what was done meanwhile.
  class Scope {
   public:
    explicit Scope(const ForwardStreams& streams);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct Exchange {
      c10::Stream forward, before;
    };
    std::vector<Exchange> exchanged_;
  };

 private:
  std::vector<c10::Stream> streams_;
};

}  // namespace fusebox::aot
