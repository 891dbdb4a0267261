#include "app/window/task_layouts.h"

#include <QSettings>

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
  keep();
  current_ = layout;
  docks_->applyLayout(layout);
  docks_->restoreArrangement(QSettings().value(keyOf(layout)).toByteArray());
}

void TaskLayouts::reset() {
  QSettings().remove(keyOf(current_));
  docks_->applyLayout(current_);
}

void TaskLayouts::keep() const {
  QSettings settings;
  settings.setValue(keyOf(current_), docks_->arrangement());
  settings.setValue(QStringLiteral("layouts/current"), QString::fromLatin1(kNames[static_cast<int>(current_)]));
}

}  // namespace fusebox::window
