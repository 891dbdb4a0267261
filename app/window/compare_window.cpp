#include "app/window/compare_window.h"

#include <QAction>
#include <QCloseEvent>
#include <QDir>
#include <QFileInfo>
#include <QMenuBar>
#include <QScreen>

#include "app/window/end_program_box.h"
#include "app/window/main_window.h"

namespace fusebox::window {

CompareWindow::CompareWindow(MainWindow* first, QString program, QWidget* parent) : QMainWindow(parent), program_(std::move(program)), view_(new views::CompareView) {
  setObjectName(QStringLiteral("compareWindow"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowIcon(QIcon(QStringLiteral(":/icons/fusebox.svg")));
  resize(QSize(1280, 800).boundedTo(screen()->availableSize() - QSize(2, 32)));
  setCentralWidget(view_);
  windows_[0] = first;
  buildActions();
  connect(view_, &views::CompareView::placeWanted, this, &CompareWindow::goTo);
  connect(view_, &views::CompareView::cancelled, this, [this] {
    if (!run_) return;
    run_->disconnect(this);
    connect(run_, &QProcess::finished, run_, &QObject::deleteLater);
    run_->kill();  // the script ends with it
    run_ = nullptr;
  });
}

void CompareWindow::buildActions() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->setObjectName(QStringLiteral("compareMenu.file"));
  const auto add = [&](QMenu* menu, const char* name, const QString& text, const QKeySequence& keys, std::function<void()> run) {
    QAction* action = menu->addAction(text);
    action->setObjectName(QString::fromLatin1(name));
    action->setShortcut(keys);
    connect(action, &QAction::triggered, this, std::move(run));
  };
  add(file, "compare.page", tr("Export as &page…"), QKeySequence(), [this] { view_->exportPage(); });
  add(file, "compare.csv", tr("Export &table…"), QKeySequence(), [this] { view_->exportCsv(); });
  add(file, "compare.swap", tr("&Swap A and B"), QKeySequence(), [this] {
    std::swap(windows_[0], windows_[1]);
    compareFiles(paths_[1], paths_[0]);
  });
  add(file, "compare.reload", tr("&Compare again"), QKeySequence(Qt::Key_F5), [this] {
    if (!paths_[0].isEmpty()) compareFiles(paths_[0], paths_[1]);
  });
  file->addSeparator();
  add(file, "compare.close", tr("Close"), QKeySequence(Qt::CTRL | Qt::Key_W), [this] { close(); });
  QMenu* go = menuBar()->addMenu(tr("&Go"));
  go->setObjectName(QStringLiteral("compareMenu.go"));
  add(go, "compare.find", tr("F&ind"), QKeySequence::Find, [this] { view_->find(); });
  add(go, "compare.showA", tr("Show in &A"), QKeySequence(Qt::CTRL | Qt::Key_1), [this] { view_->openCurrent(true); });
  add(go, "compare.showB", tr("Show in &B"), QKeySequence(Qt::CTRL | Qt::Key_2), [this] { view_->openCurrent(false); });
}

void CompareWindow::closeEvent(QCloseEvent* event) {
  if (!run_ || mayEndRun_) return QMainWindow::closeEvent(event);
  event->ignore();
  askBeforeEnding(this, [this] {
    mayEndRun_ = true;
    close();
  });
}

/// A run that nobody waits for any more is ended, as by Ctrl+C.
CompareWindow::~CompareWindow() {
  constexpr int kGraceMs = 1000;
  if (!run_) return;
  run_->disconnect(this);
  run_->terminate();
  if (!run_->waitForFinished(kGraceMs)) run_->kill();
  run_->waitForFinished(kGraceMs);
}

void CompareWindow::compareFiles(const QString& a, const QString& b) {
  paths_ = {QFileInfo(a).absoluteFilePath(), QFileInfo(b).absoluteFilePath()};
  setWindowTitle(tr("%1 and %2 – Fusebox").arg(QFileInfo(a).fileName(), QFileInfo(b).fileName()));
  view_->compareFiles(paths_[0], paths_[1]);
}

void CompareWindow::runAndCompare(const RunRequest& request, const QString& engines) {
  if (run_) return;
  words_.clear();
  setWindowTitle(tr("%1 under two engines – Fusebox").arg(request.name()));
  run_ = new QProcess(this);
  run_->setWorkingDirectory(request.folder());
  run_->setProcessEnvironment(request.wholeEnvironment());
  run_->setStandardOutputFile(QProcess::nullDevice());
  connect(run_, &QProcess::readyReadStandardError, this, &CompareWindow::readWords);
  connect(run_, &QProcess::finished, this, &CompareWindow::runEnded);
  connect(run_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) runEnded(-1, QProcess::CrashExit);
  });
  QStringList command{QStringLiteral("compare"), QStringLiteral("--engines"), engines};
  if (!request.python.isEmpty()) command << QStringLiteral("--python") << request.python;
  command << QStringLiteral("--run") << request.program();
  view_->showBusy(tr("Running %1…").arg(request.name()), tr("Once under each of %1.").arg(engines));
  run_->start(program_, command);
}

void CompareWindow::readWords() {
  constexpr qsizetype kMost = 1 << 20;
  words_ += decode_.decode(run_->readAllStandardError());
  if (words_.size() > kMost) words_ = words_.right(kMost);
  const qsizetype last = words_.lastIndexOf(QLatin1String("fusebox: running under "));
  if (last >= 0) view_->showBusy(words_.mid(last + 9).section(QLatin1Char('\n'), 0, 0) + QStringLiteral("…"), {});
}

void CompareWindow::runEnded(int exitCode, QProcess::ExitStatus status) {
  if (!run_) return;
  words_ += decode_.decode(run_->readAllStandardError());
  const QDir folder(run_->workingDirectory());
  run_->deleteLater();
  run_ = nullptr;
  QStringList sessions;
  for (const QString& line : words_.split(QLatin1Char('\n'))) {
    if (line.startsWith(QLatin1String("fusebox: recorded "))) sessions << folder.absoluteFilePath(line.mid(18).trimmed());
  }
  if (status == QProcess::NormalExit && exitCode == 0 && sessions.size() == 2) return compareFiles(sessions[0], sessions[1]);
  view_->showNotice(exitCode < 0 ? tr("%1 could not be started").arg(program_) : tr("The script ended with code %1; nothing is compared").arg(exitCode), words_.trimmed().section(QLatin1Char('\n'), -12));
}

MainWindow* CompareWindow::windowOf(bool inA) {
  const size_t side = inA ? 0 : 1;
  QPointer<MainWindow>& window = windows_[side];
  const bool shows = window && window->session() && window->session()->path() == paths_[side];
  if (!shows) {
    // Its session may have been closed, or another opened: that window is the user's now.
    if (!window || window->session()) {
      window = new MainWindow(program_);
      window->setAttribute(Qt::WA_DeleteOnClose);
    }
    window->openSession(paths_[side]);
  }
  window->show();
  window->raise();
  window->activateWindow();
  return window;
}

void CompareWindow::goTo(bool inA, const views::Location& place) {
  MainWindow* window = windowOf(inA);
  if (window->session()->isOpen()) return window->goTo(place);
  connect(window->session(), &views::SessionLink::opened, window, [window, place] { window->goTo(place); }, Qt::QueuedConnection);
}

}  // namespace fusebox::window
