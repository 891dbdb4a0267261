#pragma once

#include <vector>

#include "views/widgets/table_adapter.h"

namespace fusebox::views {

/// Headings of the fusion view's tables, in the order of the columns of fusion_model.h.
std::vector<TableColumn> decisionColumns();
std::vector<TableColumn> groupColumns();
std::vector<TableColumn> bufferColumns();
std::vector<TableColumn> numericsColumns();
std::vector<TableColumn> resultColumns();

}  // namespace fusebox::views
