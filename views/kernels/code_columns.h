#pragma once

#include <QPointer>
#include <QProcess>
#include <QTemporaryFile>
#include <QTimer>
#include <QWidget>

#include "views/kernels/code_lines_model.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/empty_state.h"

class QLabel;
class QSplitter;

namespace fusebox::views {

/// A kernel's loop IR, its PTX (or assembly) and the machine code that a GPU runs, side by side: a line that is chosen
/// shows those that belong to it. The last is made by nvdisasm in a
/// process of its own, which gets 20 seconds, when somebody looks.
class CodeColumns : public QWidget {
  Q_OBJECT
 public:
  explicit CodeColumns(QWidget* parent = nullptr);
  ~CodeColumns() override { stop(); }

  void setCode(const std::string& loopIr, const std::string& assembly, const QString& assemblyTitle);
  /// The first column: our loop IR, or the source that another compiler generated.
  void nameSource(const QString& title, Language language);
  /// Only GPUs have machine code that is told apart from assembly.
  void showBinary(bool isShown);
  /// `cubin` may be empty; `reason` then says why.
  void setBinary(std::string cubin, const QString& reason);
  /// Shows lines of the loop IR and the assembly that carries them out.
  void link(const std::vector<int>& loopLines);

 signals:
  /// Somebody chose it, or a line of the assembly that carries it out.
  void loopLineChosen(int line);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Column {
    QLabel* title;
    CodePane* pane;
    EmptyState* page;
  };
  Column add(QSplitter* split, const QString& name, const QString& title, Language language);
  void fill(Column& column, const QString& code, const QString& headline, const QString& reason);
  void disassemble();
  void disassembled(const QString& trouble);
  void stop();

  Column loopIr_, assembly_, sass_;
  std::string cubin_;
  std::string pendingLoopIr_, pendingAssembly_;
  CodeLines lines_;
  bool pendingCode_ = false, pendingBinary_ = false;
  QPointer<QProcess> process_;
  QTemporaryFile file_;
  QTimer limit_;
};

}  // namespace fusebox::views
