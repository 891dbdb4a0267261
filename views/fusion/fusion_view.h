#pragma once

#include <QAction>
#include <QComboBox>
#include <QLineEdit>
#include <QTabWidget>
#include <set>
#include <string>

#include "views/fusion/fusion_model.h"
#include "views/fusion/size_plot.h"
#include "views/widgets/data_table.h"
#include "views/widgets/view.h"

class QAction;
class QLabel;
class QPushButton;
class QToolBar;

namespace fusebox::views {

class GraphCompiler;

/// What was fused, what was refused and why; and what would be if it were otherwise: fusions are forbidden or forced,
/// the graph is compiled again alone, and time and memory traffic are set beside the original's.
class FusionView : public View {
  Q_OBJECT
 public:
  explicit FusionView(const ViewContext& context);

  QString id() const override { return QStringLiteral("fusion"); }
  QString title() const override { return tr("Fusion"); }
  QString iconName() const override { return QStringLiteral("fusion"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Group; }
  void showLocation(const Location& location) override;
  void find() override;

 protected:
  void clear() override;
  void load() override;
  void follow(const Location& location) override;

 private:
  void buildToolbar(QToolBar* bar);
  QWidget* buildResult();
  void connectTables();
  Location placeOf(const TableRow& row) const;
  void selectDecision(const Location& node);
  void fillChoices(std::vector<FusionChoice> choices);
  void findLocation(const Location& location, bool look);
  void reveal();
  void choose(int64_t graph);
  void askContent();
  void showContent(FusionContent content);
  void wish(bool force);
  void forget();
  void wishesChanged();
  void withConsent(void (FusionView::*next)());
  void compileGraph();
  void measureNumerics();
  void showResult(const QByteArray& report, const QString& complaint);
  void openResult();
  void updateActions();

  QComboBox* graph_;
  QAction* forbid_;
  QAction* force_;
  QAction* forget_;
  QAction* compile_;
  QAction* numerics_;
  QAction* cancel_;
  QAction* busy_;  ///< the progress bar in the tool bar
  QLabel* facts_;
  QTabWidget* tabs_;
  DataTable* decisions_;
  DataTable* groups_;
  DataTable* buffers_;
  DataTable* errors_;
  QWidget* resultPane_;
  DataTable* result_;
  QLineEdit* sizes_;
  QAction* sizesAction_;
  SizePlot* plot_;
  QLabel* verdict_;
  QPushButton* open_;
  GraphCompiler* compiler_;

  std::vector<FusionChoice> choices_;
  FusionContent content_;
  std::vector<FusionWish> wishes_;
  int64_t shown_ = 0;
  bool asking_ = false;  ///< for the content of shown_
  Location pending_;     ///< to be shown when the graphs are known
  Location reveal_;      ///< to be selected when the content is there
  int64_t compiledGraph_ = 0;  ///< of the last run
  bool isNumericsRun_ = false;
  QString resultSession_;
  std::set<std::string> trusted_;  ///< programs from outside that PyTorch may load
};

}  // namespace fusebox::views
