#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QWidget>

#include "views/compare/compare_model.h"
#include "views/compare/compare_task.h"
#include "views/widgets/background_job.h"
#include "views/widgets/data_table.h"
#include "views/widgets/details_panel.h"
#include "views/widgets/empty_state.h"

namespace fusebox::views {

/// Two sessions side by side: what explains their difference, and below it both as lists that scroll together. Reads the files on a
/// thread of its own; knows no window.
class CompareView : public QWidget {
  Q_OBJECT
 public:
  explicit CompareView(QWidget* parent = nullptr);
  ~CompareView() override;

  /// Reads and compares two files (anything that opens); replaces what was shown.
  void compareFiles(const QString& a, const QString& b);
  /// What is under way, with a way to cancel it (then `cancelled`).
  void showBusy(const QString& headline, const QString& details);
  /// A sentence in place of a comparison: why there is none.
  void showNotice(const QString& headline, const QString& details);
  const compare::Comparison& comparison() const { return comparison_; }
  /// Shows the selected line in session A (or B).
  void openCurrent(bool inA);
  void find() { list_->focusFilter(); }
  /// Asks where to and writes the page of `fusebox compare --html`.
  void exportPage();
  void exportCsv() { list_->exportCsv(); }
  DataTable* table() const { return list_; }

 signals:
  /// A comparison is shown (or could not be made: then `comparison` is empty).
  void ready();
  /// Nobody waits for it any more.
  void cancelled();
  /// Somebody wants to see a place in session A or B.
  void placeWanted(bool inA, const fusebox::views::Location& place);

 private:
  QWidget* buildProgress();
  void showProgress(CompareTask::Stage stage, double fraction);
  void stop();
  void buildLists();
  QCheckBox* addKind(QHBoxLayout* bar, const QString& name, const QString& text, const QString& tip, bool on);
  void showResult(Result<compare::Comparison>& result);
  void showCause();
  void fill();
  void openRow(const TableRow& row, bool inA);
  const compare::Entry* entryOf(const TableRow& row) const;

  QString pathA_, pathB_;
  compare::Comparison comparison_;
  BackgroundJob* job_;
  std::shared_ptr<CompareTask> task_;  ///< what the job is doing
  EmptyState* empty_;
  DetailsPanel* cause_;
  QCheckBox *added_, *removed_, *changed_, *same_;
  QComboBox* subject_;
  QLabel *titleA_, *titleB_, *stage_;
  QWidget* busy_;
  QProgressBar* progress_;
  DataTable* list_;
};

}  // namespace fusebox::views
