#include "engine/capture/cpython/stack_room.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

extern "C" void* __libc_stack_end;  // the main thread's first address, from the dynamic linker

namespace fusebox::capture {
namespace {

/// The address below which half of the thread's stack is used; null where the stack is not known.
const char* middleOfStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? static_cast<const char*>(lowest) + size / 2 : nullptr;
}

/// Where the main thread's stack begins, as far as it is certain to have as much again below. To find its middle, libc reads the list of
/// everything that is mapped, which with PyTorch costs milliseconds.
struct Beginning {
  const char *lowest = nullptr, *highest = nullptr;
  bool contains(const char* address) const { return lowest <= address && address < highest; }
};
Beginning beginningOfStack() {
  constexpr size_t kBytes = size_t{256} << 10;
  rlimit limit{};
  if (::gettid() != ::getpid() || ::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 4 * kBytes) return {};
  const auto* end = static_cast<const char*>(__libc_stack_end);
  return {end - kBytes, end};
}

}  // namespace

bool stackIsShort() {
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  static thread_local const Beginning beginning = beginningOfStack();
  if (beginning.contains(here)) return false;
  static thread_local const char* const middle = middleOfStack();
  return here < middle;
}

}  // namespace fusebox::capture
