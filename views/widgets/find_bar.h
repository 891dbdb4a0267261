#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QWidget>
#include <functional>

namespace fusebox::views {

/// A line at the bottom of a view: Ctrl+F opens it, F3 and Shift+F3 go on, Esc closes it.
class FindBar : public QWidget {
  Q_OBJECT
 public:
  /// `search(text, backwards)` moves to the next hit and says whether there is one.
  FindBar(const QString& name, std::function<bool(const QString&, bool)> search, QWidget* parent = nullptr);
  void open();

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void run(bool backwards);
  std::function<bool(const QString&, bool)> search_;
  QLineEdit* edit_;
  QLabel* state_;
};

}  // namespace fusebox::views
