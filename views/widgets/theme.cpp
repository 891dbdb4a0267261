#include "views/widgets/theme.h"

#include <QApplication>
#include <QFile>
#include <QFontDatabase>
#include <QPainter>
#include <QPixmap>
#include <QStyleFactory>
#include <QSvgRenderer>
#include <QWidget>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/widgets/widget_defaults.h"

static void loadResources() { Q_INIT_RESOURCE(resources); }

namespace fusebox::views {
namespace {

struct TokenColours {
  QRgb light;
  QRgb dark;
};

constexpr std::array<TokenColours, static_cast<size_t>(Token::Count)> kTokens{{
    {0xfff3f4f6, 0xff1d1f23},  // Window
    {0xffffffff, 0xff25282d},  // Panel
    {0xfff8f9fa, 0xff2b2f35},  // Raised
    {0xffe9edf2, 0xff33383f},  // Hover
    {0xffd9dce1, 0xff383c43},  // Border
    {0xffb4bac3, 0xff545a64},  // BorderStrong
    {0xff1f2328, 0xffe3e5e8},  // Text
    {0xff505965, 0xffb8c0ca},  // TextMuted
    {0xff606873, 0xff9ca4af},  // TextFaint
    {0xff165fcc, 0xff66a9ff},  // Accent
    {0xffdce9fd, 0xff243a59},  // AccentSoft
    {0xffffffff, 0xff10151c},  // OnAccent
    {0xffcfe2ff, 0xff2c4a75},  // Selection
    {0xff177646, 0xff55c08a},  // Good
    {0xff8d5900, 0xffe5b052},  // Warning
    {0xfffff3d6, 0xff43371e},  // WarningSoft
    {0xffb83224, 0xffff8577},  // Error
    {0xfffde7e4, 0xff4a2a28},  // ErrorSoft
    {0xffe6e8ec, 0xff31353b},  // Grid
    {0xff868e99, 0xff747c87},  // Edge
    {0xff4a5360, 0xffb9c1cc},  // EdgeStrong
    {0xff7f8792, 0xff7c848f},  // Handle
    {0x22000000, 0x66000000},  // Shadow
    {0xffffffff, 0xff212429},  // Code
    {0xfff5f6f8, 0xff262a2f},  // CodeGutter
    {0xfff0f5fd, 0xff2a323d},  // CodeLine
    {0xff8430b8, 0xffd2a3f5},  // CodeKeyword
    {0xff0b6e8f, 0xff6fc9e0},  // CodeType
    {0xff1a7a3c, 0xff93d19c},  // CodeString
    {0xff9c4a00, 0xfff0b37a},  // CodeNumber
    {0xff646d78, 0xff949ca7},  // CodeComment
    {0xff0550ae, 0xff86b8ff},  // CodeName
}};

constexpr std::array<TokenColours, Theme::kCategories> kCategoryColours{{
    {0xff0072b2, 0xff4da3d9},  // blue
    {0xffd55e00, 0xffee8b45},  // vermilion
    {0xff009e73, 0xff3dc29c},  // green
    {0xffc56d9d, 0xffdd9bc0},  // pink
    {0xffb58900, 0xffe0b83d},  // ochre
    {0xff338fc9, 0xff7fcbf2},  // sky
    {0xff6a51a3, 0xffa690d8},  // violet
    {0xff7f6f5f, 0xffb5a592},  // taupe
    {0xff4d7c0f, 0xff9fc860},  // olive
    {0xff5b6b7b, 0xff97a6b5},  // slate
}};

QColor blend(const QColor& over, const QColor& under, double share) {
  return QColor::fromRgbF(over.redF() * share + under.redF() * (1 - share),
                          over.greenF() * share + under.greenF() * (1 - share),
                          over.blueF() * share + under.blueF() * (1 - share));
}

}  // namespace

Theme& Theme::instance() {
  static Theme theme;
  return theme;
}

bool Theme::systemIsDark() const {
  // Qt 6.4 has no colorScheme(): a system whose window is darker than its text is dark.
  static const bool dark = [] {
    const QPalette system = QGuiApplication::palette();
    return system.color(QPalette::Window).lightness() < system.color(QPalette::WindowText).lightness();
  }();
  return dark;
}

void Theme::apply(Mode mode) {
  loadResources();
  const bool system = systemIsDark();
  mode_ = mode;
  dark_ = mode == Mode::Dark || (mode == Mode::System && system);
  static bool styled = false;
  if (!styled) {
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    qApp->installEventFilter(new WidgetDefaults(qApp));
  }
  styled = true;
  QApplication::setPalette(palette());
  qApp->setStyleSheet(styleSheet());
  emit changed();
}

QColor Theme::colour(Token token) const {
  const auto& colours = kTokens[static_cast<size_t>(token)];
  return QColor::fromRgba(dark_ ? colours.dark : colours.light);
}

QColor Theme::category(int index) const {
  const auto& colours = kCategoryColours[static_cast<size_t>(index < 0 ? -index : index) % kCategories];
  return QColor::fromRgba(dark_ ? colours.dark : colours.light);
}

QColor Theme::categoryFill(int index) const {
  return blend(category(index), colour(Token::Panel), dark_ ? 0.22 : 0.20);
}

QColor Theme::onCategory(int index) const {
  const QColor below = category(index);
  return contrast(Qt::white, below) > contrast(Qt::black, below) ? Qt::white : Qt::black;
}

double contrast(const QColor& a, const QColor& b) {
  const auto luminance = [](const QColor& c) {
    const auto linear = [](double v) { return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QIcon Theme::icon(const QString& name) const {
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray source = file.readAll();
  QIcon icon;
  const std::pair<QIcon::Mode, Token> modes[] = {{QIcon::Normal, Token::Text}, {QIcon::Disabled, Token::TextFaint}};
  for (const auto& [mode, token] : modes) {
    QByteArray svg = source;
    svg.replace("currentColor", colour(token).name().toUtf8());
    QSvgRenderer renderer(svg);
    for (int size : {16, 32, 64}) {
      QPixmap pixmap(size, size);
      pixmap.fill(Qt::transparent);
      QPainter painter(&pixmap);
      renderer.render(&painter);
      icon.addPixmap(pixmap, mode);
    }
  }
  return icon;
}

QFont Theme::monospace() {
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(QApplication::font().pointSizeF());
  font.setStyleHint(QFont::Monospace);
  return font;
}

QPalette Theme::palette() const {
  QPalette p;
  const std::pair<QPalette::ColorRole, Token> roles[] = {
      {QPalette::Window, Token::Window},         {QPalette::WindowText, Token::Text},
      {QPalette::Base, Token::Panel},            {QPalette::AlternateBase, Token::Raised},
      {QPalette::Text, Token::Text},             {QPalette::Button, Token::Raised},
      {QPalette::ButtonText, Token::Text},       {QPalette::ToolTipBase, Token::Panel},
      {QPalette::ToolTipText, Token::Text},      {QPalette::Highlight, Token::Selection},
      {QPalette::HighlightedText, Token::Text},  {QPalette::Link, Token::Accent},
      {QPalette::LinkVisited, Token::Accent},    {QPalette::PlaceholderText, Token::TextFaint},
      {QPalette::BrightText, Token::Error},      {QPalette::Mid, Token::Border},
      {QPalette::Midlight, Token::Border},       {QPalette::Dark, Token::BorderStrong}};
  for (const auto& [role, token] : roles) p.setColor(role, colour(token));
  for (auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    p.setColor(QPalette::Disabled, role, colour(Token::TextFaint));
  }
  return p;
}

QString Theme::styleSheet() const {
  QFile file(QStringLiteral(":/style.qss"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  QString sheet = QString::fromUtf8(file.readAll());
  const std::pair<const char*, Token> names[] = {
      {"@accentSoft", Token::AccentSoft}, {"@accent", Token::Accent},   {"@onAccent", Token::OnAccent},
      {"@borderStrong", Token::BorderStrong}, {"@handle", Token::Handle}, {"@border", Token::Border}, {"@window", Token::Window},
      {"@panel", Token::Panel},           {"@raised", Token::Raised},   {"@hover", Token::Hover},
      {"@textMuted", Token::TextMuted},   {"@textFaint", Token::TextFaint}, {"@text", Token::Text},
      {"@selection", Token::Selection},   {"@warningSoft", Token::WarningSoft}, {"@warning", Token::Warning},
      {"@errorSoft", Token::ErrorSoft},   {"@error", Token::Error}};
  for (const auto& [name, token] : names) sheet.replace(QLatin1String(name), colour(token).name());
  return sheet;
}

void paintFrame(QPainter& painter, const QWidget& widget) {
  if (!widget.hasFocus()) return;
  painter.setPen(themed(Token::Accent));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(widget.rect().adjusted(0, 0, -1, -1));
}

int categoryOf(const QString& name) {
  // FNV-1a: stable between runs and machines, unlike qHash.
  quint32 hash = 2166136261u;
  for (const QChar c : name) hash = (hash ^ c.unicode()) * 16777619u;
  return static_cast<int>((hash >> 8) % Theme::kCategories);
}

}  // namespace fusebox::views
