#pragma once

#include <QWidget>
#include <functional>

namespace fusebox::window {

/// Asks whether the program that `window` runs may be ended so that the window closes; once at a time. Hours of work may hang on a key
/// that was hit by mistake. Does not block: `end` is called when the person says so.
void askBeforeEnding(QWidget* window, std::function<void()> end);

}  // namespace fusebox::window
