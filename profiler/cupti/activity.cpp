#include "profiler/cupti/activity.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

namespace fusebox::cupti {

size_t ShapeTable::Hash::operator()(const LaunchShape& s) const {
  size_t hash = std::hash<std::string>{}(s.symbol);
  const auto mix = [&](int64_t value) { hash = hash * 1099511628211u ^ static_cast<size_t>(value); };
  for (int i = 0; i < 3; ++i) mix(s.grid[static_cast<size_t>(i)]), mix(s.block[static_cast<size_t>(i)]);
  mix(s.device), mix(s.registers), mix(s.staticShared), mix(s.dynamicShared), mix(s.localBytes);
  return hash;
}

int32_t ShapeTable::number(const LaunchShape& shape) {
  std::lock_guard lock(mutex_);
  const auto [place, added] = numbers_.try_emplace(shape, static_cast<int32_t>(shapes_.size()) + 1);
  if (added) shapes_.push_back(shape);
  return place->second;
}

std::vector<LaunchShape> ShapeTable::from(int32_t first) const {
  std::lock_guard lock(mutex_);
  const auto begin = static_cast<size_t>(std::max(first, 1) - 1);
  if (begin >= shapes_.size()) return {};
  return {shapes_.begin() + static_cast<std::ptrdiff_t>(begin), shapes_.end()};
}

int32_t ShapeTable::firstOf(const std::string& symbol) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const LaunchShape& s) { return s.symbol == symbol; });
  return found == shapes_.end() ? 0 : static_cast<int32_t>(found - shapes_.begin()) + 1;
}

namespace {

using Role = ApiCall::Role;

const std::vector<ApiCall> kDriverCalls = {
    {307, "cuLaunchKernel", Role::Launch},
    {442, "cuLaunchKernel", Role::Launch},
    {652, "cuLaunchKernelEx", Role::Launch},
    {653, "cuLaunchKernelEx", Role::Launch},
    {477, "cuLaunchCooperativeKernel", Role::Launch},
    {478, "cuLaunchCooperativeKernel", Role::Launch},
    {514, "cuGraphLaunch", Role::GraphLaunch},
    {515, "cuGraphLaunch", Role::GraphLaunch},
    {277, "cuMemcpyHtoDAsync", Role::Copy},
    {279, "cuMemcpyDtoHAsync", Role::Copy},
    {281, "cuMemcpyDtoDAsync", Role::Copy},
    {289, "cuMemcpy2DAsync", Role::Copy},
    {306, "cuMemcpyAsync", Role::Copy},
    {421, "cuMemcpyHtoDAsync", Role::Copy},
    {422, "cuMemcpyDtoHAsync", Role::Copy},
    {423, "cuMemcpyDtoDAsync", Role::Copy},
    {216, "cuMemsetD8Async", Role::Set},
    {218, "cuMemsetD16Async", Role::Set},
    {220, "cuMemsetD32Async", Role::Set},
    {428, "cuMemsetD8Async", Role::Set},
    {430, "cuMemsetD16Async", Role::Set},
    {432, "cuMemsetD32Async", Role::Set},
    {17, "cuCtxSynchronize", Role::Wait},
    {800, "cuCtxSynchronize", Role::Wait},
    {121, "cuEventSynchronize", Role::Wait},
    {126, "cuStreamSynchronize", Role::Wait},
    {440, "cuStreamSynchronize", Role::Wait},
};
const std::vector<ApiCall> kRuntimeCalls = {
    {211, "cudaLaunchKernel", Role::Launch},
    {214, "cudaLaunchKernel", Role::Launch},
    {505, "cudaLaunchKernel", Role::Launch},
    {506, "cudaLaunchKernel", Role::Launch},
    {430, "cudaLaunchKernelExC", Role::Launch},
    {431, "cudaLaunchKernelExC", Role::Launch},
    {269, "cudaLaunchCooperativeKernel", Role::Launch},
    {270, "cudaLaunchCooperativeKernel", Role::Launch},
    {311, "cudaGraphLaunch", Role::GraphLaunch},
    {312, "cudaGraphLaunch", Role::GraphLaunch},
    {31, "cudaMemcpy", Role::Copy},
    {215, "cudaMemcpy", Role::Copy},
    {41, "cudaMemcpyAsync", Role::Copy},
    {225, "cudaMemcpyAsync", Role::Copy},
    {44, "cudaMemcpy2DAsync", Role::Copy},
    {228, "cudaMemcpy2DAsync", Role::Copy},
    {49, "cudaMemset", Role::Set},
    {51, "cudaMemsetAsync", Role::Set},
    {235, "cudaMemsetAsync", Role::Set},
    {131, "cudaStreamSynchronize", Role::Wait},
    {239, "cudaStreamSynchronize", Role::Wait},
    {137, "cudaEventSynchronize", Role::Wait},
    {165, "cudaDeviceSynchronize", Role::Wait},
    {20, "cudaMalloc", Role::Memory},
    {22, "cudaFree", Role::Memory},
};

}  // namespace

const std::vector<ApiCall>& keptCalls(bool driver) { return driver ? kDriverCalls : kRuntimeCalls; }

const ApiCall* keptCall(bool driver, uint32_t cbid) {
  const auto& calls = keptCalls(driver);
  const auto found = std::find_if(calls.begin(), calls.end(), [&](const ApiCall& c) { return c.cbid == cbid; });
  return found == calls.end() ? nullptr : &*found;
}

const char* copyKindName(uint8_t kind) {
  static constexpr const char* kNames[] = {"copy", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < std::size(kNames) ? kNames[kind] : "copy";
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (!text || status != 0) {
    std::free(text);
    return symbol;
  }
  std::string out(text);
  std::free(text);
  return out;
}

std::string shortName(const std::string& name) {
  std::string out;
  int depth = 0;
  // Arguments begin at the first parenthesis outside template arguments that is not part of a name.
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && name.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (c == '<') ++depth;
    else if (c == '>' && depth > 0) --depth;
    else if (c == '(' && depth == 0) break;
    else if (c == ' ' && depth == 0) out.clear();  // the return type ends here
    else if (depth == 0) out += c;
  }
  return out.empty() ? name : out;
}

}  // namespace fusebox::cupti
