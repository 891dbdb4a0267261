#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/capture/entries/entry_cache.h"

/// Captures of earlier processes, which the cache keeps beside the graphs that were compiled: where one fits, nothing is evaluated or traced.
namespace fusebox::capture {

/// What a capture is asked for.
struct CapturePlace {
  const CodeState& code;
  const EntryPoint& point;
  const FrameState& state;
  const RegionOptions& options;
  PyObject* globals;
  const cache::CacheWishes& caches;
};

/// What the cache has of a place. The GIL must be held; Python's code runs, none of the program's.
class KeptPlace {
 public:
  virtual ~KeptPlace() = default;

  struct Candidate {
    Segment segment;   ///< without its graph
    std::string facts; ///< of whoever keeps it
    std::function<std::shared_ptr<const aot::AotModule>()> readGraph;  ///< null: it has none; throws std::exception for damage
    int64_t captureNs = 0;
  };
  /// Hands captures of this place to `take` until it returns true. False: none was taken; `why` says why, empty where there is none.
  virtual bool recall(const std::function<bool(Candidate&)>& take, std::string& why) = 0;
  /// Keeps an entry that was captured at this place. What it returns: why it is not kept; empty: it is.
  virtual std::string keep(const Entry& entry, std::string facts, int64_t captureNs) = 0;
};

/// What `place` refers to outlives the answer. Null: nothing can be kept of it, `why` says why. Set by the layer that can name the program's objects to
/// other processes; null: nothing is kept.
extern std::unique_ptr<KeptPlace> (*keptPlaceOf)(const CapturePlace& place, std::string& why);

}  // namespace fusebox::capture
