#include "views/overview/number_card.h"

#include <QKeyEvent>
#include <QPainter>
#include <QStyleOption>
#include <QVBoxLayout>

#include "views/widgets/theme.h"

namespace fusebox::views {

NumberCard::NumberCard(const QString& name, const QString& title, const QString& counts) : value_(new QLabel(QStringLiteral("–"))), note_(new QLabel) {
  setObjectName(QStringLiteral("overview.card.") + name);
  setProperty("role", QStringLiteral("card"));
  setAccessibleName(title);
  setToolTip(counts);
  setCursor(Qt::PointingHandCursor);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);  // a button would rather not be narrower than its words
  setAttribute(Qt::WA_Hover);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(10, 7, 10, 7);
  column->setSpacing(1);
  auto* caption = new QLabel(title);
  caption->setProperty("role", QStringLiteral("muted"));
  value_->setObjectName(QStringLiteral("overview.number.") + name);
  value_->setAccessibleName(title);
  QFont big = value_->font();
  big.setPointSizeF(big.pointSizeF() * 1.45);
  value_->setFont(big);
  note_->setObjectName(QStringLiteral("overview.note.") + name);
  note_->setProperty("role", QStringLiteral("muted"));
  for (QLabel* label : {caption, value_, note_}) {
    label->setMinimumWidth(1);
    column->addWidget(label);
  }
}

void NumberCard::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  QStyleOption option;
  option.initFrom(this);
  style()->drawPrimitive(QStyle::PE_Widget, &option, &painter, this);
  paintFrame(painter, *this);
}

void NumberCard::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return click();
  QAbstractButton::keyPressEvent(event);
}

}  // namespace fusebox::views
