#include "views/overview/overview_view.h"

#include <QGridLayout>
#include <QScrollArea>
#include <QStyle>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/overview/number_card.h"
#include "views/widgets/absence.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

QString number(int64_t count, const QString& one, const QString& many) {
  return str(formatNumberOf(count, one.toStdString(), many.toStdString()));
}
QString ms(double milliseconds) { return str(formatDuration(milliseconds * 1e6)); }

constexpr int kCardCharacters = 15;  ///< that a card should be wide
constexpr int kSideMargin = 14;
constexpr int kListLines = 8;        ///< that the lists keep, tabs and filter among them, before the page scrolls

}  // namespace

OverviewView::OverviewView(const ViewContext& context) : View(context) {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(kSideMargin, 12, kSideMargin, 8);
  column->setSpacing(10);
  headline_ = new QLabel;
  headline_->setObjectName(QStringLiteral("overview.headline"));
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont big = headline_->font();
  big.setPointSizeF(big.pointSizeF() * 1.3);
  big.setBold(true);
  headline_->setFont(big);
  state_ = new QLabel;
  state_->setObjectName(QStringLiteral("overview.state"));
  state_->setProperty("role", QStringLiteral("muted"));
  auto* top = new QHBoxLayout;
  top->addWidget(headline_);
  top->addStretch(1);
  top->addWidget(state_);
  column->addLayout(top);

  numbersGrid_ = new QGridLayout;
  numbersGrid_->setSpacing(8);
  column->addLayout(numbersGrid_);
  const auto toList = [this](DataTable* OverviewView::*list) { return [this, list] { tabs_->setCurrentWidget(this->*list); }; };
  const auto toView = [this](const char* view) { return [this, view] { bus()->open(Location::ofView(view)); }; };
  frames_ = addNumber(QStringLiteral("frames"), tr("Frames"),
                      tr("Functions that the compiler met, with what resumes them after graph breaks. Compiles: each attempt at one, and each backward pass."), toList(&OverviewView::functions_));
  graphs_ = addNumber(QStringLiteral("graphs"), tr("Graphs"), tr("Graphs that were captured: of every entry, of what resumes after breaks, and of backward passes. Calls: how often compiled code ran."),
                      toView("graph"));
  breaksNumber_ = addNumber(QStringLiteral("breaks"), tr("Graph breaks"), tr("Lines of the program at which compiling met a break, and how many compilations did."), toView("breaks"));
  recompilesNumber_ = addNumber(QStringLiteral("recompiles"), tr("Recompiles"), tr("Compilations because a guard of an earlier entry failed; backward passes count with their function."),
                                toView("recompiles"));
  kernels_ = addNumber(QStringLiteral("kernels"), tr("Generated kernels"),
                       tr("Kernels that were generated, whether they ran or not; fused: those of several operators. Library calls are operators that are called as they are, such as matrix products."), toView("kernels"));
  launches_ = addNumber(QStringLiteral("launches"), tr("Launches"), tr("Runs of kernels and library calls, those that replays of CUDA graphs contain among them."), toView("timeline"));
  compileTime_ = addNumber(QStringLiteral("compile"), tr("Compile time"), tr("Of all compilations, backward passes within those of their functions."), toList(&OverviewView::stages_));
  runTime_ = addNumber(QStringLiteral("run"), tr("Run time"), tr("In calls of compiled code; where a session has no calls: in kernels. Guards: what checking them took."), toView("slowness"));
  cache_ = addNumber(QStringLiteral("cache"), tr("Cache hits"), tr("Graphs that were found compiled in the cache, and those that were not."), toView("graph"));

  arrangeCards();

  verdict_ = new QLabel;
  verdict_->setObjectName(QStringLiteral("overview.verdict"));
  verdict_->setTextFormat(Qt::PlainText);
  verdict_->setWordWrap(true);
  verdict_->hide();
  column->insertWidget(1, verdict_);

  stageBar_ = new StageBar;
  column->addWidget(stageBar_);

  tabs_ = new QTabWidget;
  tabs_->setAccessibleName(tr("Lists of the overview"));
  tabs_->setObjectName(QStringLiteral("overview.tabs"));
  tabs_->setDocumentMode(true);
  tabs_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  tabs_->setMinimumHeight(kListLines * fontMetrics().height());
  column->addWidget(tabs_, 1);
  functions_ = addTable(QStringLiteral("overview.functions"), tr("Functions"), tr("Filter functions"),
                        {{tr("Function")}, {tr("Of"), tr("Code of an installed library or of Python that the program called, or that was put around its functions; else the program's own"), false, true},
                         {tr("Compiled"), tr("Wholly, partly or not at all: what was given to the compiler, with what resumes it after graph breaks")},
                         {tr("Entries"), tr("Compilations that can be called, one for each kind of input"), true}, {tr("Breaks"), tr("Breaks of its graphs: places and reasons"), true},
                         {tr("Recompiles"), tr("Compilations after a guard failed"), true}, {tr("What stands in the way")}, {tr("What to do")}, {tr("Line")}});
  failures_ = addTable(QStringLiteral("overview.failures"), tr("Not compiled"), tr("Filter failures"),
                       {{tr("Function")}, {tr("What")}, {tr("Reason")}, {tr("What to do")}, {tr("Times"), {}, true}, {tr("Line")}});
  hottest_ = addTable(QStringLiteral("overview.kernels"), tr("Hottest kernels"), tr("Filter kernels"),
                      {{tr("Kernel")}, {tr("Kind")}, {tr("Launches"), tr("With those that replays of CUDA graphs contain"), true}, {tr("Total"), {}, true},
                       {tr("Share"), tr("Share of all kernel time"), true}, {tr("Mean"), {}, true}, {tr("Rate"), tr("Bytes moved a second"), true},
                       {tr("Line")}});
  operators_ = addTable(QStringLiteral("overview.operators"), tr("Operators"), tr("Filter operators"),
                        {{tr("Operator")}, {tr("Calls"), {}, true}, {tr("Own"), tr("CPU time without the operators and runtime calls inside of it"), true},
                         {tr("Share"), tr("Share of the own time of all"), true}, {tr("Total"), tr("CPU time with what it called"), true}, {tr("Mean"), tr("Total a call"), true},
                         {tr("Least"), {}, true}, {tr("Most"), {}, true}, {tr("Device"), tr("Kernels and copies that its calls asked for"), true, true},
                         {tr("Device, all"), tr("With those that what it called asked for"), true, true},
                         {tr("Memory"), tr("What it took of the CPU's memory itself, less what it gave back meanwhile; where the profiler recorded memory"), true, true},
                         {tr("Memory, all"), tr("With what it called"), true, true},
                         {tr("Device memory"), tr("What it took of torch's memory on devices itself, less what it gave back meanwhile"), true, true},
                         {tr("Device memory, all"), tr("With what it called"), true, true},
                         {tr("Line"), tr("Function of the program that called it, where the profiler recorded stacks; of several the one with most of its time"), false, true},
                         {tr("Sizes of inputs"), tr("Where the profiler recorded shapes"), false, true}});
  connect(tabs_, &QTabWidget::currentChanged, this, &OverviewView::askOperators);
  breaks_ = addTable(QStringLiteral("overview.breaks"), tr("Graph breaks"), tr("Filter graph breaks"),
                     {{tr("Line")}, {tr("Kind")}, {tr("Reason")}, {tr("What helps")}, {tr("Times"), {}, true}});
  recompiles_ = addTable(QStringLiteral("overview.recompiles"), tr("Recompiles"), tr("Filter recompiles"),
                         {{tr("Frame")}, {tr("Guard that failed")}, {tr("Expected")}, {tr("Found")}, {tr("Outcome")}, {tr("Line")}});
  stages_ = addTable(QStringLiteral("overview.stages"), tr("Stages"), tr("Filter stages and passes"),
                     {{tr("Stage or pass")}, {tr("Phase")}, {tr("Runs"), {}, true}, {tr("Total"), tr("With the stages and passes inside of it"), true},
                      {tr("Own"), tr("Without the stages and passes inside of it"), true}, {tr("Share"), tr("Own time as a share of all compile time"), true}});
  facts_ = addTable(QStringLiteral("overview.facts"), tr("Run and versions"), tr("Filter facts"), {{tr("Fact")}, {tr("Value")}});
  losses_ = addTable(QStringLiteral("overview.losses"), tr("Losses"), tr("Filter losses"),
                     {{tr("What is missing")}, {tr("Times"), {}, true}, {tr("Detail")}});

  auto* scroll = new QScrollArea;  // where there is no room, what is on the page stays as high as its words
  scroll->setObjectName(QStringLiteral("overview.page"));
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);  // it follows the focus of what is on it
  scroll->setWidgetResizable(true);
  scroll->setWidget(page);
  empty_ = new EmptyState(scroll, QStringLiteral("overview"));
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(empty_);
  QAction* picture = addViewAction(QStringLiteral("export"), tr("Export stage times…"), QStringLiteral("export"));
  connect(picture, &QAction::triggered, this, [this] { exportPicture(stageBar_->picture(), QStringLiteral("stages"), this); });
  clear();
}

