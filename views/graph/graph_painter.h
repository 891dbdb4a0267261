#pragma once

#include <QFontMetricsF>
#include <QPainterPath>
#include <QRectF>
#include <QString>
#include <memory>
#include <vector>

#include "views/graph/graph_model.h"

class QPainter;

namespace fusebox::views {

enum class GraphColouring { Operator, Fusion, Time, Error };

/// A group's name with the mark that says whether it is open, as long as `room` pixels at most: what tells equal names apart is at the end.
QString groupTitle(const QFontMetricsF& metrics, const QString& label, bool open, double room);

/// Draws a laid-out graph into any painter: the canvas, an image, SVG, PDF. Detail follows the scale.
class GraphPainter {
 public:
  void setScene(std::shared_ptr<const GraphPicture> picture, std::shared_ptr<const CompoundScene> scene);
  bool empty() const { return !scene_ || scene_->width <= 0; }
  const GraphPicture& picture() const { return *picture_; }
  const CompoundScene& scene() const { return *scene_; }
  QRectF bounds() const;
  /// Middle, from left to right, of the outermost boxes and nodes that begin above `y` (scene units).
  double middleAbove(double y) const;
  /// The topmost node or closed group.
  QRectF first() const;

  /// Paints what intersects `visible` (scene units); `scale` is device pixels per scene unit.
  void paint(QPainter& painter, const QRectF& visible, double scale) const;
  /// Only boxes of nodes, for the small map.
  void paintOverview(QPainter& painter) const;

  GraphColouring colouring = GraphColouring::Operator;
  int selectedNode = -1;                ///< drawn index
  int selectedGroup = -1;
  std::vector<char> hits;               ///< by drawn index: found by the search; empty: no search

  /// Node or closed group under a scene point.
  SceneEnd at(const QPointF& point) const;
  QRectF rectOf(const SceneEnd& end) const;
  /// The colour of a drawn node: that of its operator's family, or of its kernel's name; -1 for neutral ones.
  int categoryOfNode(int node) const;

 private:
  struct Shape {
    QPainterPath path;
    QRectF bounds;
  };
  void paintBoxes(QPainter& painter, const QRectF& visible, double scale) const;
  void paintEdges(QPainter& painter, const QRectF& visible, double scale) const;
  void paintLinks(QPainter& painter) const;
  void paintStub(QPainter& painter, const CompoundScene::Edge& edge) const;
  void paintNodes(QPainter& painter, const QRectF& visible, double scale) const;
  void paintNode(QPainter& painter, int node, double scale) const;
  bool touchesSelection(const CompoundScene::Edge& edge) const;

  std::shared_ptr<const GraphPicture> picture_;
  std::shared_ptr<const CompoundScene> scene_;
  std::vector<Shape> shapes_;   ///< by scene edge
};

/// Category colour index of an operator family, -1 for the neutral ones.
int categoryOf(OpFamily family);
QString familyName(OpFamily family);

}  // namespace fusebox::views
