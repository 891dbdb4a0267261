#pragma once

#include <QMainWindow>
#include <QPointer>
#include <QProcess>
#include <QStringDecoder>
#include <array>
#include <functional>

#include "app/window/script_runner.h"
#include "views/compare/compare_view.h"

namespace fusebox::window {

class MainWindow;

/// Two sessions compared, in a window of its own; a place that is opened shows in the main window of its session, which is made
/// where there is none yet (ARCHITECTURE.md says why).
class CompareWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `first` shows session A already, or nothing; `program` as of MainWindow.
  CompareWindow(MainWindow* first, QString program, QWidget* parent = nullptr);
  ~CompareWindow() override;

  void compareFiles(const QString& a, const QString& b);
  /// Runs a script once under each of the two engines ("fusebox,stock") and compares what was recorded.
  void runAndCompare(const RunRequest& request, const QString& engines);
  views::CompareView* view() const { return view_; }
  /// The main window of a side; made and opened on first use.
  MainWindow* windowOf(bool inA);

 protected:
  void closeEvent(QCloseEvent* event) override;

 private:
  void buildActions();
  void readWords();
  void runEnded(int exitCode, QProcess::ExitStatus status);
  void goTo(bool inA, const views::Location& place);

  QString program_;
  views::CompareView* view_;
  QProcess* run_ = nullptr;
  bool mayEndRun_ = false;
  QString words_;            ///< what the run said on stderr
  QStringDecoder decode_{QStringDecoder::System};
  std::array<QString, 2> paths_;
  std::array<QPointer<MainWindow>, 2> windows_;
};

}  // namespace fusebox::window
