#pragma once

#include <QDateTime>
#include <QList>
#include <QObject>
#include <QSettings>
#include <QString>
#include <functional>
#include <optional>

namespace fusebox::window {

/// Sessions opened before and recorded in a terminal, newest first. Settings and files are looked at on the settings' thread, since a disk
/// or a mount may sleep: what is listed is what was found last.
class RecentSessions : public QObject {
  Q_OBJECT
 public:
  struct Entry {
    QString path;
    QDateTime modified;   ///< of the file or folder; invalid if it is gone
    qint64 bytes = 0;     ///< of a file
    bool exists = false, isFolder = false;
  };
  static constexpr int kMost = 15;

  /// The application's.
  static RecentSessions& instance();

  /// Nothing until they were read: reload().
  const std::optional<QList<Entry>>& entries() const { return entries_; }
  void add(const QString& path);
  void remove(const QString& path);
  void reload();

 signals:
  void changed();

 private:
  using QObject::QObject;
  void afterwards(std::function<void(QSettings&)> change);
  std::optional<QList<Entry>> entries_;
};

}  // namespace fusebox::window
