#pragma once

#include <QWidget>
#include <optional>

#include "views/kernels/kernels_model.h"
#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// Kernels by arithmetic intensity and rate, on logarithmic axes, under what the device's memory and arithmetic allow. A disc's area
/// is the kernel's share of the time. Left and Right go from kernel to kernel.
class RooflinePlot : public QWidget {
  Q_OBJECT
 public:
  explicit RooflinePlot(QWidget* parent = nullptr);

  void setRoofline(Roofline line);
  void selectKernel(int64_t kernel);
  Picture picture() const;
  QSize minimumSizeHint() const override { return {320, 180}; }

 signals:
  void kernelSelected(qint64 kernel);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Axes {
    QRectF plot;
    double lowX = 0, highX = 1, lowY = 0, highY = 1;  ///< decimal logarithms
    QPointF at(double intensity, double rate) const;
  };
  Axes axes(const QRectF& area) const;
  void paintAll(QPainter& painter, const QRectF& area) const;
  void paintGrid(QPainter& painter, const Axes& axes) const;
  void paintRoof(QPainter& painter, const Axes& axes) const;
  double radius(const RooflinePoint& point) const;
  std::optional<size_t> pointAt(const QPointF& position) const;
  QString describe(const RooflinePoint& point) const;

  Roofline line_;
  double longest_ = 1;
  int64_t selected_ = 0;
};

}  // namespace fusebox::views
