#pragma once

#include <QWidget>

#include "views/fusion/fusion_model.h"
#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// Time of a graph over its sizes, both axes logarithmic: a dot for each median, a bar from the fastest run to the slowest.
class SizePlot : public QWidget {
  Q_OBJECT
 public:
  explicit SizePlot(QWidget* parent = nullptr);

  void setPoints(std::vector<SizeTime> points);
  Picture picture() const;
  QSize minimumSizeHint() const override { return {260, 150}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Axes {
    QRectF plot;
    double lowX = 0, highX = 1, lowY = 0, highY = 1;  ///< binary logarithms of x, decimal of y
    double x(double size) const;
    double y(double ns) const;
  };
  Axes axes(const QRectF& area) const;
  void paintAll(QPainter& painter, const QRectF& area) const;
  void paintGrid(QPainter& painter, const Axes& axes) const;

  std::vector<SizeTime> points_;  ///< by size
};

}  // namespace fusebox::views
