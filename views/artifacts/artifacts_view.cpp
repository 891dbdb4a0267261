#include "views/artifacts/artifacts_view.h"

#include <QFileDialog>
#include <QHeaderView>
#include <QMessageBox>
#include <QSaveFile>
#include <QTabWidget>
#include <QVBoxLayout>

#include "profiler/session/reader.h"
#include "views/widgets/side_splitter.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

Language languageOf(const ArtifactText& artifact) {
  if (artifact.format == "json") return Language::Json;
  const std::string all = artifact.kind + " " + artifact.name;
  for (const char* word : {"graph", "code", "runnable", "dump_file"}) {
    if (all.find(word) != std::string::npos) return Language::Python;
  }
  return Language::Plain;
}

}  // namespace

ArtifactsView::ArtifactsView(const ViewContext& context) : View(context) {
  table_ = new DataTable(QStringLiteral("artifacts.table"), tr("Filter records by compile, kind or name"),
                         {{tr("#"), tr("Order in the file"), true},
                          {tr("Compile"), tr("Compilation that the record belongs to, [frame/compile_attempt] as PyTorch counts them, and its function; – for none")},
                          {tr("Kind"), tr("The record's key in the file")},
                          {tr("Name")},
                          {tr("Size"), tr("Of its payload"), true},
                          {tr("Time"), tr("Since the start of the recording"), true},
                          {tr("Damage"), tr("What is wrong with the record; it is shown as far as it could be read")}});
  table_->setWidestColumn(260);
  head_ = new QLabel;
  head_->setObjectName(QStringLiteral("artifacts.head"));
  head_->setContentsMargins(8, 5, 8, 5);
  head_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  text_ = new CodePane(QStringLiteral("artifacts.text"), Language::Plain);
  text_->setAccessibleName(tr("Text of the record"));
  detail_ = new CodePane(QStringLiteral("artifacts.detail"), Language::Json);
  detail_->setAccessibleName(tr("Fields of the record"));
  findBar_ = new FindBar(QStringLiteral("artifacts.find"),
                         [this](const QString& text, FindStep step) { return text_->findText(text, step); });
  auto* textPage = new QWidget;
  auto* textColumn = new QVBoxLayout(textPage);
  textColumn->setContentsMargins(0, 0, 0, 0);
  textColumn->setSpacing(0);
  textColumn->addWidget(text_, 1);
  textColumn->addWidget(findBar_);
  tabs_ = new QTabWidget;
  tabs_->setObjectName(QStringLiteral("artifacts.tabs"));
  tabs_->setAccessibleName(tr("Parts of the record"));
  tabs_->setDocumentMode(true);
  tabs_->addTab(textPage, tr("Payload"));
  tabs_->addTab(detail_, tr("Fields"));
  auto* right = new QWidget;
  auto* rightColumn = new QVBoxLayout(right);
  rightColumn->setContentsMargins(0, 0, 0, 0);
  rightColumn->setSpacing(0);
  rightColumn->addWidget(head_);
  rightColumn->addWidget(tabs_, 1);
  auto* split = new SideSplitter(760);
  split->addWidget(table_);
  split->addWidget(right);
  split->setStretchFactor(1, 1);
  split->setSizes({560, 640});
  empty_ = new EmptyState(split, QStringLiteral("artifacts"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(empty_);

  // Of too many records those are read that the filter and the order ask for.
  connect(table_, &DataTable::filterChanged, this, [this](const QString& text) {
    request_.filter = text.toStdString();
    if (!isWhole_) loadList();
  });
  connect(table_->table()->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, [this](int column, Qt::SortOrder order) {
    request_.column = column;
    request_.ascending = order == Qt::AscendingOrder;
    if (!isWhole_ && ArtifactRequest::isKnownOrder(column)) loadList();
  });
  connect(table_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    openArtifact(row.location.id);
    announce(row.location);
  });
  connect(table_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (!row.location.file.empty()) bus()->open(Location::sourceLine(row.location.file, row.location.line));
  });
  connect(addViewAction(QStringLiteral("save"), tr("Save record…"), QStringLiteral("export")), &QAction::triggered,
          this, &ArtifactsView::saveText);
  clear();
}

