// The painting half of TimelineCanvas.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "views/common/units.h"
#include "views/timeline/timeline_canvas.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

/// Labels of the ruler: all in one unit, with as many decimals as the step needs.
QString rulerLabel(double ns, double step, bool relative) {
  const double units[] = {1, 1e3, 1e6, 1e9};
  const char* const names[] = {"ns", "µs", "ms", "s"};
  int unit = 0;
  while (unit < 3 && (step >= units[unit + 1] * 0.999 || std::abs(ns) >= units[unit + 1] * 1e5)) ++unit;
  const double smallest = step / units[unit];
  int decimals = 0;
  for (double s = smallest; s < 0.999 && decimals < 6; s *= 10) ++decimals;
  return (relative ? QStringLiteral("+") : QString()) + QString::number(ns / units[unit], 'f', decimals) + QLatin1Char(' ') + QString::fromUtf8(names[unit]);
}

/// Where ticks say how far they are from a round time before them: their own would be too long to be read.
double rulerBase(double from, double step) {
  constexpr double kLongest = 2000;  // steps
  const double round = step * 1000;
  return from > kLongest * step ? std::floor(from / round) * round : 0;
}

}  // namespace

QString durationText(int64_t ns) { return str(formatDuration(static_cast<double>(ns))); }

QString preciseTime(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return QString::number(value / 1e3, 'f', 3) + QStringLiteral(" µs");
  if (ns < 1'000'000'000) return QString::number(value / 1e6, 'f', 6) + QStringLiteral(" ms");
  return QString::number(value / 1e9, 'f', 9) + QStringLiteral(" s");
}

QString TimelineCanvas::describe(const Hit& hit) const {
  if (const NamedSpan* span = spanOf(hit)) {
    QString text = str(span->name) + QLatin1Char('\n') + durationText(span->endNs - span->startNs);
    if (!span->detail.empty()) text += QLatin1Char('\n') + str(span->detail);
    return text;
  }
  if (const query::SampleStep* sample = sampleOf(hit)) {
    const query::SampledMetric& metric = laneOf(hit)->sampled;
    const auto value = [&](double v) { return str(query::counterText(metric.unit, v)); };
    const QString text = tr("%1\n%2, at %3").arg(str(metric.title), value(sample->mean), durationText(sample->startNs - outline_.range.startNs));
    if (sample->count == 1) return text + tr("\nsampled over %1").arg(durationText(sample->endNs - sample->startNs));
    return text + tr("\n%1 samples over %2, from %3 to %4")
                      .arg(str(formatCount(sample->count)), durationText(sample->endNs - sample->startNs), value(sample->least), value(sample->most));
  }
  const query::Bar* bar = barOf(hit);
  if (!bar) bar = sumAt(hit);
  if (!bar) return {};
  const auto kernel = outline_.names.find(ownerOf(hit));
  const QString name = kernel == outline_.names.end() ? str(laneOf(hit)->name) : str(kernel->second);
  if (bar->count == 1) {
    return tr("%1\n%2, at %3").arg(name, durationText(bar->endNs - bar->startNs), durationText(bar->startNs - outline_.range.startNs));
  }
  return tr("%1 events in %2\nbusy %3 (%4)\nlongest %5: %6")
      .arg(str(formatCount(bar->count)), durationText(bar->endNs - bar->startNs), durationText(bar->busyNs),
           str(formatShare(static_cast<double>(bar->busyNs), static_cast<double>(bar->endNs - bar->startNs))),
           durationText(bar->maxDurNs), name);
}

Picture TimelineCanvas::picture() const {
  if (outline_.lanes.empty()) return {};
  const QRectF area(0, 0, width(), height());
  return {area, [this, area](QPainter& painter) {
            painter.setFont(font());
            paintAll(painter, area);
          }};
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Code));
  paintAll(painter, rect());
  paintFrame(painter, *this);
}

