#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QToolButton>

#include "views/find/find_model.h"
#include "views/widgets/data_table.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Find in everything: one text, searched in functions, breaks, guards, graphs, kernels, passes, source lines and
/// records, group by group in the background.
class FindView : public View {
  Q_OBJECT
 public:
  explicit FindView(const ViewContext& context);

  QString id() const override { return QStringLiteral("find"); }
  QString title() const override { return tr("Find"); }
  QString iconName() const override { return QStringLiteral("find"); }
  bool canShow(const Location&) const override { return false; }
  void showLocation(const Location&) override {}
  void find() override;
  /// A group's name as people read it.
  static QString nameOf(query::SearchKind kind);
  bool searching() const { return waiting_ > 0; }

 protected:
  void clear() override;
  void load() override { search(); }

 private:
  void search();
  void cancel();
  void addGroup(const query::SearchGroup& group);
  void sayState();
  void sayEmpty();

  QLineEdit* edit_;
  QLabel* state_;
  QToolButton* cancel_;
  DataTable* table_;
  QTimer delay_;
  TableRows rows_;
  int waiting_ = 0, serial_ = 0;
  bool more_ = false;
};

}  // namespace fusebox::views
