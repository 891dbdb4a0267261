#include "app/window/task_layouts.h"

#include <QSettings>

#include "app/window/settings_thread.h"

namespace fusebox::window {
namespace {

constexpr const char* kNames[] = {"tabs", "compile", "debug", "profile"};

QString keyOf(DockHost::Layout layout) {
  return QStringLiteral("layouts/") + QString::fromLatin1(kNames[static_cast<int>(layout)]);
}

}  // namespace

void TaskLayouts::restore() {
  const QString last = QSettings().value(QStringLiteral("layouts/current")).toString();
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i) {
    if (last == QLatin1String(kNames[i])) current_ = static_cast<DockHost::Layout>(i);
  }
  docks_->applyLayout(current_);
  docks_->restoreArrangement(QSettings().value(keyOf(current_)).toByteArray());
}

void TaskLayouts::choose(DockHost::Layout layout) {
  if (layout == current_) return;
  const QByteArray arrangement = QSettings().value(keyOf(layout)).toByteArray();
  keep();
  current_ = layout;
  docks_->applyLayout(layout);
  docks_->restoreArrangement(arrangement);
}

void TaskLayouts::reset() {
  changeSettings([key = keyOf(current_)](QSettings& settings) { settings.remove(key); });
  docks_->applyLayout(current_);
}

void TaskLayouts::keep() const {
  changeSettings([layout = current_, arrangement = docks_->arrangement()](QSettings& settings) {
    settings.setValue(keyOf(layout), arrangement);
    settings.setValue(QStringLiteral("layouts/current"), QString::fromLatin1(kNames[static_cast<int>(layout)]));
  });
}

}  // namespace fusebox::window
