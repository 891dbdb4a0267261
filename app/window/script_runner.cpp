#include "app/window/script_runner.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>
#include <csignal>

namespace fusebox::window {
namespace {

constexpr int kLookEveryMs = 100;
constexpr int kGraceMs = 3000;
constexpr qsizetype kKeptErrors = 64 * 1024;

QString sessionName(const QString& base, const QString& directory) {
  const QString name = (base.isEmpty() ? QStringLiteral("run") : base) + QLatin1Char('-') +
                       QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss")) + QStringLiteral(".fusebox");
  const QDir wanted(directory);
  return QFileInfo(directory).isWritable() ? wanted.absoluteFilePath(name) : QDir::temp().absoluteFilePath(name);
}

QString signalText(int number) {
  switch (number) {
    case SIGKILL: return ScriptRunner::tr("was killed (signal 9); the system may have run out of memory");
    case SIGSEGV: return ScriptRunner::tr("crashed: invalid memory access (signal 11)");
    case SIGABRT: return ScriptRunner::tr("aborted (signal 6)");
    case SIGINT: return ScriptRunner::tr("was interrupted (signal 2)");
    case SIGTERM: return ScriptRunner::tr("was asked to end (signal 15)");
    case SIGBUS: return ScriptRunner::tr("crashed: bad memory access, or the disk is full (signal 7)");
    default: return ScriptRunner::tr("was ended by signal %1").arg(number);
  }
}

}  // namespace

QString RunRequest::name() const { return module.isEmpty() ? QFileInfo(script).fileName() : module; }

QString RunRequest::scriptPath() const {
  if (!module.isEmpty()) return {};
  if (rawCommand.isEmpty()) return script.isEmpty() ? QString() : QFileInfo(script).absoluteFilePath();
  const auto named = std::find_if(rawCommand.begin(), rawCommand.end(), [](const QString& word) { return word.endsWith(QLatin1String(".py")); });
  return named == rawCommand.end() ? QString() : QDir(directory.isEmpty() ? QDir::currentPath() : directory).absoluteFilePath(*named);
}

QString RunRequest::folder() const {
  if (!directory.isEmpty()) return directory;
  return module.isEmpty() ? QFileInfo(script).absolutePath() : QDir::currentPath();
}

QStringList RunRequest::program() const {
  const QStringList what = module.isEmpty() ? QStringList{QFileInfo(script).absoluteFilePath()} : QStringList{QStringLiteral("-m"), module};
  return what + arguments;
}

QProcessEnvironment RunRequest::wholeEnvironment() const {
  QProcessEnvironment whole = QProcessEnvironment::systemEnvironment();
  for (const auto* part : {&variables, &environment})
    for (auto it = part->begin(); it != part->end(); ++it) whole.insert(it.key(), it.value());
  return whole;
}

ScriptRunner::ScriptRunner(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
  look_.setInterval(kLookEveryMs);
  grace_.setInterval(kGraceMs);
  grace_.setSingleShot(true);
  connect(&grace_, &QTimer::timeout, &process_, &QProcess::kill);
  connect(&look_, &QTimer::timeout, this, &ScriptRunner::look);
  connect(&process_, &QProcess::readyReadStandardOutput, this,
          [this] { emit output(decodeOutput_.decode(process_.readAllStandardOutput()), false); });
  connect(&process_, &QProcess::readyReadStandardError, this, [this] {
    const QString text = decodeErrors_.decode(process_.readAllStandardError());
    errors_ = (errors_ + text).right(kKeptErrors);
    emit output(text, true);
  });
  connect(&process_, &QProcess::finished, this, &ScriptRunner::ended);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    look_.stop();
    emit finished({tr("%1 could not be started").arg(program_),
                   tr("%1. Check that the file exists and may be executed.").arg(process_.errorString()), true});
  });
}

ScriptRunner::~ScriptRunner() {
  process_.disconnect(this);
  if (!running()) return;
  process_.terminate();
  if (!process_.waitForFinished(kGraceMs)) process_.kill();
  process_.waitForFinished(kGraceMs);
}

