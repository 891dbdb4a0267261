#include "app/window/dock_host.h"

#include <QApplication>
#include <QTabBar>
#include <QTimer>
#include <algorithm>

#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

/// Two stacks of views and how they share the window. Those that are not built are left out.
struct LayoutPlan {
  DockHost::Layout layout;
  const char* first;
  const char* second;
  Qt::Orientation orientation;
  int share;  ///< of the first stack, percent
};
constexpr LayoutPlan kPlans[] = {
    {DockHost::Layout::Tabs, "", "", Qt::Horizontal, 100},
    {DockHost::Layout::Compile, "source overview breaks recompiles", "graph fusion guards artifacts", Qt::Horizontal, 50},
    {DockHost::Layout::Debug, "source overview", "graph guards kernels timeline recompiles breaks", Qt::Horizontal, 45},
    {DockHost::Layout::Profile, "timeline slowness overview graph guards", "kernels memory source", Qt::Vertical, 45},
};

}  // namespace

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
  view->setMinimumSize(320, 220);  // squeezed, rather than a window that outgrows the screen
  dock->setWidget(view);
  docks_.insert(view->id(), dock);
  views_.append(view);
  addDockWidget(Qt::TopDockWidgetArea, dock);
  connect(dock, &QDockWidget::topLevelChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::dockLocationChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::visibilityChanged, this, [this, view](bool visible) {
    view->setInFront(visible);
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
  panels_ << dock;
  addDockWidget(Qt::BottomDockWidgetArea, dock);
  dock->hide();
  connect(dock, &QDockWidget::topLevelChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::dockLocationChanged, this, &DockHost::tidyTitles);
  connect(dock, &QDockWidget::visibilityChanged, this, &DockHost::tidyTitles);
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
    for (QDockWidget* dock : docks_.values() + panels_) {
      const QList<QDockWidget*> beside = tabifiedDockWidgets(dock);
      const bool bare = !dock->isFloating() && std::any_of(beside.begin(), beside.end(), [](const QDockWidget* other) { return !other->isHidden(); });
      if (bare == (dock->titleBarWidget() != nullptr)) continue;
      QWidget* old = dock->titleBarWidget();
      dock->setTitleBarWidget(bare ? new QWidget : nullptr);
      delete old;
    }
    for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
      bar->setDrawBase(false);
      bar->setObjectName(QStringLiteral("dockHost.tabs"));
      bar->setAccessibleName(tr("Views"));
      bar->setElideMode(Qt::ElideNone);  // names in full, and arrows where there is no room
      bar->setUsesScrollButtons(true);
      // A click on a tab is a wish to work with what it shows: its keys act at once.
      connect(bar, &QTabBar::tabBarClicked, this, &DockHost::focusClicked, Qt::ConnectionType(Qt::QueuedConnection | Qt::UniqueConnection));
    }
  });
}

void DockHost::focusClicked() {
  const auto* bar = qobject_cast<QTabBar*>(sender());
  const QString title = bar && bar->currentIndex() >= 0 ? bar->tabText(bar->currentIndex()) : QString();
  for (views::View* view : views_) {
    if (view->isVisible() && dock(view->id())->windowTitle() == title && !view->visibleRegion().isEmpty()) return raiseView(view->id());
  }
}

void DockHost::applyLayout(Layout layout) {
  arranging_ = true;
  const auto idsOf = [this](const char* names) {
    QStringList ids = QString::fromLatin1(names).split(QLatin1Char(' '), Qt::SkipEmptyParts);
    ids.removeIf([this](const QString& id) { return !docks_.contains(id); });
    return ids;
  };
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
  // Views that a layout does not name join its first stack.
  const auto rest = [this](QStringList first, const QStringList& second) {
    for (const views::View* view : views_) {
      if (!first.contains(view->id()) && !second.contains(view->id())) first << view->id();
    }
    return first;
  };
  for (const LayoutPlan& plan : kPlans) {
    if (plan.layout != layout) continue;
    const QStringList second = idsOf(plan.second);
    place(rest(idsOf(plan.first), second), second, plan.orientation, plan.share);
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
