#include "app/window/tensor_pane.h"

#include <QHelpEvent>
#include <QPainter>
#include <QPushButton>
#include <QSplitter>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>

#include "app/debug/debug_text.h"
#include "engine/support/condition.h"
#include "views/widgets/text.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

using debugging::numberField;
using debugging::textField;
using views::str;
using views::textCell;
using views::themed;
using views::Token;

constexpr int kMargin = 6;

QString numberText(double value) { return QLocale::c().toString(value, 'g', 5); }

int64_t strange(const nlohmann::json& facts) {
  return numberField(facts, "nan") + numberField(facts, "positive_infinity") + numberField(facts, "negative_infinity");
}

}  // namespace

HistogramPlot::HistogramPlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("debug.tensor.histogram"));
  setAccessibleName(tr("How many elements have which value"));
  setMinimumHeight(fontMetrics().height() * 4);
}

QSize HistogramPlot::sizeHint() const { return {320, fontMetrics().height() * 9}; }

void HistogramPlot::setBins(double from, double to, std::vector<int64_t> counts) {
  from_ = from;
  to_ = to;
  counts_ = std::move(counts);
  update();
}

QRect HistogramPlot::bars() const { return rect().adjusted(kMargin, fontMetrics().height() + kMargin, -kMargin, -fontMetrics().height() - kMargin); }

void HistogramPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), themed(Token::Panel));
  if (counts_.empty()) return;
  const int64_t most = std::max<int64_t>(1, *std::max_element(counts_.begin(), counts_.end()));
  const QRect area = bars();
  const double width = static_cast<double>(area.width()) / static_cast<double>(counts_.size());
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    // What is there is seen, however little.
    const double height = std::max(1.0, static_cast<double>(counts_[i]) / static_cast<double>(most) * area.height());
    painter.fillRect(QRectF(area.left() + width * static_cast<double>(i), area.bottom() + 1 - height, std::max(1.0, width - 1), height), themed(Token::Accent));
  }
  painter.setPen(themed(Token::BorderStrong));
  painter.drawLine(area.bottomLeft() + QPoint(0, 1), area.bottomRight() + QPoint(0, 1));
  painter.setPen(themed(Token::TextMuted));
  const QRect below(kMargin, area.bottom() + 3, area.width(), fontMetrics().height());
  painter.drawText(below, Qt::AlignLeft, numberText(from_));
  painter.drawText(below, Qt::AlignRight, numberText(to_));
  painter.drawText(QRect(kMargin, 2, area.width(), fontMetrics().height()), Qt::AlignLeft, tr("highest bar: %Ln element(s)", nullptr, static_cast<int>(std::min<int64_t>(most, INT_MAX))));
}

bool HistogramPlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && !counts_.empty()) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRect area = bars();
    const auto count = static_cast<int>(counts_.size());
    const int bin = std::clamp((help->pos().x() - area.left()) * count / std::max(1, area.width()), 0, count - 1);
    const double width = (to_ - from_) / count;
    QToolTip::showText(help->globalPos(), tr("%1 … %2: %3").arg(numberText(from_ + width * bin), numberText(from_ + width * (bin + 1))).arg(counts_[static_cast<size_t>(bin)]), this);
    return true;
  }
  return QWidget::event(event);
}

