#pragma once

#include <QBoxLayout>
#include <QComboBox>

#include "views/graph/graph_canvas.h"
#include "views/widgets/background_job.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/empty_state.h"
#include "views/widgets/filter_box.h"
#include "views/widgets/view.h"

class QAction;
class QCheckBox;
class QToolBar;

namespace fusebox::views {

/// Captured, joint, forward, backward, post-grad and post-fusion graphs, with what became of each node.
class GraphView : public View {
  Q_OBJECT
 public:
  explicit GraphView(const ViewContext& context);

  QString id() const override { return QStringLiteral("graph"); }
  QString title() const override { return tr("Graph"); }
  QString iconName() const override { return QStringLiteral("graph"); }
  bool canShow(const Location& location) const override;
  void showLocation(const Location& location) override;
  void find() override { search_->focusFilter(); }
  GraphCanvas* canvas() const { return canvas_; }

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;
  void resizeEvent(QResizeEvent* event) override;
  /// Its keys are those of the canvas.
  void focusInEvent(QFocusEvent*) override { canvas_->setFocus(); }

 private:
  void sayNone(const query::Holdings& holdings);
  static QString stageText(const query::GraphRow& row);
  void buildToolbars();
  void arrangeToolbars();
  void fillCompiles();
  void fillStages(const QString& wanted);
  void openGraph(int64_t graph, int64_t node);
  void showGraph(query::GraphData data);
  void rebuild(bool keepView);
  void relayout(bool keepView, int anchorGroup);
  void toggleGroup(int group);
  void search(const QString& text);
  void markLine(const std::string& file, int line);
  void revealNode(int64_t node);
  void revealPending();
  void afterLayout();
  void nodeChosen(int drawn);
  void showNode(int64_t node);
  void showGroup(int group);
  void showGraphSummary();
  void fail(const Error& error);

  QBoxLayout* bars_;              ///< what is shown, then the search and the tools: beside each other where both have room
  QToolBar* shown_;
  QToolBar* tools_;
  QComboBox* compile_;
  QComboBox* stage_;
  QComboBox* folding_;
  QComboBox* colouring_;
  QCheckBox* inputs_;
  FilterBox* search_;
  QAction* busy_;                 ///< the progress bar in the tool bar
  GraphCanvas* canvas_;
  EmptyState* empty_;
  DetailsPanel* details_;
  BackgroundJob* layoutJob_;
  BackgroundJob* searchJob_;

  std::vector<GraphChoice> choices_;
  std::shared_ptr<const query::GraphData> data_ = std::make_shared<query::GraphData>();
  int64_t shownGraph_ = 0;
  int64_t askedGraph_ = 0;        ///< that is shown, or will be as soon as it is read
  int64_t pendingNode_ = 0;       ///< to select once its graph is laid out
  int64_t detailsNode_ = 0;       ///< that the details are about; 0: something else
  Location pendingLocation_;      ///< to show once the choices are loaded
  bool optionsChosen_ = false;    ///< the user set folding or inputs for this graph
  bool coloursChosen_ = false;
  bool rebuilding_ = false;       ///< another picture is being made
  std::shared_ptr<const GraphPicture> picture_;
  std::vector<char> open_;
};

}  // namespace fusebox::views
