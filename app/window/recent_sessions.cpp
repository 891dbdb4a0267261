#include "app/window/recent_sessions.h"

#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>

#include "profiler/session/recorded_list.h"

namespace fusebox::window {
namespace {

const QString kKey = QStringLiteral("recentSessions"), kForgotten = QStringLiteral("forgottenSessions");

}  // namespace

QList<RecentSessions::Entry> RecentSessions::entries() {
  QList<Entry> list;
  const QStringList opened = QSettings().value(kKey).toStringList(), forgotten = QSettings().value(kForgotten).toStringList();
  // What was recorded in a terminal and never opened comes first: it is new.
  const QString recorded = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + QStringLiteral("/fusebox/recorded");
  QStringList paths;
  for (const std::string& path : session::readRecorded(recorded.toStdString(), kMost)) {
    const QString name = QString::fromStdString(path);
    if (!opened.contains(name) && !forgotten.contains(name) && QFileInfo(name).isFile()) paths << name;
  }
  for (const QString& path : paths + opened) {
    const QFileInfo file(path);
    list.append({path, file.lastModified(), file.size(), file.isFile()});
  }
  return list;
}

void RecentSessions::add(const QString& path) {
  QSettings settings;
  QStringList paths = settings.value(kKey).toStringList();
  const QString full = QFileInfo(path).absoluteFilePath();
  paths.removeAll(full);
  paths.prepend(full);
  settings.setValue(kKey, paths.mid(0, kMost));
}

void RecentSessions::remove(const QString& path) {
  QSettings settings;
  QStringList paths = settings.value(kKey).toStringList();
  paths.removeAll(path);
  settings.setValue(kKey, paths);
  QStringList forgotten = settings.value(kForgotten).toStringList();
  forgotten.removeAll(path);
  forgotten.prepend(path);
  settings.setValue(kForgotten, forgotten.mid(0, kMost));
}

}  // namespace fusebox::window
