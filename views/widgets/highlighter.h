#pragma once

#include <QRegularExpression>
#include <QSyntaxHighlighter>

#include "views/widgets/theme.h"

namespace fusebox::views {

enum class Language { Plain, Python, LoopIr, LlvmIr, Assembly, Json };

/// Colours one of the languages that the window shows, by a table of rules per language. Follows the theme.
class Highlighter : public QSyntaxHighlighter {
  Q_OBJECT
 public:
  Highlighter(Language language, QTextDocument* document);

  void setLanguage(Language language);

  /// Words that are found by Ctrl+F and shown on a background; empty: none.
  void setSearch(const QString& text);

 protected:
  void highlightBlock(const QString& text) override;

 private:
  struct Rule {
    QRegularExpression pattern;
    Token token;
  };
  void highlightPythonStrings(const QString& text);

  Language language_;
  QList<Rule> rules_;
  QString search_;
};

}  // namespace fusebox::views
