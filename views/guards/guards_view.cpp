#include "views/guards/guards_view.h"

#include <QHeaderView>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "profiler/query/guard_words.h"
#include "profiler/session/reader.h"
#include "views/common/fuzzy_match.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/advice_page.h"
#include "views/widgets/file_change.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"
#include "views/widgets/side_splitter.h"

namespace fusebox::views {
namespace {

constexpr size_t kLongestName = 300;
constexpr size_t kManyFrames = 200;  ///< of more the entries are listed once somebody opens one

enum TreeRole { kFrameRole = Qt::UserRole, kCompileRole };

/// Code that resumes after a break says where.
QString titleOf(const query::RecompileChain& chain) {
  query::RecompileChain named{.parent = chain.parent, .line = chain.line};  // without its entries, which may be thousands
  named.part = chain.part;
  named.name = chain.name.substr(0, kLongestName);
  return str(query::chainName(named));
}

/// What made an entry necessary; empty for the first.
QString causeOf(const query::RecompileChain& chain, const query::ChainEntry& entry) {
  for (const query::GuardMiss& miss : chain.misses) {
    if (entry.cause != 0 && miss.failure == entry.cause)
      return str(query::missWords(miss.text, miss.expected, miss.found));
  }
  return {};
}

}  // namespace

GuardsView::GuardsView(const ViewContext& context) : View(context) {
  QWidget* left = buildTree();
  details_ = new DetailsPanel(QStringLiteral("guards.details"));
  auto* split = new SideSplitter(760);
  split->addWidget(left);
  split->addWidget(buildTables());
  split->addWidget(details_);
  split->setStretchFactor(1, 1);
  split->setSizes({400, 650, 230});
  empty_ = new EmptyState(split, QStringLiteral("guards"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(empty_);

  connectAll();
  clear();
}

QWidget* GuardsView::buildTree() {
  treeFilter_ = new FilterBox(QStringLiteral("guards.frames.filter"), tr("Filter frames"));
  tree_ = new QTreeWidget;
  tree_->setObjectName(QStringLiteral("guards.frames"));
  tree_->setAccessibleName(tr("Frames and their compiled entries"));
  tree_->setHeaderLabels({tr("Frame / entry"), tr("Guards"), tr("Failed"), tr("Compile")});
  tree_->setUniformRowHeights(true);
  tree_->setFrameShape(QFrame::NoFrame);
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setResizeContentsPrecision(60);  // of thousands those that are seen are measured
  tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  for (int c : {1, 2, 3}) {
    tree_->header()->setSectionResizeMode(c, QHeaderView::ResizeToContents);
    tree_->headerItem()->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
  }
  auto* left = new QWidget;
  auto* leftColumn = new QVBoxLayout(left);
  leftColumn->setContentsMargins(0, 0, 0, 0);
  leftColumn->setSpacing(0);
  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* barRow = new QHBoxLayout(bar);
  barRow->setContentsMargins(6, 4, 6, 4);
  barRow->addWidget(treeFilter_);
  leftColumn->addWidget(bar);
  leftColumn->addWidget(tree_, 1);
  left->setMinimumWidth(300);
  return left;
}

QWidget* GuardsView::buildTables() {
  guards_ = new DataTable(QStringLiteral("guards.table"), tr("Filter guards"),
                          {{tr("#"), tr("Order of checking"), true}, {tr("Kind"), tr("What is checked")},
                           {tr("On"), tr("Where the value is read from: L is a local of the frame, G its globals")},
                           {tr("Expected"), tr("What the compiled code was made for")},
                           {tr("Failed"), tr("Times that this guard failed"), true}, {tr("Line")}});
  guards_->model()->setMonospaceColumns({2, 3});
  failures_ = new DataTable(QStringLiteral("guards.failures"), tr("Filter failures"),
                            {{tr("Frame")}, {tr("Guard that failed")}, {tr("Expected")}, {tr("Found")}, {tr("Outcome")}, {tr("Line")}});
  shapes_ = new DataTable(QStringLiteral("guards.shapes"), tr("Filter symbols and relations"),
                          {{tr("Symbolic"), tr("A symbol, what was taken as true of symbols, or a number that became a constant")}, {tr("Kind")},
                           {tr("Read from, or asked by"), tr("Where a call's value of the symbol is read, with the values that it may take; or what needed the relation or the number")},
                           {tr("Cost"), tr("Recompiles because of it, and their time"), true}, {tr("Line"), tr("The line that asked")}});
  shapes_->model()->setMonospaceColumns({0, 2});
  shapes_->setWidestColumn(330);
  shapes_->hide();
  guards_->setWidestColumn(230);
  failures_->setWidestColumn(260);
  failures_->model()->setMonospaceColumns({1, 2, 3});
  auto* tables = new QSplitter(Qt::Vertical);
  tables->addWidget(guards_);
  tables->addWidget(shapes_);
  tables->addWidget(failures_);
  tables->setSizes({340, 200, 200});
  return tables;
}

void GuardsView::connectAll() {
  connect(treeFilter_, &FilterBox::filterChanged, this, &GuardsView::filterTree);
  connect(treeFilter_, &FilterBox::leave, tree_, qOverload<>(&QWidget::setFocus));
  connect(tree_, &QTreeWidget::itemExpanded, this, [this](QTreeWidgetItem* item) {
    const int frame = tree_->indexOfTopLevelItem(item);
    if (frame >= 0 && static_cast<size_t>(frame) < frames_.size()) fillEntries(item, frames_[static_cast<size_t>(frame)]);
  });
  connect(tree_, &QTreeWidget::currentItemChanged, this, &GuardsView::entryChosen);
  connect(tree_, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
    const int64_t frame = item->data(0, kFrameRole).toLongLong();
    for (const auto& f : frames_) {
      if (f.frame == frame && !f.file.empty()) bus()->open(Location::sourceLine(f.file, static_cast<int>(f.line)));
    }
  });
  for (DataTable* table : {guards_, failures_}) {
    connect(table, &DataTable::rowSelected, this, [this, table](const TableRow& row) {
      explain(row, table == failures_);
      announce(row.location);
    });
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
    });
  }
  connect(shapes_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    explainShape(row);
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  connect(shapes_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
  });
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(details_, &DetailsPanel::changeWanted, this, [this](const QString& diff) { offerChange(this, diff); });
}