TensorPane::TensorPane(DebugController* controller, QWidget* parent)
    : QWidget(parent), controller_(controller), name_(new QLineEdit), problem_(new QLabel), histogram_(new HistogramPlot), first_(new QPlainTextEdit) {
  setObjectName(QStringLiteral("debug.tensor"));
  name_->setObjectName(QStringLiteral("debug.tensor.name"));
  name_->setAccessibleName(tr("Tensor to show"));
  name_->setPlaceholderText(tr("x · self.layers.0.weight · a buffer of the launch"));
  problem_->setObjectName(QStringLiteral("debug.tensor.problem"));
  problem_->setTextFormat(Qt::PlainText);
  problem_->setMinimumWidth(1);  // one line: of words that wrap Qt asks the height of all around them, and the panel would grow
  problem_->hide();
  auto* show = new QPushButton(tr("Show"));
  show->setObjectName(QStringLiteral("debug.tensor.show"));
  auto* search = new QPushButton(tr("Search all for NaN"));
  search->setObjectName(QStringLiteral("debug.tensor.search"));
  search->setToolTip(tr("Read every tensor of the list, and bring up those that hold NaN or infinity"));
  tensors_ = new views::DataTable(QStringLiteral("debug.tensors"), tr("Filter tensors"),
                                  {{tr("Tensor")}, {tr("Type and sizes")}, {tr("NaN"), tr("Elements that are not a number"), true}, {tr("Infinite"), {}, true},
                                   {tr("Least"), tr("Of finite elements"), true}, {tr("Most"), tr("Of finite elements"), true}, {tr("Mean"), tr("Of finite elements"), true}});
  tensors_->setEmptyText(tr("No tensor lies in memory here"), tr("Stop before a compile or recompile, at a guard that fails, or before a kernel is launched. While capturing, tensors are stand-ins without data."));
  tensors_->model()->setMonospaceColumns({0, 1});
  facts_ = new views::DataTable(QStringLiteral("debug.tensor.facts"), tr("Filter facts"), {{tr("Fact")}, {tr("Value")}});
  facts_->setEmptyText(tr("No tensor is chosen"), tr("Choose one in the list, or type its name."));
  facts_->model()->setMonospaceColumns({1});
  first_->setObjectName(QStringLiteral("debug.tensor.first"));
  first_->setAccessibleName(tr("First elements"));
  first_->setReadOnly(true);
  first_->setFont(views::Theme::monospace());
  first_->setPlaceholderText(tr("First elements"));

  auto* bar = new QWidget;
  bar->setObjectName(QStringLiteral("viewToolbar"));
  bar->setAttribute(Qt::WA_StyledBackground);
  auto* line = new QHBoxLayout(bar);
  line->setContentsMargins(6, 4, 6, 4);
  line->addWidget(name_, 1);
  line->addWidget(show);
  line->addWidget(search);
  auto* distribution = new QSplitter(Qt::Vertical);
  distribution->addWidget(histogram_);
  distribution->addWidget(first_);
  distribution->setChildrenCollapsible(false);
  auto* parts = new QSplitter;
  parts->addWidget(tensors_);
  parts->addWidget(facts_);
  parts->addWidget(distribution);
  parts->setSizes({420, 320, 260});
  parts->setChildrenCollapsible(false);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(bar);
  column->addWidget(problem_);
  column->addWidget(parts, 1);
  // None of the parts decides how high the panel is.
  setMinimumHeight(fontMetrics().height() * 6);
  connect(name_, &QLineEdit::returnPressed, this, [this] {
    shown_ = name_->text().trimmed();
    shown_.isEmpty() ? refresh() : showTensor(shown_);
  });
  connect(show, &QPushButton::clicked, this, [this] { showTensor(name_->text().trimmed()); });
  connect(search, &QPushButton::clicked, this, &TensorPane::searchAll);
  connect(tensors_, &views::DataTable::rowSelected, this, [this](const views::TableRow& row) { showTensor(str(row.cells[0].text)); });
}

void TensorPane::refresh() {
  const int64_t stop = numberField(controller_->stop(), "stop");
  const QString again = shown_;
  stop_ = stop;
  const auto questions = controller_->stop().value("questions", Json::array());
  const bool isLaunch = std::find(questions.begin(), questions.end(), "arguments") != questions.end();
  controller_->ask(isLaunch ? QStringLiteral("arguments") : QStringLiteral("locals"), this, [this, stop, again](bool ok, const Json& rows) {
    if (stop != stop_) return;
    list(ok ? rows : Json::array());
    if (!again.isEmpty()) showTensor(again);  // the same, as it is now
  });
}

void TensorPane::list(const Json& rows) {
  static const std::set<std::string> kPlain = {"", "NoneType", "bool", "int", "float", "complex", "str", "bytes", "function", "builtin_function_or_method", "type", "module"};
  listed_.clear();
  for (const bool isTensor : {true, false}) {
    if (!rows.is_array()) break;
    for (const Json& row : rows) {
      if (row.contains("sizes") != isTensor || textField(row, "role") == "output" || (!isTensor && kPlain.contains(textField(row, "type")))) continue;
      listed_.push_back({textField(row, "name"), isTensor ? dtypeInPython(textField(row, "dtype")) + row["sizes"].dump() : textField(row, "value"), isTensor, {}, {}});
    }
  }
  fillList();
}

