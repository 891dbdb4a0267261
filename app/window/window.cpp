#include "app/window/window.h"

#include <QApplication>
#include <QLocale>
#include <nlohmann/json.hpp>

#include "app/window/language.h"
#include "app/window/main_window.h"
#include "app/window/settings_thread.h"
#include "app/window/window_log.h"
#include "views/widgets/theme.h"

namespace fusebox::window {

int runWindow(int argc, char** argv, const WindowRequest& request) {
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("fusebox"));
  QApplication::setApplicationName(QStringLiteral("fusebox"));
  QApplication::setApplicationDisplayName(QStringLiteral("Fusebox"));
  speak(languageFor(chosenLanguage(), QLocale::system().uiLanguages()));
  using views::Theme;
  const int mode = setting(QStringLiteral("theme"), 0).toInt();
  Theme::instance().apply(mode >= 0 && mode <= 2 ? static_cast<Theme::Mode>(mode) : Theme::Mode::System);
  const QString state = crash_guard::defaultFolder();
  const auto leftovers = crash_guard::takeLeftovers(state);
  crash_guard::install(state);
  installLog(state);
  MainWindow window(QApplication::applicationFilePath());
  window.show();
  window.offerRecovery(leftovers);
  if (!request.file.empty()) window.openSession(QString::fromStdString(request.file));
  if (!request.compareWith.empty()) window.openComparison(QString::fromStdString(request.file), QString::fromStdString(request.compareWith));
  if (!request.runCommand.empty()) {
    RunRequest run;
    for (const auto& word : request.runCommand) run.rawCommand << QString::fromStdString(word);
    if (request.debug) window.debugScript(run, nlohmann::json::parse(request.breakpoints, nullptr, false));
    else window.runScript(run);
  }
  return QApplication::exec();
}

}  // namespace fusebox::window