void GuardsView::follow(const Location& location) {
  if (canShow(location)) showLocation(location);
}

bool GuardsView::canShow(const Location& location) const {
  return location.kind == ObjectKind::Frame || location.kind == ObjectKind::Compile ||
         location.kind == ObjectKind::Guard || location.kind == ObjectKind::Failure;
}

void GuardsView::clear() {
  frames_.clear();
  shownFrame_ = shownCompile_ = 0;
  wanted_ = {};
  tree_->clear();
  guards_->setRows({});
  shapeTable_ = {};
  shapes_->setRows({});
  shapes_->hide();
  failures_->setRows({});
  session() ? empty_->showReading() : sayNone({});
  details_->showHint(tr("Select a guard or a failure to read it in full."));
}

void GuardsView::sayNone(const query::Holdings& holdings) {
  using query::Holding;
  const Absence noGuards = absenceOf(holdings, Holding::Guards), noFailures = absenceOf(holdings, Holding::Recompiles);
  if (!holdings.has(Holding::Guards)) {
    empty_->showReason(noGuards.headline, noGuards.hint);
    guards_->setEmptyText(noGuards.headline, noGuards.hint);
  } else {
    empty_->showReason(holdings.isOver ? tr("No frame was compiled") : tr("No compiled frame yet"),
                       tr("Each compiled function appears here with its entries: one for the first compile, one more for each recompile."));
    guards_->setEmptyText(tr("No guards"), shownCompile_ != 0 ? tr("None was recorded for this entry.") : tr("Choose a compiled entry; its assumptions are listed here."));
  }
  if (!holdings.has(Holding::Recompiles)) failures_->setEmptyText(noFailures.headline, noFailures.hint);
  else failures_->setEmptyText(tr("No guard has failed"), tr("A failing guard recompiles its frame; it is listed here with what was expected and found."));
  if (!frames_.empty()) empty_->showContent();
}

void GuardsView::load() {
  using Chains = std::vector<query::RecompileChain>;
  session()->ask<Chains>(
      this, "frames", [](session::Reader& reader) { return loadGuardedFrames(reader); },
      [this](Result<Chains>& frames) {
        if (!frames) return empty_->showReason(tr("The guards cannot be read"), str(frames.error().text()));
        if (frames->empty()) return askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        frames_ = std::move(*frames);
        empty_->showContent();
        fillTree(frames_);
      });
}

