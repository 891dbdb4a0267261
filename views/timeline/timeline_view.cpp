#include "views/timeline/timeline_view.h"

#include <QLabel>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>

#include "profiler/query/gpu_gaps.h"
#include "profiler/session/reader.h"
#include "views/common/fuzzy_match.h"
#include "views/common/table.h"
#include "views/common/units.h"
#include "views/widgets/filter_box.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

QString duration(int64_t ns) { return str(formatDuration(static_cast<double>(ns))); }

}  // namespace

TimelineView::TimelineView(const ViewContext& context) : View(context), canvas_(new TimelineCanvas) {
  auto* bar = new QToolBar;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setIconSize(QSize(16, 16));
  const auto act = [&](const QString& name, const QString& text, const QString& icon, auto run) {
    QAction* action = addViewAction(name, text, icon);
    connect(action, &QAction::triggered, this, run);
    bar->addAction(action);
  };
  search_ = new FilterBox(QStringLiteral("timeline.search"), tr("Go to a kernel's first launch"));
  bar->addWidget(search_);
  act(QStringLiteral("zoomIn"), tr("Zoom in (W)"), QStringLiteral("zoomin"), [this] { canvas_->zoomBy(1.5); });
  act(QStringLiteral("zoomOut"), tr("Zoom out (S)"), QStringLiteral("zoomout"), [this] { canvas_->zoomBy(1 / 1.5); });
  act(QStringLiteral("fit"), tr("Show everything (F)"), QStringLiteral("fit"), [this] { canvas_->fit(); });
  act(QStringLiteral("copy"), tr("Copy picture"), QStringLiteral("copy"), [this] { copyPicture(canvas_->picture()); });
  act(QStringLiteral("export"), tr("Export picture…"), QStringLiteral("export"),
      [this] { exportPicture(canvas_->picture(), QStringLiteral("timeline"), this); });
  details_ = new DetailsPanel(QStringLiteral("timeline.details"));
  empty_ = new EmptyState(canvas_, QStringLiteral("timeline"));
  auto* split = new QSplitter(Qt::Vertical);
  split->setHandleWidth(1);
  split->addWidget(empty_);
  split->addWidget(details_);
  split->setStretchFactor(0, 1);
  // A hint needs a line; the page about a bar takes its room when there is one.
  const int hint = fontMetrics().height() * 2 + 8;
  details_->setMinimumHeight(hint);
  split->setSizes({680 - hint, hint});
  split_ = split;
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(split, 1);

  connect(canvas_, &TimelineCanvas::windowChanged, this, &TimelineView::askBars);
  connect(canvas_, &TimelineCanvas::selected, this, [this](const TimelineCanvas::Hit& hit) { showHit(hit, false); });
  connect(canvas_, &TimelineCanvas::activated, this, [this](const TimelineCanvas::Hit& hit) { showHit(hit, true); });
  connect(canvas_, &TimelineCanvas::measured, this, [this](qint64 start, qint64 end) {
    ++selection_;
    makeRoomForDetails();
    details_->showPage([length = end - start](DetailsPanel& page) {
      page.heading(duration(length), tr("measured"));
      page.paragraph(tr("Shift and drag measures a span of time."), true);
    });
  });
  connect(search_, &FilterBox::filterChanged, this, &TimelineView::findKernel);
  connect(search_, &FilterBox::leave, canvas_, qOverload<>(&QWidget::setFocus));
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  clear();
}

void TimelineView::clear() {
  loaded_ = false;
  wanted_ = {};
  ++selection_;
  empty_->showReason(tr("Nothing has happened yet"), tr("Compiler stages, calls of compiled code and kernel launches appear here as they are recorded."));
  details_->showHint(tr("W and S zoom, A and D pan, F shows everything; select a bar to see what it is, a gap of a GPU to see why nothing ran, Shift and drag measures."));
}

void TimelineView::find() { search_->focusFilter(); }

