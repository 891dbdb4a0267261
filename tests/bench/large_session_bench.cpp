// large_session_bench FILE [EVENTS] [ROWS]: how the window answers on a session of EVENTS (10,000,000) GPU events and launches, spans 33
// deep and lists of ROWS (1,000,000) rows, which is written to FILE if there is none. Each view in turn: until it is shown, a click in the middle
// of each of its lists, ordering by another column, a filter. Prints a line of JSON for each view, then one for all. Exit code 1 if a limit is
// missed (busy: what of a stall the window's thread itself worked, which others on the machine do not lengthen): first picture 2 s, a click 200 ms, reasons for slowness 2 s, no stall of the event loop over 50 ms, memory 1.5 GB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QHeaderView>
#include <QLineEdit>
#include <QStandardPaths>
#include <QTableView>
#include <QTimer>
#include <QtTest>
#include <algorithm>
#include <cstdio>

#include "app/window/main_window.h"
#include "tests/bench/heartbeat.h"
#include "tests/profiler/large_session.h"
#include "views/overview/overview_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using bench::Heartbeat;
using bench::ms;

namespace {

constexpr double kMostFirstMs = 2000, kMostClickMs = 200, kMostWhyMs = 2000, kMostStallMs = 50, kMostMb = 1500;

struct Bench {
  window::MainWindow& window;
  Heartbeat heart{};
  double worstClick = 0, worstStall = 0, worstBusy = 0;

  /// Until nothing is asked any more and what was answered is painted.
  double settle(const QElapsedTimer& since) {
    QCoreApplication::processEvents();
    if (!QTest::qWaitFor([&] { return window.session()->pending() == 0; }, 600'000)) return 1e9;
    const double answered = ms(since);
    QCoreApplication::processEvents();
    return answered;
  }

  double act(const std::function<void()>& action) {
    QTest::qWait(150);  // what came before is over, its timers too
    if (!QTest::qWaitFor([&] { return window.session()->pending() == 0; }, 600'000)) return 1e9;
    heart.take();
    heart.takeBusy();
    QElapsedTimer timer;
    timer.start();
    action();
    return settle(timer);
  }

  void exercise(QTableView* table, QString& out) {
    const int rows = table->model()->rowCount();
    const auto note = [&](const char* what, double took) {
      const double stall = heart.take(), busy = heart.takeBusy();
      worstStall = std::max(worstStall, stall);
      worstBusy = std::max(worstBusy, busy);
      out += QString::asprintf(", \"%s\": %.0f, \"%s_stall\": %.0f, \"%s_busy\": %.0f", what, took, what, stall, what, busy);
    };
    out += QString::asprintf(", \"%s\": {\"rows\": %d", qPrintable(table->objectName()), rows);
    const double click = act([&] { table->selectRow(rows / 2); });
    worstClick = std::max(worstClick, click);
    note("click", click);
    if (table->isSortingEnabled()) {
      note("order", act([&] { table->sortByColumn(0, Qt::DescendingOrder); }));
    }
    if (auto* filter = window.findChild<QLineEdit*>(table->objectName() + QStringLiteral(".filter")); filter && filter->isVisible()) {
      note("filter", act([&] {
             filter->setText(QStringLiteral("9"));
             QTest::qWait(130);  // the box waits for further letters
           }));
      note("unfilter", act([&] {
             filter->clear();
             QTest::qWait(130);
           }));
    }
    out += QLatin1Char('}');
  }
};

int measure(int argc, char** argv, const QString& path) {
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-bench");
  QApplication::setApplicationName("large");
  views::Theme::instance().apply(views::Theme::Mode::Light);
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.resize(1280, 800);
  window.show();
  QTest::qWait(300);
  Bench bench{window};
  auto* overview = qobject_cast<views::OverviewView*>(window.docks()->view("overview"));
  QSignalSpy first(overview, &views::OverviewView::firstPicture);
  QElapsedTimer timer;
  timer.start();
  window.openSession(path);
  if (!first.wait(600'000)) return 2;
  (void)window.grab();
  const double firstMs = ms(timer);
  bench.settle(timer);
  const double allMs = ms(timer);
  std::printf("{\"first_picture_ms\": %.0f, \"all_read_ms\": %.0f, \"stall_ms\": %.0f}\n", firstMs, allMs, bench.heart.take());
  double whyMs = 0;
  for (views::View* view : window.docks()->views()) {
    const double shown = bench.act([&] { window.goTo(views::Location::ofView(view->id().toStdString())); });
    const double stall = bench.heart.take(), busy = bench.heart.takeBusy();
    bench.worstStall = std::max(bench.worstStall, stall);
    bench.worstBusy = std::max(bench.worstBusy, busy);
    if (view->id() == QLatin1String("slowness")) whyMs = shown;
    QString out = QString::asprintf("{\"view\": \"%s\", \"shown_ms\": %.0f, \"shown_stall\": %.0f, \"shown_busy\": %.0f", qPrintable(view->id()), shown, stall, busy);
    for (auto* table : view->findChildren<QTableView*>()) {
      if (table->isVisible() && table->model()->rowCount() > 0) bench.exercise(table, out);
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::printf("%s, \"peak_mb\": %ld}\n", qPrintable(out), used.ru_maxrss / 1024);
    std::fflush(stdout);
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double memory = static_cast<double>(used.ru_maxrss) / 1024;
  std::printf("{\"first_picture_ms\": %.0f, \"worst_click_ms\": %.0f, \"why_ms\": %.0f, \"worst_stall_ms\": %.0f, \"worst_busy_ms\": %.0f, \"peak_mb\": %.0f}\n", firstMs,
              bench.worstClick, whyMs, bench.worstStall, bench.worstBusy, memory);
  return firstMs <= kMostFirstMs && bench.worstClick <= kMostClickMs && whyMs <= kMostWhyMs && bench.worstStall <= kMostStallMs && memory <= kMostMb ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const QString path = QString::fromLocal8Bit(argv[1]);
  if (!QFileInfo::exists(path)) {
    if (const pid_t writer = fork(); writer == 0) {  // what writing takes is not the window's memory
      test::LargeOptions options;
      if (argc > 2) options.events = std::atoll(argv[2]);
      if (argc > 3) options.rows = std::atoll(argv[3]);
      const auto written = test::writeLargeSession(path.toStdString(), options);
      if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
      _exit(written ? 0 : 1);
    } else {
      int status = 0;
      waitpid(writer, &status, 0);
      if (status != 0) return 2;
    }
  }
  return measure(argc, argv, path);
}
