#pragma once

#include <QScrollBar>
#include <QTimer>
#include <QWidget>
#include <optional>
#include <set>
#include <tuple>

#include "profiler/query/slices.h"
#include "views/timeline/timeline_model.h"
#include "views/widgets/picture_export.h"

namespace fusebox::views {

/// A time with nine digits behind the second: "338.100123 ms".
QString preciseTime(int64_t ns);
/// A length of time, rounded as in tables: "338 ms".
QString durationText(int64_t ns);

/// Lanes over time. W/S and the wheel zoom, A/D and dragging pan, Shift+drag measures, F fits, Left and Right go from bar to
/// bar, Up and Down scroll, O opens and closes lanes, P pins them above the others, G closes their group. Lanes of a process or device are a group under a
/// heading, where there are several. Draws only the bars of the window that it was given and asks for others (`windowChanged`) when it moves.
class TimelineCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  /// New lanes; keeps the window of time if `keepWindow`, unless it showed everything (a live session follows its end).
  void setOutline(TimelineOutline outline, bool keepWindow);
  void setBars(TimelineBars bars);
  /// Arrows from calls to the work that they asked for; drawn until the next selection.
  void setArrows(std::vector<TimelineArrow> arrows);
  /// Marks a span of time without moving.
  void mark(int64_t start, int64_t end);
  const TimelineOutline& outline() const { return outline_; }

  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int columns() const;
  void setWindow(int64_t from, int64_t to);
  void fit();
  /// About the pointer, where it is over the canvas, else about what is selected, else about the middle.
  void zoomBy(double factor);
  /// Marks a slice and moves there, without zooming.
  void showSlice(const query::Slice& slice);
  /// A lane is one row high, or as many as its spans are deep.
  void setClosed(const TimelineLane& lane, bool closed);
  bool isClosed(const TimelineLane& lane) const { return closed_.contains(keyOf(lane)); }
  void setHidden(const TimelineLane& lane, bool hidden);
  bool isHidden(const TimelineLane& lane) const { return hidden_.contains(keyOf(lane)); }
  void showAllLanes();
  /// The time under a place from the left.
  int64_t timeAt(double x) const;
  /// Moments that a person has marked, in order; they stay until they are taken away or another session is shown.
  const std::vector<int64_t>& flags() const { return flags_; }
  /// Sets a flag, or takes the one away that stands there.
  void toggleFlag(int64_t timeNs);
  /// A pinned lane stays below the ruler while the others scroll.
  void setPinned(const TimelineLane& lane, bool pinned);
  bool isPinned(const TimelineLane& lane) const { return pinned_.contains(keyOf(lane)); }
  /// Of a closed group the heading is left.
  void setGroupClosed(const std::string& group, bool closed);
  bool isGroupClosed(const std::string& group) const { return closedGroups_.contains(group); }
  /// Marks a span of time and brings it into view.
  void showRange(int64_t start, int64_t end);
  int laneHeight(const TimelineLane& lane) const;
  Picture picture() const;
  QSize minimumSizeHint() const override;

  /// What is at a place of a lane, which holds one kind of things: spans, steps of a counter's samples, or bars.
  struct Hit {
    int lane = -1;
    int index = -1;  ///< of the thing in its lane
    int64_t timeNs = 0;
    bool valid() const { return index >= 0; }
  };
  Hit hitAt(const QPointF& position) const;
  const TimelineLane* laneOf(const Hit& hit) const;
  // The thing itself; none where the lane holds another kind.
  const query::Bar* barOf(const Hit& hit) const;
  const NamedSpan* spanOf(const Hit& hit) const;
  const query::Bar* sumAt(const Hit& hit) const;  ///< of a lane with sums
  const query::SampleStep* sampleOf(const Hit& hit) const;
  int64_t ownerOf(const Hit& hit) const;
  QString describe(const Hit& hit) const;

