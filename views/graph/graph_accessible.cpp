#include "views/graph/graph_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QPointer>
#include <unordered_map>

#include "views/graph/graph_canvas.h"

namespace fusebox::views {
namespace {

std::vector<int> visibleNodes(const GraphCanvas* canvas) {
  std::vector<int> nodes;
  if (!canvas || canvas->painter().empty()) return nodes;
  const auto& scene = canvas->painter().scene();
  for (int n = 0; n < static_cast<int>(scene.nodes.size()); ++n) {
    if (scene.visible(n)) nodes.push_back(n);
  }
  return nodes;
}

/// One node. Outlives layouts: it is invalid while its node is folded away or gone.
class NodeInterface : public QAccessibleInterface {
 public:
  NodeInterface(GraphCanvas* canvas, int node) : canvas_(canvas), node_(node) {}

  bool isValid() const override {
    return canvas_ && !canvas_->painter().empty() && node_ < static_cast<int>(canvas_->painter().scene().nodes.size()) &&
           canvas_->painter().scene().visible(node_);
  }
  QObject* object() const override { return nullptr; }
  QWindow* window() const override { return canvas_ ? canvas_->window()->windowHandle() : nullptr; }
  QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(canvas_); }
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  QAccessible::Role role() const override { return QAccessible::ListItem; }
  QString text(QAccessible::Text kind) const override {
    if (!isValid()) return {};
    const auto& node = canvas_->painter().picture().node(node_);
    if (kind == QAccessible::Name) return QString::fromStdString(node.name);
    if (kind == QAccessible::Description) return QString::fromStdString(node.op + " " + node.dtype + node.shape);
    return {};
  }
  void setText(QAccessible::Text, const QString&) override {}
  QRect rect() const override {
    if (!isValid()) return {};
    const QRectF scene = canvas_->painter().rectOf({node_, -1});
    const QRectF widget(canvas_->toWidget(scene.topLeft()), scene.size() * canvas_->scale());
    return QRect(canvas_->mapToGlobal(widget.topLeft().toPoint()), widget.size().toSize());
  }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.selectable = true;
    state.selected = isValid() && canvas_->selectedNode() == node_;
    state.invalid = !isValid();
    return state;
  }

 private:
  QPointer<GraphCanvas> canvas_;
  int node_;
};

class CanvasInterface : public QAccessibleWidget {
 public:
  explicit CanvasInterface(GraphCanvas* canvas) : QAccessibleWidget(canvas, QAccessible::List), canvas_(canvas) {}
  ~CanvasInterface() override {
    for (const auto& [node, id] : children_) QAccessible::deleteAccessibleInterface(id);
  }

  int childCount() const override { return static_cast<int>(visibleNodes(canvas_).size()); }
  QAccessibleInterface* child(int index) const override {
    const auto nodes = visibleNodes(canvas_);
    return index >= 0 && index < static_cast<int>(nodes.size()) ? interfaceOf(nodes[static_cast<size_t>(index)]) : nullptr;
  }
  QAccessibleInterface* childAt(int x, int y) const override {
    for (int node : visibleNodes(canvas_)) {
      if (QAccessibleInterface* found = interfaceOf(node); found->rect().contains(x, y)) return found;
    }
    return nullptr;
  }
  int indexOfChild(const QAccessibleInterface* child) const override {
    const auto nodes = visibleNodes(canvas_);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (interfaceOf(nodes[i]) == child) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  QAccessibleInterface* interfaceOf(int node) const {
    const auto found = children_.find(node);
    if (found != children_.end()) return QAccessible::accessibleInterface(found->second);
    auto* made = new NodeInterface(canvas_, node);  // owned by QAccessible's cache until deleted above
    children_[node] = QAccessible::registerAccessibleInterface(made);
    return made;
  }

  QPointer<GraphCanvas> canvas_;
  mutable std::unordered_map<int, QAccessible::Id> children_;
};

QAccessibleInterface* makeInterface(const QString&, QObject* object) {
  auto* canvas = qobject_cast<GraphCanvas*>(object);
  return canvas ? new CanvasInterface(canvas) : nullptr;
}

}  // namespace

void installGraphAccessibility() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  QAccessible::installFactory(makeInterface);
}

}  // namespace fusebox::views
