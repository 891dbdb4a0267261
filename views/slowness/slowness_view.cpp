#include "views/slowness/slowness_view.h"

#include <QHBoxLayout>
#include <QSplitter>
#include <QVBoxLayout>

#include "profiler/session/reader.h"
#include "views/slowness/slowness_model.h"
#include "views/widgets/text.h"

namespace fusebox::views {

SlownessView::SlownessView(const ViewContext& context) : View(context) {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(14, 12, 14, 8);
  column->setSpacing(8);
  headline_ = new QLabel;
  headline_->setObjectName(QStringLiteral("slowness.headline"));
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont big = headline_->font();
  big.setPointSizeF(big.pointSizeF() * 1.3);
  big.setBold(true);
  headline_->setFont(big);
  scope_ = new QComboBox;
  scope_->setObjectName(QStringLiteral("slowness.scope"));
  scope_->setAccessibleName(tr("What to split"));
  scope_->addItem(tr("A step of the loop"), false);
  scope_->addItem(tr("The whole recording"), true);
  scope_->setToolTip(tr("A step is one turn of the program's loop: marked by a profiler, or the pattern of calls that repeats"));
  connect(scope_, &QComboBox::currentIndexChanged, this, [this] {
    if (session()) load();
  });
  auto* top = new QHBoxLayout;
  top->addWidget(headline_);
  top->addStretch(1);
  top->addWidget(scope_);
  column->addLayout(top);
  note_ = new QLabel;
  note_->setObjectName(QStringLiteral("slowness.note"));
  limits_ = new QLabel;
  limits_->setObjectName(QStringLiteral("slowness.limits"));
  for (QLabel* label : {note_, limits_}) {
    label->setProperty("role", QStringLiteral("muted"));
    label->setWordWrap(true);
    label->setMinimumWidth(1);
  }
  column->addWidget(note_);
  bar_ = new StageBar;
  bar_->setObjectName(QStringLiteral("slowness.bar"));
  bar_->setAccessibleName(tr("Time by kind"));
  column->addWidget(bar_);
  column->addWidget(limits_);

  kinds_ = new DataTable(QStringLiteral("slowness.kinds"), tr("Filter kinds of time"),
                         {{tr("Where time goes")}, {tr("Time"), tr("Of a step, on average"), true}, {tr("Share"), {}, true}, {tr("Times"), tr("Launches, calls … in a step; compilations in all steps that were read"), true}, {tr("What it is")}});
  kinds_->setEmptyText(tr("Nothing takes time"), {});
  parts_ = new DataTable(QStringLiteral("slowness.parts"), tr("Filter parts"),
                         {{tr("Part")}, {tr("Time"), tr("Of a step, on average"), true}, {tr("Share"), tr("Of the step"), true}, {tr("Times"), {}, true},
                          {tr("Result"), tr("What the kernel makes"), false, true}, {tr("Module"), tr("Which asked for it"), false, true}, {tr("Line")}});
  parts_->setEmptyText(tr("No parts"), tr("Select a row above; what is outside compiled code is not recorded."));
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(kinds_);
  split->addWidget(parts_);
  split->setSizes({330, 280});
  column->addWidget(split, 1);
  connect(kinds_, &DataTable::rowSelected, this, [this] {
    const QModelIndex current = kinds_->filter()->mapToSource(kinds_->table()->currentIndex());
    if (current.isValid()) showParts(static_cast<size_t>(current.row()));
  });
  connect(parts_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  for (DataTable* table : {kinds_, parts_}) {
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (row.location.kind != ObjectKind::None || !row.location.view.empty()) bus()->open(row.location);
    });
  }
  empty_ = new EmptyState(page, QStringLiteral("slowness"));
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(empty_);
  QAction* picture = addViewAction(QStringLiteral("export"), tr("Export times by kind…"), QStringLiteral("export"));
  connect(picture, &QAction::triggered, this, [this] { exportPicture(bar_->picture(), QStringLiteral("why-slow"), this); });
  QAction* csv = addViewAction(QStringLiteral("csv"), tr("Export table of kinds…"), QStringLiteral("export"));
  connect(csv, &QAction::triggered, kinds_, &DataTable::exportCsv);
  clear();
}

void SlownessView::clear() {
  slowness_ = {};
  kinds_->setRows({});
  parts_->setRows({});
  if (session()) empty_->showReading();
  else empty_->showNoSession();
}

void SlownessView::load() {
  const bool whole = scope_->currentData().toBool();
  session()->ask<query::Slowness>(
      this, "slowness", [whole](session::Reader& reader) { return query::whySlow(reader, whole); },
      [this](Result<query::Slowness>& result) {
        if (!result) return empty_->showReason(tr("The time cannot be split"), str(result.error().message));
        slowness_ = std::move(*result);
        fill();
        empty_->showContent();
      });
}

void SlownessView::fill() {
  headline_->setText(str(slownessHeadline(slowness_)));
  scope_->setVisible(!slowness_.wholeRun || scope_->currentData().toBool());  // where nothing repeats there is nothing to choose
  note_->setText(str(slownessNote(slowness_)));
  QStringList limits;
  for (const auto& limit : slowness_.limits) limits << str(limit);
  limits_->setText(limits.join(QLatin1Char('\n')));
  limits_->setVisible(!limits.isEmpty());
  std::vector<StageBar::Part> bar;
  for (const auto& row : slowness_.rows) bar.push_back({str(row.title), row.ns / 1e6, timeCategory(row.kind)});
  bar_->setParts(std::move(bar), slowness_.stepNs / 1e6);
  kinds_->setRows(slownessRows(slowness_));
  if (!kinds_->current() && kinds_->filter()->rowCount() > 0) kinds_->table()->selectRow(0);
  const QModelIndex current = kinds_->filter()->mapToSource(kinds_->table()->currentIndex());
  showParts(current.isValid() ? static_cast<size_t>(current.row()) : 0);
}

void SlownessView::showParts(size_t row) { parts_->setRows(slownessParts(slowness_, row)); }

}  // namespace fusebox::views
