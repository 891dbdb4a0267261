#include "views/timeline/timeline_view.h"

#include <QLabel>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>

#include "profiler/session/reader.h"
#include "views/common/fuzzy_match.h"
#include "views/common/units.h"
#include "views/widgets/filter_box.h"

namespace fusebox::views {
namespace {

QString str(const std::string& text) { return QString::fromStdString(text); }
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
  split->setSizes({560, 120});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(split, 1);

  connect(canvas_, &TimelineCanvas::windowChanged, this, &TimelineView::askBars);
  connect(canvas_, &TimelineCanvas::selected, this, [this](const TimelineCanvas::Hit& hit) { showHit(hit, false); });
  connect(canvas_, &TimelineCanvas::activated, this, [this](const TimelineCanvas::Hit& hit) { showHit(hit, true); });
  connect(canvas_, &TimelineCanvas::measured, this, [this](qint64 start, qint64 end) {
    details_->showPage([length = end - start](DetailsPanel& page) {
      page.heading(duration(length), tr("measured"));
      page.paragraph(tr("Shift and drag measures a span of time."), true);
    });
  });
  connect(search_, &FilterBox::filterChanged, this, &TimelineView::findKernel);
  connect(search_, &FilterBox::leave, canvas_, qOverload<>(&QWidget::setFocus));
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(bus(), &SelectionBus::selected, this, [this](const Location& location, QObject* from) {
    if (from == this || !isVisible()) return;
    if (location.kind == ObjectKind::Kernel || location.kind == ObjectKind::Compile) showLocation(location);
  });
  clear();
}

void TimelineView::clear() {
  loaded_ = false;
  wanted_ = {};
  empty_->showReason(tr("Nothing has happened yet"), tr("Compiler stages, calls of compiled code and kernel launches appear here as they are recorded."));
  details_->showHint(tr("W and S zoom, A and D pan, F shows everything; select a bar to see what it is, Shift and drag measures."));
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
  std::vector<TimelineLane> lanes(canvas_->outline().lanes.size());  // what to ask for, without the spans
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].kind = canvas_->outline().lanes[i].kind;
    lanes[i].thread = canvas_->outline().lanes[i].thread;
  }
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

void TimelineView::showHit(const TimelineCanvas::Hit& hit, bool open) {
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
  const query::Bar* bar = canvas_->barOf(hit);
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

void TimelineView::findKernel(const QString& text) {
  if (text.isEmpty()) return;
  for (const auto& [kernel, name] : canvas_->outline().names) {
    if (filterMatches(text.toStdString(), name)) return showLocation(Location::of(ObjectKind::Kernel, kernel));
  }
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
