#include "views/graph/graph_painter.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPainter>
#include <array>
#include <cmath>

#include "views/common/units.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr double kTextFrom = 0.42;     // below this scale text is not readable: plain boxes
constexpr double kSmoothFrom = 0.22;   // below this curves and corners are not visible
constexpr double kCorner = 5;
constexpr double kStub = 16;

struct FamilyLook {
  int category;
  const char* name;
};
constexpr std::array<FamilyLook, 10> kFamilyLooks{{{-1, QT_TRANSLATE_NOOP("Graph", "input")},
                                                   {-1, QT_TRANSLATE_NOOP("Graph", "output")},
                                                   {1, QT_TRANSLATE_NOOP("Graph", "matrix product")},
                                                   {4, QT_TRANSLATE_NOOP("Graph", "convolution")},
                                                   {0, QT_TRANSLATE_NOOP("Graph", "pointwise")},
                                                   {2, QT_TRANSLATE_NOOP("Graph", "reduction")},
                                                   {9, QT_TRANSLATE_NOOP("Graph", "view")},
                                                   {6, QT_TRANSLATE_NOOP("Graph", "normalisation")},
                                                   {3, QT_TRANSLATE_NOOP("Graph", "memory")},
                                                   {7, QT_TRANSLATE_NOOP("Graph", "other")}}};

QFont nodeFont(bool bold) {
  QFont font;
  font.setPixelSize(12);
  font.setBold(bold);
  return font;
}

QRectF toQt(const LayoutRect& r) { return {r.x, r.y, r.width, r.height}; }

QColor heat(double share) {
  const QColor cold = themed(Token::Panel), hot = Theme::instance().category(1);
  const double s = std::clamp(std::sqrt(share), 0.0, 1.0) * 0.8;
  return QColor::fromRgbF(cold.redF() + (hot.redF() - cold.redF()) * s, cold.greenF() + (hot.greenF() - cold.greenF()) * s,
                          cold.blueF() + (hot.blueF() - cold.blueF()) * s);
}

/// 0 up to what float32 rounds (1e-7 of the largest value), 1 from a tenth on; even steps of the power of ten between.
double errorShare(double error) { return error <= 0 ? 0 : std::clamp((std::log10(error) + 7) / 6, 0.0, 1.0); }

void arrowHead(QPainter& painter, const QPointF& tip) {
  painter.drawPolygon(QPolygonF{{tip.x(), tip.y()}, {tip.x() - 3.2, tip.y() - 6.5}, {tip.x() + 3.2, tip.y() - 6.5}});
}

}  // namespace

QString groupTitle(const QFontMetricsF& metrics, const QString& label, bool open, double room) {
  const QString mark = open ? QStringLiteral("\u25be ") : QStringLiteral("\u25b8 ");
  return mark + metrics.elidedText(label, Qt::ElideMiddle, room - metrics.horizontalAdvance(mark));
}

int categoryOf(OpFamily family) { return kFamilyLooks[static_cast<size_t>(family)].category; }

QString familyName(OpFamily family) {
  return QCoreApplication::translate("Graph", kFamilyLooks[static_cast<size_t>(family)].name);
}

void GraphPainter::setScene(std::shared_ptr<const GraphPicture> picture, std::shared_ptr<const CompoundScene> scene) {
  picture_ = std::move(picture);
  scene_ = std::move(scene);
  selectedNode = selectedGroup = -1;
  hits.clear();
  shapes_.clear();
  if (!scene_) return;
  shapes_.reserve(scene_->edges.size());
  for (const auto& edge : scene_->edges) {
    Shape shape;
    if (!edge.points.empty()) {
      shape.path.moveTo(edge.points.front().x, edge.points.front().y);
      for (size_t i = 1; i < edge.points.size(); ++i) {
        const auto &a = edge.points[i - 1], &b = edge.points[i];
        const double half = (b.y - a.y) / 2;
        shape.path.cubicTo(a.x, a.y + half, b.x, b.y - half, b.x, b.y);
      }
      shape.bounds = shape.path.controlPointRect().adjusted(-4, -4, 4, 4);
    } else {
      shape.bounds = rectOf(edge.from).united(rectOf(edge.to)).adjusted(0, -kStub, 0, kStub);
    }
    shapes_.push_back(std::move(shape));
  }
}

QRectF GraphPainter::bounds() const { return empty() ? QRectF() : QRectF(0, 0, scene_->width, scene_->height); }

