#include "app/window/window_log.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QMutex>

namespace fusebox::window {

Q_LOGGING_CATEGORY(windowLog, "fusebox.window")

namespace {

constexpr int kKept = 1000;  // lines, of which a report shows the last

struct Log {
  QMutex mutex;
  QFile file;
  QStringList lines;
  QtMessageHandler before = nullptr;
  QtMsgType least = QtInfoMsg;
  bool isAsked = false;  ///< FUSEBOX_LOG is set: stderr too
};

Log& theLog() {
  static Log& log = *new Log;  // others speak until the very end
  return log;
}

struct Level {
  QtMsgType type;
  const char* name;
  int rank;
};
constexpr Level kLevels[] = {{QtDebugMsg, "debug", 0}, {QtInfoMsg, "info", 1}, {QtWarningMsg, "warning", 2}, {QtCriticalMsg, "error", 3}, {QtFatalMsg, "fatal", 4}};

const Level& levelOf(QtMsgType type) {
  for (const Level& level : kLevels)
    if (level.type == type) return level;
  return kLevels[1];
}

void keep(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  Log& log = theLog();
  const bool isOurs = context.category && QLatin1String(context.category).startsWith(QLatin1String("fusebox"));
  if (levelOf(type).rank >= levelOf(log.least).rank) {
    const QString line = QStringLiteral("%1 %2 %3: %4").arg(QDateTime::currentDateTime().toString(Qt::ISODateWithMs), QLatin1String(levelOf(type).name),
                                                            QLatin1String(context.category ? context.category : "default"), text);
    const QMutexLocker lock(&log.mutex);
    log.lines << line;
    if (log.lines.size() > kKept) log.lines.removeFirst();
    if (log.file.isOpen()) {
      log.file.write(line.toUtf8() + '\n');
      log.file.flush();
    }
  }
  // The handler before keeps messages for a crash report and prints them; what is only news is not printed unasked.
  if (log.before && (!isOurs || type == QtWarningMsg || type == QtCriticalMsg || type == QtFatalMsg || log.isAsked)) log.before(type, context, text);
}

}  // namespace

void installLog(const QString& folder) {
  Log& log = theLog();
  const QByteArray asked = qgetenv("FUSEBOX_LOG");
  log.isAsked = !asked.isEmpty();
  for (const Level& level : kLevels)
    if (asked == level.name) log.least = level.type;
  QDir().mkpath(folder);
  if (log.file.isOpen()) log.file.close();
  const QString path = QDir(folder).filePath(QStringLiteral("window.log")), old = path + QStringLiteral(".old");
  QFile::remove(old);
  QFile::rename(path, old);
  log.file.setFileName(path);
  if (log.file.open(QIODevice::WriteOnly)) log.file.setPermissions(QFile::ReadOwner | QFile::WriteOwner);  // names of files are a person's own
  if (!log.before) log.before = qInstallMessageHandler(keep);
}

QString lastLogLines(int most) {
  Log& log = theLog();
  const QMutexLocker lock(&log.mutex);
  return log.lines.mid(std::max<qsizetype>(0, log.lines.size() - most)).join(QLatin1Char('\n'));
}

}  // namespace fusebox::window
