// run_program MODEL.fbx SIZES…: runs a compiled program on arguments of these sizes ("2,8"), which count up from 0 in steps of 0.01, and prints
// the first elements of each result.
#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "engine/compile/build_identity.h"
#include "engine/compile/compile.h"
#include "engine/compile/stored_program.h"

extern const char* const kEngineBuild;  // engine_build.py

namespace {

at::Tensor counting(const std::string& sizes) {
  std::vector<int64_t> shape;
  std::stringstream text(sizes);
  for (std::string size; std::getline(text, size, ',');) shape.push_back(std::atoll(size.c_str()));
  return (at::arange(c10::multiply_integers(shape), at::kFloat) * 0.01).reshape(shape);
}

int run(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: run_program MODEL.fbx SIZES...\n");
    return 2;
  }
  auto program = fusebox::StoredProgram::open(words[1]);
  if (!program) {
    std::fprintf(stderr, "%s: %s\n", words[1], program.error().text().c_str());
    return 3;
  }
  std::vector<at::Tensor> arguments;
  for (int i = 2; i < count; ++i) arguments.push_back(counting(words[i]));
  auto results = (*program)->run(arguments);
  if (!results) {
    std::fprintf(stderr, "%s\n", results.error().text().c_str());
    return 3;
  }
  for (const at::Tensor& result : *results) {
    std::cout << result.sizes() << ":";
    const at::Tensor flat = result.to(at::kCPU, at::kDouble).flatten();
    for (int64_t i = 0; i < std::min<int64_t>(flat.numel(), 8); ++i) std::printf(" %.6g", flat[i].item<double>());
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  fusebox::standInFor(kEngineBuild);
  const int code = run(count, words);
  fusebox::stopCompiler();
  return code;
}