double GraphPainter::middleAbove(double y) const {
  double left = 1e18, right = -1e18;
  const auto add = [&](const LayoutRect& rect) {
    const QRectF box = toQt(rect);
    if (box.width() <= 0 || box.top() >= y) return;
    left = std::min(left, box.left());
    right = std::max(right, box.right());
  };
  for (const auto& box : scene_->boxes) {
    if (box.depth > 0) add(box.rect);
  }
  for (const auto& node : scene_->nodes) add(node);
  return left < right ? (left + right) / 2 : bounds().center().x();
}

QRectF GraphPainter::first() const {
  QRectF top;
  const auto add = [&](const LayoutRect& rect) {
    const QRectF box = toQt(rect);
    if (box.width() > 0 && (top.isEmpty() || box.top() < top.top())) top = box;
  };
  for (const auto& box : scene_->boxes) {
    if (box.depth > 0 && !box.open) add(box.rect);
  }
  for (const auto& node : scene_->nodes) add(node);
  return top;
}

QRectF GraphPainter::rectOf(const SceneEnd& end) const {
  if (end.node >= 0) return toQt(scene_->nodes[static_cast<size_t>(end.node)]);
  if (end.group < 0) return {};
  const int box = scene_->boxOfGroup[static_cast<size_t>(end.group)];
  return box < 0 ? QRectF() : toQt(scene_->boxes[static_cast<size_t>(box)].rect);
}

SceneEnd GraphPainter::at(const QPointF& point) const {
  SceneEnd found;
  if (empty()) return found;
  for (size_t n = 0; n < scene_->nodes.size(); ++n) {
    if (scene_->nodes[n].width > 0 && toQt(scene_->nodes[n]).contains(point)) return {static_cast<int>(n), -1};
  }
  for (const auto& box : scene_->boxes) {  // inner boxes come later
    if (toQt(box.rect).contains(point)) found.group = box.group;
  }
  return found;
}

void GraphPainter::paint(QPainter& painter, const QRectF& visible, double scale) const {
  if (empty()) return;
  paintBoxes(painter, visible, scale);
  paintEdges(painter, visible, scale);
  paintLinks(painter);
  paintNodes(painter, visible, scale);
}

void GraphPainter::paintBoxes(QPainter& painter, const QRectF& visible, double scale) const {
  for (const auto& box : scene_->boxes) {
    const QRectF rect = toQt(box.rect);
    if (!rect.intersects(visible)) continue;
    const auto& group = picture_->tree.groups[static_cast<size_t>(box.group)];
    const bool selected = box.group == selectedGroup;
    const auto kernel = picture_->kernelOfFold.find(group.path);
    const int category = categoryOf(QString::fromStdString(kernel != picture_->kernelOfFold.end() ? kernel->second : group.label));
    QColor fill = box.open ? themed(Token::Raised) : themed(Token::Panel);
    if (box.open && box.depth % 2 == 0) fill = themed(Token::Window);
    painter.setRenderHint(QPainter::Antialiasing, scale >= kSmoothFrom);
    painter.setPen(QPen(selected ? themed(Token::Accent) : themed(box.open ? Token::Border : Token::BorderStrong),
                        selected ? 2.2 : 1));
    painter.setBrush(fill);
    painter.drawRoundedRect(rect, kCorner + 2, kCorner + 2);
    if (!box.open) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(Theme::instance().category(category));
      painter.drawRect(QRectF(rect.left() + 1, rect.top() + kCorner, 4, rect.height() - 2 * kCorner));
    }
    if (scale < kTextFrom) continue;
    const QString label = QString::fromStdString(group.label);
    painter.setFont(nodeFont(true));
    painter.setPen(themed(Token::Text));
    const QFontMetricsF metrics(painter.font());
    const double room = rect.width() - 23;
    const QString title = groupTitle(metrics, label, box.open, room);
    if (box.open) {
      painter.drawText(QRectF(rect.left() + 10, rect.top(), room, 22), Qt::AlignVCenter | Qt::AlignLeft, title);
      continue;
    }
    painter.drawText(QRectF(rect.left() + 13, rect.top() + 4, room, rect.height() / 2 - 2), Qt::AlignVCenter | Qt::AlignLeft, title);
    painter.setFont(nodeFont(false));
    painter.setPen(themed(Token::TextMuted));
    painter.drawText(QRectF(rect.left() + 13, rect.center().y() - 1, rect.width() - 20, rect.height() / 2 - 2),
                     Qt::AlignVCenter | Qt::AlignLeft,
                     QString::fromStdString(formatNumberOf(group.totalNodes, QCoreApplication::translate("Graph", "node").toStdString(),
                                                           QCoreApplication::translate("Graph", "nodes").toStdString())));
  }
}

