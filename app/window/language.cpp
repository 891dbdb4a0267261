#include "app/window/language.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QLocale>
#include <QTranslator>
#include <memory>

#include "app/window/settings_thread.h"
#include "engine/support/text.h"

#ifdef FUSEBOX_TRANSLATIONS
static void loadTranslations() { Q_INIT_RESOURCE(translations); }
#endif

namespace fusebox::window {
namespace {

const QString kSetting = QStringLiteral("language");

QString& spoken() {
  static QString language = QStringLiteral("en");
  return language;
}

}  // namespace

QStringList languages() {
  QStringList all{QStringLiteral("en")};
#ifdef FUSEBOX_TRANSLATIONS
  all << QStringLiteral(FUSEBOX_TRANSLATIONS).split(QLatin1Char(' '), Qt::SkipEmptyParts);
#endif
  return all;
}

QString languageFor(const QString& wanted, const QStringList& system) {
  const QStringList known = languages();
  if (known.contains(wanted)) return wanted;
  for (const QString& name : system) {
    const QString language = name.section(QLatin1Char('-'), 0, 0).section(QLatin1Char('_'), 0, 0).toLower();
    if (known.contains(language)) return language;
  }
  return known.front();
}

QString spokenLanguage() { return spoken(); }

void speak(const QString& language) {
  spoken() = language;
  setTranslator([](const Text& text) { return QCoreApplication::translate(text.context, text.text).toStdString(); });
  if (language == languages().front()) return;
#ifdef FUSEBOX_TRANSLATIONS
  loadTranslations();
#endif
  auto install = [](const QString& name, const QString& folder) {
    auto made = std::make_unique<QTranslator>(QCoreApplication::instance());
    if (made->load(name, folder)) QCoreApplication::installTranslator(made.release());
  };
  install(QStringLiteral("qtbase_") + language, QLibraryInfo::path(QLibraryInfo::TranslationsPath));
  install(QStringLiteral("fusebox_") + language, QStringLiteral(":/translations"));
}

QString chosenLanguage() { return setting(kSetting).toString(); }

void chooseLanguage(const QString& language) { keepSettings({{kSetting, language}}); }

}  // namespace fusebox::window
