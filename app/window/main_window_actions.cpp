// Menus, tool bar, status bar and the actions behind them.
#include <QActionGroup>
#include <QApplication>
#include <QDialog>
#include <QFileDialog>
#include <QHeaderView>
#include <QMenuBar>
#include <QProgressBar>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/window/compare_window.h"
#include "app/window/example_session.h"
#include "app/window/language.h"
#include "app/window/main_window.h"
#include "app/window/manual_window.h"
#include "app/window/palette_sources.h"
#include "app/window/run_dialog.h"
#include "app/window/settings_thread.h"
#include "views/widgets/command_palette.h"
#include "views/widgets/data_table.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

using views::Theme;

QString plainText(const QAction* action) {
  QString text = action->text();
  return text.remove(QLatin1Char('&'));
}

}  // namespace

void MainWindow::buildActions() {
  const QString file = tr("File"), run = tr("Run"), go = tr("Go"), view = tr("View"), layout = tr("Layout"), help = tr("Help");
  const auto add = [this](const char* id, const QString& category, const QString& text, const QKeySequence& keys, const char* icon,
                          std::function<void()> action) {
    return registry_->add(QString::fromLatin1(id), category, text, keys, QString::fromLatin1(icon), std::move(action));
  };
  add("file.open", file, tr("&Open session or trace…"), QKeySequence::Open, "open", [this] { chooseSession(); });
  add("file.openFolder", file, tr("Open &folder of traces…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O), "", [this] {
    const QString path = QFileDialog::getExistingDirectory(this, tr("Open a TORCH_TRACE or TORCH_COMPILE_DEBUG folder"),
                                                           setting(QStringLiteral("lastFolder")).toString());
    if (!path.isEmpty()) openSession(path);
  });
  // Not Ctrl+E: that goes to the end of a line that is edited, and a filter has the focus often.
  add("file.export", file, tr("E&xport session…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E), "export", [this] { exportSession(); });
  // Nor Ctrl+D, which deletes there.
  add("file.compare", file, tr("Co&mpare with…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C), "", [this] { chooseComparison(); });
  add("file.compareFolder", file, tr("Compare with a fol&der…"), {}, "", [this] { chooseComparisonFolder(); });
  add("file.example", file, tr("Open the &example"), {}, "live", [this] { openExample(); });
  add("file.reload", file, tr("&Reload"), QKeySequence(Qt::CTRL | Qt::Key_F5), "recompile", [this] {
    if (session_) openSession(session_->path());
  });
  add("file.close", file, tr("&Close session"), QKeySequence(Qt::CTRL | Qt::Key_W), "close", [this] { closeSession(); });
  add("file.quit", file, tr("&Quit"), QKeySequence(Qt::CTRL | Qt::Key_Q), "", [this] { close(); });
  add("run.script", run, tr("&Run script…"), QKeySequence(Qt::CTRL | Qt::Key_R), "run", [this] { chooseScript(); });
  add("run.compare", run, tr("Run under both engines and &compare…"), {}, "", [this] { chooseEngines(); });
  add("run.again", run, tr("Run &again"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_R), "", [this] { runAgain(); });
  add("run.stop", run, tr("&Stop script"), QKeySequence(Qt::SHIFT | Qt::Key_F5), "stop", [this] { runner_->stop(); });
  add("run.output", run, tr("Show &output"), QKeySequence(Qt::CTRL | Qt::Key_QuoteLeft), "", [this] {
    pages_->setCurrentWidget(docks_);
    outputDock_->setVisible(!outputDock_->isVisible());
  });
  buildDebugActions();
  add("go.back", go, tr("&Back"), QKeySequence(Qt::ALT | Qt::Key_Left), "back", [this] {
    if (const auto place = history_.back()) showView(*place);
    updateActions();
  });
  add("go.forward", go, tr("&Forward"), QKeySequence(Qt::ALT | Qt::Key_Right), "forward", [this] {
    if (const auto place = history_.forward()) showView(*place);
    updateActions();
  });
  // Not Ctrl+Tab: that goes through the tabs of a view.
  add("go.nextSession", go, tr("&Next session"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_PageDown), "", [this] { openFurther(1); });
  add("go.previousSession", go, tr("&Previous session"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_PageUp), "", [this] { openFurther(-1); });
  add("go.find", go, tr("F&ind"), QKeySequence::Find, "find", [this] {
    if (views::View* current = docks_->currentView(); current && session_) current->find();
  });
  add("go.findAll", go, tr("Find in &everything"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F), "find", [this] {
    if (!session_) return;
    goTo(views::Location::ofView("find"));
    docks_->view(QStringLiteral("find"))->find();
  });
  add("go.palette", go, tr("&Command palette"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P), "palette", [this] { showPalette(); });
  int number = 0;
  for (views::View* v : docks_->views()) {
    ++number;
    const QString id = v->id();
    // Ctrl+1 … Ctrl+9, then Ctrl+Shift+1 …
    const auto digit = static_cast<Qt::Key>(Qt::Key_0 + (number - 1) % 9 + 1);
    const QKeySequence keys = number <= 9 ? QKeySequence(Qt::CTRL | digit) : number <= 18 ? QKeySequence(Qt::CTRL | Qt::SHIFT | digit) : QKeySequence();
    registry_->add(QStringLiteral("view.") + id, view, v->title(), keys,
                   v->iconName(), [this, id] { goTo(views::Location::ofView(id.toStdString())); });
    for (QAction* action : v->viewActions()) registry_->adopt(v->title(), action);
  }
  add("layout.tabs", layout, tr("&Tabs"), {}, "", [this] { layouts_.choose(DockHost::Layout::Tabs); });
  add("layout.compile", layout, tr("&Compile: source beside graph, breaks and recompiles"), {}, "", [this] { layouts_.choose(DockHost::Layout::Compile); });
  add("layout.debug", layout, tr("&Debug: source beside graph"), {}, "", [this] { layouts_.choose(DockHost::Layout::Debug); });
  add("layout.profile", layout, tr("&Profile: timeline over kernels"), {}, "", [this] { layouts_.choose(DockHost::Layout::Profile); });
  add("layout.reset", layout, tr("&Reset this layout"), {}, "", [this] { layouts_.reset(); });
  const std::pair<const char*, QString> themes[] = {{"theme.system", tr("Theme of the system")}, {"theme.light", tr("Light theme")}, {"theme.dark", tr("Dark theme")}};
  auto* group = new QActionGroup(this);
  for (int mode = 0; mode < 3; ++mode) {
    QAction* action = add(themes[mode].first, layout, themes[mode].second, {}, "", [this, mode] { setTheme(mode); });
    action->setCheckable(true);
    action->setChecked(static_cast<int>(Theme::instance().mode()) == mode);
    group->addAction(action);
  }
  // A language names itself in its own words.
  const std::pair<const char*, QString> languages[] = {{"", tr("Language of the system")}, {"en", tr("English")}, {"de", tr("Deutsch")}};
  auto* spoken = new QActionGroup(this);
  for (const auto& [language, name] : languages) {
    if (*language != '\0' && !window::languages().contains(QLatin1String(language))) continue;
    QAction* action = add((QByteArray("language.") + (*language ? language : "system")).constData(), layout, name, {}, "", [this, language = QString::fromLatin1(language)] {
      chooseLanguage(language);
      messages_->say(views::MessageBar::Severity::Info, tr("The language changes when Fusebox is started again"), {});
    });
    action->setCheckable(true);
    action->setChecked(chosenLanguage() == QLatin1String(language));
    spoken->addAction(action);
  }
  add("help.manual", help, tr("&Manual: about what is selected"), QKeySequence(Qt::Key_F1), "help", [this] { showManual(); });
  add("help.index", help, tr("Manual: &contents"), QKeySequence(Qt::SHIFT | Qt::Key_F1), "", [this] { showManual(QStringLiteral("index")); });
  add("help.keys", help, tr("&Keyboard"), QKeySequence(Qt::CTRL | Qt::Key_F1), "", [this] { showKeys(); });
  add("help.doctor", help, tr("&Doctor: what is installed here"), {}, "", [this] { showDoctor(); });
  add("help.about", help, tr("&About Fusebox"), {}, "", [this] { showAbout(); });
}

void MainWindow::buildMenus() {
  menuBar()->setObjectName(QStringLiteral("menuBar"));
  QHash<QString, QMenu*> menus;
  for (const auto& entry : registry_->entries()) {
    QMenu*& menu = menus[entry.category];
    if (!menu) {
      const bool ofView = entry.action->parent() != this;
      menu = ofView ? new QMenu(entry.category, this) : menuBar()->addMenu(entry.category);
      menu->setObjectName(QStringLiteral("menu.") + entry.category);
    }
    if (entry.id == QLatin1String("file.quit") || entry.id == QLatin1String("theme.system") || entry.id == QLatin1String("language.system")) menu->addSeparator();
    menu->addAction(entry.action);
    if (entry.id == QLatin1String("file.openFolder")) {
      QMenu* recent = menu->addMenu(tr("Open &recent"));
      recent->setObjectName(QStringLiteral("menu.recent"));
      connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecentMenu(recent); });
    }
  }
  QMenu* view = menus.value(tr("View"));
  view->addSeparator();
  for (const views::View* v : docks_->views()) {
    if (QMenu* own = menus.value(v->title())) view->addMenu(own);
  }
}

void MainWindow::buildToolbar() {
  QToolBar* bar = addToolBar(tr("Main"));
  bar->setObjectName(QStringLiteral("toolbar"));
  bar->setMovable(false);
  bar->setIconSize(QSize(18, 18));
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  for (const char* id : {"go.back", "go.forward", "", "file.open", "run.script", "run.stop", "", "go.find", "go.palette"}) {
    if (*id == '\0') {
      bar->addSeparator();
      continue;
    }
    QAction* action = registry_->find(QString::fromLatin1(id));
    bar->addAction(action);
    if (QWidget* button = bar->widgetForAction(action)) {
      button->setObjectName(QStringLiteral("toolbar.") + QString::fromLatin1(id));
      button->setAccessibleName(plainText(action));
    }
  }
}

void MainWindow::buildStatusBar() {
  statePart_ = new QLabel;
  statePart_->setObjectName(QStringLiteral("status.state"));
  pathPart_ = new QLabel;
  pathPart_->setObjectName(QStringLiteral("status.path"));
  pathPart_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  pathPart_->setMinimumWidth(1);
  busyPart_ = new QProgressBar;
  busyPart_->setObjectName(QStringLiteral("status.busy"));
  busyPart_->setAccessibleName(tr("Reading the session"));
  busyPart_->setRange(0, 0);
  busyPart_->setFixedWidth(90);
  busyPart_->hide();
  cancelPart_ = new QToolButton;
  cancelPart_->setObjectName(QStringLiteral("status.cancel"));
  cancelPart_->setText(tr("Cancel"));
  cancelPart_->setAccessibleName(tr("Cancel reading"));
  cancelPart_->hide();
  connect(cancelPart_, &QToolButton::clicked, this, &MainWindow::stopReading);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->addWidget(pathPart_, 1);
  statusBar()->addPermanentWidget(busyPart_);
  statusBar()->addPermanentWidget(cancelPart_);
  statusBar()->addPermanentWidget(statePart_);
}

void MainWindow::chooseSession() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open session"), setting(QStringLiteral("lastFolder")).toString(),
                                                    tr("Sessions and traces (*.fusebox *.log *.jsonl *.json *.json.gz *.pftrace *.perfetto-trace *.sqlite *.pt2 *.pt);;All files (*)"));
  if (path.isEmpty()) return;
  keepSettings({{QStringLiteral("lastFolder"), QFileInfo(path).absolutePath()}});
  openSession(path);
}