OverviewView::Number OverviewView::addNumber(const QString& name, const QString& title, const QString& counts, std::function<void()> open) {
  auto* card = new NumberCard(name, title, counts);
  connect(card, &QAbstractButton::clicked, this, std::move(open));
  cards_.push_back(card);
  return {card->value(), card->note()};
}

/// As many in a row as have room for their words, and as many in each row.
void OverviewView::arrangeCards() {
  const int count = static_cast<int>(cards_.size()), least = fontMetrics().averageCharWidth() * kCardCharacters;
  const auto widthOf = [&](int perRow) {
    int sum = 0;
    for (int column = 0; column < perRow; ++column) {
      int widest = least;
      for (int i = column; i < count; i += perRow) widest = std::max(widest, cards_[static_cast<size_t>(i)]->sizeHint().width());
      sum += widest + numbersGrid_->horizontalSpacing();
    }
    return sum;
  };
  int rows = 1;
  while (rows < count && widthOf((count + rows - 1) / rows) > width() - 2 * kSideMargin) ++rows;
  const int perRow = (count + rows - 1) / rows;
  if (perRow == std::exchange(perRow_, perRow)) return;
  for (int i = 0; i < count; ++i) numbersGrid_->addWidget(cards_[static_cast<size_t>(i)], i / perRow, i % perRow);
}