 signals:
  /// The canvas needs bars for another window of time.
  void windowChanged();
  void selected(const fusebox::views::TimelineCanvas::Hit& hit);
  void activated(const fusebox::views::TimelineCanvas::Hit& hit);
  void measured(qint64 startNs, qint64 endNs);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void takeSpans(TimelineOutline& grown);
  void moveTo(const TimelineOutline& grown);
  double xOf(int64_t time) const;
  void zoomAt(double x, double factor);
  void pan(int64_t by);
  void paintAll(QPainter& painter, const QRectF& area) const;
  void paintArrows(QPainter& painter, const QRectF& area) const;
  /// Where a lane or the heading of a group lies: pinned ones below the ruler, the others below those, before scrolling.
  struct Place {
    int lane = -1;  ///< -1: the heading
    std::string group;
    double top = 0, height = 0;
    bool isPinned = false;
  };
  void placeLanes();
  double topOf(const Place& place) const;
  const Place* placeAt(double y) const;
  /// The middle of a lane; nothing where it is hidden.
  std::optional<double> laneMiddle(size_t lane) const;
  int headingHeight() const { return rowHeight() + 4; }
  using LaneKey = std::tuple<int, int64_t, int64_t>;
  static LaneKey keyOf(const TimelineLane& lane) { return {static_cast<int>(lane.kind), lane.thread, lane.sampled.position}; }
  /// The lane or heading whose label is at a place.
  const Place* labelAt(const QPointF& position) const;
  QString labelText(const TimelineLane& lane) const;
  /// What stands before its name.
  QString titleOf(const TimelineLane& lane) const;
  void scrollTo(double top);
  void lanesChanged();
  void paintRuler(QPainter& painter, const QRectF& area) const;
  void paintPlaces(QPainter& painter, bool pinned, const QRectF& area) const;
  void paintHeading(QPainter& painter, const Place& place, double top, const QRectF& area) const;
  void paintLane(QPainter& painter, const TimelineLane& lane, size_t index, double top, const QRectF& area) const;
  void paintBars(QPainter& painter, const LaneBars& bars, double top, const QRectF& area) const;
  void paintSamples(QPainter& painter, const TimelineLane& lane, const LaneBars& bars, double top, const QRectF& area) const;
  void paintSums(QPainter& painter, const TimelineLane& lane, double top, const QRectF& area) const;
  void paintSpans(QPainter& painter, const TimelineLane& lane, double top, const QRectF& area) const;
  void paintBox(QPainter& painter, const QRectF& box, const QColor& colour, const QString& text, bool selected) const;
  const LaneBars* barsOf(int lane) const;
  void step(bool right);
  void keepInView();
  int rowHeight() const;
  int barHeight() const;
  int rulerHeight() const;
  int labelWidth() const;

  TimelineOutline outline_;
  TimelineBars bars_;
  int64_t from_ = 0, to_ = 1;
  int64_t markStart_ = 0, markEnd_ = 0;
  std::vector<int64_t> flags_;
  std::vector<int64_t>::const_iterator flagNear(int64_t timeNs) const;
  void goToFlag(bool later);
  QString flagText(int64_t flag) const;
  void paintFlags(QPainter& painter, const QRectF& area) const;
  std::vector<TimelineArrow> arrows_;
  Hit selected_;
  int64_t selectedStart_ = -1;   ///< start of the selected bar or sample: bars are replaced when the window moves
  double scroll_ = 0;            ///< vertical
  QScrollBar* bar_;
  std::set<LaneKey> closed_, hidden_, pinned_;
  std::set<std::string> closedGroups_;
  std::vector<Place> places_;
  double pinnedHeight_ = 0, scrolledHeight_ = 0;
  double pointer_ = -1;          ///< x of the mouse, -1 where it is elsewhere
  QPointF pressed_, last_;
  bool dragging_ = false, measuring_ = false;
  bool resizingLabels_ = false;
  int chosenLabelWidth_ = 0;     ///< of the column of labels, as its edge was dragged
  mutable int labelWidth_ = 0, rowHeight_ = 0;   ///< of the font and the lanes; asked for with every bar, while shaping text takes longer than painting one
};

}  // namespace fusebox::views
