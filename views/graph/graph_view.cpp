#include "views/graph/graph_view.h"

#include <QCheckBox>
#include <QLabel>
#include <QProgressBar>
#include <QSplitter>
#include <QToolBar>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "profiler/session/reader.h"
#include "views/common/fuzzy_match.h"
#include "views/common/units.h"
#include "views/widgets/absence.h"
#include "views/widgets/advice_page.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"
#include "views/widgets/side_splitter.h"

namespace fusebox::views {

GraphView::GraphView(const ViewContext& context)
    : View(context), canvas_(new GraphCanvas), layoutJob_(new BackgroundJob(this)), searchJob_(new BackgroundJob(this)) {
  buildToolbars();
  details_ = new DetailsPanel(QStringLiteral("graph.details"));
  empty_ = new EmptyState(canvas_, QStringLiteral("graph"));
  auto* split = new SideSplitter(760);
  split->addWidget(empty_);
  split->addWidget(details_);
  split->setStretchFactor(0, 1);
  split->setSizes({820, 300});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(bars_);
  column->addWidget(split, 1);

  connect(compile_, &QComboBox::activated, this, [this] {
    fillStages(stage_->currentData(Qt::UserRole + 1).toString());
    openGraph(stage_->currentData().toLongLong(), 0);
  });
  connect(stage_, &QComboBox::activated, this, [this] { openGraph(stage_->currentData().toLongLong(), 0); });
  const auto optionChosen = [this] {
    optionsChosen_ = true;
    rebuild(false);
  };
  connect(folding_, &QComboBox::activated, this, optionChosen);
  connect(inputs_, &QCheckBox::clicked, this, optionChosen);
  connect(colouring_, &QComboBox::currentIndexChanged, this,
          [this](int index) { canvas_->setColouring(static_cast<GraphColouring>(index)); });
  connect(colouring_, &QComboBox::activated, this, [this] { coloursChosen_ = true; });
  connect(search_, &FilterBox::filterChanged, this, &GraphView::search);
  connect(search_, &FilterBox::leave, this, [this] { canvas_->setFocus(); });
  connect(canvas_, &GraphCanvas::nodeSelected, this, &GraphView::nodeChosen);
  connect(canvas_, &GraphCanvas::nodeActivated, this, [this](int drawn) {
    const auto& node = picture_->node(drawn);
    if (!node.file.empty()) bus()->open(Location::sourceLine(node.file, static_cast<int>(node.line)));
  });
  connect(canvas_, &GraphCanvas::groupSelected, this, &GraphView::showGroup);
  connect(canvas_, &GraphCanvas::groupToggled, this, &GraphView::toggleGroup);
  connect(canvas_, &GraphCanvas::nothingSelected, this, &GraphView::showGraphSummary);
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(layoutJob_, &BackgroundJob::failed, this, [this](const QString& why) {
    rebuilding_ = false;
    fail({ErrorCode::Internal, why.toStdString(), {}});
  });
  connect(layoutJob_, &BackgroundJob::runningChanged, busy_, &QAction::setVisible);
  clear();
}

void GraphView::follow(const Location& location) {
  if (location.kind == ObjectKind::Kernel || location.kind == ObjectKind::Group || location.kind == ObjectKind::Node) {
    showLocation(location);
  } else if (!location.file.empty() && location.line > 0) {
    markLine(location.file, location.line);
  }
}

void GraphView::clear() {
  layoutJob_->cancel();
  searchJob_->cancel();
  busy_->setVisible(false);
  choices_.clear();
  data_ = std::make_shared<query::GraphData>();
  shownGraph_ = askedGraph_ = pendingNode_ = detailsNode_ = 0;
  pendingLocation_ = {};
  optionsChosen_ = rebuilding_ = false;
  picture_.reset();
  compile_->clear();
  stage_->clear();
  canvas_->setScene(nullptr, nullptr, false);
  session() ? empty_->showReading() : sayNone({});
  details_->showHint(tr("Select a node to see its operator, arguments, shapes, origins and line."));
}

void GraphView::fail(const Error& error) {
  shownGraph_ = askedGraph_ = 0;  // whatever is chosen next is read
  empty_->showReason(tr("The graph cannot be shown"), str(error.text()));
}

void GraphView::sayNone(const query::Holdings& holdings) {
  if (!holdings.has(query::Holding::Graphs)) {
    const Absence absence = absenceOf(holdings, query::Holding::Graphs);
    return empty_->showReason(absence.headline, absence.hint);
  }
  if (holdings.isOver) return empty_->showReason(tr("No graph was captured"), tr("The program ran no function that torch.compile was given."));
  empty_->showReason(tr("No graph yet"),
                     tr("Graphs appear when a compiled function runs for the first time: captured, then after each stage."));
}

void GraphView::load() {
  session()->ask<std::vector<GraphChoice>>(
      this, "graphs", [](session::Reader& reader) { return loadGraphChoices(reader); },
      [this](Result<std::vector<GraphChoice>>& result) {
        if (!result) return fail(result.error());
        if (result->empty()) return askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        if (result->size() == choices_.size()) return;  // nothing new
        choices_ = std::move(*result);
        fillCompiles();
        if (pendingLocation_.kind != ObjectKind::None) {
          showLocation(std::exchange(pendingLocation_, {}));
        } else if (askedGraph_ == 0) {
          fillStages(QStringLiteral("post_fusion"));
          openGraph(stage_->currentData().toLongLong(), 0);
        }
      });
}

/// Shows `graph`, and selects `node` of it once it is laid out; 0: none.
void GraphView::openGraph(int64_t graph, int64_t node) {
  pendingNode_ = node;
  if (!session()) return;
  if (graph == askedGraph_) {
    if (graph == shownGraph_ && !layoutJob_->running()) revealPending();
    return;
  }
  askedGraph_ = graph;
  busy_->setVisible(true);
  session()->ask<query::GraphData>(
      this, "graph", [graph](session::Reader& reader) { return query::loadGraph(reader, graph); },
      [this, graph](Result<query::GraphData>& result) {
        busy_->setVisible(layoutJob_->running());
        if (!result) return fail(result.error());
        shownGraph_ = graph;
        optionsChosen_ = false;
        showGraph(std::move(*result));
      });
}

void GraphView::showGraph(query::GraphData data) {
  data_ = std::make_shared<const query::GraphData>(std::move(data));
  const GraphOptions options = defaultOptions(*data_);
  inputs_->setChecked(options.showInputs);
  folding_->setCurrentIndex(static_cast<int>(options.folding));
  // After fusion the question is what became one kernel.
  const bool byKernel = options.folding == GraphFolding::Fusion;
  const bool isMeasured = std::any_of(data_->nodes.begin(), data_->nodes.end(), [](const query::GraphNode& n) { return n.error >= 0; });
  const GraphColouring suited = isMeasured ? GraphColouring::Error : byKernel ? GraphColouring::Fusion : GraphColouring::Operator;
  if (!coloursChosen_) colouring_->setCurrentIndex(static_cast<int>(suited));
  showGraphSummary();
  rebuild(false);
}

/// Picture and layout anew, on another thread.
void GraphView::rebuild(bool keepView) {
  if (data_->nodes.empty()) {
    layoutJob_->cancel();
    picture_.reset();
    canvas_->setScene(nullptr, nullptr, false);
    empty_->showReason(tr("This graph has no nodes"));
    return;
  }
  rebuilding_ = true;
  const GraphOptions options{static_cast<GraphFolding>(folding_->currentIndex()), inputs_->isChecked()};
  struct Made {
    std::shared_ptr<const GraphPicture> picture;
    std::shared_ptr<const CompoundScene> scene;
    std::vector<char> open;
  };
  layoutJob_->start<Made>(
      [data = data_, options](const std::atomic<bool>& cancel) {
        Made made;
        made.picture = makePicture(*data, options);  // copied here: large graphs would hold up the window
        made.open = defaultExpansion(made.picture->tree);
        CompoundOptions layout;
        layout.layered.cancel = &cancel;
        made.scene = std::make_shared<CompoundScene>(layoutCompound(made.picture->tree, made.open, made.picture->layout, layout));
        return made;
      },
      [this, keepView](Made& made) {
        rebuilding_ = false;
        picture_ = made.picture;
        open_ = std::move(made.open);
        empty_->showContent();
        canvas_->setScene(picture_, made.scene, keepView);
        afterLayout();
      });
}

/// Brings back what a new scene lacks: the hits of the search and the selected node.
void GraphView::afterLayout() {
  if (!search_->text().isEmpty()) search(search_->text());
  if (const int drawn = picture_->drawnOf(detailsNode_); drawn >= 0) canvas_->selectNode(drawn, false);
  revealPending();
}

/// Selects the node that somebody asked for; its graph is laid out.
void GraphView::revealPending() {
  if (picture_ && picture_->byId.count(pendingNode_) > 0) revealNode(std::exchange(pendingNode_, 0));
}

void GraphView::relayout(bool keepView, int anchorGroup) {
  if (!picture_ || rebuilding_) return;  // what is drawn is about to be replaced
  using Scene = std::shared_ptr<const CompoundScene>;
  layoutJob_->start<Scene>(
      [picture = picture_, open = open_](const std::atomic<bool>& cancel) -> Scene {
        CompoundOptions layout;
        layout.layered.cancel = &cancel;
        return std::make_shared<CompoundScene>(layoutCompound(picture->tree, open, picture->layout, layout));
      },
      [this, keepView, anchorGroup](Scene& scene) {
        canvas_->setScene(picture_, scene, keepView, anchorGroup);
        afterLayout();
      });
}

void GraphView::toggleGroup(int group) {
  if (rebuilding_) return;
  open_[static_cast<size_t>(group)] = !open_[static_cast<size_t>(group)];
  relayout(true, group);
}

void GraphView::search(const QString& text) {
  if (!picture_) return searchJob_->cancel();
  using Hits = std::vector<char>;
  searchJob_->start<Hits>(
      [picture = picture_, words = text.toStdString()](const std::atomic<bool>& cancel) {
        Hits hits(words.empty() ? 0 : picture->drawn.size());
        for (size_t n = 0; n < hits.size() && !cancel; ++n) {
          const auto& node = picture->node(static_cast<int>(n));
          hits[n] = filterMatches(words, node.name + " " + node.op + " " + node.dtype + node.shape + " " + node.modulePath + " " + node.file);
        }
        return hits;
      },
      [this, picture = picture_](Hits& hits) {
        if (picture != picture_) return;  // another is drawn, and searched when it is
        search_->setHits(static_cast<int>(std::count(hits.begin(), hits.end(), 1)), static_cast<int>(picture->drawn.size()));
        canvas_->setHits(std::move(hits));
      });
}

/// The nodes that a line of the program made, marked as hits of a search are.
void GraphView::markLine(const std::string& file, int line) {
  if (!picture_ || !search_->text().isEmpty()) return;
  std::vector<char> hits(picture_->drawn.size());
  for (size_t n = 0; n < hits.size(); ++n) {
    const auto& node = picture_->node(static_cast<int>(n));
    hits[n] = node.line == line && node.file == file;
  }
  if (std::find(hits.begin(), hits.end(), 1) == hits.end()) hits.clear();  // nothing to stand out
  canvas_->setHits(std::move(hits));
}

bool GraphView::canShow(const Location& location) const {
  return location.kind == ObjectKind::Graph || location.kind == ObjectKind::Node || location.kind == ObjectKind::Group;
}

void GraphView::showLocation(const Location& location) {
  if (!session() || location.kind == ObjectKind::None) return;
  if (choices_.empty()) {
    pendingLocation_ = location;
    refresh();
    return;
  }
  // A kernel that is already in the shown graph (through origins) stays in it.
  session()->ask<GraphTarget>(
      this, "target", [location](session::Reader& reader) { return graphTarget(reader, location); },
      [this](Result<GraphTarget>& target) {
        if (!target || target->graph == 0) return;
        for (const auto& choice : choices_) {
          if (choice.row.id != target->graph) continue;
          compile_->setCurrentIndex(compile_->findData(static_cast<qlonglong>(choice.row.compile)));
          fillStages(QString::number(target->graph));
          openGraph(target->graph, target->node);
          return;
        }
      });
}

/// Opens the groups around a node, then selects it.
void GraphView::revealNode(int64_t node) {
  if (!picture_) return;
  const int drawn = picture_->drawnOf(node);
  showNode(node);
  if (drawn < 0) return;
  bool folded = false;
  for (int g = picture_->tree.groupOfNode[static_cast<size_t>(drawn)]; g > 0; g = picture_->tree.groups[static_cast<size_t>(g)].parent) {
    folded = folded || !open_[static_cast<size_t>(g)];
    open_[static_cast<size_t>(g)] = 1;
  }
  if (folded) {
    pendingNode_ = node;
    relayout(true, -1);
    return;
  }
  canvas_->selectNode(drawn, true);
}

void GraphView::nodeChosen(int drawn) {
  const auto& node = picture_->node(drawn);
  Location location = Location::of(ObjectKind::Node, node.id);
  location.file = node.file;
  location.line = static_cast<int>(node.line);
  announce(location);
  showNode(node.id);
}

void GraphView::showNode(int64_t id) {
  const auto found = picture_->byId.find(id);
  if (found == picture_->byId.end() || !session()) return;
  const query::GraphNode node = picture_->data.nodes[static_cast<size_t>(found->second)];
  std::vector<NodeFact> inputs, users;
  for (const auto& edge : picture_->data.edges) {
    if (edge.from != id && edge.to != id) continue;
    const int64_t other = edge.from == id ? edge.to : edge.from;
    const auto at = picture_->byId.find(other);
    if (at == picture_->byId.end()) continue;
    const auto& n = picture_->data.nodes[static_cast<size_t>(at->second)];
    (edge.from == id ? users : inputs)
        .push_back({std::to_string(edge.argument), n.name + (n.op.empty() ? "" : "  " + shortOp(n.op)),
                    Location::of(ObjectKind::Node, other)});
  }
  query::GraphGroup group;
  if (const auto g = picture_->groupById.find(node.group); g != picture_->groupById.end()) {
    group = picture_->data.groups[static_cast<size_t>(g->second)];
  }
  std::vector<query::ShapeSymbol> symbols;
  for (const auto* symbol : query::symbolsNamedIn(picture_->data.symbols, node.shape + " " + node.stride + " " + node.args)) symbols.push_back(*symbol);
  const auto write = [node, inputs, users, group, symbols](DetailsPanel& page, const NodeRelations& relations) {
    page.heading(str(node.name), tr("%1 node").arg(str(node.kind)));
    page.pair(tr("operator"), str(node.op));
    page.pair(tr("type"), str(node.dtype));
    page.pair(tr("shape"), str(node.shape));
    page.pair(tr("stride"), str(node.stride));
    page.pair(tr("device"), str(node.device));
    page.pair(tr("bytes"), node.bytes > 0 ? str(formatBytes(static_cast<double>(node.bytes))) : QString());
    page.pair(tr("module"), str(node.modulePath));
    page.pair(tr("line"), str(shortPlace(node.file, node.line)), Location::sourceLine(node.file, static_cast<int>(node.line)));
    page.pair(tr("function"), str(node.function));
    page.pair(tr("error"), node.error >= 0 ? tr("%1 of the largest value%2").arg(node.error, 0, 'e', 2).arg(node.isDivergent ? tr(", divergent") : QString()) : QString());
    page.pair(tr("time"), node.timeNs > 0 ? str(formatDuration(static_cast<double>(node.timeNs))) : QString());
    writeSymbols(page, symbols);
    if (group.id != 0) {
      page.section(tr("Kernel"));
      page.pair(tr("kernel"), str(group.name), Location::of(ObjectKind::Kernel, group.kernel));
      page.pair(tr("kind"), str(group.kind));
      page.pair(tr("launches"), group.launches > 0 ? str(formatCount(group.launches)) : QString());
      page.pair(tr("total"), group.timeNs > 0 ? str(formatDuration(static_cast<double>(group.timeNs))) : QString());
      page.pair(tr("reason"), str(group.reason));
    }
    if (!node.args.empty()) {
      page.section(tr("Arguments"));
      page.code(str(node.args));
    }
    const auto list = [&](const QString& title, const std::vector<NodeFact>& facts) {
      if (facts.empty()) return;
      page.section(title);
      for (const auto& fact : facts) page.pair(str(fact.name), str(fact.value), fact.link);
    };
    list(tr("Inputs"), inputs);
    list(tr("Users"), users);
    list(tr("Made from"), relations.origins);
    list(tr("Became"), relations.users);
    list(tr("Fusion decisions"), relations.decisions);
    if (!relations.stack.empty()) {
      page.section(tr("Python stack"));
      const auto places = query::parseStack(relations.stack);
      if (places.empty()) page.code(str(relations.stack));  // of a foreign log, as it was written
      else writeStack(page, places);
    }
  };
  detailsNode_ = id;
  details_->showPage([write](DetailsPanel& page) { write(page, {}); });
  session()->ask<NodeRelations>(
      this, "relations", [id](session::Reader& reader) { return loadRelations(reader, id); },
      [this, write, id](Result<NodeRelations>& result) {
        if (result && detailsNode_ == id) details_->showPage([write, relations = *result](DetailsPanel& page) { write(page, relations); });
      });
}

void GraphView::showGroup(int group) {
  if (group <= 0) return showGraphSummary();
  const auto& g = picture_->tree.groups[static_cast<size_t>(group)];
  detailsNode_ = 0;
  details_->showPage([path = str(g.path), label = str(g.label), count = g.totalNodes](DetailsPanel& page) {
    page.heading(label, tr("group"));
    page.pair(tr("path"), path);
    page.pair(tr("nodes"), QString::number(count));
    page.paragraph(tr("Double click or Return opens and closes a group."), true);
  });
}

void GraphView::showGraphSummary() {
  detailsNode_ = 0;
  std::map<QString, int> families;
  for (const auto& node : data_->nodes) ++families[familyName(opFamily(node.kind, node.op))];
  details_->showPage([row = data_->row, families, symbols = data_->symbols, groups = data_->groups.size(), edges = data_->edges.size(),
                      nodes = data_->nodes.size()](DetailsPanel& page) {
    page.heading(stageText(row), tr("graph"));
    page.pair(tr("frame"), str(row.frame));
    page.pair(tr("in logs"), str(row.logId));
    page.pair(tr("line"), str(shortPlace(row.file, row.line)), Location::sourceLine(row.file, static_cast<int>(row.line)));
    page.pair(tr("direction"), str(row.direction));
    page.pair(tr("nodes"), QString::number(nodes));
    page.pair(tr("edges"), QString::number(edges));
    page.pair(tr("kernels"), QString::number(groups));
    writeSymbols(page, symbols);
    page.section(tr("Operators"));
    for (const auto& [name, count] : families) page.pair(name, QString::number(count));
    page.paragraph(tr("Select a node to see its operator, arguments, shapes, origins and line."), true);
  });
}

}  // namespace fusebox::views
