#include "views/widgets/empty_state.h"

namespace fusebox::views {

EmptyState::EmptyState(QWidget* content, const QString& name, QWidget* parent)
    : QStackedWidget(parent), label_(new QLabel) {
  label_->setObjectName(name + QStringLiteral(".empty"));
  label_->setTextFormat(Qt::RichText);
  label_->setAlignment(Qt::AlignCenter);
  label_->setWordWrap(true);
  label_->setMargin(24);
  label_->setMinimumSize(1, 1);  // the words need no more room than the content does
  label_->setProperty("role", QStringLiteral("muted"));
  addWidget(content);
  addWidget(label_);
}

void EmptyState::showReason(const QString& headline, const QString& hint) {
  label_->setText(hint.isEmpty() ? QStringLiteral("<p><b>%1</b></p>").arg(headline.toHtmlEscaped())
                                 : QStringLiteral("<p><b>%1</b></p><p>%2</p>")
                                       .arg(headline.toHtmlEscaped(), hint.toHtmlEscaped()));
  setCurrentIndex(1);
}

void EmptyState::showReading() { showReason(tr("Reading the session…")); }

void EmptyState::showNoSession() {
  showReason(tr("No session yet"), tr("That of a program that starts is shown as soon as it compiles something. Else run a script, or open a session or a trace."));
}

}  // namespace fusebox::views
