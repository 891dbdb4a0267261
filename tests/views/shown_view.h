#pragma once

#include <QThreadPool>
#include <QtTest>
#include <memory>

#include "views/widgets/view.h"
#include "tests/patience.h"

namespace fusebox::test {

/// What a view needs to be shown in a test: a session and a selection bus, those of the view that was shown last.
class ShownView {
 protected:
  template <class T>
  std::unique_ptr<T> show(const QString& path) {
    bus_ = std::make_unique<views::SelectionBus>();
    auto view = std::make_unique<T>(views::ViewContext{bus_.get(), program_});
    view->resize(1200, 700);
    view->show();
    link_ = std::make_unique<views::SessionLink>(path);
    QSignalSpy opened(link_.get(), &views::SessionLink::opened);
    if (opened.isEmpty()) opened.wait(kLongMs);
    view->setSession(link_.get());
    return view;
  }

  /// Waits until every question has its answer and what is calculated from the answers is shown.
  bool settles() const {
    int quiet = 0;  // an answer may ask again, and a calculation hand over its result
    return QTest::qWaitFor(
        [&] {
          const bool busy = link_->pending() > 0 || QThreadPool::globalInstance()->activeThreadCount() > 0;
          return (quiet = busy ? 0 : quiet + 1) > 3;
        },
        kLongMs);
  }

  static constexpr int kLongMs = 30'000;
  QString program_;  ///< what views start to compile a graph again
  std::unique_ptr<views::SessionLink> link_;
  std::unique_ptr<views::SelectionBus> bus_;
};

}  // namespace fusebox::test
