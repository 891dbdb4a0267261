#pragma once

#include "engine/capture/entries/entry_cache.h"

/// What runs of one job (torch.compiler.config.job_id) hand on: the numbers that changed at a place. Without a job id nothing happens.
/// The GIL must be held.
namespace fusebox::capture {

/// Before a capture at a place: what earlier runs saw there is known. False: a Python error is set (a reserved job id).
bool recallProfile(const CodeState& code, EntryPoint& point);
/// After a capture: later runs will know. Files are written at most as often as that costs a twentieth of the time.
void keepProfile(const CodeState& code, const EntryPoint& point);
/// What has not been written yet. Belongs before exit.
void flushProfile();
/// What is kept may have come from elsewhere since: it is read again.
void forgetProfile();

}  // namespace fusebox::capture
