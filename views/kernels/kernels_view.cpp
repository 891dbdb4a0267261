#include "views/kernels/kernels_view.h"

#include <QFileInfo>
#include <QHeaderView>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/compare/spread.h"
#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/advice_page.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

std::vector<TableColumn> kernelColumns() {
  return {{KernelsView::tr("Kernel")},
          {KernelsView::tr("Kind"), KernelsView::tr("generated, template, extern (a call of ATen), eager: launched by code outside compiled graphs, or autotune: launched by Fusebox to choose launch shapes, and in no share")},
          {KernelsView::tr("Result"), KernelsView::tr("Type and shape of its last result"), false, true},
          {KernelsView::tr("Module"), KernelsView::tr("Path of the module that asked for it"), false, true},
          {KernelsView::tr("Line"), KernelsView::tr("Line of the program that it computes")},
          {KernelsView::tr("Launches"), KernelsView::tr("With those that replays of CUDA graphs contain"), true, true},
          {KernelsView::tr("Total"), KernelsView::tr("Time of all launches: the device's, where it was measured"), true, true},
          {KernelsView::tr("Share"), KernelsView::tr("Share of all kernel time"), true, true},
          {KernelsView::tr("Inputs"), KernelsView::tr("Names of the values that it is given: they tell apart what is called alike; of several places the first"), false, true},
          {KernelsView::tr("Typical"), KernelsView::tr("Mean without the slowest launch, which mostly is the first"), true, true},
          {KernelsView::tr("Mean"), KernelsView::tr("Of all launches, the first and slowest too"), true, true},
          {KernelsView::tr("Min"), {}, true, true},
          {KernelsView::tr("Max"), {}, true, true},
          {KernelsView::tr("Bytes"), KernelsView::tr("Bytes read and written by all launches"), true, true},
          {KernelsView::tr("Rate"), KernelsView::tr("Bytes moved a second of kernel time, by the tensors that a launch touches"), true, true},
          {KernelsView::tr("Of roof"), KernelsView::tr("What it reaches of the device's memory rate (measured by a copy) or of its float32 arithmetic, whichever is more; above 100 % its data came from the device's cache"), true, true},
          {KernelsView::tr("Registers"), KernelsView::tr("Registers of a thread"), true, true},
          {KernelsView::tr("Shared"), KernelsView::tr("Shared memory of a block"), true, true},
          {KernelsView::tr("Local"), KernelsView::tr("Local memory of a thread: its stack, and registers that were spilled"), true, true},
          {KernelsView::tr("Occupancy"), KernelsView::tr("Threads that a multiprocessor can hold of this kernel, of those that it can hold at all"), true, true},
          {KernelsView::tr("Compiled in"), KernelsView::tr("Time of code generation, all tiers"), true, true},
          {KernelsView::tr("Nodes"), KernelsView::tr("Graph nodes that it carries out"), true, true}};
}

}  // namespace

namespace {

/// "10 % below 3.1 µs, half below 3.2 µs, …" of launches' times.
QString distribution(std::vector<double> times) {
  if (times.size() < 3) return {};
  std::sort(times.begin(), times.end());
  const auto below = [&](double share) { return str(formatDuration(times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))])); };
  return KernelsView::tr("10 % below %1, half below %2, 90 % below %3, 99 % below %4").arg(below(0.1), below(0.5), below(0.9), below(0.99));
}

/// Time of a launch, the slowest left out where there are several.
double typicalNs(const KernelDetail& k) {
  const int64_t timed = k.timedLaunches > 0 ? k.timedLaunches : k.launches;
  if (timed <= 0) return 0;
  return timed > 2 && k.maxNs > 0 ? static_cast<double>(k.totalNs - k.maxNs) / static_cast<double>(timed - 1) : static_cast<double>(k.totalNs) / static_cast<double>(timed);
}

constexpr size_t kNodeName = 1;  ///< column of the table of nodes

}  // namespace

