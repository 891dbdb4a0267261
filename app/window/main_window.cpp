#include "app/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QCoreApplication>
#include <QDialog>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenu>
#include <QMimeData>
#include <QProcess>
#include <QProgressBar>
#include <QScopedValueRollback>
#include <QScreen>
#include <QStatusBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/window/compare_window.h"
#include "app/window/recent_sessions.h"
#include "app/window/settings_thread.h"
#include "app/window/window_log.h"
#include "views/registry/view_table.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

using views::Location;
using views::MessageBar;

constexpr int kRetryMs = 150;
constexpr int kRefreshMs = 700;   // a growing session is read again at most this often
constexpr int kSlowestRefreshMs = 8000, kRefreshShare = 4;
constexpr int kBusyAfterMs = 200;

/// A path as people write it: "~/runs/train.fusebox".
QString shownPath(const QString& path) {
  const QString home = QDir::homePath();
  return home.size() > 1 && path.startsWith(home + QLatin1Char('/')) ? QLatin1Char('~') + path.mid(home.size()) : path;
}

QString headlineOf(const Error& error, const QString& name) {
  switch (error.code) {
    case ErrorCode::NotFound: return MainWindow::tr("%1 does not exist").arg(name);
    case ErrorCode::TooNew: return MainWindow::tr("%1 was written by a newer Fusebox").arg(name);
    case ErrorCode::Corrupt: return MainWindow::tr("%1 is damaged, or no session").arg(name);
    case ErrorCode::Io: return MainWindow::tr("%1 cannot be read").arg(name);
    default: return MainWindow::tr("%1 cannot be opened").arg(name);
  }
}

/// What to do next, where the reader's own words do not say.
QString nextStepOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::NotFound: return MainWindow::tr("Check the path, or choose another session with Open.");
    case ErrorCode::TooNew: return MainWindow::tr("Update Fusebox, or open the session with the version that wrote it.");
    case ErrorCode::Corrupt: return MainWindow::tr("Record it again, or restore it from a copy.");
    case ErrorCode::Io: return MainWindow::tr("Check its permissions and the disk.");
    default: return {};
  }
}

}  // namespace

