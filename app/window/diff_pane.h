#pragma once

#include <QPlainTextEdit>

namespace fusebox::window {

/// Two texts as one: lines that went are marked and tinted, so are lines that came.
class DiffPane : public QPlainTextEdit {
  Q_OBJECT
 public:
  enum class Stage { NotRun, Done, DoneWithoutText };

  explicit DiffPane(const QString& name, QWidget* parent = nullptr);
  /// There is an `after` only where `stage` is Done; otherwise `before` is shown as it is.
  void setTexts(const QString& before, const QString& after, Stage stage);

 private:
  void showLines();
  QString before_, after_;
  Stage stage_ = Stage::NotRun;
};

}  // namespace fusebox::window
