#pragma once

#include <QString>
#include <string>

namespace fusebox::views {

/// Text of a session or model, in UTF-8, as Qt has it.
inline QString str(const std::string& text) { return QString::fromStdString(text); }

}  // namespace fusebox::views
