#include "views/graph/graph_canvas.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <cmath>

#include "views/common/units.h"
#include "views/graph/graph_accessible.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

constexpr double kSmallest = 0.01, kLargest = 4, kStep = 1.18;
constexpr double kMargin = 24;
constexpr double kReadable = 0.75;
constexpr QSizeF kMapSize(170, 130);

}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent) {
  installGraphAccessibility();
  setObjectName(QStringLiteral("graph.canvas"));
  setAccessibleName(tr("Graph"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(120, 90);
  connect(&Theme::instance(), &Theme::changed, this, [this] {
    map_ = {};
    update();
  });
}

void GraphCanvas::setScene(std::shared_ptr<const GraphPicture> picture, std::shared_ptr<const CompoundScene> scene,
                           bool keepView, int anchorGroup) {
  const QPointF before = painter_.empty() || anchorGroup < 0 ? QPointF() : painter_.rectOf({-1, anchorGroup}).topLeft();
  painter_.setScene(std::move(picture), std::move(scene));
  map_ = {};
  if (!keepView) {
    fitTo(Fit::Beginning);
  } else if (anchorGroup >= 0 && !painter_.empty()) {
    offset_ -= (painter_.rectOf({-1, anchorGroup}).topLeft() - before) * scale_;
    painter_.selectedGroup = anchorGroup;
  }
  describe();
  update();
}

void GraphCanvas::setColouring(GraphColouring colouring) {
  painter_.colouring = colouring;
  map_ = {};
  update();
}

void GraphCanvas::setHits(std::vector<char> hits) {
  painter_.hits = std::move(hits);
  update();
}

void GraphCanvas::selectNode(int node, bool reveal) {
  painter_.selectedNode = node;
  painter_.selectedGroup = -1;
  if (node >= 0 && reveal && !painter_.empty()) {
    const QRectF rect = painter_.rectOf({node, -1});
    if (scale_ < 0.5) {
      scale_ = 0.8;
      offset_ = QRectF(this->rect()).center() - rect.center() * scale_;
      fitted_ = false;
    } else if (!QRectF(this->rect()).adjusted(20, 20, -20, -20).contains(QRectF(toWidget(rect.topLeft()), rect.size() * scale_))) {
      offset_ = QRectF(this->rect()).center() - rect.center() * scale_;
      fitted_ = false;
    }
  }
  describe();
  update();
}

void GraphCanvas::fit() {
  fitTo(Fit::Whole);
}

void GraphCanvas::fitTo(Fit how) {
  const QRectF bounds = painter_.bounds();
  if (bounds.isEmpty() || width() < 2 * kMargin || height() < 2 * kMargin) return;
  const double across = (width() - 2 * kMargin) / bounds.width();
  double room = std::min(across, (height() - 2 * kMargin) / bounds.height());
  // A long chain fitted whole is a hair: at first rather show its beginning, readably.
  if (how == Fit::Beginning && room < kReadable) room = std::max(room, std::min(kReadable, across));
  fit_ = how;
  scale_ = std::clamp(room, kSmallest, 1.0);
  const QSizeF size = bounds.size() * scale_;
  offset_ = {(width() - size.width()) / 2, size.height() > height() ? kMargin : (height() - size.height()) / 2};
  // Of a graph that is not seen whole, what is seen stands in the middle: a long chain may lean to one side.
  if (size.height() > height()) {
    const double seen = bounds.top() + height() / scale_;
    const double middle = painter_.middleAbove(seen);
    // … with where it begins wholly in view.
    const QRectF first = painter_.first();
    const double x = std::min(width() / 2.0 - middle * scale_, width() - kMargin - first.right() * scale_);
    offset_.setX(std::max(x, kMargin - first.left() * scale_));
  }
  fitted_ = true;
  update();
}

void GraphCanvas::zoomAt(const QPointF& widget, double factor) {
  const double next = std::clamp(scale_ * factor, kSmallest, kLargest);
  offset_ = widget - (widget - offset_) * (next / scale_);
  scale_ = next;
  fitted_ = false;
  keepInView();
  update();
}

void GraphCanvas::zoomBy(double factor) { zoomAt(QRectF(rect()).center(), factor); }

/// The picture can be pushed to an edge but never out of sight.
void GraphCanvas::keepInView() {
  const QSizeF size = painter_.bounds().size() * scale_;
  const double keepX = std::min(size.width(), 60.0), keepY = std::min(size.height(), 60.0);
  offset_.setX(std::clamp(offset_.x(), keepX - size.width(), width() - keepX));
  offset_.setY(std::clamp(offset_.y(), keepY - size.height(), height() - keepY));
}

Picture GraphCanvas::picture() const {
  const QRectF bounds = painter_.bounds();
  if (bounds.isEmpty()) return {};
  GraphPainter copy = painter_;
  copy.selectedNode = copy.selectedGroup = -1;
  copy.hits.clear();
  return {bounds.adjusted(-kMargin, -kMargin, kMargin, kMargin),
          [copy, bounds](QPainter& painter) { copy.paint(painter, bounds.adjusted(-99, -99, 99, 99), 1); }};
}

void GraphCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Code));
  if (painter_.empty()) return;
  painter.save();
  painter.translate(offset_);
  painter.scale(scale_, scale_);
  painter_.paint(painter, QRectF(toScene({0, 0}), toScene(QPointF(width(), height()))), scale_);
  painter.restore();
  paintMap(painter);
  if (hasFocus()) {
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(themed(Token::Accent));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

/// Where the small map is, empty while everything is in view.
QRectF GraphCanvas::mapRect() const {
  const QRectF bounds = painter_.bounds();
  if (bounds.isEmpty() || width() < 420 || height() < 300) return {};
  if (bounds.width() * scale_ <= width() && bounds.height() * scale_ <= height()) return {};
  const double scale = std::min(kMapSize.width() / bounds.width(), kMapSize.height() / bounds.height());
  const QSizeF size = (bounds.size() * scale).expandedTo({14, 14});
  return {QPointF(width() - size.width() - 14, height() - size.height() - 14), size};
}

void GraphCanvas::paintMap(QPainter& painter) {
  const QRectF map = mapRect();
  if (map.isEmpty()) return;
  const double ratio = devicePixelRatioF();
  if (map_.isNull() || map_.deviceIndependentSize().toSize() != map.size().toSize() || map_.devicePixelRatio() != ratio) {
    map_ = QPixmap((map.size() * ratio).toSize().expandedTo({1, 1}));
    map_.setDevicePixelRatio(ratio);
    map_.fill(themed(Token::Panel));
    QPainter inner(&map_);
    inner.setRenderHint(QPainter::Antialiasing);
    inner.scale(map.width() / painter_.bounds().width(), map.height() / painter_.bounds().height());
    painter_.paintOverview(inner);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QRectF frame = map.adjusted(-5, -5, 5, 5);
  painter.setPen(themed(Token::Border));
  painter.setBrush(themed(Token::Panel));
  painter.drawRect(frame);
  painter.drawPixmap(map.topLeft(), map_);
  const double fx = map.width() / painter_.bounds().width(), fy = map.height() / painter_.bounds().height();
  const QRectF seen(toScene({0, 0}), toScene(QPointF(width(), height())));
  QRectF box(map.left() + seen.left() * fx, map.top() + seen.top() * fy, seen.width() * fx, seen.height() * fy);
  box = box.intersected(map);
  QColor veil = themed(Token::Accent);
  veil.setAlphaF(0.14F);
  painter.setPen(themed(Token::Accent));
  painter.setBrush(veil);
  painter.drawRect(box);
}

bool GraphCanvas::moveByMap(const QPointF& position) {
  const QRectF map = mapRect();
  if (map.isEmpty() || !map.adjusted(-5, -5, 5, 5).contains(position)) return false;
  const QPointF scene((position.x() - map.left()) / map.width() * painter_.bounds().width(),
                      (position.y() - map.top()) / map.height() * painter_.bounds().height());
  offset_ = QRectF(rect()).center() - scene * scale_;
  fitted_ = false;
  keepInView();
  update();
  return true;
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
  const double steps = event->angleDelta().y() / 120.0;
  if (event->modifiers() & Qt::ShiftModifier) {
    offset_ += QPointF(steps * 60, 0);
    keepInView();
    update();
  } else {
    zoomAt(event->position(), std::pow(kStep, steps));
  }
  event->accept();
}

void GraphCanvas::choose(const SceneEnd& end) {
  painter_.selectedNode = end.node;
  painter_.selectedGroup = end.node >= 0 ? -1 : end.group;
  describe();
  update();
  if (end.node >= 0) {
    emit nodeSelected(end.node);
  } else if (end.group >= 0) {
    emit groupSelected(end.group);
  } else {
    emit nothingSelected();
  }
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  pressed_ = lastMove_ = event->position();
  dragging_ = false;
  inMap_ = event->button() == Qt::LeftButton && moveByMap(event->position());
}

void GraphCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (inMap_) {
    moveByMap(event->position());
    return;
  }
  if (!(event->buttons() & (Qt::LeftButton | Qt::MiddleButton))) return;
  if (!dragging_ && (event->position() - pressed_).manhattanLength() < 5) return;
  dragging_ = true;
  fitted_ = false;
  setCursor(Qt::ClosedHandCursor);
  offset_ += event->position() - lastMove_;
  lastMove_ = event->position();
  keepInView();
  update();
}

void GraphCanvas::mouseReleaseEvent(QMouseEvent* event) {
  unsetCursor();
  if (!dragging_ && !inMap_ && event->button() == Qt::LeftButton) choose(painter_.at(toScene(event->position())));
  dragging_ = inMap_ = false;
}

void GraphCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const SceneEnd end = painter_.at(toScene(event->position()));
  if (end.node >= 0) {
    emit nodeActivated(end.node);
  } else if (end.group > 0) {
    emit groupToggled(end.group);
  }
}

