#pragma once

#include <QDockWidget>
#include <QHash>
#include <QMainWindow>

#include "views/widgets/view.h"

namespace fusebox::window {

/// Where the views live: tabs that can be dragged apart, named arrangements. The rest of the window knows docks only by
/// this interface.
class DockHost : public QMainWindow {
  Q_OBJECT
 public:
  enum class Layout { Tabs, Compile, Debug, Profile };

  explicit DockHost(QWidget* parent = nullptr);

  void addView(views::View* view);
  /// A panel at the bottom, hidden at first.
  QDockWidget* addPanel(const QString& name, const QString& title, QWidget* content);
  void applyLayout(Layout layout);
  /// Brings a view to the front and gives it the focus.
  void raiseView(const QString& id);
  views::View* currentView() const { return current_; }
  const QList<views::View*>& views() const { return views_; }
  views::View* view(const QString& id) const;

  QByteArray arrangement() const { return saveState(kVersion); }
  bool restoreArrangement(const QByteArray& state);

 signals:
  /// Another view came to the front by the user's hand.
  void viewRaised(fusebox::views::View* view);

 private:
  static constexpr int kVersion = 1;
  QDockWidget* dock(const QString& id) const { return docks_.value(id); }
  void tidyTitles();
  void focusMoved(QWidget* now);
  void focusClicked();

  QList<views::View*> views_;
  QHash<QString, QDockWidget*> docks_;  ///< of the views
  QList<QDockWidget*> panels_;
  views::View* current_ = nullptr;
  bool arranging_ = false;
};

}  // namespace fusebox::window
