#include "engine/runtime/launch_stop.h"

#include <ATen/Dispatch.h>

#include <array>
#include <nlohmann/json.hpp>

#include "engine/debug/site.h"
#include "engine/debug/tensor_facts.h"

namespace fusebox::runtime {
namespace {

using nlohmann::json;

constexpr int64_t kShownValues = 8;
constexpr size_t kShownBuffers = 64;

/// The first elements in memory, for those who look for NaNs.
json firstValues(const void* address, const BufferPlan& buffer) {
  int64_t reachable = 1;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    if (buffer.sizes[d] == 0) return json::array();
    reachable += (buffer.sizes[d] - 1) * (d < buffer.strides.size() ? buffer.strides[d] : 0);
  }
  json values = json::array();
  const int64_t count = std::min(reachable, kShownValues);
  AT_DISPATCH_V2(buffer.dtype, "firstValues", AT_WRAP([&] {
                   for (int64_t i = 0; i < count; ++i) {
                     const scalar_t value = static_cast<const scalar_t*>(address)[i];
                     if (c10::isIntegralType(buffer.dtype, true))
                       values.push_back(static_cast<int64_t>(value));
                     else
                       values.push_back(std::to_string(static_cast<double>(value)));
                   }
                 }),
                 AT_EXPAND(AT_ALL_TYPES), at::kBool, at::kHalf, at::kBFloat16);
  return values;
}

class LaunchSite : public debug::Site {
 public:
  LaunchSite(const RuntimePlan& plan, const RuntimePlan::StepPlan& step, const std::vector<void*>& addresses)
      : plan_(plan), addresses_(addresses) {
    if (step.kind == RuntimePlan::StepKind::Launch)
      launch_ = &plan.launches[static_cast<size_t>(step.index)];
    else if (step.kind == RuntimePlan::StepKind::Batch)  // the first stands for all
      launch_ = &plan.launches[static_cast<size_t>(plan.batches[static_cast<size_t>(step.index)].first)];
    else
      extern_ = &plan.externs[static_cast<size_t>(step.index)];
  }
  std::string name() const {
    if (launch_) return plan_.program().kernels[static_cast<size_t>(launch_->kernelIndex)].name;
    const auto& op = extern_->call.handle.operator_name();
    return op.name + (op.overload_name.empty() ? "" : "." + op.overload_name);
  }
  std::string title() override {
    return (launch_ ? "about to launch kernel " : "about to call ") + name() + " of " + plan_.program().name;
  }
  json detail() override {
    return {{"kernel", name()},
            {"graph", plan_.program().name},
            {"group", launch_ ? launch_->group : extern_->group},
            {"extern", !launch_}};
  }
  Result<json> answer(const std::string& question) override {
    if (question == "kernel" && launch_)
      return json{{"name", name()},
                  {"loop_ir", plan_.program().kernels[static_cast<size_t>(launch_->kernelIndex)].str()}};
    if (question == "arguments") return arguments();
    if (constexpr std::string_view kTensor = "tensor:"; question.starts_with(kTensor)) return tensor(question.substr(kTensor.size()));
    return Site::answer(question);
  }
  std::span<const std::string_view> questions() const override {
    static constexpr std::array<std::string_view, 3> kQuestions{"arguments", "tensor", "kernel"};
    return {kQuestions.data(), launch_ ? 3u : 1u};
  }

 private:
  json arguments() const {
    json rows = json::array();
    const auto& ids = launch_ ? launch_->buffers : extern_->call.results;
    for (size_t i = 0; i < ids.size() && i < kShownBuffers; ++i) {
      if (ids[i] < 0) continue;
      const auto index = static_cast<size_t>(ids[i]);
      const BufferPlan& buffer = plan_.buffers[index];
      json row{{"name", plan_.program().buffers[index].name},
               {"dtype", c10::toString(buffer.dtype)},
               {"device", buffer.device.str()}};
      if (launch_) {
        static constexpr std::array<const char*, 4> kRoles{"input", "output", "in and out", "scratch"};
        const auto& kernel = plan_.program().kernels[static_cast<size_t>(launch_->kernelIndex)];
        const auto argument = argumentOf(kernel, i);
        if (argument) row["role"] = kRoles[static_cast<size_t>(argument->role)];
      } else {
        row["role"] = "result";
      }
      if (buffer.isStatic) {
        row["sizes"] = buffer.sizes;
        row["strides"] = buffer.strides;
        const void* address = index < addresses_.size() ? addresses_[index] : nullptr;
        if (launch_ && address && buffer.device.is_cpu() && row["role"] != "output")
          row["first_values"] = valuesOrNone(address, buffer);
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }
  /// What the buffer of that name holds before the launch.
  Result<json> tensor(const std::string& wanted) const {
    if (!launch_) return fail(ErrorCode::NotFound, "what an operator reads is not listed here");
    const auto& kernel = plan_.program().kernels[static_cast<size_t>(launch_->kernelIndex)];
    for (size_t i = 0; i < launch_->buffers.size(); ++i) {
      if (launch_->buffers[i] < 0) continue;
      const auto index = static_cast<size_t>(launch_->buffers[i]);
      if (plan_.program().buffers[index].name != wanted) continue;
      const BufferPlan& buffer = plan_.buffers[index];
      const auto* argument = argumentOf(kernel, i);
      if (argument && argument->role == inductor::BufferRole::Output) return fail(ErrorCode::NotFound, "the kernel has not written it yet");
      if (!buffer.device.is_cpu()) return fail(ErrorCode::NotFound, "it lies on " + buffer.device.str() + ", which is not read");
      if (!buffer.isStatic || buffer.isOpaque || index >= addresses_.size()) return fail(ErrorCode::NotFound, "its sizes are not known here");
      return debug::tensorFacts({addresses_[index], c10::toString(buffer.dtype), buffer.sizes, buffer.strides});
    }
    return fail(ErrorCode::NotFound, "the launch has no buffer of that name", wanted.substr(0, 100));
  }
  /// The kernel's buffer behind pointer argument `i`: scratch buffers have none.
  static const inductor::KernelBuffer* argumentOf(const inductor::Kernel& kernel, size_t i) {
    for (const inductor::KernelBuffer& buffer : kernel.buffers) {
      if (buffer.role == inductor::BufferRole::Scratch) continue;
      if (i-- == 0) return &buffer;
    }
    return nullptr;
  }
  static json valuesOrNone(const void* address, const BufferPlan& buffer) {
    try {
      return firstValues(address, buffer);
    } catch (const c10::Error&) {
      return json();  // a type that has no plain numbers
    }
  }

  const RuntimePlan& plan_;
  const std::vector<void*>& addresses_;
  const LaunchPlan* launch_ = nullptr;
  const ExternPlan* extern_ = nullptr;
};

}  // namespace

void stopAtLaunch(const RuntimePlan& plan, const RuntimePlan::StepPlan& step, const std::vector<void*>& addresses) {
  if (step.kind == RuntimePlan::StepKind::Allocate || step.kind == RuntimePlan::StepKind::Free) return;
  LaunchSite site(plan, step, addresses);
  const std::array<std::string, 2> names{site.name(), plan.program().name};
  debug::Event event;
  event.kind = debug::Kind::KernelLaunch;
  event.names = names;
  debug::reach(event, site);
}

}  // namespace fusebox::runtime