void ScriptRunner::start(const RunRequest& request) {
  if (running()) return;
  errors_.clear();
  decodeOutput_.resetState();
  decodeErrors_.resetState();
  appeared_ = false;
  end_ = UserEnd::Nothing;
  QStringList words{QStringLiteral("run")};
  QString directory = request.directory;
  if (!request.rawCommand.isEmpty()) {
    script_ = request.rawCommand.last();
    for (const QString& word : request.rawCommand) {
      if (word.endsWith(QLatin1String(".py"))) {
        script_ = word;
        break;
      }
    }
    if (directory.isEmpty()) directory = QDir::currentPath();
  } else {
    script_ = request.module.isEmpty() ? request.script : request.module;
    directory = request.folder();
  }
  const qsizetype named = request.rawCommand.indexOf(QStringLiteral("--session"));
  if (named >= 0 && named + 1 < request.rawCommand.size()) {
    session_ = QDir(directory).absoluteFilePath(request.rawCommand[named + 1]);
  } else {
    session_ = sessionName(request.module.isEmpty() ? QFileInfo(script_).completeBaseName() : script_, directory);
    words << QStringLiteral("--session") << session_;
  }
  if (request.rawCommand.isEmpty()) {
    if (!request.engine.isEmpty()) words << QStringLiteral("--engine") << request.engine;
    if (!request.python.isEmpty()) words << QStringLiteral("--python") << request.python;
    words << request.recording << request.program();
  } else {
    words << request.rawCommand;
  }
  process_.setWorkingDirectory(directory);
  QProcessEnvironment environment = request.wholeEnvironment();
  if (!environment.contains(QStringLiteral("PYTHONUNBUFFERED"))) environment.insert(QStringLiteral("PYTHONUNBUFFERED"), QStringLiteral("1"));  // output as it happens
  process_.setProcessEnvironment(environment);
  emit started(QStringLiteral("fusebox ") + words.join(QLatin1Char(' ')));
  process_.start(program_, words);
  look_.start();
}

void ScriptRunner::stop() {
  if (!running()) return;
  end_ = UserEnd::Stopped;
  process_.terminate();
  grace_.start();
}

void ScriptRunner::write(const QString& text) { process_.write(text.toLocal8Bit()); }

void ScriptRunner::look() {
  if (appeared_ || QFileInfo(session_).size() == 0) return;
  appeared_ = true;
  look_.stop();
  emit sessionAppeared(session_);
}

void ScriptRunner::ended(int exitCode, QProcess::ExitStatus status) {
  look();
  look_.stop();
  grace_.stop();  // the next script is not the one that was stopped
  emit finished(explain(script_, exitCode, status, end_, errors_));
}

RunOutcome ScriptRunner::explain(const QString& script, int exitCode, QProcess::ExitStatus status, UserEnd byUser,
                                 const QString& errors) {
  const QString name = QFileInfo(script).fileName();
  const QString kept = tr("The whole output is in the Output panel; what was recorded until then is in the session.");
  if (byUser == UserEnd::Stopped) return {tr("%1 was stopped").arg(name), kept, false};
  const bool bySignal = status == QProcess::CrashExit ? exitCode == SIGKILL : exitCode == 128 + SIGKILL;
  if (byUser == UserEnd::Killed && bySignal) return {tr("%1 was killed by the debugger, as asked").arg(name), kept, false};
  if (status == QProcess::CrashExit) return {tr("%1 %2").arg(name, signalText(exitCode)), kept, true};
  if (exitCode == 0) return {};
  if (exitCode > 128 && exitCode < 128 + 65) return {tr("%1 %2").arg(name, signalText(exitCode - 128)), kept, true};
  // The last exception of a Python traceback, and the place it names.
  static const QRegularExpression exception(QStringLiteral("^((?:[\\w.]+\\.)?[A-Z]\\w*(?:Error|Exception|Exit|Interrupt|Warning|Iteration))(: .*)?$"),
                                            QRegularExpression::MultilineOption);
  static const QRegularExpression place(QStringLiteral("File \"([^\"]+)\", line (\\d+)"));
  RunOutcome outcome;
  QString last;
  qsizetype end = 0;
  for (auto it = exception.globalMatch(errors); it.hasNext();) {
    const auto match = it.next();
    last = match.captured(0);
    end = match.capturedStart();
  }
  for (auto it = place.globalMatch(errors.left(end)); it.hasNext();) {
    const auto match = it.next();
    // The user's own line says more than one inside a library.
    static const QRegularExpression library(QStringLiteral("/site-packages/|/lib/python3|/python/fusebox/|^<frozen"));
    if (!outcome.file.isEmpty() && library.match(match.captured(1)).hasMatch()) continue;
    outcome.file = match.captured(1);
    outcome.line = match.captured(2).toInt();
  }
  if (last.isEmpty()) {  // not Python's words: the last line that was written
    const QStringList lines = errors.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    last = lines.isEmpty() ? QString() : lines.last().trimmed();
  }
  outcome.failed = true;
  outcome.what = last.isEmpty() ? tr("%1 ended with exit code %2").arg(name).arg(exitCode)
                                : tr("%1 ended with exit code %2: %3").arg(name).arg(exitCode).arg(last);
  outcome.details = outcome.file.isEmpty() ? kept : QStringLiteral("%1:%2\n%3").arg(outcome.file).arg(outcome.line).arg(kept);
  return outcome;
}

}  // namespace fusebox::window