void OverviewView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  arrangeCards();
}

DataTable* OverviewView::addTable(const QString& name, const QString& title, const QString& filter,
                                  std::vector<TableColumn> columns) {
  auto* table = new DataTable(name, filter, std::move(columns));
  tabs_->addTab(table, title);
  table->setProperty("tabTitle", title);
  connect(table, &DataTable::rowSelected, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) bus()->open(row.location);
  });
  return table;
}

void OverviewView::clear() {
  if (session()) empty_->showReading();
  else empty_->showNoSession();
  announced_ = false;
}

void OverviewView::find() {
  if (auto* table = qobject_cast<DataTable*>(tabs_->currentWidget())) table->focusFilter();
}

void OverviewView::load() {
  if (!announced_) {
    session()->ask<OverviewModel>(
        this, "start", [](session::Reader& reader) { return loadOverviewStart(reader); },
        [this](Result<OverviewModel>& result) {
          if (result && !announced_) fillStart(*result);
        });
  }
  session()->ask<OverviewModel>(
      this, "overview", [](session::Reader& reader) { return loadOverview(reader); },
      [this](Result<OverviewModel>& result) {
        if (!result) return empty_->showReason(tr("The overview cannot be read"), str(result.error().text()));
        fill(*result);
        empty_->showContent();
        if (!std::exchange(announced_, true)) emit firstPicture();
      });
}

/// Every event of the recording is read for it: only when somebody looks.
void OverviewView::askOperators() {
  if (!session() || tabs_->currentWidget() != operators_ || !std::exchange(operatorsAreStale_, false)) return;
  operators_->setEmptyText(tr("Adding up…"), {});
  session()->ask<TableRows>(
      this, "operators", [](session::Reader& reader) { return loadOperators(reader); },
      [this](Result<TableRows>& rows) {
        if (!rows) return operators_->setEmptyText(tr("The operators cannot be read"), str(rows.error().text()));
        operators_->setRows(std::move(*rows));
      });
}

