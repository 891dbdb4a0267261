#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>

#include "app/window/script_runner.h"

class QPushButton;

namespace fusebox::window {

/// Script, arguments, Python and engine for a run. Remembers the last ones.
class RunDialog : public QDialog {
  Q_OBJECT
 public:
  explicit RunDialog(QWidget* parent = nullptr);
  RunRequest request() const;

 private:
  void check();
  void remember() const;

  QLineEdit* script_;
  QLineEdit* arguments_;
  QLineEdit* directory_;
  QLineEdit* python_;
  QComboBox* engine_;
  QLabel* problem_;
  QPushButton* run_;
};

}  // namespace fusebox::window
