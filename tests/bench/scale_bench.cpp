// scale_bench [FOLDER] [LAUNCHES] [NODES] [MEGABYTES]: the window at scale. Opens a session of LAUNCHES (10,000,000)
// launches, one with a graph of NODES (100,000) nodes, and a Chrome trace of MEGABYTES (1000) that nobody has read before,
// whose file is not in the system's memory either. Kept in FOLDER for the next time. Prints one JSON line: time to the first
// picture, the longest the event loop was not served meanwhile, the worst frame while panning and zooming (wall, and the
// window's own processor time: the machine may be shared), the answer to Cancel, and the peak of memory. Exit code 1 if a
// limit of issue 4 is missed: first picture 2 s, frame 50 ms, cancel 200 ms, memory 1 GB.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QStandardPaths>
#include <QTimer>
#include <QToolButton>
#include <QtTest>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "app/window/main_window.h"
#include "tests/bench/heartbeat.h"
#include "tests/profiler/chrome_trace_file.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/graph/graph_view.h"
#include "views/overview/overview_view.h"
#include "views/timeline/timeline_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using bench::Heartbeat;
using bench::ms;

namespace {

constexpr double kMostFirstMs = 2000, kMostFrameMs = 50, kMostMb = 1000, kMostCancelMs = 200;

double threadCpuMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

struct Frames {
  double worst = 0, sum = 0, worstCpu = 0;
  int count = 0, over = 0;
  void add(double wall, double cpu) {
    worst = std::max(worst, wall);
    worstCpu = std::max(worstCpu, cpu);
    sum += wall;
    over += wall > kMostFrameMs;
    ++count;
  }
};

/// One frame: what the event does and the painting that follows, until the widget is up to date.
void frame(QWidget* widget, Frames& frames, const std::function<void()>& event) {
  const double cpu = threadCpuMs();
  QElapsedTimer timer;
  timer.start();
  event();
  widget->repaint();
  frames.add(ms(timer), threadCpuMs() - cpu);
  QCoreApplication::processEvents();
}

void pan(QWidget* canvas, Frames& frames, QPoint from, QPoint by, int steps) {
  QTest::mousePress(canvas, Qt::LeftButton, {}, from);
  for (int i = 1; i <= steps; ++i) {
    frame(canvas, frames, [&] {
      QMouseEvent move(QEvent::MouseMove, QPointF(from + by * i), canvas->mapToGlobal(QPointF(from + by * i)),
                       Qt::NoButton, Qt::LeftButton, {});
      QCoreApplication::sendEvent(canvas, &move);
    });
  }
  QTest::mouseRelease(canvas, Qt::LeftButton, {}, from + by * steps);
}

void zoom(QWidget* canvas, Frames& frames, int steps, int delta) {
  for (int i = 0; i < steps; ++i) {
    frame(canvas, frames, [&] {
      const QPointF middle(canvas->width() * 0.6, canvas->height() * 0.4);
      QWheelEvent wheel(middle, canvas->mapToGlobal(middle), {}, QPoint(0, delta), Qt::NoButton, {}, Qt::NoScrollPhase,
                        false);
      QCoreApplication::sendEvent(canvas, &wheel);
    });
    QTest::qWait(15);  // the answer of the session comes in
  }
}

void exercise(QWidget* canvas, Frames& frames) {
  const QPoint middle(canvas->width() / 2, canvas->height() / 2);
  pan(canvas, frames, middle, QPoint(-9, -5), 25);
  zoom(canvas, frames, 30, 120);
  pan(canvas, frames, middle, QPoint(13, 7), 25);
  zoom(canvas, frames, 40, -120);
  pan(canvas, frames, middle, QPoint(-17, 0), 25);
}

struct Outcome {
  double firstMs = 0, viewMs = 0, stallMs = 0, wholeMs = 0, cancelMs = 0;
  Frames frames;
  bool good() const {
    return firstMs < kMostFirstMs && viewMs < kMostFirstMs && frames.over == 0 && cancelMs < kMostCancelMs;
  }
  QString text() const {
    QString all = QString::asprintf(
        "{\"first_picture_ms\": %.0f, \"view_ms\": %.0f, \"longest_stall_ms\": %.0f, \"frames\": %d, \"mean_frame_ms\": %.1f, "
        "\"worst_frame_ms\": %.1f, \"worst_frame_cpu_ms\": %.1f, \"frames_over_50_ms\": %d",
        firstMs, viewMs, stallMs, frames.count, frames.sum / std::max(1, frames.count), frames.worst, frames.worstCpu, frames.over);
    if (wholeMs > 0) all += QString::asprintf(", \"read_whole_ms\": %.0f, \"cancel_ms\": %.1f", wholeMs, cancelMs);
    return all + QLatin1Char('}');
  }
};

bool waitFor(const std::function<bool()>& done, int limitMs = 240'000) { return QTest::qWaitFor(done, limitMs); }

/// Opens a file: until the overview, which a person sees first, has its numbers on the screen.
bool openFirst(window::MainWindow& window, const QString& path, Outcome& out) {
  auto* overview = qobject_cast<views::OverviewView*>(window.docks()->view("overview"));
  window.goTo(views::Location::ofView("overview"));
  QSignalSpy first(overview, &views::OverviewView::firstPicture);
  QElapsedTimer timer;
  timer.start();
  window.openSession(path);
  if (!waitFor([&] { return !first.isEmpty(); })) return false;
  (void)window.grab();
  out.firstMs = ms(timer);
  return true;
}

/// Brings up a view, until it has something to show.
bool showView(window::MainWindow& window, const char* view, const std::function<bool()>& ready, Outcome& out) {
  QElapsedTimer timer;
  timer.start();
  window.goTo(views::Location::ofView(view));
  if (!waitFor(ready)) return false;
  (void)window.grab();
  out.viewMs = ms(timer);
  QTest::qWait(200);
  return true;
}

bool measureLaunches(window::MainWindow& window, const QString& path, Outcome& out) {
  auto* timeline = qobject_cast<views::TimelineView*>(window.docks()->view("timeline"));
  QSignalSpy bars(timeline, &views::TimelineView::barsShown);
  Heartbeat heart;
  if (!openFirst(window, path, out) || !showView(window, "timeline", [&] { return !bars.isEmpty(); }, out)) return false;
  out.stallMs = heart.worst;
  exercise(timeline->canvas(), out.frames);
  return true;
}

bool measureGraph(window::MainWindow& window, const QString& path, Outcome& out) {
  auto* graph = qobject_cast<views::GraphView*>(window.docks()->view("graph"));
  Heartbeat heart;
  const auto ready = [&] { return !graph->canvas()->painter().empty(); };
  if (!openFirst(window, path, out) || !showView(window, "graph", ready, out)) return false;
  out.stallMs = heart.worst;
  exercise(graph->canvas(), out.frames);
  return true;
}

/// A trace that is read for the first time: shown, panned and zoomed while it grows, read to the end, panned again; then
/// forgotten, opened again and cancelled.
bool measureTrace(window::MainWindow& window, const QString& path, const QString& cache, Outcome& out) {
  auto* timeline = qobject_cast<views::TimelineView*>(window.docks()->view("timeline"));
  const auto forget = [&] {
    window.closeSession();
    QDir(cache).removeRecursively();
    if (const int file = ::open(path.toLocal8Bit().constData(), O_RDONLY); file >= 0) {
      (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
      ::close(file);
    }
  };
  forget();
  QSignalSpy bars(timeline, &views::TimelineView::barsShown);
  Heartbeat heart;
  QElapsedTimer whole;
  whole.start();
  if (!openFirst(window, path, out) || !showView(window, "timeline", [&] { return !bars.isEmpty(); }, out)) return false;
  while (window.session()->isImporting()) {
    exercise(timeline->canvas(), out.frames);
    QTest::qWait(2000);  // nobody pans all the time
  }
  out.wholeMs = ms(whole);
  if (!waitFor([&] { return window.session()->pending() == 0; })) return false;
  exercise(timeline->canvas(), out.frames);
  out.stallMs = heart.worst;

  forget();
  Outcome again;
  if (!openFirst(window, path, again)) return false;
  QTest::qWait(1000);
  QSignalSpy imported(window.session(), &views::SessionLink::imported);
  QElapsedTimer cancel;
  cancel.start();
  QTest::mouseClick(window.findChild<QToolButton*>("status.cancel"), Qt::LeftButton);
  if (!waitFor([&] { return !imported.isEmpty(); })) return false;
  out.cancelMs = ms(cancel);
  return !imported.first().first().toBool();
}

double peakMb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Files {
  QString launches, nodes, trace, cache;
};

int measure(int argc, char** argv, const Files& files) {
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-bench");
  QApplication::setApplicationName("scale");
  views::Theme::instance().apply(views::Theme::Mode::Light);
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.resize(1280, 800);
  window.show();
  Outcome launches, graph, trace;
  if (!measureLaunches(window, files.launches, launches) || !measureGraph(window, files.nodes, graph) ||
      !measureTrace(window, files.trace, files.cache, trace)) {
    std::fprintf(stderr, "the window shows nothing\n");
    return 2;
  }
  window.closeSession();
  const double memory = peakMb();
  std::printf("{\"launches\": %s, \"graph\": %s, \"trace\": %s, \"peak_mb\": %.0f}\n", qPrintable(launches.text()),
              qPrintable(graph.text()), qPrintable(trace.text()), memory);
  return launches.good() && graph.good() && trace.good() && memory < kMostMb ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const QDir folder(argc > 1 ? QString::fromLocal8Bit(argv[1]) : QDir::tempPath());
  const int64_t launches = argc > 2 ? std::atoll(argv[2]) : 10'000'000;
  const int nodes = argc > 3 ? std::atoi(argv[3]) : 100'000;
  const int64_t megabytes = argc > 4 ? std::atoll(argv[4]) : 1000;
  const Files files{folder.filePath(QStringLiteral("scale-%1.fusebox").arg(launches)),
                    folder.filePath(QStringLiteral("scale-graph-%1.fusebox").arg(nodes)),
                    folder.filePath(QStringLiteral("scale-trace-%1.json").arg(megabytes)), folder.filePath("scale-cache")};
  qputenv("XDG_CACHE_HOME", QFileInfo(files.cache).absoluteFilePath().toLocal8Bit());
  constexpr int kNodesOfLayer = 27;
  // In a process of its own: what writing takes is not the window's memory.
  if (const pid_t writer = fork(); writer == 0) {
    const bool done =
        (QFileInfo::exists(files.launches) ||
         test::writeSyntheticSession(files.launches.toStdString(), {.launches = launches})) &&
        (QFileInfo::exists(files.nodes) || test::writeModelSession(files.nodes.toStdString(), nodes / kNodesOfLayer)) &&
        (QFileInfo::exists(files.trace) ||
         test::writeChromeTrace(files.trace.toStdString(), megabytes * 1'000'000).launches > 0);
    _exit(done ? 0 : 1);
  } else {
    int status = 0;
    waitpid(writer, &status, 0);
    if (status != 0) return 2;
  }
  return measure(argc, argv, files);
}
