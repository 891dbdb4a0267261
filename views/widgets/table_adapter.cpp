#include "views/widgets/table_adapter.h"

#include <QFont>
#include <QSignalBlocker>
#include <algorithm>
#include <string_view>
#include <vector>

#include "views/common/fuzzy_match.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr qsizetype kLongestShown = 400, kLongestTip = 4000;
constexpr size_t kLongestFiltered = 4000;

QVariant toneColour(int tone) {
  switch (tone) {
    case 1: return themed(Token::Good);
    case 2: return themed(Token::Warning);
    case 3: return themed(Token::Error);
    case 4: return themed(Token::TextFaint);
    default: return {};
  }
}

}  // namespace

TableModel::TableModel(std::vector<TableColumn> columns, QObject* parent)
    : QAbstractTableModel(parent), columns_(std::move(columns)) {}

void TableModel::setRows(TableRows rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

int TableModel::find(const Location& location) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const TableRow& row) { return row.location.sameObject(location); });
  return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

bool TableModel::hasText(int column) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const TableRow& row) {
    return column < static_cast<int>(row.cells.size()) && !row.cells[static_cast<size_t>(column)].text.empty();
  });
}

int TableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const TableRow& row = rows_[static_cast<size_t>(index.row())];
  const auto column = static_cast<size_t>(index.column());
  if (column >= row.cells.size()) return {};
  const Cell& cell = row.cells[column];
  switch (role) {
    case Qt::DisplayRole: {
      QString text = QString::fromStdString(cell.text);
      const qsizetype newline = text.indexOf(QLatin1Char('\n'));
      if (newline >= 0) text = text.left(newline) + QStringLiteral(" …");
      return text.size() > kLongestShown ? text.left(kLongestShown) + QStringLiteral("…") : text;
    }
    case Qt::ToolTipRole:
      return QString::fromStdString(row.tooltip.empty() ? cell.text : row.tooltip).left(kLongestTip);
    case Qt::TextAlignmentRole:
      return static_cast<int>((columns_[column].numeric ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::ForegroundRole:
      return toneColour(row.tone);
    case Qt::FontRole:
      return std::find(monospace_.begin(), monospace_.end(), index.column()) == monospace_.end()
                 ? QVariant()
                 : QVariant(Theme::monospace());
    case SortRole:
      return cell.numeric() ? QVariant(cell.number) : QVariant(QString::fromStdString(cell.text));
    default:
      return {};
  }
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= static_cast<int>(columns_.size())) return {};
  const TableColumn& column = columns_[static_cast<size_t>(section)];
  if (role == Qt::DisplayRole) return column.title;
  if (role == Qt::ToolTipRole) return column.tooltip.isEmpty() ? column.title : column.tooltip;
  if (role == Qt::TextAlignmentRole) {
    return static_cast<int>((column.numeric ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  return {};
}

void TableFilter::setSourceModel(QAbstractItemModel* model) {
  // Before the base class hears of the reset and sorts again.
  if (model) {
    connect(model, &QAbstractItemModel::modelAboutToBeReset, this, [this] {
      keys_.clear();
      keyColumn_ = -1;
    });
  }
  QSortFilterProxyModel::setSourceModel(model);
}

void TableFilter::setFilterText(const QString& text) {
  // Told as one change: taken away one by one, scattered rows cost the square of their number.
  beginResetModel();
  text_ = text.toStdString();
  {
    const QSignalBlocker quiet(this);
    invalidate();
  }
  endResetModel();
}

bool TableFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  if (text_.empty()) return true;
  const auto& cells = table().row(row).cells;
  std::vector<std::string_view> texts;
  texts.reserve(cells.size());
  for (const Cell& cell : cells) texts.push_back(cell.text);
  return filterMatches(text_, texts, kLongestFiltered);
}

bool TableFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  const auto column = static_cast<size_t>(left.column());
  const auto cellOf = [&](const QModelIndex& index) {
    const TableRow& row = table().row(index.row());
    return column < row.cells.size() ? &row.cells[column] : nullptr;
  };
  const Cell *a = cellOf(left), *b = cellOf(right);
  if (a && b && a->numeric() && b->numeric()) return a->number < b->number;
  if (keyColumn_ != left.column()) {
    const QCollator order;
    keys_.clear();
    for (int r = 0; r < table().rowCount(); ++r) {
      const TableRow& row = table().row(r);
      keys_.push_back(order.sortKey(column < row.cells.size() ? QString::fromStdString(row.cells[column].text).left(kLongestShown) : QString()));
    }
    keyColumn_ = left.column();
  }
  return keys_[static_cast<size_t>(left.row())].compare(keys_[static_cast<size_t>(right.row())]) < 0;
}

}  // namespace fusebox::views
