// Two sessions beside each other, and the comparison that can be stopped.
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QThreadPool>
#include <QtTest>
#include <semaphore>
#include <thread>

#include "tests/views/model_session.h"
#include "views/compare/compare_task.h"
#include "views/compare/compare_view.h"
#include "views/widgets/theme.h"
#include "tests/patience.h"

using namespace fusebox;
using namespace fusebox::views;

class CompareViewTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;
  QString model_, other_;  ///< of twelve layers, of ten

 private slots:
  void initTestCase() {
    Theme::instance().apply(Theme::Mode::Light);
    model_ = folder_.filePath("model.fusebox");
    other_ = folder_.filePath("other.fusebox");
    QVERIFY(test::writeModelSession(model_.toStdString(), 12).has_value());
    QVERIFY(test::writeModelSession(other_.toStdString(), 10).has_value());
  }

  void comparisonShowsBothSides() {
    CompareView view;
    view.resize(1200, 700);
    view.show();
    QSignalSpy ready(&view, &CompareView::ready), wanted(&view, &CompareView::placeWanted);
    view.compareFiles(model_, other_);
    QVERIFY(ready.wait(kPatienceMs));
    QVERIFY(view.comparison().cause.found);
    QTableView *left = view.table()->table(), *right = view.table()->second();
    const int differences = view.table()->filter()->rowCount();
    QVERIFY(differences > 10);
    // Two lists of the same rows that scroll together and share their selection.
    right->verticalScrollBar()->setValue(right->verticalScrollBar()->maximum());
    QCOMPARE(left->verticalScrollBar()->value(), right->verticalScrollBar()->value());
    QVERIFY(left->verticalScrollBar()->value() > 0);
    left->selectRow(3);
    QVERIFY(right->selectionModel()->isRowSelected(3, {}));
    // Filters by kind and by what it is about.
    auto* same = view.findChild<QCheckBox*>("compare.show.same");
    QTest::mouseClick(same, Qt::LeftButton, {}, QPoint(8, same->height() / 2));
    QVERIFY(view.table()->filter()->rowCount() > differences);
    auto* subject = view.findChild<QComboBox*>("compare.subject");
    subject->setCurrentIndex(subject->findData(static_cast<int>(compare::Subject::Node)));
    // Nodes of two layers that B lacks: opening such a row from B's list leads to A, which has it.
    int row = -1;
    for (int r = 0; r < view.table()->filter()->rowCount() && row < 0; ++r) {
      if (view.table()->filter()->index(r, kCompareChange).data().toString() == QLatin1String("only in A")) row = r;
    }
    QVERIFY(row >= 0);
    right->setCurrentIndex(view.table()->filter()->index(row, kCompareNameB));
    right->setFocus();
    QTest::keyClick(right, Qt::Key_Return);
    QCOMPARE(wanted.size(), 1);
    QCOMPARE(wanted[0][0].toBool(), true);
    QCOMPARE(wanted[0][1].value<Location>().kind, ObjectKind::Node);
    view.compareFiles(model_, "/nonexistent.fusebox");
    QVERIFY(ready.wait(kPatienceMs));
    QVERIFY(view.findChild<EmptyState*>()->isEmpty());
  }

  /// The calculation is stopped in its middle, where cancelling must end it before it takes another step.
  void aCancelledComparisonEnds() {
    CompareTask task;
    std::binary_semaphore isComparing(0), goOn(0);
    int steps = 0;
    task.report = [&](CompareTask::Stage stage, double) {
      if (stage != CompareTask::Stage::Compare || ++steps != 2) return;
      isComparing.release();
      goOn.acquire();
    };
    bool ended = false;
    std::thread work([&] {
      ended = !task.run(model_.toStdString(), other_.toStdString());
      isComparing.release();  // also where it never came to comparing
    });
    isComparing.acquire();
    task.cancel();
    goOn.release();
    work.join();
    QVERIFY(ended);
    QCOMPARE(steps, 2);
  }

  void aComparisonShowsHowFarItIsAndCanBeCancelled() {
    CompareView view;
    view.resize(900, 600);
    view.show();
    auto* progress = view.findChild<QProgressBar*>("compare.progress");
    auto* cancel = view.findChild<QPushButton*>("compare.cancel");
    auto* stage = view.findChild<QLabel*>("compare.stage");
    QVERIFY(!progress->isVisible());
    QSignalSpy ready(&view, &CompareView::ready), cancelled(&view, &CompareView::cancelled);
    // What is told arrives in order, however fast the work is, so that a result cannot overtake it.
    int seen = 0;
    connect(progress, &QProgressBar::valueChanged, &view, [&] {
      if (stage->text() != QStringLiteral("Comparing") || ++seen > 1) return;
      QTest::mouseClick(cancel, Qt::LeftButton);
    });
    view.compareFiles(model_, other_);
    QVERIFY(progress->isVisible() && cancel->isVisible());
    QTRY_COMPARE(cancelled.size(), 1);
    QVERIFY(!progress->isVisible());
    QVERIFY2(QThreadPool::globalInstance()->waitForDone(kPatienceMs), "the work goes on");
    QCoreApplication::processEvents();
    QVERIFY(ready.isEmpty() && view.comparison().entries.empty());
    view.compareFiles(model_, other_);
    QVERIFY(ready.wait(kPatienceMs));
    QVERIFY(seen > 1 && !progress->isVisible() && !view.comparison().entries.empty());
  }
};

QTEST_MAIN(CompareViewTest)
#include "compare_view_test.moc"
