#pragma once

#include <QSplitter>
#include <QTableView>
#include <functional>

#include "views/widgets/empty_state.h"
#include "views/widgets/filter_box.h"
#include "views/widgets/table_adapter.h"

namespace fusebox::views {

/// The table of every list: filter box, sorting, copy (Ctrl+C, as text with tabs), CSV export, empty text.
class DataTable : public QWidget {
  Q_OBJECT
 public:
  /// `name` is the object name of the table ("kernels.table"); its filter box is `name + ".filter"`.
  DataTable(const QString& name, const QString& filterHint, std::vector<TableColumn> columns, QWidget* parent = nullptr);

  /// Replaces the rows; the selected object and the scroll position stay.
  void setRows(TableRows rows);
  /// The same with the first rows of `all`, and says so if these are more.
  void setRows(TableRows rows, int64_t all);
  /// The rows are those of `all` that filter and order ask for; what is typed or clicked there asks for others. 0: the rows are all.
  void setRest(int64_t all);
  /// The rows are the first of `all`, for filter and order too. 0: they are all.
  void setCut(int64_t all);
  void setEmptyText(const QString& headline, const QString& hint);
  /// Selects the row about this object without sending `activated`. False if there is none.
  bool select(const Location& location);
  /// The row under the cursor, null without one.
  const TableRow* current() const;
  /// This column takes the room that the others leave: for narrow tables.
  void setStretchColumn(int column);
  /// No column starts wider than this, in pixels, unless there is room to spare; people may widen it.
  void setWidestColumn(int pixels) { widestColumn_ = pixels; }
  /// From now on the columns from `column` on stand in a second list beside the first; both have the same rows and selection, keep
  /// their order (no sorting) and scroll together.
  void splitAt(int column, QWidget* leftTitle, QWidget* rightTitle);
  /// The second list, null without one.
  QTableView* second() const { return second_; }
  void sortBy(int column, Qt::SortOrder order);
  void focusFilter();
  QString csv() const;
  void exportCsv();

  QTableView* table() const { return table_; }
  TableModel* model() const { return model_; }
  TableFilter* filter() const { return filter_; }

 signals:
  void filterChanged(const QString& text);
  /// The cursor moved to a row.
  void rowSelected(const fusebox::views::TableRow& row);
  /// Return or double click.
  void rowActivated(const fusebox::views::TableRow& row);
  /// The same in the second list.
  void secondActivated(const fusebox::views::TableRow& row);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void copySelection();
  /// By what tells rows apart (`identity`): after a refresh.
  /// `change` resets the rows; those that were selected are so again, where they are still there.
  void keepSelection(const std::function<void()>& change);
  void restoreSelection(const std::vector<std::string>& selected, const std::string& present);
  void updateHits();
  void makeRoom();
  const TableRow* rowAt(const QModelIndex& index) const;
  void tell(const QModelIndex& index, void (DataTable::*said)(const TableRow&));
  void dress(QTableView* table);
  void fitColumns(QTableView* table);
  void shareRoom(QTableView* table);

  TableModel* model_;
  TableFilter* filter_;
  QTableView* table_;
  QTableView* second_ = nullptr;
  QSplitter* lists_;
  QWidget* bar_ = nullptr;      ///< around the filter
  FilterBox* filterBox_;
  EmptyState* empty_;
  QString emptyHeadline_, emptyHint_;
  int64_t rest_ = 0;            ///< setRest
  int64_t cut_ = 0;             ///< setCut
  bool sized_ = false;
  int widestColumn_ = 420;
  std::vector<int> wanted_;     ///< widths that would show every cell whole, by column
  bool isSharing_ = false;
  int stretchColumn_ = -1;      ///< setStretchColumn; -1: the widest text
  bool isArranged_ = false;     ///< a person has chosen widths
  bool quiet_ = false;
};

}  // namespace fusebox::views
