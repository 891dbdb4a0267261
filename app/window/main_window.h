#pragma once

#include <QElapsedTimer>
#include <QLabel>
#include <QMainWindow>
#include <QPointer>
#include <QStackedWidget>
#include <QTimer>
#include <functional>
#include <optional>

#include "app/window/debug_controller.h"
#include "app/window/debug_panel.h"
#include "app/window/crash_guard.h"
#include "app/window/dock_host.h"
#include "app/window/output_panel.h"
#include "app/window/run_dialog.h"
#include "app/window/script_runner.h"
#include "app/window/session_tabs.h"
#include "app/window/start_page.h"
#include "app/window/task_layouts.h"
#include "profiler/query/other_recordings.h"
#include "views/common/navigation_history.h"
#include "views/widgets/action_registry.h"
#include "views/widgets/message_bar.h"
#include "views/widgets/session_link.h"

class QDialog;
class QProgressBar;
class QToolButton;

namespace fusebox::window {

/// The window: the session that is shown, tabs of those that are open, its views, the script that may be writing it.
class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `program` is the fusebox executable that runs scripts.
  explicit MainWindow(QString program, QWidget* parent = nullptr);
  ~MainWindow() override;

  Q_INVOKABLE void openSession(const QString& path);
  /// Shows two sessions side by side in a window of their own.
  class CompareWindow* openComparison(const QString& a, const QString& b);
  /// Closes what is shown; the session of the tab beside it follows.
  void closeSession();
  void runScript(const RunRequest& request);
  /// The same, stopped where `first` (descriptions of breakpoints for its start) and the breakpoints of the panel say.
  void debugScript(RunRequest request, const nlohmann::json& first);
  /// Brings up a view that can show the place.
  void goTo(const views::Location& location);
  /// Offers what was open when an earlier window ended unexpectedly.
  void offerRecovery(const QList<crash_guard::Leftover>& leftovers);

  views::SessionLink* session() const { return session_.get(); }
  DockHost* docks() const { return docks_; }
  views::MessageBar* messages() const { return messages_; }
  views::ActionRegistry* registry() const { return registry_; }
  ScriptRunner* runner() const { return runner_; }
  OutputPanel* outputPanel() const { return output_; }
  DebugController* debugger() const { return debugger_; }
  DebugPanel* debugPanel() const { return debugPanel_; }

  /// The page of the manual about what is selected.
  void showManual(const QString& page = {});

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // main_window_actions.cpp
  void buildActions();
  void buildMenus();
  void buildToolbar();
  void buildStatusBar();
  void chooseSession();
  void chooseComparison();
  void chooseComparisonFolder();

  // main_window_files.cpp
  void fillRecentMenu(QMenu* menu);
  bool holdsLiveProgram() const;
  MainWindow* openBeside(const QString& path);
  void exportSession();
  void showDoctor();
  void showAbout();
  /// What becomes of a command whose window is closed: what writes a file is not left half done.
  enum class WhenClosed { Ends, Finishes };
  void runTool(const QStringList& words, WhenClosed whenClosed, std::function<void(bool, const QString&)> done);
  void runAgain();

  // main_window_actions.cpp
  RunDialog* newRunDialog(RunDialog::Purpose purpose);
  void chooseEngines();
  void chooseScript();
  void showPalette();
  void openExample();
  void showKeys();
  void setTheme(int mode);

  // main_window_debug.cpp
  void buildDebugger();
  void buildDebugActions();
  void updateDebugActions();
  void programStopped();
  void showStopInSource();
  void toggleBreakpointHere();

  void buildViews();
  void leaveSession();
  void closeTab(const QString& path);
  void openFurther(int steps);
  void sessionOpened();
  void sessionFailed(const Error& error);
  void sessionGrown();
  void sessionImporting(const QString& format, int percent);
  void sessionImported(bool whole, int percent);
  void askForOthers();
  void chooseOther(const std::vector<query::OtherRecording>& others);
  void stopReading();
  void sessionVanished(const QString& why, bool isReplaced);
  void sayState();
  void runStarted(const QString& commandLine);
  void runFinished(const RunOutcome& outcome);
  void retryOpening();
  void showView(const views::Location& place);
  void askAboutSecond(const QString& file, const QPoint& where);
  void remember(const views::Location& place);
  void updateActions();

  views::SelectionBus* bus_;
  views::ActionRegistry* registry_;
  views::NavigationHistory history_;
  bool navigating_ = false;  ///< while a place of the history is shown, which is no step of anybody's

  views::MessageBar* messages_;
  QStackedWidget* pages_;
  SessionTabs* tabs_;
  StartPage* start_ = nullptr;
  DockHost* docks_;
  TaskLayouts layouts_;
  OutputPanel* output_;
  QDockWidget* outputDock_ = nullptr;
  QLabel* statePart_ = nullptr;
  QLabel* pathPart_ = nullptr;
  QProgressBar* busyPart_ = nullptr;
  QToolButton* cancelPart_ = nullptr;

  QString program_;
  DebugController* debugger_ = nullptr;
  DebugPanel* debugPanel_ = nullptr;
  QDockWidget* debugDock_ = nullptr;

  ScriptRunner* runner_;
  std::unique_ptr<views::SessionLink, views::SessionLink::Leave> session_;
  QPointer<QDialog> manual_;
  views::Location selected_; ///< what a view announced last, with the view
  std::function<void()> onMessageAction_;  ///< what the message bar's button does
  QString before_;           ///< open before a file that is being opened: comes back if that cannot be read
  QString failedRun_;        ///< session of the last run, where that failed
  struct LastRun {
    RunRequest request;
    bool wasDebugged = false;
  };
  std::optional<LastRun> lastRun_;
  /// What somebody asked for that needs the program that runs to end: it may be ended then.
  enum class AfterEnd : uint8_t { Nothing, RunAgain, CloseWindow } afterEnd_ = AfterEnd::Nothing;
  QString awaited_;          ///< session of a run that could not be opened yet
  QTimer retry_, growth_, busyDelay_;
  QElapsedTimer refreshing_;  ///< since the views were told to read a growing session again
};

}  // namespace fusebox::window
