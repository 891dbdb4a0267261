#pragma once

#include <QLabel>
#include <QTabWidget>

#include "views/artifacts/artifacts_model.h"
#include "views/widgets/code_pane.h"
#include "views/widgets/data_table.h"
#include "views/widgets/find_bar.h"
#include "views/widgets/view.h"

namespace fusebox::views {

/// What an imported file holds, record by record, as it was written; damaged ones are marked.
class ArtifactsView : public View {
  Q_OBJECT
 public:
  explicit ArtifactsView(const ViewContext& context);

  QString id() const override { return QStringLiteral("artifacts"); }
  QString title() const override { return tr("Artifacts"); }
  QString iconName() const override { return QStringLiteral("artifacts"); }
  bool canShow(const Location& location) const override { return location.kind == ObjectKind::Artifact; }
  void showLocation(const Location& location) override;
  void find() override;

 protected:
  void clear() override;
  void load() override;

 private:
  void loadList();
  void openArtifact(int64_t id);
  void showText(const ArtifactText& artifact);
  void saveText();

  DataTable* table_;
  QLabel* head_;
  CodePane* text_;
  CodePane* detail_;
  QTabWidget* tabs_;
  bool wasAtPayload_ = true;  ///< before a record came that has none
  FindBar* findBar_;
  EmptyState* empty_;
  int64_t shown_ = 0;
  ArtifactRequest request_;
  bool isWhole_ = true;
  ArtifactText written_;  ///< what the panes hold
};

}  // namespace fusebox::views
