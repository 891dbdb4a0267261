#include "views/cuda_graphs/cuda_graphs_view.h"

#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

QString time(int64_t ns) { return str(formatDuration(static_cast<double>(ns))); }
QString bytes(int64_t count) { return str(formatBytes(static_cast<double>(count))); }

}  // namespace

std::vector<TableColumn> CudaGraphsView::recordingColumns() {
  return {{tr("Function")},
          {tr("What"), tr("A recording, numbered within its compiled graph, or what else became of a call")},
          {tr("Reason"), tr("What made the recording necessary, or why there is none")},
          {tr("Replays"), {}, true},
          {tr("On device"), tr("What the nodes of a replay take on the device, on average"), true},
          {tr("Call"), tr("Time of the call that replays: checks, copies of inputs, the launch of the graph"), true},
          {tr("Nodes"), tr("Kernels, copies and memsets of the graph"), true},
          {tr("Pieces"), tr("Captured stretches, each a graph of its own: what cannot be captured runs between them"), true},
          {tr("Plain steps"), tr("Steps that run outside of the graph"), true},
          {tr("Static inputs"), tr("Inputs that are read where they lie, since they do not move"), true},
          {tr("Copied inputs"), tr("Inputs that are copied to a fixed place before every replay"), true},
          {tr("Copied"), tr("Bytes of these copies"), true},
          {tr("Kept"), tr("Memory of the recording's results, which nothing else uses"), true},
          {tr("Pool"), tr("What the pool of torch's allocator that all recordings of the device share held when this one was made"), true},
          {tr("Recorded in"), tr("Time of capturing and instantiating"), true},
          {tr("Line")}};
}

