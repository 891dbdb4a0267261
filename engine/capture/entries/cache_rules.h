#pragma once

#include "engine/cache/cache_settings.h"
#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// What options= and PyTorch's configuration (torch._inductor.config where it has been imported, torch.compiler.config) say about
/// caches now, so that a patch counts where it holds. Tells of what is set and has no effect. Runs Python.
cache::CacheWishes cacheRules(const RegionOptions& options);
/// torch.compiler.config.force_disable_caches, or its variables.
bool cachesAreOff();

}  // namespace fusebox::capture
