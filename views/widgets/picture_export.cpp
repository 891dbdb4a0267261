#include "views/widgets/picture_export.h"

#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QFileDialog>
#include <QMessageBox>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QStatusTipEvent>
#include <QSvgGenerator>
#include <QWidget>
#include <algorithm>
#include <iterator>

#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr double kLargestImageSide = 16000;

void paintAll(const Picture& picture, QPainter& painter) {
  painter.fillRect(picture.bounds, themed(Token::Panel));
  picture.paint(painter);
}

QImage imageOf(const Picture& picture) {
  const double scale = imageScale(picture.bounds);
  QImage image((picture.bounds.size() * scale).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
  QPainter painter(&image);
  painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
  painter.scale(scale, scale);
  painter.translate(-picture.bounds.topLeft());
  paintAll(picture, painter);
  return image;
}

bool writeSvg(const Picture& picture, QIODevice& into) {
  QSvgGenerator generator;
  generator.setOutputDevice(&into);
  generator.setSize(picture.bounds.size().toSize());
  generator.setViewBox(picture.bounds);
  generator.setTitle(QStringLiteral("Fusebox"));
  QPainter painter;
  if (!painter.begin(&generator)) return false;
  paintAll(picture, painter);
  return painter.end();
}

bool writePdf(const Picture& picture, QIODevice& into) {
  QPdfWriter writer(&into);
  writer.setPageSize(QPageSize(picture.bounds.size(), QPageSize::Point));
  writer.setPageMargins(QMarginsF());
  writer.setResolution(72);
  QPainter painter;
  if (!painter.begin(&writer)) return false;
  painter.translate(-picture.bounds.topLeft());
  paintAll(picture, painter);
  return painter.end();
}

bool writePng(const Picture& picture, QIODevice& into) { return imageOf(picture).save(&into, "PNG"); }

struct PictureFormat {
  QLatin1String ending;
  bool (*write)(const Picture&, QIODevice&);
};

constexpr PictureFormat kPictureFormats[] = {{QLatin1String("svg"), writeSvg}, {QLatin1String("pdf"), writePdf}, {QLatin1String("png"), writePng}};

}  // namespace

double imageScale(const QRectF& bounds) {
  return std::min(2.0, kLargestImageSide / std::max({bounds.width(), bounds.height(), 1.0}));
}

QString writePicture(const Picture& picture, const QString& path) {
  if (picture.bounds.isEmpty()) return QObject::tr("there is nothing to draw yet");
  const QString ending = path.section(QLatin1Char('.'), -1).toLower();
  const auto* format = std::find_if(std::begin(kPictureFormats), std::end(kPictureFormats), [&](const PictureFormat& f) { return f.ending == ending; });
  if (format == std::end(kPictureFormats)) return QObject::tr("unknown ending .%1; use .svg, .png or .pdf").arg(ending);
  // What paints minds no errors of a file, nor does commit() those of its own flush.
  QBuffer painted;
  QSaveFile file(path);
  if (!painted.open(QIODevice::WriteOnly) || !file.open(QIODevice::WriteOnly)) return file.errorString();
  const bool isWritten = format->write(picture, painted) && file.write(painted.data()) == painted.size() && file.flush();
  if (isWritten && file.commit()) return {};
  return file.error() == QFileDevice::NoError ? QObject::tr("writing stopped early") : file.errorString();
}

void sayWritten(QWidget* widget, const QString& path) {
  if (!widget) return;
  QStatusTipEvent tip(QObject::tr("Written to %1").arg(path));
  QCoreApplication::sendEvent(widget->window(), &tip);
}

void exportPicture(const Picture& picture, const QString& suggestedName, QWidget* parent) {
  const QString path =
      QFileDialog::getSaveFileName(parent, QObject::tr("Export picture"), suggestedName + QStringLiteral(".svg"),
                                   QObject::tr("SVG picture (*.svg);;PNG image (*.png);;PDF page (*.pdf)"));
  if (path.isEmpty()) return;
  if (const QString problem = writePicture(picture, path); !problem.isEmpty()) {
    QMessageBox::warning(parent, QObject::tr("Export picture"), QObject::tr("%1 was not written: %2").arg(path, problem));
  } else {
    sayWritten(parent, path);
  }
}

void copyPicture(const Picture& picture) {
  if (!picture.bounds.isEmpty()) QApplication::clipboard()->setImage(imageOf(picture));
}

}  // namespace fusebox::views