void TimelineCanvas::paintAll(QPainter& painter, const QRectF& area) const {
  paintPlaces(painter, false, area);
  paintPlaces(painter, true, area);
  paintArrows(painter, area);
  paintRuler(painter, area);
  paintFlags(painter, area);
  if (markEnd_ <= markStart_) return;
  QColor veil = themed(Token::Accent);
  veil.setAlphaF(0.12F);
  const double left = std::max<double>(xOf(markStart_), labelWidth()), right = std::min(xOf(markEnd_), area.right());
  if (right < left) return;
  painter.fillRect(QRectF(left, rulerHeight(), right - left, area.height()), veil);
  painter.setPen(themed(Token::Accent));
  for (const double x : {left, right}) painter.drawLine(QPointF(x, rulerHeight() - 6), QPointF(x, area.bottom()));
}

void TimelineCanvas::paintFlags(QPainter& painter, const QRectF& area) const {
  const double side = rulerHeight() / 3.0;
  painter.setPen(themed(Token::Accent));
  painter.setBrush(themed(Token::Accent));
  for (const int64_t flag : flags_) {
    const double x = xOf(flag);
    if (x < labelWidth() || x > area.right()) continue;
    painter.drawLine(QPointF(x, 1), QPointF(x, area.bottom()));
    painter.drawPolygon(QPolygonF{QPointF(x, 1), QPointF(x + side, 1 + side / 2), QPointF(x, 1 + side)});
  }
  painter.setBrush(Qt::NoBrush);
}

/// The pinned places below the ruler, or those that scroll, below them.
void TimelineCanvas::paintPlaces(QPainter& painter, bool pinned, const QRectF& area) const {
  const double first = rulerHeight() + (pinned ? 0 : pinnedHeight_), end = pinned ? std::min(rulerHeight() + pinnedHeight_, area.bottom()) : area.bottom();
  if (end <= first) return;
  const QRectF part(area.left(), first, area.width(), end - first);
  painter.save();
  painter.setClipRect(part);
  for (const Place& place : places_) {
    const double top = topOf(place);
    if (place.isPinned != pinned || top >= end || top + place.height <= first) continue;
    if (place.lane < 0) paintHeading(painter, place, top, area);
    else paintLane(painter, outline_.lanes[static_cast<size_t>(place.lane)], static_cast<size_t>(place.lane), top, area);
  }
  painter.restore();
  if (!pinned) return;
  painter.setPen(QPen(themed(Token::BorderStrong), 2));
  painter.drawLine(part.bottomLeft(), part.bottomRight());
}

void TimelineCanvas::paintHeading(QPainter& painter, const Place& place, double top, const QRectF& area) const {
  const QRectF row(area.left(), top, area.width(), place.height);
  painter.fillRect(row, themed(Token::Window));
  painter.setPen(themed(Token::Border));
  painter.drawLine(QPointF(area.left(), top + place.height - 0.5), QPointF(area.right(), top + place.height - 0.5));
  painter.setPen(themed(Token::Text));
  painter.save();
  QFont bold = painter.font();
  bold.setBold(true);
  painter.setFont(bold);
  painter.drawText(row.adjusted(8, 0, -8, 0), Qt::AlignVCenter | Qt::AlignLeft, (isGroupClosed(place.group) ? QStringLiteral("▸ ") : QStringLiteral("▾ ")) + str(place.group));
  painter.restore();
}

