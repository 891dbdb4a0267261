#include "engine/compile/pipeline_stops.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/debug/site.h"
#include "engine/support/control_frame.h"

namespace fusebox {
namespace {

using nlohmann::json;

class KernelSite : public debug::Site {
 public:
  KernelSite(const inductor::Kernel& kernel, const std::function<Result<KernelListing>()>& listing)
      : kernel_(kernel), listing_(listing) {}
  std::string title() override {
    return (listing_ ? "compiled kernel " : "about to compile kernel ") + kernel_.name + " for " + kernel_.device.str();
  }
  json detail() override { return {{"kernel", kernel_.name}, {"device", kernel_.device.str()}}; }
  Result<json> answer(const std::string& question) override {
    if (question != "kernel") return Site::answer(question);
    json answer{{"name", kernel_.name}, {"device", kernel_.device.str()}, {"loop_ir", control::clipped(kernel_.str())}};
    if (!listing_) return answer;
    auto made = listing_();
    if (!made) {
      answer["no_code"] = made.error().text();
      return answer;
    }
    answer["target"] = made->target;
    answer["llvm_ir"] = control::clipped(std::move(made->llvmIr));
    answer["assembly"] = control::clipped(std::move(made->assembly));
    answer["code_bytes"] = made->codeBytes;
    answer["compile_ns"] = made->compileNs;
    return answer;
  }
  std::span<const std::string_view> questions() const override {
    static constexpr std::array<std::string_view, 1> kQuestions{"kernel"};
    return kQuestions;
  }

 private:
  const inductor::Kernel& kernel_;
  const std::function<Result<KernelListing>()>& listing_;
};

}  // namespace

std::string irText(const graph::Graph& graph) { return graph.str(); }

std::string irText(const inductor::LoweredGraph& lowered) {
  std::string text;
  for (const inductor::Operation& operation : lowered.operations) {
    text += operation.name;
    if (operation.kind == inductor::Operation::Kind::Extern)
      text += " = extern " + operation.call.op + "  # " + operation.call.reason + "\n";
    else
      text += ":\n" + operation.kernel.str() + "\n";
  }
  return text;
}

std::string irText(const inductor::Schedule& schedule) {
  std::string text;
  for (const inductor::FusionGroup& group : schedule.groups)
    text += "group " + std::to_string(group.id) + " " + group.name + ": " + std::to_string(group.operations.size()) +
            " operations, saves " + std::to_string(group.bytesSaved) + " bytes\n";
  return text + "\n" + schedule.program.str();
}

std::string stopName(const char* stage) {
  std::string name = stage;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void stopAtKernel(const inductor::Kernel& kernel, const std::function<Result<KernelListing>()>& listing) {
  KernelSite site(kernel, listing);
  debug::Event event;
  event.kind = debug::Kind::KernelCompile;
  event.when = listing ? debug::When::After : debug::When::Before;
  event.names = {&kernel.name, 1};
  debug::reach(event, site);
}

}  // namespace fusebox
