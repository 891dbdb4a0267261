#include "views/widgets/command_palette.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPointer>
#include <QRegularExpression>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/fuzzy_match.h"
#include "views/widgets/theme.h"

namespace fusebox::views {

CommandPalette::CommandPalette(const ActionRegistry& registry, QWidget* window, QList<PaletteSource> sources)
    : QDialog(window, Qt::Popup | Qt::FramelessWindowHint), registry_(registry), edit_(new QLineEdit), list_(new QListWidget), sources_(std::move(sources)) {
  setObjectName(QStringLiteral("commandPalette"));
  setAccessibleName(tr("Command palette"));
  setAttribute(Qt::WA_DeleteOnClose);
  QStringList prefixes;
  for (const PaletteSource& source : sources_) prefixes << QStringLiteral("%1 %2").arg(source.prefix, source.title.toLower());
  edit_->setObjectName(QStringLiteral("commandPalette.edit"));
  edit_->setPlaceholderText(prefixes.isEmpty() ? tr("Type a command") : tr("Type a command, or a letter and a space: %1").arg(prefixes.join(QStringLiteral(", "))));
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
  resize(std::min(46 * em, window->width() - 40), 22 * em);
  move(window->mapToGlobal(QPoint((window->width() - width()) / 2, 3 * em)));
  connect(edit_, &QLineEdit::textChanged, this, &CommandPalette::update);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run);
  update({});
  before_ = QApplication::focusWidget();
  edit_->setFocus();
}

void CommandPalette::update(const QString& text) {
  constexpr int kMostOfOne = 200, kMostOfEach = 6, kFewestLetters = 2;
  ++serial_;
  list_->clear();
  runs_.clear();
  for (const PaletteSource& source : sources_) {
    if (text.startsWith(source.prefix + QLatin1Char(' '))) return askSource(source, text.mid(source.prefix.size() + 1).trimmed(), kMostOfOne);
  }
  const QString pattern = text.trimmed();
  addCommands(pattern);
  list_->setCurrentRow(0);
  if (pattern.size() < kFewestLetters) return;
  for (const PaletteSource& source : sources_) askSource(source, pattern, kMostOfEach);
}

void CommandPalette::addCommands(const QString& pattern) {
  // What Return runs must be what the words name: a view by its title, then commands by their own text, then those of a menu
  // or view that is called so, then letters here and there.
  enum Rank { ViewTitle, OwnText, CategoryToo, Letters };
  struct Hit {
    Rank rank;
    int score;
    const ActionRegistry::Entry* entry;
    QString text;
  };
  std::vector<Hit> hits;
  const QRegularExpression words(QStringLiteral("(?<!\\w)") + QRegularExpression::escape(pattern),
                                 QRegularExpression::CaseInsensitiveOption | QRegularExpression::UseUnicodePropertiesOption);
  const auto inside = [&](const QString& text) { return text.contains(words); };
  for (const auto& entry : registry_.entries()) {
    if (!entry.action->isEnabled()) continue;
    QString own = entry.action->text();
    own.remove(QLatin1Char('&'));
    const QString text = QString(entry.category).remove(QLatin1Char('&')) + QStringLiteral(": ") + own;
    const auto score = fuzzyScore(pattern.toStdString(), text.toStdString());
    if (!score) continue;
    const Rank rank = !inside(text) ? Letters : !inside(own) ? CategoryToo : entry.id.startsWith(QLatin1String("view.")) ? ViewTitle : OwnText;
    // Among commands by their own text, where in it; the category's length says nothing.
    const auto ownScore = rank <= OwnText ? fuzzyScore(pattern.toStdString(), own.toStdString()) : score;
    hits.push_back({rank, ownScore.value_or(*score), &entry, text});
  }
  if (!pattern.isEmpty()) {
    std::stable_sort(hits.begin(), hits.end(),
                     [](const Hit& a, const Hit& b) { return a.rank != b.rank ? a.rank < b.rank : a.score > b.score; });
  }
  for (const Hit& hit : hits) {
    addItem(hit.entry->action->icon(), hit.text, hit.entry->action->shortcut().toString(QKeySequence::NativeText),
            [action = QPointer<QAction>(hit.entry->action)] {
              if (action) action->trigger();
            });
  }
}

void CommandPalette::askSource(const PaletteSource& source, const QString& pattern, int most) {
  source.ask(pattern, [self = QPointer<CommandPalette>(this), serial = serial_, most, title = source.title, icon = Theme::instance().icon(source.icon)](const QList<PaletteItem>& items) {
    if (!self || serial != self->serial_) return;
    for (const PaletteItem& item : items.mid(0, most)) {
      self->addItem(icon, QStringLiteral("%1: %2").arg(title, item.text), item.detail, item.run);
    }
    if (self->list_->currentRow() < 0) self->list_->setCurrentRow(0);
  });
}

void CommandPalette::addItem(const QIcon& icon, const QString& text, const QString& detail, std::function<void()> run) {
  auto* item = new QListWidgetItem(icon, detail.isEmpty() ? text : QStringLiteral("%1    %2").arg(text, detail), list_);
  item->setToolTip(item->text());
  runs_.append(std::move(run));
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
  const int row = list_->currentRow();
  const std::function<void()> chosen = row >= 0 && row < runs_.size() ? runs_[row] : nullptr;
  close();
  // After the palette has closed, so that the command finds the window's own focus.
  if (chosen) QTimer::singleShot(0, parentWidget(), chosen);
}

}  // namespace fusebox::views
