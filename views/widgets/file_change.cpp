#include "views/widgets/file_change.h"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QSaveFile>

#include "profiler/query/source.h"
#include "profiler/query/source_patch.h"
#include "profiler/session/reader.h"
#include "views/widgets/picture_export.h"
#include "views/widgets/text.h"
#include "views/widgets/view.h"

namespace fusebox::views {
namespace {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(fusebox::views::FileChange)
};

/// The file's text as the diff makes it; else why not.
QString changed(const QString& path, const QString& diff, QByteArray& text) {
  const QFileInfo info(path);
  if (!info.isAbsolute() || !info.isFile() || info.isSymLink()) return Words::tr("%1 is not on this machine.").arg(path);
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return Words::tr("%1 cannot be read: %2").arg(path, file.errorString());
  const QByteArray before = file.readAll();
  const auto after = query::applyDiff(std::string_view(before.constData(), static_cast<size_t>(before.size())), diff.toStdString());
  if (!after) return Words::tr("%1 is no longer the file that was recorded: %2. Record it again.").arg(path, str(after.error().message));
  text = QByteArray::fromStdString(*after);
  return {};
}

void refuse(View* view, const QString& why) {
  auto* box = new QMessageBox(QMessageBox::Information, Words::tr("Change a file"), why, QMessageBox::Ok, view);
  box->setObjectName(QStringLiteral("change.refused"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->open();
}

void write(View* view, const QString& path, const QString& diff) {
  QByteArray text;
  if (const QString problem = changed(path, diff, text); !problem.isEmpty()) return refuse(view, problem);
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit()) return refuse(view, Words::tr("%1 was not written: %2").arg(path, file.errorString()));
  sayWritten(view, path);
}

void ask(View* view, const QString& path, const QString& diff) {
  if (view->findChild<QMessageBox*>(QStringLiteral("change.ask"))) return;
  QByteArray text;
  if (const QString problem = changed(path, diff, text); !problem.isEmpty()) return refuse(view, problem);
  auto* box = new QMessageBox(QMessageBox::Question, Words::tr("Change a file"), Words::tr("Change %1 like this? The next run shows what it gains.").arg(path), QMessageBox::Cancel, view);
  box->setObjectName(QStringLiteral("change.ask"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->setInformativeText(diff);
  box->setDefaultButton(QMessageBox::Cancel);
  QPushButton* yes = box->addButton(Words::tr("&Change it"), QMessageBox::AcceptRole);
  yes->setObjectName(QStringLiteral("change.yes"));
  QObject::connect(yes, &QPushButton::clicked, view, [view, path, diff] { write(view, path, diff); });
  box->open();
}

}  // namespace

void offerChange(View* view, const QString& diff) {
  if (!view->session()) return;
  view->session()->ask<std::string>(
      view, "onDisk", [path = query::pathOfDiff(diff.toStdString())](session::Reader& reader) -> Result<std::string> { return query::pathOnDisk(reader, path); },
      [view, diff](Result<std::string>& path) {
        if (path) ask(view, str(*path), diff);
      });
}

}  // namespace fusebox::views
