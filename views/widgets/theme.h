#pragma once

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QObject>
#include <QPalette>

class QPainter;
class QWidget;

namespace fusebox::views {

/// Every colour of the window. Views ask for tokens, never for literal colours.
enum class Token {
  Window, Panel, Raised, Hover, Border, BorderStrong, Text, TextMuted, TextFaint, Accent, AccentSoft, OnAccent,
  Selection, Good, Warning, WarningSoft, Error, ErrorSoft, Grid, Edge, EdgeStrong, Handle, Shadow,
  Code, CodeGutter, CodeLine, CodeKeyword, CodeType, CodeString, CodeNumber, CodeComment, CodeName,
  Count
};

/// Light and dark colours from one table, the application's palette and style sheet made from them, and themed icons.
class Theme : public QObject {
  Q_OBJECT
 public:
  enum class Mode { System, Light, Dark };
  static constexpr int kCategories = 10;

  /// The application's one theme; valid while a QApplication exists.
  static Theme& instance();

  /// Applies the style, palette and style sheet to the application and tells the views.
  void apply(Mode mode);
  Mode mode() const { return mode_; }
  bool dark() const { return dark_; }

  QColor colour(Token token) const;
  /// Colour-blind-safe category colours (after Okabe and Ito); any index is folded into the table.
  QColor category(int index) const;
  /// Black or white, whichever is read better on a category's full colour.
  QColor onCategory(int index) const;
  /// A category as a fill behind text in the current theme.
  QColor categoryFill(int index) const;
  /// An icon of resources/icons, drawn in the text colour (disabled state faint).
  QIcon icon(const QString& name) const;
  static QFont monospace();

 signals:
  void changed();

 private:
  Theme() = default;
  bool systemIsDark() const;
  QPalette palette() const;
  QString styleSheet() const;

  Mode mode_ = Mode::System;
  bool dark_ = false;
};

/// The contrast of two opaque colours as the web's accessibility guidelines (WCAG 2) define it: 1 to 21. Text wants 4.5, what is only seen 3.
double contrast(const QColor& a, const QColor& b);

inline QColor themed(Token token) { return Theme::instance().colour(token); }

/// The border that says that `widget` has the keyboard, where it has; the last thing that it paints.
void paintFrame(QPainter& painter, const QWidget& widget);

/// The category that a name always gets (operators, groups, kernels), the same in every view and run.
int categoryOf(const QString& name);

}  // namespace fusebox::views
