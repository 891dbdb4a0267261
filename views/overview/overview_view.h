#pragma once

#include "views/overview/overview_model.h"
#include "views/overview/stage_bar.h"
#include "views/widgets/data_table.h"
#include "views/widgets/view.h"

class QGridLayout;
class QTabWidget;

namespace fusebox::views {

/// The run on one page: numbers, where compile time went, hottest kernels, breaks, recompiles, losses, versions.
class OverviewView : public View {
  Q_OBJECT
 public:
  explicit OverviewView(const ViewContext& context);

  QString id() const override { return QStringLiteral("overview"); }
  QString title() const override { return tr("Overview"); }
  QString iconName() const override { return QStringLiteral("overview"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::None; }
  void showLocation(const Location&) override {}
  void find() override;

 signals:
  /// The first numbers are on the screen.
  void firstPicture();

 protected:
  void clear() override;
  void load() override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Number {
    QLabel* value;
    QLabel* note;
  };
  /// `counts` says what the number is of; `open` shows those.
  Number addNumber(const QString& name, const QString& title, const QString& counts, std::function<void()> open);
  DataTable* addTable(const QString& name, const QString& title, const QString& filter, std::vector<TableColumn> columns);
  /// Cards side by side, in as many rows as leave their texts whole.
  void arrangeCards();
  void fill(OverviewModel& model);
  /// The numbers that are known before the lists are read.
  void fillStart(const OverviewModel& model);
  void showHead(const OverviewModel& model);
  void showNumbers(const OverviewModel& model);
  void showVerdict(const query::Coverage& coverage);
  void sayNone(const query::Holdings& holdings);
  void askOperators();
  void setTabCount(DataTable* table, const QString& title, int count);

  QLabel* headline_;
  QLabel* state_;
  QLabel* verdict_;
  bool hasFailed_ = false;
  bool operatorsAreStale_ = false;  ///< not those of what the session holds now
  QGridLayout* numbersGrid_;
  std::vector<QWidget*> cards_;
  int perRow_ = 0;
  Number frames_, graphs_, kernels_, launches_, breaksNumber_, recompilesNumber_, compileTime_, runTime_, cache_;
  StageBar* stageBar_;
  EmptyState* empty_;
  QTabWidget* tabs_;
  DataTable* functions_;
  DataTable* failures_;
  DataTable* hottest_;
  DataTable* operators_;
  DataTable* breaks_;
  DataTable* recompiles_;
  DataTable* stages_;
  DataTable* facts_;
  DataTable* losses_;
  bool announced_ = false;
};

}  // namespace fusebox::views
