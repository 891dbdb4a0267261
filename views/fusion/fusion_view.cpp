#include "views/fusion/fusion_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMessageBox>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>
#include <optional>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/fusion/fusion_columns.h"
#include "views/fusion/graph_compiler.h"
#include "views/widgets/absence.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {

FusionView::FusionView(const ViewContext& context) : View(context), compiler_(new GraphCompiler(context.program, this)) {
  auto* bar = new QToolBar;
  buildToolbar(bar);
  const auto table = [](const char* name, const QString& hint, std::vector<TableColumn> columns) {
    auto* made = new DataTable(QStringLiteral("fusion.") + QLatin1String(name), hint, std::move(columns));
    made->setWidestColumn(300);
    return made;
  };
  decisions_ = table("decisions", tr("Filter decisions by name, kind or reason"), decisionColumns());
  groups_ = table("groups", tr("Filter kernels"), groupColumns());
  buffers_ = table("buffers", tr("Filter buffers"), bufferColumns());
  errors_ = table("numerics", tr("Filter nodes"), numericsColumns());
  decisions_->setWidestColumn(460);
  buffers_->setEmptyText(tr("No buffers recorded"), tr("They appear with the memory plan of a compiled graph."));
  tabs_ = new QTabWidget;
  tabs_->setObjectName(QStringLiteral("fusion.tabs"));
  tabs_->setAccessibleName(tr("What is known of the graph"));
  tabs_->setDocumentMode(true);
  tabs_->addTab(decisions_, tr("Decisions"));
  tabs_->addTab(groups_, tr("Kernels"));
  tabs_->addTab(buffers_, tr("Buffers"));
  tabs_->addTab(errors_, tr("Numerics"));
  facts_ = new QLabel;
  facts_->setObjectName(QStringLiteral("fusion.facts"));
  facts_->setContentsMargins(10, 4, 10, 4);
  facts_->setWordWrap(true);
  resultPane_ = buildResult();
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(tabs_);
  split->addWidget(resultPane_);
  split->setSizes({500, 190});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(facts_);
  column->addWidget(split, 1);

  connect(graph_, &QComboBox::activated, this, [this] { choose(graph_->currentData().toLongLong()); });
  connectTables();
  connect(compiler_, &GraphCompiler::runningChanged, this, &FusionView::updateActions);
  connect(compiler_, &GraphCompiler::finished, this, &FusionView::showResult);
  clear();
}

void FusionView::buildToolbar(QToolBar* bar) {
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setIconSize(QSize(16, 16));
  bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  graph_ = new QComboBox;
  graph_->setObjectName(QStringLiteral("fusion.graph"));
  graph_->setAccessibleName(tr("Graph"));
  graph_->setToolTip(tr("Compiled graph"));
  graph_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  graph_->setMinimumContentsLength(22);
  graph_->setMaximumWidth(340);
  bar->addWidget(graph_);
  bar->addSeparator();
  const auto act = [&](const char* name, const QString& text, const char* icon, const QString& tip, auto run) {
    QAction* action = addViewAction(QString::fromLatin1(name), text, QString::fromLatin1(icon));
    action->setToolTip(tip);
    connect(action, &QAction::triggered, this, run);
    bar->addAction(action);
    return action;
  };
  forbid_ = act("forbid", tr("Forbid"), "close", tr("When compiled again, the two of the selected decision stay apart"),
                [this] { wish(false); });
  force_ = act("force", tr("Force"), "fusion",
               tr("When compiled again, the two of the selected decision become one kernel if that is possible, "
                  "whatever it saves"),
               [this] { wish(true); });
  forget_ =
      act("forget", tr("Clear wishes"), "clear", tr("What was forbidden or forced when the graph was recorded holds again, and nothing else"), [this] { forget(); });
  bar->addSeparator();
  sizes_ = new QLineEdit;
  sizes_->setObjectName(QStringLiteral("fusion.sizes"));
  sizes_->setAccessibleName(tr("Sizes to compile this graph for"));
  sizes_->setPlaceholderText(tr("sizes: s0=1:512:x2"));
  sizes_->setClearButtonEnabled(true);
  sizes_->setMaximumWidth(190);
  connect(sizes_, &QLineEdit::returnPressed, this, [this] { withConsent(&FusionView::compileGraph); });
  sizesAction_ = bar->addWidget(sizes_);
  sizesAction_->setVisible(false);
  compile_ =
      act("compile", tr("Compile this graph"), "run",
          tr("Compiles the graph alone, with random inputs of its recorded shapes; with wishes, both ways by turns"),
          [this] { withConsent(&FusionView::compileGraph); });
  numerics_ =
      act("numerics", tr("Measure errors"), "overview",
          tr("Compares every value with the same graph in float64, and looks for what makes the first divergence"),
          [this] { withConsent(&FusionView::measureNumerics); });
  cancel_ = act("cancel", tr("Cancel"), "stop", tr("Ends the compilation"), [this] { compiler_->cancel(); });
  auto* progress = new QProgressBar;
  progress->setObjectName(QStringLiteral("fusion.progress"));
  progress->setAccessibleName(tr("The engine is working"));
  progress->setRange(0, 0);
  progress->setFixedWidth(80);
  busy_ = bar->addWidget(progress);  // a tool bar shows and hides its widgets by their actions
  busy_->setVisible(false);
}

