#include "views/timeline/timeline_view.h"

#include <QLabel>
#include <QShortcut>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>
#include <utility>

#include "profiler/query/gpu_gaps.h"
#include "profiler/query/holdings.h"
#include "profiler/session/reader.h"
#include "views/common/table.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/filter_box.h"
#include "views/widgets/text.h"

namespace fusebox::views {

TimelineView::TimelineView(const ViewContext& context) : View(context), canvas_(new TimelineCanvas) {
  auto* bar = new QToolBar;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setIconSize(QSize(16, 16));
  const auto act = [&](const QString& name, const QString& text, const QString& icon, auto run) {
    QAction* action = addViewAction(name, text, icon);
    connect(action, &QAction::triggered, this, run);
    bar->addAction(action);
  };
  search_ = new FilterBox(QStringLiteral("timeline.search"), tr("Find by name: kernels, calls, operators, stages"));
  search_->setMaximumWidth(fontMetrics().averageCharWidth() * 60);
  bar->addWidget(search_);
  act(QStringLiteral("previous"), tr("Previous match (Shift+F3)"), QStringLiteral("back"), [this] { search(query::SliceDirection::Previous); });
  act(QStringLiteral("next"), tr("Next match (F3)"), QStringLiteral("forward"), [this] { search(query::SliceDirection::Next); });
  for (const auto& [keys, direction] : {std::pair{QKeySequence(Qt::Key_F3), query::SliceDirection::Next},
                                        std::pair{QKeySequence(Qt::SHIFT | Qt::Key_F3), query::SliceDirection::Previous}}) {
    auto* key = new QShortcut(keys, this, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
    connect(key, &QShortcut::activated, this, [this, direction = direction] { search(direction); });
  }
  act(QStringLiteral("zoomIn"), tr("Zoom in (W)"), QStringLiteral("zoomin"), [this] { canvas_->zoomBy(1.5); });
  act(QStringLiteral("zoomOut"), tr("Zoom out (S)"), QStringLiteral("zoomout"), [this] { canvas_->zoomBy(1 / 1.5); });
  act(QStringLiteral("fit"), tr("Show everything (F)"), QStringLiteral("fit"), [this] { canvas_->fit(); });
  act(QStringLiteral("copy"), tr("Copy picture"), QStringLiteral("copy"), [this] { copyPicture(canvas_->picture()); });
  act(QStringLiteral("export"), tr("Export picture…"), QStringLiteral("export"),
      [this] { exportPicture(canvas_->picture(), QStringLiteral("timeline"), this); });
  details_ = new DetailsPanel(QStringLiteral("timeline.details"));
  empty_ = new EmptyState(canvas_, QStringLiteral("timeline"));
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(empty_);
  split->addWidget(details_);
  split->setStretchFactor(0, 1);
  // A hint needs a line; the page about a bar takes its room when there is one.
  const int hint = fontMetrics().height() * 2 + 22;  // two lines and the margins of the page
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
    if (session()) showSums(start, end);
  });
  connect(search_, &FilterBox::filterChanged, this, [this](const QString& text) {
    if (text != std::exchange(searched_, text)) search(query::SliceDirection::From);
  });
  connect(search_, &FilterBox::leave, this, [this] { search(query::SliceDirection::Next); });
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  clear();
}

void TimelineView::clear() {
  loaded_ = false;
  wanted_ = {};
  found_ = {};
  searched_.clear();
  search_->setText({});
  ++selection_;
  session() ? empty_->showReading() : sayNotYet();
  details_->showHint(tr("W and S zoom at the pointer, A and D pan, Up and Down scroll, F shows everything; a click on a label opens and closes its lane; select a bar to see what it is, a gap of a GPU to see why nothing ran, Shift and drag measures and adds up; a click on the ruler (or M) sets a flag."));
}

void TimelineView::find() { search_->focusFilter(); }

void TimelineView::sayNotYet() {
  empty_->showReason(tr("Nothing has happened yet"), tr("Compiler stages, calls of compiled code and kernel launches appear here as they are recorded."));
}

