// stepping_bench [STEPS]: how soon a stop is on the screen, and whether stepping makes anything grow. Debugs a real program in
// the window and steps through STEPS (1000) instructions of its bytecode. Prints one JSON line: milliseconds from the moment
// that the program stopped until the source line, the locals and the panel are painted, and what window and program hold more
// after the steps than before. Exit code 1 beyond the limits of issue 4: 100 ms, no growth (4 MB: what allocators keep).
#include <time.h>
#include <unistd.h>

#include <QApplication>
#include <QFile>
#include <QStandardPaths>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <cstdio>
#include <vector>

#include "app/debug/debug_text.h"
#include "app/window/main_window.h"
#include "views/source/source_view.h"
#include "views/widgets/theme.h"

using namespace fusebox;
using window::DebugController;

namespace {

constexpr double kMostMs = 100, kMostGrownMb = 4;
constexpr int kLongMs = 120'000, kWarmSteps = 200;

constexpr const char* kScript =
    "import torch\n\n\n@torch.compile\ndef f(x):\n    y = x * 2\n    for i in range(100000):\n        y = y + (i % 3 == 7)\n"
    "    return y\n\n\nf(torch.ones(4, 8))\n";

double nowMs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

double residentMb(qint64 pid) {
  QFile file(QStringLiteral("/proc/%1/statm").arg(pid));
  if (!file.open(QIODevice::ReadOnly)) return -1;
  return file.readAll().split(' ').value(1).toDouble() * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

/// The debugged program: the last of this process's line of children.
qint64 programPid() {
  for (qint64 pid = getpid();;) {
    QFile file(QStringLiteral("/proc/%1/task/%1/children").arg(pid));
    const qint64 child = file.open(QIODevice::ReadOnly) ? file.readAll().split(' ').value(0).toLongLong() : 0;
    if (child == 0) return pid;
    pid = child;
  }
}

class Stepper {
 public:
  explicit Stepper(window::MainWindow& window) : window_(window), debugger_(*window.debugger()) {}

  bool start(const QString& script) {
    window::RunRequest request;
    request.script = script;
    window_.debugScript(request, {{{"kind", "line"}, {"name", "f"}, {"once", true}}});
    return QTest::qWaitFor([&] { return debugger_.state() == DebugController::State::Stopped && window_.session(); }, kLongMs) && shown();
  }
  /// One step, until everything of the stop is painted; milliseconds since the program stopped. Negative: it did not.
  double step() {
    const int64_t before = number("stop");
    debugger_.step("into", true);
    if (!QTest::qWaitFor([&] { return debugger_.state() == DebugController::State::Stopped && number("stop") > before; }, kLongMs)) return -1;
    if (!shown()) return -1;
    window_.repaint();
    return nowMs() - static_cast<double>(number("time_ns")) / 1e6;
  }
  int64_t number(const char* field) const { return debugging::numberField(debugger_.stop(), field); }

 private:
  /// The panel has its answers: one question after the other, so the last one's answer means all.
  bool shown() {
    bool answered = false;
    debugger_.ask(QStringLiteral("locals"), &window_, [&](bool, const nlohmann::json&) { answered = true; });
    return QTest::qWaitFor([&] { return answered; }, kLongMs);
  }

  window::MainWindow& window_;
  DebugController& debugger_;
};

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setOrganizationName("fusebox-bench");
  QApplication::setApplicationName("stepping");
  views::Theme::instance().apply(views::Theme::Mode::Light);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 1000;
  QTemporaryDir folder;
  QFile script(folder.filePath("program.py"));
  if (!script.open(QIODevice::WriteOnly)) return 2;
  script.write(kScript);
  script.close();
  window::MainWindow window(QApplication::applicationDirPath() + QStringLiteral("/fusebox"));
  window.resize(1280, 800);
  window.show();
  Stepper stepper(window);
  if (!stepper.start(script.fileName())) return std::fprintf(stderr, "the program does not stop\n"), 2;
  for (int i = 0; i < kWarmSteps; ++i)
    if (stepper.step() < 0) return std::fprintf(stderr, "a step does not end\n"), 2;
  const qint64 host = programPid();
  const double windowBefore = residentMb(getpid()), hostBefore = residentMb(host);
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    times.push_back(stepper.step());
    if (times.back() < 0) return std::fprintf(stderr, "a step does not end\n"), 2;
  }
  const double windowMb = residentMb(getpid()) - windowBefore, hostMb = residentMb(host) - hostBefore;
  window.debugger()->kill();
  (void)QTest::qWaitFor([&] { return !window.runner()->running(); }, kLongMs);
  std::sort(times.begin(), times.end());
  const auto over = std::count_if(times.begin(), times.end(), [](double ms) { return ms > kMostMs; });
  std::printf("{\"steps\": %d, \"shown_median_ms\": %.1f, \"shown_p99_ms\": %.1f, \"shown_worst_ms\": %.1f, \"over_100_ms\": %d, "
              "\"window_grown_mb\": %.1f, \"program_grown_mb\": %.1f}\n",
              steps, times[times.size() / 2], times[times.size() * 99 / 100], times.back(), static_cast<int>(over), windowMb, hostMb);
  return over == 0 && windowMb < kMostGrownMb && hostMb < kMostGrownMb ? 0 : 1;
}