/// From the middle of the lane that asked to the middle of the one that did it, curved so that many stay apart.
void TimelineCanvas::paintArrows(QPainter& painter, const QRectF& area) const {
  if (arrows_.empty()) return;
  painter.save();
  painter.setClipRect(QRectF(labelWidth(), rulerHeight(), columns(), area.height()), Qt::IntersectClip);
  painter.setRenderHint(QPainter::Antialiasing);
  const QColor colour = themed(Token::Accent);
  for (const TimelineArrow& arrow : arrows_) {
    if (arrow.fromLane >= outline_.lanes.size() || arrow.toLane >= outline_.lanes.size()) continue;
    const auto above = laneMiddle(arrow.fromLane), below = laneMiddle(arrow.toLane);
    if (!above || !below) continue;
    const QPointF from(xOf(arrow.fromNs), *above), to(xOf(arrow.toNs), *below);
    const double bend = std::max(18.0, std::abs(to.x() - from.x()) / 2);
    QPainterPath path(from);
    path.cubicTo(from + QPointF(from == to || from.x() == to.x() ? 0 : bend, 0), to - QPointF(from.x() == to.x() ? 0 : bend, 0), to);
    painter.setPen(QPen(colour, 1.6));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.setBrush(colour);
    painter.setPen(Qt::NoPen);
    painter.drawEllipse(from, 3, 3);
    const bool down = from.x() == to.x();
    QPolygonF head;
    if (down) head << to << to + QPointF(-4, -7) << to + QPointF(4, -7);
    else head << to << to + QPointF(-8, -4) << to + QPointF(-8, 4);
    painter.drawPolygon(head);
  }
  painter.restore();
}

void TimelineCanvas::paintRuler(QPainter& painter, const QRectF& area) const {
  painter.fillRect(QRectF(area.left(), area.top(), area.width(), rulerHeight()), themed(Token::Raised));
  painter.setPen(themed(Token::Border));
  painter.drawLine(QPointF(area.left(), rulerHeight() - 0.5), QPointF(area.right(), rulerHeight() - 0.5));
  painter.setPen(themed(Token::TextMuted));
  const double perPixel = static_cast<double>(to_ - from_) / columns();
  const double step = rulerStep(perPixel * fontMetrics().horizontalAdvance(QStringLiteral("8888.888 ms")) * 1.3);
  const double origin = static_cast<double>(outline_.range.startNs);
  const double base = rulerBase(static_cast<double>(from_) - origin, step);
  // In the corner: from where ticks count, or how much is shown.
  painter.drawText(QRectF(8, 0, labelWidth() - 12, rulerHeight()), Qt::AlignVCenter | Qt::AlignLeft,
                   base > 0 ? tr("from %1").arg(rulerLabel(base, step * 1000, false)) : tr("%1 shown").arg(durationText(to_ - from_)));
  painter.save();
  painter.setClipRect(QRectF(labelWidth(), 0, columns(), area.height()));
  for (double at = std::floor((static_cast<double>(from_) - origin) / step) * step; at + origin < static_cast<double>(to_); at += step) {
    if (at < -step / 2) continue;  // nothing was recorded before zero
    const double x = labelWidth() + (at + origin - static_cast<double>(from_)) / perPixel;
    painter.setPen(themed(Token::Grid));
    painter.drawLine(QPointF(x, rulerHeight() - 6), QPointF(x, rulerHeight() - 1));
    painter.setPen(themed(Token::TextMuted));
    const QString label = rulerLabel(at - base, step, base > 0);
    if (x + 4 + fontMetrics().horizontalAdvance(label) > labelWidth() + columns()) continue;  // half a number is another number
    painter.drawText(QPointF(x + 4, (rulerHeight() + fontMetrics().ascent()) / 2.0 - 2), label);
  }
  painter.restore();
}

void TimelineCanvas::paintLane(QPainter& painter, const TimelineLane& lane, size_t index, double top, const QRectF& area) const {
  const double height = laneHeight(lane);
  painter.fillRect(QRectF(area.left(), top, labelWidth(), height), themed(Token::Raised));
  painter.setPen(themed(Token::Border));
  painter.drawLine(QPointF(area.left(), top + height - 0.5), QPointF(area.right(), top + height - 0.5));
  painter.drawLine(QPointF(labelWidth() - 0.5, top), QPointF(labelWidth() - 0.5, top + height));
  const QString name = titleOf(lane);
  painter.setPen(themed(Token::Text));
  const QRectF label(8, top, labelWidth() - 14, rowHeight() + 6);
  painter.drawText(label, Qt::AlignVCenter | Qt::AlignLeft, name);
  painter.setPen(themed(Token::TextMuted));
  const double used = fontMetrics().horizontalAdvance(name) + 6;
  painter.drawText(label.adjusted(used, 0, 0, 0), Qt::AlignVCenter | Qt::AlignRight,
                   fontMetrics().elidedText(str(lane.name), Qt::ElideRight, static_cast<int>(label.width() - used)));
  painter.save();
  painter.setClipRect(QRectF(labelWidth(), top, columns(), height), Qt::IntersectClip);
  if (lane.kind == TimelineLane::Kind::Stages) {
    paintSpans(painter, lane, top + 3, area);
  } else if (const LaneBars* bars = barsOf(static_cast<int>(index)); bars && lane.kind == TimelineLane::Kind::Samples) {
    paintSamples(painter, lane, *bars, top + 4, area);
  } else if (bars) {
    paintBars(painter, *bars, top + 4, area);
  }
  painter.restore();
}