MainWindow::MainWindow(QString program, QWidget* parent)
    : QMainWindow(parent),
      bus_(new views::SelectionBus(this)),
      registry_(new views::ActionRegistry(this)),
      messages_(new MessageBar),
      pages_(new QStackedWidget),
      tabs_(new SessionTabs),
      docks_(new DockHost),
      layouts_(docks_),
      output_(new OutputPanel),
      program_(program),
      runner_(new ScriptRunner(std::move(program), this)) {
  setObjectName(QStringLiteral("mainWindow"));
  setWindowTitle(tr("Fusebox"));
  setWindowIcon(QIcon(QStringLiteral(":/icons/fusebox.svg")));
  setAcceptDrops(true);
  resize(QSize(1280, 800).boundedTo(screen()->availableSize() - QSize(2, 32)));  // with a frame around it
  buildViews();
  buildActions();
  buildMenus();
  buildToolbar();
  buildStatusBar();
  start_ = new StartPage(registry_->find(QStringLiteral("file.open")), registry_->find(QStringLiteral("run.script")),
                         registry_->find(QStringLiteral("file.example")));
  pages_->addWidget(start_);
  pages_->addWidget(docks_);
  auto* centre = new QWidget;
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tabs_);
  column->addWidget(messages_);
  column->addWidget(pages_, 1);
  setCentralWidget(centre);

  connect(tabs_, &SessionTabs::chosen, this, &MainWindow::openSession);
  connect(tabs_, &SessionTabs::closeAsked, this, &MainWindow::closeTab);
  connect(start_, &StartPage::sessionChosen, this, &MainWindow::openSession);
  connect(bus_, &views::SelectionBus::openRequested, this, &MainWindow::goTo);
  connect(bus_, &views::SelectionBus::fileRequested, this, &MainWindow::openSession);
  connect(bus_, &views::SelectionBus::selected, this, [this](Location location, QObject* from) {
    if (const auto* view = qobject_cast<views::View*>(from)) {
      location.view = view->id().toStdString();
      selected_ = location;
      remember(location);
    }
  });
  connect(docks_, &DockHost::viewRaised, this, [this](views::View* view) {
    if (session_) remember(Location::ofView(view->id().toStdString()));
  });
  connect(runner_, &ScriptRunner::started, this, &MainWindow::runStarted);
  connect(runner_, &ScriptRunner::output, output_, &OutputPanel::append);
  connect(runner_, &ScriptRunner::finished, this, &MainWindow::runFinished);
  connect(runner_, &ScriptRunner::sessionAppeared, this, [this](const QString& path) {
    awaited_ = path;
    retryOpening();
  });
  connect(output_, &OutputPanel::lineTyped, runner_, &ScriptRunner::write);
  retry_.setInterval(kRetryMs);
  retry_.setSingleShot(true);
  connect(&retry_, &QTimer::timeout, this, &MainWindow::retryOpening);
  growth_.setInterval(kRefreshMs);
  growth_.setSingleShot(true);
  connect(&growth_, &QTimer::timeout, this, [this] {
    if (!session_) return;
    if (session_->pending() > 0) return growth_.start();
    refreshing_.start();
    for (views::View* view : docks_->views()) view->refresh();
    if (session_->pending() == 0) refreshing_.invalidate();
    sayState();
  });
  busyDelay_.setInterval(kBusyAfterMs);
  busyDelay_.setSingleShot(true);
  connect(&busyDelay_, &QTimer::timeout, this, [this] {
    busyPart_->show();
    cancelPart_->show();
  });
  restoreGeometry(setting(QStringLiteral("window/geometry")).toByteArray());
  layouts_.restore();
  outputDock_->hide();
  debugDock_->hide();
  connect(messages_, &MessageBar::actionTriggered, this, [this] {
    if (const auto action = std::exchange(onMessageAction_, {})) action();
  });
  qApp->installEventFilter(this);
  updateActions();
}

MainWindow::~MainWindow() {
  crash_guard::noteOpen(this, {});
  // A tool that still works ends with the window, and would tell one whose parts are gone.
  for (QProcess* tool : findChildren<QProcess*>(Qt::FindDirectChildrenOnly)) tool->disconnect(this);
  for (views::View* view : docks_->views()) view->setSession(nullptr);
}

void MainWindow::buildViews() {
  for (const auto& entry : views::viewTable()) docks_->addView(entry.create({bus_, program_}));
  outputDock_ = docks_->addPanel(QStringLiteral("output"), tr("Output"), output_);
  buildDebugger();
}

