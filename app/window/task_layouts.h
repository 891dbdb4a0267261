#pragma once

#include "app/window/dock_host.h"

namespace fusebox::window {

/// Arrangements of the views by task. Each is as it was left: what a person moved in "Profile" is there again when they
/// come back to it, in this run and the next.
class TaskLayouts {
 public:
  explicit TaskLayouts(DockHost* docks) : docks_(docks) {}

  /// The arrangement of the last run.
  void restore();
  void choose(DockHost::Layout layout);
  /// Back to how the current one came.
  void reset();
  /// Keeps the current arrangement; before the window closes.
  void keep() const;
  DockHost::Layout current() const { return current_; }

 private:
  DockHost* docks_;
  DockHost::Layout current_ = DockHost::Layout::Tabs;
};

}  // namespace fusebox::window
