#include "views/widgets/data_table.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QHeaderView>
#include <QMessageBox>
#include <QSaveFile>
#include <QScrollBar>
#include <QVBoxLayout>
#include <set>

#include "views/widgets/picture_export.h"

namespace fusebox::views {
namespace {


/// What tells a row from others when the table is read again: the object that it is about, else its name.
std::string identity(const TableRow& row) {
  const Location& l = row.location;
  std::string key = std::to_string(static_cast<int>(l.kind)) + ' ' + std::to_string(l.id) + ' ' + l.file + ' ' + std::to_string(l.line);
  if (l.kind == ObjectKind::None || l.id == 0) key += '\n' + (row.cells.empty() ? std::string() : row.cells.front().text);
  return key;
}

/// As a cell of CSV. A spreadsheet takes a text that begins like a formula for one, and computes it.
QString quoted(QString cell) {
  if (!cell.isEmpty() && QStringLiteral("=+-@\t\r").contains(cell[0])) cell.prepend(QLatin1Char('\''));
  if (!cell.contains(QLatin1Char(',')) && !cell.contains(QLatin1Char('"')) && !cell.contains(QLatin1Char('\n'))) {
    return cell;
  }
  return QLatin1Char('"') + cell.replace(QLatin1Char('"'), QStringLiteral("\"\"")) + QLatin1Char('"');
}

}  // namespace

DataTable::DataTable(const QString& name, const QString& filterHint, std::vector<TableColumn> columns, QWidget* parent)
    : QWidget(parent),
      model_(new TableModel(std::move(columns), this)),
      filter_(new TableFilter(this)),
      table_(new QTableView),
      lists_(new QSplitter(Qt::Horizontal)),
      filterBox_(new FilterBox(name + QStringLiteral(".filter"), filterHint)),
      empty_(new EmptyState(lists_, name)) {
  filter_->setSourceModel(model_);
  lists_->addWidget(table_);
  table_->setObjectName(name);
  table_->setAccessibleName(filterHint);
  dress(table_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(-1, Qt::AscendingOrder);

  auto* copy = new QAction(tr("Copy rows"), table_);
  copy->setObjectName(name + QStringLiteral(".copy"));
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  connect(copy, &QAction::triggered, this, &DataTable::copySelection);
  auto* save = new QAction(tr("Export as CSV…"), table_);
  save->setObjectName(name + QStringLiteral(".csv"));
  connect(save, &QAction::triggered, this, &DataTable::exportCsv);
  table_->addActions({copy, save});

  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  bar_ = new QWidget;
  bar_->setObjectName(QStringLiteral("viewToolbar"));
  bar_->setAttribute(Qt::WA_StyledBackground);
  auto* barRow = new QHBoxLayout(bar_);
  barRow->setContentsMargins(6, 4, 6, 4);
  barRow->addWidget(filterBox_);
  column->addWidget(bar_);
  column->addWidget(empty_, 1);

  connect(filterBox_, &FilterBox::filterChanged, this, [this](const QString& text) {
    keepSelection([&] { filter_->setFilterText(text); });
    updateHits();
    emit filterChanged(text);
  });
  connect(filterBox_, &FilterBox::leave, this, [this] {
    table_->setFocus();
    if (!table_->currentIndex().isValid() && filter_->rowCount() > 0) table_->selectRow(0);
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& index) {
    if (!quiet_) tell(index, &DataTable::rowSelected);
  });
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& index) {
    tell(index, &DataTable::rowActivated);
  });
}

void DataTable::dress(QTableView* table) {
  table->setModel(filter_);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setShowGrid(false);
  table->setWordWrap(false);
  table->setTabKeyNavigation(false);
  table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table->verticalHeader()->hide();
  constexpr int kMeasuredRows = 200;  // beside those in sight: measuring a thousand rows of twenty columns is a stall
  table->horizontalHeader()->setResizeContentsPrecision(kMeasuredRows);
  table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 7);
  table->horizontalHeader()->setStretchLastSection(!model_->isNumeric(model_->columnCount() - 1));
  table->horizontalHeader()->setHighlightSections(false);
  connect(table->horizontalHeader(), &QHeaderView::sectionResized, this, [this, table](int section) {
    // The last one follows the room that there is.
    if (!isSharing_ && section != table->horizontalHeader()->logicalIndex(table->horizontalHeader()->count() - 1)) isArranged_ = true;
  });
  table->viewport()->installEventFilter(this);
  table->setContextMenuPolicy(Qt::ActionsContextMenu);
}