void MainWindow::openSession(const QString& path) {
  const QString file = QFileInfo(path).absoluteFilePath();  // the caller's text may be of a view that is cleared now
  if (holdsLiveProgram() && file != session_->path()) {
    openBeside(file);
    tabs_->select(session_->path());
    return;
  }
  // A file that cannot be read gives way to what was open before.
  if (session_ && session_->isOpen() && session_->path() != file && !session_->isImporting()) before_ = session_->path();
  const bool isReload = session_ && session_->path() == file;
  if (isReload && session_->isOpen() && !QFileInfo::exists(file)) return sessionVanished(views::SessionLink::tr("The file was deleted or moved."), false);
  leaveSession();
  // What was recorded anew has other places.
  if (isReload || file == awaited_) tabs_->forgetPlaces(file);
  if (file != awaited_) tabs_->select(file);
  messages_->dismiss();
  session_.reset(new views::SessionLink(file));
  connect(session_.get(), &views::SessionLink::opened, this, &MainWindow::sessionOpened);
  connect(session_.get(), &views::SessionLink::failed, this, &MainWindow::sessionFailed);
  connect(session_.get(), &views::SessionLink::importing, this, &MainWindow::sessionImporting);
  connect(session_.get(), &views::SessionLink::imported, this, &MainWindow::sessionImported);
  connect(session_.get(), &views::SessionLink::grown, this, &MainWindow::sessionGrown);
  connect(session_.get(), &views::SessionLink::vanished, this, &MainWindow::sessionVanished);
  connect(session_.get(), &views::SessionLink::troubled, this, [this](const Error& error) {
    messages_->say(MessageBar::Severity::Error, tr("Parts of %1 cannot be read").arg(QFileInfo(session_->path()).fileName()),
                   QString::fromStdString(error.text()) + QLatin1Char('\n') + tr("What could be read is shown."));
  });
  connect(session_.get(), &views::SessionLink::pendingChanged, this, [this](int pending) {
    if (pending == 0 && refreshing_.isValid()) {  // a session that takes long to show is shown less often while it grows
      const int wait = static_cast<int>(refreshing_.elapsed()) * kRefreshShare;
      growth_.setInterval(session_->isLive() ? std::clamp(wait, kRefreshMs, kSlowestRefreshMs) : kRefreshMs);
      refreshing_.invalidate();
    }
    if (session_->isImporting()) return;  // the bar shows how far that is
    busyPart_->setRange(0, 0);
    if (pending == 0) {
      busyDelay_.stop();
      busyPart_->hide();
      cancelPart_->hide();
    } else if (!busyDelay_.isActive() && !busyPart_->isVisible()) {
      busyDelay_.start();
    }
  });
}

void MainWindow::sessionOpened() {
  retry_.stop();
  awaited_.clear();
  before_.clear();
  const QString path = session_->path();
  qCInfo(windowLog).noquote() << "opened" << path << (session_->isLive() ? "live" : session_->isAbandoned() ? "abandoned" : "finished");
  RecentSessions::instance().add(path);
  crash_guard::noteOpen(this, path);
  tabs_->select(path);
  setWindowTitle(tr("%1 – Fusebox").arg(QFileInfo(path).fileName()));
  pathPart_->setText(shownPath(path));
  pathPart_->setToolTip(path);
  pages_->setCurrentWidget(docks_);
  for (views::View* view : docks_->views()) view->setSession(session_.get());
  history_ = tabs_->takeHistory(path);  // after the views came up, which is no step of anybody's
  if (const auto place = history_.current()) {
    showView(*place);
  } else {
    const views::View* current = docks_->currentView();
    history_.visit(Location::ofView(current ? current->id().toStdString() : "overview"));
  }
  sayState();
  updateActions();
  if (debugger_->state() == DebugController::State::Stopped) programStopped();  // it was quicker than its session
  if (session_->isAbandoned() && !runner_->running() && !messages_->isVisible()) {
    messages_->say(MessageBar::Severity::Warning, tr("This recording ended early: its process is gone"),
                   tr("It was killed, crashed or ran out of memory. Everything up to its last commit is here."));
  } else if (!session_->notice().isEmpty()) {
    messages_->say(MessageBar::Severity::Warning, tr("The session may not be complete"), session_->notice());
  }
  if (!session_->isImporting()) askForOthers();
}

/// A folder of several kinds of recordings is shown as one of them: says so, and offers the others.
void MainWindow::askForOthers() {
  using Others = std::vector<query::OtherRecording>;
  session_->ask<Others>(
      this, "others", [](session::Reader& reader) { return Result<Others>(query::otherRecordings(reader)); },
      [this](Result<Others>& others) {
        if (!others || others->empty() || messages_->isVisible()) return;
        messages_->say(MessageBar::Severity::Info, tr("This folder holds recordings of other kinds too"), tr("They are not read with it. Each is opened by itself."), tr("Choose…"));
        onMessageAction_ = [this, others = *others] { chooseOther(others); };
      });
}

