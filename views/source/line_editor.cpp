#include "views/source/line_editor.h"

#include <QProcess>
#include <QStandardPaths>

namespace fusebox::views {
namespace {

constexpr const char* kEditors[] = {"code -g {file}:{line}", "codium -g {file}:{line}", "zed {file}:{line}", "subl {file}:{line}", "pycharm --line {line} {file}",
                                    "qtcreator -client {file}:{line}", "kate -l {line} {file}", "gnome-text-editor {file}", "gedit +{line} {file}", "gvim +{line} {file}", "emacs +{line} {file}"};

QStringList filled(const QString& command, const QString& file, int line) {
  QStringList words = QProcess::splitCommand(command);
  const bool hasPlace = command.contains(QLatin1String("{file}"));
  for (QString& word : words) {
    word.replace(QLatin1String("{line}"), QString::number(line));
    word.replace(QLatin1String("{file}"), file);  // last: a name may hold braces
  }
  if (!hasPlace && !words.isEmpty()) words << file;
  return words;
}

}  // namespace

QStringList editorCommand(const QString& wish, const QString& file, int line) {
  if (!wish.trimmed().isEmpty()) return filled(wish, file, line);
  for (const char* editor : kEditors) {
    const QStringList words = filled(QLatin1String(editor), file, line);
    if (!QStandardPaths::findExecutable(words.first()).isEmpty()) return words;
  }
  return {};
}

}  // namespace fusebox::views
