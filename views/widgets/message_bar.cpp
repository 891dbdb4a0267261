#include "views/widgets/message_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/widgets/theme.h"

namespace fusebox::views {

MessageBar::MessageBar(QWidget* parent) : QFrame(parent) {
  setObjectName(QStringLiteral("messageBar"));
  setAccessibleName(tr("Message"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 7, 8, 7);
  row->setSpacing(10);
  icon_ = new QLabel;
  what_ = new QLabel;
  what_->setObjectName(QStringLiteral("messageBar.what"));
  what_->setProperty("role", QStringLiteral("title"));
  details_ = new QLabel;
  details_->setObjectName(QStringLiteral("messageBar.details"));
  for (QLabel* label : {what_, details_}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  }
  auto* column = new QVBoxLayout;
  column->setSpacing(2);
  column->addWidget(what_);
  column->addWidget(details_);
  action_ = new QPushButton;
  action_->setObjectName(QStringLiteral("messageBar.action"));
  action_->setAccessibleName(tr("What can be done"));
  auto* close = new QToolButton;
  close->setObjectName(QStringLiteral("messageBar.close"));
  close->setAccessibleName(tr("Close message"));
  close->setToolTip(tr("Close message"));
  const auto icons = [this, close] {
    close->setIcon(Theme::instance().icon(QStringLiteral("close")));
    icon_->setPixmap(Theme::instance().icon(QStringLiteral("break")).pixmap(16, 16));
  };
  icons();
  connect(&Theme::instance(), &Theme::changed, this, icons);
  row->addWidget(icon_, 0, Qt::AlignTop);
  row->addLayout(column, 1);
  row->addWidget(action_, 0, Qt::AlignVCenter);
  row->addWidget(close, 0, Qt::AlignTop);
  connect(close, &QToolButton::clicked, this, &MessageBar::dismiss);
  connect(action_, &QPushButton::clicked, this, &MessageBar::actionTriggered);
  hide();
}

void MessageBar::say(Severity severity, const QString& what, const QString& details, const QString& action) {
  static const char* const kNames[] = {"info", "warning", "error"};
  severity_ = severity;
  setProperty("severity", QString::fromLatin1(kNames[static_cast<int>(severity)]));
  style()->unpolish(this);
  style()->polish(this);
  icon_->setVisible(severity != Severity::Info);
  what_->setText(what);
  details_->setText(details);
  details_->setVisible(!details.isEmpty());
  action_->setText(action);
  action_->setVisible(!action.isEmpty());
  setAccessibleDescription(text());
  show();
}

void MessageBar::dismiss() {
  what_->clear();
  details_->clear();
  hide();
}

QString MessageBar::text() const {
  return details_->text().isEmpty() ? what_->text() : what_->text() + QLatin1Char('\n') + details_->text();
}

}  // namespace fusebox::views
