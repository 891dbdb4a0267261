#include "views/widgets/action_registry.h"

#include <QHash>
#include <QWidget>

#include "views/widgets/theme.h"

namespace fusebox::views {

ActionRegistry::ActionRegistry(QWidget* window) : QObject(window), window_(window) {}

QAction* ActionRegistry::add(const QString& id, const QString& category, const QString& text,
                             const QKeySequence& shortcut, const QString& icon, std::function<void()> run) {
  auto* action = new QAction(text, window_);
  action->setObjectName(id);
  action->setShortcut(shortcut);
  if (!icon.isEmpty()) {
    action->setIcon(Theme::instance().icon(icon));
    connect(&Theme::instance(), &Theme::changed, action,
            [action, icon] { action->setIcon(Theme::instance().icon(icon)); });
  }
  QString plain = text;
  plain.remove(QLatin1Char('&'));
  action->setToolTip(shortcut.isEmpty() ? plain
                                        : QStringLiteral("%1 (%2)").arg(plain, shortcut.toString(QKeySequence::NativeText)));
  connect(action, &QAction::triggered, this, [run = std::move(run)] { run(); });
  window_->addAction(action);
  entries_.append({id, category, action});
  return action;
}

void ActionRegistry::adopt(const QString& category, QAction* action) {
  entries_.append({action->objectName(), category, action});
}

QAction* ActionRegistry::find(const QString& id) const {
  for (const Entry& entry : entries_) {
    if (entry.id == id) return entry.action;
  }
  return nullptr;
}

QStringList ActionRegistry::conflicts() const {
  QStringList found;
  QHash<QString, QString> owner;
  for (const Entry& entry : entries_) {
    if (entry.action->shortcutContext() != Qt::WindowShortcut) continue;
    for (const QKeySequence& key : entry.action->shortcuts()) {
      const QString text = key.toString();
      if (text.isEmpty()) continue;
      if (owner.contains(text)) found << text + QStringLiteral(": ") + owner[text] + QStringLiteral(", ") + entry.id;
      owner[text] = entry.id;
    }
  }
  return found;
}

}  // namespace fusebox::views
