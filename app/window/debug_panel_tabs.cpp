// The tabs of the debug panel, and what is typed in them.
#include <QCompleter>
#include <QFileInfo>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>

#include "app/debug/command_words.h"
#include "app/debug/debug_text.h"
#include "app/debug/script_functions.h"
#include "app/window/debug_panel.h"
#include "app/window/debug_rows.h"
#include "app/window/diff_pane.h"
#include "app/window/tensor_pane.h"
#include "engine/support/message_fields.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

using debugging::numberField;
using debugging::textField;
using views::CodePane;
using views::DataTable;
using views::EmptyState;
using views::Language;
using views::str;

QSplitter* sideBySide(QWidget* left, QWidget* right, int leftShare, int rightShare) {
  auto* split = new QSplitter;
  split->addWidget(left);
  split->addWidget(right);
  split->setSizes({leftShare * 10, rightShare * 10});
  return split;
}

QWidget* column(std::initializer_list<QWidget*> widgets) {
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  for (QWidget* widget : widgets) layout->addWidget(widget);
  return page;
}

QWidget* row(std::initializer_list<QWidget*> widgets, QWidget* stretched = nullptr) {
  auto* page = new QWidget;
  page->setObjectName(QStringLiteral("viewToolbar"));
  page->setAttribute(Qt::WA_StyledBackground);
  auto* layout = new QHBoxLayout(page);
  layout->setContentsMargins(6, 4, 6, 4);
  for (QWidget* widget : widgets) layout->addWidget(widget, widget == stretched ? 1 : 0);
  return page;
}

QPushButton* button(const char* name, const QString& text, const QString& tooltip) {
  auto* made = new QPushButton(text);
  made->setObjectName(QString::fromLatin1(name));
  made->setAccessibleName(text);
  made->setToolTip(tooltip);
  return made;
}

}  // namespace

EmptyState* DebugPanel::framed(QWidget* content, const char* name) {
  return new EmptyState(content, QStringLiteral("debug.") + QLatin1String(name));
}

DataTable* DebugPanel::addTable(const char* name, const QString& filterHint, std::vector<views::TableColumn> columns,
                                const QString& headline, const QString& hint) {
  auto* table = new DataTable(QStringLiteral("debug.") + QLatin1String(name), filterHint, std::move(columns));
  table->setEmptyText(headline, hint);
  connect(table, &DataTable::rowActivated, this, [this](const views::TableRow& row) {
    if (!row.location.file.empty()) emit placeChosen(str(row.location.file), row.location.line);
  });
  return table;
}

void DebugPanel::addPart(int tab, const char* question, EmptyState* empty, std::function<void(const Json&)> show) {
  parts_.push_back({tab, question, empty, std::move(show), true});
}

void DebugPanel::buildVariables() {
  const QString hint =
      tr("They are known while a frame is being captured: stop at a line, a graph break or a compile.");
  const QString sourceTip =
      tr("How guards will name it: where the value was read from. Values made while capturing have no source; what "
         "nobody has read yet is not guarded.");
  locals_ = addTable("locals", tr("Filter locals"),
                     {{tr("Local")},
                      {tr("Value"), tr("In short; tensors are stand-ins without data while capturing")},
                      {tr("Source"), sourceTip}},
                     tr("No locals"), hint);
  stack_ = addTable(
      "stack", tr("Filter stack"),
      {{tr("Slot"), tr("0 is the bottom of the frame's value stack"), true}, {tr("Value")}, {tr("Source"), sourceTip}},
      tr("The stack is empty"),
      tr("Values lie on it in the middle of an expression. At the beginning of a line, and before the capture of a frame has begun, there are none."));
  for (DataTable* table : {locals_, stack_}) table->model()->setMonospaceColumns({1, 2});
  auto *localsFrame = framed(locals_, "locals.known"), *stackFrame = framed(stack_, "stack.known");
  variablesTab_ = tabs_->addTab(sideBySide(localsFrame, stackFrame, 60, 40), tr("Variables"));
  addPart(variablesTab_, "locals", localsFrame, [this](const Json& answer) { locals_->setRows(localRows(answer)); });
  addPart(variablesTab_, "stack", stackFrame, [this](const Json& answer) { stack_->setRows(stackRows(answer)); });
}

