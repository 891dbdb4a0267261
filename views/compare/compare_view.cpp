#include "views/compare/compare_view.h"

#include <QAction>
#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QMessageBox>
#include <QPointer>
#include <QPushButton>
#include <QVBoxLayout>
#include <ostream>

#include "profiler/compare/report.h"
#include "profiler/export/output_file.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {


struct SubjectChoice {
  const char* text;
  compare::Subject subject;
};
constexpr SubjectChoice kSubjects[] = {{QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Options"), compare::Subject::Option},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Program"), compare::Subject::Program},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Environment"), compare::Subject::Environment},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Graph breaks"), compare::Subject::Break},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Recompiles"), compare::Subject::Recompile},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Guards"), compare::Subject::Guard},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Symbolic sizes"), compare::Subject::Symbol},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Graphs"), compare::Subject::Graph},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Nodes"), compare::Subject::Node},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Kernels"), compare::Subject::Kernel},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Memory"), compare::Subject::Memory},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Lines"), compare::Subject::Line},
                                       {QT_TRANSLATE_NOOP("fusebox::views::CompareView", "Times"), compare::Subject::Time}};

}  // namespace

CompareView::CompareView(QWidget* parent) : QWidget(parent), job_(new BackgroundJob(this)) {
  connect(job_, &BackgroundJob::failed, this, [this](const QString& why) { showNotice(tr("These sessions cannot be compared"), why); });
  cause_ = new DetailsPanel(QStringLiteral("compare.cause"));
  cause_->setAccessibleName(tr("The first difference that explains the rest"));
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(cause_);
  auto* lists = new QWidget;
  auto* listsColumn = new QVBoxLayout(lists);
  listsColumn->setContentsMargins(0, 0, 0, 0);
  listsColumn->setSpacing(0);
  split->addWidget(lists);
  split->setSizes({150, 560});
  split->setStretchFactor(1, 1);
  column->addWidget(split);

  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(8, 4, 8, 4);
  row->setSpacing(14);
  changed_ = addKind(row, QStringLiteral("changed"), tr("Changed"), tr("Both sessions have it, and it differs beyond noise"), true);
  removed_ = addKind(row, QStringLiteral("removed"), tr("Only in A"), {}, true);
  added_ = addKind(row, QStringLiteral("added"), tr("Only in B"), {}, true);
  same_ = addKind(row, QStringLiteral("same"), tr("The same"), tr("Equal in both; times within noise"), false);
  subject_ = new QComboBox;
  subject_->setObjectName(QStringLiteral("compare.subject"));
  subject_->setAccessibleName(tr("What to show"));
  subject_->addItem(tr("Everything"), -1);
  for (const auto& choice : kSubjects) subject_->addItem(tr(choice.text), static_cast<int>(choice.subject));
  connect(subject_, &QComboBox::currentIndexChanged, this, &CompareView::fill);
  row->addWidget(subject_);
  row->addStretch(1);
  listsColumn->addWidget(bar);
  buildLists();
  listsColumn->addWidget(list_, 1);

  empty_ = new EmptyState(page, QStringLiteral("compare"));
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->setSpacing(0);
  whole->addWidget(empty_, 1);
  whole->addWidget(buildProgress());
  connect(cause_, &DetailsPanel::linkActivated, this, [this](const Location& location) {
    for (QCheckBox* box : {added_, removed_, changed_}) box->setChecked(true);
    subject_->setCurrentIndex(0);
    list_->select(location);
    list_->table()->setFocus();
  });
}

CompareView::~CompareView() { stop(); }