void OverviewView::setTabCount(DataTable* table, const QString& title, int count) {
  tabs_->setTabText(tabs_->indexOf(table), count > 0 ? QStringLiteral("%1 (%2)").arg(title).arg(count) : title);
}

void OverviewView::fillStart(const OverviewModel& model) {
  showHead(model);
  verdict_->hide();
  stageBar_->hide();
  for (const Number& number : {frames_, graphs_, breaksNumber_, recompilesNumber_, kernels_, launches_, compileTime_, runTime_, cache_}) {
    number.value->setText(QStringLiteral("…"));
    number.note->setText(QStringLiteral(" "));
  }
  const auto& s = model.summary;
  using query::Holding;
  const std::tuple<Number, int64_t, Holding> known[] = {
      {frames_, s.frames, Holding::Graphs}, {graphs_, s.graphs, Holding::Graphs}, {kernels_, s.kernels, Holding::Kernels}, {launches_, s.launches, Holding::RunTimes}};
  for (const auto& [number, count, from] : known) number.value->setText(count > 0 || model.holdings.has(from) ? str(formatCount(count)) : QStringLiteral("–"));
  for (DataTable* list : {functions_, failures_, hottest_, breaks_, recompiles_, stages_, facts_, losses_}) {
    list->setRows({});
    list->setEmptyText(tr("Reading the session…"), {});
  }
  empty_->showContent();
  announced_ = true;
  emit firstPicture();
}

void OverviewView::showHead(const OverviewModel& model) {
  QString script;
  bool hasFailed = false;
  for (const auto& [key, value] : model.facts) {
    if (key == "script") script = str(value);
    if (key == "exit_code") hasFailed = value != "0";
  }
  if (script.isEmpty() && session()) script = session()->path();
  headline_->setText(str(baseName(script.toStdString())));
  headline_->setToolTip(script);
  state_->setText(model.state == "recording"   ? tr("● recording")
                  : model.state == "importing" ? tr("● being read")
                  : model.state == "abandoned" ? tr("recording ended early: its process is gone")
                  : hasFailed                  ? tr("finished: the program failed")
                                               : tr("finished"));
}

void OverviewView::fill(OverviewModel& model) {
  showHead(model);
  failures_->setEmptyText(tr("Nothing failed"), tr("Everything that the compiler was given was compiled."));
  facts_->setEmptyText(tr("Nothing recorded about the run"), {});
  losses_->setEmptyText(tr("Nothing was lost"), tr("The session holds everything that the recorder saw."));
  if (!model.hasOperators && tabs_->currentWidget() == operators_) tabs_->setCurrentWidget(functions_);  // not the tab that happens to be beside it
  tabs_->setTabVisible(tabs_->indexOf(operators_), model.hasOperators);
  operatorsAreStale_ = true;
  // A profile tells of operators or kernels alone: the list of functions would only say that.
  if (tabs_->currentWidget() == functions_ && model.functions.empty() && !model.holdings.has(query::Holding::Graphs) && (model.hasOperators || !model.kernels.empty()))
    tabs_->setCurrentWidget(model.hasOperators ? operators_ : hottest_);
  askOperators();
  showNumbers(model);
  showVerdict(model.summary.coverage);
  sayNone(model.holdings);
  const auto& s = model.summary;
  std::vector<StageBar::Part> parts{{tr("capture"), s.captureMs, 0}, {tr("AOT autograd"), s.aotMs, 2}, {tr("inductor"), s.inductorMs, 4}, {tr("codegen"), s.codegenMs, 1}};
  // What a backend of the program's own takes, or importing it, is in no stage.
  const double rest = s.totalCompileMs - s.captureMs - s.aotMs - s.inductorMs - s.codegenMs;
  if (rest > s.totalCompileMs * 0.01) parts.push_back({tr("in no stage"), rest, 7});
  stageBar_->setParts(std::move(parts), s.totalCompileMs);
  stageBar_->setVisible(s.totalCompileMs > 0 || model.holdings.has(query::Holding::CompileTimes));
  TableRows facts;
  for (const auto& [key, value] : model.facts) {
    TableRow row;
    row.cells = {textCell(key), textCell(value)};
    facts.push_back(std::move(row));
  }
  const std::pair<DataTable*, TableRows*> tables[] = {{functions_, &model.functions}, {failures_, &model.failures}, {hottest_, &model.kernels}, {breaks_, &model.breaks},
                                                      {recompiles_, &model.recompiles}, {stages_, &model.stages},
                                                      {facts_, &facts}, {losses_, &model.losses}};
  for (const auto& [table, rows] : tables) {
    int count = static_cast<int>(rows->size());
    table->setRows(std::move(*rows));
    if (const auto all = table == breaks_ ? s.graphBreaks.size() : table == recompiles_ ? s.recompiles.size() : 0; all > static_cast<size_t>(count)) {
      table->setCut(static_cast<int64_t>(all));
      count = static_cast<int>(all);
    } else {
      table->setCut(0);
    }
    if (table == failures_ || table == breaks_ || table == recompiles_ || table == losses_) {
      // The list of recompilations has the guards that reached the limit, too, after which nothing was compiled.
      setTabCount(table, table->property("tabTitle").toString(), table == recompiles_ ? static_cast<int>(s.compiledAgain) : count);
    }
  }
}