KernelsView::KernelsView(const ViewContext& context) : View(context) {
  table_ = new DataTable(QStringLiteral("kernels.table"), tr("Filter kernels by name, kind or line"), kernelColumns());
  table_->setWidestColumn(290);
  table_->table()->setTextElideMode(Qt::ElideMiddle);  // templates of one name differ behind it
  table_->sortBy(kKernelTotal, Qt::DescendingOrder);
  sayNone({});
  tabs_ = new QTabWidget;
  tabs_->setAccessibleName(tr("About the kernel"));
  tabs_->setObjectName(QStringLiteral("kernels.tabs"));
  tabs_->setDocumentMode(true);
  summary_ = new DetailsPanel(QStringLiteral("kernels.details"));
  tabs_->addTab(summary_, tr("Summary"));
  loopIr_ = addCode(QStringLiteral("kernels.loopIr"), tr("Loop IR"), Language::LoopIr);
  llvmIr_ = addCode(QStringLiteral("kernels.llvmIr"), tr("LLVM IR"), Language::LlvmIr);
  assembly_ = addCode(QStringLiteral("kernels.assembly"), tr("Assembly"), Language::Assembly);
  columns_ = new CodeColumns;
  tabs_->addTab(columns_, tr("Side by side"));
  nodes_ = new DataTable(QStringLiteral("kernels.nodes"), tr("Filter nodes"),
                         {{tr("Operator")}, {tr("Node")}, {tr("Result")}, {tr("Role")}, {tr("Line")}});
  nodes_->setEmptyText(tr("No nodes recorded for this kernel"), {});
  tabs_->addTab(nodes_, tr("Nodes"));
  decisions_ = new DataTable(QStringLiteral("kernels.decisions"), tr("Filter decisions"),
                             {{tr("Decision")}, {tr("Kind")}, {tr("First")}, {tr("Second")}, {tr("Reason")}});
  decisions_->setEmptyText(tr("No fusion was considered"), tr("Kernels of one node that no other could join have no decision."));
  tabs_->addTab(decisions_, tr("Fusion decisions"));
  counters_ = new DataTable(QStringLiteral("kernels.counters"), tr("Filter counters"),
                            {{tr("Counter"), tr("What the device counted while the kernel ran; the tooltip has CUPTI's name")},
                             {tr("How"), tr("around each launch: of the kernel alone. sampled: of the whole device at an interval, while the kernel ran")},
                             {tr("Mean"), tr("Of a launch; percentages are weighted by the time of the launch"), true},
                             {tr("Least"), {}, true},
                             {tr("Most"), {}, true},
                             {tr("Launches"), tr("Launches that were counted, or were long enough to be sampled"), true}});
  tabs_->addTab(counters_, tr("Counters"));
  roofline_ = new RooflinePlot;
  rooflinePage_ = new EmptyState(roofline_, QStringLiteral("kernels.roofline"));
  tabs_->addTab(rooflinePage_, tr("Roofline"));
  connect(roofline_, &RooflinePlot::kernelSelected, this, [this](qint64 kernel) {
    const Location location = Location::of(ObjectKind::Kernel, kernel);
    table_->select(location);
    openKernel(kernel);
    announce(location);
  });
  pin_ = addViewAction(QStringLiteral("pin"), tr("Compare others with this kernel"));
  pin_->setIconText(tr("Pin"));
  pin_->setCheckable(true);
  connect(pin_, &QAction::triggered, this, &KernelsView::pinShown);
  auto* pin = new QToolButton;
  pin->setObjectName(QStringLiteral("kernels.pinButton"));
  pin->setDefaultAction(pin_);
  pin->setAutoRaise(true);
  tabs_->setCornerWidget(pin);
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(table_);
  split->addWidget(tabs_);
  split->setSizes({360, 340});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(split);

  connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    showPending();
    linkCode();
  });
  connect(loopIr_.pane, &CodePane::lineSelected, this, &KernelsView::announceNodeOf);
  connect(columns_, &CodeColumns::loopLineChosen, this, &KernelsView::announceNodeOf);
  // Of too many kernels those are read that the filter and the order ask for.
  connect(table_, &DataTable::filterChanged, this, [this](const QString& text) {
    request_.filter = text.toStdString();
    if (!isWhole_) loadList();
  });
  connect(table_->table()->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, [this](int column, Qt::SortOrder order) {
    request_.column = column;
    request_.ascending = order == Qt::AscendingOrder;
    if (!isWhole_) loadList();
  });
  connect(table_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    openKernel(row.location.id);
    announce(row.location);
  });
  connect(table_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
  });
  for (DataTable* table : {nodes_, decisions_}) {
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (row.location.id != 0) bus()->open(Location::of(ObjectKind::Node, row.location.id));
    });
  }
  connect(summary_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  QAction* csv = addViewAction(QStringLiteral("csv"), tr("Export kernel table…"), QStringLiteral("export"));
  connect(csv, &QAction::triggered, table_, &DataTable::exportCsv);
  clear();
}

