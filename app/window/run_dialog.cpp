#include "app/window/run_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "app/window/settings_thread.h"

namespace fusebox::window {
namespace {

/// Words as splitCommand reads them again.
QString joined(const QStringList& words) {
  QStringList quoted;
  for (QString word : words) {
    word.replace(QLatin1Char('"'), QStringLiteral("\"\"\""));
    quoted << (word.isEmpty() || word.contains(QLatin1Char(' ')) || word.contains(QLatin1Char('\t')) ? QLatin1Char('"') + word + QLatin1Char('"') : word);
  }
  return quoted.join(QLatin1Char(' '));
}

}  // namespace

RunDialog::RunDialog(QWidget* parent, Purpose purpose)
    : QDialog(parent),
      purpose_(purpose),
      form_(new QComboBox),
      script_(new QLineEdit),
      arguments_(new QLineEdit),
      variables_(new QLineEdit),
      directory_(new QLineEdit),
      python_(new QLineEdit),
      engine_(new QComboBox),
      operators_(new QCheckBox(tr("Operators outside compiled code"))),
      counters_(new QComboBox),
      problem_(new QLabel) {
  setObjectName(QStringLiteral("runDialog"));
  setWindowTitle(purpose == Purpose::Run     ? tr("Run script")
                 : purpose == Purpose::Debug ? tr("Debug script")
                                             : tr("Run under Fusebox's engine and PyTorch's own"));
  setMinimumWidth(fontMetrics().horizontalAdvance(QLatin1Char('x')) * 86);
  const auto field = [](QLineEdit* edit, const QString& name, const QString& hint) {
    edit->setObjectName(QStringLiteral("runDialog.") + name);
    edit->setPlaceholderText(hint);
    edit->setAccessibleName(hint);
  };
  form_->setObjectName(QStringLiteral("runDialog.form"));
  form_->setAccessibleName(tr("What to run"));
  form_->addItems({tr("Script"), tr("Module (-m)")});
  field(script_, QStringLiteral("script"), tr("A Python script"));
  field(arguments_, QStringLiteral("arguments"), tr("Arguments of the script, quoted as in a shell"));
  field(variables_, QStringLiteral("variables"), tr("Environment variables: NAME=value \"OTHER=a value\""));
  field(directory_, QStringLiteral("directory"), tr("The script's folder"));
  field(python_, QStringLiteral("python"), tr("The Python that Fusebox was built for"));
  engine_->setObjectName(QStringLiteral("runDialog.engine"));
  engine_->setAccessibleName(tr("Engine"));
  engine_->addItem(tr("Fusebox"), QStringLiteral("fusebox"));
  engine_->addItem(tr("Stock torch.compile, recorded"), QStringLiteral("stock"));
  engine_->addItem(tr("Eager: no compilation"), QStringLiteral("eager"));
  operators_->setObjectName(QStringLiteral("runDialog.operators"));
  operators_->setToolTip(tr("The optimizer and what is not compiled, operator by operator with its line; about a microsecond each. Other engines always record them."));
  counters_->setObjectName(QStringLiteral("runDialog.counters"));
  counters_->setAccessibleName(tr("Counters of the GPU"));
  counters_->addItem(tr("No counters of the GPU"));
  counters_->addItem(tr("Counters of the GPU, sampled"), QStringLiteral("--gpu-sampling"));
  counters_->addItem(tr("Counters of the GPU, around every kernel"), QStringLiteral("--gpu-counters"));
  counters_->setToolTip(tr("Sampled while kernels run as they would; around every kernel they run one after another."));
  problem_->setObjectName(QStringLiteral("runDialog.problem"));
  problem_->setProperty("role", QStringLiteral("muted"));
  problem_->setWordWrap(true);

  const auto withBrowse = [this](QLineEdit* edit, const QString& name, auto browse) {
    auto* row = new QHBoxLayout;
    row->addWidget(edit, 1);
    auto* button = new QPushButton(tr("Browse…"));
    button->setObjectName(QStringLiteral("runDialog.browse.") + name);
    button->setAutoDefault(false);
    button->setAccessibleName(tr("Browse for: %1").arg(edit->accessibleName()));
    row->addWidget(button);
    if (edit == script_) browseScript_ = button;
    connect(button, &QPushButton::clicked, this, [edit, browse] {
      if (const QString path = browse(); !path.isEmpty()) edit->setText(path);
    });
    return row;
  };
  auto* form = new QFormLayout;
  form->addRow(form_, withBrowse(script_, QStringLiteral("script"), [this] {
                 return QFileDialog::getOpenFileName(this, tr("Choose a script"), script_->text(), tr("Python (*.py);;All files (*)"));
               }));
  form->addRow(tr("Arguments"), arguments_);
  form->addRow(tr("Environment"), variables_);
  form->addRow(tr("Folder"), withBrowse(directory_, QStringLiteral("directory"), [this] {
                 return QFileDialog::getExistingDirectory(this, tr("Working directory"), directory_->text());
               }));
  form->addRow(tr("Python"), withBrowse(python_, QStringLiteral("python"),
                                        [this] { return QFileDialog::getOpenFileName(this, tr("Choose an interpreter"), python_->text()); }));
  form->addRow(tr("Engine"), engine_);
  auto* more = new QHBoxLayout;
  more->addWidget(operators_);
  more->addWidget(counters_);
  more->addStretch();
  form->addRow(tr("Record too"), more);
  form->setRowVisible(engine_, purpose == Purpose::Run);
  form->setRowVisible(more, purpose == Purpose::Run);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Cancel)->setObjectName(QStringLiteral("runDialog.cancel"));
  buttons->button(QDialogButtonBox::Cancel)->setIcon({});  // the others have none
  run_ = buttons->addButton(purpose == Purpose::Debug ? tr("Debug") : tr("Run"), QDialogButtonBox::AcceptRole);
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
  for (QLineEdit* edit : {script_, directory_, python_, variables_}) connect(edit, &QLineEdit::textChanged, this, &RunDialog::check);
  connect(form_, &QComboBox::currentIndexChanged, this, &RunDialog::check);

