#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QTextBrowser>

#include "views/common/location.h"
#include "views/widgets/action_registry.h"

namespace fusebox::window {

/// The manual inside: pages of resources/manual with an index, a search over all of them, and a page of keys made from
/// the registry.
class ManualWindow : public QDialog {
  Q_OBJECT
 public:
  ManualWindow(const views::ActionRegistry& registry, QWidget* parent);

  /// Opens a page by its name ("breaks"); the index if there is none of that name.
  void openPage(const QString& name);
  QString page() const { return page_; }
  /// The page about what is selected, or else about the view that it is in.
  static QString pageFor(const views::Location& selected, const QString& view);
  /// Names of all pages, in reading order.
  static QStringList pages();

 private:
  void fillList(const QString& words);
  QString textOf(const QString& name) const;
  QString keyTable() const;
  void show(const QString& name);

  const views::ActionRegistry& registry_;
  QLineEdit* search_;
  QListWidget* list_;
  QTextBrowser* browser_;
  QString page_;
};

}  // namespace fusebox::window