/// The reader or writer of a node that is nearest to it; -1 without one.
int GraphCanvas::neighbour(int node, bool towardsInputs) const {
  int best = -1;
  double distance = 0;
  const QPointF here = painter_.rectOf({node, -1}).center();
  for (const auto& edge : painter_.picture().layout.edges) {  // the graph's own edges, across groups too
    const int other = towardsInputs ? (edge.to == node ? edge.from : -1) : (edge.from == node ? edge.to : -1);
    if (other < 0 || !painter_.scene().visible(other)) continue;
    const double d = QLineF(here, painter_.rectOf({other, -1}).center()).length();
    if (best < 0 || d < distance) {
      best = other;
      distance = d;
    }
  }
  return best;
}

int GraphCanvas::beside(int node, bool right) const {
  const QRectF here = painter_.rectOf({node, -1});
  int best = -1;
  double distance = 0;
  for (int n = 0; n < static_cast<int>(painter_.scene().nodes.size()); ++n) {
    if (n == node || !painter_.scene().visible(n)) continue;
    const QRectF there = painter_.rectOf({n, -1});
    const double dx = there.center().x() - here.center().x();
    if ((dx > 0) != right || std::abs(there.center().y() - here.center().y()) > here.height()) continue;
    if (best < 0 || std::abs(dx) < distance) {
      best = n;
      distance = std::abs(dx);
    }
  }
  return best;
}

