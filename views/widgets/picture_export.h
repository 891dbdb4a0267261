#pragma once

#include <QRectF>
#include <QString>
#include <functional>

class QPainter;
class QWidget;

namespace fusebox::views {

/// Something that can paint itself completely, at scale 1, into any painter.
struct Picture {
  QRectF bounds;
  std::function<void(QPainter&)> paint;
};

/// Pixels of a .png for one unit of the picture; less than 1 where images of its size would be too large.
double imageScale(const QRectF& bounds);

/// Writes a picture as .svg, .png or .pdf, by the ending of `path`. Returns what went wrong, empty if nothing did.
QString writePicture(const Picture& picture, const QString& path);

/// Asks where to, writes, and says so if that failed.
void exportPicture(const Picture& picture, const QString& suggestedName, QWidget* parent);

/// Says in the window of `widget` that a file was written.
void sayWritten(QWidget* widget, const QString& path);

/// Puts the picture on the clipboard as an image.
void copyPicture(const Picture& picture);

}  // namespace fusebox::views
