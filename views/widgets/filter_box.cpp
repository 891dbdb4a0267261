#include "views/widgets/filter_box.h"

#include <QHBoxLayout>
#include <QKeyEvent>

#include "views/widgets/theme.h"

namespace fusebox::views {

FilterBox::FilterBox(const QString& name, const QString& placeholder, QWidget* parent)
    : QWidget(parent), edit_(new QLineEdit), hits_(new QLabel) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  row->addWidget(edit_, 1);
  row->addWidget(hits_);
  edit_->setObjectName(name);
  edit_->setPlaceholderText(placeholder);
  edit_->setAccessibleName(placeholder);
  edit_->setToolTip(tr("Words that must occur; a word with a minus sign before it must not. Esc clears."));
  edit_->setClearButtonEnabled(true);
  edit_->installEventFilter(this);
  hits_->setProperty("role", QStringLiteral("muted"));
  hits_->hide();
  delay_.setSingleShot(true);
  delay_.setInterval(120);
  connect(edit_, &QLineEdit::textChanged, &delay_, qOverload<>(&QTimer::start));
  connect(&delay_, &QTimer::timeout, this, [this] { emit filterChanged(edit_->text()); });
  setFocusProxy(edit_);
}

void FilterBox::setHits(int shown, int all) {
  hits_->setVisible(!edit_->text().isEmpty());
  hits_->setText(tr("%1 of %2").arg(shown).arg(all));
}

void FilterBox::setNote(const QString& note) {
  hits_->setVisible(!note.isEmpty());
  hits_->setText(note);
}

void FilterBox::focusFilter() {
  edit_->setFocus(Qt::ShortcutFocusReason);
  edit_->selectAll();
}

bool FilterBox::eventFilter(QObject* watched, QEvent* event) {
  if (watched == edit_ && event->type() == QEvent::KeyPress) {
    switch (static_cast<QKeyEvent*>(event)->key()) {
      case Qt::Key_Escape:
        if (edit_->text().isEmpty()) break;
        edit_->clear();
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
      case Qt::Key_Down:
        delay_.stop();
        emit filterChanged(edit_->text());
        emit leave();
        return true;
      default:
        break;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace fusebox::views