void TimelineCanvas::paintBox(QPainter& painter, const QRectF& box, const QColor& colour, const QString& text, bool selected) const {
  painter.fillRect(box, colour);
  if (selected) {
    painter.setPen(QPen(themed(Token::Text), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0, 0, -1, -1));
  }
  if (box.width() < 26 || text.isEmpty()) return;
  const double left = std::max<double>(box.left(), labelWidth()) + 4;
  const double room = std::min<double>(box.right(), width()) - left - 3;
  if (room < 20) return;
  painter.setPen(themed(Token::Text));
  painter.drawText(QRectF(left, box.top(), room, box.height()), Qt::AlignVCenter | Qt::AlignLeft,
                   fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(room)));
}

void TimelineCanvas::paintBars(QPainter& painter, const LaneBars& lane, double top, const QRectF& area) const {
  const Theme& theme = Theme::instance();
  const double height = barHeight();
  const int here = static_cast<int>(lane.lane);
  for (size_t b = 0; b < lane.bars.size(); ++b) {
    const query::Bar& bar = lane.bars[b];
    const double left = xOf(bar.startNs), right = xOf(bar.endNs);
    if (right < labelWidth() || left > area.right()) continue;
    const int64_t kernel = lane.owners[b];
    const auto name = outline_.names.find(kernel);
    const QString title = name == outline_.names.end() ? QString() : str(name->second);
    const int category = kernel > 0 ? categoryOf(title) : 5;
    const bool chosen = selected_.lane == here && selected_.index == static_cast<int>(b);
    QRectF box(left, top, std::max(right - left, 1.0), height);
    if (bar.count > 1) {
      // Several events in one bar: as high as it is busy, in the colour of the longest.
      const double busy = std::clamp(static_cast<double>(bar.busyNs) / static_cast<double>(std::max<int64_t>(bar.endNs - bar.startNs, 1)), 0.08, 1.0);
      box.setTop(top + height * (1 - busy));
      QColor colour = theme.category(category);
      colour.setAlphaF(0.55F);
      paintBox(painter, box, colour, {}, chosen);
      continue;
    }
    paintBox(painter, box, theme.categoryFill(category), title, chosen);
    if (box.width() < 3) {
      painter.fillRect(box, theme.category(category));
    } else {
      painter.fillRect(QRectF(box.left(), box.bottom() - 2, box.width(), 2), theme.category(category));
    }
  }
}

