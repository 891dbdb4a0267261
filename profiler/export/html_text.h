#pragma once

#include <string>
#include <string_view>

namespace fusebox::exporting {

/// The style of every page that Fusebox writes, light and dark.
extern const std::string_view kHtmlStyle;
/// Text as HTML shows it; control characters become spaces.
std::string escaped(std::string_view text);

}  // namespace fusebox::exporting
