#include "views/kernels/roofline_plot.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/units.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

/// `rate`: floating-point operations a second.
QString flopRate(double rate) { return str(formatFlops(rate, 1e9)); }

}  // namespace

RooflinePlot::RooflinePlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("kernels.roofline"));
  setAccessibleName(tr("Roofline"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void RooflinePlot::setRoofline(Roofline line) {
  line_ = std::move(line);
  longest_ = 1;
  for (const auto& point : line_.points) longest_ = std::max(longest_, point.totalNs);
  update();
}

void RooflinePlot::selectKernel(int64_t kernel) {
  selected_ = kernel;
  update();
}

QPointF RooflinePlot::Axes::at(double intensity, double rate) const {
  return {plot.left() + (std::log10(intensity) - lowX) / (highX - lowX) * plot.width(),
          plot.bottom() - (std::log10(rate) - lowY) / (highY - lowY) * plot.height()};
}

RooflinePlot::Axes RooflinePlot::axes(const QRectF& area) const {
  const QFontMetricsF metrics(font());
  Axes a;
  a.plot = area.adjusted(metrics.horizontalAdvance(QStringLiteral("88.8 GFLOP/s")) + 14, 12, -18, -2 * metrics.height() - 14);
  double lowX = -2, highX = 2, lowY = 9, highY = line_.roof.flops > 0 ? std::log10(line_.roof.flops) : 12;
  for (const auto& point : line_.points) {
    lowX = std::min(lowX, std::log10(point.intensity)), highX = std::max(highX, std::log10(point.intensity));
    lowY = std::min(lowY, std::log10(point.rate)), highY = std::max(highY, std::log10(point.rate));
  }
  a.lowX = std::floor(lowX), a.highX = std::ceil(highX + 0.01);
  a.lowY = std::floor(lowY), a.highY = std::ceil(highY + 0.05);
  return a;
}

double RooflinePlot::radius(const RooflinePoint& point) const { return 4 + 12 * std::sqrt(point.totalNs / longest_); }

void RooflinePlot::paintGrid(QPainter& painter, const Axes& a) const {
  const double line = painter.fontMetrics().height();
  for (double x = a.lowX; x <= a.highX; ++x) {
    const double at = a.plot.left() + (x - a.lowX) / (a.highX - a.lowX) * a.plot.width();
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(at, a.plot.top()), QPointF(at, a.plot.bottom()));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(at - 40, a.plot.bottom() + 4, 80, line), Qt::AlignCenter, QString::number(std::pow(10, x)));
  }
  for (double y = a.lowY; y <= a.highY; ++y) {
    const double at = a.plot.bottom() - (y - a.lowY) / (a.highY - a.lowY) * a.plot.height();
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(a.plot.left(), at), QPointF(a.plot.right(), at));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(0, at - line / 2, a.plot.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter, flopRate(std::pow(10, y)));
  }
  painter.drawText(QRectF(a.plot.left(), a.plot.bottom() + 6 + line, a.plot.width(), line), Qt::AlignCenter, tr("operations a byte"));
}

void RooflinePlot::paintRoof(QPainter& painter, const Axes& a) const {
  const Roof& roof = line_.roof;
  if (roof.bytes <= 0 || roof.flops <= 0) return;
  const double low = std::pow(10, a.lowX), high = std::pow(10, a.highX);
  const double ridge = std::clamp(roof.flops / roof.bytes, low, high);
  painter.setPen(QPen(themed(Token::Accent), 2));
  painter.drawLine(a.at(low, low * roof.bytes), a.at(ridge, std::min(ridge * roof.bytes, roof.flops)));
  painter.drawLine(a.at(ridge, roof.flops), a.at(high, roof.flops));
  painter.setPen(themed(Token::TextMuted));
  const QString memory = (roof.measured ? tr("%1/s, measured by a copy") : tr("%1/s by clock and width")).arg(str(formatBytes(roof.bytes)));
  const double line = painter.fontMetrics().height();
  painter.drawText(QRectF(a.plot.left() + 8, a.plot.top() + 4, a.plot.width() * 0.6, line), Qt::AlignLeft,
                   tr("%1: %2, float32 %3 without tensor cores").arg(str(roof.device), memory, flopRate(roof.flops)));
}

