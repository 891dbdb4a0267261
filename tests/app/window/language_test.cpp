// The window in German: what is chosen by whom, that nothing a sentence holds gets lost, and what has to be there.
#include <QFile>
#include <QLabel>
#include <QMenuBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTabBar>
#include <QXmlStreamReader>
#include <QtTest>

#include "app/window/settings_thread.h"
#include "app/window/language.h"
#include "app/window/main_window.h"
#include "app/window/run_dialog.h"
#include "tests/app/window/cut_words.h"
#include "tests/profiler/synthetic_session.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using namespace fusebox::window;

namespace {

struct Message {
  QString context, source;
  QStringList translations;  ///< none: not translated
  bool isNumerus = false;
};

QList<Message> messagesOf(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  QXmlStreamReader xml(&file);
  QList<Message> all;
  QString context;
  Message message;
  bool isUnfinished = false;
  while (!xml.atEnd()) {
    const auto token = xml.readNext();
    if (token == QXmlStreamReader::EndElement && xml.name() == u"message") all << message;
    if (token != QXmlStreamReader::StartElement) continue;
    const QString name = xml.name().toString();
    if (name == "name") context = xml.readElementText();
    if (name == "message") message = {context, {}, {}, xml.attributes().value("numerus") == u"yes"};
    if (name == "source") message.source = xml.readElementText();
    if (name == "translation") {
      isUnfinished = xml.attributes().value("type") == u"unfinished";
      if (!message.isNumerus && !isUnfinished) message.translations << xml.readElementText();
    }
    if (name == "numerusform" && !isUnfinished) message.translations << xml.readElementText();
  }
  return all;
}

/// What a sentence is filled with: %1, %n, {} and the like, sorted.
QStringList placesIn(const QString& text) {
  static const QRegularExpression place(QStringLiteral("%L?\\d|%L?n|\\{[^}]*\\}|</?[a-z][^>]*>"));
  QStringList places;
  for (auto it = place.globalMatch(text); it.hasNext();) places << it.next().captured();
  places.sort();
  return places;
}

}  // namespace

class LanguageTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    QStandardPaths::setTestModeEnabled(true);
    QCoreApplication::setOrganizationName("fusebox-tests");
    QCoreApplication::setApplicationName("language");
    forgetSettings();
    views::Theme::instance().apply(views::Theme::Mode::Light);
    if (!languages().contains("de")) QSKIP("built without lrelease");
  }

  void theLocaleChoosesUnlessAPersonDoes() {
    QCOMPARE(languageFor("", {"de-DE", "en-US"}), QString("de"));
    QCOMPARE(languageFor("", {"de_AT"}), QString("de"));
    QCOMPARE(languageFor("", {"fr-FR", "de-CH"}), QString("de"));
    QCOMPARE(languageFor("", {"en-GB", "de-DE"}), QString("en"));
    QCOMPARE(languageFor("", {"C"}), QString("en"));
    QCOMPARE(languageFor("en", {"de-DE"}), QString("en"));
    QCOMPARE(languageFor("de", {"en-US"}), QString("de"));
    QCOMPARE(languageFor("klingon", {"de-DE"}), QString("de"));
    chooseLanguage("de");
    QCOMPARE(chosenLanguage(), QString("de"));
    chooseLanguage({});
  }

  void placesForValuesAreKept() {
    const auto all = messagesOf(TRANSLATION);
    QVERIFY(all.size() > 1500);
    QStringList wrong;
    for (const Message& m : all)
      for (const QString& text : m.translations) {
        QStringList wanted = placesIn(m.source), found = placesIn(text);
        // One form of several may say "once" instead of the number.
        if (m.isNumerus && m.translations.size() > 1) wanted.removeAll("%n"), found.removeAll("%n");
        if (wanted != found || (!m.source.isEmpty() && text.trimmed().isEmpty()) || m.source.endsWith('\n') != text.endsWith('\n')) wrong << m.context + ": " + m.source + " → " + text;
      }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void everySentenceIsTranslated() {
    QStringList missing;
    for (const Message& m : messagesOf(TRANSLATION))
      if (m.translations.isEmpty()) missing << m.context + ": " + m.source;
    QVERIFY2(missing.isEmpty(), qPrintable(missing.join('\n')));
  }

  void noGermanWordsAreCut_data() { test::windowSizes(); }
  void noGermanWordsAreCut() {
    QFETCH(QSize, size);
    QFETCH(bool, isDark);
    speak("de");
    views::Theme::instance().apply(isDark ? views::Theme::Mode::Dark : views::Theme::Mode::Light);
    const QString session = folder_.filePath("run.fusebox");
    QVERIFY(test::writeSyntheticSession(session.toStdString(), {.launches = 300}).has_value());
    MainWindow window(QStringLiteral("/bin/false"));
    window.show();
    window.openSession(session);
    QTRY_VERIFY(window.session() && window.session()->isOpen());
    const QStringList cut = test::cutWordsOf(window, size);
    views::Theme::instance().apply(views::Theme::Mode::Light);
    QVERIFY2(cut.isEmpty(), qPrintable(cut.join(QLatin1Char('\n'))));
  }

  void theWindowSpeaksGerman() {
    speak("de");
    const QString session = folder_.filePath("run.fusebox");
    QVERIFY(test::writeSyntheticSession(session.toStdString(), {.launches = 300}).has_value());
    MainWindow window(QStringLiteral("/bin/false"));
    window.resize(900, 560);
    window.show();
    QStringList menus;
    for (const QAction* menu : window.menuBar()->actions()) menus << menu->text();
    QCOMPARE(menus, (QStringList{"Datei", "Ausführen", "Debuggen", "Gehe zu", "Ansicht", "Anordnung", "Hilfe"}));
    window.openSession(session);
    QTRY_VERIFY(window.session() && window.session()->isOpen());
    QTRY_COMPARE(window.findChild<QLabel*>("status.state")->text(), QString("beendet"));
    QStringList tabs;
    for (const views::View* view : window.docks()->views()) tabs << view->title();
    QVERIFY2(tabs.startsWith("Übersicht") && tabs.contains("Zeitachse") && tabs.contains("Graphbrüche"), qPrintable(tabs.join(' ')));
    QTRY_VERIFY(window.findChild<QLabel*>("overview.number.frames")->text().toInt() >= 1);
    window.openSession(folder_.filePath("none.fusebox"));
    QTRY_VERIFY(window.messages()->isVisible() && window.messages()->text().contains("none.fusebox gibt es nicht"));
    QVERIFY2(window.registry()->conflicts().isEmpty(), qPrintable(window.registry()->conflicts().join('\n')));
    // Every button of the dialogs has room for its words.
    RunDialog dialog(&window);
    dialog.show();
    for (const auto* button : dialog.findChildren<QPushButton*>())
      if (button->isVisible()) QVERIFY2(button->width() >= button->minimumSizeHint().width(), qPrintable(button->text()));
  }
};

QTEST_MAIN(LanguageTest)
#include "language_test.moc"
