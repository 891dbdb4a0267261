#include "profiler/cupti/profiler_host.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "profiler/cupti/counter_abi.h"

namespace fusebox::cupti {
namespace {

struct HostEntry {
  const char* name;
  HostFunctions::Function HostFunctions::* place;
};
constexpr HostEntry kHostFunctions[] = {
    {"cuptiProfilerInitialize", &HostFunctions::profilerInitialize},
    {"cuptiProfilerDeviceSupported", &HostFunctions::deviceSupported},
    {"cuptiDeviceGetChipName", &HostFunctions::chipName},
    {"cuptiProfilerHostInitialize", &HostFunctions::hostInitialize},
    {"cuptiProfilerHostDeinitialize", &HostFunctions::hostDeinitialize},
    {"cuptiProfilerHostConfigAddMetrics", &HostFunctions::hostAddMetrics},
    {"cuptiProfilerHostGetConfigImageSize", &HostFunctions::hostConfigSize},
    {"cuptiProfilerHostGetConfigImage", &HostFunctions::hostConfig},
    {"cuptiProfilerHostGetNumOfPasses", &HostFunctions::hostPasses},
    {"cuptiProfilerHostEvaluateToGpuValues", &HostFunctions::hostEvaluate},
};

/// Why a device's counters cannot be read, from what CUPTI says of it.
std::string obstacle(const abi::DeviceSupported& d) {
  constexpr int kYes = 3;
  const struct {
    int level;
    const char* what;
  } causes[] = {{d.architecture, "the device is too old for it (kernels: compute capability 7.0, samples: 7.5)"},
                {d.virtualGpu, "it is a virtual GPU whose host does not let counters be read"},
                {d.confidentialCompute, "confidential computing is on"},
                {d.sli, "SLI is on"},
                {d.wsl, "WSL does not support it"},
                {d.miningProcessor, "it is a mining processor"}};
  for (const auto& cause : causes)
    if (cause.level != kYes) return cause.what;
  return "CUPTI does not say why";
}

/// What to do about an error of CUPTI; null: nothing better than its own words.
const char* remedy(int error) {
  constexpr int kHardwareBusy = 26, kInsufficientPrivileges = 35, kVirtualPrivileges = 40;
  switch (error) {
    case kInsufficientPrivileges:
    case kVirtualPrivileges:
      return "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or let the driver's module be loaded with "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case kHardwareBusy:
      return "another profiler has the GPU's counters: end it (Nsight Systems, Nsight Compute), or pause it (dcgmi profile --pause)";
    default: return nullptr;
  }
}

/// The part before the first dot: "dram__bytes" of "dram__bytes.sum".
std::string_view baseOf(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

Result<LoadedCupti> LoadedCupti::find() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return LoadedCupti(library);
  return fail(ErrorCode::NotFound, "CUPTI (libcupti) is not loaded in this process");
}

HostFunctions::Function LoadedCupti::function(const char* name) const {
  return reinterpret_cast<HostFunctions::Function>(dlsym(library_, name));
}

Result<void> LoadedCupti::fill(HostFunctions& functions, const char* tooOld) const {
  for (const HostEntry& entry : kHostFunctions) {
    functions.*entry.place = function(entry.name);
    if (!(functions.*entry.place)) return fail(ErrorCode::Unsupported, tooOld, entry.name);
  }
  functions.hostBaseMetrics = function("cuptiProfilerHostGetBaseMetrics");
  functions.resultString = reinterpret_cast<int (*)(int, const char**)>(dlsym(library_, "cuptiGetResultString"));
  return {};
}

Result<void> cuptiError(const HostFunctions& cupti, int error, const char* what) {
  if (error == 0) return {};
  if (const char* words = remedy(error)) return fail(ErrorCode::Unsupported, words, what);
  const char* text = nullptr;
  if (!cupti.resultString || cupti.resultString(error, &text) != 0 || !text) text = "unknown error";
  return fail(ErrorCode::Unsupported, fmt::format("the GPU's counters cannot be read: {} ({})", text, error), what);
}

Result<void> callCupti(const HostFunctions& cupti, HostFunctions::Function function, void* parameters, const char* what) {
  return cuptiError(cupti, function(parameters), what);
}

std::vector<MetricWish> wishesOf(const std::string& list, const std::vector<MetricWish>& defaults) {
  std::vector<MetricWish> out;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    if (name == "default") out.insert(out.end(), defaults.begin(), defaults.end());
    else out.push_back({{std::move(name)}});
  }
  return out;
}

std::string leftOutText(const std::vector<LeftOutMetric>& leftOut) {
  std::string out;
  for (const auto& metric : leftOut) out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", metric.name, metric.why);
  return out;
}

Result<std::unique_ptr<ProfilerHost>> ProfilerHost::create(const HostFunctions& functions, Kind kind, int device) {
  std::unique_ptr<ProfilerHost> made(new ProfilerHost(functions, kind));
  const auto call = [&](HostFunctions::Function function, void* parameters, const char* what) { return callCupti(functions, function, parameters, what); };
  auto initialize = abi::sized(&abi::ProfilerInitialize::reserved);
  // Before all others: without it they crash.
  if (auto done = call(functions.profilerInitialize, &initialize, "cuptiProfilerInitialize"); !done) return tl::unexpected(done.error());
  auto supported = abi::sized(&abi::DeviceSupported::api);
  supported.device = device;
  constexpr int kPmSampling = 3;  // CUPTI_PROFILER_PM_SAMPLING
  supported.api = kind == Kind::Sampling ? kPmSampling : 0;
  if (auto done = call(functions.deviceSupported, &supported, "cuptiProfilerDeviceSupported"); !done) return tl::unexpected(done.error());
  if (supported.isSupported == 1 || supported.isSupported == 2) {
    return fail(ErrorCode::Unsupported, "this GPU's counters cannot be read: " + obstacle(supported));
  }
  auto chip = abi::sized(&abi::DeviceChip::chip);
  chip.device = static_cast<size_t>(device);
  if (auto done = call(functions.chipName, &chip, "cuptiDeviceGetChipName"); !done) return tl::unexpected(done.error());
  made->chip_ = chip.chip ? chip.chip : "";
  return made;
}

ProfilerHost::~ProfilerHost() { end(); }

Result<void> ProfilerHost::begin() {
  end();
  auto host = abi::sized(&abi::HostInitialize::host);
  host.profiler = static_cast<int>(kind_);
  host.chip = chip_.c_str();
  host.availability = availability_.empty() ? nullptr : availability_.data();
  if (auto done = callCupti(cupti_, cupti_.hostInitialize, &host, "cuptiProfilerHostInitialize"); !done) return done;
  host_ = host.host;
  return {};
}

void ProfilerHost::end() {
  if (!host_) return;
  auto host = abi::sized(&abi::HostObject::host);
  host.host = std::exchange(host_, nullptr);
  (void)cupti_.hostDeinitialize(&host);
}

Result<void> ProfilerHost::add(const char** names, size_t count) {
  auto add = abi::sized(&abi::HostAddMetrics::count);
  add.host = host_;
  add.names = names;
  add.count = count;
  return callCupti(cupti_, cupti_.hostAddMetrics, &add, "cuptiProfilerHostConfigAddMetrics");
}

Result<size_t> ProfilerHost::passes() {
  auto size = abi::sized(&abi::HostConfigSize::bytes);
  size.host = host_;
  if (auto done = callCupti(cupti_, cupti_.hostConfigSize, &size, "cuptiProfilerHostGetConfigImageSize"); !done) return tl::unexpected(done.error());
  config_.resize(size.bytes);
  auto image = abi::sized(&abi::HostConfig::image);
  image.host = host_;
  image.bytes = config_.size();
  image.image = config_.data();
  if (auto done = callCupti(cupti_, cupti_.hostConfig, &image, "cuptiProfilerHostGetConfigImage"); !done) return tl::unexpected(done.error());
  auto passes = abi::sized(&abi::HostPasses::passes);
  passes.bytes = config_.size();
  passes.image = config_.data();
  if (auto done = callCupti(cupti_, cupti_.hostPasses, &passes, "cuptiProfilerHostGetNumOfPasses"); !done) return tl::unexpected(done.error());
  return passes.passes;
}

Result<size_t> ProfilerHost::attempt(const std::vector<std::string>& names) {
  if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
  metrics_ = names;
  names_.clear();
  for (const std::string& name : metrics_) names_.push_back(name.c_str());
  // All at once: each call is a pass of its own.
  if (auto added = add(names_.data(), names_.size()); !added) return tl::unexpected(added.error());
  return passes();
}

/// By itself: beside others CUPTI refuses also what only does not fit.
bool ProfilerHost::isThere(const std::string& name) {
  const char* text = name.c_str();
  return begin() && add(&text, 1);
}

/// By wish, the names that the GPU has.
Result<std::vector<std::vector<std::string>>> ProfilerHost::whatIsThere(const std::vector<MetricWish>& wishes) {
  if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
  std::vector<std::vector<std::string>> there(wishes.size());
  for (size_t i = 0; i < wishes.size(); ++i) {
    for (const std::string& name : wishes[i].names)
      if (isThere(name)) there[i].push_back(name);
    if (!there[i].empty()) continue;
    const std::string& name = wishes[i].names.front();
    const std::string others = similar(name);
    const std::string like = others.empty() ? "" : "; it has " + others;
    if (wishes[i].isRequired) return fail(ErrorCode::InvalidArgument, fmt::format("{} is not a counter of this GPU ({}){}", name, chip_, like));
    leftOut_.push_back({name, "no counter of this GPU" + like});
  }
  return there;
}

/// Of what is there, what one pass can read.
Result<std::vector<std::string>> ProfilerHost::whatFits(const std::vector<MetricWish>& wishes, const std::vector<std::vector<std::string>>& there) {
  std::vector<std::string> chosen(wishes.size());
  const auto list = [&] {
    std::vector<std::string> names;
    for (const std::string& name : chosen)
      if (!name.empty()) names.push_back(name);
    return names;
  };
  for (size_t i = 0; i < wishes.size(); ++i)
    if (wishes[i].isRequired) chosen[i] = there[i].front();
  if (const auto required = list(); !required.empty()) {
    auto passes = attempt(required);
    if (!passes) return tl::unexpected(passes.error());
    if (*passes > 1) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("these counters do not fit together: each kernel would have to run {} times; ask for fewer, or for others", *passes));
    }
  }
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].isRequired || there[i].empty()) continue;
    size_t needed = 0;
    for (const std::string& name : there[i]) {
      chosen[i] = name;
      const auto passes = attempt(list());
      needed = passes ? *passes : 0;
      if (needed == 1) break;
      chosen[i].clear();
    }
    if (chosen[i].empty()) leftOut_.push_back({there[i].front(), needed > 1 ? "does not fit into one pass with the others" : "CUPTI refuses it with the others"});
  }
  return list();
}

