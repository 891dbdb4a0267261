#include "app/window/end_program_box.h"

#include <QMessageBox>
#include <QPushButton>

#include "app/window/main_window.h"

namespace fusebox::window {

void askBeforeEnding(QWidget* window, std::function<void()> end) {
  if (window->findChild<QMessageBox*>(QStringLiteral("endProgram"))) return;
  auto* box = new QMessageBox(QMessageBox::Question, MainWindow::tr("A program is running"),
                              MainWindow::tr("Closing the window ends the program that was started from it. What was recorded until then stays in its session."),
                              QMessageBox::Cancel, window);
  box->setObjectName(QStringLiteral("endProgram"));
  box->setAttribute(Qt::WA_DeleteOnClose);
  QPushButton* button = box->addButton(MainWindow::tr("&End the program and close"), QMessageBox::DestructiveRole);
  button->setObjectName(QStringLiteral("endProgram.end"));
  box->setDefaultButton(QMessageBox::Cancel);
  QObject::connect(button, &QPushButton::clicked, window, std::move(end));
  box->open();
}

}  // namespace fusebox::window
