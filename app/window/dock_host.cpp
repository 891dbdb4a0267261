#include "app/window/dock_host.h"

#include <QApplication>
#include <QTabBar>
#include <QTimer>

#include "views/widgets/theme.h"

namespace fusebox::window {

DockHost::DockHost(QWidget* parent) : QMainWindow(parent, Qt::Widget) {
  setObjectName(QStringLiteral("dockHost"));
  setDockOptions(AllowNestedDocks | AllowTabbedDocks | AnimatedDocks);
  setDocumentMode(true);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { focusMoved(now); });
}

void DockHost::addView(views::View* view) {
  auto* dock = new QDockWidget(view->title(), this);
  dock->setObjectName(QStringLiteral("dock.") + view->id());
  dock->setAccessibleName(view->title());
  view->setObjectName(QStringLiteral("view.") + view->id());
  dock->setWidget(view);
  docks_.insert(view->id(), dock);
  views_.append(view);
  addDockWidget(Qt::TopDockWidgetArea, dock);
  connect(dock, &QDockWidget::topLevelChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::dockLocationChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::visibilityChanged, this, [this, view](bool visible) {
    tidyTitles();
    if (!visible || arranging_) return;
    current_ = view;
    emit viewRaised(view);
  });
}

QDockWidget* DockHost::addPanel(const QString& name, const QString& title, QWidget* content) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(QStringLiteral("dock.") + name);
  dock->setAccessibleName(title);
  dock->setWidget(content);
  addDockWidget(Qt::BottomDockWidgetArea, dock);
  dock->hide();
  return dock;
}

views::View* DockHost::view(const QString& id) const {
  for (views::View* view : views_) {
    if (view->id() == id) return view;
  }
  return nullptr;
}

void DockHost::focusMoved(QWidget* now) {
  for (views::View* view : views_) {
    if (now && view->isAncestorOf(now)) current_ = view;
  }
}

void DockHost::raiseView(const QString& id) {
  QDockWidget* target = dock(id);
  if (!target) return;
  arranging_ = true;
  target->show();
  target->raise();
  arranging_ = false;
  current_ = view(id);
  if (QWidget* inner = current_->nextInFocusChain(); !current_->isAncestorOf(QApplication::focusWidget()) && inner) {
    current_->setFocus();
  }
}

/// A dock among tabs has its tab as title; one that stands alone shows its title bar.
void DockHost::tidyTitles() {
  QTimer::singleShot(0, this, [this] {
    for (QDockWidget* dock : std::as_const(docks_)) {
      const bool bare = !dock->isFloating() && !tabifiedDockWidgets(dock).isEmpty();
      if (bare == (dock->titleBarWidget() != nullptr)) continue;
      QWidget* old = dock->titleBarWidget();
      dock->setTitleBarWidget(bare ? new QWidget : nullptr);
      delete old;
    }
    for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
      bar->setDrawBase(false);
      bar->setObjectName(QStringLiteral("dockHost.tabs"));
    }
  });
}

void DockHost::applyLayout(Layout layout) {
  arranging_ = true;
  for (views::View* view : views_) {
    QDockWidget* d = dock(view->id());
    d->setFloating(false);
    removeDockWidget(d);
  }
  // Two stacks of tabs beside or below each other. Qt splits only a dock that is not in a stack yet: first split, then stack.
  const auto place = [this](const QStringList& first, const QStringList& second, Qt::Orientation orientation, int share) {
    addDockWidget(Qt::TopDockWidgetArea, dock(first.front()));
    if (!second.isEmpty()) splitDockWidget(dock(first.front()), dock(second.front()), orientation);
    for (const QStringList& ids : {first, second}) {
      for (const QString& id : ids) {
        if (id != ids.front()) tabifyDockWidget(dock(ids.front()), dock(id));
        dock(id)->show();
      }
      if (!ids.isEmpty()) dock(ids.front())->raise();
    }
    if (!second.isEmpty()) resizeDocks({dock(first.front()), dock(second.front())}, {share, 100 - share}, orientation);
    current_ = view(first.front());
  };
  QStringList all;
  for (views::View* view : views_) all << view->id();
  switch (layout) {
    case Layout::Tabs:
      place(all, {}, Qt::Horizontal, 100);
      break;
    case Layout::Debug:
      place({QStringLiteral("source"), QStringLiteral("overview")},
            {QStringLiteral("graph"), QStringLiteral("guards"), QStringLiteral("kernels"), QStringLiteral("timeline")}, Qt::Horizontal, 45);
      break;
    case Layout::Profile:
      place({QStringLiteral("timeline"), QStringLiteral("overview"), QStringLiteral("graph"), QStringLiteral("guards")},
            {QStringLiteral("kernels"), QStringLiteral("source")}, Qt::Vertical, 45);
      break;
  }
  arranging_ = false;
  tidyTitles();
}

bool DockHost::restoreArrangement(const QByteArray& state) {
  arranging_ = true;
  const bool done = !state.isEmpty() && restoreState(state, kVersion);
  arranging_ = false;
  tidyTitles();
  return done;
}

}  // namespace fusebox::window