QWidget* FusionView::buildResult() {
  auto* pane = new QWidget;
  result_ = new DataTable(QStringLiteral("fusion.result"), tr("Filter"), resultColumns());
  verdict_ = new QLabel;
  verdict_->setObjectName(QStringLiteral("fusion.verdict"));
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  open_ = new QPushButton(tr("Open its session"));
  open_->setObjectName(QStringLiteral("fusion.open"));
  open_->setAccessibleName(tr("Open the session of the graph that was compiled again"));
  connect(open_, &QPushButton::clicked, this, &FusionView::openResult);
  auto* line = new QHBoxLayout;
  line->setContentsMargins(10, 6, 10, 6);
  line->addWidget(verdict_, 1);
  line->addWidget(open_);
  auto* column = new QVBoxLayout(pane);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(line);
  plot_ = new SizePlot;
  plot_->hide();
  auto* both = new QHBoxLayout;
  both->setContentsMargins(0, 0, 0, 0);
  both->addWidget(result_, 1);
  both->addWidget(plot_, 1);
  column->addLayout(both, 1);
  return pane;
}

void FusionView::connectTables() {
  for (DataTable* table : {decisions_, groups_, buffers_, errors_}) {
    connect(table, &DataTable::rowSelected, this, [this](const TableRow& row) {
      updateActions();
      if (const Location place = placeOf(row); place.id != 0) announce(place);
    });
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (const Location place = placeOf(row); place.id != 0)
        bus()->open(Location{place.kind, place.id, "graph", {}, 0});
    });
  }
  connect(tabs_, &QTabWidget::currentChanged, this, &FusionView::updateActions);
  QAction* csv = addViewAction(QStringLiteral("csv"), tr("Export fusion decisions…"), QStringLiteral("export"));
  connect(csv, &QAction::triggered, decisions_, &DataTable::exportCsv);
}

/// What a row of any of the tables is about.
Location FusionView::placeOf(const TableRow& row) const {
  const auto position = static_cast<size_t>(row.location.id);
  if (row.location.kind != ObjectKind::None) return row.location;
  return position < content_.decisionPlaces.size() ? content_.decisionPlaces[position] : Location();
}

void FusionView::selectDecision(const Location& node) {
  const auto& places = content_.decisionPlaces;
  const auto found =
      std::find_if(places.begin(), places.end(), [&](const Location& place) { return place.sameObject(node); });
  if (found != places.end()) decisions_->select(Location{ObjectKind::None, found - places.begin(), {}, {}, 0});
}

void FusionView::find() { static_cast<DataTable*>(tabs_->currentWidget())->focusFilter(); }

void FusionView::clear() {
  if (compiler_->running()) compiler_->cancel();
  choices_.clear();
  wishes_.clear();
  shown_ = 0;
  asking_ = false;
  pending_ = reveal_ = {};
  graph_->clear();
  resultPane_->hide();
  resultSession_.clear();
  showContent({});
  if (session()) decisions_->setEmptyText(tr("Reading the session…"), {});
}

