#include "app/window/session_tabs.h"

#include <QFileInfo>
#include <QMouseEvent>

namespace fusebox::window {

SessionTabs::SessionTabs(QWidget* parent) : QTabBar(parent) {
  setObjectName(QStringLiteral("sessionTabs"));
  setAccessibleName(tr("Open sessions"));
  setDocumentMode(true);
  setDrawBase(false);
  setExpanding(false);
  setTabsClosable(true);
  setElideMode(Qt::ElideMiddle);
  setUsesScrollButtons(true);
  hide();
  connect(this, &QTabBar::currentChanged, this, [this](int index) {
    if (!quiet_ && index >= 0) emit chosen(pathOf(index));
  });
  connect(this, &QTabBar::tabCloseRequested, this, [this](int index) { emit closeAsked(pathOf(index)); });
}

int SessionTabs::find(const QString& path) const {
  for (int i = 0; i < count(); ++i) {
    if (pathOf(i) == path) return i;
  }
  return -1;
}

void SessionTabs::select(const QString& path) {
  quiet_ = true;
  int index = find(path);
  if (index < 0) {
    index = addTab(QString());
    setTabData(index, path);
    nameTabs();
  }
  setCurrentIndex(index);
  quiet_ = false;
  setVisible(count() > 1);
}

QString SessionTabs::take(const QString& path) {
  kept_.remove(path);
  const int index = find(path);
  if (index < 0) return current();
  quiet_ = true;
  removeTab(index);
  nameTabs();
  quiet_ = false;
  setVisible(count() > 1);
  return current();
}

QString SessionTabs::further(int steps) const {
  return count() == 0 ? QString() : pathOf(((currentIndex() + steps) % count() + count()) % count());
}

/// Files of one name are told apart by their folders.
void SessionTabs::nameTabs() {
  QHash<QString, int> times;
  for (int i = 0; i < count(); ++i) ++times[QFileInfo(pathOf(i)).fileName()];
  for (int i = 0; i < count(); ++i) {
    const QFileInfo file(pathOf(i));
    QString name = file.fileName();
    if (times.value(name) > 1) name.prepend(QFileInfo(file.path()).fileName() + QLatin1Char('/'));
    setTabText(i, name.replace(QLatin1Char('&'), QStringLiteral("&&")));
    setTabToolTip(i, pathOf(i));
  }
}

void SessionTabs::mouseReleaseEvent(QMouseEvent* event) {
  const int index = event->button() == Qt::MiddleButton ? tabAt(event->position().toPoint()) : -1;
  if (index >= 0) emit closeAsked(pathOf(index));
  else QTabBar::mouseReleaseEvent(event);
}

}  // namespace fusebox::window
