#include "app/window/crash_guard.h"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMap>
#include <QStandardPaths>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace fusebox::window::crash_guard {
namespace {

constexpr std::pair<int, const char*> kSignals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
constexpr size_t kPathBytes = 4096, kLineBytes = 400, kLines = 40;

// Everything that the handler reads is here, since it may neither allocate nor lock.
std::array<char, kPathBytes> reportPath{}, openSessions{};
std::array<std::array<char, kLineBytes>, kLines> messages{};
std::atomic<size_t> messageCount{0};
std::array<char, 1 << 16> handlerStack{};
QtMessageHandler previousHandler = nullptr;

template <size_t N>
void copyText(std::array<char, N>& into, const QByteArray& text) {
  const size_t size = std::min(static_cast<size_t>(text.size()), N - 1);
  std::memcpy(into.data(), text.constData(), size);
  into[size] = '\0';
}

void put(int file, const char* text) {
  size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t written = ::write(file, text, left);
    if (written <= 0) return;
    text += written;
    left -= static_cast<size_t>(written);
  }
}

void onFatalSignal(int number) {
  const int file = ::open(reportPath.data(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0) {
    put(file, "Fusebox ended by ");
    for (const auto& [signal, name] : kSignals) {
      if (signal == number) put(file, name);
    }
    put(file, "\nopen sessions: ");
    put(file, openSessions[0] ? openSessions.data() : "none");
    put(file, "\n\nlast messages\n");
    const size_t count = messageCount.load();
    for (size_t i = count > kLines ? count - kLines : 0; i < count; ++i) {
      put(file, messages[i % kLines].data());
      put(file, "\n");
    }
    put(file, "\nbacktrace (addr2line -Cfe fusebox ADDRESS names the lines)\n");
    std::array<void*, 128> frames{};
    backtrace_symbols_fd(frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())), file);
    ::close(file);
  }
  ::raise(number);  // the handler is gone by now (SA_RESETHAND)
}

void keepMessage(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  copyText(messages[messageCount.fetch_add(1) % kLines], text.toUtf8());
  if (previousHandler) previousHandler(type, context, text);
}

QString openPath(const QString& folder, qint64 pid) { return QStringLiteral("%1/open-%2.txt").arg(folder).arg(pid); }
QString crashPath(const QString& folder, qint64 pid) { return QStringLiteral("%1/crash-%2.txt").arg(folder).arg(pid); }

QString& theFolder() {
  static QString folder;
  return folder;
}

void removeOwnNote() { QFile::remove(openPath(theFolder(), ::getpid())); }

}  // namespace

void install(const QString& folder) {
  theFolder() = folder;
  QDir().mkpath(folder);
  copyText(reportPath, QFile::encodeName(crashPath(folder, ::getpid())));
  std::array<void*, 2> warm{};
  backtrace(warm.data(), 2);  // loads its library now: the handler must not
  stack_t stack{};
  stack.ss_sp = handlerStack.data();
  stack.ss_size = handlerStack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = onFatalSignal;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (const auto& [signal, name] : kSignals) sigaction(signal, &action, nullptr);
  previousHandler = qInstallMessageHandler(keepMessage);
  std::atexit(removeOwnNote);
}

void noteOpen(const void* window, const QString& session) {
  static QMap<const void*, QString> open;
  if (session.isEmpty()) open.remove(window);
  else open[window] = session;
  if (theFolder().isEmpty()) return;
  QStringList sessions = open.values();
  sessions.removeDuplicates();
  const QString lines = sessions.join(QLatin1Char('\n'));
  copyText(openSessions, QFile::encodeName(lines));
  if (open.isEmpty()) return removeOwnNote();
  QFile file(openPath(theFolder(), ::getpid()));
  if (file.open(QIODevice::WriteOnly)) file.write(lines.toUtf8());
}

QList<Leftover> takeLeftovers(const QString& folder) {
  constexpr qint64 kLongestNote = 1 << 16;
  constexpr qsizetype kReportsKept = 10;
  QList<Leftover> out;
  for (const QFileInfo& note : QDir(folder).entryInfoList({QStringLiteral("open-*.txt")}, QDir::Files, QDir::Time)) {
    bool number = false;
    const qint64 pid = note.completeBaseName().mid(5).toLongLong(&number);
    if (!number || pid <= 0 || ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM) continue;
    QFile file(note.filePath());
    if (file.open(QIODevice::ReadOnly)) {
      const QString report = crashPath(folder, pid);
      out.append({QString::fromUtf8(file.read(kLongestNote)).split(QLatin1Char('\n'), Qt::SkipEmptyParts), QFile::exists(report) ? report : QString()});
      file.close();
    }
    QFile::remove(note.filePath());
  }
  const QFileInfoList reports = QDir(folder).entryInfoList({QStringLiteral("crash-*.txt")}, QDir::Files, QDir::Time);
  for (const QFileInfo& old : reports.mid(kReportsKept)) QFile::remove(old.filePath());
  return out;
}

QString defaultFolder() {
  return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/state");
}

}  // namespace fusebox::window::crash_guard
