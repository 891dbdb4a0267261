#include <QtTest>
#include <random>

#include "views/layout/compound_layout.h"
#include "views/layout/ordering.h"
#include "views/layout/ranks.h"

using namespace fusebox::views;

namespace {

LayoutGraph randomDag(int nodes, int edgesPerNode, int reach, unsigned seed) {
  std::mt19937 random(seed);
  LayoutGraph graph;
  for (int n = 0; n < nodes; ++n) graph.nodes.push_back({60.0 + random() % 120, 30.0 + random() % 20});
  for (int n = 1; n < nodes; ++n) {
    for (int e = 0; e < edgesPerNode; ++e) {
      const int from = std::max(0, n - 1 - static_cast<int>(random() % reach));
      graph.edges.push_back({from, n});
    }
  }
  return graph;
}

/// The joint graph of a training step, a forward chain with a mirrored backward that reads half of it, laid out without sweeps
/// (those have a budget); the least of a few times in milliseconds.
std::pair<double, LayoutResult> timedJointGraph(int nodes) {
  LayoutGraph graph;
  graph.nodes.assign(static_cast<size_t>(nodes), {120, 40});
  for (int i = 1; i < nodes; ++i) graph.edges.push_back({i - 1, i});
  for (int i = 0; i < nodes / 2; i += 2) graph.edges.push_back({i, nodes - 1 - i});
  LayoutOptions options;
  options.maxSweeps = 0;
  std::pair<double, LayoutResult> best{1e18, {}};
  for (int round = 0; round < 5; ++round) {
    QElapsedTimer timer;
    timer.start();
    best.second = layoutLayered(graph, options);
    best.first = std::min(best.first, static_cast<double>(timer.nsecsElapsed()) / 1e6);
  }
  return best;
}

bool overlap(const LayoutRect& a, const LayoutRect& b) {
  return a.x < b.right() - 0.01 && b.x < a.right() - 0.01 && a.y < b.bottom() - 0.01 && b.y < a.bottom() - 0.01;
}

/// Crossings counted the slow and obvious way.
int crossingsByPairs(const layout::Layering& l) {
  std::vector<int> position(l.items.size());
  for (const auto& rank : l.ranks) {
    for (int i = 0; i < static_cast<int>(rank.size()); ++i) position[rank[i]] = i;
  }
  int count = 0;
  for (size_t r = 0; r + 1 < l.ranks.size(); ++r) {
    std::vector<std::pair<int, int>> edges;
    for (int item : l.ranks[r]) {
      for (int other : l.items[item].below) edges.emplace_back(position[item], position[other]);
    }
    for (size_t a = 0; a < edges.size(); ++a) {
      for (size_t b = a + 1; b < edges.size(); ++b) {
        count += (edges[a].first - edges[b].first) * (edges[a].second - edges[b].second) < 0;
      }
    }
  }
  return count;
}

}  // namespace

class LayoutTest : public QObject {
  Q_OBJECT
 private slots:
  void nodesNeverOverlapAndEdgesPointDown_data() {
    QTest::addColumn<int>("nodes");
    QTest::addColumn<int>("perNode");
    QTest::addColumn<int>("reach");
    QTest::newRow("chain") << 40 << 1 << 1;
    QTest::newRow("tree") << 80 << 1 << 30;
    QTest::newRow("dense") << 60 << 4 << 12;
    QTest::newRow("long edges") << 200 << 2 << 150;
  }
  void nodesNeverOverlapAndEdgesPointDown() {
    QFETCH(int, nodes);
    QFETCH(int, perNode);
    QFETCH(int, reach);
    for (unsigned seed = 1; seed <= 8; ++seed) {
      const LayoutGraph graph = randomDag(nodes, perNode, reach, seed);
      const LayoutResult result = layoutLayered(graph);
      QCOMPARE(result.nodes.size(), graph.nodes.size());
      for (size_t a = 0; a < result.nodes.size(); ++a) {
        QCOMPARE(result.nodes[a].width, graph.nodes[a].width);
        QVERIFY(result.nodes[a].x > -0.01 && result.nodes[a].right() < result.width + 0.01);
        QVERIFY(result.nodes[a].y > -0.01 && result.nodes[a].bottom() < result.height + 0.01);
        for (size_t b = a + 1; b < result.nodes.size(); ++b) QVERIFY2(!overlap(result.nodes[a], result.nodes[b]), "nodes overlap");
      }
      for (size_t e = 0; e < graph.edges.size(); ++e) {
        const auto& from = result.nodes[graph.edges[e].from];
        const auto& to = result.nodes[graph.edges[e].to];
        QVERIFY(from.bottom() < to.y);
        if (result.edges[e].stub) continue;
        const auto& points = result.edges[e].points;
        QVERIFY(std::abs(points.front().y - from.bottom()) < 0.01 && std::abs(points.back().y - to.y) < 0.01);
        QVERIFY(std::abs(points.front().x - from.centreX()) < 0.01);
        for (size_t p = 1; p < points.size(); ++p) QVERIFY(points[p].y >= points[p - 1].y);
      }
    }
  }

