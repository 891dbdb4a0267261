// Files of the window: recent sessions, export, tools of the command line, and what closing means while a program runs.
#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDialog>
#include <QDialogButtonBox>
#include <QEventLoopLocker>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QVBoxLayout>

#include <memory>

#include "app/window/end_program_box.h"
#include "app/window/main_window.h"
#include "app/window/recent_sessions.h"
#include "app/window/settings_thread.h"
#include "app/window/window_log.h"

namespace fusebox::window {
namespace {

using views::MessageBar;

constexpr int kListed = 15;

}  // namespace

void MainWindow::fillRecentMenu(QMenu* menu) {
  menu->clear();
  for (const auto& entry : RecentSessions::instance().entries().value_or(QList<RecentSessions::Entry>())) {
    if (menu->actions().size() == kListed) break;
    if (!entry.exists) continue;
    // A path may hold an ampersand, which would mark a key.
    QAction* action = menu->addAction(QString(entry.path).replace(QLatin1Char('&'), QStringLiteral("&&")));
    connect(action, &QAction::triggered, this, [this, path = entry.path] { openSession(path); });
  }
  if (menu->isEmpty()) menu->addAction(tr("No session was opened yet"))->setEnabled(false);
}

/// A recording that goes on, or a program that is debugged, stays in its window.
bool MainWindow::holdsLiveProgram() const { return session_ && runner_->running() && session_->path() == runner_->sessionPath(); }

MainWindow* MainWindow::openBeside(const QString& path) {
  auto* window = new MainWindow(program_);
  window->setAttribute(Qt::WA_DeleteOnClose);
  window->show();
  window->openSession(path);
  return window;
}

void MainWindow::exportSession() {
  if (!session_) return;
  const QString session = session_->path(), suggested = QFileInfo(session).completeBaseName();  // while the dialog asks, the session may be closed
  QString chosen;
  const QStringList kinds{tr("Report in one page (*.html)"), tr("Chrome trace (*.json)"), tr("Chrome trace, compressed (*.json.gz)"), tr("Perfetto trace (*.pftrace)"), tr("Launches as a table (*.csv)"),
                          tr("Session (*.fusebox)"), tr("Session without names, paths and sources (*.fusebox)")};
  QString path = QFileDialog::getSaveFileName(this, tr("Export session"), suggested + QStringLiteral(".html"), kinds.join(QStringLiteral(";;")), &chosen);
  if (path.isEmpty()) return;
  const QString ending = chosen.section(QStringLiteral("*."), -1).section(QLatin1Char(')'), 0, 0);
  if (QFileInfo(path).suffix().isEmpty() && !ending.isEmpty()) path += QLatin1Char('.') + ending;
  if (QFileInfo(path).absoluteFilePath() == session) {
    messages_->say(MessageBar::Severity::Error, tr("A session cannot be exported onto itself"), tr("Choose another name."));
    return;
  }
  QStringList words{QStringLiteral("export"), session, QStringLiteral("-o"), path};
  if (chosen == kinds.last()) words << QStringLiteral("--redact");
  runTool(words, WhenClosed::Finishes, [this, path](bool worked, const QString& output) {
    if (worked) messages_->say(MessageBar::Severity::Info, tr("Exported to %1").arg(path), output);
    else messages_->say(MessageBar::Severity::Error, tr("%1 was not written").arg(QFileInfo(path).fileName()), output);
  });
}

void MainWindow::showDoctor() {
  messages_->say(MessageBar::Severity::Info, tr("Looking at Python, PyTorch and the machine…"), {});
  runTool({QStringLiteral("doctor")}, WhenClosed::Ends, [this](bool, const QString& output) {
    messages_->dismiss();
    auto* dialog = new QDialog(this);
    dialog->setObjectName(QStringLiteral("doctor"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("What Fusebox finds on this machine"));
    auto* text = new QPlainTextEdit(output);
    text->setReadOnly(true);
    text->setObjectName(QStringLiteral("doctor.text"));
    text->setAccessibleName(dialog->windowTitle());
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    QPushButton* copy = buttons->addButton(tr("&Copy with the window's log"), QDialogButtonBox::ActionRole);
    copy->setObjectName(QStringLiteral("doctor.copy"));
    copy->setToolTip(tr("For a report of a fault: what is above, and what the window did lately"));
    connect(copy, &QPushButton::clicked, text, [text] {
      QApplication::clipboard()->setText(QStringLiteral("Fusebox %1, Qt %2\n\n%3\n\n%4\n").arg(QStringLiteral(FUSEBOX_VERSION), QString::fromLatin1(qVersion()), text->toPlainText(), lastLogLines()));
    });
    auto* column = new QVBoxLayout(dialog);
    column->addWidget(text, 1);
    column->addWidget(buttons);
    dialog->resize(760, 480);
    dialog->open();
  });
}

void MainWindow::showAbout() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Fusebox"),
                              tr("Fusebox %1\n\nCompiles PyTorch programs, and shows and debugs what the compiler did.\n\nBuilt with Qt %2.")
                                  .arg(QStringLiteral(FUSEBOX_VERSION), QString::fromLatin1(qVersion())),
                              QMessageBox::Close, this);
  box->setObjectName(QStringLiteral("about"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->open();
}

/// Runs a command of the command line without holding up the window; `done` gets whether it worked and what it said.
void MainWindow::runTool(const QStringList& words, WhenClosed whenClosed, std::function<void(bool, const QString&)> done) {
  auto* process = new QProcess(whenClosed == WhenClosed::Ends ? this : nullptr);
  process->setProcessChannelMode(QProcess::MergedChannels);
  connect(process, &QProcess::finished, this, [process, done](int code, QProcess::ExitStatus status) {
    done(status == QProcess::NormalExit && code == 0, QString::fromUtf8(process->readAll()).trimmed());
  });
  connect(process, &QProcess::errorOccurred, this, [this, done](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) done(false, tr("%1 could not be started").arg(program_));
  });
  // The application waits for what goes on without its window.
  connect(process, &QProcess::finished, process, [process, stays = std::make_shared<QEventLoopLocker>()] { process->deleteLater(); });
  connect(process, &QProcess::errorOccurred, process, [process](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) process->deleteLater();
  });
  process->start(program_, words);
}

void MainWindow::runAgain() {
  if (!lastRun_) return;
  if (runner_->running()) {
    afterEnd_ = AfterEnd::RunAgain;
    return runner_->stop();
  }
  const LastRun again = *lastRun_;
  if (again.wasDebugged) debugScript(again.request, {{{"kind", "compile"}, {"once", true}}});
  else runScript(again.request);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (runner_->running() && afterEnd_ != AfterEnd::CloseWindow) {
    event->ignore();
    return askBeforeEnding(this, [this] {
      afterEnd_ = AfterEnd::CloseWindow;
      close();
    });
  }
  QVariantMap kept{{QStringLiteral("window/crashedWith"), {}}};
  if (areSettingsRead()) kept[QStringLiteral("window/geometry")] = saveGeometry();
  keepSettings(kept);
  layouts_.keep();
  crash_guard::noteOpen(this, {});
  event->accept();
}

}  // namespace fusebox::window
