#include "app/window/example_session.h"

#include <QDir>
#include <QFile>
#include <QSaveFile>
#include <QStandardPaths>

namespace fusebox::window {

QString exampleSession(QString* problem) {
  QFile source(QStringLiteral(":/examples/first_steps.fusebox"));
  if (!source.open(QIODevice::ReadOnly)) {
    *problem = source.errorString();
    return {};
  }
  const QByteArray bytes = source.readAll();
  const QString folder = QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + QStringLiteral("/fusebox");
  QDir().mkpath(folder);
  const QString path = folder + QStringLiteral("/first_steps.fusebox");
  QFile present(path);
  if (present.open(QIODevice::ReadOnly) && present.readAll() == bytes) return path;
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit()) return path;
  *problem = QStringLiteral("%1: %2").arg(path, file.errorString());
  return {};
}

}  // namespace fusebox::window
