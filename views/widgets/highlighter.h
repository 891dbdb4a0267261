#pragma once

#include <QRegularExpression>
#include <QSyntaxHighlighter>

#include "views/widgets/theme.h"

namespace fusebox::views {

enum class Language { Plain, Python, Cpp, LoopIr, LlvmIr, Assembly, Json };

/// Colours one of the languages that the window shows, by a table of rules per language. Follows the theme. Of a long text only the
/// lines are coloured that were shown (but of Python, whose strings span lines).
class Highlighter : public QSyntaxHighlighter {
  Q_OBJECT
 public:
  Highlighter(Language language, QTextDocument* document);

  void setLanguage(Language language);
  Language language() const { return language_; }
  /// Lines from 0 that are on the screen.
  void showLines(int first, int last);
  bool isShown(int first, int last) const { return first == first_ && last == last_; }

 protected:
  void highlightBlock(const QString& text) override;

 private:
  struct Rule {
    QRegularExpression pattern;
    Token token;
    Token second;  ///< of the pattern's group "second"; Count: there is none
  };
  void highlightPythonStrings(const QString& text);
  bool isLong() const;

  int first_ = 0, last_ = 200;  ///< lines on the screen
  Language language_;
  QList<Rule> rules_;
};

}  // namespace fusebox::views