QWidget* CompareView::buildProgress() {
  busy_ = new QWidget;
  busy_->setObjectName(QStringLiteral("viewToolbar"));
  busy_->setAttribute(Qt::WA_StyledBackground);
  stage_ = new QLabel;
  stage_->setObjectName(QStringLiteral("compare.stage"));
  progress_ = new QProgressBar;
  progress_->setObjectName(QStringLiteral("compare.progress"));
  progress_->setAccessibleName(tr("How far the comparison is"));
  progress_->setTextVisible(false);
  auto* cancel = new QPushButton(tr("Cancel"));
  cancel->setObjectName(QStringLiteral("compare.cancel"));
  cancel->setAccessibleName(tr("Cancel comparing"));
  cancel->setShortcut(Qt::Key_Escape);
  cancel->setToolTip(tr("Esc"));
  connect(cancel, &QPushButton::clicked, this, [this] {
    showNotice(tr("Cancelled"), tr("Nothing is compared. “Compare again” in the menu File starts anew."));
    emit cancelled();
  });
  auto* row = new QHBoxLayout(busy_);
  row->setContentsMargins(8, 4, 8, 4);
  row->addWidget(stage_);
  row->addWidget(progress_, 1);
  row->addWidget(cancel);
  busy_->hide();
  return busy_;
}

void CompareView::stop() {
  if (task_) task_->cancel();
  task_.reset();
  job_->cancel();
}

QCheckBox* CompareView::addKind(QHBoxLayout* bar, const QString& name, const QString& text, const QString& tip, bool on) {
  auto* box = new QCheckBox(text);
  box->setObjectName(QStringLiteral("compare.show.") + name);
  box->setToolTip(tip);
  box->setChecked(on);
  connect(box, &QCheckBox::toggled, this, &CompareView::fill);
  bar->addWidget(box);
  return box;
}

