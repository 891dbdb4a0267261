#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>

#include "app/window/debug_controller.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/data_table.h"

namespace fusebox::window {

class DiffPane;
class TensorPane;

/// What a stopped compiler tells: variables, frames, guards, graph, what a pass changed, fusions, kernels; and the
/// breakpoints, the settings and a command line. Asks only for what is on top.
class DebugPanel : public QWidget {
  Q_OBJECT
 public:
  explicit DebugPanel(DebugController* controller, QWidget* parent = nullptr);

  /// Buttons of the stepping bar; a null action is a gap.
  void setActions(const QList<QAction*>& actions);
  void showBreakpoints();
  QTabWidget* tabs() const { return tabs_; }

 signals:
  /// A row that has a place in the program was opened.
  void placeChosen(const QString& file, int line);

 private:
  using Json = nlohmann::json;
  /// A part of a tab that one question fills.
  struct Part {
    int tab = 0;
    std::string question;
    views::EmptyState* empty = nullptr;
    std::function<void(const Json&)> show;
    bool isStale = true;
  };

  QWidget* buildBanner();
  void buildVariables();
  void buildFrames();
  void buildGuards();
  void buildTexts();
  void buildFusions();
  void buildKernel();
  void buildTensor();
  void showTensor(const std::string& name);
  void buildBreakpoints();
  void buildOptions();
  void buildConsole();
  views::DataTable* addTable(const char* name, const QString& filterHint, std::vector<views::TableColumn> columns,
                             const QString& headline, const QString& hint);
  void addPart(int tab, const char* question, views::EmptyState* empty, std::function<void(const Json&)> show);
  views::EmptyState* framed(QWidget* content, const char* name);

  void stopped();
  void stateChanged();
  void fill();
  void chooseTab();
  bool known(const std::string& question) const;
  void frameChosen(int up);
  void showFusion();
  void addTypedBreakpoint();
  void setTypedOption();
  void carryOutTyped();
  void say(const QString& text);

  DebugController* controller_;
  QWidget* bar_;
  QLabel* state_;
  QLabel* place_;
  QTabWidget* tabs_;
  std::vector<Part> parts_;
  views::DataTable *locals_ = nullptr, *stack_ = nullptr, *frames_ = nullptr, *guards_ = nullptr, *fusions_ = nullptr,
                   *rules_ = nullptr, *arguments_ = nullptr, *breakpoints_ = nullptr, *options_ = nullptr;
  views::CodePane *code_ = nullptr, *graph_ = nullptr, *loopIr_ = nullptr, *assembly_ = nullptr;
  DiffPane* diff_ = nullptr;
  TensorPane* tensor_ = nullptr;
  QLabel* fusionNow_ = nullptr;
  Json fusion_;  ///< the last answer about the fusion that is decided
  QLineEdit *breakpointText_ = nullptr, *optionValue_ = nullptr, *command_ = nullptr;
  QLabel* breakpointProblem_ = nullptr;
  QComboBox* optionName_ = nullptr;
  QPlainTextEdit* log_ = nullptr;
  int variablesTab_ = 0, framesTab_ = 0, tensorTab_ = 0, breakpointsTab_ = 0, frameUp_ = 0;
};

}  // namespace fusebox::window
