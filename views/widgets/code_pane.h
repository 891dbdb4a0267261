#pragma once

#include <QPlainTextEdit>
#include <map>
#include <vector>

#include "views/widgets/find_bar.h"
#include "views/widgets/highlighter.h"

namespace fusebox::views {

/// What stands beside a line of code.
struct LineMark {
  enum class Kind { None, Break, Failure };
  Kind kind = Kind::None;
  QString note;         ///< right-hand margin text ("2.1 ms"), may be empty
  double weight = 0;    ///< 0..1, length of the heat bar behind the note
  QString tooltip;
};

/// Read-only code with line numbers, marks in the left margin and times in a right one.
class CodePane : public QPlainTextEdit {
  Q_OBJECT
 public:
  CodePane(const QString& name, Language language, QWidget* parent = nullptr);

  void setCode(const QString& code);
  void setLanguage(Language language) { highlighter_->setLanguage(language); }
  Language language() const { return highlighter_->language(); }
  void setMarks(std::map<int, LineMark> marks);
  /// Lines where a debugger stops (false: not at the moment), shown behind their numbers.
  void setBreakpoints(std::map<int, bool> lines);
  /// The line at which a debugged program is stopped; 0: none.
  void setStopLine(int line);
  /// Lines (1-based, ascending) that belong to what is selected elsewhere; the first of them is scrolled into sight where none is.
  void setLinked(std::vector<int> lines);
  const std::vector<int>& linked() const { return linked_; }
  /// Puts the cursor on a line (1-based) and scrolls it to the middle.
  void goToLine(int line);
  int currentLine() const;
  /// Shows every hit and moves to one; true if there is one.
  bool findText(const QString& text, FindStep step = FindStep::Next);

 signals:
  void lineSelected(int line);
  /// A click beside the text.
  void marginClicked(int line);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  class Margin;
  void layoutMargins();
  void paintLeft(QPaintEvent* event);
  void paintRight(QPaintEvent* event);
  void highlightLine();
  void colourShownLines();
  void addLinked(QList<QTextEdit::ExtraSelection>& selections) const;
  /// Calls for the blocks in sight.
  template <class Take>
  void eachBlockInSight(Take take) const;
  void addHits(QList<QTextEdit::ExtraSelection>& selections) const;
  int lineAt(int y) const;
  const LineMark* markAt(int line) const;
  bool showMarkTip(const QPoint& globalPosition, int y);
  template <class Paint>
  void eachVisibleLine(const QRect& area, Paint paint) const;

  Highlighter* highlighter_;
  Margin* left_;
  Margin* right_;
  std::map<int, LineMark> marks_;
  std::map<int, bool> breakpoints_;
  int stopLine_ = 0;
  std::vector<int> linked_;
  bool hasNotes_ = false;
  QString search_;  ///< whose hits are shown
};

}  // namespace fusebox::views