/// The first thing to know: whether what was given to the compiler runs compiled.
void OverviewView::showVerdict(const query::Coverage& coverage) {
  QString text = str(query::coverageSentence(coverage));
  const bool failed = std::any_of(coverage.uncompiled.begin(), coverage.uncompiled.end(), [](const auto& u) { return !u.recovered; });
  if (failed) text += (text.isEmpty() ? QString() : QStringLiteral(". ")) + tr("What is not compiled runs as plain Python: see the lists below.");
  verdict_->setText(text);
  verdict_->setVisible(!text.isEmpty());
  if (failed != std::exchange(hasFailed_, failed)) {
    verdict_->setProperty("role", failed ? QStringLiteral("error") : QString());
    verdict_->style()->unpolish(verdict_);
    verdict_->style()->polish(verdict_);
  }
}

void OverviewView::sayNone(const query::Holdings& holdings) {
  using query::Holding;
  const bool isOver = holdings.isOver;
  const struct {
    DataTable* table;
    Holding what;
    QString headline, hint;
  } lists[] = {
      {functions_, Holding::Graphs, isOver ? tr("No function was compiled") : tr("No function was compiled yet"),
       isOver ? tr("The program called nothing that torch.compile had been given.") : tr("Functions appear when torch.compile first captures them.")},
      {hottest_, Holding::Launches, isOver ? tr("No kernel ran") : tr("No kernel has run yet"),
       isOver ? tr("The recording has no launch of compiled code.") : tr("Kernels appear with their first launch.")},
      {breaks_, Holding::Breaks, tr("No graph breaks"), tr("Every captured frame became one graph.")},
      {recompiles_, Holding::Recompiles, tr("No recompiles"), tr("No guard of a compiled entry has failed.")},
      {stages_, Holding::CompileTimes, tr("No stage recorded"), tr("Stages appear with the first compilation.")}};
  for (const auto& list : lists) {
    const Absence absence = holdings.has(list.what) ? Absence{list.headline, list.hint} : absenceOf(holdings, list.what);
    list.table->setEmptyText(absence.headline, absence.hint);
  }
}

