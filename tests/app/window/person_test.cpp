// A person at the window, by keys and mouse alone: runs a script, reads why it was compiled again, reads where the
// graph broke, exports the diagram, compares two runs, opens a stock trace, finds something, goes back. With
// FUSEBOX_PICTURES=FOLDER the pictures of README.md and of the manual are written on the way (CONTRIBUTING.md says how
// they get into resources).
#include <QDir>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>
#include <QtTest>

#include "app/window/compare_window.h"
#include "app/window/main_window.h"
#include "app/window/run_dialog.h"
#include "views/graph/graph_view.h"
#include "views/source/source_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using namespace fusebox::window;

namespace {

constexpr const char* kScript = R"(import torch, sys
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)
        self.scale = 1.0

    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(x)) * self.scale
        return torch.relu(self.down(h) + x)


@torch.compile
def report(x):
    peak = x.softmax(-1).max().item()
    return torch.tanh(x) / (1 + peak)


net = torch.compile(Net())
with torch.no_grad():
    for batch in (8, 8, 16, 16, 16)[:int(sys.argv[1]) if len(sys.argv) > 1 else 5]:
        y = net(torch.randn(batch, 64))
    net.scale = 0.5
    for _ in range(20):
        y = net(torch.randn(16, 64))
    for _ in range(20):
        r = report(y)
print("done", tuple(r.shape))
)";

}  // namespace

class PersonTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  std::unique_ptr<MainWindow> window_;
  QString firstRun_;

  template <class T>
  T* find(const char* name) const {
    return window_->findChild<T*>(QString::fromLatin1(name));
  }
  QString current() const { return window_->docks()->currentView()->id(); }
  QWidget* focus() const { return QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(); }
  void press(int key, Qt::KeyboardModifiers modifiers = {}) {
    QTest::keyClick(focus(), static_cast<Qt::Key>(key), modifiers);
  }
  /// By the keys that the view has.
  void go(const char* view) {
    const QAction* action = window_->registry()->find(QStringLiteral("view.") + QString::fromLatin1(view));
    QTest::keySequence(focus(), action->shortcut());
  }
  void click(QWidget* widget) { QTest::mouseClick(widget, Qt::LeftButton, {}, widget->rect().center()); }

  /// Types into the file dialog that the next step opens, and confirms it.
  void answerFileDialog(const QString& path) {
    auto* timer = new QTimer(this);
    connect(timer, &QTimer::timeout, this, [timer, path] {
      auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      auto* edit = dialog ? dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit")) : nullptr;
      if (!edit) return;
      timer->deleteLater();
      edit->selectAll();
      QTest::keyClicks(edit, path);
      QTest::keyClick(edit, Qt::Key_Return);
    });
    timer->start(50);
  }

  void picture(const QString& name, QWidget* widget, int width = 0) const {
    const QByteArray folder = qgetenv("FUSEBOX_PICTURES");
    if (folder.isEmpty()) return;
    QTest::qWait(400);
    QImage image = widget->grab().toImage();
    if (width > 0 && image.width() > width) image = image.scaledToWidth(width, Qt::SmoothTransformation);
    QVERIFY(QDir().mkpath(QString::fromLocal8Bit(folder)));
    QVERIFY(image.save(QDir(QString::fromLocal8Bit(folder)).filePath(name)));
  }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("person");
    QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QSettings().clear();
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());
    views::Theme::instance().apply(views::Theme::Mode::Light);
    if (!QFile::exists(QCoreApplication::applicationDirPath() + "/fusebox")) QSKIP("bin/fusebox is not built");
    QFile script(folder_.filePath("train.py"));
    QVERIFY(script.open(QIODevice::WriteOnly));
    script.write(kScript);
    script.close();
    window_ = std::make_unique<MainWindow>(QCoreApplication::applicationDirPath() + QStringLiteral("/fusebox"));
    window_->resize(1280, 800);
    window_->show();
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
  }

  void runsAScript() {
    click(find<QPushButton>("start.run"));
    QTRY_VERIFY(find<QLineEdit>("runDialog.script"));
    auto* script = find<QLineEdit>("runDialog.script");
    QTRY_VERIFY(script->isVisible());
    script->setFocus();
    QTest::keyClicks(script, folder_.filePath("train.py"));
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    QTest::keyClick(script, Qt::Key_Return);
    QVERIFY(finished.wait(120000));
    QVERIFY2(window_->outputPanel()->text().contains("done (16, 64)"), qPrintable(window_->outputPanel()->text()));
    QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("status.state")->text() == "finished", 20000);
    QTRY_VERIFY(find<QLabel>("overview.number.launches")->text() != QStringLiteral("–"));
    firstRun_ = window_->runner()->sessionPath();
    press(Qt::Key_QuoteLeft, Qt::ControlModifier);  // the output is read: away with it
  }

  void readsTheGuardOfTheSecondRecompile() {
    go("recompiles");
    QTRY_COMPARE(current(), QStringLiteral("recompiles"));
    auto* frames = find<QTableView>("recompiles.frames");
    auto* entries = find<QTableView>("recompiles.entries");
    QTRY_VERIFY(frames->model()->rowCount() >= 1);
    QTRY_COMPARE(entries->model()->rowCount(), 3);
    auto* details = find<QTextBrowser>("recompiles.details");
    entries->setFocus();
    press(Qt::Key_Home, Qt::ControlModifier);
    press(Qt::Key_Down);
    QTRY_VERIFY(details->toPlainText().contains("size 0: 8, now 16"));
    picture(QStringLiteral("manual-recompiles.png"), window_->docks()->currentView(), 900);
    press(Qt::Key_Down);
    QTRY_VERIFY(details->toPlainText().contains("L['self'].scale"));
    QTRY_VERIFY(details->toPlainText().contains("self.register_buffer(\"scale\", torch.tensor(1.0))"));
    // The line that called, from the stack: a click on the link leads there.
    QVERIFY(details->toPlainText().contains("train.py:29"));
    auto* guards = find<QTableView>("recompiles.guards");
    QTRY_VERIFY(guards->model()->rowCount() > 0);
    bool scale = false;
    for (int r = 0; r < guards->model()->rowCount(); ++r)
      scale = scale || guards->model()->index(r, 1).data().toString() == "1.0";
    QVERIFY(scale);
  }

  void readsWhereTheGraphBroke() {
    go("breaks");
    QTRY_COMPARE(current(), QStringLiteral("breaks"));
    auto* table = find<QTableView>("breaks.table");
    QTRY_COMPARE(table->model()->rowCount(), 1);
    auto* details = find<QTextBrowser>("breaks.details");
    QTRY_VERIFY(details->toPlainText().contains("peak = x.softmax(-1).max()\n"));
    QCOMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("20"));  // passed by every call
    picture(QStringLiteral("manual-breaks.png"), window_->docks()->currentView(), 900);
    click(find<QTabWidget>("breaks.tabs")->tabBar());
    find<QTabWidget>("breaks.tabs")->setCurrentIndex(1);
    QTRY_VERIFY(find<QPlainTextEdit>("breaks.before")->toPlainText().contains(">>"));
    picture(QStringLiteral("manual-bytecode.png"), window_->docks()->currentView(), 900);
    table->setFocus();
    press(Qt::Key_Return);
    QTRY_COMPARE(current(), QStringLiteral("source"));
    QTRY_COMPARE(qobject_cast<views::SourceView*>(window_->docks()->currentView())->code()->currentLine(), 19);
  }

  void exportsTheDiagram() {
    go("graph");
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    auto* graph = qobject_cast<views::GraphView*>(window_->docks()->currentView());
    QTRY_VERIFY(!graph->canvas()->painter().empty());
    picture(QStringLiteral("manual-graph.png"), graph, 900);
    const QString path = folder_.filePath("diagram.svg");
    answerFileDialog(path);
    press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(window_->findChild<QLineEdit*>("commandPalette.edit"));
    QTest::keyClicks(window_->findChild<QLineEdit*>("commandPalette.edit"), "export picture");
    QTest::keyClick(window_->findChild<QLineEdit*>("commandPalette.edit"), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(path), 10000);
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY(file.readAll().contains("gelu"));
  }

  void looksAtTheTimelineAndGoesBack() {
    QTest::qWait(600);
    go("timeline");
    QTRY_COMPARE(current(), QStringLiteral("timeline"));
    picture(QStringLiteral("manual-timeline.png"), window_->docks()->currentView(), 900);
    QTest::mouseClick(window_->docks()->currentView(), Qt::BackButton);
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    press(Qt::Key_Right, Qt::AltModifier);
    QTRY_COMPARE(current(), QStringLiteral("timeline"));
  }

  void arrangesForDebuggingAndTakesThePicture() {
    press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(window_->findChild<QLineEdit*>("commandPalette.edit"));
    QTest::keyClicks(window_->findChild<QLineEdit*>("commandPalette.edit"), "s debug");
    QTest::keyClick(window_->findChild<QLineEdit*>("commandPalette.edit"), Qt::Key_Return);
    QTest::qWait(300);
    go("source");
    QTRY_COMPARE(current(), QStringLiteral("source"));
    go("graph");
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    picture(QStringLiteral("window.png"), window_.get());
  }

  void comparesTwoRuns() {
    press(Qt::Key_R, Qt::ControlModifier);
    QTRY_VERIFY(find<QLineEdit>("runDialog.arguments"));
    auto* arguments = find<QLineEdit>("runDialog.arguments");
    QTRY_VERIFY(arguments->isVisible());
    arguments->setFocus();
    QTest::keyClicks(arguments, "2");  // the script is still named
    QSignalSpy finished(window_->runner(), &ScriptRunner::finished);
    QTest::keyClick(arguments, Qt::Key_Return);
    QVERIFY(finished.wait(120000));
    QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("status.state")->text() == "finished", 20000);
    QVERIFY(window_->runner()->sessionPath() != firstRun_);
    answerFileDialog(firstRun_);
    press(Qt::Key_D, Qt::ControlModifier);
    const auto comparison = []() -> CompareWindow* {
      for (QWidget* widget : QApplication::topLevelWidgets()) {
        if (auto* compare = qobject_cast<CompareWindow*>(widget); compare && compare->isVisible()) return compare;
      }
      return nullptr;
    };
    QTRY_VERIFY(comparison());
    CompareWindow* compare = comparison();
    QTRY_VERIFY_WITH_TIMEOUT(compare->view()->table()->model()->rowCount() > 0, 20000);
    const QString cause = compare->findChild<QTextBrowser*>("compare.cause")->toPlainText();
    QVERIFY2(!cause.isEmpty(), "the first difference is named");
    picture(QStringLiteral("manual-compare.png"), compare, 900);
    QTest::keyClick(compare, Qt::Key_W, Qt::ControlModifier);
    QTRY_VERIFY(!comparison());
    window_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
  }

  void opensAStockTrace() {
    answerFileDialog(QStringLiteral(IMPORTER_DATA "/graph_break.log.gz"));
    press(Qt::Key_O, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(window_->windowTitle().contains("graph_break.log.gz"), 20000);
    go("artifacts");
    QTRY_COMPARE(current(), QStringLiteral("artifacts"));
    QTRY_VERIFY(find<QTableView>("artifacts.table")->model()->rowCount() > 20);
    go("breaks");
    QTRY_COMPARE(find<QTableView>("breaks.table")->model()->rowCount(), 3);
    QTRY_VERIFY(find<QTextBrowser>("breaks.details")->toPlainText().contains("What to do"));
  }

  void findsSomething() {
    press(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_COMPARE(current(), QStringLiteral("find"));
    QTest::keyClicks(find<QLineEdit>("find.text"), "item()");
    QTRY_VERIFY(find<QTableView>("find.table")->model()->rowCount() > 0);
    QVERIFY(!window_->messages()->isVisible());
  }

  void cleanupTestCase() { window_.reset(); }
};

QTEST_MAIN(PersonTest)
#include "person_test.moc"
