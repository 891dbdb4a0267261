#pragma once

#include <QString>
#include <QStringList>

namespace fusebox::window {

/// Languages that the window has words in; English, which the sources are written in, first.
QStringList languages();

/// The language for a person who chose `wanted` (empty: nothing) on a system whose languages, best first, are `system`.
QString languageFor(const QString& wanted, const QStringList& system);

/// Translates the application, Qt's own words too, from now on; to be called before windows are made. Sentences of the models follow.
void speak(const QString& language);
/// What speak() was last called with; English before.
QString spokenLanguage();

/// What was chosen, kept for the next start; empty: the system's.
QString chosenLanguage();
void chooseLanguage(const QString& language);

}  // namespace fusebox::window
