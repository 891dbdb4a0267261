#include "engine/capture/cpython/stack_room.h"

#include <pthread.h>

#include <cstddef>

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

}  // namespace

bool stackIsShort() {
  static thread_local const char* const middle = middleOfStack();
  return static_cast<const char*>(__builtin_frame_address(0)) < middle;
}

}  // namespace fusebox::capture
