#pragma once

#include <QSplitter>

namespace fusebox::views {

/// A view's content with panels beside it; where the view is narrower than `narrow` pixels, the panels go below, so that the content
/// keeps its width.
class SideSplitter : public QSplitter {
  Q_OBJECT
 public:
  explicit SideSplitter(int narrow, QWidget* parent = nullptr) : QSplitter(parent), narrow_(narrow) {}

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int content() const;  ///< the part that stretches, else the first

  int narrow_;
  QList<int> wideSizes_;  ///< of the last time that the panels were beside
};

}  // namespace fusebox::views
