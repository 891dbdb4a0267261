#include "views/recompiles/recompiles_view.h"

#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>
#include <array>

#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/advice_page.h"
#include "views/widgets/file_change.h"
#include "views/widgets/side_splitter.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

enum EntryColumn { kEntryNumber, kEntryLogId, kEntryCompile, kEntryCache, kEntryHits, kEntryGuards, kEntryCause };

}  // namespace

RecompilesView::RecompilesView(const ViewContext& context) : View(context) {
  chainTable_ = new DataTable(QStringLiteral("recompiles.frames"), tr("Filter functions"),
                              {{tr("Function")},
                               {tr("Entries"), tr("Compiled variants of the code, each with its own guards"), true},
                               {tr("Again"), tr("Time of compiling after the first entry"), true},
                               {tr("Hits"), tr("Calls that found a fitting entry"), true},
                               {tr("Line")}});
  chainTable_->setStretchColumn(0);
  chainTable_->setEmptyText(tr("Nothing was compiled twice"),
                            tr("A code object appears here when a guard fails and it is compiled again."));
  entryTable_ = new DataTable(
      QStringLiteral("recompiles.entries"), tr("Filter entries"),
      {{tr("#"), tr("Order of compiling"), true},
       {tr("In logs"), tr("As PyTorch's logs and tlparse name this compilation: [function/entry], _attempt behind it from the second on")},
       {tr("Compile"), tr("What this entry cost to make"), true},
       {tr("Cache"), tr("What the cache of compiled graphs had: hit, miss, bypass, or disabled by settings; nothing where it was not asked")},
       {tr("Hits"), tr("Calls that its guards let in; – where not recorded"), true},
       {tr("Guards"), tr("Assumptions checked before it runs"), true},
       {tr("Because"), tr("The guard of the entry used last that failed: what it expected, what it found")}});
  entryTable_->model()->setMonospaceColumns({kEntryCause});
  entryTable_->setEmptyText(tr("No entry"), tr("Choose a function on the left."));
  details_ = new DetailsPanel(QStringLiteral("recompiles.details"));
  details_->setAccessibleName(tr("Why it was compiled again, and what to do"));
  auto* middle = new QSplitter(Qt::Vertical);
  middle->addWidget(entryTable_);
  middle->addWidget(buildGuards());
  middle->setSizes({240, 420});
  auto* split = new SideSplitter(1010);
  split->addWidget(chainTable_);
  split->addWidget(middle);
  split->addWidget(details_);
  split->setStretchFactor(1, 1);
  chainTable_->setMinimumWidth(270);
  details_->setMinimumWidth(330);
  split->setSizes({390, 510, 370});
  empty_ = new EmptyState(split, QStringLiteral("recompiles"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(empty_);

  connect(chainTable_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    const RecompilePlace place = recompilePlace(chains_, row.location);
    if (place.chain >= 0) openChain(place.chain, -1, -1);
    announce(row.location);
  });
  connect(entryTable_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    follow(row.location);
    announce(row.location);
  });
  connect(guardTable_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  for (DataTable* table : {chainTable_, entryTable_, guardTable_}) {
    connect(table, &DataTable::rowActivated, this, [this](const TableRow& row) {
      if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
    });
  }
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(details_, &DetailsPanel::changeWanted, this, [this](const QString& diff) { offerChange(this, diff); });
  clear();
}

QWidget* RecompilesView::buildGuards() {
  guardTable_ = new DataTable(QStringLiteral("recompiles.guards"), tr("Filter guards"),
                              {{tr("Guard"), tr("Where the value is read from, and what is checked of it")},
                               {tr("First"), tr("What the entry chosen on the left above expects")},
                               {tr("Second"), tr("What the entry chosen on the right above expects")},
                               {tr("Found"), tr("What a failing check of the first entry's guard found")},
                               {tr("Line"), tr("The line that made the assumption")}});
  guardTable_->model()->setMonospaceColumns({0, 1, 2, 3});
  guardTable_->setWidestColumn(230);
  guardTable_->setEmptyText(tr("No difference"), tr("Both entries make the same assumptions, or none were recorded. "
                                                    "Untick “Only differences” to see all guards."));
  first_ = new QComboBox;
  first_->setSizeAdjustPolicy(QComboBox::AdjustToContents);  // filled after it was shown first
  first_->setObjectName(QStringLiteral("recompiles.first"));
  first_->setAccessibleName(tr("First entry to compare"));
  second_ = new QComboBox;
  second_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  second_->setObjectName(QStringLiteral("recompiles.second"));
  second_->setAccessibleName(tr("Second entry to compare"));
  differences_ = new QCheckBox(tr("Only differences"));
  differences_->setObjectName(QStringLiteral("recompiles.differences"));
  differences_->setToolTip(tr("Leave out guards that both entries share"));
  differences_->setChecked(true);
  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(6, 4, 6, 4);
  row->addWidget(new QLabel(tr("Guards of")));
  row->addWidget(first_);
  row->addWidget(new QLabel(tr("and")));
  row->addWidget(second_);
  row->addStretch(1);
  row->addWidget(differences_);
  auto* panel = new QWidget;
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(guardTable_, 1);
  for (QComboBox* box : {first_, second_}) connect(box, &QComboBox::activated, this, &RecompilesView::askGuards);
  connect(differences_, &QCheckBox::toggled, this, &RecompilesView::showGuards);
  return panel;
}

bool RecompilesView::canShow(const Location& location) const {
  return location.kind == ObjectKind::Frame || location.kind == ObjectKind::Compile ||
         location.kind == ObjectKind::Failure;
}

void RecompilesView::find() {
  if (guardTable_->isAncestorOf(focusWidget())) return guardTable_->focusFilter();
  if (entryTable_->isAncestorOf(focusWidget())) return entryTable_->focusFilter();
  chainTable_->focusFilter();
}

void RecompilesView::clear() {
  chains_.clear();
  tree_.clear();
  shownFrame_ = shownEntry_ = shownMiss_ = 0;
  wanted_ = {};
  first_->clear();
  second_->clear();
  for (DataTable* table : {chainTable_, entryTable_, guardTable_}) table->setRows({});
  session() ? empty_->showReading() : sayNone({});
  details_->showHint(tr("Select an entry to read why it was made."));
}

void RecompilesView::sayNone(const query::Holdings& holdings) {
  if (!holdings.has(query::Holding::Recompiles)) {
    const Absence absence = absenceOf(holdings, query::Holding::Recompiles);
    return empty_->showReason(absence.headline, absence.hint);
  }
  empty_->showReason(tr("Nothing was compiled twice"),
                     tr("When a guard fails, its code is compiled again. Each such code object appears here with all "
                        "of its entries, the guards that tell them apart, "
                        "and what to do about it."));
}

void RecompilesView::load() {
  using Chains = std::vector<query::RecompileChain>;
  session()->ask<Chains>(
      this, "chains", [](session::Reader& reader) { return query::recompileChains(reader); },
      [this](Result<Chains>& chains) {
        if (!chains) return empty_->showReason(tr("The recompiles cannot be read"), str(chains.error().text()));
        if (chains->empty()) return askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        chains_ = std::move(*chains);
        empty_->showContent();
        chainTable_->setRows(chainRows(chains_));
        if (const Location wanted = std::exchange(wanted_, {}); recompilePlace(chains_, wanted).chain >= 0) return follow(wanted);
        RecompilePlace place = recompilePlace(chains_, Location::of(ObjectKind::Compile, shownEntry_));
        const bool stays = place.chain >= 0;
        if (!stays) place = recompilePlace(chains_, Location::of(ObjectKind::Frame, shownFrame_));
        const std::array compared{first_->currentData(), second_->currentData()};
        openChain(std::max(0, place.chain), place.entry, -1);
        if (!stays) return;
        first_->setCurrentIndex(std::max(0, first_->findData(compared[0])));
        second_->setCurrentIndex(std::max(0, second_->findData(compared[1])));
        askGuards();
      });
}

const query::RecompileChain* RecompilesView::chain() const {
  const RecompilePlace place = recompilePlace(chains_, Location::of(ObjectKind::Frame, shownFrame_));
  return place.chain < 0 ? nullptr : &chains_[static_cast<size_t>(place.chain)];
}

void RecompilesView::showLocation(const Location& location) {
  if (!session()) return;
  if (recompilePlace(chains_, location).chain >= 0) return follow(location);
  wanted_ = location;
  refresh();
}

void RecompilesView::follow(const Location& location) {
  if (chains_.empty()) wanted_ = location;  // until they are read
  const RecompilePlace place = recompilePlace(chains_, location);
  if (place.chain >= 0) openChain(place.chain, place.entry, place.miss);
}

void RecompilesView::openChain(int index, int entry, int miss) {
  const query::RecompileChain& c = chains_[static_cast<size_t>(index)];
  const bool other = shownFrame_ != c.frame;
  shownFrame_ = c.frame;
  chainTable_->select(Location::of(ObjectKind::Frame, c.frame));
  if (other || entryTable_->model()->rowCount() != static_cast<int>(entryRows(c).size())) {
    entryTable_->setRows(entryRows(c));
    for (QComboBox* box : {first_, second_}) {
      box->clear();
      int number = 0;
      for (const auto& e : c.entries) box->addItem(tr("entry %1").arg(number++), static_cast<qlonglong>(e.compile));
    }
  }
  if (miss >= 0 && entry < 0) return openMiss(miss);
  // The last entry: how the code came to be compiled so often.
  openEntry(entry >= 0 ? entry : static_cast<int>(c.entries.size()) - 1);
}

void RecompilesView::openEntry(int index) {
  const query::RecompileChain* c = chain();
  if (!c || index < 0 || index >= static_cast<int>(c->entries.size())) return;
  const auto& entry = c->entries[static_cast<size_t>(index)];
  shownEntry_ = entry.compile;
  entryTable_->select(Location::of(ObjectKind::Compile, entry.compile));
  int miss = -1;
  for (size_t i = 0; i < c->misses.size(); ++i) {
    if (c->misses[i].failure == entry.cause && entry.cause != 0) miss = static_cast<int>(i);
  }
  second_->setCurrentIndex(index);
  if (miss < 0) {
    first_->setCurrentIndex(0);
    shownMiss_ = 0;
    explain(nullptr, {});
    return askGuards();
  }
  openMiss(miss);
}

void RecompilesView::openMiss(int index) {
  const query::RecompileChain* c = chain();
  if (!c || index < 0 || index >= static_cast<int>(c->misses.size())) return;
  const query::GuardMiss& miss = c->misses[static_cast<size_t>(index)];
  if (miss.recompile == 0) entryTable_->select(Location::of(ObjectKind::Failure, miss.failure));
  first_->setCurrentIndex(std::max(0, first_->findData(static_cast<qlonglong>(miss.entry))));
  if (miss.recompile != 0)
    second_->setCurrentIndex(std::max(0, second_->findData(static_cast<qlonglong>(miss.recompile))));
  shownMiss_ = miss.failure;
  explain(&miss, {});
  askGuards();
  using Advices = std::vector<query::Advice>;
  session()->ask<Advices>(
      this, "advice",
      [c = *c, miss](session::Reader& reader) -> Result<Advices> { return query::adviseMiss(reader, c, miss); },
      [this, miss](Result<Advices>& advice) {
        if (advice && shownMiss_ == miss.failure) explain(&miss, std::move(*advice));
      });
}

void RecompilesView::writeShapes(DetailsPanel& page, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  page.section(tr("Symbolic sizes of the new entry"));
  for (const auto& sentence : sentences) page.paragraph(str(sentence));
}

void RecompilesView::explain(const query::GuardMiss* miss, std::vector<query::Advice> advice) {
  const query::RecompileChain* c = chain();
  if (!c) return;
  std::vector<std::string> shapes;
  for (const auto& entry : c->entries) {
    if (entry.compile == shownEntry_) shapes = entry.shapes;
  }
  if (!miss) {
    details_->showPage([name = str(c->name), count = c->entries.size(),
                        place = Location::sourceLine(c->file, static_cast<int>(c->line)),
                        shown = str(shortPlace(c->file, c->line)), shapes](DetailsPanel& page) {
      page.heading(name, tr("first entry"));
      page.pair(tr("entries"), QString::number(count));
      page.pair(tr("line"), shown, place);
      page.paragraph(tr("The first compile of this code; no guard stood in its way. Select a later entry to read which "
                        "guard failed."),
                     true);
      writeShapes(page, shapes);
    });
    return;
  }
  if (miss->recompile == 0) shapes.clear();  // the call at the limit made no entry
  details_->showPage([name = str(c->name), miss = *miss, advice = std::move(advice), shapes](DetailsPanel& page) {
    page.heading(miss.outcome == "limit" ? tr("Limit reached") : tr("Guard failed"), name);
    page.code(str(miss.kind.empty() ? miss.text : miss.kind + (miss.source.empty() ? "" : "  " + miss.source)));
    if (!miss.difference.empty()) page.paragraph(str(miss.difference));
    if (!miss.expected.empty()) {
      page.section(tr("Expected"));
      page.code(str(miss.expected));
    }
    if (!miss.found.empty()) {
      page.section(tr("Found"));
      page.code(str(miss.found));
    }
    writeShapes(page, shapes);
    page.section(tr("Assumed at"));
    if (miss.assumption.empty()) {
      page.pair(tr("line"), str(shortPlace(miss.file, miss.line)),
                Location::sourceLine(miss.file, static_cast<int>(miss.line)));
    } else {
      writeStack(page, miss.assumption);
    }
    if (!miss.call.empty()) {
      page.section(tr("The call that did not fit"));
      writeStack(page, miss.call);
    }
    writeAdvice(page, advice);
  });
}

void RecompilesView::askGuards() {
  if (!session()) return;
  const int64_t a = first_->currentData().toLongLong(), b = second_->currentData().toLongLong();
  using Rows = std::vector<query::GuardTreeRow>;
  session()->ask<Rows>(
      this, "guards", [a, b](session::Reader& reader) { return query::compareGuards(reader, a, b); },
      [this](Result<Rows>& rows) {
        if (rows) tree_ = std::move(*rows);
        showGuards();
      });
}

void RecompilesView::showGuards() {
  // One tree has no differences to be reduced to.
  const bool both = first_->currentIndex() != second_->currentIndex();
  differences_->setEnabled(both);
  guardTable_->setRows(guardTreeRows(tree_, both && differences_->isChecked()));
}

}  // namespace fusebox::views
