#pragma once

#include <QAction>
#include <QList>
#include <QWidget>
#include <functional>

#include "profiler/query/holdings.h"
#include "views/common/location.h"
#include "views/widgets/selection_bus.h"
#include "views/widgets/session_link.h"

namespace fusebox::views {

/// What a view gets from the window.
struct ViewContext {
  SelectionBus* bus = nullptr;
  QString program{};  ///< the fusebox executable, which compiles a graph again
};

/// The contract of every view. A view reads only the session, follows the selection bus and shows what it is asked to; the
/// window knows views by this and by the table in view_table.h alone.
class View : public QWidget {
  Q_OBJECT
 public:
  explicit View(const ViewContext& context);

  virtual QString id() const = 0;
  virtual QString title() const = 0;
  virtual QString iconName() const = 0;

  /// The session to show from now on; null: none. Clears everything first.
  void setSession(SessionLink* session);
  SessionLink* session() const { return session_; }
  /// The session has grown: load again, keep selection and scroll position. Waits until the view is seen.
  void refresh();
  /// Whether the view's tab is the one in front. Qt holds a dock behind another for visible, so that the window says it.
  void setInFront(bool inFront);
  bool isSeen() const { return inFront_ && isVisible(); }

  virtual bool canShow(const Location& location) const = 0;
  virtual void showLocation(const Location& location) = 0;
  /// The view that explains such things best; it is asked before others that can show them too.
  virtual bool isHomeOf(const Location&) const { return false; }

  /// Puts the cursor into what Ctrl+F means here.
  virtual void find() {}
  /// Actions for the Edit and Export menus and the command palette; owned by the view.
  virtual QList<QAction*> viewActions() const { return actions(); }

 protected:
  /// Empties the view (no session) or prepares for a new one.
  virtual void clear() = 0;
  /// Asks the session for what is to be shown.
  virtual void load() = 0;
  /// Goes along with what another view has selected, where it means something here. A view that is not seen does so when it
  /// comes up, after `load`.
  virtual void follow(const Location&) {}
  void showEvent(QShowEvent* event) override;

  SelectionBus* bus() const { return context_.bus; }
  /// What the session's source can tell, for the words of lists that stay empty.
  void askHoldings(std::function<void(const query::Holdings&)> done);
  /// Selects for the other views.
  void announce(const Location& location) { bus()->select(location, this); }
  QAction* addViewAction(const QString& name, const QString& text, const QString& icon = {});

 private:
  void comeUp();

  ViewContext context_;
  QPointer<SessionLink> session_;
  bool stale_ = false;
  bool inFront_ = true;
  Location missed_;  ///< selected elsewhere while this view was not seen
};

}  // namespace fusebox::views