void DataTable::splitAt(int column, QWidget* leftTitle, QWidget* rightTitle) {
  second_ = new QTableView;
  second_->setObjectName(table_->objectName() + QStringLiteral(".second"));
  second_->setAccessibleName(table_->accessibleName());
  dress(second_);
  second_->setSelectionModel(table_->selectionModel());
  second_->addActions(table_->actions());
  table_->setSortingEnabled(false);
  for (int c = 0; c < model_->columnCount(); ++c) (c < column ? second_ : table_)->setColumnHidden(c, true);
  for (QTableView* table : {table_, second_}) {
    table->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOn);  // one with and one without would end at different rows
  }
  table_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  connect(table_->verticalScrollBar(), &QScrollBar::valueChanged, second_->verticalScrollBar(), &QScrollBar::setValue);
  connect(second_->verticalScrollBar(), &QScrollBar::valueChanged, table_->verticalScrollBar(), &QScrollBar::setValue);
  connect(second_, &QTableView::activated, this, [this](const QModelIndex& index) {
    tell(index, &DataTable::secondActivated);
  });
  for (const auto& [title, table] : {std::pair{leftTitle, table_}, {rightTitle, second_}}) {
    auto* side = new QWidget;
    auto* column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(title);
    column->addWidget(table, 1);
    lists_->addWidget(side);
  }
}

void DataTable::setEmptyText(const QString& headline, const QString& hint) {
  emptyHeadline_ = headline;
  emptyHint_ = hint;
  if (model_->rowCount() == 0) empty_->showReason(headline, hint);
}

void DataTable::keepSelection(const std::function<void()>& change) {
  std::vector<std::string> selected;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows()) selected.push_back(identity(model_->row(filter_->mapToSource(index).row())));
  const TableRow* old = current();
  const bool any = old || !selected.empty();
  const std::string present = old ? identity(*old) : std::string();
  const int scroll = table_->verticalScrollBar()->value();
  quiet_ = true;
  change();
  if (any) restoreSelection(selected, present);
  table_->verticalScrollBar()->setValue(scroll);
  quiet_ = false;
}

void DataTable::setRows(TableRows rows) {
  keepSelection([&] { model_->setRows(std::move(rows)); });
  isSharing_ = true;  // to hide a column is not to arrange it
  for (int c = 0; c < model_->columnCount(); ++c)
    if (model_->isOptional(c)) table_->setColumnHidden(c, model_->rowCount() > 0 && !model_->hasText(c));
  isSharing_ = false;
  if (model_->rowCount() == 0) {
    empty_->showReason(emptyHeadline_, emptyHint_);
    sized_ = false;
  } else {
    empty_->showContent();
    constexpr int kFew = 300;  // rows that still come in may be wider
    if (!sized_ || (!isArranged_ && model_->rowCount() < kFew)) {
      sized_ = true;
      fitColumns(table_);
      if (second_) fitColumns(second_);
    }
  }
  updateHits();
}

void DataTable::fitColumns(QTableView* table) {
  isArranged_ = false;
  wanted_.resize(static_cast<size_t>(model_->columnCount()));
  // Not the widths themselves: the last column's is what the others have left.
  const QAbstractItemView* cells = table;
  for (int c = 0; c < model_->columnCount(); ++c) {
    if (!table->isColumnHidden(c)) wanted_[static_cast<size_t>(c)] = std::max(cells->sizeHintForColumn(c), table->horizontalHeader()->sectionSizeHint(c)) + 9;
  }
  shareRoom(table);
}

/// Columns that are cut get what the others leave; of what is left then, the last one, or where that holds numbers, the widest text.
void DataTable::shareRoom(QTableView* table) {
  if (!sized_ || isArranged_) return;
  int spare = table->viewport()->width();
  for (int c = 0; c < model_->columnCount(); ++c) {
    if (!table->isColumnHidden(c)) spare -= std::min(wanted_[static_cast<size_t>(c)], widestColumn_);
  }
  isSharing_ = true;
  int text = -1;
  for (int c = 0; c < model_->columnCount(); ++c) {
    if (table->isColumnHidden(c)) continue;
    const int wanted = wanted_[static_cast<size_t>(c)], most = widestColumn_ + std::max(0, spare);
    table->setColumnWidth(c, std::min(wanted, most));
    if (wanted > widestColumn_) spare -= std::min(wanted, most) - widestColumn_;
    if (!model_->isNumeric(c) && (text < 0 || wanted > wanted_[static_cast<size_t>(text)])) text = c;
  }
  if (stretchColumn_ >= 0) text = stretchColumn_;
  if (spare > 0 && text >= 0 && !table->horizontalHeader()->stretchLastSection()) table->setColumnWidth(text, table->columnWidth(text) + spare);
  isSharing_ = false;
}

bool DataTable::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) shareRoom(second_ && watched == second_->viewport() ? second_ : table_);
  return QWidget::eventFilter(watched, event);
}

void DataTable::setStretchColumn(int column) {
  // Not the header's own way, which leaves the others no room in a list that is too narrow for all.
  stretchColumn_ = column;
  table_->horizontalHeader()->setStretchLastSection(false);
}

void DataTable::setRows(TableRows rows, int64_t all) {
  cut_ = all > static_cast<int64_t>(rows.size()) ? all : 0;
  setRows(std::move(rows));
  updateHits();
}

void DataTable::setRest(int64_t all) {
  rest_ = all;
  updateHits();
}

