#include "views/find/find_view.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QVBoxLayout>

#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

constexpr int kMostHits = 500;  // of a group
constexpr int kDelayMs = 180;

}  // namespace

FindView::FindView(const ViewContext& context)
    : View(context), edit_(new QLineEdit), state_(new QLabel), cancel_(new QToolButton) {
  edit_->setObjectName(QStringLiteral("find.text"));
  edit_->setAccessibleName(tr("Text to find in the whole session"));
  edit_->setPlaceholderText(tr("Find in functions, breaks, guards, graphs, kernels, passes, source lines and records"));
  edit_->setClearButtonEnabled(true);
  state_->setObjectName(QStringLiteral("find.state"));
  state_->setProperty("role", QStringLiteral("muted"));
  cancel_->setObjectName(QStringLiteral("find.cancel"));
  cancel_->setText(tr("Stop"));
  cancel_->setAccessibleName(tr("Stop searching"));
  cancel_->setToolTip(tr("Stop searching; what was found stays"));
  cancel_->setEnabled(false);
  table_ = new DataTable(QStringLiteral("find.table"), tr("Filter what was found"),
                         {{tr("In"), tr("What kind of thing it is")}, {tr("What")}, {tr("Detail")}, {tr("Line")}});
  table_->setWidestColumn(520);
  sayEmpty();
  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(6, 4, 6, 4);
  row->addWidget(edit_, 1);
  row->addWidget(state_);
  row->addWidget(cancel_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(table_, 1);
  setFocusProxy(edit_);
  delay_.setSingleShot(true);
  delay_.setInterval(kDelayMs);

  connect(edit_, &QLineEdit::textChanged, this, [this] { delay_.start(); });
  connect(edit_, &QLineEdit::returnPressed, this, [this] {
    if (delay_.isActive()) {
      delay_.stop();
      return search();
    }
    table_->table()->setFocus();
    if (table_->filter()->rowCount() > 0 && !table_->current()) table_->table()->selectRow(0);
  });
  connect(&delay_, &QTimer::timeout, this, &FindView::search);
  connect(cancel_, &QToolButton::clicked, this, &FindView::cancel);
  connect(table_, &DataTable::rowSelected, this, [this](const TableRow& hit) { announce(hit.location); });
  connect(table_, &DataTable::rowActivated, this, [this](const TableRow& hit) { bus()->open(hit.location); });
}

void FindView::sayEmpty() {
  if (edit_->text().trimmed().isEmpty()) {
    table_->setEmptyText(tr("Find in the whole session"), tr("Type a part of a name, an operator, a guard, a value or a line of the "
                                                             "program above. Letters match in both cases."));
  } else if (waiting_ > 0) {
    table_->setEmptyText(tr("Searching…"), {});
  } else {
    table_->setEmptyText(tr("Nothing found"), tr("No name, operator, guard, value or line of the program has this text."));
  }
}

QString FindView::nameOf(query::SearchKind kind) {
  using query::SearchKind;
  switch (kind) {
    case SearchKind::Files:
      return tr("Files");
    case SearchKind::Frames:
      return tr("Functions");
    case SearchKind::Breaks:
      return tr("Graph breaks");
    case SearchKind::Failures:
      return tr("Failed guards");
    case SearchKind::Guards:
      return tr("Guards");
    case SearchKind::Kernels:
      return tr("Kernels");
    case SearchKind::Operators:
      return tr("Operators");
    case SearchKind::Groups:
      return tr("Fusion groups");
    case SearchKind::Nodes:
      return tr("Nodes");
    case SearchKind::Passes:
      return tr("Passes");
    case SearchKind::Lines:
      return tr("Source lines");
    case SearchKind::Artifacts:
      return tr("Records");
    case SearchKind::Losses:
      return tr("Losses");
  }
  return {};
}

void FindView::find() {
  edit_->setFocus();
  edit_->selectAll();
}

void FindView::clear() {
  cancel();
  rows_.clear();
  table_->setRows({});
  state_->clear();
}

void FindView::search() {
  cancel();
  rows_.clear();
  more_ = false;
  table_->setRows({});
  const std::string text = edit_->text().trimmed().toStdString();
  if (!session() || text.empty()) return sayState();
  const int serial = ++serial_;
  for (const auto& subject : query::searchSubjects()) {
    ++waiting_;
    session()->ask<query::SearchGroup>(
        this, subject.name,
        [kind = subject.kind, text](session::Reader& reader) { return query::searchIn(reader, kind, text, kMostHits); },
        [this, serial](Result<query::SearchGroup>& group) {
          if (serial != serial_) return;
          --waiting_;
          if (group) addGroup(*group);
          sayState();
        });
  }
  sayState();
}

void FindView::cancel() {
  if (waiting_ == 0) return;
  ++serial_;
  waiting_ = 0;
  if (session()) session()->forget(this);
  sayState();
}

void FindView::addGroup(const query::SearchGroup& group) {
  more_ = more_ || group.more;
  if (group.hits.empty()) return;
  TableRows rows = hitRows(group, nameOf(group.kind).toStdString());
  rows_.insert(rows_.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  table_->setRows(rows_);
}

void FindView::sayState() {
  sayEmpty();
  cancel_->setEnabled(waiting_ > 0);
  if (waiting_ > 0) return state_->setText(tr("searching…"));
  if (edit_->text().trimmed().isEmpty()) return state_->clear();
  state_->setText(more_ ? tr("the first %n of each kind", nullptr, kMostHits)
                        : tr("%n found", nullptr, static_cast<int>(rows_.size())));
}

}  // namespace fusebox::views
