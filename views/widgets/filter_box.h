#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QTimer>

namespace fusebox::views {

/// The box above every list: words that must occur, -words that must not. Says how many rows are left.
class FilterBox : public QWidget {
  Q_OBJECT
 public:
  /// `name` becomes the object name of the line edit ("kernels.filter").
  FilterBox(const QString& name, const QString& placeholder, QWidget* parent = nullptr);

  QString text() const { return edit_->text(); }
  void setText(const QString& text) { edit_->setText(text); }
  void setHits(int shown, int all);
  /// Words that stand in the place of the hits.
  void setNote(const QString& note);
  void focusFilter();

 signals:
  void filterChanged(const QString& text);
  /// Return or cursor down: the list should take the focus.
  void leave();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QLineEdit* edit_;
  QLabel* hits_;
  QTimer delay_;
};

}  // namespace fusebox::views