void MainWindow::chooseOther(const std::vector<query::OtherRecording>& others) {
  QStringList items;
  const QDir folder(session_ ? session_->path() : QString());
  for (const auto& other : others) items << QStringLiteral("%1   (%2)").arg(QString::fromStdString(other.file), QString::fromStdString(other.kind));
  auto* chooser = new QInputDialog(this);
  chooser->setObjectName(QStringLiteral("others"));
  chooser->setAttribute(Qt::WA_DeleteOnClose);
  chooser->setOption(QInputDialog::UseListViewForComboBoxItems);
  chooser->setWindowTitle(tr("Open another recording"));
  chooser->setLabelText(tr("What else the folder holds:"));
  chooser->setComboBoxItems(items);
  chooser->setTextValue(items.value(0));
  connect(chooser, &QInputDialog::textValueSelected, this, [this, items, others, folder](const QString& chosen) {
    const qsizetype at = items.indexOf(chosen);
    if (at >= 0) openSession(folder.filePath(QString::fromStdString(others[static_cast<size_t>(at)].file)));
  });
  chooser->open();
}

void MainWindow::sessionFailed(const Error& error) {
  const QString path = session_->path();
  const bool writing = path == awaited_ && runner_->running();
  leaveSession();
  if (writing) {  // its first tables are not committed yet
    retry_.start();
    return;
  }
  qCWarning(windowLog).noquote() << "not opened:" << QString::fromStdString(error.text());
  tabs_->take(path);
  if (const QString before = std::exchange(before_, {}); !before.isEmpty() && before != path) openSession(before);
  messages_->say(MessageBar::Severity::Error, headlineOf(error, QFileInfo(path).fileName()),
                 QString::fromStdString(error.text()) + QLatin1Char('\n') + nextStepOf(error));
}

void MainWindow::retryOpening() {
  if (!awaited_.isEmpty()) openSession(awaited_);
}

void MainWindow::closeSession() {
  if (session_) closeTab(session_->path());
}

void MainWindow::closeTab(const QString& path) {
  const bool isShown = session_ && session_->path() == path;
  if (isShown) leaveSession();
  const QString next = tabs_->take(path);
  if (isShown && !next.isEmpty()) openSession(next);
}

/// The session that many tabs further.
void MainWindow::openFurther(int steps) {
  const QString path = tabs_->further(steps);
  if (!path.isEmpty() && (!session_ || session_->path() != path)) openSession(path);
}

/// Shows no session; its tab and, where it was read, its places are kept.
void MainWindow::leaveSession() {
  if (!session_) return;
  if (session_->isOpen()) tabs_->keep(session_->path(), history_);
  for (views::View* view : docks_->views()) view->setSession(nullptr);
  session_.reset();
  crash_guard::noteOpen(this, {});
  growth_.stop();
  growth_.setInterval(kRefreshMs);
  refreshing_.invalidate();
  busyDelay_.stop();
  busyPart_->hide();
  cancelPart_->hide();
  history_.clear();
  setWindowTitle(tr("Fusebox"));
  pathPart_->clear();
  pathPart_->setToolTip({});
  statePart_->clear();
  pages_->setCurrentWidget(start_);
  start_->reload();
  updateActions();
}

void MainWindow::sessionGrown() {
  if (!growth_.isActive()) growth_.start();
}

void MainWindow::sessionImporting(const QString& format, int percent) {
  statePart_->setText(tr("reading %1: %2 %").arg(format).arg(percent));
  busyDelay_.stop();
  busyPart_->setRange(0, 100);
  busyPart_->setValue(percent);
  busyPart_->show();
  cancelPart_->show();
}

void MainWindow::stopReading() {
  if (!session_) return;
  if (!session_->isOpen()) return closeSession();
  if (!session_->isImporting()) return session_->cancelRunning();
  session_->cancelAll();
  session_->stopImporting();
  cancelPart_->hide();
  busyPart_->hide();
  statePart_->setText(tr("reading stopped"));
}

