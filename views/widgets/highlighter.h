#pragma once

#include <QRegularExpression>
#include <QSyntaxHighlighter>

#include "views/widgets/theme.h"

namespace fusebox::views {

enum class Language { Plain, Python, Cpp, LoopIr, LlvmIr, Assembly, Json };

/// Colours one of the languages that the window shows, by a table of rules per language. Follows the theme.
class Highlighter : public QSyntaxHighlighter {
  Q_OBJECT
 public:
  Highlighter(Language language, QTextDocument* document);

  void setLanguage(Language language);
  Language language() const { return language_; }

 protected:
  void highlightBlock(const QString& text) override;

 private:
  struct Rule {
    QRegularExpression pattern;
    Token token;
    Token second;  ///< of the pattern's group "second"; Count: there is none
  };
  void highlightPythonStrings(const QString& text);

  Language language_;
  QList<Rule> rules_;
};

}  // namespace fusebox::views
