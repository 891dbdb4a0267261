#pragma once

#include <QListWidget>
#include <QWidget>

#include "views/widgets/filter_box.h"

namespace fusebox::window {

/// What the window shows without a session: open, run, recent sessions.
class StartPage : public QWidget {
  Q_OBJECT
 public:
  StartPage(QAction* open, QAction* run, QAction* example, QWidget* parent = nullptr);
  void reload();

 signals:
  void sessionChosen(const QString& path);

 private:
  void fill();
  QListWidget* list_;
  views::FilterBox* filter_;
  QLabel* none_;
};

}  // namespace fusebox::window
