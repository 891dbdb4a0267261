#include "views/breaks/breaks_view.h"

#include <QSplitter>
#include <QVBoxLayout>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/advice_page.h"
#include "views/widgets/file_change.h"
#include "views/widgets/side_splitter.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

QWidget* titled(const QString& title, CodePane* pane) {
  auto* panel = new QWidget;
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* label = new QLabel(title);
  label->setProperty("role", QStringLiteral("muted"));
  label->setContentsMargins(8, 4, 8, 4);
  label->setBuddy(pane);
  pane->setAccessibleName(title);
  column->addWidget(label);
  column->addWidget(pane, 1);
  return panel;
}

}  // namespace

BreaksView::BreaksView(const ViewContext& context) : View(context) {
  table_ =
      new DataTable(QStringLiteral("breaks.table"), tr("Filter breaks by reason, kind or line"),
                    {{tr("Line")},
                     {tr("Kind"), tr("What kind of thing capture could not follow")},
                     {tr("Reason")},
                     {tr("Compiles"), tr("Compilations that stopped here"), true},
                     {tr("Passed"), tr("How often running code went through the break; – where not recorded"), true},
                     {tr("Between"),
                      tr("Time between the end of the graph before and the start of the one after: the Python in "
                         "between, guards and launching again"),
                      true},
                     {tr("Each"), tr("The same for one passage"), true},
                     {tr("Compiling"), tr("Time of compiling what resumes after the break"), true}});
  table_->setWidestColumn(330);
  table_->setEmptyText(
      tr("No graph break"),
      tr("Where capture stops in the middle of a function, the place and the reason are listed here."));
  details_ = new DetailsPanel(QStringLiteral("breaks.details"));
  details_->setAccessibleName(tr("Why the graph broke, and what to do"));
  before_ = new CodePane(QStringLiteral("breaks.before"), Language::Assembly);
  after_ = new CodePane(QStringLiteral("breaks.after"), Language::Assembly);
  auto* codes = new QSplitter(Qt::Horizontal);
  codes->addWidget(titled(tr("Before: the function's bytecode"), before_));
  codes->addWidget(titled(tr("After: as it runs"), after_));
  codeEmpty_ = new EmptyState(codes, QStringLiteral("breaks.bytecode"));
  tabs_ = new QTabWidget;
  tabs_->setObjectName(QStringLiteral("breaks.tabs"));
  tabs_->setAccessibleName(tr("About the break"));
  tabs_->setDocumentMode(true);
  tabs_->addTab(details_, tr("Explanation"));
  tabs_->addTab(codeEmpty_, tr("Bytecode"));
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(table_);
  split->addWidget(tabs_);
  split->setSizes({260, 440});
  empty_ = new EmptyState(split, QStringLiteral("breaks"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(empty_);

  connect(table_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    openBreak(breakAt(breaks_, row.location));
    announce(row.location);
  });
  connect(table_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
  });
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(details_, &DetailsPanel::changeWanted, this, [this](const QString& diff) { offerChange(this, diff); });
  clear();
}

void BreaksView::clear() {
  breaks_.clear();
  shown_ = 0;
  wanted_ = {};
  table_->setRows({});
  before_->setCode({});
  after_->setCode({});
  session() ? empty_->showReading() : sayNone({});
  codeEmpty_->showReason(
      tr("No bytecode"),
      tr("The instructions around a break are recorded by Fusebox's engine; imported traces do not hold them."));
  details_->showHint(tr("Select a break to read why it happened."));
}

void BreaksView::sayNone(const query::Holdings& holdings) {
  if (!holdings.has(query::Holding::Breaks)) {
    const Absence absence = absenceOf(holdings, query::Holding::Breaks);
    return empty_->showReason(absence.headline, absence.hint);
  }
  if (!holdings.isCompiled)
    return empty_->showReason(tr("No graph break"), holdings.isOver ? tr("Nothing was compiled in this recording.") : tr("Nothing was compiled so far."));
  empty_->showReason(tr("No graph break"),
                     tr("Everything was compiled, and capture followed it so far. Where it stops in the middle of a function, the place, "
                        "the reason, the cost and a remedy are listed here."));
}

