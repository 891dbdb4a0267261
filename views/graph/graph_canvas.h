#pragma once

#include <QPixmap>
#include <QWidget>

#include "views/graph/graph_painter.h"
#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// Zoomable picture of a graph. Wheel zooms at the pointer, dragging and W/A/S/D pan, arrows walk along edges, F fits,
/// Return or a double click opens and closes groups.
class GraphCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit GraphCanvas(QWidget* parent = nullptr);

  /// Shows a layout. With `keepView` the scale stays, and `anchor` (a group that was opened or closed) stays in place.
  void setScene(std::shared_ptr<const GraphPicture> picture, std::shared_ptr<const CompoundScene> scene, bool keepView,
                int anchorGroup = -1);
  void setColouring(GraphColouring colouring);
  void setHits(std::vector<char> hits);
  /// Selects a drawn node and brings it into view; -1 selects nothing. Sends no signal.
  void selectNode(int node, bool reveal);
  int selectedNode() const { return painter_.selectedNode; }
  int selectedGroup() const { return painter_.selectedGroup; }
  const GraphPainter& painter() const { return painter_; }

  void fit();
  void zoomBy(double factor);
  double scale() const { return scale_; }
  Picture picture() const;
  QPointF toWidget(const QPointF& scene) const { return scene * scale_ + offset_; }

 signals:
  void nodeSelected(int node);
  void nodeActivated(int node);
  void groupSelected(int group);
  void groupToggled(int group);
  void nothingSelected();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool event(QEvent* event) override;

 private:
  enum class Fit { Beginning, Whole };
  void fitTo(Fit how);
  QPointF toScene(const QPointF& widget) const { return (widget - offset_) / scale_; }
  void zoomAt(const QPointF& widget, double factor);
  void keepInView();
  void choose(const SceneEnd& end);
  void walk(int key);
  int neighbour(int node, bool towardsInputs) const;
  int beside(int node, bool right) const;
  QRectF mapRect() const;
  void paintMap(QPainter& painter);
  bool moveByMap(const QPointF& position);
  bool showTip(const QPoint& position, const QPoint& global);
  void describe();

  GraphPainter painter_;
  double scale_ = 1;
  QPointF offset_;
  QPointF pressed_, lastMove_;
  bool dragging_ = false, inMap_ = false, fitted_ = true;
  Fit fit_ = Fit::Whole;
  QPixmap map_;
};

}  // namespace fusebox::views
