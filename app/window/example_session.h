#pragma once

#include <QString>

namespace fusebox::window {

/// The recorded session that comes with Fusebox (resources/examples/first_steps.py under its own engine), put into the
/// cache folder, so that the first start has something to look at. Empty if it cannot be written; `problem` says why.
QString exampleSession(QString* problem);

}  // namespace fusebox::window