void DebugPanel::buildFrames() {
  frames_ = addTable(
      "frames", tr("Filter frames"),
      {{tr("#"), {}, true}, {tr("Function")}, {tr("Place")}, {tr("Instruction"), tr("What it is about to execute")}},
      tr("No frames"), tr("Frames are listed while one is being captured."));
  frames_->model()->setMonospaceColumns({3});
  connect(frames_, &DataTable::rowSelected, this,
          [this](const views::TableRow& chosen) { frameChosen(static_cast<int>(chosen.cells[0].number)); });
  code_ = new CodePane(QStringLiteral("debug.code"), Language::Plain);
  code_->setAccessibleName(tr("Bytecode round the current instruction"));
  auto *framesFrame = framed(frames_, "frames.known"), *codeFrame = framed(code_, "code.known");
  framesTab_ = tabs_->addTab(sideBySide(framesFrame, codeFrame, 55, 45), tr("Frames"));
  addPart(framesTab_, "frames", framesFrame, [this](const Json& answer) { frames_->setRows(frameRows(answer)); });
  addPart(framesTab_, "code", codeFrame, [this](const Json& answer) {
    int current = 0;
    code_->setCode(str(codeListing(answer, &current)));
    code_->goToLine(current);
  });
}

/// Locals, stack and bytecode of a caller.
void DebugPanel::frameChosen(int up) {
  if (up == frameUp_) return;
  frameUp_ = up;
  for (Part& part : parts_)
    part.isStale |= part.question == "locals" || part.question == "stack" || part.question == "code";
  fill();
}

void DebugPanel::buildGuards() {
  guards_ = addTable("guards", tr("Filter guards"),
                     {{tr("#"), tr("Order in which they were made"), true},
                      {tr("Kind"), tr("What is checked")},
                      {tr("On"), tr("Where the value is read from: L is a local of the frame, G its globals")},
                      {tr("Expected"), tr("What the compiled code will be made for")},
                      {tr("Line"), tr("What made the assumption")}},
                     tr("No guards yet"), tr("Every value that tracing reads adds its assumptions here."));
  guards_->model()->setMonospaceColumns({2, 3});
  auto* frame = framed(guards_, "guards.known");
  addPart(tabs_->addTab(frame, tr("Guards")), "guards", frame,
          [this](const Json& answer) { guards_->setRows(guardRowsOf(answer)); });
}

void DebugPanel::buildTexts() {
  graph_ = new CodePane(QStringLiteral("debug.graph"), Language::Plain);
  graph_->setAccessibleName(tr("The graph captured so far"));
  auto* graphFrame = framed(graph_, "graph.known");
  addPart(tabs_->addTab(graphFrame, tr("Graph")), "graph", graphFrame, [this](const Json& answer) {
    graph_->setCode(str(textField(answer, "text")));
    graph_->goToLine(graph_->blockCount());
  });
  diff_ = new DiffPane(QStringLiteral("debug.diff"));
  auto* diffFrame = framed(diff_, "diff.known");
  addPart(tabs_->addTab(diffFrame, tr("Pass")), "ir", diffFrame, [this](const Json& answer) {
    const bool isDone = answer.value("done", false);
    diff_->setTexts(str(textField(answer, "before")), str(textField(answer, "after")),
                    !isDone                    ? DiffPane::Stage::NotRun
                    : answer.contains("after") ? DiffPane::Stage::Done
                                               : DiffPane::Stage::DoneWithoutText);
  });
}

