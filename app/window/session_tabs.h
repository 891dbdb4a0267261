#pragma once

#include <QHash>
#include <QTabBar>

#include "views/common/navigation_history.h"

namespace fusebox::window {

/// The sessions that are open in a window, as tabs with their files' names. One is shown; of the others their places are kept: they are
/// read again when their tab is chosen, so that any number costs no memory. With fewer than two there is nothing to see.
class SessionTabs : public QTabBar {
  Q_OBJECT
 public:
  explicit SessionTabs(QWidget* parent = nullptr);

  /// Makes the tab of a session the current one, a new one at the end where it has none.
  void select(const QString& path);
  /// Takes a session's tab away; gives the session beside it, empty where that was the last.
  QString take(const QString& path);
  QString current() const { return currentIndex() < 0 ? QString() : pathOf(currentIndex()); }
  /// The one `steps` tabs further, around the end.
  QString further(int steps) const;

  /// What is kept of a session that another took the place of, until it is asked for.
  void keep(const QString& path, const views::NavigationHistory& history) { kept_.insert(path, history); }
  views::NavigationHistory takeHistory(const QString& path) { return kept_.take(path); }
  void forgetPlaces(const QString& path) { kept_.remove(path); }

 signals:
  void chosen(const QString& path);
  void closeAsked(const QString& path);

 protected:
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  QString pathOf(int index) const { return tabData(index).toString(); }
  int find(const QString& path) const;
  void nameTabs();

  QHash<QString, views::NavigationHistory> kept_;
  bool quiet_ = false;
};

}  // namespace fusebox::window
