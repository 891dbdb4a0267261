// scale_bench [FOLDER] [LAUNCHES] [NODES]: the window at scale. Opens a session of LAUNCHES (10,000,000) launches and
// one with a graph of NODES (100,000) nodes, kept in FOLDER for the next time, and prints one JSON line: time to the
// first picture, the longest the event loop was not served meanwhile, the worst frame while panning and zooming, and
// the peak of memory. Exit code 1 if a limit of issue 4 is missed: first picture 2 s, frame 50 ms, memory 1 GB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QStandardPaths>
#include <QTimer>
#include <QtTest>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "app/window/main_window.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/graph/graph_view.h"
#include "views/overview/overview_view.h"
#include "views/timeline/timeline_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;

namespace {

constexpr double kMostFirstMs = 2000, kMostFrameMs = 50, kMostMb = 1000;

double ms(const QElapsedTimer& timer) { return static_cast<double>(timer.nsecsElapsed()) / 1e6; }

/// The longest that a timer which wants to run at once had to wait.
class Heartbeat {
 public:
  Heartbeat() {
    timer_.setInterval(0);
    since_.start();
    QObject::connect(&timer_, &QTimer::timeout, [this] {
      worst = std::max(worst, ms(since_));
      since_.restart();
    });
    timer_.start();
  }
  double worst = 0;

 private:
  QTimer timer_;
  QElapsedTimer since_;
};

struct Frames {
  double worst = 0, sum = 0;
  int count = 0, over = 0;
  void add(double frame) {
    worst = std::max(worst, frame);
    sum += frame;
    over += frame > kMostFrameMs;
    ++count;
  }
};

/// One frame: what the event does and the painting that follows, until the widget is up to date.
void frame(QWidget* widget, Frames& frames, const std::function<void()>& event) {
  QElapsedTimer timer;
  timer.start();
  event();
  widget->repaint();
  frames.add(ms(timer));
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
  double firstMs = 0, viewMs = 0, stallMs = 0;
  Frames frames;
};

bool waitFor(const std::function<bool()>& done, int limitMs) { return QTest::qWaitFor(done, limitMs); }

/// The overview first, as a person sees it, then the view with `ready`.
template <class Ready>
bool open(window::MainWindow& window, const QString& path, const char* view, Ready ready, Outcome& out) {
  auto* overview = qobject_cast<views::OverviewView*>(window.docks()->view("overview"));
  window.goTo(views::Location::ofView("overview"));
  QSignalSpy first(overview, &views::OverviewView::firstPicture);
  Heartbeat heart;
  QElapsedTimer timer;
  timer.start();
  window.openSession(path);
  if (!waitFor([&] { return !first.isEmpty(); }, 120000)) return false;
  (void)window.grab();
  out.firstMs = ms(timer);
  timer.restart();
  window.goTo(views::Location::ofView(view));
  if (!waitFor(ready, 120000)) return false;
  (void)window.grab();
  out.viewMs = ms(timer);
  QTest::qWait(200);
  out.stallMs = heart.worst;
  return true;
}

double peakMb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int measure(int argc, char** argv, const QString& launches, const QString& nodes) {
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-bench");
  QApplication::setApplicationName("scale");
  views::Theme::instance().apply(views::Theme::Mode::Light);
  window::MainWindow window(QStringLiteral("/bin/false"));
  window.resize(1280, 800);
  window.show();
  Outcome time, graph;
  auto* timeline = qobject_cast<views::TimelineView*>(window.docks()->view("timeline"));
  auto* graphView = qobject_cast<views::GraphView*>(window.docks()->view("graph"));
  QSignalSpy bars(timeline, &views::TimelineView::barsShown);
  if (!open(window, launches, "timeline", [&] { return !bars.isEmpty(); }, time)) return 2;
  exercise(timeline->canvas(), time.frames);
  if (!open(window, nodes, "graph", [&] { return !graphView->canvas()->painter().empty(); }, graph)) return 2;
  exercise(graphView->canvas(), graph.frames);
  const double memory = peakMb();
  const auto text = [](const Outcome& o) {
    return QString::asprintf(
        "{\"first_picture_ms\": %.0f, \"view_ms\": %.0f, \"longest_stall_ms\": %.0f, \"frames\": %d, "
        "\"mean_frame_ms\": %.1f, "
        "\"worst_frame_ms\": %.1f, \"frames_over_50_ms\": %d}",
        o.firstMs, o.viewMs, o.stallMs, o.frames.count, o.frames.sum / std::max(1, o.frames.count), o.frames.worst,
        o.frames.over);
  };
  std::printf("{\"launches\": %s, \"graph\": %s, \"peak_mb\": %.0f}\n", qPrintable(text(time)), qPrintable(text(graph)),
              memory);
  const auto good = [](const Outcome& o) {
    return o.firstMs < kMostFirstMs && o.viewMs < kMostFirstMs && o.frames.over == 0;
  };
  return good(time) && good(graph) && memory < kMostMb ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const QDir folder(argc > 1 ? QString::fromLocal8Bit(argv[1]) : QDir::tempPath());
  const int64_t launches = argc > 2 ? std::atoll(argv[2]) : 10'000'000;
  const int nodes = argc > 3 ? std::atoi(argv[3]) : 100'000;
  const QString launchFile = folder.filePath(QStringLiteral("scale-%1.fusebox").arg(launches)),
                graphFile = folder.filePath(QStringLiteral("scale-graph-%1.fusebox").arg(nodes));
  constexpr int kNodesOfLayer = 27;
  // In a process of its own: what writing takes is not the window's memory.
  if (const pid_t writer = fork(); writer == 0) {
    const bool done =
        (QFileInfo::exists(launchFile) ||
         test::writeSyntheticSession(launchFile.toStdString(), {.launches = launches})) &&
        (QFileInfo::exists(graphFile) || test::writeModelSession(graphFile.toStdString(), nodes / kNodesOfLayer));
    _exit(done ? 0 : 1);
  } else {
    int status = 0;
    waitpid(writer, &status, 0);
    if (status != 0) return 2;
  }
  return measure(argc, argv, launchFile, graphFile);
}