void DebugPanel::buildFusions() {
  fusionNow_ = new QLabel;
  fusionNow_->setObjectName(QStringLiteral("debug.fusion.now"));
  fusionNow_->setWordWrap(true);
  auto* forbid = button("debug.fusion.forbid", tr("Forbid"), tr("Keep these two apart, here and in graphs to come"));
  auto* force =
      button("debug.fusion.force", tr("Force"), tr("Fuse them whether it pays or not, where that is possible"));
  connect(forbid, &QPushButton::clicked, this, [this] { controller_->fusion("forbid"); });
  connect(force, &QPushButton::clicked, this, [this] { controller_->fusion("force"); });
  fusions_ =
      addTable("fusions", tr("Filter fusions"),
               {{tr("#"), tr("Order in which they will be decided"), true},
                {tr("First")},
                {tr("Second")},
                {tr("Kind"), tr("vertical: the second reads what the first makes; horizontal: both read the same")},
                {tr("Saves"), tr("Score: bytes of memory traffic that fusing saves"), true}},
               tr("No pair waits"), tr("This is the last fusion of the round."));
  fusions_->model()->setMonospaceColumns({1, 2});
  rules_ = addTable("rules", tr("Filter rules"), {{tr("Rule")}, {tr("Operations")}}, tr("No rule is in force"), tr("Forbid and Force make one for the pair that is decided."));
  rules_->model()->setMonospaceColumns({1});
  auto* allow = button("debug.rules.allow", tr("Take back"), tr("The selected rule no longer holds, for graphs to come"));
  allow->setEnabled(false);
  connect(rules_, &DataTable::rowSelected, this, [allow] { allow->setEnabled(true); });
  connect(allow, &QPushButton::clicked, this, [this] {
    if (const views::TableRow* chosen = rules_->current()) controller_->fusion("clear", str(chosen->cells[1].text));
  });
  connect(controller_, &DebugController::rulesChanged, this, [this, allow] {
    views::TableRows rows;
    for (const auto& rule : controller_->rules()) {
      views::TableRow made;
      made.cells = {views::textCell(rule.verb), views::textCell(rule.pair)};
      rows.push_back(std::move(made));
    }
    rules_->setRows(std::move(rows));
    allow->setEnabled(rules_->current() != nullptr);
    showFusion();
  });
  auto* lists = sideBySide(fusions_, column({rules_, row({allow})}), 65, 35);
  auto* frame = framed(column({row({fusionNow_, forbid, force}, fusionNow_), lists}), "fusions.known");
  addPart(tabs_->addTab(frame, tr("Fusions")), "fusions", frame, [this](const Json& answer) {
    fusion_ = answer;
    showFusion();
    fusions_->setRows(fusionRows(answer));
  });
}

/// What will become of the pair that is decided now: a rule of the person's comes before what the compiler would do.
void DebugPanel::showFusion() {
  const std::string a = textField(fusion_, "a"), b = textField(fusion_, "b"), rule = controller_->ruleOn(a, b);
  if (a.empty()) return fusionNow_->clear();
  const QString outlook = rule == "forbid"  ? tr("You forbade it: they stay apart.")
                          : rule == "force" ? tr("You force it: they are fused where that is possible.")
                                            : str(textField(fusion_, "outlook"));
  fusionNow_->setText(tr("Now: %1 with %2 (%3), saves %4 bytes. %5")
                          .arg(str(a), str(b), str(textField(fusion_, "kind")))
                          .arg(numberField(fusion_, "score_bytes"))
                          .arg(outlook));
}

