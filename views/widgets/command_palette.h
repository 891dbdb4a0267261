#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPointer>
#include <functional>

#include "views/widgets/action_registry.h"

namespace fusebox::views {

/// One line of the palette that is no command.
struct PaletteItem {
  QString text, detail;
  std::function<void()> run;
};

/// Something else than commands that can be found in the palette: nodes, kernels, files, …
struct PaletteSource {
  QString prefix;  ///< "n": what is typed before the pattern to search here alone
  QString title;   ///< "Nodes"
  QString icon;
  /// Delivers the items that fit, best first, at once or later, on the GUI thread; not at all if a newer question came.
  std::function<void(const QString& pattern, std::function<void(QList<PaletteItem>)> deliver)> ask;
};

/// Ctrl+Shift+P: type a few letters of a command, Return runs it. With a source's prefix and a space ("n gelu") its items.
class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  CommandPalette(const ActionRegistry& registry, QWidget* window, QList<PaletteSource> sources = {});

 protected:
  void hideEvent(QHideEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void update(const QString& text);
  void addCommands(const QString& pattern);
  void askSource(const PaletteSource& source, const QString& pattern, int most);
  void addItem(const QIcon& icon, const QString& text, const QString& detail, std::function<void()> run);
  void run();

  const ActionRegistry& registry_;
  QLineEdit* edit_;
  QListWidget* list_;
  QList<PaletteSource> sources_;
  QList<std::function<void()>> runs_;  ///< by row
  int serial_ = 0;                     ///< of the text that the rows are for
  QPointer<QWidget> before_;  ///< had the focus
};

}  // namespace fusebox::views
