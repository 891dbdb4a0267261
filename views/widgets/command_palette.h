#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPointer>

#include "views/widgets/action_registry.h"

namespace fusebox::views {

/// Ctrl+Shift+P: type a few letters of a command, Return runs it.
class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  CommandPalette(const ActionRegistry& registry, QWidget* window);

 protected:
  void hideEvent(QHideEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void update(const QString& pattern);
  void run();

  const ActionRegistry& registry_;
  QLineEdit* edit_;
  QListWidget* list_;
  QPointer<QWidget> before_;  ///< had the focus
};

}  // namespace fusebox::views
