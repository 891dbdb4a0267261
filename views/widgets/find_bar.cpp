#include "views/widgets/find_bar.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QToolButton>

#include "views/widgets/theme.h"

namespace fusebox::views {

FindBar::FindBar(const QString& name, std::function<bool(const QString&, FindStep)> search, QWidget* parent)
    : QWidget(parent), search_(std::move(search)), edit_(new QLineEdit), state_(new QLabel) {
  setObjectName(QStringLiteral("viewToolbar"));
  setAttribute(Qt::WA_StyledBackground);
  edit_->setObjectName(name);
  edit_->setPlaceholderText(tr("Find"));
  edit_->setAccessibleName(tr("Text to find"));
  state_->setProperty("role", QStringLiteral("muted"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(6, 4, 6, 4);
  row->addWidget(edit_, 1);
  row->addWidget(state_);
  const auto button = [&](const QString& icon, const QString& id, const QString& text, auto action) {
    auto* made = new QToolButton;
    made->setObjectName(name + id);
    made->setToolTip(text);
    made->setAccessibleName(text);
    const auto paint = [made, icon] { made->setIcon(Theme::instance().icon(icon)); };
    paint();
    connect(&Theme::instance(), &Theme::changed, made, paint);
    connect(made, &QToolButton::clicked, this, action);
    row->addWidget(made);
  };
  button(QStringLiteral("back"), QStringLiteral(".previous"), tr("Previous hit (Shift+F3)"), [this] { run(FindStep::Previous); });
  button(QStringLiteral("forward"), QStringLiteral(".next"), tr("Next hit (F3)"), [this] { run(FindStep::Next); });
  button(QStringLiteral("close"), QStringLiteral(".close"), tr("Close"), [this] { hide(); });
  connect(edit_, &QLineEdit::returnPressed, this, [this] { run(FindStep::Next); });
  connect(edit_, &QLineEdit::textEdited, this, [this] { run(FindStep::Here); });
  hide();
}

void FindBar::open() {
  show();
  edit_->setFocus(Qt::ShortcutFocusReason);
  edit_->selectAll();
}

void FindBar::run(FindStep step) {
  const bool found = search_(edit_->text(), step);
  state_->setText(found || edit_->text().isEmpty() ? QString() : tr("Not found"));
}

void FindBar::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    search_({}, FindStep::Here);
    hide();
    if (parentWidget()) parentWidget()->setFocus();
  } else if (event->key() == Qt::Key_F3) {
    run(event->modifiers() & Qt::ShiftModifier ? FindStep::Previous : FindStep::Next);
  } else {
    QWidget::keyPressEvent(event);
  }
}

}  // namespace fusebox::views