void DebugPanel::buildKernel() {
  arguments_ = addTable("arguments", tr("Filter buffers"),
                        {{tr("Buffer")},
                         {tr("Role")},
                         {tr("Type and sizes")},
                         {tr("First values"), tr("Of an input in the processor's memory, in order of memory")}},
                        tr("No arguments"), tr("They are known when a kernel is about to be launched."));
  arguments_->model()->setMonospaceColumns({2, 3});
  loopIr_ = new CodePane(QStringLiteral("debug.loopIr"), Language::LoopIr);
  loopIr_->setAccessibleName(tr("Loop IR of the kernel"));
  assembly_ = new CodePane(QStringLiteral("debug.assembly"), Language::Assembly);
  assembly_->setAccessibleName(tr("Code of the kernel"));
  auto *argumentsFrame = framed(arguments_, "arguments.known"),
       *kernelFrame = framed(sideBySide(loopIr_, assembly_, 50, 50), "kernel.known");
  const int tab = tabs_->addTab(sideBySide(argumentsFrame, kernelFrame, 40, 60), tr("Kernel"));
  addPart(tab, "arguments", argumentsFrame, [this](const Json& answer) { arguments_->setRows(argumentRows(answer)); });
  addPart(tab, "kernel", kernelFrame, [this](const Json& answer) {
    loopIr_->setCode(str(textField(answer, "loop_ir")));
    const std::string text = textField(answer, "assembly");
    assembly_->setCode(str(text));
    assembly_->setVisible(!text.empty());
  });
}

void DebugPanel::buildTensor() {
  tensor_ = new TensorPane(controller_);
  auto* frame = framed(tensor_, "tensor.known");
  tensorTab_ = tabs_->addTab(frame, tr("Tensor"));
  addPart(tensorTab_, "tensor", frame, {});
  // A row of the other lists opens the tensor that it is about.
  for (DataTable* table : {locals_, arguments_})
    connect(table, &DataTable::rowActivated, this, [this](const views::TableRow& row) {
      if (known("tensor") && !row.cells.empty()) showTensor(row.cells[0].text);
    });
}

void DebugPanel::showTensor(const std::string& name) {
  tabs_->setCurrentIndex(tensorTab_);
  tensor_->showTensor(str(name));
}

void DebugPanel::buildBreakpoints() {
  breakpointText_ = new QLineEdit;
  breakpointText_->setObjectName(QStringLiteral("debug.breakpoint.text"));
  breakpointText_->setAccessibleName(tr("New breakpoint"));
  breakpointText_->setPlaceholderText(
      tr("model.py:12 · forward if x.shape[0] > 32 · graph_break · recompile ignore 3 · pass decompose · fusion add* · kernel_launch …"));
  QStringList kinds;
  for (const std::string_view kind : control::kKindNames) kinds << QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size()));
  breakpointText_->setCompleter(new QCompleter(kinds, breakpointText_));
  breakpointText_->setToolTip(str(debugging::helpText("break")));
  auto* add = button("debug.breakpoint.add", tr("Add"), tr("Stop there from now on"));
  auto* toggle = button("debug.breakpoint.toggle", tr("Enable or disable"),
                        tr("Keep the selected breakpoint, but stop or do not stop there"));
  auto* remove = button("debug.breakpoint.remove", tr("Remove"), tr("Remove the selected breakpoint"));
  breakpointProblem_ = new QLabel;
  breakpointProblem_->setObjectName(QStringLiteral("debug.breakpoint.problem"));
  breakpointProblem_->setVisible(false);
  connect(breakpointText_, &QLineEdit::returnPressed, this, &DebugPanel::addTypedBreakpoint);
  connect(add, &QPushButton::clicked, this, &DebugPanel::addTypedBreakpoint);
  breakpoints_ = addTable("breakpoints", tr("Filter breakpoints"),
                          {{tr("#"), tr("As the console calls it; a program that runs has numbered it"), true},
                           {tr("Stops at"), tr("An event of the compiler, or a line while it is traced")},
                           {tr("State"), tr("One that is never hit may name a line or function that is not compiled")}},
                          tr("No breakpoints"), tr("Type one above, or click beside a line number in the source."));
  const auto selected = [this] {
    const views::TableRow* chosen = breakpoints_->current();
    return chosen ? static_cast<size_t>(chosen->location.id) - 1 : controller_->breakpoints().size();
  };
  connect(remove, &QPushButton::clicked, this, [this, selected] { controller_->removeBreakpoint(selected()); });
  connect(toggle, &QPushButton::clicked, this, [this, selected] {
    const size_t index = selected();
    if (index < controller_->breakpoints().size())
      controller_->enableBreakpoint(index, !controller_->breakpoints()[index].description.value("enabled", true));
  });
  breakpointsTab_ = tabs_->addTab(
      column({row({breakpointText_, breakpointProblem_, add, toggle, remove}, breakpointText_), breakpoints_}),
      tr("Breakpoints"));
}

