#pragma once

#include <QString>

namespace fusebox::views {

class View;

/// Shows what a diff of a recorded file would change on this machine, and changes it where the person says so. A file that is no
/// longer what was recorded is left alone, and so is one that a link leads to.
void offerChange(View* view, const QString& diff);

}  // namespace fusebox::views
