#include "app/window/start_page.h"

#include <QAction>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/window/recent_sessions.h"
#include "views/common/fuzzy_match.h"
#include "views/common/units.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

QPushButton* buttonFor(QAction* action, const QString& name, bool primary) {
  auto* button = new QPushButton(action->text());
  button->setObjectName(name);
  button->setAccessibleName(action->text());
  button->setProperty("primary", primary);
  button->setToolTip(action->toolTip());
  button->setCursor(Qt::PointingHandCursor);
  QObject::connect(button, &QPushButton::clicked, action, &QAction::trigger);
  return button;
}

}  // namespace

StartPage::StartPage(QAction* open, QAction* run, QAction* example, QWidget* parent)
    : QWidget(parent), list_(new QListWidget), filter_(nullptr), none_(new QLabel) {
  setObjectName(QStringLiteral("startPage"));
  auto* title = new QLabel(tr("Fusebox"));
  QFont big = title->font();
  big.setPointSizeF(big.pointSizeF() * 2.1);
  big.setBold(true);
  title->setFont(big);
  auto* subtitle = new QLabel(tr("See what the compiler made of a PyTorch program: graphs, breaks, guards, kernels and their times."));
  subtitle->setProperty("role", QStringLiteral("muted"));
  subtitle->setWordWrap(true);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(buttonFor(run, QStringLiteral("start.run"), true));
  buttons->addWidget(buttonFor(open, QStringLiteral("start.open"), false));
  buttons->addWidget(buttonFor(example, QStringLiteral("start.example"), false));
  buttons->addStretch(1);
  auto* recent = new QLabel(tr("Recent sessions"));
  recent->setProperty("role", QStringLiteral("title"));
  filter_ = new views::FilterBox(QStringLiteral("start.filter"), tr("Filter recent sessions"));
  list_->setObjectName(QStringLiteral("start.recent"));
  list_->setAccessibleName(tr("Recent sessions"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  none_->setObjectName(QStringLiteral("start.none"));
  none_->setProperty("role", QStringLiteral("muted"));
  none_->setWordWrap(true);
  none_->setText(tr("No session yet. Run a script, or record one with “fusebox run script.py”, and it is listed here."));

  auto* column = new QVBoxLayout;
  column->setSpacing(12);
  column->addSpacing(36);
  column->addWidget(title);
  column->addWidget(subtitle);
  column->addLayout(buttons);
  column->addSpacing(14);
  column->addWidget(recent);
  column->addWidget(filter_);
  column->addWidget(none_);
  column->addWidget(list_, 1);
  column->addStretch();  // takes the room where there is no list
  column->addSpacing(24);
  auto* row = new QHBoxLayout(this);
  row->addStretch(1);
  row->addLayout(column, 3);
  row->addStretch(1);

  connect(list_, &QListWidget::itemActivated, this, [this](const QListWidgetItem* item) {
    emit sessionChosen(item->data(Qt::UserRole).toString());
  });
  auto* forget = new QAction(tr("Remove from the list"), list_);
  forget->setObjectName(QStringLiteral("start.forget"));
  forget->setShortcut(QKeySequence::Delete);
  forget->setShortcutContext(Qt::WidgetShortcut);
  connect(forget, &QAction::triggered, this, [this] {
    if (const auto* item = list_->currentItem()) RecentSessions::instance().remove(item->data(Qt::UserRole).toString());
  });
  list_->addAction(forget);
  list_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(filter_, &views::FilterBox::filterChanged, this, &StartPage::fill);
  connect(&RecentSessions::instance(), &RecentSessions::changed, this, &StartPage::fill);
  connect(filter_, &views::FilterBox::leave, this, [this] {
    list_->setFocus();
    if (list_->currentRow() < 0) list_->setCurrentRow(0);
  });
  fill();
  reload();
}

void StartPage::reload() { RecentSessions::instance().reload(); }

void StartPage::fill() {
  const QString current = list_->currentItem() ? list_->currentItem()->data(Qt::UserRole).toString() : QString();
  list_->clear();
  const bool isKnown = RecentSessions::instance().entries().has_value();
  const auto entries = RecentSessions::instance().entries().value_or(QList<RecentSessions::Entry>());
  for (const auto& entry : entries) {
    if (!views::filterMatches(filter_->text().toStdString(), entry.path.toStdString())) continue;
    const QString size = entry.isFolder ? tr("a folder") : QString::fromStdString(views::formatBytes(static_cast<double>(entry.bytes)));
    const QString facts = entry.exists ? tr("%1, %2").arg(QLocale().toString(entry.modified, QLocale::ShortFormat), size) : tr("the file is gone");
    auto* item = new QListWidgetItem(QStringLiteral("%1\n%2").arg(entry.path, facts), list_);
    item->setData(Qt::UserRole, entry.path);
    item->setToolTip(entry.path);
    if (!entry.exists) item->setForeground(views::themed(views::Token::TextFaint));
    if (entry.path == current) list_->setCurrentItem(item);
  }
  filter_->setHits(list_->count(), static_cast<int>(entries.size()));
  filter_->setVisible(entries.size() > 3);
  none_->setVisible(isKnown && entries.isEmpty());
  list_->setVisible(!entries.isEmpty());
}

}  // namespace fusebox::window