/// Of other compilers' kernels the source that they generated is shown in the place of our loop IR.
void KernelsView::nameSource(bool isForeign, const std::string& code) {
  const bool isTriton = code.find("@triton") != std::string::npos || code.find("tl.load") != std::string::npos;
  loopIr_.title = !isForeign ? tr("Loop IR") : isTriton ? tr("Triton") : tr("C++");
  loopIr_.pane->setLanguage(!isForeign ? Language::LoopIr : isTriton ? Language::Python : Language::Cpp);
  loopIr_.pane->setAccessibleName(loopIr_.title);
  tabs_->setTabText(tabs_->indexOf(loopIr_.page), loopIr_.title);
  columns_->nameSource(loopIr_.title, loopIr_.pane->language());
}

KernelsView::CodeTab KernelsView::addCode(const QString& name, const QString& title, Language language) {
  CodeTab tab;
  tab.title = title;
  tab.pane = new CodePane(name, language);
  tab.pane->setAccessibleName(title);
  tab.findBar = new FindBar(name + QStringLiteral(".find"), [pane = tab.pane](const QString& text, FindStep step) {
    return pane->findText(text, step);
  });
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tab.pane, 1);
  column->addWidget(tab.findBar);
  tab.empty = new EmptyState(content, name);
  tab.page = tab.empty;
  tabs_->addTab(tab.page, title);
  return tab;
}

void KernelsView::find() {
  for (const CodeTab* tab : {&loopIr_, &llvmIr_, &assembly_}) {
    if (tabs_->currentWidget() == tab->page && tabs_->currentWidget()->isAncestorOf(focusWidget())) return tab->findBar->open();
  }
  table_->focusFilter();
}

void KernelsView::clear() {
  shown_ = wanted_ = 0;
  isWhole_ = true;
  table_->setRest(0);
  table_->setRows({});
  showDetail({});
}

void KernelsView::sayNone(const query::Holdings& holdings) {
  if (!holdings.has(query::Holding::Launches) && !holdings.has(query::Holding::Kernels)) {
    const Absence absence = absenceOf(holdings, query::Holding::Launches);
    return table_->setEmptyText(absence.headline, absence.hint);
  }
  if (holdings.isOver) return table_->setEmptyText(tr("No kernel"), tr("Nothing was lowered to kernels, and none was launched, in this recording."));
  table_->setEmptyText(tr("No kernel yet"), tr("Kernels appear when a compiled graph has been lowered; times with their first launch."));
}

void KernelsView::load() {
  loadRooflinePlot();
  loadList();
}

void KernelsView::loadList() {
  if (!session()) return;
  session()->ask<KernelList>(
      this, "kernels", [request = request_](session::Reader& reader) { return listKernels(reader, request); },
      [this](Result<KernelList>& list) {
        if (!list) return table_->setEmptyText(tr("The kernels cannot be read"), str(list.error().text()));
        isWhole_ = list->isWhole();
        table_->setRest(isWhole_ ? 0 : list->all);
        if (list->all == 0) askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        table_->setRows(std::move(list->rows));
        if (wanted_ != 0) return showLocation(Location::of(ObjectKind::Kernel, std::exchange(wanted_, 0)));
        if (shown_ == 0 && table_->filter()->rowCount() > 0) {
          const QModelIndex first = table_->filter()->mapToSource(table_->filter()->index(0, 0));
          const Location location = table_->model()->row(first.row()).location;
          table_->select(location);
          openKernel(location.id);
        }
      });
}

