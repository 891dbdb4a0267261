#pragma once

#include <QDateTime>
#include <QList>
#include <QString>

namespace fusebox::window {

/// Sessions opened before, newest first, in the user's settings.
class RecentSessions {
 public:
  struct Entry {
    QString path;
    QDateTime modified;   ///< of the file; invalid if it is gone
    qint64 bytes = 0;
    bool exists = false;
  };
  static constexpr int kMost = 15;

  static QList<Entry> entries();
  static void add(const QString& path);
  static void remove(const QString& path);
};

}  // namespace fusebox::window
