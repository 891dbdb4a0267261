#include "app/window/run_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>

namespace fusebox::window {

RunDialog::RunDialog(QWidget* parent)
    : QDialog(parent),
      script_(new QLineEdit),
      arguments_(new QLineEdit),
      directory_(new QLineEdit),
      python_(new QLineEdit),
      engine_(new QComboBox),
      problem_(new QLabel) {
  setObjectName(QStringLiteral("runDialog"));
  setWindowTitle(tr("Run script"));
  setMinimumWidth(fontMetrics().horizontalAdvance(QLatin1Char('x')) * 86);
  const auto field = [](QLineEdit* edit, const QString& name, const QString& hint) {
    edit->setObjectName(QStringLiteral("runDialog.") + name);
    edit->setPlaceholderText(hint);
    edit->setAccessibleName(hint);
  };
  field(script_, QStringLiteral("script"), tr("A Python script"));
  field(arguments_, QStringLiteral("arguments"), tr("Arguments of the script, quoted as in a shell"));
  field(directory_, QStringLiteral("directory"), tr("The script's folder"));
  field(python_, QStringLiteral("python"), tr("The Python that Fusebox was built for"));
  engine_->setObjectName(QStringLiteral("runDialog.engine"));
  engine_->setAccessibleName(tr("Engine"));
  engine_->addItem(tr("Fusebox"), QStringLiteral("fusebox"));
  engine_->addItem(tr("Stock torch.compile, recorded"), QStringLiteral("stock"));
  engine_->addItem(tr("Eager: no compilation"), QStringLiteral("eager"));
  problem_->setObjectName(QStringLiteral("runDialog.problem"));
  problem_->setProperty("role", QStringLiteral("muted"));
  problem_->setWordWrap(true);

  const auto withBrowse = [this](QLineEdit* edit, const QString& name, auto browse) {
    auto* row = new QHBoxLayout;
    row->addWidget(edit, 1);
    auto* button = new QPushButton(tr("Browse…"));
    button->setObjectName(QStringLiteral("runDialog.browse.") + name);
    button->setAutoDefault(false);
    row->addWidget(button);
    connect(button, &QPushButton::clicked, this, [edit, browse] {
      if (const QString path = browse(); !path.isEmpty()) edit->setText(path);
    });
    return row;
  };
  auto* form = new QFormLayout;
  form->addRow(tr("Script"), withBrowse(script_, QStringLiteral("script"), [this] {
                 return QFileDialog::getOpenFileName(this, tr("Choose a script"), script_->text(), tr("Python (*.py);;All files (*)"));
               }));
  form->addRow(tr("Arguments"), arguments_);
  form->addRow(tr("Folder"), withBrowse(directory_, QStringLiteral("directory"), [this] {
                 return QFileDialog::getExistingDirectory(this, tr("Working directory"), directory_->text());
               }));
  form->addRow(tr("Python"), withBrowse(python_, QStringLiteral("python"),
                                        [this] { return QFileDialog::getOpenFileName(this, tr("Choose an interpreter"), python_->text()); }));
  form->addRow(tr("Engine"), engine_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Cancel)->setObjectName(QStringLiteral("runDialog.cancel"));
  run_ = buttons->addButton(tr("Run"), QDialogButtonBox::AcceptRole);
  run_->setObjectName(QStringLiteral("runDialog.run"));
  run_->setProperty("primary", true);
  run_->setDefault(true);
  auto* column = new QVBoxLayout(this);
  column->addLayout(form);
  column->addWidget(problem_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    remember();
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  for (QLineEdit* edit : {script_, directory_, python_}) connect(edit, &QLineEdit::textChanged, this, &RunDialog::check);

  const QSettings settings;
  script_->setText(settings.value(QStringLiteral("run/script")).toString());
  arguments_->setText(settings.value(QStringLiteral("run/arguments")).toString());
  directory_->setText(settings.value(QStringLiteral("run/directory")).toString());
  python_->setText(settings.value(QStringLiteral("run/python")).toString());
  engine_->setCurrentIndex(std::max(0, engine_->findData(settings.value(QStringLiteral("run/engine")))));
  check();
}

void RunDialog::check() {
  const QFileInfo script(script_->text());
  QString problem;
  if (script_->text().isEmpty()) {
    problem = tr("Choose a script to run.");
  } else if (!script.isFile()) {
    problem = tr("%1 does not exist.").arg(script_->text());
  } else if (!directory_->text().isEmpty() && !QFileInfo(directory_->text()).isDir()) {
    problem = tr("The folder %1 does not exist.").arg(directory_->text());
  } else if (!python_->text().isEmpty() && !QFileInfo(python_->text()).isExecutable()) {
    problem = tr("%1 is not a program.").arg(python_->text());
  }
  problem_->setText(problem.isEmpty() ? tr("The session is written beside the script while it runs, and opened at once.") : problem);
  run_->setEnabled(problem.isEmpty());
}

void RunDialog::remember() const {
  QSettings settings;
  settings.setValue(QStringLiteral("run/script"), script_->text());
  settings.setValue(QStringLiteral("run/arguments"), arguments_->text());
  settings.setValue(QStringLiteral("run/directory"), directory_->text());
  settings.setValue(QStringLiteral("run/python"), python_->text());
  settings.setValue(QStringLiteral("run/engine"), engine_->currentData());
}

RunRequest RunDialog::request() const {
  RunRequest request;
  request.script = script_->text();
  request.arguments = QProcess::splitCommand(arguments_->text());
  request.directory = directory_->text();
  request.python = python_->text();
  request.engine = engine_->currentData().toString();
  return request;
}

}  // namespace fusebox::window
