#pragma once

#include "views/source/source_model.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/find_bar.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// The user's files with graph breaks, failing guards and times beside their lines, and an explanation of the line.
class SourceView : public View {
  Q_OBJECT
 public:
  explicit SourceView(const ViewContext& context);

  QString id() const override { return QStringLiteral("source"); }
  QString title() const override { return tr("Source"); }
  QString iconName() const override { return QStringLiteral("source"); }
  bool canShow(const Location& location) const override {
    return location.kind == ObjectKind::SourceLine || location.kind == ObjectKind::Break;
  }
  void showLocation(const Location& location) override;
  void find() override { findBar_->open(); }
  CodePane* code() const { return code_; }
  /// The file that is shown; empty: none.
  const std::string& path() const { return source_.path; }

 signals:
  /// A click beside a line: a breakpoint comes or goes.
  void lineClicked(const QString& file, int line);
  /// Another file, or a newer text of it, is shown: marks of a debugger have to be set again.
  void fileShown(const QString& file);

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  void sayNone(const query::Holdings& holdings);
  void openFile(const std::string& path, int line);
  void showSource(SourceText source);
  int worstLine() const;
  void showMarks();
  void explainLine(int line);
  void openEditor();

  DataTable* files_;
  CodePane* code_;
  EmptyState* empty_;
  FindBar* findBar_;
  DetailsPanel* details_;
  SourceText source_;
  std::string wantedPath_;  ///< of the file that is shown, or will be as soon as it is read
  int pendingLine_ = 0;
  bool announceLines_ = true;
};

}  // namespace fusebox::views
