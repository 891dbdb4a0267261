#include "app/window/output_panel.h"

#include <QScrollBar>
#include <QVBoxLayout>

#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

constexpr int kMostLines = 20'000;

}  // namespace

OutputPanel::OutputPanel(QWidget* parent) : QWidget(parent), text_(new QPlainTextEdit), input_(new QLineEdit), terminal_(text_) {
  text_->setObjectName(QStringLiteral("output.text"));
  text_->setAccessibleName(tr("Output of the script"));
  text_->setReadOnly(true);
  text_->setMaximumBlockCount(kMostLines);
  text_->setFont(views::Theme::monospace());
  text_->setPlaceholderText(tr("What a script writes appears here. Start one with Run script…"));
  input_->setObjectName(QStringLiteral("output.input"));
  input_->setPlaceholderText(tr("Standard input of the script; Return sends the line"));
  input_->setAccessibleName(tr("Standard input"));
  input_->hide();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(text_, 1);
  column->addWidget(input_);
  connect(input_, &QLineEdit::returnPressed, this, [this] {
    emit lineTyped(input_->text() + QLatin1Char('\n'));
    input_->clear();
  });
}

void OutputPanel::begin(const QString& commandLine) {
  text_->clear();
  terminal_.toEnd();
  append(QStringLiteral("$ ") + commandLine + QLatin1Char('\n'), false);
  input_->show();
}

void OutputPanel::append(const QString& text, bool isError) {
  QScrollBar* bar = text_->verticalScrollBar();
  const bool atEnd = bar->value() >= bar->maximum() - 2;
  QTextCharFormat format;
  format.setForeground(views::themed(isError ? views::Token::Warning : views::Token::Text));
  terminal_.write(text, format);
  if (atEnd) bar->setValue(bar->maximum());
}

void OutputPanel::end(const QString& words) {
  terminal_.toEnd();
  append(QLatin1Char('\n') + words + QLatin1Char('\n'), false);
  input_->hide();
}

}  // namespace fusebox::window