void TimelineView::load() {
  session()->ask<TimelineOutline>(
      this, "outline", [](session::Reader& reader) { return loadTimelineOutline(reader); },
      [this](Result<TimelineOutline>& outline) {
        if (!outline) return empty_->showReason(tr("The timeline cannot be read"), str(outline.error().text()));
        if (outline->lanes.empty()) return;
        empty_->showContent();
        canvas_->setOutline(std::move(*outline), loaded_);
        loaded_ = true;
        if (wanted_.kind != ObjectKind::None) showLocation(std::exchange(wanted_, {}));
      });
}

void TimelineView::askBars() {
  if (!session() || canvas_->outline().lanes.empty()) return;
  // Half a window to either side comes along, so that panning shows bars at once.
  const int64_t from = canvas_->from(), to = canvas_->to(), extra = (to - from) / 2;
  std::vector<TimelineLane> lanes = canvas_->outline().laneKeys();
  session()->ask<TimelineBars>(
      this, "bars",
      [lanes = std::move(lanes), from, to, extra, pixels = canvas_->columns() * 2](session::Reader& reader) {
        return loadTimelineBars(reader, lanes, from - extra, to + extra, pixels);
      },
      [this](Result<TimelineBars>& bars) {
        if (!bars) return;
        canvas_->setBars(std::move(*bars));
        emit barsShown();
      });
}

void TimelineView::makeRoomForDetails() {
  const int wanted = fontMetrics().height() * 8;
  const QList<int> sizes = split_->sizes();
  if (sizes[1] < wanted && sizes[0] > 2 * wanted) split_->setSizes({sizes[0] + sizes[1] - wanted, wanted});
}

void TimelineView::showHit(const TimelineCanvas::Hit& hit, bool open) {
  ++selection_;
  makeRoomForDetails();
  if (const NamedSpan* span = canvas_->spanOf(hit)) {
    const Location compile = Location::of(ObjectKind::Compile, span->compile);
    if (span->compile != 0) open ? bus()->open(compile) : announce(compile);
    details_->showPage([span = *span, start = canvas_->outline().range.startNs](DetailsPanel& page) {
      page.heading(str(span.name), tr("stage"));
      page.pair(tr("duration"), duration(span.endNs - span.startNs));
      page.pair(tr("start"), duration(span.startNs - start));
      page.pair(tr("detail"), str(span.detail));
      page.pair(tr("compile"), span.compile != 0 ? tr("show its guards") : QString(), Location::of(ObjectKind::Compile, span.compile));
    });
    return;
  }
  if (const query::SampleStep* sample = canvas_->sampleOf(hit)) return showSample(*sample, canvas_->outline().lanes[static_cast<size_t>(hit.lane)].sampled);
  const query::Bar* bar = canvas_->barOf(hit);
  const bool gpu = hit.lane >= 0 && canvas_->outline().lanes[static_cast<size_t>(hit.lane)].kind == TimelineLane::Kind::Gpu;
  if (gpu && !bar) return showGap(hit);
  if (gpu && bar->count == 1) return showGpuEvent(bar->exampleId, open);
  if (bar && bar->count == 1 && canvas_->outline().lanes[static_cast<size_t>(hit.lane)].kind == TimelineLane::Kind::Launches)
    askArrows(bar->exampleId, 0);
  if (!bar) return details_->showHint(tr("Select a bar to see what it is."));
  const int64_t owner = canvas_->ownerOf(hit), kernel = std::max<int64_t>(owner, 0);
  const Location location = Location::of(ObjectKind::Kernel, kernel);
  if (kernel != 0) open ? bus()->open(location) : announce(location);
  const auto& names = canvas_->outline().names;
  const auto name = names.find(owner);
  details_->showPage([bar = *bar, kernel, location, start = canvas_->outline().range.startNs,
                      name = name == names.end() ? tr("call") : str(name->second)](DetailsPanel& page) {
    page.heading(bar.count > 1 ? tr("%1 events").arg(str(formatCount(bar.count))) : name, bar.count > 1 ? tr("folded") : tr("event"));
    page.pair(tr("start"), duration(bar.startNs - start));
    page.pair(bar.count > 1 ? tr("span") : tr("duration"), duration(bar.endNs - bar.startNs));
    if (bar.count > 1) {
      page.pair(tr("busy"), QStringLiteral("%1 (%2)").arg(duration(bar.busyNs), str(formatShare(static_cast<double>(bar.busyNs), static_cast<double>(bar.endNs - bar.startNs)))));
      page.pair(tr("longest"), QStringLiteral("%1  %2").arg(duration(bar.maxDurNs), name));
      page.paragraph(tr("Double click zooms into it."), true);
    }
    page.pair(tr("kernel"), kernel != 0 ? name : QString(), location);
  });
}

