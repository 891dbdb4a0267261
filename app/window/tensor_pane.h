#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <nlohmann/json.hpp>

#include "app/window/debug_controller.h"
#include "views/widgets/data_table.h"

namespace fusebox::window {

/// How many elements have which value, as bars.
class HistogramPlot : public QWidget {
  Q_OBJECT
 public:
  explicit HistogramPlot(QWidget* parent = nullptr);
  void setBins(double from, double to, std::vector<int64_t> counts);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRect bars() const;

  double from_ = 0, to_ = 0;
  std::vector<int64_t> counts_;
};

/// The tensors of a stop that lie in memory: what each holds, its distribution, its first elements, and where it is not a number.
class TensorPane : public QWidget {
  Q_OBJECT
 public:
  explicit TensorPane(DebugController* controller, QWidget* parent = nullptr);
  /// Asks the stop for its tensors.
  void refresh();
  /// Asks for one: a row of the list, or a path as self.layers.0.weight.
  void showTensor(const QString& name);
  /// Asks for all of the list; those that hold NaN or infinity come first.
  void searchAll();

 private:
  using Json = nlohmann::json;
  void take(const QString& name, bool ok, const Json& result);
  void fillList();
  /// Lists what an object is made of in the place of the locals, or says why it cannot be shown.
  void openObject(const QString& name, const std::string& why);
  void list(const Json& rows);

  DebugController* controller_;
  QLineEdit* name_;
  QLabel* problem_;
  views::DataTable *tensors_, *facts_;
  HistogramPlot* histogram_;
  QPlainTextEdit* first_;
  struct Listed {
    std::string name, type;  ///< of what is no tensor its value in short
    bool isTensor = true;
    Json facts;           ///< null until asked
    std::string trouble;  ///< why it cannot be read
  };
  std::vector<Listed> listed_;
  QString shown_;
  int64_t stop_ = 0;
};

}  // namespace fusebox::window