void GuardsView::fillTree(const std::vector<query::RecompileChain>& frames) {
  quiet_ = true;
  // What is open and where it is scrolled to stays when the session has grown.
  std::map<int64_t, bool> wasOpen;
  for (int i = 0; i < tree_->topLevelItemCount(); ++i) {
    const QTreeWidgetItem* item = tree_->topLevelItem(i);
    wasOpen[item->data(0, kFrameRole).toLongLong()] = item->isExpanded();
  }
  const int scrolled = tree_->verticalScrollBar()->value();
  tree_->clear();
  QList<QTreeWidgetItem*> tops;  // filled first: what is in a tree measures its columns at each word
  for (const auto& frame : frames) {
    auto* top = new QTreeWidgetItem;
    tops << top;
    top->setText(0, titleOf(frame));
    top->setData(0, kFrameRole, static_cast<qlonglong>(frame.frame));
    top->setToolTip(0, str(shortPlace(frame.file, frame.line)) + (frame.reason.empty() ? QString() : QStringLiteral("\n") + str(frame.reason)));
    int64_t guards = 0, failures = 0;
    for (const auto& entry : frame.entries) {
      guards += entry.guards;
      failures += entry.failures;
    }
    const auto open = wasOpen.find(frame.frame);
    if (frames.size() <= kManyFrames || (open != wasOpen.end() && open->second)) fillEntries(top, frame);
    else if (!frame.entries.empty()) top->setChildIndicatorPolicy(QTreeWidgetItem::ShowIndicator);
    top->setText(1, str(formatCount(guards)));
    top->setText(2, failures > 0 ? str(formatCount(failures)) : QString());
    if (frame.status != "compiled" && !frame.status.empty()) top->setText(3, str(frame.status));
    for (int c : {1, 2, 3}) top->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
  }
  tree_->addTopLevelItems(tops);
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto& frame = frames[i];
    const auto was = wasOpen.find(frame.frame);
    tops[static_cast<qsizetype>(i)]->setExpanded(was != wasOpen.end() ? was->second : frames.size() <= kManyFrames && (frame.entries.size() > 1 || frames.size() <= 12));
  }
  filterTree(treeFilter_->text());
  QTreeWidgetItem* item = shownFrame_ != 0 ? findItem(shownFrame_, shownCompile_) : nullptr;
  for (size_t i = 0; !item && i < frames.size(); ++i) {
    if (!frames[i].entries.empty()) item = findItem(frames[i].frame, frames[i].entries.front().compile);
  }
  if (!item) item = tree_->topLevelItem(0);
  if (item) {
    tree_->setCurrentItem(item);
    chooseItem(item);
  }
  if (!wasOpen.empty()) tree_->verticalScrollBar()->setValue(scrolled);
  quiet_ = false;
  if (wanted_.kind != ObjectKind::None) showLocation(std::exchange(wanted_, {}));
}

/// Of many frames only when somebody opens one.
void GuardsView::fillEntries(QTreeWidgetItem* top, const query::RecompileChain& frame) {
  if (top->childCount() > 0) return;
  QList<QTreeWidgetItem*> items;
  for (const auto& entry : frame.entries) {
    auto* item = new QTreeWidgetItem;
    item->setText(0, tr("entry %1").arg(items.size()) + (entry.logId.empty() ? QString() : QStringLiteral("  ") + str(entry.logId)));
    item->setText(1, str(formatCount(entry.guards)));
    item->setText(2, entry.failures > 0 ? str(formatCount(entry.failures)) : QString());
    item->setText(3, entry.compileNs > 0 ? str(formatDuration(static_cast<double>(entry.compileNs))) : QString());
    item->setData(0, kFrameRole, static_cast<qlonglong>(frame.frame));
    item->setData(0, kCompileRole, static_cast<qlonglong>(entry.compile));
    item->setToolTip(0, entry.cause == 0 ? str(entry.error) : tr("Compiled because %1").arg(causeOf(frame, entry)));
    if (!entry.error.empty()) item->setForeground(0, themed(Token::Error));
    for (int c : {1, 2, 3}) item->setTextAlignment(c, Qt::AlignRight | Qt::AlignVCenter);
    items << item;
  }
  top->addChildren(items);
}

void GuardsView::filterTree(const QString& text) {
  int shown = 0;
  for (int i = 0; i < tree_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* item = tree_->topLevelItem(i);
    const auto& frame = frames_[static_cast<size_t>(i)];
    const bool match = filterMatches(text.toStdString(), frame.name + " " + frame.file + " " + frame.status);
    item->setHidden(!match);
    shown += match;
  }
  treeFilter_->setHits(shown, tree_->topLevelItemCount());
}

QTreeWidgetItem* GuardsView::findItem(int64_t frame, int64_t compile) {
  for (int i = 0; i < tree_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* top = tree_->topLevelItem(i);
    if (top->data(0, kFrameRole).toLongLong() != frame) continue;
    fillEntries(top, frames_[static_cast<size_t>(i)]);
    for (int c = 0; c < top->childCount(); ++c) {
      if (top->child(c)->data(0, kCompileRole).toLongLong() == compile) return top->child(c);
    }
    return top;
  }
  return nullptr;
}

void GuardsView::entryChosen() {
  const QTreeWidgetItem* item = tree_->currentItem();
  if (!item || quiet_) return;
  chooseItem(item);
  announce(shownCompile_ != 0 ? Location::of(ObjectKind::Compile, shownCompile_) : Location::of(ObjectKind::Frame, shownFrame_));
}

