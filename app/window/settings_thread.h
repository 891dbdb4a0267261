#pragma once

#include <QSettings>
#include <QThreadPool>
#include <functional>

namespace fusebox::window {

/// One thread, one job after the other: QSettings waits until the disk has what was changed, which may take seconds. The application
/// waits for what is left to do when it ends.
QThreadPool& settingsThread();

/// Changes the user's settings there.
void changeSettings(std::function<void(QSettings&)> change);

}  // namespace fusebox::window