void MainWindow::chooseComparison() {
  if (!session_) return;
  const QString path = QFileDialog::getOpenFileName(this, tr("Compare with"), QFileInfo(session_->path()).absolutePath(),
                                                    tr("Sessions and traces (*.fusebox *.log *.jsonl *.json *.json.gz *.pftrace *.perfetto-trace *.sqlite *.pt2 *.pt);;All files (*)"));
  if (!path.isEmpty() && session_) openComparison(session_->path(), path);
}

/// TORCH_TRACE and TORCH_COMPILE_DEBUG are folders, which a dialog for files cannot give.
void MainWindow::chooseComparisonFolder() {
  if (!session_) return;
  const QString path = QFileDialog::getExistingDirectory(this, tr("Compare with a folder"), QFileInfo(session_->path()).absolutePath());
  if (!path.isEmpty() && session_) openComparison(session_->path(), path);
}

/// With what was run last, also where a command line named it.
RunDialog* MainWindow::newRunDialog(RunDialog::Purpose purpose) {
  auto* dialog = new RunDialog(this, purpose);
  // Accepted, it is hidden, not closed; and until somebody is active keys go to it, where nobody sees them.
  connect(dialog, &QDialog::finished, this, [this, dialog] {
    dialog->deleteLater();
    activateWindow();
  });
  if (!lastRun_ || lastRun_->request.rawCommand.isEmpty()) return dialog;
  RunRequest request;
  const QStringList& words = lastRun_->request.rawCommand;
  for (qsizetype i = 0; i < words.size(); ++i) {
    if (words[i] == QLatin1String("--session") || words[i] == QLatin1String("--python")) {
      if (words[i] == QLatin1String("--python")) request.python = words.value(i + 1);
      ++i;
    } else if (words[i] == QLatin1String("-m")) {
      request.module = words.value(i + 1);
      request.arguments = words.mid(i + 2);
      break;
    } else if (words[i].startsWith(QLatin1Char('-'))) {
      return dialog;  // code on the command line, or standard input: no script that could be named
    } else {
      request.script = QFileInfo(words[i]).absoluteFilePath();
      request.arguments = words.mid(i + 1);
      request.directory = QDir::currentPath();
      break;
    }
  }
  dialog->suggest(request);
  return dialog;
}

