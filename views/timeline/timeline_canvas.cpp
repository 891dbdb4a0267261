#include "views/timeline/timeline_canvas.h"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QThreadPool>
#include <QToolTip>
#include <cmath>
#include <memory>
#include <utility>

#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr double kStep = 1.25;
constexpr int kNarrowestLabels = 60, kEdge = 4;
constexpr int64_t kShortestWindow = 200;  // ns

/// The samples that hold `time`: their index, -1 for none.
template <typename T>
const T* at(const std::vector<T>& things, int index) {
  return index >= 0 && index < static_cast<int>(things.size()) ? &things[static_cast<size_t>(index)] : nullptr;
}

int sampleAt(const LaneBars& lane, int64_t time) {
  const auto after = std::upper_bound(lane.samples.begin(), lane.samples.end(), time, [](int64_t t, const query::SampleStep& s) { return t < s.startNs; });
  if (after == lane.samples.begin() || std::prev(after)->endNs <= time) return -1;
  return static_cast<int>(after - lane.samples.begin()) - 1;
}

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent) : QWidget(parent), bar_(new QScrollBar(Qt::Vertical, this)) {
  bar_->setObjectName(QStringLiteral("timeline.scroll"));
  bar_->setAccessibleName(tr("Lanes"));
  bar_->hide();
  connect(bar_, &QScrollBar::valueChanged, this, [this](int value) {
    scroll_ = value;
    update();
  });
  setObjectName(QStringLiteral("timeline.canvas"));
  setAccessibleName(tr("Timeline"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

QSize TimelineCanvas::minimumSizeHint() const { return {labelWidth() + 160, rulerHeight() + 2 * rowHeight()}; }
int TimelineCanvas::rowHeight() const {
  if (rowHeight_ == 0) rowHeight_ = fontMetrics().height() + 5;
  return rowHeight_;
}
int TimelineCanvas::barHeight() const { return rowHeight() * 3 / 2; }
int TimelineCanvas::rulerHeight() const { return fontMetrics().height() + 12; }
int TimelineCanvas::labelWidth() const {
  if (chosenLabelWidth_ > 0) return std::min(chosenLabelWidth_, std::max(kNarrowestLabels, width() / 2));
  if (labelWidth_ == 0) {
    const int usual = fontMetrics().horizontalAdvance(QStringLiteral("launches  thread 888888")) + 16;
    for (const TimelineLane& lane : outline_.lanes)
      labelWidth_ = std::max(labelWidth_, fontMetrics().horizontalAdvance(titleOf(lane)) + fontMetrics().horizontalAdvance(str(lane.name)) + 22);
    labelWidth_ = std::clamp(labelWidth_, usual, std::max(usual, width() / 4));
  }
  return labelWidth_;
}

QString TimelineCanvas::titleOf(const TimelineLane& lane) const {
  const bool folds = lane.kind == TimelineLane::Kind::Stages && lane.depth > 1;
  return (folds ? isClosed(lane) ? QStringLiteral("▸ ") : QStringLiteral("▾ ") : QString()) + str(lane.title);
}

int TimelineCanvas::columns() const { return std::max(1, width() - labelWidth() - (bar_->isHidden() ? 0 : bar_->sizeHint().width())); }

int TimelineCanvas::laneHeight(const TimelineLane& lane) const {
  if (isHidden(lane)) return 0;
  return lane.kind == TimelineLane::Kind::Stages ? (isClosed(lane) ? 1 : lane.depth) * rowHeight() + 6 : barHeight() + 10;
}

void TimelineCanvas::placeLanes() {
  places_.clear();
  pinnedHeight_ = scrolledHeight_ = 0;
  const auto& lanes = outline_.lanes;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!isPinned(lanes[i]) || isHidden(lanes[i])) continue;
    places_.push_back({static_cast<int>(i), {}, pinnedHeight_, static_cast<double>(laneHeight(lanes[i])), true});
    pinnedHeight_ += places_.back().height;
  }
  const bool hasGroups = !lanes.empty() && lanes.front().group != lanes.back().group;
  const auto put = [this](int lane, const std::string& group, double height) {
    places_.push_back({lane, group, scrolledHeight_, height, false});
    scrolledHeight_ += height;
  };
  for (size_t i = 0; i < lanes.size(); ++i) {
    const std::string& group = lanes[i].group;
    if (hasGroups && (i == 0 || lanes[i - 1].group != group)) put(-1, group, headingHeight());
    if (isPinned(lanes[i]) || isHidden(lanes[i]) || (hasGroups && isGroupClosed(group))) continue;
    put(static_cast<int>(i), group, laneHeight(lanes[i]));
  }
}

double TimelineCanvas::topOf(const Place& place) const { return rulerHeight() + place.top + (place.isPinned ? 0 : pinnedHeight_ - scroll_); }

const TimelineCanvas::Place* TimelineCanvas::placeAt(double y) const {
  const bool pinned = y < rulerHeight() + pinnedHeight_;
  for (const Place& place : places_) {
    if (place.isPinned != pinned) continue;
    const double top = topOf(place);
    if (y >= top && y < top + place.height) return &place;
  }
  return nullptr;
}

std::optional<double> TimelineCanvas::laneMiddle(size_t lane) const {
  for (const Place& place : places_)
    if (place.lane == static_cast<int>(lane)) return topOf(place) + place.height / 2;
  return std::nullopt;
}

void TimelineCanvas::scrollTo(double top) { bar_->setValue(static_cast<int>(std::clamp(top, 0.0, static_cast<double>(bar_->maximum())))); }

/// The scroll bar is there where lanes lie below.
void TimelineCanvas::lanesChanged() {
  placeLanes();
  const int top = rulerHeight() + static_cast<int>(pinnedHeight_);
  const int room = std::max(1, height() - top), below = std::max(0, static_cast<int>(std::ceil(scrolledHeight_)) - room);
  const int wide = bar_->sizeHint().width();
  bar_->setGeometry(width() - wide, top, wide, room);
  bar_->setPageStep(room);
  bar_->setSingleStep(rowHeight());
  bar_->setRange(0, below);
  bar_->setVisible(below > 0);
  scroll_ = bar_->value();
  emit windowChanged();
  update();
}

void TimelineCanvas::setClosed(const TimelineLane& lane, bool closed) {
  if (closed) closed_.insert(keyOf(lane));
  else closed_.erase(keyOf(lane));
  lanesChanged();
}

void TimelineCanvas::setHidden(const TimelineLane& lane, bool hidden) {
  if (hidden) hidden_.insert(keyOf(lane));
  else hidden_.erase(keyOf(lane));
  lanesChanged();
}

void TimelineCanvas::setPinned(const TimelineLane& lane, bool pinned) {
  if (pinned) pinned_.insert(keyOf(lane));
  else pinned_.erase(keyOf(lane));
  lanesChanged();
}

void TimelineCanvas::setGroupClosed(const std::string& group, bool closed) {
  if (closed) closedGroups_.insert(group);
  else closedGroups_.erase(group);
  lanesChanged();
}

void TimelineCanvas::showAllLanes() {
  hidden_.clear();
  lanesChanged();
}

const TimelineCanvas::Place* TimelineCanvas::labelAt(const QPointF& position) const {
  if (position.y() < rulerHeight()) return nullptr;
  const Place* place = placeAt(position.y());
  return place && (place->lane < 0 || position.x() < labelWidth()) ? place : nullptr;
}

QString TimelineCanvas::labelText(const TimelineLane& lane) const {
  const QString text = str(lane.title) + QLatin1Char(' ') + str(lane.name);
  return lane.kind == TimelineLane::Kind::Stages ? tr("%1\n%2 spans, %3 rows deep").arg(text).arg(lane.count).arg(lane.depth) : text;
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  if (outline_.lanes.empty()) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const Place* at = event->pos().y() < rulerHeight() ? nullptr : placeAt(event->pos().y());
  if (at && at->lane < 0) {
    menu->addAction(isGroupClosed(at->group) ? tr("Open the group (G)") : tr("Close the group (G)"), this, [this, group = at->group] { setGroupClosed(group, !isGroupClosed(group)); });
    menu->addSeparator();
  } else if (at) {
    const TimelineLane lane = [&] {  // without its spans
      TimelineLane key;
      const TimelineLane& here = outline_.lanes[static_cast<size_t>(at->lane)];
      key.kind = here.kind, key.thread = here.thread, key.sampled.position = here.sampled.position;
      return key;
    }();
    if (lane.kind == TimelineLane::Kind::Stages) {
      menu->addAction(isClosed(lane) ? tr("Open the lane") : tr("Close the lane"), this, [this, lane] { setClosed(lane, !isClosed(lane)); });
    }
    menu->addAction(isPinned(lane) ? tr("Let the lane scroll (P)") : tr("Pin the lane on top (P)"), this, [this, lane] { setPinned(lane, !isPinned(lane)); });
    menu->addAction(tr("Hide the lane"), this, [this, lane] { setHidden(lane, true); });
    menu->addSeparator();
  }
  menu->addAction(tr("Open all lanes"), this, [this] {
    closed_.clear();
    closedGroups_.clear();
    lanesChanged();
  });
  menu->addAction(tr("Close all lanes"), this, [this] {
    for (const auto& lane : outline_.lanes) closed_.insert(keyOf(lane));
    lanesChanged();
  });
  QAction* all = menu->addAction(tr("Show hidden lanes (%1)").arg(hidden_.size()), this, &TimelineCanvas::showAllLanes);
  all->setEnabled(!hidden_.empty());
  menu->popup(event->globalPos());
}

void TimelineCanvas::leaveEvent(QEvent*) { pointer_ = -1; }

void TimelineCanvas::setOutline(TimelineOutline outline, bool keepWindow) {
  const bool whole = from_ <= outline_.range.startNs && to_ >= outline_.range.endNs;
  if (keepWindow) {
    moveTo(outline);
  } else {
    selected_ = {};
    selectedStart_ = -1;
    bars_ = {};
    flags_.clear();
  }
  if (outline.keepsSpans) takeSpans(outline);
  // Freeing the names of a large trace would be felt here.
  QThreadPool::globalInstance()->start([old = std::make_shared<TimelineOutline>(std::exchange(outline_, std::move(outline)))] {});
  arrows_.clear();
  labelWidth_ = 0;
  lanesChanged();
  if (!keepWindow || whole) {
    fit();
  } else {
    emit windowChanged();
  }
  update();
}

/// `grown` has what outline_ lets go of.
void TimelineCanvas::takeSpans(TimelineOutline& grown) {
  for (TimelineLane& lane : grown.lanes) {
    if (lane.kind != TimelineLane::Kind::Stages) continue;
    const auto old = std::find_if(outline_.lanes.begin(), outline_.lanes.end(), [&](const TimelineLane& before) { return before.isSame(lane); });
    if (old == outline_.lanes.end()) continue;
    lane.spans = std::move(old->spans);
    lane.rows = std::move(old->rows);
    lane.sums = std::move(old->sums);
  }
}

/// Bars and selection go along with their lanes to `grown`, where other lanes and spans may have come before them.
void TimelineCanvas::moveTo(const TimelineOutline& grown) {
  const auto movedLane = [&](size_t lane) {
    const auto at = std::find_if(grown.lanes.begin(), grown.lanes.end(), [&old = outline_.lanes[lane]](const TimelineLane& now) {
      return now.isSame(old);
    });
    return at == grown.lanes.end() ? -1 : static_cast<int>(at - grown.lanes.begin());
  };
  std::erase_if(bars_.lanes, [&](LaneBars& bars) {
    const int lane = movedLane(bars.lane);
    if (lane >= 0) bars.lane = static_cast<size_t>(lane);
    return lane < 0;
  });
  if (selected_.lane < 0) return;
  Hit kept = selected_;
  kept.lane = movedLane(static_cast<size_t>(selected_.lane));
  if (const NamedSpan* span = spanOf(selected_); span && !grown.keepsSpans) {
    const auto& spans = kept.lane >= 0 ? grown.lanes[static_cast<size_t>(kept.lane)].spans : std::vector<NamedSpan>();
    const auto same = std::find_if(spans.begin(), spans.end(), [&](const NamedSpan& s) { return s.startNs == span->startNs && s.name == span->name; });
    kept.index = same == spans.end() ? -1 : static_cast<int>(same - spans.begin());
  }
  selected_ = kept.lane >= 0 ? kept : Hit{};
}

void TimelineCanvas::setBars(TimelineBars bars) {
  bars_ = std::move(bars);
  const TimelineLane* lane = laneOf(selected_);
  if (lane && selected_.valid() && lane->kind != TimelineLane::Kind::Stages) {  // find what is selected again
    const LaneBars* now = barsOf(selected_.lane);
    selected_.index = -1;
    if (now && lane->kind == TimelineLane::Kind::Samples) selected_.index = sampleAt(*now, selectedStart_);
    else if (now) {
      const auto same = std::find_if(now->bars.rbegin(), now->bars.rend(), [&](const query::Bar& bar) { return bar.startNs == selectedStart_; });
      selected_.index = static_cast<int>(now->bars.rend() - same) - 1;
    }
  }
  update();
}

void TimelineCanvas::setArrows(std::vector<TimelineArrow> arrows) {
  arrows_ = std::move(arrows);
  update();
}

void TimelineCanvas::mark(int64_t start, int64_t end) {
  markStart_ = start;
  markEnd_ = end;
  update();
}

void TimelineCanvas::fit() {
  const int64_t length = std::max<int64_t>(outline_.range.endNs - outline_.range.startNs, 1000);
  setWindow(outline_.range.startNs - length / 100, outline_.range.endNs + length / 100);
}

void TimelineCanvas::setWindow(int64_t from, int64_t to) {
  from_ = from;
  to_ = std::max(to, from + kShortestWindow);
  keepInView();
  emit windowChanged();
  update();
}

void TimelineCanvas::keepInView() {
  const int64_t length = to_ - from_, all = outline_.range.endNs - outline_.range.startNs;
  const int64_t most = std::max<int64_t>(all + all / 10, 10'000);
  if (length > most) {
    from_ = outline_.range.startNs - all / 20;
    to_ = from_ + most;
    return;
  }
  const int64_t lowest = outline_.range.startNs - length / 2, highest = outline_.range.endNs - length / 2;
  from_ = std::clamp(from_, lowest, std::max(lowest, highest));
  to_ = from_ + length;
}

double TimelineCanvas::xOf(int64_t time) const {
  return labelWidth() + static_cast<double>(time - from_) / static_cast<double>(to_ - from_) * columns();
}

int64_t TimelineCanvas::timeAt(double x) const {
  return from_ + static_cast<int64_t>((x - labelWidth()) / columns() * static_cast<double>(to_ - from_));
}

void TimelineCanvas::zoomAt(double x, double factor) {
  const int64_t anchor = timeAt(std::max<double>(x, labelWidth()));
  const double length = std::max(static_cast<double>(to_ - from_) / factor, static_cast<double>(kShortestWindow));
  const double share = static_cast<double>(anchor - from_) / static_cast<double>(to_ - from_);
  const int64_t start = anchor - static_cast<int64_t>(length * share);
  setWindow(start, start + static_cast<int64_t>(length));
}

void TimelineCanvas::zoomBy(double factor) {
  double x = pointer_;
  if (x < labelWidth()) {
    const NamedSpan* span = spanOf(selected_);
    const int64_t selected = span ? span->startNs + (span->endNs - span->startNs) / 2 : selected_.valid() ? selectedStart_ : -1;
    x = selected >= from_ && selected <= to_ ? xOf(selected) : labelWidth() + columns() / 2.0;
  }
  zoomAt(x, factor);
}

void TimelineCanvas::showSlice(const query::Slice& slice) {
  markStart_ = slice.startNs;
  markEnd_ = std::max(slice.endNs, slice.startNs + 1);
  const int64_t window = to_ - from_;
  if (slice.startNs < from_ || slice.endNs > to_) setWindow(slice.startNs - window / 2, slice.startNs - window / 2 + window);
  using Kind = TimelineLane::Kind;
  constexpr Kind kLanes[] = {Kind::Stages, Kind::Launches, Kind::Calls, Kind::Gpu};
  for (const Place& place : places_) {
    if (place.lane < 0 || place.isPinned) continue;
    const TimelineLane& lane = outline_.lanes[static_cast<size_t>(place.lane)];
    if (lane.kind != kLanes[static_cast<size_t>(slice.kind)] || lane.thread != slice.thread) continue;
    const auto span = std::find_if(lane.spans.begin(), lane.spans.end(), [&](const NamedSpan& s) { return s.startNs == slice.startNs && s.endNs == slice.endNs && s.name == slice.name; });
    if (span != lane.spans.end()) selected_ = {.lane = place.lane, .index = static_cast<int>(span - lane.spans.begin()), .timeNs = slice.startNs};
    // Its row, where a lane has several.
    const double height = span == lane.spans.end() || isClosed(lane) ? place.height : rowHeight();
    const double top = place.top + (span == lane.spans.end() || isClosed(lane) ? 0 : span->depth * rowHeight()), room = bar_->pageStep();
    if (top < scroll_ || top + height > scroll_ + room) scrollTo(top - (room - height) / 2);
  }
  update();
}

void TimelineCanvas::pan(int64_t by) { setWindow(from_ + by, to_ + by); }

void TimelineCanvas::showRange(int64_t start, int64_t end) {
  markStart_ = start;
  markEnd_ = end;
  const int64_t length = std::max<int64_t>(end - start, 1);
  const int64_t window = to_ - from_;
  if (start < from_ || end > to_ || length * 200 < window) {
    const int64_t around = std::max<int64_t>(length * 12, kShortestWindow * 5);
    setWindow(start - around, end + around);
  }
  update();
}

const LaneBars* TimelineCanvas::barsOf(int lane) const {
  for (const auto& bars : bars_.lanes) {
    if (static_cast<int>(bars.lane) == lane) return &bars;
  }
  return nullptr;
}

const TimelineLane* TimelineCanvas::laneOf(const Hit& hit) const {
  return hit.lane >= 0 && hit.lane < static_cast<int>(outline_.lanes.size()) ? &outline_.lanes[static_cast<size_t>(hit.lane)] : nullptr;
}

const NamedSpan* TimelineCanvas::spanOf(const Hit& hit) const {
  const TimelineLane* lane = laneOf(hit);
  return lane && lane->kind == TimelineLane::Kind::Stages ? at(lane->spans, hit.index) : nullptr;
}

const query::Bar* TimelineCanvas::sumAt(const Hit& hit) const {
  const TimelineLane* lane = laneOf(hit);
  if (!lane || lane->sums.empty()) return nullptr;
  const auto sum = std::partition_point(lane->sums.begin(), lane->sums.end(), [&](const query::Bar& bar) { return bar.endNs <= hit.timeNs; });
  return sum != lane->sums.end() && sum->startNs <= hit.timeNs ? &*sum : nullptr;
}

const query::SampleStep* TimelineCanvas::sampleOf(const Hit& hit) const {
  const LaneBars* bars = barsOf(hit.lane);  // of a lane of samples only these are there
  return bars ? at(bars->samples, hit.index) : nullptr;
}

const query::Bar* TimelineCanvas::barOf(const Hit& hit) const {
  const LaneBars* bars = barsOf(hit.lane);
  return bars ? at(bars->bars, hit.index) : nullptr;
}

int64_t TimelineCanvas::ownerOf(const Hit& hit) const {
  const LaneBars* bars = barsOf(hit.lane);
  const int64_t* owner = bars ? at(bars->owners, hit.index) : nullptr;
  return owner ? *owner : 0;
}

TimelineCanvas::Hit TimelineCanvas::hitAt(const QPointF& position) const {
  Hit hit;
  if (position.x() < labelWidth() || position.y() < rulerHeight()) return hit;
  const int64_t time = timeAt(position.x());
  hit.timeNs = time;
  const int64_t slack = (to_ - from_) / columns() * 2;
  const Place* place = placeAt(position.y());
  if (!place || place->lane < 0) return hit;
  const TimelineLane& lane = outline_.lanes[static_cast<size_t>(place->lane)];
  hit.lane = place->lane;
  if (lane.kind == TimelineLane::Kind::Stages) {
    const int depth = static_cast<int>((position.y() - topOf(*place) - 3) / rowHeight());
    if (depth < 0 || depth >= static_cast<int>(lane.rows.size())) return hit;
    const SpanRow& row = lane.rows[static_cast<size_t>(depth)];
    for (size_t at = row.firstEndingAfter(time - slack - 1); at < row.spans.size(); ++at) {
      const NamedSpan& span = lane.spans[row.spans[at]];
      if (span.startNs - slack > time) break;
      if (time <= span.endNs + slack) hit.index = static_cast<int>(row.spans[at]);
    }
  } else if (const LaneBars* bars = barsOf(hit.lane); bars && lane.kind == TimelineLane::Kind::Samples) {
    hit.index = sampleAt(*bars, time);
  } else if (bars) {
    int64_t best = slack + 1;
    for (size_t b = 0; b < bars->bars.size(); ++b) {
      const auto& bar = bars->bars[b];
      const int64_t gap = time < bar.startNs ? bar.startNs - time : time > bar.endNs ? time - bar.endNs : 0;
      if (gap >= best) continue;
      best = gap;
      hit.index = static_cast<int>(b);
    }
  }
  return hit;
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  const QPointF steps = QPointF(event->angleDelta()) / 120.0;
  if (event->modifiers() & Qt::ShiftModifier || std::abs(steps.x()) > std::abs(steps.y())) {
    pan(static_cast<int64_t>(-(steps.x() + steps.y()) * 0.1 * static_cast<double>(to_ - from_)));
  } else if (event->modifiers() & Qt::ControlModifier) {
    scrollTo(scroll_ - steps.y() * 40);
  } else {
    zoomAt(event->position().x(), std::pow(kStep, steps.y()));
  }
  event->accept();
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  pressed_ = last_ = event->position();
  pointer_ = event->position().x();
  resizingLabels_ = std::abs(pointer_ - labelWidth()) < kEdge;
  dragging_ = false;
  measuring_ = event->modifiers() & Qt::ShiftModifier;
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  pointer_ = event->position().x();
  if (!(event->buttons() & (Qt::LeftButton | Qt::MiddleButton))) {
    const bool isEdge = std::abs(pointer_ - labelWidth()) < kEdge;
    setCursor(isEdge ? Qt::SplitHCursor : hitAt(event->position()).valid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
    return;
  }
  if (!dragging_ && (event->position() - pressed_).manhattanLength() < 5) return;
  dragging_ = true;
  if (resizingLabels_) {
    chosenLabelWidth_ = std::max(kNarrowestLabels, static_cast<int>(event->position().x()));
    return lanesChanged();
  }
  if (measuring_) {
    markStart_ = std::min(timeAt(pressed_.x()), timeAt(event->position().x()));
    markEnd_ = std::max(timeAt(pressed_.x()), timeAt(event->position().x()));
    emit measured(markStart_, markEnd_);
    update();
    return;
  }
  const QPointF moved = event->position() - last_;
  last_ = event->position();
  scrollTo(scroll_ - moved.y());
  pan(-static_cast<int64_t>(moved.x() / columns() * static_cast<double>(to_ - from_)));
}

std::vector<int64_t>::const_iterator TimelineCanvas::flagNear(int64_t timeNs) const {
  const int64_t slack = (to_ - from_) / columns() * kEdge;
  return std::find_if(flags_.begin(), flags_.end(), [&](int64_t flag) { return std::abs(flag - timeNs) <= slack; });
}

void TimelineCanvas::toggleFlag(int64_t timeNs) {
  if (const auto near = flagNear(timeNs); near != flags_.end()) flags_.erase(near);
  else flags_.insert(std::upper_bound(flags_.begin(), flags_.end(), timeNs), timeNs);
  update();
}

/// The next flag behind the middle of the window, or the one before it, comes there.
void TimelineCanvas::goToFlag(bool later) {
  const int64_t window = to_ - from_, middle = from_ + window / 2, apart = std::max<int64_t>(1, window / columns());
  const auto next = std::upper_bound(flags_.begin(), flags_.end(), middle + apart), previous = std::lower_bound(flags_.begin(), flags_.end(), middle - apart);
  if (later ? next == flags_.end() : previous == flags_.begin()) return;
  const int64_t flag = later ? *next : *std::prev(previous);
  setWindow(flag - window / 2, flag - window / 2 + window);
}

/// When it is, and how long after the one before it.
QString TimelineCanvas::flagText(int64_t flag) const {
  const QString at = tr("flag at %1").arg(durationText(flag - outline_.range.startNs));
  const auto self = std::find(flags_.begin(), flags_.end(), flag);
  return self == flags_.begin() ? at : at + QLatin1Char('\n') + tr("%1 after the one before").arg(durationText(flag - *std::prev(self)));
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (!dragging_ && event->button() == Qt::LeftButton && !resizingLabels_ && event->position().x() > labelWidth() && event->position().y() < rulerHeight()) return toggleFlag(timeAt(event->position().x()));
  if (const Place* place = labelAt(event->position()); place && place->lane < 0 && !dragging_ && event->button() == Qt::LeftButton) {
    setGroupClosed(std::string(place->group), !isGroupClosed(place->group));
  } else if (place && !dragging_ && event->button() == Qt::LeftButton) {
    const TimelineLane& at = outline_.lanes[static_cast<size_t>(place->lane)];
    if (at.kind == TimelineLane::Kind::Stages && at.depth > 1) setClosed(at, !isClosed(at));
  } else if (!dragging_ && event->button() == Qt::LeftButton) {
    selected_ = hitAt(event->position());
    if (const auto* bar = barOf(selected_)) selectedStart_ = bar->startNs;
    if (const auto* sample = sampleOf(selected_)) selectedStart_ = sample->startNs;
    markStart_ = markEnd_ = 0;
    arrows_.clear();
    setAccessibleDescription(describe(selected_));
    emit selected(selected_);
    update();
  }
  dragging_ = measuring_ = resizingLabels_ = false;
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const Hit hit = hitAt(event->position());
  if (const auto* bar = barOf(hit); bar && bar->count > 1) {
    setWindow(bar->startNs - (bar->endNs - bar->startNs) / 2, bar->endNs + (bar->endNs - bar->startNs) / 2);
  } else if (hit.valid()) {
    emit activated(hit);
  }
}

/// The next or previous bar or span of the selected lane.
void TimelineCanvas::step(bool right) {
  if (selected_.lane < 0) {
    for (size_t i = 0; i < outline_.lanes.size() && selected_.lane < 0; ++i) {
      if (outline_.lanes[i].kind == TimelineLane::Kind::Launches) selected_.lane = static_cast<int>(i);
    }
    if (selected_.lane < 0 && !outline_.lanes.empty()) selected_.lane = 0;
    if (selected_.lane < 0) return;
  }
  const TimelineLane& lane = *laneOf(selected_);
  const bool spans = lane.kind == TimelineLane::Kind::Stages, samples = lane.kind == TimelineLane::Kind::Samples;
  arrows_.clear();
  const LaneBars* bars = barsOf(selected_.lane);
  const size_t count = spans ? lane.spans.size() : !bars ? 0 : samples ? bars->samples.size() : bars->bars.size();
  if (count == 0) return;
  selected_.index = std::clamp(selected_.index + (right ? 1 : -1), 0, static_cast<int>(count) - 1);
  const auto ends = [](const auto* thing) { return std::pair{thing->startNs, thing->endNs}; };
  const auto [start, end] = spans ? ends(spanOf(selected_)) : samples ? ends(sampleOf(selected_)) : ends(barOf(selected_));
  selectedStart_ = start;
  setAccessibleDescription(describe(selected_));
  emit selected(selected_);
  if (start < from_ || end > to_) setWindow(start - (to_ - from_) / 2, start + (to_ - from_) / 2);
  update();
}

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  const int64_t jump = (to_ - from_) / 8;
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(kStep * kStep);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoomBy(1 / (kStep * kStep));
    case Qt::Key_A: return pan(-jump);
    case Qt::Key_D: return pan(jump);
    case Qt::Key_F:
    case Qt::Key_0: return fit();
    case Qt::Key_M: return toggleFlag(pointer_ > labelWidth() && pointer_ < width() ? timeAt(pointer_) : from_ + (to_ - from_) / 2);
    case Qt::Key_Left: return event->modifiers() & Qt::ShiftModifier ? goToFlag(false) : step(false);
    case Qt::Key_Right: return event->modifiers() & Qt::ShiftModifier ? goToFlag(true) : step(true);
    case Qt::Key_Up: return scrollTo(scroll_ - bar_->singleStep());
    case Qt::Key_Down: return scrollTo(scroll_ + bar_->singleStep());
    case Qt::Key_PageUp: return scrollTo(scroll_ - bar_->pageStep());
    case Qt::Key_PageDown: return scrollTo(scroll_ + bar_->pageStep());
    case Qt::Key_O:
    case Qt::Key_P:
    case Qt::Key_G: {
      if (selected_.lane < 0 || selected_.lane >= static_cast<int>(outline_.lanes.size())) return;
      const TimelineLane& lane = outline_.lanes[static_cast<size_t>(selected_.lane)];
      if (event->key() == Qt::Key_P) return setPinned(lane, !isPinned(lane));
      if (event->key() == Qt::Key_G) return setGroupClosed(lane.group, !isGroupClosed(lane.group));
      return setClosed(lane, !isClosed(lane));
    }
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (selected_.valid()) emit activated(selected_);
      return;
    default: QWidget::keyPressEvent(event);
  }
}

void TimelineCanvas::resizeEvent(QResizeEvent*) {
  labelWidth_ = 0;
  lanesChanged();
}

bool TimelineCanvas::event(QEvent* event) {
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) labelWidth_ = rowHeight_ = 0;
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const Place* label = labelAt(help->pos());
    const bool isRuler = help->pos().y() < rulerHeight() && help->pos().x() > labelWidth();
    const auto flag = isRuler ? flagNear(timeAt(help->pos().x())) : flags_.end();
    const QString text = flag != flags_.end() ? flagText(*flag) : !label ? describe(hitAt(help->pos())) : label->lane < 0 ? str(label->group) : labelText(outline_.lanes[static_cast<size_t>(label->lane)]);
    text.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), text, this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace fusebox::views