bool GraphPainter::touchesSelection(const CompoundScene::Edge& edge) const {
  if (selectedNode >= 0) return edge.from.node == selectedNode || edge.to.node == selectedNode;
  return selectedGroup >= 0 && (edge.from.group == selectedGroup || edge.to.group == selectedGroup);
}

void GraphPainter::paintEdges(QPainter& painter, const QRectF& visible, double scale) const {
  const bool smooth = scale >= kSmoothFrom;
  painter.setRenderHint(QPainter::Antialiasing, smooth);
  for (const bool strong : {false, true}) {  // those of the selection on top
    const QColor colour = themed(strong ? Token::Accent : Token::Edge);
    QPen pen(colour, strong ? 2.0 : 1.1);
    for (size_t e = 0; e < shapes_.size(); ++e) {
      const auto& edge = scene_->edges[e];
      if (touchesSelection(edge) != strong || !shapes_[e].bounds.intersects(visible)) continue;
      pen.setWidthF((strong ? 2.0 : 1.1) + (edge.count > 1 ? 0.8 : 0));
      pen.setStyle(edge.stub ? Qt::DashLine : Qt::SolidLine);
      painter.setPen(pen);
      painter.setBrush(Qt::NoBrush);
      if (edge.stub) {
        strong ? painter.drawLine(QPointF(rectOf(edge.from).center().x(), rectOf(edge.from).bottom()),
                                  QPointF(rectOf(edge.to).center().x(), rectOf(edge.to).top()))
               : paintStub(painter, edge);
        continue;
      }
      if (smooth) {
        painter.drawPath(shapes_[e].path);
      } else {
        for (size_t i = 1; i < edge.points.size(); ++i) {
          painter.drawLine(QPointF(edge.points[i - 1].x, edge.points[i - 1].y), QPointF(edge.points[i].x, edge.points[i].y));
        }
      }
      if (scale < 0.3) continue;
      painter.setPen(Qt::NoPen);
      painter.setBrush(colour);
      arrowHead(painter, {edge.points.back().x, edge.points.back().y});
    }
  }
}

/// Edges of the selected node that leave its group are drawn between groups; show where they really go.
void GraphPainter::paintLinks(QPainter& painter) const {
  if (selectedNode < 0) return;
  const auto& groups = picture_->tree.groupOfNode;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(themed(Token::Accent), 1.4, Qt::DashLine));
  for (const auto& edge : picture_->layout.edges) {
    if (edge.from != selectedNode && edge.to != selectedNode) continue;
    const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
    if (groups[from] == groups[to] || !scene_->visible(edge.from) || !scene_->visible(edge.to)) continue;
    const QRectF a = rectOf({edge.from, -1}), b = rectOf({edge.to, -1});
    painter.drawLine(QPointF(a.center().x(), a.bottom()), QPointF(b.center().x(), b.top()));
  }
}

/// A long edge: a short tail at either end; the canvas shows the whole when an end is selected.
void GraphPainter::paintStub(QPainter& painter, const CompoundScene::Edge& edge) const {
  const QRectF from = rectOf(edge.from), to = rectOf(edge.to);
  QPen pen = painter.pen();
  pen.setStyle(Qt::DotLine);
  painter.setPen(pen);
  painter.drawLine(QPointF(from.center().x() + 10, from.bottom()), QPointF(from.center().x() + 16, from.bottom() + kStub));
  painter.drawLine(QPointF(to.center().x() - 16, to.top() - kStub), QPointF(to.center().x() - 10, to.top()));
}

int GraphPainter::categoryOfNode(int node) const {
  const auto& data = picture_->node(node);
  if (colouring == GraphColouring::Fusion) {
    const auto group = picture_->groupById.find(data.group);
    if (group == picture_->groupById.end()) return -1;
    return categoryOf(QString::fromStdString(picture_->data.groups[static_cast<size_t>(group->second)].name));
  }
  return categoryOf(opFamily(data.kind, data.op));
}

void GraphPainter::paintNodes(QPainter& painter, const QRectF& visible, double scale) const {
  painter.setRenderHint(QPainter::Antialiasing, scale >= kSmoothFrom);
  for (size_t n = 0; n < scene_->nodes.size(); ++n) {
    const LayoutRect& r = scene_->nodes[n];
    if (r.width <= 0 || r.x > visible.right() || r.right() < visible.left() || r.y > visible.bottom() ||
        r.bottom() < visible.top()) {
      continue;
    }
    paintNode(painter, static_cast<int>(n), scale);
  }
}

