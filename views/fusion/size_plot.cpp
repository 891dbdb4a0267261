#include "views/fusion/size_plot.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/units.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {

SizePlot::SizePlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("fusion.sizes.plot"));
  setAccessibleName(tr("Time over size"));
}

double SizePlot::Axes::x(double size) const { return plot.left() + (std::log2(size) - lowX) / (highX - lowX) * plot.width(); }
double SizePlot::Axes::y(double ns) const { return plot.bottom() - (std::log10(ns) - lowY) / (highY - lowY) * plot.height(); }

void SizePlot::setPoints(std::vector<SizeTime> points) {
  points_ = std::move(points);
  std::erase_if(points_, [](const SizeTime& p) { return !(p.size > 0 && p.least > 0 && p.median > 0 && p.most > 0); });
  std::ranges::sort(points_, {}, &SizeTime::size);
  setAccessibleDescription(points_.empty() ? QString() : tr("%n size(s)", nullptr, static_cast<int>(points_.size())));
  update();
}

SizePlot::Axes SizePlot::axes(const QRectF& area) const {
  Axes a;
  const double line = fontMetrics().height();
  a.plot = area.adjusted(fontMetrics().horizontalAdvance(QStringLiteral("1000.0 ms")) + 12, 10, -14, -2 * line - 10);
  double lowX = 1e9, highX = -1e9, lowY = 1e9, highY = -1e9;
  for (const auto& p : points_) {
    lowX = std::min(lowX, std::log2(p.size)), highX = std::max(highX, std::log2(p.size));
    lowY = std::min(lowY, std::log10(p.least)), highY = std::max(highY, std::log10(p.most));
  }
  if (points_.empty()) return a;
  a.lowX = std::floor(lowX), a.highX = std::max(a.lowX + 1, std::ceil(highX));
  a.lowY = std::floor(lowY), a.highY = std::max(a.lowY + 1, std::ceil(highY));
  return a;
}

void SizePlot::paintGrid(QPainter& painter, const Axes& a) const {
  const double line = painter.fontMetrics().height();
  const auto steps = static_cast<int>(a.highX - a.lowX);
  const int every = std::max(1, static_cast<int>(std::ceil(steps * 56 / std::max(1.0, a.plot.width()))));
  for (int step = 0; step <= steps; step += every) {
    const double size = std::exp2(a.lowX + step), at = a.x(size);
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(at, a.plot.top()), QPointF(at, a.plot.bottom()));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(at - 40, a.plot.bottom() + 4, 80, line), Qt::AlignCenter, QString::number(size, 'g', 10));
  }
  for (double y = a.lowY; y <= a.highY; ++y) {
    const double ns = std::pow(10, y), at = a.y(ns);
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(a.plot.left(), at), QPointF(a.plot.right(), at));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(0, at - line / 2, a.plot.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter, str(formatDuration(ns)));
  }
  const QString what = points_.empty() ? QString() : str(points_.front().name);
  painter.drawText(QRectF(a.plot.left(), a.plot.bottom() + 6 + line, a.plot.width(), line), Qt::AlignCenter, what);
}

void SizePlot::paintAll(QPainter& painter, const QRectF& area) const {
  if (points_.empty()) return;
  const Axes a = axes(area);
  painter.setFont(font());
  paintGrid(painter, a);
  painter.setRenderHint(QPainter::Antialiasing);
  QPolygonF line;
  for (const auto& p : points_) line << QPointF(a.x(p.size), a.y(p.median));
  painter.setPen(QPen(themed(Token::Accent), 1.5));
  painter.drawPolyline(line);
  for (const auto& p : points_) {
    const double x = a.x(p.size);
    painter.setPen(QPen(themed(Token::TextMuted), 1));
    painter.drawLine(QPointF(x, a.y(p.least)), QPointF(x, a.y(p.most)));
    painter.setPen(Qt::NoPen);
    painter.setBrush(themed(p.isWrong ? Token::Error : Token::Accent));
    painter.drawEllipse(QPointF(x, a.y(p.median)), 3.5, 3.5);
  }
}

Picture SizePlot::picture() const {
  const QRectF area(0, 0, width(), height());
  return {area, [this, area](QPainter& painter) { paintAll(painter, area); }};
}

void SizePlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Code));
  paintAll(painter, rect());
}

bool SizePlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const Axes a = axes(rect());
  const SizeTime* nearest = nullptr;
  for (const auto& p : points_) {
    if (!nearest || std::abs(a.x(p.size) - help->pos().x()) < std::abs(a.x(nearest->size) - help->pos().x())) nearest = &p;
  }
  if (!nearest) {
    QToolTip::hideText();
    return true;
  }
  QToolTip::showText(help->globalPos(), tr("%1: %2 (%3 to %4)").arg(str(nearest->label), str(formatDuration(nearest->median)), str(formatDuration(nearest->least)), str(formatDuration(nearest->most))), this);
  return true;
}

}  // namespace fusebox::views
