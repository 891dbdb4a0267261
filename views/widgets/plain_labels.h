#pragma once

#include <QObject>

namespace fusebox::views {

/// Names come from files: a label or tooltip shows them as text, whatever they look like. Installed on the application, it makes every label
/// plain that did not ask for RichText before it was first shown.
class PlainLabels : public QObject {
 public:
  using QObject::QObject;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
};

}  // namespace fusebox::views
