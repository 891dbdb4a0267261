#include "app/window/recent_sessions.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QPointer>
#include <QStandardPaths>

#include "app/window/settings_thread.h"
#include "profiler/session/recorded_list.h"

namespace fusebox::window {
namespace {

const QString kKey = QStringLiteral("recentSessions"), kForgotten = QStringLiteral("forgottenSessions");

QList<RecentSessions::Entry> readEntries(const QSettings& settings) {
  QList<RecentSessions::Entry> list;
  const QStringList opened = settings.value(kKey).toStringList(), forgotten = settings.value(kForgotten).toStringList();
  // What was recorded in a terminal and never opened comes first: it is new.
  const QString recorded = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + QStringLiteral("/fusebox/recorded");
  QStringList paths;
  for (const std::string& path : session::readRecorded(recorded.toStdString(), RecentSessions::kMost)) {
    const QString name = QString::fromStdString(path);
    if (!opened.contains(name) && !forgotten.contains(name) && QFileInfo(name).isFile()) paths << name;
  }
  for (const QString& path : paths + opened) {
    const QFileInfo file(path);
    list.append({path, file.lastModified(), file.size(), file.exists(), file.isDir()});
  }
  return list;
}

}  // namespace

RecentSessions& RecentSessions::instance() {
  static QPointer<RecentSessions> one;
  if (!one) one = new RecentSessions(qApp);
  return *one;
}

void RecentSessions::add(const QString& path) {
  afterwards([path](QSettings& settings) {
    QStringList paths = settings.value(kKey).toStringList();
    const QString full = QFileInfo(path).absoluteFilePath();
    paths.removeAll(full);
    paths.prepend(full);
    settings.setValue(kKey, paths.mid(0, kMost));
  });
}

void RecentSessions::remove(const QString& path) {
  afterwards([path](QSettings& settings) {
    QStringList paths = settings.value(kKey).toStringList();
    paths.removeAll(path);
    settings.setValue(kKey, paths);
    QStringList forgotten = settings.value(kForgotten).toStringList();
    forgotten.removeAll(path);
    forgotten.prepend(path);
    settings.setValue(kForgotten, forgotten.mid(0, kMost));
  });
}

void RecentSessions::reload() {
  afterwards([](QSettings&) {});
}

void RecentSessions::afterwards(std::function<void(QSettings&)> change) {
  changeSettings([self = QPointer<RecentSessions>(this), change = std::move(change)](QSettings& settings) {
    change(settings);
    QMetaObject::invokeMethod(
        qApp,
        [self, list = readEntries(settings)]() mutable {
          if (!self) return;
          self->entries_ = std::move(list);
          emit self->changed();
        },
        Qt::QueuedConnection);
  });
}

}  // namespace fusebox::window
