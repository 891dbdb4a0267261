#include "views/overview/stage_bar.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/common/units.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

QString durationText(double milliseconds) { return QString::fromStdString(formatDuration(milliseconds * 1e6)); }

}  // namespace

StageBar::StageBar(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("overview.stages.bar"));
  setAccessibleName(tr("Compile time by stage"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void StageBar::setParts(std::vector<Part> parts, double totalMilliseconds) {
  parts_ = std::move(parts);
  total_ = totalMilliseconds;
  QStringList spoken;
  for (const Part& part : parts_) spoken << part.name + QLatin1Char(' ') + durationText(part.milliseconds);
  setAccessibleDescription(spoken.join(QStringLiteral(", ")));
  lines_ = legendLines(width());
  updateGeometry();
  update();
}

int StageBar::barHeight() const { return fontMetrics().height() + 8; }

QSize StageBar::sizeHint() const { return {300, barHeight() + lines_ * (fontMetrics().height() + 4) + 10}; }

void StageBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (const int lines = legendLines(width()); lines != std::exchange(lines_, lines)) updateGeometry();
}

std::vector<StageBar::Mark> StageBar::legend(double width) const {
  const QFontMetricsF metrics(font());
  constexpr double kBetween = 18;
  std::vector<Mark> marks;
  QPointF at(0, barHeight() + 8);
  for (const Part& part : parts_) {
    Mark mark{at, part.name + QLatin1Char(' '), durationText(part.milliseconds)};
    const double length = metrics.height() * 0.6 + 5 + metrics.horizontalAdvance(mark.name) + metrics.horizontalAdvance(mark.time);
    if (at.x() > 0 && at.x() + length > width) mark.at = at = QPointF(0, at.y() + metrics.height() + 4);
    at.rx() += length + kBetween;
    marks.push_back(std::move(mark));
  }
  return marks;
}

int StageBar::legendLines(double width) const {
  const auto marks = legend(width);
  if (marks.empty()) return 1;
  return 1 + static_cast<int>(std::lround((marks.back().at.y() - marks.front().at.y()) / (QFontMetricsF(font()).height() + 4)));
}

QRectF StageBar::partRect(size_t index, double width) const {
  double before = 0, all = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    all += parts_[i].milliseconds;
    if (i < index) before += parts_[i].milliseconds;
  }
  all = std::max(all, total_);
  if (all <= 0) return {};
  return {before / all * width, 0, parts_[index].milliseconds / all * width, static_cast<double>(barHeight())};
}

void StageBar::paintAll(QPainter& painter, double width) const {
  painter.setPen(Qt::NoPen);
  painter.fillRect(QRectF(0, 0, width, barHeight()), themed(Token::Hover));
  const QFontMetricsF metrics(font());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const QRectF rect = partRect(i, width);
    if (rect.width() <= 0) continue;
    painter.fillRect(rect.adjusted(0, 0, -1, 0), Theme::instance().category(parts_[i].category));
    const QString text = durationText(parts_[i].milliseconds);
    if (metrics.horizontalAdvance(text) + 10 < rect.width()) {
      painter.setPen(Theme::instance().onCategory(parts_[i].category));
      painter.drawText(rect.adjusted(6, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, text);
    }
  }
  const double box = metrics.height() * 0.6;
  const std::vector<Mark> marks = legend(width);
  for (size_t i = 0; i < marks.size(); ++i) {
    const auto& [at, name, time] = marks[i];
    painter.fillRect(QRectF(at.x(), at.y() + (metrics.height() - box) / 2, box, box), Theme::instance().category(parts_[i].category));
    const QPointF text = at + QPointF(box + 5, metrics.ascent());
    painter.setPen(themed(Token::Text));
    painter.drawText(text, name);
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(text + QPointF(metrics.horizontalAdvance(name), 0), time);
  }
}

void StageBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintAll(painter, width());
}

Picture StageBar::picture() const {
  if (parts_.empty()) return {};
  const double width = this->width();
  return {QRectF(0, 0, width, height()), [this, width](QPainter& painter) {
            painter.setFont(font());
            paintAll(painter, width);
          }};
}

bool StageBar::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!partRect(i, width()).contains(help->pos())) continue;
    QToolTip::showText(help->globalPos(),
                       QStringLiteral("%1: %2 (%3)").arg(parts_[i].name, durationText(parts_[i].milliseconds),
                                                         QString::fromStdString(formatShare(parts_[i].milliseconds, total_))),
                       this);
    return true;
  }
  QToolTip::hideText();
  return true;
}

}  // namespace fusebox::views
