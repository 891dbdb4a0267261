#pragma once

#include <QFrame>

class QLabel;
class QPushButton;

namespace fusebox::views {

/// A line across the window: what happened, where, and what to do next. Stays until closed or replaced.
class MessageBar : public QFrame {
  Q_OBJECT
 public:
  enum class Severity { Info, Warning, Error };

  explicit MessageBar(QWidget* parent = nullptr);

  /// `what` is one sentence; `details` (where, what next) may be longer. With `action` a button of that text is shown and
  /// actionTriggered is sent when it is pressed.
  void say(Severity severity, const QString& what, const QString& details = {}, const QString& action = {});
  void dismiss();
  QString text() const;
  Severity severity() const { return severity_; }

 signals:
  void actionTriggered();

 private:
  Severity severity_ = Severity::Info;
  QLabel* icon_;
  QLabel* what_;
  QLabel* details_;
  QPushButton* action_;
};

}  // namespace fusebox::views
