#pragma once

#include <QObject>

#include "views/common/location.h"

namespace fusebox::views {

/// What all views have in common: the current thing. `select` lets the other visible views follow; `open` asks the window
/// to bring up a view that can show it.
class SelectionBus : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  const Location& current() const { return current_; }

  void select(const Location& location, QObject* from) {
    current_ = location;
    emit selected(location, from);
  }
  void open(const Location& location) { emit openRequested(location); }
  /// Asks the window to open another session.
  void openFile(QString session) { emit fileRequested(session); }

 signals:
  void selected(const fusebox::views::Location& location, QObject* from);
  void openRequested(const fusebox::views::Location& location);
  void fileRequested(const QString& session);

 private:
  Location current_;
};

}  // namespace fusebox::views
