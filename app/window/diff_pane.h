#pragma once

#include <QPlainTextEdit>

namespace fusebox::window {

/// Two texts as one: lines that went are marked and tinted, so are lines that came.
class DiffPane : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit DiffPane(const QString& name, QWidget* parent = nullptr);
  /// `isDone`: there is an `after`; otherwise `before` is shown as it is.
  void setTexts(const QString& before, const QString& after, bool isDone);

 private:
  void showLines();
  QString before_, after_;
  bool isDone_ = false;
};

}  // namespace fusebox::window
