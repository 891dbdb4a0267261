#include "app/window/terminal_text.h"

#include <QTextBlock>
#include <algorithm>

#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

constexpr QChar kEscape{0x1b};
constexpr qsizetype kLongestSequence = 64;

}  // namespace

TerminalText::TerminalText(QPlainTextEdit* text) : cursor_(text->document()) {}

void TerminalText::write(const QString& text, const QTextCharFormat& format) {
  if (format != plain_) plain_ = format_ = format;
  const QString all = std::exchange(rest_, {}) + text;
  const auto isControl = [](QChar c) { return c < QChar(0x20) || c == QChar(0x7f); };
  cursor_.beginEditBlock();
  for (qsizetype at = 0; at < all.size();) {
    qsizetype end = at;
    while (end < all.size() && (!isControl(all[end]) || all[end] == QLatin1Char('\t'))) ++end;
    put(QStringView(all).mid(at, end - at));
    at = end;
    if (at == all.size()) break;
    const QChar c = all[at];
    qsizetype length = 1;
    if (c == QLatin1Char('\n')) newLine();
    else if (c == QLatin1Char('\r')) cursor_.movePosition(QTextCursor::StartOfBlock);
    else if (c == QLatin1Char('\b') && !cursor_.atBlockStart()) cursor_.movePosition(QTextCursor::PreviousCharacter);
    else if (c == kEscape) length = sequence(all, at);
    if (length == 0) {
      rest_ = all.mid(at);
      break;
    }
    at += length;
  }
  cursor_.endEditBlock();
}

void TerminalText::toEnd() {
  rest_.clear();
  format_ = plain_;
  cursor_.movePosition(QTextCursor::End);
}

void TerminalText::put(QStringView run) {
  if (run.isEmpty()) return;
  const int left = cursor_.block().position() + cursor_.block().length() - 1 - cursor_.position();
  cursor_.movePosition(QTextCursor::NextCharacter, QTextCursor::KeepAnchor, std::min(left, static_cast<int>(run.size())));
  cursor_.insertText(run.toString(), format_);
}

void TerminalText::newLine() {
  if (cursor_.movePosition(QTextCursor::NextBlock)) return;
  cursor_.movePosition(QTextCursor::End);
  cursor_.insertBlock();
}

qsizetype TerminalText::sequence(QStringView text, qsizetype at) {
  if (at + 1 == text.size()) return 0;
  if (text[at + 1] != QLatin1Char('[')) return 2;
  qsizetype end = at + 2;
  while (end < text.size() && (text[end] < QChar(0x40) || text[end] > QChar(0x7e))) ++end;
  if (end == text.size()) return end - at > kLongestSequence ? end - at : 0;
  const QStringView numbers = text.mid(at + 2, end - at - 2);
  const int count = std::clamp(numbers.toInt(), 1, 1000);
  switch (text[end].toLatin1()) {
    case 'm': colour(numbers); break;
    case 'A': cursor_.movePosition(QTextCursor::PreviousBlock, QTextCursor::MoveAnchor, count); break;
    case 'B': cursor_.movePosition(QTextCursor::NextBlock, QTextCursor::MoveAnchor, count); break;
    case 'K':
      if (numbers.toInt() == 2) cursor_.movePosition(QTextCursor::StartOfBlock);
      cursor_.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
      cursor_.removeSelectedText();
      break;
    default: break;
  }
  return end + 1 - at;
}

void TerminalText::colour(QStringView numbers) {
  using views::Token;
  for (const QStringView word : numbers.split(QLatin1Char(';'))) {
    const int number = word.toInt();
    if (number == 0) format_ = plain_;
    else if (number == 1) format_.setFontWeight(QFont::Bold);
    else if (number == 38 || number == 48) return;  // colours by number: the theme has none of them
    else if (number == 39) format_.setForeground(plain_.foreground());
    else if (number % 60 == 31) format_.setForeground(views::themed(Token::Error));
    else if (number % 60 == 32) format_.setForeground(views::themed(Token::Good));
    else if (number % 60 == 33) format_.setForeground(views::themed(Token::Warning));
    else if (number % 60 >= 34 && number % 60 <= 36) format_.setForeground(views::themed(Token::Accent));
  }
}

}  // namespace fusebox::window
