#include "views/memory/lifetimes_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/common/units.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr int kResultColour = 1, kPlannedColour = 2, kAllocatedColour = 3;  // categories of the theme

int colourOf(const query::BufferLife& buffer) { return buffer.kind == "owned" ? kResultColour : buffer.kind == "allocated" ? kAllocatedColour : kPlannedColour; }

QString bytesText(double bytes) { return str(formatBytes(bytes)); }

}  // namespace

LifetimesCanvas::LifetimesCanvas(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memory.picture"));
  setAccessibleName(tr("Lifetimes of buffers"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void LifetimesCanvas::setLifetimes(query::GraphLifetimes lifetimes) {
  lifetimes_ = std::move(lifetimes);
  picture_ = layOutLifetimes(lifetimes_);
  marked_ = -1;
  setAccessibleDescription(tr("%1 buffers, %2 at the peak").arg(picture_.boxes.size()).arg(bytesText(static_cast<double>(lifetimes_.graph.peakBytes))));
  update();
}

void LifetimesCanvas::setEmptyText(const QString& text) {
  emptyText_ = text;
  update();
}

void LifetimesCanvas::mark(int buffer) {
  marked_ = buffer;
  update();
}

QRectF LifetimesCanvas::plotArea(const QSizeF& size) const {
  const QFontMetricsF metrics(font());
  const double left = metrics.horizontalAdvance(QStringLiteral("999.9 MiB")) + 14, top = metrics.height() + 14;  // the legend stands above
  return {left, top, std::max(10.0, size.width() - left - 12), std::max(10.0, size.height() - top - metrics.height() - 12)};
}

QRectF LifetimesCanvas::boxRect(const LifeBox& box, const QRectF& plot) const {
  const double steps = static_cast<double>(std::max<int64_t>(1, lifetimes_.graph.steps)), height = static_cast<double>(std::max<int64_t>(1, picture_.height));
  const double x = plot.left() + static_cast<double>(box.first) / steps * plot.width(), width = static_cast<double>(box.last - box.first + 1) / steps * plot.width();
  const double h = static_cast<double>(box.bytes) / height * plot.height(), bottom = plot.bottom() - static_cast<double>(box.offset) / height * plot.height();
  return {x, bottom - h, width, h};
}

void LifetimesCanvas::paintAxes(QPainter& painter, const QRectF& plot) const {
  const QFontMetricsF metrics(painter.font());
  painter.setPen(themed(Token::Grid));
  for (int i = 0; i <= 4; ++i) {
    const double y = plot.bottom() - plot.height() * i / 4;
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(0, y - metrics.height() / 2, plot.left() - 6, metrics.height()), Qt::AlignRight | Qt::AlignVCenter, bytesText(static_cast<double>(picture_.height) * i / 4));
  }
  const auto steps = static_cast<double>(lifetimes_.graph.steps);
  const double every = std::max(1.0, rulerStep(steps * 60 / std::max(1.0, plot.width())));
  for (double s = 0; s < steps; s += every) {
    const double x = plot.left() + (s + 0.5) / steps * plot.width();
    painter.drawText(QRectF(x - 40, plot.bottom() + 4, 80, metrics.height()), Qt::AlignHCenter, QString::number(s, 'f', 0));
  }
  painter.drawText(QRectF(0, plot.bottom() + 4, plot.left() - 6, metrics.height()), Qt::AlignRight, tr("step"));
}

void LifetimesCanvas::paintAll(QPainter& painter, const QSizeF& size) const {
  const QRectF plot = plotArea(size);
  if (lifetimes_.graph.steps <= 0 || picture_.boxes.empty()) {
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(QPointF(0, 0), size), Qt::AlignCenter, lifetimes_.graph.graph == 0 ? emptyText_ : tr("This graph plans no buffers: everything it makes stays inside its kernels."));
    return;
  }
  paintAxes(painter, plot);
  paintBoxes(painter, plot);
  QPolygonF line;
  const auto steps = static_cast<double>(lifetimes_.graph.steps);
  for (size_t s = 0; s < lifetimes_.alive.size(); ++s) {
    const double y = plot.bottom() - static_cast<double>(lifetimes_.alive[s]) / static_cast<double>(std::max<int64_t>(1, picture_.height)) * plot.height();
    line << QPointF(plot.left() + static_cast<double>(s) / steps * plot.width(), y) << QPointF(plot.left() + static_cast<double>(s + 1) / steps * plot.width(), y);
  }
  painter.setPen(QPen(themed(Token::Error), 1.5));
  painter.drawPolyline(line);
  paintNames(painter, plot);
  paintLegend(painter, plot);
}

QColor LifetimesCanvas::fillOf(const LifeBox& box) const {
  QColor fill = Theme::instance().category(colourOf(lifetimes_.buffers[box.buffer]));
  fill.setAlphaF(static_cast<int>(box.buffer) == marked_ ? 0.95F : 0.6F);
  return fill;
}

void LifetimesCanvas::paintBoxes(QPainter& painter, const QRectF& plot) const {
  for (const LifeBox& box : picture_.boxes) {
    const QRectF rect = boxRect(box, plot);
    const bool isMarked = static_cast<int>(box.buffer) == marked_;
    painter.fillRect(rect, fillOf(box));
    if (rect.height() <= 2.5 || rect.width() <= 2.5) continue;
    painter.setPen(QPen(isMarked ? themed(Token::Text) : themed(Token::Panel), isMarked ? 2 : 1));
    painter.drawRect(rect);
  }
}

/// Names interrupt the line of what is alive, so that it does not strike them through.
void LifetimesCanvas::paintNames(QPainter& painter, const QRectF& plot) const {
  const QFontMetricsF metrics(painter.font());
  for (const LifeBox& box : picture_.boxes) {
    const QRectF rect = boxRect(box, plot);
    const QString name = str(lifetimes_.buffers[box.buffer].name);
    const double width = metrics.horizontalAdvance(name);
    if (rect.height() < metrics.height() || rect.width() <= width + 8) continue;
    // A buffer that takes over the place lies above from its first step on.
    const bool isCovered = std::ranges::any_of(picture_.boxes, [&](const LifeBox& other) {
      const QRectF above = boxRect(other, plot);
      return above.left() > rect.left() && above.left() < rect.left() + width + 8 && above.top() < rect.bottom() && above.bottom() > rect.top();
    });
    if (isCovered) continue;
    const QRectF behind(rect.left() + 2, rect.center().y() - metrics.height() / 2, width + 4, metrics.height());
    painter.fillRect(behind, themed(Token::Panel));
    painter.fillRect(behind, fillOf(box));
    painter.setPen(themed(Token::Text));
    painter.drawText(rect.adjusted(4, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
  }
}

void LifetimesCanvas::paintLegend(QPainter& painter, const QRectF& plot) const {
  const QFontMetricsF metrics(painter.font());
  const std::pair<QColor, QString> marks[] = {{Theme::instance().category(kPlannedColour), tr("planned, in the pool")},
                                              {Theme::instance().category(kAllocatedColour), tr("allocated, freed after its last use")},
                                              {Theme::instance().category(kResultColour), tr("results")},
                                              {themed(Token::Error), tr("alive")}};
  double x = plot.left() + 8;
  const double box = metrics.height() * 0.6, y = plot.top() - metrics.height() - 8;
  for (const auto& [colour, text] : marks) {
    painter.fillRect(QRectF(x, y + (metrics.height() - box) / 2, box, box), colour);
    painter.setPen(themed(Token::Text));
    painter.drawText(QPointF(x + box + 5, y + metrics.ascent()), text);
    x += box + 5 + metrics.horizontalAdvance(text) + 16;
  }
}

void LifetimesCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Panel));
  paintAll(painter, size());
  if (hasFocus()) {
    painter.setPen(themed(Token::Accent));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

Picture LifetimesCanvas::picture() const {
  const QSizeF size(std::max(900, width()), std::max(420, height()));
  return {QRectF(QPointF(0, 0), size), [this, size](QPainter& painter) {
            painter.setFont(font());
            painter.fillRect(QRectF(QPointF(0, 0), size), themed(Token::Panel));
            paintAll(painter, size);
          }};
}

int LifetimesCanvas::bufferAt(const QPointF& position) const {
  const QRectF plot = plotArea(size());
  for (auto box = picture_.boxes.rbegin(); box != picture_.boxes.rend(); ++box) {
    if (boxRect(*box, plot).adjusted(-1, -1, 1, 1).contains(position)) return static_cast<int>(box->buffer);
  }
  return -1;
}

QString LifetimesCanvas::describe(int index) const {
  const auto& b = lifetimes_.buffers[static_cast<size_t>(index)];
  const auto stepName = [this](int64_t step) {
    const auto at = static_cast<size_t>(step);
    return at < lifetimes_.stepNames.size() ? str(lifetimes_.stepNames[at]) : QString();
  };
  return tr("%1: %2%3, %4\n%5\nfrom step %6 (%7) to step %8 (%9)")
      .arg(str(b.name), str(b.dtype), str(b.shape), bytesText(static_cast<double>(b.bytes)), b.kind == "owned" ? tr("a result, lives on after the call") : b.kind == "allocated" ? tr("allocated by itself, freed after its last use") : tr("planned, in the pool"))
      .arg(b.first)
      .arg(stepName(b.first))
      .arg(b.last)
      .arg(stepName(b.last));
}

void LifetimesCanvas::mousePressEvent(QMouseEvent* event) {
  setFocus();
  mark(bufferAt(event->position()));
  if (marked_ >= 0) emit selected(marked_);
}

void LifetimesCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int buffer = bufferAt(event->position()); buffer >= 0) emit activated(buffer);
}

void LifetimesCanvas::keyPressEvent(QKeyEvent* event) {
  const auto& boxes = picture_.boxes;
  const int key = event->key();
  if ((key != Qt::Key_Left && key != Qt::Key_Right && key != Qt::Key_Return) || boxes.empty()) return QWidget::keyPressEvent(event);
  if (key == Qt::Key_Return) {
    if (marked_ >= 0) emit activated(marked_);
    return;
  }
  auto at = std::find_if(boxes.begin(), boxes.end(), [this](const LifeBox& box) { return static_cast<int>(box.buffer) == marked_; });
  if (at == boxes.end()) {
    at = boxes.begin();
  } else if (key == Qt::Key_Right) {
    if (std::next(at) != boxes.end()) ++at;
  } else if (at != boxes.begin()) {
    --at;
  }
  mark(static_cast<int>(at->buffer));
  emit selected(marked_);
}

bool LifetimesCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int buffer = bufferAt(help->pos());
  if (buffer >= 0) {
    QToolTip::showText(help->globalPos(), describe(buffer), this);
  } else {
    QToolTip::hideText();
  }
  return true;
}

}  // namespace fusebox::views