void FusionView::load() {
  session()->ask<std::vector<FusionChoice>>(
      this, "choices", [](session::Reader& reader) { return loadFusionChoices(reader); },
      [this](Result<std::vector<FusionChoice>>& choices) {
        if (!choices) return decisions_->setEmptyText(tr("The fusions cannot be read"), str(choices.error().text()));
        if (choices->size() != choices_.size()) fillChoices(std::move(*choices));
        if (choices_.empty()) return showContent({});
        if (pending_.kind != ObjectKind::None) return findLocation(std::exchange(pending_, {}), false);
        // A program that still runs adds times and errors to the graph that is shown.
        shown_ ? askContent() : choose(choices_.front().graph);
      });
}

void FusionView::fillChoices(std::vector<FusionChoice> choices) {
  choices_ = std::move(choices);
  graph_->clear();
  for (const FusionChoice& choice : choices_) {
    graph_->addItem(str(choice.label), static_cast<qlonglong>(choice.graph));
    graph_->setItemData(graph_->count() - 1, str(choice.file), Qt::ToolTipRole);
  }
  graph_->setCurrentIndex(std::max(0, graph_->findData(static_cast<qlonglong>(shown_))));
}

void FusionView::follow(const Location& location) {
  if (location.kind == ObjectKind::Graph || location.kind == ObjectKind::Node || location.kind == ObjectKind::Group ||
      location.kind == ObjectKind::Kernel)
    showLocation(location);
}

void FusionView::showLocation(const Location& location) {
  if (session() && location.kind != ObjectKind::None) findLocation(location, true);
}

/// Shows the graph that `location` belongs to and selects it there; `look`: in a list of graphs that is read again where the
/// present one does not have it.
void FusionView::findLocation(const Location& location, bool look) {
  session()->ask<int64_t>(
      this, "where", [location](session::Reader& reader) { return fusionGraphOf(reader, location); },
      [this, location, look](Result<int64_t>& graph) {
        if (!graph || *graph == 0) return;
        if (graph_->findData(static_cast<qlonglong>(*graph)) < 0) {
          if (!look) return;
          pending_ = location;
          return refresh();
        }
        reveal_ = location;
        *graph == shown_ && !asking_ ? reveal() : choose(*graph);
      });
}

void FusionView::reveal() {
  const Location location = std::exchange(reveal_, {});
  if (location.kind == ObjectKind::Group) groups_->select(location);
  if (location.kind == ObjectKind::Node) selectDecision(location);
}

void FusionView::choose(int64_t graph) {
  const int index = graph_->findData(static_cast<qlonglong>(graph));
  if (index < 0 || !session()) return;
  graph_->setCurrentIndex(index);
  if (graph == shown_) return;
  shown_ = graph;
  wishes_.clear();
  showContent({});
  decisions_->setEmptyText(tr("Reading…"), {});
  if (!compiler_->running()) resultPane_->hide();  // it is about another graph
  askContent();
}

void FusionView::askContent() {
  asking_ = true;
  session()->ask<FusionContent>(
      this, "content", [graph = shown_](session::Reader& reader) { return loadFusion(reader, graph); },
      [this](Result<FusionContent>& content) {
        asking_ = false;
        if (!content) {
          showContent({});
          return decisions_->setEmptyText(tr("The fusions cannot be read"), str(content.error().text()));
        }
        if (content_.decisions.empty()) wishes_ = content->recorded;  // shown for the first time
        showContent(std::move(*content));
        reveal();
      });
}

