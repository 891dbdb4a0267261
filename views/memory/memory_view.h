#pragma once

#include <QLabel>
#include <QTabWidget>

#include "views/memory/lifetimes_canvas.h"
#include "views/widgets/data_table.h"
#include "views/widgets/empty_state.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// What compiled graphs plan and keep: graphs with their peaks, the lifetimes of one as a picture, its buffers, and the activations that
/// its backward pass needs; beside them what was measured.
class MemoryView : public View {
  Q_OBJECT
 public:
  explicit MemoryView(const ViewContext& context);

  QString id() const override { return QStringLiteral("memory"); }
  QString title() const override { return tr("Memory"); }
  QString iconName() const override { return QStringLiteral("memory"); }
  bool canShow(const Location&) const override { return false; }  // graphs have a view of their own
  void showLocation(const Location& location) override;
  void find() override { graphs_->focusFilter(); }
  const query::GraphLifetimes& shown() const { return shown_; }

 protected:
  void clear() override;
  void load() override;

 private:
  void sayNone(const query::Holdings& holdings);
  void openGraph(int64_t graph);
  void openBuffer(int buffer);

  EmptyState* empty_;
  QLabel *measured_, *headline_;
  DataTable *graphs_, *buffers_, *saved_;
  LifetimesCanvas* canvas_;
  QTabWidget* tabs_;
  query::GraphLifetimes shown_;
};

}  // namespace fusebox::views
