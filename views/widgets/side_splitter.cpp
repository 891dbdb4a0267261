#include "views/widgets/side_splitter.h"

#include <QResizeEvent>

namespace fusebox::views {

void SideSplitter::resizeEvent(QResizeEvent* event) {
  const bool below = event->size().width() < narrow_;
  if (below && orientation() == Qt::Horizontal) {
    wideSizes_ = sizes();
    setOrientation(Qt::Vertical);
    QList<int> parts;
    for (int i = 0; i < count(); ++i) parts << (i == 0 ? 3 * event->size().height() / 5 : event->size().height() / 4);
    setSizes(parts);
  } else if (!below && orientation() == Qt::Vertical) {
    setOrientation(Qt::Horizontal);
    setSizes(wideSizes_);
  }
  QSplitter::resizeEvent(event);
}

}  // namespace fusebox::views
