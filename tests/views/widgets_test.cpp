#include <QAbstractButton>
#include <QAccessible>
#include <QScrollBar>
#include <QToolTip>
#include <QtTest>

#include "views/graph/graph_canvas.h"
#include "views/overview/stage_bar.h"
#include "views/widgets/action_registry.h"
#include "views/widgets/background_job.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/message_bar.h"
#include "views/widgets/picture_export.h"
#include "views/widgets/side_splitter.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;

namespace {

std::shared_ptr<const GraphPicture> diamond() {
  query::GraphData data;
  const char* const ops[] = {"", "aten.relu.default", "aten.sin.default", "aten.add.Tensor"};
  for (int i = 0; i < 4; ++i) {
    query::GraphNode node;
    node.id = 10 + i;
    node.position = i;
    node.name = "n" + std::to_string(i);
    node.kind = i == 0 ? "placeholder" : "call";
    node.op = ops[i];
    node.dtype = "float32";
    node.shape = "[2, 3]";
    node.modulePath = i == 1 || i == 2 ? "block.inner" : "";
    data.nodes.push_back(node);
  }
  data.edges = {{10, 11, 0, 0}, {10, 12, 0, 0}, {11, 13, 0, 0}, {12, 13, 0, 1}};
  return makePicture(std::move(data), {GraphFolding::Module, true});
}

std::shared_ptr<const CompoundScene> layOut(const GraphPicture& picture, bool open) {
  std::vector<char> groups(picture.tree.groups.size(), open);
  groups[0] = 1;
  return std::make_shared<CompoundScene>(layoutCompound(picture.tree, groups, picture.layout));
}

}  // namespace

class WidgetsTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { Theme::instance().apply(Theme::Mode::Light); }

  void textIsReadableInBothThemes() {
    for (const auto mode : {Theme::Mode::Light, Theme::Mode::Dark}) {
      Theme::instance().apply(mode);
      for (const Token ground : {Token::Window, Token::Panel, Token::Raised, Token::Code, Token::ErrorSoft, Token::WarningSoft, Token::Selection}) {
        QVERIFY2(contrast(themed(Token::Text), themed(ground)) > 7, "text");
      }
      for (const Token text : {Token::TextMuted, Token::Accent, Token::Error, Token::Warning, Token::Good, Token::CodeKeyword, Token::CodeString, Token::CodeNumber, Token::CodeType, Token::CodeName}) {
        QVERIFY2(contrast(themed(text), themed(Token::Panel)) > 4.4, qPrintable(QString::number(static_cast<int>(text))));
      }
      for (int c = 0; c < Theme::kCategories; ++c) {
        QVERIFY2(contrast(themed(Token::Text), Theme::instance().categoryFill(c)) > 4.5, qPrintable(QString::number(c)));
      }
    }
    Theme::instance().apply(Theme::Mode::Light);
  }

  /// Whoever follows a link may show another page and still has the place.
  void aPlaceOutlivesThePageThatItIsOn() {
    DetailsPanel panel(QStringLiteral("details"));
    const std::string file(200, 'f');
    panel.showPage([&](DetailsPanel& page) { page.pair(QStringLiteral("line"), QStringLiteral("there"), Location::sourceLine(file, 7)); });
    std::string heard;
    connect(&panel, &DetailsPanel::linkActivated, this, [&](const Location& place) {
      panel.showPage([](DetailsPanel& page) {
        for (int i = 0; i < 50; ++i) page.pair(QStringLiteral("line"), QStringLiteral("elsewhere"), Location::sourceLine(std::string(200, 'x'), 1));
      });
      heard = place.file;
    });
    emit panel.anchorClicked(QUrl(QStringLiteral("0")));
    QCOMPARE(heard, file);
  }

  /// A word of a million letters, as a file from outside may hold, neither holds up the window nor is cut without a word.
  void endlessWordsAreShownInPart() {
    DetailsPanel panel(QStringLiteral("details"));
    panel.resize(400, 300);
    panel.show();
    const QString word(1'000'000, QLatin1Char('a'));
    panel.showPage([&](DetailsPanel& page) {
      page.heading(word, word);
      page.pair(word, word);
      page.paragraph(word);
      page.code(word);
      page.emphasis(word);
      page.diff("+" + word);
    });
    const QString text = panel.toPlainText();
    QVERIFY2(text.size() < 50'000 && text.contains("aaa"), qPrintable(QString::number(text.size())));
    QVERIFY(text.contains(QString::number(1'000'000 - 6000)));
    panel.showPage([](DetailsPanel& page) { page.paragraph(QString(5000, QLatin1Char('b'))); });
    QVERIFY(panel.toPlainText().contains(QString(5000, QLatin1Char('b'))));
  }

  void everyIconExists() {
    for (const char* name : {"back", "forward", "open", "run", "stop", "find", "palette", "overview", "source", "graph", "guards", "kernels", "timeline", "export", "copy", "fit", "zoomin", "zoomout", "expand", "collapse", "close", "break", "recompile", "help"}) {
      QVERIFY2(!Theme::instance().icon(QString::fromLatin1(name)).isNull(), name);
    }
  }

  void canvasSelectsByMouseAndKeyboard() {
    GraphCanvas canvas;
    canvas.resize(500, 400);
    canvas.show();
    const auto picture = diamond();
    canvas.setScene(picture, layOut(*picture, true), false);
    QSignalSpy selected(&canvas, &GraphCanvas::nodeSelected);
    const QPointF centre = canvas.toWidget(canvas.painter().rectOf({0, -1}).center());
    QTest::mouseClick(&canvas, Qt::LeftButton, {}, centre.toPoint());
    QCOMPARE(selected.count(), 1);
    QCOMPARE(canvas.selectedNode(), 0);
    QTest::keyClick(&canvas, Qt::Key_Down);
    const int second = canvas.selectedNode();
    QVERIFY(second == 1 || second == 2);
    QTest::keyClick(&canvas, second == 1 ? Qt::Key_Right : Qt::Key_Left);
    QTest::keyClick(&canvas, Qt::Key_Left);
    QTest::keyClick(&canvas, Qt::Key_Down);
    QCOMPARE(canvas.selectedNode(), 3);
    QTest::keyClick(&canvas, Qt::Key_Up);
    QTest::keyClick(&canvas, Qt::Key_Up);
    QCOMPARE(canvas.selectedNode(), 0);
    QVERIFY(canvas.accessibleDescription().contains("n0"));
  }

  void nodesAreAccessible() {
    GraphCanvas canvas;
    canvas.resize(500, 400);
    canvas.show();
    const auto picture = diamond();
    canvas.setScene(picture, layOut(*picture, true), false);
    QAccessibleInterface* list = QAccessible::queryAccessibleInterface(&canvas);
    QVERIFY(list);
    QCOMPARE(list->childCount(), 4);
    QCOMPARE(list->child(3)->text(QAccessible::Name), QStringLiteral("n3"));
    QVERIFY(list->child(3)->text(QAccessible::Description).contains("aten.add"));
    const QRect place = list->child(3)->rect();
    QCOMPARE(list->childAt(place.center().x(), place.center().y()), list->child(3));
    canvas.selectNode(3, false);
    QVERIFY(list->child(3)->state().selected);
    canvas.setScene(picture, layOut(*picture, false), false);
    QCOMPARE(list->childCount(), 2);  // two are folded away
  }

  void canvasZoomsAtThePointer() {
    GraphCanvas canvas;
    canvas.resize(500, 400);
    canvas.show();
    const auto picture = diamond();
    canvas.setScene(picture, layOut(*picture, true), false);
    const double before = canvas.scale();
    const QPointF node = canvas.painter().rectOf({1, -1}).center();
    const QPointF at = canvas.toWidget(node);
    QWheelEvent wheel(at, canvas.mapToGlobal(at), {}, QPoint(0, 360), Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&canvas, &wheel);
    QVERIFY(canvas.scale() > before * 1.3);
    QVERIFY((canvas.toWidget(node) - at).manhattanLength() < 1);
    QTest::keyClick(&canvas, Qt::Key_F);
    QCOMPARE(canvas.scale(), before);
  }

  /// However narrow the pane, the graph begins in view.
  void theBeginningIsWhollyInView() {
    const auto picture = diamond();
    for (const QSize size : {QSize(160, 95), QSize(200, 120), QSize(320, 110)}) {
      GraphCanvas canvas;
      canvas.resize(size);
      canvas.show();
      canvas.setScene(picture, layOut(*picture, true), false);
      const QRectF first = canvas.painter().first();
      QVERIFY(!first.isEmpty());
      QVERIFY2(canvas.toWidget(first.topLeft()).x() >= 0, qPrintable(QString::number(canvas.toWidget(first.topLeft()).x())));
      if (first.width() * canvas.scale() < size.width() - 48) QVERIFY(canvas.toWidget(first.bottomRight()).x() <= size.width());
    }
  }

  void doubleClickTogglesAGroup() {
    GraphCanvas canvas;
    canvas.resize(500, 400);
    canvas.show();
    const auto picture = diamond();
    canvas.setScene(picture, layOut(*picture, false), false);
    QSignalSpy toggled(&canvas, &GraphCanvas::groupToggled);
    const int group = picture->tree.groupOfNode[1];
    QVERIFY(group > 0);
    const QPointF centre = canvas.toWidget(canvas.painter().rectOf({-1, group}).center());
    QTest::mouseDClick(&canvas, Qt::LeftButton, {}, centre.toPoint());
    QCOMPARE(toggled.count(), 1);
    QCOMPARE(toggled.at(0).at(0).toInt(), group);
  }

  void inputsBecomeBadges() {
    auto data = diamond()->data;
    const auto picture = makePicture(std::move(data), {GraphFolding::Nothing, false});
    QCOMPARE(picture->drawn.size(), size_t{3});
    QCOMPARE(picture->inputBadges[0], 1);
    QCOMPARE(picture->drawnOf(10), -1);
    QCOMPARE(picture->drawnOf(13), 2);
  }

  /// A long name is cut between letters, of however many bytes each is.
  void namesAreCutBetweenLetters() {
    for (const char* letter : {"x", "\u00fc", "\u8a9e", "\U0001F525"}) {
      for (int before = 0; before < 4; ++before) {
        auto data = diamond()->data;
        data.nodes[1].kind = "placeholder";
        data.nodes[1].name = std::string(static_cast<size_t>(before), 'a');
        for (int i = 0; i < 60; ++i) data.nodes[1].name += letter;
        const auto picture = makePicture(std::move(data), {GraphFolding::Nothing, true});
        const std::string& title = picture->titles[static_cast<size_t>(picture->drawnIndex[1])];
        const QString read = QString::fromStdString(title);
        QVERIFY2(read.endsWith(QChar(0x2026)) && !read.contains(QChar::ReplacementCharacter), title.c_str());
        QVERIFY(QString::fromStdString(picture->node(picture->drawnIndex[1]).name).startsWith(read.chopped(1)));
      }
    }
  }

  void legendsWrap() {
    StageBar bar;
    std::vector<StageBar::Part> parts;
    for (int i = 0; i < 8; ++i) parts.push_back({QStringLiteral("a kind of time %1").arg(i), 1.0 + i, i});
    bar.setParts(parts, 40);
    bar.show();
    bar.resize(2400, 60);
    const int oneLine = bar.sizeHint().height();
    bar.resize(400, 60);
    QVERIFY(bar.sizeHint().height() >= oneLine + 2 * bar.fontMetrics().height());
  }

  void picturesAreWritten() {
    GraphCanvas canvas;
    canvas.resize(500, 400);
    const auto picture = diamond();
    canvas.setScene(picture, layOut(*picture, true), false);
    QTemporaryDir folder;
    for (const char* ending : {"svg", "png", "pdf"}) {
      const QString path = folder.filePath(QStringLiteral("g.") + QString::fromLatin1(ending));
      QCOMPARE(writePicture(canvas.picture(), path), QString());
      QVERIFY(QFileInfo(path).size() > 800);
    }
    QFile svg(folder.filePath("g.svg"));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    QVERIFY(svg.readAll().contains("relu"));
    QImage png(folder.filePath("g.png"));
    QVERIFY(png.width() > 200);
    QVERIFY(!writePicture(canvas.picture(), folder.filePath("g.doc")).isEmpty());
    QVERIFY(!writePicture(canvas.picture(), "/nonexistent/g.svg").isEmpty());
  }

  void codePaneMarksAndFinds() {
    CodePane pane("code", Language::Python);
    pane.resize(400, 300);
    pane.show();
    QString code;
    for (int i = 1; i <= 200; ++i) code += QStringLiteral("line_%1 = %1\n").arg(i);
    pane.setCode(code);
    QSignalSpy spy(&pane, &CodePane::lineSelected);
    pane.goToLine(150);
    QCOMPARE(pane.currentLine(), 150);
    QCOMPARE(spy.last().at(0).toInt(), 150);
    QVERIFY(pane.findText("line_42 "));
    QCOMPARE(pane.currentLine(), 42);
    QVERIFY(pane.findText("line_9 ", FindStep::Previous));
    QVERIFY(!pane.findText("nothing like this"));
    // A word that is typed letter by letter stays at its first hit.
    pane.goToLine(20);
    for (const char* typed : {"l", "li", "line_2", "line_20"}) QVERIFY(pane.findText(QString::fromLatin1(typed), FindStep::Here));
    QCOMPARE(pane.currentLine(), 20);
    pane.setMarks({{3, {LineMark::Kind::Break, "1.2 ms", 1.0, "a break"}}});
    QVERIFY(!pane.grab().isNull());
  }

  /// Names come from files: what looks like markup is shown as it stands.
  void labelsAndTooltipsAreText() {
    QWidget window;
    QLabel label(QStringLiteral("<img src='file:///etc/hostname'> <b>x</b>"), &window);
    QLabel wanted(&window);
    wanted.setTextFormat(Qt::RichText);
    window.show();
    QTRY_COMPARE(label.textFormat(), Qt::PlainText);
    QCOMPARE(wanted.textFormat(), Qt::RichText);
    QToolTip::showText(window.mapToGlobal(QPoint(1, 1)), QStringLiteral("<b>name</b>"), &window);
    QLabel* tip = nullptr;
    for (QWidget* top : QApplication::topLevelWidgets()) {
      if (top->inherits("QTipLabel")) tip = qobject_cast<QLabel*>(top);
    }
    QVERIFY(tip);
    QCOMPARE(tip->textFormat(), Qt::PlainText);
    QToolTip::hideText();
  }

  /// Of machine code with a million lines those are coloured that are on the screen.
  void longCodeIsColouredWhereItIsSeen() {
    CodePane pane("code", Language::Assembly);
    pane.resize(500, 300);
    pane.show();
    QString code;
    for (int i = 0; i < 20'000; ++i) code += QStringLiteral("\tvaddps %ymm0, %ymm1, %ymm2\n");
    pane.setCode(code);
    const auto coloured = [&pane](int line) { return !pane.document()->findBlockByNumber(line).layout()->formats().isEmpty(); };
    QVERIFY(coloured(0) && coloured(5) && !coloured(9'000) && !coloured(15'000));
    pane.goToLine(15'000);
    QVERIFY(coloured(14'999) && !coloured(9'000));
    Theme::instance().apply(Theme::Mode::Dark);
    QVERIFY(coloured(14'999));
    Theme::instance().apply(Theme::Mode::Light);
    pane.verticalScrollBar()->setValue(0);
    QVERIFY(coloured(0));
  }

  void highlighterColoursEachLanguage() {
    const struct {
      Language language;
      const char* text;
      int at;
      Token token;
    } cases[] = {{Language::Python, "def f(): return 1", 0, Token::CodeKeyword},
                 {Language::Python, "x = 'a # b'  # c", 7, Token::CodeString},
                 {Language::Python, "x = 'a # b'  # c", 8, Token::CodeString},
                 {Language::Python, "x = 'a # b'  # 'c'", 16, Token::CodeComment},
                 {Language::Cpp, "auto x = in_ptr0[static_cast<long>(i)];  // load", 0, Token::CodeKeyword},
                 {Language::Cpp, "auto x = 1; // load", 10, Token::Count},
                 {Language::Cpp, "auto x = 1; // load", 15, Token::CodeComment},
                 {Language::Cpp, "#include <ATen/ATen.h>", 2, Token::CodeName},
                 {Language::LlvmIr, "%1 = fadd <8 x float> %a, %b", 5, Token::CodeKeyword},
                 {Language::Assembly, "\tvaddps %ymm0, %ymm1, %ymm2", 1, Token::CodeKeyword},
                 {Language::LoopIr, "for i in 0..64 # n", 15, Token::CodeComment}};
    for (const auto& c : cases) {
      QTextDocument document;
      Highlighter highlighter(c.language, &document);
      document.setPlainText(QString::fromLatin1(c.text));
      highlighter.rehighlight();
      QColor found;
      for (const auto& range : document.firstBlock().layout()->formats()) {
        if (range.start <= c.at && c.at < range.start + range.length) found = range.format.foreground().color();
      }
      QCOMPARE(found.name(), c.token == Token::Count ? QColor().name() : themed(c.token).name());
    }
  }

  void paletteRunsTheBestMatch() {
    QWidget window;
    window.resize(800, 600);
    window.show();
    ActionRegistry registry(&window);
    int opened = 0, closed = 0;
    registry.add("a.open", "File", "Open session", {}, {}, [&] { ++opened; });
    registry.add("a.close", "File", "Close session", {}, {}, [&] { ++closed; });
    auto* palette = new CommandPalette(registry, &window);
    palette->show();
    QTest::keyClicks(palette->findChild<QLineEdit*>("commandPalette.edit"), "close");
    QTest::keyClick(palette->findChild<QLineEdit*>("commandPalette.edit"), Qt::Key_Return);
    QTRY_COMPARE(closed, 1);
    QCOMPARE(opened, 0);
  }

  /// A view comes before its commands, and a command's own words before the name of its menu.
  void paletteOpensTheViewThatIsNamed() {
    QWidget window;
    window.resize(800, 600);
    window.show();
    ActionRegistry registry(&window);
    QString ran;
    const auto add = [&](const char* id, const char* category, const char* text) {
      registry.add(id, category, text, {}, {}, [&ran, id] { ran = QLatin1String(id); });
    };
    add("fusion.numerics", "Fusion", "Measure errors");
    add("slowness.export", "Why", "Export picture…");
    add("graph.fit", "Graph", "Fit");
    add("graph.folded", "Graph", "Fold everything");
    add("view.fusion", "View", "Fusion");
    add("view.slowness", "View", "Why is this slow");
    add("view.graph", "View", "Graph");
    add("layout.debug", "Layout", "&Debug: source beside graph");
    add("debug.stop", "Debug", "Stop");
    for (const auto& [words, expected] : {std::pair("fusion", "view.fusion"), std::pair("why", "view.slowness"), std::pair("graph", "view.graph"),
                                          std::pair("measure", "fusion.numerics"), std::pair("debug", "layout.debug"), std::pair("graph: fit", "graph.fit")}) {
      ran.clear();
      auto* palette = new CommandPalette(registry, &window);
      palette->show();
      QTest::keyClicks(palette->findChild<QLineEdit*>("commandPalette.edit"), words);
      QTest::keyClick(palette->findChild<QLineEdit*>("commandPalette.edit"), Qt::Key_Return);
      QTRY_COMPARE(ran, QLatin1String(expected));
    }
  }

  void registryFindsConflicts() {
    QWidget window;
    ActionRegistry registry(&window);
    registry.add("a", "X", "A", QKeySequence("Ctrl+K"), {}, [] {});
    QVERIFY(registry.conflicts().isEmpty());
    registry.add("b", "X", "B", QKeySequence("Ctrl+K"), {}, [] {});
    QCOMPARE(registry.conflicts().size(), 1);
  }

  void newerJobReplacesOlder() {
    BackgroundJob job;
    QList<int> results;
    std::atomic<bool> sawCancel{false};
    job.start<int>(
        [&](const std::atomic<bool>& cancel) {
          while (!cancel) QThread::msleep(1);
          sawCancel = true;
          return 1;
        },
        [&](int& value) { results << value; });
    job.start<int>([](const std::atomic<bool>&) { return 2; }, [&](int& value) { results << value; });
    QTRY_COMPARE(results, QList<int>{2});
    QVERIFY(QThreadPool::globalInstance()->waitForDone(30'000));
    QVERIFY(sawCancel);
    QCoreApplication::processEvents();  // where the older one would tell its result
    QCOMPARE(results.size(), 1);
  }

  void panelsGoBelowWhereThereIsNoRoomBeside() {
    SideSplitter split(600);
    split.addWidget(new QWidget);
    split.addWidget(new QWidget);
    split.resize(900, 600);
    split.show();
    split.setSizes({700, 200});
    const QList<int> wide = split.sizes();
    QCOMPARE(split.orientation(), Qt::Horizontal);
    split.resize(400, 600);
    QTRY_COMPARE(split.orientation(), Qt::Vertical);
    QVERIFY(split.sizes().first() > split.sizes().last());
    split.resize(900, 600);
    QTRY_COMPARE(split.orientation(), Qt::Horizontal);
    QCOMPARE(split.sizes(), wide);
    // What a list beside it leads to has most room below it, too.
    SideSplitter listed(600);
    for (int i = 0; i < 3; ++i) listed.addWidget(new QWidget);
    listed.setStretchFactor(1, 1);
    listed.resize(900, 600);
    listed.show();
    listed.resize(400, 600);
    QTRY_COMPARE(listed.orientation(), Qt::Vertical);
    QVERIFY(listed.sizes()[1] > listed.sizes()[0] && listed.sizes()[1] > listed.sizes()[2]);
  }

  void messageBarSaysAndCloses() {
    MessageBar bar;
    bar.say(MessageBar::Severity::Error, "It broke", "Here.\nDo this.");
    QVERIFY(bar.isVisible());
    QVERIFY(bar.text().contains("Do this"));
    QTest::mouseClick(bar.findChild<QAbstractButton*>("messageBar.close"), Qt::LeftButton);
    QVERIFY(!bar.isVisible());
  }
};

QTEST_MAIN(WidgetsTest)
#include "widgets_test.moc"
