#include "views/widgets/side_splitter.h"

#include <QResizeEvent>

namespace fusebox::views {

int SideSplitter::content() const {
  for (int i = 0; i < count(); ++i) {
    if (widget(i)->sizePolicy().horizontalStretch() > 0) return i;
  }
  return 0;
}

void SideSplitter::resizeEvent(QResizeEvent* event) {
  const bool below = event->size().width() < narrow_;
  if (below && orientation() == Qt::Horizontal) {
    wideSizes_ = sizes();
    setOrientation(Qt::Vertical);
    QList<int> parts;
    for (int i = 0; i < count(); ++i) parts << (i == content() ? 3 * event->size().height() / 5 : event->size().height() / 4);
    setSizes(parts);
  } else if (!below && orientation() == Qt::Vertical) {
    setOrientation(Qt::Horizontal);
    setSizes(wideSizes_);
  }
  QSplitter::resizeEvent(event);
}

}  // namespace fusebox::views
