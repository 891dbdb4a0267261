#include "views/source/source_view.h"

#include <QFileInfo>
#include <QHeaderView>
#include <QProcess>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/query/holdings.h"
#include "profiler/session/reader.h"
#include "views/common/units.h"
#include "views/source/line_editor.h"
#include "views/widgets/side_splitter.h"
#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

QString tooltipOf(const query::LineNotes& notes, const std::vector<const SourceEvent*>& events) {
  QStringList lines;
  for (const SourceEvent* event : events) {
    if (event->kind == SourceEvent::Kind::Kernel) continue;
    lines << (event->kind == SourceEvent::Kind::Break ? SourceView::tr("Graph break: %1").arg(str(event->headline))
                                                      : SourceView::tr("Guard failed: %1").arg(str(event->headline)));
    lines << str(event->detail);
    if (!event->hint.empty()) lines << SourceView::tr("What helps: %1").arg(str(event->hint));
  }
  if (notes.timeNs > 0) {
    lines << SourceView::tr("%1 in %2 kernels, %3 launches")
                 .arg(str(formatDuration(static_cast<double>(notes.timeNs))), str(formatCount(notes.kernels)),
                      str(formatCount(notes.launches)));
  }
  return lines.join(QLatin1Char('\n'));
}

/// Lines that nobody quoted are not empty lines of the program.
QString withGaps(const QString& text) {
  QStringList lines = text.split(QLatin1Char('\n'));
  for (qsizetype i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].isEmpty()) lines[i] = QStringLiteral("⋯");
  }
  return lines.join(QLatin1Char('\n'));
}

}  // namespace

SourceView::SourceView(const ViewContext& context) : View(context) {
  files_ = new DataTable(QStringLiteral("source.files"), tr("Filter files"),
                         {{tr("File")}, {tr("Breaks"), {}, true}, {tr("Time"), tr("Time of the kernels that its lines became"), true}});
  files_->setStretchColumn(0);
  code_ = new CodePane(QStringLiteral("source.code"), Language::Python);
  code_->setAccessibleName(tr("Source code"));
  findBar_ = new FindBar(QStringLiteral("source.find"),
                         [this](const QString& text, FindStep step) { return code_->findText(text, step); });
  auto* middle = new QWidget;
  auto* middleColumn = new QVBoxLayout(middle);
  middleColumn->setContentsMargins(0, 0, 0, 0);
  middleColumn->setSpacing(0);
  middleColumn->addWidget(code_, 1);
  middleColumn->addWidget(findBar_);
  empty_ = new EmptyState(middle, QStringLiteral("source"));
  details_ = new DetailsPanel(QStringLiteral("source.details"));
  auto* side = new QSplitter(Qt::Vertical);
  side->addWidget(files_);
  side->addWidget(details_);
  side->setSizes({200, 460});
  auto* split = new SideSplitter(760);
  split->addWidget(empty_);
  split->addWidget(side);
  split->setStretchFactor(0, 1);
  split->setSizes({860, 330});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(split);

  connect(files_, &DataTable::rowSelected, this, [this](const TableRow& row) { openFile(row.location.file, 0); });
  connect(code_, &CodePane::lineSelected, this, [this](int line) {
    explainLine(line);
    if (announceLines_ && !source_.path.empty()) announce(Location::sourceLine(source_.path, line));
  });
  connect(code_, &CodePane::marginClicked, this, [this](int line) {
    if (!source_.path.empty()) emit lineClicked(str(source_.path), line);
  });
  connect(details_, &DetailsPanel::linkActivated, bus(), &SelectionBus::open);
  connect(addViewAction(QStringLiteral("edit"), tr("Open the line in an editor")), &QAction::triggered, this, &SourceView::openEditor);
  clear();
}

void SourceView::openEditor() {
  const QString file = str(source_.onDisk);
  if (file.isEmpty()) return;
  if (!QFileInfo(file).isAbsolute() || !QFileInfo(file).isFile()) return details_->showHint(tr("%1 is not on this machine.").arg(file));
  QStringList words = editorCommand(qEnvironmentVariable("FUSEBOX_EDITOR"), file, code_->currentLine());
  if (words.isEmpty()) return details_->showHint(tr("No editor was found. FUSEBOX_EDITOR names one, for example: code -g {file}:{line}"));
  const QString program = words.takeFirst();
  if (!QProcess::startDetached(program, words)) details_->showHint(tr("%1 could not be started.").arg(program));
}