void MainWindow::chooseEngines() {
  auto* dialog = newRunDialog(RunDialog::Purpose::BothEngines);
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    auto* window = new CompareWindow(nullptr, program_);
    window->show();
    window->runAndCompare(dialog->request(), QStringLiteral("fusebox,stock"));
  });
  dialog->open();
}

void MainWindow::chooseScript() {
  auto* dialog = newRunDialog(RunDialog::Purpose::Run);
  connect(dialog, &QDialog::accepted, this, [this, dialog] { runScript(dialog->request()); });
  dialog->open();
}

void MainWindow::showPalette() {
  auto* palette = new views::CommandPalette(*registry_, this, paletteSources(*registry_, session_.get(), this, [this](const views::Location& place) { goTo(place); }));
  palette->show();
}

void MainWindow::openExample() {
  QString problem;
  const QString path = exampleSession(&problem);
  if (path.isEmpty()) {
    messages_->say(views::MessageBar::Severity::Error, tr("The example cannot be unpacked"), problem);
    return;
  }
  openSession(path);
}

void MainWindow::showManual(const QString& page) {
  if (!manual_) {
    manual_ = new ManualWindow(*registry_, this);
    manual_->setAttribute(Qt::WA_DeleteOnClose);
  }
  QString wanted = page;
  if (wanted.isEmpty() && debugPanel_->isAncestorOf(QApplication::focusWidget())) wanted = QStringLiteral("debugger");
  if (wanted.isEmpty()) {
    const views::View* current = docks_->currentView();
    const bool atStart = pages_->currentWidget() == start_;
    wanted = atStart || !current ? QStringLiteral("index") : ManualWindow::pageFor(current->id().toStdString() == selected_.view ? selected_ : views::Location{}, current->id());
  }
  static_cast<ManualWindow*>(manual_.data())->openPage(wanted);
  manual_->show();
  manual_->raise();
}