void KernelsView::loadRooflinePlot() {
  session()->ask<Roofline>(
      this, "roofline", [](session::Reader& reader) { return loadRoofline(reader); },
      [this](Result<Roofline>& line) {
        if (!line) return rooflinePage_->showReason(tr("The roofline cannot be read"), str(line.error().text()));
        if (line->points.empty() && line->without == 0) {
          if (line->isForeign)
            return rooflinePage_->showReason(tr("No roofline"), tr("The file does not say how many bytes its kernels move and how much they compute."));
          return rooflinePage_->showReason(tr("No kernel was timed by a device"),
                                           tr("Recordings of programs that use an NVIDIA GPU show here how near each kernel comes to what the device allows."));
        }
        rooflinePage_->showContent();
        roofline_->setRoofline(std::move(*line));
      });
}

void KernelsView::follow(const Location& location) {
  followed_ = location;
  linkCode();
  if (location.kind == ObjectKind::Node || location.kind == ObjectKind::Group || location.kind == ObjectKind::Launch ||
      location.kind == ObjectKind::Kernel) {
    showLocation(location);
  } else if (location.kind == ObjectKind::SourceLine) {
    showLine(location.file, location.line);
  }
}

void KernelsView::showLocation(const Location& location) {
  if (!session()) return;
  session()->ask<int64_t>(
      this, "which", [location](session::Reader& reader) { return kernelOf(reader, location); },
      [this](Result<int64_t>& kernel) {
        if (!kernel || *kernel == 0) return;
        if (table_->model()->rowCount() == 0) {
          wanted_ = *kernel;
          return;
        }
        table_->select(Location::of(ObjectKind::Kernel, *kernel));
        openKernel(*kernel);
      });
}

/// The kernel of a line with the most time.
void KernelsView::showLine(const std::string& file, int line) {
  int64_t best = 0;
  double most = -1;
  for (int r = 0; r < table_->model()->rowCount(); ++r) {
    const TableRow& row = table_->model()->row(r);
    if (row.location.file != file || row.location.line != line || row.cells[kKernelTotal].number <= most) continue;
    most = row.cells[kKernelTotal].number;
    best = row.location.id;
  }
  if (best == 0) return;
  table_->select(Location::of(ObjectKind::Kernel, best));
  openKernel(best);
}

void KernelsView::announceNodeOf(int loopLine) {
  const std::string name = lines_.nodeOf(loopLine);
  const DataTable& nodes = *nodes_;
  for (int r = 0; !name.empty() && r < nodes.model()->rowCount(); ++r) {
    const TableRow& row = nodes.model()->row(r);
    if (row.cells[kNodeName].text == name) return announce(row.location);
  }
}

void KernelsView::linkCode() {
  std::vector<int> lines;
  for (int r = 0; r < nodes_->model()->rowCount(); ++r) {
    const TableRow& row = nodes_->model()->row(r);
    const bool isMeant = followed_.kind == ObjectKind::Node ? row.location.id == followed_.id
                                                            : followed_.kind == ObjectKind::SourceLine && row.location.file == followed_.file && row.location.line == followed_.line;
    if (!isMeant) continue;
    const std::vector<int> own = lines_.linesOf(row.cells[kNodeName].text);
    lines.insert(lines.end(), own.begin(), own.end());
  }
  std::sort(lines.begin(), lines.end());
  loopIr_.pane->setLinked(lines);
  columns_->link(lines);
}

void KernelsView::openKernel(int64_t kernel) {
  if (!session() || kernel == shown_) return;
  shown_ = kernel;
  roofline_->selectKernel(kernel);
  session()->ask<KernelDetail>(
      this, "kernel", [kernel](session::Reader& reader) { return loadKernel(reader, kernel); },
      [this](Result<KernelDetail>& detail) {
        if (detail) {
          showDetail(*detail);
        } else {
          shown_ = 0;
          summary_->showHint(str(detail.error().text()));
        }
      });
}

void KernelsView::fillCode(CodeTab& tab, const std::string& code, const QString& reason) {
  tab.pending.clear();
  if (code.empty()) {
    tab.empty->showReason(tr("No %1").arg(tab.title), reason);
    return;
  }
  tab.pending = str(code);
  tab.empty->showContent();
  showPending();
}

void KernelsView::showPending() {
  for (CodeTab* tab : {&loopIr_, &llvmIr_, &assembly_}) {
    if (tabs_->currentWidget() == tab->page && !tab->pending.isEmpty()) tab->pane->setCode(std::exchange(tab->pending, {}));
  }
}

