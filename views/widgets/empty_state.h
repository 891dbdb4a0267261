#pragma once

#include <QLabel>
#include <QStackedWidget>

namespace fusebox::views {

/// Shows `content`, or a sentence that says what would fill it.
class EmptyState : public QStackedWidget {
  Q_OBJECT
 public:
  EmptyState(QWidget* content, const QString& name, QWidget* parent = nullptr);
  void showContent() { setCurrentIndex(0); }
  void showReason(const QString& headline, const QString& hint = {});
  /// What is open may have something, which is not known yet.
  void showReading();
  /// Nothing is open, which is also so while a program starts.
  void showNoSession();
  bool isEmpty() const { return currentIndex() == 1; }

 private:
  QLabel* label_;
};

}  // namespace fusebox::views