void FusionView::showContent(FusionContent content) {
  const bool hadErrors = !content_.numerics.empty();
  content_ = std::move(content);
  if (shown_ == 0) {
    decisions_->setEmptyText(tr("No compiled graph yet"),
                             tr("Fusion decisions appear when a graph has been compiled."));
    askHoldings([this](const query::Holdings& holdings) {
      const Absence absence = absenceOf(holdings, query::Holding::FusionDecisions);
      if (shown_ != 0) return;
      if (!holdings.has(query::Holding::FusionDecisions)) decisions_->setEmptyText(absence.headline, absence.hint);
      else if (holdings.isOver && !holdings.isCompiled) decisions_->setEmptyText(tr("No graph was compiled"), tr("The program ran no function that torch.compile was given."));
    });
    facts_->setText({});
  } else {
    const bool canTell = content_.holdings.has(query::Holding::FusionDecisions);
    const Absence absence = absenceOf(content_.holdings, query::Holding::FusionDecisions);
    if (content_.groups.empty() && content_.canCompile)
      decisions_->setEmptyText(tr("No fusion was decided"), tr("Compile this graph to see what the engine makes of it."));
    else if (!canTell)
      decisions_->setEmptyText(absence.headline, absence.hint);
    else
      decisions_->setEmptyText(
          tr("No fusion was decided"),
          content_.groups.empty()
              ? tr("This graph was not compiled.")
              : tr("No two kernels of this graph could have been one. Chains of pointwise operators are one operation from the start; "
                   "the tab Kernels shows what each computes."));
    const int64_t parts = content_.allGroups;
    QStringList words{str(formatNumberOf(parts, tr("kernel or call").toStdString(), tr("kernels and calls").toStdString())),
                      content_.withoutTraffic == 0 ? tr("%1 of memory traffic").arg(str(formatBytes(static_cast<double>(content_.traffic))))
                      : content_.withoutTraffic < parts
                          ? tr("%1 of memory traffic in %2 of them, of the others it is not known")
                                .arg(str(formatBytes(static_cast<double>(content_.traffic))), str(formatCount(parts - content_.withoutTraffic)))
                          : tr("memory traffic not known")};
    if (content_.saved > 0)
      words << tr("%1 saved by fusing").arg(str(formatBytes(static_cast<double>(content_.saved))));
    if (content_.groups.empty()) words.clear();
    if (!content_.whyNot.empty()) words << tr("Cannot be compiled from here: %1").arg(str(content_.whyNot));
    facts_->setText(words.join(QStringLiteral(" · ")));
  }
  facts_->setVisible(!facts_->text().isEmpty());
  errors_->setEmptyText(tr("No errors measured"),
                        tr("“Measure errors” compares every value of this graph with float64."));
  groups_->setRows(content_.groups, content_.allGroups);
  buffers_->setRows(content_.buffers, content_.allBuffers);
  errors_->setRows(content_.numerics, content_.allNumerics);
  if (content_.decisions.empty() && !content_.numerics.empty() && !hadErrors) tabs_->setCurrentWidget(errors_);
  wishesChanged();
}

void FusionView::wish(bool force) {
  const TableRow* row = decisions_->current();
  if (!row) return;
  const FusionWish made{force, row->cells[kDecisionA].text, row->cells[kDecisionB].text};
  const bool had = std::find(wishes_.begin(), wishes_.end(), made) != wishes_.end();
  std::erase_if(wishes_, [&](const FusionWish& old) { return old.isAbout(made.a, made.b); });
  if (!had) wishes_.push_back(made);  // a second press takes it back
  wishesChanged();
}

void FusionView::forget() {
  wishes_ = content_.recorded;
  wishesChanged();
}

void FusionView::wishesChanged() {
  const TableRow* current = decisions_->current();
  const std::optional<Location> chosen = current ? std::optional(current->location) : std::nullopt;
  TableRows rows = content_.decisions;
  for (TableRow& row : rows) {
    row.cells[kDecisionRule] = textCell(wishText(wishes_, row.cells[kDecisionA].text, row.cells[kDecisionB].text));
    if (!row.cells[kDecisionRule].text.empty()) row.tone = 2;
  }
  decisions_->setRows(std::move(rows), content_.allDecisions);
  if (chosen) decisions_->select(*chosen);
  updateActions();
}

void FusionView::updateActions() {
  const bool busy = compiler_->running();
  const bool onDecision = tabs_->currentWidget() == decisions_ && decisions_->current() != nullptr;
  forbid_->setEnabled(onDecision);
  force_->setEnabled(onDecision);
  forget_->setEnabled(wishes_ != content_.recorded);
  compile_->setEnabled(content_.canCompile && !busy);
  compile_->setText(replayWords(wishes_, content_.recorded).empty() ? tr("Compile this graph") : tr("Compile and compare"));
  numerics_->setEnabled(content_.canCompile && !busy);
  sizesAction_->setVisible(content_.canCompile && !content_.symbols.empty());
  if (!content_.symbols.empty()) {
    QStringList tip{tr("Sizes that are symbols in this graph: one value (s0=37), several (s0=8,37) or a range (s0=8:64:8, s0=1:512:x2); empty: those at capture")};
    for (const auto& symbol : content_.symbols) tip << str(symbol.legend());
    sizes_->setToolTip(tip.join(QLatin1Char('\n')));
  }
  cancel_->setVisible(busy);
  busy_->setVisible(busy);
}

