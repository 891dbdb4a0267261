#include "app/window/recent_sessions.h"

#include <QFileInfo>
#include <QSettings>

namespace fusebox::window {
namespace {

const QString kKey = QStringLiteral("recentSessions");

}  // namespace

QList<RecentSessions::Entry> RecentSessions::entries() {
  QList<Entry> list;
  for (const QString& path : QSettings().value(kKey).toStringList()) {
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
}

}  // namespace fusebox::window