void TensorPane::openObject(const QString& name, const std::string& why) {
  controller_->ask(QStringLiteral("content:") + name, this, [this, name, why, stop = stop_](bool ok, const Json& rows) {
    if (stop != stop_ || name != shown_) return;
    const bool opens = ok && rows.is_array() && !rows.empty();
    if (opens) list(rows);
    problem_->setText(opens ? tr("%1 is made of these; without a name the list is that of the locals again.").arg(name) : tr("%1 cannot be shown: %2").arg(name, str(why)));
    problem_->setToolTip(problem_->text());
    problem_->setVisible(true);
    facts_->setRows({});
    histogram_->setBins(0, 0, {});
    first_->clear();
  });
}

void TensorPane::showTensor(const QString& name) {
  if (name.isEmpty()) return;
  shown_ = name;
  if (name_->text() != name) name_->setText(name);
  controller_->ask(QStringLiteral("tensor:") + name, this, [this, name, stop = stop_](bool ok, const Json& result) {
    if (stop == stop_) take(name, ok, result);
  });
}

void TensorPane::searchAll() {
  for (const Listed& one : listed_) {
    if (!one.isTensor) continue;
    controller_->ask(QStringLiteral("tensor:") + str(one.name), this, [this, name = str(one.name), stop = stop_](bool ok, const Json& result) {
      if (stop == stop_) take(name, ok, result);
    });
  }
}

void TensorPane::take(const QString& name, bool ok, const Json& result) {
  const std::string why = ok ? std::string() : result.is_string() ? result.get<std::string>() : result.dump();
  for (Listed& one : listed_) {
    if (str(one.name) != name) continue;
    one.facts = ok ? result : Json();
    one.trouble = why;
    fillList();
  }
  if (name != shown_) return;
  if (!ok && why.find("it is no tensor") != std::string::npos) return openObject(name, why);
  problem_->setText(tr("%1 cannot be shown: %2").arg(name, str(why)));
  problem_->setToolTip(problem_->text());
  problem_->setVisible(!ok);
  views::TableRows rows;
  std::vector<int64_t> counts;
  QStringList first;
  if (ok) {
    for (auto& [fact, value] : debugging::tensorLines(result)) {
      views::TableRow row;
      row.tone = (fact == "NaN" || fact == "infinite") && !value.starts_with("0") ? 3 : 0;
      row.cells = {textCell(fact), textCell(value)};
      rows.push_back(std::move(row));
    }
    const Json histogram = result.value("histogram", Json::object());
    for (const Json& count : histogram.value("counts", Json::array())) counts.push_back(count.is_number_integer() ? count.get<int64_t>() : 0);
    const auto edge = [&](const char* key) { return histogram.contains(key) && histogram[key].is_number() ? histogram[key].get<double>() : 0.0; };
    histogram_->setBins(edge("from"), edge("to"), std::move(counts));
    for (const Json& value : result.value("first", Json::array())) first << (value.is_string() ? str(value.get<std::string>()) : QString());
  } else {
    histogram_->setBins(0, 0, {});
  }
  facts_->setRows(std::move(rows));
  first_->setPlainText(first.join(QStringLiteral("  ")));
}

void TensorPane::fillList() {
  views::TableRows rows;
  for (const bool isStrange : {true, false}) {
    for (const Listed& one : listed_) {
      const bool isRead = one.facts.is_object();
      if ((isRead && strange(one.facts) > 0) != isStrange) continue;
      views::TableRow row;
      row.location.id = static_cast<int64_t>(&one - listed_.data()) + 1;
      row.cells = {textCell(one.name), textCell(one.type)};
      if (isRead) {
        const auto number = [&](const char* key) { return views::Cell{textField(one.facts, key), std::strtod(textField(one.facts, key).c_str(), nullptr)}; };
        const double mean = one.facts.value("mean", 0.0);
        row.cells.push_back(views::countCell(numberField(one.facts, "nan")));
        row.cells.push_back(views::countCell(strange(one.facts) - numberField(one.facts, "nan")));
        if (one.facts.contains("least")) row.cells.insert(row.cells.end(), {number("least"), number("most"), {numberText(mean).toStdString(), mean}});
      }
      row.tone = isStrange ? 3 : one.trouble.empty() ? 0 : 4;
      row.tooltip = one.trouble;
      rows.push_back(std::move(row));
    }
  }
  tensors_->setRows(std::move(rows));
}

}  // namespace fusebox::window
