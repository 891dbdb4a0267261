#pragma once

#include <QCheckBox>
#include <QComboBox>

#include "views/recompiles/recompiles_model.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Recompile explorer: code objects with their chain of entries, the guards of two entries side by side, why the later
/// one was made, and what to do about it.
class RecompilesView : public View {
  Q_OBJECT
 public:
  explicit RecompilesView(const ViewContext& context);

  QString id() const override { return QStringLiteral("recompiles"); }
  QString title() const override { return tr("Recompiles"); }
  QString iconName() const override { return QStringLiteral("recompile"); }
  bool canShow(const Location& location) const override;
  bool isHomeOf(const Location& location) const override { return location.kind == ObjectKind::Failure; }
  void showLocation(const Location& location) override;
  void find() override;

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  void sayNone(const query::Holdings& holdings);
  QWidget* buildGuards();
  void openChain(int chain, int entry, int miss);
  void openEntry(int entry);
  void openMiss(int miss);
  void explain(const query::GuardMiss* miss, std::vector<query::Advice> advice);
  static void writeShapes(DetailsPanel& page, const std::vector<std::string>& sentences);
  void askGuards();
  void showGuards();
  const query::RecompileChain* chain() const;

  DataTable* chainTable_;
  DataTable* entryTable_;
  DataTable* guardTable_;
  QComboBox* first_;
  QComboBox* second_;
  QCheckBox* differences_;
  DetailsPanel* details_;
  EmptyState* empty_;
  std::vector<query::RecompileChain> chains_;
  std::vector<query::GuardTreeRow> tree_;
  int64_t shownFrame_ = 0;
  int64_t shownEntry_ = 0;  ///< compile_id
  int64_t shownMiss_ = 0;   ///< failure_id that the details explain; 0: none
  Location wanted_;
};

}  // namespace fusebox::views