void GraphCanvas::walk(int key) {
  int next = -1;
  if (painter_.selectedNode < 0) {
    for (int n = 0; n < static_cast<int>(painter_.scene().nodes.size()) && next < 0; ++n) {
      if (painter_.scene().visible(n)) next = n;
    }
  } else if (key == Qt::Key_Up || key == Qt::Key_Down) {
    next = neighbour(painter_.selectedNode, key == Qt::Key_Up);
  } else {
    next = beside(painter_.selectedNode, key == Qt::Key_Right);
  }
  if (next < 0) return;
  selectNode(next, true);
  emit nodeSelected(next);
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  const QPointF step(width() * 0.12, height() * 0.12);
  const auto pan = [&](double x, double y) {
    offset_ += QPointF(x, y);
    fitted_ = false;
    keepInView();
    update();
  };
  if (painter_.empty()) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_W: return pan(0, step.y());
    case Qt::Key_S: return pan(0, -step.y());
    case Qt::Key_A: return pan(step.x(), 0);
    case Qt::Key_D: return pan(-step.x(), 0);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(kStep * kStep);
    case Qt::Key_Minus: return zoomBy(1 / (kStep * kStep));
    case Qt::Key_F:
    case Qt::Key_0: return fit();
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right: return walk(event->key());
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (painter_.selectedNode >= 0) return emit nodeActivated(painter_.selectedNode);
      if (painter_.selectedGroup > 0) return emit groupToggled(painter_.selectedGroup);
      return;
    case Qt::Key_Escape: return choose({});
    default: QWidget::keyPressEvent(event);
  }
}

void GraphCanvas::resizeEvent(QResizeEvent* event) {
  if (fitted_) return fitTo(fit_);
  if (!event->oldSize().isValid() || painter_.empty()) return;
  offset_ += QPointF(event->size().width() - event->oldSize().width(), event->size().height() - event->oldSize().height()) / 2;
  keepInView();
}

bool GraphCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    return showTip(help->pos(), help->globalPos());
  }
  return QWidget::event(event);
}

bool GraphCanvas::showTip(const QPoint& position, const QPoint& global) {
  const SceneEnd end = painter_.at(toScene(position));
  if (end.node < 0) {
    QToolTip::hideText();
    return false;
  }
  const auto& node = painter_.picture().node(end.node);
  QStringList lines{QString::fromStdString(node.name)};
  for (const std::string& text : {node.op, node.dtype + node.shape, node.modulePath}) {
    if (!text.empty()) lines << QString::fromStdString(text);
  }
  for (const auto* symbol : query::symbolsNamedIn(painter_.picture().data.symbols, node.shape + " " + node.stride + " " + node.args))
    lines << QString::fromStdString(symbol->legend());
  if (!node.file.empty()) lines << QString::fromStdString(shortPlace(node.file, node.line));
  if (node.timeNs > 0) lines << QString::fromStdString(formatDuration(static_cast<double>(node.timeNs)));
  QToolTip::showText(global, lines.join(QLatin1Char('\n')), this);
  return true;
}

void GraphCanvas::describe() {
  if (painter_.empty() || painter_.selectedNode < 0) {
    setAccessibleDescription(painter_.empty() ? tr("No graph") : tr("%1 nodes").arg(painter_.picture().drawn.size()));
    return;
  }
  const auto& node = painter_.picture().node(painter_.selectedNode);
  setAccessibleDescription(QStringLiteral("%1 %2 %3").arg(QString::fromStdString(node.name), QString::fromStdString(node.op),
                                                          QString::fromStdString(node.shape)));
}

}  // namespace fusebox::views
