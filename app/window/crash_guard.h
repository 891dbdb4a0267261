#pragma once

#include <QList>
#include <QString>

namespace fusebox::window {

/// What is left when the window does not end as it should: a report of the crash, and which session was open, to be
/// offered again.
namespace crash_guard {

/// From now on a fatal signal writes `<folder>/crash-<pid>.txt`: the signal, the open session, the last messages, a
/// backtrace. The process then ends as it would have (core dumps are made as before).
void install(const QString& folder);

/// Notes that a session is open; empty: none. Kept in `<folder>/open-<pid>.txt` until the process ends in good order.
void noteOpen(const QString& session);

/// A session that was open when its process ended unexpectedly.
struct Leftover {
  QString session;
  QString report;  ///< the crash report, empty if none was written (killed, power lost)
};
/// Those of processes that are gone; each is told once.
QList<Leftover> takeLeftovers(const QString& folder);

/// Where the window keeps these files.
QString defaultFolder();

}  // namespace crash_guard
}  // namespace fusebox::window
