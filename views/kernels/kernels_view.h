#pragma once

#include <QTabWidget>

#include "views/kernels/code_columns.h"
#include "views/kernels/kernels_model.h"
#include "views/kernels/roofline_plot.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/find_bar.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// Every generated kernel and extern call: times, bytes, rate; and of the chosen one its nodes, fusion decisions and code.
class KernelsView : public View {
  Q_OBJECT
 public:
  explicit KernelsView(const ViewContext& context);

  QString id() const override { return QStringLiteral("kernels"); }
  QString title() const override { return tr("Kernels"); }
  QString iconName() const override { return QStringLiteral("kernels"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Kernel; }
  void showLocation(const Location& location) override;
  void find() override;

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  struct CodeTab {
    QWidget* page;
    CodePane* pane;
    EmptyState* empty;
    FindBar* findBar;
    QString title;
    QString pending;   ///< code to show once the tab is: colouring thousands of lines that nobody looks at takes time
  };
  CodeTab addCode(const QString& name, const QString& title, Language language);
  void nameSource(bool isForeign, const std::string& code);
  void fillCode(CodeTab& tab, const std::string& code, const QString& reason);
  void showPending();
  void loadRooflinePlot();
  void loadList();
  void sayNone(const query::Holdings& holdings);
  void openKernel(int64_t kernel);
  void showLine(const std::string& file, int line);
  /// The node that a line of the loop IR is a part of is selected everywhere.
  void announceNodeOf(int loopLine);
  /// Shows the lines of the loop IR that belong to what is selected elsewhere.
  void linkCode();
  void showDetail(const KernelDetail& detail);
  /// Makes the shown kernel the one that others are compared with, or none of it any more.
  void pinShown();

  DataTable* table_;
  QTabWidget* tabs_;
  DetailsPanel* summary_;
  CodeTab loopIr_, llvmIr_, assembly_;
  DataTable* nodes_;
  DataTable* decisions_;
  DataTable* counters_;
  CodeColumns* columns_;
  RooflinePlot* roofline_;
  EmptyState* rooflinePage_;
  QAction* pin_;
  KernelDetail detail_;      ///< what is shown
  KernelDetail pinned_;      ///< what it is compared with, perhaps of another session; id 0: nothing
  QString pinnedFrom_;       ///< that session's file
  int64_t shown_ = 0;
  int64_t wanted_ = 0;
  Location followed_;        ///< a node or a line of the program, selected elsewhere
  CodeLines lines_;
  KernelRequest request_;    ///< what is listed, where not all are
  bool isWhole_ = true;
};

}  // namespace fusebox::views