void TimelineView::showSample(const query::SampleStep& sample, const query::SampledMetric& metric) {
  details_->showPage([sample, metric, start = canvas_->outline().range.startNs](DetailsPanel& page) {
    const auto value = [&](double v) { return str(query::counterText(metric.unit, v)); };
    page.heading(str(metric.title), tr("sampled"));
    page.pair(sample.count > 1 ? tr("mean") : tr("value"), value(sample.mean));
    if (sample.count > 1) page.pair(tr("range"), tr("%1 to %2 in %3 samples").arg(value(sample.least), value(sample.most), str(formatCount(sample.count))));
    page.pair(tr("start"), duration(sample.startNs - start));
    page.pair(tr("length"), duration(sample.endNs - sample.startNs));
    page.pair(tr("in the whole session"), tr("%1 on average, up to %2").arg(value(metric.mean), value(metric.most)));
    page.pair(tr("device"), QString::number(metric.device));
    page.pair(tr("meaning"), str(metric.meaning));
    page.pair(tr("counter"), str(metric.metric));
    page.paragraph(tr("Of the whole device, whatever ran there, every %1.").arg(duration(metric.intervalNs)), true);
  });
}

void TimelineView::askArrows(int64_t launch, int64_t event) {
  session()->ask<std::vector<TimelineArrow>>(
      this, "arrows",
      [lanes = canvas_->outline().laneKeys(), launch, event](session::Reader& reader) { return loadTimelineArrows(reader, lanes, launch, event); },
      [this, selection = selection_](Result<std::vector<TimelineArrow>>& arrows) {
        if (arrows && selection == selection_) canvas_->setArrows(std::move(*arrows));
      });
}

void TimelineView::showGpuEvent(int64_t event, bool open) {
  askArrows(0, event);
  session()->ask<query::GpuEvent>(
      this, "gpuEvent", [event](session::Reader& reader) { return query::gpuEvent(reader, event); },
      [this, open, selection = selection_](Result<query::GpuEvent>& found) {
        if (selection != selection_) return;
        if (!found) return details_->showHint(str(found.error().text()));
        const Location kernel = Location::of(ObjectKind::Kernel, found->kernel);
        if (found->kernel != 0) open ? bus()->open(kernel) : announce(kernel);
        details_->showPage([e = *found, kernel, start = canvas_->outline().range.startNs](DetailsPanel& page) {
          page.heading(str(e.name), str(e.kind));
          page.pair(tr("duration"), duration(e.durNs));
          page.pair(tr("start"), duration(e.startNs - start));
          if (e.calledNs >= 0) page.pair(tr("asked for"), tr("%1 before it began; the call took %2").arg(duration(e.startNs - e.calledNs), duration(e.callDurNs)));
          page.pair(tr("device"), tr("%1, stream %2").arg(e.device).arg(e.stream));
          page.pair(tr("operator"), str(e.op));
          page.pair(tr("line"), str(shortPlace(e.file, e.line)), Location::sourceLine(e.file, static_cast<int>(e.line)));
          page.pair(tr("kernel"), e.kernel != 0 ? tr("show its times and code") : QString(), kernel);
          if (e.bytes > 0) page.pair(tr("bytes"), QStringLiteral("%1, %2").arg(str(formatBytes(static_cast<double>(e.bytes))), str(formatBandwidth(static_cast<double>(e.bytes), static_cast<double>(e.durNs)))));
          if (!e.grid.empty()) page.pair(tr("launch"), tr("grid %1, block %2").arg(str(e.grid), str(e.block)));
          if (e.registers > 0) page.pair(tr("registers"), tr("%1 a thread").arg(e.registers));
          if (e.sharedBytes > 0) page.pair(tr("shared memory"), tr("%1 a block").arg(str(formatBytes(static_cast<double>(e.sharedBytes)))));
          if (e.localBytes > 0) page.pair(tr("local memory"), tr("%1 a thread: stack and spilled registers").arg(str(formatBytes(static_cast<double>(e.localBytes)))));
          if (e.occupancy > 0) page.pair(tr("occupancy"), str(formatShare(e.occupancy, 1)));
          if (e.graph > 0) page.pair(tr("CUDA graph"), tr("graph %1, node %2").arg(e.graph).arg(e.graphNode));
        });
      });
}