void RooflinePlot::paintAll(QPainter& painter, const QRectF& area) const {
  const Axes a = axes(area);
  painter.setFont(font());
  paintGrid(painter, a);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setClipRect(a.plot.adjusted(-2, -2, 2, 2));
  paintRoof(painter, a);
  const Theme& theme = Theme::instance();
  for (const auto& point : line_.points) {
    const QColor colour = theme.category(categoryOf(str(point.name)));
    QColor fill = colour;
    fill.setAlphaF(0.6F);
    painter.setBrush(fill);
    painter.setPen(point.kernel == selected_ ? QPen(themed(Token::Text), 2.5) : QPen(colour, 1));
    painter.drawEllipse(a.at(point.intensity, point.rate), radius(point), radius(point));
  }
  painter.restore();
  QString note;
  if (line_.points.empty()) note = tr("No kernel has both its operations counted and its time measured by the device.");
  else if (line_.without > 0) note = tr("%n kernel(s) without counted operations or bytes are left out", nullptr, static_cast<int>(line_.without));
  painter.setPen(themed(Token::TextMuted));
  painter.drawText(a.plot.adjusted(8, 0, -8, -6), Qt::AlignRight | Qt::AlignBottom | Qt::TextWordWrap, note);
}

Picture RooflinePlot::picture() const {
  const QRectF area(0, 0, width(), height());
  return {area, [this, area](QPainter& painter) { paintAll(painter, area); }};
}

void RooflinePlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Code));
  paintAll(painter, rect());
  paintFrame(painter, *this);
}

std::optional<size_t> RooflinePlot::pointAt(const QPointF& position) const {
  const Axes a = axes(rect());
  std::optional<size_t> best;
  double nearest = 1e9;
  for (size_t i = 0; i < line_.points.size(); ++i) {
    const QPointF away = a.at(line_.points[i].intensity, line_.points[i].rate) - position;
    const double distance = std::hypot(away.x(), away.y());
    if (distance > radius(line_.points[i]) + 3 || distance >= nearest) continue;
    nearest = distance;
    best = i;
  }
  return best;
}

QString RooflinePlot::describe(const RooflinePoint& p) const {
  const double roof = std::min(p.intensity * line_.roof.bytes, line_.roof.flops);
  QString text = tr("%1\n%2 at %3 operations a byte\n%4 in all").arg(str(p.name), flopRate(p.rate)).arg(p.intensity, 0, 'g', 3).arg(str(formatDuration(p.totalNs)));
  if (roof > 0 && p.rate <= line_.roof.flops) text += tr("\n%1 of the roof").arg(str(formatShare(p.rate, roof)));
  if (p.rate > line_.roof.flops && line_.roof.flops > 0) text += tr("\nabove float32 without tensor cores: it used those");
  return text;
}

void RooflinePlot::mousePressEvent(QMouseEvent* event) {
  const auto point = pointAt(event->position());
  if (!point) return;
  selectKernel(line_.points[*point].kernel);
  emit kernelSelected(selected_);
}

void RooflinePlot::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (step == 0 || line_.points.empty()) return QWidget::keyPressEvent(event);
  auto at = std::find_if(line_.points.begin(), line_.points.end(), [&](const auto& p) { return p.kernel == selected_; });
  const auto count = static_cast<int>(line_.points.size());
  const int now = at == line_.points.end() ? (step > 0 ? -1 : count) : static_cast<int>(at - line_.points.begin());
  const auto& next = line_.points[static_cast<size_t>(std::clamp(now + step, 0, count - 1))];
  selectKernel(next.kernel);
  setAccessibleDescription(describe(next));
  emit kernelSelected(selected_);
}

bool RooflinePlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto point = pointAt(help->pos());
    point ? QToolTip::showText(help->globalPos(), describe(line_.points[*point]), this) : QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

}  // namespace fusebox::views
