// Changes real files and messages at random and lets their readers have them: nothing may crash, hang or take memory
// without bound. For one seed the changes are always the same. What takes longer than kMostSeconds or makes the process
// larger than kMostKilobytes is a failure.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "profiler/importers/byte_stream.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

namespace fs = std::filesystem;
using namespace fusebox;

namespace {

constexpr double kMostSeconds = 20;
constexpr unsigned kHangSeconds = 240;
constexpr long kMostKilobytes = 1'500'000;
constexpr const fuzz::Target* kTargets[] = {&fuzz::kImporters, &fuzz::kSessions, &fuzz::kSavedGraphs, &fuzz::kControl};

struct Options {
  int rounds = 20, from = 0;
  double seconds = 0;  ///< for all subjects together; 0: rounds count
  uint64_t seed = 1;
  std::string target, only, keep;
};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

/// Of the processor: the machine may be busy with something else.
double processSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

char whatRuns[512];
void hung(int) {
  (void)!::write(STDOUT_FILENO, whatRuns, strlen(whatRuns));
  ::_exit(1);
}

/// Reads one changed file; what was wrong.
std::string judge(const fuzz::Target& target, const fs::path& file, const fs::path& scratch, fuzz::Outcome& outcome) {
  const double begun = processSeconds();
  ::alarm(kHangSeconds);
  std::string problem = target.read(file, scratch, outcome);
  ::alarm(0);
  if (!problem.empty()) return problem;
  if (const double seconds = processSeconds() - begun; seconds > kMostSeconds) return "took " + std::to_string(seconds) + " s";
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss > kMostKilobytes ? "took " + std::to_string(usage.ru_maxrss) + " kB" : "";
}

bool fuzzOne(const fuzz::Target& target, const fs::path& subject, const fs::path& scratch, double seconds, const Options& options) {
  const std::string name = subject.filename().string();
  const bool folder = fs::is_directory(subject);
  const std::string original = folder ? std::string() : fuzz::readFile(subject);
  const auto inflated = importing::firstBytes(folder ? "/dev/null" : subject.string(), size_t{64} << 20);
  const fs::path file = scratch / "changed" / name;
  int counts[3] = {};
  bool good = true;
  const auto begun = Clock::now();
  for (int round = options.from; good && (seconds > 0 ? since(begun) < seconds : round < options.from + options.rounds); ++round) {
    std::seed_seq sequence{static_cast<uint64_t>(std::hash<std::string>{}(name)), options.seed, static_cast<uint64_t>(round)};
    fuzz::Random random(sequence);
    fs::remove_all(scratch / "changed");
    fs::create_directories(scratch / "changed");
    std::snprintf(whatRuns, sizeof whatRuns, "FAILED: %s, seed %llu, round %d: hangs\n", name.c_str(), static_cast<unsigned long long>(options.seed), round);
    if (!options.keep.empty()) std::fprintf(stderr, "%s round %d\n", name.c_str(), round);
    if (folder) {
      fuzz::mutateTree(subject, file, random, scratch);
    } else {
      fuzz::writeFile(file, fuzz::mutate(round % 2 && inflated ? *inflated : original, random, scratch));
    }
    fuzz::Outcome outcome = fuzz::Outcome::Read;
    const std::string problem = judge(target, file, scratch, outcome);
    ++counts[static_cast<int>(outcome)];
    if (problem.empty()) continue;
    std::printf("FAILED: %s, seed %llu, round %d: %s\n", name.c_str(), static_cast<unsigned long long>(options.seed), round, problem.c_str());
    good = false;
  }
  std::printf("%s %s: %d read, %d refused, %d not recognised\n", target.name, name.c_str(), counts[0], counts[1], counts[2]);
  std::fflush(stdout);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::puts("reader_fuzz DATA [--target importers|sessions|graphs|control] [--only NAME] [--rounds N] [--from ROUND] [--seconds S] "
                     "[--seed N] [--keep FOLDER]"), 2;
  Options options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--rounds") options.rounds = std::atoi(value.c_str());
    if (option == "--from") options.from = std::atoi(value.c_str());
    if (option == "--seconds") options.seconds = std::atof(value.c_str());
    if (option == "--seed") options.seed = std::strtoull(value.c_str(), nullptr, 10);
    if (option == "--target") options.target = value;
    if (option == "--only") options.only = value;
    if (option == "--keep") options.keep = value;
  }
  ::signal(SIGALRM, hung);
  const fs::path scratch = options.keep.empty() ? fs::temp_directory_path() / ("reader_fuzz." + std::to_string(::getpid())) : fs::path(options.keep);
  fs::create_directories(scratch);
  struct Work {
    const fuzz::Target* target;
    fs::path subject;
  };
  std::vector<Work> all;
  for (const auto* target : kTargets) {
    if (!options.target.empty() && options.target != target->name) continue;
    auto subjects = target->subjects(argv[1], scratch);
    std::sort(subjects.begin(), subjects.end());
    for (const auto& subject : subjects)
      if (subject.filename().string().find(options.only) != std::string::npos) all.push_back({target, subject});
  }
  bool good = !all.empty();
  for (const auto& [target, subject] : all)
    good = fuzzOne(*target, subject, scratch, options.seconds / static_cast<double>(all.size()), options) && good;
  if (options.keep.empty()) fs::remove_all(scratch);
  return good ? 0 : 1;
}
