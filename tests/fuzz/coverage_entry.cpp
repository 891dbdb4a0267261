// libFuzzer's way into a reader of what comes from outside: it changes input so that more of the reader's code runs. Every other
// change is of the kind that the content asks for (mutation.h), since bytes changed in an archive or a database mostly break its frame only.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

namespace fs = std::filesystem;
using namespace fusebox;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

const fs::path& scratch() {
  static const fs::path folder = [] {
    const fs::path made = fs::temp_directory_path() / ("coverage_fuzz." + std::to_string(::getpid()));
    fs::create_directories(made);
    std::atexit([] { fs::remove_all(scratch()); });
    return made;
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fs::path file = scratch() / FUZZ_INPUT;
  fuzz::writeFile(file, std::string(reinterpret_cast<const char*>(data), size));
  fuzz::Outcome outcome = fuzz::Outcome::Read;
  const std::string problem = fuzz::FUZZ_TARGET.read(file, scratch(), outcome);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return outcome == fuzz::Outcome::NotRecognised ? -1 : 0;  // -1: of no use to the corpus
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 2) return LLVMFuzzerMutate(data, size, most);
  fuzz::Random random(seed);
  const std::string changed = fuzz::mutate(std::string(reinterpret_cast<const char*>(data), size), random, scratch());
  const size_t kept = std::min(changed.size(), most);
  std::memcpy(data, changed.data(), kept);
  return kept;
}
