#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace fusebox::runtime {

/// What an exception says to people: without the C++ stack that libtorch adds to its own.
inline std::string textOf(const std::exception& error) {
  const auto* ofTorch = dynamic_cast<const c10::Error*>(&error);
  return ofTorch ? ofTorch->what_without_backtrace() : error.what();
}

}  // namespace fusebox::runtime
