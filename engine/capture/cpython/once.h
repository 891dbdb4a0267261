#pragma once

namespace fusebox::capture {

/// A value that is made once a process by code that may run Python. The guard of a function's static would be held meanwhile: when
/// Python hands the GIL to another thread that comes the same way, both wait for ever. Here such threads make it both, and the first
/// is kept. The GIL must be held. Meant for statics: never destroyed.
template <class T>
class Once {
 public:
  constexpr Once() = default;
  template <class Make>
  const T& get(Make&& make) {
    if (!value_) {
      T* made = new T(make());
      if (!value_) value_ = made;  // a second one stays where it is: it may hold references that others borrowed
    }
    return *value_;
  }

 private:
  T* value_ = nullptr;
};

}  // namespace fusebox::capture