void MainWindow::showKeys() {
  auto* dialog = new QDialog(this);
  dialog->setObjectName(QStringLiteral("keys"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keyboard"));
  dialog->resize(560, 600);
  auto* table = new views::DataTable(QStringLiteral("keys.table"), tr("Filter keys"), {{tr("Keys")}, {tr("What they do")}, {tr("Where")}});
  views::TableRows rows;
  const auto row = [&rows](const QString& keys, const QString& what, const QString& where) {
    views::TableRow r;
    r.cells = {views::textCell(keys.toStdString()), views::textCell(what.toStdString()), views::textCell(where.toStdString())};
    rows.push_back(std::move(r));
  };
  for (const auto& entry : registry_->entries()) {
    const QString keys = entry.action->shortcut().toString(QKeySequence::NativeText);
    if (!keys.isEmpty()) row(keys, plainText(entry.action), entry.category);
  }
  const QString pictures = tr("Graph, timeline");
  row(tr("W A S D"), tr("Graph: pan; timeline: zoom in, left, zoom out, right"), pictures);
  row(tr("+ −"), tr("Zoom"), pictures);
  row(tr("F"), tr("Show everything"), pictures);
  row(tr("Arrows"), tr("Graph: along edges; timeline: from bar to bar"), pictures);
  row(tr("Return"), tr("Open what is selected; open and close a group"), pictures);
  row(tr("F3, Shift+F3"), tr("Next and previous hit"), tr("Find"));
  row(tr("Ctrl+C"), tr("Copy the selected rows"), tr("Tables"));
  table->setRows(std::move(rows));
  auto* column = new QVBoxLayout(dialog);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table);
  dialog->show();
}

void MainWindow::setTheme(int mode) {
  keepSettings({{QStringLiteral("theme"), mode}});
  Theme::instance().apply(static_cast<Theme::Mode>(mode));
}

void MainWindow::updateActions() {
  const auto enable = [this](const char* id, bool on) { registry_->find(QString::fromLatin1(id))->setEnabled(on); };
  enable("go.back", history_.canGoBack());
  enable("go.forward", history_.canGoForward());
  enable("go.find", session_ != nullptr);
  enable("go.findAll", session_ != nullptr);
  enable("file.close", session_ != nullptr);
  enable("file.reload", session_ != nullptr);
  enable("file.compare", session_ != nullptr);
  enable("file.compareFolder", session_ != nullptr);
  enable("file.export", session_ != nullptr);
  enable("run.again", lastRun_.has_value());
  enable("run.stop", runner_->running());
  enable("run.script", !runner_->running());
  updateDebugActions();
}

}  // namespace fusebox::window