void GraphPainter::paintNode(QPainter& painter, int node, double scale) const {
  const auto& data = picture_->node(node);
  const QRectF rect = toQt(scene_->nodes[static_cast<size_t>(node)]);
  const int category = categoryOfNode(node);
  const Theme& theme = Theme::instance();
  QColor fill = category < 0 ? themed(Token::Raised) : theme.categoryFill(category);
  if (colouring == GraphColouring::Time) {
    fill = heat(picture_->slowestNs > 0 ? static_cast<double>(data.timeNs) / static_cast<double>(picture_->slowestNs) : 0);
  }
  if (colouring == GraphColouring::Error) {
    fill = data.error < 0 ? themed(Token::Panel) : heat(errorShare(data.error));
    if (data.isDivergent) fill = themed(Token::ErrorSoft);
  }
  const bool isScale = colouring == GraphColouring::Time || colouring == GraphColouring::Error;
  QColor border = category < 0 || isScale ? themed(Token::BorderStrong) : theme.category(category);
  if (colouring == GraphColouring::Error && data.isDivergent) border = themed(Token::Error);
  const bool dim = !hits.empty() && !hits[static_cast<size_t>(node)];
  if (dim) painter.setOpacity(0.3);
  const bool selected = node == selectedNode;
  if (scale < kSmoothFrom) {
    painter.fillRect(rect, selected ? themed(Token::Accent) : border);
    painter.setOpacity(1);
    return;
  }
  painter.setPen(QPen(selected ? themed(Token::Accent) : border, selected ? 2.6 : 1));
  painter.setBrush(fill);
  const double corner = data.kind == "call" ? kCorner : rect.height() / 2;
  painter.drawRoundedRect(rect, corner, corner);
  if (scale >= kTextFrom) {
    const size_t n = static_cast<size_t>(node);
    const QRectF inner = rect.adjusted(10, 3, -10, -3);
    painter.setFont(nodeFont(true));
    painter.setPen(themed(Token::Text));
    const QFontMetricsF bold(painter.font());
    const QString title = bold.elidedText(QString::fromStdString(picture_->titles[n]), Qt::ElideRight, inner.width());
    const bool two = !picture_->subtitles[n].empty();
    painter.drawText(two ? QRectF(inner.left(), inner.top(), inner.width(), inner.height() / 2) : inner,
                     Qt::AlignVCenter | Qt::AlignHCenter, title);
    if (two) {
      painter.setFont(nodeFont(false));
      painter.setPen(themed(Token::TextMuted));
      QString subtitle = QString::fromStdString(picture_->subtitles[n]);
      if (colouring == GraphColouring::Time && data.timeNs > 0) {
        subtitle = QString::fromStdString(formatDuration(static_cast<double>(data.timeNs)));
      }
      if (colouring == GraphColouring::Error && data.error >= 0) subtitle = data.error > 0 ? QString::number(data.error, 'e', 1) : QStringLiteral("0");
      const QFontMetricsF plain(painter.font());
      painter.drawText(QRectF(inner.left(), inner.center().y(), inner.width(), inner.height() / 2),
                       Qt::AlignVCenter | Qt::AlignHCenter, plain.elidedText(subtitle, Qt::ElideRight, inner.width()));
    }
    if (picture_->inputBadges[n] > 0) {  // inputs that are not drawn as nodes
      const QRectF badge(rect.right() - 9, rect.top() - 7, 16, 14);
      painter.setPen(QPen(border, 1));
      painter.setBrush(themed(Token::Panel));
      painter.drawRoundedRect(badge, 7, 7);
      QFont small = nodeFont(false);
      small.setPixelSize(10);
      painter.setFont(small);
      painter.setPen(themed(Token::TextMuted));
      painter.drawText(badge, Qt::AlignCenter, QString::number(picture_->inputBadges[n]));
    }
  }
  painter.setOpacity(1);
}

void GraphPainter::paintOverview(QPainter& painter) const {
  if (empty()) return;
  for (const auto& box : scene_->boxes) {
    if (!box.open) painter.fillRect(toQt(box.rect), themed(Token::BorderStrong));
  }
  for (size_t n = 0; n < scene_->nodes.size(); ++n) {
    if (scene_->nodes[n].width <= 0) continue;
    const int category = categoryOfNode(static_cast<int>(n));
    painter.fillRect(toQt(scene_->nodes[n]),
                     category < 0 ? themed(Token::Edge) : Theme::instance().category(category));
  }
}

}  // namespace fusebox::views
