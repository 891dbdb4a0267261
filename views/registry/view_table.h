#pragma once

#include <span>

#include "views/widgets/view.h"

namespace fusebox::views {

/// One line per view: adding a view is adding its folder and its line in view_table.cpp.
struct ViewEntry {
  View* (*create)(const ViewContext& context);
};

/// Every view in the order of tabs and of Ctrl+1, Ctrl+2, …; also the order in which they are asked to show a location.
std::span<const ViewEntry> viewTable();

}  // namespace fusebox::views
