// window_open_bench [FILE] [LAUNCHES]: how long the window takes to show the first numbers of a session, and the timeline.
// Then the list of kernels, a click on one of them, and why it is slow. Without FILE, or if it does not exist, a session of LAUNCHES (1,000,000) launches is written first. Prints one JSON line.
#include <sys/resource.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QStandardPaths>
#include <QTableView>
#include <QTemporaryDir>
#include <QTextBrowser>
#include <QtTest>
#include <algorithm>
#include <cstdio>
#include <vector>

#include "app/window/main_window.h"
#include "tests/profiler/synthetic_session.h"
#include "views/overview/overview_view.h"
#include "views/timeline/timeline_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;

int main(int argc, char** argv) {
  QElapsedTimer sinceStart;
  sinceStart.start();
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-bench");
  QApplication::setApplicationName("window");
  const int64_t launches = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  QTemporaryDir folder;
  const QString path = argc > 1 ? QString::fromLocal8Bit(argv[1]) : folder.filePath("million.fusebox");
  qint64 writing = 0;
  if (!QFileInfo::exists(path)) {
    QElapsedTimer timer;
    timer.start();
    const auto facts = test::writeSyntheticSession(path.toStdString(), {.launches = launches});
    if (!facts) {
      std::fprintf(stderr, "%s\n", facts.error().text().c_str());
      return 1;
    }
    writing = timer.elapsed();
  }
  views::Theme::instance().apply(views::Theme::Mode::Light);
  QElapsedTimer timer;
  timer.start();
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.resize(1280, 800);
  window.show();
  auto* overview = qobject_cast<views::OverviewView*>(window.docks()->view("overview"));
  auto* timeline = qobject_cast<views::TimelineView*>(window.docks()->view("timeline"));
  QSignalSpy first(overview, &views::OverviewView::firstPicture), bars(timeline, &views::TimelineView::barsShown);
  const qint64 shown = timer.elapsed();
  window.openSession(path);
  if (!first.wait(60000)) return 1;
  (void)window.grab();  // the picture is really painted
  const qint64 overviewMs = timer.elapsed();
  QElapsedTimer step;
  step.start();
  window.goTo(views::Location::ofView("timeline"));
  if (bars.isEmpty() && !bars.wait(60000)) return 1;
  (void)timeline->canvas()->grab();
  const qint64 timelineMs = step.elapsed();
  // Zooming in from everything to a few launches and panning: the time to fresh bars, and to paint.
  std::vector<double> answers, paints;
  auto* canvas = timeline->canvas();
  for (int i = 0; i < 60; ++i) {
    bars.clear();
    QElapsedTimer one;
    one.start();
    if (i < 40) {
      canvas->zoomBy(1.3);
    } else {
      QTest::keyClick(canvas, Qt::Key_D);
    }
    if (bars.isEmpty() && !bars.wait(5000)) return 1;
    answers.push_back(static_cast<double>(one.nsecsElapsed()) / 1e6);
    one.start();
    (void)canvas->grab();
    paints.push_back(static_cast<double>(one.nsecsElapsed()) / 1e6);
  }
  // The list of kernels, and what a click on one of them tells; then why it is slow.
  auto* kernels = window.docks()->view("kernels");
  auto* list = kernels->findChild<QTableView*>("kernels.table");
  auto* details = kernels->findChild<QTextBrowser*>("kernels.details");
  step.start();
  window.goTo(views::Location::ofView("kernels"));
  if (!QTest::qWaitFor([&] { return list->model()->rowCount() > 1 && details->toPlainText().size() > 100; }, 120000)) return 1;
  (void)window.grab();
  const qint64 kernelsMs = step.elapsed();
  const QString before = details->toPlainText();
  step.start();
  list->setCurrentIndex(list->model()->index(1, 0));
  if (!QTest::qWaitFor([&] { return details->toPlainText() != before && details->toPlainText().size() > 100; }, 120000)) return 1;
  (void)window.grab();
  const double clickMs = static_cast<double>(step.nsecsElapsed()) / 1e6;
  QTest::qWait(200);
  step.start();
  window.goTo(views::Location::ofView("slowness"));
  QTest::qWaitFor([&] { return window.session()->pending() == 0; }, 240000);
  (void)window.grab();
  const qint64 whyMs = step.elapsed();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::sort(answers.begin(), answers.end());
  std::sort(paints.begin(), paints.end());
  std::printf("{\"launches\": %lld, \"write_ms\": %lld, \"window_ms\": %lld, \"first_picture_ms\": %lld, \"timeline_ms\": %lld, "
              "\"bars_median_ms\": %.1f, \"bars_worst_ms\": %.1f, \"paint_median_ms\": %.1f, \"paint_worst_ms\": %.1f, "
              "\"kernels_listed\": %d, \"kernels_ms\": %lld, \"kernel_click_ms\": %.1f, \"why_ms\": %lld, \"peak_mb\": %ld}\n",
              static_cast<long long>(launches), static_cast<long long>(writing), static_cast<long long>(shown),
              static_cast<long long>(overviewMs), static_cast<long long>(timelineMs), answers[answers.size() / 2], answers.back(),
              paints[paints.size() / 2], paints.back(), list->model()->rowCount(), static_cast<long long>(kernelsMs), clickMs, static_cast<long long>(whyMs),
              used.ru_maxrss / 1024);
  return overviewMs < 1000 ? 0 : 1;
}
