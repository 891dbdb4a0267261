#pragma once

#include <QAction>
#include <QList>
#include <QObject>
#include <functional>

namespace fusebox::views {

/// Every command of the window in one list: menus, tool bar, shortcuts and the command palette are made from it.
class ActionRegistry : public QObject {
  Q_OBJECT
 public:
  struct Entry {
    QString id;        ///< object name of the action, "file.open"
    QString category;  ///< menu title
    QAction* action = nullptr;
  };

  explicit ActionRegistry(QWidget* window);

  /// Makes an action, gives it to the window and lists it.
  QAction* add(const QString& id, const QString& category, const QString& text, const QKeySequence& shortcut,
               const QString& icon, std::function<void()> run);
  /// Lists an action that somebody else owns (a view's).
  void adopt(const QString& category, QAction* action);

  const QList<Entry>& entries() const { return entries_; }
  QAction* find(const QString& id) const;
  /// Shortcuts that two entries claim; empty if all is well.
  QStringList conflicts() const;

 private:
  QWidget* window_;
  QList<Entry> entries_;
};

}  // namespace fusebox::views
