#pragma once

#include <optional>
#include <string>

#include "engine/capture/entries/entry_cache.h"
#include "engine/capture/guards/number_profile.h"

namespace fusebox::capture {

/// Why the numbers of a capture are constants or symbols; kept beside it in the cache. The GIL must be held.
struct CaptureFacts {
  PlaceProfile place;  ///< numbers as it saw them, and floats that were known to change
  std::string marks;   ///< of its inputs' sizes (mark_dynamic and its relatives)

  /// Of an entry that was just captured at `point`, and whose guards held.
  static CaptureFacts of(const Entry& entry, const EntryPoint& point);
  std::string text() const;
  static std::optional<CaptureFacts> read(const std::string& text);
};

/// Why a capture made here and now would choose other symbols and constants than a kept one whose guards hold; empty: it would not. Numbers of this
/// process's calls decide, and of its job's: the cache alone says nothing of what changes. `isAutomatic`: sizes that changed become symbols.
std::string differentChoice(const Entry& entry, const CaptureFacts& facts, EntryPoint& point, bool isAutomatic);

}  // namespace fusebox::capture