/// An area as high as the mean, percentages of a hundred, others of the session's highest; behind it, fainter, how high single samples were.
void TimelineCanvas::paintSamples(QPainter& painter, const TimelineLane& lane, const LaneBars& bars, double top, const QRectF& area) const {
  const Theme& theme = Theme::instance();
  const double height = laneHeight(lane) - 6.0, bottom = top + height;
  const double whole = lane.sampled.unit == query::KernelCounter::Unit::Percent ? 100 : std::max(lane.sampled.most, 1e-9);
  const auto level = [&](double value) { return bottom - std::clamp(value / whole, 0.0, 1.0) * height; };
  const QColor line = theme.category(static_cast<int>(lane.sampled.position));
  QColor mean = line, most = line;
  mean.setAlphaF(0.5F);
  most.setAlphaF(0.18F);
  painter.setPen(themed(Token::Grid));
  painter.drawLine(QPointF(labelWidth(), bottom - height / 2), QPointF(area.right(), bottom - height / 2));
  for (size_t i = 0; i < bars.samples.size(); ++i) {
    const query::SampleStep& step = bars.samples[i];
    const double left = xOf(step.startNs), right = std::max(xOf(step.endNs), left + 0.5);
    if (right < labelWidth()) continue;
    if (left > area.right()) break;
    if (step.count > 1) painter.fillRect(QRectF(QPointF(left, level(step.most)), QPointF(right, level(step.mean))), most);
    painter.fillRect(QRectF(QPointF(left, level(step.mean)), QPointF(right, bottom)), mean);
    painter.fillRect(QRectF(left, level(step.mean) - 1, right - left, 1.5), line);
    const bool chosen = selected_.lane == static_cast<int>(bars.lane) && selected_.index == static_cast<int>(i);
    if (chosen) painter.fillRect(QRectF(left, top, std::max(right - left, 2.0), height), most);
  }
}

/// As high as the time is busy, a column at least.
void TimelineCanvas::paintSums(QPainter& painter, const TimelineLane& lane, double top, const QRectF& area) const {
  QColor colour = themed(Token::TextMuted);
  colour.setAlphaF(0.45F);
  auto sum = std::partition_point(lane.sums.begin(), lane.sums.end(), [&](const query::Bar& bar) { return bar.endNs <= from_; });
  while (sum != lane.sums.end() && xOf(sum->startNs) <= area.right()) {
    const double left = xOf(sum->startNs);
    int64_t busy = 0, until = sum->endNs;
    const int64_t start = sum->startNs;
    do {
      busy += sum->busyNs;
      until = sum->endNs;
      ++sum;
    } while (sum != lane.sums.end() && xOf(sum->endNs) <= left + 1);
    const double height = (rowHeight() - 1) * std::clamp(static_cast<double>(busy) / static_cast<double>(until - start), 0.08, 1.0);
    painter.fillRect(QRectF(left, top + rowHeight() - 1 - height, std::max(xOf(until) - left, 1.0), height), colour);
  }
}

void TimelineCanvas::paintSpans(QPainter& painter, const TimelineLane& lane, double top, const QRectF& area) const {
  const Theme& theme = Theme::instance();
  const bool here = laneOf(selected_) == &lane;
  // Of spans in a column that are too many to be drawn, the sum tells; those that are wide stand in front of it.
  paintSums(painter, lane, top, area);
  double rowTop = top;
  for (const SpanRow& row : lane.rows) {
    if (&row != &lane.rows.front() && isClosed(lane)) break;
    if (rowTop > area.bottom()) break;
    if (rowTop + rowHeight() < rulerHeight()) {
      rowTop += rowHeight();
      continue;
    }
    double drawn = 0;  // right edge of what was drawn
    for (size_t at = row.firstEndingAfter(from_); at < row.spans.size();) {
      const uint32_t index = row.spans[at];
      const NamedSpan& span = lane.spans[index];
      const double left = xOf(span.startNs), right = std::max(xOf(span.endNs), left + 1);
      if (left > area.right()) break;
      if (right <= drawn || (!lane.sums.empty() && &row == &lane.rows.front() && right - left < 2)) {  // the last row holds whatever found no row of its own
        ++at;
        continue;
      }
      const QRectF box(left, rowTop, right - left, rowHeight() - 1);
      const QString name = str(span.name);
      const int category = categoryOf(name);
      paintBox(painter, box, box.width() < 3 ? theme.category(category) : theme.categoryFill(category), name,
               here && selected_.index == static_cast<int>(index));
      drawn = std::floor(right) + 0.5;
      at = row.firstEndingAfter(timeAt(drawn), at + 1);  // the others lie in the same pixel
    }
    rowTop += rowHeight();
  }
}

}  // namespace fusebox::views
