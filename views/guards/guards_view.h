#pragma once

#include <QTreeWidget>

#include "views/guards/guards_model.h"
#include "views/guards/shapes_model.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Code objects with their chain of compiled entries, the guards of an entry, and every failing check.
class GuardsView : public View {
  Q_OBJECT
 public:
  explicit GuardsView(const ViewContext& context);

  QString id() const override { return QStringLiteral("guards"); }
  QString title() const override { return tr("Guards"); }
  QString iconName() const override { return QStringLiteral("guards"); }
  bool canShow(const Location& location) const override;
  void showLocation(const Location& location) override;
  void find() override { guards_->focusFilter(); }

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  void countFailures(int64_t frame);
  void sayNone(const query::Holdings& holdings);
  QWidget* buildTree();
  QWidget* buildTables();
  void connectAll();
  void fillTree(const std::vector<query::RecompileChain>& frames);
  void filterTree(const QString& text);
  void entryChosen();
  void chooseItem(const QTreeWidgetItem* item);
  void openEntry(int64_t frame, int64_t compile);
  QTreeWidgetItem* findItem(int64_t frame, int64_t compile);
  void fillEntries(QTreeWidgetItem* top, const query::RecompileChain& frame);
  void explain(const TableRow& row, bool failure);
  void explainShape(const TableRow& row);

  FilterBox* treeFilter_;
  QTreeWidget* tree_;
  EmptyState* empty_;
  DataTable* guards_;
  DataTable* shapes_;
  DataTable* failures_;
  DetailsPanel* details_;
  std::vector<query::RecompileChain> frames_;
  ShapeTable shapeTable_;
  int64_t shownFrame_ = 0, shownCompile_ = 0;
  Location wanted_;        ///< to select once its table is filled
  bool quiet_ = false;
};

}  // namespace fusebox::views