Result<void> ProfilerHost::choose(const std::vector<MetricWish>& wishes, std::vector<uint8_t> availability) {
  availability_ = std::move(availability);
  leftOut_.clear();
  std::vector<std::string> first;
  for (const auto& wish : wishes) first.push_back(wish.names.front());
  if (first.empty()) return fail(ErrorCode::InvalidArgument, "no counter is named");
  if (const auto passes = attempt(first); passes && *passes == 1) return {};
  auto there = whatIsThere(wishes);
  if (!there) return tl::unexpected(there.error());
  auto fitting = whatFits(wishes, *there);
  if (!fitting) return tl::unexpected(fitting.error());
  if (fitting->empty()) return fail(ErrorCode::Unsupported, "none of the counters can be read: " + leftOutText(leftOut_));
  auto passes = attempt(*fitting);  // the last attempt may have been one that did not fit
  if (!passes) return tl::unexpected(passes.error());
  return {};
}

/// Metrics that begin as `name` does: "lts__t_sector…". Empty where CUPTI lists none.
std::string ProfilerHost::similar(const std::string& name) {
  if (!cupti_.hostBaseMetrics) return {};
  constexpr size_t kMost = 12;
  const std::string_view base = baseOf(name);
  std::vector<std::string> all;
  for (int type = 0; type < 3; ++type) {  // counters, ratios, throughputs
    auto list = abi::sized(&abi::HostBaseMetrics::count);
    list.host = host_;
    list.type = type;
    if (cupti_.hostBaseMetrics(&list) != 0) continue;
    for (size_t i = 0; i < list.count; ++i)
      if (list.names[i]) all.emplace_back(list.names[i]);
  }
  // The longest beginning, from a whole name down to its unit, that some metric shares.
  for (size_t length = base.size(); length != std::string_view::npos && length > 0; length = base.substr(0, length).rfind('_')) {
    std::string found;
    size_t count = 0;
    for (const std::string& other : all)
      if (other.compare(0, length, base.substr(0, length)) == 0 && ++count <= kMost) found += (found.empty() ? "" : " ") + other;
    if (count > kMost) found += fmt::format(" and {} more", count - kMost);
    if (count > 0) return found;
  }
  return {};
}

Result<void> ProfilerHost::evaluate(const std::vector<uint8_t>& image, size_t index, double* values) {
  auto evaluate = abi::sized(&abi::HostEvaluate::values);
  evaluate.host = host_;
  evaluate.data = image.data();
  evaluate.bytes = image.size();
  evaluate.range = index;
  evaluate.names = names_.data();
  evaluate.count = names_.size();
  evaluate.values = values;
  return callCupti(cupti_, cupti_.hostEvaluate, &evaluate, "cuptiProfilerHostEvaluateToGpuValues");
}

}  // namespace fusebox::cupti