void TimelineView::load() {
  session()->ask<TimelineOutline>(
      this, "outline", [before = loaded_ ? canvas_->outline().spanLanes() : TimelineOutline()](session::Reader& reader) { return loadTimelineOutline(reader, before); },
      [this](Result<TimelineOutline>& outline) {
        if (!outline) return empty_->showReason(tr("The timeline cannot be read"), str(outline.error().text()));
        if (outline->lanes.empty()) {
          return askHoldings([this](const query::Holdings& holdings) {
            const bool tellsTimes = holdings.has(query::Holding::CompileTimes) || holdings.has(query::Holding::Launches);
            const Absence none = tellsTimes ? Absence{tr("Nothing happened"), tr("The recording holds no stage of the compiler, no call of compiled code and no kernel launch.")}
                                            : absenceOf(holdings, query::Holding::Launches);
            holdings.isOver ? empty_->showReason(none.headline, none.hint) : sayNotYet();
          });
        }
        empty_->showContent();
        canvas_->setOutline(std::move(*outline), loaded_);
        loaded_ = true;
        if (wanted_.kind != ObjectKind::None) showTimeOf(std::exchange(wanted_, {}), wantedShow_);
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
  const TimelineLane* lane = canvas_->laneOf(hit);
  const auto isOf = [&](TimelineLane::Kind kind) { return lane && lane->kind == kind; };
  if (const NamedSpan* span = canvas_->spanOf(hit)) {
    const Location compile = Location::of(ObjectKind::Compile, span->compile);
    if (span->compile != 0) open ? bus()->open(compile) : announce(compile);
    return showSpan(span->id, *span, lane->thread, span->id % 4 == 3 ? tr("compilation") : span->id % 4 == 1 ? tr("stage") : tr("span"));
  }
  if (const query::SampleStep* sample = canvas_->sampleOf(hit)) return showSample(*sample, lane->sampled);
  const query::Bar* bar = canvas_->barOf(hit);
  const bool gpu = isOf(TimelineLane::Kind::Gpu);
  if (gpu && !bar) return showGap(hit);
  if (gpu && bar->count == 1) return showGpuEvent(bar->exampleId, open);
  if (bar && bar->count == 1 && isOf(TimelineLane::Kind::Launches)) askArrows(bar->exampleId, 0);
  if (!bar) return details_->showHint(tr("Select a bar to see what it is."));
  if (bar->count == 1 && isOf(TimelineLane::Kind::Calls)) {
    const auto known = canvas_->outline().names.find(canvas_->ownerOf(hit));
    NamedSpan call;
    call.startNs = bar->startNs;
    call.endNs = bar->endNs;
    call.name = known == canvas_->outline().names.end() ? std::string() : known->second;
    return showSpan(bar->exampleId, call, lane->thread, tr("call"));
  }
  const int64_t owner = canvas_->ownerOf(hit), kernel = std::max<int64_t>(owner, 0);
  const Location location = Location::of(ObjectKind::Kernel, kernel);
  if (kernel != 0) open ? bus()->open(location) : announce(location);
  const auto& names = canvas_->outline().names;
  const auto name = names.find(owner);
  details_->showPage([bar = *bar, kernel, location, start = canvas_->outline().range.startNs,
                      name = name == names.end() ? tr("call") : str(name->second)](DetailsPanel& page) {
    page.heading(bar.count > 1 ? tr("%1 events").arg(str(formatCount(bar.count))) : name, bar.count > 1 ? tr("folded") : tr("event"));
    page.pair(tr("start"), preciseTime(bar.startNs - start));
    page.pair(bar.count > 1 ? tr("span") : tr("duration"), durationText(bar.endNs - bar.startNs));
    if (bar.count > 1) {
      page.pair(tr("busy"), QStringLiteral("%1 (%2)").arg(durationText(bar.busyNs), str(formatShare(static_cast<double>(bar.busyNs), static_cast<double>(bar.endNs - bar.startNs)))));
      page.pair(tr("longest"), QStringLiteral("%1  %2").arg(durationText(bar.maxDurNs), name));
      page.paragraph(tr("Double click zooms into it."), true);
    }
    page.pair(tr("kernel"), kernel != 0 ? name : QString(), location);
  });
}

/// A span, stage or call: what it is of, and what was launched meanwhile.
void TimelineView::showSpan(int64_t event, const NamedSpan& span, int64_t thread, const QString& kind) {
  session()->ask<query::SlicePlace>(
      this, "place", [event, thread, from = span.startNs, to = span.endNs](session::Reader& reader) { return query::placeOfSlice(reader, event, thread, from, to); },
      [this, span, kind, selection = selection_](Result<query::SlicePlace>& place) {
        if (selection != selection_) return;
        if (!place) return details_->showHint(str(place.error().text()));
        details_->showPage([span, kind, p = *place, start = canvas_->outline().range.startNs](DetailsPanel& page) {
          page.heading(span.name.empty() ? kind : str(span.name), kind);
          page.pair(tr("duration"), durationText(span.endNs - span.startNs));
          page.pair(tr("start"), preciseTime(span.startNs - start));
          page.pair(tr("detail"), str(p.detail));
          page.pair(tr("line"), str(shortPlace(p.file, p.line)), Location::sourceLine(p.file, static_cast<int>(p.line)));
          if (p.launches > 0) page.pair(tr("launches"), tr("%1, which took %2").arg(str(formatCount(p.launches)), durationText(p.kernelNs)));
          page.pair(tr("compile"), p.compile != 0 ? tr("show its guards") : QString(), Location::of(ObjectKind::Compile, p.compile));
          if (p.compile != 0) page.pair(tr("graph"), tr("show its graph"), {ObjectKind::Compile, p.compile, "graph", {}, 0});
        });
      });
}

void TimelineView::showSample(const query::SampleStep& sample, const query::SampledMetric& metric) {
  details_->showPage([sample, metric, start = canvas_->outline().range.startNs](DetailsPanel& page) {
    const auto value = [&](double v) { return str(query::counterText(metric.unit, v)); };
    page.heading(str(metric.title), tr("sampled"));
    page.pair(sample.count > 1 ? tr("mean") : tr("value"), value(sample.mean));
    if (sample.count > 1) page.pair(tr("range"), tr("%1 to %2 in %3 samples").arg(value(sample.least), value(sample.most), str(formatCount(sample.count))));
    page.pair(tr("start"), preciseTime(sample.startNs - start));
    page.pair(tr("length"), durationText(sample.endNs - sample.startNs));
    page.pair(tr("in the whole session"), tr("%1 on average, up to %2").arg(value(metric.mean), value(metric.most)));
    page.pair(tr("device"), QString::number(metric.device));
    page.pair(tr("meaning"), str(metric.meaning));
    page.pair(tr("counter"), str(metric.metric));
    page.paragraph(tr("Of the whole device, whatever ran there, every %1.").arg(durationText(metric.intervalNs)), true);
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
          page.pair(tr("duration"), durationText(e.durNs));
          page.pair(tr("start"), preciseTime(e.startNs - start));
          if (e.calledNs >= 0) page.pair(tr("asked for"), tr("%1 before it began; the call took %2").arg(durationText(e.startNs - e.calledNs), durationText(e.callDurNs)));
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
  const int64_t lane = canvas_->laneOf(hit)->thread;
  session()->ask<query::GpuGap>(
      this, "gap", [lane, time = hit.timeNs](session::Reader& reader) { return query::gpuGapAt(reader, lane, time); },
      [this, selection = selection_](Result<query::GpuGap>& gap) {
        if (selection != selection_) return;
        if (!gap) return details_->showHint(tr("Select a bar to see what it is, or a gap between two to see why nothing ran."));
        canvas_->mark(gap->startNs, gap->endNs);
        details_->showPage([g = *gap](DetailsPanel& page) {
          page.heading(tr("gap of %1").arg(durationText(g.endNs - g.startNs)), str(query::gapCauseTitle(g.cause)));
          page.paragraph(str(query::gapCauseAdvice(g.cause)));
          page.pair(tr("detail"), str(g.detail));
          page.pair(tr("before it"), str(g.before));
          page.pair(tr("after it"), str(g.after));
          if (g.calledNs >= 0) {
            page.pair(tr("asked for"), g.calledNs <= g.startNs ? tr("%1 before the gap").arg(durationText(g.startNs - g.calledNs))
                                                               : tr("%1 into the gap").arg(durationText(g.calledNs - g.startNs)));
          }
          page.pair(tr("line"), str(shortPlace(g.file, g.line)), Location::sourceLine(g.file, static_cast<int>(g.line)));
          if (!g.parts.empty()) page.section(tr("Meanwhile on the thread that asked"));
          for (size_t i = 0; i < g.parts.size() && i < 6; ++i)
            page.pair(str(g.parts[i].name), tr("%1 (%2)").arg(durationText(g.parts[i].ns), str(query::gapCauseTitle(g.parts[i].cause))));
        });
      });
}

/// Slices of any kind by name. What is on the screen stays where it is, but for what it takes to see the slice.
void TimelineView::search(query::SliceDirection direction) {
  const QString text = search_->text();
  if (text.isEmpty() || !session()) {
    found_ = {};
    search_->setHits(0, 0);
    return canvas_->mark(0, 0);
  }
  const bool isFirst = found_.count == 0;
  if (isFirst && direction == query::SliceDirection::Next) direction = query::SliceDirection::From;
  const query::Slice at = isFirst || direction == query::SliceDirection::From ? query::Slice{.startNs = canvas_->from(), .endNs = canvas_->from()} : found_.slice;
  session()->ask<query::SliceHit>(
      this, "slice", [text = text.toStdString(), at, direction](session::Reader& reader) { return query::findSlice(reader, text, at, direction); },
    [this](Result<query::SliceHit>& hit) {
        if (!hit) return details_->showHint(str(hit.error().text()));
        found_ = *hit;
        search_->setHits(static_cast<int>(found_.number), static_cast<int>(found_.count));
        if (found_.count == 0) return details_->showHint(tr("Nothing on the timeline has this in its name."));
        canvas_->showSlice(found_.slice);
        makeRoomForDetails();
        details_->showPage([hit = found_, start = canvas_->outline().range.startNs](DetailsPanel& page) {
          page.heading(str(hit.slice.name), tr("%1 of %2").arg(str(formatCount(hit.number)), str(formatCount(hit.count))));
          page.pair(tr("duration"), durationText(hit.slice.endNs - hit.slice.startNs));
          page.pair(tr("start"), preciseTime(hit.slice.startNs - start));
          page.paragraph(tr("Return and F3 go to the next one, Shift+F3 to the one before."), true);
        });
      });
}

/// What ran in the marked span, by name.
void TimelineView::showSums(int64_t from, int64_t to) {
  const uint64_t selection = ++selection_;
  makeRoomForDetails();
  details_->showHint(tr("Adding up…"));
  using Sums = std::vector<query::SliceSum>;
  session()->ask<Sums>(
      this, "sums", [from, to](session::Reader& reader) { return query::sumSlices(reader, from, to); },
      [this, selection, length = to - from](Result<Sums>& sums) {
        if (selection != selection_) return;
        if (!sums) return details_->showHint(str(sums.error().text()));
        details_->showPage([sums = *sums, length](DetailsPanel& page) {
          page.heading(durationText(length), tr("measured"));
          const QString titles[] = {tr("Kernels and calls"), tr("On devices"), tr("Operators"), tr("Spans")};
          int section = -1;
          for (const auto& sum : sums) {
            if (section != static_cast<int>(sum.kind)) page.section(titles[section = static_cast<int>(sum.kind)]);
            page.pair(str(sum.name),
                      tr("%1 (%2) in %3, each %4 to %5")
                              .arg(durationText(sum.totalNs), str(formatShare(static_cast<double>(sum.totalNs), static_cast<double>(length))),
                                   str(formatCount(sum.count)), durationText(sum.minNs), durationText(sum.maxNs)) +
                          (sum.count > 1 ? QStringLiteral("   ") + str(query::lengthsText(sum.lengths)) : QString()),
                      sum.kernel > 0 ? Location::of(ObjectKind::Kernel, sum.kernel) : Location{});
          }
          if (sums.empty()) page.paragraph(tr("Nothing ran in this span."), true);
        });
      });
}

/// What another view selects is marked; the place and the zoom are the person's.
void TimelineView::follow(const Location& location) {
  if (location.kind == ObjectKind::Kernel || location.kind == ObjectKind::Compile) showTimeOf(location, &TimelineCanvas::mark);
}

void TimelineView::showLocation(const Location& location) { showTimeOf(location, &TimelineCanvas::showRange); }

void TimelineView::showTimeOf(const Location& location, ShowTime show) {
  if (!session()) return;
  if (!loaded_) {
    wanted_ = location;
    wantedShow_ = show;
    return refresh();
  }
  session()->ask<query::TimeRange>(
      this, "time", [location](session::Reader& reader) { return timeOf(reader, location); },
      [this, location, show, selection = ++selection_](Result<query::TimeRange>& range) {
        if (!range || range->endNs <= 0 || selection != selection_) return;
        (canvas_->*show)(range->startNs, range->endNs);
        QString name = location.kind == ObjectKind::Launch ? tr("launch %1").arg(location.id) : QString(), what = tr("it is marked");
        if (location.kind == ObjectKind::Kernel || location.kind == ObjectKind::Compile) {
          const auto known = canvas_->outline().names.find(location.kind == ObjectKind::Compile ? -location.id : location.id);
          if (known != canvas_->outline().names.end()) name = str(known->second);
          what = location.kind == ObjectKind::Kernel ? tr("its first run is marked") : tr("its compilation is marked");
        }
        if (name.isEmpty()) return;
        makeRoomForDetails();
        details_->showPage([name, what, r = *range, start = canvas_->outline().range.startNs](DetailsPanel& page) {
          page.heading(name, what);
          page.pair(tr("duration"), durationText(r.endNs - r.startNs));
          page.pair(tr("start"), preciseTime(r.startNs - start));
        });
      });
}

}  // namespace fusebox::views
