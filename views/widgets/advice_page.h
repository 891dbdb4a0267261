#pragma once

#include "profiler/query/advice.h"
#include "profiler/query/symbols.h"
#include "views/common/table.h"
#include "views/widgets/details_panel.h"

namespace fusebox::views {

/// What to do, as a section of a details page: each remedy with its reason and the change of the script as a coloured
/// diff.
void writeAdvice(DetailsPanel& page, const std::vector<query::Advice>& advice);
/// The symbols that sizes name, as a section: each with where it is read, the values that it may take and the one at capture.
void writeSymbols(DetailsPanel& page, const std::vector<query::ShapeSymbol>& symbols);
/// A recorded stack, innermost first, each frame a link to its line; frames of PyTorch and of Python's start-up are
/// left out unless there is nothing else.
void writeStack(DetailsPanel& page, const std::vector<query::StackPlace>& stack);

}  // namespace fusebox::views