void GuardsView::chooseItem(const QTreeWidgetItem* item) {
  int64_t compile = item->data(0, kCompileRole).toLongLong();
  const int64_t frame = item->data(0, kFrameRole).toLongLong();
  const auto chain = std::find_if(frames_.begin(), frames_.end(), [&](const auto& f) { return f.frame == frame; });
  if (compile == 0 && chain != frames_.end() && !chain->entries.empty()) compile = chain->entries.front().compile;
  openEntry(frame, compile);
}

void GuardsView::openEntry(int64_t frame, int64_t compile) {
  if (!session()) return;
  shownFrame_ = frame;
  shownCompile_ = compile;
  session()->ask<TableRows>(
      this, "guards", [compile](session::Reader& reader) { return loadGuards(reader, compile); },
      [this](Result<TableRows>& rows) {
        if (rows) guards_->setRows(std::move(*rows));
        askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        if (wanted_.kind == ObjectKind::Guard) {
          guards_->select(wanted_);
          if (const TableRow* row = guards_->current()) explain(*row, false);
          wanted_ = {};
        }
      });
  session()->ask<ShapeTable>(
      this, "shapes", [compile](session::Reader& reader) { return loadShapes(reader, compile); },
      [this](Result<ShapeTable>& table) {
        if (!table) return;
        shapeTable_ = std::move(*table);
        shapes_->setVisible(!shapeTable_.rows.empty());
        shapes_->setRows(shapeTable_.rows);
      });
  session()->ask<TableRows>(
      this, "failures", [frame](session::Reader& reader) { return loadFailures(reader, frame); },
      [this, frame](Result<TableRows>& rows) {
        if (rows) failures_->setRows(std::move(*rows));
        if (rows) countFailures(frame);
        if (wanted_.kind == ObjectKind::Failure) {
          failures_->select(wanted_);
          if (const TableRow* row = failures_->current()) explain(*row, true);
          wanted_ = {};
        }
      });
}

/// A list that is a part of what there is says so.
void GuardsView::countFailures(int64_t frame) {
  session()->ask<int64_t>(
      this, "failureCount", [frame](session::Reader& reader) { return views::countFailures(reader, frame); },
      [this](Result<int64_t>& count) { failures_->setCut(count && *count > failures_->model()->rowCount() ? *count : 0); });
}

void GuardsView::showLocation(const Location& location) {
  if (!session()) return;
  if (frames_.empty()) {
    wanted_ = location;
    return refresh();
  }
  session()->ask<GuardPlace>(
      this, "place", [location](session::Reader& reader) { return guardPlace(reader, location); },
      [this, location](Result<GuardPlace>& place) {
        if (!place || place->frame == 0) return;
        wanted_ = location.kind == ObjectKind::Guard || location.kind == ObjectKind::Failure ? location : Location{};
        quiet_ = true;
        if (QTreeWidgetItem* item = findItem(place->frame, place->compile)) tree_->setCurrentItem(item);
        quiet_ = false;
        openEntry(place->frame, place->compile != 0 ? place->compile : shownCompile_);
      });
}

void GuardsView::explainShape(const TableRow& row) {
  const auto advice = shapeTable_.advice.find(shapeKey(row));
  details_->showPage([row, advice = advice == shapeTable_.advice.end() ? std::vector<query::Advice>() : advice->second](DetailsPanel& page) {
    page.heading(str(row.cells[0].text), str(row.cells[1].text));
    page.code(str(row.tooltip));
    if (!row.cells[3].text.empty()) page.pair(tr("cost"), str(row.cells[3].text));
    if (!row.location.file.empty()) page.pair(tr("line"), str(row.cells[4].text), Location::sourceLine(row.location.file, row.location.line));
    writeAdvice(page, advice);
  });
}

void GuardsView::explain(const TableRow& row, bool failure) {
  details_->showPage([row, failure](DetailsPanel& page) {
    const auto cell = [&](size_t index) { return index < row.cells.size() ? str(row.cells[index].text) : QString(); };
    if (failure) {
      page.heading(tr("Guard failed"), cell(4));
      page.pair(tr("frame"), cell(0));
      page.section(tr("Guard"));
      page.code(cell(1));
      page.section(tr("Expected"));
      page.code(cell(2));
      page.section(tr("Found"));
      page.code(cell(3));
    } else {
      page.heading(cell(1), tr("guard %1").arg(cell(0)));
      page.section(tr("On"));
      page.code(cell(2));
      page.section(tr("Expected"));
      page.code(cell(3));
      if (!row.tooltip.empty()) {
        page.section(tr("Check"));
        page.code(str(row.tooltip));
      }
    }
    page.section(tr("Because of"));
    page.pair(tr("line"), cell(5), row.location.file.empty() ? Location{} : Location::sourceLine(row.location.file, row.location.line));
  });
}

}  // namespace fusebox::views
