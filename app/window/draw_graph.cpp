#include "app/window/draw_graph.h"

#include <QApplication>
#include <algorithm>

#include "views/graph/graph_painter.h"
#include "views/widgets/picture_export.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

/// Qt without a display wants a folder of the user's desktop all the same, and says so where there is none (in a container, under cron).
class QuietAboutTheDesktop {
 public:
  QuietAboutTheDesktop() { before_ = qInstallMessageHandler(hear); }
  ~QuietAboutTheDesktop() { qInstallMessageHandler(before_); }
  QuietAboutTheDesktop(const QuietAboutTheDesktop&) = delete;
  QuietAboutTheDesktop& operator=(const QuietAboutTheDesktop&) = delete;

 private:
  static void hear(QtMsgType type, const QMessageLogContext& context, const QString& text) {
    if (!text.startsWith(QStringLiteral("QStandardPaths: XDG_RUNTIME_DIR")) && before_) before_(type, context, text);
  }
  static inline QtMessageHandler before_ = nullptr;
};

}  // namespace

Result<double> drawGraph(const query::GraphData& graph, const std::string& path) {
  using namespace views;
  qputenv("QT_QPA_PLATFORM", "offscreen");
  int argc = 1;
  char name[] = "fusebox";
  char* argv[] = {name, nullptr};
  const QuietAboutTheDesktop quiet;
  const auto application = QApplication::instance() ? nullptr : std::make_unique<QApplication>(argc, argv);
  Theme::instance().apply(Theme::Mode::Light);
  const auto picture = makePicture(graph, defaultOptions(graph));
  const std::vector<char> open(picture->tree.groups.size(), 1);
  auto scene = std::make_shared<CompoundScene>(layoutCompound(picture->tree, open, picture->layout));
  GraphPainter painter;
  painter.colouring = picture->folding == GraphFolding::Fusion ? GraphColouring::Fusion : GraphColouring::Operator;
  painter.setScene(picture, std::move(scene));
  if (painter.empty()) return fail(ErrorCode::InvalidArgument, "the graph has no nodes to draw");
  const QRectF bounds = painter.bounds().adjusted(-24, -24, 24, 24);
  const QString problem =
      writePicture({bounds, [&](QPainter& p) { painter.paint(p, bounds, 1); }}, QString::fromStdString(path));
  if (!problem.isEmpty()) return fail(ErrorCode::Io, problem.toStdString(), path);
  return path.ends_with(".png") ? std::min(1.0, imageScale(bounds)) : 1.0;
}

}  // namespace fusebox::window
