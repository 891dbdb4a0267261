#include "views/widgets/code_pane.h"

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QTextBlock>
#include <QToolTip>
#include <algorithm>
#include <functional>

namespace fusebox::views {

/// A strip beside the text that paints by a function of the pane.
class CodePane::Margin : public QWidget {
 public:
  Margin(CodePane* pane, std::function<void(QPaintEvent*)> paint) : QWidget(pane), pane_(pane), paint_(std::move(paint)) {}

 protected:
  void paintEvent(QPaintEvent* event) override { paint_(event); }
  void mousePressEvent(QMouseEvent* event) override {
    const int line = pane_->lineAt(event->pos().y());
    // Where it is: centring would move the line from under the pointer.
    pane_->setTextCursor(QTextCursor(pane_->document()->findBlockByNumber(line - 1)));
    if (event->button() == Qt::LeftButton) emit pane_->marginClicked(line);
  }
  void wheelEvent(QWheelEvent* event) override { pane_->wheelEvent(event); }
  bool event(QEvent* event) override {
    if (event->type() == QEvent::ToolTip) {
      const auto* help = static_cast<QHelpEvent*>(event);
      return pane_->showMarkTip(help->globalPos(), help->pos().y());
    }
    return QWidget::event(event);
  }

 private:
  CodePane* pane_;
  std::function<void(QPaintEvent*)> paint_;
};

CodePane::CodePane(const QString& name, Language language, QWidget* parent)
    : QPlainTextEdit(parent), highlighter_(new Highlighter(language, document())) {
  setObjectName(name);
  setReadOnly(true);
  setLineWrapMode(NoWrap);
  setFrameShape(NoFrame);
  setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  left_ = new Margin(this, [this](QPaintEvent* event) { paintLeft(event); });
  right_ = new Margin(this, [this](QPaintEvent* event) { paintRight(event); });
  connect(this, &QPlainTextEdit::blockCountChanged, this, &CodePane::layoutMargins);
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int dy) {
    colourShownLines();  // a jump scrolls without a word of the scroll bar
    for (Margin* margin : {left_, right_}) {
      if (dy != 0) {
        margin->scroll(0, dy);
      } else {
        margin->update(0, rect.y(), margin->width(), rect.height());
      }
    }
  });
  connect(verticalScrollBar(), &QScrollBar::valueChanged, this, [this] {
    if (!search_.isEmpty() || !linked_.empty()) highlightLine();
  });
  connect(this, &QPlainTextEdit::cursorPositionChanged, this, [this] {
    highlightLine();
    emit lineSelected(currentLine());
  });
  const auto restyle = [this] {
    setFont(Theme::monospace());
    QPalette colours = palette();
    colours.setColor(QPalette::Base, themed(Token::Code));
    setPalette(colours);
    highlightLine();
    layoutMargins();
  };
  connect(&Theme::instance(), &Theme::changed, this, restyle);
  restyle();
}

void CodePane::setCode(const QString& code) {
  const QSignalBlocker quiet(this);
  marks_.clear();
  breakpoints_.clear();
  stopLine_ = 0;
  linked_.clear();
  hasNotes_ = false;
  setPlainText(code);
  highlighter_->showLines(0, viewport()->height() / std::max(1, fontMetrics().lineSpacing()) + 2);
  layoutMargins();
  highlightLine();
}

void CodePane::setMarks(std::map<int, LineMark> marks) {
  marks_ = std::move(marks);
  hasNotes_ = false;
  for (const auto& [line, mark] : marks_) hasNotes_ = hasNotes_ || !mark.note.isEmpty();
  layoutMargins();
  highlightLine();
  left_->update();
  right_->update();
}

void CodePane::setBreakpoints(std::map<int, bool> lines) {
  breakpoints_ = std::move(lines);
  left_->update();
}

void CodePane::setStopLine(int line) {
  stopLine_ = line;
  highlightLine();
}

void CodePane::setLinked(std::vector<int> lines) {
  linked_ = std::move(lines);
  const int shown = viewport()->height() / std::max(1, fontMetrics().lineSpacing()), top = firstVisibleBlock().blockNumber() + 1;
  const auto next = std::ranges::lower_bound(linked_, top);
  if (!linked_.empty() && (next == linked_.end() || *next >= top + shown)) verticalScrollBar()->setValue(std::max(0, linked_.front() - 1 - shown / 3));
  highlightLine();
}

int CodePane::currentLine() const { return textCursor().blockNumber() + 1; }

void CodePane::goToLine(int line) {
  const QTextBlock block = document()->findBlockByNumber(std::max(line, 1) - 1);
  if (!block.isValid()) return;
  setTextCursor(QTextCursor(block));
  centerCursor();
}