void OverviewView::showNumbers(const OverviewModel& model) {
  using query::Holding;
  const auto& s = model.summary;
  // A number that the session's source does not tell is unknown, not 0.
  const auto set = [&](const Number& number, Holding from, double amount, const QString& value, const QString& note) {
    const bool known = amount > 0 || model.holdings.has(from);
    number.value->setText(known ? value : QStringLiteral("–"));
    number.value->setToolTip(known ? value : absenceOf(model.holdings, from).headline);
    number.note->setText(note.isEmpty() || !known ? QStringLiteral(" ") : note);
    number.note->setToolTip(known ? note : QString());
  };
  const auto setCount = [&](const Number& number, Holding from, int64_t count, const QString& note) {
    set(number, from, static_cast<double>(count), str(formatCount(count)), note);
  };
  const auto count = [](int64_t n) { return str(formatCount(n)); };
  setCount(frames_, Holding::Graphs, s.frames, number(s.compiles, tr("compile"), tr("compiles")));
  if (s.backwardCompiles > 0) frames_.note->setToolTip(tr("%1 of functions, %2 of backward passes").arg(count(s.compiles - s.backwardCompiles), count(s.backwardCompiles)));
  const bool calls = model.calls > 0 || model.holdings.has(Holding::Calls);
  const auto lost = [&](const char* what) {
    const auto at = std::find_if(s.losses.begin(), s.losses.end(), [what](const auto& loss) { return loss.what == what; });
    return at == s.losses.end() ? QString() : tr("%1 lost").arg(count(at->count));
  };
  QStringList called{calls ? number(model.calls, tr("call"), tr("calls")) : QString(), lost("calls of compiled functions")};
  called.removeAll(QString());
  setCount(graphs_, Holding::Graphs, s.graphs, called.join(QStringLiteral(", ")));
  int64_t breaks = 0;
  for (const auto& b : s.graphBreaks) breaks += b.count;
  // Where nothing was compiled at all no break stands in the way: the card says what does.
  const auto& uncompiled = s.coverage.uncompiled;
  const int64_t failed = std::count_if(uncompiled.begin(), uncompiled.end(), [](const query::Uncompiled& u) { return u.compile != 0 && !u.recovered; });
  setCount(breaksNumber_, Holding::Breaks, static_cast<int64_t>(s.graphBreaks.size()),
           breaks > 0 ? number(breaks, tr("compile stopped"), tr("compiles stopped")) : failed > 0 ? number(failed, tr("compile failed"), tr("compiles failed")) : QString());
  setCount(recompilesNumber_, Holding::Recompiles, s.compiledAgain, s.limitsReached > 0 ? number(s.limitsReached, tr("limit reached"), tr("limits reached")) : QString());
  QStringList kinds;
  if (model.fusedGroups >= 0) kinds << tr("%1 fused").arg(count(model.fusedGroups));
  if (s.externCalls > 0) kinds << tr("beside %1 library calls").arg(count(s.externCalls));
  set(kernels_, Holding::Kernels, static_cast<double>(s.kernels + s.externCalls), count(s.kernels), kinds.join(QStringLiteral(", ")));
  if (s.hasLaunches && s.kernelsRun < s.kernels) kernels_.value->setToolTip(tr("%1, of which %2 ran").arg(count(s.kernels), count(s.kernelsRun)));
  setCount(launches_, Holding::Launches, s.launches, lost("launches"));
  set(compileTime_, Holding::CompileTimes, s.totalCompileMs, ms(s.totalCompileMs), {});
  set(runTime_, Holding::RunTimes, s.runMs, ms(s.runMs), model.guardMs > 0 ? tr("guards %1").arg(ms(model.guardMs)) : QString());
  if (s.runMs <= 0 && !s.importedFormat.empty()) runTime_.value->setText(QStringLiteral("–"));  // nothing compiled is in it
  QStringList unhit{number(s.cacheMisses, tr("miss"), tr("misses"))};
  if (s.cacheBypasses > 0) unhit << number(s.cacheBypasses, tr("bypass"), tr("bypasses"));
  if (s.cacheDisabled > 0) unhit << tr("disabled for %1").arg(number(s.cacheDisabled, tr("graph"), tr("graphs")));
  if (s.cacheDisabled > 0 && s.cacheMisses == 0) unhit.removeFirst();
  set(cache_, Holding::CompileTimes, static_cast<double>(s.cacheHits + s.cacheMisses + s.cacheBypasses + s.cacheDisabled), count(s.cacheHits), unhit.join(QStringLiteral(", ")));
  if (!s.cacheDisabledBy.empty()) cache_.note->setToolTip(tr("%1: %2").arg(cache_.note->text(), str(s.cacheDisabledBy)));
  arrangeCards();
}

}  // namespace fusebox::views
