#pragma once

#include <QLoggingCategory>
#include <QString>

namespace fusebox::window {

/// What the window did, with levels: FUSEBOX_LOG=debug|info|warning (info where it is not set) says from which on messages are kept.
/// They go to `window.log` in `folder`, the log of the window before to `window.log.old`; from the level on that FUSEBOX_LOG names, to
/// stderr too.
void installLog(const QString& folder);

/// The last lines of this window's log, for a report of a fault.
QString lastLogLines(int most = 200);

Q_DECLARE_LOGGING_CATEGORY(windowLog)

}  // namespace fusebox::window
