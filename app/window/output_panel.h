#pragma once

#include <QLineEdit>
#include <QPlainTextEdit>

#include "app/window/terminal_text.h"

namespace fusebox::window {

/// What a running script writes, and a line for its standard input.
class OutputPanel : public QWidget {
  Q_OBJECT
 public:
  explicit OutputPanel(QWidget* parent = nullptr);
  void begin(const QString& commandLine);
  void append(const QString& text, bool isError);
  void end(const QString& words);
  QString text() const { return text_->toPlainText(); }

 signals:
  void lineTyped(const QString& line);

 private:
  QPlainTextEdit* text_;
  QLineEdit* input_;
  TerminalText terminal_;
};

}  // namespace fusebox::window
