#include "app/window/dock_host.h"

#include <QApplication>
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
  });
}

void DockHost::applyLayout(Layout layout) {
  arranging_ = true;
  for (views::View* view : views_) {
    QDockWidget* d = dock(view->id());
    d->setFloating(false);
    removeDockWidget(d);
  }
  const auto place = [this](const QStringList& ids, Qt::DockWidgetArea area) {
    QDockWidget* first = nullptr;
    for (const QString& id : ids) {
      QDockWidget* d = dock(id);
      if (!d) continue;
      addDockWidget(area, d);
      d->show();
      if (first) tabifyDockWidget(first, d);
      if (!first) first = d;
    }
    if (first) first->raise();
    return first;
  };
  const auto split = [&](QDockWidget* beside, const QStringList& ids, Qt::Orientation orientation) {
    QDockWidget* first = nullptr;
    for (const QString& id : ids) {
      QDockWidget* d = dock(id);
      if (first) {
        tabifyDockWidget(first, d);
      } else {
        splitDockWidget(beside, d, orientation);
        first = d;
      }
      d->show();
    }
    first->raise();
    return first;
  };
  QStringList all;
  for (views::View* view : views_) all << view->id();
  switch (layout) {
    case Layout::Tabs: {
      QDockWidget* first = place(all, Qt::TopDockWidgetArea);
      current_ = views_.isEmpty() || !first ? nullptr : views_.first();
      break;
    }
    case Layout::Debug: {
      QDockWidget* left = place({QStringLiteral("source"), QStringLiteral("overview")}, Qt::TopDockWidgetArea);
      QDockWidget* right = split(left, {QStringLiteral("graph"), QStringLiteral("guards"), QStringLiteral("kernels"), QStringLiteral("timeline")}, Qt::Horizontal);
      resizeDocks({left, right}, {5, 6}, Qt::Horizontal);
      break;
    }
    case Layout::Profile: {
      QDockWidget* upper = place({QStringLiteral("timeline"), QStringLiteral("overview"), QStringLiteral("graph"), QStringLiteral("guards")}, Qt::TopDockWidgetArea);
      QDockWidget* lower = split(upper, {QStringLiteral("kernels"), QStringLiteral("source")}, Qt::Vertical);
      resizeDocks({upper, lower}, {4, 5}, Qt::Vertical);
      break;
    }
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
