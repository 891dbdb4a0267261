#include "views/widgets/side_splitter.h"

#include <QResizeEvent>
#include <algorithm>

namespace fusebox::views {

QSize SideSplitter::minimumSizeHint() const {
  QSize least = QSplitter::minimumSizeHint();
  if (orientation() == Qt::Vertical) return least;
  int widest = 0;
  for (int i = 0; i < count(); ++i) widest = std::max({widest, widget(i)->minimumWidth(), widget(i)->minimumSizeHint().width()});
  least.setWidth(std::min(least.width(), widest));
  return least;
}

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
