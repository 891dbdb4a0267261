#pragma once

namespace fusebox::session {
class Writer;
}

namespace fusebox::record {

/// From now on a signal that ends the process (a fault, abort()) first lets `writer` commit what was recorded just before: it is what one
/// opens such a session for. Whoever handled these signals, and whoever comes to, is asked as ever. Null: no longer.
void commitAtCrash(session::Writer* writer) noexcept;
/// In a forked child, which has no writer.
void forgetCommitAtCrash() noexcept;

}  // namespace fusebox::record
