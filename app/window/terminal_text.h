#pragma once

#include <QPlainTextEdit>

namespace fusebox::window {

/// Writes into a text as a terminal would: carriage returns and backspaces go back, the cursor goes up (as progress bars do), the rest of a line
/// is erased, colours are those of the theme. Other control sequences leave nothing. A sequence may come in parts.
class TerminalText {
 public:
  explicit TerminalText(QPlainTextEdit* text);
  void write(const QString& text, const QTextCharFormat& format);
  /// What comes next begins a line of its own.
  void toEnd();

 private:
  /// Length of the control sequence at `at`; 0: more of it has to come.
  qsizetype sequence(QStringView text, qsizetype at);
  void colour(QStringView numbers);
  void put(QStringView run);
  void newLine();

  QTextCursor cursor_;
  QTextCharFormat plain_, format_;
  QString rest_;
};

}  // namespace fusebox::window
