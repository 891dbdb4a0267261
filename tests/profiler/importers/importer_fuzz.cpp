// Changes real files at random and imports them: nothing may crash, hang or take memory without bound. For one seed the
// changes are always the same. A file that takes longer than kMostSeconds or more than kMostBytes of memory is a
// failure.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "profiler/importers/byte_stream.h"
#include "profiler/importers/formats.h"
#include "profiler/importers/session_builder.h"
#include "profiler/session/reader.h"

namespace fs = std::filesystem;
using namespace fusebox;

namespace {

constexpr double kMostSeconds = 20;
constexpr long kMostKilobytes = 1'500'000;

std::string readFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What damaged files look like: bits and bytes changed, parts lost, doubled or moved, numbers made extreme, the end
/// cut off.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n ? static_cast<size_t>(random() % n) : 0; };
  // Pages of a database that move are no longer one: there, bytes only change in place.
  const bool database = bytes.starts_with("SQLite format 3");
  const size_t changes = 1 + below(8);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size()), length = std::min(bytes.size() - at, below(below(2) ? 16 : 4096) + 1);
    static constexpr const char* kWords[] = {
        "99999999999999999999", "-1", "\"", "{", "}", "[", "]", "\n", "\t", "\\", "\x00\xff", "null", "1e999",
        "9223372036854775807"};
    switch (database ? below(3) : below(8)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(random()));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 4:
        bytes.insert(at, kWords[below(std::size(kWords))]);
        break;
      case 5:
        bytes.resize(at);
        break;
      case 6:
        bytes.erase(at, length);
        break;
      default: {  // another number in place of one
        const size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos) bytes.replace(digit, 1, kWords[below(std::size(kWords))]);
      }
    }
  }
  return bytes;
}

void mutateTree(const fs::path& from, const fs::path& to, std::mt19937_64& random) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const size_t chosen = random() % std::max<size_t>(1, files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path target = to / files[i].lexically_relative(from);
    fs::create_directories(target.parent_path());
    const std::string bytes = readFile(files[i]);
    std::ofstream(target, std::ios::binary) << (i == chosen ? mutate(bytes, random) : bytes);
  }
}

struct Outcome {
  int imported = 0, refused = 0, unknown = 0;
};

bool importOne(const fs::path& file, const fs::path& session, Outcome& outcome) {
  std::error_code ignored;
  fs::remove(session, ignored);
  const auto begun = std::chrono::steady_clock::now();
  auto probe = importing::probe(file.string());
  const auto* format = probe ? importing::recognise(*probe) : nullptr;
  if (!format) {
    ++outcome.unknown;
    return true;
  }
  auto builder = importing::SessionBuilder::create(session.string());
  if (!builder) return std::printf("%s\n", builder.error().text().c_str()), false;
  auto done = format->import(file.string(), **builder, nullptr);
  if (done) done = (*builder)->finish();
  if (done) {
    ++outcome.imported;
    if (auto reader = session::Reader::open(session.string()); !reader) {
      return std::printf("the session is not readable: %s\n", reader.error().text().c_str()), false;
    }
  } else if (done.error().code == ErrorCode::Internal || done.error().message.empty()) {
    return std::printf("no proper error: %s\n", done.error().text().c_str()), false;
  } else {
    ++outcome.refused;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (seconds > kMostSeconds) return std::printf("took %.1f s\n", seconds), false;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (usage.ru_maxrss > kMostKilobytes) return std::printf("took %ld kB\n", usage.ru_maxrss), false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::puts("importer_fuzz DATA [--rounds N] [--seconds S] [--seed N] [--only NAME] [--keep FOLDER]"), 2;
  int rounds = 20;
  double seconds = 0;
  uint64_t seed = 1;
  std::string only, keep;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (option == "--seconds") seconds = std::atof(argv[i + 1]);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--only") only = argv[i + 1];
    if (option == "--keep") keep = argv[i + 1];
  }
  const fs::path work =
      keep.empty() ? fs::temp_directory_path() / ("importer_fuzz." + std::to_string(::getpid())) : fs::path(keep);
  fs::create_directories(work);
  const auto begun = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(); };
  std::vector<fs::path> subjects;
  for (const auto& entry : fs::directory_iterator(argv[1])) {
    if (entry.path().filename().string().find(only) != std::string::npos) subjects.push_back(entry.path());
  }
  std::sort(subjects.begin(), subjects.end());
  bool good = true;
  for (const auto& subject : subjects) {
    Outcome outcome;
    const std::string name = subject.filename().string();
    const std::string original = fs::is_directory(subject) ? std::string() : readFile(subject);
    const auto inflated =
        importing::firstBytes(fs::is_directory(subject) ? "/dev/null" : subject.string(), size_t{64} << 20);
    const double share = seconds / static_cast<double>(subjects.size()), start = elapsed();
    for (int round = 0; seconds > 0 ? elapsed() - start < share : round < rounds; ++round) {
      std::seed_seq sequence{static_cast<uint64_t>(std::hash<std::string>{}(name)), seed, static_cast<uint64_t>(round)};
      std::mt19937_64 random(sequence);
      const fs::path file = work / name;
      fs::remove_all(file);
      if (fs::is_directory(subject)) {
        mutateTree(subject, file, random);
      } else {
        std::ofstream(file, std::ios::binary) << mutate(round % 2 && inflated ? *inflated : original, random);
      }
      if (importOne(file, work / "session.fusebox", outcome)) continue;
      std::printf("FAILED: %s, seed %llu, round %d\n", name.c_str(), static_cast<unsigned long long>(seed), round);
      good = false;
      break;
    }
    std::printf("%s: %d imported, %d refused, %d not recognised\n", name.c_str(), outcome.imported, outcome.refused,
                outcome.unknown);
    std::fflush(stdout);
  }
  if (keep.empty()) fs::remove_all(work);
  return good ? 0 : 1;
}
