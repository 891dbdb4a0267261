#include "app/window/window.h"

#include <QApplication>
#include <QLabel>

namespace fusebox::window {

int runWindow(int argc, char** argv, const WindowRequest& request) {
  QApplication application(argc, argv);
  QLabel label(QString::fromStdString(request.file));
  label.show();
  return QApplication::exec();
}

}  // namespace fusebox::window