void SourceView::clear() {
  source_ = {};
  wantedPath_.clear();
  pendingLine_ = 0;
  files_->setRows({});
  sayNone({});
  if (session()) empty_->showReading();
  details_->showHint(tr("Select a line to see its graph breaks, failing guards and kernels."));
}

void SourceView::sayNone(const query::Holdings& holdings) {
  const QString hint = holdings.isOver ? tr("The recording speaks of no line of a file.") : tr("Files appear when a function of theirs is compiled.");
  files_->setEmptyText(holdings.isOver ? tr("No file") : tr("No file yet"), hint);
  empty_->showReason(holdings.isOver ? tr("No source") : tr("No source yet"), holdings.isOver ? hint : tr("Choose a file beside. Files appear when a function of theirs is compiled."));
}

void SourceView::load() {
  session()->ask<TableRows>(
      this, "files", [](session::Reader& reader) { return loadSourceFiles(reader); },
      [this](Result<TableRows>& rows) {
        if (!rows) return empty_->showReason(tr("The files cannot be read"), str(rows.error().text()));
        if (rows->empty()) askHoldings([this](const query::Holdings& holdings) { sayNone(holdings); });
        const std::string first = rows->empty() ? std::string() : rows->front().location.file;
        files_->setRows(std::move(*rows));
        openFile(wantedPath_.empty() ? first : wantedPath_, pendingLine_);
      });
}

void SourceView::openFile(const std::string& path, int line) {
  if (!session() || path.empty()) return;
  if (line > 0 && path == source_.path && path == wantedPath_) {  // already here
    announceLines_ = false;
    code_->goToLine(line);
    announceLines_ = true;
    return;
  }
  wantedPath_ = path;
  pendingLine_ = line;
  session()->ask<SourceText>(
      this, "source", [path](session::Reader& reader) { return loadSource(reader, path); },
      [this](Result<SourceText>& source) {
        if (!source) return empty_->showReason(tr("The file cannot be read"), str(source.error().text()));
        showSource(std::move(*source));
      });
}

void SourceView::showSource(SourceText source) {
  const bool same = source.path == source_.path && source.text == source_.text;
  source_ = std::move(source);
  announceLines_ = false;
  files_->select(Location::sourceLine(source_.path, 0));
  if (source_.text.empty()) {
    empty_->showReason(tr("%1 has no text in this session").arg(str(baseName(source_.path))), str(source_.problem));
  } else {
    empty_->showContent();
    if (!same) code_->setCode(source_.isQuoted ? withGaps(str(source_.text)) : str(source_.text));
  }
  showMarks();
  emit fileShown(str(source_.path));
  if (pendingLine_ > 0) {
    code_->goToLine(pendingLine_);
  } else if (!same) {
    code_->goToLine(worstLine());
  }
  pendingLine_ = 0;
  explainLine(code_->currentLine());
  announceLines_ = true;
}

/// What stands in the way first, then what takes most time.
int SourceView::worstLine() const {
  for (const auto kind : {SourceEvent::Kind::Uncompiled, SourceEvent::Kind::Break, SourceEvent::Kind::Failure}) {
    const auto first = std::find_if(source_.events.begin(), source_.events.end(), [kind](const SourceEvent& e) { return e.kind == kind; });
    if (first != source_.events.end()) return first->line;
  }
  const auto slowest = std::max_element(source_.notes.begin(), source_.notes.end(), [](const auto& a, const auto& b) { return a.second.timeNs < b.second.timeNs; });
  return slowest != source_.notes.end() && slowest->second.timeNs > 0 ? static_cast<int>(slowest->first) : 1;
}

