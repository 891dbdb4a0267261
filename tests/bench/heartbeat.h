#pragma once

#include <QElapsedTimer>
#include <QTimer>

#include <time.h>

#include <algorithm>
#include <utility>

namespace fusebox::bench {

inline double ms(const QElapsedTimer& timer) { return static_cast<double>(timer.nsecsElapsed()) / 1e6; }

/// The longest that a timer which wants to run at once had to wait, in ms.
class Heartbeat {
 public:
  Heartbeat() {
    timer_.setInterval(0);
    since_.start();
    QObject::connect(&timer_, &QTimer::timeout, [this] {
      const double busy = cpuMs();
      worst = std::max(worst, ms(since_));
      worstBusy = std::max(worstBusy, busy - busyThen_);
      since_.restart();
      busyThen_ = busy;
    });
    timer_.start();
  }
  /// What it was since the last call.
  double take() {
    since_.restart();
    busyThen_ = cpuMs();
    return std::exchange(worst, 0);
  }
  /// Of that time what this thread itself worked, at most: what others took of a shared machine is not in it.
  double takeBusy() { return std::exchange(worstBusy, 0); }
  double worst = 0, worstBusy = 0;

 private:
  static double cpuMs() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
  }

  double busyThen_ = 0;
  QTimer timer_;
  QElapsedTimer since_;
};

}  // namespace fusebox::bench
