// What is read and what is taken hold of can be told from its ground, in both themes.
#include <QApplication>
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

#include "views/widgets/theme.h"

using namespace fusebox::views;

class ThemeTest : public QObject {
  Q_OBJECT
  static constexpr double kText = 4.5, kShape = 3.0;

  static QByteArray pair(const char* theme, const QColor& a, const QColor& b) {
    return QByteArray(theme) + ' ' + a.name().toLatin1() + " on " + b.name().toLatin1();
  }

 private slots:
  void initTestCase() {
    // The definition's own examples, and symmetry.
    QVERIFY(qAbs(contrast(Qt::black, Qt::white) - 21) < 1e-9);
    QVERIFY(qAbs(contrast(QColor(0x76, 0x76, 0x76), Qt::white) - 4.54) < 0.005);
    QCOMPARE(contrast(Qt::red, Qt::blue), contrast(Qt::blue, Qt::red));
  }

  void contrastIsEnough_data() {
    QTest::addColumn<QColor>("colour");
    QTest::addColumn<QColor>("ground");
    QTest::addColumn<double>("least");
    const std::initializer_list<Token> grounds{Token::Window, Token::Panel, Token::Raised, Token::Hover}, code{Token::Code, Token::CodeGutter, Token::CodeLine};
    struct Rule {
      Token token;
      std::vector<Token> grounds;
      double least;
    };
    std::vector<Rule> rules;
    for (const Token text : {Token::Text, Token::TextMuted, Token::TextFaint, Token::Accent, Token::Good, Token::Warning, Token::Error}) rules.push_back({text, grounds, kText});
    for (const Token text : {Token::Text, Token::CodeKeyword, Token::CodeType, Token::CodeString, Token::CodeNumber, Token::CodeComment, Token::CodeName, Token::TextFaint})
      rules.push_back({text, code, kText});
    rules.push_back({Token::Text, {Token::Selection, Token::AccentSoft, Token::WarningSoft, Token::ErrorSoft}, kText});
    rules.push_back({Token::TextMuted, {Token::AccentSoft, Token::WarningSoft, Token::ErrorSoft}, kText});
    rules.push_back({Token::Accent, {Token::AccentSoft, Token::WarningSoft, Token::ErrorSoft}, kText});
    rules.push_back({Token::OnAccent, {Token::Accent}, kText});
    rules.push_back({Token::Handle, {Token::Window, Token::Panel, Token::Raised, Token::Code}, kShape});
    rules.push_back({Token::Edge, {Token::Window, Token::Panel}, kShape});
    rules.push_back({Token::Accent, {Token::Window, Token::Panel, Token::Raised, Token::Border}, kShape});  // the frame of what has the keyboard
    for (const auto& [name, mode] : {std::pair{"light", Theme::Mode::Light}, {"dark", Theme::Mode::Dark}}) {
      Theme& theme = Theme::instance();
      theme.apply(mode);
      for (const Rule& rule : rules)
        for (const Token ground : rule.grounds) {
          const QColor a = theme.colour(rule.token), b = theme.colour(ground);
          QTest::newRow(pair(name, a, b) + ' ' + QByteArray::number(static_cast<int>(rule.token)) + '/' + QByteArray::number(static_cast<int>(ground))) << a << b << rule.least;
        }
      for (int c = 0; c < Theme::kCategories; ++c) {
        QTest::newRow(pair(name, theme.category(c), theme.colour(Token::Panel)) + " category") << theme.category(c) << theme.colour(Token::Panel) << kShape;
        QTest::newRow(pair(name, theme.onCategory(c), theme.category(c)) + " on category") << theme.onCategory(c) << theme.category(c) << kText;
        for (const Token text : {Token::Text, Token::TextMuted})
          QTest::newRow(pair(name, theme.colour(text), theme.categoryFill(c)) + " on fill") << theme.colour(text) << theme.categoryFill(c) << kText;
      }
      QFile grip(QStringLiteral(":/icons/grip.svg"));
      QVERIFY(grip.open(QIODevice::ReadOnly));
      const auto fill = QRegularExpression(QStringLiteral("fill=\"(#[0-9a-f]{6})\"")).match(QString::fromUtf8(grip.readAll()));
      QVERIFY(fill.hasMatch());
      QTest::newRow(QByteArray(name) + " grip of splitters") << QColor(fill.captured(1)) << theme.colour(Token::Window) << kShape;
    }
  }
  void contrastIsEnough() {
    QFETCH(QColor, colour);
    QFETCH(QColor, ground);
    QFETCH(double, least);
    QVERIFY2(contrast(colour, ground) >= least, qPrintable(QString::number(contrast(colour, ground), 'f', 2)));
  }

  /// What the style sheet paints, not only what the table holds: words and handles as they come to the screen.
  void paletteAndSheetUseIt() {
    for (const auto mode : {Theme::Mode::Light, Theme::Mode::Dark}) {
      Theme::instance().apply(mode);
      const QPalette palette = QApplication::palette();
      QVERIFY(contrast(palette.color(QPalette::PlaceholderText), palette.color(QPalette::Base)) >= kText);
      QVERIFY(contrast(palette.color(QPalette::Disabled, QPalette::WindowText), palette.color(QPalette::Window)) >= kText);
      const auto handle = QRegularExpression(QStringLiteral("QScrollBar::handle \\{ background: (#[0-9a-f]{6})")).match(qApp->styleSheet());
      QVERIFY(handle.hasMatch());
      QVERIFY(contrast(QColor(handle.captured(1)), palette.color(QPalette::Window)) >= kShape);
      QVERIFY2(!qApp->styleSheet().contains(QLatin1Char('@')), "a colour that the sheet names is not known");
    }
  }
};

QTEST_MAIN(ThemeTest)
#include "theme_test.moc"
