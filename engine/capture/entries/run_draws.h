#pragma once

#include <utility>
#include <vector>

#include "engine/capture/effects/replay.h"

namespace fusebox::capture {

/// The calls of generators that come before a graph, for one call of its entry.
class RunDraws {
 public:
  /// Puts what they give among `sources`. False: one raised, or gave something else than is known of it; nothing has changed then.
  bool make(const std::vector<Draw>& draws, Replay& replay, std::vector<PyRef>& sources);
  /// The generators go on from where they were: the program is run instead.
  void putBack();

 private:
  std::vector<std::pair<PyRef, PyRef>> before_;  ///< generators and their states
};

}  // namespace fusebox::capture
