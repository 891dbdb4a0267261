// recorder_overhead [MICROSECONDS] [WORKERS]: what recording costs a program whose every launch takes that long, while WORKERS
// threads in all keep as many processors busy. Prints wall and processor time (all threads, the writer's too) off and on, taken
// in turns, and the ratios of the medians.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/record/recorder.h"

using namespace fusebox;
using record::Recorder;

namespace {

// Arithmetic that the compiler cannot remove and that takes the same time each round.
double work(int64_t steps) {
  double x = 1.0;
  for (int64_t i = 0; i < steps; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

int64_t stepsFor(double microseconds) {
  const int64_t start = nowNs();
  volatile double sink = work(5'000'000);
  (void)sink;
  return static_cast<int64_t>(microseconds * 1000 * 5e6 / static_cast<double>(nowNs() - start));
}

// One compiled call: `launches` kernels, each on all workers at once, as a parallel kernel is.
double round(int64_t steps, int workers, int64_t launches) {
  const int64_t start = nowNs();
  std::vector<std::thread> others;
  for (int w = 1; w < workers; ++w) {
    others.emplace_back([=] {
      volatile double sink = 0;
      for (int64_t i = 0; i < launches; ++i) sink = work(steps);
      (void)sink;
    });
  }
  volatile double sink = 0;
  for (int64_t i = 0; i < launches; ++i) {
    if (Recorder* recorder = Recorder::active()) {
      const int64_t begin = nowNs();
      sink = work(steps);
      recorder->launch(1 + static_cast<record::Id>(i % 50), 1, begin, nowNs() - begin, 4096);
    } else {
      sink = work(steps);
    }
  }
  (void)sink;
  for (auto& thread : others) thread.join();
  return static_cast<double>(nowNs() - start) / 1e6;
}

double processMs() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

struct Cost {
  std::vector<double> wall, processor;
  template <class F>
  void measure(F&& body) {
    const double start = processMs();
    wall.push_back(body());
    processor.push_back(processMs() - start);
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const double microseconds = argc > 1 ? std::atof(argv[1]) : 20;
  const int workers = argc > 2 ? std::atoi(argv[2]) : 1;
  const int64_t steps = stepsFor(microseconds);
  const auto launches = static_cast<int64_t>(500'000 / microseconds);
  const std::string path = std::filesystem::temp_directory_path() / "recorder_overhead.fusebox";
  Cost off, on;
  for (int i = 0; i < 7; ++i) {
    off.measure([&] { return round(steps, workers, launches); });
    auto started = Recorder::start({.path = path});
    if (!started) {
      fmt::print(stderr, "{}\n", started.error().text());
      return 1;
    }
    on.measure([&] {
      const double wall = round(steps, workers, launches);
      (*started)->flush();
      return wall;
    });
    Recorder::stop();
  }
  std::filesystem::remove(path);
  const auto ratio = [](const std::vector<double>& a, const std::vector<double>& b) {
    return (median(a) / median(b) - 1) * 100;
  };
  fmt::print("{} launches of {} us, {} workers: wall {:.1f} -> {:.1f} ms ({:+.2f} %), processor {:.1f} -> {:.1f} ms ({:+.2f} %)\n",
             launches, microseconds, workers, median(off.wall), median(on.wall), ratio(on.wall, off.wall),
             median(off.processor), median(on.processor), ratio(on.processor, off.processor));
}