void CompareView::buildLists() {
  list_ = new DataTable(QStringLiteral("compare.table"), tr("Filter differences"),
                        {{tr("What")}, {tr("A")}, {tr("What")}, {tr("B")}, {tr("Change"), tr("Of medians; (noise): no more than runs of one program differ by")}, {tr("Why")}});
  list_->setWidestColumn(260);
  list_->setEmptyText(tr("Nothing to show"), tr("Tick another kind of difference above, or “The same”."));
  titleA_ = new QLabel;
  titleA_->setTextFormat(Qt::RichText);
  titleB_ = new QLabel;
  titleB_->setTextFormat(Qt::RichText);
  for (QLabel* title : {titleA_, titleB_}) {
    title->setObjectName(title == titleA_ ? QStringLiteral("compare.titleA") : QStringLiteral("compare.titleB"));
    title->setContentsMargins(8, 4, 8, 4);
    title->setMinimumWidth(1);
    title->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  list_->splitAt(kCompareNameB, titleA_, titleB_);
  list_->table()->setAccessibleName(tr("Session A"));
  list_->second()->setAccessibleName(tr("Session B"));
  connect(list_, &DataTable::rowActivated, this, [this](const TableRow& row) { openRow(row, true); });
  connect(list_, &DataTable::secondActivated, this, [this](const TableRow& row) { openRow(row, false); });
}

void CompareView::compareFiles(const QString& a, const QString& b) {
  pathA_ = a;
  pathB_ = b;
  comparison_ = {};
  showBusy(tr("Comparing…"), tr("%1\n%2").arg(a, b));
  const auto task = std::make_shared<CompareTask>();
  task_ = task;
  task->report = [view = QPointer<CompareView>(this), task = task.get()](CompareTask::Stage stage, double fraction) {
    QMetaObject::invokeMethod(
        qApp,
        [view, task, stage, fraction] {
          if (view && view->task_.get() == task) view->showProgress(stage, fraction);
        },
        Qt::QueuedConnection);
  };
  job_->start<Result<compare::Comparison>>(
      [task, x = a.toStdString(), y = b.toStdString()](const std::atomic<bool>&) { return task->run(x, y); },
      [this](Result<compare::Comparison>& result) { showResult(result); });
}

void CompareView::showProgress(CompareTask::Stage stage, double fraction) {
  using Stage = CompareTask::Stage;
  stage_->setText(stage == Stage::ReadA   ? tr("Reading %1").arg(QFileInfo(pathA_).fileName())
                  : stage == Stage::ReadB ? tr("Reading %1").arg(QFileInfo(pathB_).fileName())
                                          : tr("Comparing"));
  progress_->setRange(0, 100);
  progress_->setValue(static_cast<int>(fraction * 100));
}

void CompareView::showBusy(const QString& headline, const QString& details) {
  stop();
  empty_->showReason(headline, details);
  stage_->setText({});
  progress_->setRange(0, 0);
  busy_->show();
}

void CompareView::showNotice(const QString& headline, const QString& details) {
  stop();
  busy_->hide();
  empty_->showReason(headline, details);
}

void CompareView::showResult(Result<compare::Comparison>& result) {
  task_.reset();
  busy_->hide();
  if (!result) {
    empty_->showReason(tr("The sessions cannot be compared"), str(result.error().text()));
    emit ready();
    return;
  }
  comparison_ = std::move(*result);
  const auto title = [](const QString& letter, const compare::Session& s) {
    QStringList facts{str(s.engine)};
    if (!s.command.empty()) facts << str(s.command);
    return QStringLiteral("<b>%1</b>&nbsp; %2 &nbsp;<span>%3</span>").arg(letter, QFileInfo(str(s.path)).fileName().toHtmlEscaped(), facts.join(QStringLiteral(", ")).toHtmlEscaped());
  };
  titleA_->setText(title(QStringLiteral("A"), comparison_.a));
  titleB_->setText(title(QStringLiteral("B"), comparison_.b));
  titleA_->setToolTip(pathA_);
  titleB_->setToolTip(pathB_);
  const CompareCounts counts = countKinds(comparison_);
  changed_->setText(tr("Changed (%1)").arg(counts.changed));
  removed_->setText(tr("Only in A (%1)").arg(counts.removed));
  added_->setText(tr("Only in B (%1)").arg(counts.added));
  same_->setText(tr("The same (%1)").arg(counts.same));
  if (counts.changed + counts.removed + counts.added == 0) same_->setChecked(true);
  showCause();
  fill();
  empty_->showContent();
  emit ready();
}

void CompareView::showCause() {
  const compare::Cause cause = comparison_.cause;
  const auto limits = comparison_.limits;
  cause_->showPage([cause, limits](DetailsPanel& page) {
    page.heading(str(cause.headline), cause.found ? tr("the first difference that explains the rest") : QString());
    for (size_t i = 1; i < cause.chain.size(); ++i) {
      const auto& step = cause.chain[i];
      page.pair(QStringLiteral("→"), str(step.text), Location::of(ObjectKind::Node, step.entry + 1));
    }
    if (cause.effects > 0) page.paragraph(tr("%1 of %2 differences in what was compiled and run lie behind it.").arg(cause.explained).arg(cause.effects), true);
    for (const auto& limit : limits) page.paragraph(str(limit), true);
  });
}

void CompareView::fill() {
  CompareFilter filter;
  filter.added = added_->isChecked();
  filter.removed = removed_->isChecked();
  filter.changed = changed_->isChecked();
  filter.same = same_->isChecked();
  filter.subject = subject_->currentData().toInt();
  list_->setRows(compareRows(comparison_, filter));
}

const compare::Entry* CompareView::entryOf(const TableRow& row) const {
  const int64_t number = row.location.id - 1;
  return number >= 0 && number < static_cast<int64_t>(comparison_.entries.size()) ? &comparison_.entries[static_cast<size_t>(number)] : nullptr;
}

void CompareView::openRow(const TableRow& row, bool inA) {
  const compare::Entry* entry = entryOf(row);
  if (!entry) return;
  Location place = placeIn(*entry, inA);
  // Where this side has nothing, the other is meant.
  if (place.kind == ObjectKind::None) place = placeIn(*entry, inA = !inA);
  if (place.kind != ObjectKind::None) emit placeWanted(inA, place);
}

void CompareView::openCurrent(bool inA) {
  if (const TableRow* row = list_->current()) openRow(*row, inA);
}

void CompareView::exportPage() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export comparison"), QStringLiteral("comparison.html"), tr("Page (*.html)"));
  if (path.isEmpty()) return;
  const auto written = exporting::writeOutput(path.toStdString(), [&](std::ostream& out) -> Result<int64_t> {
    compare::writeHtml(comparison_, out);
    return 0;
  });
  if (!written) QMessageBox::warning(this, tr("Export comparison"), tr("%1 was not written. Check the folder's permissions and the disk.").arg(path));
}

}  // namespace fusebox::views
