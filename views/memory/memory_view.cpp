#include "views/memory/memory_view.h"

#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/text.h"

namespace fusebox::views {

MemoryView::MemoryView(const ViewContext& context) : View(context) {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  measured_ = new QLabel;
  measured_->setObjectName(QStringLiteral("memory.measured"));
  measured_->setToolTip(tr("Resident bytes of the whole process, and of each device what torch's allocator had in use and had taken"));
  headline_ = new QLabel;
  headline_->setTextFormat(Qt::RichText);
  headline_->setObjectName(QStringLiteral("memory.headline"));
  for (QLabel* label : {measured_, headline_}) {
    label->setContentsMargins(10, 6, 10, 6);
    label->setMinimumWidth(1);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  graphs_ = new DataTable(QStringLiteral("memory.graphs"), tr("Filter graphs"),
                          {{tr("Function")},
                           {tr("Peak"), tr("Most bytes of buffers and results alive at one step"), true},
                           {tr("At step"), tr("Steps are kernels and calls in order of execution"), true},
                           {tr("Pool"), tr("One piece of memory that planned buffers share, one after the other"), true},
                           {tr("Planned"), tr("What they would need without sharing"), true},
                           {tr("Allocated"), tr("By itself, apart from the pool (most results of library calls), and freed after the last use"), true},
                           {tr("Results"), tr("Handed out: they live on after the call"), true},
                           {tr("Inputs"), {}, true},
                           {tr("Saved"), tr("Of a backward pass: activations that the forward pass keeps for it, parameters and inputs left out"), true},
                           {tr("Line")}});
  canvas_ = new LifetimesCanvas;
  tabs_ = new QTabWidget;
  tabs_->setObjectName(QStringLiteral("memory.tabs"));
  tabs_->setAccessibleName(tr("Buffers and saved tensors"));
  tabs_->setDocumentMode(true);
  buffers_ = new DataTable(QStringLiteral("memory.buffers"), tr("Filter buffers"),
                           {{tr("Buffer")}, {tr("Kind"), tr("planned: in the pool; allocated: by itself, freed after its last use; result: handed out; view: another's memory")}, {tr("Bytes"), {}, true}, {tr("First step"), {}, true}, {tr("Last step"), {}, true}, {tr("Tensor")}, {tr("Line")}});
  buffers_->sortBy(2, Qt::DescendingOrder);
  saved_ = new DataTable(QStringLiteral("memory.saved"), tr("Filter saved tensors"), {{tr("Tensor")}, {tr("Bytes"), {}, true}, {tr("Kept as"), tr("Parameters and inputs live on anyway; the rest is kept only for the backward pass")}, {tr("Type")}, {tr("Line")}});
  tabs_->addTab(buffers_, tr("Buffers"));
  tabs_->addTab(saved_, tr("Kept for backward"));
  auto* split = new QSplitter(Qt::Vertical);
  for (QWidget* part : {static_cast<QWidget*>(graphs_), static_cast<QWidget*>(canvas_), static_cast<QWidget*>(tabs_)}) split->addWidget(part);
  split->setSizes({170, 290, 220});
  column->addWidget(measured_);
  column->addWidget(headline_);
  column->addWidget(split, 1);
  connect(graphs_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    openGraph(row.location.id);
    announce(row.location);
  });
  connect(graphs_, &DataTable::rowActivated, this, [this](const TableRow& row) { bus()->open(row.location); });
  connect(canvas_, &LifetimesCanvas::selected, this, [this](int buffer) {
    const auto& b = shown_.buffers[static_cast<size_t>(buffer)];
    buffers_->table()->selectRow(buffers_->filter()->mapFromSource(buffers_->model()->index(buffer, 0)).row());
    if (b.node > 0) announce(Location::of(ObjectKind::Node, b.node));
  });
  connect(canvas_, &LifetimesCanvas::activated, this, &MemoryView::openBuffer);
  connect(buffers_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    canvas_->mark(buffers_->filter()->mapToSource(buffers_->table()->currentIndex()).row());
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  for (DataTable* table : {buffers_, saved_}) {
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (row.location.id > 0) bus()->open(Location::of(ObjectKind::Node, row.location.id));
    });
  }
  empty_ = new EmptyState(page, QStringLiteral("memory"));
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(empty_);
  QAction* picture = addViewAction(QStringLiteral("export"), tr("Export picture of lifetimes…"), QStringLiteral("export"));
  connect(picture, &QAction::triggered, this, [this] { exportPicture(canvas_->picture(), QStringLiteral("memory"), this); });
  QAction* csv = addViewAction(QStringLiteral("csv"), tr("Export table of buffers…"), QStringLiteral("export"));
  connect(csv, &QAction::triggered, buffers_, &DataTable::exportCsv);
  clear();
}

