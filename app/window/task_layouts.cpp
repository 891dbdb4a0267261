#include "app/window/task_layouts.h"

#include "app/window/settings_thread.h"

namespace fusebox::window {
namespace {

constexpr const char* kNames[] = {"tabs", "compile", "debug", "profile"};

QString keyOf(DockHost::Layout layout) {
  return QStringLiteral("layouts/") + QString::fromLatin1(kNames[static_cast<int>(layout)]);
}

}  // namespace

void TaskLayouts::restore() {
  const QString last = setting(QStringLiteral("layouts/current")).toString();
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i) {
    if (last == QLatin1String(kNames[i])) current_ = static_cast<DockHost::Layout>(i);
  }
  docks_->applyLayout(current_);
  docks_->restoreArrangement(setting(keyOf(current_)).toByteArray());
}

void TaskLayouts::choose(DockHost::Layout layout) {
  if (layout == current_) return;
  const QByteArray arrangement = setting(keyOf(layout)).toByteArray();
  keep();
  current_ = layout;
  docks_->applyLayout(layout);
  docks_->restoreArrangement(arrangement);
}

void TaskLayouts::reset() {
  keepSettings({{keyOf(current_), {}}});
  docks_->applyLayout(current_);
}

void TaskLayouts::keep() const {
  if (!areSettingsRead()) return;  // an arrangement that nobody has seen yet is not written over
  keepSettings({{keyOf(current_), docks_->arrangement()}, {QStringLiteral("layouts/current"), QString::fromLatin1(kNames[static_cast<int>(current_)])}});
}

}  // namespace fusebox::window