void ArtifactsView::clear() {
  shown_ = 0;
  isWhole_ = true;
  table_->setRest(0);
  table_->setRows({});
  text_->setCode({});
  detail_->setCode({});
  written_ = {};
  head_->clear();
  empty_->showReason(tr("No records of another program"),
                     tr("A TORCH_TRACE log or folder keeps what PyTorch wrote about each compile: graphs, guards, "
                        "generated code, metrics. Open one, and every record is listed here."));
}

void ArtifactsView::load() { loadList(); }

void ArtifactsView::loadList() {
  if (!session()) return;
  session()->ask<ArtifactList>(
      this, "artifacts", [request = request_](session::Reader& reader) { return listArtifacts(reader, request); },
      [this](Result<ArtifactList>& list) {
        if (!list) return empty_->showReason(tr("The records cannot be read"), str(list.error().text()));
        if (list->all == 0) return;
        empty_->showContent();
        isWhole_ = list->isWhole();
        const int64_t first = list->rows.empty() ? 0 : list->rows.front().location.id;
        table_->setRest(isWhole_ ? 0 : list->all);
        table_->setRows(std::move(list->rows));
        if (const int64_t wanted = shown_ != 0 ? shown_ : first; wanted != 0) showLocation(Location::of(ObjectKind::Artifact, wanted));
      });
}

void ArtifactsView::showLocation(const Location& location) {
  if (!session()) return;
  shown_ = location.id;
  if (table_->model()->rowCount() == 0) return refresh();
  table_->select(location);
  openArtifact(location.id);
}

void ArtifactsView::openArtifact(int64_t id) {
  if (!session()) return;
  shown_ = id;
  session()->ask<ArtifactText>(
      this, "text", [id](session::Reader& reader) { return loadArtifact(reader, id); },
      [this](Result<ArtifactText>& artifact) {
        if (artifact) showText(*artifact);
      });
}

void ArtifactsView::showText(const ArtifactText& artifact) {
  QString head = str(artifact.kind);
  if (!artifact.name.empty()) head += QStringLiteral("  ") + str(artifact.name);
  head += QStringLiteral("  ·  ") + str(artifact.compile);
  if (!artifact.damaged.empty()) head += QStringLiteral("  ·  ") + tr("damaged: %1").arg(str(artifact.damaged));
  if (artifact.cut) head += QStringLiteral("  ·  ") + tr("only its beginning is shown");
  head_->setText(head);
  if (artifact == written_) return;  // a session that grows keeps the place
  written_ = artifact;
  text_->setLanguage(languageOf(artifact));
  text_->setCode(str(artifact.text));
  detail_->setCode(str(artifact.detail));
  // A record without a payload is its fields; the next one that has one is shown as before.
  const bool hasPayload = !artifact.text.empty();
  if (!hasPayload && tabs_->isTabEnabled(0)) wasAtPayload_ = tabs_->currentIndex() == 0;
  const bool comesBack = hasPayload && !tabs_->isTabEnabled(0) && wasAtPayload_;
  tabs_->setTabEnabled(0, hasPayload);
  tabs_->setTabToolTip(0, hasPayload ? QString() : tr("This record has fields only"));
  if (comesBack) tabs_->setCurrentIndex(0);
}

void ArtifactsView::find() {
  if (text_->hasFocus()) return findBar_->open();
  table_->focusFilter();
}

void ArtifactsView::saveText() {
  const QByteArray bytes = text_->toPlainText().toUtf8();  // while the dialog asks, another record may be shown
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Save record"), QStringLiteral("record-%1.txt").arg(shown_));
  if (path.isEmpty()) return;
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit()) {
    QMessageBox::warning(this, tr("Save record"), tr("%1 was not written: %2").arg(path, file.errorString()));
  }
}

}  // namespace fusebox::views
