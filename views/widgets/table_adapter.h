#pragma once

#include <QAbstractTableModel>
#include <QCollator>
#include <QSortFilterProxyModel>

#include "views/common/table.h"

namespace fusebox::views {

struct TableColumn {
  QString title;
  QString tooltip;
  bool numeric = false;
  bool optional = false;  ///< hidden while no row has a text there
};

/// Qt adapter of TableRows. Sorting and filtering happen in TableFilter.
class TableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role { SortRole = Qt::UserRole + 1 };

  explicit TableModel(std::vector<TableColumn> columns, QObject* parent = nullptr);

  void setRows(TableRows rows);
  const TableRow& row(int index) const { return rows_[static_cast<size_t>(index)]; }
  /// First row about the same object, -1 if there is none.
  int find(const Location& location) const;
  /// Columns whose cells are monospaced (code, places, expressions).
  bool isNumeric(int column) const { return column >= 0 && columns_.at(static_cast<size_t>(column)).numeric; }
  bool isOptional(int column) const { return columns_.at(static_cast<size_t>(column)).optional; }
  /// Whether a row has a text there.
  bool hasText(int column) const;
  void setMonospaceColumns(std::vector<int> columns) { monospace_ = std::move(columns); }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<TableColumn> columns_;
  std::vector<int> monospace_;
  TableRows rows_;
};

/// Filters by words over all columns and sorts numbers as numbers.
class TableFilter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;
  void setSourceModel(QAbstractItemModel* model) override;  ///< a TableModel
  void setFilterText(const QString& text);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  const TableModel& table() const { return *static_cast<const TableModel*>(sourceModel()); }

  std::string text_;
  /// Of the column that is sorted by, made once: comparing texts as a language orders them is slow.
  mutable std::vector<QCollatorSortKey> keys_;
  mutable int keyColumn_ = -1;
};

}  // namespace fusebox::views