CudaGraphsView::CudaGraphsView(const ViewContext& context) : View(context) {
  table_ = new DataTable(QStringLiteral("cudaGraphs.table"), tr("Filter recordings by function, reason or line"), recordingColumns());
  table_->setWidestColumn(320);
  details_ = new DetailsPanel(QStringLiteral("cudaGraphs.details"));
  details_->setAccessibleName(tr("About the recording"));
  nodes_ = new DataTable(QStringLiteral("cudaGraphs.nodes"), tr("Filter nodes by kernel, kind or line"),
                         {{tr("Piece"), tr("Captured stretch"), true},
                          {tr("Node"), tr("In order of creation, within the piece; several where one kernel made them"), true},
                          {tr("Kernel"), tr("What made these nodes: a generated kernel, a call of a library, or a copy")},
                          {tr("Kind")},
                          {tr("A replay"), tr("What they take on the device in one replay, on average"), true},
                          {tr("Share"), tr("Share of the recording's time on the device"), true},
                          {tr("Device function"), tr("Of what took most of the kernel's time")},
                          {tr("Line")}});
  nodes_->setWidestColumn(420);
  nodes_->setEmptyText(tr("No nodes"), tr("Select a recording above. What runs plainly has no nodes."));
  replays_ = new DataTable(QStringLiteral("cudaGraphs.replays"), tr("Filter replays"),
                           {{tr("Replay"), {}, true},
                            {tr("At"), tr("After the first replay"), true},
                            {tr("Call"), tr("Time on the CPU"), true},
                            {tr("Waited"), tr("From the call to the start of the first node on the device"), true},
                            {tr("Took"), tr("From the start of the first node to the end of the last"), true},
                            {tr("On device"), tr("Sum of what its nodes took"), true},
                            {tr("Busy"), tr("Sum of the nodes as a share of what the replay took: the rest is between nodes"), true}});
  replays_->setEmptyText(tr("No replays"), tr("Select a recording above. Times on the device need a recording of GPU times."));
  tabs_ = new QTabWidget;
  tabs_->setObjectName(QStringLiteral("cudaGraphs.tabs"));
  tabs_->setAccessibleName(tr("About the recording"));
  tabs_->setDocumentMode(true);
  tabs_->addTab(nodes_, tr("Nodes"));
  tabs_->addTab(replays_, tr("Replays"));
  tabs_->addTab(details_, tr("Summary"));
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(table_);
  split->addWidget(tabs_);
  split->setSizes({260, 420});
  empty_ = new EmptyState(split, QStringLiteral("cudaGraphs"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(empty_);

  connect(table_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    open(table_->filter()->mapToSource(table_->table()->currentIndex()).row());
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  connect(table_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
  });
  connect(nodes_, &DataTable::rowSelected, this, [this](const TableRow& row) { announce(row.location); });
  connect(nodes_, &DataTable::rowActivated, this, [this](const TableRow& row) { bus()->open(Location::of(ObjectKind::Kernel, row.location.id)); });
  connect(replays_, &DataTable::rowSelected, this, [this](const TableRow& row) { announce(row.location); });
  connect(replays_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    Location launch = row.location;
    launch.view = "timeline";
    bus()->open(launch);
  });
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  QAction* csv = addViewAction(QStringLiteral("csv"), tr("Export table of CUDA graphs…"), QStringLiteral("export"));
  connect(csv, &QAction::triggered, table_, &DataTable::exportCsv);
  clear();
}

void CudaGraphsView::clear() {
  events_.clear();
  shown_ = wanted_ = 0;
  asking_ = false;
  wantedPart_ = {};
  for (DataTable* table : {table_, nodes_, replays_}) table->setRows({});
  details_->showHint(tr("Select a recording to see why it was made and what it holds."));
  empty_->showReason(tr("No CUDA graphs"),
                     tr("Functions compiled with mode=\"reduce-overhead\" (or backend=\"cudagraphs\") on a GPU are recorded once and replayed from "
                        "then on. Their recordings, and why there was none, are listed here."));
}

void CudaGraphsView::load() {
  using Events = std::vector<query::CudaGraphEvent>;
  session()->ask<Events>(
      this, "events", [](session::Reader& reader) { return query::cudaGraphs(reader); },
      [this](Result<Events>& events) {
        if (!events) return empty_->showReason(tr("The CUDA graphs cannot be read"), str(events.error().text()));
        events_ = std::move(*events);
        if (events_.empty()) return;
        table_->setRows(cudaGraphRows(events_));
        empty_->showContent();
        if (wanted_ != 0) return showLocation(Location::of(ObjectKind::Kernel, std::exchange(wanted_, 0)));
        const auto again = std::find_if(events_.begin(), events_.end(), [this](const auto& e) { return e.id == shown_; });
        if (shown_ != 0 && again != events_.end()) {  // it may have been replayed since
          shown_ = 0;
          return selectRow(static_cast<int>(again - events_.begin()));
        }
        int most = -1;
        for (size_t i = 0; i < events_.size(); ++i)
          if (events_[i].isRecording() && (most < 0 || events_[i].replays > events_[static_cast<size_t>(most)].replays)) most = static_cast<int>(i);
        selectRow(std::max(most, 0));
      });
}

void CudaGraphsView::selectRow(int index) {
  const QModelIndex row = table_->filter()->mapFromSource(table_->model()->index(index, 0));
  if (row.isValid()) {
    const QSignalBlocker quiet(table_);  // nobody chose it
    table_->table()->setCurrentIndex(row);
  }
  open(index);
}

void CudaGraphsView::showLocation(const Location& location) {
  if (!session() || (location.kind != ObjectKind::Kernel && location.kind != ObjectKind::Launch)) return;
  if (events_.empty()) {
    if (location.kind == ObjectKind::Kernel) wanted_ = location.id;
    return;
  }
  using Found = std::pair<int, int64_t>;
  session()->ask<Found>(
      this, "which",
      [location, events = events_](session::Reader& reader) -> Result<Found> {
        int64_t kernel = location.id;
        if (location.kind == ObjectKind::Launch) {
          kernel = 0;
          auto read = reader.each("SELECT kernel_id FROM launches WHERE launch_id = ?", {location.id},
                                  [&](const session::Statement& s) { kernel = s.integer("kernel_id"); });
          if (!read) return tl::unexpected(read.error());
        }
        auto index = query::recordingOfKernel(reader, events, kernel);
        if (!index) return tl::unexpected(index.error());
        return Found{*index, kernel};
      },
      [this, location](Result<Found>& found) {
        if (!found || found->first < 0 || static_cast<size_t>(found->first) >= events_.size()) return;
        wantedPart_ = location.kind == ObjectKind::Launch ? location : Location::of(ObjectKind::Kernel, found->second);
        if (events_[static_cast<size_t>(found->first)].id != shown_) selectRow(found->first);
        else if (!asking_) selectPart();
      });
}

void CudaGraphsView::selectPart() {
  if (wantedPart_.kind == ObjectKind::Launch) replays_->select(wantedPart_);
  if (wantedPart_.kind == ObjectKind::Kernel) nodes_->select(wantedPart_);
  wantedPart_ = {};
}

void CudaGraphsView::open(int index) {
  if (index < 0 || static_cast<size_t>(index) >= events_.size() || !session()) return;
  const query::CudaGraphEvent event = events_[static_cast<size_t>(index)];
  if (event.id == shown_) return;
  shown_ = event.id;
  asking_ = event.isRecording();
  describe(event);
  if (!event.isRecording()) {
    nodes_->setRows({});
    replays_->setRows({});
    tabs_->setCurrentWidget(details_);
    return;
  }
  session()->ask<Parts>(
      this, "parts",
      [event](session::Reader& reader) -> Result<Parts> {
        auto nodes = query::cudaGraphNodes(reader, event);
        if (!nodes) return tl::unexpected(nodes.error());
        auto replays = query::cudaGraphReplays(reader, event);
        if (!replays) return tl::unexpected(replays.error());
        return Parts{std::move(*nodes), std::move(*replays)};
      },
      [this, event](Result<Parts>& parts) {
        if (event.id != shown_) return;
        asking_ = false;
        if (!parts) {
          shown_ = 0;
          return details_->showHint(str(parts.error().text()));
        }
        nodes_->setRows(cudaGraphNodeRows(event, parts->nodes));
        replays_->setRows(cudaGraphReplayRows(parts->replays));
        selectPart();
      });
}

void CudaGraphsView::describe(const query::CudaGraphEvent& event) {
  details_->showPage([e = event](DetailsPanel& page) {
    page.heading(str(e.function), str(cudaGraphEventName(e)));
    page.paragraph(str(e.reason));
    page.pair(tr("pass"), str(e.direction));
    page.pair(tr("device"), str(e.device));
    page.pair(tr("line"), str(shortPlace(e.file, e.line)), e.file.empty() ? Location{} : Location::sourceLine(e.file, static_cast<int>(e.line)));
    if (e.replaces >= 0) page.pair(tr("took the place of"), tr("recording %1").arg(e.replaces));
    if (!e.isRecording()) return;
    page.pair(tr("nodes"), tr("%1 in %2").arg(str(formatCount(e.nodes)), str(formatNumberOf(e.pieces, tr("piece").toStdString(), tr("pieces").toStdString()))));
    if (e.plainSteps > 0) page.pair(tr("runs plainly"), tr("%1: %2").arg(str(formatNumberOf(e.plainSteps, tr("step").toStdString(), tr("steps").toStdString())), str(e.plainReason)));
    page.pair(tr("inputs"), tr("%1 read where they lie, %2 copied before every replay%3")
                                .arg(e.staticInputs).arg(e.copiedInputs).arg(e.copiedBytes > 0 ? tr(" (%1)").arg(bytes(e.copiedBytes)) : QString()));
    page.pair(tr("results"), tr("%1 of memory that nothing else uses").arg(bytes(std::max<int64_t>(e.keptBytes, 0))));
    if (e.poolBytes >= 0) page.pair(tr("shared pool"), tr("%1 held for intermediates of all recordings of the device by then").arg(bytes(e.poolBytes)));
    page.pair(tr("recorded in"), time(e.durNs));
    page.section(tr("Replays"));
    page.pair(tr("replays"), str(formatCount(e.replays)));
    if (e.replays > 0) page.pair(tr("a call took"), time(e.hostNs / e.replays));
    if (e.timedReplays > 0) page.pair(tr("on the device"), tr("%1 on average, of %2 replays that it timed").arg(time(e.deviceNs / e.timedReplays), str(formatCount(e.timedReplays))));
    if (e.kernel > 0) page.pair(tr("kernel"), tr("show in Kernels"), Location::of(ObjectKind::Kernel, e.kernel));
  });
}

}  // namespace fusebox::views
