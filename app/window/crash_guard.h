#pragma once

#include <QList>
#include <QString>
#include <QStringList>

namespace fusebox::window {

/// What is left when the window does not end as it should: a report of the crash, and which session was open, to be
/// offered again.
namespace crash_guard {

/// From now on a fatal signal writes `<folder>/crash-<pid>.txt`: the signal, the open session, the last messages, a
/// backtrace. The process then ends as it would have (core dumps are made as before).
void install(const QString& folder);

/// Notes which session `window` has open; empty: none. Kept in `<folder>/open-<pid>.txt`, a line for each window, until the
/// process ends in good order.
void noteOpen(const void* window, const QString& session);

/// What was open when a process ended unexpectedly.
struct Leftover {
  QStringList sessions;
  QString report;  ///< the crash report, empty if none was written (killed, power lost)
};
/// Those of processes that are gone; each is told once. Of the reports the newest few are kept.
QList<Leftover> takeLeftovers(const QString& folder);

/// Where the window keeps these files.
QString defaultFolder();

}  // namespace crash_guard
}  // namespace fusebox::window
