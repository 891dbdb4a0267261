// The tool bar of the graph view, and what its boxes offer.
#include <QCheckBox>
#include <QCoreApplication>
#include <QProgressBar>
#include <QSet>
#include <QStandardItemModel>
#include <QStyleOptionComboBox>
#include <QToolBar>
#include <algorithm>
#include <set>

#include "profiler/query/graph_part.h"
#include "views/common/units.h"
#include "views/graph/graph_view.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

struct StageName {
  const char* id;
  const char* text;
};
// In the order of the pipeline.
constexpr StageName kStages[] = {{"captured", QT_TRANSLATE_NOOP("Graph", "Captured")},
                                 {"joint", QT_TRANSLATE_NOOP("Graph", "Joint")},
                                 {"forward", QT_TRANSLATE_NOOP("Graph", "Forward")},
                                 {"backward", QT_TRANSLATE_NOOP("Graph", "Backward")},
                                 {"post_grad", QT_TRANSLATE_NOOP("Graph", "Post-grad")},
                                 {"post_fusion", QT_TRANSLATE_NOOP("Graph", "Post-fusion")}};

int stageOrder(const std::string& stage) {
  for (int i = 0; i < static_cast<int>(std::size(kStages)); ++i) {
    if (stage == kStages[i].id) return i;
  }
  return static_cast<int>(std::size(kStages));
}

/// What is chosen is said in full, up to the box's greatest width; what finds no room beside it is in the bar's menu.
void keepWhole(QComboBox* box) {
  QStyleOptionComboBox option;
  option.initFrom(box);
  const QSize words = box->fontMetrics().size(Qt::TextSingleLine, box->currentText());
  box->setMinimumWidth(std::min(box->maximumWidth(), box->style()->sizeFromContents(QStyle::CT_ComboBox, &option, words, box).width()));
}

QComboBox* combo(const QString& name, const QString& tip) {
  auto* box = new QComboBox;
  box->setObjectName(name);
  box->setToolTip(tip);
  box->setAccessibleName(tip);
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  // A name that finds no room in a narrow pane is read in the tooltip.
  QObject::connect(box, &QComboBox::currentTextChanged, box,
                   [box, tip](const QString& text) { box->setToolTip(text.isEmpty() ? tip : tip + QLatin1String(": ") + text); });
  return box;
}

}  // namespace

QString GraphView::stageText(const query::GraphRow& row) {
  const int order = stageOrder(row.stage);
  QString text = order < static_cast<int>(std::size(kStages))
                     ? QCoreApplication::translate("Graph", kStages[order].text)
                     : QString::fromStdString(row.stage);
  const bool plain = row.direction.empty() || row.direction == "inference" || row.direction == row.stage;
  if (!plain) text += QStringLiteral(" · ") + QString::fromStdString(row.direction);
  if (const query::GraphPart part = query::graphPart(row.name); !part.isWhole()) text += GraphView::tr(", part %1 of %2").arg(part.part).arg(part.of);
  return text;
}

void GraphView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  arrangeToolbars();
}

