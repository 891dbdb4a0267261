#pragma once

#include <QTextBrowser>

#include "views/common/location.h"

namespace fusebox::views {

/// Explains one thing: headings, name and value pairs, code, links to other things.
class DetailsPanel : public QTextBrowser {
  Q_OBJECT
 public:
  explicit DetailsPanel(const QString& name, QWidget* parent = nullptr);

  /// Builds the page again; `write` is called now and whenever the theme changes.
  void showPage(std::function<void(DetailsPanel&)> write);
  void showHint(const QString& text);

  // For `write`:
  void heading(const QString& text, const QString& tag = {});
  void section(const QString& text);
  /// A row of the current pair table; empty values are left out. With a location the value is a link.
  void pair(const QString& name, const QString& value, const Location& link = {});
  void paragraph(const QString& text, bool muted = false);
  void code(const QString& text);
  /// One line in bold.
  void emphasis(const QString& text);
  /// A unified diff, removed and added lines coloured, with a link that asks for the change.
  void diff(const QString& text);

 signals:
  void linkActivated(const fusebox::views::Location& location);
  /// Somebody wants the file changed as a diff of the page says.
  void changeWanted(const QString& diff);

 private:
  void closeTable();
  void rebuild();
  QString linkTo(const Location& location, const QString& html);

  std::function<void(DetailsPanel&)> write_;
  QString html_;
  bool inTable_ = false;
  std::vector<Location> links_;
  QStringList changes_;  ///< diffs of the page
};

}  // namespace fusebox::views
