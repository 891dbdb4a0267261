#pragma once

#include <QSettings>
#include <QThreadPool>
#include <QVariantMap>
#include <functional>

namespace fusebox::window {

/// One thread, one job after the other: QSettings waits until the disk has what was changed, which may take seconds. The application
/// waits for what is left to do when it ends.
QThreadPool& settingsThread();

/// Changes the user's settings there.
void changeSettings(std::function<void(QSettings&)> change);

/// A setting as it was when first asked, or as keepSettings left it since. Only the first question waits for the disk, and not for long:
/// until a slow one has answered, `otherwise` is all there is. GUI thread.
QVariant setting(const QString& key, const QVariant& otherwise = {});
/// Whether the disk has answered: what was not read is not to be written over.
bool areSettingsRead();
/// New values, seen at once and written by the settings' thread; an invalid one removes its key. GUI thread.
void keepSettings(const QVariantMap& values);
/// All settings are as a new user finds them. Waits for the disk.
void forgetSettings();

}  // namespace fusebox::window
