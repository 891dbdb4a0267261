#include "views/query/query_view.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QSplitter>
#include <QToolButton>

#include "views/common/units.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

struct Recipe {
  const char* title;
  const char* sql;
};
constexpr Recipe kRecipes[] = {
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Kernels by time"),
     "SELECT kernel_id, name, launches, total_ns / 1e6 AS total_ms, file, line\nFROM kernels WHERE launches > 0 ORDER BY total_ns DESC"},
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Lines of the program by kernel time"),
     "SELECT file, line, count(*) AS kernels, sum(total_ns) / 1e6 AS total_ms\nFROM kernels WHERE file IS NOT NULL GROUP BY file, line ORDER BY total_ms DESC"},
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Graph breaks by line"),
     "SELECT min(break_id) AS break_id, file, line, kind, reason, count(*) AS times\nFROM graph_breaks GROUP BY file, line, kind, reason ORDER BY times DESC"},
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Guards that fail most"),
     "SELECT guard_id, kind, source, expected, failures, file, line\nFROM guards WHERE failures > 0 ORDER BY failures DESC"},
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Compile time by pass"),
     "SELECT phase, name, count(*) AS runs, sum(dur_ns) / 1e6 AS total_ms\nFROM stages GROUP BY phase, name ORDER BY total_ms DESC"},
    {QT_TRANSLATE_NOOP("fusebox::views::QueryView", "Fusions that were refused, by reason"),
     "SELECT reason, count(*) AS times, sum(score_bytes) AS bytes\nFROM fusion_decisions WHERE fused = 0 GROUP BY reason ORDER BY times DESC"}};

}  // namespace

QueryView::QueryView(const ViewContext& context) : View(context), text_(new QPlainTextEdit), recipes_(new QComboBox), state_(new QLabel) {
  views_ = new DataTable(QStringLiteral("query.views"), tr("Filter views"), {{tr("View"), tr("A row's double click asks for all of it")}, {tr("Columns")}});
  views_->setEmptyText(tr("No session yet"), {});
  views_->model()->setMonospaceColumns({0, 1});
  text_->setObjectName(QStringLiteral("query.text"));
  text_->setAccessibleName(tr("Query"));
  text_->setFont(Theme::monospace());
  text_->setTabChangesFocus(true);
  text_->setPlaceholderText(tr("SELECT … FROM a view on the left; Ctrl+Return runs it. Nothing can be changed."));
  text_->installEventFilter(this);
  recipes_->setObjectName(QStringLiteral("query.recipes"));
  recipes_->setAccessibleName(tr("Examples"));
  recipes_->addItem(tr("Examples"));
  for (const Recipe& recipe : kRecipes) recipes_->addItem(tr(recipe.title), QString::fromLatin1(recipe.sql));
  state_->setObjectName(QStringLiteral("query.state"));
  state_->setProperty("role", QStringLiteral("muted"));
  state_->setWordWrap(true);
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* button = new QToolButton;
  button->setObjectName(QStringLiteral("query.run"));
  button->setText(tr("Run"));
  button->setAccessibleName(tr("Run the query"));
  button->setToolTip(tr("Run the query (Ctrl+Return)"));
  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(6, 4, 6, 4);
  row->addWidget(recipes_);
  row->addWidget(button);
  row->addWidget(state_, 1);
  auto* ask = new QWidget;
  auto* asking = new QVBoxLayout(ask);
  asking->setContentsMargins(0, 0, 0, 0);
  asking->setSpacing(0);
  asking->addWidget(bar);
  asking->addWidget(text_, 1);
  auto* answers = new QWidget;
  answers_ = new QVBoxLayout(answers);
  answers_->setContentsMargins(0, 0, 0, 0);
  auto* right = new QSplitter(Qt::Vertical);
  right->addWidget(ask);
  right->addWidget(answers);
  right->setSizes({180, 420});
  auto* split = new QSplitter;
  split->addWidget(views_);
  split->addWidget(right);
  split->setStretchFactor(1, 1);
  split->setSizes({260, 760});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(split);
  connect(button, &QToolButton::clicked, this, &QueryView::run);
  connect(recipes_, &QComboBox::activated, this, [this](int index) {
    if (index == 0) return;
    text_->setPlainText(recipes_->itemData(index).toString());
    run();
  });
  connect(views_, &DataTable::rowActivated, this, [this](const TableRow& view) {
    text_->setPlainText(QStringLiteral("SELECT * FROM %1 LIMIT 1000").arg(str(view.cells[0].text)));
    run();
  });
}

bool QueryView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == text_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if ((key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) && key->modifiers().testFlag(Qt::ControlModifier)) {
      run();
      return true;
    }
  }
  return View::eventFilter(watched, event);
}

void QueryView::clear() {
  views_->setRows({});
  delete std::exchange(result_, nullptr);
  state_->clear();
}

void QueryView::load() {
  if (!session()) return;
  session()->ask<TableRows>(
      this, "views", [](session::Reader& reader) { return listQueryViews(reader); },
      [this](Result<TableRows>& rows) {
        if (rows) views_->setRows(std::move(*rows));
        else views_->setEmptyText(tr("The views cannot be listed"), str(rows.error().text()));
      });
}

void QueryView::run() {
  const std::string sql = text_->toPlainText().trimmed().toStdString();
  if (!session() || sql.empty()) return;
  state_->setText(tr("Reading…"));
  session()->ask<QueryAnswer>(
      this, "query", [sql](session::Reader& reader) { return runQuery(reader, sql); },
      [this](Result<QueryAnswer>& answer) {
        if (answer) return showAnswer(std::move(*answer));
        state_->setText(str(answer.error().message));
        delete std::exchange(result_, nullptr);
      });
}

void QueryView::showAnswer(QueryAnswer answer) {
  delete std::exchange(result_, nullptr);
  std::vector<TableColumn> columns;
  for (const auto& column : answer.columns) columns.push_back({str(column.name), {}, column.isNumber});
  result_ = new DataTable(QStringLiteral("query.result"), tr("Filter rows"), std::move(columns));
  result_->setEmptyText(tr("No rows"), tr("The query found nothing."));
  connect(result_, &DataTable::rowSelected, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) announce(row.location);
  });
  connect(result_, &DataTable::rowActivated, this, [this](const TableRow& row) {
    if (row.location.kind != ObjectKind::None) bus()->open(row.location);
  });
  answers_->addWidget(result_);
  const auto count = static_cast<int64_t>(answer.rows.size());
  state_->setText(answer.isCut ? tr("the first %1 rows; there are more").arg(str(formatCount(count))) : str(formatNumberOf(count, tr("row").toStdString(), tr("rows").toStdString())));
  result_->setRows(std::move(answer.rows));
}

}  // namespace fusebox::views
