#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "views/query/query_model.h"
#include "views/widgets/data_table.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// SQL over what a session holds: the views on the left, a SELECT, and its rows, which lead to the things that they name.
class QueryView : public View {
  Q_OBJECT
 public:
  explicit QueryView(const ViewContext& context);

  QString id() const override { return QStringLiteral("query"); }
  QString title() const override { return tr("Query"); }
  QString iconName() const override { return QStringLiteral("query"); }
  bool canShow(const Location&) const override { return false; }
  void showLocation(const Location&) override {}
  void find() override { text_->setFocus(); }
  DataTable* result() const { return result_; }

 protected:
  void clear() override;
  void load() override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void run();
  void showAnswer(QueryAnswer answer);

  DataTable* views_;
  QPlainTextEdit* text_;
  QComboBox* recipes_;
  QLabel* state_;
  QVBoxLayout* answers_;
  DataTable* result_ = nullptr;  ///< each answer has columns, and so a table, of its own
};

}  // namespace fusebox::views