void BreaksView::load() {
  using Breaks = std::pair<std::vector<query::BreakSummary>, TableRows>;
  session()->ask<Breaks>(
      this, "breaks",
      [](session::Reader& reader) -> Result<Breaks> {
        auto breaks = query::stopSummaries(reader);
        if (!breaks) return tl::unexpected(breaks.error());
        TableRows rows = breakRows(*breaks);
        return Breaks(std::move(*breaks), std::move(rows));
      },
      [this](Result<Breaks>& loaded) {
        if (!loaded) return empty_->showReason(tr("The graph breaks cannot be read"), str(loaded.error().text()));
        auto& [breaks, rows] = *loaded;
        if (breaks.empty()) return askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        breaks_ = std::move(breaks);
        empty_->showContent();
        table_->setRows(std::move(rows));
        int index = breakAt(breaks_, wanted_.kind != ObjectKind::None ? std::exchange(wanted_, {})
                                                                      : Location::of(ObjectKind::Break, shown_));
        index = std::max(0, index);
        table_->select(Location::of(ObjectKind::Break, breaks_[static_cast<size_t>(index)].id));
        openBreak(index);
      });
}

void BreaksView::follow(const Location& location) {
  if (breaks_.empty() || breakAt(breaks_, location) >= 0) showLocation(location);
}

void BreaksView::showLocation(const Location& location) {
  if (!session()) return;
  const int index = breakAt(breaks_, location);
  if (index < 0) {
    wanted_ = location;
    return refresh();
  }
  table_->select(Location::of(ObjectKind::Break, breaks_[static_cast<size_t>(index)].id));
  openBreak(index);
}

void BreaksView::openBreak(int index) {
  if (index < 0 || !session()) return;
  const query::BreakSummary& summary = breaks_[static_cast<size_t>(index)];
  shown_ = summary.id;
  if (summary.code.empty()) {
    codeEmpty_->showReason(
        tr("No bytecode"),
        tr("The instructions around a break are recorded by Fusebox's engine; this session does not hold them."));
  } else {
    const QString text = str(query::bytecodeText(summary));
    if (text != before_->toPlainText()) {  // a session that grows keeps the place
      before_->setCode(text);
      const qsizetype mark = text.indexOf(QLatin1String(">>"));
      before_->goToLine(static_cast<int>(text.left(mark).count(QLatin1Char('\n'))) + 1);
      after_->setCode(str(query::bytecodeAfterText(summary)));
    }
    codeEmpty_->showContent();
  }
  explain(summary, {});
  using Advices = std::vector<query::Advice>;
  session()->ask<Advices>(
      this, "advice",
      [summary](session::Reader& reader) -> Result<Advices> { return query::adviseBreak(reader, summary); },
      [this, summary](Result<Advices>& advice) {
        if (advice && summary.id == shown_) explain(summary, *advice);
      });
}

void BreaksView::explain(const query::BreakSummary& summary, const std::vector<query::Advice>& advice) {
  details_->showPage([b = summary, advice](DetailsPanel& page) {
    page.heading(str(breakTitle(b)), str(b.function));
    page.paragraph(str(b.reason));
    page.pair(tr("line"), str(shortPlace(b.file, b.line)),
              b.file.empty() ? Location{} : Location::sourceLine(b.file, static_cast<int>(b.line)));
    if (!b.inside.file.empty())
      page.pair(tr("inside %1").arg(str(b.inside.function)), str(shortPlace(b.inside.file, b.inside.line)), Location::sourceLine(b.inside.file, b.inside.line));
    if (!b.opcode.empty())
      page.pair(tr("instruction"), b.offset >= 0 ? tr("%1 at %2").arg(str(b.opcode)).arg(b.offset) : str(b.opcode));
    page.pair(b.isFailure ? tr("attempts") : tr("compiles that stopped here"), QString::number(b.ids.size()));
    if (b.crossings >= 0) page.pair(tr("passed"), b.crossings == 1 ? tr("once") : tr("%1 times").arg(str(formatCount(b.crossings))));
    if (b.measured > 0) {
      page.pair(tr("between the graphs"),
                tr("%1 in all, %2 each")
                    .arg(str(formatDuration(static_cast<double>(b.lostNs))),
                         str(formatDuration(static_cast<double>(b.lostNs) / static_cast<double>(b.measured)))));
    }
    if (b.compileNs > 0) page.pair(tr("compiling what resumes"), str(formatDuration(static_cast<double>(b.compileNs))));
    if (b.stack.size() > 1) {
      page.section(tr("Called by"));
      writeStack(page, b.stack);
    }
    writeAdvice(page, advice);
    if (b.isFailure && b.error != b.reason) {
      page.section(tr("The whole message"));
      page.code(str(b.error));
    }
  });
}

}  // namespace fusebox::views