/// One row where all of it has room, else two.
void GraphView::arrangeToolbars() {
  constexpr int kWidestName = 320, kLeastName = 180;
  compile_->setMaximumWidth(std::clamp(width() * 2 / 5, kLeastName, kWidestName));
  keepWhole(compile_);
  const int height = std::max(shown_->sizeHint().height(), tools_->sizeHint().height());
  for (QToolBar* bar : {shown_, tools_}) bar->setMinimumHeight(height);  // their lower edges are one line
  const bool fits = shown_->sizeHint().width() + tools_->sizeHint().width() <= width();
  bars_->setDirection(fits ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

void GraphView::buildToolbars() {
  shown_ = new QToolBar;
  tools_ = new QToolBar;
  bars_ = new QBoxLayout(QBoxLayout::LeftToRight);
  bars_->setContentsMargins(0, 0, 0, 0);
  bars_->setSpacing(0);
  bars_->addWidget(shown_);
  bars_->addWidget(tools_, 1);
  for (QToolBar* one : {shown_, tools_}) {
    one->setObjectName(QStringLiteral("viewToolbar"));
    one->setIconSize(QSize(16, 16));
  }
  QToolBar* bar = shown_;
  compile_ = combo(QStringLiteral("graph.compile"), tr("Compilation"));
  connect(compile_, &QComboBox::currentTextChanged, this, &GraphView::arrangeToolbars);
  stage_ = combo(QStringLiteral("graph.stage"), tr("Stage of the pipeline"));
  stage_->setMinimumContentsLength(14);
  folding_ = combo(QStringLiteral("graph.folding"), tr("Fold nodes into groups by"));
  folding_->addItems({tr("Flat"), tr("By module"), tr("By kernel")});
  colouring_ = combo(QStringLiteral("graph.colouring"), tr("Colour by"));
  colouring_->addItems({tr("Operator"), tr("Kernel"), tr("Time"), tr("Error")});
  colouring_->setItemData(static_cast<int>(GraphColouring::Error), tr("Error of the compiled values against float64, relative to the largest; measured by “Measure errors” of the fusion view"), Qt::ToolTipRole);
  inputs_ = new QCheckBox(tr("Inputs"));
  inputs_->setObjectName(QStringLiteral("graph.inputs"));
  inputs_->setToolTip(tr("Draw inputs, parameters and constants as nodes; otherwise each reader carries their number"));
  search_ = new FilterBox(QStringLiteral("graph.search"), tr("Find nodes by name, operator, shape, module"));
  search_->setMinimumWidth(search_->fontMetrics().averageCharWidth() * 24);
  auto* progress = new QProgressBar;
  progress->setObjectName(QStringLiteral("graph.progress"));
  progress->setRange(0, 0);
  progress->setFixedWidth(60);
  progress->setToolTip(tr("Laying out"));
  bar->addWidget(compile_);
  bar->addWidget(stage_);
  bar->addSeparator();
  bar->addWidget(folding_);
  bar->addWidget(colouring_);
  bar->addWidget(inputs_);
  bar = tools_;
  bar->addWidget(search_);
  busy_ = bar->addWidget(progress);  // a tool bar shows and hides its widgets by their actions
  busy_->setVisible(false);
  const auto act = [&](const QString& name, const QString& text, const QString& icon, auto run) {
    QAction* action = addViewAction(name, text, icon);
    connect(action, &QAction::triggered, this, run);
    return action;
  };
  bar->addAction(act(QStringLiteral("expand"), tr("Open all groups"), QStringLiteral("expand"), [this] {
    std::fill(open_.begin(), open_.end(), 1);
    relayout(false, -1);
  }));
  bar->addAction(act(QStringLiteral("collapse"), tr("Close all groups"), QStringLiteral("collapse"), [this] {
    if (open_.empty()) return;
    std::fill(open_.begin() + 1, open_.end(), 0);
    relayout(false, -1);
  }));
  bar->addAction(act(QStringLiteral("zoomIn"), tr("Zoom in (+)"), QStringLiteral("zoomin"), [this] { canvas_->zoomBy(1.4); }));
  bar->addAction(act(QStringLiteral("zoomOut"), tr("Zoom out (−)"), QStringLiteral("zoomout"), [this] { canvas_->zoomBy(1 / 1.4); }));
  bar->addAction(act(QStringLiteral("fit"), tr("Fit (F)"), QStringLiteral("fit"), [this] { canvas_->fit(); }));
  QAction* compile = act(QStringLiteral("compile"), tr("Compile this graph…"), QStringLiteral("fusion"), [this] {
    if (shownGraph_ != 0) bus()->open(Location{ObjectKind::Graph, shownGraph_, "fusion", {}, 0});
  });
  compile->setToolTip(tr("Compile this graph alone: its fusions, what if they were others, and its errors"));
  bar->addAction(compile);
  act(QStringLiteral("copy"), tr("Copy picture"), QStringLiteral("copy"), [this] { copyPicture(canvas_->picture()); });
  bar->addAction(act(QStringLiteral("export"), tr("Export picture…"), QStringLiteral("export"),
                     [this] { exportPicture(canvas_->picture(), QStringLiteral("graph"), this); }));
}

void GraphView::fillCompiles() {
  const QVariant current = compile_->currentData();
  compile_->clear();
  std::set<int64_t> seen;
  QSet<QString> names;
  auto* items = new QStandardItemModel(compile_);  // filled before the box sees it, which measures itself at each row
  for (const auto& choice : choices_) {
    if (!seen.insert(choice.row.compile).second) continue;
    QString text = choice.row.frame.empty() ? tr("compile %1").arg(choice.row.compile) : str(choice.row.frame);
    if (choice.row.direction == "backward" && choice.row.stage != "backward") text += tr(" (backward)");
    if (!choice.row.file.empty()) text += QStringLiteral("  ") + str(shortPlace(choice.row.file, choice.row.line));
    if (choice.isRest && choice.row.line > 0) text += tr(", from line %1").arg(choice.row.line);
    if (!choice.isOnly) text += tr(", entry %1").arg(choice.entry);
    // Whatever else is equal, two compilations are two.
    if (names.contains(text)) text += tr(", compile %1").arg(choice.row.compile);
    names.insert(text);
    auto* item = new QStandardItem(text);
    item->setData(static_cast<qlonglong>(choice.row.compile), Qt::UserRole);
    item->setToolTip(QStringLiteral("%1 %2").arg(str(choice.row.file), str(choice.row.logId)).trimmed());
    items->appendRow(item);
  }
  constexpr int kManyNames = 500;  // a box as wide as the widest of them would have to measure all
  compile_->setSizeAdjustPolicy(items->rowCount() > kManyNames ? QComboBox::AdjustToMinimumContentsLengthWithIcon : QComboBox::AdjustToContents);
  compile_->setMinimumContentsLength(items->rowCount() > kManyNames ? 40 : 0);
  compile_->setModel(items);
  if (current.isValid()) compile_->setCurrentIndex(std::max(0, compile_->findData(current)));
}

void GraphView::fillStages(const QString& wanted) {
  const int64_t compile = compile_->currentData().toLongLong();
  std::vector<const GraphChoice*> graphs;
  for (const auto& choice : choices_) {
    if (choice.row.compile == compile) graphs.push_back(&choice);
  }
  std::stable_sort(graphs.begin(), graphs.end(), [](const GraphChoice* a, const GraphChoice* b) {
    return stageOrder(a->row.stage) < stageOrder(b->row.stage);
  });
  stage_->clear();
  int select = 0;
  for (const auto* choice : graphs) {
    stage_->addItem(QStringLiteral("%1 (%2)").arg(stageText(choice->row)).arg(choice->row.nodes),
                    static_cast<qlonglong>(choice->row.id));
    const int index = stage_->count() - 1;
    stage_->setItemData(index, str(choice->row.stage), Qt::UserRole + 1);
    if (choice->row.id == wanted.toLongLong() || (select == 0 && str(choice->row.stage) == wanted)) select = index;
  }
  if (stage_->count() > 0) stage_->setCurrentIndex(select);
  // The stage says what is looked at: it is the last to be cut.
  constexpr int kWidestStage = 260;
  stage_->setMinimumWidth(std::min(kWidestStage, stage_->sizeHint().width()));
  arrangeToolbars();
}

}  // namespace fusebox::views