bool CodePane::findText(const QString& text, FindStep step) {
  search_ = text;
  highlightLine();
  if (text.isEmpty()) return true;
  const QTextCursor before = textCursor();
  if (step == FindStep::Here) {  // what grows letter by letter stays where it was found
    QTextCursor start = before;
    start.setPosition(before.selectionStart());
    setTextCursor(start);
  }
  const bool backwards = step == FindStep::Previous;
  const auto flags = backwards ? QTextDocument::FindBackward : QTextDocument::FindFlags();
  if (find(text, flags)) return true;
  QTextCursor wrapped(document());
  if (backwards) wrapped.movePosition(QTextCursor::End);
  setTextCursor(wrapped);
  if (find(text, flags)) return true;
  setTextCursor(before);
  return false;
}

void CodePane::layoutMargins() {
  const QFontMetrics metrics(font());
  const int digits = static_cast<int>(QString::number(std::max(blockCount(), 100)).size());
  const int leftWidth = metrics.horizontalAdvance(QLatin1Char('9')) * digits + metrics.height() + 14;
  const int rightWidth = hasNotes_ ? metrics.horizontalAdvance(QStringLiteral("888.8 ms ×8888")) + 12 : 0;
  setViewportMargins(leftWidth, 0, rightWidth, 0);
  const QRect area = contentsRect();
  left_->setGeometry(area.left(), area.top(), leftWidth, viewport()->height());
  right_->setGeometry(area.left() + leftWidth + viewport()->width(), area.top(), rightWidth, viewport()->height());
  right_->setVisible(hasNotes_);
}

void CodePane::colourShownLines() {
  const int first = firstVisibleBlock().blockNumber(), last = first + viewport()->height() / std::max(1, fontMetrics().lineSpacing()) + 2;
  if (!highlighter_->isShown(first, last)) highlighter_->showLines(first, last);
}

void CodePane::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  layoutMargins();
  colourShownLines();
}

void CodePane::changeEvent(QEvent* event) {
  QPlainTextEdit::changeEvent(event);
  if (event->type() == QEvent::FontChange) layoutMargins();
}

bool CodePane::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    return showMarkTip(help->globalPos(), help->pos().y());
  }
  return QPlainTextEdit::viewportEvent(event);
}

template <class Paint>
void CodePane::eachVisibleLine(const QRect& area, Paint paint) const {
  QTextBlock block = firstVisibleBlock();
  qreal top = blockBoundingGeometry(block).translated(contentOffset()).top();
  while (block.isValid() && top <= area.bottom()) {
    const qreal height = blockBoundingRect(block).height();
    if (block.isVisible() && top + height >= area.top()) paint(block.blockNumber() + 1, top, height);
    top += height;
    block = block.next();
  }
}

void CodePane::paintLeft(QPaintEvent* event) {
  QPainter painter(left_);
  painter.fillRect(event->rect(), themed(Token::CodeGutter));
  painter.setFont(font());
  painter.setRenderHint(QPainter::Antialiasing);
  const int mark = fontMetrics().height();
  const int current = currentLine();
  eachVisibleLine(event->rect(), [&](int line, qreal top, qreal height) {
    const QRectF numberBox(mark, top, left_->width() - mark - 8, height);
    const auto breakpoint = breakpoints_.find(line);
    if (breakpoint != breakpoints_.end()) {
      painter.setPen(QPen(themed(Token::Accent), 1));
      painter.setBrush(breakpoint->second ? QBrush(themed(Token::Accent)) : QBrush(Qt::NoBrush));
      painter.drawRoundedRect(numberBox.adjusted(2, 1.5, 4.5, -1.5), 4, 4);
    }
    painter.setPen(themed(breakpoint != breakpoints_.end() && breakpoint->second ? Token::OnAccent : line == current ? Token::Text : Token::TextFaint));
    painter.drawText(numberBox, Qt::AlignRight | Qt::AlignVCenter, QString::number(line));
    if (line == stopLine_) {  // an arrow to the line
      const qreal middle = top + height / 2, size = mark * 0.32;
      painter.setPen(Qt::NoPen);
      painter.setBrush(themed(Token::Accent));
      painter.drawPolygon(QPolygonF{{4, middle - size}, {4 + 2 * size, middle}, {4, middle + size}});
      return;
    }
    const LineMark* found = markAt(line);
    if (!found || found->kind == LineMark::Kind::None) return;
    const QRectF box(4, top + (height - mark * 0.7) / 2, mark * 0.7, mark * 0.7);
    painter.setPen(Qt::NoPen);
    painter.setBrush(themed(found->kind == LineMark::Kind::Break ? Token::Error : Token::Warning));
    if (found->kind == LineMark::Kind::Break) {  // shapes differ, not only colours
      painter.drawPolygon(QPolygonF{{box.center().x(), box.top()}, box.bottomRight(), box.bottomLeft()});
    } else {
      painter.drawEllipse(box.adjusted(1, 1, -1, -1));
    }
  });
}