void DebugPanel::addTypedBreakpoint() {
  const auto parsed = debugging::parseCommand("break " + breakpointText_->text().trimmed().toStdString());
  breakpointProblem_->setVisible(!parsed);
  if (!parsed) return breakpointProblem_->setText(str(parsed.error().message));
  const QString doubt = str(debugging::functionDoubt(parsed->request, controller_->script()));
  breakpointProblem_->setText(doubt);
  breakpointProblem_->setVisible(!doubt.isEmpty());
  controller_->addBreakpoint(parsed->request);
  breakpointText_->clear();
}

void DebugPanel::showBreakpoints() {
  views::TableRows rows;
  for (const auto& b : controller_->breakpoints()) {
    views::TableRow made;
    const bool on = b.description.value("enabled", true);
    QStringList state{on ? tr("on") : tr("off")};
    if (const std::string doubt = b.hits == 0 ? debugging::functionDoubt(b.description, controller_->script()) : std::string(); !doubt.empty()) state << str(doubt);
    if (b.missed) {
      // One with a condition may have been passed by; a function that the program came to stopped it elsewhere.
      const bool passed = b.seen || b.description.contains("if") || numberField(b.description, "ignore") > 0;
      state << (debugging::isOnFunction(b.description) && !passed ? tr("the program ended: no such function was compiled") : tr("the program ended without a hit"));
    }
    if (b.hostId > 0) state << (b.hits > 0 ? tr("hit %n time(s)", nullptr, static_cast<int>(b.hits)) : tr("not hit yet"));
    if (const std::string file = textField(b.description, "file"); !file.empty()) {
      made.location = views::Location::sourceLine(file, static_cast<int>(numberField(b.description, "line")));
      if (QFileInfo(str(file)).isAbsolute() && !QFileInfo::exists(str(file))) state << tr("there is no such file");
    }
    made.location.id = static_cast<int64_t>(rows.size()) + 1;
    made.cells = {b.hostId > 0 ? views::countCell(b.hostId) : views::textCell("–"), views::textCell(debugging::breakpointText(b.description)),
                  views::textCell(state.join(QStringLiteral(", ")).toStdString())};
    if (const int64_t ignored = numberField(b.description, "ignore"); ignored > 0)
      made.cells[1].text += tr(", after %1 that pass").arg(ignored).toStdString();
    if (!on || b.missed || (b.hostId > 0 && b.hits == 0)) made.tone = 4;
    rows.push_back(std::move(made));
  }
  breakpoints_->setRows(std::move(rows));
}

