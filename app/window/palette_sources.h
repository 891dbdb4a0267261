#pragma once

#include "views/common/location.h"
#include "views/widgets/action_registry.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/session_link.h"

namespace fusebox::window {

/// What the palette finds besides commands: nodes, kernels, passes, files, guards and functions of the open session
/// (none without one), and settings. `open` brings up a view of the place.
QList<views::PaletteSource> paletteSources(const views::ActionRegistry& registry, views::SessionLink* session,
                                           QObject* owner, std::function<void(const views::Location&)> open);

}  // namespace fusebox::window
