#pragma once

#include <QWidget>
#include <vector>

#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// One horizontal bar split into labelled parts, with a legend: where the compile time went.
class StageBar : public QWidget {
  Q_OBJECT
 public:
  struct Part {
    QString name;
    double milliseconds = 0;
    int category = 0;
  };
  explicit StageBar(QWidget* parent = nullptr);

  void setParts(std::vector<Part> parts, double totalMilliseconds);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }
  Picture picture() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Mark {
    QPointF at;  ///< left and top, below the bar
    QString name, time;
  };
  /// The legend, in as many lines as it takes.
  std::vector<Mark> legend(double width) const;
  int legendLines(double width) const;
  void paintAll(QPainter& painter, double width) const;
  QRectF partRect(size_t index, double width) const;
  int barHeight() const;

  std::vector<Part> parts_;
  double total_ = 0;
  int lines_ = 1;  ///< of the legend at the present width
};

}  // namespace fusebox::views
