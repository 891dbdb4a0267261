#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/support/result.h"

namespace fusebox::importing {

/// What the one who waits for an import wants to know and to say. May be used from another thread than the import's.
struct ImportProgress {
  std::function<void(const std::string& format, double fraction)> report;  ///< at most a few times a second; 0 .. 1
  /// Set it, and the import ends with InvalidArgument, or, where `usable` was called, with what was read until then.
  std::atomic<bool> cancelled{false};

  /// For who wants to look at the session while it grows: called once, by the importing thread, when the session at `path`
  /// can be opened. A small file is complete before that.
  std::function<void(const std::string& path)> usable;
  std::chrono::milliseconds usableAfter{250};
  /// Called before that session gets its last form; has to return when nobody has it open any more.
  std::function<void()> closing;
  /// Set with the result: it holds only what was read until `cancelled`; the file belongs to the caller, who removes it.
  bool partial = false;

  double fraction = 0;             ///< the last that was reported
  std::atomic<bool> known{false};  ///< stop, and drop what was read: this content was read before, or nobody waits any more
  bool isOver() const { return cancelled.load(std::memory_order_relaxed) || known.load(std::memory_order_relaxed); }
};

/// Notes and reports `fraction`; the error to return when the import is to stop.
Result<void> checkpoint(ImportProgress* progress, const std::string& format, double fraction);

}  // namespace fusebox::importing
