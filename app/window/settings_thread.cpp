#include "app/window/settings_thread.h"

#include <QCoreApplication>
#include <QPointer>

namespace fusebox::window {

QThreadPool& settingsThread() {
  static QPointer<QThreadPool> thread;
  if (!thread) {
    thread = new QThreadPool(qApp);  // its destructor waits
    thread->setMaxThreadCount(1);
  }
  return *thread;
}

void changeSettings(std::function<void(QSettings&)> change) {
  settingsThread().start([change = std::move(change)] {
    QSettings settings;
    change(settings);
  });
}

}  // namespace fusebox::window
