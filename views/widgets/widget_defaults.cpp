#include "views/widgets/widget_defaults.h"

#include <QEvent>
#include <QLabel>
#include <QSplitter>

namespace fusebox::views {
namespace {

constexpr int kHandleWidth = 7;

}  // namespace

bool WidgetDefaults::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Polish) {
    if (auto* label = qobject_cast<QLabel*>(watched); label && label->textFormat() == Qt::AutoText) label->setTextFormat(Qt::PlainText);
    if (auto* splitter = qobject_cast<QSplitter*>(watched)) {
      splitter->setChildrenCollapsible(false);
      splitter->setHandleWidth(kHandleWidth);
    }
  }
  return QObject::eventFilter(watched, event);
}

}  // namespace fusebox::views
