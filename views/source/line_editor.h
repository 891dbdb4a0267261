#pragma once

#include <QString>
#include <QStringList>

namespace fusebox::views {

/// Program and arguments that show a line of a file in the user's editor: `wish` (what FUSEBOX_EDITOR says, with {file} and {line} where they
/// go; without {file} it comes last), else the first known editor with a window that is installed. Empty: there is none. A session may name any
/// file, so nothing is opened that would run it.
QStringList editorCommand(const QString& wish, const QString& file, int line);

}  // namespace fusebox::views