void MainWindow::sessionImported(bool whole, int percent) {
  busyPart_->hide();
  cancelPart_->hide();
  growth_.setInterval(kRefreshMs);
  sayState();
  if (whole) return askForOthers();
  messages_->say(MessageBar::Severity::Warning, tr("Only the first %1 % of %2 was read").arg(percent).arg(QFileInfo(session_->path()).fileName()),
                 tr("Reading was stopped. Everything shown and counted is of that part; open the file again to read all of it."));
}

void MainWindow::sessionVanished(const QString& why, bool isReplaced) {
  if (isReplaced) {
    messages_->say(MessageBar::Severity::Warning, tr("%1 is another file now").arg(QFileInfo(session_->path()).fileName()),
                   tr("%1 What is shown was read before; it stays until you read the new one.").arg(why), tr("Reload"));
    onMessageAction_ = [this] {
      if (session_) openSession(session_->path());
    };
    return;
  }
  messages_->say(MessageBar::Severity::Warning, tr("%1 is no longer there").arg(QFileInfo(session_->path()).fileName()),
                 tr("%1 What is shown was read before; it stays until you close the session.").arg(why));
}

void MainWindow::sayState() {
  if (!session_ || session_->isImporting()) return;
  // Until the recorder has said who it is, its file looks like one that nobody writes.
  statePart_->setText(session_->isLive() || (holdsLiveProgram() && session_->isAbandoned()) ? tr("● recording")
                      : session_->isAbandoned() ? tr("ended early")
                      : session_->hasFailed() || session_->path() == failedRun_ ? tr("finished: the program failed")
                      : session_->isElsewhere() ? tr("of another machine")
                                                : tr("finished"));
}

void MainWindow::runScript(const RunRequest& request) {
  if (runner_->running()) {
    messages_->say(MessageBar::Severity::Info, tr("A script is already running"), tr("Stop it first, or wait until it has ended."));
    return;
  }
  leaveSession();
  messages_->dismiss();
  lastRun_ = {request, !request.environment.isEmpty()};
  lastRun_->request.environment.clear();
  afterEnd_ = AfterEnd::Nothing;
  runner_->start(request);
}

void MainWindow::runStarted(const QString& commandLine) {
  qCInfo(windowLog).noquote() << "started" << commandLine;
  output_->begin(commandLine);
  pages_->setCurrentWidget(docks_);
  outputDock_->show();
  statePart_->setText(tr("starting"));
  updateActions();
}

void MainWindow::runFinished(const RunOutcome& outcome) {
  qCInfo(windowLog).noquote() << "program ended:" << (outcome.what.isEmpty() ? QStringLiteral("well") : outcome.what);
  failedRun_ = outcome.failed ? runner_->sessionPath() : QString();
  output_->end(outcome.what.isEmpty() ? tr("[finished]") : QStringLiteral("[%1]").arg(outcome.what));
  if (!outcome.what.isEmpty()) {
    onMessageAction_ = [this, place = Location::sourceLine(outcome.file.toStdString(), outcome.line)] { goTo(place); };
    messages_->say(outcome.failed ? MessageBar::Severity::Error : MessageBar::Severity::Info, outcome.what, outcome.details,
                   QFileInfo::exists(outcome.file) ? tr("Show the line") : QString());
  }
  if (!awaited_.isEmpty() && !session_) retryOpening();
  if (!session_ && awaited_.isEmpty()) start_->reload();
  if (!session_) statePart_->clear();
  sayState();
  updateActions();
  if (std::exchange(afterEnd_, AfterEnd::Nothing) == AfterEnd::RunAgain) QTimer::singleShot(0, this, &MainWindow::runAgain);
}

void MainWindow::goTo(const Location& location) {
  Location place = location;
  if (place.view.empty()) {
    for (const views::View* view : docks_->views()) {
      if (!view->canShow(place) || !(place.view.empty() || view->isHomeOf(place))) continue;
      place.view = view->id().toStdString();
    }
  }
  if (place.view.empty()) return;
  showView(place);
  remember(place);
}

