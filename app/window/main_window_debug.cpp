// Debugging a script: the panel, its actions, and what the source shows of a stop.
#include <QApplication>
#include <QTimer>

#include "app/debug/debug_text.h"
#include "app/window/main_window.h"
#include "app/window/run_dialog.h"
#include "views/source/source_view.h"

namespace fusebox::window {
namespace {

using State = DebugController::State;
using debugging::numberField;
using debugging::textField;
using views::MessageBar;

constexpr int kEndingMs = 1500;

views::SourceView* sourceOf(const DockHost* docks) {
  return qobject_cast<views::SourceView*>(docks->view(QStringLiteral("source")));
}

}  // namespace

void MainWindow::buildDebugger() {
  debugger_ = new DebugController(this);
  debugPanel_ = new DebugPanel(debugger_);
  debugDock_ = docks_->addPanel(QStringLiteral("debug"), tr("Debug"), debugPanel_);
  docks_->tabifyDockWidget(outputDock_, debugDock_);
  connect(debugger_, &DebugController::stopped, this, &MainWindow::programStopped);
  connect(debugger_, &DebugController::stateChanged, this, [this] {
    updateDebugActions();
    if (debugger_->state() != State::Stopped) showStopInSource();
  });
  connect(debugger_, &DebugController::breakpointsChanged, this, &MainWindow::showStopInSource);
  connect(debugger_, &DebugController::disconnected, this, [this](const QString&) {
    // A program that ends closes its channel a moment before.
    QTimer::singleShot(kEndingMs, this, [this] {
      if (runner_->running() && debugger_->state() == State::Off)
        messages_->say(MessageBar::Severity::Info, tr("The program is not debugged any more"),
                       tr("It runs on by itself."));
    });
  });
  connect(debugPanel_, &DebugPanel::placeChosen, this,
          [this](const QString& file, int line) { goTo(views::Location::sourceLine(file.toStdString(), line)); });
  connect(runner_, &ScriptRunner::finished, debugger_, &DebugController::programEnded);
  connect(debugger_, &DebugController::killAsked, runner_, &ScriptRunner::expectKill);
  if (views::SourceView* source = sourceOf(docks_)) {
    connect(source, &views::SourceView::lineClicked, debugger_, &DebugController::toggleLine);
    connect(source, &views::SourceView::fileShown, this, &MainWindow::showStopInSource);
  }
}

void MainWindow::buildDebugActions() {
  const QString debug = tr("Debug");
  const auto add = [&](const char* id, const QString& text, const QKeySequence& keys, const char* icon,
                       std::function<void()> action) {
    return registry_->add(QString::fromLatin1(id), debug, text, keys, QString::fromLatin1(icon), std::move(action));
  };
  add("debug.script", tr("&Debug script…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_R), "", [this] {
    auto* dialog = newRunDialog(RunDialog::Purpose::Debug);
    connect(dialog, &QDialog::accepted, this,
            [this, dialog] { debugScript(dialog->request(), {{{"kind", "compile"}, {"once", true}}}); });
    dialog->open();
  });
  const QList<QAction*> bar{
      add("debug.continue", tr("&Continue"), QKeySequence(Qt::Key_F5), "run", [this] { debugger_->resume(); }),
      add("debug.pause", tr("&Pause"), QKeySequence(Qt::Key_F6), "pause", [this] { debugger_->pause(); }),
      add("debug.over", tr("Step &over"), QKeySequence(Qt::Key_F10), "stepover",
          [this] { debugger_->step("over", false); }),
      add("debug.into", tr("Step &into"), QKeySequence(Qt::Key_F11), "stepinto",
          [this] { debugger_->step("into", false); }),
      add("debug.out", tr("Step o&ut"), QKeySequence(Qt::SHIFT | Qt::Key_F11), "stepout",
          [this] { debugger_->step("out", false); }),
      nullptr,
      add("debug.untilRecompile", tr("To next &recompile"), QKeySequence(Qt::CTRL | Qt::Key_F10), "recompile",
          [this] { debugger_->resume("recompile"); }),
      add("debug.untilBreak", tr("To next graph &break"), QKeySequence(Qt::CTRL | Qt::Key_F11), "break",
          [this] { debugger_->resume("graph_break"); }),
  };
  add("debug.overInstruction", tr("Step over i&nstruction"), QKeySequence(Qt::ALT | Qt::Key_F10), "",
      [this] { debugger_->step("over", true); });
  add("debug.intoInstruction", tr("Step in&to instruction"), QKeySequence(Qt::ALT | Qt::Key_F11), "",
      [this] { debugger_->step("into", true); });
  add("debug.toggle", tr("Toggle break&point at the line"), QKeySequence(Qt::Key_F9), "",
      [this] { toggleBreakpointHere(); });
  QAction* skip = add("debug.skip", tr("&Skip this frame"), {}, "", [this] { debugger_->skipFrame(); });
  skip->setToolTip(tr("Leave the frame that is being captured to Python; the session says so"));
  QAction* restart = add("debug.restart", tr("R&estart"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F5), "",
                         [this] { runAgain(); });
  restart->setToolTip(tr("End the program and start it again, with the breakpoints as they are now"));
  QAction* detach = add("debug.detach", tr("D&etach"), {}, "", [this] { debugger_->detach(); });
  detach->setToolTip(tr("Let the program go on undebugged"));
  QAction* kill = add("debug.kill", tr("&Kill"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K), "",
                      [this] { debugger_->kill(); });
  kill->setToolTip(tr("End the program at once, whatever it is doing"));
  add("debug.show", tr("S&how the debug panel"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_D), "", [this] {
    pages_->setCurrentWidget(docks_);
    // Behind another tab it counts as visible, and nobody sees it.
    const bool isSeen = debugDock_->isVisible() && !debugPanel_->visibleRegion().isEmpty();
    debugDock_->setVisible(!isSeen);
    if (!isSeen) debugDock_->raise();
  });
  debugPanel_->setActions(bar + QList<QAction*>{nullptr, skip, restart, detach, kill});
}

void MainWindow::updateDebugActions() {
  if (!registry_->find(QStringLiteral("debug.script"))) return;
  const State state = debugger_->state();
  const auto enable = [this](const char* id, bool on) { registry_->find(QString::fromLatin1(id))->setEnabled(on); };
  enable("debug.script", !runner_->running());
  for (const char* id : {"debug.continue", "debug.over", "debug.into", "debug.out", "debug.untilRecompile",
                         "debug.untilBreak", "debug.overInstruction", "debug.intoInstruction"})
    enable(id, state == State::Stopped);
  enable("debug.pause", state == State::Running);
  const std::string kind = textField(debugger_->stop(), "kind");
  enable("debug.skip", state == State::Stopped &&
                           (kind == "compile" || kind == "recompile" || kind == "line" || kind == "graph_break"));
  enable("debug.restart", lastRun_ && lastRun_->wasDebugged);
  enable("debug.detach", state != State::Off);
  enable("debug.kill", state == State::Stopped || state == State::Running);
}

void MainWindow::debugScript(RunRequest request, const nlohmann::json& first) {
  if (runner_->running()) {
    messages_->say(MessageBar::Severity::Info, tr("A script is already running"),
                   tr("Stop it first, or wait until it has ended."));
    return;
  }
  if (!request.engine.isEmpty() && request.engine != QLatin1String("fusebox")) {
    messages_->say(MessageBar::Severity::Error, tr("Only Fusebox' own engine can be debugged"),
                   tr("Choose the engine \"fusebox\", or run the script without the debugger."));
    return;
  }
  debugger_->setScript(request.scriptPath().toStdString());
  auto environment = debugger_->prepare(first);
  if (!environment) {
    messages_->say(MessageBar::Severity::Error, tr("The debugger cannot be started"),
                   QString::fromStdString(environment.error().text()));
    return;
  }
  request.environment = *environment;
  debugDock_->show();
  debugDock_->raise();
  runScript(request);
}

void MainWindow::programStopped() {
  pages_->setCurrentWidget(docks_);
  debugDock_->show();
  debugDock_->raise();
  const auto& stop = debugger_->stop();
  views::SourceView* source = sourceOf(docks_);
  if (const std::string file = textField(stop, "file"); source && !file.empty() && session_ && session_->isOpen()) {
    // Steps are no places to go back to, and whoever types at the debugger goes on typing.
    QWidget* typing = debugPanel_->isAncestorOf(QApplication::focusWidget()) ? QApplication::focusWidget() : nullptr;
    // Docks behind another tab count as visible; they lie outside of the window.
    if (source->visibleRegion().isEmpty()) docks_->raiseView(source->id());
    if (typing) typing->setFocus();
    source->showLocation(views::Location::sourceLine(file, static_cast<int>(numberField(stop, "line"))));
  }
  showStopInSource();
  if (!isActiveWindow()) activateWindow();
}

/// Breakpoints and the stop in the margin of the file that is shown.
void MainWindow::showStopInSource() {
  views::SourceView* source = sourceOf(docks_);
  if (!source) return;
  const QString shown = QString::fromStdString(source->path());
  source->code()->setBreakpoints(debugger_->linesOf(shown));
  const auto& stop = debugger_->stop();
  const bool isHere =
      debugger_->state() == State::Stopped && !shown.isEmpty() && textField(stop, "file") == source->path();
  source->code()->setStopLine(isHere ? static_cast<int>(numberField(stop, "line")) : 0);
}

void MainWindow::toggleBreakpointHere() {
  const views::SourceView* source = sourceOf(docks_);
  if (source && !source->path().empty())
    debugger_->toggleLine(QString::fromStdString(source->path()), source->code()->currentLine());
}

}  // namespace fusebox::window
