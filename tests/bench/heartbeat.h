#pragma once

#include <QElapsedTimer>
#include <QTimer>

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
      worst = std::max(worst, ms(since_));
      since_.restart();
    });
    timer_.start();
  }
  /// What it was since the last call.
  double take() {
    since_.restart();
    return std::exchange(worst, 0);
  }
  double worst = 0;

 private:
  QTimer timer_;
  QElapsedTimer since_;
};

}  // namespace fusebox::bench
