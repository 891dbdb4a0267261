#include "views/widgets/command_palette.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPointer>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/fuzzy_match.h"

namespace fusebox::views {

CommandPalette::CommandPalette(const ActionRegistry& registry, QWidget* window)
    : QDialog(window, Qt::Popup | Qt::FramelessWindowHint), registry_(registry), edit_(new QLineEdit), list_(new QListWidget) {
  setObjectName(QStringLiteral("commandPalette"));
  setAccessibleName(tr("Command palette"));
  setAttribute(Qt::WA_DeleteOnClose);
  edit_->setObjectName(QStringLiteral("commandPalette.edit"));
  edit_->setPlaceholderText(tr("Type a command"));
  edit_->setAccessibleName(tr("Command to search"));
  edit_->installEventFilter(this);
  list_->setObjectName(QStringLiteral("commandPalette.list"));
  list_->setAccessibleName(tr("Commands"));
  list_->setFocusPolicy(Qt::NoFocus);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  column->addWidget(edit_);
  column->addWidget(list_);
  const int em = fontMetrics().height();
  resize(std::min(34 * em, window->width() - 40), 22 * em);
  move(window->mapToGlobal(QPoint((window->width() - width()) / 2, 3 * em)));
  connect(edit_, &QLineEdit::textChanged, this, &CommandPalette::update);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run);
  update({});
  before_ = QApplication::focusWidget();
  edit_->setFocus();
}

void CommandPalette::update(const QString& pattern) {
  struct Hit {
    int score;
    const ActionRegistry::Entry* entry;
    QString text;
  };
  std::vector<Hit> hits;
  for (const auto& entry : registry_.entries()) {
    if (!entry.action->isEnabled()) continue;
    QString text = entry.category + QStringLiteral(": ") + entry.action->text();
    text.remove(QLatin1Char('&'));
    if (const auto score = fuzzyScore(pattern.toStdString(), text.toStdString())) hits.push_back({*score, &entry, text});
  }
  if (!pattern.isEmpty()) {
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
  }
  list_->clear();
  for (const Hit& hit : hits) {
    const QString keys = hit.entry->action->shortcut().toString(QKeySequence::NativeText);
    auto* item = new QListWidgetItem(hit.entry->action->icon(),
                                     keys.isEmpty() ? hit.text : QStringLiteral("%1    %2").arg(hit.text, keys), list_);
    item->setData(Qt::UserRole, hit.entry->id);
  }
  list_->setCurrentRow(0);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    switch (key->key()) {
      case Qt::Key_Up:
      case Qt::Key_Down:
      case Qt::Key_PageUp:
      case Qt::Key_PageDown:
        QCoreApplication::sendEvent(list_, event);
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        run();
        return true;
      default:
        break;
    }
  }
  return QDialog::eventFilter(watched, event);
}

void CommandPalette::hideEvent(QHideEvent* event) {
  QDialog::hideEvent(event);
  parentWidget()->activateWindow();
  if (before_) {
    before_->setFocus();
  } else {
    parentWidget()->setFocus();
  }
}

void CommandPalette::run() {
  const auto* item = list_->currentItem();
  QPointer<QAction> action = item ? registry_.find(item->data(Qt::UserRole).toString()) : nullptr;
  close();
  // After the palette has closed, so that the command finds the window's own focus.
  if (action) QTimer::singleShot(0, action, &QAction::trigger);
}

}  // namespace fusebox::views