void MainWindow::showView(const Location& place) {
  const QString id = QString::fromStdString(place.view);
  const QScopedValueRollback navigating(navigating_, true);
  docks_->raiseView(id);
  if (views::View* view = docks_->view(id); view && place.kind != views::ObjectKind::None) view->showLocation(place);
}

void MainWindow::remember(const Location& place) {
  if (navigating_) return;
  history_.visit(place);
  updateActions();
}

void MainWindow::offerRecovery(const QList<crash_guard::Leftover>& leftovers) {
  if (leftovers.isEmpty()) return;
  QStringList sessions, names, reports;
  for (const auto& leftover : leftovers) {
    for (const QString& session : leftover.sessions) {
      if (!sessions.contains(session)) sessions.prepend(session);  // the last one opened is in front
    }
    if (!leftover.report.isEmpty()) reports << leftover.report;
  }
  if (sessions.isEmpty()) return;
  for (const QString& session : sessions) names << QFileInfo(session).fileName();
  const QStringList before = setting(QStringLiteral("window/crashedWith")).toStringList();
  keepSettings({{QStringLiteral("window/crashedWith"), sessions}});
  sessions.removeIf([&](const QString& session) { return before.contains(session); });  // what failed twice would fail again
  onMessageAction_ = [this, sessions] {
    for (const QString& session : sessions) openSession(session);
  };
  messages_->say(MessageBar::Severity::Warning, tr("Fusebox ended unexpectedly while %1 was open").arg(names.join(QStringLiteral(", "))),
                 reports.isEmpty() ? tr("No report was written: it was killed, or the machine stopped.")
                                   : tr("What happened is in %1; please send it along.").arg(reports.join(QStringLiteral(", "))),
                 sessions.isEmpty() ? QString() : tr("Open it again"));
}

/// The mouse's own back and forward buttons, wherever the pointer is.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::MouseButtonPress && isActiveWindow()) {
    const auto button = static_cast<QMouseEvent*>(event)->button();
    const char* action = button == Qt::BackButton ? "go.back" : button == Qt::ForwardButton ? "go.forward" : nullptr;
    if (action && watched->isWidgetType() && static_cast<QWidget*>(watched)->window() == this) {
      registry_->find(QString::fromLatin1(action))->trigger();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList files;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) files << url.toLocalFile();
  }
  if (files.isEmpty()) return;
  if (files.size() == 2) {
    openComparison(files[0], files[1]);
  } else if (session_ && session_->isOpen() && QFileInfo(files[0]).absoluteFilePath() != session_->path()) {
    askAboutSecond(files[0], mapToGlobal(event->position().toPoint()));
  } else {
    openSession(files[0]);
  }
}

void MainWindow::askAboutSecond(const QString& file, const QPoint& where) {
  auto* menu = new QMenu(this);
  menu->setObjectName(QStringLiteral("dropMenu"));
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const QString name = QFileInfo(file).fileName();
  QAction* open = menu->addAction(tr("Open %1").arg(name), this, [this, file] { openSession(file); });
  open->setObjectName(QStringLiteral("drop.open"));
  QAction* compare = menu->addAction(tr("Compare %1 with it").arg(QFileInfo(session_->path()).fileName()), this, [this, file] {
    if (session_) openComparison(session_->path(), file);
  });
  compare->setObjectName(QStringLiteral("drop.compare"));
  menu->popup(where);
}

CompareWindow* MainWindow::openComparison(const QString& a, const QString& b) {
  const bool showsA = session_ && session_->path() == QFileInfo(a).absoluteFilePath();
  auto* window = new CompareWindow(showsA ? this : nullptr, program_);
  window->show();
  window->compareFiles(a, b);
  return window;
}

}  // namespace fusebox::window
