#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <optional>

#include "app/window/script_runner.h"

class QPushButton;

namespace fusebox::window {

/// Script or module, arguments, environment, Python and engine for a run. Remembers the last ones.
class RunDialog : public QDialog {
  Q_OBJECT
 public:
  /// What it is run for: both engines at once, and the debugger, leave no choice of the engine.
  enum class Purpose { Run, Debug, BothEngines };

  explicit RunDialog(QWidget* parent = nullptr, Purpose purpose = Purpose::Run);
  /// Starts from this instead of what was run last.
  void suggest(const RunRequest& request);
  RunRequest request() const;

  /// `NAME=value "OTHER=a value"` as variables; none, and the word that is no variable in `wrong`.
  static std::optional<QMap<QString, QString>> variablesIn(const QString& text, QString* wrong);

 private:
  void check();
  void remember() const;
  bool isModule() const { return form_->currentIndex() == 1; }

  Purpose purpose_;
  QComboBox* form_;  ///< a script, or a module
  QLineEdit* script_;
  QLineEdit* arguments_;
  QLineEdit* variables_;
  QLineEdit* directory_;
  QLineEdit* python_;
  QComboBox* engine_;
  QCheckBox* operators_;  ///< recorded too: outside compiled code
  QComboBox* counters_;   ///< of the GPU: an option of `fusebox run`, or none
  QPushButton* browseScript_;
  QLabel* problem_;
  QPushButton* run_;
};

}  // namespace fusebox::window
