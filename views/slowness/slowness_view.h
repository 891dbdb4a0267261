#pragma once

#include <QComboBox>
#include <QLabel>

#include "profiler/query/slowness.h"
#include "views/overview/stage_bar.h"
#include "views/widgets/data_table.h"
#include "views/widgets/empty_state.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Where the time of a step (or of the whole recording) goes, kind by kind, each leading to its place.
class SlownessView : public View {
  Q_OBJECT
 public:
  explicit SlownessView(const ViewContext& context);

  QString id() const override { return QStringLiteral("slowness"); }
  QString title() const override { return tr("Why is it slow?"); }
  QString iconName() const override { return QStringLiteral("slowness"); }
  bool canShow(const Location&) const override { return false; }
  void showLocation(const Location&) override {}
  void find() override { kinds_->focusFilter(); }

 protected:
  void clear() override;
  void load() override;

 private:
  void fill();
  void showParts(size_t row);

  query::Slowness slowness_;
  EmptyState* empty_;
  QComboBox* scope_;
  QLabel *headline_, *note_, *limits_;
  StageBar* bar_;
  DataTable *kinds_, *parts_;
};

}  // namespace fusebox::views
