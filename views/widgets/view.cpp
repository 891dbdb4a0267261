#include "views/widgets/view.h"

#include <QShowEvent>

#include "views/widgets/theme.h"

namespace fusebox::views {

void View::setSession(SessionLink* session) {
  session_ = session;
  clear();
  stale_ = session != nullptr;
  if (isVisible()) refresh();
}

void View::refresh() {
  stale_ = true;
  if (!session_ || !isVisible()) return;
  stale_ = false;
  load();
}

void View::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refresh();
}

QAction* View::addViewAction(const QString& name, const QString& text, const QString& icon) {
  auto* action = new QAction(text, this);
  action->setObjectName(id() + QLatin1Char('.') + name);
  action->setToolTip(text);
  if (!icon.isEmpty()) {
    action->setIcon(Theme::instance().icon(icon));
    connect(&Theme::instance(), &Theme::changed, action,
            [action, icon] { action->setIcon(Theme::instance().icon(icon)); });
  }
  addAction(action);
  return action;
}

}  // namespace fusebox::views
