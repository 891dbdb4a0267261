#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QWidget>
#include <functional>

namespace fusebox::views {

/// Which hit is wanted: the one at the cursor while the text is being typed, or one after or before it.
enum class FindStep { Here, Next, Previous };

/// A line at the bottom of a view: Ctrl+F opens it, F3 and Shift+F3 go on, Esc closes it.
class FindBar : public QWidget {
  Q_OBJECT
 public:
  /// `search(text, step)` moves to a hit and says whether there is one.
  FindBar(const QString& name, std::function<bool(const QString&, FindStep)> search, QWidget* parent = nullptr);
  void open();

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void run(FindStep step);
  std::function<bool(const QString&, FindStep)> search_;
  QLineEdit* edit_;
  QLabel* state_;
};

}  // namespace fusebox::views
