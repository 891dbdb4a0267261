// fusebox_synthesize FILE [LAUNCHES] [THREADS]: writes a synthetic session.
#include <fmt/format.h>

#include <cstdlib>

#include "engine/support/clock.h"
#include "tests/profiler/synthetic_session.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: fusebox_synthesize FILE [LAUNCHES] [THREADS]\n");
    return 2;
  }
  fusebox::test::SyntheticOptions options;
  options.launches = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 1;
  const int64_t start = fusebox::nowNs();
  const auto facts = fusebox::test::writeSyntheticSession(argv[1], options);
  if (!facts) {
    fmt::print(stderr, "{}\n", facts.error().text());
    return 1;
  }
  fmt::print("{} launches in {:.2f} s\n", facts->launches, static_cast<double>(fusebox::nowNs() - start) / 1e9);
}
