#include "views/widgets/plain_labels.h"

#include <QEvent>
#include <QLabel>

namespace fusebox::views {

bool PlainLabels::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Polish) {
    if (auto* label = qobject_cast<QLabel*>(watched); label && label->textFormat() == Qt::AutoText) label->setTextFormat(Qt::PlainText);
  }
  return QObject::eventFilter(watched, event);
}

}  // namespace fusebox::views