void KernelsView::pinShown() {
  const bool isPinned = pinned_.id != 0 && pinned_.id == detail_.id && pinnedFrom_ == (session() ? session()->path() : QString());
  pinned_ = isPinned ? KernelDetail{} : detail_;
  pinnedFrom_ = session() ? session()->path() : QString();
  showDetail(KernelDetail(detail_));
}

void KernelsView::showDetail(const KernelDetail& detail) {
  detail_ = detail;
  const bool isPinned = detail.id != 0 && pinned_.id == detail.id && session() && pinnedFrom_ == session()->path();
  pin_->setEnabled(detail.id != 0);
  pin_->setChecked(isPinned);
  if (detail.id == 0) {
    summary_->showHint(tr("Select a kernel to see its times, code and fusion decisions."));
    for (CodeTab* tab : {&loopIr_, &llvmIr_, &assembly_}) fillCode(*tab, {}, tr("Select a kernel."));
    columns_->setCode({}, {}, tr("Assembly"));
    columns_->setBinary({}, tr("Select a kernel."));
    for (DataTable* table : {nodes_, decisions_, counters_}) table->setRows({});
    counters_->setEmptyText(tr("No counters"), tr("Select a kernel."));
    return;
  }
  const int64_t timed = detail.timedLaunches > 0 ? detail.timedLaunches : detail.launches;
  summary_->showPage([detail, timed, base = isPinned ? KernelDetail{} : pinned_, from = session() && pinnedFrom_ != session()->path() ? QFileInfo(pinnedFrom_).fileName() : QString()](DetailsPanel& page) {
    const auto time = [](int64_t ns) { return ns > 0 ? str(formatDuration(static_cast<double>(ns))) : QString(); };
    page.heading(str(detail.name), str(detail.kind));
    const auto than = [&](auto value, auto other) { 
      const std::string change = base.id == 0 || value <= 0 ? std::string() : compare::changeText(static_cast<double>(other), static_cast<double>(value));
      return change.empty() ? QString() : QStringLiteral(" (%1)").arg(str(change));
    };
    if (base.id != 0) page.pair(tr("compared with"), from.isEmpty() ? str(base.name) : tr("%1 in %2").arg(str(base.name), from), from.isEmpty() ? Location::of(ObjectKind::Kernel, base.id) : Location{});
    page.pair(tr("operator"), str(detail.op));
    page.pair(tr("device"), str(detail.device));
    if (detail.knowsLaunches) page.pair(tr("launches"), str(formatCount(detail.runs) + (detail.runsNote.empty() ? "" : ": " + detail.runsNote)));
    const auto timeBeside = [&](int64_t ns, int64_t other) { return ns > 0 ? time(ns) + than(ns, other) : QString(); };
    page.pair(tr("total"), timeBeside(detail.totalNs, base.totalNs));
    page.pair(tr("typical"), timed > 2 && detail.maxNs > 0 ? tr("%1 without the slowest").arg(time((detail.totalNs - detail.maxNs) / (timed - 1))) + than(typicalNs(detail), typicalNs(base)) : QString());
    page.pair(tr("mean"), timed > 0 ? time(detail.totalNs / timed) : QString());
    page.pair(tr("median"), detail.medianNs > 0 ? tr("%1, standard deviation %2").arg(time(detail.medianNs), time(detail.deviationNs)) : QString());
    page.pair(tr("fastest"), timeBeside(detail.minNs, base.minNs));
    page.pair(tr("slowest"), timeBeside(detail.maxNs, base.maxNs));
    page.pair(tr("bytes"), detail.bytes > 0 ? str(formatBytes(static_cast<double>(detail.bytes))) + than(detail.bytes, base.bytes) : QString());
    if (detail.timedLaunches > 0) {
      page.pair(tr("measured"), detail.timedLaunches >= detail.launches ? tr("by the device, all launches")
                                                                        : tr("by the device, %1 of the launches").arg(str(formatCount(detail.timedLaunches))));
      page.pair(tr("the calls took"), time(detail.hostNs));
    }
    page.pair(tr("distribution"), distribution(detail.times));
    page.pair(tr("device function"), str(detail.function));
    if (!detail.grid.empty()) page.pair(tr("launch"), tr("grid %1, block %2").arg(str(detail.grid), str(detail.block)));
    if (detail.registers > 0) page.pair(tr("registers"), tr("%1 a thread").arg(detail.registers) + than(detail.registers, base.registers));
    if (detail.sharedBytes > 0) page.pair(tr("shared memory"), tr("%1 a block").arg(str(formatBytes(static_cast<double>(detail.sharedBytes)))) + than(detail.sharedBytes, base.sharedBytes));
    if (detail.localBytes > 0) page.pair(tr("local memory"), tr("%1 a thread").arg(str(formatBytes(static_cast<double>(detail.localBytes)))));
    if (detail.occupancy > 0) page.pair(tr("occupancy"), tr("%1, limited by %2").arg(str(formatShare(detail.occupancy, 1)), str(detail.occupancyLimit)));
    page.pair(tr("rate"), str(formatBandwidth(static_cast<double>(detail.bytes), static_cast<double>(detail.totalNs))));
    const double flops = static_cast<double>(detail.flops) * static_cast<double>(timed);
    page.pair(tr("arithmetic"), str(formatFlops(flops, static_cast<double>(detail.totalNs))));
    const QString place = str(shortPlace(detail.file, detail.line));
    page.pair(tr("line"), detail.placeIsFunction ? tr("%1, where the function begins that launched it first").arg(place) : place,
              Location::sourceLine(detail.file, detail.line));
    if (!detail.nodes.empty()) page.pair(tr("graph"), tr("show its nodes"), Location::of(ObjectKind::Node, detail.nodes.back().location.id));
    page.pair(tr("reason"), str(detail.reason));
    writeSymbols(page, detail.symbols);
    if (!detail.tiers.empty()) page.section(tr("Code"));
    for (const auto& tier : detail.tiers) {
      QStringList words{str(tier.target)};
      if (tier.compileNs > 0) words << tr("compiled in %1").arg(time(tier.compileNs));
      if (tier.codeBytes > 0) words << str(formatBytes(static_cast<double>(tier.codeBytes)));
      if (!tier.cache.empty()) words << tr("cache %1").arg(str(tier.cache));
      words.removeAll(QString());
      page.pair(tier.tier == 0 ? tr("first tier") : tr("optimised tier"), words.join(QStringLiteral(", ")));
    }
  });
  const QString reason = detail.kind == "extern"
                             ? tr("This is a call of a library: %1").arg(str(detail.reason.empty() ? detail.op : detail.reason))
                         : detail.isTuning
                             ? tr("Fusebox launched this form of its own kernel while it chose launch shapes; the code is shown with the kernel that was chosen.")
                         : detail.isOperator ? tr("This is an operator of PyTorch: the recorder saw it run, not what it is made of.")
                         : detail.kind == "eager"
                             ? tr("Code outside compiled graphs launched this kernel of a library; Fusebox did not make it.")
                             : tr("The recording holds none for this kernel.");
  nameSource(detail.isForeign, detail.loopIr);
  fillCode(loopIr_, detail.loopIr, reason);
  fillCode(llvmIr_, detail.tiers.empty() ? std::string() : detail.tiers.back().llvmIr, reason);
  fillCode(assembly_, detail.tiers.empty() ? std::string() : detail.tiers.back().assembly, reason);
  const bool isGpu = detail.device.rfind("cuda", 0) == 0;
  columns_->setCode(detail.loopIr, detail.tiers.empty() ? std::string() : detail.tiers.back().assembly, isGpu ? tr("PTX") : tr("Assembly"));
  columns_->showBinary(isGpu);
  columns_->setBinary(detail.cubin, isGpu ? tr("The recording holds no cubin of this kernel.") : tr("SASS is the machine code of NVIDIA's GPUs; this kernel runs on the processor."));
  lines_ = CodeLines(detail.loopIr, {});
  nodes_->setEmptyText(tr("No nodes recorded for this kernel"), str(detail.reason));
  nodes_->setRows(detail.nodes, detail.allNodes);
  linkCode();
  decisions_->setRows(detail.decisions, detail.allDecisions);
  counters_->setEmptyText(tr("No counters of this kernel"), detail.countersAbout.empty() ? tr("fusebox run --gpu-counters reads hardware counters around every kernel of an NVIDIA GPU, --gpu-sampling samples them while kernels run.")
                                                                                         : str(detail.countersAbout));
  counters_->setRows(detail.counters);
}

}  // namespace fusebox::views
