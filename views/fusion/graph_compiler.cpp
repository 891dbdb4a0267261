#include "views/fusion/graph_compiler.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

namespace fusebox::views {

GraphCompiler::GraphCompiler(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
  connect(&process_, &QProcess::stateChanged, this, [this](QProcess::ProcessState state) {
    emit runningChanged(state != QProcess::NotRunning);  // from the start: a second press must not be lost meanwhile
  });
  connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    if (cancelled_) return emit finished({}, tr("Cancelled."));
    const QString said = QString::fromUtf8(process_.readAllStandardError()).trimmed();
    if (status == QProcess::NormalExit && code == 0) return emit finished(process_.readAllStandardOutput(), {});
    emit finished(
        {}, said.isEmpty() ? tr("The engine ended with exit code %1.").arg(code) : said.section(QLatin1Char('\n'), -6));
  });
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart)
      emit finished({}, tr("%1 cannot be started: %2").arg(process_.program(), process_.errorString()));
  });
}

GraphCompiler::~GraphCompiler() {
  process_.disconnect(this);
  process_.kill();
  process_.waitForFinished(1000);
}

QString GraphCompiler::newSession(const QString& session, const QString& what) {
  constexpr qsizetype kKept = 30;
  QDir folder(QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) + QStringLiteral("/fusebox/replayed"));
  if (!folder.mkpath(QStringLiteral("."))) folder = QDir::temp();
  else
    for (const QString& old : folder.entryList({QStringLiteral("*.fusebox")}, QDir::Files, QDir::Time).mid(kKept)) folder.remove(old);
  return folder.filePath(QStringLiteral("%1-%2-%3.fusebox")
                             .arg(QFileInfo(session).completeBaseName(), what, QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss-zzz"))));
}

void GraphCompiler::start(const QStringList& words) {
  if (running()) return;
  cancelled_ = false;
  process_.start(program_, words, QIODevice::ReadOnly);
}

void GraphCompiler::cancel() {
  cancelled_ = true;
  process_.kill();
}

}  // namespace fusebox::views