  void cyclesAreDrawnUpwards() {
    LayoutGraph graph;
    graph.nodes.assign(3, {50, 20});
    graph.edges = {{0, 1}, {1, 2}, {2, 0}, {1, 1}};
    const LayoutResult result = layoutLayered(graph);
    QVERIFY(result.nodes[0].y < result.nodes[1].y && result.nodes[1].y < result.nodes[2].y);
    QVERIFY(result.edges[2].points.front().y > result.edges[2].points.back().y);
    QVERIFY(result.edges[3].points.empty());
  }

  void emptyAndLonelyNodes() {
    QCOMPARE(layoutLayered({}).nodes.size(), size_t{0});
    LayoutGraph graph;
    graph.nodes.assign(30, {50, 20});
    const LayoutResult result = layoutLayered(graph);
    for (size_t a = 0; a < 30; ++a) {
      for (size_t b = a + 1; b < 30; ++b) QVERIFY(!overlap(result.nodes[a], result.nodes[b]));
    }
    QVERIFY(result.width < 600);
  }

  void sourcesStandNextToTheirFirstReader() {
    // 0 -> 1 -> 2 -> 3, and a parameter 4 read by 3 and, one step later, by 5.
    std::vector<layout::DirectedEdge> edges{{0, 1, 0}, {1, 2, 1}, {2, 3, 2}, {4, 3, 3}, {3, 5, 4}};
    const auto ranks = layout::assignRanks(6, edges);
    QCOMPARE(ranks, (std::vector<int>{0, 1, 2, 3, 2, 4}));
  }

  void crossingCountAgreesWithPairs() {
    std::mt19937 random(7);
    for (int round = 0; round < 30; ++round) {
      layout::Layering l;
      l.ranks.resize(4);
      for (int i = 0; i < 32; ++i) {
        l.items.push_back({i, i / 8, 10, 10, {}, {}});
        l.ranks[static_cast<size_t>(i / 8)].push_back(i);
      }
      for (int i = 0; i < 24; ++i) {
        for (int e = 0; e < 3; ++e) {
          const int to = (i / 8 + 1) * 8 + static_cast<int>(random() % 8);
          l.items[i].below.push_back(to);
          l.items[to].above.push_back(i);
        }
      }
      const int before = crossingsByPairs(l);
      QCOMPARE(layout::countCrossings(l), before);
      const int after = layout::reduceCrossings(l, {});
      QCOMPARE(crossingsByPairs(l), after);
      QVERIFY(after <= before);
    }
  }

  void crossedPairIsUncrossed() {
    LayoutGraph graph;
    graph.nodes.assign(4, {50, 20});
    graph.edges = {{0, 3}, {1, 2}, {0, 3}};
    QCOMPARE(layoutLayered(graph).crossings, 0);
  }

  void resultIsDeterministic() {
    const LayoutGraph graph = randomDag(150, 2, 20, 3);
    LayoutOptions options;
    options.budget = std::chrono::minutes(1);
    const LayoutResult a = layoutLayered(graph, options), b = layoutLayered(graph, options);
    for (size_t n = 0; n < a.nodes.size(); ++n) QCOMPARE(a.nodes[n].x, b.nodes[n].x);
  }

  void cancelAndBudgetEndTheSweeps() {
    const LayoutGraph graph = randomDag(400, 3, 40, 5);
    LayoutOptions options;
    options.budget = std::chrono::minutes(1);
    const LayoutResult whole = layoutLayered(graph, options);
    QVERIFY(!whole.cancelled);
    const std::atomic<bool> cancel{true};
    options.cancel = &cancel;
    const LayoutResult cancelled = layoutLayered(graph, options);
    QVERIFY(cancelled.cancelled);
    QVERIFY2(cancelled.crossings > whole.crossings, qPrintable(QStringLiteral("%1 and %2").arg(cancelled.crossings).arg(whole.crossings)));
    options.cancel = nullptr;
    options.budget = std::chrono::milliseconds(-1);
    QCOMPARE(layoutLayered(graph, options).crossings, cancelled.crossings);
  }

  void timeGrowsWithTheGraphNotWithItsSquare() {
    const auto [few, shortResult] = timedJointGraph(500);
    const auto [many, longResult] = timedJointGraph(8000);
    const QString said = QStringLiteral("16 times the nodes: %1 ms, %2 ms").arg(few).arg(many);
    qInfo().noquote() << said;
    QVERIFY2(many < 120 * few, qPrintable(said));  // the square would be 256 times
    QVERIFY(longResult.edges.back().stub == false && longResult.edges[8000 - 1].stub);
  }

