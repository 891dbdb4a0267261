#pragma once

#include <QWidget>

#include "views/memory/memory_model.h"
#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// The buffers of a graph over its steps: a box a buffer, as wide as it lives and as high as it is large, with the bytes alive at each
/// step as a line. Left and Right go from buffer to buffer, Return opens one.
class LifetimesCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit LifetimesCanvas(QWidget* parent = nullptr);

  void setLifetimes(query::GraphLifetimes lifetimes);
  /// What is said where there is no graph to show.
  void setEmptyText(const QString& text);
  /// Marks a buffer (index of the buffers), -1 none.
  void mark(int buffer);
  int marked() const { return marked_; }
  Picture picture() const;
  QSize minimumSizeHint() const override { return {200, 140}; }
  /// The buffer drawn at a place, -1 for none.
  int bufferAt(const QPointF& position) const;

 signals:
  void selected(int buffer);
  void activated(int buffer);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plotArea(const QSizeF& size) const;
  QRectF boxRect(const LifeBox& box, const QRectF& plot) const;
  void paintAll(QPainter& painter, const QSizeF& size) const;
  void paintBoxes(QPainter& painter, const QRectF& plot) const;
  void paintNames(QPainter& painter, const QRectF& plot) const;
  QColor fillOf(const LifeBox& box) const;
  void paintLegend(QPainter& painter, const QRectF& plot) const;
  void paintAxes(QPainter& painter, const QRectF& plot) const;
  QString describe(int buffer) const;

  query::GraphLifetimes lifetimes_;
  LifePicture picture_;
  int marked_ = -1;
  QString emptyText_;
};

}  // namespace fusebox::views