void TimelineView::showGap(const TimelineCanvas::Hit& hit) {
  const int64_t lane = canvas_->outline().lanes[static_cast<size_t>(hit.lane)].thread;
  session()->ask<query::GpuGap>(
      this, "gap", [lane, time = hit.timeNs](session::Reader& reader) { return query::gpuGapAt(reader, lane, time); },
      [this, selection = selection_](Result<query::GpuGap>& gap) {
        if (selection != selection_) return;
        if (!gap) return details_->showHint(tr("Select a bar to see what it is, or a gap between two to see why nothing ran."));
        canvas_->mark(gap->startNs, gap->endNs);
        details_->showPage([g = *gap](DetailsPanel& page) {
          page.heading(tr("gap of %1").arg(duration(g.endNs - g.startNs)), str(query::gapCauseTitle(g.cause)));
          page.paragraph(str(query::gapCauseAdvice(g.cause)));
          page.pair(tr("detail"), str(g.detail));
          page.pair(tr("before it"), str(g.before));
          page.pair(tr("after it"), str(g.after));
          if (g.calledNs >= 0) {
            page.pair(tr("asked for"), g.calledNs <= g.startNs ? tr("%1 before the gap").arg(duration(g.startNs - g.calledNs))
                                                               : tr("%1 into the gap").arg(duration(g.calledNs - g.startNs)));
          }
          page.pair(tr("line"), str(shortPlace(g.file, g.line)), Location::sourceLine(g.file, static_cast<int>(g.line)));
          if (!g.parts.empty()) page.section(tr("Meanwhile on the thread that asked"));
          for (size_t i = 0; i < g.parts.size() && i < 6; ++i)
            page.pair(str(g.parts[i].name), tr("%1 (%2)").arg(duration(g.parts[i].ns), str(query::gapCauseTitle(g.parts[i].cause))));
        });
      });
}

void TimelineView::findKernel(const QString& text) {
  if (text.isEmpty()) return;
  for (const auto& [kernel, name] : canvas_->outline().names) {
    if (filterMatches(text.toStdString(), name)) return showLocation(Location::of(ObjectKind::Kernel, kernel));
  }
}

void TimelineView::follow(const Location& location) {
  if (location.kind == ObjectKind::Kernel || location.kind == ObjectKind::Compile) showLocation(location);
}

void TimelineView::showLocation(const Location& location) {
  if (!session()) return;
  if (!loaded_) {
    wanted_ = location;
    return refresh();
  }
  session()->ask<query::TimeRange>(
      this, "time", [location](session::Reader& reader) { return timeOf(reader, location); },
      [this](Result<query::TimeRange>& range) {
        if (range && range->endNs > 0) canvas_->showRange(range->startNs, range->endNs);
      });
}

}  // namespace fusebox::views