  void groupsFoldByPath() {
    const GroupTree tree = buildGroupTree({"", "a.b", "a.b", "a.c", "d.e.f", "d.e.f"});
    QCOMPARE(tree.groups[0].totalNodes, 6);
    const int a = tree.find("a"), d = tree.find("d");
    QVERIFY(a > 0 && d > 0);
    QCOMPARE(tree.groups[static_cast<size_t>(a)].totalNodes, 3);
    QCOMPARE(QString::fromStdString(tree.groups[static_cast<size_t>(d)].label), QStringLiteral("d.e.f"));  // merged chain
    QCOMPARE(tree.groupOfNode[4], d);
    QCOMPARE(tree.groupOfNode[0], 0);
  }

  void manyLayersAreBundled() {
    std::vector<std::string> paths;
    for (int layer = 0; layer < 2000; ++layer) {
      for (int node = 0; node < 3; ++node) paths.push_back("h." + std::to_string(layer));
    }
    const GroupTree tree = buildGroupTree(paths, 300);
    int nodes = 0;
    for (const auto& group : tree.groups) {
      QVERIFY(group.groups.size() <= 300);
      nodes += static_cast<int>(group.nodes.size());
    }
    QCOMPARE(nodes, 6000);
    QCOMPARE(tree.groups[0].totalNodes, 6000);
    // From every node the parents lead to the root.
    for (const int inner : tree.groupOfNode) {
      int steps = 0, g = inner;
      for (; g > 0; g = tree.groups[static_cast<size_t>(g)].parent) QVERIFY(++steps < 10);
      QCOMPARE(g, 0);
    }
  }

  void longGroupsAreSplit() {
    const GroupTree tree = buildGroupTree(std::vector<std::string>(1000, "m"), 300);
    for (const auto& group : tree.groups) QVERIFY(group.nodes.size() <= 300);
    QCOMPARE(tree.groups[0].totalNodes, 1000);
  }

  void expansionStopsAtItsLimit() {
    std::vector<std::string> paths;
    for (int i = 0; i < 2000; ++i) paths.push_back("layer" + std::to_string(i / 100) + ".part" + std::to_string(i / 20));
    const GroupTree tree = buildGroupTree(paths);
    const auto open = defaultExpansion(tree, 260);
    const CompoundScene scene = layoutCompound(tree, open, randomDag(2000, 2, 6, 1));
    int visible = 0;
    for (const auto& node : scene.nodes) visible += node.width > 0;
    QVERIFY(visible + static_cast<int>(scene.boxes.size()) <= 260);
  }

  void foldedSceneKeepsNodesInsideTheirBoxes() {
    std::vector<std::string> paths;
    for (int i = 0; i < 120; ++i) paths.push_back(i % 7 == 0 ? "" : "m" + std::to_string(i / 20) + ".n" + std::to_string(i / 5));
    const GroupTree tree = buildGroupTree(paths);
    std::vector<char> open(tree.groups.size(), 1);
    const CompoundScene scene = layoutCompound(tree, open, randomDag(120, 2, 8, 9));
    for (int n = 0; n < 120; ++n) {
      QVERIFY(scene.visible(n));
      const LayoutRect& node = scene.nodes[static_cast<size_t>(n)];
      for (int g = tree.groupOfNode[static_cast<size_t>(n)]; g > 0; g = tree.groups[static_cast<size_t>(g)].parent) {
        const auto& box = scene.boxes[static_cast<size_t>(scene.boxOfGroup[static_cast<size_t>(g)])].rect;
        QVERIFY(node.x >= box.x && node.right() <= box.right() && node.y >= box.y && node.bottom() <= box.bottom());
      }
      for (int m = n + 1; m < 120; ++m) QVERIFY(!overlap(node, scene.nodes[static_cast<size_t>(m)]));
    }
  }

  void closedGroupsStandForTheirEdges() {
    const GroupTree tree = buildGroupTree({"a", "a", "b", "b"});
    LayoutGraph graph;
    graph.nodes.assign(4, {50, 20});
    graph.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    std::vector<char> open(tree.groups.size(), 0);
    open[0] = 1;
    const CompoundScene scene = layoutCompound(tree, open, graph);
    QCOMPARE(scene.boxes.size(), size_t{2});
    QCOMPARE(scene.edges.size(), size_t{1});
    QCOMPARE(scene.edges[0].count, 2);
    for (int n = 0; n < 4; ++n) QVERIFY(!scene.visible(n));
  }
};

QTEST_APPLESS_MAIN(LayoutTest)
#include "layout_test.moc"