void CodePane::paintRight(QPaintEvent* event) {
  QPainter painter(right_);
  painter.fillRect(event->rect(), themed(Token::CodeGutter));
  painter.setFont(font());
  QColor heat = themed(Token::Accent);
  heat.setAlphaF(0.28F);
  eachVisibleLine(event->rect(), [&](int line, qreal top, qreal height) {
    const LineMark* mark = markAt(line);
    if (!mark || mark->note.isEmpty()) return;
    const double width = mark->weight * (right_->width() - 4);
    painter.fillRect(QRectF(right_->width() - 2 - width, top + 1, width, height - 2), heat);
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(4, top, right_->width() - 10, height), Qt::AlignRight | Qt::AlignVCenter, mark->note);
  });
}

int CodePane::lineAt(int y) const { return cursorForPosition(QPoint(0, y)).blockNumber() + 1; }

const LineMark* CodePane::markAt(int line) const {
  const auto found = marks_.find(line);
  return found == marks_.end() ? nullptr : &found->second;
}

bool CodePane::showMarkTip(const QPoint& globalPosition, int y) {
  const LineMark* mark = markAt(lineAt(y));
  if (!mark || mark->tooltip.isEmpty()) {
    QToolTip::hideText();
    return false;
  }
  QToolTip::showText(globalPosition, mark->tooltip, this);
  return true;
}

void CodePane::highlightLine() {
  QList<QTextEdit::ExtraSelection> selections;
  const auto add = [&](const QTextBlock& block, const QColor& colour) {
    QTextEdit::ExtraSelection line;
    line.format.setBackground(colour);
    line.format.setProperty(QTextFormat::FullWidthSelection, true);
    line.cursor = QTextCursor(block);
    selections.append(line);
  };
  for (const auto& [line, mark] : marks_) {
    if (mark.kind == LineMark::Kind::None) continue;
    const QTextBlock block = document()->findBlockByNumber(line - 1);
    if (block.isValid()) add(block, themed(mark.kind == LineMark::Kind::Break ? Token::ErrorSoft : Token::WarningSoft));
  }
  add(textCursor().block(), themed(Token::CodeLine));
  if (const QTextBlock stop = document()->findBlockByNumber(stopLine_ - 1); stopLine_ > 0 && stop.isValid()) add(stop, themed(Token::AccentSoft));
  addLinked(selections);
  addHits(selections);
  setExtraSelections(selections);
  if (left_) left_->update();
}

template <class Take>
void CodePane::eachBlockInSight(Take take) const {
  for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
    if (blockBoundingGeometry(block).translated(contentOffset()).top() > viewport()->height()) break;
    take(block);
  }
}

void CodePane::addLinked(QList<QTextEdit::ExtraSelection>& selections) const {
  if (linked_.empty()) return;
  eachBlockInSight([&](const QTextBlock& block) {
    if (!std::ranges::binary_search(linked_, block.blockNumber() + 1)) return;
    QTextEdit::ExtraSelection line;
    line.format.setBackground(themed(Token::AccentSoft));
    line.format.setProperty(QTextFormat::FullWidthSelection, true);
    line.cursor = QTextCursor(block);
    selections.append(line);
  });
}

/// Of the lines in sight only: a text may have millions.
void CodePane::addHits(QList<QTextEdit::ExtraSelection>& selections) const {
  if (search_.isEmpty()) return;
  constexpr int kMost = 2000;
  int count = 0;
  eachBlockInSight([&](const QTextBlock& block) {
    const QString line = block.text();
    for (qsizetype at = 0; (at = line.indexOf(search_, at, Qt::CaseInsensitive)) >= 0 && count < kMost; at += search_.size(), ++count) {
      QTextEdit::ExtraSelection hit;
      hit.format.setBackground(themed(Token::WarningSoft));
      hit.cursor = QTextCursor(block);
      hit.cursor.setPosition(block.position() + static_cast<int>(at));
      hit.cursor.setPosition(block.position() + static_cast<int>(at + search_.size()), QTextCursor::KeepAnchor);
      selections.append(hit);
    }
  });
}

}  // namespace fusebox::views
