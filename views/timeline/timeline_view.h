#pragma once

#include "profiler/query/slices.h"
#include "views/timeline/timeline_canvas.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/empty_state.h"
#include "views/widgets/view.h"

class QSplitter;

namespace fusebox::views {

/// Compiler stages, calls and launches over time, a million launches as smoothly as a hundred.
class TimelineView : public View {
  Q_OBJECT
 public:
  explicit TimelineView(const ViewContext& context);

  QString id() const override { return QStringLiteral("timeline"); }
  QString title() const override { return tr("Timeline"); }
  QString iconName() const override { return QStringLiteral("timeline"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Launch; }
  void showLocation(const Location& location) override;
  void find() override;
  TimelineCanvas* canvas() const { return canvas_; }

 signals:
  /// Bars of the current window are on the screen.
  void barsShown();

 protected:
  void clear() override;
  void load() override;
  void sayNotYet();
  void follow(const Location& location) override;
  /// Its keys are those of the canvas. (A focus proxy would take the view out of the order of Tab, and all behind it.)
  void focusInEvent(QFocusEvent*) override { canvas_->setFocus(); }

 private:
  /// A page takes more room than the hint did.
  void makeRoomForDetails();
  void askBars();
  void showHit(const TimelineCanvas::Hit& hit, bool open);
  void showGpuEvent(int64_t event, bool open);
  void showSample(const query::SampleStep& sample, const query::SampledMetric& metric);
  void showGap(const TimelineCanvas::Hit& hit);
  void showSpan(int64_t event, const NamedSpan& span, int64_t thread, const QString& kind);
  void askArrows(int64_t launch, int64_t event);
  void search(query::SliceDirection direction);
  void showSums(int64_t from, int64_t to);

  TimelineCanvas* canvas_;
  EmptyState* empty_;
  QSplitter* split_;
  DetailsPanel* details_;
  class FilterBox* search_;
  query::SliceHit found_;
  QString searched_;
  bool loaded_ = false;
  uint64_t selection_ = 0;  ///< counts what was selected or measured: answers about an earlier one come too late
  using ShowTime = void (TimelineCanvas::*)(int64_t from, int64_t to);
  void showTimeOf(const Location& location, ShowTime show);
  Location wanted_;
  ShowTime wantedShow_ = nullptr;
};

}  // namespace fusebox::views