  script_->setText(setting(QStringLiteral("run/script")).toString());
  form_->setCurrentIndex(setting(QStringLiteral("run/isModule")).toBool() ? 1 : 0);
  arguments_->setText(setting(QStringLiteral("run/arguments")).toString());
  variables_->setText(setting(QStringLiteral("run/variables")).toString());
  directory_->setText(setting(QStringLiteral("run/directory")).toString());
  python_->setText(setting(QStringLiteral("run/python")).toString());
  engine_->setCurrentIndex(std::max(0, engine_->findData(setting(QStringLiteral("run/engine")))));
  operators_->setChecked(setting(QStringLiteral("run/operators")).toBool());
  counters_->setCurrentIndex(std::max(0, counters_->findData(setting(QStringLiteral("run/counters")))));
  check();
  script_->setFocus();  // what is typed first
}

void RunDialog::check() {
  static const QRegularExpression module(QStringLiteral("^[^\\W\\d]\\w*(\\.[^\\W\\d]\\w*)*$"), QRegularExpression::UseUnicodePropertiesOption);
  const QString hint = isModule() ? tr("A module that Python finds, as package.module") : tr("A Python script");
  script_->setPlaceholderText(hint);
  script_->setAccessibleName(hint);
  browseScript_->setEnabled(!isModule());
  directory_->setPlaceholderText(isModule() ? tr("The folder that the window was started in") : tr("The script's folder"));
  QString problem, wrong;
  if (script_->text().isEmpty()) {
    problem = isModule() ? tr("Name a module to run.") : tr("Choose a script to run.");
  } else if (isModule() && !module.match(script_->text()).hasMatch()) {
    problem = tr("%1 is not the name of a module.").arg(script_->text());
  } else if (!isModule() && !QFileInfo(script_->text()).isFile()) {
    problem = tr("%1 does not exist.").arg(script_->text());
  } else if (!variablesIn(variables_->text(), &wrong)) {
    problem = tr("%1 is not a variable: write NAME=value.").arg(wrong);
  } else if (!directory_->text().isEmpty() && !QFileInfo(directory_->text()).isDir()) {
    problem = tr("The folder %1 does not exist.").arg(directory_->text());
  } else if (!python_->text().isEmpty() && !QFileInfo(python_->text()).isExecutable()) {
    problem = tr("%1 is not a program.").arg(python_->text());
  }
  problem_->setText(problem.isEmpty() ? (isModule() ? tr("The session is written to the folder while the module runs, and opened at once.") : tr("The session is written beside the script while it runs, and opened at once.")) : problem);
  run_->setEnabled(problem.isEmpty());
}

void RunDialog::remember() const {
  QVariantMap values{{QStringLiteral("run/isModule"), isModule()},          {QStringLiteral("run/variables"), variables_->text()},
                     {QStringLiteral("run/script"), script_->text()},       {QStringLiteral("run/arguments"), arguments_->text()},
                     {QStringLiteral("run/directory"), directory_->text()}, {QStringLiteral("run/python"), python_->text()}};
  if (purpose_ == Purpose::Run) {
    values[QStringLiteral("run/engine")] = engine_->currentData();
    values[QStringLiteral("run/operators")] = operators_->isChecked();
    values[QStringLiteral("run/counters")] = counters_->currentData();
  }
  keepSettings(values);
}

RunRequest RunDialog::request() const {
  RunRequest request;
  (isModule() ? request.module : request.script) = script_->text();
  QString wrong;
  request.variables = variablesIn(variables_->text(), &wrong).value_or(QMap<QString, QString>());
  request.arguments = QProcess::splitCommand(arguments_->text());
  request.directory = directory_->text();
  request.python = python_->text();
  if (purpose_ != Purpose::Run) return request;
  request.engine = engine_->currentData().toString();
  if (operators_->isChecked()) request.recording << QStringLiteral("--operators");
  if (const QString counters = counters_->currentData().toString(); !counters.isEmpty()) request.recording << counters;
  return request;
}

void RunDialog::suggest(const RunRequest& request) {
  form_->setCurrentIndex(request.module.isEmpty() ? 0 : 1);
  script_->setText(request.module.isEmpty() ? request.script : request.module);
  arguments_->setText(joined(request.arguments));
  directory_->setText(request.directory);
  python_->setText(request.python);
}

std::optional<QMap<QString, QString>> RunDialog::variablesIn(const QString& text, QString* wrong) {
  static const QRegularExpression variable(QStringLiteral("^([A-Za-z_][A-Za-z0-9_]*)=(.*)$"), QRegularExpression::DotMatchesEverythingOption);
  QMap<QString, QString> variables;
  for (const QString& word : QProcess::splitCommand(text)) {
    const auto match = variable.match(word);
    if (!match.hasMatch()) {
      *wrong = word;
      return std::nullopt;
    }
    variables.insert(match.captured(1), match.captured(2));
  }
  return variables;
}

}  // namespace fusebox::window
