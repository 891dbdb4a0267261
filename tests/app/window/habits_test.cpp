// What holds everywhere in the window: names for screen readers, keys, translation, back and forward, layouts, find,
// manual, recovery.
#include <sys/wait.h>
#include <unistd.h>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAccessible>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QLineEdit>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QStandardPaths>
#include <QTabBar>
#include <QTableView>
#include <QTextBlock>
#include <QTextBrowser>
#include <QToolBar>
#include <QToolButton>
#include <QTranslator>
#include <QTreeWidget>
#include <QtTest>
#include <future>

#include "app/window/crash_guard.h"
#include "app/window/main_window.h"
#include "app/window/manual_window.h"
#include "app/window/window_log.h"
#include "app/window/run_dialog.h"
#include "app/window/settings_thread.h"
#include "engine/support/text.h"
#include "profiler/compare/comparison.h"
#include "tests/profiler/synthetic_session.h"
#include "views/compare/compare_model.h"
#include "views/find/find_view.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/theme.h"
#include "tests/app/window/cut_words.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::window;
using views::Location;
using views::ObjectKind;

namespace {

/// A language in which every text that goes through tr() is marked.
class MarkedLanguage : public QTranslator {
 public:
  bool isEmpty() const override { return false; }
  QString translate(const char*, const char* text, const char*, int) const override {
    const QString source = QString::fromUtf8(text);
    return source.isEmpty() ? source : QStringLiteral("⟦%1⟧").arg(source);
  }
};

/// Titles and sentences of a page's advice, without its diffs.
QStringList adviceOn(const QTextBrowser* page) {
  QStringList texts;
  bool advice = false;
  for (QTextBlock block = page->document()->begin(); block.isValid(); block = block.next()) {
    const QString text = block.text();
    const bool diff = text.isEmpty() || QStringLiteral("+-@ \\").contains(text[0]);
    if (advice && !diff) texts << text;
    if (text == QStringLiteral("⟦What to do⟧")) advice = true;
  }
  return texts;
}

/// Qt's own inner parts, which are named by what they are part of.
bool isInnerPart(const QWidget* widget) {
  if (widget->objectName().startsWith(QLatin1String("qt_")) || qobject_cast<const QHeaderView*>(widget)) return true;
  for (const char* name : {"QTableCornerButton", "QComboBoxListView", "QComboBoxPrivateContainer", "QMenuBarExtension",
                           "QToolBarExtension", "QDockWidgetTitleButton", "QScrollBar", "QSizeGrip", "QRubberBand",
                           "QDockWidgetSeparator", "QFocusFrame"}) {
    if (widget->inherits(name)) return true;
  }
  const QWidget* parent = widget->parentWidget();
  if (qobject_cast<const QTabBar*>(parent) || qobject_cast<const QComboBox*>(parent) ||
      qobject_cast<const QLineEdit*>(parent))
    return true;
  return false;
}

/// The mean of a picture's grey values, 0 to 255; -1 of none.
double brightness(const QImage& picture) {
  if (picture.isNull()) return -1;
  const QImage grey = picture.scaled(64, 64, Qt::IgnoreAspectRatio, Qt::SmoothTransformation).convertToFormat(QImage::Format_Grayscale8);
  double sum = 0;
  for (int y = 0; y < grey.height(); ++y)
    for (int x = 0; x < grey.width(); ++x) sum += grey.constScanLine(y)[x];
  return sum / (grey.width() * grey.height());
}

bool takesFocus(const QWidget* widget) {
  return widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) != 0 && !isInnerPart(widget);
}

QString describe(const QWidget* widget) {
  return QStringLiteral("%1 %2 in %3")
      .arg(QString::fromLatin1(widget->metaObject()->className()), widget->objectName(),
           widget->parentWidget() ? widget->parentWidget()->objectName() : QString());
}

}  // namespace

class HabitsTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString session_;
  std::unique_ptr<MainWindow> window_;

  void open(const QString& path) {
    window_->openSession(path);
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
  }
  void makeWindow() {
    window_.reset();
    window_ = std::make_unique<MainWindow>(QStringLiteral("/nonexistent/fusebox"));
    window_->resize(1280, 800);
    window_->show();
    QVERIFY(QTest::qWaitForWindowActive(window_.get(), kPatienceMs));
  }
  /// Waits until every question has its answer and what is calculated from the answers is shown.
  bool settles() const {
    int quiet = 0;  // an answer may ask again, and a calculation hand over its result
    return QTest::qWaitFor(
        [&] {
          const bool busy = window_->session()->pending() > 0 || QThreadPool::globalInstance()->activeThreadCount() > 0;
          return (quiet = busy ? 0 : quiet + 1) > 3;
        },
        30'000);
  }
  QString current() const { return window_->docks()->currentView()->id(); }
  template <class T>
  T* find(const char* name) const {
    return window_->findChild<T*>(QString::fromLatin1(name));
  }

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("habits");
    setTranslator([](const Text& text) { return QCoreApplication::translate(text.context, text.text).toStdString(); });
    views::Theme::instance().apply(views::Theme::Mode::Light);
    session_ = folder_.filePath("run.fusebox");
    QVERIFY(test::writeSyntheticSession(session_.toStdString(), {.launches = 3000}).has_value());
  }
  void init() {
    forgetSettings();
    makeWindow();
  }
  void cleanup() { window_.reset(); }

  /// What the window was told is known at once, whatever the disk does.
  void aSlowDiskDoesNotHoldUpTheWindow() {
    QCOMPARE(setting("habits/colour", "none").toString(), QString("none"));
    std::promise<void> go;
    changeSettings([wait = go.get_future().share()](QSettings&) { wait.wait(); });
    keepSettings({{"habits/colour", "blue"}});
    makeWindow();
    QCOMPARE(setting("habits/colour").toString(), QString("blue"));
    QVERIFY(!QSettings().contains("habits/colour"));
    keepSettings({{"habits/colour", {}}, {"habits/shape", 3}});
    QCOMPARE(setting("habits/colour", "none").toString(), QString("none"));
    go.set_value();
    settingsThread().waitForDone();
    QVERIFY(!QSettings().contains("habits/colour"));
    QCOMPARE(QSettings().value("habits/shape").toInt(), 3);
  }

  /// A disk that has answered neither when the window comes nor when it goes keeps the arrangement that it has.
  void whatWasNotReadIsNotWrittenOver() {
    window_.reset();
    forgetSettings();
    QSettings().setValue("layouts/current", "profile");
    std::promise<void> go;
    changeSettings([wait = go.get_future().share()](QSettings&) { wait.wait(); });
    makeWindow();
    QVERIFY(!areSettingsRead());
    window_->close();
    go.set_value();
    settingsThread().waitForDone();
    QCOMPARE(QSettings().value("layouts/current").toString(), QString("profile"));
    QVERIFY(!QSettings().contains("window/geometry"));
  }

  void everythingThatTakesTheFocusHasANameForScreenReaders() {
    open(session_);
    RunDialog run(window_.get());
    window_->showManual();
    int seen = 0;
    QStringList blank;
    for (QWidget* widget : window_->findChildren<QWidget*>()) {
      if (!takesFocus(widget)) continue;
      // Qt keeps tab bars that docks no longer use.
      if (const auto* bar = qobject_cast<const QTabBar*>(widget); bar && bar->count() == 0) continue;
      ++seen;
      QAccessibleInterface* access = QAccessible::queryAccessibleInterface(widget);
      const QString name = access ? access->text(QAccessible::Name) : QString();
      if (name.trimmed().isEmpty()) blank << describe(widget);
    }
    for (const auto& entry : window_->registry()->entries()) {
      if (entry.action->text().isEmpty() || entry.action->toolTip().isEmpty()) blank << entry.id;
    }
    QVERIFY2(blank.isEmpty(), qPrintable(blank.join(QLatin1Char('\n'))));
    QVERIFY2(seen > 40, qPrintable(QString::number(seen)));
  }

  /// Who clicks on the tab of a view can use its keys at once.
  void aClickedTabHasTheKeys() {
    open(session_);
    window_->goTo(Location::ofView("overview"));
    QVERIFY(settles());
    for (const auto& [title, id] : {std::pair{"Timeline", "timeline"}, {"Graph", "graph"}}) {
      QTabBar* bar = nullptr;
      int tab = -1;
      for (auto* one : window_->docks()->findChildren<QTabBar*>(QStringLiteral("dockHost.tabs"))) {
        for (int i = 0; i < one->count(); ++i) {
          if (one->tabText(i) == QLatin1String(title)) bar = one, tab = i;
        }
      }
      QVERIFY2(bar, title);
      QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(tab).center());
      QVERIFY(settles());
      QWidget* canvas = window_->docks()->view(id)->findChild<QWidget*>(QString::fromLatin1(id) + QStringLiteral(".canvas"));
      QVERIFY(canvas);
      QTRY_VERIFY2(canvas->hasFocus(), QApplication::focusWidget() ? qPrintable(describe(QApplication::focusWidget())) : "nothing");
    }
  }

  void tabReachesEveryPartOfAView_data() {
    QTest::addColumn<QString>("view");
    for (const char* view :
         {"overview", "source", "graph", "guards", "kernels", "timeline", "recompiles", "breaks", "find"})
      QTest::newRow(view) << QString::fromLatin1(view);
  }
  void tabReachesEveryPartOfAView() {
    QFETCH(QString, view);
    open(session_);
    window_->goTo(Location::ofView(view.toStdString()));
    QVERIFY(settles());
    views::View* shown = window_->docks()->view(view);
    QSet<QWidget*> wanted, reached;
    for (QWidget* widget : shown->findChildren<QWidget*>()) {
      if (takesFocus(widget) && widget->isVisible() && !widget->focusProxy()) wanted.insert(widget);
    }
    QVERIFY(!wanted.isEmpty());
    (*wanted.begin())->setFocus();
    for (int i = 0; i < 600 && reached.size() < wanted.size(); ++i) {
      if (QWidget* now = QApplication::focusWidget(); now && wanted.contains(now)) reached.insert(now);
      // Tab is a character in an editor that is not read-only; here all are read-only.
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(), Qt::Key_Tab);
    }
    QStringList missed;
    for (QWidget* widget : wanted) {
      if (!reached.contains(widget)) missed << describe(widget);
    }
    QVERIFY2(missed.isEmpty(), qPrintable(missed.join(QLatin1Char('\n'))));
  }

  void everyTextIsReadyForTranslation() {
    MarkedLanguage language;
    QCoreApplication::installTranslator(&language);
    makeWindow();
    open(session_);
    RunDialog run(window_.get());
    window_->showManual();
    for (views::View* view : window_->docks()->views()) {
      window_->goTo(Location::ofView(view->id().toStdString()));
      QVERIFY2(settles(), qPrintable(view->id()));
    }
    auto* kinds = find<QTableView>("slowness.kinds");
    QTRY_VERIFY(kinds->model()->rowCount() > 0);
    // What the compiler itself recorded as a hint is shown as it is.
    const QString hint = QStringLiteral("move the print out of the compiled code");
    QStringList advice;
    for (const auto& [kind, name] :
         {std::pair{ObjectKind::Failure, "recompiles.details"}, std::pair{ObjectKind::Break, "breaks.details"}}) {
      window_->goTo(Location::of(kind, 1));
      QTRY_VERIFY(adviceOn(find<QTextBrowser>(name)).size() >= 2);
      advice << adviceOn(find<QTextBrowser>(name));
    }
    advice.removeAll(hint);
    QCoreApplication::removeTranslator(&language);
    QStringList plain;
    const auto check = [&plain](const QString& text, const QString& where) {
      // Numbers, signs and names of files are the same in every language.
      static const QRegularExpression words(QStringLiteral("[A-Za-z]{3,}"));
      if (text.contains(words) && !text.contains(QChar(0x27E6))) plain << where + QStringLiteral(": ") + text;
    };
    for (const auto& entry : window_->registry()->entries()) check(entry.action->text(), entry.id);
    for (const auto* button : window_->findChildren<QAbstractButton*>()) {
      if (!isInnerPart(button)) check(button->text(), button->objectName());
    }
    for (const auto* edit : window_->findChildren<QLineEdit*>()) check(edit->placeholderText(), edit->objectName());
    for (const auto* table : window_->findChildren<QTableView*>()) {
      for (int c = 0; c < table->model()->columnCount(); ++c)
        check(table->model()->headerData(c, Qt::Horizontal).toString(), table->objectName());
    }
    for (const auto* bar : window_->findChildren<QTabBar*>()) {
      if (bar->objectName() == QLatin1String("sessionTabs")) continue;  // names of files
      for (int i = 0; i < bar->count(); ++i) check(bar->tabText(i), QStringLiteral("tab"));
    }
    for (const auto* label : window_->findChildren<QLabel*>()) {
      const QString name = label->objectName();
      // These show what the session holds.
      if (name.startsWith(QLatin1String("overview.")) || name.startsWith(QLatin1String("status.")) ||
          name == QLatin1String("memory.measured") || name == QLatin1String("artifacts.head"))
        continue;
      check(label->text(), name);
    }
    for (const QString& text : advice) check(text, QStringLiteral("advice"));
    for (int r = 0; r < kinds->model()->rowCount(); ++r) {
      for (const int column : {0, 4}) check(kinds->model()->index(r, column).data().toString(), kinds->objectName());
      check(kinds->model()->index(r, 0).data(Qt::ToolTipRole).toString(), kinds->objectName());
    }
    const QStringList parts = find<QWidget>("slowness.bar")->accessibleDescription().split(QStringLiteral(", "));
    for (const QString& part : parts) check(part, QStringLiteral("slowness.bar"));
    QVERIFY2(plain.isEmpty(), qPrintable(plain.join(QLatin1Char('\n'))));
  }

  void everySentenceOfAComparisonIsReadyForTranslation() {
    MarkedLanguage language;
    QCoreApplication::installTranslator(&language);
    auto a = session::Reader::open(session_.toStdString()), b = session::Reader::open(session_.toStdString());
    QVERIFY(a && b);
    const auto comparison = compare::compareSessions(**a, **b);
    QVERIFY(comparison.has_value());
    const auto rows = views::compareRows(*comparison, {.same = true});
    QCoreApplication::removeTranslator(&language);
    const auto marked = [](const std::string& text) { return text.find("⟦") != std::string::npos; };
    QVERIFY2(marked(comparison->cause.headline), comparison->cause.headline.c_str());
    for (const std::string& limit : comparison->limits) QVERIFY2(marked(limit), limit.c_str());
    int words = 0;
    for (const views::TableRow& row : rows) {
      const compare::Entry& entry = comparison->entries[static_cast<size_t>(row.location.id - 1)];
      using enum compare::Subject;
      // Functions, options and lines have names of their own.
      if (entry.subject != Section && entry.subject != Graph && entry.subject != Memory && entry.subject != Time &&
          entry.subject != Count)
        continue;
      ++words;
      const std::string& name = row.cells[views::kCompareNameA].text;
      QVERIFY2(marked(name), name.c_str());
      QVERIFY2(entry.note.empty() || marked(entry.note), entry.note.c_str());
    }
    QVERIFY2(words > 10, qPrintable(QString::number(words)));
  }

  void mouseButtonsGoBackAndForward() {
    open(session_);
    window_->goTo(Location::ofView("kernels"));
    QTest::qWait(600);
    window_->goTo(Location::ofView("guards"));
    QTest::mouseClick(window_->docks()->currentView(), Qt::BackButton);
    QTRY_COMPARE(current(), QStringLiteral("kernels"));
    QTest::mouseClick(window_->docks()->currentView(), Qt::ForwardButton);
    QTRY_COMPARE(current(), QStringLiteral("guards"));
  }

  void layoutsAreKeptByTask() {
    open(session_);
    find<QAction>("layout.profile")->trigger();
    auto* kernels = find<QDockWidget>("dock.kernels");
    kernels->close();
    QTRY_VERIFY(!kernels->isVisible());
    find<QAction>("layout.debug")->trigger();
    QTRY_VERIFY(!kernels->isHidden());
    find<QAction>("layout.profile")->trigger();
    QTRY_VERIFY(kernels->isHidden());
    window_->close();
    makeWindow();  // the next run
    QVERIFY(find<QDockWidget>("dock.kernels")->isHidden());
    find<QAction>("layout.reset")->trigger();
    QVERIFY(!find<QDockWidget>("dock.kernels")->isHidden());
  }

  void everyLayoutFitsASmallScreen() {
    open(session_);
    for (const char* layout : {"layout.compile", "layout.debug", "layout.profile", "layout.tabs"}) {
      find<QAction>(layout)->trigger();
      QTest::qWait(100);
      QVERIFY2(window_->size() == QSize(1280, 800), layout);
    }
  }

  /// A click on the next tab finds it where it was.
  void theDebugPanelKeepsItsHeight() {
    find<QAction>("layout.compile")->trigger();
    window_->resize(1280, 800);
    open(session_);
    find<QAction>("debug.show")->trigger();
    auto* tabs = find<QTabWidget>("debug.tabs");
    QTRY_VERIFY(tabs->isVisible());
    QSet<int> places;
    for (int i = 0; i < tabs->count(); ++i) {
      tabs->setCurrentIndex(i);
      QTest::qWait(60);
      places.insert(tabs->tabBar()->mapTo(window_.get(), QPoint()).y());
    }
    QVERIFY(tabs->count() > 4);
    QCOMPARE(places.size(), 1);
    find<QAction>("debug.show")->trigger();
  }

  void noWordsAreCut_data() { test::windowSizes(); }
  void noWordsAreCut() {
    QFETCH(QSize, size);
    QFETCH(bool, isDark);
    views::Theme::instance().apply(isDark ? views::Theme::Mode::Dark : views::Theme::Mode::Light);
    open(session_);
    const QStringList cut = test::cutWordsOf(*window_, size);
    views::Theme::instance().apply(views::Theme::Mode::Light);
    QVERIFY2(cut.isEmpty(), qPrintable(cut.join(QLatin1Char('\n'))));
  }

  void findInEverythingLeadsToTheThing() {
    open(session_);
    QTest::keyClick(window_.get(), Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_COMPARE(current(), QStringLiteral("find"));
    auto* edit = find<QLineEdit>("find.text");
    QTRY_COMPARE(QApplication::focusWidget(), edit);
    QTest::keyClicks(edit, "GELU");
    auto* view = qobject_cast<views::FindView*>(window_->docks()->currentView());
    auto* table = find<QTableView>("find.table");
    QTRY_VERIFY(table->model()->rowCount() > 5 && !view->searching());
    QSet<QString> groups;
    for (int r = 0; r < table->model()->rowCount(); ++r) groups.insert(table->model()->index(r, 0).data().toString());
    QVERIFY(groups.contains("Nodes") && groups.contains("Kernels") && groups.contains("Source lines"));
    QTest::keyClick(edit, Qt::Key_Return);
    QTRY_COMPARE(QApplication::focusWidget(), table);
    for (int r = 0; r < table->model()->rowCount(); ++r) {
      if (table->model()->index(r, 0).data().toString() == "Kernels") {
        table->selectRow(r);
        break;
      }
    }
    QTest::keyClick(table, Qt::Key_Return);
    QTRY_COMPARE(current(), QStringLiteral("kernels"));
  }

  void paletteFindsNodesAndSettings() {
    open(session_);
    QTest::keyClick(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(find<views::CommandPalette>("commandPalette"));
    auto* list = find<QListWidget>("commandPalette.list");
    QTest::keyClicks(find<QLineEdit>("commandPalette.edit"), "n gelu");
    QTRY_VERIFY(list->count() > 0 && list->item(0)->text().contains("gelu"));
    QTest::keyClick(find<QLineEdit>("commandPalette.edit"), Qt::Key_Return);
    QTRY_COMPARE(current(), QStringLiteral("graph"));
    QTRY_VERIFY(!find<views::CommandPalette>("commandPalette"));
    QTest::keyClick(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY(find<views::CommandPalette>("commandPalette"));
    QTest::keyClicks(find<QLineEdit>("commandPalette.edit"), "s dark");
    QTRY_VERIFY(find<QListWidget>("commandPalette.list")->item(0)->text().contains("Dark theme"));
    QTest::keyClick(find<QLineEdit>("commandPalette.edit"), Qt::Key_Return);
    QTRY_VERIFY(views::Theme::instance().dark());
    views::Theme::instance().apply(views::Theme::Mode::Light);
  }

  void f1OpensThePageAboutWhatIsSelected() {
    open(session_);
    window_->goTo(Location::of(ObjectKind::Failure, 1));
    QTRY_COMPARE(current(), QStringLiteral("recompiles"));
    QTest::keyClick(window_.get(), Qt::Key_F1);
    auto* manual = find<ManualWindow>("manual");
    QVERIFY(manual);
    QCOMPARE(manual->page(), QStringLiteral("recompiles"));
    auto* text = manual->findChild<QTextBrowser*>("manual.text");
    QVERIFY(text->toPlainText().contains("recompile", Qt::CaseInsensitive));
    QTest::keyClicks(manual->findChild<QLineEdit*>("manual.search"), "epilogue");
    auto* pages = manual->findChild<QListWidget*>("manual.pages");
    QCOMPARE(pages->count(), 1);
    QCOMPARE(pages->item(0)->text(), QStringLiteral("Terms"));
  }

  void everyPageAndLinkOfTheManualExists() {
    const QStringList pages = ManualWindow::pages();
    QVERIFY(pages.size() > 10);
    static const QRegularExpression link(QStringLiteral(R"(\]\(([a-z_]+)\.md\))"));
    QStringList files = pages;
    for (const QString& translated : QDir(":/manual/de").entryList({"*.md"})) files << "de/" + translated.chopped(3);
    QVERIFY(files.contains("de/tutorial"));
    for (const QString& name : files) {
      QFile file(QStringLiteral(":/manual/%1.md").arg(name));
      const QString folder = QStringLiteral(":/manual/") + name.left(name.indexOf(QLatin1Char('/')) + 1);
      QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(name));
      const QString text = QString::fromUtf8(file.readAll());
      QVERIFY2(text.startsWith("# "), qPrintable(name));
      for (auto it = link.globalMatch(text); it.hasNext();) {
        const QString target = it.next().captured(1);
        QVERIFY2(pages.contains(target), qPrintable(name + " links to " + target));
      }
      static const QRegularExpression picture(QStringLiteral(R"(!\[[^\]]+\]\(([a-z_]+\.png)\))"));
      for (auto it = picture.globalMatch(text); it.hasNext();) {
        const QString target = it.next().captured(1);
        const QImage light(folder + target), dark(folder + "dark/" + target);
        QVERIFY2(light.width() > 600, qPrintable(name + " shows " + target));
        QVERIFY2(dark.width() > 600, qPrintable(name + " shows " + target + " in the light theme only"));
        QVERIFY2(brightness(light) > 150 && brightness(dark) < 100, qPrintable(target));
      }
    }
    for (const views::View* view : window_->docks()->views()) {
      const QString page = ManualWindow::pageFor({}, view->id());
      QVERIFY2(pages.contains(page), qPrintable(view->id()));
      if (page == "index") qWarning().noquote() << "the manual has no page about" << view->id();
    }
  }

  /// In a dark window its pictures are dark.
  void picturesOfTheManualFollowTheTheme() {
    QTest::keyClick(window_.get(), Qt::Key_F1);
    auto* manual = find<ManualWindow>("manual");
    QVERIFY(manual);
    manual->openPage(QStringLiteral("graph"));
    auto* text = manual->findChild<QTextBrowser*>("manual.text");
    const auto shown = [&] { return brightness(text->document()->resource(QTextDocument::ImageResource, QUrl(QStringLiteral("graph.png"))).value<QImage>()); };
    QTRY_VERIFY(shown() > 150);
    views::Theme::instance().apply(views::Theme::Mode::Dark);
    QTRY_VERIFY(shown() > 0 && shown() < 100);
    views::Theme::instance().apply(views::Theme::Mode::Light);
    QTRY_VERIFY(shown() > 150);
  }

  /// The status bar writes a path below the home folder with ~, and has all of it as its tooltip.
  void thePathIsShownFromHome() {
    open(session_);
    QCOMPARE(find<QLabel>("status.path")->text(), session_);
    const QByteArray home = qgetenv("HOME");
    window_.reset();  // nobody else reads the environment meanwhile
    qputenv("HOME", QFileInfo(session_).path().toUtf8());
    makeWindow();
    open(session_);
    const QString text = find<QLabel>("status.path")->text(), whole = find<QLabel>("status.path")->toolTip();
    window_.reset();
    qputenv("HOME", home);
    QCOMPARE(text, QStringLiteral("~/") + QFileInfo(session_).fileName());
    QCOMPARE(whole, session_);
  }

  void cheatSheetHasEveryShortcut() {
    window_->findChild<QAction*>("help.keys")->trigger();
    auto* table = find<QTableView>("keys.table");
    QTRY_VERIFY(table);
    QSet<QString> keys;
    for (int r = 0; r < table->model()->rowCount(); ++r) keys.insert(table->model()->index(r, 0).data().toString());
    for (const auto& entry : window_->registry()->entries()) {
      const QString key = entry.action->shortcut().toString(QKeySequence::NativeText);
      QVERIFY2(key.isEmpty() || keys.contains(key), qPrintable(entry.id));
    }
  }

  void theExampleOpensAndHoldsWhatTheManualSays() {
    find<QAbstractButton>("start.example")->click();
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    QTRY_VERIFY(find<QLabel>("overview.number.launches")->text() != QStringLiteral("–"));
    QVERIFY(!window_->messages()->isVisible());
    window_->goTo(Location::ofView("breaks"));
    QTRY_VERIFY(find<QTableView>("breaks.table")->model()->rowCount() >= 1);
    QVERIFY(find<QPlainTextEdit>("breaks.before")->toPlainText().contains(">>"));
    window_->goTo(Location::ofView("recompiles"));
    QTRY_VERIFY(find<QTableView>("recompiles.entries")->model()->rowCount() >= 2);
    QTRY_VERIFY(find<QTextBrowser>("recompiles.details")->toPlainText().contains("The call that did not fit"));
  }

  void theWindowKeepsALog() {
    const QString state = folder_.filePath("log");
    qputenv("FUSEBOX_LOG", "warning");
    installLog(state);
    qCInfo(windowLog) << "news";
    qCWarning(windowLog) << "trouble";
    QFile log(QDir(state).filePath("window.log"));
    QVERIFY(log.open(QIODevice::ReadOnly));
    const QByteArray text = log.readAll();
    QVERIFY2(text.contains("warning fusebox.window: trouble") && !text.contains("news"), text.constData());
    QVERIFY(lastLogLines().contains("trouble"));
    // The window that comes next keeps this one's.
    qputenv("FUSEBOX_LOG", "info");
    installLog(state);
    open(session_);
    QVERIFY2(lastLogLines().contains("info fusebox.window: opened " + session_), qPrintable(lastLogLines()));
    QVERIFY(QFile::exists(QDir(state).filePath("window.log.old")));
    qunsetenv("FUSEBOX_LOG");
  }

  /// It is shown as one kind, says that there are others, and opens the one that is chosen.
  void aFolderOfSeveralKindsOffersTheOthers() {
    const QDir mixed(folder_.filePath("mixed"));
    QVERIFY(mixed.mkpath("."));
    QVERIFY(QFile::copy(IMPORTER_DATA "/given_up.log.gz", mixed.filePath("dedicated_log_torch_trace_1.log.gz")));
    QVERIFY(QFile::copy(IMPORTER_DATA "/cpu_sums.json.gz", mixed.filePath("profile.json.gz")));
    window_->openSession(mixed.path());
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
    QTRY_VERIFY(window_->messages()->isVisible() && window_->messages()->text().contains("other kinds"));
    for (auto* button : window_->messages()->findChildren<QAbstractButton*>()) {
      if (button->text() == "Choose…") QTest::mouseClick(button, Qt::LeftButton);
    }
    QTRY_VERIFY(window_->findChild<QDialog*>("others"));
    window_->findChild<QDialog*>("others")->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok)->click();
    QTRY_VERIFY(window_->session() && window_->session()->isOpen() && window_->session()->path() == mixed.filePath("profile.json.gz"));
    QVERIFY(!window_->messages()->isVisible());
    window_->openSession(session_);
    QTRY_VERIFY(window_->session()->isOpen() && window_->session()->path() == session_);
  }

  void aCrashIsReportedAndTheSessionOfferedAgain() {
    const QString state = folder_.filePath("state");
    const pid_t child = fork();
    if (child == 0) {
      crash_guard::install(state);
      const int windows[] = {0, 1, 2};
      crash_guard::noteOpen(&windows[0], session_);
      crash_guard::noteOpen(&windows[1], folder_.filePath("other.fusebox"));
      crash_guard::noteOpen(&windows[2], folder_.filePath("closed.fusebox"));
      crash_guard::noteOpen(&windows[2], {});
      qInfo("the last words");
      std::abort();
    }
    int status = 0;
    waitpid(child, &status, 0);
    QVERIFY(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    const auto leftovers = crash_guard::takeLeftovers(state);
    QCOMPARE(leftovers.size(), 1);
    QCOMPARE(leftovers[0].sessions, QStringList({session_, folder_.filePath("other.fusebox")}));
    QFile report(leftovers[0].report);
    QVERIFY(report.open(QIODevice::ReadOnly));
    const QByteArray text = report.readAll();
    QVERIFY(text.contains("SIGABRT") && text.contains("the last words") && text.contains(session_.toUtf8()));
    QVERIFY2(text.count("[0x") >= 3, text.constData());
    QVERIFY(crash_guard::takeLeftovers(state).isEmpty());
    window_->offerRecovery(leftovers);
    QVERIFY(window_->messages()->isVisible());
    for (auto* button : window_->messages()->findChildren<QAbstractButton*>()) {
      if (button->text().contains("Open it again")) QTest::mouseClick(button, Qt::LeftButton);
    }
    QTRY_VERIFY(window_->session() && window_->session()->isOpen());
  }
};

QTEST_MAIN(HabitsTest)
#include "habits_test.moc"
