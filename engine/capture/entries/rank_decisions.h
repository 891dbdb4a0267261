#pragma once

#include "engine/capture/entries/entry_cache.h"

/// What ranks of a process group decide together, by functions of the Python package (_rank_exchange.py). The GIL must be held.
namespace fusebox::capture {

struct RankFunctions {
  PyRef exchangeNumbers;  ///< (place, numbers) -> the same of all other ranks, as a list of texts
  PyRef allHit;           ///< (place, whether code fits here) -> whether it does on every rank; null: each rank decides for itself
};
RankFunctions& rankFunctions();

/// Buckets of the reducer that will wait for the gradients of what this thread compiles.
aot::GradientBuckets& gradientBuckets();

/// After a capture: takes in what the numbers of inputs are on the other ranks, where torch._dynamo.config.enable_compiler_collectives
/// is set. True: some differ that were taken for constants. A Python error may be set: the program's (Ctrl-C).
bool learnFromRanks(const CodeState& code, EntryPoint& point);

/// Whether every rank has code for this call. `point` may be gone afterwards. The same for an error.
bool allRanksHit(const CodeState& code, EntryPoint& point, bool hit);

}  // namespace fusebox::capture
