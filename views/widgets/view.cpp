#include "views/widgets/view.h"

#include <QShowEvent>
#include <utility>

#include "profiler/session/reader.h"
#include "views/widgets/theme.h"

namespace fusebox::views {

View::View(const ViewContext& context) : context_(context) {
  connect(bus(), &SelectionBus::selected, this, [this](const Location& location, QObject* from) {
    missed_ = {};
    if (from == this) return;
    if (isSeen()) follow(location);
    else missed_ = location;
  });
}

void View::setSession(SessionLink* session) {
  session_ = session;
  missed_ = {};
  clear();
  stale_ = session != nullptr;
  if (stale_) refresh();
}

void View::refresh() {
  stale_ = true;
  if (!session_ || !isSeen()) return;
  stale_ = false;
  load();
}

void View::setInFront(bool inFront) {
  inFront_ = inFront;
  comeUp();
}

void View::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  comeUp();
}

void View::comeUp() {
  if (!isSeen()) return;
  if (stale_) refresh();
  if (session_ && missed_.kind != ObjectKind::None) follow(std::exchange(missed_, {}));
}

void View::askHoldings(std::function<void(const query::Holdings&)> done) {
  if (!session_) return;
  session_->ask<query::Holdings>(
      this, "holdings", [](session::Reader& reader) -> Result<query::Holdings> { return query::holdingsOf(reader); },
      [done = std::move(done)](Result<query::Holdings>& holdings) {
        if (holdings) done(*holdings);
      });
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