void SourceView::showMarks() {
  std::map<int, LineMark> marks;
  std::map<int, std::vector<const SourceEvent*>> events;
  int64_t slowest = 1;
  for (const auto& [line, notes] : source_.notes) slowest = std::max(slowest, notes.timeNs);
  for (const auto& event : source_.events) {
    events[event.line].push_back(&event);
    LineMark& mark = marks[event.line];
    if (event.kind == SourceEvent::Kind::Break || event.kind == SourceEvent::Kind::Uncompiled) mark.kind = LineMark::Kind::Break;
    if (event.kind == SourceEvent::Kind::Failure && mark.kind == LineMark::Kind::None) mark.kind = LineMark::Kind::Failure;
  }
  for (const auto& [line, notes] : source_.notes) {
    LineMark& mark = marks[static_cast<int>(line)];
    if (notes.timeNs > 0) mark.note = str(formatDuration(static_cast<double>(notes.timeNs)));
    mark.weight = static_cast<double>(notes.timeNs) / static_cast<double>(slowest);
  }
  for (auto& [line, mark] : marks) {
    const auto notes = source_.notes.find(line);
    mark.tooltip = tooltipOf(notes == source_.notes.end() ? query::LineNotes{} : notes->second, events[line]);
  }
  code_->setMarks(std::move(marks));
}

void SourceView::explainLine(int line) {
  std::vector<SourceEvent> here;
  for (const auto& event : source_.events) {
    if (event.line == line) here.push_back(event);
  }
  query::LineNotes notes;
  if (const auto found = source_.notes.find(line); found != source_.notes.end()) notes = found->second;
  const bool isGap = source_.isQuoted && code_->document()->findBlockByNumber(line - 1).text() == QStringLiteral("⋯");
  details_->showPage([here, notes, line, isGap, path = source_.path, cuts = source_.cuts](DetailsPanel& page) {
    page.heading(str(shortPlace(path, line)));
    if (isGap) page.paragraph(tr("The text of this line is not in the imported file: it holds only the lines that it quotes."), true);
    page.pair(tr("kernel time"), notes.timeNs > 0 ? str(formatDuration(static_cast<double>(notes.timeNs))) : QString());
    page.pair(tr("launches"), notes.launches > 0 ? str(formatCount(notes.launches)) : QString());
    page.pair(tr("captured nodes"), notes.nodes > 0 ? str(formatCount(notes.nodes)) : QString());
    page.pair(tr("guards"), notes.guards > 0 ? str(formatCount(notes.guards)) : QString());
    const std::tuple<SourceEvent::Kind, QString> sections[] = {{SourceEvent::Kind::Uncompiled, tr("Not compiled")},
                                                               {SourceEvent::Kind::Break, tr("Graph breaks")},
                                                               {SourceEvent::Kind::Failure, tr("Guards that failed")},
                                                               {SourceEvent::Kind::Kernel, tr("Kernels")}};
    for (const auto& [kind, title] : sections) {
      bool first = true;
      for (const auto& event : here) {
        if (event.kind != kind) continue;
        if (first) page.section(title);
        first = false;
        if (kind == SourceEvent::Kind::Kernel) {
          page.pair(str(event.detail), str(event.headline), event.location);
          continue;
        }
        page.pair(kind == SourceEvent::Kind::Break || kind == SourceEvent::Kind::Uncompiled ? tr("kind") : tr("frame"), str(event.headline),
                  kind == SourceEvent::Kind::Failure ? event.location : Location{});
        page.paragraph(str(event.detail));
        if (!event.hint.empty()) page.paragraph(tr("What helps: %1").arg(str(event.hint)), true);
      }
    }
    for (const auto& cut : cuts) {
      const QString said = cut.kind == SourceEvent::Kind::Kernel ? tr("Of this file's kernels the first %1 of %2 are shown, up to line %3; Kernels has all.")
                                                                 : tr("Of this file's guards that failed the first %1 of %2 are shown, up to line %3; Guards has all.");
      page.paragraph(said.arg(str(formatCount(cut.shown)), str(formatCount(cut.all))).arg(cut.lastLine), true);
    }
    if (here.empty() && notes.nodes == 0 && notes.guards == 0) page.paragraph(tr("Nothing was recorded for this line."), true);
  });
}

void SourceView::showLocation(const Location& location) {
  if (location.kind == ObjectKind::SourceLine) {
    openFile(location.file, location.line);
  } else {
    follow(location);
  }
}

/// Goes to the line of any object.
void SourceView::follow(const Location& location) {
  if (!session() || location.kind == ObjectKind::None) return;
  if (!location.file.empty() && location.line > 0) return openFile(location.file, location.line);
  session()->ask<Location>(
      this, "place", [location](session::Reader& reader) { return placeOf(reader, location); },
      [this](Result<Location>& place) {
        if (place && !place->file.empty()) openFile(place->file, place->line);
      });
}

}  // namespace fusebox::views
