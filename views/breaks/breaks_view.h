#pragma once

#include <QTabWidget>

#include "views/breaks/breaks_model.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Graph-break board: each distinct break once, what it costs, why it happened, what to do, and the bytecode around it
/// before and after.
class BreaksView : public View {
  Q_OBJECT
 public:
  explicit BreaksView(const ViewContext& context);

  QString id() const override { return QStringLiteral("breaks"); }
  QString title() const override { return tr("Graph breaks"); }
  QString iconName() const override { return QStringLiteral("break"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Break; }
  bool isHomeOf(const Location& location) const override { return location.kind == ObjectKind::Break; }
  void showLocation(const Location& location) override;
  void find() override { table_->focusFilter(); }

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  void sayNone(const query::Holdings& holdings);
  void openBreak(int index);
  void explain(const query::BreakSummary& summary, const std::vector<query::Advice>& advice);

  DataTable* table_;
  QTabWidget* tabs_;
  DetailsPanel* details_;
  CodePane* before_;
  CodePane* after_;
  EmptyState* codeEmpty_;
  EmptyState* empty_;
  std::vector<query::BreakSummary> breaks_;
  int64_t shown_ = 0;  ///< break_id
  Location wanted_;
};

}  // namespace fusebox::views
