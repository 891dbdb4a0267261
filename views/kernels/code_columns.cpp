#include "views/kernels/code_columns.h"

#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>

#include "profiler/query/disassembler.h"

namespace fusebox::views {
namespace {

constexpr int kLimitMs = 20'000;
constexpr qint64 kMostText = 32 << 20;

}  // namespace

CodeColumns::CodeColumns(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("kernels.sideBySide"));
  setAccessibleName(tr("Code side by side"));
  auto* split = new QSplitter(Qt::Horizontal);
  loopIr_ = add(split, QStringLiteral("kernels.side.loopIr"), tr("Loop IR"), Language::LoopIr);
  assembly_ = add(split, QStringLiteral("kernels.side.assembly"), tr("Assembly"), Language::Assembly);
  sass_ = add(split, QStringLiteral("kernels.side.sass"), tr("SASS"), Language::Assembly);
  split->setSizes({300, 400, 400});
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(split);
  limit_.setSingleShot(true);
  connect(&limit_, &QTimer::timeout, this, [this] {
    stop();
    disassembled(tr("nvdisasm took more than %1 seconds and was stopped.").arg(kLimitMs / 1000));
  });
  connect(loopIr_.pane, &CodePane::lineSelected, this, [this](int line) {
    link({line});
    emit loopLineChosen(line);
  });
  connect(assembly_.pane, &CodePane::lineSelected, this, [this](int line) {
    const int loop = lines_.loopOf(line);
    if (loop == 0) return;
    link({loop});
    emit loopLineChosen(loop);
  });
  setCode({}, {}, tr("Assembly"));
  setBinary({}, tr("Select a kernel."));
}

CodeColumns::Column CodeColumns::add(QSplitter* split, const QString& name, const QString& title, Language language) {
  Column made;
  made.title = new QLabel(title);
  made.title->setMargin(4);
  made.pane = new CodePane(name, language);
  made.pane->setAccessibleName(title);
  made.page = new EmptyState(made.pane, name);
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(made.title);
  column->addWidget(made.page, 1);
  split->addWidget(box);
  return made;
}

void CodeColumns::fill(Column& column, const QString& code, const QString& headline, const QString& reason) {
  if (code.isEmpty()) return column.page->showReason(headline, reason);
  column.page->showContent();
  column.pane->setCode(code);
}

void CodeColumns::setCode(const std::string& loopIr, const std::string& assembly, const QString& assemblyTitle) {
  assembly_.title->setText(assemblyTitle);
  lines_ = CodeLines(loopIr, assembly);
  pendingLoopIr_ = loopIr;
  pendingAssembly_ = assembly;
  pendingCode_ = true;
  if (isVisible()) showEvent(nullptr);
}

void CodeColumns::link(const std::vector<int>& loopLines) {
  if (pendingCode_) return;  // nobody looks
  loopIr_.pane->setLinked(loopLines);
  assembly_.pane->setLinked(lines_.assemblyOf(loopLines));
}

void CodeColumns::nameSource(const QString& title, Language language) {
  loopIr_.title->setText(title);
  loopIr_.pane->setAccessibleName(title);
  loopIr_.pane->setLanguage(language);
}

void CodeColumns::showBinary(bool isShown) { sass_.page->parentWidget()->setVisible(isShown); }

void CodeColumns::setBinary(std::string cubin, const QString& reason) {
  stop();
  cubin_ = std::move(cubin);
  sass_.page->showReason(tr("No machine code"), reason);
  pendingBinary_ = !cubin_.empty();
  if (isVisible()) showEvent(nullptr);
}

void CodeColumns::showEvent(QShowEvent*) {
  if (std::exchange(pendingCode_, false)) {
    fill(loopIr_, QString::fromStdString(pendingLoopIr_), tr("No loop IR"), tr("The recording holds none for this kernel."));
    fill(assembly_, QString::fromStdString(pendingAssembly_), tr("No assembly"), tr("The recording holds none for this kernel."));
  }
  if (std::exchange(pendingBinary_, false)) disassemble();
}

void CodeColumns::stop() {
  limit_.stop();
  if (!process_) return;
  process_->disconnect(this);
  process_->kill();
  process_->waitForFinished(200);
  process_->deleteLater();
  process_.clear();
}

void CodeColumns::disassemble() {
  const std::string program = query::findDisassembler();
  if (program.empty()) {
    return disassembled(tr("nvdisasm is not found: it comes with the CUDA toolkit and with the packages nvidia-cuda-nvdisasm and triton. Put it on PATH, or name it in "
                           "FUSEBOX_NVDISASM."));
  }
  if (!file_.open() || !file_.resize(0) || file_.write(cubin_.data(), static_cast<qint64>(cubin_.size())) < 0 || !file_.flush()) {
    return disassembled(tr("A temporary file cannot be written: %1").arg(file_.errorString()));
  }
  const auto command = query::disassemblyCommand(program, file_.fileName().toStdString());
  QStringList arguments;
  for (size_t i = 1; i < command.size(); ++i) arguments << QString::fromStdString(command[i]);
  process_ = new QProcess(this);
  connect(process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    disassembled(status == QProcess::NormalExit && code == 0 ? QString() : tr("nvdisasm failed: %1").arg(QString::fromUtf8(process_->readAllStandardError()).left(400)));
  });
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) disassembled(tr("nvdisasm cannot be started: %1").arg(process_->errorString()));
  });
  sass_.page->showReason(tr("Disassembling…"), {});
  limit_.start(kLimitMs);
  process_->start(QString::fromStdString(program), arguments, QIODevice::ReadOnly);
}

void CodeColumns::disassembled(const QString& trouble) {
  const QString text = process_ && trouble.isEmpty() ? QString::fromUtf8(process_->read(kMostText)) : QString();
  stop();
  file_.close();
  fill(sass_, text, tr("No machine code"), trouble.isEmpty() ? tr("nvdisasm printed nothing.") : trouble);
}

}  // namespace fusebox::views