void DataTable::setCut(int64_t all) {
  cut_ = all;
  updateHits();
}

/// Where a few rows have little room, the box would take that of the rows.
void DataTable::makeRoom() {
  constexpr int kFew = 20, kLeast = 5;
  const int row = table_->verticalHeader()->defaultSectionSize();
  const bool isLow = height() < bar_->sizeHint().height() + table_->horizontalHeader()->sizeHint().height() + kLeast * row;
  bar_->setVisible(!isLow || model_->rowCount() > kFew || !filterBox_->text().isEmpty() || filterBox_->isAncestorOf(QApplication::focusWidget()));
}

void DataTable::focusFilter() {
  bar_->show();
  filterBox_->focusFilter();
}

void DataTable::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  makeRoom();
}

void DataTable::updateHits() {
  makeRoom();
  if (cut_ > 0) {
    const QLocale locale;
    const QString listed = tr("the first %1 of %2 are listed").arg(locale.toString(model_->rowCount()), locale.toString(static_cast<qlonglong>(cut_)));
    const bool isAll = filter_->rowCount() == model_->rowCount();
    return filterBox_->setNote(isAll ? listed : tr("%1; %2 of them").arg(listed, locale.toString(filter_->rowCount())));
  }
  if (rest_ == 0) return filterBox_->setHits(filter_->rowCount(), model_->rowCount());
  const QLocale locale;
  filterBox_->setNote(tr("the first %1 of %2 in this order; the filter looks in all").arg(locale.toString(filter_->rowCount()), locale.toString(static_cast<qlonglong>(rest_))));
}

const TableRow* DataTable::rowAt(const QModelIndex& index) const {
  const QModelIndex source = filter_->mapToSource(index);
  return source.isValid() ? &model_->row(source.row()) : nullptr;
}

void DataTable::tell(const QModelIndex& index, void (DataTable::*said)(const TableRow&)) {
  const TableRow* found = rowAt(index);
  if (!found) return;
  const TableRow row = *found;  // whoever hears it may set other rows
  emit (this->*said)(row);
}

const TableRow* DataTable::current() const { return rowAt(table_->currentIndex()); }

void DataTable::restoreSelection(const std::vector<std::string>& selected, const std::string& present) {
  const std::set<std::string> wanted(selected.begin(), selected.end());
  QItemSelection rows;
  for (int r = 0; r < model_->rowCount(); ++r) {
    const std::string key = identity(model_->row(r));
    const bool isPresent = key == present;
    if (!isPresent && !wanted.contains(key)) continue;
    const QModelIndex index = filter_->mapFromSource(model_->index(r, 0));
    if (!index.isValid()) continue;
    if (isPresent) table_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::NoUpdate);
    if (wanted.contains(key)) rows.select(index, index);
  }
  table_->selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

bool DataTable::select(const Location& location) {
  const int row = model_->find(location);
  if (row < 0) return false;
  const QModelIndex index = filter_->mapFromSource(model_->index(row, 0));
  if (!index.isValid()) return false;
  const bool wasQuiet = quiet_;
  quiet_ = true;
  table_->setCurrentIndex(index);
  table_->scrollTo(index, QAbstractItemView::EnsureVisible);
  quiet_ = wasQuiet;
  return true;
}

void DataTable::sortBy(int column, Qt::SortOrder order) { table_->sortByColumn(column, order); }

void DataTable::copySelection() {
  QStringList lines;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows()) {
    QStringList cells;
    for (int c = 0; c < filter_->columnCount(); ++c) cells << index.siblingAtColumn(c).data().toString();
    lines << cells.join(QLatin1Char('\t'));
  }
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

QString DataTable::csv() const {
  // Numbers go out as numbers (nanoseconds, bytes), so that a spreadsheet can calculate with them.
  QStringList lines, cells;
  for (int c = 0; c < filter_->columnCount(); ++c) cells << quoted(filter_->headerData(c, Qt::Horizontal).toString());
  lines << cells.join(QLatin1Char(','));
  for (int r = 0; r < filter_->rowCount(); ++r) {
    cells.clear();
    for (int c = 0; c < filter_->columnCount(); ++c) {
      const QVariant value = filter_->index(r, c).data(TableModel::SortRole);
      cells << (value.typeId() == QMetaType::Double ? QString::number(value.toDouble(), 'g', 15) : quoted(value.toString()));
    }
    lines << cells.join(QLatin1Char(','));
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

void DataTable::exportCsv() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export table"), QStringLiteral("%1.csv").arg(table_->objectName()),
                                                    tr("Comma-separated values (*.csv)"));
  if (path.isEmpty()) return;
  QSaveFile file(path);
  const QByteArray bytes = csv().toUtf8();
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit()) {
    QMessageBox::warning(this, tr("Export table"), tr("%1 was not written: %2").arg(path, file.errorString()));
  } else {
    sayWritten(this, path);
  }
}

}  // namespace fusebox::views