void DebugPanel::buildOptions() {
  options_ = addTable("options", tr("Filter settings"), {{tr("Setting")}, {tr("Value")}}, tr("No settings"),
                      tr("They can be changed while the program is stopped."));
  options_->model()->setMonospaceColumns({0, 1});
  optionName_ = new QComboBox;
  optionName_->setObjectName(QStringLiteral("debug.option.name"));
  optionName_->setAccessibleName(tr("Setting to change"));
  optionName_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  optionValue_ = new QLineEdit;
  optionValue_->setObjectName(QStringLiteral("debug.option.value"));
  optionValue_->setAccessibleName(tr("New value"));
  optionValue_->setPlaceholderText(tr("true, false or a number"));
  auto* set = button("debug.option.set", tr("Set"), tr("Holds for what is compiled from now on"));
  connect(set, &QPushButton::clicked, this, &DebugPanel::setTypedOption);
  connect(optionValue_, &QLineEdit::returnPressed, this, &DebugPanel::setTypedOption);
  auto* frame = framed(column({row({optionName_, optionValue_, set}, optionValue_), options_}), "options.known");
  addPart(tabs_->addTab(frame, tr("Settings")), "options", frame, [this](const Json& answer) {
    options_->setRows(optionRows(answer));
    const QString chosen = optionName_->currentText();
    optionName_->clear();
    for (const auto& [name, value] : answer.items()) optionName_->addItem(str(name));
    optionName_->setCurrentText(chosen);
  });
}

void DebugPanel::setTypedOption() {
  const auto parsed = debugging::parseCommand("set " + optionName_->currentText().toStdString() + " " +
                                              optionValue_->text().trimmed().toStdString());
  if (!parsed) return say(str(parsed.error().message) + QLatin1Char('\n'));
  controller_->request(parsed->request, this, [this](bool ok, const Json& result) {
    if (!ok) return say(str(textField({{"e", result}}, "e")) + QLatin1Char('\n'));
    options_->setRows(optionRows(result));
    optionValue_->clear();
  });
}

void DebugPanel::buildConsole() {
  log_ = new QPlainTextEdit;
  log_->setObjectName(QStringLiteral("debug.log"));
  log_->setAccessibleName(tr("Answers"));
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(5000);
  log_->setFont(views::Theme::monospace());
  log_->setPlaceholderText(tr("The commands of `fusebox debug --console`; help lists them."));
  command_ = new QLineEdit;
  command_->setObjectName(QStringLiteral("debug.command"));
  command_->setAccessibleName(tr("Debugger command"));
  command_->setFont(views::Theme::monospace());
  command_->setPlaceholderText(tr("help"));
  connect(command_, &QLineEdit::returnPressed, this, &DebugPanel::carryOutTyped);
  tabs_->addTab(column({log_, row({command_}, command_)}), tr("Console"));
}

void DebugPanel::say(const QString& text) {
  log_->moveCursor(QTextCursor::End);
  log_->insertPlainText(text);
  log_->verticalScrollBar()->setValue(log_->verticalScrollBar()->maximum());
}

void DebugPanel::carryOutTyped() {
  const QString line = command_->text().trimmed();
  command_->clear();
  if (line.isEmpty()) return;
  say(QStringLiteral("> %1\n").arg(line));
  const auto parsed = debugging::parseCommand(line.toStdString());
  if (!parsed) return say(str(parsed.error().message) + QLatin1Char('\n'));
  if (parsed->name == "help") return say(str(debugging::helpText(parsed->words.empty() ? "" : parsed->words[0])));
  if (parsed->name == "where") return say(str(debugging::stopText(controller_->stop())));
  if (parsed->name == "detach") return controller_->detach();
  if (parsed->name == "kill" || parsed->name == "quit") return controller_->kill();
  if (parsed->name == "break" && !parsed->request.is_null()) {
    say(tr("breakpoint: %1\n").arg(str(debugging::breakpointText(parsed->request))));
    if (const std::string doubt = debugging::functionDoubt(parsed->request, controller_->script()); !doubt.empty()) say(str(doubt) + QLatin1Char('\n'));
    return controller_->addBreakpoint(parsed->request);
  }
  if (parsed->request.is_null()) return;
  controller_->request(parsed->request, this, [this, name = parsed->name](bool ok, const Json& result) {
    say(ok ? str(debugging::answerText(name, result))
           : tr("error: %1\n").arg(result.is_string() ? str(result.get<std::string>()) : str(result.dump())));
  });
}

}  // namespace fusebox::window