void MemoryView::clear() {
  shown_ = {};
  graphs_->setRows({});
  buffers_->setRows({});
  saved_->setRows({});
  canvas_->setLifetimes({});
  sayNone({});
  headline_->clear();
  if (session()) empty_->showReading();
  else empty_->showNoSession();
}

void MemoryView::sayNone(const query::Holdings& holdings) {
  if (!holdings.has(query::Holding::MemoryPlans)) {
    const Absence absence = absenceOf(holdings, query::Holding::MemoryPlans);
    for (DataTable* table : {graphs_, buffers_, saved_}) table->setEmptyText(absence.headline, absence.hint);
    return canvas_->setEmptyText(absence.headline);
  }
  buffers_->setEmptyText(tr("No graph selected"), tr("Select a graph above."));
  saved_->setEmptyText(tr("Nothing is kept for a backward pass"), tr("The function ran without gradients, or its backward pass was not recorded."));
  graphs_->setEmptyText(tr("No buffers recorded"), tr("Graphs appear here when they have been compiled."));
  canvas_->setEmptyText(tr("The buffers of the graph that is selected above are shown here."));
}

void MemoryView::load() {
  session()->ask<query::Memory>(
      this, "memory", [](session::Reader& reader) { return query::memoryOf(reader); },
      [this](Result<query::Memory>& memory) {
        if (!memory) return empty_->showReason(tr("The memory plans cannot be read"), str(memory.error().text()));
        measured_->setText(str(measuredText(memory->measured)));
        const int64_t largest = memory->graphs.empty() ? 0 : std::max_element(memory->graphs.begin(), memory->graphs.end(), [](const auto& a, const auto& b) { return a.peakBytes < b.peakBytes; })->graph;
        if (memory->graphs.empty()) askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        graphs_->setRows(memoryGraphRows(*memory));
        empty_->showContent();
        if (shown_.graph.graph == 0 && largest > 0) {
          graphs_->select(Location::of(ObjectKind::Graph, largest));
          openGraph(largest);
        }
      });
}

void MemoryView::showLocation(const Location& location) {
  if (location.kind != ObjectKind::Graph || !session()) return;
  graphs_->select(location);
  openGraph(location.id);
}

void MemoryView::openGraph(int64_t graph) {
  session()->ask<query::GraphLifetimes>(
      this, "lifetimes", [graph](session::Reader& reader) { return query::lifetimesOf(reader, graph); },
      [this](Result<query::GraphLifetimes>& lifetimes) {
        if (!lifetimes) return headline_->setText(str(lifetimes.error().message).toHtmlEscaped());
        shown_ = std::move(*lifetimes);
        const auto& g = shown_.graph;
        const auto bytes = [](int64_t n) { return str(formatBytes(static_cast<double>(n))); };
        const auto at = static_cast<size_t>(g.peakStep);
        const QString pool = g.plannedBytes > 0     ? tr("; the pool holds %1 of planned buffers in %2").arg(bytes(g.plannedBytes), bytes(g.poolBytes))
                             : g.allocatedBytes > 0 ? tr("; nothing lies in a pool")
                                                    : tr("; all of it are results");
        headline_->setText(tr("<b>%1</b>&nbsp; %2 at its peak, at step %3%4%5")
                               .arg(str(memoryGraphName(g)).toHtmlEscaped(), bytes(g.peakBytes))
                               .arg(g.peakStep)
                               .arg(at < shown_.stepNames.size() && !shown_.stepNames[at].empty() ? QStringLiteral(" (%1)").arg(str(shown_.stepNames[at]).toHtmlEscaped()) : QString(), pool));
        canvas_->setLifetimes(shown_);
        buffers_->setRows(bufferRows(shown_));
        saved_->setRows(savedRows(shown_));
        tabs_->setTabText(1, shown_.saved.empty() ? tr("Kept for backward") : tr("Kept for backward (%1)").arg(shown_.saved.size()));
      });
}

void MemoryView::openBuffer(int buffer) {
  const auto& b = shown_.buffers[static_cast<size_t>(buffer)];
  if (b.node > 0) bus()->open(Location::of(ObjectKind::Node, b.node));
}

}  // namespace fusebox::views
