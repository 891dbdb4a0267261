#pragma once

#include <QObject>

namespace fusebox::views {

/// Installed on the application: what holds for every widget of a kind, set before it is first shown.
/// Names come from files, so that a label or tooltip shows text, whatever it looks like, unless it asked for RichText. A list beside another
/// cannot be pushed to nothing, and the handle between them can be seen and taken.
class WidgetDefaults : public QObject {
 public:
  using QObject::QObject;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
};

}  // namespace fusebox::views
