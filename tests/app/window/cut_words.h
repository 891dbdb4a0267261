#pragma once

#include <QAbstractButton>
#include <QComboBox>
#include <QLabel>
#include <QToolButton>
#include <QtTest>

#include "app/window/main_window.h"

namespace fusebox::test {

/// Words of labels, buttons and boxes of a view that have not the room that they need, where no tooltip has them whole.
inline QStringList cutWords(const views::View& view) {
  QStringList cut;
  for (const QLabel* label : view.findChildren<QLabel*>()) {
    if (!label->isVisible() || label->wordWrap() || label->text().isEmpty() || !label->toolTip().isEmpty() || label->textFormat() == Qt::RichText) continue;
    if (label->contentsRect().width() + 1 < label->fontMetrics().size(0, label->text()).width()) cut << view.id() + ": " + label->text();
  }
  for (const QAbstractButton* button : view.findChildren<QAbstractButton*>()) {
    const auto* tool = qobject_cast<const QToolButton*>(button);
    if (tool && tool->toolButtonStyle() == Qt::ToolButtonIconOnly && !tool->icon().isNull()) continue;
    if (button->isVisible() && !button->text().isEmpty() && button->width() < button->fontMetrics().horizontalAdvance(button->text())) cut << view.id() + ": " + button->text();
  }
  for (const QComboBox* box : view.findChildren<QComboBox*>()) {
    if (box->isVisible() && box->toolTip().isEmpty() && box->width() < box->fontMetrics().horizontalAdvance(box->currentText()) + 8) cut << view.id() + ": " + box->currentText();
  }
  return cut;
}

/// The same of all views of a window with an open session, each as large as the window.
inline QStringList cutWordsOf(window::MainWindow& window, QSize size) {
  window.registry()->find(QStringLiteral("layout.tabs"))->trigger();
  window.resize(size);
  QStringList cut;
  for (views::View* view : window.docks()->views()) {
    window.goTo(views::Location::ofView(view->id().toStdString()));
    if (!QTest::qWaitFor([&] { return window.session()->pending() == 0; }, 30'000)) cut << view->id() + " is never ready";
    QTest::qWait(100);
    if (window.size() != size) cut << view->id() + " is too large for the window";
    cut << cutWords(*view);
  }
  return cut;
}

/// A row for each size and theme.
inline void windowSizes() {
  QTest::addColumn<QSize>("size");
  QTest::addColumn<bool>("isDark");
  for (const bool isDark : {false, true})
    for (const QSize size : {QSize(900, 560), QSize(1280, 800), QSize(3840, 2160)}) QTest::addRow("%d x %d, %s", size.width(), size.height(), isDark ? "dark" : "light") << size << isDark;
}

}  // namespace fusebox::test