/// Goes on where the graph needs no file of others, or the person lets PyTorch load it: once a file.
void FusionView::withConsent(void (FusionView::*next)()) {
  const bool isProgram = !content_.program.empty();
  const std::string& file = isProgram ? content_.program : content_.foreign;
  if (file.empty() || trusted_.contains(file)) return (this->*next)();
  if (findChild<QMessageBox*>(QStringLiteral("fusion.consent"))) return;
  const QString what = isProgram ? tr("PyTorch will load %1 to compile it, and that can run code which the file holds. Looking at its graphs, as until now, runs nothing.")
                                 : tr("%1 was recorded elsewhere. To compile its graph runs the operators that the file names, with the constants that it holds. Looking at it, as until now, runs nothing.");
  auto* box = new QMessageBox(QMessageBox::Warning, isProgram ? tr("Load this program?") : tr("Run this graph?"),
                              what.arg(str(file)) + QStringLiteral("\n\n") + tr("Go on only if you trust where it comes from."), QMessageBox::Cancel, this);
  box->setObjectName(QStringLiteral("fusion.consent"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  QPushButton* load = box->addButton(isProgram ? tr("&Load it") : tr("&Run it"), QMessageBox::AcceptRole);
  load->setObjectName(QStringLiteral("fusion.consent.load"));
  box->setDefaultButton(QMessageBox::Cancel);
  connect(load, &QPushButton::clicked, this, [this, next, file] {
    trusted_.insert(file);
    if (content_.program == file || content_.foreign == file) (this->*next)();
  });
  box->open();
}

void FusionView::compileGraph() {
  if (!session() || !content_.canCompile) return;
  isNumericsRun_ = false;
  compiledGraph_ = shown_;
  QStringList words{QStringLiteral("replay"),
                    session()->path(),
                    QStringLiteral("--graph"),
                    QString::number(shown_),
                    QStringLiteral("--json"),
                    QStringLiteral("--session"),
                    GraphCompiler::newSession(session()->path(), QStringLiteral("replay"))};
  for (const std::string& word : replayWords(wishes_, content_.recorded)) words << str(word);
  if (!content_.symbols.empty())
    for (const std::string& word : sizeWords(sizes_->text().toStdString())) words << str(word);
  resultPane_->show();
  verdict_->setText(tr("Compiling…"));
  plot_->hide();
  open_->hide();
  result_->setRows({});
  compiler_->start(words);
}

void FusionView::measureNumerics() {
  if (!session() || !content_.canCompile) return;
  isNumericsRun_ = true;
  compiledGraph_ = shown_;
  resultPane_->show();
  verdict_->setText(tr("Running the graph in eager, compiled and float64…"));
  plot_->hide();
  open_->hide();
  result_->setRows({});
  compiler_->start({QStringLiteral("numerics"), session()->path(), QStringLiteral("--graph"), QString::number(shown_),
                    QStringLiteral("--json"), QStringLiteral("--session"),
                    GraphCompiler::newSession(session()->path(), QStringLiteral("numerics"))});
}

void FusionView::showResult(const QByteArray& report, const QString& complaint) {
  updateActions();
  resultSession_.clear();
  if (compiledGraph_ != shown_) return resultPane_->hide();  // nobody looks at that graph any more
  if (!complaint.isEmpty()) {
    verdict_->setText(complaint);
    return;
  }
  if (isNumericsRun_) {
    auto read = readNumericsReport(report.toStdString());
    verdict_->setText(read ? str(read->verdict) : str(read.error().text()));
    if (read) {
      resultSession_ = str(read->session);
      const auto measured = static_cast<int64_t>(read->rows.size());
      errors_->setRows(std::move(read->rows), measured);
      tabs_->setCurrentWidget(errors_);
    }
  } else {
    auto read = readReplayReport(report.toStdString());
    verdict_->setText(read ? str(read->verdict) : str(read.error().text()));
    if (read) {
      for (const std::string& outcome : read->outcomes)
        verdict_->setText(verdict_->text() + QLatin1Char('\n') + str(outcome));
      result_->setRows(std::move(read->rows));
      resultSession_ = str(read->session);
      plot_->setVisible(read->sizes.size() > 1);
      plot_->setPoints(std::move(read->sizes));
    }
  }
  result_->setVisible(!isNumericsRun_);
  open_->setVisible(!resultSession_.isEmpty());
}

void FusionView::openResult() { bus()->openFile(resultSession_); }

}  // namespace fusebox::views
