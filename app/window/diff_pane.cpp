#include "app/window/diff_pane.h"

#include <QTextBlock>
#include <algorithm>

#include "app/debug/debug_text.h"
#include "views/widgets/theme.h"

namespace fusebox::window {

using views::Theme;
using views::Token;

DiffPane::DiffPane(const QString& name, QWidget* parent) : QPlainTextEdit(parent) {
  setObjectName(name);
  setAccessibleName(tr("What the pass changed"));
  setReadOnly(true);
  setLineWrapMode(NoWrap);
  setFrameShape(NoFrame);
  setFont(Theme::monospace());
  setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  connect(&Theme::instance(), &Theme::changed, this, &DiffPane::showLines);
}

void DiffPane::setTexts(const QString& before, const QString& after, Stage stage) {
  before_ = before;
  after_ = after;
  stage_ = stage;
  showLines();
}

void DiffPane::showLines() {
  clear();
  QTextCursor cursor(document());
  cursor.beginEditBlock();
  bool first = true;
  const auto add = [&](const QString& text, Token ink, const QColor& ground) {
    QTextBlockFormat block;
    if (ground.isValid()) block.setBackground(ground);
    QTextCharFormat format;
    format.setForeground(views::themed(ink));
    if (first) {
      cursor.setBlockFormat(block);
      cursor.setCharFormat(format);
    } else {
      cursor.insertBlock(block, format);
    }
    first = false;
    cursor.insertText(text, format);
  };
  int firstChange = -1, number = 0;
  if (stage_ != Stage::Done) {
    add(stage_ == Stage::NotRun ? tr("The pass has not run yet; this is what it starts from.")
                                : tr("What it made is code, not a text: stop at kernel_compile to read it. It started from this."),
        Token::TextMuted, {});
    for (const QString& line : before_.split(QLatin1Char('\n'))) add(QStringLiteral("  ") + line, Token::Text, {});
  } else {
    const auto lines = debugging::diffLines(before_.toStdString(), after_.toStdString());
    const auto changed = std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.mark != ' '; });
    add(changed ? tr("Changed lines: %1 (− went, + came)").arg(changed) : tr("The pass changed nothing."),
        Token::TextMuted, {});
    QColor came = views::themed(Token::Good);
    came.setAlphaF(0.16F);
    for (const auto& line : lines) {
      ++number;
      if (line.mark != ' ' && firstChange < 0) firstChange = number;
      const QString text = QString::fromStdString(line.text);
      if (line.mark == '-')
        add(QStringLiteral("− ") + text, Token::Text, views::themed(Token::ErrorSoft));
      else if (line.mark == '+')
        add(QStringLiteral("+ ") + text, Token::Text, came);
      else
        add(QStringLiteral("  ") + text, Token::TextMuted, {});
    }
  }
  cursor.endEditBlock();
  setTextCursor(QTextCursor(document()->findBlockByNumber(std::max(firstChange, 0))));
  centerCursor();
}

}  // namespace fusebox::window
