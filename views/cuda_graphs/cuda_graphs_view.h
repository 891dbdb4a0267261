#pragma once

#include <QTabWidget>

#include "views/cuda_graphs/cuda_graphs_model.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/empty_state.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// What became of compiled graphs that CUDA graphs were asked for: every recording with the reason for it, what ran plainly and why, the
/// nodes of the chosen recording in order with the kernel that each is, and its replays.
class CudaGraphsView : public View {
  Q_OBJECT
 public:
  explicit CudaGraphsView(const ViewContext& context);

  QString id() const override { return QStringLiteral("cuda_graphs"); }
  QString title() const override { return tr("CUDA graphs"); }
  QString iconName() const override { return QStringLiteral("cudagraphs"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Kernel && location.view == "cuda_graphs"; }
  void showLocation(const Location& location) override;
  void find() override { table_->focusFilter(); }

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override { showLocation(location); }

 private:
  struct Parts {
    std::vector<query::CudaGraphNode> nodes;
    std::vector<query::CudaGraphReplay> replays;
  };
  static std::vector<TableColumn> recordingColumns();
  void open(int index);
  void describe(const query::CudaGraphEvent& event);
  void selectRow(int index);
  void selectPart();

  EmptyState* empty_;
  DataTable *table_, *nodes_, *replays_;
  DetailsPanel* details_;
  QTabWidget* tabs_;
  std::vector<query::CudaGraphEvent> events_;
  int64_t shown_ = 0;     ///< event_id
  bool asking_ = false;   ///< for the nodes and replays of what is shown
  int64_t wanted_ = 0;    ///< kernel to show once its recording is known
  Location wantedPart_;   ///< node or replay to select once the recording's are there
};

}  // namespace fusebox::views
